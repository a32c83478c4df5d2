// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace cli {

// One command line, read. What belongs to the library is kept as the JSON text that it takes, under its own names, so
// that it alone judges durations, ranges and labels.
struct options {
    std::string what; // "lock", "tick", ...

    std::string store;
    nlohmann::json client = nlohmann::json::object();  // of stn_client_open
    nlohmann::json setting = nlohmann::json::object(); // of the lock or tick
    bool json = false;
    bool quiet = false;

    std::string name; // lock, tick or cache
    std::string key;  // of the cache; of inspect, the store's key itself
    std::string ttl;  // of once
    std::string grace = "5s";
    std::optional<int> busy_code;
    bool stale = false;
    std::string shell;

    std::vector<std::string> command; // after `--`
};

} // namespace cli
