// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/timer_queue.hpp"
#include "support/chance.hpp"

using namespace stn;

namespace {

struct named final : timer {
    explicit named(char n = '?') : name(n) {}
    void due(mono_ms /*now*/) override {}
    char name;
};

std::string popped(timer_queue& q, mono_ms now) {
    std::string out;
    while (timer* t = q.pop(now)) out += static_cast<named*>(t)->name;
    return out;
}

} // namespace

TEST_CASE("timers come due in the order of their moments, and none before it") {
    timer_queue q;
    named a('a'), b('b'), c('c');
    q.set(b, 20);
    q.set(c, 30);
    q.set(a, 10);
    CHECK(q.next_ms() == 10);
    CHECK(popped(q, 9).empty());
    CHECK(popped(q, 20) == "ab");
    CHECK(popped(q, 29).empty());
    CHECK(popped(q, 1'000) == "c");
    CHECK(q.next_ms() == forever_ms);
    CHECK(q.size() == 0);
}

TEST_CASE("timers of one moment come in the order in which they were armed") {
    timer_queue q;
    std::vector<std::unique_ptr<named>> all;
    std::string order;
    for (char n = 'a'; n <= 'z'; ++n) {
        order += n;
        q.set(*all.emplace_back(std::make_unique<named>(n)), 7);
    }
    CHECK(popped(q, 7) == order);
}

TEST_CASE("a timer that is moved counts as armed at that time") {
    timer_queue q;
    named a('a'), b('b'), c('c');
    q.set(a, 5);
    q.set(b, 5);
    q.set(c, 5);
    q.set(a, 6);
    q.set(a, 5);
    CHECK(popped(q, 5) == "bca");
}

TEST_CASE("arming a timer for the moment it has does not cost it its place") {
    timer_queue q;
    named a('a'), b('b');
    q.set(a, 5);
    q.set(b, 5);
    q.set(a, 5);
    CHECK(popped(q, 5) == "ab");
}

TEST_CASE("a disarmed timer never comes, however often it is disarmed") {
    timer_queue q;
    named a('a'), b('b');
    q.set(a, 5);
    q.set(b, 6);
    q.cancel(a);
    q.cancel(a);
    q.set(a, forever_ms);
    CHECK(q.size() == 1);
    CHECK(popped(q, 10) == "b");
    q.cancel(b);
    CHECK(popped(q, 10).empty());
}

TEST_CASE("a timer may be armed again from its own moment on") {
    timer_queue q;
    named a('a');
    q.set(a, 5);
    REQUIRE(q.pop(5) == &a);
    q.set(a, 5);
    CHECK(q.pop(5) == &a);
    CHECK(q.pop(5) == nullptr);
}

TEST_CASE("ten thousand random moves leave the timers in order") {
    timer_queue q;
    test::test_draws chance;
    std::vector<std::unique_ptr<named>> all;
    std::vector<mono_ms> at(200, forever_ms);
    for (int i = 0; i < 200; ++i) all.push_back(std::make_unique<named>());
    const auto below = [&](std::size_t n) {
        return std::min(n - 1, static_cast<std::size_t>(chance.unit() * static_cast<double>(n)));
    };
    for (int i = 0; i < 10'000; ++i) {
        const std::size_t n = below(200);
        at[n] = chance.unit() < 0.2 ? forever_ms : static_cast<mono_ms>(below(1'000));
        q.set(*all[n], at[n]);
        CHECK(q.next_ms() == *std::ranges::min_element(at));
    }
    mono_ms before = 0;
    while (q.size() > 0) {
        const mono_ms now = q.next_ms();
        CHECK(now >= before);
        before = now;
        timer* const t = q.pop(now);
        const auto it = std::ranges::find_if(all, [&](const auto& one) { return one.get() == t; });
        REQUIRE(it != all.end());
        CHECK(at[static_cast<std::size_t>(it - all.begin())] == now);
    }
}
