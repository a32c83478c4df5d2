// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stn {

// The scripts of core/protocol/scripts, one file each; KEYS, ARGV and the reply stand in its header.
enum class script_id : std::uint8_t {
    lease,
    extend,
    fill,
    abandon,
    mark_stale,
    put,
    refresh, // take a refresh lease: the bare token, idempotent
    renew,
    release,
    acquire,
    tick,
    tick_end,
    once,
    inspect,
    count_
};

[[nodiscard]] std::string_view script_name(script_id id) noexcept;

enum class verb : std::uint8_t {
    get,       // key -> bulk | nil
    del,       // key -> integer
    publish,   // key = channel, args[0] = message -> integer
    subscribe, // key = channel -> ok; messages come as messages
    script,    // key, args -> as the script says
    time,      // -> array of 2 bulks: seconds, microseconds
    ping,
};

// One command to the store. Arguments are bytes exactly as they go on the wire: tokens raw, numbers
// in decimal. Every command touches one key.
struct command {
    verb what = verb::ping;
    script_id script = script_id::count_;
    std::string key;
    std::vector<std::string> args;
};

} // namespace stn
