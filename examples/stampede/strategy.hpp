// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <string_view>

namespace stampede {

// The same program five times: only these switches of the cache's policy differ.
struct Strategy {
    std::string_view name;                    // as --strategy takes it
    std::string_view title;                   // as the report prints it
    bool coalesce;                            // callers of one node share one flight
    bool fleet;                               // the nodes share one lease
    bool soft;                                // the value goes soft in the middle, hard expiry is far away
    enum class Cap { none, bare, lease } cap; // which --...-cap bounds its number of requests
};

inline constexpr std::array<Strategy, 5> strategies{{
    {"none", "none", false, false, false, Strategy::Cap::bare},
    {"lease", "lease only", false, true, false, Strategy::Cap::lease},
    {"flight", "single-flight only", true, false, false, Strategy::Cap::none},
    {"both", "both", true, true, false, Strategy::Cap::none},
    {"soft", "both + soft expiry", true, true, true, Strategy::Cap::none},
}};

} // namespace stampede
