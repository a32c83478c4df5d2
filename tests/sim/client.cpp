// SPDX-License-Identifier: MIT
#include "client.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include "node.hpp"
#include "probe.hpp"

namespace stn::sim {

client::client(world_parts& w, node& at, std::uint64_t seed) : w_(w), node_(at), dice_(seed) {
    client_parts parts;
    auto wire = std::make_unique<link>(w.net, at.number(), at.time(), dice_.next(), [this] { ring(); });
    link_ = wire.get();
    parts.link = std::move(wire);
    parts.time = at.shared_time();
    parts.chance = std::make_shared<seeded_draws>(dice_.next());
    parts.settings = w.opt.settings;
    parts.threaded = false;
    parts.make_fill = [this](fill_setup s) {
        return make_probe(w_.opt.broken, std::move(s), w_.seen, w_.told, node_.number());
    };
    core_ = client_core::make(std::move(parts));
    handle_ = std::make_shared<client_handle>(core_);
    fill_policy p = w.opt.policy;
    if (at.without_fleet()) p.fleet = false;
    if (at.other_codec()) p.codec = 1;
    cache_ = std::make_unique<cache>(handle_, "c", p);
    fill_policy q = w.opt.other;
    q.fleet = p.fleet;
    q.codec = p.codec;
    other_ = std::make_shared<const fill_policy>(q);
    ring();
}

client::~client() = default;

void client::schedule(micros at) {
    if (at >= turn_at_) return;
    turn_at_ = at;
    w_.when.at(at, *this, turn);
}

void client::ring() {
    if (alive()) schedule(std::max(w_.when.now() + dice_.between(1, 100), node_.stalled_until()));
}

void client::act(std::uint32_t, std::uint64_t) {
    const micros now = w_.when.now();
    if (now < turn_at_ || !alive()) return; // an earlier turn has been made
    turn_at_ = never;
    if (now < node_.stalled_until()) {
        schedule(node_.stalled_until() + dice_.between(1, 100));
        return;
    }
    const mono_ms due = core_->turns.next_due_ms(); // turns
    if (core_->closed()) {
        core_->turns.finish();
        ended_ = true;
        return;
    }
    w_.told.line("turn", node_.name(), " due in ", due == forever_ms ? -1 : due - node_.time().now_ms(), " ms");
    if (due != forever_ms) schedule(std::max(node_.time().when(due), now + 1));
}

void client::crash(bool bytes_lost) {
    dead_ = true;
    link_->crash(bytes_lost);
}

void client::close(std::int64_t deadline_ms, const std::shared_ptr<event_queue>& home, std::uint64_t tag) {
    core_->begin_close(deadline_ms, home, tag);
    ring();
}

std::string client::leftovers() const {
    std::ostringstream out;
    client_core& c = *core_;
    const cache_state& state = cache_->state();
    if (const auto n = c.flights->live(); n != 0) out << " flights " << n;
    if (const auto n = c.fetches.size(); n != 0) out << " runs " << n;
    if (c.changes.busy()) out << " writes";
    if (const auto n = c.turns.timers.size(); n != 0) out << " timers " << n;
    if (const auto n = c.commands.in_flight(); n != 0) out << " commands " << n;
    if (const auto n = state.slots.running(); n != 0) out << " slots " << n;
    if (const auto n = state.overdue.running(); n != 0) out << " overdue slots " << n;
    if (const auto n = c.fetches.down_slots.running(); n != 0) out << " fail-open slots " << n;
    if (const auto n = c.fetches.own_tokens.size(); n != 0) out << " own tokens " << n;
    return out.str();
}

void client::bury() {
    dead_ = true;
    link_->crash(true);
    core_->begin_close(0, nullptr, 0);
    core_->turns.turn();
    core_->turns.finish();
    cache_.reset();
    handle_.reset();
}

} // namespace stn::sim
