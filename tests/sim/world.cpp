// SPDX-License-Identifier: MIT
#include "world.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "node.hpp"

namespace stn::sim {

namespace {

// A fleet, its server, what it does, and what goes wrong.
class world final : public actor {
  public:
    world(const options& o, bool trace);

    outcome_of_seed run();
    void act(std::uint32_t what, std::uint64_t with) override;

  private:
    enum : std::uint32_t { operate, strike, look, memory_back, publish_back };
    void do_ops();
    void do_fault();
    void apply(fault f);
    bool apply_to_link(fault f, node& at);
    void apply_to_key(fault f);
    void refuse(micros now);
    node& some_node() { return *nodes_[dice_.below(nodes_.size())]; }
    void drain();
    void close_all();
    bool run_until_quiet(micros limit);

    const options opt_;
    agenda when_;
    tale told_{when_};
    judge judged_{when_, told_};
    book history_;
    fault_counts faults_{};
    coverage seen_;
    store server_;
    network net_;
    std::map<token, std::uint64_t> loaders_;
    world_parts parts_;
    dice dice_;
    dice storm_;
    std::vector<std::unique_ptr<node>> nodes_;
    int ops_left_;
};

world::world(const options& o, bool trace)
    : opt_(o),
      history_(o.keys),
      server_(opt_, when_, told_, judged_, history_),
      net_{opt_, when_, told_, server_, faults_,
           0,    0,     {},    false,   std::vector<std::uint64_t>(static_cast<std::size_t>(o.nodes)),
           1},
      parts_{opt_, when_, told_, judged_, history_, server_, net_, seen_, loaders_},
      dice_(o.seed * 4 + 2),
      storm_(o.seed * 4 + 3),
      ops_left_(o.ops) {
    told_.tell(trace);
    for (int n = 0; n < o.nodes; ++n) nodes_.push_back(std::make_unique<node>(parts_, n, dice_.next()));
}

outcome_of_seed world::run() {
    when_.at(0, *this, operate);
    when_.at(opt_.fault_gap / 2, *this, strike);
    when_.at(500 * ms, *this, look);
    while (ops_left_ > 0 && judged_.found().empty()) when_.step(when_.now() + second);
    const micros rest = when_.now() + second;
    while (judged_.found().empty() && when_.step(rest)) {
    }
    if (judged_.found().empty()) drain();
    if (judged_.found().empty()) close_all();

    outcome_of_seed out;
    for (std::size_t i = 0; i < history_.ops.size(); ++i) {
        const op_entry& op = history_.ops[i];
        if (op.answers != 1 && !op.excused && judged_.found().empty()) {
            judged_.broken(checker::answered_exactly_once, op_name(op.kind), " op ", i + 1, " of n", op.node,
                           " was answered ", op.answers, " times");
        }
    }
    for (const auto& n : nodes_) {
        out.stats.merge(n->stats());
        n->bury();
    }
    const auto loads =
        static_cast<std::uint64_t>(std::ranges::count_if(history_.loads, [](const load_entry& l) { return !l.put; }));
    if (out.stats[stat::loads] != loads && judged_.found().empty()) {
        judged_.broken(checker::stats_agree, loads, " loads were run, the library counts ", out.stats[stat::loads]);
    }
    if (judged_.found().empty()) server_.last_look();
    out.found = judged_.found();
    out.faults = faults_;
    out.seen = seen_;
    out.fills_refused = server_.fills_refused();
    out.ops = history_.ops.size();
    out.loads = history_.loads.size();
    out.steps = when_.steps();
    out.digest = told_.digest();
    out.virtual_ms = when_.now() / ms;
    return out;
}

void world::act(std::uint32_t what, std::uint64_t) {
    switch (what) {
    case operate:
        if (ops_left_ > 0) do_ops();
        break;
    case strike:
        if (!parts_.draining) do_fault();
        break;
    case look:
        if (seen_.inputs > coverage::most_inputs) {
            judged_.broken(checker::comes_to_an_end, "the machines have had ", seen_.inputs, " inputs");
        }
        for (const auto& n : nodes_) n->check_looks();
        when_.at(when_.now() + 500 * ms, *this, look);
        break;
    case memory_back: server_.server().refuse_writes(false); break;
    case publish_back: server_.server().refuse_publish(false); break;
    default: break;
    }
}

// ---- what the fleet does

void world::do_ops() {
    const int n = std::min(ops_left_, static_cast<int>(dice_.between(1, opt_.burst)));
    const auto keys = static_cast<std::size_t>(opt_.keys);
    const auto key = static_cast<int>(dice_.below(keys));
    for (int i = 0; i < n; ++i) {
        const int k = dice_.one_in(2) ? key : static_cast<int>(dice_.below(keys));
        const auto what = static_cast<op_kind>(dice_.weighed(opt_.ops_weights));
        if (some_node().call(what, k)) --ops_left_;
        if (dice_.one_in(opt_.cancel_one_in)) some_node().cancel_one();
    }
    const micros gap = opt_.span * n / opt_.ops;
    when_.at(when_.now() + dice_.between(gap / 5, gap * 9 / 5), *this, operate);
}

// ---- what goes wrong

void world::do_fault() {
    apply(static_cast<fault>(storm_.weighed(opt_.fault_weights)));
    when_.at(when_.now() + storm_.between(opt_.fault_gap / 5, opt_.fault_gap * 9 / 5), *this, strike);
}

bool world::apply_to_link(fault f, node& at) {
    const micros now = when_.now();
    link& wire = at.current()->wire();
    switch (f) {
    case fault::delay: return wire.hold_up(storm_.between(20, 1'500) * ms, storm_.one_in(2));
    case fault::drop: return wire.blackhole(storm_.between(50, 1'500) * ms);
    case fault::late_bytes:
        wire.break_next({false, storm_.between(1, storm_.one_in(2) ? 100 : 3'000) * ms,
                         storm_.one_in(2) ? 0 : storm_.between(1, 800) * ms, storm_.one_in(2)});
        return true;
    case fault::disconnect: wire.break_next({storm_.one_in(2), 0, 0, storm_.one_in(2)}); return true;
    case fault::message_delayed:
        wire.hold_messages(now + storm_.between(50, 2'000) * ms);
        return false; // counted when it has one
    case fault::message_dropped: wire.drop_messages(static_cast<int>(storm_.between(1, 5))); return false;
    case fault::subscription_lost: return wire.lose_subscription(storm_.between(50, 3'000) * ms);
    default: return false;
    }
}

void world::apply_to_key(fault f) {
    const int key = static_cast<int>(storm_.below(static_cast<std::size_t>(opt_.keys)));
    bool done = true;
    switch (f) {
    case fault::foreign_delete: done = server_.delete_key(key); break;
    case fault::foreign_bytes: server_.write_bytes(key, storm_); break;
    case fault::foreign_type: server_.write_list(key, storm_); break;
    case fault::persisted: done = server_.persist(key); break;
    case fault::newer_format: server_.write_newer(key, storm_); break;
    default: break;
    }
    if (!done) return;
    net_.hit(f);
    told_.line("FAULT", fault_names[static_cast<std::size_t>(f)], " key ", key);
}

void world::refuse(micros now) {
    struct what {
        std::string_view text;
        bool reads;
    };
    static constexpr what all[] = {
        {"LOADING Redis is loading the dataset in memory", true},
        {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", true},
        {"CLUSTERDOWN The cluster is down", true},
        {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", true},
        {"NOAUTH Authentication required.", true},
        {"READONLY You can't write against a read only replica.", false},
        {"MISCONF Errors writing to the AOF file: No space left on device", false},
        {"NOREPLICAS Not enough good replicas to write.", false},
        {"NOPERM this user has no permissions to run the 'evalsha' command", false},
    };
    const what& drawn = all[storm_.below(std::size(all))];
    net_.refusal = drawn.text;
    net_.refusing_reads = drawn.reads;
    net_.refusing_until = now + storm_.between(20, storm_.one_in(3) ? 3'000 : 500) * ms;
    told_.line("FAULT", "refusing for ", (net_.refusing_until - now) / ms, " ms: ", drawn.text);
}

void world::apply(fault f) {
    const micros now = when_.now();
    node& at = *nodes_[storm_.below(nodes_.size())];
    const auto say = [&](const auto&... what) {
        told_.line("FAULT", fault_names[static_cast<std::size_t>(f)], " ", what...);
    };
    switch (f) {
    case fault::delay:
    case fault::drop:
    case fault::late_bytes:
    case fault::disconnect:
    case fault::message_delayed:
    case fault::message_dropped:
    case fault::subscription_lost:
        if (!at.up()) return;
        say(at.name());
        if (apply_to_link(f, at) && f != fault::late_bytes && f != fault::disconnect) net_.hit(f);
        return;
    case fault::foreign_delete:
    case fault::foreign_bytes:
    case fault::foreign_type:
    case fault::persisted:
    case fault::newer_format: apply_to_key(f); return;
    case fault::outage:
        net_.out_until = now + storm_.between(200, 3'000) * ms;
        if (storm_.one_in(2)) {
            for (const auto& n : nodes_) {
                if (n->up()) n->current()->wire().break_now({storm_.one_in(2), 0, 0});
            }
        }
        say("for ", (net_.out_until - now) / ms, " ms");
        if (storm_.one_in(5)) { // it was a restart, and it remembers nothing
            server_.flush();
            net_.hit(fault::flushed);
        }
        break;
    case fault::clock_jump: {
        const std::int64_t by = storm_.between(50, storm_.one_in(2) ? 1'000 : 15'000);
        server_.leap(by);
        say(by, " ms");
        break;
    }
    case fault::flushed:
        server_.flush();
        say("");
        break;
    case fault::out_of_memory:
        server_.server().refuse_writes(true);
        when_.at(now + storm_.between(50, 2'000) * ms, *this, memory_back);
        say("");
        break;
    case fault::publish_refused:
        server_.server().refuse_publish(true);
        when_.at(now + storm_.between(50, 2'000) * ms, *this, publish_back);
        say("");
        break;
    case fault::refusing: refuse(now); break;
    case fault::pause:
        if (!at.up()) return;
        at.pause(storm_.between(20, storm_.one_in(4) ? 12'000 : 2'000) * ms);
        break;
    case fault::stall:
        if (!at.up()) return;
        at.stall(storm_.between(20, storm_.one_in(4) ? 4'000 : 800) * ms);
        break;
    case fault::crash: at.crash(storm_.one_in(2), storm_.between(5, 1'000) * ms); return;
    case fault::reopen: at.reopen(); return;
    case fault::queue_closed: at.close_queue(); return;
    default: return;
    }
    net_.hit(f);
}

// ---- the end

bool world::run_until_quiet(micros limit) {
    const micros until = when_.now() + limit;
    while (when_.now() < until && judged_.found().empty()) {
        const micros slice = when_.now() + 50 * ms;
        while (when_.step(slice)) {
        }
        if (std::ranges::all_of(nodes_, [](const auto& n) { return n->quiet(); })) return true;
    }
    return false;
}

// No more calls and no more faults: everything that runs comes to its end.
void world::drain() {
    parts_.draining = true;
    net_.out_until = net_.refusing_until = 0;
    server_.server().refuse_writes(false);
    server_.server().refuse_publish(false);
    told_.line("world", "no more calls, no more faults");
    for (const auto& n : nodes_) n->heal();
    if (run_until_quiet(90 * second) || !judged_.found().empty()) return;
    for (const auto& n : nodes_) {
        if (!n->quiet()) judged_.broken(checker::nothing_left_over, n->name(), " still has:", n->leftovers());
    }
}

void world::close_all() {
    for (const auto& n : nodes_) n->close_for_good();
    if (run_until_quiet(5 * second) || !judged_.found().empty()) return;
    for (const auto& n : nodes_) {
        if (!n->quiet()) judged_.broken(checker::nothing_left_over, n->name(), " closed, has:", n->leftovers());
    }
}

} // namespace

outcome_of_seed run_seed(const options& o, bool trace) {
    world w(o, trace);
    return w.run();
}

} // namespace stn::sim
