// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "catalogue.hpp"
#include "tally.hpp"

namespace stampede {

// The source of a run with processes: what `Source` is for threads, without one. The coordinator owns the only
// connection to the database; a node that wants an answer has to ask here, and is counted beside the SQL call.
// The count is held against SQLite's own of that statement, and against the library's.
class Desk {
  public:
    explicit Desk(std::chrono::milliseconds load) : load_(load) {}

    struct Due {
        Clock::time_point at;
        std::size_t node;
        std::uint64_t id;
        std::string answer;
    };

    void reset();
    // Runs the SQL now; the answer is due `load` after that.
    void ask(std::size_t node, std::uint64_t id, int category);
    Clock::time_point next_due() const { return due_.empty() ? Clock::time_point::max() : due_.front().at; }
    // The answer that is due at `now`, if one is.
    bool pop(Clock::time_point now, Due& out);

    Catalogue& catalogue() { return catalogue_; }
    std::uint64_t queries() const { return begun_.size(); }
    std::uint64_t executed() const { return catalogue_.answered() - executed_before_; }
    std::uint64_t peak() const { return peak_; }
    const std::vector<Clock::time_point>& begun() const { return begun_; }

  private:
    const std::chrono::milliseconds load_;
    Catalogue catalogue_;
    std::deque<Due> due_;
    std::vector<Clock::time_point> begun_; // of each query
    std::uint64_t peak_ = 0;
    std::uint64_t executed_before_ = 0;
};

} // namespace stampede
