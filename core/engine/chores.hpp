// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "engine/event_queue.hpp"
#include "engine/loop.hpp"
#include "engine/single_flight.hpp"
#include "engine/timer_queue.hpp"
#include "engine/wire.hpp"
#include "protocol/commands.hpp"

namespace stn {

class client_core;

// A run of a tick in the hands of the host. Ended once; destroyed without an end it is undone, so that another
// host may take the slot.
class held_tick {
  public:
    held_tick(std::shared_ptr<client_core> core, std::string key, std::string name, const token& mine,
              const tick_times& when, server_ms slot, std::int64_t fence);
    ~held_tick();
    held_tick(const held_tick&) = delete;
    held_tick& operator=(const held_tick&) = delete;

    // One event to `home`; null: nobody wants to know. An error: nothing was begun.
    std::optional<error> done(bool ok, std::int64_t deadline_ms, const std::shared_ptr<event_queue>& home,
                              std::uint64_t tag);
    [[nodiscard]] server_ms slot() const noexcept { return slot_; }
    [[nodiscard]] std::int64_t fence() const noexcept { return fence_; }
    [[nodiscard]] const token& mine() const noexcept { return mine_; }
    // Of the loop: the client ends.
    bool disarm() noexcept { return !ended_.exchange(true); }

  private:
    friend class chores;
    const std::shared_ptr<client_core> core_;
    const std::string key_;
    const std::string name_;
    const token mine_;
    const tick_times when_;
    const server_ms slot_;
    const std::int64_t fence_;
    errand word_of_end_; // moved away by who ends it
    std::atomic<bool> ended_{false};
};

// Questions of one command: ticks and their ends, once, inspect. Asked again, with the same token, until it is
// answered or its deadline; whoever gives up takes back, on the same connection, what the store may have given.
// Under the turn lock.
class chores {
  public:
    explicit chores(client_core& core) : core_(core) {}

    struct request {
        enum class kind : std::uint8_t { tick, tick_end, once, inspect, take_back } what = kind::inspect;
        single_flight::ref flight; // its one caller is who asked; held. None: `home` is, or nobody
        std::string key;           // the store's
        std::string name;          // the user's
        token mine{};              // of a tick_end; else drawn here
        tick_times when;
        std::int64_t ttl_ms = 0; // of a once
        bool done = false;       // of a tick_end
        mono_ms deadline = forever_ms;
        std::shared_ptr<event_queue> home; // of a tick_end
        std::uint64_t tag = 0;
    };
    void begin(request r, mono_ms now);
    void check_caller(std::uint64_t flight, mono_ms now);
    void look_round(mono_ms now);
    void on_connection(mono_ms now);
    void close(mono_ms now);
    void end();
    [[nodiscard]] bool busy() const noexcept { return !running_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return running_.size(); }

  private:
    class run;
    [[nodiscard]] std::vector<std::shared_ptr<run>> all() const;

    client_core& core_;
    std::uint64_t last_no_ = 0;
    std::map<std::uint64_t, std::shared_ptr<run>> running_; // by age
    std::vector<std::weak_ptr<held_tick>> out_;             // ticks in the hands of the host
};

} // namespace stn
