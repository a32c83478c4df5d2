// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "protocol/outcome.hpp"

namespace stn {

class lease;
class flight_lead;
class held_lock;
class held_tick;

// The numbers are those of the C ABI.
enum class event_kind : std::int32_t {
    none = 0,
    value = 1,
    absent = 2,
    lease = 3,
    refresh = 4,
    flight = 5,
    lock = 6,
    tick = 7,
    done = 8,
    filled = 9,
    revoked = 10,
    lock_lost = 11,
    notice = 12,
    error = 13,
};

enum class reason : std::int32_t {
    none,
    miss,
    lost,
    invalidated,
    max_load,
    closed,
    unwanted,
    expired,
    deleted,
    stolen,
    max_hold,
    no_ttl,
    taken,
    still_running,
};

struct event {
    event_kind kind = event_kind::none;
    status code = status::ok;
    reason why = reason::none;
    std::uint32_t notice = 0;
    std::uint64_t tag = 0;
    std::uint64_t host_ref = 0;
    outcome_ptr what;                  // value, absent, error
    std::shared_ptr<lease> held;       // lease, refresh
    std::weak_ptr<const lease> about;  // revoked; while it lasts, no other lease has this address
    std::shared_ptr<flight_lead> lead; // flight
    std::shared_ptr<held_lock> lock;   // lock
    std::shared_ptr<held_tick> tick;   // tick
    std::string text;                  // notice, done of a readiness
    std::int64_t age_ms = -1;
    std::int64_t ttl_left_ms = -1;
    std::int64_t load_ms = -1;
    bool shared = false;

    // It carries something that is given up when nobody takes it.
    [[nodiscard]] bool carries() const noexcept { return held || lead || lock || tick; }
    [[nodiscard]] bool terminal() const noexcept {
        return kind != event_kind::refresh && kind != event_kind::revoked && kind != event_kind::lock_lost &&
               kind != event_kind::notice;
    }
};

} // namespace stn
