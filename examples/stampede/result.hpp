// SPDX-License-Identifier: MIT
#pragma once

#include <stanchion/stanchion.h>

#include <cstdint>
#include <map>
#include <optional>
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
    std::uint64_t callers = 0;
    double p50_ms = 0;
    double p99_ms = 0;
    double max_ms = 0;
};

// What the server says, of the same time as `Result::library`.
struct ServerCounts {
    std::uint64_t get = 0;      // calls; those inside scripts too
    std::uint64_t getrange = 0; // likewise
    std::uint64_t scripts = 0;  // EVALSHA and EVAL

    // Every script of the library reads its key once, by GET or GETRANGE, and what it sends that is no script
    // is a GET: so these two, inside and outside of scripts, are as many as were sent.
    std::uint64_t sent() const { return get + getrange; }
    std::uint64_t plain() const { return sent() - scripts; }
};

struct KeysLeft {
    std::uint64_t found = 0; // under the run's prefix, when all callers had their answers
    std::uint64_t without_ttl = 0;
    std::uint64_t undeleted = 0; // when the run had cleaned up
};

// What only a run with processes has.
struct OnServer {
    std::string name;   // and version
    bool alone = false; // it had no other client, so its counts are ours
    ServerCounts counts;
    KeysLeft keys;
    double cpu_ms = 0;                   // of all nodes together, from the first caller to the last answer
    std::optional<Latency> empty_events; // a burst: as many events without anything in them, at one moment
};

// One strategy's run, as seen from outside the library - except `library`, its own counters,
// summed over the nodes, for the measured part only.
struct Result {
    Strategy strategy;
    std::uint64_t run = 1; // of --runs
    std::uint64_t nodes = 0;
    std::uint64_t wanted = 0;   // what --requests says
    std::uint64_t requests = 0; // after the cap

    std::uint64_t queries = 0;  // by the source
    std::uint64_t executed = 0; // the same, by SQLite
    std::uint64_t peak = 0;     // by the source

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
    Latency waiters;       // of those due between the expiry and the end of the first load
    double asked_ms = -1;  // when the first query began, in the time of `wall_ms`
    double loaded_ms = -1; // when whoever asked had the first answer
    double wall_ms = 0;    // from the first arrival's window to the last answer and fill
    double expiry_ms = 0;  // when the key expires, in the same time
    double bucket_ms = 0;
    std::vector<Bucket> timeline;

    stn_stats library{};
    std::optional<OnServer> server;
};

} // namespace stampede
