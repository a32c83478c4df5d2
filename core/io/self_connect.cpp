// SPDX-License-Identifier: MIT
#include "io/self_connect.hpp"

#include <cstring>

#include <sys/socket.h>

namespace stn {

bool connected_to_itself(int fd) noexcept {
    sockaddr_storage here{};
    sockaddr_storage there{};
    socklen_t here_size = sizeof here;
    socklen_t there_size = sizeof there;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&here), &here_size) != 0) return false;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&there), &there_size) != 0) return false;
    return here.ss_family != AF_UNIX && here_size == there_size && std::memcmp(&here, &there, here_size) == 0;
}

} // namespace stn
