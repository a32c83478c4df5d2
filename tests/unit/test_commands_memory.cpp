// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/memory_server.hpp"
#include "io/memory_transport.hpp"
#include "protocol/commands.hpp"
#include "protocol/envelope.hpp"
#include "protocol/keys.hpp"
#include "protocol/scripts.hpp"
#include "protocol/wake.hpp"

using namespace stn;

namespace {

token name(char c) {
    return token_from(std::string(16, c));
}

std::string make(entry_kind kind, const token& generation, std::string_view payload = {}) {
    envelope e;
    e.kind = kind;
    e.generation = generation;
    e.created = 7;
    e.delta_ms = 9;
    e.payload = payload;
    return encode(e);
}

std::string placeholder(char c) {
    return make(entry_kind::placeholder, name(c));
}
std::string value(char c, std::string_view payload = "v") {
    return make(entry_kind::value, name(c), payload);
}

std::string with(std::string bytes, std::size_t at, int byte) {
    bytes[at] = static_cast<char>(byte);
    return bytes;
}

std::string waited(std::string bytes) {
    return with(std::move(bytes), 3, 1);
}

// A server at a time that the test turns, a hearer on the channel, and the key that all is about.
struct scene {
    server_ms now = 1000;
    std::shared_ptr<memory_server> server = std::make_shared<memory_server>([this] { return now; });
    memory_transport ear{server};
    const std::string key = value_key("stn", "c", "k");
    const wake_target wake{"stn:w:1", wake_tail(key)};

    scene() {
        ear.submit(1, subscribe_command(wake.channel), 0);
        (void)heard();
    }

    std::vector<std::string> heard() {
        std::vector<std::string> out;
        for (transport_event e; ear.poll(e, 0);)
            if (e.what == transport_event::kind::message) out.push_back(e.payload);
        return out;
    }

    std::optional<wake_message> message() {
        last = heard();
        if (last.size() != 1) return std::nullopt;
        return decode_wake(last[0]);
    }

    reply run(const command& c) { return server->execute(c); }
    std::int64_t number(const command& c) { return read_integer(run(c)).value_or(-99); }
    std::string there() { return server->peek(key).value_or("nothing"); }
    std::int64_t left() { return server->pttl(key).value_or(-2); }
    void put_there(std::string bytes, std::optional<std::int64_t> ttl = 5000) {
        server->set(key, std::move(bytes), ttl);
    }
    lease_answer lease(char mine, std::vector<token> rejected = {}, std::vector<token> earlier = {},
                       std::int64_t ms = 300) {
        return read_lease(run(lease_command(key, placeholder(mine), ms, rejected, earlier)));
    }

    std::vector<std::string> last;
};

using lease_kind = lease_answer::kind;

// What stands in the key and is not ours.
const std::vector<std::string>& foreign_things() {
    static const std::vector<std::string> things = {
        "",
        "hello",
        std::string(44, 'x'),
        value('a').substr(0, 43),
        with(value('a'), 0, 0xF4),
        with(value('a'), 1, 0),
        with(value('a'), 2, 5),
        with(value('a'), 2, 0x30),
        with(value('a'), 2, 0x80),
        value('a') + "x",
    };
    return things;
}

} // namespace

TEST_CASE("get and del: a value, nothing, and the wrong type") {
    scene s;
    CHECK(s.run(get_command(s.key)).kind == reply_kind::nil);
    s.put_there("bytes");
    CHECK(s.run(get_command(s.key)).text == "bytes");
    CHECK(s.number(del_command(s.key)) == 1);
    CHECK(s.number(del_command(s.key)) == 0);
    s.server->set_list(s.key, std::nullopt);
    CHECK(s.run(get_command(s.key)).kind == reply_kind::error);
    CHECK(s.run(get_command(s.key)).text.starts_with("WRONGTYPE"));
    CHECK(s.number(del_command(s.key)) == 1);
}

