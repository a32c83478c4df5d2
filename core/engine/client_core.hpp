// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/chores.hpp"
#include "engine/counters.hpp"
#include "engine/fills.hpp"
#include "engine/flight_alarms.hpp"
#include "engine/locker.hpp"
#include "engine/loop.hpp"
#include "engine/mailboxes.hpp"
#include "engine/notices.hpp"
#include "engine/readiness.hpp"
#include "engine/single_flight.hpp"
#include "engine/transport.hpp"
#include "engine/wire.hpp"
#include "engine/writes.hpp"

namespace stn {

// All that a client is made of. `make_fill` and `make_lock` are there for tests that want a
// broken machine.
struct client_parts {
    std::unique_ptr<transport> link;
    std::shared_ptr<clock> time;
    std::shared_ptr<draws> chance;
    std::shared_ptr<adjustable_clock> manual; // null: the clock moves by itself
    client_settings settings;
    fill_factory make_fill;
    lock_factory make_lock;
    bool threaded = true; // false: somebody calls turns.turn()
};

// One client: composition and shutdown, no policy. Owned by its loop's thread and by the leases that
// are out; the host's handles hold a `client_handle`, whose end ends the client.
class client_core final : public turned, public wire_listener, public std::enable_shared_from_this<client_core> {
  public:
    static std::shared_ptr<client_core> make(client_parts parts); // and starts its thread
    static std::shared_ptr<client_core> make_still(client_parts parts);
    void start();
    explicit client_core(client_parts parts);
    ~client_core() override;

    // Refuses new work; done when running loads have answered or the deadline has passed. `home` gets
    // DONE; null: nobody wants to know.
    void begin_close(std::int64_t deadline_ms, const std::shared_ptr<event_queue>& home, std::uint64_t tag);
    // The same in two steps, of which the second needs no memory. False: it is closed already.
    [[nodiscard]] errand word_of_close(std::int64_t deadline_ms, std::shared_ptr<event_queue> home, std::uint64_t tag);
    bool begin_close(errand word) noexcept;
    // Makes the loop turn, after `post_for_help`; or leaves that to whoever reads `home`, if he begins to wait there now.
    void turn_for(event_queue* home) noexcept;
    bool post_for(event_queue* home, errand task) noexcept;
    // Nobody can begin anything any more: ends, silently, with what is still running.
    void close_when_idle();
    [[nodiscard]] bool closing() const noexcept { return closing_.load(); }
    [[nodiscard]] bool closed() const noexcept { return closed_.load(); }

    // Events for callers that were taken out of a flight. Returns how many carry the host_ref.
    std::uint32_t deliver(std::span<const caller> who, const outcome_ptr& how) noexcept;
    [[nodiscard]] event answer_event(const caller& who, const outcome_ptr& how, server_ms server_now) const;
    // The same under the turn lock: they leave with the turn.
    void mail(callers who, const outcome_ptr& how, mono_ms now);

    std::shared_ptr<cache_state> cache(std::string_view name, std::uint32_t max_loads);
    std::uint32_t new_space() noexcept { return next_space_.fetch_add(1); }
    [[nodiscard]] stat_block stats() const;

    // Under the turn lock.
    void watch(const std::shared_ptr<event_queue>& home, std::uint32_t mask, std::uint64_t tag);
    void tell(notice what, status code, const std::string& text);

    // What an op left behind when its caller was taken out.
    void after_leave(const single_flight::left_behind& l) noexcept;
    // A flight of a group has ended with its alarm set.
    void end_alarm(std::uint64_t flight) noexcept;

    // For a fork child: closes descriptors and touches nothing shared.
    void abandon_after_fork() noexcept {
        turns.abandon_after_fork([this] { parts_.link->abandon_after_fork(); });
    }

    // turned
    void on_turn(mono_ms now) override;
    void on_mail(std::size_t events) override { totals.add(stat::events, events); }
    mono_ms next_external_ms() override { return commands.next_ms(); }
    void on_turn_end(mono_ms now) override { commands.flush(now); }
    std::span<watched> watch() override { return commands.watch(); }
    std::size_t going_on() override { return fetches.size() + changes.size() + locks.going_on() + asks.size(); }
    // wire_listener
    void on_message(std::string_view payload, mono_ms now) override {
        fetches.on_message(payload, now);
        locks.on_message(payload, now);
    }
    void on_subscribed(mono_ms now) override {
        fetches.on_subscribed(now);
        locks.on_connection(now);
    }
    void on_connection(transport_event::kind how, status code, std::string_view why, mono_ms now) override;
    void on_breaker(bool open) override;
    void on_alert(refusal why, std::string_view server_text) override;

  private:
    client_parts parts_; // first: the others refer to it

  public:
    const client_settings& settings;
    clock& time;
    draws& chance;
    const fill_factory& make_fill;
    const lock_factory& make_lock;
    counters totals;
    std::shared_ptr<single_flight> flights;
    loop turns;
    wire commands;
    fills fetches;
    writes changes;
    locker locks;
    chores asks;
    flight_alarms alarms;
    notices told;
    readiness ready;
    mailboxes private_queues;
    std::atomic<bool> settling{false};          // an attempt to connect may still end well; any thread may read it
    std::atomic<std::int64_t> server_offset{0}; // server time - mono time, as last seen
    const outcome_ptr client_closed;            // why everything ends in the end

  private:
    struct close_timer final : timer {
        client_core* core = nullptr;
        void due(mono_ms now) override { core->finish_close(now); }
    };
    // For want of memory to say where: the loop looks at everything.
    void look_round() noexcept;
    void try_finish(mono_ms now);
    void finish_close(mono_ms now);
    void end(mono_ms now);

    std::atomic<bool> closing_{false};
    std::atomic<bool> closed_{false};
    std::atomic<bool> look_round_{false};
    std::atomic<std::uint32_t> next_space_{1};
    mutable std::mutex caches_mutex_;
    std::map<std::string, std::shared_ptr<cache_state>, std::less<>> caches_; // caches_mutex_
    // under the turn lock
    close_timer close_timer_;
    std::vector<lease::filled_to> closers_;
    bool close_begun_ = false;
    bool close_when_idle_ = false;
    bool ended_ = false; // the connection is closed too
    mono_ms close_until_ = 0;
};

// What the host's handles share: the client ends with the last of them, and has the word for it ready.
class client_handle {
  public:
    explicit client_handle(std::shared_ptr<client_core> of)
        : core(std::move(of)),
          word_of_close_(core->word_of_close(0, nullptr, 0)) {}
    ~client_handle() { core->begin_close(std::move(word_of_close_)); }
    // A client that runs; there is no thread if there is no handle.
    static std::shared_ptr<client_handle> open(client_parts parts);
    client_handle(const client_handle&) = delete;
    client_handle& operator=(const client_handle&) = delete;
    const std::shared_ptr<client_core> core;

  private:
    errand word_of_close_;
};

} // namespace stn
