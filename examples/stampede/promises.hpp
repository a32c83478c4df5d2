// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "result.hpp"

namespace stampede {

struct Promise {
    bool kept = false;
    std::string text; // what was found, in numbers
};

// What the strategy promises, held against what happened. Latency is no promise.
std::vector<Promise> judge(const Result& result);

} // namespace stampede
