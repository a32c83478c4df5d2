// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "engine/event.hpp"
#include "engine/event_queue.hpp"
#include "engine/loop.hpp"
#include "engine/single_flight.hpp"

namespace stn {

class client_core;
class fill_run;

// The host's end of a load: answer once, or be destroyed without an answer, which gives it up. That is
// never lost: the word to the loop is ready from the start.
class lease {
  public:
    enum class state : std::int32_t { live = 1, revoked = 2, ended = 3 };

    lease(std::shared_ptr<client_core> core, std::shared_ptr<fill_run> run, single_flight::ref flight,
          std::uint64_t number, const caller& holder, bool leased, outcome_ptr fallback);
    ~lease();
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;

    // The event was handed to the host: the load begins.
    void mark_read() noexcept;
    [[nodiscard]] mono_ms read_at() const noexcept { return read_at_.load(); }
    // The host took it out of its event.
    void mark_taken() noexcept;
    // Withdrawn: destroying it means nothing any more.
    void disarm() noexcept { answered_.store(true); }

    struct filled_to {
        std::shared_ptr<event_queue> home; // null: nobody wants to know
        std::uint64_t tag = 0;
    };
    struct answered {
        outcome_ptr how;
        std::uint32_t shared = 0; // how many events carry the host_ref
    };
    // Nothing: answered already. `how.storage` holds the value.
    std::optional<answered> answer(outcome how, const filled_to& told);
    // False: answered already. 0 waiters: given up in the same instant.
    bool detach(std::uint32_t& waiters);
    void revoke(reason why) noexcept;
    [[nodiscard]] state at() const noexcept;

    // Names the load for calls made from inside it.
    std::uint64_t open_scope();
    [[nodiscard]] std::uint8_t codec() const noexcept;
    [[nodiscard]] const std::shared_ptr<client_core>& core() const noexcept { return core_; }
    [[nodiscard]] const std::shared_ptr<event_queue>& home() const noexcept { return home_; }
    [[nodiscard]] std::uint64_t tag() const noexcept { return tag_; }

  private:
    void give_up() noexcept;
    void end_edge() noexcept;

    const std::shared_ptr<client_core> core_;
    const std::shared_ptr<fill_run> run_;
    const single_flight::ref flight_;
    const std::uint64_t number_;
    const std::shared_ptr<event_queue> home_;
    const std::uint64_t tag_;
    const std::uint64_t within_;
    const bool leased_;
    const outcome_ptr fallback_; // for those who joined, better than an error
    errand word_of_end_;         // given up; moved away by who sets answered_
    std::atomic<mono_ms> read_at_{-1};
    std::atomic<bool> taken_{false};
    std::atomic<bool> answered_{false};
    std::atomic<bool> revoked_{false};
};

} // namespace stn
