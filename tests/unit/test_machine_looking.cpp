// SPDX-License-Identifier: MIT
//
// Rows `idle` and `looking` of the table in fill_machine.hpp.
#include <doctest/doctest.h>

#include "support/machine.hpp"

using namespace stn;
using test::fill_bench;
using test::token_of;
using state = fill_machine::state;

TEST_CASE("a machine begins with a look, which the breaker may refuse") {
    fill_bench b;
    CHECK(b.machine.at() == state::idle);
    CHECK(b.start() == "get");
    CHECK(b.machine.at() == state::looking);
    CHECK(b.last_cmd.key == b.names->store_key);
    CHECK(b.last_gated);
    CHECK(b.wakes_in() == 250);
}

TEST_CASE("a fresh value answers everybody and ends it") {
    fill_bench b;
    b.start();
    CHECK(b.holds(b.value("red")) == "answer:red done");
    CHECK(b.machine.at() == state::done);
    CHECK(b.machine.wake_at() == forever_ms);
    CHECK(!b.answered->stale);
    CHECK(b.answered->from == source::store);
    CHECK(b.answered->generation == token_of("g1"));
    CHECK(b.count(stat::hits) == 1);
    CHECK(b.count(stat::misses) == 0);
}

TEST_CASE("an empty value is a value") {
    fill_bench b;
    b.start();
    CHECK(b.holds(b.value("")) == "answer: done");
    CHECK(b.answered->code == status::ok);
}

TEST_CASE("a value past its soft expiry answers at once, and is due for a refresh") {
    fill_bench b;
    b.start();
    envelope e = b.value("old");
    e.soft_at = b.server_now();
    CHECK(b.holds(e) == "answer:old ask_refresh done");
    CHECK(b.answered->stale);
    CHECK(b.last[1].which == token_of("g1"));
    CHECK(b.count(stat::stale_hits) == 1);
    CHECK(b.count(stat::hits) == 0);
}

