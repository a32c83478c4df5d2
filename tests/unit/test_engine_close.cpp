// SPDX-License-Identifier: MIT
//
// The end of a client, in every phase of a flight.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

namespace {

struct phase {
    const char* name;
    std::function<void(world&, host&, std::vector<load>&)> reach;
};

const std::vector<phase>& phases() {
    static const std::vector<phase> all{
        {"nothing", [](world&, host&, std::vector<load>&) {}},
        {"looking",
         [](world& w, host& h, std::vector<load>&) {
             w.link(0).slow(50);
             h.fetch("apple");
             w.advance(10);
         }},
        {"waiting for a place",
         [](world&, host& h, std::vector<load>& held) {
             held.push_back(h.fetch("pear").take());
             h.fetch("apple");
         }},
        {"leasing",
         [](world& w, host& h, std::vector<load>&) {
             w.link(0).slow(50);
             h.fetch("apple");
             w.advance(60);
         }},
        {"waiting for another process",
         [](world& w, host& h, std::vector<load>& held) {
             held.push_back(w.at(1).fetch("apple").take());
             h.fetch("apple");
             w.advance(100);
         }},
        {"offered, and not read",
         [](world&, host& h, std::vector<load>&) {
             h.asleep = true;
             h.fetch("apple");
             h.fetch("apple");
         }},
        {"offered, read, and not taken", [](world&, host& h, std::vector<load>&) { h.fetch("apple"); }},
        {"loading",
         [](world&, host& h, std::vector<load>& held) {
             call& c = h.fetch("apple");
             h.fetch("apple");
             held.push_back(c.take());
         }},
        {"detached",
         [](world&, host& h, std::vector<load>& held) {
             call& c = h.fetch("apple");
             h.fetch("apple");
             held.push_back(c.take());
             h.invalidate("apple");
         }},
        {"overdue",
         [](world& w, host& h, std::vector<load>& held) {
             held.push_back(h.fetch("apple").take());
             w.advance(20'000);
         }},
        {"settling",
         [](world& w, host& h, std::vector<load>&) {
             call& c = h.fetch("apple");
             load made = c.take();
             w.link(0).next(script_id::fill, fate::vanish, -1);
             made.fulfil("red");
         }},
        {"refreshing",
         [](world& w, host& h, std::vector<load>& held) {
             h.put("apple", "old", {}, -1, 1);
             w.advance(1);
             held.push_back(h.fetch("apple", {.refresh = true}).take_refresh());
         }},
        {"forcing",
         [](world& w, host& h, std::vector<load>& held) {
             h.put("apple", "old");
             w.advance(1);
             held.push_back(h.fetch("apple", {.force = true}).take());
             h.fetch("apple", {.force = true});
         }},
        {"putting",
         [](world& w, host& h, std::vector<load>&) {
             w.link(0).next(script_id::put, fate::vanish, -1);
             h.put("apple", "red");
         }},
        {"invalidating",
         [](world& w, host& h, std::vector<load>&) {
             w.link(0).next(verb::del, fate::vanish, -1);
             h.invalidate("apple");
         }},
        {"loading without the store",
         [](world& w, host& h, std::vector<load>& held) {
             w.link(0).cut();
             held.push_back(h.fetch("apple").take());
         }},
    };
    return all;
}

const fill_policy policy{.ttl_ms = 60'000, .max_load_ms = 20'000, .jitter = 0, .early = 0, .max_loads = 1};

} // namespace

TEST_CASE("a client closed at once ends every operation in every phase, and leaves no lease") {
    for (const phase& p : phases()) {
        CAPTURE(p.name);
        world w(2, policy);
        host& h = w.at(0);
        std::vector<load> held;
        p.reach(w, h, held);
        h.asleep = false;
        host& closer = w.at(0, "closer");
        call& closed = w.close(0, 0, closer);
        CHECK(closed.kind() == event_kind::done);
        w.settle();
        CHECK(h.live_calls() == 0);
        for (const call& c : h.calls) {
            if (c.kind() == event_kind::error) CHECK((c.code() == status::closed || c.code() == status::timeout));
        }
        if (std::string(p.name) != "waiting for another process") {
            const auto e = w.stored("apple");
            CHECK((!e || e->kind != entry_kind::placeholder || std::string(p.name) == "settling"));
        }
        CHECK(w.core(0).closed());
        // what is answered after the end reaches nobody and breaks nothing
        for (load& l : held) {
            if (l.state() != lease::state::ended) l.fulfil("late");
        }
    }
}

TEST_CASE("who holds a load when the client closes is told, with the reason") {
    world w;
    host& h = w.at(0);
    call& c = h.fetch("apple");
    load made = c.take();
    w.close(0, 0, w.at(0, "closer"));
    CHECK(c.revoked() == reason::closed);
    CHECK(made.state() == lease::state::revoked);
    made.fulfil("red");
    CHECK(c.fill() == status::closed);
}

TEST_CASE("a closed client refuses everything") {
    world w;
    host& h = w.at(0);
    w.close(0, 0, h);
    CHECK(h.fetch("apple").refused == status::closed);
    CHECK(h.get("apple").refused == status::closed);
    CHECK(h.put("apple", "red").refused == status::closed);
    CHECK(h.invalidate("apple").refused == status::closed);
    const auto g = w.new_group(0);
    CHECK(h.join(*g, "job").refused == status::closed);
    CHECK(w.close(0, 0, h).kind() == event_kind::done);
    CHECK(w.close(0, 5'000, h).kind() == event_kind::done);
}

TEST_CASE("a graceful close refuses new work at once and waits for the loads") {
    world w(2);
    host& h = w.at(0);
    call& leader = h.fetch("apple");
    call& joined = h.fetch("apple");
    load made = leader.take();
    call& closed = w.close(0, 5'000, w.at(0, "closer"));
    CHECK(!closed.ended());
    CHECK(h.fetch("pear").refused == status::closed);
    w.advance(1'000);
    CHECK(!closed.ended());
    made.fulfil("red");
    CHECK(joined.value() == "red");
    CHECK(leader.fill() == status::ok);
    CHECK(closed.kind() == event_kind::done);
    CHECK(w.at(1).fetch("apple").value() == "red");
}

TEST_CASE("a graceful close ends at its deadline") {
    world w(2);
    host& h = w.at(0);
    call& leader = h.fetch("apple");
    call& joined = h.fetch("apple");
    load made = leader.take();
    call& closed = w.close(0, 2'000, w.at(0, "closer"));
    w.advance(1'999);
    CHECK(!closed.ended());
    w.advance(1);
    CHECK(closed.kind() == event_kind::done);
    CHECK(joined.code() == status::closed);
    CHECK(leader.revoked() == reason::closed);
    CHECK(w.at(1).fetch("apple").leads());
    made.free();
}

TEST_CASE("a graceful close of a client with nothing to do is done at once; those who only wait do not hold it up") {
    world w(2);
    CHECK(w.close(1, 5'000, w.at(1)).kind() == event_kind::done);
    world v(2);
    load made = v.at(0).fetch("apple").take();
    call& waiting = v.at(1).fetch("apple");
    call& closed = v.close(1, 5'000, v.at(1, "closer"));
    CHECK(closed.kind() == event_kind::done);
    CHECK(waiting.code() == status::closed);
    made.fulfil("red");
}

TEST_CASE("a second close joins the first, and a nearer deadline counts") {
    world w;
    host& h = w.at(0);
    load made = h.fetch("apple").take();
    call& first = w.close(0, 5'000, w.at(0, "a"));
    call& second = w.close(0, 1'000, w.at(0, "b"));
    w.advance(1'000);
    CHECK(first.kind() == event_kind::done);
    CHECK(second.kind() == event_kind::done);
    made.free();
}

TEST_CASE("a patient close that comes right after everything has ended is done at once") {
    world w;
    w.pause(0); // until both are in the inbox
    call& first = w.close(0, 0, w.at(0, "a"));
    call& second = w.close(0, 5'000, w.at(0, "b"));
    w.resume(0);
    CHECK(first.kind() == event_kind::done);
    CHECK(second.kind() == event_kind::done);
}

TEST_CASE("during a graceful close a running load may still fetch what it needs") {
    world w;
    host& h = w.at(0);
    call& leader = h.fetch("apple");
    load made = leader.take();
    const auto scope = made.scope();
    call& closed = w.close(0, 5'000, w.at(0, "closer"));
    call& inner = h.fetch("pear", {.within = scope});
    REQUIRE(inner.leads());
    inner.take().fulfil("ripe");
    CHECK(!closed.ended());
    CHECK(h.fetch("plum").refused == status::closed);
    made.fulfil("red");
    CHECK(leader.fill() == status::ok);
    CHECK(closed.kind() == event_kind::done);
    CHECK(h.fetch("plum", {.within = scope}).refused == status::closed);
}

TEST_CASE("fills and writes on their way are waited for by a graceful close") {
    world w(2);
    host& h = w.at(0);
    call& leader = h.fetch("apple");
    load made = leader.take();
    w.link(0).slow(100);
    made.fulfil("red");
    call& put = h.put("pear", "ripe");
    call& gone = h.invalidate("plum");
    call& closed = w.close(0, 5'000, w.at(0, "closer"));
    CHECK(!closed.ended());
    w.advance(100);
    CHECK(leader.fill() == status::ok);
    CHECK(put.kind() == event_kind::done);
    CHECK(gone.kind() == event_kind::done);
    CHECK(closed.kind() == event_kind::done);
}

TEST_CASE("a queue that closes ends its own operations and disturbs no other") {
    world w;
    host& leaving = w.at(0, "leaving");
    host& staying = w.at(0, "staying");
    call& leader = leaving.fetch("apple");
    call& here = leaving.fetch("apple");
    call& there = staying.fetch("apple");
    load made = leader.take();
    leaving.close();
    CHECK(here.code() == status::closed);
    CHECK(!there.ended());
    CHECK(leaving.fetch("pear").refused == status::closed);
    made.fulfil("red"); // a lease already taken stays good
    CHECK(there.value() == "red");
    CHECK(w.stored_value("apple") == "red");
}

TEST_CASE("a LEASE unread in a queue that closes goes to the next waiter of another queue") {
    world w;
    host& leaving = w.at(0, "leaving");
    host& staying = w.at(0, "staying");
    leaving.asleep = true;
    call& first = leaving.fetch("apple");
    call& same = leaving.fetch("apple");
    call& other = staying.fetch("apple");
    leaving.close();
    leaving.asleep = false;
    w.settle();
    CHECK(first.code() == status::closed);
    CHECK(same.code() == status::closed);
    REQUIRE(other.leads());
    other.take().fulfil("red");
    CHECK(w.link(0).count(script_id::lease) == 1);
}

TEST_CASE("the client ends with the last of its handles, even if nobody closes it") {
    world w(2);
    // the world's own destructor closes; here a cache outlives what was opened on it
    auto other = w.open(0, "stocks", {.ttl_ms = 60'000});
    call& c = w.at(0).fetch("apple", {.in = other.get()});
    other.reset();
    REQUIRE(c.leads());
    c.take().fulfil("red");
    CHECK(c.fill() == status::ok);
}
