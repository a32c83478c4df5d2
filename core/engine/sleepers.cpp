// SPDX-License-Identifier: MIT
#include "engine/sleepers.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include <semaphore.h>

namespace stn {

// On the sleeper's stack. Once it is off the list it will be woken, and its thread waits for that.
struct sleeper {
    sleeper() { ::sem_init(&bell, 0, 0); }
    ~sleeper() { ::sem_destroy(&bell); }
    sleeper(const sleeper&) = delete;
    sleeper& operator=(const sleeper&) = delete;

    void wait() {
        while (::sem_wait(&bell) != 0 && errno == EINTR) {
        }
    }
    bool wait_until(const timespec& at) {
        int failed = 0;
        while ((failed = ::sem_clockwait(&bell, CLOCK_MONOTONIC, &at)) != 0 && errno == EINTR) {
        }
        return failed == 0 && rung.load(std::memory_order_acquire);
    }

    sem_t bell{};
    std::atomic<bool> rung{false}; // says what sem_clockwait does not tell ThreadSanitizer: the waker is done with us
    sleeper* next = nullptr;
    sleeper* before = nullptr;
    bool listed = true; // under the owner's mutex
};

sleepers::moment::moment(std::int64_t ms_from_now) noexcept : never_(ms_from_now < 0) {
    if (never_) return;
    constexpr std::int64_t longest_ms = 315'360'000'000; // ten years
    const std::int64_t ms = std::min(ms_from_now, longest_ms);
    static_cast<void>(::clock_gettime(CLOCK_MONOTONIC, &at_)); // cannot fail for this clock
    at_.tv_sec += static_cast<time_t>(ms / 1'000);
    at_.tv_nsec += static_cast<long>(ms % 1'000) * 1'000'000;
    if (at_.tv_nsec < 1'000'000'000) return;
    ++at_.tv_sec;
    at_.tv_nsec -= 1'000'000'000;
}

bool sleepers::sleep(std::unique_lock<std::mutex>& lock, const moment& until) noexcept {
    sleeper self;
    self.before = last_;
    (last_ == nullptr ? first_ : last_->next) = &self;
    last_ = &self;
    lock.unlock();
    bool woke = true;
    if (until.never_) {
        self.wait();
    } else {
        woke = self.wait_until(until.at_);
    }
    lock.lock();
    if (woke) return true;
    if (!self.listed) { // just being woken
        lock.unlock();
        self.wait();
        lock.lock();
        return true;
    }
    (self.before == nullptr ? first_ : self.before->next) = self.next;
    (self.next == nullptr ? last_ : self.next->before) = self.before;
    return false;
}

sleepers::woken sleepers::take(std::size_t at_most) noexcept {
    woken out;
    if (first_ == nullptr || at_most == 0) return out;
    out.first_ = first_;
    sleeper* end = first_;
    end->listed = false;
    for (std::size_t n = 1; n < at_most && end->next != nullptr; ++n) {
        end = end->next;
        end->listed = false;
    }
    first_ = std::exchange(end->next, nullptr);
    (first_ == nullptr ? last_ : first_->before) = nullptr;
    return out;
}

void sleepers::woken::wake() noexcept {
    while (first_ != nullptr) {
        sleeper* const next = first_->next; // it is gone as soon as it is woken
        first_->rung.store(true, std::memory_order_release);
        ::sem_post(&first_->bell);
        first_ = next;
    }
}

} // namespace stn
