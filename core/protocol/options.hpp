// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.hpp"
#include "protocol/policy.hpp"

namespace stn {

// Options are JSON text. One table per object names each option with its unit and range; the reader
// refuses what is not in it and names the nearest option there is.

struct cache_options {
    fill_policy policy;
    std::uint32_t version = 0; // 0: none
};

[[nodiscard]] result<client_settings> read_client_options(std::string_view json);
[[nodiscard]] result<cache_options> read_cache_options(std::string_view json);
// `base` changed where `json` says so.
[[nodiscard]] result<fill_policy> read_policy(std::string_view json, const fill_policy& base);
// "ttl" is required, "every" likewise.
[[nodiscard]] result<lock_policy> read_lock_options(std::string_view json);
[[nodiscard]] result<tick_policy> read_tick_options(std::string_view json);
inline constexpr std::int64_t longest_ttl_ms = 315'360'000'000; // ten years
inline constexpr std::int64_t least_lock_ttl_ms = 10;
// What the readers have made sure of, for policies made otherwise.
[[nodiscard]] std::optional<error> check_lock_policy(const lock_policy& p);
[[nodiscard]] std::optional<error> check_tick_policy(const tick_policy& p);
// An object without any option.
[[nodiscard]] result<bool> read_no_options(std::string_view json);

} // namespace stn
