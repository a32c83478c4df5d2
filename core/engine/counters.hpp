// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>

#include "protocol/stat.hpp"

namespace stn {

// Counters that any thread may raise.
class counters {
  public:
    void add(stat s, std::uint64_t n = 1) noexcept {
        of_[static_cast<std::size_t>(s)].fetch_add(n, std::memory_order_relaxed);
    }
    [[nodiscard]] stat_block snapshot() const noexcept {
        stat_block b;
        for (std::size_t i = 0; i < stat_count; ++i) b.of[i] = of_[i].load(std::memory_order_relaxed);
        return b;
    }

  private:
    std::array<std::atomic<std::uint64_t>, stat_count> of_{};
};

} // namespace stn
