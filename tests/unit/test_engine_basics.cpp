// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

TEST_CASE("a miss is loaded once, stored, and served from the store from then on") {
    world w(2);
    call& first = w.at(0).fetch("apple");
    REQUIRE(first.leads());
    load made = first.take();
    w.advance(300);
    made.fulfil("red");
    CHECK(first.fill() == status::ok);
    CHECK(w.stored_value("apple") == "red");
    call& second = w.at(0).fetch("apple");
    CHECK(second.value() == "red");
    CHECK(second.took_ms() == 0);
    call& elsewhere = w.at(1).fetch("apple");
    CHECK(elsewhere.value() == "red");
    CHECK(w.total(stat::loads) == 1);
}
