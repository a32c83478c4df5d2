// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "protocol/load_slots.hpp"

using namespace stn;

TEST_CASE("a bound of none is no bound") {
    load_slots<int> s;
    for (int i = 0; i < 1'000; ++i) CHECK(s.take(i));
    CHECK(s.running() == 1'000);
    int next = 0;
    CHECK(!s.give_back(next));
    CHECK(s.running() == 999);
}

TEST_CASE("no more loads run than there are places; the others stand in line") {
    load_slots<int> s(2);
    CHECK(s.take(1));
    CHECK(s.free());
    CHECK(s.take(2));
    CHECK(!s.free());
    CHECK(!s.take(3));
    CHECK(!s.take(4));
    CHECK(s.running() == 2);
}

TEST_CASE("a place given back goes to who has stood in line longest") {
    load_slots<int> s(1);
    CHECK(s.take(1));
    for (int i = 2; i <= 4; ++i) CHECK(!s.take(i));
    int next = 0;
    for (int i = 2; i <= 4; ++i) {
        REQUIRE(s.give_back(next));
        CHECK(next == i);
        CHECK(s.running() == 1);
    }
    CHECK(!s.give_back(next));
    CHECK(s.running() == 0);
}

TEST_CASE("who leaves the line is passed over") {
    load_slots<int> s(1);
    CHECK(s.take(1));
    for (int i = 2; i <= 4; ++i) CHECK(!s.take(i));
    s.leave_line(2);
    s.leave_line(99);
    int next = 0;
    REQUIRE(s.give_back(next));
    CHECK(next == 3);
}

TEST_CASE("who does not stand in line takes a place only if one is free") {
    load_slots<int> s(1);
    CHECK(s.try_take());
    CHECK(!s.try_take());
    int next = 0;
    CHECK(!s.give_back(next));
    CHECK(s.try_take());
    CHECK(s.running() == 1);
}

TEST_CASE("a narrower bound is reached by giving back, not by taking away") {
    load_slots<int> s(3);
    for (int i = 1; i <= 3; ++i) CHECK(s.take(i));
    CHECK(!s.take(4));
    s.set_bound(1);
    int next = 0;
    CHECK(!s.give_back(next));
    CHECK(!s.give_back(next));
    CHECK(s.running() == 1);
    REQUIRE(s.give_back(next));
    CHECK(next == 4);
    CHECK(s.running() == 1);
}