TEST_CASE("time is the server's, in seconds and microseconds") {
    scene s;
    s.now = 1'700'000'001'234;
    const reply r = s.run(time_command());
    CHECK(r.items[0].text == "1700000001");
    CHECK(r.items[1].text == "234000");
    CHECK(read_time(r) == 1'700'000'001'234);
    CHECK(!read_time(reply::of_integer(1)));
    CHECK(!read_time(reply::of_array({reply::of_bulk("x"), reply::of_bulk("1")})));
    CHECK(!read_time(reply::of_array({reply::of_bulk("9223372036854775807"), reply::of_bulk("1")})));
    CHECK(!read_time(reply::of_array({reply::of_bulk("1"), reply::of_bulk("1000000")})));
}

TEST_CASE("a key is there until the last millisecond of its TTL, and gone at its end") {
    scene s;
    s.put_there("bytes", 100);
    s.now += 99;
    CHECK(s.left() == 1);
    CHECK(s.run(get_command(s.key)).text == "bytes");
    s.now += 1;
    CHECK(s.run(get_command(s.key)).kind == reply_kind::nil);
    CHECK(s.left() == -2);
    CHECK(s.server->keys().empty());
}

TEST_CASE("a second TTL replaces the first, and expired keys leave without being read") {
    scene s;
    for (int i = 0; i < 100; ++i) s.server->set("k" + std::to_string(i), "x", 100);
    s.server->set("k0", "x", 300);
    s.server->set("k1", "x", std::nullopt);
    s.now += 100;
    CHECK(s.server->keys() == std::vector<std::string>{"k0", "k1"});
    s.now += 200;
    CHECK(s.server->keys() == std::vector<std::string>{"k1"});
    s.server->flush();
    CHECK(s.server->keys().empty());
}

TEST_CASE("publish reaches each subscriber once and tells how many there are") {
    scene s;
    memory_transport other(s.server);
    CHECK(s.number(publish_command(s.wake.channel, "m")) == 1);
    other.submit(1, subscribe_command(s.wake.channel), 0);
    other.submit(2, subscribe_command(s.wake.channel), 0);
    CHECK(s.number(publish_command(s.wake.channel, "m")) == 2);
    CHECK(s.number(publish_command("another", "m")) == 0);
    CHECK(s.heard().size() == 2);
    other.close();
    CHECK(s.number(publish_command(s.wake.channel, "m")) == 1);
    s.server->refuse_publish(true);
    CHECK(s.run(publish_command(s.wake.channel, "m")).text.starts_with("NOPERM"));
}

// --- lease ---------------------------------------------------------------------------------------

TEST_CASE("lease: nothing there is granted, with a TTL") {
    scene s;
    const lease_answer a = s.lease('m');
    CHECK(a.what == lease_kind::granted);
    CHECK(!a.overwrote_foreign);
    CHECK(s.there() == placeholder('m'));
    CHECK(s.left() == 300);
}

TEST_CASE("lease: a value or marker is answered as it is, and stays") {
    for (const entry_kind kind : {entry_kind::value, entry_kind::absent, entry_kind::error, entry_kind::pass}) {
        scene s;
        const std::string bytes = make(kind, name('a'), "payload");
        s.put_there(bytes);
        const std::vector<token> others{name('x'), name('y')};
        const lease_answer a = s.lease('m', others, {name('a')});
        CHECK(a.what == lease_kind::value);
        CHECK(a.bytes == bytes);
        CHECK(a.pttl_ms == 5000);
        CHECK(!a.newer);
        CHECK(s.there() == bytes);
        CHECK(s.left() == 5000);
    }
}

TEST_CASE("lease: a rejected generation is a miss, marker or value") {
    for (const entry_kind kind : {entry_kind::value, entry_kind::absent, entry_kind::error, entry_kind::pass}) {
        scene s;
        s.put_there(make(kind, name('a'), "payload"));
        const lease_answer a = s.lease('m', {name('x'), name('a')});
        CHECK(a.what == lease_kind::granted);
        CHECK(!a.overwrote_foreign);
        CHECK(s.there() == placeholder('m'));
        CHECK(s.left() == 300);
    }
}

TEST_CASE("lease: another's placeholder is held: marked as waited for once, its TTL untouched") {
    scene s;
    s.put_there(placeholder('a'), 200);
    s.now += 50;
    const lease_answer a = s.lease('m', {name('a')}); // rejecting is about values, not leases
    CHECK(a.what == lease_kind::held);
    CHECK(a.pttl_ms == 150);
    CHECK(a.bytes == placeholder('a'));
    CHECK(s.there() == waited(placeholder('a')));
    CHECK(s.left() == 150);
    const lease_answer again = s.lease('n');
    CHECK(again.what == lease_kind::held);
    CHECK(again.bytes == waited(placeholder('a')));
}

