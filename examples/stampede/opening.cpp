// SPDX-License-Identifier: MIT
#include "opening.hpp"

namespace stampede {

Queue make_queue() {
    Queue queue;
    check("there is no queue", [&](stn_error** err) {
        stn_queue* made = nullptr;
        int32_t status = stn_queue_new(0, &made, err);
        queue.reset(made);
        return status;
    });
    return queue;
}

Client open_client(const std::string& url, const std::string& options_json) {
    Client client;
    check("the store cannot be opened", [&](stn_error** err) {
        stn_client* made = nullptr;
        int32_t status = stn_client_open(url.c_str(), options_json.c_str(), &made, err);
        client.reset(made);
        return status;
    });
    return client;
}

Cache open_cache(stn_client* client, const std::string& name, const std::string& policy_json) {
    Cache cache;
    check("the cache cannot be opened", [&](stn_error** err) {
        stn_cache* made = nullptr;
        int32_t status = stn_cache_open(client, name.data(), name.size(), policy_json.c_str(), &made, err);
        cache.reset(made);
        return status;
    });
    return cache;
}

void expect_done(stn_queue* queue, const char* what) {
    stn_event* raw = nullptr;
    check(what, [&](stn_error** err) { return stn_queue_next(queue, 20'000, &raw, err); });
    Event event(raw);
    if (stn_event_kind(raw) != STN_EVENT_DONE) {
        throw Refused(std::string(what) + ": " + described(stn_event_status(raw), stn_event_error(raw)));
    }
}

// No jitter: the worst case is the subject here, one key gone at one moment. What a load writes outlives the
// run; the value that expires is put with a ttl of its own.
std::string policy_json(const Options& options, const Strategy& strategy) {
    auto flag = [](bool on) { return std::string(on ? "true" : "false"); };
    std::string json = R"({"codec": "json", "jitter": 0, "ttl": "1h")";
    if (strategy.soft) json += R"(, "soft_ttl": "30m")";
    json += R"(, "coalesce": )" + flag(strategy.coalesce);
    json += R"(, "fleet": )" + flag(strategy.fleet);
    json += R"(, "wait_ms": )" + std::to_string(10'000 + 2 * options.load_ms) + "}";
    return json;
}

FirstValue first_value(const Options& options, const Strategy& strategy, std::chrono::milliseconds head_start) {
    FirstValue value{};
    value.until = head_start + std::chrono::milliseconds(options.window_ms / 2);
    // Soft expiry leaves far more than twice the load: the refresh has all the time it needs.
    std::chrono::milliseconds margin = std::chrono::seconds(10) + 3 * std::chrono::milliseconds(options.load_ms);
    std::int64_t ends_ms = value.until.count() + 1; // a store may count in whole ms: rather late than early
    value.ttl_ms = strategy.soft ? ends_ms + margin.count() : ends_ms;
    value.soft_ttl_ms = strategy.soft ? ends_ms : 0;
    return value;
}

void put_first(stn_cache* cache, const std::string& text, const FirstValue& value, stn_queue* queue) {
    check("the first value cannot be put", [&](stn_error** err) {
        return stn_cache_put(cache, nullptr, hot_key.data(), hot_key.size(), text.data(), text.size(),
                             STN_CODEC_DEFAULT, value.ttl_ms, value.soft_ttl_ms, 5'000, queue, 0, nullptr, err);
    });
}

} // namespace stampede
