// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/random.hpp"

namespace stn {

// How a user's key becomes a store key. The mapping is injective, and all keys of one user key fall
// into one cluster slot:
//
//   no brace and no %           {K}          hashed as K
//   a hash tag of its own       =K           verbatim, hashed by its own tag, next to the user's
//   keys anything else               {escaped K}  with { } % as %7B %7D %25
//
// Names hold no colon and no brace, so nothing before the mapped key can be mistaken for it.
inline constexpr std::size_t max_key = 1024;
inline constexpr std::size_t max_name = 64;
inline constexpr std::uint64_t wake_channels = 64;

[[nodiscard]] bool valid_key(std::string_view key);         // 1..max_key bytes of any kind
[[nodiscard]] bool valid_name(std::string_view name);       // [A-Za-z0-9._-]{1,64}: prefixes and caches
[[nodiscard]] bool valid_cache_name(std::string_view name); // a name, perhaps with one `@version`
[[nodiscard]] std::string versioned_name(std::string_view name, std::uint64_t version);

[[nodiscard]] std::string value_key(std::string_view prefix, std::string_view cache, std::string_view key);
[[nodiscard]] std::string refresh_key(std::string_view prefix, std::string_view cache, std::string_view key,
                                      const token& generation);
[[nodiscard]] std::string lock_key(std::string_view prefix, std::string_view name);
[[nodiscard]] std::string tick_key(std::string_view prefix, std::string_view name);
[[nodiscard]] std::string once_key(std::string_view prefix, std::string_view id);
[[nodiscard]] std::string wake_channel(std::string_view prefix, std::string_view key);

} // namespace stn
