// SPDX-License-Identifier: MIT
//
// What tests/support promises about the servers that every other test here starts.
#include <doctest/doctest.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "protocol/store_url.hpp"
#include "support/live_server.hpp"

using namespace stn::test;
using namespace std::chrono_literals;
using stn::reply_kind;

namespace {

constexpr auto hang = 10s;

bool ends(pid_t pid) {
    const auto until = std::chrono::steady_clock::now() + hang;
    while (::kill(pid, 0) == 0 && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
    return ::kill(pid, 0) != 0 && errno == ESRCH;
}

} // namespace

TEST_CASE("both servers start, say who they are, and take all they had with them") {
    for (const server_kind kind : server_kinds) {
        CAPTURE(server_name(kind));
        pid_t pid = -1;
        std::string socket;
        {
            live_server server(kind);
            pid = server.pid();
            socket = server.socket();
            const std::string info = server.ask({"INFO", "server"}).text;
            CHECK((info.find("valkey_version:") != std::string::npos) == (kind == server_kind::valkey));
            CHECK(plain_connection::to_port(server.port()).ask({"PING"}).text == "PONG");
            CHECK(server.ask({"CONFIG", "GET", "save"}).items.at(1).text.empty());
            CHECK(std::filesystem::exists(socket));
        }
        CHECK(ends(pid));
        CHECK_FALSE(std::filesystem::exists(std::filesystem::path(socket).parent_path()));
    }
}

TEST_CASE("the URLs of a server are URLs of ours") {
    live_server server(server_kind::redis, {.password = "secret"});
    for (const std::string& url : {server.url(), server.unix_url()}) {
        const auto parsed = stn::parse_store_url(url);
        REQUIRE(parsed);
        CHECK(parsed->password == "secret");
    }
    plain_connection stranger = plain_connection::to_port(server.port());
    CHECK(stranger.ask({"GET", "k"}).text.starts_with("NOAUTH"));
    CHECK(stranger.ask({"AUTH", "secret"}).text == "OK");
}

TEST_CASE("a killed server is away, and comes back empty on the same port") {
    live_server server(server_kind::redis);
    server.ask({"SET", "k", "v"});
    const auto port = server.port();
    server.kill9();
    CHECK(server.pid() == -1);
    CHECK_THROWS_AS(static_cast<void>(plain_connection::to_port(port)), std::runtime_error);
    CHECK_THROWS_AS(server.ask({"PING"}), std::runtime_error);
    server.start();
    CHECK(server.port() == port);
    CHECK(server.ask({"EXISTS", "k"}).integer == 0);
    server.restart();
    CHECK(plain_connection::to_port(port).ask({"PING"}).text == "PONG");
}

TEST_CASE("a server that is stopped saves what it is told to") {
    live_server server(server_kind::redis, {.config = {"save 3600 1"}});
    server.ask({"SET", "k", "v"});
    server.stop();
    server.start();
    CHECK(server.ask({"GET", "k"}).text == "v");
}

TEST_CASE("a server can be met while it is loading") {
    live_server server(server_kind::redis, {.config = {"save 3600 1", "key-load-delay 1000",
                                                       "loading-process-events-interval-bytes 1024"}});
    for (int i = 0; i < 200; ++i) server.ask({"SET", "k" + std::to_string(i), std::string(100, 'x')});
    server.stop();
    server.start_without_waiting();
    std::string answer;
    const auto until = std::chrono::steady_clock::now() + hang;
    while (answer.empty() && std::chrono::steady_clock::now() < until) {
        try {
            answer = plain_connection::to_port(server.port()).ask({"GET", "k1"}).text;
        } catch (const std::runtime_error&) { // it does not listen yet
            std::this_thread::sleep_for(1ms);
        }
    }
    CHECK(answer.starts_with("LOADING"));
    server.wait_until_ready();
    CHECK(server.ask({"DBSIZE"}).integer == 200);
}

TEST_CASE("a paused server stands still, and goes on") {
    live_server server(server_kind::valkey);
    plain_connection other = server.connect();
    server.pause();
    other.send({"INCR", "n"});
    std::thread waker([&] {
        std::this_thread::sleep_for(50ms);
        server.go_on();
    });
    const auto before = std::chrono::steady_clock::now();
    CHECK(other.receive().integer == 1);
    CHECK(std::chrono::steady_clock::now() - before >= 40ms);
    waker.join();
}

TEST_CASE("a server that ends at its start tells why") {
    std::string why;
    try {
        const live_server server(server_kind::redis, {.config = {"no-such-directive 7"}});
    } catch (const std::runtime_error& e) {
        why = e.what();
    }
    CHECK(why.find("no-such-directive") != std::string::npos);
}

TEST_CASE("a server's port is taken from nobody") {
    live_server first(server_kind::redis);
    const std::string taken = "port " + std::to_string(first.port()); // the later line counts
    CHECK_THROWS_AS(live_server(server_kind::redis, {.config = {taken}}), std::runtime_error);
    CHECK(first.ask({"PING"}).text == "PONG");
}

TEST_CASE("a missing server is a failure that says what to do") {
    struct variable {
        variable() { ::setenv("STN_VALKEY_SERVER", "/nowhere/valkey-server", 1); }
        ~variable() { was ? ::setenv("STN_VALKEY_SERVER", kept.c_str(), 1) : ::unsetenv("STN_VALKEY_SERVER"); }
        const char* was = std::getenv("STN_VALKEY_SERVER");
        std::string kept = was ? was : "";
    };
    const variable changed;
    std::string why;
    try {
        static_cast<void>(server_program(server_kind::valkey));
    } catch (const std::runtime_error& e) {
        why = e.what();
    }
    CHECK(why.find("STN_VALKEY_SERVER") != std::string::npos);
}

TEST_CASE("a server dies with its test, however that ends") {
    int ends_here[2];
    REQUIRE(::pipe(ends_here) == 0);
    const pid_t test = ::fork();
    if (test == 0) {
        const live_server server(server_kind::redis);
        const std::string told = std::to_string(server.pid()) + " " + server.socket() + "\n";
        static_cast<void>(!::write(ends_here[1], told.data(), told.size()));
        ::raise(SIGKILL);
    }
    char told[256] = {};
    REQUIRE(::read(ends_here[0], told, sizeof told - 1) > 0);
    std::istringstream words(told);
    pid_t server = 0;
    std::filesystem::path socket;
    words >> server >> socket;
    int how = 0;
    ::waitpid(test, &how, 0);
    ::close(ends_here[0]);
    ::close(ends_here[1]);
    CHECK(ends(server));
    REQUIRE(socket.filename() == "s");
    std::filesystem::remove_all(socket.parent_path());
}

TEST_CASE("a connection of the tests to a dead server raises no SIGPIPE") {
    live_server server(server_kind::redis);
    plain_connection c = plain_connection::to_port(server.port());
    CHECK(c.ask({"PING"}).text == "PONG");
    server.kill9();
    for (int i = 0; i < 3; ++i) CHECK_THROWS_AS(c.ask({"PING"}), std::runtime_error);
    sigset_t pending;
    sigpending(&pending);
    CHECK(sigismember(&pending, SIGPIPE) == 0);
}
