// SPDX-License-Identifier: MIT
//
// A server that answers, but refuses: what callers see, what is sent again, what counts as a failure of it.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "protocol/refusal.hpp"
#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

namespace {

const char* const loading = "LOADING Redis is loading the dataset in memory";
const char* const busy = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
const char* const cluster_down = "CLUSTERDOWN The cluster is down";
const char* const master_down = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
const char* const read_only = "READONLY You can't write against a read only replica.";
const char* const misconf = "MISCONF Errors writing to the AOF file: No space left on device";
const char* const no_replicas = "NOREPLICAS Not enough good replicas to write.";
const char* const no_auth = "NOAUTH Authentication required.";
const char* const no_perm = "NOPERM this user has no permissions to run the 'del' command";
const char* const oom = "OOM command not allowed when used memory > 'maxmemory'.";
const char* const wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
const char* const max_clients = "ERR max number of clients reached";
const char* const killed = "ERR Script killed by user with SCRIPT KILL... script: 694a, on @user_script:1.";
const char* const try_again = "TRYAGAIN Multiple keys request during rehashing of slot";

const refusal_traits& traits_of(const char* text) {
    return stn::traits_of(classify(reply::of_error(text)));
}

std::vector<mono_ms> times_of(const world& w, const test_link& link, verb what) {
    std::vector<mono_ms> out;
    for (const auto& s : link.log()) {
        if (s.cmd.what == what) out.push_back(s.at);
    }
    static_cast<void>(w);
    return out;
}

std::vector<const event*> notices_of(const host& h, notice what) {
    std::vector<const event*> out;
    for (const event& e : h.notices) {
        if (e.notice == static_cast<std::uint32_t>(what)) out.push_back(&e);
    }
    return out;
}

// As many looks as there are numbers, each refused.
void refused_looks(world& w, host& h, const char* text, int n, const std::string& keys = "key") {
    w.link(0).next(verb::get, fate::refuse, n, text);
    for (int i = 0; i < n; ++i) {
        call& c = h.fetch(keys + std::to_string(i));
        if (c.leads()) c.take().fail("x", status::internal);
    }
}

} // namespace

// ---- looking

TEST_CASE(
    "LOADING, BUSY, CLUSTERDOWN or MASTERDOWN to a look: one load here, at once, shared, and nothing is written") {
    for (const char* text : {loading, busy, cluster_down, master_down}) {
        CAPTURE(text);
        world w;
        host& h = w.at(0);
        w.link(0).every(fate::refuse, text);
        w.link(0).slow(1);
        call& c = h.fetch("apple");
        call& joined = h.fetch("apple");
        w.advance(1);
        REQUIRE(c.leads());
        w.advance(50);
        c.take().fulfil("red");
        CHECK(joined.value() == "red");
        CHECK(w.total(stat::loads) == 1);
        CHECK(w.total(stat::loads_alone) == 1);
        CHECK(c.fill() == status::lost);
    }
}

