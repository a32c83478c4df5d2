// SPDX-License-Identifier: MIT
//
// Locks on a server that sleeps, forgets, dies or is full: what a holder is told, and that nobody is told wrong.
#include <doctest/doctest.h>

#include <algorithm>

#include "locks.hpp"
#include "protocol/keys.hpp"

using namespace stn;
using namespace stn::test;
using namespace std::chrono_literals;

namespace {

const std::string report = lock_key("stn", "report");
using reasons = std::vector<std::int32_t>;

// A client and its server, which knows the scripts.
struct scene {
    explicit scene(server_kind kind, const std::string& options = patient, const live_options& how = {})
        : server(kind, how),
          here(server.url(), options),
          user(here) {
        REQUIRE(here.ready(10'000).status == STN_OK);
        warm_up(user);
        CHECK(server.ask({"CONFIG", "RESETSTAT"}).text == "OK");
    }
    live_server server;
    app here;
    lock_user user;
};

bool held(const lock_answer& a) {
    return stn_lock_held(a.lock.get()) == 1;
}

// Final: nothing brings it back, and nothing is told twice.
void is_lost(lock_user& user, const lock_answer& a, std::int32_t why) {
    CHECK_FALSE(held(a));
    CHECK(stn_lock_state(a.lock.get()) == STN_LOCK_LOST);
    CHECK(stn_lock_loss(a.lock.get()) == why);
    CHECK(stn_lock_wait_lost(a.lock.get(), 0, nullptr) == STN_OK);
    CHECK(user.renew(a.lock).status == STN_LOST);
    CHECK(user.release(a.lock).status == STN_LOST);
    CHECK(user.losses(50ms).empty());
}

} // namespace

TEST_CASE("a server that stands still for less than the ttl costs nobody his lock") {
    on_each([](server_kind kind) {
        scene s(kind);
        const auto asked = std::chrono::steady_clock::now();
        const auto got = s.user.acquire("report", R"({"ttl": "1600ms"})");
        REQUIRE(got.lock);
        std::this_thread::sleep_for(300ms); // its renewal comes while the server sleeps
        s.server.pause();
        std::this_thread::sleep_for(700ms);
        CHECK(held(got));
        s.server.go_on();
        std::this_thread::sleep_until(asked + 1'800ms);
        CHECK(held(got));
        CHECK(s.user.losses().empty());
        CHECK(s.user.release(got.lock).status == STN_OK);
    });
}

TEST_CASE("a server that stands still for longer than the ttl: held no longer than that, told once, nothing is left") {
    on_each([](server_kind kind) {
        scene s(kind);
        const auto asked = std::chrono::steady_clock::now();
        const auto got = s.user.acquire("report", R"({"ttl": "600ms"})");
        REQUIRE(got.lock);
        s.server.pause();
        const auto paused = std::chrono::steady_clock::now();
        CHECK(stn_lock_wait_lost(got.lock.get(), 10'000, nullptr) == STN_OK);
        const auto lost = std::chrono::steady_clock::now();
        CHECK_FALSE(held(got));
        CHECK(lost - asked > 500ms); // not sooner than the clock says
        CHECK(lost - paused < 3s);
        CHECK(s.user.losses(5s) == reasons{STN_REASON_EXPIRED});
        std::this_thread::sleep_until(asked + 700ms);
        CHECK_FALSE(held(got));
        s.server.go_on();
        is_lost(s.user, got, STN_REASON_EXPIRED);
        CHECK(eventually([&] { return !stands(s.server, report); }));
        // Its late renewals, which run now, revive nothing.
        std::this_thread::sleep_for(50ms);
        CHECK_FALSE(stands(s.server, report));
        CHECK(s.user.acquire("report").lock);
    });
}

TEST_CASE("an acquire while the server stands still is uncertain, and what it took then is given back") {
    on_each([](server_kind kind) {
        scene s(kind, R"({"command_timeout": "100ms"})");
        s.server.pause();
        const auto late = s.user.acquire("report", R"({"ttl": "1m", "wait": "400ms"})");
        CHECK(late.status == STN_UNCERTAIN);
        CHECK(late.may_have_applied);
        CHECK(late.took < 3s);
        s.server.go_on();
        CHECK(eventually([&] { return calls_of(s.server, "del") >= 1; })); // it was granted to nobody
        CHECK(eventually([&] { return !stands(s.server, report); }));
        CHECK(s.user.acquire("report").lock);
    });
}

TEST_CASE("FLUSHALL, or a DEL by another client: deleted, told once, and a lost lock is never made anew") {
    on_each([](server_kind kind) {
        scene s(kind);
        for (const bool flush : {true, false}) {
            CAPTURE(flush);
            const auto got = s.user.acquire("report", R"({"ttl": "1s"})");
            REQUIRE(got.lock);
            if (flush) {
                CHECK(s.server.ask({"FLUSHALL"}).text == "OK");
            } else {
                CHECK(s.server.ask({"DEL", report}).integer == 1);
            }
            CHECK(s.user.losses(5s) == reasons{STN_REASON_DELETED});
            is_lost(s.user, got, STN_REASON_DELETED);
            CHECK_FALSE(stands(s.server, report));
        }
    });
}

TEST_CASE("a SET by another client: stolen, told once, and what stands there is neither renewed nor deleted") {
    on_each([](server_kind kind) {
        scene s(kind);
        auto got = s.user.acquire("report", R"({"ttl": "1s"})");
        REQUIRE(got.lock);
        CHECK(s.server.ask({"SET", report, "another's", "PX", "60000"}).text == "OK");
        CHECK(s.user.losses(5s) == reasons{STN_REASON_STOLEN});
        is_lost(s.user, got, STN_REASON_STOLEN);
        got.lock.reset();
        std::this_thread::sleep_for(50ms);
        CHECK(s.server.ask({"GET", report}).text == "another's");
        CHECK(s.server.ask({"PTTL", report}).integer > 30'000);
        CHECK(s.server.ask({"DEL", report}).integer == 1);

        // Before its owner knows of it: asked for, on each way.
        const auto second = s.user.acquire("report", R"({"ttl": "1m"})");
        const auto third = s.user.acquire("invoice", R"({"ttl": "1m"})");
        REQUIRE(second.lock);
        REQUIRE(third.lock);
        const std::string invoice = lock_key("stn", "invoice");
        for (const std::string& key : {report, invoice}) {
            CHECK(s.server.ask({"SET", key, "another's", "PX", "30000"}).text == "OK");
        }
        CHECK(s.user.renew(second.lock).status == STN_NOT_MINE);
        CHECK(s.user.losses(5s) == reasons{STN_REASON_STOLEN});
        CHECK(s.user.release(third.lock).status == STN_NOT_MINE);
        CHECK(s.user.losses(50ms).empty());
        for (const std::string& key : {report, invoice}) {
            CHECK(s.server.ask({"GET", key}).text == "another's");
            CHECK(s.server.ask({"PTTL", key}).integer <= 30'000);
        }
    });
}

TEST_CASE("SCRIPT FLUSH between acquire, renew and release: no holder notices, and nobody who waits") {
    on_each([](server_kind kind) {
        for (const bool may_load : {true, false}) {
            CAPTURE(may_load);
            live_server server(kind);
            const std::vector<std::string> rights{
                "ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", may_load ? "+script" : "-script"};
            CHECK(server.ask(rights).text == "OK");
            app here("redis://app:pw@127.0.0.1:" + std::to_string(server.port()), patient);
            lock_user user(here);
            const auto forget = [&] { CHECK(server.ask({"SCRIPT", "FLUSH"}).text == "OK"); };
            std::int64_t fence = 0;
            for (int i = 0; i < 3; ++i) {
                forget();
                const auto got = user.acquire("report");
                REQUIRE(got.lock);
                CHECK(stn_lock_fence(got.lock.get()) > fence);
                fence = stn_lock_fence(got.lock.get());
                auto next = user.begin("report"); // in line behind it
                forget();
                CHECK(user.renew(got.lock).status == STN_OK);
                forget();
                CHECK(user.release(got.lock).status == STN_OK);
                forget();
                const auto handed = next.end();
                REQUIRE(handed.lock);
                forget();
                CHECK(user.inspect("report").status == STN_OK);
                forget();
                CHECK(user.once(std::to_string(i), 60'000).status == STN_OK);
                CHECK(user.release(handed.lock).status == STN_OK);
            }
            CHECK(user.losses().empty());
            CHECK_FALSE(stands(server, report));
            CHECK(here.stats().commands_lost == 0);
        }
    });
}

// The second client is of another process, as far as the first can know.
TEST_CASE("SCRIPT FLUSH while an acquire is given up: no copy of it runs behind its release") {
    on_each([](server_kind kind) {
        scene s(kind);
        for (int i = 0; i < 100; ++i) {
            CHECK(s.server.ask({"SCRIPT", "FLUSH"}).text == "OK");
            auto asked = s.user.begin("report", R"({"ttl": "1m"})");
            if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(40 * (i % 10)));
            asked.cancel();
            auto end = asked.end();
            REQUIRE((end.status == STN_CANCELLED || end.lock));
        }
        CHECK(eventually([&] { return !stands(s.server, report); }));
        CHECK(s.user.acquire("report").lock);
    });
}

TEST_CASE("a server killed and started again, empty: the loss is told once, and the lock can be taken anew") {
    on_each([](server_kind kind) {
        scene s(kind);
        const auto got = s.user.acquire("report", R"({"ttl": "3s"})");
        REQUIRE(got.lock);
        const std::int64_t fence = stn_lock_fence(got.lock.get());
        s.server.restart();
        const auto told = s.user.losses(10s);
        REQUIRE(told.size() == 1);
        // On a machine that takes its time the clock may be first.
        CHECK((told[0] == STN_REASON_DELETED || told[0] == STN_REASON_EXPIRED));
        is_lost(s.user, got, told[0]);
        const auto next = s.user.acquire("report");
        REQUIRE(next.lock);
        CHECK(stn_lock_fence(next.lock.get()) > fence);
        CHECK(s.user.release(next.lock).status == STN_OK);
    });
}

TEST_CASE("a server that is gone: held no longer than the ttl, an acquire is unavailable, and all is well afterwards") {
    on_each([](server_kind kind) {
        scene s(kind, R"({"command_timeout": "100ms"})");
        const auto got = s.user.acquire("report", R"({"ttl": "500ms"})");
        REQUIRE(got.lock);
        s.server.kill9();
        CHECK(s.user.losses(5s) == reasons{STN_REASON_EXPIRED});
        const auto down = s.user.acquire("other", R"({"ttl": "1m", "wait": "200ms"})");
        CHECK(down.status == STN_UNAVAILABLE);
        CHECK(down.took < 3s);
        auto waits = s.user.begin("report", R"({"ttl": "1m"})");
        s.server.start();
        CHECK(waits.end().lock);
        CHECK_FALSE(stands(s.server, lock_key("stn", "other")));
    });
}

TEST_CASE("a full store: what is held is renewed and released, and an acquire is unavailable, not busy") {
    on_each([](server_kind kind) {
        scene s(kind, patient, {.config = {"maxmemory-policy noeviction"}});
        const auto got = s.user.acquire("report", R"({"ttl": "900ms"})");
        REQUIRE(got.lock);
        CHECK(s.server.ask({"CONFIG", "SET", "maxmemory", "1"}).text == "OK");
        CHECK(s.user.renew(got.lock).status == STN_OK);
        const auto before = s.here.stats().renewals;
        const auto began = std::chrono::steady_clock::now();
        const auto full = s.user.acquire("other", R"({"ttl": "1m", "wait": "300ms"})");
        CHECK(full.status == STN_UNAVAILABLE);
        CHECK(full.server_text.starts_with("OOM"));
        CHECK_FALSE(full.may_have_applied);
        CHECK(s.user.acquire("other", R"({"ttl": "1m", "wait": "0s"})").status == STN_UNAVAILABLE);
        REQUIRE(eventually([&] { return s.here.stats().renewals >= before + 3; }));
        std::this_thread::sleep_until(began + 950ms);
        CHECK(held(got)); // longer than without a renewal
        CHECK(s.user.losses().empty());
        CHECK(s.user.release(got.lock).status == STN_OK);
        CHECK_FALSE(stands(s.server, report));
        const auto told = s.here.notices(STN_NOTICE_LOG);
        CHECK(told.size() == 1);
        CHECK(s.server.ask({"CONFIG", "SET", "maxmemory", "0"}).text == "OK");
        CHECK(s.user.acquire("other").lock);
    });
}

TEST_CASE("max_hold: lost in time though the store is well, and free for others") {
    on_each([](server_kind kind) {
        scene s(kind);
        const auto got = s.user.acquire("report", R"({"ttl": "1m", "max_hold": "150ms"})");
        REQUIRE(got.lock);
        CHECK(s.user.losses(5s) == reasons{STN_REASON_MAX_HOLD});
        is_lost(s.user, got, STN_REASON_MAX_HOLD);
        CHECK(eventually([&] { return !stands(s.server, report); }));
    });
}
