// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace cli {

// "host:pid", at most 64 bytes: who holds a lock, unless --label says something better.
[[nodiscard]] std::string own_label();

// What stn_lock_inspect has found, as a sentence without its subject: "is held by web-1:314 (fence 17...), for another
// 29 s".
[[nodiscard]] std::string sentence(const nlohmann::json& found);

} // namespace cli
