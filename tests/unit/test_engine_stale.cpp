// SPDX-License-Identifier: MIT
//
// invalidate(stale): the value stays readable, as stale.
#include <doctest/doctest.h>

#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

namespace {

const fill_policy plain{.ttl_ms = 60'000, .jitter = 0};

} // namespace

TEST_CASE("a value marked stale is still served, as stale, and one caller refreshes it") {
    world w(2, plain);
    w.at(0).put("apple", "old");
    CHECK(w.at(0).invalidate("apple", true).kind() == event_kind::done);
    CHECK(w.stored("apple")->soft_at == 0);
    for (int n = 0; n < 2; ++n) {
        CHECK(w.at(n).fetch("apple").value() == "old");
        CHECK(w.at(n).fetch("apple").stale());
        CHECK(w.at(n).get("apple").stale());
    }
    call& c = w.at(1).fetch("apple", {.refresh = true});
    c.take_refresh().fulfil("new");
    CHECK(c.fill() == status::ok);
    CHECK(w.at(0).fetch("apple").value() == "new");
    CHECK(!w.at(0).fetch("apple").stale());
}

TEST_CASE("marking does not lengthen a value's life") {
    world w(1, plain);
    w.at(0).put("apple", "old");
    w.advance(10'000);
    w.at(0).invalidate("apple", true);
    CHECK(w.server->pttl(w.store_key("apple")) == 50'000);
}

TEST_CASE("who fetches after an invalidate(stale) was called never gets the value unmarked") {
    world w(1, plain);
    host& h = w.at(0);
    h.put("apple", "old");
    w.link(0).slow(20);
    w.advance(50);
    call& before = h.fetch("apple"); // its GET is on its way
    h.invalidate("apple", true);
    call& after = h.fetch("apple");
    w.advance(100);
    CHECK(before.value() == "old");
    CHECK(after.value() == "old");
    CHECK(after.stale());
    CHECK(w.total(stat::joins) == 0);
}

TEST_CASE("a load in progress cannot store what it read before the mark") {
    for (const int by : {0, 1}) {
        world w(2, plain);
        call& leader = w.at(0).fetch("apple");
        call& elsewhere = w.at(1).fetch("apple");
        load made = leader.take();
        w.at(by).invalidate("apple", true); // a placeholder cannot be marked: it is deleted
        CHECK((w.stored("apple") == std::nullopt || elsewhere.leads()));
        made.fulfil("old");
        CHECK(leader.fill() == status::refused);
        if (elsewhere.leads()) elsewhere.take().fulfil("new");
        w.advance(1);
        CHECK(w.stored_value("apple") != "old");
    }
}

TEST_CASE("a mark ends a refresh in progress, and the next refresh is of the new generation") {
    fill_policy p = plain;
    p.soft_ttl_ms = 10'000;
    p.early = 0;
    world w(2, p);
    w.at(0).put("apple", "old");
    w.advance(10'000);
    call& first = w.at(0).fetch("apple", {.refresh = true});
    load made = first.take_refresh();
    w.at(1).invalidate("apple", true);
    call& second = w.at(0).fetch("apple", {.refresh = true});
    REQUIRE(second.count(event_kind::refresh) == 1);
    made.fulfil("older");
    CHECK(first.fill() == status::refused);
    second.take_refresh().fulfil("new");
    CHECK(second.fill() == status::ok);
    CHECK(w.stored_value("apple") == "new");
}

TEST_CASE("markers and absences are deleted by a mark") {
    world w(1, plain);
    host& h = w.at(0);
    h.fetch("apple").take().fail();
    h.invalidate("apple", true);
    CHECK(w.stored("apple") == std::nullopt);
    h.fetch("pear").take().absent();
    h.invalidate("pear", true);
    CHECK(w.stored("pear") == std::nullopt);
    CHECK(h.invalidate("nothing", true).kind() == event_kind::done);
}

TEST_CASE("a mark that a full store refuses deletes instead") {
    world w(1, plain);
    host& h = w.at(0);
    h.put("apple", "old");
    w.server->refuse_writes(true);
    CHECK(h.invalidate("apple", true).kind() == event_kind::done);
    CHECK(w.stored("apple") == std::nullopt);
}

TEST_CASE("a mark whose reply is lost is sent again with a fresh generation") {
    world w(1, plain);
    host& h = w.at(0);
    h.put("apple", "old");
    w.link(0).clear_log();
    w.link(0).next(script_id::mark_stale, fate::lose_reply);
    call& c = h.invalidate("apple", true);
    w.advance(1'000);
    CHECK(c.kind() == event_kind::done);
    std::vector<std::string> generations;
    for (const auto& s : w.link(0).log()) {
        if (s.cmd.script == script_id::mark_stale) generations.push_back(s.cmd.args[0]);
    }
    REQUIRE(generations.size() == 2);
    CHECK(generations[0] != generations[1]);
    CHECK(w.stored("apple")->generation.str() == generations[1]);
}

TEST_CASE("waiters elsewhere are woken when a placeholder falls to a mark") {
    world w(2, plain);
    load made = w.at(0).fetch("apple").take();
    call& elsewhere = w.at(1).fetch("apple");
    w.advance(20);
    w.at(0).invalidate("apple", true);
    REQUIRE(elsewhere.leads());
    CHECK(elsewhere.took_ms() == 20);
    elsewhere.take().fulfil("new");
    made.fulfil("old");
    CHECK(w.stored_value("apple") == "new");
}
