// SPDX-License-Identifier: MIT
//
// What a flight does when the store refuses a command: a row for each refusal, a column for each command.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "protocol/refusal.hpp"
#include "protocol/schedule.hpp"
#include "support/machine.hpp"

using namespace stn;
using test::fill_bench;
using test::token_of;
using state = fill_machine::state;

namespace {

struct row {
    const char* text;
    const char* look;  // GET of a fetch; then it loads alone
    const char* peek;  // GET of a plain get
    const char* lease; // what the flight says to its refusal
    bool fill_again;   // once, after a pause
};

const std::vector<row> rows{
    {"LOADING Redis is loading the dataset in memory", "need_slot:down", "unavailable", "drop_slot need_slot:down",
     false},
    {"READONLY You can't write against a read only replica.", "need_slot:down", "unavailable",
     "drop_slot need_slot:down", true},
    {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "need_slot:down",
     "unavailable", "drop_slot need_slot:down", true},
    {"CLUSTERDOWN Hash slot not served", "need_slot:down", "unavailable", "drop_slot need_slot:down", true},
    {"MOVED 15495 127.0.0.1:35655", "need_slot:down", "unsupported", "drop_slot need_slot:down", false},
    {"ASK 15495 127.0.0.1:41529", "need_slot:down", "unsupported", "drop_slot need_slot:down", false},
    {"TRYAGAIN Multiple keys request during rehashing of slot", "need_slot:down", "unavailable",
     "drop_slot need_slot:down", true},
    {"CROSSSLOT Keys in request don't hash to the same slot", "need_slot:down", "internal", "drop_slot need_slot:down",
     false},
    {"NOSCRIPT No matching script. Please use EVAL.", "need_slot:down", "refused", "offer:alone", true},
    {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", "need_slot:down",
     "unavailable", "drop_slot need_slot:down", true},
    {"OOM command not allowed when used memory > 'maxmemory'.", "need_slot:down", "refused", "offer:alone", false},
    {"NOREPLICAS Not enough good replicas to write.", "need_slot:down", "unavailable", "drop_slot need_slot:down",
     false},
    {"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
     "need_slot:down", "refused", "offer:alone", false},
    {"NOAUTH Authentication required.", "need_slot:down", "denied", "drop_slot need_slot:down", true},
    {"NOPERM this user has no permissions to run the 'evalsha' command", "need_slot:down", "denied",
     "drop_slot need_slot:down", false},
    {"ERR The user executing the script can't run this command or subcommand script: 620c, on @user_script:1.",
     "need_slot:down", "denied", "drop_slot need_slot:down", false},
    {"WRONGTYPE Operation against a key holding the wrong kind of value", "need_slot", "not_mine", "offer:alone",
     false},
    {"ERR max number of clients reached", "need_slot:down", "unavailable", "drop_slot need_slot:down", false},
    {"ERR unknown command 'EVALSHA', with args beginning with: ", "need_slot:down", "unsupported",
     "drop_slot need_slot:down", false},
    {"ERR syntax error", "need_slot:down", "unsupported", "drop_slot need_slot:down", false},
    {"ERR Script killed by user with SCRIPT KILL... script: 694a, on @user_script:1.", "need_slot:down", "refused",
     "offer:alone", true},
    {"ERR something new", "need_slot:down", "refused", "offer:alone", false},
};

} // namespace

TEST_CASE("a look that is refused is a miss: the load goes on in this process, as without the store") {
    for (const row& r : rows) {
        CAPTURE(r.text);
        fill_bench b;
        b.start();
        CHECK(b.said_no(r.text) == r.look);
        if (classify(reply::of_error(r.text)) == refusal::wrong_type) continue; // is overwritten, below
        CHECK(b.slot() == "offer:alone");
        b.read();
        CHECK(b.loaded("red") == "drop_slot filled:lost done"); // nothing is written without a lease
    }
}

TEST_CASE("WRONGTYPE: a key that is not ours is a miss, counted, and the lease overwrites it") {
    fill_bench b;
    b.start();
    CHECK(b.said_no("WRONGTYPE Operation against a key holding the wrong kind of value") == "need_slot");
    CHECK(b.count(stat::foreign) == 1);
    CHECK(b.slot() == "lease");
}

