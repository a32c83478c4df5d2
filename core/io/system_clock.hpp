// SPDX-License-Identifier: MIT
#pragma once

#include "base/clock.hpp"

namespace stn {

// CLOCK_BOOTTIME: it never steps, and it goes on in suspend, while leases run out elsewhere.
class system_clock final : public clock {
  public:
    [[nodiscard]] mono_ms now_ms() override;
};

// Milliseconds since the epoch. Only to start a memory store's clock, which then runs on the other.
[[nodiscard]] std::int64_t wall_clock_ms();

} // namespace stn
