// SPDX-License-Identifier: MIT
//
// What bit other people, "Single-flight and fills": one promise per report.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

// cacheable: the GET stood outside the flight; a slow second GET joined after the flight had ended.
TEST_CASE("callers join first and look then: a slow look never makes a second load") {
    world w;
    w.link(0).slow(50);
    host& h = w.at(0);
    call& first = h.fetch("apple");
    w.advance(30);
    call& second = h.fetch("apple"); // while the first one's GET is on its way
    w.advance(100);
    REQUIRE(first.leads());
    load made = first.take();
    w.advance(20);
    call& third = h.fetch("apple");
    made.fulfil("red");
    call& fourth = h.fetch("apple"); // while the fill is on its way: looks, and finds it
    w.advance(200);
    CHECK(second.value() == "red");
    CHECK(third.value() == "red");
    CHECK(fourth.value() == "red");
    CHECK(w.total(stat::loads) == 1);
    CHECK(w.total(stat::joins) == 2);
    CHECK(w.link(0).count(verb::get) == 2); // of the two flights
}

// bentocache, FusionCache, JetCache: 20 callers on a failing 100 ms loader were 20 runs one after the other, 2 s.
TEST_CASE("everybody who joined gets the error: one run, as long as one run") {
    world w;
    host& h = w.at(0);
    std::vector<call*> all;
    for (int i = 0; i < 20; ++i) all.push_back(&h.fetch("apple"));
    load made = w.leader().take();
    w.advance(100);
    made.fail("no database");
    for (call* c : all) {
        if (c->leads()) continue;
        CHECK(c->code() == status::load_failed);
        CHECK(c->text() == "no database");
        CHECK(c->took_ms() == 100);
    }
    CHECK(w.total(stat::loads) == 1);
    CHECK(w.total(stat::loads_failed) == 1);
}

