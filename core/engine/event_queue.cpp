// SPDX-License-Identifier: MIT
#include "engine/event_queue.hpp"

#include <chrono>
#include <iterator>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/lease.hpp"

namespace stn {

namespace {

constexpr int most_notices = 1'000; // unread

thread_local const event_queue* ringing_here = nullptr;

void set_fd(int fd) noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(fd, &one, sizeof one);
}

void clear_fd(int fd) noexcept {
    std::uint64_t sum = 0;
    [[maybe_unused]] const auto n = ::read(fd, &sum, sizeof sum);
}

} // namespace

event_queue::~event_queue() {
    if (fd_ >= 0) ::close(fd_);
    if (free_ud_ != nullptr) free_ud_(ud_);
}

// Turns `e` into ERROR closed; what must be given up moves to `dropped`. False: it just vanishes.
bool event_queue::to_closed(event& e, event& dropped) {
    if (!e.terminal()) {
        dropped = std::move(e);
        return false;
    }
    event gone;
    gone.kind = event_kind::error;
    gone.code = status::closed;
    gone.tag = e.tag;
    gone.host_ref = e.host_ref;
    gone.what = outcome_error(fail(status::closed, "the queue is closed"));
    dropped = std::exchange(e, std::move(gone));
    return true;
}

void event_queue::push(event e) {
    event dropped; // destroyed after the lock is released: it may hold a lease
    std::unique_lock lock(mutex_);
    if (closed_ && e.code != status::closed && !to_closed(e, dropped)) {
        lock.unlock();
        return;
    }
    if (e.kind == event_kind::notice) {
        if (notices_ >= most_notices) return;
        ++notices_;
    }
    events_.push_back(std::move(e));
    announce(lock, 1);
}

void event_queue::push(std::vector<event> several) {
    if (several.empty()) return;
    std::vector<event> dropped;
    std::unique_lock lock(mutex_);
    if (closed_) {
        for (event& e : several) {
            event gone;
            const bool kept = e.code == status::closed || to_closed(e, gone);
            dropped.push_back(std::move(gone));
            if (kept) events_.push_back(std::move(e));
        }
    } else {
        std::move(several.begin(), several.end(), std::back_inserter(events_));
    }
    announce(lock, several.size());
}

// Tells whoever waits, and lets go of the lock first: a sleeper that wakes up to a locked mutex would
// only go back to sleep.
void event_queue::announce(std::unique_lock<std::mutex>& lock, std::size_t events) {
    const auto asleep = static_cast<std::size_t>(sleepers_);
    signal_fd(lock);
    ring(lock);
    lock.unlock();
    if (asleep == 0) return;
    if (events == 1 || asleep == 1) {
        some_.notify_one();
    } else {
        some_.notify_all();
    }
}

void event_queue::signal_fd(std::unique_lock<std::mutex>&) {
    if (fd_ < 0 || fd_signalled_) return;
    fd_signalled_ = true;
    set_fd(fd_);
}

// Rings with the lock released and takes it again.
void event_queue::ring(std::unique_lock<std::mutex>& lock) {
    if (ring_ == nullptr || !armed_ || events_.empty()) return;
    armed_ = false;
    ++ringing_;
    const ring_fn fn = ring_;
    void* const ud = ud_;
    lock.unlock();
    const event_queue* const outer = std::exchange(ringing_here, this);
    fn(ud);
    ringing_here = outer;
    lock.lock();
    if (--ringing_ == 0) quiet_.notify_all();
}

void event_queue::seen_empty(std::unique_lock<std::mutex>&) {
    if (!events_.empty()) return;
    armed_ = true;
    if (fd_ >= 0 && fd_signalled_ && !woken_ && !closed_) {
        clear_fd(fd_);
        fd_signalled_ = false;
    }
}

status event_queue::wait_for_event(std::unique_lock<std::mutex>& lock, std::int64_t timeout_ms) {
    const auto ready = [this] { return !events_.empty() || woken_ || closed_; };
    if (!ready() && timeout_ms != 0) {
        ++sleepers_;
        // A bound keeps `now + timeout` from overflowing; nobody waits ten years for an event.
        constexpr std::int64_t longest_ms = 315'360'000'000;
        if (timeout_ms < 0 || timeout_ms > longest_ms) {
            some_.wait(lock, ready);
        } else {
            some_.wait_for(lock, std::chrono::milliseconds(timeout_ms), ready);
        }
        --sleepers_;
    }
    if (!events_.empty()) return status::ok;
    woken_ = false;
    seen_empty(lock);
    return closed_ ? status::closed : status::timeout;
}

void event_queue::hand_out(event& e) {
    e = std::move(events_.front());
    events_.pop_front();
    if (e.kind == event_kind::notice) --notices_;
    if (e.held) e.held->mark_read();
}

status event_queue::next(std::int64_t timeout_ms, event& out) {
    std::unique_lock lock(mutex_);
    const status s = wait_for_event(lock, timeout_ms);
    if (s == status::ok) hand_out(out);
    return s;
}

status event_queue::drain(std::int64_t timeout_ms, std::size_t cap, std::vector<event>& out) {
    std::unique_lock lock(mutex_);
    const status s = wait_for_event(lock, timeout_ms);
    if (s != status::ok) return s;
    while (!events_.empty() && out.size() < cap) hand_out(out.emplace_back());
    if (out.size() < cap) seen_empty(lock);
    return status::ok;
}

bool event_queue::withdraw(const lease* which) {
    event gone;
    const std::lock_guard lock(mutex_);
    for (auto it = events_.begin(); it != events_.end(); ++it) {
        if (it->held.get() != which) continue;
        it->held->disarm();
        gone = std::move(*it);
        events_.erase(it);
        return true;
    }
    return false;
}

result<int> event_queue::fd() {
    std::unique_lock lock(mutex_);
    if (fd_ < 0) {
        fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fd_ < 0) return fail(status::no_memory, "no descriptor is left for the queue");
        if (!events_.empty() || woken_ || closed_) signal_fd(lock);
    }
    return fd_;
}

status event_queue::set_doorbell(ring_fn ring_with, void* ud, ring_fn free_ud) {
    if (ringing_here == this) return status::would_deadlock;
    ring_fn old_free = nullptr;
    void* old_ud = nullptr;
    {
        std::unique_lock lock(mutex_);
        old_free = std::exchange(free_ud_, free_ud);
        old_ud = std::exchange(ud_, ud);
        ring_ = ring_with;
        armed_ = true;
        quiet_.wait(lock, [this] { return ringing_ == 0; });
        ring(lock);
    }
    if (old_free != nullptr) old_free(old_ud);
    return status::ok;
}

void event_queue::wake() {
    std::unique_lock lock(mutex_);
    woken_ = true;
    some_.notify_one();
    signal_fd(lock);
}

bool event_queue::close() {
    std::vector<event> dropped;
    {
        std::unique_lock lock(mutex_);
        if (closed_) return false;
        closed_ = true;
        std::deque<event> kept;
        for (event& e : events_) {
            event gone;
            if (e.code == status::closed || to_closed(e, gone)) kept.push_back(std::move(e));
            dropped.push_back(std::move(gone));
        }
        events_.swap(kept);
        some_.notify_all();
        signal_fd(lock);
        ring(lock);
    }
    return true;
}

void event_queue::abandon_after_fork() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

} // namespace stn
