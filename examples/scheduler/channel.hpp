// SPDX-License-Identifier: MIT
#pragma once

#include <mutex>
#include <optional>
#include <string>

namespace scheduler {

// Lines of text, both ways, between the stage and an instance.
class Channel {
  public:
    explicit Channel(int fd) : fd_(fd) {}
    ~Channel();
    Channel(Channel&& other) noexcept;
    Channel& operator=(Channel&&) = delete;

    void send(std::string line);       // any thread
    bool listen();                     // takes in what has come, waiting if nothing has; false: the other end is gone
    std::optional<std::string> next(); // of what was taken in
    int fd() const { return fd_; }

  private:
    std::mutex sending_;
    int fd_;
    std::string came_;
};

} // namespace scheduler
