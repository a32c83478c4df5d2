// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "agenda.hpp"
#include "book.hpp"
#include "chance.hpp"
#include "engine/event_queue.hpp"
#include "engine/lease.hpp"

namespace stn::sim {

class client;
class node;
struct world_parts;

// One event loop of a host program: it reads its queue, runs loaders, and judges what it is told.
class host final : public actor {
  public:
    host(world_parts& w, node& at, std::uint64_t scope, std::uint64_t seed);
    ~host() override;

    [[nodiscard]] const std::shared_ptr<event_queue>& queue() const noexcept { return queue_; }
    [[nodiscard]] std::size_t loads() const noexcept { return running_.size(); }
    [[nodiscard]] bool loads_key(int key) const;
    [[nodiscard]] int loads_of(const client* which) const; // past max_load not counted
    [[nodiscard]] micros hindered_until() const noexcept { return busy_until_; }

    void act(std::uint32_t what, std::uint64_t with) override;
    void be_prompt();
    void close_queue();
    // The process died: nothing happens here any more.
    void die();
    // What is still in the queue goes; for the end of a world.
    void empty();

  private:
    enum : std::uint32_t { read, load_reads, load_ends, load_detaches };
    struct running {
        std::uint64_t load = 0;
        std::uint64_t tag = 0; // of the call whose LEASE it was
        std::uint64_t nested = 0;
        std::shared_ptr<lease> held;
        client* of = nullptr;
        mono_ms overdue_at = 0;
        bool overdue = false;
        micros ends = 0;
    };

    static void rung(void* self);
    void read_queue();
    void take(event& e);
    void answered(std::uint64_t tag, const event& e);
    void check_deadline(const op_entry& o);
    void check_value(const op_entry& o, const event& e);
    void check_woken(const op_entry& o, const load_entry& load);
    void check_forced(const op_entry& o, const load_entry& load);
    void begin_load(event& e);
    void read_source(std::uint64_t load);
    void end_load(std::uint64_t load);
    void detach_load(std::uint64_t load);
    void answer(running& r);
    void forget(std::uint64_t load);
    running* find(std::uint64_t load);

    world_parts& w_;
    node& node_;
    dice dice_;
    const std::shared_ptr<event_queue> queue_;
    std::vector<running> running_;
    micros busy_until_ = 0;
    bool dead_ = false;
};

} // namespace stn::sim
