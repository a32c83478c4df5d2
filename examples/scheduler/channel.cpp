// SPDX-License-Identifier: MIT
#include "channel.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

namespace scheduler {

Channel::~Channel() {
    if (fd_ >= 0) ::close(fd_);
}

Channel::Channel(Channel&& other) noexcept : fd_(std::exchange(other.fd_, -1)), came_(std::move(other.came_)) {}

void Channel::send(std::string line) {
    line += '\n';
    std::lock_guard lock(sending_);
    for (std::string_view left = line; !left.empty();) {
        ssize_t sent = ::send(fd_, left.data(), left.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) return;
        if (sent > 0) left.remove_prefix(static_cast<std::size_t>(sent));
    }
}

bool Channel::listen() {
    std::array<char, 4'096> bytes{};
    ssize_t n = 0;
    do n = ::recv(fd_, bytes.data(), bytes.size(), 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0) return false;
    came_.append(bytes.data(), static_cast<std::size_t>(n));
    return true;
}

std::optional<std::string> Channel::next() {
    std::size_t end = came_.find('\n');
    if (end == std::string::npos) return std::nullopt;
    std::string line = came_.substr(0, end);
    came_.erase(0, end + 1);
    return line;
}

} // namespace scheduler
