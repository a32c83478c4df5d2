// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace scheduler {

// What an instance of the service tells.
enum class Happening {
    ready,   // connected
    asks,    // for the lock
    begins,  // the job: with the fence, and of a tick the slot
    writes,  // the job's effect, under the fence
    ends,    // the job
    taken,   // the slot is not ours; `text` is the reason
    lost,    // the lock; `text` is the reason
    trouble, // `text` is the error
    leaves,  // has nothing more to do
};

struct Entry {
    Happening what = Happening::ready;
    std::int64_t at_ns = 0; // of the monotonic clock, which all processes of a machine share
    std::int64_t fence = 0;
    std::int64_t slot_ms = 0;
    bool held = false; // what held() said
    std::string text;
    std::size_t who = 0; // the number of the instance
};

using Journal = std::vector<Entry>; // of all instances, in order of time

std::int64_t now_ns();
std::string line_of(const Entry& entry);
Entry entry_of(const std::string& line);

} // namespace scheduler
