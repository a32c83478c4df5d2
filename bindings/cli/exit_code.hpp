// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace cli {

// What `stanchion` itself ends with; a command that it ran ends it with the command's own code. They are those of
// sysexits.h where that has one, far from the small numbers that commands use.
enum exit_code : int {
    exit_ok = 0,
    exit_free = 1, // inspect: nobody holds it
    exit_usage = 64,
    exit_collision = 65, // the key holds something else
    exit_unavailable = 69,
    exit_internal = 70,
    exit_uncertain = 74,
    exit_busy = 75,
    exit_denied = 77,
    exit_lost = 79,
    exit_not_executable = 126,
    exit_not_found = 127,
    exit_signal = 128, // and the number of the signal
};

// Of a stn_status.
[[nodiscard]] int exit_code_of(std::int32_t status);

} // namespace cli
