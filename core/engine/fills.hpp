// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/blocks.hpp"
#include "engine/counters.hpp"
#include "engine/lease.hpp"
#include "engine/single_flight.hpp"
#include "engine/timer_queue.hpp"
#include "engine/wire.hpp"
#include "protocol/fill_machine.hpp"
#include "protocol/load_slots.hpp"

// The engine around the fill machines: one `fill_run` per flight carries out what its machine says.
// Everything here is under the turn lock, but for the counters and what is said to be const.
namespace stn {

class client_core;

// One cache name of one client, shared by its handles.
struct cache_state {
    std::uint32_t space = 0; // const
    std::string name;        // const
    counters stats;

    std::atomic<std::int64_t> average_load_ms{0}; // written under the turn lock, read by any thread

    // Under the turn lock:
    load_slots<std::uint64_t> slots;   // max_loads
    load_slots<std::uint64_t> overdue; // max_loads again, for loads past max_load
    std::map<token, mono_ms> asked;    // refresh of a generation: not again before
    bool margin_told = false;
    bool version_told = false;
};

using fill_factory = std::function<std::unique_ptr<fill_port>(fill_setup)>;

class fill_run final : public reply_sink, public std::enable_shared_from_this<fill_run> {
  public:
    struct start {
        single_flight::ref flight; // held; the run drops it
        std::shared_ptr<cache_state> cache;
        fill_setup setup;
        caller refresher; // of a refresh: who gets the REFRESH event
        std::optional<mono_ms> alarm;
    };

    fill_run(client_core& core, start s);
    ~fill_run() override;

    void begin(mono_ms now);
    [[nodiscard]] bool begun() const noexcept { return begun_; }
    void feed(fill_input in, mono_ms now);
    void feed(fill_input::kind what, mono_ms now);
    void replied(std::uint32_t id, delivery how, reply r, mono_ms now) override;
    [[nodiscard]] bool awaits(std::uint32_t id) const override { return !done_ && machine_->awaits(id); }
    void loaded(outcome_ptr how, lease::filled_to told, mono_ms now);
    void freed(std::uint64_t lease_no, mono_ms now);
    // Perhaps nobody waits any more.
    void check_callers(mono_ms now);
    void set_alarm(mono_ms at);
    void slot_granted();
    void close(mono_ms now);

    [[nodiscard]] std::uint64_t id() const noexcept { return flight_.id; }
    [[nodiscard]] const std::string& store_key() const noexcept { return names_->store_key; }
    [[nodiscard]] const std::string& key() const noexcept { return names_->key; }
    [[nodiscard]] const fill_policy& policy() const noexcept { return *policy_; }
    [[nodiscard]] const std::shared_ptr<cache_state>& cache() const noexcept { return cache_; }
    [[nodiscard]] bool done() const noexcept { return done_; }
    [[nodiscard]] bool loading() const noexcept { return load_open_; }
    [[nodiscard]] bool settling() const noexcept { return filling_; }

  private:
    enum class pool : std::uint8_t { none, unbounded, cache, down, overdue };
    struct wake_timer final : timer {
        fill_run* run = nullptr;
        void due(mono_ms now) override;
    };
    struct alarm_timer final : timer {
        fill_run* run = nullptr;
        void due(mono_ms now) override;
    };

    void pump(mono_ms now);
    void perform(fill_output& out, mono_ms now);
    void answer(const outcome_ptr& how, mono_ms now);
    [[nodiscard]] bool fallback_good(mono_ms now) const;
    void offer(bool leased, const token& which, mono_ms now);
    void hand_lease(caller to);
    void end_load();
    void check_offer(bool leased, mono_ms now);
    void need_slot(bool store_down, mono_ms now);
    void drop_slot(mono_ms now);
    void overdue_slot(mono_ms now);
    void wait_for(const token& which, mono_ms now);
    void revoke(reason why);
    void spare(const token& which, std::int64_t for_ms, mono_ms now);
    void filled(status how, mono_ms now, const outcome_ptr& said = nullptr);
    void finish(mono_ms now);
    void start_again(mono_ms now);
    void sweep(mono_ms now);
    void tell_all(callers who, error why);

    client_core& core_;
    single_flight::ref flight_;
    const std::shared_ptr<cache_state> cache_;
    const std::shared_ptr<const fill_policy> policy_;
    const std::shared_ptr<const key_names> names_;
    const fill_mode mode_;
    const token refreshed_; // of a refresh: the generation
    std::unique_ptr<fill_port> machine_;
    wake_timer wake_;
    alarm_timer alarm_;

    caller refresher_;                   // gets the REFRESH event
    outcome_ptr fallback_;               // a value this flight replaces, better than an error
    std::optional<caller> asks_refresh_; // of the callers answered last: the first that opted in
    std::weak_ptr<lease> current_;
    caller holder_; // of the current lease
    std::uint64_t lease_no_ = 0;
    token lease_token_{};
    bool leased_ = false;
    bool load_open_ = false;           // offered or running, and may still answer
    std::vector<std::uint64_t> edges_; // flights of this process it waits for
    lease::filled_to filled_to_;
    pool slot_ = pool::none;
    pool line_ = pool::none;
    bool begun_ = false;
    bool filling_ = false;
    bool pumping_ = false;
    bool done_ = false;
};

class fills {
  public:
    explicit fills(client_core& core) : core_(core) {}

    void begin(fill_run::start s, mono_ms now);
    void start_refresh(const std::shared_ptr<cache_state>& cache, std::shared_ptr<const fill_policy> policy,
                       std::shared_ptr<const key_names> names, const token& generation, caller who, mono_ms now);
    [[nodiscard]] std::shared_ptr<fill_run> find(std::uint64_t flight) const;
    void on_message(std::string_view payload, mono_ms now);
    void on_subscribed(mono_ms now);
    // An invalidation here: machines of the key learn of it.
    void detached(std::uint32_t space, std::string_view store_key, mono_ms now);
    // Callers have left, nobody knows where.
    void look_round(mono_ms now);
    // While the connection settles, flights wait for how that ends.
    void settle(bool unsettled, mono_ms now);
    void close(mono_ms now);
    // Loads the host still runs, and fills not yet answered.
    [[nodiscard]] bool busy() const;
    [[nodiscard]] std::size_t size() const noexcept { return runs_.size(); }

    // Of the runs:
    void forget(fill_run& run);
    void add_spare(const std::string& store_key, const token& which, mono_ms until, mono_ms now);
    [[nodiscard]] std::vector<token> spares(const std::string& store_key, mono_ms now);
    void give_back(load_slots<std::uint64_t>& slots, mono_ms now);

    load_slots<std::uint64_t> down_slots;      // loads without a lease while the store is down, max_loads_down
    std::map<token, std::uint64_t> own_tokens; // leases this client holds -> flight

  private:
    [[nodiscard]] std::vector<std::shared_ptr<fill_run>> all() const; // by their numbers
    template <class Do> void each_of(const std::string& store_key, Do&& act);

    client_core& core_;
    blocks::unordered_map<std::uint64_t, std::shared_ptr<fill_run>> runs_;
    blocks::unordered_multimap<std::string_view, std::uint64_t> by_key_; // the store keys of the runs
    struct spare_token {
        token which;
        mono_ms until;
    };
    std::unordered_map<std::string, std::vector<spare_token>> spares_;
    std::vector<std::weak_ptr<fill_run>> held_; // not begun: the connection settles
};

} // namespace stn
