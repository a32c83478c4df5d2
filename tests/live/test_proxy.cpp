// SPDX-License-Identifier: MIT
//
// The proxy of tests/support, against a real server: each thing it can do to a connection is told apart
// by what both ends see of it. Everybody's fault tests stand on this.
#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <memory>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "support/live_server.hpp"
#include "support/proxy.hpp"

using namespace stn::test;
using namespace std::chrono_literals;
using stn::reply_kind;

namespace {

constexpr auto hang = 10s;
constexpr auto silence = 60ms;

// A socket that tells what comes, byte by byte, and how it ends.
class raw_client {
  public:
    explicit raw_client(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(port);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) fault_ = errno;
    }
    ~raw_client() { ::close(fd_); }
    raw_client(const raw_client&) = delete;
    raw_client& operator=(const raw_client&) = delete;

    void say(std::string_view text) { CHECK(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) >= 0); }

    // What comes until there are `bytes` of it, or the end, or nothing for that long.
    std::string hear(std::size_t bytes, std::chrono::milliseconds patience = hang) {
        std::string got;
        while (got.size() < bytes && !ended_ && readable(patience)) {
            char buffer[4096];
            const ssize_t n = ::recv(fd_, buffer, std::min(sizeof buffer, bytes - got.size()), 0);
            if (n > 0) {
                got.append(buffer, static_cast<std::size_t>(n));
            } else {
                ended_ = true;
                fault_ = n < 0 ? errno : 0;
            }
        }
        return got;
    }
    // Waits for the end; what comes before it is thrown away.
    bool ended() {
        while (!ended_ && !hear(1).empty()) {
        }
        return ended_;
    }
    // Neither a byte nor the end.
    bool hears_nothing() { return hear(1, silence).empty() && !ended_; }
    [[nodiscard]] int fault() const { return fault_; } // 0: closed in good order
    bool connected(std::chrono::milliseconds patience) {
        pollfd p{fd_, POLLOUT, 0};
        return ::poll(&p, 1, static_cast<int>(patience.count())) == 1 && (p.revents & POLLERR) == 0;
    }

  private:
    bool readable(std::chrono::milliseconds patience) {
        pollfd p{fd_, POLLIN, 0};
        return ::poll(&p, 1, static_cast<int>(patience.count())) == 1;
    }

    int fd_;
    bool ended_ = false;
    int fault_ = 0;
};

const std::string ping = "PING\r\n";
const std::string pong = "+PONG\r\n";

struct stage {
    live_server server{server_kind::redis};
    proxy net{server.port()};

    std::string value_of(const std::string& key) { return server.ask({"GET", key}).text; }
    // What a server does about bytes on their way is seen when it did it.
    void await(const std::string& key, const std::string& value) {
        const auto until = std::chrono::steady_clock::now() + hang;
        while (value_of(key) != value && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
        CHECK(value_of(key) == value);
    }
};

} // namespace

