// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "runs.hpp"

namespace scheduler {

std::string name_of(std::size_t who);                                         // A, B, ...
std::string in_ms(std::int64_t ns);                                           // "1003 ms"
std::string draw_locks(const std::vector<Run>& runs);                         // a bar for each instance, over time
std::string draw_slots(const std::vector<Run>& runs, const Journal& journal); // a line for each slot

} // namespace scheduler
