// SPDX-License-Identifier: MIT
#pragma once

#include "desk.hpp"
#include "options.hpp"
#include "result.hpp"
#include "server.hpp"

namespace stampede {

// What `run` of fleet.hpp does for threads, with a process for each node and a real server between them.
Result run_processes(const Options& options, const Strategy& strategy, Desk& desk, Server& server, bool progress);

} // namespace stampede
