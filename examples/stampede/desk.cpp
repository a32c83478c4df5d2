// SPDX-License-Identifier: MIT
#include "desk.hpp"

#include <algorithm>
#include <utility>

namespace stampede {

void Desk::reset() {
    due_.clear();
    begun_.clear();
    peak_ = 0;
    executed_before_ = catalogue_.answered();
}

void Desk::ask(std::size_t node, std::uint64_t id, int category) {
    Clock::time_point now = Clock::now();
    begun_.push_back(now);
    due_.push_back({now + load_, node, id, catalogue_.answer(category)});
    peak_ = std::max<std::uint64_t>(peak_, due_.size());
}

bool Desk::pop(Clock::time_point now, Due& out) {
    if (due_.empty() || due_.front().at > now) return false;
    out = std::move(due_.front());
    due_.pop_front();
    return true;
}

} // namespace stampede
