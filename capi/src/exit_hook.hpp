// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>

#include "engine/client_core.hpp"

namespace stn {

// From now on exit(), or returning from main, closes it, and waits for that for at most so long.
void close_at_exit(const std::shared_ptr<client_core>& core, std::int64_t within_ms);

} // namespace stn
