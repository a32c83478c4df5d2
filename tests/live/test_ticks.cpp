// SPDX-License-Identifier: MIT
//
// Jobs that run once per slot, and ids that are claimed once, whoever asks.
#include <doctest/doctest.h>

#include <algorithm>
#include <list>
#include <set>
#include <sstream>

#include "locks.hpp"
#include "process.hpp"
#include "protocol/keys.hpp"
#include "protocol/scripts.hpp"
#include "support/proxy.hpp"

using namespace stn;
using namespace stn::test;
using namespace std::chrono_literals;

namespace {

std::vector<std::string> ticker(const std::string& what, const std::string& url, const std::string& how, int number) {
    return {STN_LIVE_LOCKER, what, url, patient, how, "nightly", std::to_string(number)};
}

// Asks for the slot until it has one.
lock_answer slot_soon(lock_user& user, const std::string& how) {
    lock_answer got;
    static_cast<void>(eventually([&] {
        got = user.tick("nightly", how);
        return got.tick != nullptr;
    }));
    return got;
}

} // namespace

TEST_CASE("of five processes that ask all the time, each slot has one run: none is left out, none runs twice") {
    on_each([](server_kind kind) {
        live_server server(kind);
        constexpr std::int64_t every_ms = 500;
        std::list<process> all;
        for (int i = 0; i < 5; ++i) all.emplace_back(ticker("run", server.url(), R"({"every": "500ms"})", 2'600));
        std::vector<std::int64_t> slots;
        for (process& p : all) {
            for (const std::string& said : p.lines()) {
                REQUIRE(said.starts_with("ran "));
                slots.push_back(std::stoll(said.substr(4)));
            }
            CHECK(p.end() == 0);
        }
        std::sort(slots.begin(), slots.end());
        REQUIRE(slots.size() >= 4);
        for (std::size_t i = 0; i < slots.size(); ++i) {
            CHECK(slots[i] % every_ms == 0); // by the clock on the wall, not since somebody's start
            if (i > 0) CHECK(slots[i] - slots[i - 1] == every_ms);
        }
        CHECK(left_in(server).without_ttl == 0);
    });
}

TEST_CASE("a runner that is killed holds later slots up for at_most, by the server's clock, and no longer") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app here(server.url(), patient);
        lock_user user(here);
        const std::string how = R"({"every": "300ms", "at_most": "1s"})";
        process dies(ticker("hang", server.url(), how, 0));
        std::istringstream said(dies.line());
        std::string word;
        std::int64_t slot = 0;
        std::int64_t fence = 0;
        said >> word >> slot >> fence;
        REQUIRE(word == "running");
        dies.kill9();
        bool skipped = false;
        const auto got = [&] {
            lock_answer a;
            REQUIRE(eventually([&] {
                a = user.tick("nightly", how);
                if (a.tick) return true;
                CHECK(a.status == STN_BUSY);
                if (a.reason == STN_REASON_STILL_RUNNING) {
                    skipped = true;
                    CHECK(a.ttl_left_ms <= 1'001);
                }
                return false;
            }));
            return a;
        }();
        CHECK(skipped); // told, and not silently
        const std::int64_t after_us = stn_tick_fence(got.tick.get()) - fence;
        CHECK(after_us > 1'000'000);
        CHECK(after_us < 4'000'000);
        CHECK(stn_tick_slot_ms(got.tick.get()) > slot);
        CHECK(user.finish(got.tick, true).status == STN_OK);
    });
}

TEST_CASE("a run that ended undone, or whose process closed its client, lets another process take the same slot") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app here(server.url(), patient);
        lock_user user(here);
        const std::string how = R"({"every": "24h"})";
        process fails(ticker("fail", server.url(), how, 0));
        const std::string said = fails.line();
        REQUIRE(said.starts_with("undone "));
        const std::int64_t slot = std::stoll(said.substr(7));
        auto got = slot_soon(user, how);
        REQUIRE(got.tick);
        CHECK(stn_tick_slot_ms(got.tick.get()) == slot);
        got.tick.reset(); // undone too
        auto again = slot_soon(user, how);
        REQUIRE(again.tick);
        CHECK(user.finish(again.tick, true).status == STN_OK);
        const auto used = user.tick("nightly", how);
        CHECK(used.status == STN_BUSY);
        CHECK(used.reason == STN_REASON_TAKEN);
        CHECK(used.ttl_left_ms > 0);
        CHECK(user.finish(again.tick, true).status == STN_LOST); // ended already
    });
}

TEST_CASE("a slot whose grant was not heard of is had by asking again; given up, it is given back; its end is told") {
    on_each([](server_kind kind) {
        live_server server(kind);
        proxy net(server.port());
        app here(net.url(), R"({"command_timeout": "300ms"})");
        lock_user user(here);
        const std::string how = R"({"every": "24h"})";
        for (int i = 0; i < 2; ++i) {
            const auto warm = slot_soon(user, how);
            REQUIRE(warm.tick);
            REQUIRE(user.finish(warm.tick, false).status == STN_OK);
        }
        CHECK(server.ask({"CONFIG", "RESETSTAT"}).text == "OK");
        net.lose_reply_to(std::string(script_of(script_id::tick).sha1));
        const auto got = user.tick("nightly", how);
        CHECK(net.sprung() == 1);
        REQUIRE(got.tick);
        CHECK(calls_of(server, "set") == 1);
        net.lose_reply_to(std::string(script_of(script_id::tick_end).sha1));
        const auto end = user.finish(got.tick, false);
        CHECK(net.sprung() == 2);
        CHECK(end.status == STN_UNCERTAIN); // a second copy finds nothing
        CHECK_FALSE(stands(server, tick_key("stn", "nightly")));
        net.hold(way::to_client);
        CHECK(user.tick("nightly", how).status == STN_UNCERTAIN);
        CHECK(eventually([&] { return calls_of(server, "set") >= 2 && !stands(server, tick_key("stn", "nightly")); }));
        net.pass();
        CHECK(slot_soon(user, how).tick);
    });
}

TEST_CASE("an id is claimed by one of many processes, and by nobody else until its ttl is over") {
    on_each([](server_kind kind) {
        live_server server(kind);
        std::list<process> all;
        for (int i = 0; i < 8; ++i) all.emplace_back(ticker("once", server.url(), "{}", 60'000));
        int first = 0;
        int second = 0;
        for (process& p : all) {
            const std::string said = p.line();
            first += said == "first" ? 1 : 0;
            second += said == "second" ? 1 : 0;
            CHECK(p.end() == 0);
        }
        CHECK(first == 1);
        CHECK(second == 7);
        CHECK(server.ask({"PTTL", once_key("stn", "nightly")}).integer > 30'000);
        app here(server.url(), patient);
        lock_user user(here);
        CHECK(user.once("mail", 250).status == STN_OK);
        CHECK(user.once("mail", 60'000).status == STN_BUSY); // and does not last longer for that
        CHECK(eventually([&] { return user.once("mail", 60'000).status == STN_OK; }, 5s));
    });
}
