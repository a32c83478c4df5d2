// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

struct stn_client;

namespace stn::bench {

// Each returns lock cycles (acquire and release, both answered) a second for about `ms`; every thread has a key of
// its own.

// The floor: hiredis alone, a connection for each thread, SET NX PX and EVALSHA of a compare-delete.
[[nodiscard]] double raw_cycles(std::uint16_t port, int threads, int ms);

// Ours, one client for all, a queue for each thread.
class own_cycles {
  public:
    explicit own_cycles(const std::string& url);
    ~own_cycles();
    own_cycles(const own_cycles&) = delete;
    own_cycles& operator=(const own_cycles&) = delete;

    [[nodiscard]] double run(int threads, int ms);

  private:
    stn_client* client_ = nullptr;
};

} // namespace stn::bench
