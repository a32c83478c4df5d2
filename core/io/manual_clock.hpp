// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.hpp"

namespace stn {

// The clock of tests. `advance` walks from one due timer of its listeners to the next, and tells them
// with no lock held: a listener may read the clock, watch, unwatch (itself too) and advance. An
// advance from inside a call moves the target of the running one and returns at once; one from
// another thread waits for its turn. At every stop it tells who is due until nobody is, and at the
// target everybody once. A walk needs no memory of its own.
class manual_clock final : public adjustable_clock {
  public:
    static constexpr mono_ms start_ms = 1'000'000'000'000; // 2001-09-09, also as server time

    [[nodiscard]] mono_ms now_ms() override;
    void watch(time_listener& who) override;
    void unwatch(time_listener& who) override;
    void advance(std::int64_t span_ms) override;

  private:
    using held = std::unique_lock<std::mutex>;
    class outside;

    void advance_to_target(held& lock);
    template <class Tell> void each_listener(Tell tell);
    void tell_due(held& lock);
    void tell_everybody(held& lock);
    [[nodiscard]] mono_ms next_stop(held& lock);
    [[nodiscard]] mono_ms due_of(held& lock, time_listener* who);
    [[nodiscard]] bool watched(const time_listener* who) const;

    std::atomic<mono_ms> now_{start_ms}; // written under mutex_
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<time_listener*> listeners_; // guarded by mutex_, like all below
    std::vector<time_listener*> walked_;    // the listeners as they were when a round began; room for all
    const time_listener* called_ = nullptr; // whose code runs now
    std::thread::id advancing_;             // the thread inside `advance`
    mono_ms target_ = start_ms;
};

} // namespace stn
