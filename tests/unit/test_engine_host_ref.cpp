// SPDX-License-Identifier: MIT
//
// Host references: the host keeps an object for exactly as many events as it was told of.
#include <doctest/doctest.h>

#include <vector>

#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

namespace {

// Events that carry `ref`, in the hands of the hosts.
std::uint32_t carried(world& w, std::uint64_t ref) {
    std::uint32_t n = 0;
    for (const call* c : w.calls([](const call&) { return true; })) {
        for (const event& e : c->got) n += e.host_ref == ref ? 1 : 0;
    }
    return n;
}

struct crowd {
    world w;
    host& loader = w.at(0, "loader");
    host& same = w.at(0, "same");      // the same scope
    host& other = w.at(0, "other", 2); // another
    host& scopeless = w.at(0, "none", 0);
    call& leader = loader.fetch("apple");
    load made = leader.take();
    std::vector<call*> in_same;

    crowd() {
        for (int i = 0; i < 10; ++i) in_same.push_back(&same.fetch("apple"));
        for (int i = 0; i < 5; ++i) other.fetch("apple");
        for (int i = 0; i < 3; ++i) scopeless.fetch("apple");
        for (int i = 0; i < 2; ++i) loader.fetch("apple");
    }
};

} // namespace

TEST_CASE("callers of the leader's scope get its reference, others the bytes alone") {
    crowd c;
    CHECK(c.made.fulfil("red", {.host_ref = 77}) == 12);
    CHECK(carried(c.w, 77) == 12);
    for (const call& one : c.other.calls) {
        CHECK(one.value() == "red");
        CHECK(one.answer().host_ref == 0);
    }
}

TEST_CASE("an error carries the reference like a value") {
    crowd c;
    CHECK(c.made.fail("boom", status::load_failed, 78) == 12);
    CHECK(carried(c.w, 78) == 12);
}

TEST_CASE("absence carries it too") {
    crowd c;
    CHECK(c.made.absent({.host_ref = 79}) == 12);
    CHECK(carried(c.w, 79) == 12);
}

TEST_CASE("a leader without a scope shares with nobody, without a reference there is nothing to count") {
    world w;
    host& h = w.at(0, "none", 0);
    load made = h.fetch("apple").take();
    h.fetch("apple");
    CHECK(made.fulfil("red", {.host_ref = 80}) == 0);
    CHECK(carried(w, 80) == 0);
    crowd c;
    CHECK(c.made.fulfil("red") == 0);
}

TEST_CASE("who was cancelled before is not counted, who is cancelled after is") {
    crowd c;
    c.same.cancel(*c.in_same[0]);
    c.same.cancel(*c.in_same[1]);
    c.same.asleep = true;
    CHECK(c.made.fulfil("red", {.host_ref = 81}) == 10);
    c.same.cancel(*c.in_same[2]); // decided already: nothing changes
    c.same.asleep = false;
    c.w.settle();
    CHECK(carried(c.w, 81) == 10);
    CHECK(c.in_same[2]->value() == "red");
}

TEST_CASE("closing the queue after the answer does not change the count: closed events keep the reference") {
    crowd c;
    c.same.asleep = true;
    CHECK(c.made.fulfil("red", {.host_ref = 82}) == 12);
    c.same.close();
    c.same.asleep = false;
    c.w.settle();
    CHECK(carried(c.w, 82) == 12);
    for (const call* one : c.in_same) CHECK(one->code() == status::closed);
}

TEST_CASE("closing the queue before the answer takes its callers out of the count") {
    crowd c;
    c.same.close();
    CHECK(c.made.fulfil("red", {.host_ref = 83}) == 2);
    CHECK(carried(c.w, 83) == 2);
    for (const call* one : c.in_same) CHECK(one->code() == status::closed);
}

