// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/event.hpp"
#include "engine/sleepers.hpp"

namespace stn {

class loop;

// Nothing can be promised any more, and nothing was done.
struct queue_is_closed final : std::exception {
    [[nodiscard]] const char* what() const noexcept override { return "the queue is closed"; }
};

// A mailbox of events: one per event loop or thread of the host, for any number of clients.
//
// Who begins an operation promises its terminal event first: `promise` makes the room, and runs out of
// memory, if at all, while nothing has happened yet. So no answer is ever lost for want of memory: what
// was promised is pushed without an allocation. A notification that finds no room is dropped.
// A `sync` queue is read by whoever begins the operations it is for, next: he does the client's work meanwhile, IO
// and all (`loop::work_until`), which saves two hand-overs between threads.
//
// A closed queue promises nothing, and says `closed` when nothing promised is still to come: no event ever
// comes after that.
//
// Lock order: nothing of ours is taken while mutex_ is held, and no host code runs under it. Events
// that carry a lease are destroyed outside of it, because destroying one gives the lease up.
class event_queue : public std::enable_shared_from_this<event_queue> {
  public:
    using ring_fn = void (*)(void*);

    explicit event_queue(std::uint64_t scope);
    ~event_queue();
    event_queue(const event_queue&) = delete;
    event_queue& operator=(const event_queue&) = delete;

    // One terminal event will come. Throws queue_is_closed.
    void promise();
    // It will not come after all.
    void unpromise() noexcept;

    void push(event e) noexcept;
    // Several at once; `event_of` gives the event of each item, or a reference to it.
    template <class It, class EventOf> void push(It first, It last, EventOf event_of) noexcept {
        std::unique_lock lock(mutex_);
        const std::size_t before = events_.size();
        for (; first != last; ++first) {
            auto&& e = event_of(*first);
            put(e);
        }
        announce(lock, events_.size() - before);
    }

    // Blocks up to `timeout_ms` (-1: for ever): ok, timeout or closed.
    status next(std::int64_t timeout_ms, event& out) noexcept;
    // At least one and at most `cap` events.
    status drain(std::int64_t timeout_ms, std::size_t cap, std::vector<event>& out);
    // The same, each to where `place` says; null: no more. It is asked before an event is taken.
    template <class Place> status drain_to(std::int64_t timeout_ms, std::size_t cap, Place place) {
        std::unique_lock lock(mutex_);
        const status s = wait_for_event(lock, timeout_ms);
        if (s != status::ok) return s;
        std::size_t n = 0;
        for (; n < cap && !events_.empty(); ++n) {
            event* const to = place();
            if (to == nullptr) return status::ok;
            hand_out(*to);
        }
        if (n < cap) seen_empty(lock);
        return status::ok;
    }

    // Takes a LEASE or REFRESH back if nobody has read it yet; a LEASE's caller has its promise again.
    bool withdraw(const lease* which) noexcept;

    result<int> fd();
    status set_doorbell(ring_fn ring, void* ud, ring_fn free_ud);
    void wake();
    // What is queued and what is still to come turns into ERROR `closed`. False: was closed already.
    bool close() noexcept;
    // For a fork child: closes the descriptor and touches nothing else.
    void abandon_after_fork() noexcept;

    // Whether `next` would not block.
    [[nodiscard]] bool has_event() const noexcept;
    [[nodiscard]] std::uint64_t scope() const noexcept { return scope_; }
    void set_sync() noexcept { sync_.store(true); }
    // Something was posted to that loop, and nobody has rung it: the next to wait here works it. False: nobody will.
    [[nodiscard]] bool lend(const std::shared_ptr<loop>& to) noexcept;
    [[nodiscard]] bool closed() const noexcept { return closed_; }

  private:
    using nodes = std::list<event>;

    status wait_for_event(std::unique_lock<std::mutex>& lock, std::int64_t timeout_ms);
    void work_lent(std::unique_lock<std::mutex>& lock, std::int64_t timeout_ms) noexcept;
    void put(event& e) noexcept;
    bool take_room() noexcept;
    bool has_node(const event& e) noexcept;
    void hand_out(event& e) noexcept;
    void spare(nodes::iterator used) noexcept;
    bool give_one_up() noexcept;
    void seen_empty(std::unique_lock<std::mutex>& lock);
    [[nodiscard]] bool over() const noexcept { return closed_ && spare_.empty(); }
    void announce(std::unique_lock<std::mutex>& lock, std::size_t events);
    void signal_fd(std::unique_lock<std::mutex>& lock);
    void ring(std::unique_lock<std::mutex>& lock);
    static event instead_of(const event& e) noexcept;

    const std::uint64_t scope_;
    mutable std::mutex mutex_;
    std::condition_variable quiet_;
    // all of these under mutex_
    sleepers asleep_;
    nodes events_;
    nodes spare_; // one for each promise, and `room_` more until the queue is closed
    int notices_ = 0;
    int fd_ = -1;
    bool fd_signalled_ = false;
    bool woken_ = false;
    std::weak_ptr<loop> lent_;
    std::atomic<bool> sync_{false};    // once set, for good
    std::atomic<std::size_t> room_{0}; // any thread may promise what there is
    std::atomic<bool> closed_{false};  // written under mutex_
    bool armed_ = true;                // the doorbell may ring
    int ringing_ = 0;
    ring_fn ring_ = nullptr;
    ring_fn free_ud_ = nullptr;
    void* ud_ = nullptr;
};

// A promise for as long as an operation is being begun: taken back unless it stands in the end.
class promised {
  public:
    explicit promised(event_queue* to) : to_(to) {
        if (to_ != nullptr) to_->promise();
    }
    ~promised() {
        if (to_ != nullptr) to_->unpromise();
    }
    promised(const promised&) = delete;
    promised& operator=(const promised&) = delete;
    void stands() noexcept { to_ = nullptr; }

  private:
    event_queue* to_;
};

} // namespace stn
