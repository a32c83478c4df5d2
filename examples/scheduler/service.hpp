// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <stanchion/stanchion.hpp>
#include <string>

#include "channel.hpp"
#include "journal.hpp"

namespace scheduler {

using std::chrono::milliseconds;

// A job for each slot of time.
struct Ticks {
    milliseconds every{0}; // how long a slot is
    milliseconds job{0};   // how long the job takes
    milliseconds shift{0}; // how long the instance stays
};

// A job under a lock.
struct Locked {
    milliseconds ttl{0};
    bool renew = true;
    milliseconds job{0};
    int times = 1;
};

// An instance of the service: the part to read. It does what any program would, and tells the stage what it does.
class Service {
  public:
    Service(const std::string& store, const std::string& prefix, Channel& stage);

    void work(const Ticks& work);
    void work(const Locked& work);

  private:
    void tell(Happening what, std::int64_t fence = 0, std::int64_t slot_ms = 0, bool held = false,
              const std::string& text = "");

    const stanchion::client store_;
    Channel& stage_;
};

} // namespace scheduler
