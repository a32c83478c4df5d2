// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <string>
#include <sys/types.h>

namespace scheduler {

// A redis-server of this run: on a free port of the loopback interface, keeping nothing. STN_REDIS_SERVER names the
// program, else it is found on PATH.
class Server {
  public:
    Server();
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }

  private:
    bool starts();
    bool running();
    void stop();

    std::filesystem::path folder_;
    int port_ = 0;
    pid_t pid_ = -1;
};

} // namespace scheduler
