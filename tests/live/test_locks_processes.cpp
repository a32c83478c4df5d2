// SPDX-License-Identifier: MIT
//
// Locks between processes, some of which sleep or die, and after a fork.
#include <doctest/doctest.h>

#include <algorithm>
#include <list>
#include <random>

#include <sys/wait.h>
#include <unistd.h>

#include "locks.hpp"
#include "process.hpp"
#include "protocol/keys.hpp"
#include "protocol/scripts.hpp"
#include "support/proxy.hpp"
#include "support/scratch_folder.hpp"

using namespace stn;
using namespace stn::test;
using namespace std::chrono_literals;

namespace {

const std::string report = lock_key("stn", "report");

std::vector<std::string> locker(const std::string& what, const std::string& url, const std::string& how, int number,
                                const std::string& file = "", const std::string& options = patient) {
    return {STN_LIVE_LOCKER, what, url, options, how, "report", std::to_string(number), file};
}

} // namespace

TEST_CASE("a holder whose process stands still for longer than its ttl: another has the lock, and keeps it") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app here(server.url(), patient);
        lock_user user(here);
        process sleeps(locker("hold", server.url(), R"({"ttl": "600ms"})", 60'000));
        REQUIRE(sleeps.line().starts_with("held "));
        sleeps.pause();
        const auto got = user.acquire("report", R"({"ttl": "1m"})");
        REQUIRE(got.lock);
        CHECK(got.took < 3s);
        std::this_thread::sleep_for(250ms); // it has slept over its own clock for sure
        sleeps.go_on();
        CHECK(sleeps.line() == "woke 0"); // at the first look, before anybody could be asked
        CHECK(sleeps.line() == "lost expired");
        CHECK(sleeps.line() == "released lost");
        CHECK(sleeps.line() == "told 1");
        CHECK(sleeps.end() == 0);
        CHECK(stn_lock_held(got.lock.get()) == 1);
        CHECK(server.ask({"GET", report}).text.starts_with(token_of(got.lock) + ":"));
        CHECK(user.release(got.lock).status == STN_OK);
    });
}

TEST_CASE("a holder whose process stands still for less than its ttl keeps its lock") {
    on_each([](server_kind kind) {
        live_server server(kind);
        process sleeps(locker("hold", server.url(), R"({"ttl": "3s"})", 900));
        REQUIRE(sleeps.line().starts_with("held "));
        sleeps.pause();
        std::this_thread::sleep_for(600ms);
        CHECK(stands(server, report));
        sleeps.go_on();
        CHECK(sleeps.line() == "woke 1");
        CHECK(sleeps.line() == "released ok");
        CHECK(sleeps.line() == "told 0");
        CHECK_FALSE(stands(server, report));
    });
}

TEST_CASE("a holder that is killed is waited for no longer than its ttl") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app here(server.url(), patient);
        lock_user user(here);
        process dies(locker("hold", server.url(), R"({"ttl": "800ms"})", 60'000));
        REQUIRE(dies.line().starts_with("held "));
        CHECK(user.acquire("report", R"({"ttl": "1m", "wait": "0s"})").status == STN_BUSY);
        auto waits = user.begin("report", R"({"ttl": "1m"})");
        dies.kill9();
        const auto died = std::chrono::steady_clock::now();
        const auto got = waits.end();
        REQUIRE(got.lock);
        CHECK(std::chrono::steady_clock::now() - died < 800ms + 2s); // of a slow machine
        CHECK(user.release(got.lock).status == STN_OK);
    });
}

TEST_CASE("a process that waits and is killed leaves nothing behind") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app here(server.url(), patient);
        lock_user user(here);
        const auto got = user.acquire("report", R"({"ttl": "1m"})");
        REQUIRE(got.lock);
        process waits(locker("hold", server.url(), R"({"ttl": "1m"})", 60'000));
        CHECK(waits.line(200ms).empty());
        waits.kill9();
        CHECK(user.release(got.lock).status == STN_OK);
        CHECK_FALSE(stands(server, report));
    });
}

