// SPDX-License-Identifier: MIT
//
// put: a plain write, outside the invalidation promise.
#include <doctest/doctest.h>

#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

namespace {

const fill_policy plain{.ttl_ms = 60'000, .soft_ttl_ms = 20'000, .jitter = 0};

} // namespace

TEST_CASE("a put is there for everybody when it is done") {
    world w(2, plain);
    call& c = w.at(0).put("apple", "red");
    CHECK(c.kind() == event_kind::done);
    CHECK(w.at(1).fetch("apple").value() == "red");
    CHECK(w.server->pttl(w.store_key("apple")) == 60'000);
    CHECK(w.stored("apple")->soft_at == w.now() + 20'000);
    CHECK(w.total(stat::puts) == 1);
    CHECK(w.at(0).put("apple", "").kind() == event_kind::done);
    CHECK(w.at(1).get("apple").value().empty());
}

TEST_CASE("the last writer wins, each write is a generation of its own") {
    world w(2, plain);
    w.at(0).put("apple", "1");
    const token first = w.stored("apple")->generation;
    w.at(1).put("apple", "2");
    CHECK(w.stored_value("apple") == "2");
    CHECK(w.stored("apple")->generation != first);
}

TEST_CASE("a put may carry its own ttl and soft ttl") {
    world w(1, plain);
    host& h = w.at(0);
    h.put("a", "x", {}, 30'000);
    CHECK(w.server->pttl(w.store_key("a")) == 30'000);
    CHECK(w.stored("a")->soft_at == w.now() + 20'000); // the policy's, being below it
    h.put("b", "x", {}, 20'000);
    CHECK(w.stored("b")->soft_at == never_soft); // not below it
    h.put("c", "x", {}, 30'000, 5'000);
    CHECK(w.stored("c")->soft_at == w.now() + 5'000);
    h.put("d", "x", {}, 30'000, 0);
    CHECK(w.stored("d")->soft_at == never_soft);
    CHECK(h.put("e", "x", {}, 0).refused == status::invalid_argument);
    CHECK(h.put("e", "x", {}, 5'000, 5'000).refused == status::invalid_argument);
    CHECK(h.put("e", "x", {}, 315'360'000'001).refused == status::invalid_argument);
}

TEST_CASE("a put whose reply is lost is `uncertain`, is not sent again, and a deletion is queued behind it") {
    for (const fate what : {fate::lose_reply, fate::vanish}) {
        world w(1, plain);
        host& h = w.at(0);
        h.put("apple", "old");
        w.link(0).clear_log();
        w.link(0).next(script_id::put, what);
        call& c = h.put("apple", "new");
        w.advance(249);
        CHECK(!c.ended());
        w.advance(1);
        CHECK(c.code() == status::uncertain);
        CHECK(c.answer().what->why.may_have_applied);
        CHECK(w.link(0).count(script_id::put) == 1);
        CHECK(w.link(0).count(verb::del) == 1);
        CHECK(w.stored("apple") == std::nullopt);
        CHECK(w.total(stat::commands_lost) == 1);
    }
}

TEST_CASE("a put waits for its reply no longer than its caller does") {
    world w(1, plain);
    w.link(0).next(script_id::put, fate::lose_reply);
    call& c = w.at(0).put("apple", "new", {.deadline_ms = 60});
    w.advance(59);
    CHECK(!c.ended());
    w.advance(1);
    CHECK(c.code() == status::uncertain);
    CHECK(w.stored("apple") == std::nullopt);
}

TEST_CASE("the deletion behind a lost put goes out on the next connection, if its own has ended") {
    world w(1, plain);
    host& h = w.at(0);
    w.link(0).next(script_id::put, fate::lose_reply);
    call& c = h.put("apple", "new");
    w.link(0).cut();
    w.settle();
    CHECK(c.code() == status::uncertain);
    CHECK(w.stored_value("apple") == "new");
    w.link(0).mend();
    w.settle();
    CHECK(w.stored("apple") == std::nullopt);
    w.link(0).clear_log();
    w.link(0).cut();
    w.link(0).mend();
    w.settle();
    CHECK(w.link(0).count(verb::del) == 0); // it was answered: that is the end of it
}

TEST_CASE("a put that was certainly not applied says so, and deletes nothing") {
    world w(1, plain);
    host& h = w.at(0);
    h.put("apple", "old");
    w.link(0).next(script_id::put, fate::not_sent);
    call& c = h.put("apple", "new");
    CHECK(c.code() == status::unavailable);
    CHECK(!c.answer().what->why.may_have_applied);
    CHECK(w.stored_value("apple") == "old");
    w.link(0).next(script_id::put, fate::refuse, 1, "OOM command not allowed when used memory > 'maxmemory'.");
    call& d = h.put("apple", "new");
    CHECK(d.code() == status::refused);
    CHECK(d.answer().what->why.server_text.starts_with("OOM"));
    CHECK(w.stored_value("apple") == "old");
}

TEST_CASE("a put detaches the loads of its key here: who asks from now on does not get what they read before") {
    world w(1, plain);
    host& h = w.at(0);
    call& leader = h.fetch("apple");
    call& before = h.fetch("apple");
    load made = leader.take();
    h.put("apple", "put");
    call& after = h.fetch("apple");
    CHECK(after.value() == "put");
    made.fulfil("old");
    CHECK(before.value() == "old");
    CHECK(leader.fill() == status::refused);
    CHECK(w.stored_value("apple") == "put");
}

TEST_CASE("waiters elsewhere get the value that was put over the lease they wait for") {
    world w(3, plain);
    load made = w.at(0).fetch("apple").take();
    call& elsewhere = w.at(1).fetch("apple");
    w.advance(40);
    w.at(2).put("apple", "put");
    CHECK(elsewhere.value() == "put");
    CHECK(elsewhere.took_ms() == 40);
    made.fulfil("old");
}

TEST_CASE("a put is overtaken by nothing submitted before it here") {
    world w(1, plain);
    host& h = w.at(0);
    w.link(0).hold();
    call& c = h.put("apple", "red");
    call& read = h.fetch("apple");
    CHECK(!c.ended());
    w.link(0).let_go();
    w.settle();
    CHECK(c.kind() == event_kind::done);
    CHECK(read.value() == "red");
}

TEST_CASE("a put of a value over max_value, or of another codec, is refused before it is sent") {
    fill_policy p = plain;
    p.max_value = 3;
    world w(1, p);
    CHECK(w.at(0).put("apple", "four").refused == status::too_large);
    CHECK(w.link(0).log().empty());
    CHECK(w.at(0).put("apple", "foo").kind() == event_kind::done);
}

TEST_CASE("a put over what is not ours works") {
    world w(1, plain);
    w.may_hold_forever = true;
    w.server->set(w.store_key("apple"), "foreign", std::nullopt);
    CHECK(w.at(0).put("apple", "red").kind() == event_kind::done);
    w.server->set_list(w.store_key("pear"), std::nullopt);
    CHECK(w.at(0).put("pear", "ripe").kind() == event_kind::done);
    CHECK(w.at(0).get("pear").value() == "ripe");
    w.may_hold_forever = false;
    w.settle();
}

TEST_CASE("a cancelled put is told cancelled; it may have been applied") {
    world w(1, plain);
    host& h = w.at(0);
    w.link(0).slow(50);
    call& c = h.put("apple", "red");
    h.cancel(c);
    CHECK(c.code() == status::cancelled);
    w.advance(100);
    CHECK(w.stored_value("apple") == "red");
}
