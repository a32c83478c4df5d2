// SPDX-License-Identifier: MIT
#include "engine/group.hpp"

#include <new>
#include <span>
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

// Never destroyed: threads may outlive main.
const outcome_ptr& no_successor() {
    static const auto* const why = new outcome_ptr(
        outcome_error(fail(status::no_memory, "the flight was given up, and there was no memory to hand it on")));
    return *why;
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
void flight_lead::over(bool alarm) noexcept {
    wait_graph::of_process().drop(within_, flight_.id);
    if (alarm) owner_->core->end_alarm(flight_.id);
}

outcome_ptr flight_lead::owned(outcome how) const {
    const auto one = blocks::make_shared<outcome>(std::move(how));
    one->from = source::flight;
    one->host_scope = scope_;
    one->payload = one->storage;
    return one;
}

flight_lead::ending flight_lead::end(const outcome_ptr& how, std::uint32_t& shared) {
    shared = 0;
    if (finished_.load()) return ending::already;
    bool wanted = false;
    const auto first = [&](std::uint32_t waiting) {
        wanted = waiting != 0 && !how;
        return !wanted && !finished_.exchange(true);
    };
    client_core& core = *owner_->core;
    single_flight::finished done;
    if (!core.flights->finish_load(flight_, number_, first, done)) {
        return wanted ? ending::wanted : ending::already;
    }
    held_ = false;
    if (how) shared = core.deliver(done.who, how);
    over(done.alarm);
    return ending::over;
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

void flight_lead::hand_on() noexcept {
    client_core& core = *owner_->core;
    if (!core.flights->end_load(flight_, number_)) return;
    wait_graph::of_process().drop(within_, flight_.id);
    auto to = core.flights->promote(flight_, number_ + 1, nullptr);
    if (!to) {
        over(core.flights->alarm_set(flight_));
        return;
    }
    event e;
    e.kind = event_kind::flight;
    e.tag = to->tag;
    try {
        e.lead = blocks::make_shared<flight_lead>(owner_, flight_, number_ + 1, to->home->scope(), to->within);
    } catch (const std::bad_alloc&) {
        for (; to; to = core.flights->promote(flight_, number_ + 1, nullptr)) {
            wait_graph::of_process().drop(to->within, flight_.id);
            core.deliver(std::span(&*to, 1), no_successor());
        }
        core.flights->end_load(flight_, number_ + 1);
        over(core.flights->alarm_set(flight_));
        return;
    }
    core.flights->hold(flight_);
    core.totals.add(stat::promotions);
    to->home->push(std::move(e));
}

std::uint64_t flight_lead::open_scope() {
    owner_->core->flights->open_scope(flight_);
    return flight_.id;
}

group::group(std::shared_ptr<client_handle> owner) : owner_(std::move(owner)), space_(owner_->core->new_space()) {
    static_cast<void>(no_successor()); // from now on it is there
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
    bool posted = true;
    const auto first = [&](const single_flight::ticket& t) {
        if (t.what == single_flight::ticket::kind::leads) return;
        posted = core.turns.post_for_help([&core, f = t.flight, at = *t.alarm](mono_ms) { core.alarms.set(f, at); });
    };
    const auto t = core.flights->enter({{space_, 0, {}, key}, true, false, false}, who, first);
    using kind = single_flight::ticket::kind;
    switch (t.what) {
    case kind::leads: out.lead.emplace(owner_, t.flight, 1U, home->scope(), within); return std::nullopt;
    case kind::joined:
        out.op = t.op;
        if (t.alarm && !posted) core.flights->drop(t.flight);
        if (t.alarm) core.turns.ring();
        return std::nullopt;
    case kind::no_wait: {
        event e;
        e.kind = event_kind::error;
        e.code = status::timeout;
        e.tag = tag;
        e.what =
            outcome_error(fail(status::timeout, "another caller leads, and this call does not wait", std::string(key)));
        home->promise();
        core.totals.add(stat::timeouts);
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
