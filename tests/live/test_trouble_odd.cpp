// SPDX-License-Identifier: MIT
//
// Servers that are none, old ones, and mad ones: told what they are, never believed, never waited for.
#include <doctest/doctest.h>

#include <atomic>

#include "app.hpp"
#include "fake_server.hpp"
#include "line.hpp"
#include "protocol/commands.hpp"

using namespace stn;
using namespace stn::test;
using namespace std::chrono_literals;
using words = fake_server::words;

namespace {

constexpr auto hang = 5s;

// Everything is as it should be but what it says to a GET.
fake_server::answers odd_about_get(std::string answer) {
    return [answer = std::move(answer)](const words& said) -> std::optional<std::string> {
        return said[0] == "GET" ? answer : polite(said);
    };
}

} // namespace

TEST_CASE("what is no Redis is told so, at once") {
    struct row {
        const char* name;
        std::string says;
    };
    const row rows[] = {
        {"http", "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"},
        {"ssh", "SSH-2.0-OpenSSH_9.2\r\n"},
        {"bytes", std::string("\x15\x03\x01\x00\x02\x02\x16", 7)},
        {"a length that is none", "$x\r\n"},
    };
    for (const row& r : rows) {
        CAPTURE(r.name);
        fake_server server([&](const words&) { return r.says; });
        app shop(server.url());
        const answer ready = shop.ready(10'000);
        CHECK(ready.status == STN_NOT_REDIS);
        CHECK(ready.took < 2s);
        CHECK(ready.message.find("does not speak the Redis protocol") != std::string::npos);
        const answer a = shop.load("k", "v");
        CHECK(a.bytes == "v");
        CHECK(a.took < hang);
        CHECK(eventually([&] { return !shop.notices(STN_NOTICE_CONNECTION).empty(); }));
        CHECK(shop.notices(STN_NOTICE_CONNECTION).size() == 1);
    }
}

TEST_CASE("a server that hangs up without a word is told so") {
    fake_server server([](const words&) { return std::nullopt; });
    app shop(server.url());
    const answer ready = shop.ready(2'000);
    CAPTURE(ready.message);
    CHECK(ready.status == STN_UNAVAILABLE);
    // What it had not read yet makes the end a reset.
    const bool told = ready.message.find("closed the connection") != std::string::npos ||
                      ready.message.find("Connection reset by peer") != std::string::npos;
    CHECK(told);
    CHECK(shop.load("k", "v").bytes == "v");
}

TEST_CASE("replies without end are not taken in: the connection is given up, the caller loads") {
    std::string deep;
    for (int i = 0; i < 9; ++i) deep += "*1\r\n";
    std::string wide = "*4096\r\n";
    for (int i = 0; i < 4'096; ++i) wide += "*1\r\n:1\r\n";
    struct row {
        const char* name;
        std::string says;
        const char* told;
    };
    const row rows[] = {
        {"an array of 100,000", "*100000\r\n", ""},
        {"an array of 4 billion", "*4294967296\r\n", ""},
        {"an array in an array in an array", deep + ":1\r\n", "more parts"},
        {"many small arrays", wide, "more parts"},
        {"a value of 1 GiB", "$1073741824\r\n" + std::string(100'000, 'x'), ""},
        {"a map where a value was asked for, and no end", "%100000\r\n", ""},
    };
    for (const row& r : rows) {
        CAPTURE(r.name);
        fake_server server(odd_about_get(r.says));
        app shop(server.url());
        REQUIRE(shop.ready().status == STN_OK);
        const answer a = shop.load("k", "v");
        CHECK(a.bytes == "v");
        CHECK(a.took < hang);
        const auto said = shop.notices(STN_NOTICE_CONNECTION, STN_NOT_REDIS);
        if (*r.told != '\0') {
            REQUIRE(said.size() == 1);
            CHECK(said.front().text.find(r.told) != std::string::npos);
        }
        CHECK(shop.notices().size() <= 3);
    }
}

TEST_CASE("a reply that nobody asked for ends the connection: whose would the next ones be?") {
    fake_server server([](const words& said) -> std::optional<std::string> {
        return said[0] == "GET" ? std::optional<std::string>("$1\r\na\r\n$1\r\nb\r\n") : polite(said);
    });
    line l(server.url());
    REQUIRE(l.connect());
    const auto one = l.send(get_command("k"));
    REQUIRE(l.turn_until([&] { return l.told(transport_event::kind::disconnected) == 1; }));
    CHECK(l.replies[one].front().said.text == "a");
    CHECK(l.news.back().code == status::not_redis);
    CHECK(l.news.back().payload.find("nobody had asked for") != std::string::npos);
}

TEST_CASE("pushes may come anywhere among the replies, and take nobody's place") {
    const std::string push = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n";
    fake_server server([&](const words& said) -> std::optional<std::string> {
        if (said[0] == "GET") return push + "$1\r\n" + said[1] + "\r\n" + push;
        const auto answer = polite(said);
        return answer ? std::optional(push + *answer) : answer;
    });
    line l(server.url());
    REQUIRE(l.connect());
    std::vector<command_seq> asked;
    for (int i = 0; i < 100; ++i) asked.push_back(l.send(get_command(std::to_string(i % 10))));
    REQUIRE(l.turn_until([&] { return l.replies.size() == 101; }));
    for (std::size_t i = 0; i < asked.size(); ++i) {
        CHECK(l.replies[asked[i]].front().said.text == std::to_string(i % 10));
    }
    CHECK(l.told(transport_event::kind::disconnected) == 0);
}

TEST_CASE("a server that loads: asked again and again, told once, and used when it is done") {
    std::atomic<bool> loads{true};
    fake_server server([&](const words& said) -> std::optional<std::string> {
        if (loads.load() && said[0] != "HELLO" && said[0] != "CLIENT") {
            return "-LOADING Redis is loading the dataset in memory\r\n";
        }
        return said[0] == "GET" ? std::optional<std::string>("$-1\r\n") : polite(said);
    });
    app shop(server.url());
    const answer r = shop.ready(300);
    CHECK(r.status == STN_UNAVAILABLE);
    CHECK(r.message.find("still reading its data") != std::string::npos);
    const answer a = shop.load("k", "v");
    CHECK(a.bytes == "v");
    CHECK(a.took < hang);
    CHECK(server.accepted() > 2);
    CHECK(shop.notices(STN_NOTICE_CONNECTION).size() == 1);
    loads = false;
    CHECK(shop.ready(10'000).status == STN_OK);
    CHECK(shop.get("k").status == STN_ABSENT);
}

TEST_CASE("a server that begins to load while the connection stands: loads go on, one breaker, told once") {
    std::atomic<bool> loads{false};
    fake_server server([&](const words& said) -> std::optional<std::string> {
        if (loads.load()) return "-LOADING Redis is loading the dataset in memory\r\n";
        return said[0] == "GET" ? std::optional<std::string>("$-1\r\n") : polite(said);
    });
    app shop(server.url());
    REQUIRE(shop.ready().status == STN_OK);
    loads = true;
    for (int i = 0; i < 20; ++i) CHECK(shop.load("k", "v").bytes == "v");
    CHECK(shop.stats().breaker_opened == 1);
    CHECK(shop.notices(STN_NOTICE_BREAKER).size() == 1);
    CHECK(server.accepted() == 1);
    loads = false;
    CHECK(eventually([&] { return shop.get("k").status == STN_ABSENT; }));
    CHECK(shop.notices(STN_NOTICE_BREAKER).size() == 2);
}

TEST_CASE("a server without HELLO speaks RESP2, and does all that the others do") {
    on_each([](server_kind kind) {
        live_server server(kind, {.config = {"rename-command HELLO \"\""}});
        app here(server.url());
        app there(server.url());
        REQUIRE(here.ready().status == STN_OK);
        crowd first(here, 150ms);
        for (int i = 0; i < 5; ++i) first.fetch("k");
        REQUIRE(first.serve_until([&] { return first.loading() == 1; }));
        answer waited;
        std::thread waits([&] { waited = there.load("k", "no"); });
        REQUIRE(eventually([&] { return there.stats().waits == 1; }));
        REQUIRE(first.serve());
        waits.join();
        CHECK(waited.bytes == "k!");
        CHECK(there.stats().messages == 1);
        CHECK(here.put("p", "v").status == STN_OK);
        CHECK(there.get("p").bytes == "v");
        CHECK(there.invalidate("p").status == STN_OK);
        CHECK(here.get("p").status == STN_ABSENT);
        CHECK(server.ask({"CLIENT", "LIST"}).text.find("resp=3") == std::string::npos);
        CHECK(left_in(server).without_ttl == 0);
    });
}

TEST_CASE("a server too old for scripts' commands is told to be") {
    live_server server(server_kind::redis, {.config = {"rename-command EVALSHA \"\"", "rename-command EVAL \"\""}});
    app shop(server.url());
    REQUIRE(shop.ready().status == STN_OK);
    CHECK(shop.load("k", "v").bytes == "v");
    const answer put = shop.put("k", "v");
    CHECK(put.status == STN_UNSUPPORTED);
    CHECK(put.took < hang);
    CHECK(shop.notices(STN_NOTICE_LOG).size() == 1);
    CHECK(shop.invalidate("k").status == STN_OK);
}
