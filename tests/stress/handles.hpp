// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "stanchion/stanchion.h"
#include "support/chance.hpp"
#include "support/owned.hpp"

// stanchion.h with owners, and what the threads of a stress test share. Checks of doctest may be made
// by any thread, but each takes a lock: threads count, and the test's own thread checks.
namespace stn::stress {

using test::owned;

inline owned<stn_client> open_client(const char* url = "memory://", const char* options = nullptr) {
    stn_client* out = nullptr;
    REQUIRE(stn_client_open(url, options, &out, nullptr) == STN_OK);
    return owned<stn_client>(out);
}

inline owned<stn_cache> open_cache(const owned<stn_client>& client, std::string_view name, const char* options) {
    stn_cache* out = nullptr;
    REQUIRE(stn_cache_open(client.get(), name.data(), name.size(), options, &out, nullptr) == STN_OK);
    return owned<stn_cache>(out);
}

inline owned<stn_group> open_group(const owned<stn_client>& client) {
    stn_group* out = nullptr;
    REQUIRE(stn_group_new(client.get(), nullptr, &out, nullptr) == STN_OK);
    return owned<stn_group>(out);
}

inline owned<stn_queue> open_queue(std::uint64_t scope = 1) {
    stn_queue* out = nullptr;
    REQUIRE(stn_queue_new(scope, &out, nullptr) == STN_OK);
    return owned<stn_queue>(out);
}

// Null: nothing came in that time.
inline owned<stn_event> next(stn_queue* q, std::int64_t timeout_ms, std::int32_t* status = nullptr) {
    stn_event* out = nullptr;
    const std::int32_t s = stn_queue_next(q, timeout_ms, &out, nullptr);
    if (status != nullptr) *status = s;
    return owned<stn_event>(out);
}

inline bool terminal(const stn_event* e) {
    const std::int32_t kind = stn_event_kind(e);
    return kind != STN_EVENT_REFRESH && kind != STN_EVENT_REVOKED && kind != STN_EVENT_NOTICE;
}

// One thread's dice.
class dice {
  public:
    explicit dice(std::uint32_t seed) : draws_(seed) {}
    [[nodiscard]] std::uint32_t below(std::uint32_t n) {
        const auto drawn = static_cast<std::uint32_t>(draws_.unit() * n);
        return drawn >= n ? n - 1 : drawn;
    }
    [[nodiscard]] bool one_in(std::uint32_t n) { return below(n) == 0; }

  private:
    test::test_draws draws_;
};

// Nothing takes that long unless a wake-up was lost.
inline constexpr std::int64_t stuck_ms = 60'000;

} // namespace stn::stress
