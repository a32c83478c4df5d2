// SPDX-License-Identifier: MIT
#include "engine/flight_alarms.hpp"

#include <utility>
#include <vector>

#include "engine/client_core.hpp"

namespace stn {

void flight_alarms::set(const single_flight::ref& flight, mono_ms at) {
    auto& one = set_[flight.id];
    if (one) {
        core_.flights->drop(flight);
    } else {
        one = std::make_unique<alarm>();
        one->owner = this;
        one->flight = flight;
    }
    core_.turns.timers.set(*one, at);
}

void flight_alarms::end(std::uint64_t flight) {
    const auto it = set_.find(flight);
    if (it == set_.end()) return;
    core_.turns.timers.cancel(*it->second);
    core_.flights->drop(it->second->flight);
    set_.erase(it);
}

void flight_alarms::clear() {
    while (!set_.empty()) end(set_.begin()->first);
}

void flight_alarms::look_round() {
    std::vector<std::uint64_t> over;
    for (const auto& [flight, one] : set_) {
        if (core_.flights->deserted(one->flight)) over.push_back(flight);
    }
    for (const std::uint64_t flight : over) end(flight);
}

void flight_alarms::due(alarm& a, mono_ms now) {
    mono_ms next = forever_ms;
    auto late = core_.flights->sweep(a.flight, now, next);
    core_.totals.add(stat::timeouts, late.size());
    core_.mail(std::move(late), outcome_error(fail(status::timeout, "the deadline passed before the flight ended")),
               now);
    if (next == forever_ms) {
        end(a.flight.id);
    } else {
        core_.turns.timers.set(a, next);
    }
}

} // namespace stn
