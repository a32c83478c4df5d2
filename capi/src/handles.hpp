// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <stanchion/stanchion.h>

#include "base/blocks.hpp"
#include "base/clock.hpp"
#include "engine/cache.hpp"
#include "engine/client_core.hpp"
#include "engine/event_queue.hpp"
#include "engine/group.hpp"
#include "engine/held_lock.hpp"
#include "engine/lease.hpp"
#include "fork.hpp"

// What the opaque handles of stanchion.h are. Each that owns something of the core carries a fork mark.

// Of an event: what its outcome says, borrowed.
struct stn_error {
    const stn::error* what = nullptr;
};

// As an `err` parameter gives it.
struct stn_own_error final : stn_error {
    explicit stn_own_error(stn::error why) noexcept : own(std::move(why)) { what = &own; }
    stn_own_error(const stn_own_error&) = delete;
    stn_own_error& operator=(const stn_own_error&) = delete;
    const stn::error own;
};

struct stn_bytes {
    std::string data;
};

struct stn_client {
    stn::fork_mark made;
    std::shared_ptr<stn::client_handle> handle;
    std::shared_ptr<stn::adjustable_clock> manual;
};

struct stn_queue {
    stn::fork_mark made;
    std::shared_ptr<stn::event_queue> q;
};

struct stn_event : stn::blocks::made {
    stn::fork_mark made;
    stn::event e;
    stn_error error; // of events that have one
};

struct stn_cache {
    stn::fork_mark made;
    stn::cache cache;
};

struct stn_policy {
    stn::fork_mark made;
    std::shared_ptr<const stn::fill_policy> policy;
    const stn::cache_state* of = nullptr; // compared only
};

struct stn_lease {
    stn::fork_mark made;
    std::shared_ptr<stn::lease> lease;
};

struct stn_group {
    stn::fork_mark made;
    stn::group group;
};

struct stn_flight {
    stn::fork_mark made;
    stn::flight_lead lead;
};

struct stn_scope {
    stn::fork_mark made;
    std::uint64_t flight = 0; // unique in the process
};

struct stn_lock_policy {
    stn::fork_mark made;
    stn::lock_policy policy;
};

struct stn_lock {
    stn::fork_mark made;
    std::shared_ptr<stn::held_lock> lock;
    std::string token; // for people
};

struct stn_tick {
    stn::fork_mark made;
    std::shared_ptr<stn::held_tick> tick;
    std::string token; // for people
};

struct stn_sink {
    stn::outcome how;
    bool absent = false;
};
