// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/blocks.hpp"
#include "base/function_ref.hpp"
#include "engine/event_queue.hpp"
#include "protocol/flight_table.hpp"
#include "protocol/outcome.hpp"

// The front of every call: callers of one key share one flight.
//
// Sixteen shards, each a flight_table under a mutex of its own. Whatever decides who is answered
// happens under that mutex, once: answering takes all callers out and takes the flight off the list
// in one step, so nobody can join a flight that has been answered, and a caller that was taken out
// cannot be cancelled, timed out or answered again.
//
// What may run out of memory comes before anything has happened: `enter` and the answers prepare all, let
// the caller prepare the rest (`first`), and then change the table without needing more.
//
// Lock order: the wait graph's mutex (only for calls that come from inside a load) -> a shard's mutex -> the
// loop's inbox, or a queue's mutex.
// The client's turn lock may be held around both; it is never taken inside.
namespace stn {

class client_core;
class wait_graph;

struct caller {
    std::shared_ptr<event_queue> home;
    std::uint64_t tag = 0;
    std::uint64_t within = 0;    // flight whose load makes this call, 0: none
    std::uint64_t in_flight = 0; // flight it waits for, when `within` is set
    mono_ms deadline = forever_ms;
    bool refresh = false; // would run a refresh
    bool no_wait = false; // does not wait for anybody else's load
    bool led = false;     // opened the flight
    mono_ms came = 0;     // of fetches: when it called
};
using callers = std::vector<caller, blocks::allocator<caller>>;

class single_flight {
  public:
    struct extra {
        std::uint64_t lease_no = 0; // of the load that may answer, 0: none runs
        std::uint64_t scope = 0;    // host_scope of the queue that its lease went to
        bool busy = false;          // its callers wait for a load, here or elsewhere
        bool hasty = false;         // somebody who does not wait has entered it, at any time
        bool in_line = false;       // it waits for a load slot
        bool exempt = false;        // opened from inside a load: needs no slot
        bool detached = false;      // an invalidation has passed
        bool holder_gone = false;   // the holder's own caller has left
        bool machine = false;       // the loop drives it (a fetch, not a group)
        bool scoped = false;        // its load has been named to the host
    };
    using table = flight_table<caller, extra>;

    struct shard {
        std::mutex mutex;
        table flights; // mutex
        const std::uint32_t no;
        std::uint64_t opened = 0; // flights of groups; mutex
        std::uint64_t joined = 0; // their joins; mutex
        shard(std::uint32_t number, std::uint64_t step, std::uint64_t first_id) : flights(step, first_id), no(number) {}
    };

    // A flight that somebody holds.
    struct ref {
        table::flight* f = nullptr;
        shard* at = nullptr;
        std::uint64_t id = 0;
        explicit operator bool() const noexcept { return f != nullptr; }
    };

    struct ticket {
        enum class kind : std::uint8_t { leads, joined, would_deadlock, no_wait, closed } what = kind::joined;
        ref flight;                   // held by the leader
        std::uint64_t op = 0;         // of the seat
        std::optional<mono_ms> alarm; // somebody must look at the flight's deadlines by then
    };

    struct entry {
        flight_key key;
        bool joins = true;        // may find a listed flight and be found
        bool leader_waits = true; // the leader has a seat too (a fetch), or runs at once (a group)
        bool machine = false;
    };

    explicit single_flight(std::uint32_t number = 0);
    ~single_flight();
    single_flight(const single_flight&) = delete;
    single_flight& operator=(const single_flight&) = delete;

    // Who comes; a `caller` is made of it only if it has to wait.
    struct visitor {
        const std::shared_ptr<event_queue>& home;
        std::uint64_t tag = 0;
        std::uint64_t within = 0;
        mono_ms deadline = forever_ms;
        bool refresh = false;
        bool no_wait = false;
        mono_ms came = 0;
    };
    // `first` is called if this call leads or sets an alarm, before anybody can see that it has entered.
    // If it throws, nobody has.
    using first_step = function_ref<void(const ticket&)>;
    ticket enter(const entry& how, visitor who, first_step first = {});

    // Takes a caller out by its op; `left`: how many still wait there; `flight`: where it was (not held).
    struct left_behind {
        caller who;
        std::uint32_t left = 0;
        std::uint64_t flight_id = 0;
        bool machine = false;
    };
    std::optional<left_behind> leave(std::uint64_t op, const event_queue* home);

