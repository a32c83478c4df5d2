// SPDX-License-Identifier: MIT
#include "source.hpp"

#include <algorithm>
#include <utility>

namespace stampede {

Source::Source(std::chrono::milliseconds load) : load_(load), thread_([this] { serve(); }) {}

Source::~Source() {
    {
        std::lock_guard lock(mutex_);
        stop_ = true;
    }
    changed_.notify_one();
    thread_.join();
}

void Source::query(int category, Done done) {
    {
        std::lock_guard lock(mutex_);
        asked_.push_back({category, std::move(done)});
        ++open_;
    }
    changed_.notify_one();
}

std::string Source::peek(int category) {
    return catalogue_.peek(category);
}

void Source::reprice(int category) {
    catalogue_.reprice(category);
}

Source::Counts Source::counts() const {
    std::lock_guard lock(mutex_);
    Counts counts = counts_;
    counts.executed = catalogue_.answered() - executed_before_;
    return counts;
}

std::uint64_t Source::queries() const {
    std::lock_guard lock(mutex_);
    return counts_.queries;
}

void Source::finish() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return open_ == 0; });
}

void Source::reset() {
    finish();
    std::lock_guard lock(mutex_);
    counts_ = {};
    executed_before_ = catalogue_.answered();
}

void Source::serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
        if (!due_.empty() && due_.front().at <= Clock::now()) {
            --running_;
            Due due = std::move(due_.front());
            due_.pop_front();
            lock.unlock();
            due.done(due.answer);
            due.done = nullptr;
            lock.lock();
            if (--open_ == 0) idle_.notify_all();
        } else if (!asked_.empty()) {
            Asked asked = std::move(asked_.front());
            asked_.pop_front();
            Clock::time_point begun = Clock::now();
            counts_.begun.push_back(begun);
            ++counts_.queries;
            counts_.peak = std::max(counts_.peak, ++running_);
            lock.unlock();
            std::string answer = catalogue_.answer(asked.category);
            due_.push_back({begun + load_, std::move(answer), std::move(asked.done)});
            lock.lock();
        } else if (stop_ && due_.empty()) {
            return;
        } else if (due_.empty()) {
            changed_.wait(lock);
        } else {
            changed_.wait_until(lock, due_.front().at);
        }
    }
}

} // namespace stampede
