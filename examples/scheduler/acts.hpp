// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "journal.hpp"
#include "service.hpp"

namespace scheduler {

struct Promise {
    bool kept = false;
    std::string text; // what was found, in numbers
};

struct Finding {
    std::vector<Promise> promises;
    std::string drawing;
    bool napped = false; // what is missing may be the machine's fault: it stood still for longer than a ttl or a slot

    bool kept() const;
};

// What was promised, held against what the instances told.
Finding judge_ticks(const Journal& journal, const Ticks& work);
Finding judge_broken(const Journal& journal, const Locked& work);
Finding judge_renewed(const Journal& journal, const Locked& work);

} // namespace scheduler