TEST_CASE("a value one millisecond before its soft expiry is fresh") {
    fill_bench b(fill_mode::normal, {.ttl_ms = 60'000, .early = 0});
    b.start();
    envelope e = b.value("red");
    e.soft_at = b.server_now() + 1;
    CHECK(b.holds(e) == "answer:red done");
    CHECK(!b.answered->stale);
}

TEST_CASE("a value marked stale is stale whatever the time") {
    fill_bench b;
    b.start();
    envelope e = b.value("old");
    e.soft_at = 0;
    CHECK(b.holds(e) == "answer:old ask_refresh done");
    CHECK(b.answered->stale);
}

TEST_CASE("an early refresh is drawn against the soft expiry, and its answer is fresh") {
    fill_bench b(fill_mode::normal, {.ttl_ms = 60'000, .early = 1.0});
    b.start();
    b.chance.always = 0.01; // 300 ms x -ln(0.01) = 1,381 ms ahead
    envelope e = b.value("red");
    e.soft_at = b.server_now() + 1'381;
    CHECK(b.holds(e) == "answer:red ask_refresh done");
    CHECK(!b.answered->stale);
    CHECK(b.count(stat::early_refreshes) == 1);
    CHECK(b.count(stat::hits) == 1);

    fill_bench c(fill_mode::normal, {.ttl_ms = 60'000, .early = 1.0});
    c.start();
    c.chance.always = 0.01;
    envelope f = c.value("red");
    f.soft_at = c.server_now() + 1'382;
    CHECK(c.holds(f) == "answer:red done");
}

TEST_CASE("without a soft expiry no early refresh is drawn, however near the end") {
    fill_bench b(fill_mode::normal, {.ttl_ms = 60'000, .early = 10});
    b.start();
    b.chance.always = 1e-12;
    const auto drawn = b.chance.drawn;
    CHECK(b.holds(b.value("red")) == "answer:red done");
    CHECK(b.chance.drawn == drawn);
}

TEST_CASE("a cached absence answers absent, stale ones too") {
    fill_bench b;
    b.start();
    CHECK(b.holds(b.of_kind(entry_kind::absent)) == "answer:absent done");
    CHECK(b.count(stat::absent_hits) == 1);

    fill_bench c;
    c.start();
    envelope e = c.of_kind(entry_kind::absent);
    e.soft_at = 0;
    CHECK(c.holds(e) == "answer:absent ask_refresh done");
}

TEST_CASE("an error marker answers load_failed with the loader's own words") {
    fill_bench b;
    b.start();
    CHECK(b.holds(b.of_kind(entry_kind::error, "no such table")) == "answer:load_failed done");
    CHECK(b.answered->why.message == "no such table");
    CHECK(b.answered->why.key == "k");

    fill_bench c;
    c.start();
    CHECK(c.holds(c.of_kind(entry_kind::error)) == "answer:load_failed done");
    CHECK(!c.answered->why.message.empty());
}

TEST_CASE("nothing there is a miss: a place first, then the lease") {
    fill_bench b;
    b.start();
    CHECK(b.nil() == "need_slot");
    CHECK(b.machine.at() == state::queued);
    CHECK(b.count(stat::misses) == 1);
    CHECK(b.slot() == "lease");
    CHECK(b.machine.at() == state::leasing);
    CHECK(b.last_gated);
}

TEST_CASE("what is not ours is a miss that gets overwritten, and counted") {
    fill_bench bytes;
    bytes.start();
    CHECK(bytes.reply_with(reply::of_bulk("hello")) == "need_slot");
    CHECK(bytes.count(stat::foreign) == 1);
    CHECK(bytes.slot() == "lease");

    fill_bench list;
    list.start();
    CHECK(list.said_no("WRONGTYPE Operation against a key holding the wrong kind of value") == "need_slot");
    CHECK(list.count(stat::foreign) == 1);
    CHECK(list.slot() == "lease");
}

TEST_CASE("a newer version is left alone: this process loads for itself and writes nothing") {
    fill_bench b;
    b.start();
    std::string bytes = encode(b.value("x"));
    bytes[1] = '\2';
    CHECK(b.reply_with(reply::of_bulk(bytes)) == "need_slot");
    CHECK(b.count(stat::newer) == 1);
    CHECK(b.slot() == "offer:alone");
    b.read();
    CHECK(b.loaded("mine") == "drop_slot filled:lost done");
}

TEST_CASE("a pass marker lets everybody load without a lease, and nothing is written") {
    fill_bench b;
    b.start();
    CHECK(b.holds(b.of_kind(entry_kind::pass)) == "need_slot");
    CHECK(b.slot() == "offer:alone");
    b.read();
    CHECK(b.loaded("big") == "drop_slot filled:lost done");
}

TEST_CASE("a placeholder seen for the first time is asked for by lease, which marks it") {
    fill_bench b;
    b.start();
    CHECK(b.holds(b.placeholder(token_of("theirs"))) == "need_slot");
    CHECK(b.slot() == "lease");
    CHECK(b.named_tokens().empty());
}

TEST_CASE("a value of another codec is rejected and loaded again, once; the second time it is for itself") {
    fill_policy json;
    json.ttl_ms = 60'000;
    json.codec = 1;
    fill_bench b(fill_mode::normal, json);
    b.start();
    envelope raw = b.value("x", token_of("g1"));
    raw.codec = 0;
    CHECK(b.holds(raw) == "need_slot");
    CHECK(b.count(stat::rejected) == 1);
    CHECK(b.slot() == "lease");
    CHECK(b.rejected_tokens() == std::vector{token_of("g1")});
    raw.generation = token_of("g2");
    CHECK(b.lease_says(raw) == "drop_slot reject_twice need_slot");
    CHECK(b.slot() == "offer:alone");
    b.read();
    CHECK(b.loaded("y") == "drop_slot filled:lost done");
}

TEST_CASE("a lost look is tried once more, then the load goes on without the store") {
    fill_bench b;
    b.start();
    CHECK(b.lost() == "get");
    CHECK(b.lost() == "need_slot:down");
    CHECK(b.slot() == "offer:alone");
}

TEST_CASE("a look without an answer in command_timeout counts as lost") {
    fill_bench b;
    b.start();
    CHECK(b.pass(249).empty());
    CHECK(b.pass(1) == "get");
    CHECK(b.pass(250) == "need_slot:down");
    CHECK(b.count(stat::commands_lost) == 2);
}

TEST_CASE("the answer to a look that was given up is not used") {
    fill_bench b;
    b.start();
    const auto first = b.last_id;
    CHECK(b.lost() == "get");
    CHECK(b.reply_to(first, delivery::answered, reply::of_bulk(encode(b.value("late")))).empty());
    CHECK(b.machine.at() == state::looking);
    CHECK(b.holds(b.value("red")) == "answer:red done");
}

TEST_CASE("a look that was not sent is not tried again") {
    fill_bench b;
    b.start();
    CHECK(b.not_sent() == "need_slot:down");
    CHECK(b.slot() == "offer:alone");
}

TEST_CASE("a look that the store refuses lets the load go on without it") {
    fill_bench b;
    b.start();
    CHECK(b.said_no("LOADING Redis is loading the dataset in memory") == "need_slot:down");
}

TEST_CASE("a plain get looks once, and never loads") {
    const auto peek = [] { return fill_bench(fill_mode::peek); };
    {
        auto b = peek();
        CHECK(b.start() == "get");
        CHECK(b.nil() == "answer:not_mine done");
        CHECK(b.count(stat::misses) == 1);
    }
    {
        auto b = peek();
        b.start();
        CHECK(b.holds(b.value("red")) == "answer:red done");
    }
    {
        auto b = peek();
        b.start();
        envelope e = b.value("old");
        e.soft_at = 0;
        CHECK(b.holds(e) == "answer:old done"); // stale, but a get refreshes nothing
    }
    {
        auto b = peek();
        b.start();
        CHECK(b.holds(b.of_kind(entry_kind::absent)) == "answer:absent done");
    }
    for (const entry_kind kind : {entry_kind::placeholder, entry_kind::pass}) {
        auto b = peek();
        b.start();
        CHECK(b.holds(b.of_kind(kind)) == "answer:not_mine done");
    }
    {
        auto b = peek();
        b.start();
        CHECK(b.holds(b.of_kind(entry_kind::error, "no table")) == "answer:load_failed done");
    }
    {
        auto b = peek();
        b.start();
        envelope e = b.value("x");
        e.codec = 1;
        CHECK(b.holds(e) == "answer:undecodable done");
    }
    {
        auto b = peek();
        b.start();
        CHECK(b.lost() == "get");
        CHECK(b.lost() == "answer:timeout done");
    }
    {
        auto b = peek();
        b.start();
        CHECK(b.not_sent() == "answer:unavailable done");
    }
    {
        auto b = peek();
        b.start();
        CHECK(b.said_no("ERR broken") == "answer:refused done");
        CHECK(b.answered->why.server_text == "ERR broken");
    }
}

TEST_CASE("when nobody waits any more, a look is given up") {
    fill_bench b;
    b.start();
    CHECK(b.feed(fill_input::kind::nobody) == "done");
    CHECK(b.machine.at() == state::done);
    CHECK(b.nil().empty());
}

TEST_CASE("nothing moves a machine that is done") {
    fill_bench b;
    b.start();
    b.holds(b.value("red"));
    using k = fill_input::kind;
    for (const k what : {k::start, k::resubscribed, k::slot, k::timer, k::read, k::no_taker, k::offered, k::freed,
                         k::nobody, k::closing, k::detached}) {
        CHECK(b.feed(what).empty());
    }
    CHECK(b.loaded("x").empty());
    CHECK(b.message(wake_kind::filled, token_of("t")).empty());
    CHECK(b.takeover(token_of("t")).empty());
    CHECK(b.machine.wake_at() == forever_ms);
}
