// SPDX-License-Identifier: MIT
#include "engine/single_flight.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "engine/wait_graph.hpp"

namespace stn {

namespace {

// op: table (14 bits) | shard (4) | seat (24) | seq (22)
constexpr unsigned seq_bits = 22;
constexpr unsigned seat_bits = 24;
constexpr unsigned shard_bits = 4;
constexpr std::uint32_t max_tables = 1U << 13; // the topmost bit is for calls that ended at once
constexpr unsigned id_bits = 48;

struct registry {
    std::mutex mutex;
    std::vector<std::weak_ptr<single_flight>> tables;
    std::uint32_t next = 0;
};

// Never destroyed: threads may outlive main.
registry& tables() {
    static auto* r = new registry;
    return *r;
}

} // namespace

single_flight::single_flight(std::uint32_t number) : table_no_(number) {
    // Flight numbers are unique in the process: the wait graph spans its clients.
    const std::uint64_t first = (std::uint64_t{number} << id_bits) + 1;
    for (std::uint32_t i = 0; i < shards_.size(); ++i) {
        shards_[i] = std::make_unique<shard>(i, shards_.size(), first + i);
    }
}

single_flight::~single_flight() = default;

std::shared_ptr<single_flight> single_flight::make() {
    registry& r = tables();
    const std::lock_guard lock(r.mutex);
    for (std::uint32_t tried = 0; tried < max_tables; ++tried) {
        const std::uint32_t no = r.next++ % max_tables;
        if (no >= r.tables.size()) r.tables.resize(no + 1);
        if (!r.tables[no].expired()) continue;
        auto made = std::make_shared<single_flight>(no);
        r.tables[no] = made;
        return made;
    }
    return nullptr;
}

std::uint64_t single_flight::ended_op() {
    static std::atomic<std::uint64_t> last{0};
    return (std::uint64_t{1} << 63) | last.fetch_add(1);
}

std::shared_ptr<single_flight> single_flight::by_op(std::uint64_t op) {
    const auto no = static_cast<std::size_t>(op >> (seq_bits + seat_bits + shard_bits));
    registry& r = tables();
    const std::lock_guard lock(r.mutex);
    return no < r.tables.size() ? r.tables[no].lock() : nullptr;
}

std::shared_ptr<single_flight> single_flight::next_table(std::size_t& number) noexcept {
    registry& r = tables();
    const std::lock_guard lock(r.mutex);
    while (number < r.tables.size()) {
        if (auto live = r.tables[number++].lock()) return live;
    }
    return nullptr;
}

std::uint64_t single_flight::op_of(const shard& s, const table::seat& seat) const noexcept {
    return (std::uint64_t{table_no_} << (seq_bits + seat_bits + shard_bits)) |
           (std::uint64_t{s.no} << (seq_bits + seat_bits)) | (std::uint64_t{seat.index} << seq_bits) | seat.seq;
}

single_flight::ticket single_flight::refused(ticket::kind why) {
    ticket t;
    t.what = why;
    return t;
}

single_flight::ticket single_flight::enter_locked(const entry& how, const visitor& who, std::uint64_t hash, shard& s,
                                                  wait_graph* edges, first_step first) {
    if (closed_.load(std::memory_order_relaxed)) return refused(ticket::kind::closed);
    ticket t;
    table::flight* f = how.joins ? s.flights.find(how.key, hash) : nullptr;
    if (f != nullptr) {
        if (who.no_wait && (f->extra.busy || f->extra.in_line || !how.machine)) {
            return refused(ticket::kind::no_wait);
        }
        t.flight = ref{f, &s, f->id};
        settle_in(how, who, s, edges, first, t);
        return t;
    }
    f = s.flights.open(how.key, hash, how.joins);
    f->extra.machine = how.machine;
    f->extra.exempt = who.within != 0;
    t.what = ticket::kind::leads;
    t.flight = ref{f, &s, f->id};
    try {
        settle_in(how, who, s, edges, first, t);
    } catch (...) {
        s.flights.unlist(*f);
        s.flights.drop(*f);
        throw;
    }
    return t;
}

// Gives the caller its place in the flight. If it throws, it has changed nothing.
void single_flight::settle_in(const entry& how, const visitor& who, shard& s, wait_graph* edges, first_step first,
                              ticket& t) {
    const bool leads = t.what == ticket::kind::leads;
    const bool waits = !leads || how.leader_waits;
    table::flight& f = *t.flight.f;
    table::seat* seat = nullptr;
    promised answer(waits ? who.home.get() : nullptr);
    bool edge = false;
    try {
        if (waits) {
            seat = s.flights.join(
                f, caller{who.home, who.tag, who.within, f.id, who.deadline, who.refresh, who.no_wait, leads, who.came},
                who.deadline);
            t.op = op_of(s, *seat);
            f.extra.hasty = f.extra.hasty || who.no_wait;
            if (who.deadline < f.alarm) t.alarm = who.deadline;
        }
        if (edges != nullptr && who.within != 0) {
            edges->add_locked(who.within, f.id);
            edge = true;
        }
        if (first && (leads || t.alarm)) first(t);
    } catch (...) {
        if (edge) edges->drop_locked(who.within, f.id);
        if (seat != nullptr) s.flights.leave(seat);
        throw;
    }
    answer.stands();
    if (!how.machine) ++(leads ? s.opened : s.joined);
    if (!waits) {
        f.extra.lease_no = 1;
        f.extra.scope = who.home->scope();
    }
    if (t.alarm) {
        f.alarm = *t.alarm;
        if (!leads) s.flights.hold(f); // for whoever sets the alarm
    }
}

single_flight::ticket single_flight::enter(const entry& how, visitor who, first_step first) {
    const std::uint64_t hash = hash_of(how.key);
    shard& s = of(hash);
    if (who.within == 0) {
        const std::lock_guard lock(s.mutex);
        return enter_locked(how, who, hash, s, nullptr, first);
    }
    wait_graph& graph = wait_graph::of_process();
    const std::lock_guard edges(graph.mutex);
    if (!graph.is_open_locked(who.within)) who.within = 0;
    const std::lock_guard lock(s.mutex);
    if (who.within != 0 && how.joins) {
        const table::flight* f = s.flights.find(how.key, hash);
        if (f != nullptr && graph.reaches_locked(f->id, who.within)) return refused(ticket::kind::would_deadlock);
    }
    return enter_locked(how, who, hash, s, &graph, first);
}

single_flight::left_behind single_flight::take_out(shard& s, table::seat* seat) {
    table::flight& f = *seat->in;
    left_behind l;
    l.flight_id = f.id;
    l.machine = f.extra.machine;
    l.who = s.flights.leave(seat);
    l.left = f.waiting;
    return l;
}

std::optional<single_flight::left_behind> single_flight::leave(std::uint64_t op, const event_queue* home) {
    const auto no = static_cast<std::size_t>((op >> (seq_bits + seat_bits)) & ((1U << shard_bits) - 1));
    const auto index = static_cast<std::uint32_t>((op >> seq_bits) & ((1U << seat_bits) - 1));
    const auto seq = static_cast<std::uint32_t>(op & ((1U << seq_bits) - 1));
    shard& s = *shards_[no];
    std::optional<left_behind> out;
    {
        const std::lock_guard lock(s.mutex);
        table::seat* seat = s.flights.seat_at(index, seq);
        if (seat == nullptr || seat->who.home.get() != home) return std::nullopt;
        out = take_out(s, seat);
    }
    wait_graph::of_process().drop(out->who.within, out->flight_id);
    return out;
}

std::optional<single_flight::left_behind> single_flight::leave_next(const event_queue* home, cursor& at) noexcept {
    std::optional<left_behind> out;
    for (; at.shard < shards_.size(); ++at.shard, at.seat = 0) {
        shard& s = *shards_[at.shard];
        const std::lock_guard lock(s.mutex);
        table::seat* seat = s.flights.find_seat(at.seat, [home](const caller& who) { return who.home.get() == home; });
        if (seat == nullptr) continue;
        out = take_out(s, seat);
        break;
    }
    if (out) wait_graph::of_process().drop(out->who.within, out->flight_id);
    return out;
}

std::vector<single_flight::left_behind> single_flight::leave_queue(const event_queue* home) {
    std::vector<left_behind> out;
    cursor at;
    while (auto l = leave_next(home, at)) out.push_back(std::move(*l));
    return out;
}

callers single_flight::close_all() {
    closed_.store(true);
    callers out;
    for (auto& s : shards_) {
        const std::lock_guard lock(s->mutex);
        s->flights.each_flight([&](table::flight& f) {
            f.extra.lease_no = 0;
            s->flights.take_all(f, [&](caller who) { out.push_back(std::move(who)); });
            s->flights.unlist(f);
        });
    }
    forget_edges(out);
    return out;
}

callers single_flight::take_all(const ref& f) {
    callers out;
    {
        const std::lock_guard lock(f.at->mutex);
        out.reserve(f.f->waiting);
        f.at->flights.take_all(*f.f, [&](caller who) { out.push_back(std::move(who)); });
        f.at->flights.unlist(*f.f);
        f.f->extra.lease_no = 0;
    }
    forget_edges(out);
    return out;
}

std::optional<callers> single_flight::answer_load(const ref& f, std::uint64_t lease_no, function_ref<bool()> first) {
    callers out;
    {
        const std::lock_guard lock(f.at->mutex);
        if (f.f->extra.lease_no != lease_no) return std::nullopt;
        out.reserve(f.f->waiting);
        if (first && !first()) return std::nullopt;
        f.f->extra.lease_no = 0;
        f.at->flights.take_all(*f.f, [&](caller who) { out.push_back(std::move(who)); });
        f.at->flights.unlist(*f.f);
    }
    forget_edges(out);
    return out;
}

bool single_flight::finish_load(const ref& f, std::uint64_t lease_no, function_ref<bool(std::uint32_t)> first,
                                finished& out) {
    bool scoped = false;
    {
        const std::lock_guard lock(f.at->mutex);
        const bool answers = f.f->extra.lease_no == lease_no;
        const std::uint32_t waiting = answers ? f.f->waiting : 0;
        out.who.reserve(waiting);
        if (!first(waiting)) return false;
        out.alarm = f.f->alarm != forever_ms;
        if (answers) {
            f.f->extra.lease_no = 0;
            f.at->flights.take_all(*f.f, [&](caller who) { out.who.push_back(std::move(who)); });
            f.at->flights.unlist(*f.f);
        }
        scoped = f.f->extra.scoped;
        if (!f.at->flights.drop(*f.f)) scoped = false;
    }
    if (scoped) wait_graph::of_process().close(f.id);
    forget_edges(out.who);
    return true;
}

bool single_flight::end_load(const ref& f, std::uint64_t lease_no) {
    const std::lock_guard lock(f.at->mutex);
    if (f.f->extra.lease_no != lease_no) return false;
    f.f->extra.lease_no = 0;
    f.f->extra.holder_gone = false;
    return true;
}

std::uint32_t single_flight::detach_holder(const ref& f, std::uint64_t lease_no, function_ref<void()> then) {
    const std::lock_guard lock(f.at->mutex);
    if (f.f->extra.lease_no != lease_no) return 0;
    if (f.f->waiting > 0) {
        f.f->extra.holder_gone = true;
        return f.f->waiting;
    }
    f.f->extra.lease_no = 0;
    f.at->flights.unlist(*f.f);
    if (then) then();
    return 0;
}

std::optional<caller> single_flight::promote(const ref& f, std::uint64_t lease_no, const event_queue* avoid) {
    const std::lock_guard lock(f.at->mutex);
    for (table::seat* seat = f.f->oldest; seat != nullptr; seat = seat->next) {
        if (avoid != nullptr && seat->who.home.get() == avoid) continue;
        caller who = f.at->flights.leave(seat);
        f.f->extra.lease_no = lease_no;
        f.f->extra.scope = who.home->scope();
        f.f->extra.holder_gone = false;
        f.f->extra.in_line = false;
        return who;
    }
    if (avoid == nullptr) f.at->flights.unlist(*f.f);
    return std::nullopt;
}

void single_flight::come_back(const ref& f, caller who) {
    const std::lock_guard lock(f.at->mutex);
    f.f->extra.lease_no = 0;
    const mono_ms deadline = who.deadline;
    f.at->flights.rejoin(*f.f, std::move(who), deadline);
}

callers single_flight::sweep(const ref& f, mono_ms now, mono_ms& next) {
    callers out;
    {
        const std::lock_guard lock(f.at->mutex);
        next = forever_ms;
        for (table::seat* seat = f.f->oldest; seat != nullptr;) {
            table::seat* const after = seat->next;
            if (seat->deadline <= now) {
                out.push_back(f.at->flights.leave(seat));
            } else {
                next = std::min(next, seat->deadline);
            }
            seat = after;
        }
        f.f->alarm = next;
    }
    forget_edges(out);
    return out;
}

callers single_flight::take_if(const ref& f, function_ref<bool(const caller&)> which) {
    callers out;
    {
        const std::lock_guard lock(f.at->mutex);
        for (table::seat* seat = f.f->oldest; seat != nullptr;) {
            table::seat* const after = seat->next;
            if (which(seat->who)) out.push_back(f.at->flights.leave(seat));
            seat = after;
        }
    }
    forget_edges(out);
    return out;
}

callers single_flight::set_busy(const ref& f) {
    {
        const std::lock_guard lock(f.at->mutex);
        f.f->extra.busy = true;
        if (!f.f->extra.hasty) return {}; // a crowd need not be walked through
    }
    return take_if(f, [](const caller& who) { return who.no_wait; });
}

void single_flight::begin_load(const ref& f, std::uint64_t lease_no, std::uint64_t scope) {
    const std::lock_guard lock(f.at->mutex);
    f.f->extra.lease_no = lease_no;
    f.f->extra.scope = scope;
}

bool single_flight::unlist_if_empty(const ref& f) {
    const std::lock_guard lock(f.at->mutex);
    if (f.f->waiting != 0) return false;
    f.at->flights.unlist(*f.f);
    return true;
}

bool single_flight::unwanted(const ref& f) const {
    const std::lock_guard lock(f.at->mutex);
    return f.f->waiting == 0 && f.f->extra.lease_no != 0 && f.f->extra.holder_gone;
}

void single_flight::set_in_line(const ref& f, bool in_line) {
    const std::lock_guard lock(f.at->mutex);
    f.f->extra.in_line = in_line;
}

void single_flight::unlist(const ref& f) {
    const std::lock_guard lock(f.at->mutex);
    f.at->flights.unlist(*f.f);
}

std::size_t single_flight::detach(std::uint32_t space, std::string_view key) {
    std::size_t n = 0;
    const std::uint64_t hash = hash_of({space, 0, {}, key});
    shard& s = of(hash);
    const std::lock_guard lock(s.mutex);
    s.flights.each_of_key(space, key, hash, [&](table::flight& f) {
        if (f.extra.detached) return;
        f.extra.detached = true;
        if (f.listed) ++n;
        s.flights.unlist(f);
    });
    return n;
}

std::pair<std::uint64_t, std::uint64_t> single_flight::group_counts() {
    std::pair<std::uint64_t, std::uint64_t> sum{0, 0};
    for (auto& s : shards_) {
        const std::lock_guard lock(s->mutex);
        sum.first += s->opened;
        sum.second += s->joined;
    }
    return sum;
}

void single_flight::drop(const ref& f) {
    bool scoped = false;
    {
        const std::lock_guard lock(f.at->mutex);
        scoped = f.f->extra.scoped;
        if (!f.at->flights.drop(*f.f)) scoped = false;
    }
    if (scoped) wait_graph::of_process().close(f.id);
}

single_flight::extra single_flight::look(const ref& f) const {
    const std::lock_guard lock(f.at->mutex);
    return f.f->extra;
}

std::uint32_t single_flight::waiting(const ref& f) const {
    const std::lock_guard lock(f.at->mutex);
    return f.f->waiting;
}

bool single_flight::alarm_set(const ref& f) const {
    const std::lock_guard lock(f.at->mutex);
    return f.f->alarm != forever_ms;
}

bool single_flight::deserted(const ref& f) const {
    const std::lock_guard lock(f.at->mutex);
    return f.f->waiting == 0 && !f.f->listed;
}

void single_flight::hold(const ref& f) {
    const std::lock_guard lock(f.at->mutex);
    f.at->flights.hold(*f.f);
}

std::size_t single_flight::live() {
    std::size_t n = 0;
    for (auto& s : shards_) {
        const std::lock_guard lock(s->mutex);
        n += s->flights.live();
    }
    return n;
}

// ---- who waits for whom

void single_flight::open_scope(const ref& f) {
    {
        const std::lock_guard lock(f.at->mutex);
        if (f.f->extra.lease_no == 0) return;
        f.f->extra.scoped = true;
    }
    wait_graph::of_process().open(f.id);
}

// What every caller that was taken out needs, once.
void single_flight::forget_edges(const callers& out) {
    for (const caller& who : out) wait_graph::of_process().drop(who.within, who.in_flight);
}

} // namespace stn
