// SPDX-License-Identifier: MIT
// Ticks and ids, between processes whose clocks nobody asks.
#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

namespace {

constexpr tick_policy every_minute{60'000, 0, 0};

} // namespace

TEST_CASE("a tick is won once per slot of the server's time, by whoever asks first") {
    world w(3);
    w.server_ahead_ms = 1'000'000;
    for (int slot = 0; slot < 4; ++slot) {
        int won = 0;
        for (int node = 0; node < 3; ++node) {
            call& c = w.at(node).tick("nightly", every_minute);
            REQUIRE(c.ended());
            if (c.kind() == event_kind::tick) {
                ++won;
                auto run = c.take_tick();
                CHECK(run->slot() % 60'000 == 0);
                CHECK(run->fence() > 0);
                CHECK(w.at(node).done(*run, true).kind() == event_kind::done); // at once: the run was short
            } else {
                CHECK(c.kind() == event_kind::done);
                CHECK(c.code() == status::busy);
                CHECK(c.answer().why == reason::taken);
                CHECK(c.answer().ttl_left_ms > 0);
                CHECK(c.answer().ttl_left_ms <= 60'000);
            }
        }
        CHECK(won == 1);
        w.advance(60'000);
    }
    CHECK(w.total(stat::ticks) == 4);
}

TEST_CASE("a run that outlives its slot makes the next be skipped, and that is said") {
    world w(2);
    const tick_policy p{1'000, 0, 5'000};
    auto run = w.at(0).tick("nightly", p).take_tick();
    w.advance(1'500);
    call& c = w.at(1).tick("nightly", p);
    CHECK(c.code() == status::busy);
    CHECK(c.answer().why == reason::still_running);
    CHECK(w.at(0).done(*run, true).kind() == event_kind::done);
    CHECK(w.at(1).tick("nightly", p).kind() == event_kind::tick);
}

TEST_CASE("a runner that has died holds later slots up for at_most, and cannot end what is another's by then") {
    world w(2);
    const tick_policy p{1'000, 0, 3'000};
    auto run = w.at(0).tick("nightly", p).take_tick();
    w.advance(2'999);
    CHECK(w.at(1).tick("nightly", p).answer().why == reason::still_running);
    w.advance(2);
    auto next = w.at(1).tick("nightly", p).take_tick();
    CHECK(w.at(0).done(*run, true).code() == status::lost);
    CHECK(w.at(1).done(*next, true).kind() == event_kind::done);
}

TEST_CASE("undone, freed, never taken, closed: another host may take the slot") {
    world w(2);
    w.at(0).done(*w.at(0).tick("a", every_minute).take_tick(), false);
    CHECK(w.at(1).tick("a", every_minute).kind() == event_kind::tick);
    w.at(0).tick("b", every_minute).take_tick().reset();
    w.settle();
    CHECK(w.at(1).tick("b", every_minute).kind() == event_kind::tick);
    w.at(0).tick("c", every_minute).drop_events();
    w.settle();
    CHECK(w.at(1).tick("c", every_minute).kind() == event_kind::tick);
    auto held = w.at(0).tick("d", every_minute).take_tick();
    w.close(0, 1'000, w.at(0));
    CHECK(w.at(1).tick("d", every_minute).kind() == event_kind::tick);
    CHECK(w.at(0).done(*held, true).code() == status::lost);
}

TEST_CASE("a run is ended once") {
    world w(1);
    auto run = w.at(0).tick("nightly", every_minute).take_tick();
    CHECK(w.at(0).done(*run, true).kind() == event_kind::done);
    CHECK(w.at(0).done(*run, false).code() == status::lost);
    run.reset();
    w.settle();
    CHECK(w.at(0).tick("nightly", every_minute).code() == status::busy);
}

TEST_CASE("a tick whose reply was lost is asked for again with the same token, and is the same run") {
    world w(2);
    w.link(0).next(script_id::tick, fate::lose_reply);
    call& c = w.at(0).tick("nightly", every_minute);
    w.advance(250);
    REQUIRE(c.kind() == event_kind::tick);
    CHECK(w.link(0).count(script_id::tick) == 2);
    CHECK(w.at(1).tick("nightly", every_minute).code() == status::busy);
}

TEST_CASE("a tick that nobody answers is uncertain, and its slot is given back behind it") {
    world w(2);
    w.link(0).hold();
    call& c = w.at(0).tick("nightly", every_minute, 400);
    w.advance(400);
    CHECK(c.code() == status::uncertain);
    w.link(0).let_go();
    w.settle();
    CHECK(w.at(1).tick("nightly", every_minute).kind() == event_kind::tick);
}

TEST_CASE("a cancelled tick gives its slot back, whenever it was granted") {
    world w(2);
    w.link(0).hold();
    call& c = w.at(0).tick("nightly", every_minute);
    w.at(0).cancel(c);
    w.link(0).let_go();
    w.settle();
    CHECK(c.code() == status::cancelled);
    CHECK(w.at(1).tick("nightly", every_minute).kind() == event_kind::tick);
}

TEST_CASE("an end that is lost is told again; what the second copy finds is uncertain only if it is not ours") {
    world w(1);
    auto run = w.at(0).tick("nightly", every_minute).take_tick();
    w.link(0).next(script_id::tick_end, fate::lose_reply);
    call& c = w.at(0).done(*run, true);
    w.advance(250);
    CHECK(c.kind() == event_kind::done);
    auto other = w.at(0).tick("other", every_minute).take_tick();
    w.link(0).next(script_id::tick_end, fate::lose_reply);
    call& d = w.at(0).done(*other, false);
    w.advance(250);
    CHECK(d.code() == status::uncertain);
}

TEST_CASE("something that is no tick is a collision; a full store is unavailable, not busy") {
    world w(1);
    w.server->set(tick_key("stn", "nightly"), "hello", 5'000);
    CHECK(w.at(0).tick("nightly", every_minute).code() == status::collision);
    w.server->refuse_writes(true);
    CHECK(w.at(0).tick("other", every_minute).code() == status::unavailable);
    CHECK(w.at(0).once("order 7", 1'000).code() == status::unavailable);
}

TEST_CASE("once: the first claimant until the ttl, whoever it is") {
    world w(2);
    call& first = w.at(0).once("order 7", 60'000);
    CHECK(first.kind() == event_kind::done);
    CHECK(first.code() == status::ok);
    call& second = w.at(1).once("order 7", 60'000);
    CHECK(second.kind() == event_kind::done);
    CHECK(second.code() == status::busy);
    CHECK(w.at(0).once("order 7", 60'000).code() == status::busy); // not even the same process
    w.advance(60'000);
    CHECK(w.at(1).once("order 7", 60'000).code() == status::ok);
}

TEST_CASE("once: a lost reply is resolved by asking again; given up, the claim is taken back") {
    world w(2);
    w.link(0).next(script_id::once, fate::lose_reply);
    call& c = w.at(0).once("order 7", 60'000);
    w.advance(250);
    CHECK(c.code() == status::ok);
    w.link(0).hold();
    call& d = w.at(0).once("order 8", 60'000, 300);
    w.advance(300);
    CHECK(d.code() == status::uncertain);
    w.link(0).let_go();
    w.settle();
    CHECK(w.at(1).once("order 8", 60'000).code() == status::ok);
}

TEST_CASE("what a tick or an id may be asked for with is checked before anything is sent") {
    world w(1);
    host& h = w.at(0);
    CHECK(h.tick("nightly", {0, 0, 0}).code() == status::invalid_argument);
    CHECK(h.tick("nightly", {-1, 0, 0}).code() == status::invalid_argument);
    CHECK(h.tick("nightly", {1'000, 1'000, 0}).code() == status::invalid_argument);
    CHECK(h.tick("", every_minute).code() == status::invalid_argument);
    CHECK(h.once("x", 0).code() == status::invalid_argument);
    CHECK(h.once("x", INT64_MAX).code() == status::invalid_argument);
    CHECK(h.once(std::string(5'000, 'x'), 1'000).code() == status::too_large);
    CHECK(w.link(0).log().empty());
}
