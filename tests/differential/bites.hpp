// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string_view>

#include "protocol/command.hpp"

namespace stn::differ {

// One branch of a script broken on the real server: the test has to see a difference, or it would not see
// that mistake in the script, nor the same one in its C++ twin.
struct bite {
    script_id script;
    std::string_view from; // stands in the script
    std::string_view to;
};

[[nodiscard]] std::span<const bite> bites();

} // namespace stn::differ
