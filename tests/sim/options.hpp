// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "agenda.hpp"
#include "engine/client_core.hpp"
#include "faults.hpp"
#include "protocol/policy.hpp"

namespace stn::sim {

enum class op_kind : std::uint8_t { fetch, get, put, invalidate, mark_stale, refetch, close, fill, count_ };

[[nodiscard]] std::string_view op_name(op_kind k);

// Broken on purpose, one at a time; `none` is the true machine.
#define SIM_VARIANT_TABLE(X)                                                            \
    X(renew_by_lease, "renewal through `lease`", no_stale_after_invalidation)           \
    X(same_token, "`lease` resent with the same token", no_stale_after_invalidation)    \
    X(late_grant, "a grant used after failing open", one_load_per_lease)                \
    X(fill_blind, "fill without compare", no_stale_after_invalidation)                  \
    X(no_timer, "a waiter without its own timer", waiter_looks)                         \
    X(promotion_lease, "a second `lease` at promotion", no_stale_after_invalidation)    \
    X(refresh_deleted, "refresh lease deleted after success", one_refresh)              \
    X(mark_skips, "`mark_stale` that skips a placeholder", no_stale_after_invalidation) \
    X(wake_unseen, "a wake-up value served to a flight that never saw its token", read_your_invalidation)

enum class variant : std::uint8_t {
    none,
#define SIM_VARIANT_ENUM(name, text, catcher) name,
    SIM_VARIANT_TABLE(SIM_VARIANT_ENUM)
#undef SIM_VARIANT_ENUM
        count_
};

// All that a seed draws before it begins.
struct options {
    std::uint64_t seed = 0;
    variant broken = variant::none;

    bool calm = false; // nothing is wrong but some hosts, and everything has to go by the book
    int nodes = 3;
    int keys = 1;
    int ops = 200;
    int queues = 1; // of each process
    micros span = 10 * second;
    int burst = 1; // operations that come together, at most

    micros delay_low = 100, delay_high = 500; // one way
    bool one_stream = true;                   // messages come on the connection of the replies
    int split_one_in = 4;                     // a pipeline that the server reads in pieces
    client_settings settings;

    fill_policy policy;
    fill_policy other; // of some calls
    int other_one_in = 0;
    int fleet_off_one_in = 0; // processes that run without the fleet
    bool two_codecs = false;  // half the processes have another codec
    int own_ttl_one_in = 0;

    std::int64_t load_low_ms = 5, load_high_ms = 300;
    int load_slow_one_in = 20; // 1 to 4 s
    int load_long_one_in = 0;  // past max_load
    int load_absent_one_in = 20;
    int load_fails_one_in = 20;
    int load_large_one_in = 50;
    int load_freed_one_in = 30;
    int load_detached_one_in = 30;
    int load_nested_one_in = 20;
    int untaken_one_in = 60;
    int reject_one_in = 60;
    int reject_again_one_in = 2; // the answer of a refetch
    int slow_host_one_in = 60;   // reads

    std::array<int, static_cast<std::size_t>(op_kind::count_)> ops_weights{};
    int refresh_one_in = 2;
    int force_one_in = 12;
    int no_store_one_in = 25;
    int no_wait_one_in = 25;
    int cancel_one_in = 25;
    int helped_one_in = 5;

    micros fault_gap = second / 2; // mean
    std::array<int, fault_count> fault_weights{};

    // `favoured`: drawn so that this variant shows soon, whether it is broken or not.
    [[nodiscard]] static options drawn(std::uint64_t seed, variant favoured = variant::none);
    [[nodiscard]] std::string print() const;
};

} // namespace stn::sim
