// SPDX-License-Identifier: MIT
//
// How long a caller waits.
#include <doctest/doctest.h>

#include <vector>

#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

TEST_CASE("by default a caller waits ten seconds for somebody else's load, here or elsewhere") {
    world w(2, {.ttl_ms = 60'000, .max_load_ms = 100'000});
    load made = w.at(0).fetch("apple").take();
    call& here = w.at(0).fetch("apple");
    call& elsewhere = w.at(1).fetch("apple");
    w.advance(9'999);
    CHECK(!here.ended());
    CHECK(!elsewhere.ended());
    w.advance(1);
    CHECK(here.code() == status::timeout);
    CHECK(elsewhere.code() == status::timeout);
    made.fulfil("red");
}

TEST_CASE("when loads usually take long, two of them are waited for") {
    world w(1, {.ttl_ms = 1, .jitter = 0});
    host& h = w.at(0);
    load slow = h.fetch("apple").take();
    w.advance(20'000);
    slow.fulfil("red");
    w.advance(10);
    load made = h.fetch("apple").take();
    call& c = h.fetch("apple");
    w.advance(39'999);
    CHECK(!c.ended());
    w.advance(1);
    CHECK(c.code() == status::timeout);
}

TEST_CASE("deadline 0: the store is asked, a lease may be granted, but nobody else's load is waited for") {
    world w(2);
    w.at(0).put("apple", "red");
    CHECK(w.at(0).fetch("apple", {.deadline_ms = 0}).value() == "red");
    call& leader = w.at(0).fetch("pear", {.deadline_ms = 0});
    REQUIRE(leader.leads());
    load made = leader.take();
    call& here = w.at(0).fetch("pear", {.deadline_ms = 0});
    CHECK(here.code() == status::timeout);
    CHECK(here.took_ms() == 0);
    call& elsewhere = w.at(1).fetch("pear", {.deadline_ms = 0});
    CHECK(elsewhere.code() == status::timeout);
    CHECK(elsewhere.took_ms() == 0);
    made.fulfil("ripe");
}

TEST_CASE("deadline 0 waits for a look that is on its way, which is the store's business and nobody's load") {
    world w;
    w.link(0).slow(20);
    host& h = w.at(0);
    call& first = h.fetch("apple");
    w.advance(10);
    call& second = h.fetch("apple", {.deadline_ms = 0});
    CHECK(!second.ended());
    w.advance(15);
    CHECK(!second.ended());
    w.advance(20); // the first one leads
    CHECK(first.leads());
    CHECK(second.code() == status::timeout);
}

TEST_CASE("wait 0 in the policy is deadline 0") {
    world w(1, {.ttl_ms = 60'000, .wait_ms = 0});
    host& h = w.at(0);
    load made = h.fetch("apple").take();
    CHECK(h.fetch("apple").code() == status::timeout);
    call& patient = h.fetch("apple", {.deadline_ms = 500});
    CHECK(!patient.ended());
    made.fulfil("red");
    CHECK(patient.value() == "red");
}

TEST_CASE("a deadline passes at its very millisecond, also of a caller who joined with a nearer one") {
    world w;
    host& h = w.at(0);
    load made = h.fetch("apple").take();
    std::vector<call*> all;
    for (const std::int64_t ms : {500, 100, 300, 1, 400, 200}) {
        all.push_back(&h.fetch("apple", {.deadline_ms = ms}));
    }
    w.advance(1'000);
    const std::vector<std::int64_t> expected{500, 100, 300, 1, 400, 200};
    for (std::size_t i = 0; i < all.size(); ++i) {
        CHECK(all[i]->code() == status::timeout);
        CHECK(all[i]->took_ms() == expected[i]);
    }
    CHECK(w.total(stat::timeouts) == 6);
    made.free();
    CHECK(w.stored("apple") == std::nullopt);
}

TEST_CASE("no limit is no limit") {
    world w(1, {.ttl_ms = 60'000, .max_load_ms = 1'000'000});
    host& h = w.at(0);
    load made = h.fetch("apple").take();
    call& c = h.fetch("apple", {.deadline_ms = INT64_MAX});
    w.advance(500'000);
    CHECK(!c.ended());
    made.fulfil("red");
    CHECK(c.value() == "red");
}

TEST_CASE("when all who wait elsewhere have given up, their process stops looking") {
    world w(2);
    load made = w.at(0).fetch("apple").take();
    w.at(1).fetch("apple", {.deadline_ms = 700});
    w.advance(1'000);
    w.link(1).clear_log();
    w.advance(5'000);
    CHECK(w.link(1).log().empty());
    CHECK(w.core(1).fetches.size() == 0);
    made.fulfil("red");
}

TEST_CASE("a plain get is bounded by the command time-out, and waits for no load") {
    world w;
    host& h = w.at(0);
    load made = h.fetch("apple").take();
    CHECK(h.get("apple").answer().why == reason::miss);
    w.link(0).every(fate::vanish);
    call& c = h.get("pear");
    w.advance(250);
    CHECK(!c.ended()); // it is tried once more
    w.advance(250);
    CHECK(c.code() == status::timeout);
    w.link(0).heal();
    made.free();
}
