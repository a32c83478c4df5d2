// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "protocol/breaker.hpp"
#include "protocol/schedule.hpp"
#include "support/chance.hpp"

using namespace stn;
using test::test_draws;

namespace {

constexpr auto pass = breaker::verdict::pass;
constexpr auto refuse = breaker::verdict::refuse;

int failures_until_open(breaker& b, mono_ms now, draws& chance) {
    for (int n = 1; n < 100; ++n) {
        if (b.failed(now, chance)) return n;
    }
    return 0;
}

} // namespace

TEST_CASE("five failures in a row open the breaker, and only that") {
    test_draws chance;
    breaker b;
    for (int i = 0; i < 4; ++i) CHECK(!b.failed(0, chance));
    CHECK(!b.open());
    CHECK(b.ask(0) == pass);
    CHECK(!b.succeeded()); // it was not open
    for (int i = 0; i < 4; ++i) CHECK(!b.failed(0, chance));
    CHECK(b.ask(0) == pass);
    CHECK(b.failed(0, chance)); // told once
    CHECK(b.open());
    CHECK(!b.failed(0, chance));
    CHECK(b.ask(0) == refuse);
}

TEST_CASE("an open breaker stays open for half a second to a second") {
    for (const double u : {1e-9, 0.5, 1.0}) {
        test_draws chance;
        chance.always = u;
        breaker b;
        CHECK(failures_until_open(b, 1'000, chance) == 5);
        const auto pause = static_cast<mono_ms>(500 + 500 * u);
        CHECK(b.ask(1'000 + pause - 1) == refuse);
        CHECK(b.ask(1'000 + pause) == pass);
    }
}

TEST_CASE("then one command probes, the others wait for its outcome") {
    test_draws chance;
    chance.always = 1.0;
    breaker b;
    failures_until_open(b, 0, chance);
    CHECK(b.ask(1'000) == pass);
    CHECK(b.ask(1'000) == refuse);
    CHECK(b.ask(1'500) == refuse);
    CHECK(b.succeeded()); // told once
    CHECK(b.ask(1'500) == pass);
    CHECK(b.ask(1'500) == pass);
    CHECK(!b.open());
    CHECK(!b.succeeded());
}

TEST_CASE("a probe that fails doubles the pause, to ten seconds") {
    test_draws chance;
    chance.always = 1.0;
    breaker b;
    failures_until_open(b, 0, chance);
    mono_ms now = 0;
    for (const mono_ms pause : {1'000, 2'000, 4'000, 8'000, 10'000, 10'000, 10'000}) {
        CHECK(b.ask(now + pause - 1) == refuse);
        now += pause;
        REQUIRE(b.ask(now) == pass);
        CHECK(!b.failed(now, chance)); // still open: nobody is told again
    }
    CHECK(b.succeeded());
    CHECK(failures_until_open(b, now, chance) == 5);
    CHECK(b.ask(now + 999) == refuse);
    CHECK(b.ask(now + 1'000) == pass);
}

TEST_CASE("failures of what the breaker does not gate do not prolong the pause") {
    test_draws chance;
    chance.always = 1.0;
    breaker b;
    failures_until_open(b, 0, chance);
    for (mono_ms now = 100; now < 1'000; now += 100) CHECK(!b.failed(now, chance));
    CHECK(b.ask(1'000) == pass);
}

TEST_CASE("a probe that is never heard of lets another one go after a second") {
    test_draws chance;
    chance.always = 1.0;
    breaker b;
    failures_until_open(b, 0, chance);
    CHECK(b.ask(1'000) == pass);
    CHECK(b.ask(1'000 + schedule::probe_patience_ms - 1) == refuse);
    CHECK(b.ask(1'000 + schedule::probe_patience_ms) == pass);
}

TEST_CASE("a store that answers, but serves nobody, is asked again every second: the pause does not double") {
    test_draws chance;
    chance.always = 1.0;
    breaker b;
    for (int i = 0; i < 4; ++i) CHECK(!b.refused(0, chance));
    CHECK(b.refused(0, chance)); // told once
    mono_ms now = 0;
    for (int i = 0; i < 10; ++i) {
        CHECK(b.ask(now + 999) == refuse);
        now += 1'000;
        REQUIRE(b.ask(now) == pass);
        CHECK(b.ask(now) == refuse); // one at a time
        CHECK(!b.refused(now, chance));
    }
    CHECK(b.succeeded());
}

TEST_CASE("a store that comes back and loads its data ends the long pauses of its silence") {
    test_draws chance;
    chance.always = 1.0;
    breaker b;
    failures_until_open(b, 0, chance);
    mono_ms now = 0;
    for (const mono_ms pause : {1'000, 2'000, 4'000, 8'000}) {
        now += pause;
        REQUIRE(b.ask(now) == pass);
        CHECK(!b.failed(now, chance));
    }
    now += 10'000;
    REQUIRE(b.ask(now) == pass);
    CHECK(!b.refused(now, chance));
    CHECK(b.ask(now + 999) == refuse);
    CHECK(b.ask(now + 1'000) == pass);
}

TEST_CASE("silence and refusals in a row open it together") {
    test_draws chance;
    breaker b;
    for (int i = 0; i < 2; ++i) {
        CHECK(!b.failed(0, chance));
        CHECK(!b.refused(0, chance));
    }
    CHECK(b.failed(0, chance));
}

TEST_CASE("any answer of the store closes it") {
    test_draws chance;
    breaker b;
    failures_until_open(b, 0, chance);
    CHECK(b.ask(1) == refuse);
    CHECK(b.succeeded());
    CHECK(b.ask(1) == pass);
}
