// SPDX-License-Identifier: MIT
//
// Rows `queued` and `leasing` of the table in fill_machine.hpp.
#include <doctest/doctest.h>

#include "protocol/schedule.hpp"
#include "support/machine.hpp"

using namespace stn;
using test::fill_bench;
using test::token_of;
using state = fill_machine::state;

namespace {

void ask_lease(fill_bench& b) {
    b.start();
    b.nil();
    b.slot();
}

} // namespace

TEST_CASE("without a place a flight waits, and looks beside") {
    fill_bench b;
    b.start();
    b.nil();
    CHECK(b.wakes_in() == 375); // the middle of 250..500
    CHECK(b.next_timer() == "get");
    CHECK(b.machine.at() == state::queued);
    CHECK(b.nil().empty());
    CHECK(b.next_timer() == "get");
    CHECK(b.holds(b.placeholder(token_of("theirs"))).empty());
    CHECK(b.next_timer() == "get");
    CHECK(b.lost().empty()); // a look beside is not tried again
    CHECK(b.next_timer() == "get");
    CHECK(b.holds(b.value("red")) == "drop_slot answer:red done");
}

TEST_CASE("a place that comes in the middle of a look beside makes the look void") {
    fill_bench b;
    b.start();
    b.nil();
    b.next_timer();
    const auto look = b.last_id;
    CHECK(b.slot() == "lease");
    CHECK(b.reply_to(look, delivery::answered, reply::of_bulk(encode(b.value("red")))).empty());
    CHECK(b.granted() == "offer");
}

TEST_CASE("a cached absence ends the wait for a place, whatever the cache's codec") {
    for (const std::uint8_t codec : {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{2}}) {
        fill_policy p;
        p.ttl_ms = 60'000;
        p.codec = codec;
        fill_bench b(fill_mode::normal, p);
        b.start();
        b.nil();
        b.next_timer();
        CHECK(b.holds(b.of_kind(entry_kind::absent)) == "drop_slot answer:absent done");
    }
}

TEST_CASE("when nobody waits any more, a flight leaves the line") {
    fill_bench b;
    b.start();
    b.nil();
    CHECK(b.feed(fill_input::kind::nobody) == "drop_slot done");
}

