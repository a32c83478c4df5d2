// SPDX-License-Identifier: MIT
#pragma once

#include "holder.hpp"
#include "report.hpp"

namespace fence {

// A holder that stands still, and writes late: without a fence, and with one.
void late_write(const Places& places, Report& report);

// The same effect protected without any lock: many callers, one of whom may.
void unique_key(const Places& places, Report& report);
void status_new(const Places& places, Report& report);

} // namespace fence
