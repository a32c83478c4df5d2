// SPDX-License-Identifier: MIT
//
// Processes of one store, some of which die, find a value that they cannot read, or are not told when the store does.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <list>

#include "app.hpp"
#include "process.hpp"
#include "protocol/envelope.hpp"
#include "support/proxy.hpp"

using namespace stn;
using namespace stn::test;
using namespace std::chrono_literals;

namespace {

struct fleet {
    fleet(std::size_t n, const std::string& what, const std::string& url, int number,
          const std::string& policy = R"({"ttl": "1m"})") {
        for (std::size_t i = 0; i < n; ++i) all.emplace_back(what, url, "k", number, "{}", policy);
    }
    std::list<process> all;

    struct sum {
        std::size_t loads = 0;
        std::size_t good = 0; // processes that got the value
    };
    sum end() {
        sum out;
        for (process& p : all) {
            const auto said = p.lines();
            out.loads += static_cast<std::size_t>(std::count(said.begin(), said.end(), "loading"));
            if (std::count(said.begin(), said.end(), "value good") == 1 && p.end() == 0) ++out.good;
        }
        return out;
    }
};

} // namespace

TEST_CASE("eight processes on one key: one load") {
    on_each([](server_kind kind) {
        live_server server(kind);
        const auto sum = fleet(8, "load", server.url(), 300).end();
        CHECK(sum.loads == 1);
        CHECK(sum.good == 8);
        CHECK(left_in(server).without_ttl == 0);
    });
}

TEST_CASE("eight processes that cannot decode the value: one load") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app other(server.url());
        REQUIRE(other.put("k", "broken, as the new program sees it").status == STN_OK);
        const auto sum = fleet(8, "reject", server.url(), 300).end();
        CHECK(sum.loads == 1);
        CHECK(sum.good == 8);
        CHECK(other.get("k").bytes == "good");
        CHECK(left_in(server).without_ttl == 0);
    });
}

TEST_CASE("eight processes that find bytes which are not ours, without a TTL: one load, and they have one then") {
    on_each([](server_kind kind) {
        live_server server(kind);
        CHECK(server.ask({"SET", store_key("k"), "somebody's"}).text == "OK");
        const auto sum = fleet(8, "load", server.url(), 300).end();
        CHECK(sum.loads == 1);
        CHECK(sum.good == 8);
        CHECK(left_in(server).without_ttl == 0);
        CHECK(left_in(server).values == 1);
    });
}

TEST_CASE("eight processes that find a value of another codec: one load") {
    live_server server(server_kind::redis);
    app other(server.url(), "{}", R"({"ttl": "1m", "codec": "json"})");
    REQUIRE(other.put("k", "[1]").status == STN_OK);
    const auto sum = fleet(8, "load", server.url(), 300).end();
    CHECK(sum.loads == 1);
    CHECK(sum.good == 8);
}

TEST_CASE("two clients of one process on a broken value: one load") {
    live_server server(server_kind::redis);
    app here(server.url());
    app there(server.url());
    CHECK(server.ask({"SET", store_key("k"), "broken", "PX", "60000"}).text == "OK");
    std::atomic<int> loads{0};
    const loader slow = [&] {
        ++loads;
        std::this_thread::sleep_for(200ms);
        return std::string("good");
    };
    for (const answer& a : at_once(20, [&](std::size_t i) { return (i % 2 == 0 ? here : there).load("k", slow); })) {
        CHECK(a.bytes == "good");
    }
    CHECK(loads.load() == 1);
}

TEST_CASE("a process killed while it loads: the others go on when its lease ends, with one load") {
    on_each([](server_kind kind) {
        live_server server(kind);
        const std::string policy = R"({"ttl": "1m", "lease": "1s"})";
        process dies("load", server.url(), "k", 60'000, "{}", policy);
        REQUIRE(dies.line() == "loading");
        fleet others(8, "load", server.url(), 300, policy);
        std::this_thread::sleep_for(500ms); // they wait by now
        CHECK(left_in(server).placeholders == 1);
        const auto killed = std::chrono::steady_clock::now();
        dies.kill9();
        const auto sum = others.end();
        CHECK(sum.loads == 1);
        CHECK(sum.good == 8);
        // The rest of the lease, the load, and some looking.
        CHECK(std::chrono::steady_clock::now() - killed < 4s);
        CHECK(left_in(server).values == 1);
        CHECK(left_in(server).without_ttl == 0);
    });
}

TEST_CASE("a C program that does nothing about SIGPIPE survives connections and servers that die") {
    on_each([](server_kind kind) {
        live_server server(kind);
        proxy net(server.port());
        process insists("insist", net.url(), "k", 2'000);
        REQUIRE(insists.line() == "loading");
        for (int i = 0; i < 20; ++i) {
            net.cut(i % 2 == 0 ? ending::closed : ending::reset);
            std::this_thread::sleep_for(20ms);
        }
        server.kill9();
        std::this_thread::sleep_for(200ms);
        server.start();
        CHECK(insists.line() == "value good");
        CHECK(insists.end() == 0);
        CHECK(left_in(server).without_ttl == 0);
    });
}

// A write to a unix socket whose other end is closed raises the signal at once, and the caller's own thread writes.
TEST_CASE("a caller that does its own IO survives SIGPIPE too") {
    on_each([](server_kind kind) {
        live_server server(kind);
        process alone("alone", server.unix_url(), "k", 3'000);
        REQUIRE(alone.line() == "loading");
        for (int i = 0; i < 4; ++i) {
            std::this_thread::sleep_for(150ms);
            server.restart();
            REQUIRE(eventually([&] { return calls_of(server, "get") > 0; }));
        }
        CHECK(alone.line() == "value good");
        CHECK(alone.end() == 0);
    });
}
