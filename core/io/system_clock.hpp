// SPDX-License-Identifier: MIT
#pragma once

#include "base/clock.hpp"

namespace stn {

// CLOCK_BOOTTIME: it never steps, and it goes on in suspend, while leases run out elsewhere.
class system_clock final : public clock {
  public:
    [[nodiscard]] mono_ms now_ms() override;
};

} // namespace stn
