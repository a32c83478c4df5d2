// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"

namespace stn {

// Something that wants to be told of a moment. Its owner keeps it in place while it is armed.
class timer {
  public:
    timer() = default;
    timer(const timer&) = delete;
    timer& operator=(const timer&) = delete;
    virtual ~timer() = default;
    virtual void due(mono_ms now) = 0;

  private:
    friend class timer_queue;
    mono_ms at_ = forever_ms;
    std::uint64_t order_ = 0;
    std::size_t pos_ = SIZE_MAX; // in the heap, SIZE_MAX: not armed
};

// Timers as data: a heap that is advanced from outside. Ties go to who was armed first, so a run can
// be repeated.
class timer_queue {
  public:
    // Arms, moves or (with forever_ms) disarms.
    void set(timer& t, mono_ms at);
    void cancel(timer& t) { set(t, forever_ms); }
    [[nodiscard]] mono_ms next_ms() const noexcept { return heap_.empty() ? forever_ms : heap_.front()->at_; }
    // Disarms and returns one that is due, or null.
    timer* pop(mono_ms now);
    [[nodiscard]] std::size_t size() const noexcept { return heap_.size(); }

  private:
    static bool before(const timer& a, const timer& b) noexcept {
        return a.at_ != b.at_ ? a.at_ < b.at_ : a.order_ < b.order_;
    }
    void up(std::size_t i);
    void down(std::size_t i);
    void place(std::size_t i, timer* t) noexcept;
    void remove(timer& t);

    std::vector<timer*> heap_;
    std::uint64_t order_ = 0;
};

} // namespace stn
