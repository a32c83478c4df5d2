// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string_view>

namespace stn {

// The name closest to a word that was not found, for "did you mean": fewest single-character edits
// and swaps of neighbours, case aside; of equals the first. Empty only when there are no names.
[[nodiscard]] std::string_view nearest_name(std::string_view word, std::span<const std::string_view> names);

} // namespace stn