TEST_CASE("lease and refresh: a TTL beyond what a double can hold is told rounded, as Lua does") {
    scene s;
    const std::int64_t long_ms = (std::int64_t{1} << 60) + 7;
    s.put_there(value('a'), long_ms);
    CHECK(s.lease('b').pttl_ms == long_ms - 7);
    CHECK(read_refresh(s.run(refresh_command(s.key, name('b'), 300)))->pttl_ms == long_ms - 7);
    CHECK(s.left() == long_ms);
}

TEST_CASE("lease: an earlier token of mine becomes the new one, and keeps its waiters") {
    for (const bool somebody_waits : {false, true}) {
        scene s;
        s.put_there(somebody_waits ? waited(placeholder('b')) : placeholder('b'), 50);
        const lease_answer a = s.lease('m', {}, {name('a'), name('b')});
        CHECK(a.what == lease_kind::granted);
        CHECK(!a.overwrote_foreign);
        CHECK(s.there() == (somebody_waits ? waited(placeholder('m')) : placeholder('m')));
        CHECK(s.left() == 300);
    }
}

TEST_CASE("lease: the very same command twice is granted twice") {
    scene s;
    CHECK(s.lease('m').what == lease_kind::granted);
    s.now += 100;
    CHECK(s.lease('m').what == lease_kind::granted);
    CHECK(s.left() == 300);
}

TEST_CASE("lease: what is not ours is overwritten, and told") {
    for (const std::string& thing : foreign_things()) {
        scene s;
        s.put_there(thing);
        const lease_answer a = s.lease('m');
        CHECK(a.what == lease_kind::granted);
        CHECK(a.overwrote_foreign);
        CHECK(s.there() == placeholder('m'));
        CHECK(s.left() == 300);
    }
    scene s;
    s.server->set_list(s.key, 5000);
    CHECK(s.lease('m').overwrote_foreign);
    CHECK(s.there() == placeholder('m'));
    CHECK(s.left() == 300);
}

TEST_CASE("lease: a key without a TTL is not ours, whatever it holds") {
    for (const std::string& thing : {value('a'), placeholder('a'), placeholder('m')}) {
        scene s;
        s.put_there(thing, std::nullopt);
        const lease_answer a = s.lease('m', {}, {name('a')});
        CHECK(a.what == lease_kind::granted);
        CHECK(a.overwrote_foreign);
        CHECK(s.left() == 300);
    }
}

TEST_CASE("lease: a newer version is answered and left alone") {
    for (const std::optional<std::int64_t> ttl : {std::optional<std::int64_t>(5000), std::optional<std::int64_t>()}) {
        scene s;
        const std::string bytes = with(placeholder('a'), 1, 2);
        s.put_there(bytes, ttl);
        const lease_answer a = s.lease('m', {name('a')}, {name('a')});
        CHECK(a.what == lease_kind::value);
        CHECK(a.newer);
        CHECK(a.bytes == bytes);
        CHECK(s.there() == bytes);
        CHECK(s.left() == ttl.value_or(-1));
    }
}

TEST_CASE("lease: out of memory is an error and writes nothing; held and value are answered all the same") {
    scene s;
    s.server->refuse_writes(true);
    const reply refused = s.run(lease_command(s.key, placeholder('m'), 300, {}, {}));
    CHECK(refused.text.starts_with("OOM"));
    CHECK(read_lease(refused).what == lease_kind::bad);
    CHECK(s.there() == "nothing");
    s.put_there(placeholder('a'));
    CHECK(s.lease('m').what == lease_kind::held);
    CHECK(s.there() == placeholder('a')); // the waiter byte was refused
    s.put_there(value('a'));
    CHECK(s.lease('m').what == lease_kind::value);
    CHECK(s.lease('m', {name('a')}).what == lease_kind::bad);
    CHECK(s.there() == value('a'));
}

