// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

// Memory that runs out on demand. This program has its own `operator new`; while it is armed, one
// allocation of this thread fails, or that one and all that follow.
namespace faults {

enum class outage : std::uint8_t { once, from_then_on };

class memory {
  public:
    // The `nth` allocation from now on fails, 1 being the next.
    static void fail(std::uint64_t nth, outage how) noexcept;
    // Ends it. True: an allocation has failed.
    static bool back() noexcept;
};

} // namespace faults
