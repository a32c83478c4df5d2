// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "book.hpp"
#include "chance.hpp"
#include "io/memory_server.hpp"
#include "judge.hpp"
#include "options.hpp"

namespace stn::sim {

// The one server of the fleet, on true time, and what an onlooker at its side sees: each command of
// ours with the key before and after it.
class store {
  public:
    store(const options& o, const agenda& when, tale& told, judge& judged, book& history);

    // Executes a command of `node`. `skipped`: the broken transport keeps it from taking effect.
    reply run(int node, const command& cmd, bool skipped = false);
    // Hears of each script and deletion of ours what its key held before, and for how long.
    std::function<void(const command& cmd, const std::string& before, std::int64_t left_ms)> onlooker;
    [[nodiscard]] server_ms now() const { return began_ + when_.now() / ms + leapt_; }
    [[nodiscard]] memory_server& server() noexcept { return server_; }
    [[nodiscard]] const std::string& value_key_of(int key) const { return keys_[static_cast<std::size_t>(key)]; }
    // Messages of that channel matter too.
    void hear(std::string channel) { channels_.push_back(std::move(channel)); }
    [[nodiscard]] bool relevant(const std::string& channel) const;
    [[nodiscard]] bool holds_placeholder(const std::string& key);

    // What others do to it. False: there was nothing to do it to.
    void leap(std::int64_t by_ms) { leapt_ += by_ms; }
    bool delete_key(int key);
    void write_bytes(int key, dice& d);
    void write_list(int key, dice& d);
    bool persist(int key);
    bool write_newer(int key, dice& d);
    void flush();

    // An invalidation of `key` was answered with ok: what the source said before `version` is gone.
    void acknowledged(int key, std::int64_t version);
    // Whatever is left has a TTL, or is not ours.
    void last_look();

    [[nodiscard]] std::uint64_t fills_refused() const noexcept { return fills_refused_; }
    [[nodiscard]] micros passed(int key) const { return passed_[static_cast<std::size_t>(key)]; }
    [[nodiscard]] bool was_granted(const token& t) const { return grants_.contains(t.str()); }

  private:
    struct grant {
        int key = 0;
        micros at = 0;
        std::uint64_t stored_load = 0;
        bool generation = false; // of a refresh lease
    };
    struct refreshed {
        std::string holder;  // token
        server_ms until = 0; // its refresh lease lasts
        bool stored = false;
    };

    void watch(int node, const command& cmd, const std::string& before, bool was, const reply& r);
    void watch_lease(int node, int key, const command& cmd, const std::string& after);
    void watch_fill(int node, int key, const command& cmd, const std::string& before, const reply& r);
    void watch_put(int key, const command& cmd, const reply& r);
    void judge_age(const load_entry& load);
    void watch_refresh_key(const command& cmd, const reply& r);
    void gone(int key);

    const agenda& when_;
    tale& told_;
    judge& judge_;
    book& book_;
    const server_ms began_;
    std::int64_t leapt_ = 0;
    memory_server server_;
    std::vector<std::string> keys_;
    std::unordered_map<std::string, int> numbers_;
    std::vector<std::string> channels_;
    std::vector<std::int64_t> floors_; // by key: a fill below it is stale
    std::vector<micros> passed_;       // by key: when a pass marker was written last
    std::unordered_map<std::string, grant> grants_;
    std::unordered_map<std::string, refreshed> refreshes_; // by generation, in hex
    std::uint64_t fills_refused_ = 0;
};

} // namespace stn::sim
