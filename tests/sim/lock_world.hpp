// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "faults.hpp"
#include "judge.hpp"
#include "protocol/lock_machine.hpp"
#include "protocol/stat.hpp"

// Fleets that take locks from each other: the same network, server and clocks, other calls and other judges.
namespace stn::sim {

// Broken on purpose, one at a time: X(name, what is wrong, the checker that has to notice).
#define SIM_LOCK_VARIANT_TABLE(X)                                                                           \
    X(release_blind, "release without compare", foreign_untouched)                                          \
    X(counted_from_reply, "validity counted from the reply", one_holder)                                    \
    X(shorter_renew, "a later renew with a shorter ttl", one_holder)                                        \
    X(release_misread, "a resent release that finds nothing is taken for \"not mine\"", release_told_truly) \
    X(never_released, "an acquire that is given up without a release", no_orphan)                           \
    X(renew_creates, "renewal that re-creates", lost_is_final)                                              \
    X(taught_anyway, "an acquire that was given up is loaded and sent again after NOSCRIPT", no_orphan)

enum class lock_variant : std::uint8_t {
    none,
#define SIM_LOCK_VARIANT_ENUM(name, text, catcher) name,
    SIM_LOCK_VARIANT_TABLE(SIM_LOCK_VARIANT_ENUM)
#undef SIM_LOCK_VARIANT_ENUM
        count_
};

[[nodiscard]] std::unique_ptr<lock_port> make_lock_probe(lock_variant broken, lock_setup setup);

struct outcome_of_locks {
    std::vector<judge::verdict> found;
    fault_counts faults{};
    stat_block stats;
    std::uint64_t acquires = 0;
    std::uint64_t grants = 0;
    std::uint64_t contended = 0; // grants to who had to wait for another
    std::uint64_t losses = 0;
    std::uint64_t uncertain = 0;
    std::uint64_t deleted = 0; // by somebody else
    std::uint64_t taught = 0;  // scripts, after NOSCRIPT
    std::uint64_t steps = 0;
    std::uint64_t digest = 0;
};

[[nodiscard]] outcome_of_locks run_locks(std::uint64_t seed, lock_variant broken, bool trace);

} // namespace stn::sim