TEST_CASE("read_lease: anything that is no lease reply is bad") {
    using r = reply;
    CHECK(read_lease(r{}).what == lease_kind::bad);
    CHECK(read_lease(r::of_integer(1)).what == lease_kind::bad);
    CHECK(read_lease(r::of_array({r::of_integer(1)})).what == lease_kind::bad);
    CHECK(read_lease(r::of_array({r::of_bulk("1"), r::of_integer(0), r::of_bulk("")})).what == lease_kind::bad);
    CHECK(read_lease(r::of_array({r::of_integer(4), r::of_integer(0), r::of_bulk("")})).what == lease_kind::bad);
    CHECK(read_lease(r::of_array({r::of_integer(1), r::of_integer(0), r{}})).what == lease_kind::bad);
}

// --- extend --------------------------------------------------------------------------------------

TEST_CASE("extend: only my own placeholder, and never out of nothing") {
    scene s;
    CHECK(s.number(extend_command(s.key, name('m'), 900)) == 0);
    CHECK(s.there() == "nothing");
    s.put_there(placeholder('m'), 100);
    CHECK(s.number(extend_command(s.key, name('m'), 900)) == 1);
    CHECK(s.left() == 900);
    CHECK(s.number(extend_command(s.key, name('x'), 50)) == 0);
    CHECK(s.left() == 900);
    for (const std::string& other : {value('m'), with(placeholder('m'), 1, 2), std::string("foreign")}) {
        s.put_there(other);
        CHECK(s.number(extend_command(s.key, name('m'), 900)) == 0);
        CHECK(s.left() == 5000);
    }
    s.server->set_list(s.key, 5000);
    CHECK(s.number(extend_command(s.key, name('m'), 900)) == 0);
}

TEST_CASE("extend: works out of memory") {
    scene s;
    s.put_there(placeholder('m'));
    s.server->refuse_writes(true);
    CHECK(s.number(extend_command(s.key, name('m'), 900)) == 1);
    CHECK(s.left() == 900);
}

// --- fill ----------------------------------------------------------------------------------------

TEST_CASE("fill: in place of my lease, told to nobody when nobody waits") {
    scene s;
    s.put_there(placeholder('m'));
    CHECK(s.number(fill_command(s.key, name('m'), value('n'), 700, s.wake)) == 1);
    CHECK(s.there() == value('n'));
    CHECK(s.left() == 700);
    CHECK(s.heard().empty());
}

TEST_CASE("fill: whoever waits is told the token it replaced, and gets a small value with it") {
    for (const std::size_t size : {std::size_t{10}, envelope_in_wake - 44, envelope_in_wake - 43}) {
        scene s;
        s.put_there(waited(placeholder('m')));
        const std::string filled = value('n', std::string(size, 'p'));
        CHECK(s.number(fill_command(s.key, name('m'), filled, 700, s.wake)) == 1);
        const auto m = s.message();
        REQUIRE(m);
        CHECK(m->kind == wake_kind::filled);
        CHECK(m->replaced == name('m'));
        CHECK(m->key == s.key);
        CHECK(m->envelope == (filled.size() <= envelope_in_wake ? filled : ""));
    }
}

TEST_CASE("fill: a refresh replaces the very generation it was loaded for") {
    scene s;
    s.put_there(value('a'));
    CHECK(s.number(fill_command(s.key, name('a'), value('n'), 700, s.wake)) == 1);
    CHECK(s.there() == value('n'));
    CHECK(s.left() == 700);
}

TEST_CASE("fill: a resend whose first copy ran is 1, and changes nothing") {
    scene s;
    s.put_there(value('n'), 400);
    CHECK(s.number(fill_command(s.key, name('m'), value('n'), 700, s.wake)) == 1);
    CHECK(s.left() == 400);
    CHECK(s.heard().empty());
}

TEST_CASE("fill: refused when the lease is gone, replaced, or the key is not ours") {
    scene s;
    const command fill = fill_command(s.key, name('m'), value('n'), 700, s.wake);
    CHECK(s.number(fill) == 0);
    CHECK(s.there() == "nothing");
    for (const std::string& other :
         {placeholder('x'), value('x'), make(entry_kind::error, name('x')), std::string("foreign"),
          with(placeholder('m'), 1, 2), placeholder('m').substr(0, 19)}) {
        s.put_there(other);
        CHECK(s.number(fill) == 0);
        CHECK(s.there() == other);
    }
    s.server->set_list(s.key, 5000);
    CHECK(s.number(fill) == 0);
    CHECK(s.heard().empty());
}

