// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/reply.hpp"

struct redisContext;

namespace stn::test {

// hiredis, synchronous, beside the library and never through it: what a test asks a server itself.
// Throws std::runtime_error when the server is not there, closes, or says nothing for 10 seconds; an
// error reply is a reply. Raises no SIGPIPE, and leaves the signal as it is for everybody else.
class plain_connection {
  public:
    static plain_connection to_port(std::uint16_t port); // of 127.0.0.1
    static plain_connection to_socket(const std::string& path);

    reply ask(const std::vector<std::string>& words);

    // The same in two halves; `receive` sends what is still to be sent, and also gets messages.
    void send(const std::vector<std::string>& words);
    reply receive();

  private:
    struct closer {
        void operator()(redisContext* context) const;
    };
    explicit plain_connection(redisContext* context);
    [[noreturn]] void give_up() const;

    std::unique_ptr<redisContext, closer> context_;
};

// For messages: what it is, with unprintable bytes as \xNN, cut at 80 bytes.
[[nodiscard]] std::string shown(const reply& r);
[[nodiscard]] std::string shown(std::string_view bytes);

} // namespace stn::test
