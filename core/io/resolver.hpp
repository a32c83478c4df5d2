// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace stn {

// A numeric address.
struct net_address {
    std::string ip;
    std::uint16_t port = 0;
    friend bool operator==(const net_address&, const net_address&) = default;
};

// Asks the system for the addresses of a name, on a thread of its own: the system may take its time.
// One question at a time; an answer that nobody waits for any more is dropped.
class resolver {
  public:
    resolver();
    ~resolver();
    resolver(const resolver&) = delete;
    resolver& operator=(const resolver&) = delete;

    // A numeric host is answered at once, without a thread.
    void ask(const std::string& host, std::uint16_t port);
    // The answer: every address there is, in the system's order, or why there is none.
    [[nodiscard]] std::optional<result<std::vector<net_address>>> poll();
    void forget();
    // Becomes readable with the answer.
    [[nodiscard]] int fd() const noexcept;

  private:
    struct question;
    std::shared_ptr<question> open_;
};

} // namespace stn