    // The callers of one queue, one by one.
    struct cursor {
        std::size_t shard = 0;
        std::size_t seat = 0;
    };
    std::optional<left_behind> leave_next(const event_queue* home, cursor& at) noexcept;
    std::vector<left_behind> leave_queue(const event_queue* home);
    // Every caller of every flight; nobody enters from now on unless `only_within`.
    callers close_all();

    // Answers: everybody out, and off the list.
    callers take_all(const ref& f);
    // The same for the load numbered `lease_no`; nothing if it may not answer any more. `first` is called
    // before anybody is taken out or can start the key's next flight: what it posts comes before that
    // flight's first look. False: it is not to be answered.
    std::optional<callers> answer_load(const ref& f, std::uint64_t lease_no, function_ref<bool()> first = {});
    // The same for who holds the flight, and lets go of it in the same step: the end of a group's flight.
    // `first` hears how many will be taken out.
    struct finished {
        callers who;
        bool alarm = false; // somebody still means to look at the deadlines
    };
    bool finish_load(const ref& f, std::uint64_t lease_no, function_ref<bool(std::uint32_t)> first, finished& out);
    // Gives a load up. False if it could not answer anyway.
    bool end_load(const ref& f, std::uint64_t lease_no);
    // The holder's caller has gone; 0: the load is given up and the flight off the list, in one step.
    std::uint32_t detach_holder(const ref& f, std::uint64_t lease_no, function_ref<void()> then = {});
    // A load that answers to nobody in the flight (a refresh).
    void begin_load(const ref& f, std::uint64_t lease_no, std::uint64_t scope);
    // Makes the oldest caller (not of queue `avoid`) the holder of load `lease_no`. Without `avoid`, a
    // flight in which nobody waits leaves the list in the same step.
    std::optional<caller> promote(const ref& f, std::uint64_t lease_no, const event_queue* avoid);
    // A withdrawn offer: its caller waits again, as the youngest.
    void come_back(const ref& f, caller who);
    // Callers past their deadline, and the next deadline of the others.
    callers sweep(const ref& f, mono_ms now, mono_ms& next);
    // Those of whom `which` is true.
    callers take_if(const ref& f, function_ref<bool(const caller&)> which);
    // Its callers wait for a load from now on. Gives those that will not; new ones of them are refused.
    callers set_busy(const ref& f);
    void set_in_line(const ref& f, bool in_line);
    // A load runs, its holder's own caller has gone, and nobody else waits.
    [[nodiscard]] bool unwanted(const ref& f) const;

    void unlist(const ref& f);
    // True: nobody waits, and nobody can join any more.
    bool unlist_if_empty(const ref& f);
    // Takes the key's flights of `space` off the list: who joins from now on starts anew.
    std::size_t detach(std::uint32_t space, std::string_view key);
    void drop(const ref& f);
    [[nodiscard]] extra look(const ref& f) const;
    [[nodiscard]] std::uint32_t waiting(const ref& f) const;
    [[nodiscard]] bool alarm_set(const ref& f) const;
    // Nobody waits, and nobody can join.
    [[nodiscard]] bool deserted(const ref& f) const;
    void hold(const ref& f);
    [[nodiscard]] std::size_t live();
    // Flights and joins of groups; caches count their own.
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> group_counts();

    // The load of a flight gets a name: calls may come from inside it.
    void open_scope(const ref& f);

    std::weak_ptr<client_core> owner; // set once, before anybody else sees it

    // The number of a call that ended before it could wait.
    [[nodiscard]] static std::uint64_t ended_op();
    static std::shared_ptr<single_flight> by_op(std::uint64_t op);
    // The table of that number or the next there is; `number` moves behind it. Null: no more.
    static std::shared_ptr<single_flight> next_table(std::size_t& number) noexcept;
    static std::shared_ptr<single_flight> make();

  private:
    shard& of(std::uint64_t hash) noexcept { return *shards_[hash >> 60]; }
    std::uint64_t op_of(const shard& s, const table::seat& seat) const noexcept;
    static ticket refused(ticket::kind why);
    ticket enter_locked(const entry& how, const visitor& who, std::uint64_t hash, shard& s, wait_graph* edges,
                        first_step first);
    void settle_in(const entry& how, const visitor& who, shard& s, wait_graph* edges, first_step first, ticket& t);
    left_behind take_out(shard& s, table::seat* seat);
    static void forget_edges(const callers& out);

    std::array<std::unique_ptr<shard>, 16> shards_;
    const std::uint32_t table_no_;
    std::atomic<bool> closed_{false};
};

} // namespace stn
