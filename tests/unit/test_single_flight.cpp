// SPDX-License-Identifier: MIT
//
// single_flight by itself, without a loop.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/single_flight.hpp"

using namespace stn;

namespace {

using ticket = single_flight::ticket;

single_flight::visitor of(const std::shared_ptr<event_queue>& home, std::uint64_t tag, mono_ms deadline = forever_ms) {
    return {.home = home, .tag = tag, .deadline = deadline};
}

single_flight::entry on(std::string_view key) {
    return {{1, 0, {}, key}, true, true, true};
}

std::vector<std::uint64_t> tags(const callers& who) {
    std::vector<std::uint64_t> out;
    for (const caller& c : who) out.push_back(c.tag);
    return out;
}

struct bench {
    std::shared_ptr<single_flight> flights = single_flight::make();
    std::shared_ptr<event_queue> q = std::make_shared<event_queue>(1);
    std::shared_ptr<event_queue> r = std::make_shared<event_queue>(2);
};

} // namespace

TEST_CASE("the first caller leads, the others join, until the flight is answered") {
    bench b;
    const ticket first = b.flights->enter(on("a"), of(b.q, 1));
    CHECK(first.what == ticket::kind::leads);
    const ticket second = b.flights->enter(on("a"), of(b.q, 2));
    CHECK(second.what == ticket::kind::joined);
    CHECK(second.flight.id == first.flight.id);
    CHECK(b.flights->waiting(first.flight) == 2);
    CHECK(tags(b.flights->take_all(first.flight)) == std::vector<std::uint64_t>{1, 2});
    const ticket third = b.flights->enter(on("a"), of(b.q, 3));
    CHECK(third.what == ticket::kind::leads); // nobody joins what has been answered
    CHECK(third.flight.id != first.flight.id);
    b.flights->drop(first.flight);
    b.flights->take_all(third.flight);
    b.flights->drop(third.flight);
    CHECK(b.flights->live() == 0);
}

TEST_CASE("a caller that was answered cannot be cancelled, one that was cancelled cannot be answered") {
    bench b;
    const ticket first = b.flights->enter(on("a"), of(b.q, 1));
    const ticket second = b.flights->enter(on("a"), of(b.q, 2));
    CHECK(!b.flights->leave(second.op, b.r.get())); // another queue's number
    const auto left = b.flights->leave(second.op, b.q.get());
    REQUIRE(left);
    CHECK(left->who.tag == 2);
    CHECK(left->left == 1);
    CHECK(!b.flights->leave(second.op, b.q.get()));
    CHECK(tags(b.flights->take_all(first.flight)) == std::vector<std::uint64_t>{1});
    CHECK(!b.flights->leave(first.op, b.q.get()));
    b.flights->drop(first.flight);
}

TEST_CASE("whoever does not wait is told when the waiting begins, and refused from then on") {
    bench b;
    single_flight::visitor hasty = of(b.q, 2);
    hasty.no_wait = true;
    const ticket first = b.flights->enter(on("a"), of(b.q, 1));
    CHECK(b.flights->enter(on("a"), hasty).what == ticket::kind::joined);
    CHECK(tags(b.flights->set_busy(first.flight)) == std::vector<std::uint64_t>{2});
    CHECK(b.flights->enter(on("a"), hasty).what == ticket::kind::no_wait);
    CHECK(b.flights->enter(on("a"), of(b.q, 3)).what == ticket::kind::joined);
    CHECK(b.flights->set_busy(first.flight).empty());
    CHECK(tags(b.flights->take_all(first.flight)) == std::vector<std::uint64_t>{1, 3});
    b.flights->drop(first.flight);
}

TEST_CASE("an op finds its table again, from anywhere") {
    bench b;
    bench other;
    const ticket t = b.flights->enter(on("a"), of(b.q, 1));
    CHECK(single_flight::by_op(t.op) == b.flights);
    CHECK(single_flight::by_op(t.op) != other.flights);
    b.flights->take_all(t.flight);
    b.flights->drop(t.flight);
}

TEST_CASE("only the load that runs may answer, once") {
    bench b;
    const ticket t = b.flights->enter(on("a"), of(b.q, 1));
    b.flights->enter(on("a"), of(b.q, 2));
    const auto holder = b.flights->promote(t.flight, 1, nullptr);
    REQUIRE(holder);
    CHECK(holder->tag == 1);
    CHECK(!b.flights->answer_load(t.flight, 2));
    const auto who = b.flights->answer_load(t.flight, 1);
    REQUIRE(who);
    CHECK(tags(*who) == std::vector<std::uint64_t>{2});
    CHECK(!b.flights->answer_load(t.flight, 1));
    b.flights->drop(t.flight);
    CHECK(b.flights->live() == 0);
}

