// SPDX-License-Identifier: MIT
//
// Loads older than max_load, and who goes on after them.
#include <doctest/doctest.h>

#include <vector>

#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

namespace {

const fill_policy impatient{.ttl_ms = 60'000, .max_load_ms = 2'000, .jitter = 0};

} // namespace

TEST_CASE("the next flight of the same process takes an overdue token over by lease, at once") {
    world w(1, impatient);
    host& h = w.at(0);
    call& first = h.fetch("apple");
    load hung = first.take();
    w.advance(2'000);
    REQUIRE(first.revoked() == reason::max_load);
    const token old = w.stored("apple")->generation;
    call& next = h.fetch("apple");
    REQUIRE(next.leads());
    CHECK(next.took_ms() == 0);
    CHECK(w.stored("apple")->generation != old);
    CHECK(w.link(0).log().back().cmd.args.back() == old.str());
    next.take().fulfil("red");
    CHECK(next.fill() == status::ok);
    hung.fulfil("late");
    CHECK(first.fill() == status::lost);
    CHECK(w.stored_value("apple") == "red");
}

TEST_CASE("another process waits for an overdue token until it runs out") {
    world w(2, impatient);
    load hung = w.at(0).fetch("apple").take();
    call& elsewhere = w.at(1).fetch("apple", {.deadline_ms = 60'000});
    w.advance(2'000);
    CHECK(!elsewhere.ended());
    w.advance(8'300); // the lease of 10 s was never renewed, and one look
    CHECK(elsewhere.leads());
    elsewhere.take().fulfil("red");
    CHECK(w.stored_value("apple") == "red");
}

TEST_CASE("whoever waits for an overdue load is told timeout with the reason in the text") {
    world w(1, impatient);
    host& h = w.at(0);
    load hung = h.fetch("apple").take();
    call& c = h.fetch("apple", {.deadline_ms = 60'000});
    w.advance(2'000);
    CHECK(c.code() == status::timeout);
    CHECK(c.text().find("max_load") != std::string::npos);
}

TEST_CASE("a take-over frees who waits elsewhere as soon as it has the value") {
    world w(2, impatient);
    load hung = w.at(0).fetch("apple").take();
    call& elsewhere = w.at(1).fetch("apple", {.deadline_ms = 60'000});
    w.advance(2'500);
    call& next = w.at(0).fetch("apple");
    REQUIRE(next.leads());
    next.take().fulfil("red");
    CHECK(elsewhere.value() == "red"); // the waiter byte went over to the new token
    CHECK(elsewhere.took_ms() == 2'500);
}

TEST_CASE("a flight of the process that waits for the token takes it over in the moment it is overdue") {
    world w(1, impatient);
    host& h = w.at(0);
    load hung = h.fetch("apple").take();
    call& forced = h.fetch("apple", {.deadline_ms = 60'000, .force = true}); // a flight of its own
    w.advance(1'999);
    CHECK(!forced.ended());
    w.advance(1);
    REQUIRE(forced.leads());
    forced.take().fulfil("red");
    CHECK(w.stored_value("apple") == "red");
}

TEST_CASE("overdue loads stand in a pool of their own, so that a new flight finds a place") {
    fill_policy p = impatient;
    p.max_loads = 1;
    world w(1, p);
    host& h = w.at(0);
    call& first = h.fetch("apple");
    load hung = first.take();
    w.advance(2'000);
    call& second = h.fetch("apple", {.deadline_ms = 60'000});
    REQUIRE(second.leads());
    load hung_too = second.take();
    w.advance(2'000); // the second pool is full: this one keeps its place
    call& third = h.fetch("apple", {.deadline_ms = 1'000});
    CHECK(!third.ended());
    w.advance(1'000);
    CHECK(third.code() == status::overloaded);
    call& fourth = h.fetch("apple", {.deadline_ms = 60'000});
    hung.free();
    w.advance(1'000);
    CHECK(!fourth.ended()); // that was a place of the second pool
    hung_too.fulfil("late");
    w.advance(1'000);
    REQUIRE(fourth.leads());
    fourth.take().fulfil("red");
    CHECK(w.stored_value("apple") == "red");
}

TEST_CASE("max_load counts from the reading of the event, not from the call") {
    world w(1, impatient);
    host& slow = w.at(0);
    slow.asleep = true;
    call& first = slow.fetch("apple");
    w.advance(900);
    slow.asleep = false;
    w.settle();
    load made = first.take();
    w.advance(1'999);
    CHECK(first.revoked() == std::nullopt);
    w.advance(1);
    CHECK(first.revoked() == reason::max_load);
    made.free();
}

TEST_CASE("an overdue load that is answered with an error leaves no marker") {
    world w(1, impatient);
    host& h = w.at(0);
    load hung = h.fetch("apple").take();
    w.advance(2'000);
    hung.fail("at last");
    CHECK(w.total(stat::markers_error) == 0);
    CHECK(h.fetch("apple").leads());
}

TEST_CASE("a value loaded in the last millisecond is stored") {
    world w(1, impatient);
    call& first = w.at(0).fetch("apple");
    load made = first.take();
    w.advance(1'999);
    made.fulfil("red");
    CHECK(first.fill() == status::ok);
    w.advance(10);
    CHECK(first.revoked() == std::nullopt);
}

TEST_CASE("a refresh that runs over max_load lets another one begin after error_ttl") {
    fill_policy p = impatient;
    p.soft_ttl_ms = 5'000;
    p.early = 0;
    world w(2, p);
    w.at(0).put("apple", "old");
    w.advance(5'000);
    call& first = w.at(0).fetch("apple", {.refresh = true});
    load hung = first.take_refresh();
    w.advance(2'000);
    CHECK(w.at(1).fetch("apple", {.refresh = true}).count(event_kind::refresh) == 0);
    w.advance(1'000);
    call& next = w.at(1).fetch("apple", {.refresh = true});
    REQUIRE(next.count(event_kind::refresh) == 1);
    next.take_refresh().fulfil("new");
    hung.fulfil("late");
    CHECK(first.fill() == status::lost);
    CHECK(w.stored_value("apple") == "new");
}
