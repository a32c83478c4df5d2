// SPDX-License-Identifier: MIT
//
// Values past their soft expiry: answered at once, refreshed by one.
#include <doctest/doctest.h>

#include <vector>

#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

namespace {

const fill_policy soft{.ttl_ms = 60'000, .soft_ttl_ms = 10'000, .jitter = 0, .early = 0};

bool refreshes(const call& c) {
    return c.count(event_kind::refresh) == 1;
}

} // namespace

TEST_CASE("a value past its soft expiry is answered now, in one round trip, and refreshed behind") {
    world w(1, soft);
    w.at(0).put("apple", "old");
    w.advance(9'999);
    CHECK(!w.at(0).fetch("apple", {.refresh = true}).stale());
    w.advance(1);
    w.link(0).slow(5);
    w.link(0).clear_log();
    call& c = w.at(0).fetch("apple", {.refresh = true});
    w.advance(5);
    CHECK(c.value() == "old");
    CHECK(c.stale());
    CHECK(c.took_ms() == 5);
    CHECK(w.link(0).count(verb::get) == 1);
    CHECK(!refreshes(c)); // the refresh lease is still on its way
    w.advance(5);
    REQUIRE(refreshes(c));
    load made = c.take_refresh();
    w.advance(300);
    made.fulfil("new");
    w.advance(5);
    CHECK(c.fill() == status::ok);
    CHECK(w.stored_value("apple") == "new");
    CHECK(w.total(stat::stale_hits) == 1);
    CHECK(w.total(stat::refreshes) == 1);
}

TEST_CASE("if no caller opted in, no refresh lease is asked for") {
    world w(1, soft);
    w.at(0).put("apple", "old");
    w.advance(20'000);
    for (int i = 0; i < 10; ++i) CHECK(w.at(0).fetch("apple").stale());
    CHECK(w.at(0).get("apple").stale());
    CHECK(w.link(0).count(script_id::refresh) == 0);
}

TEST_CASE("the REFRESH goes to the flight's first caller that asked") {
    world w(1, soft);
    w.at(0).put("apple", "old");
    w.advance(10'000);
    w.link(0).slow(5);
    host& h = w.at(0);
    call& no = h.fetch("apple");
    call& first = h.fetch("apple", {.refresh = true});
    call& second = h.fetch("apple", {.refresh = true});
    w.advance(20);
    CHECK(!refreshes(no));
    CHECK(refreshes(first));
    CHECK(!refreshes(second));
    first.take_refresh().fulfil("new");
    w.advance(20);
}

TEST_CASE("there is one refresh per generation: none while it is asked for, while it runs, or after it") {
    world w(2, soft);
    w.at(0).put("apple", "old");
    w.advance(10'000);
    w.link(0).slow(20);
    call& first = w.at(0).fetch("apple", {.refresh = true});
    w.advance(20); // answered, the lease is asked for
    for (int i = 0; i < 5; ++i) w.at(0).fetch("apple", {.refresh = true});
    w.advance(100);
    REQUIRE(refreshes(first));
    load made = first.take_refresh();
    for (int i = 0; i < 5; ++i) {
        w.at(0).fetch("apple", {.refresh = true});
        w.at(1).fetch("apple", {.refresh = true});
        w.advance(1'000);
    }
    CHECK(w.server->count(script_id::refresh) == 2); // one of each process
    made.fulfil("new");
    w.advance(100);
    CHECK(w.calls(refreshes).size() == 1);
    CHECK(w.at(1).fetch("apple").value() == "new");
    CHECK(w.total(stat::loads) == 1);
}

TEST_CASE("a process whose question was answered `held` asks again when the PTTL in the answer has passed") {
    fill_policy p = soft;
    p.lease_ms = 3'000;
    world w(2, p);
    w.at(0).put("apple", "old");
    w.advance(10'000);
    call& first = w.at(0).fetch("apple", {.refresh = true});
    REQUIRE(refreshes(first));
    load made = first.take_refresh();
    w.advance(500);
    w.at(1).fetch("apple", {.refresh = true});
    w.crash(0); // no renewal any more: 2,500 ms are left
    w.advance(2'499);
    CHECK(!refreshes(w.at(1).fetch("apple", {.refresh = true})));
    CHECK(w.server->count(script_id::refresh) == 2);
    w.advance(1);
    call& next = w.at(1).fetch("apple", {.refresh = true});
    REQUIRE(refreshes(next));
    next.take_refresh().fulfil("new");
    CHECK(w.stored_value("apple") == "new");
}

TEST_CASE("the refresh lease is left to expire after a success, so a late process does not load again") {
    world w(2, soft);
    w.at(0).put("apple", "old");
    w.advance(10'000);
    w.link(1).slow(50);
    call& first = w.at(0).fetch("apple", {.refresh = true});
    call& late = w.at(1).fetch("apple", {.refresh = true}); // its GET has read the old value
    load made = first.take_refresh();
    made.fulfil("new");
    w.advance(50); // it learns that value is stale, and asks for the lease of that generation
    CHECK(late.value() == "old");
    w.advance(200);
    CHECK(!refreshes(late));
    CHECK(w.server->count(script_id::refresh) == 2);
    CHECK(w.total(stat::loads) == 1);
}

TEST_CASE("the value stays readable while it is refreshed, and a refresh that fails leaves it") {
    world w(1, soft);
    host& h = w.at(0);
    h.put("apple", "old");
    w.advance(10'000);
    call& first = h.fetch("apple", {.refresh = true});
    load made = first.take_refresh();
    w.advance(500);
    CHECK(h.fetch("apple").value() == "old");
    made.fail("no database");
    CHECK(h.fetch("apple").value() == "old");
    CHECK(w.total(stat::loads_failed) == 1);
    CHECK(w.total(stat::markers_error) == 0);
    CHECK(!refreshes(h.fetch("apple", {.refresh = true})));
    w.advance(1'000); // error_ttl
    call& again = h.fetch("apple", {.refresh = true});
    REQUIRE(refreshes(again));
    again.take_refresh().fulfil("new");
    CHECK(h.fetch("apple").value() == "new");
}

TEST_CASE("a refresh that is freed is not tried again here for lease_ms, elsewhere at once") {
    fill_policy p = soft;
    p.lease_ms = 3'000;
    world w(2, p);
    w.at(0).put("apple", "old");
    w.advance(10'000);
    call& c = w.at(0).fetch("apple", {.refresh = true});
    c.take_refresh().free();
    CHECK(!refreshes(w.at(0).fetch("apple", {.refresh = true})));
    call& elsewhere = w.at(1).fetch("apple", {.refresh = true});
    REQUIRE(refreshes(elsewhere));
    elsewhere.take_refresh().free();
    w.advance(3'000);
    call& again = w.at(0).fetch("apple", {.refresh = true});
    REQUIRE(refreshes(again));
    again.take_refresh().free();
}

TEST_CASE("a refresh whose caller has gone, and for which nobody can wait, is given up") {
    world w(2, soft);
    w.at(0).put("apple", "old");
    w.advance(10'000);
    load made = w.at(0).fetch("apple", {.refresh = true}).take_refresh();
    CHECK(made.detach() == 0);
    CHECK(refreshes(w.at(1).fetch("apple", {.refresh = true})));
}

TEST_CASE("a refresh is renewed while it runs") {
    fill_policy p = soft;
    p.lease_ms = 3'000;
    world w(2, p);
    w.at(0).put("apple", "old");
    w.advance(10'000);
    call& first = w.at(0).fetch("apple", {.refresh = true});
    load made = first.take_refresh();
    for (int i = 0; i < 20; ++i) {
        w.advance(1'000);
        CHECK(!refreshes(w.at(1).fetch("apple", {.refresh = true})));
    }
    made.fulfil("new");
    CHECK(first.fill() == status::ok);
}

TEST_CASE("a refresh that ends after the value has expired writes nothing") {
    world w(1, soft);
    host& h = w.at(0);
    h.put("apple", "old");
    w.advance(59'000);
    call& first = h.fetch("apple", {.refresh = true});
    load made = first.take_refresh();
    w.advance(1'000);
    made.fulfil("new");
    CHECK(first.fill() == status::refused);
    CHECK(w.stored("apple") == std::nullopt);
    CHECK(w.total(stat::refreshes_lost) == 1);
}

TEST_CASE("at the hard expiry a value is gone: the next caller loads, and waits") {
    world w(1, soft);
    host& h = w.at(0);
    h.put("apple", "old");
    w.advance(59'999);
    CHECK(h.fetch("apple").value() == "old");
    w.advance(1);
    CHECK(h.fetch("apple").leads());
}

TEST_CASE("a refresh needs a place among the running loads, and does not stand in line for it") {
    fill_policy p = soft;
    p.max_loads = 1;
    world w(1, p);
    host& h = w.at(0);
    h.put("apple", "old");
    w.advance(10'000);
    load other = h.fetch("pear").take();
    call& c = h.fetch("apple", {.refresh = true});
    CHECK(c.value() == "old");
    CHECK(!refreshes(c));
    CHECK(w.link(0).count(script_id::refresh) == 0);
    other.fulfil("ripe");
    CHECK(!refreshes(c));
    call& next = h.fetch("apple", {.refresh = true}); // and may ask as soon as there is one
    REQUIRE(refreshes(next));
    next.take_refresh().fulfil("new");
}

TEST_CASE("early refreshes are drawn by many and run by one") {
    fill_policy p = soft;
    p.early = 1.0;
    world w(20, p);
    w.at(0).fetch("apple").take().fulfil("old"); // took 1 ms
    w.always(1e-300);                            // everybody draws one, 690 load times ahead
    w.advance(9'500);
    std::vector<call*> all;
    for (int n = 0; n < 20; ++n) all.push_back(&w.at(n).fetch("apple", {.refresh = true}));
    for (const call* c : all) {
        CHECK(c->value() == "old");
        CHECK(!c->stale());
    }
    const auto who = w.calls(refreshes);
    REQUIRE(who.size() == 1);
    CHECK(w.total(stat::early_refreshes) == 20);
    CHECK(w.total(stat::refreshes) == 1);
    who[0]->take_refresh().fulfil("new");
    CHECK(w.stored_value("apple") == "new");
}

TEST_CASE("without luck nobody refreshes early; without a soft expiry nobody ever does") {
    fill_policy p = soft;
    p.early = 1.0;
    world w(1, p);
    w.at(0).fetch("apple").take().fulfil("old");
    w.always(1.0);
    w.advance(9'999);
    CHECK(!refreshes(w.at(0).fetch("apple", {.refresh = true})));

    world hard(1, {.ttl_ms = 10'000, .jitter = 0, .early = 10});
    hard.at(0).fetch("apple").take().fulfil("old");
    hard.always(1e-300);
    hard.advance(9'999);
    CHECK(!refreshes(hard.at(0).fetch("apple", {.refresh = true})));
}

TEST_CASE("a margin too small for two loads is told once, and counted each time") {
    world w(1, {.ttl_ms = 10'000, .soft_ttl_ms = 9'500, .jitter = 0});
    host& h = w.at(0);
    w.core(0).told.watch(h.queue, static_cast<std::uint32_t>(notice::margin), 5);
    for (int i = 0; i < 3; ++i) {
        load made = h.fetch("key" + std::to_string(i)).take();
        w.advance(300);
        made.fulfil("x");
    }
    CHECK(h.notices.size() == 1);
    CHECK(w.total(stat::soft_margin_small) == 3);
}

TEST_CASE("soft and hard expiry are jittered alike, within ten per cent") {
    world w(1, {.ttl_ms = 100'000, .soft_ttl_ms = 50'000});
    host& h = w.at(0);
    std::int64_t least = INT64_MAX;
    std::int64_t most = 0;
    for (int i = 0; i < 100; ++i) {
        const std::string key = "key" + std::to_string(i);
        h.put(key, "x");
        const auto hard = w.server->pttl(w.store_key(key)).value_or(0);
        const auto soft_in = w.stored(key)->soft_at - w.now();
        CHECK(std::abs(hard - 2 * soft_in) <= 2);
        least = std::min(least, hard);
        most = std::max(most, hard);
    }
    CHECK(least >= 100'000);
    CHECK(least < 102'000);
    CHECK(most > 108'000);
    CHECK(most <= 110'000);
}
