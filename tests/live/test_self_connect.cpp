// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/self_connect.hpp"
#include "support/live_server.hpp"

using namespace stn;
using namespace stn::test;

namespace {

struct descriptor {
    explicit descriptor(int of) : fd(of) {}
    ~descriptor() { ::close(fd); }
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;
    const int fd;
};

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
}

} // namespace

TEST_CASE("who is connected to himself is told from who is connected to a server") {
    const descriptor own(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at = loopback(0);
    socklen_t size = sizeof at;
    REQUIRE(::bind(own.fd, reinterpret_cast<sockaddr*>(&at), size) == 0);
    REQUIRE(::getsockname(own.fd, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    CHECK_FALSE(connected_to_itself(own.fd));
    REQUIRE(::connect(own.fd, reinterpret_cast<sockaddr*>(&at), size) == 0); // as the kernel can bring it about
    CHECK(connected_to_itself(own.fd));

    live_server server(server_kind::redis);
    const descriptor other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in to = loopback(server.port());
    REQUIRE(::connect(other.fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
    CHECK_FALSE(connected_to_itself(other.fd));
}
