// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "engine/client_core.hpp"

namespace stn {

// The duty to finish one run of a group; destroyed unfinished, it goes to who has waited longest. If there
// is no memory to hand it on, all who wait are told so.
class flight_lead {
  public:
    flight_lead(std::shared_ptr<client_handle> owner, single_flight::ref flight, std::uint64_t number,
                std::uint64_t scope, std::uint64_t within);
    ~flight_lead();
    // The duty changes hands; nobody else may be using `from`.
    flight_lead(flight_lead&& from) noexcept
        : owner_(std::move(from.owner_)),
          flight_(std::exchange(from.flight_, {})),
          number_(from.number_),
          scope_(from.scope_),
          within_(from.within_),
          finished_(from.finished_.load(std::memory_order_relaxed)),
          held_(std::exchange(from.held_, false)) {
        from.finished_.store(true, std::memory_order_relaxed);
    }
    flight_lead(const flight_lead&) = delete;
    flight_lead& operator=(const flight_lead&) = delete;

    // False: finished already.
    bool finish(outcome&& how, std::uint32_t& shared) {
        return finish([&] { return std::move(how); }, shared);
    }
    // The same, making the outcome only if somebody waits for it.
    template <std::invocable Make> bool finish(Make&& make, std::uint32_t& shared) {
        ending e = end(nullptr, shared);
        if (e == ending::wanted) e = end(owned(std::forward<Make>(make)()), shared);
        return e == ending::over;
    }
    bool detach(std::uint32_t& waiters);
    std::uint64_t open_scope();
    [[nodiscard]] const std::shared_ptr<client_handle>& owner() const noexcept { return owner_; }

  private:
    enum class ending : std::uint8_t { over, already, wanted };
    // Ends it, unless there is nothing to tell to those who wait: `wanted`.
    ending end(const outcome_ptr& how, std::uint32_t& shared);
    [[nodiscard]] outcome_ptr owned(outcome how) const;
    void hand_on() noexcept;
    void over(bool alarm) noexcept;

    std::shared_ptr<client_handle> owner_;
    single_flight::ref flight_; // held
    std::uint64_t number_;
    std::uint64_t scope_;
    std::uint64_t within_;
    std::atomic<bool> finished_{false};
    bool held_ = true; // written by who sets finished_
};

// Single-flight without a cache. Any thread; nothing blocks.
class group {
  public:
    explicit group(std::shared_ptr<client_handle> owner);

    struct joined {
        std::optional<flight_lead> lead; // set: this caller runs it
        std::uint64_t op = 0;
    };
    // Fills `out`, which is made in place: a flight costs no allocation here.
    std::optional<error> join(std::string_view key, std::int64_t deadline_ms, std::uint64_t within,
                              const std::shared_ptr<event_queue>& home, std::uint64_t tag, joined& out);
    // The next caller starts anew.
    std::optional<error> forget(std::string_view key);

    [[nodiscard]] const std::shared_ptr<client_handle>& owner() const noexcept { return owner_; }

  private:
    const std::shared_ptr<client_handle> owner_;
    const std::uint32_t space_;
};

} // namespace stn
