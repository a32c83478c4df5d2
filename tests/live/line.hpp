// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "io/redis_transport.hpp"
#include "io/system_clock.hpp"
#include "io/system_random.hpp"
#include "support/live_server.hpp"

namespace stn::test {

// A redis_transport without a client: what it tells, word for word. One thread, this one.
class line {
  public:
    explicit line(const std::string& url, std::int64_t connect_timeout_ms = 2'000);
    ~line() { link_.close(); }
    line(const line&) = delete;
    line& operator=(const line&) = delete;

    struct ended {
        delivery how = delivery::answered;
        reply said;
    };
    command_seq send(command c); // it leaves with the next turn
    // Turns until then. False: not even after ten seconds.
    bool turn_until(const std::function<bool()>& done, std::chrono::milliseconds patience = std::chrono::seconds(10));
    bool connect();

    std::map<command_seq, std::vector<ended>> replies;
    std::vector<transport_event> news; // all but the replies
    bool holds_back = false;           // turns go without the flush that ends them
    [[nodiscard]] std::size_t told(transport_event::kind what) const;
    [[nodiscard]] std::size_t ended_as(delivery how) const;

  private:
    void turn(std::int64_t at_most_ms);

    system_clock time_;
    redis_transport link_;
    command_seq next_ = 1;
};

} // namespace stn::test
