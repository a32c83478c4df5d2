// SPDX-License-Identifier: MIT
#include "runs.hpp"

#include <algorithm>
#include <map>

namespace scheduler {

std::vector<Run> runs_of(const Journal& journal) {
    std::vector<Run> runs;
    std::map<std::size_t, std::int64_t> asked;
    auto of = [&](const Entry& entry) {
        return std::find_if(runs.begin(), runs.end(), [&](const Run& run) {
            return run.who == entry.who && run.fence == entry.fence && run.ended_ns == 0;
        });
    };
    for (const Entry& entry : journal) {
        if (entry.what == Happening::asks) asked[entry.who] = entry.at_ns;
        if (entry.what == Happening::begins) {
            runs.push_back({entry.who, entry.fence, entry.slot_ms, asked[entry.who], entry.at_ns, 0, {}, {}});
        }
        auto run = of(entry);
        if (run == runs.end()) continue;
        if (entry.what == Happening::lost) run->losses.push_back(entry);
        if (entry.what == Happening::writes) run->writes.push_back(entry);
        if (entry.what == Happening::ends) run->ended_ns = entry.at_ns;
    }
    return runs;
}

std::int64_t overlap_ns(const Run& one, const Run& other) {
    std::int64_t from = std::max(one.begun_ns, other.begun_ns);
    return std::max<std::int64_t>(0, std::min(one.ended_ns, other.ended_ns) - from);
}

std::vector<Entry> refused(const Journal& journal) {
    std::vector<Entry> refused;
    std::int64_t largest = 0;
    for (const Entry& entry : journal) {
        if (entry.what != Happening::writes) continue;
        if (largest <= entry.fence) {
            largest = entry.fence;
        } else {
            refused.push_back(entry);
        }
    }
    return refused;
}

} // namespace scheduler
