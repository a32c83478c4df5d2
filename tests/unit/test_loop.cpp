// SPDX-License-Identifier: MIT
//
// The loop without a thread: what a turn does, and in which order.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/loop.hpp"
#include "io/manual_clock.hpp"

using namespace stn;

namespace {

struct owner final : turned {
    void on_turn(mono_ms /*now*/) override { ++turns; }
    void on_mail(std::size_t events) override { mailed += events; }
    mono_ms next_external_ms() override { return external; }
    int turns = 0;
    std::size_t mailed = 0;
    mono_ms external = forever_ms;
};

struct note final : timer {
    note(std::string& to, char what) : log(to), name(what) {}
    void due(mono_ms /*now*/) override { log += name; }
    std::string& log;
    char name;
};

struct bench {
    std::shared_ptr<manual_clock> time = std::make_shared<manual_clock>();
    owner who;
    loop turns{time, who};
    std::string log;
};

event of_tag(std::uint64_t tag) {
    event e;
    e.kind = event_kind::done;
    e.tag = tag;
    return e;
}

} // namespace

TEST_CASE("tasks run in the order of posting, with the turn's own time") {
    bench b;
    mono_ms seen = 0;
    CHECK(b.turns.post([&](mono_ms) { b.log += 'a'; }));
    CHECK(b.turns.post_for_help([&](mono_ms) { b.log += 'b'; }));
    CHECK(b.turns.post([&](mono_ms now) {
        b.log += 'c';
        seen = now;
    }));
    CHECK(b.log.empty());
    b.turns.turn();
    CHECK(b.log == "abc");
    CHECK(seen == b.time->now_ms());
    b.turns.turn();
    CHECK(b.log == "abc");
}

TEST_CASE("a task posted by a task runs in the same turn") {
    bench b;
    b.turns.post([&](mono_ms) {
        b.log += 'a';
        b.turns.post([&](mono_ms) { b.log += 'b'; });
    });
    b.turns.turn();
    CHECK(b.log == "ab");
}

TEST_CASE("due timers run after the tasks, ties by the order of arming, the others wait") {
    bench b;
    note one(b.log, '1'), two(b.log, '2'), later(b.log, 'x');
    const mono_ms now = b.time->now_ms();
    b.turns.timers.set(later, now + 1);
    b.turns.timers.set(two, now);
    b.turns.timers.set(one, now);
    b.turns.post([&](mono_ms) { b.log += 'a'; });
    b.turns.turn();
    CHECK(b.log == "a21");
    CHECK(b.turns.next_due_ms() == now + 1);
    b.time->advance(1);
    b.turns.turn();
    CHECK(b.log == "a21x");
    CHECK(b.turns.next_due_ms() == forever_ms);
}

TEST_CASE("the outside is asked after every task batch and every timer") {
    bench b;
    note one(b.log, '1'), two(b.log, '2');
    b.turns.timers.set(one, b.time->now_ms());
    b.turns.timers.set(two, b.time->now_ms());
    b.turns.turn();
    CHECK(b.who.turns == 3);
}

TEST_CASE("what is to come from outside counts for the next due moment") {
    bench b;
    b.who.external = b.time->now_ms() + 7;
    CHECK(b.turns.next_due_ms() == b.time->now_ms() + 7);
    note soon(b.log, '1');
    b.turns.timers.set(soon, b.time->now_ms() + 3);
    CHECK(b.turns.next_due_ms() == b.time->now_ms() + 3);
}

TEST_CASE("events leave after the turn, in order, neighbours of one queue together") {
    bench b;
    const auto first = std::make_shared<event_queue>(0);
    const auto second = std::make_shared<event_queue>(0);
    b.turns.post([&](mono_ms) {
        for (std::uint64_t tag = 1; tag <= 3; ++tag) b.turns.out.add(first, of_tag(tag));
        b.turns.out.add(second, of_tag(4));
        b.turns.out.add(first, of_tag(5));
        event none;
        CHECK(first->next(0, none) == status::timeout); // not before the turn has ended
    });
    b.turns.turn();
    CHECK(b.who.mailed == 5);
    for (const std::uint64_t tag : {1U, 2U, 3U, 5U}) {
        event e;
        REQUIRE(first->next(0, e) == status::ok);
        CHECK(e.tag == tag);
    }
    event e;
    REQUIRE(second->next(0, e) == status::ok);
    CHECK(e.tag == 4);
}

TEST_CASE("what is buried in a turn is destroyed after it, without the turn lock") {
    bench b;
    struct grave {
        loop& turns;
        std::string& log;
        ~grave() {
            log += 'g';
            turns.turn(); // would wait for ever under the lock
        }
    };
    b.turns.post([&](mono_ms) {
        b.turns.out.bury(std::make_shared<grave>(b.turns, b.log));
        b.log += 'a';
    });
    b.turns.turn();
    CHECK(b.log == "ag");
}

TEST_CASE("help does a whole turn when nobody else does") {
    bench b;
    b.turns.post_for_help([&](mono_ms) { b.log += 'a'; });
    b.turns.help();
    CHECK(b.log == "a");
}

TEST_CASE("the last turn runs what was taken, and takes no more") {
    bench b;
    CHECK(b.turns.post([&](mono_ms) { b.log += 'a'; }));
    b.turns.finish();
    CHECK(b.log == "a");
    CHECK(!b.turns.post([&](mono_ms) { b.log += 'b'; }));
    CHECK(!b.turns.post_for_help([&](mono_ms) { b.log += 'b'; }));
    b.turns.turn();
    CHECK(b.log == "a");
}

TEST_CASE("an adjustable clock turns the loop from one due timer to the next") {
    bench b;
    note one(b.log, '1'), two(b.log, '2');
    const mono_ms now = b.time->now_ms();
    b.turns.timers.set(one, now + 10);
    b.turns.timers.set(two, now + 20);
    b.time->watch(b.turns);
    b.time->advance(15);
    CHECK(b.log == "1");
    b.time->advance(5);
    CHECK(b.log == "12");
    b.time->unwatch(b.turns);
}
