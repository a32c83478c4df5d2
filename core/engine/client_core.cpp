// SPDX-License-Identifier: MIT
#include "engine/client_core.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "protocol/fill_machine.hpp"

namespace stn {

std::shared_ptr<client_core> client_core::make(client_parts parts) {
    auto core = make_still(std::move(parts));
    core->start();
    return core;
}

std::shared_ptr<client_core> client_core::make_still(client_parts parts) {
    if (!parts.make_fill) {
        parts.make_fill = [](fill_setup s) { return std::make_unique<fill_machine>(std::move(s)); };
    }
    if (!parts.make_lock) {
        parts.make_lock = [](lock_setup s) { return std::make_unique<lock_machine>(std::move(s)); };
    }
    auto core = std::make_shared<client_core>(std::move(parts));
    core->flights->owner = core;
    return core;
}

void client_core::start() {
    parts_.link->set_ring([this] { turns.ask(); });
    if (parts_.manual) parts_.manual->watch(turns);
    if (parts_.threaded) turns.start(shared_from_this(), parts_.manual != nullptr);
}

client_core::client_core(client_parts parts)
    : parts_(std::move(parts)),
      settings(parts_.settings),
      time(*parts_.time),
      chance(*parts_.chance),
      make_fill(parts_.make_fill),
      make_lock(parts_.make_lock),
      flights(single_flight::make()),
      turns(parts_.time, *this),
      commands(*parts_.link, *parts_.chance, totals, *this),
      fetches(*this),
      changes(*this),
      locks(*this),
      asks(*this),
      alarms(*this),
      ready(turns),
      settling(parts_.link->settling()),
      client_closed(outcome_error(fail(status::closed, "the client is closed"))) {
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
    const bool unsettled = commands.settling();
    if (settling.exchange(unsettled) || unsettled) {
        fetches.settle(unsettled, now);
        changes.settle(unsettled, now);
    }
    if (look_round_.exchange(false)) {
        fetches.look_round(now);
        locks.look_round(now);
        asks.look_round(now);
        alarms.look_round();
    }
    if (close_begun_) try_finish(now);
}

void client_core::on_connection(transport_event::kind how, status code, std::string_view why, mono_ms now) {
    ready.heard(how, code, why);
    switch (how) {
    case transport_event::kind::connected:
        tell(notice::connection, status::ok, "connected");
        locks.on_connection(now);
        asks.on_connection(now);
        break;
    case transport_event::kind::disconnected:
        tell(notice::connection, code, "not connected, and trying again: " + std::string(why));
        break;
    case transport_event::kind::trouble: tell(notice::connection, code, std::string(why)); break;
    default: break; // one more attempt: told already
    }
}

void client_core::on_breaker(bool open) {
    tell(notice::breaker, open ? status::unavailable : status::ok,
         open ? "the store fails again and again: loads go on without it" : "the store answers again");
}

void client_core::on_alert(refusal why, std::string_view server_text) {
    const refusal_traits& t = traits_of(why);
    tell(notice::log, t.means, std::string(t.text) + " (" + std::string(loggable(server_text)) + ")");
}

void client_core::watch(const std::shared_ptr<event_queue>& home, std::uint32_t mask, std::uint64_t tag) {
    errand late([this, home](mono_ms) {
        for (auto& t : told.catch_up(home.get())) turns.out.add(std::move(t.home), std::move(t.what));
    });
    told.watch(home, mask, tag);
    turns.post(std::move(late));
}

void client_core::tell(notice what, status code, const std::string& text) {
    for (auto& t : told.tell(what, code, text)) turns.out.add(std::move(t.home), std::move(t.what));
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

std::uint32_t client_core::deliver(std::span<const caller> who, const outcome_ptr& how) noexcept {
    const server_ms server_now = time.now_ms() + server_offset.load();
    std::uint32_t shared = 0;
    totals.add(stat::events, who.size());
    for (auto first = who.begin(); first != who.end();) {
        const auto last = std::find_if(first, who.end(), [&](const caller& c) { return c.home != first->home; });
        first->home->push(first, last, [&](const caller& c) {
            event e = answer_event(c, how, server_now);
            if (e.host_ref != 0) ++shared;
            return e;
        });
        first = last;
    }
    return shared;
}

void client_core::mail(callers who, const outcome_ptr& how, mono_ms now) {
    if (who.empty()) return;
    const server_ms server_now = now + server_offset.load();
    turns.out.reserve(who.size());
    for (caller& c : who) {
        event e = answer_event(c, how, server_now);
        turns.out.add(std::move(c.home), std::move(e));
    }
}

void client_core::after_leave(const single_flight::left_behind& l) noexcept {
    if (!l.machine || l.left != 0) return;
    try {
        turns.post([this, id = l.flight_id](mono_ms now) {
            if (const auto run = fetches.find(id)) run->check_callers(now);
            locks.check_caller(id, now);
            asks.check_caller(id, now);
        });
    } catch (const std::bad_alloc&) {
        look_round();
    }
}

void client_core::end_alarm(std::uint64_t flight) noexcept {
    try {
        turns.post([this, flight](mono_ms) { alarms.end(flight); });
    } catch (const std::bad_alloc&) {
        look_round();
    }
}

void client_core::look_round() noexcept {
    look_round_.store(true);
    turns.ask();
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

errand client_core::word_of_close(std::int64_t deadline_ms, std::shared_ptr<event_queue> home, std::uint64_t tag) {
    return errand([this, deadline_ms, home = std::move(home), tag](mono_ms now) {
        if (home) closers_.push_back({home, tag});
        if (closed_.load()) { // it joins the end that is under way
            close_begun_ = true;
            if (ended_) end(now);
            return;
        }
        const mono_ms until = add_ms(now, deadline_ms);
        if (!close_begun_ || until < close_until_) {
            close_until_ = until;
            turns.timers.set(close_timer_, until);
        }
        close_begun_ = true;
        close_when_idle_ = false;
        if (deadline_ms <= 0) finish_close(now);
    });
}

bool client_core::begin_close(errand word) noexcept {
    closing_.store(true);
    return turns.post(std::move(word));
}

void client_core::begin_close(std::int64_t deadline_ms, const std::shared_ptr<event_queue>& home, std::uint64_t tag) {
    std::optional<promised> done; // a closed queue is told all the same
    if (home && !home->closed()) done.emplace(home.get());
    const bool posted = begin_close(word_of_close(deadline_ms, home, tag));
    if (done) done->stands();
    if (!posted && home) {
        event e;
        e.kind = event_kind::done;
        e.tag = tag;
        home->push(std::move(e));
    }
}

void client_core::turn_for(event_queue* home) noexcept {
    if (home == nullptr || turns.in_company()) {
        turns.ring();
    } else if (!home->lend({shared_from_this(), &turns})) {
        turns.help_if_idle();
    }
}

bool client_core::post_for(event_queue* home, errand task) noexcept {
    if (!turns.post_for_help(std::move(task))) return false;
    turn_for(home);
    return true;
}

void client_core::close_when_idle() {
    turns.post([this](mono_ms) { close_begun_ = close_when_idle_ = true; });
}

void client_core::try_finish(mono_ms now) {
    if (closed_.load()) {
        if (!ended_ && !locks.busy() && !asks.busy()) end(now);
        return;
    }
    if (close_when_idle_ && (fetches.size() != 0 || flights->live() != 0)) return;
    if (fetches.busy() || changes.busy()) return;
    finish_close(now);
    commands.poll(now); // the embedded store has answered already
    if (!ended_ && !locks.busy() && !asks.busy()) end(now);
}

void client_core::finish_close(mono_ms now) {
    if (closed_.exchange(true)) {
        if (ended_ || now >= close_until_) end(now);
        return;
    }
    fetches.close(now);
    changes.close(now);
    asks.close(now);
    locks.close(now);
    alarms.clear();
    ready.close(client_closed);
    mail(flights->close_all(), client_closed, now);
    if (locks.busy() || asks.busy()) { // what is held goes back: the store has a moment to say so
        close_until_ = now + settings.command_timeout_ms;
        turns.timers.set(close_timer_, close_until_);
    } else {
        end(now);
    }
}

// Whoever closes is told.
void client_core::end(mono_ms) {
    turns.timers.cancel(close_timer_);
    locks.end();
    asks.end();
    for (auto& c : std::exchange(closers_, {})) {
        event e;
        e.kind = event_kind::done;
        e.tag = c.tag;
        turns.out.add(std::move(c.home), std::move(e));
    }
    if (std::exchange(ended_, true)) return;
    parts_.link->close();
    turns.stop();
}

std::shared_ptr<client_handle> client_handle::open(client_parts parts) {
    auto handle = std::make_shared<client_handle>(client_core::make_still(std::move(parts)));
    handle->core->start();
    return handle;
}

} // namespace stn
