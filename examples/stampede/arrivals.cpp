// SPDX-License-Identifier: MIT
#include "arrivals.hpp"

#include <algorithm>
#include <random>

namespace stampede {

std::vector<Arrival> draw_arrivals(std::uint64_t count, double window_ms, std::uint64_t nodes, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<Arrival> arrivals(count);
    for (Arrival& arrival : arrivals) {
        double uniform = static_cast<double>(random() >> 11) * 0x1p-53;
        arrival = {window_ms * uniform, static_cast<std::uint32_t>(random() % nodes)};
    }
    std::sort(arrivals.begin(), arrivals.end(), [](const Arrival& a, const Arrival& b) { return a.at_ms < b.at_ms; });
    return arrivals;
}

} // namespace stampede
