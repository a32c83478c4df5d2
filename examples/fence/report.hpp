// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <iomanip>
#include <iostream>
#include <string>
#include <utility>

namespace fence {

// What happened, when, and which promises were seen.
class Report {
  public:
    void scene(const std::string& title) {
        begun_ = Clock::now();
        std::cout << title << "\n\n" << std::flush;
        telling_ = false;
    }
    void tell(const std::string& who, const std::string& what) {
        telling_ = true;
        const auto ms = (Clock::now() - begun_) / std::chrono::milliseconds(1);
        std::cout << std::setw(8) << ms << " ms  " << who << "  " << what << "\n" << std::flush;
    }
    void promise(bool seen, const std::string& text) {
        all_seen_ = all_seen_ && seen;
        if (std::exchange(telling_, false)) std::cout << "\n";
        std::cout << (seen ? "    yes  " : "    NO   ") << text << "\n" << std::flush;
    }
    bool all_seen() const { return all_seen_; }

  private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point begun_ = Clock::now();
    bool telling_ = false;
    bool all_seen_ = true;
};

} // namespace fence
