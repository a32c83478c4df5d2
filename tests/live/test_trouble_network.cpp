// SPDX-License-Identifier: MIT
//
// A network in trouble between callers and their store, by a proxy: what every caller saw, how long it took, what
// was left in the store, and that all is well afterwards. Callers never hang, and a load never depends on the store.
#include <doctest/doctest.h>

#include "app.hpp"
#include "names.hpp"
#include "protocol/scripts.hpp"
#include "support/ports.hpp"
#include "support/proxy.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace stn;
using namespace stn::test;
using namespace std::chrono_literals;

namespace {

constexpr auto hang = 5s; // nothing here takes a tenth of that

struct stage {
    explicit stage(server_kind kind = server_kind::redis, const std::string& options = patient)
        : server(kind),
          net(server.port()),
          shop(net.url(), options) {
        REQUIRE(shop.ready().status == STN_OK);
    }

    live_server server;
    proxy net;
    app shop;

    // The end of every story: the store is used again, and holds nothing for ever.
    void all_is_well() {
        net.pass();
        REQUIRE(eventually([&] { return shop.get("after").status != STN_UNAVAILABLE; }));
        const answer made = shop.load("after", "well");
        CHECK(made.bytes == "well");
        REQUIRE(eventually([&] { return shop.get("after").bytes == "well"; }));
        CHECK(left_in(server).without_ttl == 0);
    }
};

std::string trap(script_id script) {
    return std::string(script_of(script).sha1);
}
const std::string trap_get = "$3\r\nGET\r\n"; // the word also stands in the scripts

} // namespace

TEST_CASE("a cut with many callers in flight: every one has its value") {
    on_each([](server_kind kind) {
        stage s(kind);
        for (int i = 0; i < 64; ++i) CHECK(s.shop.put("old" + std::to_string(i), "stored").status == STN_OK);
        crowd all(s.shop);
        s.net.hold(way::to_client);
        for (int i = 0; i < 64; ++i) all.fetch("new" + std::to_string(i));
        for (int i = 0; i < 64; ++i) all.fetch("old" + std::to_string(i));
        REQUIRE(eventually([&] { return calls_of(s.server, "get") > 0; }));
        s.net.cut();
        REQUIRE(all.serve());
        for (const answer& a : all.answers) {
            CHECK(a.status == STN_OK);
            CHECK_FALSE(a.bytes.empty());
            CHECK(a.took < hang);
        }
        CHECK(s.shop.notices(STN_NOTICE_CONNECTION, STN_UNAVAILABLE).size() == 1);
        s.all_is_well();
        CHECK(s.shop.notices(STN_NOTICE_CONNECTION).back().status == STN_OK);
    });
}

TEST_CASE("the reply to a GET is lost: the caller has its value all the same") {
    stage s;
    s.net.lose_reply_to(trap_get);
    const answer a = s.shop.load("k", "v");
    CHECK(s.net.sprung() == 1);
    CHECK(a.status == STN_OK);
    CHECK(a.bytes == "v");
    CHECK(a.took < hang);
    CHECK(left_in(s.server).keys == 0); // loaded without a lease: nothing is written
    s.all_is_well();
}

TEST_CASE("the reply to a plain get is lost: the caller is told that the store is away") {
    stage s;
    CHECK(s.shop.put("k", "v").status == STN_OK);
    s.net.lose_reply_to(trap_get);
    const answer a = s.shop.get("k");
    CHECK(s.net.sprung() == 1);
    CHECK(a.took < hang);
    CHECK((a.status == STN_UNAVAILABLE || a.bytes == "v"));
    s.all_is_well();
}

