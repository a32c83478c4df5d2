// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "service.hpp"

namespace scheduler {

inline constexpr const char* instance_word = "--instance"; // the program's only argument, in an instance
inline constexpr int instance_fd = 3;                      // and where its channel is

// What the stage says to an instance: first where the store is, then what to do, each time until it `leaves`.
std::string opening(const std::string& store, const std::string& prefix);
std::string order(const Ticks& work);
std::string order(const Locked& work);

int run_instance();

} // namespace scheduler
