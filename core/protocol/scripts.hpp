// SPDX-License-Identifier: MIT
#pragma once

#include "protocol/command.hpp"
#include "protocol/scripts.gen.hpp"

namespace stn {

// Text and SHA1 of a script, as the build embedded them from core/protocol/scripts.
[[nodiscard]] const scripts::embedded& script_of(script_id id) noexcept;

} // namespace stn
