// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "io/memory_store.hpp"
#include "io/memory_transport.hpp"
#include "io/open_store.hpp"
#include "protocol/commands.hpp"
#include "protocol/envelope.hpp"

using namespace stn;

namespace {

using kind = transport_event::kind;

store open(std::string_view url) {
    auto opened = open_store(url);
    REQUIRE_MESSAGE(opened, opened.failure().message);
    return std::move(*opened);
}

std::vector<transport_event> drain(transport& link) {
    std::vector<transport_event> out;
    for (transport_event e; link.poll(e, 0);) out.push_back(std::move(e));
    return out;
}

reply ask(transport& link, const command& cmd) {
    (void)drain(link);
    link.submit(1, cmd, 0);
    for (const transport_event& e : drain(link))
        if (e.what == kind::reply) return e.answer;
    return reply::of_error("no reply");
}

command put(std::string_view key, std::int64_t px = 60'000) {
    envelope e;
    e.payload = "x";
    return put_command(key, encode(e), px, {});
}

bool there(transport& link, std::string_view key) {
    return ask(link, get_command(key)).kind == reply_kind::bulk;
}

} // namespace

TEST_CASE("clients that name the same store share it; others do not") {
    store a = open("memory://shared"), b = open("memory://shared"), c = open("memory://other");
    (void)ask(*a.link, put("k"));
    CHECK(there(*a.link, "k"));
    CHECK(there(*b.link, "k"));
    CHECK(!there(*c.link, "k"));
    CHECK(a.shown == "memory://shared");
    CHECK(a.manual == nullptr);
}

TEST_CASE("a store without a name is private to its client") {
    store a = open("memory://"), b = open("memory://");
    (void)ask(*a.link, put("k"));
    CHECK(there(*a.link, "k"));
    CHECK(!there(*b.link, "k"));
}

TEST_CASE("a named store lives as long as its last client") {
    {
        store a = open("memory://mortal");
        (void)ask(*a.link, put("k"));
        store b = open("memory://mortal");
        a.link.reset();
        CHECK(there(*b.link, "k"));
    }
    store c = open("memory://mortal");
    CHECK(!there(*c.link, "k"));
}

TEST_CASE("a manual clock belongs to the store: all its clients see one time, and keys expire by it") {
    store a = open("memory://timed?clock=manual"), b = open("memory://timed?clock=manual");
    REQUIRE(a.manual != nullptr);
    CHECK(a.manual == b.manual);
    CHECK(a.time == b.time);
    (void)ask(*a.link, put("k", 1000));
    a.manual->advance(999);
    CHECK(there(*b.link, "k"));
    CHECK(b.link->server_time(0) == manual_clock::start_ms + 999);
    CHECK(b.time->now_ms() == manual_clock::start_ms + 999);
    a.manual->advance(1);
    CHECK(!there(*b.link, "k"));
}

TEST_CASE("a store has one clock: asking for the other is an error, until it is gone") {
    {
        store a = open("memory://clocked?clock=manual");
        const auto other = open_store("memory://clocked");
        REQUIRE(!other);
        CHECK(other.failure().code == status::invalid_argument);
        CHECK(other.failure().message.find("clock=manual") != std::string::npos);
    }
    store b = open("memory://clocked");
    CHECK(!open_store("memory://clocked?clock=manual"));
}

TEST_CASE("server time is a date, and steady") {
    store a = open("memory://");
    const server_ms before = a.link->server_time(0);
    CHECK(before > 1'600'000'000'000);
    CHECK(a.link->server_time(0) >= before);
    CHECK(read_time(ask(*a.link, time_command())).value_or(0) >= before);
}

