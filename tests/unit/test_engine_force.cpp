// SPDX-License-Identifier: MIT
//
// force: load although there is a value.
#include <doctest/doctest.h>

#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

namespace {

const fill_policy plain{.ttl_ms = 60'000, .jitter = 0};

} // namespace

TEST_CASE("a forced load replaces a fresh value, which stays readable until then") {
    world w(2, plain);
    w.at(0).put("apple", "old");
    w.advance(10);
    call& forced = w.at(0).fetch("apple", {.force = true});
    load made = forced.take();
    w.advance(300);
    CHECK(w.at(0).fetch("apple").value() == "old");
    CHECK(w.at(1).fetch("apple").value() == "old");
    made.fulfil("new");
    CHECK(forced.fill() == status::ok);
    CHECK(w.at(1).fetch("apple").value() == "new");
    CHECK(w.server->pttl(w.store_key("apple")) == 60'000);
}

TEST_CASE("one forced load runs and one waits per key: who forces meanwhile shares the waiting one") {
    world w(1, plain);
    host& h = w.at(0);
    h.put("apple", "old");
    w.advance(10);
    call& first = h.fetch("apple", {.deadline_ms = 60'000, .force = true});
    REQUIRE(first.leads());
    w.advance(10);
    std::vector<call*> others;
    for (int i = 0; i < 10; ++i) {
        others.push_back(&h.fetch("apple", {.deadline_ms = 60'000, .force = true}));
        w.advance(10);
    }
    for (const call* c : others) CHECK(!c->ended());
    first.take().fulfil("new"); // read before they called
    w.advance(500);
    call& second = w.leader();
    second.take().fulfil("newer");
    for (const call* c : others) CHECK((c == &second || c->value() == "newer"));
    CHECK(w.total(stat::loads) == 2);
    CHECK(w.stored_value("apple") == "newer");
}

TEST_CASE("a forced load elsewhere is waited for, and its value serves if it began after the call") {
    world w(2, plain);
    w.at(0).put("apple", "old");
    w.advance(10);
    call& first = w.at(0).fetch("apple", {.force = true});
    call& elsewhere = w.at(1).fetch("apple", {.deadline_ms = 60'000, .force = true});
    CHECK(!elsewhere.ended());
    load made = first.take();
    w.advance(300);
    made.fulfil("new");
    w.advance(500);
    CHECK((elsewhere.value() == "new" || elsewhere.leads()));
    if (elsewhere.leads()) elsewhere.take().free();
}

TEST_CASE("a forced load that fails leaves the value, which those who joined get in place of the error") {
    world w(1, plain);
    host& h = w.at(0);
    h.put("apple", "old");
    w.advance(10);
    w.link(0).slow(5);
    call& first = h.fetch("apple", {.force = true});
    call& joined = h.fetch("apple", {.force = true});
    w.advance(20);
    first.take().fail("no database");
    w.advance(20);
    CHECK(joined.value() == "old");
    CHECK(joined.stale());
    call& c = h.fetch("apple");
    w.advance(20);
    CHECK(c.value() == "old");
    CHECK(!c.stale());
    CHECK(w.total(stat::markers_error) == 0);
}

TEST_CASE("with nothing there force is a fetch") {
    world w(1, plain);
    host& h = w.at(0);
    call& c = h.fetch("apple", {.force = true});
    c.take().fulfil("red");
    CHECK(c.fill() == status::ok);
    CHECK(w.link(0).count(script_id::lease) == 1);
    CHECK(w.link(0).count(script_id::refresh) == 0);
}

TEST_CASE("an invalidation beats a forced load in progress") {
    for (const bool stale : {false, true}) {
        for (const int by : {0, 1}) {
            world w(2, plain);
            w.at(0).put("apple", "old");
            w.advance(10);
            call& forced = w.at(0).fetch("apple", {.force = true});
            load made = forced.take();
            w.at(by).invalidate("apple", stale);
            made.fulfil("older");
            CHECK((forced.fill() == status::refused || forced.fill() == status::lost));
            CHECK(w.stored_value("apple") == (stale ? std::optional<std::string>("old") : std::nullopt));
        }
    }
}

TEST_CASE("a put beats a forced load in progress") {
    world w(1, plain);
    host& h = w.at(0);
    h.put("apple", "old");
    w.advance(10);
    call& forced = h.fetch("apple", {.force = true});
    load made = forced.take();
    h.put("apple", "put");
    made.fulfil("older");
    CHECK(forced.fill() == status::refused);
    CHECK(w.stored_value("apple") == "put");
}
