// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace stn {

// Which process made a handle. After a fork the child owns nothing of its parent's: no thread of ours
// runs there, and locks may be held for ever.
class fork_mark {
  public:
    fork_mark() noexcept;
    [[nodiscard]] bool forked() const noexcept;

  private:
    std::uint32_t generation_;
};

} // namespace stn
