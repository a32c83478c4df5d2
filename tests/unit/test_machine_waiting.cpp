// SPDX-License-Identifier: MIT
//
// Row `waiting` of the table in fill_machine.hpp.
#include <doctest/doctest.h>

#include "support/machine.hpp"

using namespace stn;
using test::fill_bench;
using test::token_of;
using state = fill_machine::state;

namespace {

const token theirs = token_of("theirs");

void wait(fill_bench& b, std::int64_t pttl_ms = 10'000) {
    b.start();
    b.nil();
    b.slot();
    b.held(theirs, pttl_ms);
    REQUIRE(b.machine.at() == state::waiting);
}

envelope filled(const fill_bench& b, std::string_view payload) {
    return b.value(payload, token_of("new"));
}

} // namespace

TEST_CASE("a waiter's own timer leads to a look, even if no message ever comes") {
    fill_bench b;
    wait(b);
    CHECK(b.next_timer() == "get");
    CHECK(b.machine.at() == state::looking);
    CHECK(b.holds(filled(b, "red")) == "answer:red done");
}

TEST_CASE("a placeholder that was marked already is waited for without asking again") {
    fill_bench b;
    wait(b);
    b.next_timer();
    CHECK(b.holds(b.placeholder(theirs)).empty());
    CHECK(b.machine.at() == state::waiting);
    CHECK(b.wakes_in() >= 25);
    CHECK(b.wakes_in() <= 200);
}

TEST_CASE("the placeholder of a new token is marked by lease at first sight") {
    fill_bench b;
    wait(b);
    b.next_timer();
    CHECK(b.holds(b.placeholder(token_of("another"))) == "need_slot");
    CHECK(b.slot() == "lease");
    CHECK(b.held(token_of("another")) == "drop_slot waiting");
    b.next_timer();
    CHECK(b.holds(b.placeholder(token_of("another"))).empty());
}

TEST_CASE("when the placeholder has gone, the waiter asks for the lease itself") {
    fill_bench b;
    wait(b);
    b.next_timer();
    CHECK(b.nil() == "need_slot");
    CHECK(b.slot() == "lease");
    CHECK(b.granted() == "offer");
}

TEST_CASE("a filled message for the token seen here answers with the value it carries") {
    fill_bench b;
    wait(b);
    const envelope e = filled(b, "red");
    CHECK(b.message(wake_kind::filled, theirs, &e) == "answer:red done");
    CHECK(b.answered->generation == token_of("new"));
    CHECK(b.count(stat::hits) == 1);
}

TEST_CASE("absence travels in a message too, whatever the cache's codec") {
    for (const std::uint8_t codec : {std::uint8_t{0}, std::uint8_t{1}}) {
        fill_policy p;
        p.ttl_ms = 60'000;
        p.codec = codec;
        fill_bench b(fill_mode::normal, p);
        wait(b);
        const envelope e = b.of_kind(entry_kind::absent);
        CHECK(b.message(wake_kind::filled, theirs, &e) == "answer:absent done");
    }
}

TEST_CASE("a filled message for a token that was never seen only means: look again") {
    fill_bench b;
    wait(b);
    const envelope e = filled(b, "red");
    CHECK(b.message(wake_kind::filled, token_of("unknown"), &e) == "get");
    CHECK(b.machine.at() == state::looking);
}

TEST_CASE("a filled message without the value, or with one that is not for this cache, means: look again") {
    fill_bench large;
    wait(large);
    CHECK(large.message(wake_kind::filled, theirs) == "get");
    fill_bench codec;
    wait(codec);
    envelope e = filled(codec, "red");
    e.codec = 1;
    CHECK(codec.message(wake_kind::filled, theirs, &e) == "get");
    fill_bench marker;
    wait(marker);
    envelope m = marker.of_kind(entry_kind::pass);
    CHECK(marker.message(wake_kind::filled, theirs, &m) == "get");
}

TEST_CASE("a stale value in a message is answered stale and due for a refresh") {
    fill_bench b;
    wait(b);
    envelope e = filled(b, "red");
    e.soft_at = b.server_now();
    CHECK(b.message(wake_kind::filled, theirs, &e) == "answer:red ask_refresh done");
}

TEST_CASE("every other message means: look again, at once") {
    for (const wake_kind kind : {wake_kind::failed, wake_kind::pass, wake_kind::released, wake_kind::invalidated}) {
        fill_bench b;
        wait(b);
        CHECK(b.message(kind, theirs) == "get");
    }
}

TEST_CASE("a new subscription means: look again, for a message may have been missed") {
    fill_bench b;
    wait(b);
    CHECK(b.feed(fill_input::kind::resubscribed) == "get");
    CHECK(b.feed(fill_input::kind::resubscribed).empty()); // it looks already
}

TEST_CASE("messages do not disturb who does not wait") {
    fill_bench b;
    b.start();
    const envelope e = filled(b, "red");
    CHECK(b.message(wake_kind::filled, theirs, &e).empty());
    b.nil();
    CHECK(b.message(wake_kind::filled, theirs, &e).empty());
    b.slot();
    CHECK(b.message(wake_kind::filled, theirs, &e).empty());
    b.granted();
    CHECK(b.message(wake_kind::invalidated, theirs).empty());
    CHECK(b.machine.at() == state::offered);
}

TEST_CASE("looks while waiting become no denser than 25 ms, and end in 100 to 200 ms") {
    fill_bench b;
    b.chance.always.reset();
    wait(b, 600'000);
    for (int i = 0; i < 50; ++i) {
        CHECK(b.wakes_in() >= 25);
        CHECK(b.wakes_in() <= 500);
        if (i > 8) CHECK(b.wakes_in() >= 100);
        if (i > 0) CHECK(b.wakes_in() <= 200);
        CHECK(b.next_timer() == "get");
        b.holds(b.placeholder(theirs));
    }
    CHECK(b.count(stat::looks) == 50);
}

TEST_CASE("a look comes right after the lease elsewhere has run out") {
    fill_bench b;
    b.chance.always = 1.0;
    wait(b, 60);
    CHECK(b.wakes_in() == 61);
}

TEST_CASE("a lost look while waiting is tried once more, then the load goes on without the store") {
    fill_bench b;
    wait(b);
    b.next_timer();
    CHECK(b.lost() == "get");
    CHECK(b.lost() == "need_slot:down");
    CHECK(b.slot() == "offer:alone");
}

TEST_CASE("a token of this process whose load is overdue is taken over at once by who waits for it") {
    fill_bench b;
    wait(b);
    CHECK(b.takeover(theirs) == "need_slot");
    CHECK(b.slot() == "lease");
    CHECK(b.named_tokens() == std::vector{theirs});
    CHECK(b.granted() == "offer");
}

TEST_CASE("an overdue token that was not seen yet is taken over when it is met") {
    fill_bench b;
    wait(b);
    CHECK(b.takeover(token_of("mine")).empty());
    b.next_timer();
    CHECK(b.holds(b.placeholder(token_of("mine"))) == "need_slot");
    b.slot();
    CHECK(b.named_tokens() == std::vector{token_of("mine")});
}

TEST_CASE("when nobody waits any more, waiting ends; no lease was held") {
    fill_bench b;
    wait(b);
    CHECK(b.feed(fill_input::kind::nobody) == "done");
}

TEST_CASE("a client that closes while waiting leaves nothing behind") {
    fill_bench b;
    wait(b);
    CHECK(b.feed(fill_input::kind::closing) == "done");
}
