// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "engine/single_flight.hpp"
#include "engine/timer_queue.hpp"

namespace stn {

class client_core;

// Deadlines of callers of a group, whose flights have no machine. Under the turn lock.
class flight_alarms {
  public:
    explicit flight_alarms(client_core& core) : core_(core) {}

    // Takes over one hold on the flight.
    void set(const single_flight::ref& flight, mono_ms at);
    // The flight has ended.
    void end(std::uint64_t flight);
    void clear();
    // Ends those of flights that have ended without saying so.
    void look_round();

  private:
    struct alarm final : timer {
        flight_alarms* owner = nullptr;
        single_flight::ref flight;
        void due(mono_ms now) override { owner->due(*this, now); }
    };
    void due(alarm& a, mono_ms now);

    client_core& core_;
    std::unordered_map<std::uint64_t, std::unique_ptr<alarm>> set_;
};

} // namespace stn
