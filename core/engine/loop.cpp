// SPDX-License-Identifier: MIT
#include "engine/loop.hpp"

#include <algorithm>
#include <csignal>
#include <thread>

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace stn {

void outbox::deliver() {
    for (std::size_t i = 0; i < mail_.size();) {
        const auto home = mail_[i].first;
        std::size_t n = i + 1;
        while (n < mail_.size() && mail_[n].first == home) ++n;
        if (n == i + 1) {
            home->push(std::move(mail_[i].second));
        } else {
            std::vector<event> several;
            several.reserve(n - i);
            for (; i < n; ++i) several.push_back(std::move(mail_[i].second));
            home->push(std::move(several));
        }
        i = n;
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
      parking_(std::make_unique<parking>()) {}

loop::~loop() = default;

bool loop::inbox_empty() {
    const std::lock_guard lock(inbox_mutex_);
    return inbox_.empty();
}

bool loop::post_for_help(task t) {
    const std::lock_guard lock(inbox_mutex_);
    if (inbox_shut_) return false;
    inbox_.push_back(std::move(t));
    return true;
}

bool loop::post(task t) {
    if (!post_for_help(std::move(t))) return false;
    ring();
    return true;
}

void loop::finish() {
    {
        const std::lock_guard lock(inbox_mutex_);
        inbox_shut_ = true;
    }
    turn();
}

void loop::ring() {
    if (parked_.exchange(false)) parking_->wake();
}

outbox loop::turn_locked(mono_ms now, bool& sooner) {
    run(now);
    const mono_ms next = std::min(timers.next_ms(), owner_.next_external_ms());
    sooner = next < next_due_.exchange(next);
    owner_.on_mail(out.size());
    return out.take();
}

void loop::help() {
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

void loop::turn() {
    outbox mail;
    bool sooner = false;
    {
        const std::lock_guard lock(turn_mutex_);
        mail = turn_locked(time_->now_ms(), sooner);
    }
    after_turn(std::move(mail), sooner);
}

void loop::after_turn(outbox mail, bool sooner) {
    mail.deliver();
    if (threaded_.load() && (sooner || !inbox_empty())) ring();
}

void loop::run(mono_ms now) {
    do {
        {
            const std::lock_guard lock(inbox_mutex_);
            batch_.swap(inbox_);
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

void loop::start(std::shared_ptr<void> keep, bool manual) {
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    threaded_.store(true);
    std::thread([this, keep = std::move(keep), manual]() mutable {
        ::pthread_setname_np(::pthread_self(), "stanchion");
        thread_main(manual);
        keep.reset();
    }).detach();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
