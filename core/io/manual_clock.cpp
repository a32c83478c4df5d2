// SPDX-License-Identifier: MIT
#include "io/manual_clock.hpp"

#include <algorithm>

namespace stn {
namespace {

// A listener that stays due without getting anything done is left behind after so many rounds.
constexpr int most_rounds = 1000;

} // namespace

// While it lives, `who` runs and the lock is open.
class manual_clock::outside {
  public:
    outside(manual_clock& owner, held& lock, const time_listener* who) : owner_(owner), lock_(lock) {
        owner_.called_ = who;
        lock_.unlock();
    }
    ~outside() {
        lock_.lock();
        owner_.called_ = nullptr;
        owner_.changed_.notify_all();
    }
    outside(const outside&) = delete;
    outside& operator=(const outside&) = delete;

  private:
    manual_clock& owner_;
    held& lock_;
};

mono_ms manual_clock::now_ms() {
    return now_.load(std::memory_order_acquire);
}

void manual_clock::watch(time_listener& who) {
    const held lock(mutex_);
    if (watched(&who)) return;
    walked_.reserve(listeners_.size() + 1);
    listeners_.push_back(&who);
}

void manual_clock::unwatch(time_listener& who) {
    held lock(mutex_);
    std::erase(listeners_, &who);
    changed_.wait(lock, [&] { return called_ != &who || advancing_ == std::this_thread::get_id(); });
}

void manual_clock::advance(std::int64_t span_ms) {
    const auto span = std::max<std::int64_t>(span_ms, 0);
    held lock(mutex_);
    if (advancing_ == std::this_thread::get_id()) {
        target_ = add_ms(target_, span);
        return;
    }
    changed_.wait(lock, [&] { return advancing_ == std::thread::id{}; });
    advancing_ = std::this_thread::get_id();
    target_ = add_ms(now_, span);
    advance_to_target(lock);
    advancing_ = {};
    changed_.notify_all();
}

void manual_clock::advance_to_target(held& lock) {
    tell_due(lock);
    do {
        while (now_ < target_) {
            now_.store(next_stop(lock), std::memory_order_release);
            tell_due(lock);
        }
        tell_everybody(lock);
        tell_due(lock);
    } while (now_ < target_); // somebody who was told moved it
}

// Those who watch when it begins, if they still do when it is their turn. By number: `walked_` may move.
template <class Tell> void manual_clock::each_listener(Tell tell) {
    walked_.assign(listeners_.begin(), listeners_.end());
    for (std::size_t i = 0; i < walked_.size(); ++i) { // NOLINT(modernize-loop-convert)
        if (watched(walked_[i])) tell(walked_[i]);
    }
}

void manual_clock::tell_due(held& lock) {
    bool told = true;
    for (int round = 0; told && round < most_rounds; ++round) {
        told = false;
        each_listener([&](time_listener* who) {
            if (due_of(lock, who) > now_ || !watched(who)) return;
            const outside call(*this, lock, who);
            who->time_moved();
            told = true;
        });
    }
}

void manual_clock::tell_everybody(held& lock) {
    each_listener([&](time_listener* who) {
        const outside call(*this, lock, who);
        who->time_moved();
    });
}

// Later than now, so that time goes on whatever a listener says.
mono_ms manual_clock::next_stop(held& lock) {
    mono_ms stop = target_;
    each_listener([&](time_listener* who) {
        const mono_ms due = due_of(lock, who);
        if (due > now_) stop = std::min(stop, due);
    });
    return stop;
}

mono_ms manual_clock::due_of(held& lock, time_listener* who) {
    const outside call(*this, lock, who);
    return who->next_due_ms();
}

bool manual_clock::watched(const time_listener* who) const {
    return std::find(listeners_.begin(), listeners_.end(), who) != listeners_.end();
}

} // namespace stn
