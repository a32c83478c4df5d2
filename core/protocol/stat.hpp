// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace stn {

// Every counter the library keeps, in the order of the public snapshot.
#define STN_STAT_TABLE(X) \
    X(flights)            \
    X(joins)              \
    X(gets)               \
    X(hits)               \
    X(stale_hits)         \
    X(absent_hits)        \
    X(misses)             \
    X(loads)              \
    X(loads_failed)       \
    X(loads_alone)        \
    X(leases_granted)     \
    X(leases_held)        \
    X(leases_lost)        \
    X(fills_stored)       \
    X(fills_refused)      \
    X(fills_lost)         \
    X(markers_error)      \
    X(markers_pass)       \
    X(looks)              \
    X(waits)              \
    X(promotions)         \
    X(withdrawals)        \
    X(detached)           \
    X(refreshes)          \
    X(refreshes_lost)     \
    X(early_refreshes)    \
    X(invalidations)      \
    X(puts)               \
    X(rejected)           \
    X(foreign)            \
    X(newer)              \
    X(timeouts)           \
    X(cancelled)          \
    X(deadlocks)          \
    X(overloaded)         \
    X(breaker_opened)     \
    X(commands)           \
    X(commands_lost)      \
    X(messages)           \
    X(renewals)           \
    X(events)             \
    X(soft_margin_small)  \
    X(locks)              \
    X(locks_busy)         \
    X(locks_lost)         \
    X(ticks)

enum class stat : std::uint8_t {
#define STN_STAT_ENUM(name) name,
    STN_STAT_TABLE(STN_STAT_ENUM)
#undef STN_STAT_ENUM
        count_
};

inline constexpr std::size_t stat_count = static_cast<std::size_t>(stat::count_);

struct stat_block {
    std::array<std::uint64_t, stat_count> of{};

    void add(stat s, std::uint64_t n = 1) noexcept { of[static_cast<std::size_t>(s)] += n; }
    [[nodiscard]] std::uint64_t operator[](stat s) const noexcept { return of[static_cast<std::size_t>(s)]; }
    void merge(const stat_block& other) noexcept {
        for (std::size_t i = 0; i < stat_count; ++i) of[i] += other.of[i];
    }
};

} // namespace stn
