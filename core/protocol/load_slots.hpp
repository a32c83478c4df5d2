// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

namespace stn {

// Places for running loads, and the line of those who want one. A bound of 0 is no bound.
template <class Id> class load_slots {
  public:
    explicit load_slots(std::uint32_t bound = 0) : bound_(bound) {}

    void set_bound(std::uint32_t bound) noexcept { bound_ = bound; }
    [[nodiscard]] bool free() const noexcept { return bound_ == 0 || running_ < bound_; }
    [[nodiscard]] std::uint32_t running() const noexcept { return running_; }

    // True: taken. False: `who` stands in line.
    bool take(const Id& who) {
        if (free()) {
            ++running_;
            return true;
        }
        line_.push_back(who);
        return false;
    }

    // Only if one is free.
    bool try_take() {
        if (!free()) return false;
        ++running_;
        return true;
    }

    void leave_line(const Id& who) { std::erase(line_, who); }

    // Gives one back; true with the next in `next` when somebody takes it over.
    bool give_back(Id& next) {
        --running_;
        if (line_.empty() || !free()) return false;
        next = line_.front();
        line_.pop_front();
        ++running_;
        return true;
    }

  private:
    std::uint32_t bound_;
    std::uint32_t running_ = 0;
    std::deque<Id> line_;
};

} // namespace stn
