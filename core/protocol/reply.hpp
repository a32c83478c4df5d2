// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stn {

enum class reply_kind : std::uint8_t { nil, integer, bulk, status, array, error };

struct reply {
    reply_kind kind = reply_kind::nil;
    std::int64_t integer = 0;
    std::string text; // bulk, status or error
    std::vector<reply> items;

    static reply of_integer(std::int64_t n) { return {reply_kind::integer, n, {}, {}}; }
    static reply of_bulk(std::string s) { return {reply_kind::bulk, 0, std::move(s), {}}; }
    static reply of_error(std::string s) { return {reply_kind::error, 0, std::move(s), {}}; }
    static reply of_status(std::string s) { return {reply_kind::status, 0, std::move(s), {}}; }
    static reply of_array(std::vector<reply> v) { return {reply_kind::array, 0, {}, std::move(v)}; }
};

// How a command ended. The transport tells it exactly once per command and never resends.
enum class delivery : std::uint8_t {
    answered, // `reply` is what the server said (perhaps an error reply)
    not_sent, // certainly not applied
    lost,     // sent, no answer: may have been applied, or may be later
};

} // namespace stn