TEST_CASE("the reply to a lease is lost: the load goes on, and the lease stands in nobody's way") {
    on_each([](server_kind kind) {
        stage s(kind);
        s.net.lose_reply_to(trap(script_id::lease));
        const answer a = s.shop.load("k", "first");
        CHECK(s.net.sprung() == 1);
        CHECK(a.bytes == "first");
        CHECK(a.took < hang);
        const remains left = left_in(s.server);
        CHECK(left.values == 0);
        CHECK(left.placeholders <= 1);
        CHECK(left.without_ttl == 0);
        s.net.pass();
        REQUIRE(eventually([&] { return s.shop.get("other").status == STN_ABSENT; }));
        // Nobody waits for the lease that was granted unheard, here or elsewhere.
        CHECK(eventually([&] { return left_in(s.server).placeholders == 0; }));
        const answer b = s.shop.load("k", "second");
        CHECK(b.loaded);
        CHECK(b.took < 1s);
        CHECK(s.shop.get("k").bytes == "second");
        CHECK(s.shop.stats().waits == 0);
        s.all_is_well();
    });
}

TEST_CASE("the reply to a fill is lost: everybody has the value, and it is stored") {
    on_each([](server_kind kind) {
        stage s(kind);
        crowd all(s.shop, 20ms);
        for (int i = 0; i < 20; ++i) all.fetch("k");
        s.net.lose_reply_to(trap(script_id::fill));
        REQUIRE(all.serve());
        for (const answer& a : all.answers) CHECK(a.bytes == "k!");
        CHECK(all.values.size() == 1);
        REQUIRE(all.serve_until([&] { return !all.filled.empty(); }));
        CHECK(s.net.sprung() == 1);
        CHECK(all.filled == std::vector<std::int32_t>{STN_UNAVAILABLE});
        s.all_is_well();
        CHECK(s.shop.get("k").bytes == "k!");
        CHECK(left_in(s.server).placeholders == 0);
    });
}

TEST_CASE("the fill never gets there: the value is for its callers, and the lease is let go of") {
    stage s;
    crowd all(s.shop, 20ms);
    all.fetch("k");
    s.net.lose_request(trap(script_id::fill));
    REQUIRE(all.serve());
    CHECK(all.answers.front().bytes == "k!");
    REQUIRE(all.serve_until([&] { return !all.filled.empty(); }));
    CHECK(s.net.sprung() == 1);
    CHECK(all.filled == std::vector<std::int32_t>{STN_UNAVAILABLE});
    s.all_is_well();
    CHECK(left_in(s.server).placeholders == 0);        // let go of on the next connection
    CHECK(s.shop.load("k", "again").bytes == "again"); // its own lease stands in nobody's way
}

TEST_CASE("the reply to a put is lost: it is uncertain, and the key is deleted as soon as that can be") {
    on_each([](server_kind kind) {
        stage s(kind);
        s.net.lose_reply_to(trap(script_id::put));
        const answer a = s.shop.put("k", "v");
        CHECK(s.net.sprung() == 1);
        CHECK(a.status == STN_UNCERTAIN);
        CHECK(a.may_have_applied);
        CHECK(a.took < hang);
        CHECK(calls_of(s.server, "evalsha") == 1); // never sent again
        s.net.pass();
        CHECK(eventually([&] { return s.server.ask({"EXISTS", store_key("k")}).integer == 0; }));
        CHECK(eventually([&] { return calls_of(s.server, "del") == 1; }));
        s.all_is_well();
    });
}

TEST_CASE("the reply to an invalidation is lost: it is done again, and done") {
    on_each([](server_kind kind) {
        stage s(kind);
        CHECK(s.shop.put("k", "v").status == STN_OK);
        s.net.lose_reply_to("$3\r\nDEL\r\n");
        const answer a = s.shop.invalidate("k");
        CHECK(s.net.sprung() == 1);
        CHECK(a.status == STN_OK);
        CHECK(a.took < hang);
        CHECK(s.server.ask({"EXISTS", store_key("k")}).integer == 0);
        CHECK(calls_of(s.server, "del") == 2);
        s.all_is_well();
    });
}

