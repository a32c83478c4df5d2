// SPDX-License-Identifier: MIT
//
// stn_client_ready: one answer, as soon as it is known, and at its deadline at the latest.
#include <cctype>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "app.hpp"
#include "fake_server.hpp"
#include "support/ports.hpp"
#include "support/proxy.hpp"

using namespace stn;
using namespace stn::test;
using namespace std::chrono_literals;

TEST_CASE("ready: done as soon as the store can be used, and at once from then on") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app shop(server.url());
        const answer first = shop.ready(10'000);
        CHECK(first.status == STN_OK);
        CHECK(first.took < 2s);
        CHECK(shop.ready(0).status == STN_OK);
        const auto told = nlohmann::json::parse(shop.ready(0).bytes);
        CHECK(told["server"] == server_name(kind));
        CHECK(std::isdigit(static_cast<unsigned char>(told["version"].get<std::string>().at(0))) != 0);
        CHECK(told["role"] == "master");
        app by_socket(server.unix_url());
        CHECK(by_socket.ready(10'000).status == STN_OK);
    });
}

TEST_CASE("ready with deadline 0 waits for nothing: not yet is a time-out") {
    live_server server(server_kind::redis);
    proxy net(server.port());
    net.answer_nothing();
    app shop(net.url());
    const answer now = shop.ready(0);
    CHECK(now.status == STN_TIMEOUT);
    CHECK(now.took < 1s);
    CHECK(now.message.find("not connected yet") != std::string::npos);
}

TEST_CASE("ready: a time-out while the first attempt goes on, unavailable with the reason after it has failed") {
    live_server server(server_kind::redis);
    proxy net(server.port());
    net.answer_nothing();
    app shop(net.url(), R"({"connect_timeout": "300ms"})");
    const answer early = shop.ready(50);
    CHECK(early.status == STN_TIMEOUT);
    const answer late = shop.ready(600);
    CHECK(late.status == STN_UNAVAILABLE);
    CHECK(late.message.find("did not answer in time") != std::string::npos);
    CHECK(shop.ready(0).status == STN_UNAVAILABLE); // it is known by now
    net.pass();
    CHECK(shop.ready(10'000).status == STN_OK);
}

TEST_CASE("ready: a store that is away is waited for to the deadline, and no longer") {
    const std::uint16_t nobody = free_port();
    app shop("redis://127.0.0.1:" + std::to_string(nobody));
    const answer no = shop.ready(300);
    CHECK(no.status == STN_UNAVAILABLE);
    CHECK(no.took >= 200ms);
    CHECK(no.took < 2s);
    CHECK(no.message.find("Connection refused") != std::string::npos);
    app nowhere("unix:///nowhere/at/all");
    const answer no_file = nowhere.ready(100);
    CHECK(no_file.status == STN_UNAVAILABLE);
    CHECK(no_file.message.find("No such file") != std::string::npos);
}

TEST_CASE("ready: what only a person can change is told at once") {
    live_server server(server_kind::redis, {.password = "right"});
    app shop("redis://:wrong@127.0.0.1:" + std::to_string(server.port()));
    const answer denied = shop.ready(20'000);
    CHECK(denied.status == STN_DENIED);
    CHECK(denied.took < 5s);
    const fake_server http([](const fake_server::words&) { return "HTTP/1.1 400 Bad Request\r\n\r\n"; });
    app other(http.url());
    const answer not_redis = other.ready(20'000);
    CHECK(not_redis.status == STN_NOT_REDIS);
    CHECK(not_redis.took < 5s);
}

TEST_CASE("ready: a client that is closed answers closed, to who waits and to who comes later") {
    const std::uint16_t nobody = free_port();
    app shop("redis://127.0.0.1:" + std::to_string(nobody));
    answer waited;
    std::thread waits([&] { waited = shop.ready(20'000); });
    std::this_thread::sleep_for(50ms);
    CHECK(stn_client_close(shop.client(), 1'000, nullptr) == STN_OK);
    waits.join();
    CHECK(waited.status == STN_CLOSED);
    CHECK(waited.took < 5s);
    CHECK(shop.ready(20'000).status == STN_CLOSED);
}

TEST_CASE("ready: many ask, each by its own deadline") {
    live_server server(server_kind::redis);
    proxy net(server.port());
    net.refuse();
    app shop(net.url());
    std::thread lets([&] {
        std::this_thread::sleep_for(400ms);
        net.pass();
    });
    const auto answers =
        at_once(20, [&](std::size_t i) { return shop.ready(i % 2 == 0 ? std::int64_t{20'000} : std::int64_t{100}); });
    lets.join();
    for (std::size_t i = 0; i < answers.size(); ++i) {
        CHECK(answers[i].status == (i % 2 == 0 ? STN_OK : STN_UNAVAILABLE));
    }
}

TEST_CASE("a client closes quickly, whatever its store does") {
    live_server server(server_kind::redis);
    proxy net(server.port());
    for (const int how : {0, 1, 2, 3}) {
        CAPTURE(how);
        net.pass();
        app shop(net.url());
        REQUIRE(shop.ready(10'000).status == STN_OK);
        CHECK(shop.load("k", "v").bytes == "v");
        if (how == 1) net.swallow(way::to_client);
        if (how == 2) net.cut();
        if (how == 3) server.pause();
        const auto began = std::chrono::steady_clock::now();
        CHECK(stn_client_close(shop.client(), 1'000, nullptr) == STN_OK);
        CHECK(std::chrono::steady_clock::now() - began < 2s);
        if (how == 3) server.go_on();
    }
}

TEST_CASE("a lease held when a client closes is abandoned in the store") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app shop(server.url());
        crowd all(shop, 10s);
        all.fetch("k");
        REQUIRE(all.serve_until([&] { return all.loading() == 1; }));
        CHECK(left_in(server).placeholders == 1);
        CHECK(stn_client_close(shop.client(), 0, nullptr) == STN_OK);
        CHECK(eventually([&] { return left_in(server).keys == 0; }));
    });
}