TEST_CASE("fill: out of memory is an error, and the lease stays") {
    scene s;
    s.put_there(placeholder('m'));
    s.server->refuse_writes(true);
    CHECK(s.run(fill_command(s.key, name('m'), value('n'), 700, s.wake)).text.starts_with("OOM"));
    CHECK(s.there() == placeholder('m'));
    CHECK(s.left() == 5000);
}

TEST_CASE("fill: a refused PUBLISH does not undo it, and no channel tells nobody") {
    scene s;
    s.server->refuse_publish(true);
    s.put_there(waited(placeholder('m')));
    CHECK(s.number(fill_command(s.key, name('m'), value('n'), 700, s.wake)) == 1);
    s.server->refuse_publish(false);
    s.put_there(waited(placeholder('m')));
    CHECK(s.number(fill_command(s.key, name('m'), value('n'), 700, {})) == 1);
    CHECK(s.there() == value('n'));
    CHECK(s.heard().empty());
}

TEST_CASE("fill: a TTL that is no TTL is an error, never a key without one") {
    scene s;
    s.put_there(placeholder('m'));
    for (const std::int64_t px : {std::int64_t{0}, std::int64_t{-5}, INT64_MAX})
        CHECK(s.run(fill_command(s.key, name('m'), value('n'), px, s.wake)).kind == reply_kind::error);
    CHECK(s.there() == placeholder('m'));
    CHECK(s.left() == 5000);
}

// --- abandon -------------------------------------------------------------------------------------

TEST_CASE("abandon: any of my tokens, told as released") {
    scene s;
    const std::vector<token> mine{name('a'), name('m'), name('b')};
    s.put_there(waited(placeholder('m')));
    CHECK(s.number(abandon_command(s.key, marker_kind::none, {}, 0, s.wake, mine)) == 1);
    CHECK(s.there() == "nothing");
    const auto m = s.message();
    REQUIRE(m);
    CHECK(m->kind == wake_kind::released);
    CHECK(m->replaced == name('m'));
    CHECK(m->key == s.key);
    CHECK(m->envelope.empty());
    s.put_there(placeholder('m'));
    CHECK(s.number(abandon_command(s.key, marker_kind::none, {}, 0, s.wake, mine)) == 1);
    CHECK(s.heard().empty());
}

TEST_CASE("abandon: leaves a marker with its own TTL, and waiters get it") {
    for (const marker_kind kind : {marker_kind::error, marker_kind::pass}) {
        scene s;
        const bool failed = kind == marker_kind::error;
        const std::string marker = make(failed ? entry_kind::error : entry_kind::pass, name('e'), "why");
        s.put_there(waited(placeholder('m')));
        CHECK(s.number(abandon_command(s.key, kind, marker, 1000, s.wake, std::vector{name('m')})) == 1);
        CHECK(s.there() == marker);
        CHECK(s.left() == 1000);
        const auto m = s.message();
        REQUIRE(m);
        CHECK(m->kind == (failed ? wake_kind::failed : wake_kind::pass));
        CHECK(m->replaced == name('m'));
        CHECK(m->envelope == marker);
    }
}

TEST_CASE("abandon: a large marker does not travel") {
    scene s;
    const std::string marker = make(entry_kind::error, name('e'), std::string(5000, 'w'));
    s.put_there(waited(placeholder('m')));
    CHECK(s.number(abandon_command(s.key, marker_kind::error, marker, 1000, s.wake, std::vector{name('m')})) == 1);
    CHECK(s.message()->envelope.empty());
    CHECK(s.there() == marker);
}

TEST_CASE("abandon: a marker that is refused leaves nothing, and waiters are told to pass") {
    scene s;
    const std::string marker = make(entry_kind::error, name('e'));
    s.put_there(waited(placeholder('m')));
    CHECK(s.number(abandon_command(s.key, marker_kind::error, marker, 0, s.wake, std::vector{name('m')})) == 2);
    CHECK(s.there() == "nothing");
    const auto m = s.message();
    REQUIRE(m);
    CHECK(m->kind == wake_kind::pass);
    CHECK(m->envelope.empty());
}

