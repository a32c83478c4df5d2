// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace stn::test {

// A port of 127.0.0.1 on which nobody listens at this moment. Somebody may before you do: then take
// another. It lies below the ports that the kernel hands out to connections: a client that keeps trying
// to reach one of those while nobody listens is at times connected to itself.
[[nodiscard]] std::uint16_t free_port();

// A socket that listens there (non-blocking, CLOEXEC), or -1 when somebody else does.
[[nodiscard]] int listen_on(std::uint16_t port, int backlog = 511);

} // namespace stn::test
