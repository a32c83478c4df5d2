// SPDX-License-Identifier: MIT
#pragma once

#include "options.hpp"
#include "run.hpp"
#include "signals.hpp"

namespace cli {

// The subcommands. Each throws failure or interrupted.
[[nodiscard]] ending run_lock(const options& given, const signals& outside, bool shares_group);
[[nodiscard]] ending run_tick(const options& given, const signals& outside, bool shares_group);
[[nodiscard]] ending run_once(const options& given, const signals& outside, bool shares_group);
[[nodiscard]] ending inspect(const options& given, const signals& outside);
[[nodiscard]] ending invalidate(const options& given, const signals& outside);
[[nodiscard]] ending ping(const options& given, const signals& outside);

} // namespace cli