TEST_CASE("the proxy is not there unless it is told to be") {
    stage s;
    raw_client a(s.net.port());
    a.say(ping);
    CHECK(a.hear(pong.size()) == pong);
    const std::string large(300'000, 'x');
    plain_connection b = plain_connection::to_port(s.net.port());
    CHECK(b.ask({"SET", "large", large}).text == "OK");
    CHECK(b.ask({"GET", "large"}).text == large);
    CHECK(s.net.accepted() == 2);
    CHECK(s.net.alive() == 2);
    CHECK(s.net.carried(way::to_server) > large.size());
    CHECK(s.net.carried(way::to_client) > large.size());
}

TEST_CASE("an end that closes is known to the other end") {
    stage s;
    const auto named = [&] { return s.server.ask({"CLIENT", "LIST"}).text.find("leaver") != std::string::npos; };
    {
        raw_client quits(s.net.port());
        quits.say("QUIT\r\n");
        CHECK(quits.hear(5) == "+OK\r\n");
        CHECK(quits.ended());
        CHECK(quits.fault() == 0);
        raw_client leaves(s.net.port());
        leaves.say("CLIENT SETNAME leaver\r\n");
        CHECK(leaves.hear(5) == "+OK\r\n");
        CHECK(named());
    }
    const auto until = std::chrono::steady_clock::now() + hang;
    while ((named() || s.net.alive() != 0) && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(1ms);
    CHECK_FALSE(named());
    CHECK(s.net.alive() == 0);
}

TEST_CASE("delayed bytes come that much later, in their order") {
    stage s;
    raw_client a(s.net.port());
    s.net.delay(way::to_client, 80ms);
    const auto before = std::chrono::steady_clock::now();
    a.say("SET k 1\r\nINCR k\r\nGET k\r\n");
    CHECK(a.hear(16) == "+OK\r\n:2\r\n$1\r\n2\r\n");
    CHECK(std::chrono::steady_clock::now() - before >= 80ms);
}

TEST_CASE("what is delayed or held goes on when all may pass") {
    stage s;
    raw_client b(s.net.port());
    s.net.delay(way::to_client, 1h);
    b.say(ping);
    CHECK(b.hears_nothing());
    s.net.pass();
    CHECK(b.hear(pong.size()) == pong);
    raw_client a(s.net.port());
    s.net.hold(way::to_server);
    a.say("SET k late\r\n");
    CHECK(a.hears_nothing());
    CHECK(s.server.ask({"EXISTS", "k"}).integer == 0);
    s.net.pass();
    CHECK(a.hear(5) == "+OK\r\n");
    CHECK(s.value_of("k") == "late");
}

TEST_CASE("a half-open connection says nothing, and its end is not known") {
    stage s;
    raw_client a(s.net.port());
    a.say(ping);
    CHECK(a.hear(pong.size()) == pong);
    s.net.swallow(way::to_server);
    s.net.swallow(way::to_client);
    a.say("SET k v\r\n");
    CHECK(a.hears_nothing());
    CHECK(s.server.ask({"EXISTS", "k"}).integer == 0);
    s.server.kill9();
    CHECK(a.hears_nothing());
    CHECK(s.net.alive() == 1);
    s.net.pass();
    CHECK(a.ended());
}

TEST_CASE("swallowed answers leave their effect") {
    stage s;
    raw_client a(s.net.port());
    s.net.swallow(way::to_client);
    a.say("SET k v\r\n");
    s.await("k", "v");
    CHECK(a.hears_nothing());
    s.net.pass();
    a.say(ping);
    CHECK(a.hear(pong.size()) == pong);
}

TEST_CASE("a trickle comes byte by byte, and whole") {
    stage s;
    s.net.trickle(way::to_client);
    s.net.trickle(way::to_server);
    raw_client a(s.net.port());
    s.server.ask({"SET", "k", std::string(500, 'x')});
    a.say("GET k\r\n");
    CHECK(a.hear(508) == "$500\r\n" + std::string(500, 'x') + "\r\n");
    CHECK(s.net.writes(way::to_client) == 508);
    CHECK(s.net.writes(way::to_server) == 7);
}

TEST_CASE("a cut connection is closed or reset, as ordered") {
    stage s;
    raw_client closed(s.net.port());
    raw_client reset(s.net.port());
    for (raw_client* c : {&closed, &reset}) {
        c->say(ping);
        CHECK(c->hear(pong.size()) == pong);
    }
    s.net.cut(ending::closed, 0);
    CHECK(closed.ended());
    CHECK(closed.fault() == 0);
    CHECK(s.net.alive() == 1);
    s.net.cut(ending::reset);
    CHECK(reset.ended());
    CHECK(reset.fault() == ECONNRESET);
    CHECK(s.net.alive() == 0);
    raw_client again(s.net.port());
    again.say(ping);
    CHECK(again.hear(pong.size()) == pong);
}

TEST_CASE("a connection can be cut in the middle of an answer") {
    stage s;
    s.net.cut_after(way::to_client, 8);
    raw_client a(s.net.port());
    a.say("ECHO hello-out-there\r\n");
    CHECK(a.hear(100) == "$15\r\nhel");
    CHECK(a.ended());
}

TEST_CASE("a lost reply leaves its effect, and ends the connection") {
    stage s;
    raw_client a(s.net.port());
    s.net.lose_reply_to("INCR n");
    a.say(ping);
    CHECK(a.hear(pong.size()) == pong);
    CHECK(s.net.sprung() == 0);
    a.say("IN");
    CHECK(a.hears_nothing());
    a.say("CR n\r\n");
    CHECK(a.hear(1).empty());
    CHECK(a.ended());
    CHECK(s.net.sprung() == 1);
    s.await("n", "1");
    raw_client b(s.net.port());
    b.say("INCR n\r\n");
    CHECK(b.hear(4) == ":2\r\n");
}

TEST_CASE("a trap for one connection lets the others pass") {
    stage s;
    raw_client bystander(s.net.port());
    bystander.say(ping);
    CHECK(bystander.hear(pong.size()) == pong);
    raw_client a(s.net.port());
    s.net.lose_reply_to("INCR n", 1);
    bystander.say("INCR n\r\n");
    CHECK(bystander.hear(4) == ":1\r\n");
    CHECK(s.net.sprung() == 0);
    a.say("INCR n\r\n");
    CHECK(a.hear(1).empty());
    CHECK(a.ended());
}

TEST_CASE("a lost request has no effect, and ends the connection") {
    stage s;
    raw_client bystander(s.net.port());
    raw_client a(s.net.port());
    s.net.lose_request("INCR n");
    bystander.say(ping);
    a.say("INCR n\r\n");
    CHECK(a.hear(1).empty());
    CHECK(a.ended());
    CHECK(bystander.hear(pong.size()) == pong);
    CHECK(s.server.ask({"EXISTS", "n"}).integer == 0);
    CHECK(s.net.sprung() == 1);
}

TEST_CASE("new connections are refused, and then not") {
    stage s;
    raw_client old(s.net.port());
    old.say(ping);
    CHECK(old.hear(pong.size()) == pong);
    s.net.refuse();
    raw_client refused(s.net.port());
    CHECK_FALSE(refused.connected(hang));
    old.say(ping);
    CHECK(old.hear(pong.size()) == pong);
    s.net.pass();
    raw_client welcome(s.net.port());
    welcome.say(ping);
    CHECK(welcome.hear(pong.size()) == pong);
}

TEST_CASE("a black hole takes connections and never answers") {
    stage s;
    s.net.answer_nothing();
    raw_client a(s.net.port());
    CHECK(a.connected(hang));
    a.say(ping);
    CHECK(a.hears_nothing());
    CHECK(s.net.accepted() == 1);
    s.net.pass();
    a.say(ping);
    CHECK(a.hears_nothing());
    raw_client b(s.net.port());
    b.say(ping);
    CHECK(b.hear(pong.size()) == pong);
}

TEST_CASE("connections can be left without any answer to their SYN") {
    stage s;
    s.net.ignore();
    raw_client a(s.net.port());
    CHECK_FALSE(a.connected(silence));
    CHECK(s.net.accepted() == 0);
    s.net.pass();
    CHECK(a.connected(hang)); // the kernel asks again after a second
    a.say(ping);
    CHECK(a.hear(pong.size()) == pong);
}

TEST_CASE("orders for one connection leave the others alone") {
    stage s;
    raw_client a(s.net.port());
    raw_client b(s.net.port());
    a.say(ping);
    CHECK(a.hear(pong.size()) == pong);
    s.net.hold(way::to_client, 0);
    a.say(ping);
    b.say(ping);
    CHECK(b.hear(pong.size()) == pong);
    CHECK(a.hears_nothing());
    s.net.pass(0);
    CHECK(a.hear(pong.size()) == pong);
}

TEST_CASE("without a server behind it connections are reset, and with a new one they are not") {
    stage s;
    s.server.kill9();
    raw_client a(s.net.port());
    CHECK(a.ended());
    s.server.start();
    raw_client b(s.net.port());
    b.say(ping);
    CHECK(b.hear(pong.size()) == pong);
}
