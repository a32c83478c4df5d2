// SPDX-License-Identifier: MIT
#include "channel.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace stampede {
namespace {

using Length = std::uint32_t;

} // namespace

Channel::~Channel() {
    if (fd_ >= 0) ::close(fd_);
}

Channel::Channel(Channel&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      came_(std::move(other.came_)),
      read_(std::exchange(other.read_, 0)) {}

void Channel::send(const Message& message) {
    std::vector<std::uint8_t> body = Message::to_msgpack(message);
    auto length = static_cast<Length>(body.size());
    std::string bytes(sizeof length, '\0');
    std::memcpy(bytes.data(), &length, sizeof length);
    bytes.append(body.begin(), body.end());
    for (std::string_view left = bytes; !left.empty();) {
        ssize_t sent = ::send(fd_, left.data(), left.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) return;
        if (sent > 0) left.remove_prefix(static_cast<std::size_t>(sent));
    }
}

bool Channel::listen() {
    std::array<char, 65'536> bytes; // NOLINT: recv fills it
    for (;;) {
        ssize_t n = ::recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (n > 0) {
            came_.append(bytes.data(), static_cast<std::size_t>(n));
        } else if (n == 0) {
            return false;
        } else if (errno != EINTR) {
            return errno == EAGAIN || errno == EWOULDBLOCK;
        }
    }
}

std::optional<Message> Channel::next() {
    Length length = 0;
    if (came_.size() - read_ < sizeof length) return std::nullopt;
    std::memcpy(&length, came_.data() + read_, sizeof length);
    if (came_.size() - read_ - sizeof length < length) return std::nullopt;
    const char* body = came_.data() + read_ + sizeof length;
    Message message = Message::from_msgpack(body, body + length);
    read_ += sizeof length + length;
    if (read_ == came_.size()) {
        came_.clear();
        read_ = 0;
    }
    return message;
}

} // namespace stampede
