// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "engine/fills.hpp"
#include "engine/single_flight.hpp"
#include "engine/timer_queue.hpp"
#include "engine/wire.hpp"

namespace stn {

class client_core;

// Puts and invalidations. An invalidation is retried to its deadline and never stopped by the breaker;
// a put is sent again only when the store has refused it for now. What the store's configuration forbids
// ends at once. Under the turn lock.
class writes {
  public:
    explicit writes(client_core& core) : core_(core) {}

    struct request {
        enum class kind : std::uint8_t { put, erase, mark_stale } what = kind::erase;
        single_flight::ref flight; // its one caller is who asked; held
        std::shared_ptr<cache_state> cache;
        std::shared_ptr<const key_names> names;
        std::shared_ptr<const fill_policy> policy;
        outcome_ptr value; // put
        mono_ms deadline = forever_ms;
        bool own_deadline = true; // false: the default, which the time of connecting prolongs
    };
    void begin(request r, mono_ms now);
    void close(mono_ms now);
    // While the connection settles, writes wait for how that ends.
    void settle(bool unsettled, mono_ms now);
    [[nodiscard]] std::size_t size() const noexcept { return running_.size(); }
    [[nodiscard]] bool busy() const noexcept { return !running_.empty(); }

  private:
    class run;
    client_core& core_;
    std::uint64_t last_no_ = 0;
    std::map<std::uint64_t, std::shared_ptr<run>> running_; // by age: a close answers in this order
};

} // namespace stn