TEST_CASE("closing the client before the answer takes everybody out of the count") {
    crowd c;
    call& closed = c.w.close(0, 0, c.loader);
    CHECK(closed.kind() == event_kind::done);
    CHECK(c.made.fulfil("red", {.host_ref = 84}) == 0);
    CHECK(carried(c.w, 84) == 0);
    for (const call* one : c.in_same) CHECK(one->code() == status::closed);
}

TEST_CASE("closing the client after the answer changes nothing") {
    crowd c;
    c.same.asleep = true;
    CHECK(c.made.fulfil("red", {.host_ref = 85}) == 12);
    c.w.close(0, 0, c.loader);
    c.same.asleep = false;
    c.w.settle();
    CHECK(carried(c.w, 85) == 12);
    for (const call* one : c.in_same) CHECK(one->value() == "red");
}

TEST_CASE("a graceful close waits for the load, and counts as ever") {
    crowd c;
    call& closed = c.w.close(0, 5'000, c.loader);
    c.w.advance(300);
    CHECK(!closed.ended());
    CHECK(c.made.fulfil("red", {.host_ref = 86}) == 12);
    CHECK(carried(c.w, 86) == 12);
    c.w.advance(1);
    CHECK(closed.kind() == event_kind::done);
}

TEST_CASE("who timed out before is not counted") {
    world w;
    host& h = w.at(0);
    load made = h.fetch("apple").take();
    call& hasty = h.fetch("apple", {.deadline_ms = 100});
    call& patient = h.fetch("apple");
    w.advance(100);
    CHECK(hasty.code() == status::timeout);
    CHECK(made.fulfil("red", {.host_ref = 87}) == 1);
    CHECK(carried(w, 87) == 1);
    CHECK(patient.value() == "red");
}

TEST_CASE("a promoted leader's reference is for the scope of its own queue") {
    crowd c;
    call& successor = *c.in_same[0];
    c.made.free();
    REQUIRE(successor.leads());
    CHECK(successor.take().fulfil("red", {.host_ref = 88}) == 11);
    CHECK(carried(c.w, 88) == 11);

    world w;
    load first = w.at(0, "a", 1).fetch("apple").take();
    call& foreign = w.at(0, "b", 2).fetch("apple");
    call& mine = w.at(0, "a", 1).fetch("apple");
    first.free();
    REQUIRE(foreign.leads());
    CHECK(foreign.take().fulfil("red", {.host_ref = 89}) == 0);
    CHECK(mine.value() == "red");
    CHECK(mine.answer().host_ref == 0);
}

TEST_CASE("a revoked load still counts exactly who gets its answer") {
    crowd c;
    c.w.at(0).invalidate("apple");
    call& after = c.same.fetch("apple"); // of the next flight
    CHECK(c.made.fulfil("old", {.host_ref = 90}) == 12);
    CHECK(carried(c.w, 90) == 12);
    CHECK(after.leads());
}

TEST_CASE("a load past max_load counts nobody") {
    world w(1, {.ttl_ms = 60'000, .max_load_ms = 2'000});
    host& h = w.at(0);
    load made = h.fetch("apple").take();
    call& c = h.fetch("apple", {.deadline_ms = 60'000});
    w.advance(2'000);
    CHECK(c.code() == status::timeout);
    CHECK(made.fulfil("late", {.host_ref = 91}) == 0);
    CHECK(carried(w, 91) == 0);
}

TEST_CASE("a group's flight counts in the same way") {
    world w;
    const auto g = w.new_group(0);
    host& h = w.at(0);
    host& other = w.at(0, "other", 2);
    call& leader = h.join(*g, "job");
    call& gone = h.join(*g, "job");
    h.join(*g, "job");
    host& closing = w.at(0, "closing");
    closing.join(*g, "job");
    closing.join(*g, "job");
    other.join(*g, "job");
    h.cancel(gone);
    closing.asleep = true;
    CHECK(leader.take_run().finish("done", status::ok, 92) == 3);
    closing.close();
    closing.asleep = false;
    w.settle();
    CHECK(carried(w, 92) == 3);
}
