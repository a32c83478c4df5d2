// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

// A name for people: in quotes, with what a terminal would act upon escaped.
[[nodiscard]] std::string in_quotes(std::string_view name);

// Nothing of what stands before the host is shown: it may hold a password. For any text that may have a URL in it.
[[nodiscard]] std::string without_password(std::string_view text);

// "350 ms", "12 s", "3 min", "2 h": never rounded down to nothing.
[[nodiscard]] std::string about(std::int64_t ms);

// ` Did you mean X?`, or nothing if none of them is near.
[[nodiscard]] std::string suggestion(std::string_view word, const std::vector<std::string>& known);

} // namespace cli
