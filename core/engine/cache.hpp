// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/client_core.hpp"
#include "engine/event_queue.hpp"
#include "protocol/policy.hpp"

namespace stn {

// A family of keys and the policy for them: what the host calls. Any thread; nothing here blocks but
// get_or_load.
class cache {
  public:
    cache(std::shared_ptr<client_handle> owner, std::string_view name, const fill_policy& policy);

    struct call {
        std::shared_ptr<const fill_policy> policy; // null: the cache's own
        std::string_view key;
        std::int64_t deadline_ms = -1;
        std::uint64_t within = 0;
        std::shared_ptr<event_queue> home;
        std::uint64_t tag = 0;
        bool force = false;
        bool no_store = false;
        bool refresh = false;
        std::optional<event>* now = nullptr; // takes an answer that is there already; null: it is queued
    };

    // All give the op.
    result<std::uint64_t> fetch(const call& c);
    result<std::uint64_t> refetch(const call& c, const outcome& undecodable);
    result<std::uint64_t> get(const call& c);
    result<std::uint64_t> put(const call& c, std::string_view value, std::int32_t codec, std::int64_t ttl_ms,
                              std::int64_t soft_ttl_ms);
    result<std::uint64_t> invalidate(const call& c, bool stale);

    // A loader's answer, checked; `how.storage` holds the value.
    [[nodiscard]] static std::optional<error> check_lifetime(std::int64_t ttl_ms, std::int64_t soft_ttl_ms);

    [[nodiscard]] const std::shared_ptr<client_handle>& owner() const noexcept { return owner_; }
    [[nodiscard]] const fill_policy& policy() const noexcept { return *policy_; }
    [[nodiscard]] const cache_state& state() const noexcept { return *state_; }

  private:
    result<std::uint64_t> enter(const call& c, fill_mode mode, const token& generation, bool joins);
    result<std::uint64_t> change(const call& c, writes::request what);
    [[nodiscard]] std::optional<error> refuse(const call& c, bool needs_ttl) const;
    [[nodiscard]] std::shared_ptr<const key_names> names_of(std::string_view key) const;
    void detach(std::string_view key) const;

    const std::shared_ptr<client_handle> owner_;
    const std::shared_ptr<cache_state> state_;
    const std::shared_ptr<const fill_policy> policy_;
};

} // namespace stn
