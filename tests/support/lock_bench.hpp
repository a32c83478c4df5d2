// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/lock_machine.hpp"
#include "support/chance.hpp"
#include "support/pass_time.hpp"

// One lock machine without an engine, as fill_bench is for a fill machine: inputs go in, and what it says comes
// out as text:
//
//     lock_bench b;
//     CHECK(b.start() == "acquire");
//     CHECK(b.granted(7) == "granted:7");
namespace stn::test {

class lock_bench {
  public:
    static lock_setup usual() {
        lock_setup s;
        s.key = "stn:k:{report}";
        s.channel = "stn:w:1";
        s.name = "report";
        s.label = "me";
        s.ttl_ms = 30'000;
        return s;
    }
    explicit lock_bench(lock_setup s = usual()) : machine(std::move(s)) { chance.always = 0.5; }

    // ---- inputs; each gives what the machine then says
    std::string start(std::int64_t wait_ms = 10'000) {
        lock_input in = input(lock_input::kind::start);
        in.until = now + wait_ms;
        return feed(std::move(in));
    }
    std::string try_it() {
        lock_input in = input(lock_input::kind::start);
        in.until = now + 500;
        in.once = true;
        return feed(std::move(in));
    }
    std::string feed(lock_input in) {
        machine.handle(std::move(in), now, chance);
        return said();
    }
    std::string feed(lock_input::kind what) { return feed(input(what)); }
    std::string release(std::int64_t within_ms = 1'000) {
        lock_input in = input(lock_input::kind::release);
        in.until = now + within_ms;
        return feed(std::move(in));
    }
    std::string renew(std::int64_t within_ms = 1'000) {
        lock_input in = input(lock_input::kind::renew);
        in.until = now + within_ms;
        return feed(std::move(in));
    }
    std::string give_up(status why = status::cancelled) {
        lock_input in = input(lock_input::kind::give_up);
        in.why = why;
        return feed(std::move(in));
    }
    // It was released; `turn`: what is believed of the queue.
    std::string message(double turn = 0) {
        lock_input in = input(lock_input::kind::message);
        in.turn = turn;
        return feed(std::move(in));
    }
    // The reply of the command sent last, or of an earlier one.
    std::string reply_to(std::uint32_t id, delivery how, reply r) {
        lock_input in = input(lock_input::kind::reply);
        in.id = id;
        in.how = how;
        in.answer = std::move(r);
        return feed(std::move(in));
    }
    std::string reply_with(reply r) { return reply_to(last_id, delivery::answered, std::move(r)); }
    std::string lost() { return reply_to(last_id, delivery::lost, {}); }
    std::string not_sent() { return reply_to(last_id, delivery::not_sent, {}); }
    std::string said_no(std::string text) { return reply_with(reply::of_error(std::move(text))); }
    std::string number(std::int64_t n) { return reply_with(reply::of_integer(n)); }
    static reply pair(std::int64_t a, std::int64_t b) {
        return reply::of_array({reply::of_integer(a), reply::of_integer(b)});
    }
    std::string granted(std::int64_t fence = 7) { return reply_with(pair(1, fence)); }
    std::string busy(std::int64_t pttl_ms = 20'000) { return reply_with(pair(0, pttl_ms)); }
    // Time passes; the timers it sets are told, one after the other.
    std::string pass(std::int64_t ms) {
        return pass_time(machine, now, ms, [&] { return feed(lock_input::kind::timer); });
    }
    std::string next_timer() { return pass(machine.wake_at() - now); }
    [[nodiscard]] std::int64_t wakes_in() const { return machine.wake_at() - now; }
    // The process stands still: no timer is told meanwhile.
    void sleep(std::int64_t ms) { now += ms; }
    [[nodiscard]] bool held() const { return now < machine.safe_until(); }

    void hold() {
        start();
        granted();
    }

    // ---- what it said
    std::string said() {
        std::string text;
        lock_output o;
        while (machine.poll(o)) {
            if (o.what == lock_output::kind::note) {
                ++counted[o.counter];
                continue;
            }
            if (o.what == lock_output::kind::kept) continue;
            if (o.what == lock_output::kind::send) {
                last_id = o.id;
                last_cmd = o.cmd;
                tokens.push_back(o.cmd.args.at(0));
            }
            if (o.what == lock_output::kind::failed || o.what == lock_output::kind::released) last_why = o.why;
            if (!text.empty()) text += ' ';
            text += name(o);
        }
        return text;
    }
    [[nodiscard]] bool one_token() const {
        return std::ranges::all_of(tokens, [&](const std::string& t) { return t == tokens.front(); });
    }

    lock_machine machine;
    test_draws chance;
    mono_ms now = 5'000;
    command last_cmd;
    std::uint32_t last_id = 0;
    error last_why;
    std::vector<std::string> tokens; // of every command sent
    std::map<stat, int> counted;

  private:
    static lock_input input(lock_input::kind what) {
        lock_input in;
        in.what = what;
        return in;
    }
    static std::string name(const lock_output& o) {
        using k = lock_output::kind;
        constexpr std::string_view losses[] = {"none", "expired", "deleted", "stolen", "max_hold", "closed"};
        const std::string code(status_name(o.why.code));
        switch (o.what) {
        case k::send: return std::string(script_name(o.cmd.script));
        case k::granted: return "granted:" + std::to_string(o.fence);
        case k::kept: return "kept";
        case k::failed: return "failed:" + code + (o.no_ttl ? ":no_ttl" : "");
        case k::lost: return "lost:" + std::string(losses[static_cast<std::size_t>(o.loss)]);
        case k::renewed: return "renewed:" + code;
        case k::released: return "released:" + code;
        case k::no_ttl: return "no_ttl";
        case k::note: return "note";
        case k::done: return "done";
        }
        return "?";
    }
};

} // namespace stn::test