TEST_CASE("abandon: works out of memory, marker and all, because it deletes first") {
    scene s;
    const std::string marker = make(entry_kind::error, name('e'));
    s.put_there(placeholder('m'));
    s.server->refuse_writes(true);
    CHECK(s.number(abandon_command(s.key, marker_kind::error, marker, 1000, s.wake, std::vector{name('m')})) == 1);
    CHECK(s.there() == marker);
    CHECK(s.left() == 1000);
}

TEST_CASE("abandon: never touches a value, a marker, another's lease or what is not ours") {
    scene s;
    const command abandon = abandon_command(s.key, marker_kind::error, make(entry_kind::error, name('e')), 1000, s.wake,
                                            std::vector{name('m')});
    CHECK(s.number(abandon) == 0);
    CHECK(s.there() == "nothing");
    for (const std::string& other : {value('m'), make(entry_kind::pass, name('m')), placeholder('x'),
                                     std::string("foreign"), with(placeholder('m'), 1, 2)}) {
        s.put_there(other);
        CHECK(s.number(abandon) == 0);
        CHECK(s.there() == other);
        CHECK(s.left() == 5000);
    }
    s.put_there(placeholder('m'));
    CHECK(s.number(abandon_command(s.key, marker_kind::none, {}, 0, s.wake, {})) == 0);
    s.server->set_list(s.key, 5000);
    CHECK(s.number(abandon) == 0);
    CHECK(s.heard().empty());
}

// --- mark_stale ----------------------------------------------------------------------------------

TEST_CASE("mark_stale: a value gets a fresh generation and soft expiry 0; all else of it stays") {
    scene s;
    s.put_there(value('a', "payload"), 400);
    CHECK(s.number(mark_stale_command(s.key, name('f'), s.wake)) == 1);
    envelope e;
    const std::string bytes = s.there();
    REQUIRE(decode(bytes, e) == reading::ours);
    CHECK(e.kind == entry_kind::value);
    CHECK(e.generation == name('f'));
    CHECK(e.soft_at == 0);
    CHECK(e.created == 7);
    CHECK(e.delta_ms == 9);
    CHECK(e.payload == "payload");
    CHECK(s.left() == 400);
    CHECK(s.heard().empty());
    CHECK(s.number(fill_command(s.key, name('a'), value('n'), 700, s.wake)) == 0);
}

TEST_CASE("mark_stale: nothing there is nothing to do") {
    scene s;
    CHECK(s.number(mark_stale_command(s.key, name('f'), s.wake)) == 0);
    CHECK(s.there() == "nothing");
    CHECK(s.heard().empty());
}

TEST_CASE("mark_stale: a lease or a marker is deleted, and told") {
    for (const entry_kind kind : {entry_kind::placeholder, entry_kind::absent, entry_kind::error, entry_kind::pass}) {
        scene s;
        s.put_there(make(kind, name('a')));
        CHECK(s.number(mark_stale_command(s.key, name('f'), s.wake)) == 2);
        CHECK(s.there() == "nothing");
        const auto m = s.message();
        REQUIRE(m);
        CHECK(m->kind == wake_kind::invalidated);
        CHECK(m->replaced == name('a'));
        CHECK(m->key == s.key);
    }
}

TEST_CASE("mark_stale: what cannot be marked is deleted: newer, not ours, without a TTL, wrong type") {
    std::vector<std::string> things = foreign_things();
    things.push_back(with(value('a'), 1, 2));
    for (const std::string& thing : things) {
        scene s;
        s.put_there(thing);
        CHECK(s.number(mark_stale_command(s.key, name('f'), s.wake)) == 2);
        CHECK(s.there() == "nothing");
        CHECK(s.message()->replaced == token{});
    }
    scene s;
    s.put_there(value('a'), std::nullopt);
    CHECK(s.number(mark_stale_command(s.key, name('f'), s.wake)) == 2);
    CHECK(s.message()->replaced == name('a'));
    s.server->set_list(s.key, 5000);
    CHECK(s.number(mark_stale_command(s.key, name('f'), s.wake)) == 2);
    CHECK(s.there() == "nothing");
}

