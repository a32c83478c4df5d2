// SPDX-License-Identifier: MIT
#include "commands.hpp"

#include <charconv>

#include "exit_code.hpp"
#include "report.hpp"
#include "text.hpp"

namespace cli {

namespace {

// "prices@2" is version 2 of the cache prices.
cache_handle open(const options& given, stn_client* client) {
    const auto at = given.name.find('@');
    const std::string name = given.name.substr(0, at);
    nlohmann::json setting = nlohmann::json::object();
    if (at != std::string::npos) {
        int version = 0;
        const char* end = given.name.data() + given.name.size();
        const auto [stopped, bad] = std::from_chars(given.name.data() + at + 1, end, version);
        if (bad != std::errc{} || stopped != end) {
            throw failure(exit_usage, "usage", "what follows @ in " + in_quotes(given.name) + " is no version number");
        }
        setting["version"] = version;
    }
    stn_cache* cache = nullptr;
    stn_error* raw = nullptr;
    const auto status = stn_cache_open(client, name.data(), name.size(), setting.dump().c_str(), &cache, &raw);
    const error_handle error(raw);
    if (status != STN_OK) throw failed("cache " + in_quotes(given.name), status, raw);
    return cache_handle(cache);
}

} // namespace

ending invalidate(const options& given, const signals& outside) {
    const std::string subject = "cache " + in_quotes(given.name) + ", key " + in_quotes(given.key);
    session store(given, outside);
    const auto cache = open(given, store.client());
    const std::uint32_t flags = given.stale ? std::uint32_t{STN_INVALIDATE_STALE} : 0;
    static_cast<void>(store.ask(subject, [&](stn_queue* q, std::uint64_t tag, std::uint64_t* op, stn_error** e) {
        return stn_cache_invalidate(cache.get(), given.key.data(), given.key.size(), flags, STN_DEFAULT_MS, q, tag, op,
                                    e);
    }));
    if (!given.quiet || given.json) {
        answer(given, subject + (given.stale ? " is stale" : " is invalidated"),
               {{"cache", given.name}, {"key", given.key}, {"done", given.stale ? "stale" : "invalidated"}});
    }
    return {};
}

} // namespace cli
