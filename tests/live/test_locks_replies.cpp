// SPDX-License-Identifier: MIT
//
// Locks over a network that loses, delays and cuts: never is a key left behind that nobody holds.
#include <doctest/doctest.h>

#include "locks.hpp"
#include "protocol/keys.hpp"
#include "protocol/scripts.hpp"
#include "support/proxy.hpp"

using namespace stn;
using namespace stn::test;
using namespace std::chrono_literals;

namespace {

const std::string report = lock_key("stn", "report");

// A client behind a network, and a server that knows the scripts.
struct scene {
    explicit scene(server_kind kind, const std::string& options = patient)
        : server(kind),
          net(server.port()),
          here(net.url(), options),
          user(here) {
        REQUIRE(here.ready(10'000).status == STN_OK);
        warm_up(user);
        CHECK(server.ask({"CONFIG", "RESETSTAT"}).text == "OK");
        connections = net.accepted();
    }
    live_server server;
    proxy net;
    app here;
    lock_user user;
    std::uint64_t connections; // so far

    [[nodiscard]] bool free() { return !stands(server, report); }
    [[nodiscard]] bool free_soon() {
        return eventually([&] { return free(); }, 5s); // its ttl is longer
    }
};

std::string sha(script_id id) {
    return std::string(script_of(id).sha1);
}

} // namespace

TEST_CASE("an acquire whose reply is lost is granted by asking again with the same token") {
    on_each([](server_kind kind) {
        scene s(kind);
        s.net.lose_reply_to(sha(script_id::acquire));
        const auto got = s.user.acquire("report", R"({"ttl": "1m", "wait": "10s"})");
        CHECK(s.net.sprung() == 1);
        REQUIRE(got.lock);
        CHECK(got.took < 5s); // and not when its own key had expired
        CHECK(calls_of(s.server, "set") == 1);
        const std::string head = token_of(got.lock) + ":" + std::to_string(stn_lock_fence(got.lock.get())) + ":";
        CHECK(s.server.ask({"GET", report}).text == head);
        CHECK(s.user.release(got.lock).status == STN_OK);
        CHECK(s.free());
    });
}

TEST_CASE("an acquire that never got there is sent again, on a connection made anew") {
    on_each([](server_kind kind) {
        scene s(kind);
        s.net.lose_request(sha(script_id::acquire));
        const auto got = s.user.acquire("report");
        CHECK(s.net.sprung() == 1);
        REQUIRE(got.lock);
        CHECK(s.user.release(got.lock).status == STN_OK);
        CHECK(s.free());
    });
}

TEST_CASE("a renewal that was lost on either way is made again, and costs nobody his lock") {
    on_each([](server_kind kind) {
        scene s(kind);
        const auto got = s.user.acquire("report", R"({"ttl": "2s"})");
        REQUIRE(got.lock);
        s.net.lose_reply_to(sha(script_id::renew));
        REQUIRE(eventually([&] { return s.net.sprung() == 1; })); // the one that goes by itself
        CHECK(s.user.renew(got.lock, 4'000).status == STN_OK);
        s.net.lose_request(sha(script_id::renew));
        CHECK(s.user.renew(got.lock, 4'000).status == STN_OK);
        CHECK(s.net.sprung() == 2);
        CHECK(stn_lock_held(got.lock.get()) == 1);
        CHECK(s.user.losses().empty());
        CHECK(s.user.release(got.lock).status == STN_OK);
        CHECK(s.free());
    });
}

TEST_CASE("a release whose reply is lost is uncertain, not somebody else's, and nothing stays") {
    on_each([](server_kind kind) {
        scene s(kind);
        const auto got = s.user.acquire("report");
        REQUIRE(got.lock);
        s.net.lose_reply_to(sha(script_id::release));
        const auto end = s.user.release(got.lock);
        CHECK(s.net.sprung() == 1);
        CHECK(end.status == STN_UNCERTAIN);
        CHECK(stn_lock_held(got.lock.get()) == 0);
        CHECK(s.free());
        CHECK(s.user.losses(50ms).empty()); // its own event tells
    });
}

TEST_CASE("a release that never got there is sent again, and done") {
    on_each([](server_kind kind) {
        scene s(kind);
        const auto got = s.user.acquire("report");
        REQUIRE(got.lock);
        s.net.lose_request(sha(script_id::release));
        CHECK(s.user.release(got.lock).status == STN_OK);
        CHECK(s.net.sprung() == 1);
        CHECK(s.free());
    });
}

TEST_CASE("a release that is cut off finds nobody else's lock to delete when it is sent again") {
    on_each([](server_kind kind) {
        scene s(kind);
        const auto got = s.user.acquire("report");
        REQUIRE(got.lock);
        s.net.refuse();
        s.net.cut();
        CHECK(s.server.ask({"SET", report, "another's", "PX", "60000"}).text == "OK");
        s.net.hold(way::to_server);
        const auto end = s.user.release(got.lock, 300);
        CHECK((end.status == STN_UNCERTAIN || end.status == STN_UNAVAILABLE));
        s.net.pass();
        REQUIRE(s.here.ready(10'000).status == STN_OK);
        CHECK(s.user.acquire("other").lock); // behind what was still to be sent
        CHECK(s.server.ask({"GET", report}).text == "another's");
    });
}

TEST_CASE("an acquire that is cancelled on its way: its late grant is given back on the same connection") {
    on_each([](server_kind kind) {
        scene s(kind);
        s.net.hold(way::to_server);
        auto asked = s.user.begin("report", R"({"ttl": "1m"})");
        std::this_thread::sleep_for(50ms);
        asked.cancel();
        const auto end = asked.end();
        CHECK(end.status == STN_CANCELLED);
        CHECK_FALSE(end.lock);
        s.net.pass();
        CHECK(eventually([&] { return calls_of(s.server, "del") == 1; }));
        CHECK(calls_of(s.server, "set") == 1); // it was granted, to nobody
        CHECK(s.free());
        CHECK(s.net.accepted() == s.connections);
    });
}

TEST_CASE("an acquire that is out of time is uncertain, and given back before its answer is there") {
    on_each([](server_kind kind) {
        scene s(kind);
        s.net.hold(way::to_client);
        const auto end = s.user.acquire("report", R"({"ttl": "1m", "wait": "300ms"})");
        CHECK(end.status == STN_UNCERTAIN);
        CHECK(end.may_have_applied);
        CHECK_FALSE(end.lock);
        CHECK(end.took < 3s);
        CHECK(s.free_soon());
        CHECK(calls_of(s.server, "set") == 1);
        CHECK(s.net.accepted() == s.connections);
        s.net.pass();
        const auto next = s.user.acquire("report");
        CHECK(next.lock);
        CHECK(next.took < 5s);
    });
}

TEST_CASE("a try whose reply is late is uncertain, and its key is gone soon, whatever comes when") {
    on_each([](server_kind kind) {
        scene s(kind, R"({"command_timeout": "100ms"})");
        s.net.delay(way::to_client, 400ms);
        const auto end = s.user.acquire("report", R"({"ttl": "1m", "wait": "0s"})");
        CHECK(end.status == STN_UNCERTAIN);
        CHECK(s.free_soon());
        s.net.pass();
        std::this_thread::sleep_for(50ms);
        CHECK(s.free()); // no late copy has taken it again
        CHECK(s.user.acquire("report", R"({"ttl": "1m", "wait": "5s"})").lock);
    });
}

TEST_CASE("a given-up acquire whose connection is cut is given back on the next one") {
    on_each([](server_kind kind) {
        scene s(kind);
        s.net.hold(way::to_client);
        auto asked = s.user.begin("report", R"({"ttl": "1m"})");
        REQUIRE(eventually([&] { return stands(s.server, report); }));
        s.net.hold(way::to_server);
        asked.cancel(); // its release gets no further than the proxy
        CHECK(asked.end().status == STN_CANCELLED);
        std::this_thread::sleep_for(50ms);
        CHECK(stands(s.server, report));
        s.net.cut(ending::reset);
        CHECK(stands(s.server, report));
        s.net.pass();
        CHECK(s.free_soon());
        CHECK(s.net.accepted() > s.connections);
    });
}

TEST_CASE("an acquire whose connection is cut in the middle is granted on the next one, by the same token") {
    on_each([](server_kind kind) {
        scene s(kind);
        s.net.hold(way::to_client);
        auto asked = s.user.begin("report", R"({"ttl": "1m"})");
        REQUIRE(eventually([&] { return stands(s.server, report); }));
        const std::string before = s.server.ask({"GET", report}).text;
        s.net.cut();
        s.net.pass();
        const auto got = asked.end();
        REQUIRE(got.lock);
        CHECK(before.starts_with(token_of(got.lock) + ":"));
        CHECK(s.server.ask({"GET", report}).text == before);
        CHECK(stn_lock_remaining_ms(got.lock.get()) > 50'000);
    });
}

TEST_CASE("a handle that is dropped gives its lock back, on a connection made anew if need be") {
    on_each([](server_kind kind) {
        scene s(kind);
        auto got = s.user.acquire("report", R"({"ttl": "1m"})");
        REQUIRE(got.lock);
        s.net.refuse();
        s.net.cut();
        got.lock.reset();
        std::this_thread::sleep_for(100ms);
        CHECK(stands(s.server, report));
        s.net.pass();
        CHECK(s.free_soon());
        CHECK(s.user.losses(50ms).empty());
    });
}

TEST_CASE("an id whose claim was made and never told is claimed by asking again; given up, it is taken back") {
    on_each([](server_kind kind) {
        scene s(kind);
        s.net.lose_reply_to(sha(script_id::once));
        const auto mine = s.user.once("mail-7", 60'000);
        CHECK(s.net.sprung() == 1);
        CHECK(mine.status == STN_OK);
        CHECK(calls_of(s.server, "set") == 1);
        CHECK(s.user.once("mail-7", 60'000).status == STN_BUSY);
        CHECK(s.user.once("mail-7", 60'000).reason == STN_REASON_TAKEN);

        s.net.hold(way::to_client);
        const auto lost = s.user.once("mail-8", 60'000, 300);
        CHECK(lost.status == STN_UNCERTAIN);
        CHECK(eventually([&] { return !stands(s.server, once_key("stn", "mail-8")); }));
        s.net.pass();
        CHECK(eventually([&] { return s.user.once("mail-8", 60'000).status == STN_OK; }));
    });
}
