// SPDX-License-Identifier: MIT
#include "node.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

namespace stn::sim {

node::node(world_parts& w, int number, std::uint64_t seed)
    : w_(w),
      number_(number),
      name_("n" + std::to_string(number)),
      dice_(seed),
      last_load_end_(static_cast<std::size_t>(w.opt.keys), 0),
      floors_(static_cast<std::size_t>(w.opt.keys), 0),
      floors_stale_(static_cast<std::size_t>(w.opt.keys), 0),
      floors_put_(static_cast<std::size_t>(w.opt.keys), 0) {
    const std::int64_t ppm = dice_.between(-5'000, 5'000);
    if (ppm > 1'000 || ppm < -1'000) w_.hit(fault::drift);
    time_ = std::make_shared<node_clock>(w.when, dice_.between(1'000, 1'000'000'000), ppm);
    other_codec_ = w.opt.two_codecs && number % 2 == 1;
    without_fleet_ = dice_.one_in(w.opt.fleet_off_one_in);
    w_.told.line("node", name_, " clock ", ppm, " ppm", other_codec_ ? ", other codec" : "",
                 without_fleet_ ? ", fleet off" : "");
    start_process();
}

void node::start_process() {
    up_since_ = w_.when.now();
    hosts_.clear();
    for (int q = 0; q < w_.opt.queues; ++q) {
        all_hosts_.push_back(std::make_unique<host>(w_, *this, 1, dice_.next()));
        hosts_.push_back(all_hosts_.back().get());
    }
    all_clients_.push_back(std::make_unique<client>(w_, *this, dice_.next()));
    now_ = all_clients_.back().get();
    w_.told.line("node", name_, " is up");
}

client* node::client_of(const client_core* core) {
    for (const auto& c : all_clients_) {
        if (&c->core() == core) return c.get();
    }
    return nullptr;
}

host& node::some_host() {
    return *hosts_[dice_.below(hosts_.size())];
}

void node::ring_all() {
    for (const auto& c : all_clients_) c->ring();
}

void node::act(std::uint32_t, std::uint64_t) {
    if (now_ == nullptr) start_process();
}

// ---- calls

std::uint64_t node::accept(op_entry o, host& from,
                           const std::function<result<std::uint64_t>(std::uint64_t tag)>& make) {
    o.node = number_;
    o.began = w_.when.now();
    o.floor = floors_[static_cast<std::size_t>(o.key)];
    o.floor_stale = floors_stale_[static_cast<std::size_t>(o.key)];
    o.floor_put = floors_put_[static_cast<std::size_t>(o.key)];
    const std::uint64_t tag = w_.history.new_op(o);
    expect(tag, from, *now_);
    const auto made = make(tag);
    op_entry& kept = *w_.history.op(tag);
    if (!made) {
        w_.told.line("call", name_, " ", op_name(o.kind), " refused: ", status_name(made.failure().code));
        kept.excused = true; // not accepted: there must be no event
        kept.answers = 1;
        std::erase_if(open_, [&](const open_call& c) { return c.tag == tag; });
        return 0;
    }
    kept.op = *made;
    w_.told.line("call", name_, " op ", tag, " ", op_name(o.kind), " k", o.key,
                 o.version != 0 ? " v" + std::to_string(o.version) : "");
    if (o.kind == op_kind::fetch && !w_.draining && dice_.one_in(w_.opt.helped_one_in)) now_->core().turns.help();
    now_->ring();
    return tag;
}

std::uint64_t node::fetch(int key, host& from, std::uint64_t within) {
    const auto& opt = w_.opt;
    const std::string name = "k" + std::to_string(key);
    cache::call c;
    c.key = name;
    c.within = within;
    c.home = from.queue();
    const bool other = dice_.one_in(opt.other_one_in);
    if (other) c.policy = now_->other();
    const std::int64_t wait = (other ? opt.other : opt.policy).wait_ms;
    c.refresh = dice_.one_in(opt.refresh_one_in);
    c.no_store = dice_.one_in(opt.no_store_one_in);
    c.force = !c.no_store && dice_.one_in(opt.force_one_in);
    if (within != 0) {
        c.deadline_ms = dice_.between(50, 2'000);
    } else if (dice_.one_in(opt.no_wait_one_in)) {
        c.deadline_ms = 0;
    } else if (dice_.one_in(3)) {
        c.deadline_ms = dice_.between(20, 3'000);
    }
    const mono_ms now = time_->now_ms();
    op_entry o;
    o.kind = op_kind::fetch;
    o.key = key;
    o.forced = c.force;
    o.no_store = c.no_store;
    o.no_wait = c.deadline_ms == 0 || (c.deadline_ms < 0 && wait == 0);
    if (c.deadline_ms > 0) o.deadline = now + c.deadline_ms;
    if (c.deadline_ms < 0) o.deadline = now + (wait < 0 ? 20'000 : wait);
    if (o.no_wait) o.deadline = now + 10 * opt.settings.command_timeout_ms;
    return accept(o, from, [&](std::uint64_t tag) {
        c.tag = tag;
        return now_->values().fetch(c);
    });
}

void node::refetch(const event& value, const op_entry& old, host& from) {
    if (now_ == nullptr) return;
    const std::string name = "k" + std::to_string(old.key);
    cache::call c;
    c.key = name;
    c.home = from.queue();
    op_entry o;
    o.kind = op_kind::refetch;
    o.key = old.key;
    if (dice_.one_in(2)) {
        c.deadline_ms = dice_.between(50, 3'000);
        o.deadline = time_->now_ms() + c.deadline_ms;
    }
    accept(o, from, [&](std::uint64_t tag) {
        c.tag = tag;
        return now_->values().refetch(c, *value.what);
    });
}

bool node::call(op_kind k, int key) {
    if (now_ == nullptr || w_.when.now() < paused_until_) return false;
    host& from = some_host();
    const std::string name = "k" + std::to_string(key);
    const auto at = static_cast<std::size_t>(key);
    const mono_ms now = time_->now_ms();
    const std::int64_t timeout = w_.opt.settings.command_timeout_ms;
    cache::call c;
    c.key = name;
    c.home = from.queue();
    op_entry o;
    o.kind = k;
    o.key = key;
    switch (k) {
    case op_kind::fetch: fetch(key, from, 0); break;
    case op_kind::get:
        if (dice_.one_in(2)) c.deadline_ms = dice_.between(10, 400);
        o.deadline = now + (c.deadline_ms > 0 ? c.deadline_ms : 2 * timeout);
        accept(o, from, [&](std::uint64_t tag) {
            c.tag = tag;
            return now_->values().get(c);
        });
        break;
    case op_kind::put: {
        if (dice_.one_in(2)) ++w_.history.source[at];
        load_entry& made = w_.history.new_load();
        made.node = number_;
        made.key = key;
        made.put = true;
        made.version = w_.history.source[at];
        o.deadline = now + timeout;
        const std::string value = write_stamp({key, made.version, made.id});
        made.size = value.size();
        accept(o, from, [&](std::uint64_t tag) {
            c.tag = tag;
            return now_->values().put(c, value, -1, -1, -1);
        });
        break;
    }
    case op_kind::invalidate:
    case op_kind::mark_stale: {
        const std::int64_t limit = dice_.one_in(4) ? dice_.between(0, 500) : 10'000;
        c.deadline_ms = limit == 10'000 ? -1 : limit;
        o.deadline = now + limit + timeout;
        o.version = ++w_.history.source[at]; // the source changes first
        accept(o, from, [&](std::uint64_t tag) {
            c.tag = tag;
            return now_->values().invalidate(c, k == op_kind::mark_stale);
        });
        break;
    }
    case op_kind::refetch:
    case op_kind::close:
    case op_kind::fill:
    case op_kind::count_: break;
    }
    return true;
}

void node::cancel_one() {
    if (open_.empty() || now_ == nullptr || w_.when.now() < paused_until_) return;
    const open_call one = open_[dice_.below(open_.size())];
    const op_entry& o = *w_.history.op(one.tag);
    if (!one.of->alive() || o.op == 0) return;
    auto left = one.of->core().flights->leave(o.op, one.from->queue().get());
    if (!left) return;
    w_.hit(fault::cancelled);
    w_.told.line("call", name_, " cancels op ", one.tag);
    one.of->core().after_leave(*left);
    event e;
    e.kind = event_kind::error;
    e.code = status::cancelled;
    e.tag = one.tag;
    e.what = outcome_error(fail(status::cancelled, "cancelled"));
    one.from->queue()->push(std::move(e));
    one.of->ring();
}

void node::answered(std::uint64_t tag, const event& e, const std::shared_ptr<event_queue>&) {
    std::erase_if(open_, [&](const open_call& c) { return c.tag == tag; });
    const op_entry& o = *w_.history.op(tag);
    if (e.kind != event_kind::done) return;
    const auto k = static_cast<std::size_t>(o.key);
    if (o.kind == op_kind::put) floors_put_[k] = std::max(floors_put_[k], o.began);
    if (o.kind == op_kind::invalidate || o.kind == op_kind::mark_stale) {
        auto& floor = (o.kind == op_kind::invalidate ? floors_ : floors_stale_)[k];
        floor = std::max(floor, o.version);
        if (w_.opt.policy.fleet) w_.server.acknowledged(o.key, o.version);
    }
}

// ---- faults

void node::pause(micros how_long) {
    paused_until_ = std::max(paused_until_, w_.when.now() + how_long);
    w_.told.line("node", name_, " stands still for ", how_long / ms, " ms");
}

void node::stall(micros how_long) {
    stalled_until_ = std::max(stalled_until_, w_.when.now() + how_long);
    w_.told.line("node", name_, " loop stalls for ", how_long / ms, " ms");
}

void node::heal() {
    paused_until_ = std::min(paused_until_, w_.when.now());
    stalled_until_ = std::min(stalled_until_, w_.when.now());
    for (const auto& h : all_hosts_) h->be_prompt();
    if (now_ == nullptr) start_process();
    ring_all();
}

void node::crash(bool bytes_lost, micros down_for) {
    if (now_ == nullptr) return;
    w_.hit(fault::crash);
    w_.told.line("node", name_, " DIES");
    for (const auto& c : all_clients_) {
        if (c->alive()) c->crash(bytes_lost);
    }
    for (const auto& h : all_hosts_) h->die();
    for (const open_call& c : open_) w_.history.op(c.tag)->excused = true;
    open_.clear();
    hosts_.clear();
    now_ = nullptr;
    paused_until_ = stalled_until_ = 0;
    w_.when.at(w_.when.now() + down_for, *this, start);
}

void node::reopen() {
    if (now_ == nullptr || w_.when.now() < paused_until_) return;
    w_.hit(fault::reopen);
    const std::int64_t limit = dice_.one_in(3) ? 0 : dice_.between(10, 1'500);
    w_.told.line("node", name_, " closes its client within ", limit, " ms and opens another");
    host& home = some_host();
    op_entry o;
    o.kind = op_kind::close;
    o.node = number_;
    o.began = w_.when.now();
    o.deadline = time_->now_ms() + limit;
    const std::uint64_t tag = w_.history.new_op(o);
    expect(tag, home, *now_);
    now_->close(limit, home.queue(), tag);
    all_clients_.push_back(std::make_unique<client>(w_, *this, dice_.next()));
    now_ = all_clients_.back().get();
}

void node::close_queue() {
    if (now_ == nullptr || w_.when.now() < paused_until_) return;
    w_.hit(fault::queue_closed);
    const std::size_t at = dice_.below(hosts_.size());
    host& h = *hosts_[at];
    h.close_queue();
    for (const auto& c : all_clients_) {
        if (!c->alive()) continue;
        for (auto& left : c->core().flights->leave_queue(h.queue().get())) {
            c->core().after_leave(left);
            event e;
            e.kind = event_kind::error;
            e.code = status::closed;
            e.tag = left.who.tag;
            e.what = outcome_error(fail(status::closed, "the queue is closed"));
            h.queue()->push(std::move(e));
        }
    }
    all_hosts_.push_back(std::make_unique<host>(w_, *this, 1, dice_.next()));
    hosts_[at] = all_hosts_.back().get();
    ring_all();
}

// ---- what can be seen from here

bool node::loads(int key) const {
    return std::ranges::any_of(all_hosts_, [&](const auto& h) { return h->loads_key(key); });
}

void node::check_looks() {
    if (now_ == nullptr) return;
    const micros now = w_.when.now();
    client_core& core = now_->core();
    if (core.commands.down() || !core.fetches.down_slots.free() || !now_->wire().up()) up_since_ = now;
    const micros hindered = std::max(up_since_, hindered_until());
    if (now < hindered + 900 * ms) return;
    for (const open_call& c : open_) {
        const op_entry& o = *w_.history.op(c.tag);
        if (c.of != now_ || o.kind != op_kind::fetch || loads(o.key)) continue;
        const micros since = std::max({hindered, o.began, last_load_end_[static_cast<std::size_t>(o.key)],
                                       now_->wire().last_look(w_.server.value_key_of(o.key))});
        if (now < since + 900 * ms) continue;
        w_.judged.broken(checker::waiter_looks, name_, " has waited for key ", o.key, " for ", (now - o.began) / ms,
                         " ms (op ", c.tag, "), and looked last ", (now - since) / ms, " ms ago");
        return;
    }
}

void node::note_load_end(int key) {
    last_load_end_[static_cast<std::size_t>(key)] = w_.when.now();
}

micros node::load_ended(int key) const {
    return loads(key) ? never : last_load_end_[static_cast<std::size_t>(key)];
}

micros node::hindered_until() const {
    micros until = stalled_until();
    for (const auto& h : all_hosts_) until = std::max(until, h->hindered_until());
    return until;
}

void node::check_loads() {
    const auto bound = w_.opt.policy.max_loads;
    if (bound == 0 || w_.opt.load_nested_one_in != 0 || now_ == nullptr) return;
    int n = 0;
    for (const auto& h : all_hosts_) n += h->loads_of(now_);
    if (n > static_cast<int>(bound + w_.opt.settings.max_loads_down)) {
        w_.judged.broken(checker::max_loads_kept, name_, " runs ", n, " loads; max_loads is ", bound,
                         ", max_loads_down ", w_.opt.settings.max_loads_down);
    }
}

bool node::quiet() const {
    if (!open_.empty()) return false;
    if (std::ranges::any_of(all_hosts_, [](const auto& h) { return h->loads() != 0; })) return false;
    return std::ranges::all_of(all_clients_, [](const auto& c) { return !c->alive() || c->leftovers().empty(); });
}

std::string node::leftovers() const {
    std::ostringstream out;
    for (const open_call& c : open_) out << " op " << c.tag << " " << op_name(w_.history.op(c.tag)->kind);
    for (const auto& h : all_hosts_) {
        if (h->loads() != 0) out << " loads " << h->loads();
    }
    for (const auto& c : all_clients_) {
        if (c->alive()) out << c->leftovers();
    }
    return out.str();
}

void node::close_for_good() {
    host& home = some_host();
    op_entry o;
    o.kind = op_kind::close;
    o.node = number_;
    o.began = w_.when.now();
    o.deadline = time_->now_ms() + 1'000;
    const std::uint64_t tag = w_.history.new_op(o);
    expect(tag, home, *now_);
    now_->close(1'000, home.queue(), tag);
}

stat_block node::stats() const {
    stat_block sum;
    for (const auto& c : all_clients_) sum.merge(c->core().stats());
    return sum;
}

void node::bury() {
    for (const auto& h : all_hosts_) h->empty();
    for (const auto& c : all_clients_) c->bury();
    for (const auto& h : all_hosts_) h->empty();
}

} // namespace stn::sim
