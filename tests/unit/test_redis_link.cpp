// SPDX-License-Identifier: MIT
//
// When a connection is tried again: by a clock that is told, at an address where there is nothing.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "io/redis_link.hpp"
#include "protocol/schedule.hpp"
#include "support/chance.hpp"

using namespace stn;
using namespace stn::test;

namespace {

struct nowhere final : redis_link_owner {
    nowhere() {
        settings.where = *parse_store_url("unix:///nowhere/at/all");
        chance.always = 1.0; // the longest pauses
    }
    void on_up(std::optional<server_ms>, std::int64_t, mono_ms) override { ++ups; }
    void on_down(const error& why, bool stood, mono_ms now) override {
        CHECK_FALSE(stood);
        downs.push_back(now);
        last = why;
    }
    void on_reply(reply, bool, mono_ms) override {}

    redis_settings settings;
    test_draws chance;
    std::vector<mono_ms> downs;
    error last;
    int ups = 0;
    redis_link link{settings, greeting_for::commands, chance, *this};
};

} // namespace

TEST_CASE("a link does nothing until it is opened") {
    nowhere n;
    n.link.turn(1'000);
    CHECK(n.downs.empty());
    CHECK(n.link.next_ms() == forever_ms);
    CHECK(n.link.idle());
}

TEST_CASE("pauses between attempts double from 50 ms to 5 s, and go on for ever") {
    nowhere n;
    mono_ms now = 1'000;
    n.link.open(now);
    n.link.turn(now);
    std::int64_t expected = 50;
    for (int attempt = 0; attempt < 50; ++attempt) {
        REQUIRE(n.downs.size() == static_cast<std::size_t>(attempt) + 1);
        CHECK(n.link.next_ms() == now + expected);
        n.link.turn(now + expected - 1);
        CHECK(n.downs.size() == static_cast<std::size_t>(attempt) + 1); // not before that
        now += expected;
        n.link.turn(now); // begins
        n.link.turn(now); // and fails
        expected = std::min<std::int64_t>(5'000, expected * 2);
    }
    CHECK(n.ups == 0);
    CHECK(n.last.code == status::unavailable);
}

TEST_CASE("pauses have full jitter") {
    nowhere n;
    n.chance.always = 0.0001;
    n.link.open(1'000);
    n.link.turn(1'000);
    CHECK(n.link.next_ms() <= 1'001);
}

TEST_CASE("a link settles until its first attempt has failed, and never after") {
    nowhere n;
    CHECK(n.link.settling());
    n.link.open(1'000);
    CHECK(n.link.settling());
    n.link.turn(1'000);
    CHECK_FALSE(n.link.settling());
    n.link.turn(n.link.next_ms());
    CHECK_FALSE(n.link.settling());
}

TEST_CASE("a closed link tries nothing any more") {
    nowhere n;
    n.link.open(1'000);
    n.link.turn(1'000);
    n.link.close(true);
    CHECK(n.link.next_ms() == forever_ms);
    n.link.turn(100'000);
    CHECK(n.downs.size() == 1);
    CHECK_FALSE(n.link.settling());
}

TEST_CASE("there is nothing to drop or write on a link that is not up") {
    nowhere n;
    n.link.open(1'000);
    n.link.drop(fail(status::unavailable, "no"), 1'000);
    n.link.write(1'000);
    n.link.turn(1'000);
    CHECK(n.downs.size() == 1);
}
