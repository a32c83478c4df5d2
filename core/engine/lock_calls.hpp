// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.hpp"
#include "engine/client_core.hpp"
#include "protocol/policy.hpp"

// Locks, ticks and ids, as the host asks for them. Any thread; nothing here blocks. All give the op.
namespace stn {

struct lock_call {
    std::string_view name;
    std::int64_t deadline_ms = -1; // of the wait or of the question; -1: the default
    std::uint64_t within = 0;
    std::shared_ptr<event_queue> home;
    std::uint64_t tag = 0;
    std::shared_ptr<event_queue> loss_home; // null: nobody is told
    std::uint64_t loss_tag = 0;
};

// LOCK, or ERROR: busy, uncertain, unavailable, collision, denied, overloaded, would_deadlock, cancelled, closed.
result<std::uint64_t> acquire(client_core& core, const lock_call& c, const lock_policy& policy);
// VALUE (JSON, see show_lock), ABSENT when the lock is free, or ERROR.
result<std::uint64_t> inspect(client_core& core, const lock_call& c, std::string_view literal_key);
// TICK, DONE busy (reason taken or still_running), or ERROR.
result<std::uint64_t> tick(client_core& core, const lock_call& c, const tick_policy& policy);
// DONE ok, DONE busy, or ERROR.
result<std::uint64_t> once(client_core& core, const lock_call& c, std::int64_t ttl_ms);

} // namespace stn
