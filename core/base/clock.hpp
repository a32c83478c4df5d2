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

// `base + span`, saturating: a deadline of "no limit" stays one.
[[nodiscard]] inline std::int64_t add_ms(std::int64_t base, std::int64_t span) noexcept {
    return span >= forever_ms - base ? forever_ms : base + span;
}

} // namespace stn
