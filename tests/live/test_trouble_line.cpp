// SPDX-License-Identifier: MIT
//
// The transport alone, on a line that breaks: what became of each command is told once and truly, and nothing is
// sent twice.
#include <doctest/doctest.h>

#include "app.hpp"
#include "line.hpp"
#include "names.hpp"
#include "protocol/commands.hpp"
#include "protocol/scripts.hpp"
#include "support/ports.hpp"
#include "support/proxy.hpp"

#include <unistd.h>

using namespace stn;
using namespace stn::test;
using namespace std::chrono_literals;
using kind = transport_event::kind;

namespace {

constexpr std::size_t many = 500;

bool all_told(const line& l, std::size_t n) {
    return l.replies.size() >= n;
}

} // namespace

TEST_CASE("a cut connection is reported as lost, and nothing is sent again") {
    on_each([](server_kind which) {
        live_server server(which);
        proxy net(server.port());
        line l(net.url());
        REQUIRE(l.connect());
        l.replies.clear();
        net.hold(way::to_client);
        for (std::size_t i = 0; i < many; ++i) l.send(get_command("k" + std::to_string(i)));
        REQUIRE(l.turn_until([&] { return calls_of(server, "get") == many; }));
        net.cut();
        REQUIRE(l.turn_until([&] { return all_told(l, many); }));
        CHECK(l.ended_as(delivery::lost) == many);
        CHECK(l.told(kind::disconnected) == 1);
        net.pass();
        REQUIRE(l.turn_until([&] { return l.told(kind::connected) == 2; }));
        REQUIRE(l.connect());
        CHECK(calls_of(server, "get") == many); // not one more
        for (const auto& [seq, all] : l.replies) CHECK(all.size() == 1);
    });
}

TEST_CASE("what a cut connection had not handed on is reported as lost too, and never runs") {
    live_server server(server_kind::redis);
    proxy net(server.port());
    line l(net.url());
    REQUIRE(l.connect());
    l.replies.clear();
    net.hold(way::to_server);
    for (std::size_t i = 0; i < many; ++i) l.send(get_command("k"));
    // In batches: one is on its way, the next is not. Both have left for all that we can know, or certainly not.
    REQUIRE_FALSE(l.turn_until([&] { return !l.replies.empty(); }, 100ms));
    net.cut();
    REQUIRE(l.turn_until([&] { return all_told(l, many); }));
    CHECK(l.ended_as(delivery::lost) + l.ended_as(delivery::not_sent) == many);
    net.pass();
    REQUIRE(l.turn_until([&] { return l.told(kind::connected) == 2; }));
    REQUIRE(l.connect());
    CHECK(calls_of(server, "get") == 0);
}

TEST_CASE("what never left is reported as not sent") {
    live_server server(server_kind::redis);
    proxy net(server.port());
    line l(net.url());
    REQUIRE(l.connect());
    l.replies.clear();
    net.hold(way::to_server);
    const auto first = l.send(get_command("left"));
    REQUIRE_FALSE(l.turn_until([&] { return !l.replies.empty(); }, 30ms));
    l.holds_back = true;
    const auto second = l.send(get_command("stayed"));
    net.cut();
    REQUIRE(l.turn_until([&] { return all_told(l, 2); }));
    CHECK(l.replies[first].front().how == delivery::lost);
    CHECK(l.replies[second].front().how == delivery::not_sent);
}

TEST_CASE("commands wait for the first connection, and for none that is known to be away") {
    const std::uint16_t port = free_port();
    line l("redis://127.0.0.1:" + std::to_string(port));
    const auto early = l.send(get_command("k"));
    REQUIRE(l.turn_until([&] { return all_told(l, 1); }));
    CHECK(l.replies[early].front().how == delivery::not_sent);
    CHECK(l.told(kind::disconnected) == 1);
    const auto late = l.send(get_command("k"));
    REQUIRE(l.turn_until([&] { return l.replies.contains(late); }, 1s));
    CHECK(l.replies[late].front().how == delivery::not_sent);
}

