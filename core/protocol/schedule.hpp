// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "protocol/policy.hpp"

// All arithmetic on time, in one place: nothing else adds a jitter, a margin or a back-off.
namespace stn::schedule {

inline constexpr std::int64_t untaken_ms = 1'000;        // an offered lease not read by then is withdrawn
inline constexpr std::int64_t marker_pass_ms = 1'000;    // how long a `pass` marker stands
inline constexpr std::int64_t look_floor_ms = 25;        // no waiter looks more often than this
inline constexpr std::int64_t probe_patience_ms = 1'000; // then another command may probe
inline constexpr std::int64_t keep_alive_ms = 15'000;    // a connection hears from its server so often
inline constexpr std::int64_t silence_ms = 10'000;       // no reply for so long: the connection is given up
inline constexpr std::int64_t stands_after_ms = 5'000;   // a connection that ends sooner counts as one more failure
inline constexpr int lease_resends = 2;                  // fresh tokens after a lost reply, then fail open
inline constexpr int look_resends = 1;
inline constexpr int fill_resends = 2;
inline constexpr int fill_retries = 1; // of a refused one

struct lifetime {
    std::int64_t hard_ms;
    std::int64_t soft_ms; // 0: never soft
};

// ttl + U(0, ttl x jitter), soft and hard stretched alike. A soft time at or past the hard one is
// no soft time.
[[nodiscard]] lifetime jittered(std::int64_t ttl_ms, std::int64_t soft_ttl_ms, double jitter, draws& draw);

// 3 x the expected load within 1..10 s; 10 s when nothing is known.
[[nodiscard]] std::int64_t lease_length(const fill_policy& policy, std::int64_t expected_load_ms);

// Until when a lease or lock sent at `sent` for `ttl_ms` is surely still ours: relative clock rates
// of 1 % and 2 ms of rounding are taken off.
[[nodiscard]] mono_ms safe_until(mono_ms sent, std::int64_t ttl_ms);

[[nodiscard]] std::int64_t renew_after(std::int64_t lease_ms); // a third
[[nodiscard]] std::int64_t renew_retry(std::int64_t lease_ms); // a twelfth

// When a waiter looks first: at the expected finish, or after U(250, 500) ms, whatever is sooner.
[[nodiscard]] std::int64_t first_look(std::int64_t finish_in_ms, std::int64_t pttl_ms, draws& draw);
// Later looks: 25-75 ms growing to 200, capped by what is left of the lease it waits for.
[[nodiscard]] std::int64_t next_look(int looks, std::int64_t pttl_ms, draws& draw);

// How long a caller waits by default.
[[nodiscard]] std::int64_t default_wait(const fill_policy& policy, std::int64_t expected_load_ms);

// XFetch (Vattani, Chierichetti, Lowenstein: Optimal Probabilistic Cache Stampede Prevention, VLDB
// 2015), drawn against the soft expiry.
[[nodiscard]] bool early(server_ms now, server_ms soft_at, std::uint32_t delta_ms, double beta, draws& draw);

// Pause between attempts of a write that is retried to its deadline: full jitter, 5..200 ms.
[[nodiscard]] std::int64_t write_retry(int attempt, draws& draw);

// Pause before a command that the store refused is sent again: U(50, 200) ms, or `slowly` 100 ms growing
// to U(0.5, 1) s.
[[nodiscard]] std::int64_t refused_pause(int attempt, bool slowly, draws& draw);

// How long an open breaker stays open: U(0.5, 1) s, doubling to 10 s with the times it was open already.
[[nodiscard]] std::int64_t breaker_pause(int times_open, draws& draw);

// Pause before the next attempt to connect, `failures` in a row before it: full jitter below 50 ms doubling
// to 5 s (Brooker: Exponential Backoff and Jitter, AWS Architecture Blog 2015).
[[nodiscard]] std::int64_t reconnect_pause(int failures, draws& draw);

// When a lock is renewed: a third of its ttl, drawn a little earlier, so that what was taken together is not
// renewed together for ever.
[[nodiscard]] std::int64_t lock_renew_after(std::int64_t ttl_ms, draws& draw);
// How long one renewal is waited for: others have to fit in before the lock ends.
[[nodiscard]] std::int64_t lock_renew_patience(std::int64_t ttl_ms, std::int64_t command_timeout_ms);

// When the head of a process's waiters tries again: 25-75 ms growing to 200, capped by what is left of the
// other's lock (-1: it does not end by itself) and a little, so that not all find it gone in one moment.
[[nodiscard]] std::int64_t lock_look(int looks, std::int64_t pttl_ms, draws& draw);

// Turns between processes. Whoever waits for a lock counts the releases that he sees, and whoever releases it tells how
// many he had waited through. Of n processes that come back again and again, the mean of that is n - 1, whatever the order
// in which they are served; so all believe in the same number, and who has seen as many has waited longest. He tries at
// once, the others a little later each, should he not be there. So they take turns though nobody keeps a list; and who has
// just given the lock back has seen none, and lets all others go first.
//
// When to try after a message that it was released, the `seen`th; or, with 0, after having given it back. `turn`: what is
// believed.
[[nodiscard]] std::int64_t lock_try_after(int seen, double turn);
// What is believed after one more release, by who had waited through `seen`.
[[nodiscard]] double lock_turn(double before, int seen);
inline constexpr double lock_turn_least = 0.9;  // while others are about
inline constexpr int lock_vain_turns = 32;      // so often nobody was seen to want it, too: then nobody is about
inline constexpr std::int64_t lock_step_ms = 2; // more than a hand-over: the first is there before the next
inline constexpr int lock_turns = 8;            // hand-overs inside a process, then others go first

// Moving average of load times; 0 means nothing seen yet.
[[nodiscard]] std::int64_t average(std::int64_t before_ms, std::int64_t load_ms);

} // namespace stn::schedule
