// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "draw.hpp"
#include "sides.hpp"

namespace stn::differ {

using visits = std::map<std::string, std::uint64_t, std::less<>>;

struct score {
    visits memory;
    visits real;
    std::uint64_t compared = 0;
    std::uint64_t live = 0;    // of those, on a key that was there
    std::uint64_t crossed = 0; // of those, on a key that had expired
    std::uint64_t edges = 0;   // left out: the key was just expiring, or the server was held up
    std::uint64_t told = 0;    // messages
    std::uint64_t different = 0;
};

// The embedded store against one real server.
class contest {
  public:
    contest(test::live_server& server, std::uint64_t seed, const script_texts& instead = {});

    // Until so many commands are compared and every branch was visited so often (for that, up to three times as many
    // are compared), or so many differed. `loud`: differences are printed.
    void run(std::uint64_t commands, std::uint64_t visits_each, std::uint64_t most_different, bool loud);
    // What only a real server can do: each script `times` times for somebody who may not read.
    void run_blind(std::uint64_t times);
    [[nodiscard]] bool true_scripts() const; // the server's SHA1 are those of the build

    score seen;

  private:
    void walk(const std::string& key);
    void cross();
    std::uint64_t fewest_visits();
    step choose(const std::string& key, const state& now, bool fresh);
    void compare(step s);
    void forget(const std::string& key);
    [[nodiscard]] bool settled(const std::string& key, const times& at) const;

    const std::uint64_t seed_;
    bool loud_ = true;
    test::live_server& server_;
    drawer chance_;
    memory_side memory_;
    memory_side forecast_; // runs what might be chosen
    real_side real_;
    std::map<std::string, server_ms> due_; // when a key expires
    std::uint64_t subscribed_ = 0;
    std::uint64_t fewest_ = 0;
    std::uint64_t next_count_ = 0;
};

} // namespace stn::differ
