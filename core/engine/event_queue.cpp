// SPDX-License-Identifier: MIT
#include "engine/event_queue.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/lease.hpp"

namespace stn {

namespace {

constexpr int most_notices = 1'000;      // unread
constexpr std::size_t most_idle = 1'024; // nodes kept for events that nobody has promised yet

thread_local const event_queue* ringing_here = nullptr;

void set_fd(int fd) noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(fd, &one, sizeof one);
}

// Why operations on a closed queue end. Never destroyed: threads may outlive main.
const outcome_ptr& queue_closed() {
    static const auto* const why = new outcome_ptr(outcome_error(fail(status::closed, "the queue is closed")));
    return *why;
}

void clear_fd(int fd) noexcept {
    std::uint64_t sum = 0;
    [[maybe_unused]] const auto n = ::read(fd, &sum, sizeof sum);
}

} // namespace

event_queue::event_queue(std::uint64_t scope) : scope_(scope) {
    static_cast<void>(queue_closed()); // from now on it is there
}

event_queue::~event_queue() {
    if (fd_ >= 0) ::close(fd_);
    if (free_ud_ != nullptr) free_ud_(ud_);
}

bool event_queue::take_room() noexcept {
    std::size_t n = room_.load();
    while (n != 0 && !room_.compare_exchange_weak(n, n - 1)) {
    }
    return n != 0;
}

void event_queue::promise() {
    if (take_room()) return;
    const std::lock_guard lock(mutex_);
    if (closed_) throw queue_is_closed();
    spare_.emplace_back();
}

void event_queue::unpromise() noexcept {
    std::unique_lock lock(mutex_);
    if (!closed_) {
        room_.fetch_add(1);
        return;
    }
    spare_.pop_front();
    if (!over()) return;
    auto all = asleep_.take_all();
    lock.unlock();
    all.wake();
}

