// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stn::bench {

// Several processes that take one lock, hold it for a while and give it back, again and again, without a pause.
struct contest {
    int processes = 8;
    int hold_us = 1'000;
    int ms = 3'000;
};

struct contest_result {
    double per_second = 0;
    double p50_ms = 0, p99_ms = 0, longest_ms = 0; // of the waits for the lock
    std::size_t least = 0, most = 0;               // acquisitions of one process
};

// `program` and its arguments start one contestant: it prints "ready", waits for a line, and prints a line of
// numbers: for each acquisition how long it waited, in microseconds. `--hold-us` and `--ms` are added.
[[nodiscard]] contest_result run_contest(const std::vector<std::string>& program, const contest& how);

// The contestant of ours; see `run_contest`.
void be_contestant(const std::string& url, int hold_us, int ms);

} // namespace stn::bench
