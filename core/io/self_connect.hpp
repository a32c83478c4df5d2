// SPDX-License-Identifier: MIT
#pragma once

namespace stn {

// Who dials a port of this machine that nobody listens on can be given that very port to dial from, and then
// TCP connects him to himself (RFC 9293, 3.5: simultaneous open).
[[nodiscard]] bool connected_to_itself(int fd) noexcept;

} // namespace stn
