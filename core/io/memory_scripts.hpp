// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "protocol/command.hpp"
#include "protocol/reply.hpp"

namespace stn {

// What a script may do to its one key, as redis.call would: a filled optional is the error.
class script_host {
  public:
    using refusal = std::optional<std::string>;

    script_host() = default;
    script_host(const script_host&) = delete;
    script_host& operator=(const script_host&) = delete;
    virtual ~script_host() = default;

    // Null: nothing there. Only a string has bytes; anything else is a `wrong_type`.
    [[nodiscard]] virtual const std::string* bytes() = 0;
    [[nodiscard]] virtual bool wrong_type() = 0;
    [[nodiscard]] virtual std::int64_t pttl() = 0; // -2: no key, -1: no TTL
    // The server's clock in microseconds, and never the same twice: what fences are made of.
    [[nodiscard]] virtual std::int64_t fence() = 0;
    [[nodiscard]] virtual server_ms now() const = 0;
    virtual refusal set(std::string bytes, std::string_view px) = 0;
    virtual refusal set_range(std::size_t at, std::string_view patch) = 0;
    virtual refusal pexpire(std::string_view ms) = 0;
    virtual void del() = 0;
    virtual void publish(const std::string& channel, std::string_view payload) = 0;
};

[[nodiscard]] reply run_memory_script(script_id id, const std::vector<std::string>& args, script_host& host);

} // namespace stn
