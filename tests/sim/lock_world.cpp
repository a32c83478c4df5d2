// SPDX-License-Identifier: MIT
#include "lock_world.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "agenda.hpp"
#include "book.hpp"
#include "chance.hpp"
#include "engine/client_core.hpp"
#include "engine/held_lock.hpp"
#include "engine/lock_calls.hpp"
#include "link.hpp"
#include "options.hpp"
#include "protocol/keys.hpp"
#include "protocol/lock_value.hpp"
#include "store.hpp"
#include "tale.hpp"

namespace stn::sim {

namespace {

constexpr int lock_names = 2;
constexpr std::int64_t longest_ttl = 4'000;
constexpr micros told_within = 60 * ms; // after a deadline, when nobody stands still

class lock_world;

// One process: a client, one queue, and the locks in its hands.
class lock_node final : public actor {
  public:
    lock_node(lock_world& w, int number, std::uint64_t seed);

    void act(std::uint32_t what, std::uint64_t with) override;
    void acquire_one(int key);
    void cancel_one() { cancel(dice_.below(std::max<std::size_t>(1, calls_.size()))); }
    // Nobody here wants anything any more.
    void give_up_all();
    void pause(micros how_long);
    void stall(micros how_long);
    void crash(bool bytes_lost, micros down_for);
    void reopen();
    void heal();
    void bury();
    [[nodiscard]] bool up() const noexcept { return core_ != nullptr; }
    [[nodiscard]] link& wire() { return *link_; }
    [[nodiscard]] int holders(int key) const;
    [[nodiscard]] bool holds(const token& t) const;
    [[nodiscard]] bool quiet() const;
    [[nodiscard]] std::string leftovers() const;
    [[nodiscard]] stat_block stats() const;

  private:
    enum : std::uint32_t { turn, read, let_go, start };
    struct call {
        std::uint64_t tag = 0;
        std::uint64_t op = 0;
        int key = 0;
        mono_ms deadline = forever_ms;
        bool release = false;
        bool cancelled = false;
        token mine{}; // of a release
        micros began = 0;
    };
    struct hold {
        std::uint64_t tag = 0;
        int key = 0;
        std::shared_ptr<held_lock> lock;
        int losses = 0;
    };
    static void rung(void* self);
    void cancel(std::size_t which);
    void begin();
    void ring();
    void schedule(micros at);
    void make_turn();
    void read_queue();
    void take(event& e);
    void check_deadline(const call& c, const event& e) const;
    void end_hold(std::uint64_t tag);
    [[nodiscard]] micros hindered() const { return std::max(paused_until_, stalled_until_); }

    lock_world& w_;
    const int number_;
    dice dice_;
    std::shared_ptr<node_clock> time_;
    std::shared_ptr<event_queue> queue_;
    std::shared_ptr<client_core> core_;
    std::shared_ptr<client_handle> handle_;
    link* link_ = nullptr;
    std::vector<std::shared_ptr<client_core>> old_; // crashed or closed
    std::vector<std::shared_ptr<client_handle>> old_handles_;
    std::vector<std::shared_ptr<event_queue>> old_queues_;
    std::vector<std::shared_ptr<client_core>> closing_; // still turned
    std::deque<call> calls_;
    std::deque<hold> holds_;
    micros turn_at_ = never;
    micros paused_until_ = 0;
    micros stalled_until_ = 0;
    micros hindered_last_ = 0;
};

class lock_world final : public actor {
  public:
    lock_world(std::uint64_t seed, lock_variant broken, bool trace);
    outcome_of_locks run();
    void act(std::uint32_t what, std::uint64_t with) override;

    [[nodiscard]] const std::string& key_of(int key) const { return keys_[static_cast<std::size_t>(key)]; }

    options opt;
    agenda when;
    tale told{when};
    judge judged{when, told};
    book history;
    fault_counts faults{};
    store server;
    network net;
    const lock_variant broken;
    const bool calm; // nothing goes wrong but that callers go away
    outcome_of_locks out;
    std::uint64_t next_tag = 1;
    std::set<token> released; // gone from its key before its time
    std::set<token> deleted;  // by somebody else
    bool draining = false;

