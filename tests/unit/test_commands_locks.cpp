// SPDX-License-Identifier: MIT
// The scripts of locks, ticks and once, branch by branch, on the memory server.
#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>

#include "io/memory_server.hpp"
#include "protocol/commands.hpp"
#include "protocol/keys.hpp"
#include "protocol/lock_value.hpp"

using namespace stn;

namespace {

token name(char c) {
    return token_from(std::string(16, c));
}

struct scene {
    server_ms now = 1'000'000;
    memory_server server{[this] { return now; }};
    const std::string key = lock_key("stn", "report");

    reply run(const command& c) { return server.execute(c); }
    std::int64_t number(const command& c) { return read_integer(run(c)).value_or(-99); }
    std::string there() { return server.peek(key).value_or("nothing"); }
    std::int64_t left() { return server.pttl(key).value_or(-2); }
    acquire_answer acquire(char who, std::int64_t ttl_ms = 300, std::string_view label = "me") {
        const auto said = read_acquire(run(acquire_command(key, name(who), ttl_ms, label)));
        REQUIRE(said);
        return *said;
    }
    tick_answer tick(char who, tick_times when = {1'000, 0, 5'000}) {
        const auto said = read_tick(run(tick_command(key, name(who), when)));
        REQUIRE(said);
        return *said;
    }
    std::int64_t tick_end(char who, bool done) { return number(tick_end_command(key, name(who), done, 2'000)); }
    std::int64_t once(char who, std::int64_t ttl_ms = 300) { return number(once_command(key, name(who), ttl_ms)); }
};

using tick_kind = tick_answer::kind;

} // namespace

// --- acquire -------------------------------------------------------------------------------------

TEST_CASE("acquire: the first gets it, with a fence that is the server's time in microseconds") {
    scene s;
    const auto mine = s.acquire('m');
    CHECK(mine.granted);
    CHECK(mine.fence == 1'000'000'000);
    CHECK(s.there() == name('m').str() + ":1000000000:me");
    CHECK(s.left() == 300);
    s.now += 100;
    const auto other = s.acquire('x');
    CHECK(!other.granted);
    CHECK(other.pttl_ms == 200);
    CHECK(s.left() == 200);
}

TEST_CASE("acquire: asking again with the same token keeps the fence, and the whole ttl begins anew") {
    scene s;
    const auto first = s.acquire('m');
    s.now += 100;
    const auto again = s.acquire('m');
    CHECK(again.granted);
    CHECK(again.fence == first.fence);
    CHECK(s.left() == 300);
}

TEST_CASE("acquire: fences increase, even within one microsecond") {
    scene s;
    std::int64_t last = 0;
    for (int i = 0; i < 5; ++i) {
        const auto mine = s.acquire('m');
        CHECK(mine.fence > last);
        last = mine.fence;
        CHECK(s.number(release_command(s.key, name('m'), {})) == 1);
    }
    s.now -= 1; // and while the clock steps back a little
    CHECK(s.acquire('m').fence > last);
}

TEST_CASE("acquire: a lock of somebody who only knows SET NX PX is respected, and so is one without a TTL") {
    scene s;
    s.server.set(s.key, "8f1d4c2a", 700);
    CHECK(!s.acquire('m').granted);
    CHECK(s.acquire('m').pttl_ms == 700);
    s.server.set(s.key, "", 700);
    CHECK(!s.acquire('m').granted);
    s.server.set(s.key, "for ever", std::nullopt);
    CHECK(!s.acquire('m').granted);
    CHECK(s.acquire('m').pttl_ms == -1);
    CHECK(s.there() == "for ever");
}

TEST_CASE("acquire: a key of another type is an error of its own, and is left alone") {
    scene s;
    s.server.set_list(s.key, 5'000);
    CHECK(s.run(acquire_command(s.key, name('m'), 300, "")).text.starts_with("WRONGTYPE"));
    CHECK(s.left() == 5'000);
}

TEST_CASE("acquire: out of memory is an error and nothing is written; what is mine is mine all the same") {
    scene s;
    s.server.refuse_writes(true);
    CHECK(s.run(acquire_command(s.key, name('m'), 300, "")).text.starts_with("OOM"));
    CHECK(s.there() == "nothing");
    s.server.refuse_writes(false);
    s.acquire('m');
    s.server.refuse_writes(true);
    CHECK(s.acquire('m', 900).granted);
    CHECK(s.left() == 900);
    CHECK(!s.acquire('x').granted);
}

TEST_CASE("acquire: a ttl that is none is an error") {
    scene s;
    CHECK(s.run(acquire_command(s.key, name('m'), 0, "")).kind == reply_kind::error);
    CHECK(s.run(acquire_command(s.key, name('m'), INT64_MAX, "")).kind == reply_kind::error);
    CHECK(s.there() == "nothing");
}

TEST_CASE("renew and release know a lock by its token alone, whatever fence and label follow") {
    scene s;
    s.acquire('m', 300, "a:b%c");
    CHECK(s.number(renew_command(s.key, name('x'), 900)) == -1);
    CHECK(s.number(release_command(s.key, name('x'), {})) == -1);
    CHECK(s.left() == 300);
    CHECK(s.number(renew_command(s.key, name('m'), 900)) == 1);
    CHECK(s.left() == 900);
    CHECK(s.number(release_command(s.key, name('m'), {})) == 1);
    CHECK(s.number(renew_command(s.key, name('m'), 900)) == 0);
    CHECK(s.there() == "nothing");
}

TEST_CASE("a lock of somebody else's making is never renewed nor released") {
    scene s;
    for (const std::string& foreign : {std::string("8f1d4c2a"), std::string(), std::string(15, 'm')}) {
        s.server.set(s.key, foreign, 700);
        CHECK(s.number(renew_command(s.key, name('m'), 900)) == -1);
        CHECK(s.number(release_command(s.key, name('m'), {})) == -1);
        CHECK(s.there() == foreign);
        CHECK(s.left() == 700);
    }
}

// --- tick ----------------------------------------------------------------------------------------

TEST_CASE("tick: a slot is given out once, however short the run is") {
    scene s;
    s.now = 10'400;
    const auto mine = s.tick('m');
    CHECK(mine.what == tick_kind::granted);
    CHECK(mine.slot == 10'000);
    CHECK(mine.fence == 10'400'000);
    CHECK(s.there() == "10000:" + name('m').str() + ":10400000:running");
    CHECK(s.left() == 5'000);
    CHECK(s.tick('x').what == tick_kind::taken);
    CHECK(s.tick_end('m', true) == 1);
    CHECK(s.there() == "10000:" + name('m').str() + ":10400000:done");
    CHECK(s.left() == 2'000);
    const auto other = s.tick('x');
    CHECK(other.what == tick_kind::taken);
    CHECK(other.slot == 10'000);
    CHECK(other.in_ms == 600);
    s.now = 11'000;
    CHECK(s.tick('x').what == tick_kind::granted);
}

TEST_CASE("tick: asking again with the same token gives the same slot, also when the next has begun") {
    scene s;
    s.now = 10'999;
    const auto first = s.tick('m');
    s.now = 11'001;
    const auto again = s.tick('m');
    CHECK(again.what == tick_kind::granted);
    CHECK(again.slot == first.slot);
    CHECK(again.fence == first.fence);
}

TEST_CASE("tick: a run that outlives its slot makes the next one be skipped, until it counts as dead") {
    scene s;
    s.now = 10'000;
    s.tick('m');
    s.now = 12'500;
    const auto other = s.tick('x');
    CHECK(other.what == tick_kind::still_running);
    CHECK(other.slot == 10'000);
    CHECK(other.in_ms == 2'501);
    s.now = 14'999;
    CHECK(s.tick('x').what == tick_kind::still_running);
    CHECK(s.tick_end('m', true) == 1);
    const auto next = s.tick('x');
    CHECK(next.what == tick_kind::granted);
    CHECK(next.slot == 14'000);
}

TEST_CASE("tick: a dead run lets a later slot begin after at_most, and cannot end it") {
    scene s;
    const tick_times when{1'000, 0, 300};
    s.now = 10'100;
    s.tick('m', when);
    CHECK(s.left() == 2'000);
    s.now = 10'900; // dead by now, but its slot was given out
    CHECK(s.tick('x', when).what == tick_kind::taken);
    s.now = 11'000;
    CHECK(s.tick('x', when).what == tick_kind::granted);
    CHECK(s.tick_end('m', true) == -1);
    CHECK(s.tick_end('m', false) == -1);
    CHECK(s.tick('y', when).what == tick_kind::taken);
}

TEST_CASE("tick: an undone run gives its slot back") {
    scene s;
    s.now = 10'000;
    s.tick('m');
    CHECK(s.tick_end('m', false) == 1);
    CHECK(s.there() == "nothing");
    CHECK(s.tick_end('m', false) == 0);
    const auto other = s.tick('x');
    CHECK(other.what == tick_kind::granted);
    CHECK(other.slot == 10'000);
}

TEST_CASE("tick: slots are shifted by the offset, and a clock that steps back opens none again") {
    scene s;
    s.now = 10'100;
    CHECK(s.tick('m', {1'000, 250, 100}).slot == 9'250);
    s.now = 10'250;
    CHECK(s.tick('x', {1'000, 250, 100}).slot == 10'250);
    s.now = 9'900;
    const auto back = s.tick('y', {1'000, 250, 100});
    CHECK(back.what == tick_kind::taken);
    CHECK(back.slot == 10'250);
    s.server.del(s.key);
    s.now = 100;
    CHECK(s.tick('y', {1'000, 250, 100}).slot == -750);
    CHECK(s.tick('x', {1'000, 250, 100}).slot == -750);
}

TEST_CASE("tick: what is no tick is left alone, by its end too") {
    scene s;
    const std::string t = name('m').str();
    for (const std::string& foreign :
         {std::string("hello"), std::string(), t, "1:" + t, "1:" + t + ":2", "1:" + t + ":2:", "1:" + t + ":2:walking",
          "x:" + t + ":2:done", "1:" + t + ":-2:done", "1:" + t + "x:2:done", "12345678901234567:" + t + ":2:done",
          "1:" + t + ":12345678901234567:done", "1:" + t + ":2:done "}) {
        s.server.set(s.key, foreign, 700);
        CHECK_MESSAGE(s.tick('m').what == tick_kind::foreign, foreign);
        CHECK(s.tick_end('m', true) == -1);
        CHECK(s.there() == foreign);
    }
    s.server.set_list(s.key, 700);
    CHECK(s.run(tick_command(s.key, name('m'), {1'000, 0, 0})).text.starts_with("WRONGTYPE"));
    CHECK(s.tick_end('m', true) == -1);
}

TEST_CASE("tick: the end of a run is told even out of memory, and a second time for nothing") {
    scene s;
    s.server.refuse_writes(true);
    CHECK(s.run(tick_command(s.key, name('m'), {1'000, 0, 0})).text.starts_with("OOM"));
    s.server.refuse_writes(false);
    s.tick('m');
    s.server.refuse_writes(true);
    CHECK(s.tick_end('m', true) == 1);
    CHECK(s.tick_end('m', true) == 1);
    CHECK(s.there().ends_with(":done"));
}

TEST_CASE("tick: times that make no sense are an error") {
    scene s;
    for (const tick_times& when : {tick_times{0, 0, 0}, {-5, 0, 0}, {1'000, 0, -1}, {INT64_MAX, 0, 0}}) {
        CHECK(s.run(tick_command(s.key, name('m'), when)).kind == reply_kind::error);
    }
    CHECK(s.there() == "nothing");
}

// --- once and inspect ----------------------------------------------------------------------------

TEST_CASE("once: the first claim stands until its ttl; the same token may ask again") {
    scene s;
    CHECK(s.once('m') == 1);
    CHECK(s.there() == name('m').str());
    s.now += 100;
    CHECK(s.once('x') == 0);
    CHECK(s.once('m') == 1);
    CHECK(s.left() == 200); // and it does not last longer for that
    s.now += 200;
    CHECK(s.once('x') == 1);
    CHECK(s.number(release_command(s.key, name('x'), {})) == 1);
    CHECK(s.once('y') == 1);
}

TEST_CASE("once: foreign bytes are another's; a key of another type and a full store are errors") {
    scene s;
    s.server.set(s.key, "hello", 700);
    CHECK(s.once('m') == 0);
    s.server.set_list(s.key, 700);
    CHECK(s.run(once_command(s.key, name('m'), 300)).text.starts_with("WRONGTYPE"));
    s.server.del(s.key);
    s.server.refuse_writes(true);
    CHECK(s.run(once_command(s.key, name('m'), 300)).text.starts_with("OOM"));
}

TEST_CASE("inspect: what stands there and for how long") {
    scene s;
    const auto look = [&] { return *read_inspect(s.run(inspect_command(s.key))); };
    CHECK(look().pttl_ms == -2);
    s.acquire('m', 300, "host a:1");
    CHECK(look().pttl_ms == 300);
    const auto lock = read_lock_value(look().bytes);
    REQUIRE(lock);
    CHECK(lock->holder == name('m'));
    CHECK(lock->fence == 1'000'000'000);
    CHECK(lock->label == "host a:1");
    s.server.set(s.key, "hello", std::nullopt);
    CHECK(look().pttl_ms == -1);
    CHECK(!read_lock_value(look().bytes));
    s.server.set_list(s.key, 700);
    CHECK(s.run(inspect_command(s.key)).text.starts_with("WRONGTYPE"));
}

// --- values, keys, replies -----------------------------------------------------------------------

TEST_CASE("a label of any bytes comes back as it was, and travels without colon or space") {
    std::string all;
    for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
    const std::string escaped = escape_label(all);
    CHECK(escaped.find_first_of(std::string(": \n\0", 4)) == std::string::npos);
    CHECK(read_lock_value(name('m').str() + ":7:" + escaped)->label == all);
    CHECK(escape_label("worker-7") == "worker-7");
    CHECK(read_lock_value(name('m').str() + ":7:50%")->label == "50%");
}

TEST_CASE("what is no lock value is told as none") {
    const std::string t = name('m').str();
    for (const std::string& bad : {std::string(), t, t + ":", t + ":7", t + ":x:", t + ":-7:", t + "7:8:", t + "::l"}) {
        CHECK_MESSAGE(!read_lock_value(bad), bad);
    }
    CHECK(read_lock_value(t + ":7:")->label.empty());
}

TEST_CASE("locks, ticks and ids have keys of their own, mapped as all keys are") {
    CHECK(lock_key("stn", "report") == "stn:k:{report}");
    CHECK(tick_key("stn", "report") == "stn:t:{report}");
    CHECK(once_key("stn", "report") == "stn:o:{report}");
    CHECK(lock_key("stn", "a}b") == "stn:k:{a%7Db}");
    CHECK(lock_key("stn", "{u}.x") == "stn:k:={u}.x");
}

TEST_CASE("a reply of another shape is no answer") {
    const auto n = [](std::int64_t v) { return reply::of_integer(v); };
    CHECK(!read_acquire(n(1)));
    CHECK(!read_acquire(reply::of_array({n(1)})));
    CHECK(!read_tick(reply::of_array({n(1), n(2)})));
    CHECK(!read_tick(reply::of_array({n(9), n(2), n(3)})));
    CHECK(!read_tick(reply::of_array({n(1), n(2), reply::of_bulk("3")})));
    CHECK(!read_inspect(reply::of_array({n(1), n(2)})));
    CHECK(!read_inspect(n(1)));
}

TEST_CASE("a token is shown as 32 digits") {
    CHECK(hex(name('a')) == "61616161616161616161616161616161");
}
