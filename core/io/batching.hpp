// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace stn {

// When commands that were collected may leave. While a batch is on its way the next one grows: on a
// loopback that alone doubles the rate, because both sides handle many commands by one system call. Over a
// network one batch at a time would leave the line idle, so as many may be under way as fit into a round
// trip at one each `spacing_us`. Nor is a server that does not answer for `stall_us` waited for: what lets go
// of something is to be there when it goes on, or when only the way back is broken.
class batching {
  public:
    static constexpr std::int64_t spacing_us = 100;
    static constexpr std::int64_t stall_us = 20'000;
    static constexpr std::size_t large = std::size_t{64} << 10; // bytes that leave in any case

    void appended(std::size_t commands = 1) noexcept { appended_ += commands; }
    [[nodiscard]] bool may_leave(std::size_t unsent_bytes) const noexcept {
        return appended_ == left_ || under_way_.size() < most_ || unsent_bytes >= large;
    }
    [[nodiscard]] bool stalled(std::int64_t now_us) const noexcept {
        return !under_way_.empty() && now_us - under_way_.back().left_at_us >= stall_us;
    }
    void left(std::int64_t now_us) {
        if (appended_ == left_) return;
        left_ = appended_;
        under_way_.push_back({appended_, now_us});
    }
    // One more reply. `clock_us` is asked only when it ends a batch.
    template <class Clock> void replied(Clock&& clock_us) {
        ++replied_;
        if (under_way_.empty() || under_way_.front().last > replied_) return;
        const std::int64_t took = clock_us() - under_way_.front().left_at_us;
        under_way_.pop_front();
        // The shortest of late: the server's own work, and ours, are no reason to send more.
        round_trip_us_ =
            round_trip_us_ == 0 || took < round_trip_us_ ? took : round_trip_us_ + (took - round_trip_us_) / 64;
        most_ = 1 + static_cast<std::size_t>(round_trip_us_ / spacing_us);
    }
    // Of those appended, how many replies are due that never left.
    [[nodiscard]] std::size_t unsent() const noexcept { return appended_ - left_; }
    void reset() noexcept {
        appended_ = left_ = replied_ = 0;
        under_way_.clear();
        most_ = 1;
        round_trip_us_ = 0;
    }
    [[nodiscard]] std::size_t most() const noexcept { return most_; }

  private:
    struct batch {
        std::uint64_t last;
        std::int64_t left_at_us;
    };
    std::uint64_t appended_ = 0;
    std::uint64_t left_ = 0;
    std::uint64_t replied_ = 0;
    std::deque<batch> under_way_;
    std::int64_t round_trip_us_ = 0;
    std::size_t most_ = 1;
};

} // namespace stn
