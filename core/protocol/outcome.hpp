// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/result.hpp"
#include "protocol/envelope.hpp"

namespace stn {

enum class source : std::uint8_t { none, store, flight, near, memory };

// What a caller is told: a value, "there is no such thing", or an error. Immutable once shared.
struct outcome {
    status code = status::ok; // ok, absent, or an error
    std::string storage;      // owns `payload`
    std::string_view payload;
    std::string key; // the user's
    std::uint8_t codec = 0;
    token generation{}; // none: not (yet) in the store under a generation we know
    server_ms created = 0;
    server_ms soft_at = never_soft;
    std::uint32_t delta_ms = 0;
    std::int64_t ttl_ms = -1;      // a loader's own ttl, -1: the policy's
    std::int64_t soft_ttl_ms = -1; // likewise
    bool stale = false;
    bool retried = false; // the answer of a refetch
    source from = source::none;
    error why;                  // when `code` is an error
    std::uint64_t host_ref = 0; // the binding's own object behind this answer
    std::uint64_t host_scope = 0;
};
using outcome_ptr = std::shared_ptr<const outcome>;

[[nodiscard]] outcome_ptr outcome_error(error why);
// `bytes` is a whole envelope, `e` its reading; takes the bytes over.
[[nodiscard]] std::shared_ptr<outcome> outcome_of(std::string bytes, source from);

} // namespace stn
