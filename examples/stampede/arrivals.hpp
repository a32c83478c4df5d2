// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

namespace stampede {

struct Arrival {
    double at_ms;       // from the start of the run
    std::uint32_t node; // which node it comes to
};

// `count` arrivals of a Poisson process over the window, in order, each at a random node. A Poisson
// process of which the number of arrivals is known is that many independent uniform moments.
// Window 0: all at one moment. The same seed gives the same arrivals everywhere.
std::vector<Arrival> draw_arrivals(std::uint64_t count, double window_ms, std::uint64_t nodes, std::uint64_t seed);

} // namespace stampede
