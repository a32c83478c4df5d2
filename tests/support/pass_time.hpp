// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/clock.hpp"

namespace stn::test {

// Lets `ms` pass for a machine that is alone in virtual time; `timer` tells it of each moment that it asked for, and
// gives what it said.
template <class Machine, class Timer>
std::string pass_time(const Machine& machine, mono_ms& now, std::int64_t ms, Timer timer) {
    const mono_ms until = now + ms;
    std::string out;
    while (machine.wake_at() <= until) {
        now = std::max(now, machine.wake_at());
        const std::string one = timer();
        if (!one.empty()) out += (out.empty() ? "" : " ") + one;
        if (machine.wake_at() <= now) return out + " STUCK";
    }
    now = until;
    return out;
}

} // namespace stn::test
