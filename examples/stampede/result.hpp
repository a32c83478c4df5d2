// SPDX-License-Identifier: MIT
#pragma once

#include <stanchion/stanchion.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "strategy.hpp"

namespace stampede {

// A bucket of time, for the chart.
struct Bucket {
    double from_ms = 0;
    std::uint64_t arrivals = 0;
    std::uint64_t queries = 0; // begun in it
    std::uint64_t waiting = 0; // callers without an answer at its end
    double p50_ms = 0;         // latency of those who arrived in it
    double max_ms = 0;
};

struct Latency {
    double p50_ms = 0;
    double p99_ms = 0;
    double max_ms = 0;
};

// One strategy's run, as seen from outside the library - except `library`, its own counters,
// summed over the nodes, for the measured part only.
struct Result {
    Strategy strategy;
    std::uint64_t nodes = 0;
    std::uint64_t wanted = 0;   // what --requests says
    std::uint64_t requests = 0; // after the cap

    std::uint64_t queries = 0; // by the source
    std::uint64_t peak = 0;    // by the source

    std::uint64_t answered = 0;    // callers with exactly one answer or more
    std::uint64_t repeated = 0;    // answers beyond the first
    std::uint64_t wrong = 0;       // answers with another value than the source's, old or new
    std::uint64_t old_answers = 0; // of the right ones: the value from before the expiry
    std::uint64_t stale_answers = 0;
    std::uint64_t from_load = 0;                 // answered by a load that ran meanwhile, in this node
    std::map<std::string, std::uint64_t> errors; // text -> how often

    std::uint64_t leases = 0;                   // LEASE events
    std::uint64_t refreshes = 0;                // REFRESH events
    std::uint64_t revoked = 0;                  // REVOKED events
    std::map<std::string, std::uint64_t> fills; // outcome -> how often

    bool asked_after_expiry = false; // some caller came when the value had surely expired
    bool every_node_asked = false;   // each node had one in the first half of the first load

    Latency latency;
    double wall_ms = 0;   // from the first arrival's window to the last answer and fill
    double expiry_ms = 0; // when the key expires, in the same time
    double bucket_ms = 0;
    std::vector<Bucket> timeline;

    stn_stats library{};
};

} // namespace stampede
