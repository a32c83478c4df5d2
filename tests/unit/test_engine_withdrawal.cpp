// SPDX-License-Identifier: MIT
//
// Offers that nobody reads.
#include <doctest/doctest.h>

#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

TEST_CASE("a LEASE not read within a second goes to the oldest waiter of another queue, with the same token") {
    world w;
    host& slow = w.at(0, "slow");
    host& busy = w.at(0, "busy");
    slow.asleep = true;
    call& first = slow.fetch("apple");
    call& same = slow.fetch("apple");
    call& other = busy.fetch("apple");
    call& younger = busy.fetch("apple");
    w.advance(999);
    CHECK(!other.ended());
    w.advance(1);
    REQUIRE(other.leads());
    CHECK(!younger.ended());
    CHECK(w.link(0).count(script_id::lease) == 1);
    CHECK(w.link(0).count(script_id::abandon) == 0);
    CHECK(w.total(stat::withdrawals) == 1);
    CHECK(w.total(stat::promotions) == 1);
    load made = other.take();
    w.advance(300);
    made.fulfil("red");
    CHECK(other.fill() == status::ok);
    slow.asleep = false;
    w.settle();
    CHECK(first.value() == "red"); // it waited again
    CHECK(same.value() == "red");
    CHECK(younger.value() == "red");
}

