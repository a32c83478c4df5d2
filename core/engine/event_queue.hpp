// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/event.hpp"

namespace stn {

// A mailbox of events: one per event loop or thread of the host, for any number of clients.
//
// Lock order: nothing of ours is taken while mutex_ is held, and no host code runs under it. Events
// that carry a lease are destroyed outside of it, because destroying one gives the lease up.
class event_queue : public std::enable_shared_from_this<event_queue> {
  public:
    using ring_fn = void (*)(void*);

    explicit event_queue(std::uint64_t scope) : scope_(scope) {}
    ~event_queue();
    event_queue(const event_queue&) = delete;
    event_queue& operator=(const event_queue&) = delete;

    void push(event e);
    void push(std::vector<event> several);

    // Blocks up to `timeout_ms` (-1: for ever): ok, timeout or closed.
    status next(std::int64_t timeout_ms, event& out);
    // At least one and at most `cap` events.
    status drain(std::int64_t timeout_ms, std::size_t cap, std::vector<event>& out);

    // Takes a LEASE or REFRESH back if nobody has read it yet.
    bool withdraw(const lease* which);

    result<int> fd();
    status set_doorbell(ring_fn ring, void* ud, ring_fn free_ud);
    void wake();
    // What is queued and what is still to come turns into ERROR `closed`. False: was closed already.
    bool close();
    // For a fork child: closes the descriptor and touches nothing else.
    void abandon_after_fork() noexcept;

    [[nodiscard]] std::uint64_t scope() const noexcept { return scope_; }
    [[nodiscard]] bool closed() const noexcept { return closed_; }

  private:
    status wait_for_event(std::unique_lock<std::mutex>& lock, std::int64_t timeout_ms);
    void hand_out(event& e);
    void seen_empty(std::unique_lock<std::mutex>& lock);
    void announce(std::unique_lock<std::mutex>& lock, std::size_t events);
    void signal_fd(std::unique_lock<std::mutex>& lock);
    void ring(std::unique_lock<std::mutex>& lock);
    static bool to_closed(event& e, event& dropped);

    const std::uint64_t scope_;
    mutable std::mutex mutex_;
    std::condition_variable some_;
    std::condition_variable quiet_;
    // all of these under mutex_
    std::deque<event> events_;
    int notices_ = 0;
    int sleepers_ = 0;
    int fd_ = -1;
    bool fd_signalled_ = false;
    bool woken_ = false;
    std::atomic<bool> closed_{false}; // written under mutex_
    bool armed_ = true;               // the doorbell may ring
    int ringing_ = 0;
    ring_fn ring_ = nullptr;
    ring_fn free_ud_ = nullptr;
    void* ud_ = nullptr;
};

} // namespace stn
