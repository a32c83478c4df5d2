// SPDX-License-Identifier: MIT
//
// Rows `offered`, `loading`, `overdue` and `settling` of the table in fill_machine.hpp.
#include <doctest/doctest.h>

#include "support/machine.hpp"

using namespace stn;
using test::fill_bench;
using test::token_of;
using state = fill_machine::state;

namespace {

token lead(fill_bench& b) {
    b.start();
    b.nil();
    b.slot();
    const token mine = b.sent_token();
    b.granted();
    return mine;
}

fill_policy policy(std::int64_t max_load_ms) {
    fill_policy p;
    p.ttl_ms = 60'000;
    p.jitter = 0;
    p.max_load_ms = max_load_ms;
    return p;
}

} // namespace

// ---- offered

TEST_CASE("after a second it is asked whether the offer was read") {
    fill_bench b;
    lead(b);
    CHECK(b.pass(999).empty());
    CHECK(b.pass(1) == "check");
    CHECK(b.read().empty());
    CHECK(b.machine.at() == state::loading);
}

TEST_CASE("an offer that goes to another queue is checked again after a second") {
    fill_bench b;
    lead(b);
    b.pass(1'000);
    CHECK(b.feed(fill_input::kind::offered).empty());
    CHECK(b.machine.at() == state::offered);
    CHECK(b.pass(999).empty());
    CHECK(b.pass(1) == "check");
}

TEST_CASE("an offer that nobody takes is abandoned, and the flight looks again") {
    fill_bench b;
    const token mine = lead(b);
    b.pass(1'000);
    CHECK(b.feed(fill_input::kind::no_taker) == "abandon:none spare drop_slot get");
    CHECK(b.machine.at() == state::looking);
    b.nil();
    CHECK(b.slot() == "lease");
    CHECK(b.sent_token() != mine);
}

TEST_CASE("the lease is renewed from the grant on, also before the host has read the offer") {
    fill_bench b(fill_mode::normal, {.ttl_ms = 60'000, .lease_ms = 1'200});
    lead(b);
    CHECK(b.pass(400) == "extend");
}

TEST_CASE("a lease freed without an answer is offered to the next caller under the same token") {
    fill_bench b;
    const token mine = lead(b);
    b.read();
    CHECK(b.feed(fill_input::kind::freed) == "offer");
    CHECK(b.last[0].which == mine);
    CHECK(b.machine.at() == state::offered);
    CHECK(b.pass(1'000) == "check");
}

TEST_CASE("a freed lease that has run out meanwhile is asked for again, the old token as earlier token") {
    fill_bench b;
    const token mine = lead(b);
    b.read();
    b.now += 9'898; // the process slept: no renewal has run
    CHECK(b.feed(fill_input::kind::freed) == "lease");
    CHECK(b.named_tokens() == std::vector{mine});
    CHECK(b.machine.at() == state::leasing);
    CHECK(b.granted() == "offer");
}

TEST_CASE("when nobody waits, a lease that was not taken is abandoned") {
    fill_bench b;
    const token mine = lead(b);
    CHECK(b.feed(fill_input::kind::nobody) == "drop_slot abandon:none spare done");
    CHECK(b.named_tokens() == std::vector{mine});
}

TEST_CASE("a host may answer before it is known that it has read the offer") {
    fill_bench b;
    const token mine = lead(b);
    CHECK(b.loaded("red") == "drop_slot fill");
    CHECK(token_from(b.last_cmd.args[0]) == mine);
}

// ---- loading

TEST_CASE("a load is not given up because nobody waits: its value is for everybody") {
    fill_bench b;
    lead(b);
    b.read();
    CHECK(b.feed(fill_input::kind::nobody).empty());
    CHECK(b.machine.at() == state::loading);
    CHECK(b.loaded("red") == "drop_slot fill");
}

TEST_CASE("renewal goes on every third of the lease, counted from when it was sent") {
    fill_bench b(fill_mode::normal, {.ttl_ms = 60'000, .lease_ms = 3'000});
    lead(b);
    b.read();
    for (int i = 0; i < 5; ++i) {
        CHECK(b.wakes_in() <= 1'000);
        std::string said;
        while (said.find("extend") == std::string::npos) said = b.next_timer();
        b.now += 100; // the reply takes its time
        CHECK(b.number(1).empty());
        CHECK(b.wakes_in() <= 900);
    }
    CHECK(b.count(stat::renewals) == 5);
}

TEST_CASE("a renewal whose reply is lost is tried again after a twelfth of the lease") {
    fill_bench b(fill_mode::normal, {.ttl_ms = 60'000, .lease_ms = 12'000});
    lead(b);
    b.read();
    b.pass(1'000);
    CHECK(b.next_timer() == "extend"); // at 4,000
    CHECK(b.lost().empty());
    CHECK(b.wakes_in() == 1'000);
    CHECK(b.next_timer() == "extend");
    CHECK(b.pass(250).empty()); // silent: the deadline of the command
    CHECK(b.wakes_in() == 1'000);
    CHECK(b.count(stat::commands_lost) == 1);
    CHECK(b.next_timer() == "extend");
    CHECK(b.number(1).empty());
    CHECK(b.wakes_in() == 4'000);
}

TEST_CASE("a refused renewal is unknown, not lost") {
    fill_bench b(fill_mode::normal, {.ttl_ms = 60'000, .lease_ms = 12'000});
    lead(b);
    b.read();
    b.pass(1'000);
    b.next_timer();
    for (const char* text : {"READONLY no", "LOADING wait", "CLUSTERDOWN no"}) {
        CHECK(b.said_no(text).empty());
        CHECK(b.next_timer() == "extend");
    }
    CHECK(b.machine.at() == state::loading);
    CHECK(b.count(stat::leases_lost) == 0);
}

TEST_CASE("renewals are never stopped by the breaker") {
    fill_bench b(fill_mode::normal, {.ttl_ms = 60'000, .lease_ms = 3'000});
    lead(b);
    b.read();
    b.pass(1'000);
    CHECK(b.last_cmd.script == script_id::extend);
    CHECK(!b.last_gated);
}

TEST_CASE("a lease that is gone detaches the flight: its value is for its callers only") {
    fill_bench b(fill_mode::normal, {.ttl_ms = 60'000, .lease_ms = 3'000});
    lead(b);
    b.read();
    b.pass(1'000);
    CHECK(b.number(0) == "unlist revoke:lost");
    CHECK(b.machine.at() == state::loading);
    CHECK(b.count(stat::leases_lost) == 1);
    CHECK(b.pass(10'000).empty()); // renewed no more
    CHECK(b.loaded("red") == "drop_slot filled:lost done");
    CHECK(b.count(stat::fills_refused) == 1);
}

TEST_CASE("a lease that is gone and freed is asked for again by who is next") {
    fill_bench b(fill_mode::normal, {.ttl_ms = 60'000, .lease_ms = 3'000});
    lead(b);
    b.read();
    b.pass(1'000);
    b.number(0);
    CHECK(b.feed(fill_input::kind::freed) == "lease");
    CHECK(b.granted() == "offer");
    b.read();
    CHECK(b.loaded("red") == "drop_slot fill");
}

// ---- overdue

TEST_CASE("max_load counts from the reading, not from the offer") {
    fill_bench b(fill_mode::normal, policy(5'000));
    lead(b);
    b.now += 900;
    b.read();
    std::string said;
    while (b.wakes_in() < 5'000 && said.find("answer") == std::string::npos && b.now < 5'000 + 900 + 4'999) {
        said = b.pass(100);
        if (b.last_cmd.script == script_id::extend) b.number(1);
    }
    CHECK(b.now == 5'000 + 900 + 5'000);
}

TEST_CASE("a load older than max_load is given up on: timeout, unlisted, its lease spare") {
    fill_bench b(fill_mode::normal, policy(2'000));
    const token mine = lead(b);
    b.read();
    b.pass(1'000);
    CHECK(b.pass(1'000) == "unlist answer:timeout overdue_slot revoke:timeout spare");
    CHECK(b.machine.at() == state::overdue);
    CHECK(b.last.back().which == mine);
    CHECK(b.last.back().span_ms == 10'000);
    CHECK(b.pass(100'000).empty()); // no renewal, no timer
}

TEST_CASE("the late result of an overdue load goes to nobody's store") {
    fill_bench loaded(fill_mode::normal, policy(2'000));
    lead(loaded);
    loaded.read();
    loaded.pass(2'000);
    CHECK(loaded.loaded("late") == "drop_slot done");
    fill_bench failed(fill_mode::normal, policy(2'000));
    lead(failed);
    failed.read();
    failed.pass(2'000);
    CHECK(failed.failed() == "drop_slot done");
    fill_bench freed(fill_mode::normal, policy(2'000));
    lead(freed);
    freed.read();
    freed.pass(2'000);
    CHECK(freed.feed(fill_input::kind::freed) == "drop_slot done");
}

TEST_CASE("a client that closes abandons the lease of an overdue load") {
    fill_bench b(fill_mode::normal, policy(2'000));
    const token mine = lead(b);
    b.read();
    b.pass(2'000);
    CHECK(b.feed(fill_input::kind::closing) == "abandon:none spare done");
    CHECK(b.named_tokens() == std::vector{mine});
}

TEST_CASE("a load without a lease is given up on like any other") {
    fill_bench b(fill_mode::no_store, policy(2'000));
    b.start();
    b.nil();
    b.slot();
    b.read();
    b.pass(1'000);
    CHECK(b.pass(1'000) == "unlist answer:timeout overdue_slot revoke:timeout");
}

// ---- settling

TEST_CASE("a value is filled for the token it was loaded under, with its times") {
    fill_policy p = policy(60'000);
    p.soft_ttl_ms = 30'000;
    fill_bench b(fill_mode::normal, p);
    const token mine = lead(b);
    b.read();
    CHECK(b.loaded("red") == "drop_slot fill");
    CHECK(b.machine.at() == state::settling);
    CHECK(token_from(b.last_cmd.args[0]) == mine);
    const envelope e = b.sent_envelope(1);
    CHECK(e.kind == entry_kind::value);
    CHECK(e.payload == "red");
    CHECK(!e.generation.none());
    CHECK(e.generation != mine);
    CHECK(e.created == b.server_now());
    CHECK(e.soft_at == b.server_now() + 30'000);
    CHECK(e.delta_ms == 300);
    CHECK(b.last_cmd.args[2] == "60000");
    CHECK(!b.last_gated);
    CHECK(b.number(1) == "filled:ok done");
    CHECK(b.count(stat::fills_stored) == 1);
}

TEST_CASE("a fill that is refused is told as refused") {
    fill_bench b;
    b.lead();
    b.loaded("red");
    CHECK(b.number(0) == "filled:refused done");
    CHECK(b.count(stat::fills_refused) == 1);
}

TEST_CASE("a lost fill is sent again, the very same, twice; then the lease is abandoned") {
    fill_bench b;
    b.lead();
    b.loaded("red");
    const command first = b.last_cmd;
    for (int i = 0; i < 2; ++i) {
        CHECK(b.lost() == "fill");
        CHECK(b.last_cmd.args == first.args);
    }
    CHECK(b.lost() == "abandon:none spare filled:unavailable done");
    CHECK(b.count(stat::fills_lost) == 1);
}

TEST_CASE("a silent fill is lost after command_timeout") {
    fill_bench b;
    b.lead();
    b.loaded("red");
    CHECK(b.pass(250) == "fill");
    CHECK(b.count(stat::commands_lost) == 1);
    CHECK(b.number(1) == "filled:ok done");
}

TEST_CASE("a fill that the store refuses, or that was not sent, is not tried again") {
    fill_bench refused;
    refused.lead();
    refused.loaded("red");
    CHECK(refused.said_no("OOM no") == "abandon:none spare filled:unavailable done");
    fill_bench unsent;
    unsent.lead();
    unsent.loaded("red");
    CHECK(unsent.not_sent() == "abandon:none spare filled:unavailable done");
}

TEST_CASE("an absence is filled with its own ttl") {
    fill_bench b;
    b.lead();
    auto o = std::make_shared<outcome>();
    o->code = status::absent;
    CHECK(b.loaded(o) == "drop_slot fill");
    CHECK(b.sent_envelope(1).kind == entry_kind::absent);
    CHECK(b.last_cmd.args[2] == "30000");
}

TEST_CASE("a loader's own ttl counts, with the policy's soft ttl if that is below it") {
    fill_policy p = policy(60'000);
    p.soft_ttl_ms = 30'000;
    const auto answer = [](std::int64_t ttl, std::int64_t soft) {
        auto o = std::make_shared<outcome>();
        o->storage = "x";
        o->payload = o->storage;
        o->ttl_ms = ttl;
        o->soft_ttl_ms = soft;
        return o;
    };
    fill_bench own(fill_mode::normal, p);
    own.lead();
    own.loaded(answer(5'000, 1'000));
    CHECK(own.last_cmd.args[2] == "5000");
    CHECK(own.sent_envelope(1).soft_at == own.server_now() + 1'000);
    fill_bench none(fill_mode::normal, p);
    none.lead();
    none.loaded(answer(90'000, 0));
    CHECK(none.sent_envelope(1).soft_at == never_soft);
    fill_bench shorter(fill_mode::normal, p);
    shorter.lead();
    shorter.loaded(answer(5'000, -1));
    CHECK(shorter.sent_envelope(1).soft_at == never_soft);
}

TEST_CASE("a failed load leaves an error marker for error_ttl") {
    fill_bench b;
    const token mine = lead(b);
    b.read();
    CHECK(b.failed("no database") == "drop_slot abandon:error spare done");
    CHECK(b.named_tokens() == std::vector{mine});
    const envelope marker = b.sent_envelope(1);
    CHECK(marker.kind == entry_kind::error);
    CHECK(marker.payload == "no database");
    CHECK(!marker.generation.none());
    CHECK(b.last_cmd.args[2] == "1000");
    CHECK(b.count(stat::markers_error) == 1);
}

TEST_CASE("error_ttl 0 leaves no marker; a long text is cut") {
    fill_policy p = policy(60'000);
    p.error_ttl_ms = 0;
    fill_bench b(fill_mode::normal, p);
    b.lead();
    CHECK(b.failed() == "drop_slot abandon:none spare done");
    fill_bench c;
    c.lead();
    c.failed(std::string(5'000, 'x'));
    CHECK(c.sent_envelope(1).payload.size() == 512);
}

TEST_CASE("only load_failed writes a marker, every other failure just abandons") {
    for (const status code : {status::closed, status::timeout, status::overloaded, status::would_deadlock,
                              status::cancelled, status::internal}) {
        fill_bench b;
        b.lead();
        CHECK(b.failed("x", code) == "drop_slot abandon:none spare done");
        CHECK(b.count(stat::markers_error) == 0);
    }
}

TEST_CASE("a value over max_value becomes a pass marker for a second") {
    fill_policy p = policy(60'000);
    p.max_value = 3;
    fill_bench fits(fill_mode::normal, p);
    fits.lead();
    CHECK(fits.loaded("abc") == "drop_slot fill");
    fill_bench b(fill_mode::normal, p);
    b.lead();
    CHECK(b.loaded("abcd") == "drop_slot abandon:pass spare filled:too_large done");
    CHECK(b.sent_envelope(1).kind == entry_kind::pass);
    CHECK(b.last_cmd.args[2] == "1000");
    CHECK(b.count(stat::markers_pass) == 1);
}

TEST_CASE("a margin between soft and hard expiry below two loads is counted") {
    fill_policy p;
    p.ttl_ms = 10'000;
    p.jitter = 0;
    p.soft_ttl_ms = 9'401;
    fill_bench b(fill_mode::normal, p);
    b.lead();
    b.loaded("x"); // 300 ms
    CHECK(b.count(stat::soft_margin_small) == 1);
    p.soft_ttl_ms = 9'400;
    fill_bench c(fill_mode::normal, p);
    c.lead();
    c.loaded("x");
    CHECK(c.count(stat::soft_margin_small) == 0);
}

TEST_CASE("a client that closes abandons the lease of a running load") {
    fill_bench b;
    b.lead();
    CHECK(b.feed(fill_input::kind::closing) == "abandon:none spare done");
}

TEST_CASE("fleet off: a put whose reply is lost is followed by a deletion, and not sent again") {
    fill_policy p = policy(60'000);
    p.fleet = false;
    fill_bench b(fill_mode::normal, p);
    b.start();
    b.nil();
    b.slot();
    b.read();
    b.loaded("red");
    CHECK(b.lost() == "del filled:unavailable done");
    CHECK(b.count(stat::fills_lost) == 1);
    CHECK(!b.last_gated);
}
