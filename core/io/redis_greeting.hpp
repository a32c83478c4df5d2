// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "protocol/reply.hpp"
#include "protocol/store_url.hpp"

namespace stn {

// What a new connection says first, all of it in one go, and what the answers mean.
struct greeting_step {
    enum class kind : std::uint8_t { auth, hello, name, select, load, time };
    kind what = kind::hello;
    std::vector<std::string> words;
};

// For a connection that carries commands, or one that hears messages only.
enum class greeting_for : std::uint8_t { commands, messages };

[[nodiscard]] std::vector<greeting_step> greeting_of(const store_url& where, greeting_for purpose);

// What the server says of itself in its answer to HELLO, as a JSON object; {} if it does not know that command.
[[nodiscard]] std::string described(const reply& hello);

// Why the connection is of no use, if it is not. A server without HELLO speaks RESP2; one that will not
// learn scripts or tell the time under this user is used as far as it goes.
[[nodiscard]] std::optional<error> judge(const greeting_step& step, const reply& said);

} // namespace stn
