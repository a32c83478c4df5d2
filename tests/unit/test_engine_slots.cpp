// SPDX-License-Identifier: MIT
//
// max_loads: places among the running loads.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

namespace {

fill_policy bounded(std::uint32_t max_loads) {
    fill_policy p{.ttl_ms = 60'000, .jitter = 0};
    p.max_loads = max_loads;
    return p;
}

} // namespace

TEST_CASE("no more loads run at one time than max_loads; a place that comes free wakes the next flight") {
    world w(1, bounded(2));
    host& h = w.at(0);
    std::vector<call*> all;
    for (int i = 0; i < 6; ++i) all.push_back(&h.fetch("key" + std::to_string(i)));
    for (std::size_t done = 0; done < 6; ++done) {
        const auto leading = std::ranges::count_if(all, [](const call* c) { return c->leads(); });
        CHECK(leading == static_cast<std::ptrdiff_t>(std::min<std::size_t>(6, done + 2)));
        CHECK(w.core(0).cache("prices", 0)->slots.running() <= 2);
        w.advance(100);
        all[done]->take().fulfil("x");
    }
    CHECK(w.core(0).cache("prices", 0)->slots.running() == 0);
}

TEST_CASE("a place comes free on every exit path of a load") {
    for (int how = 0; how < 6; ++how) {
        CAPTURE(how);
        world w(1, bounded(1));
        host& h = w.at(0);
        load made = h.fetch("apple").take();
        call& next = h.fetch("pear", {.deadline_ms = 600'000});
        if (how == 0) made.fulfil("x");
        if (how == 1) made.fail();
        if (how == 2) made.absent();
        if (how == 3) made.free();
        if (how == 4) CHECK(made.detach() == 0);
        if (how == 5) w.advance(60'000); // max_load: it moves to the pool of overdue loads
        CHECK(next.leads());
    }
}

TEST_CASE("no place by the deadline is `overloaded`; with deadline 0 at once") {
    world w(1, bounded(1));
    host& h = w.at(0);
    load made = h.fetch("apple").take();
    call& now = h.fetch("pear", {.deadline_ms = 0});
    CHECK(now.code() == status::overloaded);
    CHECK(now.took_ms() == 0);
    call& late = h.fetch("plum", {.deadline_ms = 300});
    w.advance(300);
    CHECK(late.code() == status::overloaded);
    CHECK(w.total(stat::overloaded) == 2);
    made.fulfil("x");
    CHECK(h.fetch("pear").leads());
}

TEST_CASE("a loser gives its place back: waiting for another process takes none") {
    world w(2, bounded(1));
    load elsewhere = w.at(0).fetch("apple").take();
    call& loser = w.at(1).fetch("apple");
    CHECK(!loser.ended());
    call& other = w.at(1).fetch("pear");
    REQUIRE(other.leads());
    other.take().fulfil("ripe");
    elsewhere.fulfil("red");
    w.advance(1);
    CHECK(loser.value() == "red");
}

TEST_CASE("hits take no place") {
    world w(1, bounded(1));
    host& h = w.at(0);
    h.put("apple", "red");
    load made = h.fetch("pear").take();
    CHECK(h.fetch("apple").value() == "red");
    made.free();
}

TEST_CASE("who stands in line looks beside, and takes a value that another process has stored") {
    world w(2, bounded(1));
    load made = w.at(0).fetch("apple").take();
    call& waiting = w.at(0).fetch("pear");
    w.advance(100);
    w.at(1).fetch("pear").take().fulfil("ripe");
    w.advance(500);
    CHECK(waiting.value() == "ripe");
    made.fulfil("red");
    CHECK(w.core(0).cache("prices", 0)->slots.running() == 0);
}

TEST_CASE("a flight in line whose callers have all gone leaves it") {
    world w(1, bounded(1));
    host& h = w.at(0);
    load made = h.fetch("apple").take();
    call& gone = h.fetch("pear");
    call& next = h.fetch("plum");
    h.cancel(gone);
    made.fulfil("red");
    CHECK(next.leads());
}

TEST_CASE("a place handed to a flight whose callers go in the same turn is not lost") {
    world w(1, bounded(1));
    host& h = w.at(0);
    load made = h.fetch("apple").take();
    call& gone = h.fetch("pear");
    w.pause(0); // both happen before the loop turns again
    made.fulfil("red");
    h.cancel(gone);
    w.resume(0);
    CHECK(w.core(0).cache("prices", 0)->slots.running() == 0);
    CHECK(h.fetch("plum").leads());
}

TEST_CASE("max_loads belongs to one cache of one client") {
    world w(2, bounded(1));
    const auto other = w.open(0, "stocks", bounded(1));
    CHECK(w.at(0).fetch("a").leads());
    CHECK(w.at(0).fetch("b", {.in = other.get()}).leads());
    CHECK(w.at(1).fetch("c").leads());
    CHECK(!w.at(1).fetch("d").ended());
}

TEST_CASE("a thousand flights through three places: each is loaded once, none is lost") {
    world w(1, bounded(3));
    host& h = w.at(0);
    std::vector<call*> all;
    for (int i = 0; i < 1'000; ++i) all.push_back(&h.fetch("key" + std::to_string(i), {.deadline_ms = 600'000}));
    std::size_t done = 0;
    while (done < all.size()) {
        const auto leading = w.calls([](const call& c) {
            return std::ranges::any_of(c.got, [](const event& e) { return e.kind == event_kind::lease && e.held; });
        });
        REQUIRE(!leading.empty());
        CHECK(leading.size() <= 3);
        for (call* c : leading) {
            if (done % 3 == 0) {
                c->take().fulfil("x");
            } else if (done % 3 == 1) {
                c->take().free();
            } else {
                c->drop_events();
                w.settle();
            }
            ++done;
        }
    }
    CHECK(w.core(0).cache("prices", 0)->slots.running() == 0);
}