TEST_CASE("a placeholder carries the token, the server's time and how long a load takes") {
    fill_bench b(fill_mode::normal, {.ttl_ms = 60'000}, {}, 700);
    ask_lease(b);
    const envelope e = b.sent_envelope(0);
    CHECK(e.kind == entry_kind::placeholder);
    CHECK(!e.generation.none());
    CHECK(e.created == b.server_now());
    CHECK(e.delta_ms == 700);
    CHECK(b.last_cmd.args[1] == "2100"); // three loads
}

TEST_CASE("a lease granted is offered, and renewed from a third of its length on") {
    fill_bench b;
    ask_lease(b);
    const token mine = b.sent_token();
    CHECK(b.granted() == "offer");
    CHECK(b.last[0].which == mine);
    CHECK(b.machine.at() == state::offered);
    CHECK(b.count(stat::leases_granted) == 1);
    b.read();
    CHECK(b.wakes_in() == 1'000); // the check of the offer
    b.next_timer();
    CHECK(b.wakes_in() == 2'333);
    CHECK(b.next_timer() == "extend");
    CHECK(token_from(b.last_cmd.args[0]) == mine);
    CHECK(b.last_cmd.args[1] == "10000");
}

TEST_CASE("a lease granted over what was not ours is counted") {
    fill_bench b;
    ask_lease(b);
    CHECK(b.lease_reply(1, 1, {}) == "offer");
    CHECK(b.count(stat::foreign) == 1);
}

TEST_CASE("held elsewhere: the place is given back, and the flight waits with a timer of its own") {
    fill_bench b;
    ask_lease(b);
    CHECK(b.held(token_of("theirs")) == "drop_slot waiting");
    CHECK(b.last[1].which == token_of("theirs"));
    CHECK(b.machine.at() == state::waiting);
    CHECK(b.count(stat::leases_held) == 1);
    CHECK(b.wakes_in() == 375);
}

TEST_CASE("a waiter looks when the load elsewhere should be over") {
    fill_bench b;
    ask_lease(b);
    b.held(token_of("theirs"), 10'000, 120);
    CHECK(b.wakes_in() == 120);
}

TEST_CASE("a value found instead of the lease answers everybody") {
    fill_bench b;
    ask_lease(b);
    CHECK(b.lease_says(b.value("red")) == "drop_slot answer:red done");
}

TEST_CASE("markers found instead of the lease do what they do when looked at") {
    fill_bench failed;
    ask_lease(failed);
    CHECK(failed.lease_says(failed.of_kind(entry_kind::error, "no table")) == "drop_slot answer:load_failed done");
    fill_bench pass;
    ask_lease(pass);
    CHECK(pass.lease_says(pass.of_kind(entry_kind::pass)) == "drop_slot need_slot");
    CHECK(pass.slot() == "offer:alone");
    fill_bench absent;
    ask_lease(absent);
    CHECK(absent.lease_says(absent.of_kind(entry_kind::absent)) == "drop_slot answer:absent done");
}

TEST_CASE("a lost lease is asked for under a fresh token that names the earlier ones") {
    fill_bench b;
    ask_lease(b);
    const token first = b.sent_token();
    CHECK(b.lost() == "lease");
    const token second = b.sent_token();
    CHECK(second != first);
    CHECK(b.named_tokens() == std::vector{first});
    CHECK(b.lost() == "lease");
    CHECK(b.named_tokens() == std::vector{first, second});
    CHECK(b.granted() == "offer");
    CHECK(b.last[0].which == b.sent_token());
}

TEST_CASE("a lease without an answer in command_timeout is lost; the third time the load goes on without it") {
    fill_bench b;
    ask_lease(b);
    CHECK(b.pass(250) == "lease");
    CHECK(b.pass(250) == "lease");
    CHECK(b.count(stat::commands_lost) == 2);
    const std::string third = b.pass(250);
    CHECK(b.count(stat::commands_lost) == 3);
    CHECK(third == "abandon:none spare spare spare drop_slot need_slot:down");
    CHECK(b.named_tokens().size() == 3);
    CHECK(!b.last_gated);
    CHECK(b.slot() == "offer:alone");
}

TEST_CASE("a grant that comes after the lease was given up is never used") {
    fill_bench b;
    ask_lease(b);
    b.lost();
    b.lost();
    const auto late = b.last_id;
    b.lost();
    b.slot();
    CHECK(b.reply_to(late, delivery::answered,
                     reply::of_array({reply::of_integer(1), reply::of_integer(0), reply::of_bulk("")}))
              .empty());
    b.read();
    CHECK(b.loaded("red") == "drop_slot filled:lost done");
}

TEST_CASE("a grant of an earlier copy does not count for the resent one") {
    fill_bench b;
    ask_lease(b);
    const auto first = b.last_id;
    b.lost();
    CHECK(b.reply_to(first, delivery::answered,
                     reply::of_array({reply::of_integer(1), reply::of_integer(0), reply::of_bulk("")}))
              .empty());
    CHECK(b.machine.at() == state::leasing);
}

TEST_CASE("an answer to the resent lease makes the earlier tokens void") {
    fill_bench b;
    ask_lease(b);
    b.lost();
    b.held(token_of("theirs"));
    b.next_timer();
    CHECK(b.nil() == "need_slot");
    b.slot();
    CHECK(b.named_tokens().empty());
}

TEST_CASE("a lease that was not sent lets the load go on without the store") {
    fill_bench b;
    ask_lease(b);
    CHECK(b.not_sent() == "drop_slot need_slot:down");
    CHECK(b.slot() == "offer:alone");
}

TEST_CASE("a lease that is refused lets the load go on, and nothing is written") {
    fill_bench b;
    ask_lease(b);
    CHECK(b.said_no("OOM command not allowed when used memory > 'maxmemory'.") == "offer:alone");
    b.read();
    CHECK(b.loaded("red") == "drop_slot filled:lost done");
}

TEST_CASE("a refusal after lost copies abandons what they may have got") {
    fill_bench b;
    ask_lease(b);
    const token first = b.sent_token();
    b.lost();
    const token second = b.sent_token();
    CHECK(b.said_no("OOM no") == "abandon:none spare spare offer:alone");
    CHECK(b.named_tokens() == std::vector{first, second});
}

TEST_CASE("tokens that this process gave up are named in its next lease") {
    fill_bench b(fill_mode::normal, {.ttl_ms = 60'000}, {}, 0, {token_of("old1"), token_of("old2")});
    b.start();
    CHECK(b.holds(b.placeholder(token_of("old1"))) == "need_slot"); // ours, not another's
    b.slot();
    CHECK(b.named_tokens() == std::vector{token_of("old1"), token_of("old2")});
    CHECK(b.granted() == "offer");
}

TEST_CASE("a grant that the process slept over is asked about again before the load begins") {
    fill_bench b;
    ask_lease(b);
    const token first = b.sent_token();
    b.now += 9'898; // safe_until = 10,000 - 102
    CHECK(b.granted() == "lease");
    CHECK(b.named_tokens() == std::vector{first});
    CHECK(b.granted() == "offer");

    fill_bench c;
    ask_lease(c);
    c.now += 9'897;
    CHECK(c.granted() == "offer");
}

TEST_CASE("when nobody waits any more, a lease on its way is abandoned behind it") {
    fill_bench b;
    ask_lease(b);
    const token mine = b.sent_token();
    CHECK(b.feed(fill_input::kind::nobody) == "drop_slot abandon:none spare done");
    CHECK(b.named_tokens() == std::vector{mine});
}

TEST_CASE("a client that closes abandons a lease on its way") {
    fill_bench b;
    ask_lease(b);
    CHECK(b.feed(fill_input::kind::closing) == "abandon:none spare done");
}

TEST_CASE("a refetch goes straight to the lease and names the generation it rejects") {
    fill_bench b(fill_mode::refetch, {.ttl_ms = 60'000}, token_of("broken"));
    CHECK(b.start() == "need_slot");
    CHECK(b.slot() == "lease");
    CHECK(b.rejected_tokens() == std::vector{token_of("broken")});
    CHECK(b.granted() == "offer");
}

TEST_CASE("a refetch that finds another value answers with it, as a retry") {
    fill_bench b(fill_mode::refetch, {.ttl_ms = 60'000}, token_of("broken"));
    b.start();
    b.slot();
    CHECK(b.lease_says(b.value("whole", token_of("next"))) == "drop_slot answer:whole done");
    CHECK(b.answered->retried);
}

TEST_CASE("a refetch that has to wait does not take the broken value for the new one") {
    fill_bench b(fill_mode::refetch, {.ttl_ms = 60'000}, token_of("broken"));
    b.start();
    b.slot();
    b.held(token_of("theirs"));
    b.next_timer();
    CHECK(b.holds(b.value("bad", token_of("broken"))) == "need_slot");
    b.slot();
    CHECK(b.rejected_tokens() == std::vector{token_of("broken")});
}

TEST_CASE("a second rejection loads under single-flight only and stores nothing") {
    fill_bench b(fill_mode::alone);
    CHECK(b.start() == "need_slot");
    CHECK(b.slot() == "offer:alone");
    b.read();
    CHECK(b.loaded("red") == "drop_slot filled:lost done");
}

TEST_CASE("fleet off: no lease is asked for, and the value is put") {
    fill_bench b(fill_mode::normal, {.ttl_ms = 60'000, .jitter = 0, .fleet = false});
    b.start();
    CHECK(b.nil() == "need_slot");
    CHECK(b.slot() == "offer:alone");
    b.read();
    CHECK(b.loaded("red") == "drop_slot put");
    CHECK(b.sent_envelope(0).payload == "red");
    CHECK(b.number(1) == "filled:ok done");
    CHECK(b.count(stat::fills_stored) == 1);
}

TEST_CASE("fleet off: another's placeholder is nothing to wait for") {
    fill_bench b(fill_mode::normal, {.ttl_ms = 60'000, .fleet = false});
    b.start();
    CHECK(b.holds(b.placeholder(token_of("theirs"))) == "need_slot");
    CHECK(b.slot() == "offer:alone");
}

TEST_CASE("fleet off: a flight detached by an invalidation does not write") {
    fill_bench b(fill_mode::normal, {.ttl_ms = 60'000, .fleet = false});
    b.start();
    b.nil();
    b.slot();
    b.read();
    CHECK(b.feed(fill_input::kind::detached).empty());
    CHECK(b.loaded("old") == "drop_slot filled:lost done");
}

TEST_CASE("no_store looks, else loads without a lease and writes nothing") {
    fill_bench hit(fill_mode::no_store);
    CHECK(hit.start() == "get");
    CHECK(hit.holds(hit.value("red")) == "answer:red done");
    for (const bool placeholder : {false, true}) {
        fill_bench b(fill_mode::no_store);
        b.start();
        CHECK((placeholder ? b.holds(b.placeholder(token_of("t"))) : b.nil()) == "need_slot");
        CHECK(b.slot() == "offer:alone");
        b.read();
        CHECK(b.loaded("x") == "drop_slot filled:lost done");
    }
    fill_bench failing(fill_mode::no_store);
    failing.start();
    failing.nil();
    failing.slot();
    failing.read();
    CHECK(failing.failed() == "drop_slot done");
}
