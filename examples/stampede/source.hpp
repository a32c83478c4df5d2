// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "catalogue.hpp"

namespace stampede {

using Clock = std::chrono::steady_clock;

// The database that the crowd would trample, with a thread that serves it.
//
// A query runs its SQL at once, on the source's one thread, and its answer is due load_ms after the
// SQL began: a slow query, or a database far away, that keeps no thread of the client waiting. All
// queries take equally long, so the answers fall due in the order of the questions, and the timer
// heap is a queue.
//
// The source counts for itself, beside the SQL call: how many queries it was asked, and how many
// were running at one moment (each from its SQL to its due time).
class Source {
  public:
    explicit Source(std::chrono::milliseconds load);
    ~Source();
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;

    // Asks for the summary of one category. `done` gets the answer, a JSON text, on the source's
    // thread, or an empty text if SQLite failed. Does not block.
    using Done = std::function<void(const std::string& answer)>;
    void query(int category, Done done);

    // The same answer at once and uncounted: what is right at this moment.
    std::string peek(int category);

    // The catalogue changes: all prices of the category rise.
    void reprice(int category);

    struct Counts {
        std::uint64_t queries = 0;
        std::uint64_t executed = 0;           // the same by SQLite's own count
        std::uint64_t peak = 0;               // most running at one moment
        std::vector<Clock::time_point> begun; // when each query began
    };
    Counts counts() const;
    std::uint64_t queries() const;

    void finish(); // waits until nothing runs
    void reset();  // the same, then counts from zero again

  private:
    struct Asked {
        int category;
        Done done;
    };
    struct Due {
        Clock::time_point at;
        std::string answer;
        Done done;
    };
    void serve();

    const std::chrono::milliseconds load_;
    Catalogue catalogue_;

    mutable std::mutex mutex_;
    std::condition_variable changed_; // something was asked, or stop_
    std::condition_variable idle_;
    std::deque<Asked> asked_;           // mutex_
    std::size_t open_ = 0;              // mutex_; asked and not answered yet
    Counts counts_;                     // mutex_
    std::uint64_t executed_before_ = 0; // mutex_
    std::uint64_t running_ = 0;         // mutex_
    bool stop_ = false;                 // mutex_
    std::deque<Due> due_;               // the source's thread only
    std::thread thread_;
};

} // namespace stampede
