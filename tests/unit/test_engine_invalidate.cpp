// SPDX-License-Identifier: MIT
//
// invalidate: retried to its deadline, never stopped by the breaker, failure always reported.
#include <doctest/doctest.h>

#include <vector>

#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

TEST_CASE("an invalidation deletes the value for everybody") {
    world w(2);
    w.at(0).put("apple", "red");
    CHECK(w.at(1).invalidate("apple").kind() == event_kind::done);
    CHECK(w.at(0).get("apple").answer().why == reason::miss);
    CHECK(w.at(0).invalidate("nothing there").kind() == event_kind::done);
    CHECK(w.total(stat::invalidations) == 2);
}

TEST_CASE("who fetches after the call has returned never gets the old value, also before it is done") {
    world w;
    host& h = w.at(0);
    h.put("apple", "old");
    w.link(0).slow(20);
    call& before = h.fetch("apple");
    w.advance(5);
    call& gone = h.invalidate("apple");
    call& after = h.fetch("apple");
    CHECK(!gone.ended());
    w.advance(100);
    CHECK(before.value() == "old");
    CHECK(gone.kind() == event_kind::done);
    REQUIRE(after.leads());
    after.take().fulfil("new");
    w.advance(100);
}

TEST_CASE("flights that began between the call and its answer are detached once more") {
    world w;
    host& h = w.at(0);
    h.put("apple", "old");
    w.link(0).next(verb::del, fate::vanish); // it comes through at the second try
    call& gone = h.invalidate("apple");
    call& between = h.fetch("apple"); // reads the old value: the deletion has not come through
    CHECK(between.value() == "old");
    w.link(0).hold();
    call& late = h.fetch("apple"); // is still looking when the deletion is done
    w.link(0).let_go();
    w.advance(1'000);
    CHECK(gone.kind() == event_kind::done);
    CHECK(late.ended());
    CHECK(h.fetch("apple").leads());
}

TEST_CASE("a load that runs when the invalidation is answered serves nobody who comes after") {
    world w;
    host& h = w.at(0);
    w.link(0).next(verb::del, fate::vanish);
    call& gone = h.invalidate("apple");
    call& leader = h.fetch("apple"); // began before the deletion came through
    load made = leader.take();
    w.advance(1'000);
    REQUIRE(gone.kind() == event_kind::done);
    call& after = h.fetch("apple");
    REQUIRE(after.leads()); // did not join
    made.fulfil("old");
    CHECK(leader.fill() != status::ok);
    after.take().fulfil("new");
    CHECK(w.stored_value("apple") == "new");
}

TEST_CASE("an invalidation is tried again until it comes through") {
    for (const fate what : {fate::vanish, fate::lose_reply, fate::not_sent, fate::refuse}) {
        world w;
        host& h = w.at(0);
        h.put("apple", "old");
        w.link(0).next(verb::del, what, 6);
        call& c = h.invalidate("apple");
        w.advance(5'000);
        CHECK(c.kind() == event_kind::done);
        CHECK(w.link(0).count(verb::del) == 7);
        CHECK(w.stored("apple") == std::nullopt);
    }
}

TEST_CASE("an invalidation that does not come through by its deadline says what is known") {
    const auto outcome_of_fate = [](fate what, std::int64_t deadline) {
        world w;
        host& h = w.at(0);
        h.put("apple", "old");
        w.link(0).next(verb::del, what, -1, "ERR nobody knows why");
        call& c = h.invalidate("apple", false, {.deadline_ms = deadline});
        w.advance(20'000);
        REQUIRE(c.kind() == event_kind::error);
        if (deadline >= 0) CHECK(c.took_ms() <= deadline + 250);
        if (deadline < 0) CHECK(c.took_ms() >= 10'000);
        CHECK(c.answer().what->why.may_have_applied == (c.code() == status::uncertain));
        return c.code();
    };
    for (const std::int64_t deadline : {-1, 0, 1'000}) {
        CHECK(outcome_of_fate(fate::vanish, deadline) == status::uncertain);
        CHECK(outcome_of_fate(fate::lose_reply, deadline) == status::uncertain);
        CHECK(outcome_of_fate(fate::not_sent, deadline) == status::unavailable);
        CHECK(outcome_of_fate(fate::refuse, deadline) == status::refused);
    }
}

TEST_CASE("deadline 0 is one try") {
    world w;
    host& h = w.at(0);
    w.link(0).next(verb::del, fate::vanish, -1);
    h.invalidate("apple", false, {.deadline_ms = 0});
    w.advance(5'000);
    CHECK(w.link(0).count(verb::del) == 1);
}

TEST_CASE("tries are spread, 5 to 200 ms apart") {
    world w;
    host& h = w.at(0);
    w.link(0).next(verb::del, fate::not_sent, -1);
    h.invalidate("apple");
    w.advance(11'000);
    const auto& log = w.link(0).log();
    mono_ms before = -1;
    std::size_t tries = 0;
    for (const auto& s : log) {
        if (s.cmd.what != verb::del) continue;
        ++tries;
        if (before >= 0) {
            CHECK(s.at - before >= 5);
            CHECK(s.at - before <= 200);
        }
        before = s.at;
    }
    CHECK(tries >= 50);
    CHECK(tries <= 500);
}

TEST_CASE("the breaker never stops an invalidation") {
    world w;
    host& h = w.at(0);
    h.put("apple", "old");
    for (int i = 0; i < 5; ++i) w.core(0).commands.silent(w.now());
    REQUIRE(w.core(0).commands.down());
    CHECK(h.invalidate("apple").kind() == event_kind::done);
    CHECK(w.stored("apple") == std::nullopt);
}

TEST_CASE("waiters elsewhere are woken: they need not wait for a value that will not be stored") {
    world w(3);
    load made = w.at(0).fetch("apple").take();
    call& elsewhere = w.at(1).fetch("apple");
    w.advance(30);
    w.at(2).invalidate("apple");
    REQUIRE(elsewhere.leads());
    CHECK(elsewhere.took_ms() == 30);
    elsewhere.take().fulfil("new");
    made.fulfil("old");
    CHECK(w.stored_value("apple") == "new");
}

TEST_CASE("a cancelled or timed-out invalidation goes on in the background or was done; nobody is told twice") {
    world w;
    host& h = w.at(0);
    h.put("apple", "old");
    w.link(0).next(verb::del, fate::vanish, 2);
    call& c = h.invalidate("apple");
    h.cancel(c);
    CHECK(c.code() == status::cancelled);
    w.advance(5'000);
    CHECK(w.core(0).changes.busy() == false);
}

TEST_CASE("invalidations of many keys at one time do not disturb each other") {
    world w;
    host& h = w.at(0);
    std::vector<call*> all;
    for (int i = 0; i < 50; ++i) h.put("key" + std::to_string(i), "x");
    w.link(0).slow(10);
    for (int i = 0; i < 50; ++i) all.push_back(&h.invalidate("key" + std::to_string(i)));
    w.advance(10);
    for (const call* c : all) CHECK(c->kind() == event_kind::done);
    CHECK(w.server->keys().empty());
}
