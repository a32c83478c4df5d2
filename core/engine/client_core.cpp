// SPDX-License-Identifier: MIT
#include "engine/client_core.hpp"

#include <utility>

#include "protocol/fill_machine.hpp"

namespace stn {

std::shared_ptr<client_core> client_core::make(client_parts parts) {
    if (!parts.make_fill) {
        parts.make_fill = [](fill_setup s) { return std::make_unique<fill_machine>(std::move(s)); };
    }
    const bool threaded = parts.threaded;
    const bool manual = parts.manual != nullptr;
    auto core = std::make_shared<client_core>(std::move(parts));
    core->flights->owner = core;
    core->parts_.link->set_ring([raw = core.get()] { raw->turns.ring(); });
    if (manual) core->parts_.manual->watch(core->turns);
    if (threaded) core->turns.start(core, manual);
    return core;
}

client_core::client_core(client_parts parts)
    : parts_(std::move(parts)),
      settings(parts_.settings),
      time(*parts_.time),
      chance(*parts_.chance),
      make_fill(parts_.make_fill),
      flights(single_flight::make()),
      turns(parts_.time, *this),
      commands(*parts_.link, *parts_.chance, totals, *this),
      fetches(*this),
      changes(*this),
      alarms(*this) {
    close_timer_.core = this;
    fetches.down_slots.set_bound(settings.max_loads_down);
}

client_core::~client_core() {
    parts_.link->close();
    if (parts_.manual) parts_.manual->unwatch(turns);
}

void client_core::on_turn(mono_ms now) {
    server_offset.store(commands.server_time(now) - now);
    commands.poll(now);
    if (close_begun_) try_finish(now);
}

void client_core::on_connection(bool up, std::string_view why) {
    tell(notice::connection, up ? status::ok : status::unavailable,
         up ? "connected" : "the connection ended: " + std::string(why));
}

void client_core::on_breaker(bool open) {
    tell(notice::breaker, open ? status::unavailable : status::ok,
         open ? "the store fails again and again: loads go on without it" : "the store answers again");
}

void client_core::tell(notice what, status code, std::string text) {
    for (auto& t : told.tell(what, code, std::move(text))) turns.out.add(std::move(t.home), std::move(t.what));
}

// ---- answers

event client_core::answer_event(const caller& who, const outcome_ptr& how, server_ms server_now) const {
    event e;
    e.tag = who.tag;
    e.what = how;
    e.code = how->code;
    e.shared = !who.led;
    if (how->code == status::ok) {
        e.kind = event_kind::value;
    } else if (how->code == status::absent) {
        e.kind = event_kind::absent;
    } else if (how->code == status::not_mine) { // a plain get that found nothing
        e.kind = event_kind::absent;
        e.code = status::absent;
        e.why = reason::miss;
    } else {
        e.kind = event_kind::error;
    }
    if (how->created != 0 && e.kind != event_kind::error) {
        e.age_ms = server_now > how->created ? server_now - how->created : 0;
        e.load_ms = how->delta_ms;
        if (how->soft_at != never_soft) e.ttl_left_ms = how->soft_at > server_now ? how->soft_at - server_now : 0;
    }
    if (how->host_ref != 0 && how->host_scope != 0 && how->host_scope == who.home->scope()) {
        e.host_ref = how->host_ref;
    }
    return e;
}

std::uint32_t client_core::deliver(std::vector<caller> who, const outcome_ptr& how) {
    const server_ms server_now = time.now_ms() + server_offset.load();
    std::uint32_t shared = 0;
    outbox mail;
    for (caller& c : who) {
        event e = answer_event(c, how, server_now);
        if (e.host_ref != 0) ++shared;
        mail.add(std::move(c.home), std::move(e));
    }
    totals.add(stat::events, mail.size());
    mail.deliver();
    return shared;
}

void client_core::mail(std::vector<caller> who, const outcome_ptr& how, mono_ms now) {
    if (who.empty()) return;
    const server_ms server_now = now + server_offset.load();
    for (caller& c : who) {
        event e = answer_event(c, how, server_now);
        turns.out.add(std::move(c.home), std::move(e));
    }
}

void client_core::after_leave(const single_flight::left_behind& l) {
    if (!l.machine || l.left != 0) return;
    turns.post([this, id = l.flight_id](mono_ms now) {
        if (const auto run = fetches.find(id)) run->check_callers(now);
    });
}

// ---- caches and numbers

std::shared_ptr<cache_state> client_core::cache(std::string_view name, std::uint32_t max_loads) {
    const std::lock_guard lock(caches_mutex_);
    if (const auto it = caches_.find(name); it != caches_.end()) return it->second;
    auto made = std::make_shared<cache_state>();
    made->space = new_space();
    made->name = name;
    made->slots.set_bound(max_loads);
    made->overdue.set_bound(max_loads);
    caches_.emplace(made->name, made);
    return made;
}

stat_block client_core::stats() const {
    stat_block sum = totals.snapshot();
    const auto [opened, joined] = flights->group_counts();
    sum.add(stat::flights, opened);
    sum.add(stat::joins, joined);
    const std::lock_guard lock(caches_mutex_);
    for (const auto& [name, state] : caches_) sum.merge(state->stats.snapshot());
    return sum;
}

// ---- the end

void client_core::begin_close(std::int64_t deadline_ms, std::shared_ptr<event_queue> home, std::uint64_t tag) {
    closing_.store(true);
    const bool posted = turns.post([this, deadline_ms, home, tag](mono_ms now) {
        if (home) closers_.push_back({home, tag});
        const mono_ms until = add_ms(now, deadline_ms);
        if (!close_begun_ || until < close_until_) {
            close_until_ = until;
            turns.timers.set(close_timer_, until);
        }
        close_begun_ = true;
        close_when_idle_ = false;
        if (deadline_ms <= 0) finish_close(now);
    });
    if (!posted && home) {
        event e;
        e.kind = event_kind::done;
        e.tag = tag;
        home->push(std::move(e));
    }
}

void client_core::close_when_idle() {
    turns.post([this](mono_ms) { close_begun_ = close_when_idle_ = true; });
}

void client_core::try_finish(mono_ms now) {
    if (close_when_idle_ && (fetches.size() != 0 || flights->live() != 0)) return;
    if (!closed_.load() && !fetches.busy() && !changes.busy()) finish_close(now);
}

void client_core::finish_close(mono_ms now) {
    if (closed_.exchange(true)) {
        for (auto& c : std::exchange(closers_, {})) {
            event e;
            e.kind = event_kind::done;
            e.tag = c.tag;
            turns.out.add(std::move(c.home), std::move(e));
        }
        return;
    }
    turns.timers.cancel(close_timer_);
    fetches.close(now);
    changes.close(now);
    alarms.clear();
    mail(flights->close_all(), outcome_error(fail(status::closed, "the client is closed")), now);
    for (auto& c : std::exchange(closers_, {})) {
        event e;
        e.kind = event_kind::done;
        e.tag = c.tag;
        turns.out.add(std::move(c.home), std::move(e));
    }
    parts_.link->close();
    turns.stop();
}

client_handle::~client_handle() {
    core->begin_close(0, nullptr, 0);
}

} // namespace stn
