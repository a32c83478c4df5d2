// SPDX-License-Identifier: MIT
//
// What bit other people, "Leases between processes": one promise per report (lettuce#3481 is about a near
// cache, which there is not yet).
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/commands.hpp"
#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

// bentocache, cacheable, cache-manager, cashews, caffeine#193, moka: a delete during a load; then the loader put
// the old value back for a whole TTL.
TEST_CASE("whatever removes the key during a load, the late fill writes nothing") {
    const std::vector<std::pair<const char*, std::function<void(world&)>>> removals{
        {"DEL by a foreign client", [](world& w) { (void)w.server->execute(del_command(w.store_key("apple"))); }},
        {"FLUSHALL", [](world& w) { w.server->flush(); }},
        {"invalidate here", [](world& w) { w.at(0).invalidate("apple"); }},
        {"invalidate elsewhere", [](world& w) { w.at(1).invalidate("apple"); }},
        {"invalidate(stale) here", [](world& w) { w.at(0).invalidate("apple", true); }},
        {"invalidate(stale) elsewhere", [](world& w) { w.at(1).invalidate("apple", true); }},
        {"foreign bytes", [](world& w) { w.server->set(w.store_key("apple"), "hello", 60'000); }},
        {"the lease runs out while the process sleeps",
         [](world& w) {
             w.pause(0);
             w.advance(10'000);
             w.resume(0);
         }},
    };
    for (const auto& [how, remove] : removals) {
        for (const std::int64_t rest : {0, 1, 5'000}) { // answered at once, or after a renewal has failed
            CAPTURE(how);
            CAPTURE(rest);
            world w(2);
            call& leader = w.at(0).fetch("apple");
            call& joined = w.at(0).fetch("apple", {.deadline_ms = 60'000});
            load made = leader.take();
            w.advance(100);
            remove(w);
            w.advance(rest);
            made.fulfil("old");
            CHECK(joined.value() == "old"); // who joined before gets what was being loaded
            REQUIRE(leader.fill());
            CHECK((leader.fill() == status::refused || leader.fill() == status::lost));
            CHECK(w.stored_value("apple") == std::nullopt);
            CHECK(w.total(stat::fills_stored) == 0);
        }
    }
}

TEST_CASE("a put during a load stays, the late fill does not replace it") {
    for (const int by : {0, 1}) {
        world w(2);
        call& leader = w.at(0).fetch("apple");
        load made = leader.take();
        w.at(by).put("apple", "put");
        made.fulfil("old");
        CHECK(leader.fill() == status::refused);
        CHECK(w.stored_value("apple") == "put");
    }
}

TEST_CASE("a refresh that was overtaken by an invalidation writes nothing") {
    for (const bool stale : {false, true}) {
        for (const int by : {0, 1}) {
            world w(2, {.ttl_ms = 60'000, .soft_ttl_ms = 10'000, .jitter = 0, .early = 0});
            w.at(0).put("apple", "old");
            w.advance(10'000);
            call& c = w.at(0).fetch("apple", {.refresh = true});
            load made = c.take_refresh();
            w.at(by).invalidate("apple", stale);
            made.fulfil("older");
            CHECK(c.fill() == status::refused);
            CHECK(w.stored_value("apple") == (stale ? std::optional<std::string>("old") : std::nullopt));
        }
    }
}

// cashews lock=True: 4 waiters made 2,749 SET and 2,748 PING in one second.
TEST_CASE("a waiting process costs a few commands a second, however many wait in it") {
    for (const int waiters : {1, 4, 100}) {
        world w(2);
        load made = w.at(0).fetch("apple").take();
        for (int i = 0; i < waiters; ++i) w.at(1).fetch("apple", {.deadline_ms = 60'000});
        w.link(1).clear_log();
        for (int second = 0; second < 20; ++second) {
            w.advance(1'000);
            CHECK(w.link(1).log().size() <= 12);
            CHECK(w.link(1).count(verb::get) == w.link(1).log().size()); // looks, nothing else
            w.link(1).clear_log();
        }
        made.fulfil("red");
        w.advance(1);
        CHECK(w.at(1).live_calls() == 0);
    }
}

// dogpile: 100 callers, 0.5 s load: p99 1.75 s, 14 commands a caller.
TEST_CASE("100 callers in two processes on a 500 ms load are all answered when it ends") {
    world w(2);
    for (int i = 0; i < 100; ++i) w.at(i % 2).fetch("apple");
    call& leader = w.leader();
    load made = leader.take();
    w.advance(500);
    made.fulfil("red");
    w.advance(1);
    int answered = 0;
    for (const call* c : w.calls([&](const call& one) { return &one != &leader; })) {
        CHECK(c->value() == "red");
        CHECK(c->took_ms() <= 501);
        ++answered;
    }
    CHECK(answered == 99);
    CHECK(w.total(stat::loads) == 1);
    CHECK(w.total(stat::leases_held) == 1); // one waiter per process
    CHECK(w.total(stat::waits) == 1);
    CHECK(w.link(0).log().size() + w.link(1).log().size() <= 20);
}

// dogpile, django-redis-cache#128: the TTL of a lock defaulted to none, a crash locked the key for ever.
TEST_CASE("the lease of a process that crashed ends by its TTL, and a waiter takes over") {
    world w(2);
    load made = w.at(0).fetch("apple").take();
    call& waiter = w.at(1).fetch("apple", {.deadline_ms = 60'000});
    w.advance(4'000); // renewed once
    w.crash(0);
    const auto left = w.server->pttl(w.store_key("apple"));
    REQUIRE(left);
    CHECK(*left > 0);
    CHECK(*left <= 10'000);
    w.advance(*left - 1);
    CHECK(!waiter.ended());
    w.advance(201); // the next look
    REQUIRE(waiter.leads());
    waiter.take().fulfil("red");
    CHECK(w.stored_value("apple") == "red");
}

TEST_CASE("no key of ours is without a TTL, whatever is written and wherever the process crashes") {
    // The world looks at every key after every step; here is one of each.
    for (int crash_after = 0; crash_after < 9; ++crash_after) {
        CAPTURE(crash_after);
        world w(2, {.ttl_ms = 60'000, .soft_ttl_ms = 10'000, .early = 0, .max_value = 10});
        host& h = w.at(0);
        std::vector<load> held;
        const std::vector<std::function<void()>> steps{
            [&] { h.put("put", "x"); },
            [&] { held.push_back(h.fetch("loading").take()); },
            [&] { h.fetch("value").take().fulfil("x"); },
            [&] { h.fetch("absent").take().absent(); },
            [&] { h.fetch("failed").take().fail(); },
            [&] { h.fetch("large").take().fulfil("larger than 10"); },
            [&] {
                h.put("soft", "x", {}, -1, 1);
                w.advance(1);
                held.push_back(h.fetch("soft", {.refresh = true}).take_refresh());
            },
            [&] { h.invalidate("put", true); },
            [&] { held.push_back(h.fetch("value", {.force = true}).take()); },
        };
        for (int i = 0; i <= crash_after; ++i) steps[static_cast<std::size_t>(i)]();
        w.crash(0);
        CHECK(!w.server->keys().empty());
        for (const std::string& key : w.server->keys()) {
            CAPTURE(key);
            CHECK(w.server->pttl(key).value_or(0) > 0);
        }
        w.advance(66'001); // ttl and all of its jitter
        CHECK(w.server->keys().empty());
    }
}

// rockscache: a lock-only hash with TTL -1 was left; lock deadlines came from the client's clock.
TEST_CASE("leases and freshness follow the server's clock, whatever the nodes' clocks say") {
    for (const std::int64_t ahead : {-86'400'000, 86'400'000}) {
        world w(2, {.ttl_ms = 60'000, .soft_ttl_ms = 10'000, .jitter = 0, .early = 0});
        w.server_ahead_ms = ahead;
        call& leader = w.at(0).fetch("apple");
        call& elsewhere = w.at(1).fetch("apple");
        load made = leader.take();
        w.advance(300);
        made.fulfil("red");
        w.advance(1);
        CHECK(elsewhere.value() == "red");
        const auto e = w.stored("apple");
        REQUIRE(e);
        CHECK(e->created == w.now() - 1 + ahead);
        w.advance(9'998);
        CHECK(!w.at(1).fetch("apple").stale());
        w.advance(1);
        CHECK(w.at(1).fetch("apple").stale());
        CHECK(w.server->pttl(w.store_key("apple")) == 50'000);
    }
}

// redis-memolock: the loader failed, the lock stayed, nobody was told.
TEST_CASE("a failed load wakes the waiters elsewhere at once") {
    world w(3);
    load made = w.at(0).fetch("apple").take();
    call& one = w.at(1).fetch("apple");
    call& two = w.at(2).fetch("apple");
    w.advance(130);
    made.fail("no database");
    CHECK(one.code() == status::load_failed);
    CHECK(one.text() == "no database");
    CHECK(one.took_ms() == 130);
    CHECK(two.took_ms() == 130);
    CHECK(w.total(stat::loads) == 1); // they did not fail one after the other
}

TEST_CASE("a lease given up wakes the waiters elsewhere at once: one of them goes on") {
    world w(3);
    load made = w.at(0).fetch("apple").take();
    call& one = w.at(1).fetch("apple");
    call& two = w.at(2).fetch("apple");
    w.advance(130);
    made.free();
    CHECK((one.leads() || two.leads()));
    CHECK(one.leads() != two.leads());
    call& next = w.leader();
    CHECK(next.took_ms() == 130);
    next.take().fulfil("red");
    CHECK(w.total(stat::loads) == 2);
}

// FusionCache#574, #644, #646: an exception between acquire and write leaked the distributed lock.
TEST_CASE("the lease is released on every path that ends without a value") {
    const std::vector<std::pair<const char*, std::function<void(world&, host&)>>> paths{
        {"freed", [](world&, host& h) { h.fetch("apple").take().free(); }},
        {"failed", [](world&, host& h) { h.fetch("apple").take().fail("x", status::internal); }},
        {"cancelled while loading", [](world&, host& h) { CHECK(h.fetch("apple").take().detach() == 0); }},
        {"event freed untaken",
         [](world& w, host& h) {
             h.fetch("apple").drop_events();
             w.settle();
         }},
        {"never read",
         [](world& w, host& h) {
             h.asleep = true;
             call& c = h.fetch("apple", {.deadline_ms = 500});
             w.advance(2'000);
             h.asleep = false;
             w.settle();
             CHECK(c.code() == status::timeout);
         }},
        {"queue closed with it unread",
         [](world& w, host& h) {
             h.asleep = true;
             h.fetch("apple");
             h.close();
             h.asleep = false;
             w.settle();
         }},
        {"cancelled while the lease is asked for",
         [](world& w, host& h) {
             w.link(0).slow(20);
             call& c = h.fetch("apple");
             w.advance(30); // the answer to GET is there, that to lease is not
             h.cancel(c);
             w.advance(100);
             CHECK(c.code() == status::cancelled);
         }},
        {"timed out while the lease is asked for",
         [](world& w, host& h) {
             w.link(0).slow(20);
             call& c = h.fetch("apple", {.deadline_ms = 30});
             w.advance(100);
             CHECK(c.code() == status::timeout);
         }},
        {"client closed while loading",
         [](world& w, host& h) {
             load made = h.fetch("apple").take();
             w.close(0, 0, h);
         }},
        {"client closed before it was taken",
         [](world& w, host& h) {
             h.fetch("apple");
             w.close(0, 0, h);
         }},
        {"reply to the lease lost, store silent for a while",
         [](world& w, host& h) {
             w.link(0).next(script_id::lease, fate::lose_reply, 3);
             call& c = h.fetch("apple");
             w.advance(1'000);
             CHECK(c.leads()); // without the store
             c.take().fail("x", status::internal);
         }},
        {"fill refused by a full store",
         [](world& w, host& h) {
             call& c = h.fetch("apple");
             w.server->refuse_writes(true);
             c.take().fulfil("red");
             CHECK(c.fill() == status::unavailable);
             w.server->refuse_writes(false);
         }},
        {"reply to the fill lost three times",
         [](world& w, host& h) {
             w.link(0).next(script_id::fill, fate::vanish, 3);
             call& c = h.fetch("apple");
             c.take().fulfil("red");
             w.advance(1'000);
             CHECK(c.fill() == status::unavailable);
         }},
    };
    for (const auto& [how, path] : paths) {
        CAPTURE(how);
        world w(2);
        path(w, w.at(0));
        CHECK(w.stored("apple") == std::nullopt);
        call& elsewhere = w.at(1).fetch("apple");
        CHECK(elsewhere.leads());
        CHECK(elsewhere.took_ms() == 0);
    }
}

// identity_cache#373: a write-hot key; every invalidation reset the lock, and waiters starved.
TEST_CASE("on a key invalidated faster than it loads, who waited before an invalidation still gets a value") {
    world w(2);
    std::vector<load> loads;
    std::vector<call*> here;
    std::vector<call*> elsewhere;
    std::vector<std::pair<mono_ms, load>> running;
    const auto serve = [&] { // every load takes 300 ms
        for (call* c : w.calls([](const call& one) {
                 for (const event& e : one.got) {
                     if (e.kind == event_kind::lease && e.held) return true;
                 }
                 return false;
             })) {
            running.emplace_back(w.now() + 300, c->take());
        }
        std::vector<std::pair<mono_ms, load>> later;
        std::vector<load> due;
        for (auto& [at, l] : running) {
            if (at <= w.now()) {
                due.push_back(std::move(l));
            } else {
                later.emplace_back(at, std::move(l));
            }
        }
        running = std::move(later);
        for (load& l : due) l.fulfil("value");
    };
    for (int ms = 0; ms < 5'000; ms += 10) {
        if (ms % 50 == 0) {
            here.push_back(&w.at(0).fetch("apple"));
            elsewhere.push_back(&w.at(1).fetch("apple"));
        }
        if (ms % 100 == 90) w.at(ms % 200 == 90 ? 0 : 1).invalidate("apple");
        serve();
        w.advance(10);
    }
    for (int i = 0; i < 100; ++i) {
        serve();
        w.advance(10);
    }
    for (const call* c : here) {
        CHECK((c->leads() || c->value() == "value"));
        CHECK(c->took_ms() <= 1'000);
    }
    for (const call* c : elsewhere) {
        CHECK((c->leads() || c->value() == "value"));
        CHECK(c->took_ms() <= 2'000); // within its `wait` of 10 s
    }
}

// cacheable#631, FusionCache#651: every node refreshed a soft-expired value: 300 loads.
TEST_CASE("fifty processes on a soft-expired value make one refresh, and nobody waits for it") {
    world w(50, {.ttl_ms = 60'000, .soft_ttl_ms = 10'000, .jitter = 0, .early = 0});
    w.at(0).put("apple", "old");
    w.advance(10'000);
    std::vector<call*> all;
    for (int round = 0; round < 3; ++round) {
        for (int n = 0; n < 50; ++n) {
            all.push_back(&w.at(n).fetch("apple", {.refresh = true}));
            all.push_back(&w.at(n).fetch("apple", {.refresh = true}));
        }
        w.advance(20);
    }
    for (const call* c : all) {
        CHECK(c->value() == "old");
        CHECK(c->stale());
        CHECK(c->took_ms() == 0);
    }
    const auto refreshing = w.calls([](const call& c) { return c.count(event_kind::refresh) > 0; });
    REQUIRE(refreshing.size() == 1);
    refreshing[0]->take_refresh().fulfil("new");
    CHECK(refreshing[0]->fill() == status::ok);
    CHECK(w.total(stat::refreshes) == 1);
    CHECK(w.total(stat::loads) == 1);
    for (int n = 0; n < 50; ++n) {
        call& c = w.at(n).fetch("apple", {.refresh = true});
        CHECK(c.value() == "new");
        CHECK(c.count(event_kind::refresh) == 0);
    }
}
