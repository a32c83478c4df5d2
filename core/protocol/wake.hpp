// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/random.hpp"

namespace stn {

// The message that tells waiters to look again: version 1, kind, the token it replaced (16),
// u16 length (little endian) and the whole store key, then the envelope when it is small. Behind the key of a lock that was
// released stands how many releases its holder had waited through before, u16; nothing if that is not known.
enum class wake_kind : std::uint8_t {
    filled = 0,
    failed = 1,
    pass = 2,
    released = 3,
    invalidated = 4,
};

inline constexpr std::size_t envelope_in_wake = 4096;

struct wake_message {
    wake_kind kind = wake_kind::filled;
    token replaced;
    std::string_view key;
    std::string_view envelope; // empty: none, or too large to travel
};

// The envelope is left out when it is over envelope_in_wake.
[[nodiscard]] std::string encode_wake(const wake_message& m);

// Borrows from `bytes`. Nothing for what is not a wake-up message of version 1.
[[nodiscard]] std::optional<wake_message> decode_wake(std::string_view bytes);

// The part that the scripts put behind the token: length and key.
[[nodiscard]] std::string wake_tail(std::string_view store_key);
// The same of a lock: and what its holder had waited through.
[[nodiscard]] std::string released_tail(std::string_view store_key, int seen);
[[nodiscard]] std::optional<int> waited_through(const wake_message& released);

} // namespace stn
