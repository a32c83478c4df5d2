// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "base/random.hpp"

namespace stn {

// Which flight waits for which, in this whole process: flight numbers are unique over its clients. An
// edge A -> B says that a call made from inside A's load waits for B, or that A waits for a lease that
// B holds. A circle would never end.
//
// Lock order: this mutex -> a shard's mutex of a single_flight.
class wait_graph {
  public:
    static wait_graph& of_process();

    // A load has a name: calls may come from inside it.
    void open(std::uint64_t flight);
    void close(std::uint64_t flight);
    [[nodiscard]] bool is_open(std::uint64_t flight);
    // Nothing was ever opened, or all is closed: nobody needs to ask.
    [[nodiscard]] bool quiet() const noexcept { return open_count_.load() == 0; }

    // False: that would close a circle.
    bool add(std::uint64_t from, std::uint64_t to);
    void drop(std::uint64_t from, std::uint64_t to) noexcept;

    // Leases of this process, by token.
    void hold(const token& lease, std::uint64_t flight);
    void release(const token& lease);
    [[nodiscard]] std::optional<std::uint64_t> holder(const token& lease);

    // For one step that looks, enters and adds: all with `mutex` held.
    std::mutex mutex;
    [[nodiscard]] bool is_open_locked(std::uint64_t flight) const { return open_.contains(flight); }
    [[nodiscard]] bool reaches_locked(std::uint64_t from, std::uint64_t to) const;
    void add_locked(std::uint64_t from, std::uint64_t to) { edges_[from].insert(to); }
    void drop_locked(std::uint64_t from, std::uint64_t to) noexcept;

  private:
    std::atomic<std::size_t> open_count_{0};
    std::set<std::uint64_t> open_;                                // mutex
    std::map<std::uint64_t, std::multiset<std::uint64_t>> edges_; // mutex
    std::mutex leases_mutex_;
    std::map<token, std::uint64_t> leases_; // leases_mutex_
};

} // namespace stn