TEST_CASE("a store that is away is told once, however many attempts fail") {
    const std::uint16_t port = free_port();
    line l("redis://127.0.0.1:" + std::to_string(port));
    l.send(get_command("k"));
    REQUIRE(l.turn_until([&] { return l.told(kind::not_connected) >= 5; }));
    CHECK(l.told(kind::disconnected) == 1);
}

TEST_CASE("commands in flight are bounded, and more are not sent") {
    live_server server(server_kind::redis);
    proxy net(server.port());
    line l(net.url());
    REQUIRE(l.connect());
    l.replies.clear();
    net.swallow(way::to_client);
    constexpr std::size_t bound = 100'000;
    for (std::size_t i = 0; i < bound + many; ++i) l.send(get_command("k"));
    REQUIRE(l.turn_until([&] { return all_told(l, many); }));
    CHECK(l.ended_as(delivery::not_sent) == many);
    CHECK(l.replies.size() == many);
}

TEST_CASE("one byte at a time is as good as all at once") {
    on_each([](server_kind which) {
        live_server server(which);
        proxy net(server.port());
        net.trickle(way::to_client);
        net.trickle(way::to_server);
        line l(net.url(), 10'000);
        REQUIRE(l.connect());
        const std::string large(3'000, 'x');
        CHECK(server.ask({"SET", "large", large}).text == "OK");
        const auto a = l.send(get_command("none"));
        const auto b = l.send(get_command("large"));
        const auto c = l.send(del_command("large"));
        REQUIRE(l.turn_until([&] { return l.replies.contains(c); }));
        CHECK(l.replies[a].front().said.kind == reply_kind::nil);
        CHECK(l.replies[b].front().said.text == large);
        CHECK(l.replies[c].front().said.integer == 1);
    });
}

TEST_CASE("a name with several addresses is tried address by address") {
    live_server server(server_kind::redis);
    let_name_be("several.test", {"127.0.0.2", "127.0.0.3", "127.0.0.1"}); // nobody listens at the first two
    line l("redis://several.test:" + std::to_string(server.port()));
    CHECK(l.connect());
    CHECK(l.told(kind::disconnected) == 0);
}

TEST_CASE("a name that takes its time is waited for, no longer than for a connection") {
    let_name_be("slow.test", {"127.0.0.1"}, 3s);
    line l("redis://slow.test:1", 200);
    const auto one = l.send(get_command("k"));
    const auto before = std::chrono::steady_clock::now();
    REQUIRE(l.turn_until([&] { return l.replies.contains(one); }, 2s));
    CHECK(std::chrono::steady_clock::now() - before < 2s);
    CHECK(l.replies[one].front().how == delivery::not_sent);
    REQUIRE(!l.news.empty());
    CHECK(l.news.front().payload.find("\"slow.test\" was not resolved in time") != std::string::npos);
}

TEST_CASE("a script that the server forgets is taught again, without anybody noticing") {
    on_each([](server_kind which) {
        live_server server(which);
        line l(server.url());
        REQUIRE(l.connect());
        l.replies.clear();
        CHECK(server.ask({"SCRIPT", "FLUSH"}).text == "OK");
        for (std::size_t i = 0; i < many; ++i) l.send(extend_command("k", token{}, 1'000));
        REQUIRE(l.turn_until([&] { return all_told(l, many); }));
        for (const auto& [seq, all] : l.replies) {
            REQUIRE(all.size() == 1);
            CHECK(read_integer(all.front().said) == 0);
        }
    });
}

TEST_CASE("a user who may not load scripts sends their text") {
    on_each([](server_kind which) {
        live_server server(which);
        CHECK(server.ask({"ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", "-script"}).text == "OK");
        line l("redis://app:pw@127.0.0.1:" + std::to_string(server.port()));
        REQUIRE(l.connect());
        const auto one = l.send(extend_command("k", token{}, 1'000));
        REQUIRE(l.turn_until([&] { return l.replies.contains(one); }));
        CHECK(read_integer(l.replies[one].front().said) == 0);
        CHECK(calls_of(server, "eval") == 1);
    });
}
