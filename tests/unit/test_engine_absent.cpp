// SPDX-License-Identifier: MIT
//
// "There is no such thing" is an answer that is kept.
#include <doctest/doctest.h>

#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

TEST_CASE("an absence is loaded once, shared, cached for absent_ttl, and then asked for again") {
    world w(2, {.ttl_ms = 60'000, .absent_ttl_ms = 5'000, .jitter = 0});
    host& h = w.at(0);
    call& leader = h.fetch("apple");
    call& joined = h.fetch("apple");
    call& elsewhere = w.at(1).fetch("apple");
    load made = leader.take();
    w.advance(100);
    made.absent();
    w.advance(1);
    CHECK(leader.fill() == status::ok);
    CHECK(joined.kind() == event_kind::absent);
    CHECK(joined.code() == status::absent);
    CHECK(elsewhere.kind() == event_kind::absent);
    CHECK(h.fetch("apple").kind() == event_kind::absent);
    CHECK(w.at(1).get("apple").kind() == event_kind::absent);
    CHECK(w.at(1).get("apple").answer().why == reason::none);
    w.advance(4'998);
    CHECK(h.fetch("apple").kind() == event_kind::absent);
    w.advance(1);
    CHECK(h.fetch("apple").leads());
}

TEST_CASE("an absence wakes waiters elsewhere at once, whatever the cache's codec") {
    for (const std::uint8_t codec : {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{2}}) {
        fill_policy p{.ttl_ms = 60'000};
        p.codec = codec;
        world w(2, p);
        load made = w.at(0).fetch("apple").take();
        call& elsewhere = w.at(1).fetch("apple");
        w.advance(30);
        made.absent();
        CHECK(elsewhere.kind() == event_kind::absent);
        CHECK(elsewhere.took_ms() == 30);
    }
}

TEST_CASE("an absence may carry its own ttl") {
    world w(1, {.ttl_ms = 60'000, .jitter = 0});
    w.at(0).fetch("apple").take().absent({.ttl_ms = 700});
    CHECK(w.server->pttl(w.store_key("apple")) == 700);
}

TEST_CASE("an absence is no miss and no empty value") {
    world w;
    host& h = w.at(0);
    CHECK(h.get("apple").answer().why == reason::miss);
    h.fetch("apple").take().fulfil("");
    CHECK(h.get("apple").kind() == event_kind::value);
    CHECK(h.fetch("apple").value().empty());
    h.invalidate("apple");
    h.fetch("apple").take().absent();
    CHECK(h.get("apple").kind() == event_kind::absent);
}

TEST_CASE("an absence ends by an invalidation or a put like a value") {
    world w;
    host& h = w.at(0);
    for (const bool stale : {false, true}) {
        h.fetch("apple").take().absent();
        h.invalidate("apple", stale);
        call& c = h.fetch("apple");
        REQUIRE(c.leads());
        c.take().absent();
        h.put("apple", "red");
        CHECK(h.fetch("apple").value() == "red");
        h.invalidate("apple");
    }
}

TEST_CASE("an absence is never soft-expired unless the loader says so") {
    world w(1, {.ttl_ms = 60'000, .soft_ttl_ms = 1'000, .jitter = 0});
    host& h = w.at(0);
    h.fetch("apple").take().absent();
    w.advance(2'000);
    call& c = h.fetch("apple", {.refresh = true});
    CHECK(c.kind() == event_kind::absent);
    CHECK(!c.stale());
    CHECK(c.count(event_kind::refresh) == 0);
}
