// SPDX-License-Identifier: MIT
#include "support/ports.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <fstream>
#include <netinet/in.h>
#include <random>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

namespace stn::test {

namespace {

constexpr int most_tries = 1'000;
constexpr int span = 16'000;

int lowest_of_the_kernel() {
    std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
    int lowest = 0;
    return range >> lowest ? std::clamp(lowest, 18'000, 49'000) : 32'768;
}

} // namespace

int listen_on(std::uint16_t port, int backlog) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) throw std::runtime_error("no socket for a test");
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 && ::listen(fd, backlog) == 0) return fd;
    ::close(fd);
    return -1;
}

std::uint16_t free_port() {
    static const int end = lowest_of_the_kernel();
    std::random_device chance;
    std::uniform_int_distribution<int> port(end - span, end - 1);
    for (int i = 0; i < most_tries; ++i) {
        const auto tried = static_cast<std::uint16_t>(port(chance));
        if (const int fd = listen_on(tried); fd >= 0) {
            ::close(fd);
            return tried;
        }
    }
    throw std::runtime_error("no free port of 127.0.0.1 for a test");
}

} // namespace stn::test
