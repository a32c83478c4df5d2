// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace stn {

// CLOCK_BOOTTIME: it never steps, and it goes on in suspend, while leases run out elsewhere.
class system_clock final : public clock {
  public:
    [[nodiscard]] mono_ms now_ms() override;
};

// For spans too short for milliseconds: round trips.
[[nodiscard]] std::int64_t monotonic_us();

// Milliseconds since the epoch. Only to start a clock with, which then runs on the other.
[[nodiscard]] std::int64_t wall_clock_ms();

} // namespace stn
