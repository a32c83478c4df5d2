// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "journal.hpp"

namespace scheduler {

// One run of the job by one instance.
struct Run {
    std::size_t who = 0;
    std::int64_t fence = 0;
    std::int64_t slot_ms = 0;
    std::int64_t asked_ns = 0; // for its lock
    std::int64_t begun_ns = 0;
    std::int64_t ended_ns = 0;
    std::vector<Entry> losses;
    std::vector<Entry> writes;

    // When it was held no longer, or ended.
    std::int64_t held_until_ns() const { return losses.empty() ? ended_ns : losses.front().at_ns; }
};

std::vector<Run> runs_of(const Journal& journal); // in order of their beginning

// For how long both were at work.
std::int64_t overlap_ns(const Run& one, const Run& other);

// Which writes a table would refuse that keeps the largest fence it has seen: UPDATE ... WHERE fence <= :fence.
// This one is a number in memory; examples/fence has a real one.
std::vector<Entry> refused(const Journal& journal);

} // namespace scheduler