// A network that cuts, loses and delays, and a server that forgets its scripts; only what takes longer than the
// ttl could take a lock from its holder, and nothing here does.
TEST_CASE("of many processes never do two hold the lock at once, and fences grow, whatever the network does") {
    on_each([](server_kind kind) {
        const auto seed = std::random_device{}();
        INFO("seed ", seed);
        std::mt19937 dice(seed);
        live_server server(kind);
        proxy net(server.port());
        const scratch_folder folder;
        const std::string file = folder.file("inside");
        const std::string options = R"({"command_timeout": "50ms", "connect_timeout": "200ms"})";
        const std::string how = R"({"ttl": "3s", "wait": "500ms"})";
        std::list<process> all;
        for (int i = 0; i < 6; ++i) {
            const std::string& url = i % 3 == 0 ? server.url() : net.url(); // some have no trouble
            all.emplace_back(locker("count", url, how, 2'000, file, options));
        }
        const script_id scripts[] = {script_id::acquire, script_id::renew, script_id::release};
        const auto until = std::chrono::steady_clock::now() + 1'500ms;
        while (std::chrono::steady_clock::now() < until) {
            const std::string sha(script_of(scripts[dice() % 3]).sha1);
            switch (dice() % 7) {
            case 0: net.cut(ending::closed); break;
            case 1: net.cut(ending::reset); break;
            case 2: net.lose_reply_to(sha); break;
            case 3: net.lose_request(sha); break;
            case 4: net.delay(way::to_client, std::chrono::milliseconds(dice() % 120)); break;
            case 5: CHECK(server.ask({"SCRIPT", "FLUSH"}).text == "OK"); break;
            default: net.pass(); break;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(dice() % 40));
        }
        net.pass();
        std::int64_t counted = 0;
        for (process& p : all) {
            const std::string end = p.line();
            CHECK_MESSAGE(end.starts_with("counted "), end);
            if (end.starts_with("counted ")) counted += std::stoll(end.substr(8));
            CHECK(p.end() == 0);
        }
        CHECK(counted > 10);
        CHECK(eventually([&] { return !stands(server, report); }, 5s));
    });
}

TEST_CASE(
    "a fork child is told so on every way, its end touches nothing, and the parent's lock is kept and given back") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app here(server.url(), patient);
        lock_user user(here);
        auto got = user.acquire("report", R"({"ttl": "900ms"})");
        auto second = user.acquire("dropped", R"({"ttl": "1m"})");
        const auto slot = user.tick("nightly", R"({"every": "1m"})");
        REQUIRE(got.lock);
        REQUIRE(second.lock);
        REQUIRE(slot.tick);
        std::this_thread::sleep_for(50ms); // nobody is in a turn
        const pid_t child = ::fork();
        if (child == 0) {
            stn_queue* q = nullptr;
            bool told = stn_queue_new(0, &q, nullptr) == STN_OK;
            stn_lock* lock = got.lock.get();
            told = told && stn_lock_held(lock) == 0 && stn_lock_remaining_ms(lock) == 0 &&
                   stn_lock_state(lock) == STN_FORKED && stn_lock_loss(lock) == STN_REASON_NONE &&
                   stn_lock_renew(lock, -1, q, 0, nullptr) == STN_FORKED &&
                   stn_lock_release(lock, -1, q, 0, nullptr) == STN_FORKED &&
                   stn_lock_leave(lock, nullptr) == STN_FORKED &&
                   stn_lock_wait_lost(lock, 1'000, nullptr) == STN_FORKED &&
                   stn_tick_done(slot.tick.get(), 1, -1, q, 0, nullptr) == STN_FORKED &&
                   stn_lock_acquire(here.client(), "x", 1, half_a_minute, nullptr, -1, nullptr, q, 0, nullptr, 0,
                                    nullptr, nullptr) == STN_FORKED;
            second.lock.reset(); // in the parent this would give it back
            ::usleep(100'000);
            ::_exit(told ? 0 : 1);
        }
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status));
        CHECK(WEXITSTATUS(status) == 0);
        std::this_thread::sleep_for(1s); // longer than the ttl
        CHECK(stn_lock_held(got.lock.get()) == 1);
        CHECK(stands(server, lock_key("stn", "dropped")));
        CHECK(user.losses().empty());
        CHECK(user.release(got.lock).status == STN_OK);
        CHECK(user.release(second.lock).status == STN_OK);
        CHECK(user.finish(slot.tick, true).status == STN_OK);
        CHECK_FALSE(stands(server, report));
    });
}

TEST_CASE(
    "with close_at_exit, exit() and returning from main give back what is held; without it, it lives out its ttl") {
    on_each([](server_kind kind) {
        live_server server(kind);
        const auto leaves = [&](const std::string& options) {
            process ends(locker("leave", server.url(), half_a_minute, 0, "", options));
            CHECK(ends.line().starts_with("held "));
            CHECK(ends.end() == 0);
            return stands(server, report);
        };
        CHECK_FALSE(leaves(R"({"close_at_exit": "2s"})"));
        CHECK(leaves("{}"));
    });
}

TEST_CASE("close_at_exit of a store that says nothing ends within its bound") {
    live_server server(server_kind::redis);
    process ends(locker("desert", server.url(), half_a_minute, 1'000, "", R"({"close_at_exit": "300ms"})"));
    CHECK(ends.line().starts_with("held "));
    CHECK(ends.line() == "child 7");
    server.pause();
    const auto since = std::chrono::steady_clock::now();
    CHECK(ends.end() == 0);
    CHECK(std::chrono::steady_clock::now() - since < 10s);
    server.go_on();
}

TEST_CASE("close_at_exit does nothing in a fork child that exits: the parent's lock stays until it exits itself") {
    on_each([](server_kind kind) {
        live_server server(kind);
        process ends(locker("desert", server.url(), half_a_minute, 500, "", R"({"close_at_exit": "30s"})"));
        CHECK(ends.line().starts_with("held "));
        CHECK(ends.line() == "child 7");
        CHECK(stands(server, report));
        CHECK(ends.end() == 0);
        CHECK_FALSE(stands(server, report));
    });
}