TEST_CASE("the reply to a marking as stale is lost: it is done again, and done") {
    stage s;
    CHECK(s.shop.put("k", "v").status == STN_OK);
    s.net.lose_reply_to(trap(script_id::mark_stale));
    const answer a = s.shop.invalidate("k", STN_INVALIDATE_STALE);
    CHECK(s.net.sprung() == 1);
    CHECK(a.status == STN_OK);
    const answer b = s.shop.get("k");
    CHECK(b.bytes == "v");
    CHECK((b.flags & STN_ANSWER_STALE) != 0);
    s.all_is_well();
}

TEST_CASE("a store slower than command_timeout: callers go on without it, and late replies go to nobody else") {
    on_each([](server_kind kind) {
        stage s(kind, R"({"command_timeout": "50ms"})");
        for (int i = 0; i < 20; ++i) {
            CHECK(s.shop.put("k" + std::to_string(i), "v" + std::to_string(i)).status == STN_OK);
        }
        s.net.delay(way::to_client, 300ms);
        const answer read = s.shop.get("k0");
        CHECK(read.status == STN_TIMEOUT);
        const auto answers =
            at_once(20, [&](std::size_t i) { return s.shop.load("k" + std::to_string(i), "v" + std::to_string(i)); });
        for (std::size_t i = 0; i < answers.size(); ++i) {
            CHECK(answers[i].bytes == "v" + std::to_string(i));
            CHECK(answers[i].took < hang);
        }
        CHECK(s.net.accepted() == 1); // what was sent behind a slow command has to run behind it
        s.net.pass();
        REQUIRE(eventually([&] { return s.shop.get("k0").status == STN_OK; }));
        for (int i = 0; i < 20; ++i) CHECK(s.shop.get("k" + std::to_string(i)).bytes == "v" + std::to_string(i));
        s.all_is_well();
    });
}

TEST_CASE("a put to a store slower than command_timeout is uncertain, and deleted behind it") {
    stage s(server_kind::redis, R"({"command_timeout": "50ms"})");
    s.net.delay(way::to_client, 300ms);
    const answer a = s.shop.put("k", "v");
    CHECK(a.status == STN_UNCERTAIN);
    CHECK(eventually([&] { return calls_of(s.server, "del") == 1; }));
    CHECK(s.server.ask({"EXISTS", store_key("k")}).integer == 0);
    s.all_is_well();
}

TEST_CASE("a peer that falls silent is given up after ten seconds, and meanwhile nobody waits for it") {
    // Both at once: each takes its ten seconds.
    const auto one = [](server_kind kind) {
        stage s(kind, R"({"command_timeout": "50ms", "connect_timeout": "500ms"})");
        s.net.swallow(way::to_server);
        s.net.swallow(way::to_client);
        const auto began = std::chrono::steady_clock::now();
        bool told = false;
        answer slowest;
        while (!told && std::chrono::steady_clock::now() - began < 20s) {
            const answer a = s.shop.load("k", "v");
            CHECK(a.bytes == "v");
            if (a.took > slowest.took) slowest = a;
            const auto said = s.shop.notices(STN_NOTICE_CONNECTION, STN_UNAVAILABLE);
            told = !said.empty();
            if (told) CHECK(said.front().text.find("has not answered for ten seconds") != std::string::npos);
            std::this_thread::sleep_for(20ms);
        }
        CHECK(told);
        CHECK(std::chrono::steady_clock::now() - began > 9s);
        CHECK(slowest.took < 1s);
        CHECK(s.shop.stats().breaker_opened == 1);
        CHECK(s.shop.notices(STN_NOTICE_BREAKER, STN_UNAVAILABLE).size() == 1);
        s.all_is_well();
        CHECK(s.shop.notices(STN_NOTICE_BREAKER, STN_OK).size() == 1);
        return answer{};
    };
    static_cast<void>(at_once(2, [&](std::size_t i) { return one(server_kinds[i]); }));
}

