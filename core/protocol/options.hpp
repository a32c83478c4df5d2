// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
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
// An object without any option.
[[nodiscard]] result<bool> read_no_options(std::string_view json);

} // namespace stn