TEST_CASE("mark_stale: out of memory it deletes instead, rather than leave an unmarked value") {
    scene s;
    s.put_there(value('a'));
    s.server->refuse_writes(true);
    CHECK(s.number(mark_stale_command(s.key, name('f'), s.wake)) == 2);
    CHECK(s.there() == "nothing");
    CHECK(s.message()->kind == wake_kind::invalidated);
}

// --- put -----------------------------------------------------------------------------------------

TEST_CASE("put: the last writer wins, over anything") {
    scene s;
    CHECK(s.number(put_command(s.key, value('n'), 700, s.wake)) == 1);
    CHECK(s.left() == 700);
    for (const std::string& other :
         {value('a'), placeholder('a'), make(entry_kind::error, name('a')), with(value('a'), 1, 2)}) {
        s.put_there(other);
        CHECK(s.number(put_command(s.key, value('n'), 700, s.wake)) == 1);
        CHECK(s.there() == value('n'));
        CHECK(s.left() == 700);
    }
    CHECK(s.heard().empty());
}

TEST_CASE("put: what was not ours is told") {
    for (const std::string& thing : foreign_things()) {
        scene s;
        s.put_there(thing);
        CHECK(s.number(put_command(s.key, value('n'), 700, s.wake)) == 2);
        CHECK(s.there() == value('n'));
        CHECK(s.left() == 700);
        CHECK(s.heard().empty());
    }
    scene s;
    s.put_there(value('a'), std::nullopt);
    CHECK(s.number(put_command(s.key, value('n'), 700, s.wake)) == 2);
    s.server->set_list(s.key, 5000);
    CHECK(s.number(put_command(s.key, value('n'), 700, s.wake)) == 2);
    CHECK(s.there() == value('n'));
}

TEST_CASE("put: whoever waits for the lease it replaced is told") {
    scene s;
    s.put_there(waited(placeholder('a')));
    CHECK(s.number(put_command(s.key, value('n'), 700, s.wake)) == 1);
    const auto m = s.message();
    REQUIRE(m);
    CHECK(m->kind == wake_kind::filled);
    CHECK(m->replaced == name('a'));
    CHECK(m->envelope == value('n'));
    s.put_there(waited(placeholder('a')));
    CHECK(s.number(put_command(s.key, value('n', std::string(5000, 'p')), 700, s.wake)) == 1);
    CHECK(s.message()->envelope.empty());
}

TEST_CASE("put: out of memory is an error and changes nothing") {
    scene s;
    s.put_there(value('a'));
    s.server->refuse_writes(true);
    CHECK(s.run(put_command(s.key, value('n'), 700, s.wake)).text.starts_with("OOM"));
    CHECK(s.there() == value('a'));
}

// --- refresh, renew, release ---------------------------------------------------------------------

TEST_CASE("refresh: the first gets it, the others learn how long it lasts") {
    scene s;
    auto ask = [&](char who) { return *read_refresh(s.run(refresh_command(s.key, name(who), 400))); };
    CHECK(ask('m').granted);
    CHECK(s.there() == name('m').str());
    CHECK(s.left() == 400);
    s.now += 100;
    CHECK(!ask('x').granted);
    CHECK(ask('x').pttl_ms == 300);
    CHECK(s.left() == 300);
    CHECK(ask('m').granted); // a resend
    CHECK(s.left() == 400);
    s.now += 400;
    CHECK(ask('x').granted);
}

TEST_CASE("refresh: what would block it for ever does not") {
    scene s;
    auto granted = [&] { return read_refresh(s.run(refresh_command(s.key, name('m'), 400)))->granted; };
    s.put_there("foreign", std::nullopt);
    CHECK(granted());
    CHECK(s.there() == name('m').str());
    CHECK(s.left() == 400);
    s.put_there(name('m').str(), std::nullopt);
    CHECK(granted());
    CHECK(s.left() == 400);
    s.server->set_list(s.key, 5000);
    CHECK(granted());
    CHECK(s.left() == 400);
    s.put_there("foreign");
    CHECK(!granted());
}

