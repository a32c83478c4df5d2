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

struct loop::parking {
    int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    parking() = default;
    parking(const parking&) = delete;
    parking& operator=(const parking&) = delete;
    ~parking() {
        if (fd >= 0) ::close(fd);
    }
    void wake() const {
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto n = ::write(fd, &one, sizeof one);
    }
    void sleep(std::int64_t ms) const {
        pollfd p{fd, POLLIN, 0};
        const int wait = ms < 0 ? -1 : static_cast<int>(std::min<std::int64_t>(ms, 60'000));
        if (::poll(&p, 1, wait) > 0) {
            std::uint64_t sum = 0;
            [[maybe_unused]] const auto n = ::read(fd, &sum, sizeof sum);
        }
    }
};

loop::loop(std::shared_ptr<clock> time, turned& owner)
    : time_(std::move(time)),
      owner_(owner),
      parking_(std::make_unique<parking>()) {
    if (parking_->fd < 0) throw std::bad_alloc(); // no descriptor is left
}

loop::~loop() = default;

bool loop::inbox_empty() {
    const std::lock_guard lock(inbox_mutex_);
    return inbox_.empty() && !asked_;
}

bool loop::post_for_help(errand e) noexcept {
    const std::lock_guard lock(inbox_mutex_);
    if (inbox_shut_) return false;
    inbox_.splice(inbox_.end(), e.of_);
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

void loop::ring() noexcept {
    if (parked_.exchange(false)) parking_->wake();
}

outbox loop::turn_locked(mono_ms now, bool& sooner) noexcept {
    run(now);
    const mono_ms next = std::min(timers.next_ms(), owner_.next_external_ms());
    sooner = next < next_due_.exchange(next);
    owner_.on_mail(out.size());
    return out.take();
}

void loop::help() noexcept {
    if (!turn_mutex_.try_lock()) {
        ring();
        return;
    }
    outbox mail;
    bool sooner = false;
    {
        const std::lock_guard lock(turn_mutex_, std::adopt_lock);
        mail = turn_locked(time_->now_ms(), sooner);
    }
    after_turn(std::move(mail), sooner);
}

void loop::turn() noexcept {
    outbox mail;
    bool sooner = false;
    {
        const std::lock_guard lock(turn_mutex_);
        mail = turn_locked(time_->now_ms(), sooner);
    }
    after_turn(std::move(mail), sooner);
}

void loop::after_turn(outbox mail, bool sooner) noexcept {
    mail.deliver();
    if (threaded_.load() && (sooner || !inbox_empty())) ring();
}

void loop::run(mono_ms now) {
    do {
        {
            const std::lock_guard lock(inbox_mutex_);
            batch_.swap(inbox_);
            asked_ = false;
        }
        for (task& t : batch_) t(now);
        batch_.clear();
        owner_.on_turn(now);
        while (timer* t = timers.pop(now)) {
            t->due(now);
            owner_.on_turn(now);
        }
    } while (!inbox_empty());
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
    parking_->wake();
}

void loop::thread_main(bool manual) {
    while (!stopping_.load()) {
        outbox mail;
        bool sooner = false;
        {
            const std::lock_guard lock(turn_mutex_);
            mail = turn_locked(time_->now_ms(), sooner);
        }
        mail.deliver();
        parked_.store(true);
        if (stopping_.load()) break;
        if (inbox_empty()) {
            const mono_ms next = manual ? forever_ms : next_due_.load();
            parking_->sleep(next == forever_ms ? -1 : std::max<std::int64_t>(0, next - time_->now_ms()));
        }
        parked_.store(false);
    }
    finish();
}

} // namespace stn