// The first of spare_ is for `e`: promised, or room that there is, or new.
bool event_queue::has_node(const event& e) noexcept {
    if (e.terminal() && spare_.size() > room_.load()) return true;
    if (take_room()) return true;
    try {
        spare_.emplace_back();
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

// What the host gets in place of an event that a closed queue does not give it.
event event_queue::instead_of(const event& e) noexcept {
    event closed;
    closed.kind = event_kind::error;
    closed.code = status::closed;
    closed.tag = e.tag;
    closed.host_ref = e.host_ref;
    closed.what = queue_closed();
    return closed;
}

// What is not kept stays in `e`, which dies without the lock: it may hold a lease.
void event_queue::put(event& e) noexcept {
    const bool late = closed_ && e.code != status::closed;
    if (late && !e.terminal()) return;
    // Withdrawn in the same turn, which keeps the lease for so long.
    if (const auto about = e.about.lock(); about && about->at() == lease::state::ended) return;
    if (e.kind == event_kind::notice && notices_ >= most_notices) return;
    if (!has_node(e)) return;
    if (e.kind == event_kind::notice) ++notices_;
    spare_.front() = late ? instead_of(e) : std::move(e);
    events_.splice(events_.end(), spare_, spare_.begin());
}

void event_queue::push(event e) noexcept {
    push(&e, &e + 1, [](event& one) -> event& { return one; });
}

// Tells whoever waits, and lets go of the lock first: a sleeper that wakes up to a locked mutex would
// only go back to sleep.
void event_queue::announce(std::unique_lock<std::mutex>& lock, std::size_t events) {
    if (events == 0) return;
    signal_fd(lock);
    ring(lock);
    auto woken = over() ? asleep_.take_all() : asleep_.take(events); // who gets none then will get none
    lock.unlock();
    woken.wake();
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

bool event_queue::lend(const std::shared_ptr<loop>& to) noexcept {
    if (!sync_.load()) return false;
    std::weak_ptr<loop> before(to);
    {
        const std::lock_guard lock(mutex_);
        if (closed_) return false;
        lent_.swap(before);
    }
    if (const auto other = before.lock(); other && other != to) other->ring();
    return true;
}

void event_queue::work_lent(std::unique_lock<std::mutex>& lock, std::int64_t timeout_ms) noexcept {
    if (lent_.expired()) return;
    auto with = std::exchange(lent_, {}).lock();
    lock.unlock();
    if (with) with->work_until([this] { return has_event(); }, timeout_ms);
    with.reset(); // it may be the last to know of that client
    lock.lock();
}

status event_queue::wait_for_event(std::unique_lock<std::mutex>& lock, std::int64_t timeout_ms) {
    const auto ready = [this] { return !events_.empty() || woken_ || over(); };
    if (!ready() || !lent_.expired()) {
        const sleepers::moment until(timeout_ms);
        work_lent(lock, timeout_ms);
        while (!ready() && timeout_ms != 0 && asleep_.sleep(lock, until)) {
        }
    }
    if (!events_.empty()) return status::ok;
    woken_ = false;
    seen_empty(lock);
    return over() ? status::closed : status::timeout;
}

void event_queue::hand_out(event& e) noexcept {
    e = std::move(events_.front());
    spare(events_.begin());
    if (e.kind == event_kind::notice) --notices_;
    if (e.held) e.held->mark_read();
}

// Keeps an emptied node for the next event, within reason.
void event_queue::spare(nodes::iterator used) noexcept {
    if (!closed_ && room_.load() < most_idle) {
        spare_.splice(spare_.begin(), events_, used);
        room_.fetch_add(1);
    } else {
        events_.erase(used);
    }
}

status event_queue::next(std::int64_t timeout_ms, event& out) noexcept {
    std::unique_lock lock(mutex_);
    const status s = wait_for_event(lock, timeout_ms);
    if (s == status::ok) hand_out(out);
    return s;
}

status event_queue::drain(std::int64_t timeout_ms, std::size_t cap, std::vector<event>& out) {
    const std::size_t most = cap - std::min(cap, out.size());
    return drain_to(timeout_ms, most, [&out] { return &out.emplace_back(); });
}

bool event_queue::withdraw(const lease* which) noexcept {
    event gone; // dies without the lock
    const std::lock_guard lock(mutex_);
    const auto it = std::ranges::find_if(events_, [=](const event& e) { return e.held.get() == which; });
    if (it == events_.end()) return false;
    it->held->disarm();
    gone = std::move(*it);
    if (gone.terminal()) {
        spare_.splice(spare_.begin(), events_, it);
    } else {
        spare(it);
    }
    // What was told about it since goes with it.
    const auto news = std::ranges::find_if(events_, [&](const event& e) {
        return e.kind == event_kind::revoked && !e.about.owner_before(gone.held) && !gone.held.owner_before(e.about);
    });
    if (news != events_.end()) spare(news);
    return true;
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
    signal_fd(lock);
    auto first = asleep_.take(1);
    lock.unlock();
    first.wake();
}

bool event_queue::close() noexcept {
    nodes vanished; // they die without the lock
    std::weak_ptr<loop> lent;
    {
        std::unique_lock lock(mutex_);
        if (closed_) return false;
        closed_ = true;
        lent_.swap(lent);
        for (auto n = room_.exchange(0); n != 0; --n) spare_.pop_front(); // nothing is promised from now on
        for (auto next = events_.begin(); next != events_.end();) {
            const auto e = next++;
            if (!e->terminal()) {
                vanished.splice(vanished.end(), events_, e);
            } else if (e->code != status::closed && !e->carries()) {
                *e = instead_of(*e);
            }
        }
    }
    if (const auto with = lent.lock()) with->ring(); // nobody waits here any more
    while (give_one_up()) {
    }
    std::unique_lock lock(mutex_);
    signal_fd(lock);
    ring(lock);
    auto all = asleep_.take_all();
    lock.unlock();
    all.wake();
    return true;
}

// An unread LEASE, FLIGHT, LOCK or TICK of a closed queue.
bool event_queue::give_one_up() noexcept {
    event gone; // dies without the lock, and gives up what it holds
    const std::lock_guard lock(mutex_);
    const auto e = std::ranges::find_if(events_, [](const event& one) { return one.carries(); });
    if (e == events_.end()) return false;
    gone = std::exchange(*e, instead_of(*e));
    return true;
}

bool event_queue::has_event() const noexcept {
    const std::lock_guard lock(mutex_);
    return !events_.empty() || closed_;
}

void event_queue::abandon_after_fork() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

} // namespace stn
