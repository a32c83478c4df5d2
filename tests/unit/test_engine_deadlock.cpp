// SPDX-License-Identifier: MIT
//
// Loads that wait for loads: circles are refused at once, everything else is not.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

TEST_CASE("a circle of any length is refused at once") {
    for (const std::size_t length : {1U, 2U, 3U, 10U}) {
        CAPTURE(length);
        world w;
        host& h = w.at(0);
        std::vector<load> loads;
        for (std::size_t i = 0; i < length; ++i) loads.push_back(h.fetch("key" + std::to_string(i)).take());
        for (std::size_t i = 0; i + 1 < length; ++i) {
            call& c = h.fetch("key" + std::to_string(i + 1), {.within = loads[i].scope()});
            CHECK(!c.ended());
            CHECK(c.refused == status::ok);
        }
        call& closing = h.fetch("key0", {.within = loads.back().scope()});
        CHECK(closing.refused == status::would_deadlock);
        for (std::size_t i = length; i-- > 0;) loads[i].fulfil("x");
    }
}

TEST_CASE("a circle over two clients of one process is refused too") {
    world w(2, {.ttl_ms = 60'000});
    const auto other = w.open(1, "stocks", {.ttl_ms = 60'000});
    load a = w.at(0).fetch("a").take();
    load b = w.at(1).fetch("b", {.in = other.get()}).take();
    call& waits = w.at(1).fetch("b", {.within = a.scope(), .in = other.get()});
    CHECK(!waits.ended());
    call& closing = w.at(0).fetch("a", {.within = b.scope()});
    CHECK(closing.refused == status::would_deadlock);
    b.fulfil("x");
    CHECK(waits.value() == "x");
    a.fulfil("x");
}

TEST_CASE("waiting for a lease that this very process holds is an edge to its flight") {
    fill_policy p{.ttl_ms = 60'000};
    p.coalesce = false; // the inner fetch has a flight of its own, and finds the placeholder
    world w(1, p);
    host& h = w.at(0);
    load made = h.fetch("apple").take();
    call& inner = h.fetch("apple", {.within = made.scope()});
    CHECK((inner.refused == status::would_deadlock || inner.code() == status::would_deadlock));
    CHECK(inner.ended());
    CHECK(inner.took_ms() == 0);
    made.fulfil("red");
}

TEST_CASE("an unrelated caller waits as usual, on the same thread or another") {
    world w;
    host& h = w.at(0);
    load made = h.fetch("apple").take();
    (void)made.scope();
    call& other = h.fetch("apple");
    CHECK(!other.ended());
    made.fulfil("red");
    CHECK(other.value() == "red");
}

TEST_CASE("the scope of a load that has ended is ignored") {
    world w;
    host& h = w.at(0);
    load made = h.fetch("apple").take();
    const auto scope = made.scope();
    made.fulfil("red");
    made.free();
    h.invalidate("apple");
    call& c = h.fetch("apple", {.within = scope});
    REQUIRE(c.leads());
    c.take().fulfil("new");
}

TEST_CASE("when the call that closed the way has ended, its edge is gone") {
    world w;
    host& h = w.at(0);
    load a = h.fetch("a").take();
    load b = h.fetch("b").take();
    call& waits = h.fetch("b", {.deadline_ms = 100, .within = a.scope()});
    CHECK(h.fetch("a", {.within = b.scope()}).refused == status::would_deadlock);
    w.advance(100);
    CHECK(waits.code() == status::timeout);
    call& now = h.fetch("a", {.within = b.scope()});
    CHECK(now.refused == status::ok);
    h.cancel(now);
    call& back = h.fetch("b", {.within = a.scope()});
    CHECK(back.refused == status::ok);
    b.fulfil("x");
    CHECK(back.value() == "x");
    a.fulfil("x");
}

TEST_CASE("promotion keeps the edges: a caller that comes from inside a load and leads another one") {
    world w;
    host& h = w.at(0);
    load a = h.fetch("a").take();
    load b = h.fetch("b").take();
    call& inner = h.fetch("b", {.within = a.scope()}); // a waits for b
    b.free();
    REQUIRE(inner.leads()); // and now loads b itself, inside a
    load promoted = inner.take();
    call& closing = h.fetch("a", {.within = promoted.scope()});
    CHECK(closing.refused == status::would_deadlock);
    promoted.fulfil("x");
    a.fulfil("x");
}

TEST_CASE("a leader that comes from inside a load is an edge from the start") {
    world w;
    host& h = w.at(0);
    load a = h.fetch("a").take();
    load b = h.fetch("b", {.within = a.scope()}).take();
    CHECK(h.fetch("a", {.within = b.scope()}).refused == status::would_deadlock);
    b.fulfil("x");
    a.fulfil("x");
}

TEST_CASE("hits are given to loads whatever they wait for") {
    world w;
    host& h = w.at(0);
    h.put("pear", "ripe");
    load made = h.fetch("apple").take();
    for (int i = 0; i < 5; ++i) CHECK(h.fetch("pear", {.within = made.scope()}).value() == "ripe");
    CHECK(h.get("apple", {.within = made.scope()}).answer().why == reason::miss);
    made.fulfil("red");
}

TEST_CASE("groups and caches make circles with each other") {
    world w;
    const auto g = w.new_group(0);
    host& h = w.at(0);
    run job = h.join(*g, "job").take_run();
    load made = h.fetch("apple", {.within = job.scope()}).take();
    CHECK(h.join(*g, "job", {.within = made.scope()}).refused == status::would_deadlock);
    made.fulfil("red");
    CHECK(h.join(*g, "job", {.within = job.scope()}).refused == status::would_deadlock);
    job.finish("done");
}

TEST_CASE("a circle over two processes ends by `wait`") {
    // Two worlds would be two processes; here the hosts simply do not say where their calls come from.
    world w(2, {.ttl_ms = 60'000, .wait_ms = 3'000});
    load a = w.at(0).fetch("a").take();
    load b = w.at(1).fetch("b").take();
    call& ab = w.at(0).fetch("b");
    call& ba = w.at(1).fetch("a");
    w.advance(3'000);
    CHECK(ab.code() == status::timeout);
    CHECK(ba.code() == status::timeout);
    a.free();
    b.free();
}

TEST_CASE("a fetch from inside a load needs no place among the running loads") {
    world w(1, {.ttl_ms = 60'000, .max_loads = 1});
    host& h = w.at(0);
    load outer = h.fetch("apple").take();
    call& stranger = h.fetch("pear", {.deadline_ms = 100});
    CHECK(!stranger.ended());
    call& inner = h.fetch("plum", {.within = outer.scope()});
    REQUIRE(inner.leads());
    inner.take().fulfil("blue");
    w.advance(100);
    CHECK(stranger.code() == status::overloaded);
    outer.fulfil("red");
}
