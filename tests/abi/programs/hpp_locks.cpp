// SPDX-License-Identifier: MIT
// The promises of stanchion.hpp about locks, ticks and ids, over the shared library.
#include <chrono>
#include <functional>
#include <thread>

#include <stanchion/stanchion.hpp>

#include "check.h"

namespace {

using namespace std::chrono_literals;
using stanchion::lock;
using stanchion::try_lock;
using stanchion::try_tick;

const char* const shop = "memory://shop?clock=manual";

std::int32_t code_of(const std::function<void()>& f) {
    try {
        f();
    } catch (const stanchion::error& e) {
        return e.code();
    }
    return STN_OK;
}

void scopes() {
    const stanchion::client a(shop);
    const stanchion::client b(shop);
    std::int64_t first = 0;
    {
        const lock mine(a, "report", {.ttl = 30s});
        first = mine.fence();
        PROMISE(mine.held() && mine.state() == STN_LOCK_HELD, "a lock that was taken is held");
        PROMISE(mine.remaining() > 29s && mine.remaining() < 30s, "for its ttl and a margin less");
        PROMISE(first > 0 && std::string_view(mine.token()).size() == 32, "it has a fence and a token");
        PROMISE(!try_lock(b, "report", {.ttl = 30s}), "a try of another client is told no");
        PROMISE(code_of([&] { const lock again(b, "report", {.ttl = 30s, .wait = 0ms}); }) == STN_BUSY,
                "who does not get it in time is thrown busy");
    }
    a.advance(0);
    const auto next = try_lock(b, "report", {.ttl = 30s});
    PROMISE(next && next->held(), "the end of a scope releases");
    PROMISE(next && next->fence() > first, "the next grant has a larger fence");
}

void hands() {
    const stanchion::client c(shop);
    lock mine(c, "hands", {.ttl = 30s});
    const lock moved = std::move(mine);
    PROMISE(moved.held() && !mine.held() && mine.fence() == 0, "a lock moves; what was moved from is not held");
    moved.renew();
    moved.release();
    PROMISE(!moved.held() && moved.state() == STN_LOCK_RELEASED && moved.remaining() == 0ms,
            "what was released is not held");
    PROMISE(code_of([&] { moved.release(); }) == STN_LOST, "a second release says so");
    PROMISE(code_of([&] { moved.renew(); }) == STN_LOST, "and a renewal too");
    const lock left(c, "hands", {.ttl = 30s});
    left.leave();
    PROMISE(left.state() == STN_LOCK_LEFT && !try_lock(c, "hands", {.ttl = 30s}), "what is left stays in the store");
    c.advance(30'001);
    PROMISE(try_lock(c, "hands", {.ttl = 30s}).has_value(), "until its ttl is over");
}

void waits() {
    const stanchion::client c("memory://");
    std::optional<lock> held(std::in_place, c, "queue", stanchion::lock_options{.ttl = 30s});
    std::thread other([&] { held.reset(); });
    const lock mine(c, "queue", {.ttl = 30s, .wait = stanchion::for_ever});
    other.join();
    PROMISE(mine.held(), "who waits for ever gets it when it is released");
    const stanchion::lock_policy policy({.ttl = 10s});
    const lock one(c, "one", policy);
    const lock two(c, "two", stanchion::lock_policy(R"({"ttl": "10s"})"));
    PROMISE(one.held() && two.held(), "a policy is read once, from either form");
}

void losses() {
    const stanchion::client c(shop);
    const lock kept(c, "kept", {.ttl = 10s});
    const lock short_lived(c, "short", {.ttl = 10s, .renew = false});
    const lock bounded(c, "bounded", {.ttl = 10s, .max_hold = 1min});
    c.advance(10'001);
    PROMISE(kept.held(), "a lock is renewed");
    PROMISE(!kept.wait_lost(0ms), "and a wait for its loss says that it is held");
    PROMISE(short_lived.wait_lost(1s) && short_lived.loss() == STN_REASON_EXPIRED, "without renewal it expires");
    PROMISE(code_of([&] { short_lived.release(); }) == STN_LOST, "a release after the loss says lost");
    c.advance(50'000);
    PROMISE(bounded.wait_lost(1s) && bounded.loss() == STN_REASON_MAX_HOLD, "max_hold ends it");
    PROMISE(bounded.state() == STN_LOCK_LOST && kept.state() == STN_LOCK_HELD, "and nothing else");
    c.close();
    PROMISE(kept.wait_lost(1s) && kept.loss() == STN_REASON_CLOSED, "so does the end of the client");
}

void inspections() {
    const stanchion::client c(shop);
    PROMISE(!stanchion::inspect(c, "seen") && !stanchion::inspect_lock(c, "seen"), "a free lock has nothing to see");
    const std::string odd = "a \"label\" \\ \t\x01 \xc3\xa9";
    const lock mine(c, "seen", {.ttl = 30s, .label = odd});
    const auto seen = stanchion::inspect_lock(c, "seen");
    PROMISE(seen && seen->ours && seen->token == mine.token() && seen->fence == mine.fence(), "who holds it is seen");
    PROMISE(seen && seen->label == odd, "with the label, whatever its characters");
    PROMISE(seen && seen->ttl == 30s, "and its ttl");
    const lock shared(c, "anything", {.ttl = 30s, .key = "their:lock"});
    const auto by_key = stanchion::inspect_lock(c, "", "their:lock");
    PROMISE(by_key && by_key->token == shared.token(), "a lock of a literal key is seen by that key");
    PROMISE(!stanchion::inspect(c, "anything"), "and not by its name");
}

void misuse() {
    const stanchion::client c("memory://");
    PROMISE(code_of([&] { const lock l(c, "x", stanchion::lock_options{}); }) == STN_INVALID_ARGUMENT,
            "a lock without a ttl is refused");
    PROMISE(code_of([&] { const lock l(c, "x", {.ttl = 1ms}); }) == STN_INVALID_ARGUMENT, "so is too short a ttl");
    PROMISE(code_of([&] { const lock l(c, "", {.ttl = 1s}); }) == STN_INVALID_ARGUMENT, "so is an empty name");
    PROMISE(code_of([&] { stanchion::lock_policy(R"({"tll": "1s"})"); }) == STN_UNKNOWN_OPTION,
            "so is an unknown option");
    PROMISE(code_of([&] { (void)try_tick(c, "x", {}); }) == STN_INVALID_ARGUMENT, "so is a tick without every");
    c.close();
    PROMISE(code_of([&] { (void)try_lock(c, "x", {.ttl = 1s}); }) == STN_CLOSED,
            "a try throws what is neither yes nor no");
}

void ticks() {
    const stanchion::client a(shop);
    const stanchion::client b(shop);
    const stanchion::tick_options hourly{.every = 1h, .at_most = 3h};
    stanchion::no_tick why;
    std::int64_t first = 0;
    {
        const auto mine = try_tick(a, "nightly", hourly);
        PROMISE(mine && mine->slot() % 1h == 0ms && mine->fence() > 0, "a slot is given out, and says when it began");
        PROMISE(!try_tick(b, "nightly", hourly, &why) && why.reason == STN_REASON_TAKEN, "once");
        PROMISE(why.left > 0ms && why.left <= 1h, "others are told when the next begins");
        if (mine) first = mine->fence();
        if (mine) mine->done();
        PROMISE(mine && code_of([&] { mine->done(); }) == STN_LOST, "a run is ended once");
    }
    PROMISE(!try_tick(b, "nightly", hourly), "however short the run was");
    a.advance(3'600'000);
    {
        const auto mine = try_tick(b, "nightly", hourly);
        PROMISE(mine && mine->fence() > first, "the next slot has a larger fence");
        if (mine) mine->undone();
    }
    PROMISE(try_tick(a, "nightly", hourly).has_value(), "a failed run lets another take the slot");
    a.advance(0);
    const auto last = try_tick(b, "nightly", hourly);
    PROMISE(last.has_value(), "so does a run that ends by leaving its scope");
    a.advance(3'600'000);
    PROMISE(!try_tick(a, "nightly", hourly, &why) && why.reason == STN_REASON_STILL_RUNNING,
            "a run that outlives its slot makes the next be skipped");
    a.advance(3 * 3'600'000);
    PROMISE(try_tick(a, "nightly", hourly) && last && code_of([&] { last->done(); }) == STN_LOST,
            "one that tells nothing for at_most loses it");
}

void ids() {
    const stanchion::client a(shop);
    const stanchion::client b(shop);
    PROMISE(stanchion::once(a, "order 7", 1h), "the first claimant of an id is told yes");
    PROMISE(!stanchion::once(b, "order 7", 1h) && !stanchion::once(a, "order 7", 1h), "all others no");
    a.advance(3'600'001);
    PROMISE(stanchion::once(b, "order 7", 1h), "until its ttl is over");
}

} // namespace

int main() {
    try {
        scopes();
        hands();
        waits();
        losses();
        inspections();
        misuse();
        ticks();
        ids();
    } catch (const std::exception& e) {
        std::printf("%s\n", e.what());
        PROMISE(false, "nothing else is thrown");
    }
    return finish();
}
