// SPDX-License-Identifier: MIT
#include "engine/fills.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/client_core.hpp"
#include "engine/wait_graph.hpp"
#include "protocol/schedule.hpp"

namespace stn {

namespace {
constexpr std::size_t most_spares = 32; // of one key: every lease names them
}

void fill_run::wake_timer::due(mono_ms now) {
    run->feed(fill_input::kind::timer, now);
}
void fill_run::alarm_timer::due(mono_ms now) {
    run->sweep(now);
}

fill_run::fill_run(client_core& core, start s)
    : core_(core),
      flight_(s.flight),
      cache_(std::move(s.cache)),
      policy_(s.setup.policy),
      names_(s.setup.names),
      mode_(s.setup.mode),
      refreshed_(s.setup.generation),
      refresher_(std::move(s.refresher)) {
    machine_ = core_.make_fill(std::move(s.setup));
    wake_.run = this;
    alarm_.run = this;
    if (s.alarm) core_.turns.timers.set(alarm_, *s.alarm);
}

fill_run::~fill_run() = default;

void fill_run::begin(mono_ms now) {
    if (std::exchange(begun_, true)) return;
    feed(fill_input::kind::start, now);
}

void fill_run::feed(fill_input in, mono_ms now) {
    if (done_) return;
    if (!begun_) { // what it may hear now, its first look will tell
        if (in.what == fill_input::kind::nobody || in.what == fill_input::kind::closing) finish(now);
        return;
    }
    const auto self = shared_from_this(); // the last output may let go of it
    machine_->handle(std::move(in), now, core_.commands.server_time(now), core_.chance);
    pump(now);
}

void fill_run::feed(fill_input::kind what, mono_ms now) {
    fill_input in;
    in.what = what;
    feed(std::move(in), now);
}

void fill_run::replied(std::uint32_t id, delivery how, reply r, mono_ms now) {
    fill_input in;
    in.what = fill_input::kind::reply;
    in.id = id;
    in.how = how;
    in.answer = std::move(r);
    feed(std::move(in), now);
}

// One pump at a time: what an output leads to comes after it, not inside it.
void fill_run::pump(mono_ms now) {
    if (pumping_) return;
    pumping_ = true;
    fill_output out;
    while (!done_ && machine_->poll(out)) perform(out, now);
    pumping_ = false;
    if (!done_) core_.turns.timers.set(wake_, machine_->wake_at());
}

void fill_run::perform(fill_output& out, mono_ms now) {
    using k = fill_output::kind;
    switch (out.what) {
    case k::send:
        if (out.cmd.what == verb::script &&
            (out.cmd.script == script_id::lease || out.cmd.script == script_id::refresh)) {
            core_.commands.listen(core_.settings.prefix, now);
        }
        if (out.cmd.what == verb::get) cache_->stats.add(stat::gets);
        if (out.cmd.what == verb::script && (out.cmd.script == script_id::fill || out.cmd.script == script_id::put)) {
            filling_ = true;
        }
        core_.commands.send(std::move(out.cmd), shared_from_this(), out.id, out.gated, now);
        break;
    case k::answer: answer(out.result, now); break;
    case k::offer: offer(out.leased, out.which, now); break;
    case k::check: check_offer(out.leased, now); break;
    case k::need_slot: need_slot(out.store_down, now); break;
    case k::drop_slot: drop_slot(now); break;
    case k::overdue_slot: overdue_slot(now); break;
    case k::waiting: wait_for(out.which, now); break;
    case k::unlist:
        cache_->stats.add(stat::detached);
        core_.flights->unlist(flight_);
        break;
    case k::revoke:
        revoke(out.why == status::timeout              ? reason::max_load
               : core_.flights->look(flight_).detached ? reason::invalidated
                                                       : reason::lost);
        break;
    case k::hold: fallback_ = out.result; break;
    case k::ask_refresh:
        if (auto asker = std::exchange(asks_refresh_, {})) {
            core_.fetches.start_refresh(cache_, policy_, names_, out.which, std::move(*asker), now);
        }
        break;
    case k::asked: cache_->asked[out.which] = add_ms(now, out.span_ms); break;
    case k::spare: spare(out.which, out.span_ms, now); break;
    case k::filled: filled(out.why, now, out.result); break;
    case k::reject_twice:
        if (!std::exchange(cache_->version_told, true)) {
            core_.tell(notice::version, status::undecodable,
                       "cache \"" + cache_->name + "\" holds values of two formats: raise its version");
        }
        break;
    case k::note:
        if (out.counter == stat::commands_lost) {
            core_.commands.silent(now); // counts it, and tells the breaker
            break;
        }
        cache_->stats.add(out.counter);
        if (out.counter == stat::soft_margin_small && !std::exchange(cache_->margin_told, true)) {
            core_.tell(notice::margin, status::ok,
                       "cache \"" + cache_->name + "\": ttl - soft_ttl is less than twice the load time");
        }
        break;
    case k::done: finish(now); break;
    }
}

// ---- callers

bool fill_run::fallback_good(mono_ms now) const {
    // The store does not tell the hard expiry; this is the earliest it can be.
    return fallback_ && core_.commands.server_time(now) < fallback_->created + policy_->ttl_ms;
}

void fill_run::answer(const outcome_ptr& how, mono_ms now) {
    const bool failed = how->code == status::load_failed || how->code == status::timeout ||
                        how->code == status::unavailable || how->code == status::refused;
    if (failed && fallback_good(now)) {
        core_.mail(core_.flights->take_all(flight_), fallback_, now);
        return;
    }
    if (mode_ == fill_mode::force && how->from == source::store) {
        // A load that began before a caller came is no answer to him: he joined while this flight was waiting.
        const mono_ms began =
            how->created - static_cast<std::int64_t>(how->delta_ms) - (core_.commands.server_time(now) - now);
        core_.mail(core_.flights->take_if(flight_, [=](const caller& c) { return c.came <= began; }), how, now);
        return;
    }
    auto who = core_.flights->take_all(flight_);
    for (const caller& c : who) {
        if (!asks_refresh_ && c.refresh) asks_refresh_ = c;
    }
    core_.mail(std::move(who), how, now);
}

void fill_run::tell_all(callers who, error why) {
    if (who.empty()) return;
    const stat s = why.code == status::timeout          ? stat::timeouts
                   : why.code == status::overloaded     ? stat::overloaded
                   : why.code == status::would_deadlock ? stat::deadlocks
                                                        : stat::count_;
    if (s != stat::count_) cache_->stats.add(s, who.size());
    why.key = names_->key;
    core_.mail(std::move(who), outcome_error(std::move(why)), 0);
}

void fill_run::sweep(mono_ms now) {
    mono_ms next = forever_ms;
    auto late = core_.flights->sweep(flight_, now, next);
    if (fallback_good(now)) {
        core_.mail(std::move(late), fallback_, now);
    } else if (line_ != pool::none) {
        tell_all(std::move(late), fail(status::overloaded, "no place among the running loads came free in time"));
    } else {
        tell_all(std::move(late), fail(status::timeout, "the deadline passed before the value came"));
    }
    core_.turns.timers.set(alarm_, next);
    check_callers(now);
}

void fill_run::set_alarm(mono_ms at) {
    if (!done_) core_.turns.timers.set(alarm_, at);
}

void fill_run::check_callers(mono_ms now) {
    if (done_ || mode_ == fill_mode::refresh) return;
    if (load_open_) {
        if (core_.flights->unwanted(flight_)) revoke(reason::unwanted);
    } else if (core_.flights->unlist_if_empty(flight_)) {
        feed(fill_input::kind::nobody, now);
    }
}

void fill_run::wait_for(const token& which, mono_ms now) {
    tell_all(core_.flights->set_busy(flight_),
             fail(status::timeout, "another load is running, and this call does not wait"));
    wait_graph& graph = wait_graph::of_process();
    const auto own = graph.holder(which);
    if (own && *own != flight_.id) {
        if (graph.add(flight_.id, *own)) {
            edges_.push_back(*own);
        } else {
            tell_all(core_.flights->take_if(flight_, [](const caller& c) { return c.within != 0; }),
                     fail(status::would_deadlock, "this call would wait for the load that makes it"));
        }
    }
    check_callers(now);
}

// ---- the load

void fill_run::hand_lease(caller to) {
    event e;
    e.kind = mode_ == fill_mode::refresh ? event_kind::refresh : event_kind::lease;
    e.tag = to.tag;
    const auto usual = cache_->average_load_ms.load();
    if (usual > 0) e.load_ms = usual;
    auto held = blocks::make_shared<lease>(core_.shared_from_this(), shared_from_this(), flight_, lease_no_, to,
                                           leased_, fallback_);
    current_ = held;
    e.held = std::move(held);
    load_open_ = true;
    core_.turns.out.add(to.home, std::move(e));
    holder_ = std::move(to);
}

void fill_run::offer(bool leased, const token& which, mono_ms now) {
    leased_ = leased;
    end_load();
    ++lease_no_;
    if (leased) {
        lease_token_ = which;
        core_.fetches.own_tokens[which] = flight_.id;
        wait_graph::of_process().hold(which, flight_.id);
    }
    if (mode_ == fill_mode::refresh) {
        core_.flights->begin_load(flight_, lease_no_, refresher_.home->scope());
        hand_lease(refresher_);
        return;
    }
    if (mode_ == fill_mode::force) core_.flights->unlist(flight_);
    auto to = core_.flights->promote(flight_, lease_no_, nullptr);
    if (!to) {
        feed(fill_input::kind::nobody, now);
        return;
    }
    if (lease_no_ > 1) cache_->stats.add(stat::promotions);
    hand_lease(std::move(*to));
    tell_all(core_.flights->set_busy(flight_),
             fail(status::timeout, "another load is running, and this call does not wait"));
}

void fill_run::end_load() {
    load_open_ = false;
    if (lease_token_.none()) return;
    wait_graph::of_process().release(lease_token_);
    core_.fetches.own_tokens.erase(std::exchange(lease_token_, token{}));
}

void fill_run::check_offer(bool leased, mono_ms now) {
    const auto held = current_.lock();
    if (!held) return; // given up: `freed` is on its way
    if (!holder_.home->withdraw(held.get())) {
        fill_input in;
        in.what = fill_input::kind::read;
        in.at = held->read_at() >= 0 ? held->read_at() : now;
        feed(std::move(in), now);
        return;
    }
    cache_->stats.add(stat::withdrawals);
    load_open_ = false;
    core_.turns.out.bury(held);
    if (mode_ == fill_mode::refresh) {
        feed(fill_input::kind::no_taker, now);
        return;
    }
    const event_queue* const slow = holder_.home.get();
    const mono_ms deadline = holder_.deadline;
    const auto keep_home = holder_.home;
    core_.flights->come_back(flight_, std::move(holder_));
    if (deadline != forever_ms) sweep(now);
    if (!leased) {
        end_load();
        feed(fill_input::kind::freed, now);
        return;
    }
    ++lease_no_;
    auto to = core_.flights->promote(flight_, lease_no_, slow);
    if (!to) {
        end_load();
        feed(fill_input::kind::no_taker, now);
        return;
    }
    cache_->stats.add(stat::promotions);
    hand_lease(std::move(*to));
    tell_all(core_.flights->set_busy(flight_),
             fail(status::timeout, "another load is running, and this call does not wait"));
    feed(fill_input::kind::offered, now);
}

void fill_run::freed(std::uint64_t lease_no, mono_ms now) {
    if (lease_no != lease_no_) return;
    load_open_ = false;
    feed(fill_input::kind::freed, now); // an overdue load too: it holds a slot
}

void fill_run::loaded(outcome_ptr how, lease::filled_to told, mono_ms now) {
    if (done_) {
        if (told.home) {
            filled_to_ = std::move(told);
            filled(status::lost, now);
        }
        return;
    }
    end_load();
    filled_to_ = std::move(told);
    if (how->code == status::ok || how->code == status::absent) {
        cache_->average_load_ms.store(schedule::average(cache_->average_load_ms.load(), how->delta_ms));
    }
    if (core_.flights->look(flight_).detached) feed(fill_input::kind::detached, now);
    fill_input in;
    in.what = fill_input::kind::loaded;
    in.load = std::move(how);
    feed(std::move(in), now);
}

void fill_run::revoke(reason why) {
    const auto held = current_.lock();
    if (!held || held->at() != lease::state::live) return;
    held->revoke(why);
    event e;
    e.kind = event_kind::revoked;
    e.tag = held->tag();
    e.about = held;
    e.why = why;
    core_.turns.out.add(held->home(), std::move(e));
    core_.turns.out.bury(held);
}

void fill_run::filled(status how, mono_ms, const outcome_ptr& said) {
    if (mode_ == fill_mode::refresh && how != status::ok) cache_->stats.add(stat::refreshes_lost);
    if (!filled_to_.home) return;
    event e;
    e.kind = how == status::closed ? event_kind::error : event_kind::filled;
    e.tag = filled_to_.tag;
    e.code = how;
    if (how != status::ok) {
        error why = fail(how, std::string(status_text(how)), names_->key);
        if (said) {
            why.message = said->why.message;
            why.server_text = said->why.server_text;
        }
        e.what = outcome_error(std::move(why));
    }
    core_.turns.out.add(std::exchange(filled_to_.home, nullptr), std::move(e));
}

// ---- places among the running loads

void fill_run::need_slot(bool store_down, mono_ms now) {
    if (slot_ != pool::none) {
        feed(fill_input::kind::slot, now);
        return;
    }
    pool from = pool::unbounded;
    bool taken = true;
    if (!core_.flights->look(flight_).exempt) {
        if (store_down) {
            from = pool::down;
            taken = core_.fetches.down_slots.take(flight_.id);
        } else if (mode_ == fill_mode::refresh) {
            from = pool::cache;
            if (!cache_->slots.try_take()) { // a refresh does not stand in line
                cache_->asked.erase(refreshed_);
                feed(fill_input::kind::nobody, now);
                return;
            }
        } else {
            from = pool::cache;
            taken = cache_->slots.take(flight_.id);
        }
    }
    if (taken) {
        slot_ = from;
        feed(fill_input::kind::slot, now);
        return;
    }
    line_ = from;
    core_.flights->set_in_line(flight_, true);
    tell_all(core_.flights->take_if(flight_, [](const caller& c) { return c.no_wait; }),
             fail(status::overloaded, "no place among the running loads is free"));
    check_callers(now);
}

// It is ours from now on, though the machine hears of it only when the turn comes to it: should the
// run end before that, the place goes back like any other.
void fill_run::slot_granted() {
    slot_ = std::exchange(line_, pool::none);
    core_.flights->set_in_line(flight_, false);
    core_.turns.post_for_help([run = shared_from_this()](mono_ms at) {
        if (run->slot_ != pool::none) run->feed(fill_input::kind::slot, at);
    });
}

void fill_run::drop_slot(mono_ms now) {
    if (line_ != pool::none) {
        (line_ == pool::down ? core_.fetches.down_slots : cache_->slots).leave_line(flight_.id);
        line_ = pool::none;
        core_.flights->set_in_line(flight_, false);
    }
    switch (std::exchange(slot_, pool::none)) {
    case pool::none:
    case pool::unbounded: break;
    case pool::cache: core_.fetches.give_back(cache_->slots, now); break;
    case pool::down: core_.fetches.give_back(core_.fetches.down_slots, now); break;
    case pool::overdue: core_.fetches.give_back(cache_->overdue, now); break;
    }
}

void fill_run::overdue_slot(mono_ms now) {
    end_load();
    if (slot_ != pool::cache || !cache_->overdue.try_take()) return;
    drop_slot(now);
    slot_ = pool::overdue;
}

void fill_run::spare(const token& which, std::int64_t for_ms, mono_ms now) {
    core_.fetches.add_spare(names_->store_key, which, add_ms(now, for_ms), now);
}

// ---- the end

void fill_run::close(mono_ms now) {
    if (load_open_) revoke(reason::closed);
    end_load();
    feed(fill_input::kind::closing, now);
    if (!done_) finish(now);
}

void fill_run::finish(mono_ms now) {
    done_ = true;
    const bool again = mode_ == fill_mode::force && !core_.closed() && !core_.flights->unlist_if_empty(flight_);
    if (!again) {
        if (auto left = core_.flights->take_all(flight_); !left.empty()) {
            core_.mail(std::move(left),
                       outcome_error(fail(core_.closed() ? status::closed : status::internal,
                                          "the flight ended without an answer", names_->key)),
                       now);
        }
    }
    if (filled_to_.home) filled(core_.closed() ? status::closed : status::lost, now);
    drop_slot(now);
    end_load();
    core_.turns.timers.cancel(wake_);
    core_.turns.timers.cancel(alarm_);
    for (const std::uint64_t to : edges_) wait_graph::of_process().drop(flight_.id, to);
    if (mode_ == fill_mode::refresh) {
        const auto it = cache_->asked.find(refreshed_);
        if (it != cache_->asked.end() && it->second == forever_ms) it->second = add_ms(now, 10'000);
    }
    core_.fetches.forget(*this);
    if (again) {
        start_again(now);
    } else {
        core_.flights->drop(flight_);
    }
}

// Those who came too late for what this flight found go on, with a machine of their own.
void fill_run::start_again(mono_ms now) {
    start s;
    s.flight = flight_;
    s.cache = cache_;
    s.alarm = now; // whose deadline is next is found out there
    s.setup.mode = mode_;
    s.setup.policy = policy_;
    s.setup.names = names_;
    core_.fetches.begin(std::move(s), now);
}

// ---- all of them

void fills::begin(fill_run::start s, mono_ms now) {
    s.setup.inherited = spares(s.setup.names->store_key, now);
    s.setup.command_timeout_ms = core_.settings.command_timeout_ms;
    s.setup.expected_load_ms = s.cache->average_load_ms.load();
    const std::uint64_t id = s.flight.id;
    auto run = blocks::make_shared<fill_run>(core_, std::move(s));
    runs_.emplace(id, run);
    by_key_.emplace(run->store_key(), id);
    if (core_.commands.settling()) {
        held_.push_back(run);
    } else {
        run->begin(now);
    }
}

void fills::settle(bool unsettled, mono_ms now) {
    if (unsettled) return;
    for (const auto& one : std::exchange(held_, {})) {
        if (const auto run = one.lock()) run->begin(now);
    }
}

void fills::start_refresh(const std::shared_ptr<cache_state>& cache, std::shared_ptr<const fill_policy> policy,
                          std::shared_ptr<const key_names> names, const token& generation, caller who, mono_ms now) {
    if (core_.closing()) return;
    auto& asked = cache->asked;
    if (asked.size() > 1'024) std::erase_if(asked, [&](const auto& a) { return a.second <= now; });
    const auto before = asked.find(generation);
    if (before != asked.end() && now < before->second) return;
    asked[generation] = forever_ms; // until its own question is answered
    who.within = 0;
    const single_flight::entry how{
        {cache->space, static_cast<std::uint8_t>(fill_mode::refresh), generation, names->key}, false, false, true};
    auto ticket = core_.flights->enter(how, {who.home, who.tag});
    if (ticket.what != single_flight::ticket::kind::leads) return;
    fill_run::start s;
    s.flight = ticket.flight;
    s.cache = cache;
    s.setup.mode = fill_mode::refresh;
    s.setup.policy = std::move(policy);
    s.setup.names = std::move(names);
    s.setup.generation = generation;
    s.refresher = std::move(who);
    begin(std::move(s), now);
}

std::shared_ptr<fill_run> fills::find(std::uint64_t flight) const {
    const auto it = runs_.find(flight);
    return it == runs_.end() ? nullptr : it->second;
}

template <class Do> void fills::each_of(const std::string& store_key, Do&& act) {
    const auto [first, last] = by_key_.equal_range(store_key);
    std::vector<std::shared_ptr<fill_run>> found;
    found.reserve(static_cast<std::size_t>(std::distance(first, last)));
    for (auto it = first; it != last; ++it) found.push_back(runs_.at(it->second));
    std::ranges::sort(found, {}, &fill_run::id);
    for (const auto& run : found) act(*run);
}

void fills::on_message(std::string_view payload, mono_ms now) {
    const auto news = decode_wake(payload);
    if (!news) return;
    each_of(std::string(news->key), [&](fill_run& run) {
        fill_input in;
        in.what = fill_input::kind::message;
        in.news = *news;
        run.feed(std::move(in), now);
    });
}

std::vector<std::shared_ptr<fill_run>> fills::all() const {
    std::vector<std::shared_ptr<fill_run>> all;
    all.reserve(runs_.size());
    for (const auto& [id, run] : runs_) all.push_back(run);
    std::ranges::sort(all, {}, &fill_run::id);
    return all;
}

void fills::on_subscribed(mono_ms now) {
    for (const auto& run : all()) run->feed(fill_input::kind::resubscribed, now);
}

void fills::detached(std::uint32_t, std::string_view store_key, mono_ms now) {
    each_of(std::string(store_key), [&](fill_run& run) { run.feed(fill_input::kind::detached, now); });
}

void fills::look_round(mono_ms now) {
    for (const auto& run : all()) run->check_callers(now);
}

void fills::close(mono_ms now) {
    for (const auto& run : all()) run->close(now);
}

bool fills::busy() const {
    return std::ranges::any_of(runs_, [](const auto& r) { return r.second->loading() || r.second->settling(); });
}

void fills::forget(fill_run& run) {
    const auto [first, last] = by_key_.equal_range(run.store_key());
    for (auto it = first; it != last; ++it) {
        if (it->second != run.id()) continue;
        by_key_.erase(it);
        break;
    }
    const auto it = runs_.find(run.id());
    if (it == runs_.end()) return;
    core_.turns.out.bury(std::move(it->second));
    runs_.erase(it);
}

void fills::add_spare(const std::string& store_key, const token& which, mono_ms until, mono_ms now) {
    if (spares_.size() > 4'096) {
        std::erase_if(spares_, [&](const auto& s) {
            return std::ranges::all_of(s.second, [&](const spare_token& t) { return t.until <= now; });
        });
    }
    auto& list = spares_[store_key];
    std::erase_if(list, [&](const spare_token& t) { return t.until <= now || t.which == which; });
    if (list.size() >= most_spares) list.erase(list.begin()); // it will be waited for like another's
    list.push_back({which, until});
    each_of(store_key, [&](fill_run& run) {
        fill_input in;
        in.what = fill_input::kind::takeover;
        in.which = which;
        run.feed(std::move(in), now);
    });
}

std::vector<token> fills::spares(const std::string& store_key, mono_ms now) {
    std::vector<token> out;
    const auto it = spares_.find(store_key);
    if (it == spares_.end()) return out;
    std::erase_if(it->second, [&](const spare_token& t) { return t.until <= now; });
    for (const spare_token& t : it->second) out.push_back(t.which);
    if (out.empty()) spares_.erase(it);
    return out;
}

void fills::give_back(load_slots<std::uint64_t>& slots, mono_ms) {
    std::uint64_t next = 0;
    if (!slots.give_back(next)) return;
    if (const auto run = find(next)) run->slot_granted();
}

} // namespace stn
