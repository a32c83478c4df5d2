// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "coverage.hpp"
#include "faults.hpp"
#include "judge.hpp"
#include "options.hpp"
#include "protocol/stat.hpp"

namespace stn::sim {

// What one seed came to.
struct outcome_of_seed {
    std::vector<judge::verdict> found;
    fault_counts faults{};
    coverage seen;
    stat_block stats;
    std::uint64_t fills_refused = 0;
    std::uint64_t ops = 0;
    std::uint64_t loads = 0;
    std::uint64_t steps = 0;
    std::uint64_t digest = 0;
    std::int64_t virtual_ms = 0;
};

[[nodiscard]] outcome_of_seed run_seed(const options& o, bool trace);

} // namespace stn::sim
