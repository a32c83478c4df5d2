// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "options.hpp"
#include "result.hpp"
#include "source.hpp"

namespace stampede {

// Runs one strategy: opens the nodes, puts the value, lets the callers come, waits until all have
// their answers, closes the nodes. Throws Refused if the store cannot be had. With `progress`, one
// line that rewrites itself on stderr.
Result run(const Options& options, const Strategy& strategy, Source& source, bool progress);

} // namespace stampede
