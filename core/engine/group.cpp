// SPDX-License-Identifier: MIT
#include "engine/group.hpp"

#include <utility>

#include "engine/wait_graph.hpp"
#include "protocol/keys.hpp"

namespace stn {

namespace {

std::optional<error> refuse_key(std::string_view key) {
    if (key.empty()) return fail(status::invalid_argument, "the key is empty");
    if (key.size() > max_key) {
        return fail(status::too_large,
                    "the key has " + std::to_string(key.size()) + " bytes; the limit is " + std::to_string(max_key));
    }
    return std::nullopt;
}

} // namespace

flight_lead::flight_lead(std::shared_ptr<client_handle> owner, single_flight::ref flight, std::uint64_t number,
                         std::uint64_t scope, std::uint64_t within)
    : owner_(std::move(owner)),
      flight_(flight),
      number_(number),
      scope_(scope),
      within_(within) {}

flight_lead::~flight_lead() {
    if (!finished_.load(std::memory_order_relaxed)) hand_on();
    if (held_) owner_->core->flights->drop(flight_);
}

// What must be forgotten with the flight.
void flight_lead::over(bool alarm) {
    client_core& core = *owner_->core;
    wait_graph::of_process().drop(within_, flight_.id);
    if (alarm) core.turns.post([&core, id = flight_.id](mono_ms) { core.alarms.end(id); });
}

std::uint32_t flight_lead::tell(std::vector<caller> who, outcome how) {
    const auto owned = std::make_shared<outcome>(std::move(how));
    owned->from = source::flight;
    owned->host_scope = scope_;
    owned->payload = owned->storage;
    return owner_->core->deliver(std::move(who), owned);
}

bool flight_lead::detach(std::uint32_t& waiters) {
    waiters = 0;
    if (finished_.load()) return false;
    client_core& core = *owner_->core;
    waiters = core.flights->detach_holder(flight_, number_);
    if (waiters > 0) return true;
    if (finished_.exchange(true)) return false;
    over(core.flights->alarm_set(flight_));
    return true;
}

void flight_lead::hand_on() {
    client_core& core = *owner_->core;
    if (!core.flights->end_load(flight_, number_)) return;
    wait_graph::of_process().drop(within_, flight_.id);
    auto to = core.flights->promote(flight_, number_ + 1, nullptr);
    if (!to) {
        over(core.flights->alarm_set(flight_));
        return;
    }
    core.totals.add(stat::promotions);
    core.flights->hold(flight_);
    event e;
    e.kind = event_kind::flight;
    e.tag = to->tag;
    e.lead = std::make_shared<flight_lead>(owner_, flight_, number_ + 1, to->home->scope(), to->within);
    to->home->push(std::move(e));
}

std::uint64_t flight_lead::open_scope() {
    owner_->core->flights->open_scope(flight_);
    return flight_.id;
}

std::optional<error> group::join(std::string_view key, std::int64_t deadline_ms, std::uint64_t within,
                                 const std::shared_ptr<event_queue>& home, std::uint64_t tag, joined& out) {
    if (auto no = refuse_key(key)) return no;
    if (deadline_ms < -1) {
        return fail(status::invalid_argument,
                    "deadline_ms is " + std::to_string(deadline_ms) + "; it is -1 (for ever), 0 (do not wait) or more");
    }
    client_core& core = *owner_->core;
    if (core.closing() && (core.closed() || !wait_graph::of_process().is_open(within))) {
        return fail(status::closed, "the client is closed", std::string(key));
    }
    if (home->closed()) return fail(status::closed, "the queue is closed", std::string(key));
    single_flight::visitor who{home, tag, within};
    who.no_wait = deadline_ms == 0;
    if (deadline_ms > 0 && deadline_ms != forever_ms) who.deadline = add_ms(core.time.now_ms(), deadline_ms);
    auto t = core.flights->enter({{space_, 0, {}, key}, true, false, false}, who);
    using kind = single_flight::ticket::kind;
    switch (t.what) {
    case kind::leads: out.lead.emplace(owner_, t.flight, 1U, home->scope(), within); return std::nullopt;
    case kind::joined:
        out.op = t.op;
        if (t.alarm) {
            const bool posted =
                core.turns.post([&core, f = t.flight, at = *t.alarm](mono_ms) { core.alarms.set(f, at); });
            if (!posted) core.flights->drop(t.flight);
        }
        return std::nullopt;
    case kind::no_wait: {
        core.totals.add(stat::timeouts);
        event e;
        e.kind = event_kind::error;
        e.code = status::timeout;
        e.tag = tag;
        e.what =
            outcome_error(fail(status::timeout, "another caller leads, and this call does not wait", std::string(key)));
        out.op = single_flight::ended_op();
        home->push(std::move(e));
        return std::nullopt;
    }
    case kind::would_deadlock:
        core.totals.add(stat::deadlocks);
        return fail(status::would_deadlock, "this call would wait for the load that makes it", std::string(key));
    case kind::closed: break;
    }
    return fail(status::closed, "the client is closed", std::string(key));
}

std::optional<error> group::forget(std::string_view key) {
    if (auto no = refuse_key(key)) return no;
    owner_->core->flights->detach(space_, key);
    return std::nullopt;
}

} // namespace stn
