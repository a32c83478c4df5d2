// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"

namespace stn {

inline constexpr std::int64_t max_duration_ms = 10LL * 365 * 24 * 3600 * 1000; // ten years

// "1500ms", "30s", "5m", "1h30m", "2d" as milliseconds: whole numbers with a unit each, larger
// units first. Each fault has a text of its own.
[[nodiscard]] result<std::int64_t> parse_duration(std::string_view text);

} // namespace stn
