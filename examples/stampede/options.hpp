// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "strategy.hpp"

namespace stampede {

struct Options {
    std::string store; // empty: a memory store made for this run
    std::string ca;    // a file, for rediss://
    std::uint64_t nodes = 50;
    std::uint64_t requests = 100'000;
    std::uint64_t load_ms = 300;
    std::uint64_t window_ms = 1'000; // 0: a burst
    std::vector<Strategy> chosen{strategies.begin(), strategies.end()};
    bool json = false;
    std::string svg;
    std::uint64_t seed = 1;
    std::uint64_t runs = 1;
    std::uint64_t none_cap = 2'000;   // 0: no cap
    std::uint64_t lease_cap = 20'000; // 0: no cap

    bool burst() const { return window_ms == 0; }
    bool processes() const;     // the store is a server: each node is a process
    double bucket_ms() const;   // of the chart
    std::string window() const; // "1 s", "250 ms"
    // How many requests this strategy gets.
    std::uint64_t requests_for(const Strategy& strategy) const;
};

// What is wrong with the command line, for the person who typed it.
struct BadOption : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Throws BadOption. Nothing if the words asked for --help or --version, which were printed then.
std::optional<Options> parse(const std::vector<std::string>& words);

} // namespace stampede