TEST_CASE("a waiter whose look is refused loads in its own process too") {
    for (const char* text : {"LOADING wait", "BUSY wait", "CLUSTERDOWN wait", "MASTERDOWN wait"}) {
        CAPTURE(text);
        fill_bench b;
        b.start();
        b.nil();
        b.slot();
        b.held(token_of("theirs"));
        b.next_timer();
        CHECK(b.said_no(text) == "need_slot:down");
    }
}

TEST_CASE("a look beside the waiting for a place may be refused: the flight waits on") {
    fill_bench b;
    b.start();
    b.nil();
    b.next_timer();
    CHECK(b.said_no("BUSY wait").empty());
    CHECK(b.next_timer() == "get");
    CHECK(b.holds(b.value("red")) == "drop_slot answer:red done");
}

TEST_CASE("a plain get that is refused says why, in the status, for a person, and in the server's words") {
    for (const row& r : rows) {
        CAPTURE(r.text);
        fill_bench b(fill_mode::peek);
        b.start();
        CHECK(b.said_no(r.text) == "answer:" + std::string(r.peek) + " done");
        if (classify(reply::of_error(r.text)) == refusal::wrong_type) continue; // a miss
        CHECK(b.answered->why.server_text == r.text);
        CHECK(b.answered->why.message == traits_of(classify(reply::of_error(r.text))).text);
        CHECK(b.answered->why.key == "k");
    }
}

TEST_CASE("a value that reads like a refusal is a value: foreign, and nothing else") {
    fill_bench b;
    b.start();
    CHECK(b.reply_with(reply::of_bulk("LOADING Redis is loading the dataset in memory")) == "need_slot");
    CHECK(b.count(stat::foreign) == 1);
}

TEST_CASE("a lease that is refused: a full store lets everybody load, one that serves nobody a bounded number") {
    for (const row& r : rows) {
        CAPTURE(r.text);
        fill_bench b;
        b.start();
        b.nil();
        b.slot();
        CHECK(b.said_no(r.text) == r.lease);
        if (b.machine.at() == state::queued) CHECK(b.slot() == "offer:alone");
        b.read();
        CHECK(b.loaded("red") == "drop_slot filled:lost done");
    }
}

TEST_CASE("a refused lease with lost copies before it abandons what they may have got, whatever the refusal") {
    for (const row& r : rows) {
        CAPTURE(r.text);
        fill_bench b;
        b.start();
        b.nil();
        b.slot();
        b.lost();
        CHECK(b.said_no(r.text) == "abandon:none spare spare " + std::string(r.lease));
        CHECK(b.named_tokens().size() == 2);
    }
}

