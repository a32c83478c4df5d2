// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agenda.hpp"
#include "book.hpp"
#include "chance.hpp"
#include "client.hpp"
#include "engine/event.hpp"
#include "host.hpp"
#include "parts.hpp"

namespace stn::sim {

// One process of the fleet on one machine with its own clock: hosts and a client.
class node final : public actor {
  public:
    node(world_parts& w, int number, std::uint64_t seed);

    [[nodiscard]] int number() const noexcept { return number_; }
    [[nodiscard]] bool up() const noexcept { return now_ != nullptr; }
    [[nodiscard]] node_clock& time() noexcept { return *time_; }
    [[nodiscard]] const std::shared_ptr<node_clock>& shared_time() const noexcept { return time_; }
    [[nodiscard]] client* current() noexcept { return now_; }
    [[nodiscard]] client* client_of(const client_core* core);
    [[nodiscard]] micros paused_until() const noexcept { return paused_until_; }
    [[nodiscard]] micros stalled_until() const noexcept { return std::max(stalled_until_, paused_until_); }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] bool other_codec() const noexcept { return other_codec_; }
    [[nodiscard]] bool without_fleet() const noexcept { return without_fleet_; }

    // Calls of the host.
    // False: nobody could call.
    bool call(op_kind k, int key);
    std::uint64_t fetch(int key, host& from, std::uint64_t within);
    void refetch(const event& value, const op_entry& o, host& from);
    void cancel_one();
    void answered(std::uint64_t tag, const event& e, const std::shared_ptr<event_queue>& home);
    host& some_host();
    void expect(std::uint64_t tag, host& from, client& of) { open_.push_back({tag, &from, &of}); }

    // Faults.
    void pause(micros how_long);
    void stall(micros how_long);
    void crash(bool bytes_lost, micros down_for);
    void reopen();
    void close_queue();
    void heal();

    void act(std::uint32_t what, std::uint64_t with) override;
    void ring_all();
    void check_looks();
    void check_loads();
    void note_load_end(int key);
    // Never, while one runs.
    [[nodiscard]] micros load_ended(int key) const;
    // Somebody here stood still until then.
    [[nodiscard]] micros hindered_until() const;
    [[nodiscard]] bool quiet() const;
    [[nodiscard]] std::string leftovers() const;
    void close_for_good();
    void bury();
    [[nodiscard]] stat_block stats() const;

  private:
    enum : std::uint32_t { start };
    void start_process();
    std::uint64_t accept(op_entry o, host& from, const std::function<result<std::uint64_t>(std::uint64_t tag)>& make);
    [[nodiscard]] bool loads(int key) const;

    world_parts& w_;
    const int number_;
    const std::string name_;
    dice dice_;
    std::shared_ptr<node_clock> time_;
    bool other_codec_ = false;
    bool without_fleet_ = false;
    client* now_ = nullptr;
    std::vector<host*> hosts_; // of the process that runs
    std::vector<std::unique_ptr<client>> all_clients_;
    std::vector<std::unique_ptr<host>> all_hosts_;
    struct open_call {
        std::uint64_t tag;
        host* from;
        client* of;
    };
    std::vector<open_call> open_;
    std::vector<micros> last_load_end_;      // by key
    std::vector<std::int64_t> floors_;       // by key: deleted below, acknowledged to this process
    std::vector<std::int64_t> floors_stale_; // marked stale below
    std::vector<micros> floors_put_;         // loads begun before it were written over, acknowledged
    micros paused_until_ = 0;
    micros stalled_until_ = 0;
    micros up_since_ = 0;
};

} // namespace stn::sim
