// SPDX-License-Identifier: MIT
#include "fork.hpp"

#include <atomic>

#include <pthread.h>

namespace stn {

namespace {

std::atomic<std::uint32_t> generation{0};

std::uint32_t current() noexcept {
    static const int registered =
        ::pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
    static_cast<void>(registered);
    return generation.load(std::memory_order_relaxed);
}

} // namespace

fork_mark::fork_mark() noexcept : generation_(current()) {}

bool fork_mark::forked() const noexcept {
    return generation_ != current();
}

} // namespace stn
