// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/event_queue.hpp"

namespace stn {

// Private queues of blocking calls, which use them one after the other.
class mailboxes {
  public:
    mailboxes() { idle_.reserve(most); }

    [[nodiscard]] std::shared_ptr<event_queue> borrow() {
        {
            const std::lock_guard lock(mutex_);
            if (!idle_.empty()) {
                auto one = std::move(idle_.back());
                idle_.pop_back();
                return one;
            }
        }
        auto one = std::make_shared<event_queue>(0);
        one->set_sync();
        return one;
    }
    // Only when nothing more can come: its one operation has ended, and left no lease behind.
    void give_back(std::shared_ptr<event_queue> one) noexcept {
        const std::lock_guard lock(mutex_);
        if (idle_.size() < most) idle_.push_back(std::move(one));
    }

  private:
    static constexpr std::size_t most = 64;
    std::mutex mutex_;
    std::vector<std::shared_ptr<event_queue>> idle_; // mutex_
};

} // namespace stn
