// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/fill_machine.hpp"
#include "protocol/keys.hpp"
#include "protocol/wake.hpp"
#include "support/chance.hpp"
#include "support/pass_time.hpp"

// One fill machine without an engine: inputs go in, and what it says comes out as text, so that a row
// of its transition table is a line of a test:
//
//     fill_bench b;
//     CHECK(b.start() == "get");
//     CHECK(b.nil() == "need_slot");
//     CHECK(b.slot() == "lease");
//     CHECK(b.granted() == "offer");
//
// A command is named by its verb or script (abandon with its marker: "abandon:error"); counted stats are
// left out of the text and kept in `counted`.
namespace stn::test {

class fill_bench {
  public:
    explicit fill_bench(fill_mode mode = fill_mode::normal, fill_policy p = {.ttl_ms = 60'000, .jitter = 0},
                        token generation = {}, std::int64_t expected_load_ms = 0, std::vector<token> inherited = {})
        : machine(setup(mode, p, generation, expected_load_ms, std::move(inherited))) {
        chance.always = 0.5;
    }

    // ---- inputs; each gives what the machine then says
    std::string start() { return feed(input(fill_input::kind::start)); }
    std::string feed(fill_input in) {
        machine.handle(std::move(in), now, server_now(), chance);
        return said();
    }
    std::string feed(fill_input::kind what) { return feed(input(what)); }
    // The reply of the command sent last.
    std::string reply_with(reply r) { return reply_to(last_id, delivery::answered, std::move(r)); }
    std::string lost() { return reply_to(last_id, delivery::lost, {}); }
    std::string not_sent() { return reply_to(last_id, delivery::not_sent, {}); }
    std::string reply_to(std::uint32_t id, delivery how, reply r) {
        fill_input in = input(fill_input::kind::reply);
        in.id = id;
        in.how = how;
        in.answer = std::move(r);
        return feed(std::move(in));
    }
    std::string nil() { return reply_with({}); }
    std::string holds(const envelope& e) { return reply_with(reply::of_bulk(encode(e))); }
    std::string said_no(std::string text = "ERR no") { return reply_with(reply::of_error(std::move(text))); }
    std::string number(std::int64_t n) { return reply_with(reply::of_integer(n)); }
    std::string slot() { return feed(fill_input::kind::slot); }
    std::string granted() { return lease_reply(1, 0, {}); }
    std::string held(const token& theirs, std::int64_t pttl_ms = 10'000, std::uint32_t delta_ms = 0) {
        return lease_reply(2, pttl_ms, encode(placeholder(theirs, delta_ms)));
    }
    std::string lease_says(const envelope& e) { return lease_reply(3, 60'000, encode(e)); }
    std::string lease_reply(std::int64_t a, std::int64_t b, std::string bytes) {
        return reply_with(
            reply::of_array({reply::of_integer(a), reply::of_integer(b), reply::of_bulk(std::move(bytes))}));
    }
    std::string generation_reply(bool granted, std::int64_t pttl_ms) {
        return reply_with(reply::of_array({reply::of_integer(granted ? 1 : 0), reply::of_integer(pttl_ms)}));
    }
    std::string read() {
        fill_input in = input(fill_input::kind::read);
        in.at = now;
        return feed(std::move(in));
    }
    std::string loaded(std::string_view value) {
        auto o = std::make_shared<outcome>();
        o->storage = value;
        o->payload = o->storage;
        o->codec = policy->codec;
        o->delta_ms = 300;
        return loaded(std::move(o));
    }
    std::string failed(std::string_view text = "no database", status code = status::load_failed) {
        return loaded(outcome_error(fail(code, std::string(text))));
    }
    std::string loaded(outcome_ptr o) {
        fill_input in = input(fill_input::kind::loaded);
        in.load = std::move(o);
        return feed(std::move(in));
    }
    std::string message(wake_kind kind, const token& replaced, const envelope* e = nullptr) {
        message_bytes_ = e != nullptr ? encode(*e) : std::string();
        fill_input in = input(fill_input::kind::message);
        in.news = {kind, replaced, names->store_key, message_bytes_};
        return feed(std::move(in));
    }
    std::string takeover(const token& which) {
        fill_input in = input(fill_input::kind::takeover);
        in.which = which;
        return feed(std::move(in));
    }
    // Time passes; the timers it sets are told, one after the other.
    std::string pass(std::int64_t ms) {
        return pass_time(machine, now, ms, [&] { return feed(fill_input::kind::timer); });
    }
    // Right to the next timer.
    std::string next_timer() { return pass(machine.wake_at() - now); }
    [[nodiscard]] std::int64_t wakes_in() const { return machine.wake_at() - now; }

    // To the point where the lease has been offered, and read.
    void lead() {
        start();
        nil();
        slot();
        granted();
        read();
    }

    // ---- what it may find
    [[nodiscard]] envelope value(std::string_view payload, const token& generation = token_of("g1")) const {
        envelope e;
        e.codec = policy->codec;
        e.generation = generation;
        e.created = server_now() - 1'000;
        e.delta_ms = 300;
        e.payload = payload;
        return e;
    }
    [[nodiscard]] envelope of_kind(entry_kind kind, std::string_view payload = {}) const {
        envelope e = value(payload, token_of("m1"));
        e.kind = kind;
        e.codec = 0;
        return e;
    }
    [[nodiscard]] envelope placeholder(const token& theirs, std::uint32_t delta_ms = 0) const {
        envelope e = of_kind(entry_kind::placeholder);
        e.generation = theirs;
        e.created = server_now();
        e.delta_ms = delta_ms;
        return e;
    }
    [[nodiscard]] server_ms server_now() const { return 1'000'000 + now; }

    // ---- what it said
    std::string said() {
        std::string text;
        last.clear();
        fill_output o;
        while (machine.poll(o)) {
            if (o.what == fill_output::kind::note) {
                ++counted[o.counter];
                continue;
            }
            if (o.what == fill_output::kind::send) {
                last_id = o.id;
                last_cmd = o.cmd;
                last_gated = o.gated;
            }
            if (o.what == fill_output::kind::answer) answered = o.result;
            if (!text.empty()) text += ' ';
            text += name(o);
            last.push_back(std::move(o));
        }
        return text;
    }
    [[nodiscard]] int count(stat s) const {
        const auto it = counted.find(s);
        return it == counted.end() ? 0 : it->second;
    }
    // The envelope in argument `n` of the command sent last.
    [[nodiscard]] envelope sent_envelope(std::size_t n) const {
        envelope e;
        if (last_cmd.args.size() <= n || decode(last_cmd.args[n], e) != reading::ours) e.kind = entry_kind::placeholder;
        return e;
    }
    [[nodiscard]] token sent_token() const { return sent_envelope(0).generation; } // of a lease
    // The tokens that a lease names as earlier, or an abandon as its own.
    [[nodiscard]] std::vector<token> named_tokens() const {
        std::size_t from = 6;
        if (last_cmd.script == script_id::lease) from = 3 + static_cast<std::size_t>(std::stoi(last_cmd.args[2]));
        std::vector<token> out;
        for (std::size_t i = from; i < last_cmd.args.size(); ++i) out.push_back(token_from(last_cmd.args[i]));
        return out;
    }
    [[nodiscard]] std::vector<token> rejected_tokens() const {
        std::vector<token> out;
        const auto n = static_cast<std::size_t>(std::stoi(last_cmd.args[2]));
        for (std::size_t i = 0; i < n; ++i) out.push_back(token_from(last_cmd.args[3 + i]));
        return out;
    }

    std::shared_ptr<const fill_policy> policy;
    std::shared_ptr<const key_names> names;
    fill_machine machine;
    test_draws chance;
    mono_ms now = 5'000;

    std::vector<fill_output> last;
    command last_cmd;
    bool last_gated = false;
    std::uint32_t last_id = 0;
    outcome_ptr answered;
    std::map<stat, int> counted;

  private:
    fill_setup setup(fill_mode mode, const fill_policy& p, const token& generation, std::int64_t expected,
                     std::vector<token> inherited) {
        policy = std::make_shared<const fill_policy>(p);
        auto n = std::make_shared<key_names>();
        n->prefix = "stn";
        n->cache = "c";
        n->key = "k";
        n->store_key = value_key(n->prefix, n->cache, n->key);
        names = n;
        fill_setup s;
        s.mode = mode;
        s.policy = policy;
        s.names = names;
        s.generation = generation;
        s.expected_load_ms = expected;
        s.inherited = std::move(inherited);
        return s;
    }

    static fill_input input(fill_input::kind what) {
        fill_input in;
        in.what = what;
        return in;
    }

    static std::string name(const fill_output& o) {
        using k = fill_output::kind;
        switch (o.what) {
        case k::send:
            if (o.cmd.what == verb::get) return "get";
            if (o.cmd.what == verb::del) return "del";
            if (o.cmd.what != verb::script) return "other";
            if (o.cmd.script == script_id::abandon) return "abandon:" + o.cmd.args[0];
            return std::string(script_name(o.cmd.script));
        case k::answer:
            return o.result->code == status::ok ? "answer:" + std::string(o.result->payload)
                                                : "answer:" + std::string(status_name(o.result->code));
        case k::offer: return o.leased ? "offer" : "offer:alone";
        case k::check: return "check";
        case k::need_slot: return o.store_down ? "need_slot:down" : "need_slot";
        case k::drop_slot: return "drop_slot";
        case k::overdue_slot: return "overdue_slot";
        case k::waiting: return "waiting";
        case k::hold: return "hold";
        case k::unlist: return "unlist";
        case k::revoke: return "revoke:" + std::string(status_name(o.why));
        case k::ask_refresh: return "ask_refresh";
        case k::asked: return "asked:" + std::to_string(o.span_ms);
        case k::spare: return "spare";
        case k::filled: return "filled:" + std::string(status_name(o.why));
        case k::reject_twice: return "reject_twice";
        case k::note: return "note";
        case k::done: return "done";
        }
        return "?";
    }

    std::string message_bytes_;
};

} // namespace stn::test
