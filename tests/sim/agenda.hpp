// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"

namespace stn::sim {

// True time, which no node knows: microseconds since the seed began.
using micros = std::int64_t;

inline constexpr micros ms = 1'000;
inline constexpr micros second = 1'000'000;
inline constexpr micros never = INT64_MAX;

// Somebody to whom things happen. Actors live as long as the world, so that nothing ever happens to
// one that is gone.
class actor {
  public:
    actor() = default;
    actor(const actor&) = delete;
    actor& operator=(const actor&) = delete;
    virtual ~actor() = default;
    virtual void act(std::uint32_t what, std::uint64_t with) = 0;
};

// What will happen, in order of true time; of equals what was arranged first.
class agenda {
  public:
    [[nodiscard]] micros now() const noexcept { return now_; }

    void at(micros when, actor& who, std::uint32_t what, std::uint64_t with = 0) {
        heap_.push_back({std::max(when, now_), ++order_, &who, what, with});
        std::push_heap(heap_.begin(), heap_.end(), later);
    }

    // One thing; false when nothing is left before `until`, which then is now.
    bool step(micros until) {
        if (heap_.empty() || heap_.front().at > until) {
            now_ = std::max(now_, until);
            return false;
        }
        std::pop_heap(heap_.begin(), heap_.end(), later);
        const thing next = heap_.back();
        heap_.pop_back();
        now_ = next.at;
        ++steps_;
        next.who->act(next.what, next.with);
        return true;
    }

    [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

  private:
    struct thing {
        micros at;
        std::uint64_t order;
        actor* who;
        std::uint32_t what;
        std::uint64_t with;
    };
    static bool later(const thing& a, const thing& b) noexcept {
        return a.at != b.at ? a.at > b.at : a.order > b.order;
    }

    micros now_ = 0;
    std::uint64_t order_ = 0;
    std::uint64_t steps_ = 0;
    std::vector<thing> heap_;
};

// A node's clock: it runs at a rate of its own, from a beginning of its own, and never stops.
class node_clock final : public clock {
  public:
    node_clock(const agenda& world, mono_ms began, std::int64_t rate_ppm) noexcept
        : world_(world),
          began_(began),
          ppm_(1'000'000 + rate_ppm) {}

    [[nodiscard]] mono_ms now_ms() override { return at(world_.now()); }
    [[nodiscard]] mono_ms at(micros true_time) const noexcept { return began_ + true_time / 1'000 * ppm_ / 1'000'000; }
    // The first true moment at which this clock shows `local` or more.
    [[nodiscard]] micros when(mono_ms local) const noexcept {
        if (local == forever_ms) return never;
        if (local <= began_) return 0;
        micros guess = (local - began_) * 1'000'000 / ppm_ * 1'000;
        while (at(guess) < local) guess += 1'000;
        return guess;
    }

  private:
    const agenda& world_;
    const mono_ms began_;
    const std::int64_t ppm_;
};

} // namespace stn::sim
