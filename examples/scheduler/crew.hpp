// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>
#include <string>
#include <sys/types.h>
#include <vector>

#include "channel.hpp"
#include "instance.hpp"
#include "journal.hpp"

namespace scheduler {

struct CouldNotRun : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Some instances of the service: each a process of its own, which ends with this object at the latest.
class Crew {
  public:
    Crew(std::size_t size, const std::string& store);
    ~Crew();
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    // Lets all of them do that, at one time, and gives what they told.
    template <class Work> Journal work(const Work& work) { return work_by(order(work)); }

  private:
    struct Member {
        pid_t pid;
        Channel channel;
    };

    void start(const std::string& opening);
    Journal work_by(const std::string& order);
    Journal until_all(Happening what);

    std::vector<Member> members_;
};

} // namespace scheduler
