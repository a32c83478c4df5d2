// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/duration.hpp"
#include "protocol/schedule.hpp"
#include "support/chance.hpp"

using namespace stn;
using test::test_draws;

namespace {

// Calls `make` a thousand times with chance, and at both its ends.
template <class Make> void sampled(test_draws& chance, Make&& make) {
    for (const double u : {std::nextafter(0.0, 1.0), 0.5, 1.0}) {
        chance.always = u;
        make();
    }
    chance.always.reset();
    for (int i = 0; i < 1'000; ++i) make();
}

struct span {
    std::int64_t least = INT64_MAX;
    std::int64_t most = INT64_MIN;
    void see(std::int64_t n) {
        least = std::min(least, n);
        most = std::max(most, n);
    }
};

} // namespace

TEST_CASE("jitter adds up to ttl x jitter and never takes any") {
    test_draws chance;
    span seen;
    sampled(chance, [&] { seen.see(schedule::jittered(10'000, 0, 0.1, chance).hard_ms); });
    CHECK(seen.least == 10'000);
    CHECK(seen.most == 11'000);
}

TEST_CASE("jitter stretches soft and hard alike") {
    test_draws chance;
    sampled(chance, [&] {
        const auto life = schedule::jittered(100'000, 50'000, 0.5, chance);
        CHECK(life.hard_ms >= 100'000);
        CHECK(life.hard_ms <= 150'000);
        CHECK(std::abs(life.hard_ms - 2 * life.soft_ms) <= 2);
    });
}

TEST_CASE("without jitter a ttl is what it says, the shortest and the longest too") {
    test_draws chance;
    for (const std::int64_t ttl : {std::int64_t{1}, std::int64_t{2}, std::int64_t{60'000}, max_duration_ms}) {
        sampled(chance, [&] { CHECK(schedule::jittered(ttl, 0, 0, chance).hard_ms == ttl); });
    }
    sampled(chance, [&] {
        const auto life = schedule::jittered(max_duration_ms, max_duration_ms - 1, 1.0, chance);
        CHECK(life.hard_ms >= max_duration_ms);
        CHECK(life.hard_ms <= 2 * max_duration_ms);
        CHECK(life.soft_ms < life.hard_ms);
    });
}

TEST_CASE("a soft time that is not below the hard one is none") {
    test_draws chance;
    CHECK(schedule::jittered(1'000, 1'000, 0, chance).soft_ms == 0);
    CHECK(schedule::jittered(1'000, 2'000, 0, chance).soft_ms == 0);
    CHECK(schedule::jittered(1'000, 0, 0, chance).soft_ms == 0);
    CHECK(schedule::jittered(1'000, 999, 0, chance).soft_ms == 999);
}

TEST_CASE("a lease lasts three loads, within one and ten seconds; ten when nothing is known") {
    const fill_policy automatic;
    CHECK(schedule::lease_length(automatic, 0) == 10'000);
    CHECK(schedule::lease_length(automatic, 1) == 1'000);
    CHECK(schedule::lease_length(automatic, 300) == 1'000);
    CHECK(schedule::lease_length(automatic, 400) == 1'200);
    CHECK(schedule::lease_length(automatic, 3'333) == 9'999);
    CHECK(schedule::lease_length(automatic, 60'000) == 10'000);
    fill_policy own;
    own.lease_ms = 700;
    CHECK(schedule::lease_length(own, 0) == 700);
    CHECK(schedule::lease_length(own, 60'000) == 700);
}

TEST_CASE("a lease counts as ours two milliseconds and one per cent less than it was asked for") {
    CHECK(schedule::safe_until(1'000, 10'000) == 1'000 + 10'000 - 102);
    CHECK(schedule::safe_until(1'000, 100) == 1'000 + 100 - 3);
    CHECK(schedule::safe_until(1'000, 1) < 1'001);
}

TEST_CASE("renewal starts at a third and is tried again after a twelfth") {
    CHECK(schedule::renew_after(9'000) == 3'000);
    CHECK(schedule::renew_retry(12'000) == 1'000);
    CHECK(schedule::renew_after(1) == 1);
    CHECK(schedule::renew_retry(1) == 1);
    // even three failed tries in a row leave a lease that is surely ours
    for (const std::int64_t lease : {100, 1'000, 10'000, 3'600'000}) {
        CHECK(schedule::renew_after(lease) + 3 * schedule::renew_retry(lease) < schedule::safe_until(0, lease));
    }
}

TEST_CASE("a waiter first looks at the expected finish or after 250 to 500 ms, whatever is sooner") {
    test_draws chance;
    span unknown;
    sampled(chance, [&] { unknown.see(schedule::first_look(0, 10'000, chance)); });
    CHECK(unknown.least >= 250);
    CHECK(unknown.least < 260);
    CHECK(unknown.most == 500);
    sampled(chance, [&] {
        CHECK(schedule::first_look(100, 10'000, chance) == 100);
        CHECK(schedule::first_look(400, 10'000, chance) <= 400);
        CHECK(schedule::first_look(400, 10'000, chance) >= 250);
        CHECK(schedule::first_look(-50, 10'000, chance) >= 250); // overdue: nothing is known
    });
}

TEST_CASE("later looks come after 25 to 75 ms, growing to 200") {
    test_draws chance;
    std::int64_t before = 0;
    for (int looks = 0; looks < 20; ++looks) {
        span seen;
        sampled(chance, [&] { seen.see(schedule::next_look(looks, 10'000, chance)); });
        CHECK(seen.least >= 25);
        CHECK(seen.most <= 200);
        CHECK(seen.most >= before);
        CHECK(seen.least < seen.most); // spread, so that waiters do not march in step
        before = seen.most;
        if (looks == 0) CHECK(seen.most == 75);
    }
    CHECK(before == 200);
}

TEST_CASE("a look comes just after the lease it waits for has run out, and never in less than 25 ms") {
    test_draws chance;
    sampled(chance, [&] {
        CHECK(schedule::first_look(0, 40, chance) == 41);
        CHECK(schedule::first_look(0, 0, chance) == 25);
        CHECK(schedule::first_look(1, 10'000, chance) == 25);
        CHECK(schedule::next_look(10, 30, chance) == 31);
        CHECK(schedule::next_look(0, 0, chance) == 25);
        for (int looks = 0; looks < 20; ++looks) CHECK(schedule::next_look(looks, -1, chance) >= 25);
    });
}

TEST_CASE("a caller waits ten seconds or two loads, unless the policy says otherwise") {
    fill_policy p;
    CHECK(schedule::default_wait(p, 0) == 10'000);
    CHECK(schedule::default_wait(p, 4'000) == 10'000);
    CHECK(schedule::default_wait(p, 40'000) == 80'000);
    p.wait_ms = 0;
    CHECK(schedule::default_wait(p, 40'000) == 0);
    p.wait_ms = 123;
    CHECK(schedule::default_wait(p, 40'000) == 123);
}

TEST_CASE("early refresh is never drawn without a soft time ahead, a load time or a beta") {
    test_draws chance;
    sampled(chance, [&] {
        CHECK(!schedule::early(0, 1'000, 0, 1.0, chance));
        CHECK(!schedule::early(0, 1'000, 300, 0, chance));
        CHECK(!schedule::early(0, 1'000'000'000, 300, 1.0, chance));
    });
    CHECK(schedule::early(1'000, 1'000, 300, 1.0, chance));
}

TEST_CASE("one load time before the soft expiry an early refresh is drawn with a chance of e^(-1/beta)") {
    for (const double beta : {0.5, 1.0, 2.0, 10.0}) {
        test_draws chance;
        constexpr int tries = 100'000;
        int drawn = 0;
        for (int i = 0; i < tries; ++i) drawn += schedule::early(0, 1'000, 1'000, beta, chance) ? 1 : 0;
        const double expected = std::exp(-1 / beta);
        const double sigma = std::sqrt(expected * (1 - expected) / tries);
        CHECK(std::abs(static_cast<double>(drawn) / tries - expected) < 4 * sigma);
    }
}

// Vattani, Chierichetti, Lowenstein, VLDB 2015: without any lease, those who draw while the first
// refresh still runs are e^(1/beta) on average, the first one counted.
TEST_CASE("a stampede of early refreshes has e^(1/beta) members on average") {
    constexpr server_ms soft = 100'000;
    constexpr std::int64_t load = 1'000;
    constexpr std::int64_t between_requests = 10;
    for (const double beta : {0.5, 1.0, 2.0}) {
        test_draws chance;
        constexpr int rounds = 4'000;
        std::int64_t members = 0;
        for (int i = 0; i < rounds; ++i) {
            server_ms first = soft;
            for (server_ms t = soft - static_cast<std::int64_t>(12'000 * beta); t < std::min(first + load, soft);
                 t += between_requests) {
                if (!schedule::early(t, soft, load, beta, chance)) continue;
                first = std::min(first, t);
                ++members;
            }
        }
        CHECK(static_cast<double>(members) / rounds == doctest::Approx(std::exp(1 / beta)).epsilon(0.08));
    }
}

TEST_CASE("a write is tried again after 5 to 200 ms, and after more at first than later never") {
    test_draws chance;
    std::int64_t before = 0;
    for (int attempt = 0; attempt < 50; ++attempt) {
        span seen;
        sampled(chance, [&] { seen.see(schedule::write_retry(attempt, chance)); });
        CHECK(seen.least >= 5);
        CHECK(seen.most <= 200);
        CHECK(seen.most >= before);
        before = seen.most;
    }
    CHECK(before == 200);
}

TEST_CASE("a command that was refused for now is sent again after 50 to 200 ms, or slowly: 100 ms to one second") {
    test_draws chance;
    for (int attempt = 0; attempt < 50; ++attempt) {
        span seen;
        sampled(chance, [&] { seen.see(schedule::refused_pause(attempt, false, chance)); });
        CHECK(seen.least >= 50);
        CHECK(seen.most <= 200);
    }
    std::int64_t before = 0;
    for (int attempt = 0; attempt < 50; ++attempt) {
        span seen;
        sampled(chance, [&] { seen.see(schedule::refused_pause(attempt, true, chance)); });
        CHECK(seen.least >= 100);
        CHECK(seen.most <= 1'000);
        CHECK(seen.most >= before);
        before = seen.most;
    }
    CHECK(before == 1'000);
}

TEST_CASE("the usual load time follows what is seen, and a load of nothing counts as one millisecond") {
    CHECK(schedule::average(0, 300) == 300);
    CHECK(schedule::average(0, 0) == 1);
    CHECK(schedule::average(300, 300) == 300);
    CHECK(schedule::average(1, 1) == 1);
    CHECK(schedule::average(400, 0) < 400);
    std::int64_t usual = 100;
    for (int i = 0; i < 30; ++i) usual = schedule::average(usual, 1'000);
    CHECK(usual > 950);
    CHECK(usual <= 1'000);
    for (int i = 0; i < 60; ++i) usual = schedule::average(usual, 10);
    CHECK(usual < 20);
    CHECK(usual >= 10);
}

TEST_CASE("whoever has seen as many releases as others wait through tries at once, the others a step later each") {
    CHECK(schedule::lock_try_after(7, 7) == 0);
    CHECK(schedule::lock_try_after(9, 7) == 0);
    CHECK(schedule::lock_try_after(7, 7.4) == 0); // a mean is not exact
    CHECK(schedule::lock_try_after(6, 7) == schedule::lock_step_ms);
    CHECK(schedule::lock_try_after(0, 7) == 7 * schedule::lock_step_ms);
    CHECK(schedule::lock_try_after(0, 0) == 0);
    CHECK(schedule::lock_try_after(0, schedule::lock_turn_least) == schedule::lock_step_ms);
    CHECK(schedule::lock_try_after(0, 1e9) == 50); // nobody waits for many who may not be there
}

TEST_CASE("what is believed of a turn follows what is told, whatever the order: with n who come back it is n - 1") {
    // Two are always quick and pass the lock to and fro three times for each turn of a slow third.
    double turn = 0;
    double sum = 0;
    for (int i = 0; i < 700; ++i) {
        const int round = i % 7;
        turn = schedule::lock_turn(turn, round == 6 ? 6 : round == 0 || round == 1 ? 2 : 1);
        if (i >= 350) sum += turn;
    }
    CHECK(sum / 350 > 1.7);
    CHECK(sum / 350 < 2.3);
}

TEST_CASE("one who had starved is no measure of the queue, and many are believed in soon") {
    CHECK(schedule::lock_turn(1, 1'000) <= 2);
    double turn = 0;
    for (int i = 0; i < 20; ++i) turn = schedule::lock_turn(turn, 31);
    CHECK(turn > 25);
    CHECK(turn <= 31);
    for (int i = 0; i < 20; ++i) turn = schedule::lock_turn(turn, 0);
    CHECK(schedule::lock_try_after(0, turn) == 0);
}
