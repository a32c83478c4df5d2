// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/random.hpp"
#include "base/result.hpp"
#include "engine/event_queue.hpp"
#include "engine/loop.hpp"
#include "protocol/lock_machine.hpp"

namespace stn {

class client_core;
class lock_run;

// The host's end of a lock. Whether it is held is a matter of the clock alone: nothing here asks the store, and
// no answer of the store makes `held` true again once it was false.
//
// A lock ends in one of three ways, and whoever is first says which: the host lets go of it, the loop finds it
// lost, or the handle is destroyed, which lets go of it too. That is never lost for want of memory: the word to
// the loop is ready from the start.
class held_lock {
  public:
    enum class state : std::int32_t { held = 1, let_go = 2, lost = 3, left = 4 };

    held_lock(std::shared_ptr<client_core> core, std::shared_ptr<lock_run> run, std::int64_t fence, mono_ms safe_until);
    ~held_lock();
    held_lock(const held_lock&) = delete;
    held_lock& operator=(const held_lock&) = delete;

    [[nodiscard]] bool held() const noexcept { return remaining_ms() > 0; }
    [[nodiscard]] std::int64_t remaining_ms() const noexcept;
    [[nodiscard]] std::int64_t fence() const noexcept { return fence_; }
    [[nodiscard]] const token& mine() const noexcept;
    [[nodiscard]] const std::string& name() const noexcept;
    [[nodiscard]] state at() const noexcept { return state_.load(); }
    [[nodiscard]] lock_loss loss() const noexcept { return loss_.load(); }

    // Blocks until it is held no longer, up to `timeout_ms` (-1: for ever): ok, or timeout.
    status wait_lost(std::int64_t timeout_ms) noexcept;

    // Each promises one event to `home`; null: nobody wants to know. An error: nothing was begun.
    std::optional<error> renew(std::int64_t deadline_ms, const std::shared_ptr<event_queue>& home, std::uint64_t tag);
    std::optional<error> release(std::int64_t deadline_ms, const std::shared_ptr<event_queue>& home, std::uint64_t tag);
    // Forgets it; the key lives out its ttl. False: it was not held any more.
    bool leave();

    // Of the loop:
    void kept(mono_ms safe_until) noexcept { safe_until_.store(safe_until); }
    // False: the host has let go of it, and need not be told.
    bool lose(lock_loss why) noexcept;

    [[nodiscard]] const std::shared_ptr<client_core>& core() const noexcept { return core_; }

  private:
    [[nodiscard]] error why_not(std::string_view what) const;
    bool end(state how) noexcept;

    const std::shared_ptr<client_core> core_;
    const std::shared_ptr<lock_run> run_;
    const std::int64_t fence_;
    errand word_of_end_; // moved away by who ends it
    std::atomic<mono_ms> safe_until_;
    std::atomic<state> state_{state::held};
    std::atomic<lock_loss> loss_{lock_loss::none};
    std::mutex mutex_;
    std::condition_variable ended_;
};

} // namespace stn
