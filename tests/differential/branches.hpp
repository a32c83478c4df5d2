// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sides.hpp"

namespace stn::differ {

// Which branches of its script (or of a plain command) a step took on one side, by what that side showed: the key
// before and after, the reply, the messages; and by the arguments. The same function judges both.
[[nodiscard]] std::vector<std::string> branches_of(const step& s, const sight& seen);

// All there are. A step that takes another is a fault of the script or of this table.
[[nodiscard]] std::span<const std::string_view> all_branches();

// Of the real server only, to who may not GET: the embedded store refuses nobody.
[[nodiscard]] std::string blind_branch(script_id id);

} // namespace stn::differ