TEST_CASE("whose offer was withdrawn waits again as the youngest") {
    world w;
    host& slow = w.at(0, "slow");
    host& busy = w.at(0, "busy");
    slow.asleep = true;
    call& first = slow.fetch("apple");
    call& other = busy.fetch("apple");
    call& last = busy.fetch("apple");
    w.advance(1'000);
    slow.asleep = false;
    load made = other.take();
    made.free();
    CHECK(last.leads());
    CHECK(!first.ended());
    last.take().free();
    REQUIRE(first.leads());
    first.take().fulfil("red");
}

TEST_CASE("an offer read in the last moment stays with its reader") {
    world w;
    host& slow = w.at(0, "slow");
    slow.asleep = true;
    call& first = slow.fetch("apple");
    call& other = w.at(0, "busy").fetch("apple", {.deadline_ms = 60'000});
    w.advance(999);
    slow.read();
    REQUIRE(first.leads());
    w.advance(10'000);
    CHECK(!other.ended());
    first.take().fulfil("red");
    CHECK(other.value() == "red");
    CHECK(w.total(stat::withdrawals) == 0);
}

TEST_CASE("an offer that nobody of another queue can take is abandoned, and the flight looks again") {
    world w(2);
    host& slow = w.at(0, "slow");
    slow.asleep = true;
    call& first = slow.fetch("apple", {.deadline_ms = 60'000});
    call& second = slow.fetch("apple", {.deadline_ms = 60'000});
    w.advance(1'000);
    CHECK(w.link(0).count(script_id::abandon) == 1);
    CHECK(w.link(0).count(verb::get) == 2);
    CHECK(w.link(0).count(script_id::lease) == 2); // it found the key free, and tries once more
    w.advance(500);
    slow.asleep = false;
    w.settle();
    CHECK(first.ended() != second.ended());
    w.leader().take().fulfil("red");
    CHECK((first.ended() && second.ended()));
}

TEST_CASE("when the callers of a process that does not read have given up, another one gets the lease at once") {
    world w(2);
    host& slow = w.at(0, "slow");
    slow.asleep = true;
    call& first = slow.fetch("apple", {.deadline_ms = 1'500});
    call& elsewhere = w.at(1).fetch("apple", {.deadline_ms = 60'000});
    w.advance(2'000); // withdrawn twice, and the second time its caller's deadline has passed
    REQUIRE(elsewhere.leads());
    CHECK(elsewhere.took_ms() == 2'000);
    elsewhere.take().fulfil("red");
    slow.asleep = false;
    w.settle();
    CHECK(first.code() == status::timeout);
}

TEST_CASE("an offer withdrawn from a caller whose deadline has passed ends with timeout") {
    world w;
    host& slow = w.at(0, "slow");
    slow.asleep = true;
    call& first = slow.fetch("apple", {.deadline_ms = 500});
    call& other = w.at(0, "busy").fetch("apple");
    w.advance(1'000);
    REQUIRE(other.leads());
    slow.asleep = false;
    w.settle();
    CHECK(first.code() == status::timeout);
    other.take().fulfil("red");
}

TEST_CASE("unread offers that have been withdrawn again and again end by the callers' deadlines") {
    world w;
    host& slow = w.at(0, "slow");
    slow.asleep = true;
    call& first = slow.fetch("apple", {.deadline_ms = 3'500});
    w.advance(10'000);
    slow.asleep = false;
    w.settle();
    CHECK(first.code() == status::timeout);
    CHECK(w.total(stat::withdrawals) == 4);
    CHECK(w.stored("apple") == std::nullopt);
}

TEST_CASE("an offer whose lease has run out while nobody read it is not handed on: the lease is asked for again") {
    world w;
    host& slow = w.at(0, "slow");
    slow.asleep = true;
    call& first = slow.fetch("apple", {.deadline_ms = 600'000});
    call& other = w.at(0, "busy").fetch("apple", {.deadline_ms = 600'000});
    w.pause(0);
    w.advance(20'000); // the whole process slept
    w.resume(0);
    w.advance(300);
    call& now = other.leads() ? other : first;
    slow.asleep = false;
    w.settle();
    REQUIRE(now.leads());
    CHECK(w.link(0).count(script_id::lease) == 2);
    CHECK(now.revoked() == std::nullopt);
    now.take().fulfil("red");
    CHECK(now.fill() == status::ok);
    CHECK(w.stored_value("apple") == "red");
}

TEST_CASE("a lease read late, after it has run out, serves its callers and stores nothing over another's") {
    world w(2);
    call& first = w.at(0).fetch("apple", {.deadline_ms = 600'000});
    call& joined = w.at(0).fetch("apple", {.deadline_ms = 600'000});
    w.pause(0); // before its host read the event
    w.advance(20'000);
    w.at(1).fetch("apple").take().fulfil("new");
    w.resume(0);
    REQUIRE(first.leads());
    load made = first.take();
    CHECK(first.revoked() == reason::lost);
    made.fulfil("own");
    CHECK(joined.value() == "own");
    CHECK(first.fill() == status::lost);
    CHECK(w.stored_value("apple") == "new");
}

TEST_CASE("a promoted caller whose lease has run out gets a new one, the old token as earlier token") {
    world w;
    host& h = w.at(0);
    call& first = h.fetch("apple", {.deadline_ms = 600'000});
    call& second = h.fetch("apple", {.deadline_ms = 600'000});
    load made = first.take();
    w.link(0).next(script_id::extend, fate::vanish, -1);
    w.advance(9'899); // safe_until is 9,898
    made.free();
    w.link(0).heal();
    REQUIRE(second.leads());
    CHECK(w.link(0).count(script_id::lease) == 2);
    const auto& log = w.link(0).log();
    const auto asked = std::find_if(log.rbegin(), log.rend(),
                                    [](const test_link::sent& s) { return s.cmd.script == script_id::lease; });
    REQUIRE(asked != log.rend());
    CHECK(asked->cmd.args.size() == 4); // placeholder, length, no rejected one, one earlier token
    second.take().fulfil("red");
    CHECK(second.fill() == status::ok);
}

TEST_CASE("a REFRESH not taken in a second is given back, and not asked for again for lease_ms") {
    world w(2, {.ttl_ms = 60'000, .soft_ttl_ms = 5'000, .lease_ms = 3'000, .jitter = 0, .early = 0});
    host& slow = w.at(0, "slow");
    w.at(0).put("apple", "old");
    w.advance(5'000);
    slow.asleep = true;
    call& first = slow.fetch("apple", {.refresh = true});
    CHECK(w.server->count(script_id::refresh) == 1);
    w.advance(1'000);
    CHECK(w.server->count(script_id::release) == 1);
    slow.asleep = false;
    w.settle();
    CHECK(first.value() == "old");
    CHECK(first.count(event_kind::refresh) == 0);
    CHECK(w.at(0).fetch("apple", {.refresh = true}).count(event_kind::refresh) == 0); // this process waits
    call& elsewhere = w.at(1).fetch("apple", {.refresh = true});
    CHECK(elsewhere.count(event_kind::refresh) == 1); // another one does not
    elsewhere.take_refresh().free();
    w.advance(2'999);
    CHECK(w.at(0).fetch("apple", {.refresh = true}).count(event_kind::refresh) == 0);
    w.advance(1);
    call& again = w.at(0).fetch("apple", {.refresh = true});
    REQUIRE(again.count(event_kind::refresh) == 1);
    again.take_refresh().fulfil("new");
    CHECK(w.stored_value("apple") == "new");
}
