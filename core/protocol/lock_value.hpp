// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/random.hpp"

namespace stn {

// What a lock key holds: `token:fence:label`, the token as 16 bytes, the fence in decimal, the label escaped.
struct lock_value {
    token holder{};
    std::int64_t fence = 0;
    std::string label; // as it was given
};

inline constexpr std::size_t max_label = 64;

// Printable ASCII but `:` and `%` stays as it is; every other byte is %XX.
[[nodiscard]] std::string escape_label(std::string_view label);
// Nothing for what is no lock of ours.
[[nodiscard]] std::optional<lock_value> read_lock_value(std::string_view bytes);
// For people: a JSON object of what stands in a lock key, and of how long it lasts.
[[nodiscard]] std::string show_lock(std::string_view bytes, std::int64_t pttl_ms);
// 32 hexadecimal digits: how a token is shown to people.
[[nodiscard]] std::string hex(const token& t);

} // namespace stn
