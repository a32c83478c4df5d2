// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace stampede {

using Message = nlohmann::json;

// One end of a socket pair between two processes: messages in order, whole or not at all.
class Channel {
  public:
    explicit Channel(int fd) : fd_(fd) {} // and closes it
    ~Channel();
    Channel(Channel&& other) noexcept;
    Channel& operator=(Channel&&) = delete;

    int fd() const { return fd_; }
    void send(const Message& message); // blocks while the other end does not read; silent if it is gone
    // Takes in what has come, without blocking. False: the other end is gone, and nothing more will come.
    bool listen();
    std::optional<Message> next(); // of what was taken in

  private:
    int fd_;
    std::string came_;
    std::size_t read_ = 0; // bytes of came_
};

} // namespace stampede
