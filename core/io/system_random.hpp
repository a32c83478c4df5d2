// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "base/random.hpp"

namespace stn {

// Tokens come from the kernel one by one. `unit` comes from a small generator of this object's own:
// after a fork both sides go on with the same draws, which harms nobody.
class system_random final : public draws {
  public:
    system_random();

    [[nodiscard]] token make_token() override;
    [[nodiscard]] double unit() override;

  private:
    std::atomic<std::uint64_t> state_;
};

} // namespace stn
