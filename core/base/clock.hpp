// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace stn {

// Milliseconds of a clock that never steps and does not stop in suspend (CLOCK_BOOTTIME); only
// differences mean anything. Timers, deadlines and the validity of leases live on it.
using mono_ms = std::int64_t;

// Milliseconds since the epoch on the *server's* clock, as well as this process can tell. Freshness
// lives on it; the local wall clock is never asked.
using server_ms = std::int64_t;

inline constexpr std::int64_t forever_ms = INT64_MAX;

class clock {
  public:
    clock() = default;
    clock(const clock&) = delete;
    clock& operator=(const clock&) = delete;
    virtual ~clock() = default;

    [[nodiscard]] virtual mono_ms now_ms() = 0;
};

// Somebody whose timers follow an adjustable clock.
class time_listener {
  public:
    time_listener() = default;
    time_listener(const time_listener&) = delete;
    time_listener& operator=(const time_listener&) = delete;
    virtual ~time_listener() = default;

    [[nodiscard]] virtual mono_ms next_due_ms() = 0;
    virtual void time_moved() = 0; // runs what is due
};

// A clock that moves only when told to, from one due timer of its listeners to the next, so that a
// jump of an hour renews every lease on its way.
class adjustable_clock : public clock {
  public:
    virtual void watch(time_listener& who) = 0;
    virtual void unwatch(time_listener& who) = 0; // no call is running or will start once it returns
    virtual void advance(std::int64_t span_ms) = 0;
};

// `base + span`, saturating: a deadline of "no limit" stays one.
[[nodiscard]] inline std::int64_t add_ms(std::int64_t base, std::int64_t span) noexcept {
    return span >= forever_ms - base ? forever_ms : base + span;
}

} // namespace stn