TEST_CASE("promotion takes the oldest, or the oldest of another queue; without any the flight is closed to joiners") {
    bench b;
    const ticket t = b.flights->enter(on("a"), of(b.q, 1));
    b.flights->enter(on("a"), of(b.q, 2));
    b.flights->enter(on("a"), of(b.r, 3));
    CHECK(b.flights->promote(t.flight, 1, b.q.get())->tag == 3);
    CHECK(!b.flights->promote(t.flight, 2, b.q.get())); // but still listed
    CHECK(b.flights->enter(on("a"), of(b.r, 4)).what == ticket::kind::joined);
    CHECK(b.flights->promote(t.flight, 2, nullptr)->tag == 1);
    CHECK(b.flights->promote(t.flight, 3, nullptr)->tag == 2);
    CHECK(b.flights->promote(t.flight, 4, nullptr)->tag == 4);
    CHECK(!b.flights->promote(t.flight, 5, nullptr));
    const ticket next = b.flights->enter(on("a"), of(b.q, 5));
    CHECK(next.what == ticket::kind::leads);
    b.flights->drop(t.flight);
    b.flights->take_all(next.flight);
    b.flights->drop(next.flight);
    CHECK(b.flights->live() == 0);
}

TEST_CASE("deadlines are swept, and the next one is told") {
    bench b;
    const ticket t = b.flights->enter(on("a"), of(b.q, 1, 100));
    CHECK(t.alarm == 100);
    const ticket later = b.flights->enter(on("a"), of(b.q, 2, 200));
    CHECK(!later.alarm); // somebody looks before that anyway
    const ticket sooner = b.flights->enter(on("a"), of(b.q, 3, 50));
    REQUIRE(sooner.alarm == 50);
    b.flights->drop(sooner.flight);
    mono_ms next = 0;
    CHECK(b.flights->sweep(t.flight, 49, next).empty());
    CHECK(next == 50);
    CHECK(tags(b.flights->sweep(t.flight, 100, next)) == std::vector<std::uint64_t>{1, 3});
    CHECK(next == 200);
    CHECK(b.flights->sweep(t.flight, 200, next).size() == 1);
    CHECK(next == forever_ms);
    CHECK(b.flights->unlist_if_empty(t.flight));
    b.flights->drop(t.flight);
}

TEST_CASE("an invalidation takes the key's flights off the list, counted once") {
    bench b;
    const ticket t = b.flights->enter(on("a"), of(b.q, 1));
    const ticket other = b.flights->enter(on("b"), of(b.q, 2));
    CHECK(b.flights->detach(1, "a") == 1);
    CHECK(b.flights->detach(1, "a") == 0);
    CHECK(b.flights->look(t.flight).detached);
    CHECK(!b.flights->look(other.flight).detached);
    const ticket anew = b.flights->enter(on("a"), of(b.q, 3));
    CHECK(anew.what == ticket::kind::leads);
    for (const auto& f : {t.flight, other.flight, anew.flight}) {
        b.flights->take_all(f);
        b.flights->drop(f);
    }
    CHECK(b.flights->live() == 0);
}

TEST_CASE("a queue's callers leave from everywhere at once") {
    bench b;
    std::vector<ticket> all;
    for (int i = 0; i < 40; ++i) {
        all.push_back(b.flights->enter(on("k" + std::to_string(i)), of(i % 2 == 0 ? b.q : b.r, 1)));
    }
    CHECK(b.flights->leave_queue(b.q.get()).size() == 20);
    CHECK(b.flights->leave_queue(b.q.get()).empty());
    for (const ticket& t : all) {
        b.flights->take_all(t.flight);
        b.flights->drop(t.flight);
    }
    CHECK(b.flights->live() == 0);
}

TEST_CASE("after close_all nobody enters, and nobody is left") {
    bench b;
    const ticket t = b.flights->enter(on("a"), of(b.q, 1));
    b.flights->enter(on("a"), of(b.q, 2));
    const ticket u = b.flights->enter(on("b"), of(b.q, 3));
    CHECK(b.flights->close_all().size() == 3);
    CHECK(b.flights->enter(on("a"), of(b.q, 4)).what == ticket::kind::closed);
    b.flights->drop(t.flight);
    b.flights->drop(u.flight);
    CHECK(b.flights->live() == 0);
}
