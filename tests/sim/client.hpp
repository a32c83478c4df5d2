// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "agenda.hpp"
#include "chance.hpp"
#include "engine/cache.hpp"
#include "engine/client_core.hpp"
#include "parts.hpp"

namespace stn::sim {

class node;

// One client of the library: a core that is turned by hand, and its link.
class client final : public actor {
  public:
    client(world_parts& w, node& at, std::uint64_t seed);
    ~client() override;

    void act(std::uint32_t what, std::uint64_t with) override;
    void ring();
    void crash(bool bytes_lost);
    // The host is told by the queue that `tag` belongs to.
    void close(std::int64_t deadline_ms, const std::shared_ptr<event_queue>& home, std::uint64_t tag);
    // What it still has, in words; empty: nothing.
    [[nodiscard]] std::string leftovers() const;
    // For the end of a world: it ends whatever state it is in.
    void bury();

    [[nodiscard]] client_core& core() noexcept { return *core_; }
    [[nodiscard]] cache& values() noexcept { return *cache_; }
    [[nodiscard]] const std::shared_ptr<const fill_policy>& other() const noexcept { return other_; }
    [[nodiscard]] link& wire() noexcept { return *link_; }
    [[nodiscard]] bool alive() const noexcept { return !dead_ && !ended_; }
    [[nodiscard]] bool fleet() const noexcept { return cache_->policy().fleet; }

  private:
    enum : std::uint32_t { turn };
    void schedule(micros at);

    world_parts& w_;
    node& node_;
    dice dice_;
    std::shared_ptr<client_core> core_;
    std::shared_ptr<client_handle> handle_;
    std::unique_ptr<cache> cache_;
    std::shared_ptr<const fill_policy> other_;
    link* link_ = nullptr; // the core's
    micros turn_at_ = never;
    bool dead_ = false;
    bool ended_ = false;
};

} // namespace stn::sim