TEST_CASE("while the store serves nobody at most max_loads_down loads run, whichever command was refused") {
    for (const char* text : {loading, busy, cluster_down, master_down}) {
        for (const bool at_lease : {false, true}) {
            CAPTURE(text);
            CAPTURE(at_lease);
            client_settings settings;
            settings.max_loads_down = 3;
            world w(1, {.ttl_ms = 60'000}, settings);
            host& h = w.at(0);
            if (at_lease) {
                w.link(0).next(script_id::lease, fate::refuse, -1, text);
            } else {
                w.link(0).next(verb::get, fate::refuse, -1, text);
            }
            std::vector<call*> all;
            for (int i = 0; i < 10; ++i) all.push_back(&h.fetch("key" + std::to_string(i), {.deadline_ms = 1'000}));
            CHECK(std::ranges::count_if(all, [](const call* c) { return c->leads(); }) == 3);
            all[0]->take().fulfil("x");
            CHECK(all[3]->leads()); // the next in line
            w.advance(1'000);
            CHECK(w.total(stat::overloaded) == 6);
        }
    }
}

TEST_CASE("a full store that refuses leases bounds nothing: each process loads for itself") {
    world w;
    w.link(0).next(script_id::lease, fate::refuse, -1, oom);
    for (int i = 0; i < 100; ++i) CHECK(w.at(0).fetch("key" + std::to_string(i)).leads());
}

TEST_CASE("wrong credentials do not stop anybody from loading, and the operator is told once what to do") {
    for (const char* text : {no_auth, no_perm}) {
        CAPTURE(text);
        world w;
        host& h = w.at(0);
        w.core(0).told.watch(h.queue, static_cast<std::uint32_t>(notice::log), 9);
        refused_looks(w, h, text, 8);
        CHECK(w.total(stat::loads_alone) == 8);
        const auto told = notices_of(h, notice::log);
        REQUIRE(told.size() == 1);
        CHECK(told[0]->code == status::denied);
        CHECK(told[0]->what->why.message.starts_with(traits_of(text).text));
        CHECK(told[0]->what->why.message.find(text) != std::string::npos);
        w.link(0).cut();
        w.link(0).mend();
        w.settle();
        refused_looks(w, h, text, 2, "later");
        CHECK(notices_of(h, notice::log).size() == 2); // once for each connection
    }
}

TEST_CASE("a store that cannot save or has too few replicas is told to the operator, one that loads is not") {
    for (const char* text : {misconf, no_replicas, read_only, oom}) {
        CAPTURE(text);
        world w;
        host& h = w.at(0);
        w.core(0).told.watch(h.queue, static_cast<std::uint32_t>(notice::log), 9);
        w.link(0).next(script_id::put, fate::refuse, 1, text);
        h.put("apple", "red");
        w.advance(1'000);
        CHECK(notices_of(h, notice::log).size() == 1);
    }
    world w;
    host& h = w.at(0);
    w.core(0).told.watch(h.queue, static_cast<std::uint32_t>(notice::log), 9);
    refused_looks(w, h, loading, 8);
    refused_looks(w, h, wrong_type, 1, "list");
    CHECK(notices_of(h, notice::log).empty());
}

// ---- filling

TEST_CASE("BUSY to a fill: it is tried again, and stored") {
    world w;
    call& c = w.at(0).fetch("apple");
    w.link(0).next(script_id::fill, fate::refuse, 1, busy);
    c.take().fulfil("red");
    CHECK(!c.fill());
    w.advance(200);
    CHECK(c.fill() == status::ok);
    CHECK(w.stored_value("apple") == "red");
}

TEST_CASE("OOM to a fill: the lease is given up, so that those who wait elsewhere go on at once") {
    world w(2);
    call& c = w.at(0).fetch("apple");
    load made = c.take();
    call& elsewhere = w.at(1).fetch("apple");
    w.advance(100);
    CHECK(!elsewhere.ended());
    w.link(0).next(script_id::fill, fate::refuse, 1, oom);
    made.fulfil("red");
    CHECK(c.fill() == status::unavailable);
    REQUIRE(c.fills.size() == 1);
    CHECK(c.fills[0].what->why.server_text == oom);
    CHECK(c.fills[0].what->why.message == traits_of(oom).text);
    REQUIRE(elsewhere.leads());
    CHECK(elsewhere.took_ms() == 100);
    elsewhere.take().fulfil("red");
    CHECK(w.stored_value("apple") == "red");
}

TEST_CASE("a lease is kept through a long script: renewals refused for all its length lose nothing") {
    world w(2, {.ttl_ms = 60'000, .lease_ms = 3'000});
    call& c = w.at(0).fetch("apple");
    load made = c.take();
    w.link(0).next(script_id::extend, fate::refuse, 4, busy);
    w.advance(1'950);
    CHECK(w.link(0).count(script_id::extend) == 4);
    CHECK(made.state() == lease::state::live);
    w.advance(8'000);
    CHECK(w.total(stat::leases_lost) == 0);
    CHECK(!w.at(1).fetch("apple").leads());
    made.fulfil("red");
    CHECK(c.fill() == status::ok);
}

// ---- invalidating and putting

TEST_CASE("an invalidation that is refused for now is sent again until it is done") {
    for (const char* text : {loading, busy, cluster_down, master_down, read_only, misconf, no_replicas, max_clients,
                             killed, try_again, oom, "ERR something new"}) {
        CAPTURE(text);
        world w;
        host& h = w.at(0);
        h.put("apple", "old");
        w.link(0).next(verb::del, fate::refuse, 3, text);
        call& c = h.invalidate("apple");
        CHECK(!c.ended());
        w.advance(4'000);
        CHECK(c.kind() == event_kind::done);
        CHECK(w.link(0).count(verb::del) == 4);
        CHECK(w.stored("apple") == std::nullopt);
        const auto at = times_of(w, w.link(0), verb::del);
        for (std::size_t i = 1; i < at.size(); ++i) {
            const auto gap = at[i] - at[i - 1];
            switch (traits_of(text).again) {
            case retry_pace::never: CHECK((gap >= 5 && gap <= 200)); break;
            case retry_pace::soon: CHECK((gap >= 50 && gap <= 200)); break;
            case retry_pace::slowly: CHECK((gap >= 100 && gap <= 1'000)); break;
            }
        }
    }
}

TEST_CASE("one that is refused to the end says by whom and why, in its deadline") {
    for (const char* text : {loading, busy, misconf, oom}) {
        for (const bool stale : {false, true}) {
            CAPTURE(text);
            world w;
            host& h = w.at(0);
            h.put("apple", "old");
            w.link(0).next(verb::del, fate::refuse, -1, text);
            w.link(0).next(script_id::mark_stale, fate::refuse, -1, text);
            call& c = h.invalidate("apple", stale, {.deadline_ms = 3'000});
            w.advance(3'000);
            REQUIRE(c.kind() == event_kind::error);
            CHECK(c.took_ms() == 3'000);
            CHECK(c.code() == traits_of(text).means);
            CHECK(c.text() == traits_of(text).text);
            CHECK(c.answer().what->why.server_text == text);
            CHECK(c.answer().what->why.key == "apple");
            CHECK(!c.answer().what->why.may_have_applied);
        }
    }
}

TEST_CASE("what only a person can repair ends an invalidation or a put at once") {
    for (const char* text : {no_perm, "MOVED 15495 127.0.0.1:35655", "CROSSSLOT Keys in request don't hash",
                             "ERR unknown command 'DEL', with args beginning with: 'k' ", wrong_type,
                             "ERR The user executing the script can't run this command or subcommand"}) {
        CAPTURE(text);
        world w;
        host& h = w.at(0);
        w.link(0).every(fate::refuse, text);
        for (call* c : {&h.invalidate("apple"), &h.invalidate("apple", true), &h.put("apple", "new")}) {
            REQUIRE(c->kind() == event_kind::error);
            CHECK(c->took_ms() == 0);
            CHECK(c->code() == traits_of(text).means);
            CHECK(c->answer().what->why.server_text == text);
        }
        CHECK(w.link(0).count(verb::del) == 1);
    }
}

TEST_CASE("NOAUTH is worth one more try, on the connection made anew: the password may just have been changed") {
    world w;
    host& h = w.at(0);
    w.link(0).next(verb::del, fate::refuse, 1, no_auth);
    call& good = h.invalidate("apple");
    w.advance(200);
    CHECK(good.kind() == event_kind::done);
    w.link(0).next(verb::del, fate::refuse, -1, no_auth);
    call& bad = h.invalidate("apple");
    w.advance(200);
    CHECK(bad.code() == status::denied);
    CHECK(w.link(0).count(verb::del) == 4);
}

TEST_CASE("a put that is refused for now is sent again within its deadline, the default one too") {
    for (const char* text : {busy, cluster_down, read_only, loading, misconf, no_auth}) {
        CAPTURE(text);
        world w(1, {.ttl_ms = 60'000, .jitter = 0});
        host& h = w.at(0);
        w.link(0).next(script_id::put, fate::refuse, 1, text);
        call& c = h.put("apple", "new");
        w.advance(200);
        CHECK(c.kind() == event_kind::done);
        CHECK(w.stored_value("apple") == "new");
        CHECK(w.link(0).count(script_id::put) == 2);
    }
}

TEST_CASE("a put that is refused to the end ends within its deadline, and says why") {
    world w;
    host& h = w.at(0);
    w.link(0).next(script_id::put, fate::refuse, -1, busy);
    call& c = h.put("apple", "new");
    w.advance(10'000);
    CHECK(c.code() == status::unavailable);
    CHECK(c.took_ms() <= 250); // no try would fit in any more
    CHECK(c.took_ms() >= 50);
    CHECK(c.answer().what->why.server_text == busy);
    CHECK(!c.answer().what->why.may_have_applied);
    CHECK(w.link(0).count(verb::del) == 0);
}

TEST_CASE("a put that was refused, and then found the store away, tells the refusal") {
    world w;
    host& h = w.at(0);
    w.link(0).next(script_id::put, fate::refuse, 1, "READONLY You can't write against a read only replica.");
    w.link(0).next(script_id::put, fate::not_sent, -1);
    call& c = h.put("apple", "new");
    w.advance(1'000);
    CHECK(c.code() == status::unavailable);
    CHECK(c.answer().what->why.server_text.starts_with("READONLY"));
    CHECK(!c.answer().what->why.may_have_applied);
}

TEST_CASE("a put that is sent again waits for its answer no longer than to its deadline") {
    world w;
    host& h = w.at(0);
    w.link(0).next(script_id::put, fate::refuse, 1, busy);
    w.link(0).next(script_id::put, fate::vanish, 1);
    call& c = h.put("apple", "new");
    w.advance(10'000);
    CHECK(c.code() == status::uncertain);
    CHECK(c.took_ms() == 250);
}

TEST_CASE("a put without memory is not sent again: it would only be refused again") {
    world w;
    w.link(0).next(script_id::put, fate::refuse, -1, oom);
    CHECK(w.at(0).put("apple", "new", {.deadline_ms = 5'000}).code() == status::refused);
    CHECK(w.link(0).count(script_id::put) == 1);
}

TEST_CASE("a put whose reply is lost is never sent again, also not when it was refused before") {
    world w;
    host& h = w.at(0);
    w.link(0).next(script_id::put, fate::refuse, 1, busy);
    w.link(0).next(script_id::put, fate::lose_reply, 1);
    call& c = h.put("apple", "new", {.deadline_ms = 5'000});
    w.advance(1'000);
    CHECK(c.code() == status::uncertain);
    CHECK(c.answer().what->why.may_have_applied);
    CHECK(w.link(0).count(script_id::put) == 2);
    CHECK(w.stored("apple") == std::nullopt); // the deletion behind it
}

// ---- the breaker

TEST_CASE("a server that answers but serves nobody opens the breaker, which says so once") {
    for (const char* text : {loading, busy, cluster_down, master_down, max_clients}) {
        CAPTURE(text);
        world w;
        host& h = w.at(0);
        w.core(0).told.watch(h.queue, static_cast<std::uint32_t>(notice::breaker), 0);
        refused_looks(w, h, text, 4);
        CHECK(!w.core(0).commands.down());
        refused_looks(w, h, text, 1, "fifth");
        CHECK(w.core(0).commands.down());
        CHECK(w.total(stat::breaker_opened) == 1);
        CHECK(w.total(stat::commands_lost) == 0);
        CHECK(notices_of(h, notice::breaker).size() == 1);
        const auto sent = w.link(0).log().size();
        call& c = h.fetch("now");
        CHECK(c.leads()); // and the store is left alone meanwhile
        CHECK(w.link(0).log().size() == sent);
    }
}

TEST_CASE("corrupt values, a full store, missing rights or a replica never do: they say nothing of other keys") {
    for (const char* text : {wrong_type, oom, no_perm, no_auth, read_only, misconf, no_replicas, try_again, killed,
                             "NOSCRIPT No matching script.", "ERR something new"}) {
        CAPTURE(text);
        world w;
        host& h = w.at(0);
        refused_looks(w, h, text, 10);
        w.link(0).next(script_id::lease, fate::refuse, 10, text);
        w.link(0).next(script_id::put, fate::refuse, 10, text);
        for (int i = 0; i < 10; ++i) {
            call& c = h.fetch("other" + std::to_string(i));
            if (c.leads()) c.take().fail("x", status::internal);
            h.put("put" + std::to_string(i), "x");
        }
        w.advance(1'000);
        CHECK(w.total(stat::breaker_opened) == 0);
        w.link(0).heal();
        h.put("healthy", "value");
        CHECK(h.fetch("healthy").value() == "value");
    }
}

TEST_CASE("a store that loads is asked again within a second each time, and used as soon as it is well") {
    world w;
    host& h = w.at(0);
    w.core(0).told.watch(h.queue, static_cast<std::uint32_t>(notice::breaker), 0);
    w.always(1.0);
    refused_looks(w, h, loading, 5);
    REQUIRE(w.core(0).commands.down());
    w.link(0).next(verb::get, fate::refuse, -1, loading);
    for (int i = 0; i < 20; ++i) {
        w.advance(1'000);
        w.link(0).clear_log();
        for (int k = 0; k < 3; ++k) {
            call& c = h.fetch("key" + std::to_string(k));
            if (c.leads()) c.take().fail("x", status::internal);
        }
        CHECK(w.link(0).count(verb::get) == 1); // the probe
    }
    w.link(0).heal();
    w.advance(1'000);
    call& c = h.fetch("apple");
    c.take().fulfil("red");
    CHECK(c.fill() == status::ok);
    CHECK(!w.core(0).commands.down());
    CHECK(notices_of(h, notice::breaker).size() == 2);
}

TEST_CASE("what a loading server still does, such as PUBLISH, does not close the breaker") {
    world w;
    host& h = w.at(0);
    refused_looks(w, h, loading, 5);
    REQUIRE(w.core(0).commands.down());
    w.link(0).next(verb::del, fate::refuse, 1, loading);
    h.invalidate("apple", false, {.deadline_ms = 0});
    CHECK(w.link(0).count(verb::publish) == 1);
    CHECK(w.core(0).commands.down());
    h.invalidate("apple", false, {.deadline_ms = 0}); // a deletion that is done does
    CHECK(!w.core(0).commands.down());
}