TEST_CASE("a link tells that it is connected first, then each reply once and in order") {
    store a = open("memory://");
    a.link->submit(7, put("k"), 0);
    a.link->submit(8, get_command("k"), 0);
    a.link->submit(9, del_command("k"), 0);
    CHECK(a.link->next_ms() <= a.time->now_ms());
    const auto events = drain(*a.link);
    REQUIRE(events.size() == 4);
    CHECK(events[0].what == kind::connected);
    CHECK(events[1].seq == 7);
    CHECK(events[2].seq == 8);
    CHECK(events[2].answer.kind == reply_kind::bulk);
    CHECK(events[3].seq == 9);
    CHECK(events[3].how == delivery::answered);
    CHECK(a.link->next_ms() == forever_ms);
}

TEST_CASE("messages come from other clients with a ring, from oneself without one") {
    store a = open("memory://chat"), b = open("memory://chat");
    int rung = 0;
    a.link->set_ring([&] { ++rung; });
    a.link->submit(1, subscribe_command("c"), 0);
    const auto first = drain(*a.link);
    REQUIRE(first.size() == 3);
    CHECK(first[1].what == kind::subscribed);
    CHECK(first[1].channel == "c");
    CHECK(first[2].answer.text == "OK");

    b.link->submit(1, publish_command("c", "hello"), 0);
    CHECK(rung == 1);
    const auto heard = drain(*a.link);
    REQUIRE(heard.size() == 1);
    CHECK(heard[0].what == kind::message);
    CHECK(heard[0].channel == "c");
    CHECK(heard[0].payload == "hello");

    a.link->submit(2, publish_command("c", "echo"), 0);
    CHECK(rung == 1);
    CHECK(drain(*a.link).size() == 2);
    b.link->submit(2, publish_command("d", "unheard"), 0);
    CHECK(rung == 1);
}

TEST_CASE("a ring may use its own link and the other's: no lock is held") {
    store a = open("memory://ringing"), b = open("memory://ringing");
    a.link->submit(1, subscribe_command("c"), 0);
    std::vector<transport_event> seen;
    a.link->set_ring([&] {
        a.link->submit(2, get_command("k"), 0);
        seen = drain(*a.link);
    });
    b.link->submit(1, publish_command("c", "m"), 0);
    CHECK(seen.size() == 5);
}

TEST_CASE("after close a command is told as not sent, and nothing rings") {
    store a = open("memory://closing"), b = open("memory://closing");
    int rung = 0;
    a.link->set_ring([&] { ++rung; });
    a.link->submit(1, subscribe_command("c"), 0);
    (void)drain(*a.link);
    a.link->submit(2, put("k"), 0);
    a.link->close();
    a.link->close();
    a.link->submit(3, del_command("k"), 0);
    b.link->submit(1, publish_command("c", "m"), 0);
    CHECK(rung == 0);
    const auto events = drain(*a.link);
    REQUIRE(events.size() == 2);
    CHECK(events[0].seq == 2);
    CHECK(events[0].how == delivery::answered);
    CHECK(events[1].seq == 3);
    CHECK(events[1].how == delivery::not_sent);
    CHECK(there(*b.link, "k"));
}

TEST_CASE("many threads, one store: every publish is heard once, and no ring comes after close") {
    constexpr int messages = 2000;
    store listener = open("memory://busy");
    listener.link->submit(1, subscribe_command("c"), 0);
    std::atomic<int> rung{0};
    listener.link->set_ring([&] { ++rung; });
    std::vector<std::thread> talkers;
    for (int t = 0; t < 3; ++t)
        talkers.emplace_back([] {
            store mine = open("memory://busy");
            for (int i = 0; i < messages; ++i) {
                mine.link->submit(1, publish_command("c", "m"), 0);
                (void)ask(*mine.link, put("k" + std::to_string(i)));
            }
        });
    int heard = 0;
    while (heard < 3 * messages)
        for (const auto& e : drain(*listener.link)) heard += e.what == kind::message ? 1 : 0;
    listener.link->close();
    const int at_close = rung;
    for (std::thread& t : talkers) t.join();
    CHECK(rung == at_close);
    CHECK(heard == 3 * messages);
}
