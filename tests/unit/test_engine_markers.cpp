// SPDX-License-Identifier: MIT
//
// Error and pass markers: what a load that stored nothing leaves behind.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "protocol/commands.hpp"
#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

TEST_CASE("for error_ttl after a failed load the whole fleet is told load_failed, and does not try") {
    world w(3, {.ttl_ms = 60'000, .error_ttl_ms = 2'000});
    w.at(0).fetch("apple").take().fail("no such table");
    for (int n = 0; n < 3; ++n) {
        call& c = w.at(n).fetch("apple");
        CHECK(c.code() == status::load_failed);
        CHECK(c.text() == "no such table");
        CHECK(w.at(n).get("apple").code() == status::load_failed);
    }
    w.advance(1'999);
    CHECK(w.at(1).fetch("apple").code() == status::load_failed);
    w.advance(1);
    CHECK(w.at(1).fetch("apple").leads());
    CHECK(w.total(stat::loads_failed) == 1);
    CHECK(w.total(stat::markers_error) == 1);
}

TEST_CASE("50 processes waiting on a load that fails do not fail one after the other") {
    world w(50);
    for (int n = 0; n < 50; ++n) w.at(n).fetch("apple");
    load made = w.leader().take();
    w.advance(100);
    made.fail("no database");
    int failed = 0;
    for (const call* c : w.calls([](const call& one) { return !one.leads(); })) {
        CHECK(c->code() == status::load_failed);
        CHECK(c->took_ms() == 100);
        ++failed;
    }
    CHECK(failed == 49);
    CHECK(w.total(stat::loads_failed) == 1);
}

TEST_CASE("error_ttl 0: the next caller tries at once") {
    world w(2, {.ttl_ms = 60'000, .error_ttl_ms = 0});
    load made = w.at(0).fetch("apple").take();
    call& elsewhere = w.at(1).fetch("apple");
    made.fail();
    CHECK(elsewhere.leads());
}

TEST_CASE("only load_failed leaves a marker, all other failures just give the lease up") {
    for (const status code : {status::timeout, status::overloaded, status::would_deadlock, status::cancelled,
                              status::closed, status::internal, status::unavailable}) {
        world w(2);
        load made = w.at(0).fetch("apple").take();
        call& joined = w.at(0).fetch("apple");
        call& elsewhere = w.at(1).fetch("apple");
        made.fail("x", code);
        CHECK(joined.code() == code);
        CHECK(elsewhere.leads());
        CHECK(w.total(stat::markers_error) == 0);
    }
}

TEST_CASE("a value too large to store becomes a pass marker: others load for themselves and do not queue up") {
    world w(5, {.ttl_ms = 60'000, .max_value = 10});
    for (int n = 0; n < 5; ++n) w.at(n).fetch("apple", {.deadline_ms = 60'000});
    const std::string large(11, 'x');
    call& first = w.leader();
    call& joined = w.at(0).fetch("apple");
    load made = first.take();
    w.advance(300);
    made.fulfil(large);
    CHECK(first.fill() == status::too_large);
    if (&first == &w.at(0).calls.front()) CHECK(joined.value() == large);
    // the four others are told at once, and all begin
    const auto waiting = w.calls([&](const call& c) { return &c != &first && c.leads(); });
    CHECK(waiting.size() == 4);
    for (call* c : waiting) {
        CHECK(c->took_ms() == 300);
        c->take().fulfil(large);
        CHECK(c->fill() == status::too_large);
    }
    CHECK(w.stored("apple")->kind == entry_kind::pass);
    CHECK(w.total(stat::markers_pass) == 1);
}

TEST_CASE("under a pass marker callers of one process still share one load") {
    world w(2, {.ttl_ms = 60'000, .max_value = 10});
    w.at(0).fetch("apple").take().fulfil(std::string(11, 'x'));
    call& leader = w.at(1).fetch("apple");
    call& joined = w.at(1).fetch("apple");
    REQUIRE(leader.leads());
    CHECK(!joined.ended());
    leader.take().fulfil(std::string(12, 'y'));
    CHECK(joined.value() == std::string(12, 'y'));
    CHECK(w.total(stat::loads_alone) == 1);
}

TEST_CASE("a pass marker lasts a second; then a value that fits is stored again") {
    world w(1, {.ttl_ms = 60'000, .max_value = 10});
    host& h = w.at(0);
    h.fetch("apple").take().fulfil(std::string(11, 'x'));
    w.advance(999);
    call& passing = h.fetch("apple");
    passing.take().fulfil("small");
    CHECK(passing.fill() == status::lost);
    CHECK(w.stored("apple")->kind == entry_kind::pass);
    w.advance(1);
    call& next = h.fetch("apple");
    next.take().fulfil("small");
    CHECK(next.fill() == status::ok);
    CHECK(w.stored_value("apple") == "small");
}

TEST_CASE("a plain get of a pass marker is a miss") {
    world w(1, {.ttl_ms = 60'000, .max_value = 10});
    host& h = w.at(0);
    h.fetch("apple").take().fulfil(std::string(11, 'x'));
    CHECK(h.get("apple").answer().why == reason::miss);
}

TEST_CASE("a marker ends by DEL, invalidate, invalidate(stale), put or force") {
    for (int how = 0; how < 5; ++how) {
        for (const bool pass : {false, true}) {
            CAPTURE(how);
            world w(1, {.ttl_ms = 60'000, .error_ttl_ms = 30'000, .max_value = 10});
            host& h = w.at(0);
            load made = h.fetch("apple").take();
            if (pass) {
                made.fulfil(std::string(11, 'x'));
            } else {
                made.fail();
            }
            if (how == 0) (void)w.server->execute(del_command(w.store_key("apple")));
            if (how == 1) h.invalidate("apple");
            if (how == 2) h.invalidate("apple", true);
            if (how == 3) h.put("apple", "red");
            if (how == 4) h.fetch("apple", {.force = true}).take().fulfil("red");
            call& c = h.fetch("apple");
            if (how < 3) {
                REQUIRE(c.leads());
                c.take().fulfil("red");
                CHECK(c.fill() == status::ok);
            } else {
                CHECK(c.value() == "red");
            }
        }
    }
}

TEST_CASE("a marker that a full store refuses still frees the key, and waiters look at once") {
    world w(2);
    load made = w.at(0).fetch("apple").take();
    call& elsewhere = w.at(1).fetch("apple");
    w.server->refuse_writes(true);
    made.fail();
    // after the deletion the script may write: the marker stands
    CHECK((elsewhere.code() == status::load_failed || elsewhere.leads()));
    CHECK(elsewhere.took_ms() == 0);
}

TEST_CASE("an error text for the fleet is cut at 512 bytes, here it is whole") {
    world w(2);
    load made = w.at(0).fetch("apple").take();
    call& joined = w.at(0).fetch("apple");
    call& elsewhere = w.at(1).fetch("apple");
    made.fail(std::string(800, 'e'));
    CHECK(joined.text().size() == 800);
    CHECK(elsewhere.text().size() == 512);
}
