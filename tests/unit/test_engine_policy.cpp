// SPDX-License-Identifier: MIT
//
// Policies: per cache and per call; coalesce and fleet switched off; no_store.
#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

namespace {

const fill_policy plain{.ttl_ms = 60'000, .jitter = 0};

std::shared_ptr<const fill_policy> variant(const fill_policy& p) {
    return std::make_shared<const fill_policy>(p);
}

} // namespace

TEST_CASE("a call's own policy counts for its load instead of the cache's") {
    world w(1, plain);
    host& h = w.at(0);
    const auto brief = variant({.ttl_ms = 500, .jitter = 0});
    h.fetch("apple", {.policy = brief}).take().fulfil("red");
    CHECK(w.server->pttl(w.store_key("apple")) == 500);
    h.put("pear", "ripe", {.policy = brief});
    CHECK(w.server->pttl(w.store_key("pear")) == 500);
    h.fetch("plum").take().fulfil("blue");
    CHECK(w.server->pttl(w.store_key("plum")) == 60'000);
}

TEST_CASE("the leader's policy governs the load; who joins is bound by its own waiting only") {
    world w(1, plain);
    host& h = w.at(0);
    call& leader = h.fetch("apple", {.policy = variant({.ttl_ms = 700, .jitter = 0})});
    call& joined = h.fetch("apple", {.policy = variant({.ttl_ms = 5'000, .wait_ms = 100, .jitter = 0})});
    load made = leader.take();
    w.advance(100);
    CHECK(joined.code() == status::timeout);
    made.fulfil("red");
    CHECK(w.server->pttl(w.store_key("apple")) == 700);
}

TEST_CASE("without a ttl a cache can get and invalidate, but neither fetch nor put") {
    world w(1, fill_policy{});
    host& h = w.at(0);
    CHECK(h.fetch("apple").refused == status::invalid_argument);
    CHECK(h.put("apple", "red").refused == status::invalid_argument);
    CHECK(h.get("apple").answer().why == reason::miss);
    CHECK(h.invalidate("apple").kind() == event_kind::done);
    CHECK(h.put("apple", "red", {}, 500).kind() == event_kind::done); // its own ttl
    CHECK(h.get("apple").value() == "red");
}

TEST_CASE("keys are checked before anything is begun") {
    world w(1, plain);
    host& h = w.at(0);
    CHECK(h.fetch("").refused == status::invalid_argument);
    CHECK(h.fetch(std::string(1'025, 'k')).refused == status::too_large);
    CHECK(h.fetch("apple", {.deadline_ms = -2}).refused == status::invalid_argument);
    CHECK(h.put("apple", std::string((std::size_t{8} << 20) + 1, 'x')).refused == status::too_large);
    CHECK(w.link(0).log().empty());
    call& longest = h.fetch(std::string(1'024, 'k'));
    CHECK(longest.leads());
    call& nul = h.fetch(std::string("a\0b", 3));
    CHECK(nul.leads());
}

TEST_CASE("coalesce off: every caller has a flight of its own, the fleet still makes one load") {
    fill_policy p = plain;
    p.coalesce = false;
    world w(2, p);
    std::vector<call*> all;
    for (int i = 0; i < 6; ++i) all.push_back(&w.at(i % 2).fetch("apple"));
    CHECK(w.total(stat::joins) == 0);
    call& leader = w.leader();
    load made = leader.take();
    w.advance(300);
    made.fulfil("red");
    w.advance(1);
    for (const call* c : all) CHECK((c == &leader || c->value() == "red"));
    CHECK(w.total(stat::loads) == 1);
    CHECK(w.total(stat::flights) == 6);
}

TEST_CASE("fleet off: one load per process, no lease, one round trip fewer, written by put") {
    fill_policy p = plain;
    p.fleet = false;
    world w(3, p);
    std::vector<call*> all;
    for (int i = 0; i < 9; ++i) all.push_back(&w.at(i % 3).fetch("apple"));
    const auto leading = w.calls([](const call& c) { return c.leads(); });
    CHECK(leading.size() == 3);
    CHECK(w.total(stat::joins) == 6);
    for (int n = 0; n < 3; ++n) CHECK(w.link(n).log().size() == 1); // a GET
    for (call* c : leading) {
        c->take().fulfil("red");
        CHECK(c->fill() == status::ok);
    }
    CHECK(w.stored_value("apple") == "red");
    CHECK(w.server->count(script_id::lease) == 0);
    CHECK(w.server->count(script_id::put) == 3);
    CHECK(w.total(stat::loads_alone) == 3);
}

TEST_CASE("fleet off: a flight detached by an invalidation here does not write") {
    fill_policy p = plain;
    p.fleet = false;
    world w(1, p);
    host& h = w.at(0);
    call& leader = h.fetch("apple");
    call& joined = h.fetch("apple");
    load made = leader.take();
    h.invalidate("apple");
    made.fulfil("old");
    CHECK(joined.value() == "old");
    CHECK(leader.fill() == status::lost);
    CHECK(w.stored("apple") == std::nullopt);
}

TEST_CASE("fleet off: a failed load leaves no marker, an absence is kept") {
    fill_policy p = plain;
    p.fleet = false;
    world w(1, p);
    host& h = w.at(0);
    h.fetch("apple").take().fail();
    CHECK(w.stored("apple") == std::nullopt);
    CHECK(h.fetch("apple").leads());
    h.fetch("pear").take().absent();
    CHECK(h.fetch("pear").kind() == event_kind::absent);
}

TEST_CASE("coalesce and fleet off: every caller loads") {
    fill_policy p = plain;
    p.fleet = false;
    p.coalesce = false;
    world w(1, p);
    for (int i = 0; i < 5; ++i) w.at(0).fetch("apple");
    const auto leading = w.calls([](const call& c) { return c.leads(); });
    CHECK(leading.size() == 5);
    for (call* c : leading) c->take().fulfil("red");
    CHECK(w.total(stat::loads) == 5);
}

TEST_CASE("no_store: a hit is a hit; else a load without joining, lease or marker, and nothing is written") {
    world w(2, plain);
    host& h = w.at(0);
    std::vector<call*> all;
    for (int i = 0; i < 3; ++i) all.push_back(&h.fetch("apple", {.no_store = true}));
    for (const call* c : all) CHECK(c->leads());
    CHECK(w.total(stat::joins) == 0);
    all[0]->take().fulfil("red");
    all[1]->take().fail();
    all[2]->take().absent();
    CHECK(all[0]->fill() == status::lost);
    CHECK(w.server->keys().empty());
    CHECK(w.server->count(script_id::lease) == 0);
    h.put("apple", "stored");
    CHECK(h.fetch("apple", {.no_store = true}).value() == "stored");
}

TEST_CASE("no_store does not wait for a load elsewhere, nor disturb it") {
    world w(2, plain);
    call& leader = w.at(0).fetch("apple");
    load made = leader.take();
    call& alone = w.at(1).fetch("apple", {.no_store = true});
    REQUIRE(alone.leads());
    alone.take().fulfil("other");
    made.fulfil("red");
    CHECK(leader.fill() == status::ok);
    CHECK(w.stored_value("apple") == "red");
}

TEST_CASE("two handles of one cache are one cache, each with its own policy") {
    world w(1, plain);
    host& h = w.at(0);
    const auto brief = w.open(0, "prices", {.ttl_ms = 500, .jitter = 0});
    call& leader = h.fetch("apple");
    call& joined = h.fetch("apple", {.in = brief.get()});
    CHECK(!joined.ended());
    leader.take().fulfil("red");
    CHECK(joined.value() == "red");
    const auto other = w.open(0, "stocks", plain);
    CHECK(h.fetch("apple", {.in = other.get()}).leads());
}
