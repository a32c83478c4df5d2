// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "child.hpp"
#include "session.hpp"

namespace cli {

// How a command of ours ended.
struct ending {
    int exit = 0;   // code
    int signal = 0; // that ended the program that was run, or 0
};

// Runs the program of a command line under the eyes of a session.
class runner {
  public:
    // Throws failure if the program is not there: for that no lock, slot or id is taken.
    runner(const options& given, bool shares_group);

    struct result {
        ending how;
        bool stopped = false;
    };
    // To its end. Signals are passed on, events shown to `on_event`; when that says true the program has to stop: it gets
    // SIGTERM, and SIGKILL after the grace.
    [[nodiscard]] result run(session& store, const child::variables& more,
                             const std::function<bool(const stn_event*)>& on_event) const;

  private:
    const options& given_;
    const bool shares_group_;
    const std::chrono::milliseconds grace_;
};

} // namespace cli
