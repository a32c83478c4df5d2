// SPDX-License-Identifier: MIT
//
// The lease while a load runs.
#include <doctest/doctest.h>

#include "protocol/commands.hpp"
#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

namespace {

const fill_policy short_lease{.ttl_ms = 60'000, .lease_ms = 3'000, .jitter = 0};

} // namespace

TEST_CASE("a lease is renewed for as long as the load runs, so a long load is one load") {
    world w(2, short_lease);
    call& leader = w.at(0).fetch("apple");
    load made = leader.take();
    call& elsewhere = w.at(1).fetch("apple", {.deadline_ms = 60'000});
    for (int i = 0; i < 100; ++i) {
        w.advance(290);
        CHECK(w.server->pttl(w.store_key("apple")).value_or(0) >= 1'990);
    }
    CHECK(!elsewhere.ended());
    made.fulfil("red");
    CHECK(elsewhere.value() == "red");
    CHECK(w.total(stat::renewals) == 29);
    w.advance(10'000);
    CHECK(w.total(stat::renewals) == 29); // and no longer
}

TEST_CASE("the key is deleted between two renewals: the next one finds it out, and the fill is refused") {
    world w(1, short_lease);
    host& h = w.at(0);
    call& leader = h.fetch("apple");
    call& before = h.fetch("apple");
    load made = leader.take();
    w.advance(1'500);
    (void)w.server->execute(del_command(w.store_key("apple")));
    call& between = h.fetch("apple"); // nobody here knows yet
    w.advance(499);
    CHECK(leader.revoked() == std::nullopt);
    w.advance(1);
    CHECK(leader.revoked() == reason::lost);
    CHECK(made.state() == lease::state::revoked);
    call& after = h.fetch("apple");
    REQUIRE(after.leads()); // its own flight, and its own lease
    made.fulfil("old");
    CHECK(before.value() == "old");
    CHECK(between.value() == "old");
    CHECK(leader.fill() == status::lost);
    CHECK(w.stored("apple")->kind == entry_kind::placeholder);
    after.take().fulfil("new");
    CHECK(w.stored_value("apple") == "new");
    CHECK(w.total(stat::leases_lost) == 1);
}

TEST_CASE("the key is deleted after the last renewal: the fill itself finds out and is refused") {
    world w(1, short_lease);
    call& leader = w.at(0).fetch("apple");
    load made = leader.take();
    w.advance(1'500);
    (void)w.server->execute(del_command(w.store_key("apple")));
    w.advance(100);
    made.fulfil("old");
    CHECK(leader.fill() == status::refused);
    CHECK(w.stored("apple") == std::nullopt);
    CHECK(w.total(stat::fills_refused) == 1);
}

TEST_CASE("another process has the key by then: its lease and its value are not touched") {
    world w(2, short_lease);
    call& leader = w.at(0).fetch("apple");
    load made = leader.take();
    w.advance(1'500);
    (void)w.server->execute(del_command(w.store_key("apple")));
    load other = w.at(1).fetch("apple").take();
    w.advance(1'000);
    CHECK(leader.revoked() == reason::lost);
    made.fulfil("old");
    CHECK(leader.fill() == status::lost);
    CHECK(w.stored("apple")->kind == entry_kind::placeholder);
    other.fulfil("new");
    CHECK(w.stored_value("apple") == "new");
}

TEST_CASE("a renewal never brings a placeholder back that was removed") {
    world w(1, short_lease);
    load made = w.at(0).fetch("apple").take();
    w.link(0).hold(); // the renewal is on its way
    w.advance(1'000);
    w.server->del(w.store_key("apple"));
    w.link(0).let_go();
    w.settle();
    CHECK(w.stored("apple") == std::nullopt);
}

TEST_CASE("renewals that are lost are tried again, and the lease outlives a silent spell") {
    world w(1, {.ttl_ms = 60'000, .lease_ms = 6'000});
    load made = w.at(0).fetch("apple").take();
    w.advance(1'900);
    w.link(0).every(fate::vanish);
    w.advance(2'000); // at 2,000, then 500 ms after each one's 250 ms of silence
    CHECK(w.link(0).count(script_id::extend) == 3);
    w.link(0).heal();
    w.advance(10'000);
    made.fulfil("red");
    CHECK(w.stored_value("apple") == "red");
}

TEST_CASE("renewals go on while the breaker is open") {
    world w(1, short_lease);
    host& h = w.at(0);
    call& leader = h.fetch("apple");
    load made = leader.take();
    w.link(0).next(verb::get, fate::vanish, -1);
    for (int i = 0; i < 5; ++i) {
        call& c = h.fetch("pear" + std::to_string(i));
        w.advance(500);
        if (c.leads()) c.take().fail("x", status::internal);
    }
    w.advance(10'000);
    CHECK(leader.revoked() == std::nullopt);
    made.fulfil("red");
    CHECK(w.stored_value("apple") == "red");
}

TEST_CASE("a process that sleeps over its lease learns so when it wakes up") {
    world w(2, short_lease);
    call& leader = w.at(0).fetch("apple");
    load made = leader.take();
    w.advance(100);
    w.pause(0);
    w.advance(3'000);
    load other = w.at(1).fetch("apple").take(); // free again
    w.resume(0);
    CHECK(leader.revoked() == reason::lost);
    made.fulfil("old");
    CHECK(leader.fill() == status::lost);
    other.fulfil("new");
    CHECK(w.stored_value("apple") == "new");
}

TEST_CASE("the length of a lease follows the loads seen: three of them, from one to ten seconds") {
    world w(1, {.ttl_ms = 1, .jitter = 0});
    host& h = w.at(0);
    const auto length = [&] {
        load made = h.fetch("apple").take();
        const auto pttl = w.server->pttl(w.store_key("apple")).value_or(0);
        w.advance(2'000);
        made.fulfil("red");
        w.advance(10);
        return pttl;
    };
    CHECK(length() == 10'000);
    CHECK(length() == 6'000);
}

TEST_CASE("invalidated here: the holder is told so, with the reason") {
    world w(1, short_lease);
    host& h = w.at(0);
    call& leader = h.fetch("apple");
    load made = leader.take();
    h.invalidate("apple");
    w.advance(1'000);
    CHECK(leader.revoked() == reason::invalidated);
    CHECK(leader.count(event_kind::revoked) == 1);
    made.free();
}