TEST_CASE("nobody answers the SYN: connect_timeout bounds it, and the callers' waiting") {
    live_server server(server_kind::redis);
    proxy net(server.port());
    net.ignore();
    app shop(net.url(), R"({"connect_timeout": "200ms", "command_timeout": "50ms"})");
    const answer a = shop.load("k", "v");
    CHECK(a.bytes == "v");
    CHECK(a.took < hang);
    const answer r = shop.ready();
    CHECK(r.status == STN_UNAVAILABLE);
    CHECK(r.message.find("did not accept the connection in time") != std::string::npos);
    CHECK(shop.get("k").status == STN_UNAVAILABLE);
    net.pass();
    CHECK(shop.ready(10'000).status == STN_OK);
    CHECK(shop.load("k", "stored").bytes == "stored");
    CHECK(shop.notices(STN_NOTICE_CONNECTION, STN_UNAVAILABLE).size() == 1);
}

TEST_CASE("a server that accepts and says nothing: connect_timeout bounds it") {
    live_server server(server_kind::redis);
    proxy net(server.port());
    net.answer_nothing();
    app shop(net.url(), R"({"connect_timeout": "200ms", "command_timeout": "50ms"})");
    const answer a = shop.load("k", "v");
    CHECK(a.bytes == "v");
    CHECK(a.took < hang);
    const answer r = shop.ready();
    CHECK(r.status == STN_UNAVAILABLE);
    CHECK(r.message.find("accepted the connection but did not answer in time") != std::string::npos);
    net.pass();
    CHECK(shop.ready(10'000).status == STN_OK);
}

TEST_CASE("connections are refused: it is said once, loads go on, and it tries for ever") {
    live_server server(server_kind::redis);
    proxy net(server.port());
    net.refuse();
    app shop(net.url());
    const auto answers = at_once(8, [&](std::size_t i) { return shop.load("k" + std::to_string(i), "v"); });
    for (const answer& a : answers) {
        CHECK(a.bytes == "v");
        CHECK(a.took < hang);
    }
    const answer put = shop.put("k", "v");
    CHECK(put.status == STN_UNAVAILABLE);
    CHECK_FALSE(put.may_have_applied);
    std::this_thread::sleep_for(1s); // many attempts
    CHECK(shop.notices(STN_NOTICE_CONNECTION).size() == 1);
    CHECK(shop.notices(STN_NOTICE_CONNECTION).front().text.find("Connection refused") != std::string::npos);
    net.pass();
    CHECK(shop.ready(10'000).status == STN_OK);
    CHECK(shop.load("k", "stored").bytes == "stored");
    CHECK(shop.get("k").bytes == "stored");
}

TEST_CASE("an address that is silent leaves the others their part of the time") {
    live_server server(server_kind::redis);
    proxy net(server.port()); // of 127.0.0.1
    const int deaf = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(net.port());
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    REQUIRE(::bind(deaf, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0);
    REQUIRE(::listen(deaf, 5) == 0); // and never accepts
    let_name_be("half-deaf.test", {"127.0.0.2", "127.0.0.1"});
    app shop("redis://half-deaf.test:" + std::to_string(net.port()), R"({"connect_timeout": "400ms"})");
    const answer a = shop.load("k", "v");
    CHECK(a.bytes == "v");
    CHECK(a.took < hang);
    CHECK(shop.get("k").bytes == "v"); // by way of the store
    CHECK(shop.notices(STN_NOTICE_CONNECTION, STN_UNAVAILABLE).empty());
    ::close(deaf);
}

TEST_CASE("a name that hangs holds nobody up for longer than connecting may take") {
    let_name_be("hanging.test", {"127.0.0.1"}, 3s);
    app shop("redis://hanging.test:1", R"({"connect_timeout": "200ms", "command_timeout": "50ms"})");
    const answer a = shop.load("k", "v");
    CHECK(a.bytes == "v");
    CHECK(a.took < 2s);
}
