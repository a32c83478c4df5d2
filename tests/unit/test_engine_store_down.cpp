// SPDX-License-Identifier: MIT
//
// The store in trouble: time-outs, fail open, the breaker.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

namespace {

std::size_t notices_of(const host& h, notice what) {
    return static_cast<std::size_t>(
        std::ranges::count_if(h.notices, [&](const event& e) { return e.notice == static_cast<std::uint32_t>(what); }));
}

// Five commands that nobody answers.
void open_breaker(world& w, host& h) {
    w.link(0).every(fate::vanish);
    for (int i = 0; i < 3; ++i) {
        call& c = h.fetch("silent" + std::to_string(i));
        w.advance(500);
        if (c.leads()) c.take().fail("x", status::internal);
    }
    w.link(0).heal();
}

} // namespace

TEST_CASE("a store that does not answer costs a caller two command time-outs, then its process loads") {
    world w;
    w.link(0).every(fate::vanish);
    host& h = w.at(0);
    call& c = h.fetch("apple");
    call& joined = h.fetch("apple");
    w.advance(499);
    CHECK(!c.ended());
    w.advance(1);
    REQUIRE(c.leads());
    load made = c.take();
    w.advance(100);
    made.fulfil("red");
    CHECK(joined.value() == "red"); // single-flight all the same
    CHECK(w.total(stat::loads) == 1);
    CHECK(w.total(stat::loads_alone) == 1);
    CHECK(c.fill() == status::lost); // without a lease nothing is written
    CHECK(w.server->keys().empty());
}

TEST_CASE("a store that cannot be reached costs nothing: the load begins at once") {
    world w;
    w.link(0).cut();
    call& c = w.at(0).fetch("apple");
    CHECK(c.leads());
    CHECK(c.took_ms() == 0);
    c.take().fulfil("red");
    CHECK(w.link(0).count(script_id::fill) == 0);
}

