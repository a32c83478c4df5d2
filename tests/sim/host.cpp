// SPDX-License-Identifier: MIT
#include "host.hpp"

#include <algorithm>
#include <utility>

#include "node.hpp"

namespace stn::sim {

namespace {

std::string_view kind_name(event_kind k) {
    switch (k) {
    case event_kind::value: return "VALUE";
    case event_kind::absent: return "ABSENT";
    case event_kind::lease: return "LEASE";
    case event_kind::refresh: return "REFRESH";
    case event_kind::done: return "DONE";
    case event_kind::filled: return "FILLED";
    case event_kind::revoked: return "REVOKED";
    case event_kind::notice: return "NOTICE";
    case event_kind::error: return "ERROR";
    default: return "?";
    }
}

} // namespace

host::host(world_parts& w, node& at, std::uint64_t scope, std::uint64_t seed)
    : w_(w),
      node_(at),
      dice_(seed),
      queue_(std::make_shared<event_queue>(scope)) {
    queue_->set_doorbell(&host::rung, this, nullptr);
}

host::~host() = default;

void host::rung(void* self) {
    auto* h = static_cast<host*>(self);
    if (!h->dead_) h->w_.when.at(h->w_.when.now() + h->dice_.between(1, 150), *h, read);
}

bool host::loads_key(int key) const {
    return std::ranges::any_of(running_, [&](const running& r) { return w_.history.load(r.load)->key == key; });
}

int host::loads_of(const client* which) const {
    const mono_ms now = node_.time().now_ms();
    return static_cast<int>(std::ranges::count_if(
        running_, [&](const running& r) { return r.of == which && !r.overdue && now < r.overdue_at; }));
}

void host::be_prompt() {
    busy_until_ = std::min(busy_until_, w_.when.now());
    w_.when.at(w_.when.now(), *this, read);
}

void host::act(std::uint32_t what, std::uint64_t with) {
    if (dead_) return;
    const micros now = w_.when.now();
    const micros free_at = std::max(node_.paused_until(), busy_until_);
    if (now < free_at) {
        w_.when.at(free_at + dice_.between(1, 150), *this, what, with);
        return;
    }
    switch (what) {
    case read: read_queue(); break;
    case load_reads: read_source(with); break;
    case load_ends: end_load(with); break;
    case load_detaches: detach_load(with); break;
    default: break;
    }
    node_.ring_all();
}

void host::read_queue() {
    if (!w_.draining && dice_.one_in(w_.opt.slow_host_one_in)) {
        w_.hit(fault::slow_host);
        busy_until_ = w_.when.now() + dice_.between(1'050, 3'000) * ms;
        w_.told.line("host", node_.name(), " is busy for ", (busy_until_ - w_.when.now()) / ms, " ms");
        w_.when.at(busy_until_, *this, read);
        return;
    }
    std::vector<event> got;
    const auto cap = static_cast<std::size_t>(dice_.between(1, 8));
    static_cast<void>(queue_->drain(0, cap, got));
    if (got.size() == cap) w_.when.at(w_.when.now() + dice_.between(1, 50), *this, read);
    for (event& e : got) take(e);
}

void host::take(event& e) {
    w_.told.note(static_cast<std::uint64_t>(e.kind) * 1'000'003 + e.tag);
    w_.told.line("host", node_.name(), " op ", e.tag, " ", kind_name(e.kind), " ", status_name(e.code),
                 e.what && e.what->stale ? " stale" : "",
                 e.kind == event_kind::revoked ? " reason " + std::to_string(static_cast<int>(e.why)) : "");
    if (e.held) ++w_.history.op(e.tag)->leases;
    switch (e.kind) {
    case event_kind::refresh:
        if (++w_.history.op(e.tag)->refreshes > 1) {
            w_.judged.broken(checker::answered_exactly_once, "op ", e.tag, " got a second REFRESH");
        }
        begin_load(e);
        return;
    case event_kind::notice: return;
    case event_kind::revoked: {
        if (++w_.history.op(e.tag)->revocations > 1) {
            w_.judged.broken(checker::answered_exactly_once, "op ", e.tag, " got a second REVOKED");
        }
        if (w_.history.op(e.tag)->leases == 0) {
            w_.judged.broken(checker::answered_exactly_once, "op ", e.tag, " got a REVOKED, and never a LEASE");
        }
        const auto r = std::ranges::find_if(
            running_, [&](const running& one) { return one.tag == e.tag && one.held->at() == lease::state::revoked; });
        if (r == running_.end()) return;
        r->overdue = r->overdue || e.why == reason::max_load;
        if (dice_.one_in(2)) return;
        w_.told.line("host", node_.name(), " gives load ", r->load, " up");
        forget(r->load);
        return;
    }
    default: answered(e.tag, e); break;
    }
    if (e.kind == event_kind::lease) begin_load(e);
    const op_entry* o = w_.history.op(e.tag);
    if (e.kind != event_kind::value || w_.draining || w_.opt.reject_one_in == 0) return;
    if ((o->kind == op_kind::fetch && dice_.one_in(w_.opt.reject_one_in)) ||
        (o->kind == op_kind::refetch && dice_.one_in(w_.opt.reject_again_one_in))) {
        w_.hit(fault::rejected);
        node_.refetch(e, *o, *this);
    }
}

// ---- what callers are told

void host::answered(std::uint64_t tag, const event& e) {
    op_entry* o = w_.history.op(tag);
    if (o == nullptr) {
        w_.judged.broken(checker::answered_exactly_once, "an event for no call: tag ", tag);
        return;
    }
    if (++o->answers > 1) {
        w_.judged.broken(checker::answered_exactly_once, op_name(o->kind), " op ", tag, " was answered ", o->answers,
                         " times");
    }
    o->ended = w_.when.now();
    check_deadline(*o);
    if (e.kind == event_kind::value || (e.kind == event_kind::absent && e.why != reason::miss)) check_value(*o, e);
    if (o->kind == op_kind::fill) {
        const load_entry* load = w_.history.load(o->load);
        const bool ok = e.kind == event_kind::filled && e.code == status::ok;
        const bool nothing_sent = e.kind == event_kind::filled && e.code == status::lost;
        if ((ok && !load->stored) || (nothing_sent && load->stored)) {
            w_.judged.broken(checker::fill_told_truly, "load ", load->id, " was ", load->stored ? "" : "not ",
                             "stored, told ", status_name(e.code));
        }
    }
    node_.answered(tag, e, queue_);
}

void host::check_deadline(const op_entry& o) {
    if (o.deadline == forever_ms) return;
    // Some limits begin only when the loop hears of the call.
    micros grace = 0;
    if (o.kind == op_kind::put || o.kind == op_kind::invalidate || o.kind == op_kind::mark_stale) {
        grace = w_.opt.settings.command_timeout_ms * ms;
    }
    if (o.kind == op_kind::close || o.no_wait) grace = (o.deadline - node_.time().at(o.began)) * ms;
    const micros hindered = std::max(node_.stalled_until(), busy_until_);
    const micros due = std::max(node_.time().when(o.deadline), hindered + grace);
    const micros late = w_.when.now() - due;
    if (late > 60 * ms) {
        w_.judged.broken(checker::deadline_kept, op_name(o.kind), " of ", node_.name(), " was answered ", late / ms,
                         " ms after its deadline");
    }
}

void host::check_value(const op_entry& o, const event& e) {
    const auto s = read_stamp(e.what->payload);
    const load_entry* load = s ? w_.history.load(s->load) : nullptr;
    if (load == nullptr || load->key != o.key || s->key != o.key || load->version != s->version ||
        load->size != e.what->payload.size()) {
        w_.judged.broken(checker::right_value, node_.name(), " was given something for key ", o.key,
                         " that nobody loaded for it");
        return;
    }
    w_.told.line("host", node_.name(), "   version ", s->version, " load ", s->load);
    w_.told.note(s->load);
    if (o.forced && !e.what->stale && !load->put) check_forced(o, *load);
    if (w_.opt.calm && o.kind == op_kind::fetch && !o.forced && !o.no_store) check_woken(o, *load);
    if (load->put || load->no_fleet) return;
    if (load->began < o.floor_put && !e.what->stale) {
        w_.judged.broken(checker::read_your_put, node_.name(), " was given load ", s->load, " of key ", o.key,
                         ", begun ", (o.floor_put - load->began) / ms, " ms before its own put was acknowledged");
    }
    if (s->version < o.floor) {
        w_.judged.broken(checker::read_your_invalidation, node_.name(), " was given version ", s->version, " of key ",
                         o.key, " after its own invalidation of ", o.floor, " was acknowledged");
    } else if (s->version < o.floor_stale && !e.what->stale) {
        w_.judged.broken(checker::read_your_invalidation, node_.name(), " was given version ", s->version, " of key ",
                         o.key, " unmarked after its own marking of ", o.floor_stale, " was acknowledged");
    }
}

// One who waited for a load of another process and for nothing else.
void host::check_woken(const op_entry& o, const load_entry& load) {
    if (load.stored_at < second / 2) return; // not all are connected
    if (load.node == o.node || load.stored_at <= o.began || node_.load_ended(load.key) > o.began) return;
    const micros late = w_.when.now() - std::max(load.stored_at, node_.hindered_until());
    if (late <= 2 * w_.opt.delay_high + 20 * ms) return;
    w_.judged.broken(checker::woken_soon, node_.name(), " was given load ", load.id, " ", late / ms,
                     " ms after it was stored");
}

// A forced call may have joined a flight that waits since an earlier one: the load must be younger than
// the first of those. Creation times are told by estimates of the server's clock, which may be some
// 150 ms wrong, or much more once it has leapt.
void host::check_forced(const op_entry& o, const load_entry& load) {
    if (w_.net.faults[static_cast<std::size_t>(fault::clock_jump)] != 0) return;
    micros since = o.began;
    for (bool earlier = true; earlier;) {
        earlier = false;
        for (const op_entry& other : w_.history.ops) {
            if (!other.forced || other.node != o.node || other.key != o.key) continue;
            if (other.began >= since || other.ended < since) continue;
            since = other.began;
            earlier = true;
        }
    }
    if (load.began >= since - 500 * ms) return;
    w_.judged.broken(checker::force_is_fresh, node_.name(), " forced a load of key ", o.key, " and was given load ",
                     load.id, ", begun ", (o.began - load.began) / ms, " ms before");
}

// ---- loaders

void host::begin_load(event& e) {
    const auto& opt = w_.opt;
    client* const of = node_.client_of(e.held->core().get());
    if (!w_.draining && dice_.one_in(opt.untaken_one_in)) {
        w_.hit(fault::untaken);
        w_.told.line("host", node_.name(), " throws it away");
        e.held.reset();
        return;
    }
    e.held->mark_taken();
    const std::uint64_t flight = e.held->open_scope();
    load_entry& load = w_.history.new_load();
    load.node = node_.number();
    load.key = w_.history.op(e.tag)->key;
    load.no_fleet = !of->fleet();
    load.refresh = e.kind == event_kind::refresh;
    load.began = w_.when.now();
    for (const auto& [which, holder] : of->core().fetches.own_tokens) {
        if (holder == flight) load.lease = which;
    }
    if (!load.lease.none()) {
        if (!w_.server.was_granted(load.lease)) {
            w_.judged.broken(checker::one_load_per_lease, "load ", load.id, " runs under ", brief(load.lease),
                             ", which was never granted");
        }
        const auto [at, first] = w_.loaders.emplace(load.lease, load.id);
        if (!first) {
            w_.judged.broken(checker::one_load_per_lease, "loads ", at->second, " and ", load.id,
                             " run under one lease, ", brief(load.lease));
        }
    }
    if (opt.calm && load.lease.none() && e.held->at() == lease::state::live && !w_.history.op(e.tag)->no_store &&
        load.began > w_.server.passed(load.key) + 10 * second) {
        w_.judged.broken(checker::by_the_book, "load ", load.id, " of ", node_.name(), " runs without a lease");
    }
    const std::int64_t max_load = std::min(opt.policy.max_load_ms, opt.other.max_load_ms);
    std::int64_t takes = dice_.between(opt.load_low_ms, opt.load_high_ms);
    if (!w_.draining && dice_.one_in(opt.load_slow_one_in)) takes = dice_.between(1'000, 4'000);
    if (!w_.draining && dice_.one_in(opt.load_long_one_in)) {
        takes = max_load + dice_.between(100, 1'500);
        w_.hit(fault::load_long);
    }
    running r;
    r.load = load.id;
    r.tag = e.tag;
    r.of = of;
    r.held = std::move(e.held);
    r.overdue_at = add_ms(node_.time().now_ms(), max_load);
    r.ends = w_.when.now() + takes * ms;
    w_.told.line("host", node_.name(), " begins load ", load.id, " under ", brief(load.lease), " for ", takes, " ms");
    w_.when.at(w_.when.now() + dice_.between(0, takes * ms), *this, load_reads, load.id);
    w_.when.at(r.ends, *this, load_ends, load.id);
    if (!w_.draining && dice_.one_in(opt.load_detached_one_in)) {
        w_.when.at(w_.when.now() + dice_.between(0, takes * ms), *this, load_detaches, load.id);
    }
    const bool nests = !w_.draining && dice_.one_in(opt.load_nested_one_in);
    running_.push_back(std::move(r));
    if (nests && node_.current() == of) {
        w_.hit(fault::circle);
        const std::uint64_t nested =
            node_.fetch(static_cast<int>(dice_.below(static_cast<std::size_t>(opt.keys))), *this, flight);
        if (running* again = find(load.id)) again->nested = nested;
    }
    node_.check_loads();
}

host::running* host::find(std::uint64_t load) {
    const auto at = std::ranges::find(running_, load, &running::load);
    return at == running_.end() ? nullptr : &*at;
}

void host::read_source(std::uint64_t load) {
    load_entry& l = *w_.history.load(load);
    if (l.version >= 0 || find(load) == nullptr) return;
    l.version = w_.history.source[static_cast<std::size_t>(l.key)];
    w_.told.line("host", node_.name(), " load ", load, " reads version ", l.version);
}

void host::end_load(std::uint64_t load) {
    running* r = find(load);
    if (r == nullptr) return;
    if (const op_entry* inner = w_.history.op(r->nested); inner != nullptr && inner->answers == 0) {
        w_.when.at(w_.when.now() + 10 * ms, *this, load_ends, load);
        return;
    }
    read_source(load);
    if (!w_.draining && dice_.one_in(w_.opt.load_freed_one_in)) {
        w_.hit(fault::freed);
        w_.told.line("host", node_.name(), " frees load ", load, " without an answer");
        forget(load);
        return;
    }
    answer(*r);
    forget(load);
}

void host::answer(running& r) {
    const auto& opt = w_.opt;
    load_entry& l = *w_.history.load(r.load);
    outcome how;
    how.codec = r.of->values().policy().codec;
    std::size_t size = 0;
    if (!w_.draining && dice_.one_in(opt.load_fails_one_in)) {
        w_.hit(fault::load_failed);
        how.code = dice_.one_in(4) ? status::unavailable : status::load_failed;
        how.why = fail(how.code, "the source is not well");
    } else if (dice_.one_in(opt.load_absent_one_in)) {
        how.code = status::absent;
    } else if (!w_.draining && dice_.one_in(opt.load_large_one_in)) {
        w_.hit(fault::too_large);
        size = opt.policy.max_value + 1;
    } else if (dice_.one_in(8)) {
        size = 5'000; // too large for a wake-up message
    }
    if (how.why.code == status::internal) {
        how.storage = write_stamp({l.key, l.version, l.id}, size);
        how.payload = how.storage;
        l.size = how.storage.size();
        if (dice_.one_in(opt.own_ttl_one_in)) {
            how.ttl_ms = dice_.between(50, 2'000);
            how.soft_ttl_ms = dice_.one_in(2) ? how.ttl_ms / 2 : 0;
        }
    }
    w_.told.line("host", node_.name(), " answers load ", l.id, ": ", status_name(how.code), " version ", l.version,
                 size != 0 ? " too large" : "");
    lease::filled_to told;
    const bool good = how.code == status::ok || how.code == status::absent;
    if (good && !queue_->closed() && dice_.one_in(2)) {
        op_entry o;
        o.kind = op_kind::fill;
        o.node = node_.number();
        o.key = l.key;
        o.load = l.id;
        o.began = w_.when.now();
        told.home = queue_;
        told.tag = w_.history.new_op(o);
        node_.expect(told.tag, *this, *r.of);
    }
    static_cast<void>(r.held->answer(std::move(how), told));
}

void host::detach_load(std::uint64_t load) {
    running* r = find(load);
    if (r == nullptr) return;
    w_.hit(fault::detached);
    std::uint32_t waiters = 0;
    const bool was = r->held->detach(waiters);
    w_.told.line("host", node_.name(), " detaches load ", load, ", ", waiters, " wait");
    if (was && waiters == 0) forget(load);
}

void host::forget(std::uint64_t load) {
    const auto at = std::ranges::find(running_, load, &running::load);
    if (at == running_.end()) return;
    const load_entry& l = *w_.history.load(load);
    node_.note_load_end(l.key);
    if (const auto lead = w_.loaders.find(l.lease); lead != w_.loaders.end() && lead->second == load) {
        w_.loaders.erase(lead);
    }
    const auto held = std::move(at->held);
    running_.erase(at);
}

// ---- the end of a queue

void host::close_queue() {
    w_.told.line("host", node_.name(), " closes a queue");
    queue_->close();
}

void host::die() {
    dead_ = true;
    for (const running& r : running_) {
        const load_entry& l = *w_.history.load(r.load);
        w_.loaders.erase(l.lease);
    }
    running_.clear();
}

void host::empty() {
    dead_ = true;
    queue_->set_doorbell(nullptr, nullptr, nullptr);
    std::vector<event> got;
    while (queue_->drain(0, 64, got) == status::ok) got.clear();
    running_.clear();
}

} // namespace stn::sim
