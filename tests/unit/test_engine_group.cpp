// SPDX-License-Identifier: MIT
//
// Groups: single-flight without a cache.
#include <doctest/doctest.h>

#include <vector>

#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

TEST_CASE("one leads, the others get what it finishes with, and then it is over") {
    world w;
    const auto g = w.new_group(0);
    host& h = w.at(0);
    call& leader = h.join(*g, "job");
    CHECK(leader.kind() == event_kind::flight);
    CHECK(leader.op == 0);
    std::vector<call*> all;
    for (int i = 0; i < 10; ++i) all.push_back(&h.join(*g, "job"));
    w.advance(100);
    leader.take_run().finish("done");
    for (const call* c : all) {
        CHECK(c->value() == "done");
        CHECK(c->took_ms() == 100);
        CHECK(c->answer().shared);
    }
    call& next = h.join(*g, "job");
    CHECK(next.kind() == event_kind::flight);
    next.take_run().finish("again");
    CHECK(w.total(stat::flights) == 2);
    CHECK(w.total(stat::joins) == 10);
}

TEST_CASE("errors and absence are shared like values") {
    world w;
    const auto g = w.new_group(0);
    host& h = w.at(0);
    call& failing = h.join(*g, "job");
    call& joined = h.join(*g, "job");
    failing.take_run().finish("boom", status::load_failed);
    CHECK(joined.code() == status::load_failed);
    CHECK(joined.text() == "boom");
    call& absent = h.join(*g, "job");
    call& none = h.join(*g, "job");
    absent.take_run().finish("", status::absent);
    CHECK(none.kind() == event_kind::absent);
}

TEST_CASE("a leader that gives up hands the run to who has waited longest, again and again") {
    world w;
    const auto g = w.new_group(0);
    host& h = w.at(0);
    std::vector<call*> all;
    for (int i = 0; i < 5; ++i) all.push_back(&h.join(*g, "job"));
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(all[i]->kind() == event_kind::flight);
        CHECK(!all[i + 1]->ended());
        all[i]->take_run().free();
    }
    all[4]->take_run().finish("done");
    CHECK(h.join(*g, "job").kind() == event_kind::flight);
    CHECK(w.total(stat::promotions) == 4);
}

TEST_CASE("a waiter's deadline is its own; deadline 0 does not wait for a leader") {
    world w;
    const auto g = w.new_group(0);
    host& h = w.at(0);
    run job = h.join(*g, "job").take_run();
    CHECK(h.join(*g, "job", {.deadline_ms = 0}).code() == status::timeout);
    call& hasty = h.join(*g, "job", {.deadline_ms = 100});
    call& hastier = h.join(*g, "job", {.deadline_ms = 50});
    call& patient = h.join(*g, "job");
    w.advance(1'000'000);
    CHECK(hasty.code() == status::timeout);
    CHECK(hasty.took_ms() == 100);
    CHECK(hastier.took_ms() == 50);
    CHECK(!patient.ended()); // for ever
    job.finish("done");
    CHECK(patient.value() == "done");
}

TEST_CASE("cancelling touches one; cancelling all leaves the leader alone") {
    world w;
    const auto g = w.new_group(0);
    host& h = w.at(0);
    run job = h.join(*g, "job").take_run();
    call& a = h.join(*g, "job");
    call& b = h.join(*g, "job");
    h.cancel(a);
    CHECK(a.code() == status::cancelled);
    CHECK(!b.ended());
    h.cancel(b);
    CHECK(job.detach() == 0);
    CHECK(h.join(*g, "job").kind() == event_kind::flight);
}

TEST_CASE("detach says how many wait; with nobody the flight is over in the same instant") {
    world w;
    const auto g = w.new_group(0);
    host& h = w.at(0);
    run job = h.join(*g, "job").take_run();
    call& waiter = h.join(*g, "job");
    CHECK(job.detach() == 1);
    job.finish("done");
    CHECK(waiter.value() == "done");
}

TEST_CASE("forget: the next caller begins anew, who joined is served as before") {
    world w;
    const auto g = w.new_group(0);
    host& h = w.at(0);
    run job = h.join(*g, "job").take_run();
    call& before = h.join(*g, "job");
    CHECK(!g->forget("job"));
    call& anew = h.join(*g, "job");
    CHECK(anew.kind() == event_kind::flight);
    call& after = h.join(*g, "job");
    job.finish("old");
    CHECK(before.value() == "old");
    CHECK(!after.ended());
    anew.take_run().finish("new");
    CHECK(after.value() == "new");
    CHECK(!g->forget("nothing"));
    CHECK(g->forget("")->code == status::invalid_argument);
}

TEST_CASE("groups do not share keys, with each other or with caches") {
    world w;
    const auto g = w.new_group(0);
    const auto other = w.new_group(0);
    host& h = w.at(0);
    CHECK(h.join(*g, "job").kind() == event_kind::flight);
    CHECK(h.join(*other, "job").kind() == event_kind::flight);
    CHECK(h.fetch("job").leads());
}

TEST_CASE("a FLIGHT event freed unread, or in a queue that closes, goes on to the next") {
    world w;
    const auto g = w.new_group(0);
    host& leaving = w.at(0, "leaving");
    host& staying = w.at(0, "staying");
    run job = staying.join(*g, "job").take_run();
    leaving.asleep = true;
    call& first = leaving.join(*g, "job");
    call& second = staying.join(*g, "job");
    job.free(); // to `leaving`, which does not read it
    CHECK(!second.ended());
    leaving.close();
    leaving.asleep = false;
    w.settle();
    CHECK(first.code() == status::closed);
    REQUIRE(second.kind() == event_kind::flight);
    second.take_run().finish("done");
}

TEST_CASE("a client that closes ends the waiters of its groups; the leader may finish, for nobody") {
    world w;
    const auto g = w.new_group(0);
    host& h = w.at(0);
    run job = h.join(*g, "job").take_run();
    call& waiter = h.join(*g, "job", {.deadline_ms = 5'000});
    w.close(0, 0, w.at(0, "closer"));
    CHECK(waiter.code() == status::closed);
    job.finish("late");
    CHECK(h.join(*g, "job").refused == status::closed);
}
