// SPDX-License-Identifier: MIT
#include "exit_code.hpp"

#include <stanchion/stanchion.h>

namespace cli {

int exit_code_of(std::int32_t status) {
    switch (status) {
    case STN_OK: return exit_ok;
    case STN_INVALID_ARGUMENT:
    case STN_UNKNOWN_OPTION:
    case STN_TOO_LARGE: return exit_usage;
    case STN_COLLISION: return exit_collision;
    case STN_BUSY: return exit_busy;
    case STN_UNCERTAIN: return exit_uncertain;
    case STN_LOST:
    case STN_NOT_MINE: return exit_lost;
    case STN_DENIED: return exit_denied;
    case STN_TIMEOUT:
    case STN_REFUSED:
    case STN_UNAVAILABLE:
    case STN_NOT_REDIS:
    case STN_UNSUPPORTED: return exit_unavailable;
    default: return exit_internal;
    }
}

} // namespace cli
