// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/event_queue.hpp"
#include "engine/single_flight.hpp"
#include "engine/timer_queue.hpp"
#include "engine/wire.hpp"
#include "protocol/lock_machine.hpp"

// The locks of one client: a line for each key, and a `lock_run` for each acquire.
//
// Only the front of a line has to do with the store: it asks for the lock, or holds it. Who stands behind it
// sends nothing; whatever the front still has to send when it goes (its release, or that of an acquire that was
// given up) is sent before its successor's first acquire, on the same connection. So a hand-over inside the
// process takes one round trip, and the lock is as free as it can be when the next one asks.
//
// Between processes: see schedule::lock_try_after. What is known of the others who want a key is kept for a second after
// it was last wanted here. A client that knows of nobody lets others go first after `lock_turns` hand-overs in a row.
//
// Everything is under the turn lock, but for what is said to be const.
namespace stn {

class client_core;
class held_lock;
class locker;

using lock_factory = std::function<std::unique_ptr<lock_port>(lock_setup)>;

class lock_run final : public reply_sink, public timer, public std::enable_shared_from_this<lock_run> {
  public:
    struct reply_to {
        std::shared_ptr<event_queue> home; // null: nobody wants to know
        std::uint64_t tag = 0;
    };
    struct request {
        single_flight::ref flight; // its one caller is who asked; held, the run drops it
        lock_setup setup;
        mono_ms deadline = forever_ms;
        bool once = false; // a try
        std::uint64_t within = 0;
        reply_to loss; // where LOCK_LOST goes
    };
    lock_run(client_core& core, request r, std::uint64_t no);

    // reply_sink, timer
    void replied(std::uint32_t id, delivery how, reply r, mono_ms now) override;
    [[nodiscard]] bool awaits(std::uint32_t id) const override { return machine_->awaits(id); }
    void due(mono_ms now) override;

    // What the handle says; each answers once.
    void renew(reply_to whom, mono_ms until, mono_ms now);
    void let_go(reply_to whom, mono_ms until, mono_ms now);
    void leave(mono_ms now);

    [[nodiscard]] const token& mine() const noexcept { return mine_; }                  // const once it is granted
    [[nodiscard]] const std::string& name() const noexcept { return what_.setup.name; } // const

  private:
    friend class locker;
    void ask(mono_ms not_before, double turn, int seen, mono_ms now);
    void feed(lock_input in, mono_ms now);
    void feed(lock_input::kind what, mono_ms now);
    void give_up(error why, mono_ms now); // before it has asked
    void pump(mono_ms now);
    void perform(lock_output& out, mono_ms now);
    void grant(std::int64_t fence, mono_ms now);
    void answer_error(error why, bool no_ttl);
    void lose(lock_loss why);
    void tell(const reply_to& whom, error how);
    void tell_releaser(error how); // if anybody is
    [[nodiscard]] bool wait_for(std::uint64_t holder);
    void forget_edge();
    void arm(mono_ms now);

    client_core& core_;
    request what_;
    const std::uint64_t no_;
    std::unique_ptr<lock_port> machine_;
    std::weak_ptr<held_lock> handle_;
    std::vector<reply_to> renewers_;
    std::optional<reply_to> releaser_;
    token mine_{};
    std::uint64_t edge_ = 0; // whom it waits for inside this process
    bool asked_ = false;     // it is, or was, the front
    bool granted_ = false;
    bool pumping_ = false;
    bool resting_ = false; // held, and nothing is going on
    bool done_ = false;
};

class locker {
  public:
    explicit locker(client_core& core) : core_(core) {}
    ~locker();
    locker(const locker&) = delete;
    locker& operator=(const locker&) = delete;

    void begin(lock_run::request r, mono_ms now);
    // The caller of that flight has gone.
    void check_caller(std::uint64_t flight, mono_ms now);
    void look_round(mono_ms now);
    void on_message(std::string_view payload, mono_ms now);
    // The connection stands anew, or messages may have been missed.
    void on_connection(mono_ms now);
    // Lets go of everything; `busy` until the store has answered.
    void close(mono_ms now);
    // And now it need not answer any more.
    void end();
    [[nodiscard]] bool busy() const noexcept { return !runs_.empty(); }
    // Locks asked for or on their way back: what a caller may wait for.
    [[nodiscard]] std::size_t going_on() const noexcept { return runs_.size() - resting_; }
    [[nodiscard]] std::size_t size() const noexcept { return runs_.size(); }

  private:
    friend class lock_run;
    struct line {
        std::shared_ptr<lock_run> front;
        std::deque<std::shared_ptr<lock_run>> behind;
        int turns = 0; // hand-overs without a break
    };
    using lines = std::unordered_map<std::string, line>;

    // After something has happened to `run`: its line moves on, and what is done is forgotten.
    void settle(const std::shared_ptr<lock_run>& run, mono_ms now);
    void advance(const std::string& key, line& l, mono_ms now);
    void leave_line(const std::shared_ptr<lock_run>& run);
    void forget(const std::shared_ptr<lock_run>& run);
    void note_rest(bool rests) noexcept { resting_ += rests ? std::size_t{1} : static_cast<std::size_t>(-1); }
    [[nodiscard]] bool note_endless(const std::string& key);
    void note_end(const lock_run& run, mono_ms now);
    [[nodiscard]] std::vector<std::shared_ptr<lock_run>> all() const;

    client_core& core_;
    std::uint64_t last_no_ = 0;
    std::map<std::uint64_t, std::shared_ptr<lock_run>> runs_;    // by age
    std::unordered_map<std::uint64_t, std::uint64_t> by_flight_; // of those whose caller still waits
    lines lines_;
    // Others who want a key, too.
    struct rivals {
        double turn = 0;   // see schedule::lock_turn
        int vain = 0;      // locks since they were seen last
        int seen = 0;      // releases since it was held here
        mono_ms at = 0;    // when it was last wanted here
        mono_ms given = 0; // when it was given back here
        token mine;        // under which it was held here last: one's own release is no news
        [[nodiscard]] double believed() const noexcept;
    };
    rivals* meet_rivals(const std::string& key, mono_ms now);
    [[nodiscard]] const rivals* rivals_of(const std::string& key, mono_ms now);
    std::unordered_map<std::string, rivals> rivals_;
    std::unordered_set<std::string> endless_; // keys that were told to have no TTL
    std::size_t waiting_ = 0;                 // in all lines, behind their fronts
    std::size_t resting_ = 0;
};

} // namespace stn
