// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "handles.hpp"
#include "options.hpp"

namespace stampede {

inline constexpr int hot_category = 7;
inline constexpr std::string_view hot_key = "category:7";
inline constexpr auto surely_after = std::chrono::milliseconds(10); // this long after the expiry everybody sees it
inline constexpr auto burst_after = std::chrono::milliseconds(20);  // from the expiry to a burst

// Each throws Refused.
Queue make_queue();
Client open_client(const std::string& url, const std::string& options_json);
Cache open_cache(stn_client* client, const std::string& name, const std::string& policy_json);
// The next event of the queue has to be DONE.
void expect_done(stn_queue* queue, const char* what);

// What makes a cache follow the strategy.
std::string policy_json(const Options& options, const Strategy& strategy);

// The value that expires, or goes soft, in the middle of the run, or just before a burst: `until` after it
// was put. Callers may come from `head_start` after that on.
struct FirstValue {
    std::chrono::milliseconds until;
    std::int64_t ttl_ms;
    std::int64_t soft_ttl_ms;
};
FirstValue first_value(const Options& options, const Strategy& strategy, std::chrono::milliseconds head_start);
// Begins to put it; DONE comes to the queue.
void put_first(stn_cache* cache, const std::string& text, const FirstValue& value, stn_queue* queue);

} // namespace stampede
