// SPDX-License-Identifier: MIT
#include "engine/wait_graph.hpp"

namespace stn {

wait_graph& wait_graph::of_process() {
    static auto* const graph = new wait_graph; // never destroyed: threads may outlive main
    return *graph;
}

void wait_graph::open(std::uint64_t flight) {
    const std::lock_guard lock(mutex);
    if (open_.insert(flight).second) open_count_.fetch_add(1);
}

void wait_graph::close(std::uint64_t flight) {
    const std::lock_guard lock(mutex);
    if (open_.erase(flight) != 0) open_count_.fetch_sub(1);
    edges_.erase(flight);
}

bool wait_graph::is_open(std::uint64_t flight) {
    if (flight == 0 || quiet()) return false;
    const std::lock_guard lock(mutex);
    return open_.contains(flight);
}

bool wait_graph::add(std::uint64_t from, std::uint64_t to) {
    const std::lock_guard lock(mutex);
    if (reaches_locked(to, from)) return false;
    edges_[from].insert(to);
    return true;
}

void wait_graph::drop(std::uint64_t from, std::uint64_t to) noexcept {
    if (from == 0) return;
    const std::lock_guard lock(mutex);
    drop_locked(from, to);
}

void wait_graph::drop_locked(std::uint64_t from, std::uint64_t to) noexcept {
    const auto it = edges_.find(from);
    if (it == edges_.end()) return;
    if (const auto one = it->second.find(to); one != it->second.end()) it->second.erase(one);
    if (it->second.empty()) edges_.erase(it);
}

void wait_graph::hold(const token& lease, std::uint64_t flight) {
    const std::lock_guard lock(leases_mutex_);
    leases_[lease] = flight;
}

void wait_graph::release(const token& lease) {
    const std::lock_guard lock(leases_mutex_);
    leases_.erase(lease);
}

std::optional<std::uint64_t> wait_graph::holder(const token& lease) {
    const std::lock_guard lock(leases_mutex_);
    const auto it = leases_.find(lease);
    return it == leases_.end() ? std::nullopt : std::optional(it->second);
}

bool wait_graph::reaches_locked(std::uint64_t from, std::uint64_t to) const {
    std::vector<std::uint64_t> todo{from};
    std::set<std::uint64_t> seen;
    while (!todo.empty()) {
        const std::uint64_t at = todo.back();
        todo.pop_back();
        if (at == to) return true;
        if (!seen.insert(at).second) continue;
        if (const auto it = edges_.find(at); it != edges_.end()) {
            todo.insert(todo.end(), it->second.begin(), it->second.end());
        }
    }
    return false;
}

} // namespace stn