TEST_CASE("refresh: out of memory is an error, but my own is still renewed") {
    scene s;
    s.server->refuse_writes(true);
    CHECK(s.run(refresh_command(s.key, name('m'), 400)).text.starts_with("OOM"));
    CHECK(!read_refresh(s.run(refresh_command(s.key, name('m'), 400))));
    s.put_there(name('m').str());
    CHECK(read_refresh(s.run(refresh_command(s.key, name('m'), 400)))->granted);
}

TEST_CASE("renew: mine 1, another's -1, nobody's 0; never creates; works out of memory") {
    scene s;
    const command renew = renew_command(s.key, name('m'), 900);
    s.server->refuse_writes(true);
    CHECK(s.number(renew) == 0);
    CHECK(s.there() == "nothing");
    s.put_there(name('m').str());
    CHECK(s.number(renew) == 1);
    CHECK(s.left() == 900);
    s.put_there(name('m').str() + ":17:label"); // what else is held under the token does not matter
    CHECK(s.number(renew) == 1);
    s.put_there(name('x').str());
    CHECK(s.number(renew) == -1);
    CHECK(s.left() == 5000);
    s.server->set_list(s.key, 5000);
    CHECK(s.number(renew) == -1);
}

TEST_CASE("release: mine 1 and told, another's -1, nobody's 0; works out of memory") {
    scene s;
    const command release = release_command(s.key, name('m'), s.wake.channel);
    s.server->refuse_writes(true);
    CHECK(s.number(release) == 0);
    s.put_there(name('x').str());
    CHECK(s.number(release) == -1);
    CHECK(s.there() == name('x').str());
    s.server->set_list(s.key, 5000);
    CHECK(s.number(release) == -1);
    CHECK(s.heard().empty());
    s.put_there(name('m').str() + ":17:label");
    CHECK(s.number(release) == 1);
    CHECK(s.there() == "nothing");
    const auto m = s.message();
    REQUIRE(m);
    CHECK(m->kind == wake_kind::released);
    CHECK(m->replaced == name('m'));
    CHECK(m->key == s.key);
    s.put_there(name('m').str());
    CHECK(s.number(release_command(s.key, name('m'), {})) == 1);
    CHECK(s.heard().empty());
}

// --- the rest ------------------------------------------------------------------------------------

TEST_CASE("every script is embedded under its name with a SHA1, and says its KEYS, ARGV and reply") {
    for (int i = 0; i < static_cast<int>(script_id::count_); ++i) {
        const auto id = static_cast<script_id>(i);
        const scripts::embedded& script = script_of(id);
        CHECK(script.name == script_name(id));
        CHECK(script.sha1.size() == 40);
        for (const char* part : {"-- KEYS ", "-- ARGV ", "-- Reply "})
            CHECK_MESSAGE(script.text.find(part) != std::string_view::npos, script.name);
        CHECK_MESSAGE(!script.text.starts_with("#!"), script.name);
    }
    CHECK(script_name(script_id::count_).empty());
}

TEST_CASE("a command that nobody builds is an error, not a crash") {
    scene s;
    for (int i = 0; i <= static_cast<int>(script_id::count_); ++i) {
        command c;
        c.what = verb::script;
        c.script = static_cast<script_id>(i);
        c.key = s.key;
        if (c.script != script_id::inspect) CHECK(s.run(c).kind == reply_kind::error); // it has no arguments
        c.args = {"x", "y", "9999999999999999999999999", "a", "b", "c", "d"};
        (void)s.run(c);
    }
    command publish = publish_command("c", "m");
    publish.args.clear();
    CHECK(s.run(publish).kind == reply_kind::error);
    CHECK(s.run(subscribe_command("c")).kind == reply_kind::error);
    CHECK(s.run(command{}).text == "PONG");
}

TEST_CASE("commands are counted by verb and script; the test's own looks are not") {
    scene s;
    s.server->reset_counts();
    (void)s.run(get_command(s.key));
    (void)s.run(get_command(s.key));
    (void)s.lease('m');
    (void)s.there();
    (void)s.left();
    CHECK(s.server->count(verb::get) == 2);
    CHECK(s.server->count(verb::script) == 1);
    CHECK(s.server->count(script_id::lease) == 1);
    CHECK(s.server->count(script_id::fill) == 0);
    CHECK(s.server->count_all() == 3);
}