// golang/go#41133, groupcache#38, moka#43: a loader panicked, the flight stayed open, later callers hung.
TEST_CASE("every exit path of a load ends the flight") {
    const std::vector<std::pair<const char*, std::function<void(world&, host&, call&)>>> exits{
        {"value", [](world&, host&, call& c) { c.take().fulfil("red"); }},
        {"absence", [](world&, host&, call& c) { c.take().absent(); }},
        {"failure", [](world&, host&, call& c) { c.take().fail(); }},
        {"another failure", [](world&, host&, call& c) { c.take().fail("x", status::internal); }},
        {"freed", [](world&, host&, call& c) { c.take().free(); }},
        {"detached", [](world&, host&, call& c) { CHECK(c.take().detach() == 0); }},
        {"event freed untaken", [](world& w, host&, call& c) { c.drop_events(), w.settle(); }},
        {"queue closed", [](world&, host& h, call& c) { c.take().free(), h.close(); }},
        {"never answered",
         [](world& w, host&, call& c) {
             load hung = c.take();
             w.advance(60'000); // max_load
         }},
    };
    for (const auto& [how, leave] : exits) {
        CAPTURE(how);
        world w;
        host& h = w.at(0);
        call& c = h.fetch("apple");
        leave(w, h, c);
        call& later = w.at(0, "another").fetch("apple");
        CHECK(later.ended()); // a value, an error, or the lease: at once
        if (later.leads()) later.take().fulfil("green");
        CHECK(w.core(0).fetches.size() <= 1); // the hung one is still remembered by its lease
    }
}

// moka#59, pingora#931: the leader was dropped, its followers waited for ever.
TEST_CASE("a leader that goes without an answer makes the oldest waiter the leader, under the same lease") {
    world w;
    host& h = w.at(0);
    call& leader = h.fetch("apple");
    call& oldest = h.fetch("apple");
    call& younger = h.fetch("apple");
    load dropped = leader.take();
    w.advance(50);
    dropped.free();
    REQUIRE(oldest.leads());
    CHECK(oldest.took_ms() == 50);
    CHECK(!younger.ended());
    w.advance(300);
    oldest.take().fulfil("red");
    CHECK(younger.value() == "red");
    CHECK(oldest.fill() == status::ok);
    CHECK(w.link(0).count(script_id::lease) == 1);
    CHECK(w.total(stat::promotions) == 1);
}

// bucketeer#2551, groupcache#30: the load ran under the first caller's deadline and failed everyone.
TEST_CASE("a waiter's deadline is its own, and the leader's is nobody's") {
    world w;
    host& h = w.at(0);
    call& leader = h.fetch("apple", {.deadline_ms = 50});
    call& hasty = h.fetch("apple", {.deadline_ms = 100});
    call& patient = h.fetch("apple", {.deadline_ms = 1'000});
    load made = leader.take();
    w.advance(99);
    CHECK(!hasty.ended());
    w.advance(201);
    CHECK(hasty.code() == status::timeout);
    CHECK(hasty.took_ms() == 100);
    CHECK(!patient.ended());
    made.fulfil("red");
    CHECK(patient.value() == "red");
    CHECK(leader.fill() == status::ok);
    CHECK(w.total(stat::timeouts) == 1);
}

// cashews: cancelling one of five waiters cancelled all five.
TEST_CASE("cancelling touches one caller") {
    world w;
    host& h = w.at(0);
    load made = h.fetch("apple").take();
    std::vector<call*> waiters;
    for (int i = 0; i < 5; ++i) waiters.push_back(&h.fetch("apple"));
    h.cancel(*waiters[2]);
    CHECK(waiters[2]->code() == status::cancelled);
    w.advance(100);
    made.fulfil("red");
    for (std::size_t i : {0U, 1U, 3U, 4U}) CHECK(waiters[i]->value() == "red");
    CHECK(w.total(stat::loads) == 1);
    h.cancel(*waiters[0]); // has been answered: nothing happens
    CHECK(waiters[0]->value() == "red");
}

// bentocache, symfony#41130: a loader asked for its own key and waited for itself.
TEST_CASE("a loader that asks for its own key is told would_deadlock at once") {
    world w;
    host& h = w.at(0);
    load made = h.fetch("apple").take();
    call& inner = h.fetch("apple", {.within = made.scope()});
    CHECK(inner.refused == status::would_deadlock);
    CHECK(w.total(stat::deadlocks) == 1);
    call& other = h.fetch("pear", {.within = made.scope()});
    CHECK(other.leads());
    other.take().fulfil("green");
    made.fulfil("red");
    CHECK(w.stored_value("apple") == "red");
}

// dialogporten#4300: a hung loader kept the key for ever; six production incidents.
TEST_CASE("a hung loader is detached at max_load, and one new flight may start") {
    world w(1, {.ttl_ms = 60'000, .max_load_ms = 5'000});
    host& h = w.at(0);
    call& leader = h.fetch("apple");
    load hung = leader.take();
    call& waiter = h.fetch("apple", {.deadline_ms = 60'000});
    w.advance(4'999);
    CHECK(!waiter.ended());
    w.advance(1);
    CHECK(waiter.code() == status::timeout);
    CHECK(leader.revoked() == reason::max_load);
    CHECK(hung.state() == lease::state::revoked);
    call& next = h.fetch("apple");
    call& joined = h.fetch("apple");
    REQUIRE(next.leads()); // takes the hung one's token over at once
    CHECK(next.took_ms() == 0);
    CHECK(!joined.ended());
    next.take().fulfil("red");
    CHECK(joined.value() == "red");
    hung.fulfil("late");
    CHECK(leader.fill() == status::lost);
    CHECK(w.stored_value("apple") == "red");
}

TEST_CASE("max_loads bounds the pile of hung loaders") {
    world w(1, {.ttl_ms = 60'000, .max_load_ms = 1'000, .max_loads = 2});
    host& h = w.at(0);
    std::vector<load> hung;
    for (int round = 0; round < 5; ++round) {
        for (int i = 0; i < 4; ++i) {
            call& c = h.fetch("key" + std::to_string(round * 4 + i), {.deadline_ms = 500});
            if (c.leads()) hung.push_back(c.take());
        }
        w.advance(3'000);
    }
    CHECK(hung.size() == 4); // two that count as running, and two that are overdue
    CHECK(w.total(stat::overloaded) > 0);
    for (load& l : hung) l.free();
    CHECK(h.fetch("fresh").leads());
}

// otter#137: an invalidation during a flight gave joined callers a zero value and no error.
TEST_CASE("an invalidation during a flight: who joined before gets the value that was being loaded") {
    world w;
    host& h = w.at(0);
    call& leader = h.fetch("apple");
    call& joined = h.fetch("apple");
    load made = leader.take();
    w.advance(50);
    call& gone = h.invalidate("apple");
    CHECK(gone.kind() == event_kind::done);
    call& after = h.fetch("apple"); // a flight of its own
    REQUIRE(after.leads());
    made.fulfil("old");
    CHECK(joined.value() == "old");
    CHECK(leader.fill() != status::ok);
    CHECK(w.stored_value("apple") == std::nullopt);
    after.take().fulfil("new");
    CHECK(w.stored_value("apple") == "new");
}

// extensions#6202: callers with different flags shared one flight.
TEST_CASE("callers who ask for different things never share a flight") {
    world w;
    host& h = w.at(0);
    call& put = h.put("apple", "stored");
    CHECK(put.kind() == event_kind::done);
    w.advance(10);
    call& forced = h.fetch("apple", {.force = true});
    REQUIRE(forced.leads());
    CHECK(h.fetch("apple").value() == "stored"); // did not join the forced one
    CHECK(h.get("apple").value() == "stored");
    call& alone = h.fetch("pear", {.no_store = true});
    call& stored = h.fetch("pear");
    call& alone_too = h.fetch("pear", {.no_store = true});
    CHECK(alone.leads());
    CHECK(stored.leads());
    CHECK(alone_too.leads());
    CHECK(h.get("pear").code() == status::absent);
    CHECK(w.total(stat::joins) == 0);
    alone.take().fulfil("1");
    CHECK(w.stored_value("pear") == std::nullopt);
    alone_too.take().fulfil("2");
    stored.take().fulfil("3");
    CHECK(w.stored_value("pear") == "3");
    forced.take().fulfil("new");
    CHECK(w.stored_value("apple") == "new");
}