TEST_CASE("the command time-out is the client's setting") {
    client_settings settings;
    settings.command_timeout_ms = 40;
    world w(1, {.ttl_ms = 60'000}, settings);
    w.link(0).every(fate::vanish);
    call& c = w.at(0).fetch("apple");
    w.advance(80);
    CHECK(c.leads());
}

TEST_CASE("a slow store is no dead store: its answers are used up to the time-out") {
    world w;
    w.link(0).slow(249);
    call& c = w.at(0).fetch("apple");
    w.advance(2 * 249);
    REQUIRE(c.leads());
    c.take().fulfil("red");
    w.advance(249);
    CHECK(c.fill() == status::ok);
    CHECK(w.total(stat::commands_lost) == 0);
}

TEST_CASE("a lease granted after it was given up is abandoned behind it, and never used") {
    world w(2);
    host& h = w.at(0);
    w.link(0).next(script_id::lease, fate::lose_reply, 3); // each of them was granted in the store
    call& open = h.fetch("plum");
    w.advance(750);
    REQUIRE(open.leads());
    CHECK(w.stored("plum") == std::nullopt); // abandoned with all its tokens
    CHECK(w.link(0).count(script_id::abandon) == 1);
    CHECK(w.link(0).count(script_id::lease) == 3);
    load made = open.take();
    call& elsewhere = w.at(1).fetch("plum");
    REQUIRE(elsewhere.leads());
    elsewhere.take().fulfil("fresh");
    made.fulfil("alone");
    CHECK(open.fill() == status::lost);
    CHECK(w.stored_value("plum") == "fresh");
}

TEST_CASE("commands that are late on one connection: the abandon comes after the lease it takes back") {
    world w(2);
    host& h = w.at(0);
    call& c = h.fetch("apple");
    c.take().free();
    w.link(0).slow(10);
    call& open = h.fetch("apple");
    w.advance(5);
    w.link(0).hold(); // the reply to GET comes, the lease stays on the way
    w.advance(800);
    REQUIRE(open.leads());
    w.link(0).let_go(); // lease, lease, lease, abandon
    w.settle();
    CHECK(w.stored("apple") == std::nullopt);
    CHECK(w.at(1).fetch("apple").leads());
    open.take().free();
    w.advance(100);
}

TEST_CASE("at most max_loads_down loads run at one time without the store, all caches together") {
    client_settings settings;
    settings.max_loads_down = 4;
    world w(1, {.ttl_ms = 60'000}, settings);
    const auto other = w.open(0, "stocks", {.ttl_ms = 60'000});
    host& h = w.at(0);
    w.link(0).cut();
    std::vector<call*> all;
    for (int i = 0; i < 5; ++i) {
        all.push_back(&h.fetch("key" + std::to_string(i), {.deadline_ms = 1'000}));
        all.push_back(&h.fetch("key" + std::to_string(i), {.deadline_ms = 1'000, .in = other.get()}));
    }
    CHECK(std::ranges::count_if(all, [](const call* c) { return c->leads(); }) == 4);
    CHECK(h.fetch("now", {.deadline_ms = 0}).code() == status::overloaded);
    all[0]->take().fulfil("x");
    CHECK(all[4]->leads()); // the next in line
    w.advance(1'000);
    CHECK(all[5]->code() == status::overloaded);
    CHECK(w.total(stat::overloaded) == 6);
}

TEST_CASE("flights caught between look and lease by the store's death are bounded by max_loads_down too") {
    client_settings settings;
    settings.max_loads_down = 4;
    world w(1, {.ttl_ms = 60'000}, settings);
    host& h = w.at(0);
    w.link(0).slow(20);
    std::vector<call*> all;
    for (int i = 0; i < 20; ++i) all.push_back(&h.fetch("key" + std::to_string(i), {.deadline_ms = 2'000}));
    w.advance(20); // GETs answered, leases on their way
    w.link(0).cut();
    w.advance(1'000);
    CHECK(std::ranges::count_if(all, [](const call* c) { return c->leads(); }) == 4);
    w.advance(2'000);
    CHECK(w.total(stat::overloaded) == 16);
}

TEST_CASE("with the store up there is no bound unless the cache has one") {
    world w;
    for (int i = 0; i < 100; ++i) CHECK(w.at(0).fetch("key" + std::to_string(i)).leads());
}

TEST_CASE("a silent store opens the breaker, which says so once; then callers do not wait for it") {
    world w;
    host& h = w.at(0);
    w.core(0).told.watch(h.queue, static_cast<std::uint32_t>(notice::breaker), 0);
    w.link(0).every(fate::vanish);
    for (int i = 0; i < 2; ++i) h.fetch("key" + std::to_string(i));
    w.advance(500); // four time-outs
    CHECK(notices_of(h, notice::breaker) == 0);
    call& fifth = h.fetch("key2");
    w.advance(250);
    CHECK(notices_of(h, notice::breaker) == 1);
    CHECK(w.total(stat::breaker_opened) == 1);
    CHECK(fifth.leads()); // its second look was refused at once
    const auto sent = w.link(0).log().size();
    call& c = h.fetch("key3");
    CHECK(c.leads());
    CHECK(c.took_ms() == 0);
    CHECK(w.link(0).log().size() == sent);
}

TEST_CASE("the breaker lets one look through after its pause, and closes when that is answered") {
    world w;
    host& h = w.at(0);
    w.core(0).told.watch(h.queue, static_cast<std::uint32_t>(notice::breaker), 0);
    w.always(1.0); // a pause of one second
    open_breaker(w, h);
    REQUIRE(w.core(0).commands.down());
    w.advance(1'000);
    w.link(0).slow(5);
    w.link(0).clear_log();
    std::vector<call*> all;
    for (int i = 0; i < 10; ++i) all.push_back(&h.fetch("key" + std::to_string(i)));
    CHECK(w.link(0).count(verb::get) == 1); // the probe
    w.advance(20);
    CHECK(!w.core(0).commands.down());
    CHECK(notices_of(h, notice::breaker) == 2);
    w.link(0).slow(0);
    call& c = h.fetch("after");
    c.take().fulfil("x");
    CHECK(c.fill() == status::ok);
}

TEST_CASE("a probe that fails keeps the breaker shut for twice as long") {
    world w;
    host& h = w.at(0);
    w.always(1.0);
    open_breaker(w, h);
    w.link(0).every(fate::vanish);
    const auto looks_when = [&](std::int64_t ms) {
        w.advance(ms);
        w.link(0).clear_log();
        call& c = h.fetch("key");
        w.advance(300);
        if (c.leads()) c.take().fail("x", status::internal);
        return w.link(0).count(verb::get);
    };
    CHECK(looks_when(1'000) == 1);
    CHECK(looks_when(1'000) == 0);
    CHECK(looks_when(1'000) == 1);
}

TEST_CASE("the breaker gates looks and leases only: fill, abandon, extend, renew, release, DEL, mark and put go out") {
    struct way {
        const char* name;
        script_id script;
        std::function<void(world&, host&)> before;
        std::function<void(world&, host&)> act;
    };
    std::vector<load> held;
    const auto take = [&](const char* key) {
        return [&held, key](world&, host& h) { held.push_back(h.fetch(key).take()); };
    };
    const auto take_refresh = [&](world& w, host& h) {
        h.put("soft", "old", {}, 60'000, 1);
        w.advance(1);
        held.push_back(h.fetch("soft", {.refresh = true}).take_refresh());
    };
    const std::vector<way> ways{
        {"fill", script_id::fill, take("a"), [&](world&, host&) { held.back().fulfil("x"); }},
        {"abandon", script_id::abandon, take("a"), [&](world&, host&) { held.back().free(); }},
        {"abandon with a marker", script_id::abandon, take("a"), [&](world&, host&) { held.back().fail(); }},
        {"extend", script_id::extend, take("a"), [&](world& w, host&) { w.advance(1'000); }},
        {"renew", script_id::renew, take_refresh, [&](world& w, host&) { w.advance(1'000); }},
        {"release", script_id::release, take_refresh, [&](world&, host&) { held.back().free(); }},
        {"put", script_id::put, [](world&, host&) {}, [](world&, host& h) { h.put("a", "x"); }},
        {"mark", script_id::mark_stale, [](world&, host&) {}, [](world&, host& h) { h.invalidate("a", true); }},
    };
    for (const way& one : ways) {
        CAPTURE(one.name);
        held.clear();
        world w(1, {.ttl_ms = 60'000, .lease_ms = 3'000, .early = 0});
        host& h = w.at(0);
        one.before(w, h);
        w.always(1.0);
        for (int i = 0; i < 5; ++i) w.core(0).commands.silent(w.now());
        REQUIRE(w.core(0).commands.down());
        w.link(0).clear_log();
        one.act(w, h);
        CHECK(w.link(0).count(one.script) == 1);
        held.clear();
    }
    world w;
    host& h = w.at(0);
    for (int i = 0; i < 5; ++i) w.core(0).commands.silent(w.now());
    w.link(0).clear_log();
    h.invalidate("a");
    CHECK(w.link(0).count(verb::del) == 1);
}

TEST_CASE("a corrupt value or a wrong type is no failure of the store") {
    world w;
    host& h = w.at(0);
    w.link(0).next(verb::get, fate::refuse, -1, "WRONGTYPE Operation against a key holding the wrong kind of value");
    for (int i = 0; i < 10; ++i) {
        call& c = h.fetch("key" + std::to_string(i));
        if (c.leads()) c.take().free();
    }
    w.link(0).heal();
    for (int i = 0; i < 10; ++i) {
        const std::string key = "broken" + std::to_string(i);
        w.server->set(w.store_key(key), "neither ours nor anybody's", 60'000);
        call& c = h.fetch(key);
        if (c.leads()) c.take().free();
    }
    CHECK(w.total(stat::breaker_opened) == 0);
}

TEST_CASE("waiters of a store that goes away load in their own process, one each") {
    world w(3);
    load made = w.at(0).fetch("apple").take();
    std::vector<call*> waiting;
    for (int n = 1; n < 3; ++n) {
        for (int i = 0; i < 5; ++i) waiting.push_back(&w.at(n).fetch("apple"));
    }
    w.advance(50);
    for (int n = 0; n < 3; ++n) w.link(n).cut();
    w.advance(600);
    const auto leading = w.calls([](const call& c) {
        return std::ranges::any_of(c.got, [](const event& e) { return e.kind == event_kind::lease && e.held; });
    });
    CHECK(leading.size() == 2);
    for (call* c : leading) c->take().fulfil("red");
    for (const call* c : waiting) CHECK((c->leads() || c->value() == "red"));
    made.fulfil("late");
}

TEST_CASE("after a cut the client looks again as soon as messages flow") {
    world w(2);
    load made = w.at(0).fetch("apple").take();
    call& c = w.at(1).fetch("apple", {.deadline_ms = 60'000});
    w.advance(10);
    w.link(1).cut();
    made.fulfil("red"); // the message is missed
    w.link(1).mend();
    w.settle();
    CHECK(c.value() == "red");
    CHECK(c.took_ms() == 10);
}

TEST_CASE("a lease that was granted on a connection that ended is let go of on the next one") {
    world w(2);
    w.link(0).next(script_id::lease, fate::lose_reply);
    call& c = w.at(0).fetch("apple");
    w.link(0).cut();
    w.settle();
    REQUIRE(c.leads());
    CHECK(w.stored("apple")->kind == entry_kind::placeholder);
    c.take().fulfil("red");
    w.link(0).mend();
    w.settle();
    CHECK(w.stored("apple") == std::nullopt);
    CHECK(w.at(1).fetch("apple").leads()); // at once
}

TEST_CASE("connection changes are told, once each") {
    world w;
    host& h = w.at(0);
    w.core(0).told.watch(h.queue, static_cast<std::uint32_t>(notice::connection), 9);
    w.link(0).cut();
    w.settle();
    w.advance(5'000);
    w.link(0).mend();
    w.settle();
    REQUIRE(h.notices.size() == 2);
    CHECK(h.notices[0].code == status::unavailable);
    CHECK(h.notices[1].code == status::ok);
    CHECK(h.notices[1].tag == 9);
}

TEST_CASE("who watches later than the trouble began is told of it, once, while it lasts") {
    world w;
    host& h = w.at(0);
    w.link(0).cut();
    w.settle();
    constexpr auto mask = static_cast<std::uint32_t>(notice::connection);
    w.core(0).watch(h.queue, mask, 9);
    w.settle();
    REQUIRE(h.notices.size() == 1);
    CHECK(h.notices[0].code == status::unavailable);
    CHECK(h.notices[0].tag == 9);
    w.advance(5'000);
    w.link(0).mend();
    w.settle();
    REQUIRE(h.notices.size() == 2);
    CHECK(h.notices[1].code == status::ok);
    w.core(0).watch(h.queue, mask, 9);
    w.settle();
    CHECK(h.notices.size() == 2);
}

TEST_CASE("a fill whose reply is lost is sent again and counts as stored, if it was") {
    world w;
    call& c = w.at(0).fetch("apple");
    w.link(0).next(script_id::fill, fate::lose_reply, 2);
    c.take().fulfil("red");
    w.advance(500);
    CHECK(c.fill() == status::ok);
    CHECK(w.link(0).count(script_id::fill) == 3);
    CHECK(w.stored_value("apple") == "red");
}

TEST_CASE("a full store: values are loaded and answered, nothing is kept, and it is tried again") {
    world w(2);
    w.server->refuse_writes(true);
    for (int n = 0; n < 2; ++n) {
        call& c = w.at(n).fetch("apple");
        call& joined = w.at(n).fetch("apple");
        REQUIRE(c.leads()); // processes do not wait for each other: the lease could not be taken
        c.take().fulfil("red");
        CHECK(joined.value() == "red");
    }
    w.server->refuse_writes(false);
    call& c = w.at(0).fetch("apple");
    c.take().fulfil("red");
    CHECK(c.fill() == status::ok);
}

TEST_CASE("messages that an access rule forbids are made up for by the waiters' own timers") {
    world w(2);
    w.server->refuse_publish(true);
    load made = w.at(0).fetch("apple").take();
    call& c = w.at(1).fetch("apple");
    w.advance(300);
    made.fulfil("red");
    CHECK(!c.ended());
    w.advance(500);
    CHECK(c.value() == "red");
    w.at(0).invalidate("apple");
    CHECK(w.at(0).fetch("apple").leads());
}

TEST_CASE("old bytes of a connection that was cut may run late and do no harm") {
    world w(2);
    host& h = w.at(0);
    call& c = h.fetch("apple");
    c.take().free();
    w.link(0).hold();
    call& waiting = h.fetch("pear", {.deadline_ms = 60'000}); // its GET is held
    w.advance(10);
    w.link(0).cut();
    w.advance(10);
    if (waiting.leads()) waiting.take().fulfil("alone");
    w.link(0).mend();
    w.at(1).put("pear", "green");
    w.at(1).invalidate("pear");
    w.link(0).let_go();
    w.settle();
    CHECK(w.stored("pear") == std::nullopt);
}
