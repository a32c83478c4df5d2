// SPDX-License-Identifier: MIT
#include "engine/loop.hpp"

#include <algorithm>
#include <csignal>
#include <new>
#include <thread>

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace stn {

void outbox::deliver() noexcept {
    for (auto first = mail_.begin(); first != mail_.end();) {
        const auto& home = first->first;
        const auto last = std::find_if(first, mail_.end(), [&](const letter& l) { return l.first != home; });
        home->push(first, last, [](letter& l) -> event& { return l.second; });
        first = last;
    }
    mail_.clear();
    graves_.clear();
}

namespace {

constexpr std::size_t most_watched = 4;
constexpr mono_ms solo_patience_ms = 100;
constexpr mono_ms company_ms =
    20; // who had to yield, or found somebody at work or waiting, leaves the work to the loop for so long

} // namespace

class loop::bell {
  public:
    bell() {
        if (fd_ < 0) throw std::bad_alloc(); // no descriptor is left
        fds_[0] = {fd_, POLLIN, 0};
    }
    ~bell() { ::close(fd_); }
    bell(const bell&) = delete;
    bell& operator=(const bell&) = delete;

    void abandon_after_fork() const noexcept { ::close(fd_); }
    void ring() const {
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto n = ::write(fd_, &one, sizeof one);
    }
    // What the next sleep listens to besides. Under the turn lock, as whatever reads it.
    void listen(std::span<const watched> to) {
        size_ = std::min(to.size(), most_watched);
        for (std::size_t i = 0; i < size_; ++i) {
            const short events = to[i].writable ? POLLIN | POLLOUT : POLLIN;
            fds_[i + 1] = {to[i].fd, events, 0};
        }
    }
    [[nodiscard]] bool listens_to(std::span<const watched> to) const {
        if (size_ != std::min(to.size(), most_watched)) return false;
        for (std::size_t i = 0; i < size_; ++i) {
            const bool writable = (fds_[i + 1].events & POLLOUT) != 0;
            if (fds_[i + 1].fd != to[i].fd || writable != to[i].writable) return false;
        }
        return true;
    }
    // Up to `ms`, -1 for ever; `deaf` to everything but the bell. True: it was rung.
    bool sleep(std::int64_t ms, bool deaf) {
        for (pollfd& p : fds_) p.revents = 0;
        const int wait = ms < 0 ? -1 : static_cast<int>(std::min<std::int64_t>(ms, 60'000));
        const auto n_fds = static_cast<nfds_t>(deaf ? 1 : 1 + size_);
        if (::poll(fds_, n_fds, wait) <= 0 || fds_[0].revents == 0) return false;
        std::uint64_t sum = 0;
        [[maybe_unused]] const auto n = ::read(fd_, &sum, sizeof sum);
        return true;
    }
    void mark(std::span<watched> to) const {
        for (std::size_t i = 0; i < std::min(to.size(), size_); ++i) {
            to[i].ready = fds_[i + 1].revents != 0 && fds_[i + 1].fd == to[i].fd;
        }
    }

  private:
    const int fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pollfd fds_[1 + most_watched]{};
    std::size_t size_ = 0;
};

loop::loop(std::shared_ptr<clock> time, turned& owner)
    : time_(std::move(time)),
      owner_(owner),
      loop_bell_(std::make_unique<bell>()),
      work_bell_(std::make_unique<bell>()) {}

loop::~loop() = default;

bool loop::inbox_empty() {
    const std::lock_guard lock(inbox_mutex_);
    return inbox_.empty() && !asked_;
}

bool loop::post_for_help(errand e) noexcept {
    const std::lock_guard lock(inbox_mutex_);
    if (inbox_shut_) return false;
    inbox_.add(std::move(e));
    return true;
}

bool loop::post(errand e) noexcept {
    if (!post_for_help(std::move(e))) return false;
    ring();
    return true;
}

void loop::ask() noexcept {
    {
        const std::lock_guard lock(inbox_mutex_);
        asked_ = true;
    }
    ring();
}

void loop::finish() {
    {
        const std::lock_guard lock(inbox_mutex_);
        inbox_shut_ = true;
    }
    turn();
}

// Looks before it writes: whoever posts in a busy time would take these from the loop's cache.
void loop::ring() noexcept {
    if (solo_.load()) solo_.store(false);
    if (at_work_.load() && at_work_.exchange(false)) work_bell_->ring();
    wake_loop();
}

void loop::wake_loop() noexcept {
    if (parked_.load() && parked_.exchange(false)) loop_bell_->ring();
}

void loop::turn_locked(mono_ms now, extent how, outbox& mail, bell* woken) noexcept {
    if (woken != nullptr) woken->mark(owner_.watch());
    run(now, how);
    next_due_.store(std::min(timers.next_ms(), owner_.next_external_ms()));
    idle_.store(owner_.going_on() == 0);
    owner_.on_mail(out.size());
    out.swap(mail); // it keeps the room that the mail of another turn has needed
}

void loop::help() noexcept {
    if (!turn_mutex_.try_lock()) {
        ring();
        return;
    }
    outbox mail;
    bool rewatch = false;
    {
        const std::lock_guard lock(turn_mutex_, std::adopt_lock);
        turn_locked(time_->now_ms(), extent::one_pass, mail);
        rewatch = watching_.load() && !loop_bell_->listens_to(owner_.watch());
    }
    if (rewatch) wake_loop();
    after_turn(mail);
}

void loop::help_if_idle() noexcept {
    if (parked_.load() && !solo_.load() && idle_.load()) {
        help();
    } else {
        ring();
    }
}

void loop::turn() noexcept {
    outbox mail;
    {
        const std::lock_guard lock(turn_mutex_);
        turn_locked(time_->now_ms(), extent::until_empty, mail);
    }
    after_turn(mail);
}

void loop::abandon_after_fork(function_ref<void()> and_then) noexcept {
    loop_bell_->abandon_after_fork();
    work_bell_->abandon_after_fork();
    if (turn_mutex_.try_lock()) and_then(); // and nobody takes it again
}

void loop::after_turn(outbox& mail) noexcept {
    mail.deliver();
    if (!threaded_.load()) return;
    if (!inbox_empty()) {
        ring();
    } else if (next_due_.load() < park_until_.load()) {
        wake_loop();
    }
}

void loop::work_until(function_ref<bool()> answered, std::int64_t timeout_ms) noexcept {
    bell* woken = nullptr;
    outbox mail;
    mono_ms until = forever_ms;
    bool idle = true;
    while (!answered()) {
        const mono_ms now = time_->now_ms();
        if (until == forever_ms && timeout_ms >= 0) until = add_ms(now, timeout_ms);
        std::unique_lock lock(turn_mutex_, std::defer_lock);
        if (now < company_until_.load()) {
            ring();
            return;
        }
        if (!lock.try_lock()) {
            company_until_.store(now + company_ms);
            ring();
            return;
        }
        turn_locked(now, extent::one_pass, mail, woken);
        idle = false;
        const auto fds = owner_.watch();
        const bool company = owner_.going_on() > 1;
        if (company) company_until_.store(now + company_ms);
        const bool alone = !fds.empty() && !company && !stopping_.load();
        bool go_on = alone;
        if (alone && mail.empty() && now < until) {
            work_bell_->listen(fds);
            go_on = sleep_at_work(until);
            woken = work_bell_.get();
            if (!go_on) company_until_.store(time_->now_ms() + company_ms);
        }
        const bool unfinished = !fds.empty() && owner_.going_on() != 0;
        lock.unlock();
        after_turn(mail);
        if (go_on && now < until && (!unfinished || !answered())) continue;
        if (unfinished) ring(); // the loop has to listen
        return;
    }
    if (idle) ring(); // answered by somebody else, and nobody may come back for what was posted
}

bool loop::sleep_at_work(mono_ms until) noexcept {
    solo_.store(true);
    worked_.store(true);
    at_work_.store(true);
    if (watching_.load()) wake_loop();
    bool rung = !inbox_empty();
    if (!rung) {
        const mono_ms next = std::min(next_due_.load(), until);
        rung = work_bell_->sleep(next == forever_ms ? -1 : std::max<std::int64_t>(0, next - time_->now_ms()), false);
    }
    at_work_.store(false);
    return !rung;
}

void loop::run(mono_ms now, extent how) {
    do {
        {
            const std::lock_guard lock(inbox_mutex_);
            batch_.swap(inbox_);
            asked_ = false;
        }
        batch_.run_all(now);
        owner_.on_turn(now);
        while (timer* t = timers.pop(now)) {
            t->due(now);
            owner_.on_turn(now);
        }
    } while (how == extent::until_empty && !inbox_empty());
    owner_.on_turn_end(now);
}

mono_ms loop::next_due_ms() {
    turn();
    return next_due_.load();
}

namespace {

// No signal is for the thread that is started while this lives.
class signals_blocked {
  public:
    signals_blocked() noexcept {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~signals_blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    signals_blocked(const signals_blocked&) = delete;
    signals_blocked& operator=(const signals_blocked&) = delete;

  private:
    sigset_t before_{};
};

} // namespace

void loop::start(std::shared_ptr<void> keep, bool manual) {
    const signals_blocked blocked;
    threaded_.store(true);
    std::thread([this, keep = std::move(keep), manual]() mutable {
        ::pthread_setname_np(::pthread_self(), "stanchion");
        thread_main(manual);
        keep.reset();
    }).detach();
}

void loop::stop() {
    stopping_.store(true);
    threaded_.store(false);
    parked_.store(false);
    at_work_.store(false);
    work_bell_->ring();
    loop_bell_->ring();
}

void loop::thread_main(bool manual) {
    outbox mail;
    while (!stopping_.load()) {
        std::unique_lock lock(turn_mutex_, std::defer_lock);
        if (!solo_.load()) {
            lock.lock();
        } else if (!lock.try_lock()) { // a caller is at work, and does what is due
            park(manual);
            continue;
        }
        turn_locked(time_->now_ms(), extent::one_pass, mail, loop_bell_.get());
        loop_bell_->listen(owner_.watch());
        lock.unlock();
        mail.deliver();
        park(manual);
    }
    finish();
}

void loop::park(bool manual) {
    const bool solo = solo_.load();
    watching_.store(!solo);
    mono_ms wake = manual ? forever_ms : next_due_.load();
    if (solo) wake = std::min(wake, time_->now_ms() + solo_patience_ms);
    park_until_.store(manual ? -forever_ms : wake);
    parked_.store(true);
    if (stopping_.load() || solo != solo_.load() || (!manual && next_due_.load() < wake)) {
        // once more
    } else if (!inbox_empty()) {
        loop_bell_->sleep(0, solo); // what is ready is heard all the same
    } else {
        const auto ms = wake == forever_ms ? -1 : std::max<std::int64_t>(0, wake - time_->now_ms());
        const bool rung = loop_bell_->sleep(ms, solo);
        if (solo && !rung && !worked_.exchange(false)) solo_.store(false);
    }
    parked_.store(false);
    watching_.store(false);
    park_until_.store(-forever_ms);
}

} // namespace stn
