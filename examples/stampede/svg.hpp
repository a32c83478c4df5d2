// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "options.hpp"
#include "result.hpp"

namespace stampede {

// The run as a chart: a row for each strategy, with the queries that reached the source over time
// (log scale) and, beside them, what the callers felt: the latency of those who arrived at each
// moment, or for a burst how many were waiting. All rows share their scales.
std::string chart(const Options& options, const std::vector<Result>& results);

} // namespace stampede
