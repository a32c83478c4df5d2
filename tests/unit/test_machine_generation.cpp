// SPDX-License-Identifier: MIT
//
// `force` and `refresh`, which replace a value in place under the refresh lease of its generation.
#include <doctest/doctest.h>

#include "support/machine.hpp"

using namespace stn;
using test::fill_bench;
using test::token_of;
using state = fill_machine::state;

namespace {

const token g1 = token_of("g1");

fill_bench refresh(fill_policy p = {.ttl_ms = 60'000, .jitter = 0}) {
    return fill_bench(fill_mode::refresh, p, g1);
}

std::string refresh_key_of(const token& g) {
    return refresh_key("stn", "c", "k", g);
}

} // namespace

TEST_CASE("a refresh asks for the lease of its generation, in a key of its own") {
    fill_bench b = refresh();
    CHECK(b.start() == "need_slot");
    CHECK(b.slot() == "refresh");
    CHECK(b.last_cmd.key == refresh_key_of(g1));
    CHECK(b.last_gated);
    CHECK(b.generation_reply(true, 0) == "offer");
    CHECK(b.count(stat::refreshes) == 1);
}

TEST_CASE("a refresh that succeeds fills by generation and leaves its lease to expire") {
    fill_bench b = refresh();
    b.start();
    b.slot();
    b.generation_reply(true, 0);
    b.read();
    CHECK(b.loaded("new") == "drop_slot fill");
    CHECK(b.last_cmd.key == b.names->store_key);
    CHECK(token_from(b.last_cmd.args[0]) == g1);
    CHECK(b.number(1) == "filled:ok done");
}

TEST_CASE("a refresh that another process runs is not asked for again before the PTTL in the answer has passed") {
    fill_bench b = refresh();
    b.start();
    b.slot();
    CHECK(b.generation_reply(false, 1'234) == "asked:1234 drop_slot done");
    CHECK(b.last[0].which == g1);
}

TEST_CASE("asking for a refresh lease again is done with the same token") {
    fill_bench b = refresh();
    b.start();
    b.slot();
    const auto args = b.last_cmd.args;
    CHECK(b.lost() == "refresh");
    CHECK(b.last_cmd.args == args);
    CHECK(b.lost() == "release asked:10000 drop_slot done");
    CHECK(b.last_cmd.args[0] == args[0]);
}

TEST_CASE("a refresh lease that is not sent, or refused, is not asked for for lease_ms") {
    fill_bench unsent = refresh();
    unsent.start();
    unsent.slot();
    CHECK(unsent.not_sent() == "asked:10000 drop_slot done");
    fill_bench refused = refresh();
    refused.start();
    refused.slot();
    CHECK(refused.said_no("OOM no") == "asked:10000 drop_slot done");
}

TEST_CASE("a refresh lease is renewed while the load runs") {
    fill_bench b = refresh({.ttl_ms = 60'000, .lease_ms = 3'000});
    b.start();
    b.slot();
    b.generation_reply(true, 0);
    b.read();
    CHECK(b.pass(1'000) == "renew check");
    CHECK(b.last_cmd.key == refresh_key_of(g1));
}

TEST_CASE("a refresh that fails shortens its lease, so that another may try soon") {
    fill_bench b = refresh();
    b.start();
    b.slot();
    b.generation_reply(true, 0);
    b.read();
    CHECK(b.failed() == "drop_slot renew asked:1000 done");
    CHECK(b.last_cmd.args[1] == "1000");
    fill_bench patient = refresh({.ttl_ms = 60'000, .error_ttl_ms = 5'000});
    patient.start();
    patient.slot();
    patient.generation_reply(true, 0);
    patient.read();
    CHECK(patient.failed() == "drop_slot renew asked:5000 done");
}

TEST_CASE("a refresh not taken, or freed, gives its lease back and is not asked for again for lease_ms") {
    fill_bench untaken = refresh();
    untaken.start();
    untaken.slot();
    untaken.generation_reply(true, 0);
    CHECK(untaken.pass(1'000) == "check");
    CHECK(untaken.feed(fill_input::kind::no_taker) == "release asked:10000 drop_slot done");
    fill_bench freed = refresh();
    freed.start();
    freed.slot();
    freed.generation_reply(true, 0);
    freed.read();
    CHECK(freed.feed(fill_input::kind::freed) == "release asked:10000 drop_slot done");
}

TEST_CASE("a refresh of a closing client gives its lease back") {
    fill_bench b = refresh();
    b.start();
    b.slot();
    b.generation_reply(true, 0);
    CHECK(b.feed(fill_input::kind::closing) == "release asked:10000 done");
}

TEST_CASE("a refresh older than max_load is given up on, and its lease shortened") {
    fill_bench b = refresh({.ttl_ms = 60'000, .max_load_ms = 2'000});
    b.start();
    b.slot();
    b.generation_reply(true, 0);
    b.read();
    b.pass(1'000);
    CHECK(b.pass(1'000) == "unlist answer:timeout overdue_slot revoke:timeout renew asked:1000");
    CHECK(b.loaded("late") == "drop_slot done");
}

TEST_CASE("a refresh has no place to wait for") {
    fill_bench b = refresh();
    b.start();
    CHECK(b.machine.wake_at() == forever_ms);
    CHECK(b.feed(fill_input::kind::nobody) == "drop_slot done");
}

// ---- force

TEST_CASE("force takes the refresh lease of a fresh value, which stays readable") {
    fill_bench b(fill_mode::force);
    CHECK(b.start() == "get");
    CHECK(b.holds(b.value("old", g1)) == "hold need_slot");
    CHECK(b.slot() == "refresh");
    CHECK(b.last_cmd.key == refresh_key_of(g1));
    CHECK(b.generation_reply(true, 0) == "offer");
    b.read();
    CHECK(b.loaded("new") == "drop_slot fill");
    CHECK(token_from(b.last_cmd.args[0]) == g1);
    CHECK(b.number(1) == "filled:ok done");
}

TEST_CASE("a forced load that fails leaves the value alone") {
    fill_bench b(fill_mode::force);
    b.start();
    b.holds(b.value("old", g1));
    b.slot();
    b.generation_reply(true, 0);
    b.read();
    const std::string said = b.failed();
    CHECK(said.find("abandon") == std::string::npos);
    CHECK(said.find("renew") != std::string::npos);
    CHECK(b.count(stat::markers_error) == 0);
}

TEST_CASE("force with nothing there is a plain fetch") {
    fill_bench b(fill_mode::force);
    b.start();
    CHECK(b.nil() == "need_slot");
    CHECK(b.slot() == "lease");
}

TEST_CASE("force with a placeholder there waits like everybody") {
    fill_bench b(fill_mode::force);
    b.start();
    CHECK(b.holds(b.placeholder(token_of("theirs"))) == "need_slot");
    CHECK(b.slot() == "lease");
    CHECK(b.held(token_of("theirs")) == "drop_slot waiting");
}

TEST_CASE("force serves a value whose load began after the call, and replaces one whose load began before") {
    fill_bench b(fill_mode::force);
    b.start();
    b.holds(b.placeholder(token_of("theirs")));
    b.slot();
    b.held(token_of("theirs"));
    b.next_timer();
    envelope before = b.value("before", token_of("g2"));
    before.created = b.server_now(); // but it took 400 ms, and the call was 375 ms ago
    before.delta_ms = 400;
    CHECK(b.holds(before) == "hold need_slot");
    CHECK(b.slot() == "refresh");
    CHECK(b.last_cmd.key == refresh_key_of(token_of("g2")));

    fill_bench c(fill_mode::force);
    c.start();
    c.holds(c.placeholder(token_of("theirs")));
    c.slot();
    c.held(token_of("theirs"));
    c.next_timer();
    envelope after = c.value("after", token_of("g2"));
    after.created = c.server_now();
    after.delta_ms = 100;
    CHECK(c.holds(after) == "answer:after done");
}

TEST_CASE("force serves an absence whose load began after the call, whatever the cache's codec") {
    for (const std::uint8_t codec : {std::uint8_t{0}, std::uint8_t{1}}) {
        fill_policy p;
        p.ttl_ms = 60'000;
        p.codec = codec;
        fill_bench b(fill_mode::force, p);
        b.start();
        b.holds(b.placeholder(token_of("theirs")));
        b.slot();
        b.held(token_of("theirs"));
        b.next_timer();
        envelope e = b.of_kind(entry_kind::absent);
        e.created = b.server_now();
        e.delta_ms = 100;
        CHECK(b.holds(e) == "answer:absent done");
    }
}

TEST_CASE("force whose generation is being replaced elsewhere waits for the new one") {
    fill_bench b(fill_mode::force);
    b.start();
    b.holds(b.value("old", g1));
    b.slot();
    CHECK(b.generation_reply(false, 5'000) == "drop_slot waiting");
    CHECK(b.machine.at() == state::waiting);
    b.next_timer();
    CHECK(b.holds(b.value("old", g1)).empty()); // the same: go on waiting
    CHECK(b.machine.at() == state::waiting);
    b.next_timer();
    envelope e = b.value("new", token_of("g2"));
    e.created = b.server_now();
    e.delta_ms = 10;
    CHECK(b.holds(e) == "answer:new done");
}

TEST_CASE("force asks again for a generation when the other's lease has run out") {
    fill_bench b(fill_mode::force);
    b.start();
    b.holds(b.value("old", g1));
    b.slot();
    b.generation_reply(false, 300);
    b.next_timer();
    CHECK(b.now >= 5'301);
    CHECK(b.holds(b.value("old", g1)) == "need_slot");
    CHECK(b.slot() == "refresh");
    CHECK(b.generation_reply(true, 0) == "offer");
}

TEST_CASE("force over a marker treats it as a miss") {
    for (const entry_kind kind : {entry_kind::error, entry_kind::pass}) {
        fill_bench b(fill_mode::force);
        b.start();
        const envelope marker = b.of_kind(kind, "x");
        CHECK(b.holds(marker) == "need_slot");
        CHECK(b.slot() == "lease");
        CHECK(b.rejected_tokens() == std::vector{marker.generation});
    }
}

TEST_CASE("force of a store that is down loads without it") {
    fill_bench b(fill_mode::force);
    b.start();
    b.holds(b.value("old", g1));
    b.slot();
    b.lost();
    CHECK(b.lost() == "release drop_slot need_slot:down");
    CHECK(b.slot() == "offer:alone");
    b.read();
    CHECK(b.loaded("new") == "drop_slot filled:lost done");
}

TEST_CASE("force without a fleet loads and puts") {
    fill_bench b(fill_mode::force, {.ttl_ms = 60'000, .fleet = false});
    b.start();
    CHECK(b.holds(b.value("old", g1)) == "need_slot");
    CHECK(b.slot() == "offer:alone");
    b.read();
    CHECK(b.loaded("new") == "drop_slot put");
}
