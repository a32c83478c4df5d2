// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <sys/types.h>

#include "support/live_server.hpp"

namespace stn::test {

// A process of one of programs/*.c. It dies with this object, and with the thread that made it.
class process {
  public:
    // The program, and its words.
    explicit process(std::vector<std::string> words);
    // Of programs/caller.c.
    process(const std::string& what, const std::string& url, const std::string& key, int number,
            const std::string& options = "{}", const std::string& policy = R"({"ttl": "1m"})");
    ~process();
    process(const process&) = delete;
    process& operator=(const process&) = delete;

    // The next line that it tells; empty: it has ended, or has nothing to say for all that time.
    std::string line(std::chrono::milliseconds patience = std::chrono::seconds(20));
    std::vector<std::string> lines(); // all to the end
    void kill9();
    void pause(); // SIGSTOP; returns when it stands
    void go_on(); // SIGCONT
    // How it ended: its exit status, or minus the signal that ended it.
    int end();

  private:
    pid_t pid_ = -1;
    int pipe_ = -1;
    int status_ = 0;
    std::string heard_;
};

} // namespace stn::test
