// SPDX-License-Identifier: MIT
//
// The caller for whom a load began goes away, and what becomes of the others.
#include <doctest/doctest.h>

#include <vector>

#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

TEST_CASE("a leader cancelled at any moment of a 300 ms load: one load, 49 answers, at 300 ms") {
    for (std::int64_t moment = 0; moment < 300; moment += 30) {
        CAPTURE(moment);
        world w;
        std::vector<call*> all;
        for (int i = 0; i < 50; ++i) all.push_back(&w.at(0, "host" + std::to_string(i % 5)).fetch("apple"));
        call& leader = w.leader();
        load made = leader.take();
        w.advance(moment);
        CHECK(made.detach() == 49);
        w.advance(300 - moment);
        made.fulfil("red");
        int answered = 0;
        for (const call* c : all) {
            if (c == &leader) continue;
            CHECK(c->value() == "red");
            CHECK(c->took_ms() == 300);
            ++answered;
        }
        CHECK(answered == 49);
        CHECK(leader.fill() == status::ok);
        CHECK(w.total(stat::loads) == 1);
        CHECK(w.link(0).count(script_id::lease) == 1);
    }
}

TEST_CASE("a leader cancelled before it leads, at any moment: one load, 49 answers") {
    for (std::int64_t moment = 0; moment <= 60; moment += 6) { // GET until 20, lease until 40
        CAPTURE(moment);
        world w;
        w.link(0).slow(20);
        host& h = w.at(0);
        std::vector<call*> all;
        for (int i = 0; i < 50; ++i) all.push_back(&h.fetch("apple"));
        w.advance(moment);
        call& first = *all.front();
        if (first.leads()) {
            CHECK(first.take().detach() == 49); // and it was stopped: nothing will ever come
            w.advance(60'000);
            for (const call* c : all) CHECK(c->ended());
            continue;
        }
        h.cancel(first);
        CHECK(first.code() == status::cancelled);
        w.advance(60);
        call& second = *all[1];
        REQUIRE(second.leads());
        load made = second.take();
        w.advance(300);
        made.fulfil("red");
        int answered = 0;
        for (const call* c : all) answered += c->kind() == event_kind::value ? 1 : 0;
        CHECK(answered == 48);
        CHECK(w.total(stat::loads) == 1);
        w.advance(100);
    }
}

TEST_CASE("detaching with nobody waiting gives the lease up in the same instant") {
    world w(2);
    load made = w.at(0).fetch("apple").take();
    CHECK(made.detach() == 0);
    CHECK(made.state() == lease::state::ended);
    CHECK(w.stored("apple") == std::nullopt);
    CHECK(w.at(1).fetch("apple").leads());
}

TEST_CASE("when those for whom a detached load went on have gone too, its holder is told: unwanted") {
    world w;
    host& h = w.at(0);
    call& leader = h.fetch("apple");
    call& waiter = h.fetch("apple");
    call& hasty = h.fetch("apple", {.deadline_ms = 200});
    load made = leader.take();
    CHECK(made.detach() == 2);
    h.cancel(waiter);
    CHECK(leader.revoked() == std::nullopt);
    w.advance(200);
    CHECK(hasty.code() == status::timeout);
    CHECK(leader.revoked() == reason::unwanted);
    CHECK(made.state() == lease::state::revoked);
    made.free();
    CHECK(w.stored("apple") == std::nullopt);
}

TEST_CASE("a load whose caller has not gone is never unwanted: its value is worth storing") {
    world w;
    host& h = w.at(0);
    call& leader = h.fetch("apple");
    call& waiter = h.fetch("apple");
    load made = leader.take();
    h.cancel(waiter);
    w.advance(300);
    CHECK(leader.revoked() == std::nullopt);
    made.fulfil("red");
    CHECK(leader.fill() == status::ok);
}

TEST_CASE("an unwanted load that goes on all the same is stored") {
    world w;
    host& h = w.at(0);
    call& leader = h.fetch("apple");
    call& waiter = h.fetch("apple");
    load made = leader.take();
    CHECK(made.detach() == 1);
    h.cancel(waiter);
    CHECK(leader.revoked() == reason::unwanted);
    call& late = h.fetch("apple"); // somebody wants it after all
    made.fulfil("red");
    CHECK(late.value() == "red");
    CHECK(leader.fill() == status::ok);
    CHECK(w.stored_value("apple") == "red");
}

TEST_CASE("a lease is answered, detached or freed once") {
    world w;
    host& h = w.at(0);
    call& leader = h.fetch("apple");
    call& waiter = h.fetch("apple");
    load made = leader.take();
    CHECK(made.detach() == 1);
    CHECK(made.detach() == 1);
    made.fulfil("red");
    CHECK(made.state() == lease::state::ended);
    made.free();
    CHECK(waiter.value() == "red");
    CHECK(w.stored_value("apple") == "red");
}