  private:
    enum : std::uint32_t { operate, strike, memory_back, publish_back, meddling };
    struct seen_key {
        token holder{};
        std::int64_t last_fence = 0;
        server_ms until = 0;
        micros back_at = never; // what was deleted is in it again
    };
    void step_until(micros until);
    void look();
    void look_at(int key);
    void judge_command(const command& cmd, const std::string& before, std::int64_t left_ms);
    void do_fault();
    void meddle();
    bool quiet_within(micros limit);
    void look_for_orphans();

    std::vector<std::string> keys_;
    std::vector<seen_key> seen_;
    std::vector<std::unique_ptr<lock_node>> nodes_;
    dice dice_;
    dice storm_;
    int ops_left_;
};

// ---- a node

lock_node::lock_node(lock_world& w, int number, std::uint64_t seed) : w_(w), number_(number), dice_(seed) {
    time_ = std::make_shared<node_clock>(w.when, dice_.between(1'000, 1'000'000'000), dice_.between(-4'900, 4'900));
    begin();
}

void lock_node::begin() {
    queue_ = std::make_shared<event_queue>(1);
    queue_->set_doorbell(&lock_node::rung, this, nullptr);
    client_parts parts;
    auto wire = std::make_unique<link>(w_.net, number_, *time_, dice_.next(), [this] { ring(); });
    link_ = wire.get();
    parts.link = std::move(wire);
    parts.time = time_;
    parts.chance = std::make_shared<seeded_draws>(dice_.next());
    parts.settings = w_.opt.settings;
    parts.threaded = false;
    parts.make_lock = [this](lock_setup s) { return make_lock_probe(w_.broken, std::move(s)); };
    core_ = client_core::make(std::move(parts));
    handle_ = std::make_shared<client_handle>(core_);
    ring();
}

void lock_node::rung(void* self) {
    auto* n = static_cast<lock_node*>(self);
    n->w_.when.at(n->w_.when.now() + n->dice_.between(1, 150), *n, read);
}

void lock_node::schedule(micros at) {
    if (at >= turn_at_) return;
    turn_at_ = at;
    w_.when.at(at, *this, turn);
}

void lock_node::ring() {
    schedule(std::max(w_.when.now() + dice_.between(1, 100), hindered()));
}

void lock_node::act(std::uint32_t what, std::uint64_t with) {
    const micros now = w_.when.now();
    switch (what) {
    case turn:
        if (now < turn_at_) return;
        turn_at_ = never;
        if (now < hindered()) {
            schedule(hindered() + dice_.between(1, 100));
        } else {
            make_turn();
        }
        return;
    case start:
        if (!up()) begin();
        return;
    default: break;
    }
    if (!up()) return;
    if (now < paused_until_) {
        w_.when.at(paused_until_ + dice_.between(1, 100), *this, what, with);
        return;
    }
    if (what == read) read_queue();
    if (what == let_go) end_hold(with);
    ring();
}

void lock_node::make_turn() {
    const auto one = [&](const std::shared_ptr<client_core>& core) {
        const mono_ms due = core->turns.next_due_ms(); // turns
        if (due != forever_ms) schedule(std::max(time_->when(due), w_.when.now() + 1));
    };
    for (const auto& core : closing_) {
        one(core);
        if (core->closed() && !core->locks.busy() && !core->asks.busy()) core->turns.finish();
    }
    if (up()) one(core_);
}

void lock_node::acquire_one(int key) {
    if (!up() || w_.when.now() < paused_until_) return;
    lock_policy p;
    constexpr std::int64_t ttls[] = {60, 200, 500, 1'500, longest_ttl};
    p.ttl_ms = ttls[dice_.below(std::size(ttls))];
    p.wait_ms = dice_.one_in(6) ? 0 : dice_.between(20, 3'000);
    p.renew = !dice_.one_in(5);
    if (dice_.one_in(8)) p.max_hold_ms = dice_.between(20, 2'000);
    const std::string name = "l" + std::to_string(key);
    call c;
    c.tag = w_.next_tag++;
    c.key = key;
    c.began = w_.when.now();
    const auto& s = w_.opt.settings;
    c.deadline = time_->now_ms() + (p.wait_ms == 0 ? 2 * s.command_timeout_ms + s.connect_timeout_ms : p.wait_ms);
    lock_call r;
    r.name = name;
    r.home = queue_;
    r.tag = c.tag;
    r.loss_home = queue_;
    r.loss_tag = c.tag;
    const auto made = acquire(*core_, r, p);
    if (!made) return;
    c.op = *made;
    calls_.push_back(c);
    ++w_.out.acquires;
    w_.told.line("call", "n", number_, " acquires l", key, " as ", c.tag, ", ttl ", p.ttl_ms, " wait ", p.wait_ms);
    ring();
}

void lock_node::give_up_all() {
    for (std::size_t i = 0; i < calls_.size(); ++i) cancel(i);
    while (!holds_.empty()) end_hold(holds_.front().tag);
    ring();
}

void lock_node::cancel(std::size_t which) {
    if (!up() || which >= calls_.size() || w_.when.now() < paused_until_) return;
    const call& c = calls_[which];
    if (c.release) return;
    const auto flights = single_flight::by_op(c.op); // perhaps of a client that is being closed
    if (!flights) return;
    auto left = flights->leave(c.op, queue_.get());
    if (!left) return;
    ++w_.faults[static_cast<std::size_t>(fault::cancelled)];
    w_.told.line("call", "n", number_, " cancels ", c.tag);
    event e;
    e.kind = event_kind::error;
    e.code = status::cancelled;
    e.tag = c.tag;
    e.what = outcome_error(fail(status::cancelled, "cancelled"));
    queue_->push(std::move(e));
    if (const auto core = flights->owner.lock()) core->after_leave(*left);
    ring();
}

void lock_node::read_queue() {
    std::vector<event> got;
    static_cast<void>(queue_->drain(0, 64, got));
    for (event& e : got) take(e);
}

void lock_node::take(event& e) {
    w_.told.note(static_cast<std::uint64_t>(e.kind) * 1'000'003 + e.tag);
    w_.told.line("host", "n", number_, " ", e.tag, " kind ", static_cast<int>(e.kind), " ", status_name(e.code));
    if (e.kind == event_kind::lock_lost) {
        const auto it = std::ranges::find(holds_, e.tag, &hold::tag);
        ++w_.out.losses;
        if (it == holds_.end()) return; // let go of meanwhile
        if (++it->losses > 1) w_.judged.broken(checker::loss_told_once, "lock ", e.tag, " was lost twice");
        if (it->lock->held()) w_.judged.broken(checker::loss_told_once, "lock ", e.tag, " is lost, and held");
        return;
    }
    const auto it = std::ranges::find(calls_, e.tag, &call::tag);
    if (it == calls_.end()) {
        w_.judged.broken(checker::answered_exactly_once, "n", number_, " hears of ", e.tag, " again");
        return;
    }
    const call c = *it;
    calls_.erase(it);
    check_deadline(c, e);
    if (c.release) {
        const bool not_mine = e.code == status::lost || e.code == status::not_mine;
        const bool by_clock = e.what && e.what->why.message.find("before it could") != std::string::npos;
        if (not_mine && !by_clock && w_.released.contains(c.mine)) {
            w_.judged.broken(checker::release_told_truly, "the release of ", brief(c.mine), " is said to be ",
                             status_name(e.code), ", and it was released");
        }
        return;
    }
    if (e.code == status::uncertain) ++w_.out.uncertain;
    if (e.kind != event_kind::lock) return;
    ++w_.out.grants;
    hold h;
    h.tag = c.tag;
    h.key = c.key;
    h.lock = std::move(e.lock);
    if (w_.when.now() - c.began > 10 * ms) ++w_.out.contended;
    holds_.push_back(std::move(h));
    const micros for_ = (dice_.one_in(4) ? dice_.between(200, 4'000) : dice_.between(1, 120)) * ms;
    w_.when.at(w_.when.now() + for_, *this, let_go, c.tag);
}

void lock_node::check_deadline(const call& c, const event& e) const {
    if (c.deadline == forever_ms || c.release) return;
    const micros due = std::max(time_->when(c.deadline), hindered_last_) + told_within;
    if (w_.when.now() <= due) return;
    w_.judged.broken(checker::deadline_kept, "n", number_, " waited for ", c.tag, " ", (w_.when.now() - due) / ms,
                     " ms too long, and was told ", status_name(e.code));
}

void lock_node::end_hold(std::uint64_t tag) {
    const auto it = std::ranges::find(holds_, tag, &hold::tag);
    if (it == holds_.end()) return;
    const hold h = std::move(*it);
    holds_.erase(it);
    if (dice_.one_in(10)) return; // freed
    if (!w_.calm && dice_.one_in(30)) {
        h.lock->leave();
        return;
    }
    call c;
    c.tag = w_.next_tag++;
    c.key = h.key;
    c.release = true;
    c.mine = h.lock->mine();
    c.began = w_.when.now();
    if (h.lock->release(-1, queue_, c.tag)) return;
    w_.told.line("call", "n", number_, " releases ", tag, " as ", c.tag);
    calls_.push_back(c);
}

void lock_node::pause(micros how_long) {
    paused_until_ = std::max(paused_until_, w_.when.now() + how_long);
    hindered_last_ = std::max(hindered_last_, paused_until_);
    w_.told.line("node", "n", number_, " stands still for ", how_long / ms, " ms");
}

void lock_node::stall(micros how_long) {
    stalled_until_ = std::max(stalled_until_, w_.when.now() + how_long);
    hindered_last_ = std::max(hindered_last_, stalled_until_);
    w_.told.line("node", "n", number_, " loop stalls for ", how_long / ms, " ms");
}

void lock_node::crash(bool bytes_lost, micros down_for) {
    if (!up()) return;
    w_.told.line("node", "n", number_, " DIES");
    link_->crash(bytes_lost);
    calls_.clear();
    queue_->set_doorbell(nullptr, nullptr, nullptr);
    old_.push_back(std::move(core_));
    old_handles_.push_back(std::move(handle_));
    old_queues_.push_back(queue_);
    for (hold& h : holds_) h.lock->leave(); // it is nobody's: the dead do not hold, and send nothing any more
    holds_.clear();
    paused_until_ = stalled_until_ = 0;
    w_.when.at(w_.when.now() + down_for, *this, start);
}

void lock_node::reopen() {
    if (!up() || w_.when.now() < paused_until_) return;
    w_.told.line("node", "n", number_, " closes its client and opens another");
    core_->begin_close(dice_.between(0, 300), nullptr, 0);
    closing_.push_back(core_);
    old_handles_.push_back(std::move(handle_));
    const auto queue = queue_;
    begin();
    queue_->set_doorbell(nullptr, nullptr, nullptr);
    queue_ = queue; // one queue for all its clients
    ring();
}

void lock_node::heal() {
    paused_until_ = std::min(paused_until_, w_.when.now());
    stalled_until_ = std::min(stalled_until_, w_.when.now());
    if (!up()) begin();
    ring();
    w_.when.at(w_.when.now(), *this, read);
}

int lock_node::holders(int key) const {
    return static_cast<int>(std::ranges::count_if(
        holds_, [&](const hold& h) { return h.key == key && h.lock->held() && !w_.deleted.contains(h.lock->mine()); }));
}

bool lock_node::holds(const token& t) const {
    return std::ranges::any_of(holds_, [&](const hold& h) { return h.lock->mine() == t && h.lock->held(); });
}

bool lock_node::quiet() const {
    if (!calls_.empty() || !holds_.empty()) return false;
    const auto idle = [](const std::shared_ptr<client_core>& c) {
        return c->locks.size() == 0 && c->turns.timers.size() == 0 && c->flights->live() == 0;
    };
    return (!up() || idle(core_)) && std::ranges::all_of(closing_, idle);
}

std::string lock_node::leftovers() const {
    std::string text = "n" + std::to_string(number_) + " calls " + std::to_string(calls_.size()) + " holds " +
                       std::to_string(holds_.size());
    const auto add = [&](const client_core& c) {
        text += " runs " + std::to_string(c.locks.size()) + " timers " + std::to_string(c.turns.timers.size()) +
                " flights " + std::to_string(c.flights->live());
    };
    for (const auto& c : closing_) add(*c);
    if (up()) add(*core_);
    return text;
}

stat_block lock_node::stats() const {
    stat_block sum;
    for (const auto& c : old_) sum.merge(c->stats());
    for (const auto& c : closing_) sum.merge(c->stats());
    if (core_) sum.merge(core_->stats());
    return sum;
}

void lock_node::bury() {
    queue_->set_doorbell(nullptr, nullptr, nullptr);
    calls_.clear();
    holds_.clear();
    if (core_) old_.push_back(std::move(core_));
    old_.insert(old_.end(), closing_.begin(), closing_.end());
    for (const auto& c : old_) {
        c->begin_close(0, nullptr, 0);
        c->turns.turn();
        c->turns.finish();
        c->locks.end();
    }
    std::vector<event> got;
    old_queues_.push_back(queue_);
    for (const auto& q : old_queues_) {
        while (q->drain(0, 64, got) == status::ok) got.clear();
    }
    handle_.reset();
    old_handles_.clear();
}

// ---- the world

options lock_options(std::uint64_t seed) {
    options o = options::drawn(seed);
    o.calm = false;
    o.nodes = 2 + static_cast<int>(seed % 4);
    o.settings.max_waiters = 4;
    return o;
}

lock_world::lock_world(std::uint64_t seed, lock_variant which, bool trace)
    : opt(lock_options(seed)),
      history(opt.keys),
      server(opt, when, told, judged, history),
      net{opt, when, told, server, faults,
          0,   0,    {},   false,  std::vector<std::uint64_t>(static_cast<std::size_t>(opt.nodes))},
      broken(which),
      calm(seed % 4 == 3),
      seen_(lock_names),
      dice_(seed * 4 + 2),
      storm_(seed * 4 + 3),
      ops_left_(120) {
    told.tell(trace);
    for (int k = 0; k < lock_names; ++k) {
        keys_.push_back(lock_key("stn", "l" + std::to_string(k)));
        server.hear(wake_channel("stn", keys_.back()));
    }
    server.onlooker = [this](const command& cmd, const std::string& before, std::int64_t left_ms) {
        judge_command(cmd, before, left_ms);
    };
    for (int n = 0; n < opt.nodes; ++n) nodes_.push_back(std::make_unique<lock_node>(*this, n, dice_.next()));
}

void lock_world::look() {
    for (int k = 0; k < lock_names; ++k) look_at(k);
}

void lock_world::look_at(int key) {
    int holders = 0;
    for (const auto& n : nodes_) holders += n->holders(key);
    if (holders > 1) judged.broken(checker::one_holder, holders, " hold l", key, " at one moment");
    seen_key& s = seen_[static_cast<std::size_t>(key)];
    const auto bytes = server.server().peek(key_of(key));
    const auto lock = bytes ? read_lock_value(*bytes) : std::nullopt;
    if (!s.holder.none() && (!lock || lock->holder != s.holder) && server.now() + 5 < s.until &&
        !deleted.contains(s.holder)) {
        released.insert(s.holder);
    }
    s.holder = {};
    if (!lock) return;
    const std::int64_t left = server.server().pttl(key_of(key)).value_or(-2);
    if (left == -1) judged.broken(checker::ttl_everywhere, key_of(key), " has no TTL");
    if (!deleted.contains(lock->holder)) {
        s.back_at = never;
    } else if (s.back_at == never) {
        s.back_at = when.now(); // one more copy of its acquire may have run; its answer ends that
    } else if (when.now() - s.back_at > 4 * opt.delay_high + 10 * ms &&
               std::ranges::any_of(nodes_, [&](const auto& n) { return n->holds(lock->holder); })) {
        judged.broken(checker::lost_is_final, "l", key, " is held again by ", brief(lock->holder),
                      ", which was deleted");
    }
    s.holder = lock->holder;
    s.until = server.now() + left;
    if (lock->fence == s.last_fence) return;
    if (lock->fence < s.last_fence) {
        judged.broken(checker::fences_increase, "l", key, " has fence ", lock->fence, " after ", s.last_fence);
    }
    s.last_fence = lock->fence;
}

void lock_world::step_until(micros until) {
    while (judged.found().empty() && when.step(until)) look();
    look();
}

void lock_world::act(std::uint32_t what, std::uint64_t) {
    switch (what) {
    case operate: {
        if (draining) return;
        const int n = static_cast<int>(dice_.between(1, 4));
        for (int i = 0; i < n; ++i, --ops_left_) {
            lock_node& at = *nodes_[dice_.below(nodes_.size())];
            at.acquire_one(static_cast<int>(dice_.below(lock_names)));
            if (dice_.one_in(8)) at.cancel_one();
        }
        if (ops_left_ > 0) when.at(when.now() + dice_.between(5, 300) * ms, *this, operate);
        return;
    }
    case strike:
        if (draining) return;
        do_fault();
        when.at(when.now() + storm_.between(opt.fault_gap / 5, opt.fault_gap), *this, strike);
        return;
    case meddling:
        if (draining) return;
        meddle();
        when.at(when.now() + storm_.between(50, 1'500) * ms, *this, meddling);
        return;
    case memory_back: server.server().refuse_writes(false); return;
    case publish_back: server.server().refuse_publish(false); return;
    default: return;
    }
}

// A release, a renewal and an acquire bear their token; a deletion, none.
void lock_world::judge_command(const command& cmd, const std::string& before, std::int64_t left_ms) {
    const auto lock = read_lock_value(before);
    if (!lock || (cmd.what == verb::script && cmd.args[0] == lock->holder.view())) return;
    const auto after = server.server().peek(cmd.key);
    if (after && *after == before && server.server().pttl(cmd.key).value_or(-2) == left_ms) return;
    judged.broken(checker::foreign_untouched, cmd.what == verb::del ? "del" : script_name(cmd.script),
                  " changed what is held by ", brief(lock->holder));
}

// Calm seeds only, where no old connection brings an acquire late: somebody deletes a lock, or the server forgets its scripts.
void lock_world::meddle() {
    if (storm_.one_in(2)) {
        for (std::size_t i = 0; i < net.scripts.size(); ++i) net.scripts.set(i, storm_.one_in(2));
        told.line("world", "SCRIPT FLUSH, and others have taught it some again");
        return;
    }
    const std::string& key = keys_[storm_.below(lock_names)];
    const auto bytes = server.server().peek(key);
    const auto lock = bytes ? read_lock_value(*bytes) : std::nullopt;
    if (!lock) return;
    deleted.insert(lock->holder);
    ++out.deleted;
    server.server().del(key);
    told.line("world", "somebody deletes the lock of ", brief(lock->holder));
}

// What the promise excludes is left out: nobody else deletes, flushes or writes, and the server's clock runs on.
void lock_world::do_fault() {
    constexpr fault all[] = {fault::delay,
                             fault::delay,
                             fault::drop,
                             fault::late_bytes,
                             fault::late_bytes,
                             fault::disconnect,
                             fault::disconnect,
                             fault::message_delayed,
                             fault::message_dropped,
                             fault::subscription_lost,
                             fault::outage,
                             fault::refusing,
                             fault::out_of_memory,
                             fault::publish_refused,
                             fault::pause,
                             fault::pause,
                             fault::stall,
                             fault::crash,
                             fault::reopen};
    const fault f = all[storm_.below(std::size(all))];
    lock_node& at = *nodes_[storm_.below(nodes_.size())];
    const micros now = when.now();
    if (!at.up()) return;
    told.line("FAULT", fault_names[static_cast<std::size_t>(f)]);
    switch (f) {
    case fault::delay:
        if (!at.wire().hold_up(storm_.between(20, 1'500) * ms, storm_.one_in(2))) return;
        break;
    case fault::drop:
        if (!at.wire().blackhole(storm_.between(50, 1'500) * ms)) return;
        break;
    case fault::late_bytes:
        at.wire().break_next({false, storm_.between(1, 3'000) * ms, storm_.one_in(2) ? 0 : storm_.between(1, 800) * ms,
                              storm_.one_in(2)});
        return;
    case fault::disconnect: at.wire().break_next({storm_.one_in(2), 0, 0, storm_.one_in(2)}); break;
    case fault::message_delayed: at.wire().hold_messages(now + storm_.between(50, 2'000) * ms); return;
    case fault::message_dropped: at.wire().drop_messages(static_cast<int>(storm_.between(1, 5))); return;
    case fault::subscription_lost:
        if (!at.wire().lose_subscription(storm_.between(50, 3'000) * ms)) return;
        break;
    case fault::outage: net.out_until = now + storm_.between(200, 3'000) * ms; break;
    case fault::refusing: {
        constexpr std::string_view texts[] = {"LOADING Redis is loading the dataset in memory",
                                              "BUSY Redis is busy running a script.", "CLUSTERDOWN The cluster is down",
                                              "READONLY You can't write against a read only replica.",
                                              "MISCONF Errors writing to the AOF file: No space left on device"};
        net.refusal = texts[storm_.below(std::size(texts))];
        net.refusing_reads = true;
        net.refusing_until = now + storm_.between(20, 2'000) * ms;
        break;
    }
    case fault::out_of_memory:
        server.server().refuse_writes(true);
        when.at(now + storm_.between(50, 1'000) * ms, *this, memory_back);
        break;
    case fault::publish_refused:
        server.server().refuse_publish(true);
        when.at(now + storm_.between(50, 2'000) * ms, *this, publish_back);
        break;
    case fault::pause: at.pause(storm_.between(20, storm_.one_in(4) ? 6'000 : 1'000) * ms); break;
    case fault::stall: at.stall(storm_.between(20, storm_.one_in(4) ? 4'000 : 800) * ms); break;
    case fault::crash: at.crash(storm_.one_in(2), storm_.between(5, 1'000) * ms); break;
    case fault::reopen: at.reopen(); break;
    default: return;
    }
    net.hit(f);
}

bool lock_world::quiet_within(micros limit) {
    const micros until = when.now() + limit;
    while (when.now() < until && judged.found().empty()) {
        step_until(when.now() + 50 * ms);
        if (std::ranges::all_of(nodes_, [](const auto& n) { return n->quiet(); })) return true;
    }
    return false;
}

void lock_world::look_for_orphans() {
    for (const auto& n : nodes_) n->acquire_one(static_cast<int>(dice_.below(lock_names)));
    net.scripts.reset(static_cast<std::size_t>(script_id::acquire));
    step_until(when.now() + dice_.between(0, 2 * opt.delay_high));
    for (const auto& n : nodes_) n->give_up_all();
    step_until(when.now() + second / 2);
    for (const auto& n : nodes_) n->give_up_all(); // granted just before
    step_until(when.now() + second / 2);
    for (const std::string& key : keys_) {
        if (server.server().peek(key)) judged.broken(checker::no_orphan, key, " is held, and nobody knows of it");
    }
}

outcome_of_locks lock_world::run() {
    when.at(0, *this, operate);
    when.at(opt.fault_gap / 2, *this, calm ? meddling : strike);
    while (ops_left_ > 0 && judged.found().empty()) step_until(when.now() + second);
    if (judged.found().empty() && !calm) step_until(when.now() + second);
    draining = true;
    net.out_until = net.refusing_until = 0;
    server.server().refuse_writes(false);
    server.server().refuse_publish(false);
    told.line("world", "no more calls, no more faults");
    for (const auto& n : nodes_) n->heal();
    if (calm) look_for_orphans();
    if (!quiet_within(60 * second) && judged.found().empty()) {
        for (const auto& n : nodes_) {
            if (!n->quiet()) judged.broken(checker::nothing_left_over, n->leftovers());
        }
    }
    if (judged.found().empty()) {
        step_until(when.now() + (longest_ttl + 4'000) * ms); // late bytes, and what they take
        for (const std::string& key : keys_) {
            if (server.server().peek(key)) judged.broken(checker::nothing_left_over, key, " is still there");
        }
    }
    for (const auto& n : nodes_) out.stats.merge(n->stats());
    for (const auto& n : nodes_) n->bury();
    out.found = judged.found();
    out.faults = faults;
    out.taught = net.taught;
    out.steps = when.steps();
    out.digest = told.digest();
    return out;
}

} // namespace

outcome_of_locks run_locks(std::uint64_t seed, lock_variant broken, bool trace) {
    lock_world w(seed, broken, trace);
    return w.run();
}

} // namespace stn::sim
