// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/random.hpp"

namespace stn {

// What stands in a value key, version 1, little endian:
//
//    0  magic 0xF5              20  created, server ms (8)
//    1  version                 28  soft expiry, server ms (8)
//    2  kind 0-3, codec 4-5,    36  delta: how long the last load took, ms (4)
//       compressed 6, 0 in 7    40  raw length: of the payload before compression (4)
//    3  waiter byte             44  payload
//    4  generation (16); in a placeholder the token of the lease
//
// The scripts read and patch these offsets in place: a change here is a new version.
enum class entry_kind : std::uint8_t { value = 0, placeholder = 1, absent = 2, error = 3, pass = 4 };
enum class codec_id : std::uint8_t { raw = 0, json = 1, private_ = 2 };

inline constexpr server_ms never_soft = INT64_MAX; // a soft_at of 0 means: marked stale
inline constexpr std::size_t envelope_head = 44;

struct envelope {
    entry_kind kind = entry_kind::value;
    std::uint8_t codec = 0;
    bool compressed = false;
    bool waited = false; // somebody wants to be told when this goes
    token generation;
    server_ms created = 0;
    server_ms soft_at = never_soft;
    std::uint32_t delta_ms = 0;
    std::string_view payload;
    std::uint32_t raw_length = 0; // written only when compressed; else it is the payload's size
};

enum class reading : std::uint8_t {
    ours,
    newer,   // of a later version: leave it alone
    foreign, // not an envelope: a miss
};

[[nodiscard]] std::string encode(const envelope& e);

// Fills `out` only when the bytes are ours; its payload borrows from `bytes`.
[[nodiscard]] reading decode(std::string_view bytes, envelope& out);

} // namespace stn