TEST_CASE("a refresh lease that is refused ends the refresh, and a forced load goes on without it") {
    for (const row& r : rows) {
        CAPTURE(r.text);
        fill_bench quiet(fill_mode::refresh, {.ttl_ms = 60'000, .jitter = 0}, token_of("g1"));
        quiet.start();
        quiet.slot();
        CHECK(quiet.said_no(r.text) == "asked:10000 drop_slot done");
        fill_bench forced(fill_mode::force);
        forced.start();
        forced.holds(forced.value("old"));
        forced.slot();
        CHECK(forced.last_cmd.script == script_id::refresh);
        CHECK(forced.said_no(r.text) == r.lease);
    }
}

TEST_CASE("a renewal that is refused is unknown, never lost: it goes on until the store says whose the lease is") {
    for (const row& r : rows) {
        CAPTURE(r.text);
        fill_bench b(fill_mode::normal, {.ttl_ms = 60'000, .lease_ms = 12'000});
        b.lead();
        b.pass(1'000); // the look whether it was read
        b.read();
        CHECK(b.next_timer() == "extend");
        for (int i = 0; i < 4; ++i) { // past the lease's end
            CHECK(b.said_no(r.text).empty());
            CHECK(b.wakes_in() == schedule::renew_retry(12'000));
            CHECK(b.next_timer() == "extend");
        }
        CHECK(b.machine.at() == state::loading);
        CHECK(b.count(stat::leases_lost) == 0);
        CHECK(b.number(1).empty());
        CHECK(b.loaded("red") == "drop_slot fill");
        CHECK(b.number(1) == "filled:ok done");
    }
}

TEST_CASE("the renewal of a refresh lease likewise") {
    for (const row& r : rows) {
        CAPTURE(r.text);
        fill_bench b(fill_mode::refresh, {.ttl_ms = 60'000, .lease_ms = 12'000}, token_of("g1"));
        b.start();
        b.slot();
        b.generation_reply(true, 0);
        b.pass(1'000);
        b.read();
        CHECK(b.next_timer() == "renew");
        CHECK(b.said_no(r.text).empty());
        CHECK(b.next_timer() == "renew");
        CHECK(b.count(stat::refreshes_lost) == 0);
        CHECK(b.loaded("new") == "drop_slot fill");
    }
}

TEST_CASE("a fill that is refused for a moment is tried once again; else, and then, the lease is given up") {
    for (const row& r : rows) {
        CAPTURE(r.text);
        fill_bench b;
        b.lead();
        b.loaded("red");
        const command first = b.last_cmd;
        const std::string gives_up = "abandon:none spare filled:unavailable done";
        if (!r.fill_again) {
            CHECK(b.said_no(r.text) == gives_up); // those who wait elsewhere go on at once
        } else {
            CHECK(b.said_no(r.text).empty());
            CHECK(b.wakes_in() >= 50);
            CHECK(b.wakes_in() <= 200);
            CHECK(b.next_timer() == "fill");
            CHECK(b.last_cmd.args == first.args);
            CHECK(b.said_no(r.text) == gives_up);
        }
        REQUIRE(b.last.size() > 1);
        const fill_output& told = b.last[b.last.size() - 2];
        REQUIRE(told.result != nullptr);
        CHECK(told.result->why.server_text == r.text);
        CHECK(b.count(stat::fills_lost) == 1);
    }
}

TEST_CASE("a fill that is tried again and stored is stored, and one that finds the key changed is refused") {
    for (const std::int64_t said : {1, 0}) {
        fill_bench b;
        b.lead();
        b.loaded("red");
        b.said_no("BUSY wait");
        b.next_timer();
        CHECK(b.number(said) == (said == 1 ? "filled:ok done" : "filled:refused done"));
    }
}

TEST_CASE("a fill gets its second try although nobody waits any more") {
    fill_bench b;
    b.lead();
    b.loaded("red");
    b.said_no("BUSY wait");
    CHECK(b.feed(fill_input::kind::nobody).empty());
    CHECK(b.next_timer() == "fill");
    CHECK(b.number(1) == "filled:ok done");
}

TEST_CASE("a fill that waits for its second try lets go of the lease when the client ends") {
    fill_bench b;
    b.lead();
    b.loaded("red");
    b.said_no("BUSY wait");
    CHECK(b.feed(fill_input::kind::closing) == "abandon:none spare done");
}

TEST_CASE("without the fleet a put that is refused for a moment is tried once again") {
    const fill_policy alone{.ttl_ms = 60'000, .jitter = 0, .fleet = false};
    for (const row& r : rows) {
        CAPTURE(r.text);
        fill_bench b(fill_mode::normal, alone);
        b.start();
        b.nil();
        b.slot();
        b.read();
        b.loaded("red");
        if (r.fill_again) {
            CHECK(b.said_no(r.text).empty());
            CHECK(b.next_timer() == "put");
        }
        CHECK(b.said_no(r.text) == "filled:unavailable done"); // surely not applied: nothing to delete
    }
}

TEST_CASE("an invalidation between two tries of such a put ends it") {
    fill_bench b(fill_mode::normal, {.ttl_ms = 60'000, .jitter = 0, .fleet = false});
    b.start();
    b.nil();
    b.slot();
    b.read();
    b.loaded("red");
    b.said_no("BUSY wait");
    b.feed(fill_input::kind::detached);
    CHECK(b.next_timer() == "filled:lost done");
}
