// SPDX-License-Identifier: MIT
// What bit other people with locks, and what is promised here instead: the rows of the field notes that need no
// real server. Rows about exceptions, callbacks and forks are promises of the bindings and of tests/abi.
#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "protocol/lock_value.hpp"
#include "protocol/options.hpp"
#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

namespace {

lock_policy usual(std::int64_t ttl_ms = 10'000, std::int64_t wait_ms = 10'000) {
    lock_policy p;
    p.ttl_ms = ttl_ms;
    p.wait_ms = wait_ms;
    return p;
}

} // namespace

TEST_CASE(
    "redis-py, redis-semaphore, node-redlock: a lost acquire reply is resolved by token, not by waiting for oneself") {
    world w(1);
    w.link(0).next(script_id::acquire, fate::lose_reply);
    call& c = w.at(0).acquire("report", usual());
    w.advance(250);
    REQUIRE(c.kind() == event_kind::lock);
    CHECK(c.took_ms() == 250);
    CHECK(c.take_lock()->held());
}

TEST_CASE("the same, when every reply is lost: given up, released on the same connection, no orphan") {
    world w(2);
    w.link(0).every(fate::lose_reply);
    call& c = w.at(0).acquire("report", usual(10'000, 600));
    w.advance(600);
    CHECK(c.code() == status::uncertain);
    CHECK(w.server->peek(w.lock_key("report")) == std::nullopt);
    CHECK(w.at(1).acquire("report", usual(10'000, 0)).kind() == event_kind::lock);
    w.link(0).heal();
}

TEST_CASE("the same, when the connection has died: the release goes out on the next one") {
    world w(2);
    w.link(0).next(script_id::acquire, fate::lose_reply);
    call& c = w.at(0).acquire("report", usual(60'000, 600));
    w.link(0).cut();
    w.advance(600);
    CHECK(c.code() != status::ok);
    CHECK(w.server->peek(w.lock_key("report")));
    w.link(0).mend();
    w.advance(1'000);
    CHECK(w.server->peek(w.lock_key("report")) == std::nullopt);
}

TEST_CASE("Redisson#7367: not re-entrant, so a resent acquire counts nothing and one release ends it") {
    world w(1);
    w.link(0).next(script_id::acquire, fate::lose_reply, 2);
    call& c = w.at(0).acquire("report", usual());
    w.advance(500);
    auto lock = c.take_lock();
    CHECK(w.link(0).count(script_id::acquire) == 3);
    w.at(0).release(*lock);
    CHECK(w.server->peek(w.lock_key("report")) == std::nullopt);
}

TEST_CASE("redis-py asyncio: a late grant of a cancelled acquire is released by the core") {
    world w(1);
    w.link(0).slow(100);
    call& c = w.at(0).acquire("report", usual());
    w.advance(50);
    w.at(0).cancel(c);
    w.advance(500);
    CHECK(c.code() == status::cancelled);
    CHECK(w.server->peek(w.lock_key("report")) == std::nullopt);
}

TEST_CASE("node-redlock: held is a matter of the clock, also while nothing of ours runs") {
    world w(1);
    auto lock = w.at(0).acquire("report", usual(300)).take_lock();
    w.pause(0);
    w.advance(294);
    CHECK(lock->held());
    w.advance(1);
    CHECK(!lock->held());
    CHECK(lock->remaining_ms() == 0);
}

TEST_CASE("node-redlock: a host that does not read its queue keeps its lock: renewal lives on the core's thread") {
    world w(1);
    auto lock = w.at(0).acquire("report", usual(300)).take_lock();
    w.at(0).asleep = true;
    w.advance(10'000);
    CHECK(lock->held());
}

TEST_CASE("python-redis-lock: no failure ends the watchdog; the loss is told once, with its reason") {
    for (const char* text : {"LOADING x", "BUSY x", "READONLY x", "CLUSTERDOWN x", "MISCONF x", "ERR what", "OOM x"}) {
        world w(1);
        call& c = w.at(0).acquire("report", usual());
        auto lock = c.take_lock();
        w.link(0).next(script_id::renew, fate::refuse, 2, text);
        w.advance(30'000);
        CHECK_MESSAGE(lock->held(), text);
        CHECK(c.losses().empty());
        w.link(0).next(script_id::renew, fate::refuse, -1, text);
        w.advance(30'000);
        CHECK(!lock->held());
        CHECK(c.losses() == std::vector{reason::expired});
        w.link(0).heal();
    }
}

TEST_CASE("Redisson#4698: a loss is heard from the queue, from the handle, and by waiting for it") {
    world w(1);
    call& c = w.at(0).acquire("report", usual(1'000));
    auto lock = c.take_lock();
    CHECK(lock->wait_lost(0) == status::timeout);
    w.server->flush();
    w.advance(1'000);
    CHECK(c.losses() == std::vector{reason::deleted});
    CHECK(lock->at() == held_lock::state::lost);
    CHECK(lock->wait_lost(0) == status::ok);
}

TEST_CASE("Redisson#7272, RedLock.net#68: nothing is renewed once it is released") {
    world w(1);
    auto lock = w.at(0).acquire("report", usual(300)).take_lock();
    w.link(0).next(script_id::release, fate::vanish, -1);
    w.at(0).release(*lock);
    w.link(0).clear_log();
    w.advance(10'000);
    CHECK(w.link(0).count(script_id::renew) == 0);
    CHECK(w.server->peek(w.lock_key("report")) == std::nullopt); // by its ttl
    w.link(0).heal();
}

TEST_CASE("redis-semaphore#175, aioredlock: a lost lock is never created anew") {
    world w(1);
    auto lock = w.at(0).acquire("report", usual(300)).take_lock();
    w.server->del(w.lock_key("report"));
    w.advance(10'000);
    CHECK(w.server->peek(w.lock_key("report")) == std::nullopt);
    CHECK(!lock->held());
}

TEST_CASE("ShedLock, redbeat#127, RedisMutexTx: on no path is a foreign value renewed, replaced or deleted") {
    world w(1);
    for (const bool lost_first : {false, true}) {
        call& c = w.at(0).acquire("report", usual(300));
        auto lock = c.take_lock();
        w.server->set(w.lock_key("report"), "8f1d4c2a", 60'000);
        if (lost_first) w.advance(1'000);
        CHECK(w.at(0).renew(*lock).code() == (lost_first ? status::lost : status::not_mine));
        CHECK(w.at(0).release(*lock).code() == status::lost);
        lock.reset();
        w.settle();
        CHECK(w.server->peek(w.lock_key("report")) == "8f1d4c2a");
        CHECK(w.server->pttl(w.lock_key("report")).value() > 58'000);
        w.server->del(w.lock_key("report"));
    }
    auto lock = w.at(0).acquire("report", usual(30'000)).take_lock();
    w.server->set(w.lock_key("report"), "8f1d4c2a", 60'000);
    CHECK(w.at(0).release(*lock).code() == status::not_mine);
    CHECK(w.server->peek(w.lock_key("report")) == "8f1d4c2a");
}

TEST_CASE("rueidislock: a server clock that is hours ahead or behind neither grants a dead lock nor an endless one") {
    for (const std::int64_t ahead : {std::int64_t{7'200'000}, std::int64_t{0}}) {
        world w(2);
        w.server_ahead_ms = ahead;
        call& c = w.at(0).acquire("report", usual(1'000));
        auto lock = c.take_lock();
        CHECK(w.server->pttl(w.lock_key("report")) == 1'000);
        w.advance(5'000);
        CHECK(lock->held());
    }
}

TEST_CASE("Redisson#1763, #5070: a release between the question and the subscription is not missed") {
    world w(2);
    auto lock = w.at(0).acquire("report", usual()).take_lock();
    w.link(1).hold(); // the first acquire of node 1 is on its way, and so is all that follows
    call& c = w.at(1).acquire("report", usual());
    w.link(1).let_go(); // busy; it subscribes
    w.at(0).release(*lock);
    w.advance(80); // at the latest when its timer comes
    CHECK(c.kind() == event_kind::lock);
}

TEST_CASE("Redisson#1763: no message ever comes, and nobody hangs") {
    world w(2);
    w.server->refuse_publish(true);
    auto lock = w.at(0).acquire("report", usual()).take_lock();
    call& c = w.at(1).acquire("report", usual());
    w.advance(3'000);
    w.at(0).release(*lock);
    w.advance(201);
    CHECK(c.kind() == event_kind::lock);
}

TEST_CASE("a holder that crashes is waited for no longer than its ttl") {
    world w(2);
    auto lock = w.at(0).acquire("report", usual(5'000)).take_lock();
    call& c = w.at(1).acquire("report", usual());
    w.crash(0);
    w.advance(5'012);
    CHECK(c.kind() == event_kind::lock);
}

TEST_CASE("redis-py#621: not getting it is an error, never a lock") {
    world w(2);
    auto lock = w.at(0).acquire("report", usual()).take_lock();
    call& c = w.at(1).acquire("report", usual(10'000, 100));
    w.advance(100);
    CHECK(c.kind() == event_kind::error);
    CHECK(c.code() == status::busy);
    CHECK(!c.text().empty());
}

TEST_CASE("redsync#124: a name that meets user data is a collision, and keys of caches and locks never meet") {
    world w(1);
    w.server->set_list(w.lock_key("report"), 60'000);
    CHECK(w.at(0).acquire("report", usual()).code() == status::collision);
    w.at(0).fetch("prices").take().fulfil("red");
    CHECK(w.at(0).acquire("prices", usual()).kind() == event_kind::lock);
}

TEST_CASE("redlock-rb#139, memolock#5: a ttl is a whole number of milliseconds within its bounds, or refused") {
    for (const char* bad :
         {"{}", R"({"ttl": 30})", R"({"ttl_ms": 0})", R"({"ttl_ms": -1})", R"({"ttl_ms": 1.5})", R"({"ttl_ms": "30s"})",
          R"({"ttl_ms": 9223372036854775808})", R"({"ttl": "0s"})", R"({"ttl": "eleven years"})", R"({"ttl_ms": NaN})",
          R"({"ttl_ms": null})", R"({"ttl": "30s", "ttl_ms": 30})"}) {
        const auto read = read_lock_options(bad);
        REQUIRE_MESSAGE(!read, bad);
        CHECK_MESSAGE(read.failure().code == status::invalid_argument, bad);
    }
    const auto good = read_lock_options(
        R"({"ttl": "30s", "wait": "forever", "max_hold": "1h", "renew": false, "label": "me", "key": "their:lock"})");
    REQUIRE(good);
    CHECK(good->ttl_ms == 30'000);
    CHECK(good->wait_ms == forever_ms);
    CHECK(good->max_hold_ms == 3'600'000);
    CHECK(!good->renew);
    CHECK(good->label == "me");
    CHECK(good->key == "their:lock");
    CHECK(read_lock_options(R"({"ttl": "30s", "tll": 1})").failure().code == status::unknown_option);
    CHECK(read_lock_options(R"({"ttl": "30s", "label": ")" + std::string(65, 'x') + R"("})").failure().code ==
          status::invalid_argument);
    CHECK(!read_tick_options(R"({"offset": "1s"})"));
    CHECK(!read_tick_options(R"({"every": "1s", "offset": "1s"})"));
    CHECK(read_tick_options(R"({"every": "24h", "offset": "2h", "at_most": "1h"})")->offset_ms == 7'200'000);
}

TEST_CASE("another library's lock on the same key is respected, and ours by it: `key` names it literally") {
    world w(1);
    lock_policy p = usual(10'000, 0);
    p.key = "their:lock";
    w.server->set("their:lock", "8f1d4c2a", 700); // SET their:lock 8f1d4c2a NX PX 700
    CHECK(w.at(0).acquire("report", p).code() == status::busy);
    w.advance(700);
    auto lock = w.at(0).acquire("report", p).take_lock();
    CHECK(w.server->peek("their:lock"));
    CHECK(w.server->pttl("their:lock") == 10'000);
}

TEST_CASE("a foreign lock without a TTL is busy with the reason no_ttl, polled, noticed once, never deleted") {
    world w(1);
    w.may_hold_forever = true;
    w.core(0).told.watch(w.at(0).queue, static_cast<std::uint32_t>(notice::log), 7);
    w.server->set(w.lock_key("report"), "for ever", std::nullopt);
    call& c = w.at(0).acquire("report", usual(10'000, 2'000));
    w.advance(2'000);
    CHECK(c.code() == status::busy);
    CHECK(c.answer().why == reason::no_ttl);
    CHECK(w.link(0).count(script_id::acquire) > 5);
    CHECK(w.link(0).count(script_id::acquire) < 40);
    CHECK(w.at(0).notices.size() == 1);
    CHECK(w.at(0).acquire("report", usual(10'000, 0)).answer().why == reason::no_ttl);
    CHECK(w.at(0).notices.size() == 1); // however often somebody asks
    CHECK(w.server->peek(w.lock_key("report")) == "for ever");
    w.server->del(w.lock_key("report"));
    w.at(0).acquire("report", usual()).take_lock().reset();
    w.settle();
    w.server->set(w.lock_key("report"), "for ever", std::nullopt);
    CHECK(w.at(0).acquire("report", usual(10'000, 0)).code() == status::busy);
    CHECK(w.at(0).notices.size() == 2); // it was well meanwhile
}

TEST_CASE("a store that is full: what is held is renewed and released, and an acquire is unavailable, not busy") {
    world w(1);
    auto lock = w.at(0).acquire("report", usual(1'000)).take_lock();
    w.server->refuse_writes(true);
    w.advance(5'000);
    CHECK(lock->held());
    CHECK(w.at(0).acquire("other", usual()).code() == status::unavailable);
    CHECK(w.at(0).release(*lock).kind() == event_kind::done);
}

TEST_CASE("a server that stands still for less than the ttl costs nobody his lock") {
    world w(1);
    auto lock = w.at(0).acquire("report", usual(3'000)).take_lock();
    w.link(0).hold();
    w.advance(1'800);
    w.link(0).let_go();
    w.advance(5'000);
    CHECK(lock->held());
}

TEST_CASE("a resent release that finds nothing is uncertain, not somebody else's") {
    world w(1);
    auto lock = w.at(0).acquire("report", usual()).take_lock();
    w.link(0).next(script_id::release, fate::lose_reply);
    call& c = w.at(0).release(*lock);
    w.advance(250);
    CHECK(c.code() == status::uncertain);
    CHECK(w.server->peek(w.lock_key("report")) == std::nullopt);
}
