// SPDX-License-Identifier: MIT
//
// Many locks of one client, and its end.
#include <doctest/doctest.h>

#include <algorithm>

#include "locks.hpp"
#include "protocol/keys.hpp"
#include "support/proxy.hpp"

using namespace stn;
using namespace stn::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t many = 10'000;

std::uint64_t stat_of(live_server& server, const std::string& name) {
    const std::string all = server.ask({"INFO", "stats"}).text;
    const auto at = all.find(name + ":");
    REQUIRE(at != std::string::npos);
    return std::stoull(all.substr(at + name.size() + 1));
}

struct crowd_of_locks {
    crowd_of_locks(app& of, const std::string& options) {
        stn_queue* q = nullptr;
        stn_queue* told = nullptr;
        REQUIRE(stn_queue_new(0, &q, nullptr) == STN_OK);
        answers.reset(q);
        REQUIRE(stn_queue_new(0, &told, nullptr) == STN_OK);
        losses.reset(told);
        stn_lock_policy* how = nullptr;
        REQUIRE(stn_lock_policy_new(options.c_str(), &how, nullptr) == STN_OK);
        for (std::size_t i = 0; i < many; ++i) {
            const std::string name = "report " + std::to_string(i);
            REQUIRE(stn_lock_acquire(of.client(), name.data(), name.size(), nullptr, how, 30'000, nullptr, q, i, told,
                                     i, nullptr, nullptr) == STN_OK);
        }
        stn_lock_policy_free(how);
        for (std::size_t i = 0; i < many; ++i) {
            stn_event* e = nullptr;
            REQUIRE(stn_queue_next(q, 30'000, &e, nullptr) == STN_OK);
            const owned<stn_event> event(e);
            REQUIRE(stn_event_kind(e) == STN_EVENT_LOCK);
            all.emplace_back(stn_event_take_lock(e));
        }
    }
    [[nodiscard]] std::size_t held() const {
        return static_cast<std::size_t>(
            std::count_if(all.begin(), all.end(), [](const auto& l) { return stn_lock_held(l.get()) == 1; }));
    }
    [[nodiscard]] std::size_t lost() const {
        std::size_t n = 0;
        stn_event* e = nullptr;
        for (; stn_queue_next(losses.get(), 0, &e, nullptr) == STN_OK; ++n) stn_event_free(e);
        return n;
    }
    owned<stn_queue> answers;
    owned<stn_queue> losses;
    std::vector<owned<stn_lock>> all;
};

} // namespace

TEST_CASE("ten thousand locks of one client are renewed in batches, and none is lost; close gives all of them back") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app here(server.url(), patient);
        REQUIRE(here.ready(10'000).status == STN_OK);
        const crowd_of_locks locks(here, R"({"ttl": "6s"})");
        CHECK(server.ask({"DBSIZE"}).integer == static_cast<std::int64_t>(many));
        const auto renewed = here.stats().renewals;
        const auto reads = stat_of(server, "total_reads_processed");
        REQUIRE(eventually([&] { return here.stats().renewals >= renewed + many; }, 20s));
        const auto commands = here.stats().renewals - renewed;
        const auto read = stat_of(server, "total_reads_processed") - reads;
        MESSAGE(server_name(kind), ": ", commands, " renewals in ", read, " reads of the server");
        CHECK(commands < 2 * many); // a third of the ttl each, and not more often
        CHECK(read < commands / 2);
        CHECK(locks.held() == many);
        CHECK(locks.lost() == 0);
        // None has less left than it has between two renewals, and one that was lost.
        std::int64_t least = 6'000;
        for (const auto& l : locks.all) least = std::min(least, stn_lock_remaining_ms(l.get()));
        CHECK(least > 2'000);
        const auto began = std::chrono::steady_clock::now();
        CHECK(stn_client_close(here.client(), 5'000, nullptr) == STN_OK);
        CHECK(std::chrono::steady_clock::now() - began < 10s);
        CHECK(locks.held() == 0);
        CHECK(locks.lost() == many); // each told once, with the reason closed
        CHECK(server.ask({"DBSIZE"}).integer == 0);
    });
}

TEST_CASE("close gives back what is held, ends who waits, and says so to both") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app here(server.url(), patient);
        lock_user user(here);
        const auto got = user.acquire("report", R"({"ttl": "1m"})");
        REQUIRE(got.lock);
        auto in_line = user.begin("report", R"({"ttl": "1m"})");
        CHECK(server.ask({"SET", lock_key("stn", "other"), "another's", "PX", "60000"}).text == "OK");
        auto front = user.begin("other", R"({"ttl": "1m"})");
        std::this_thread::sleep_for(30ms);
        CHECK(stn_client_close(here.client(), -1, nullptr) == STN_OK);
        CHECK(in_line.end().status == STN_CLOSED);
        CHECK(front.end().status == STN_CLOSED);
        CHECK(user.losses() == std::vector<std::int32_t>{STN_REASON_CLOSED});
        CHECK(stn_lock_held(got.lock.get()) == 0);
        CHECK(user.acquire("report").status == STN_CLOSED);
        CHECK_FALSE(stands(server, lock_key("stn", "report")));
        CHECK(server.ask({"GET", lock_key("stn", "other")}).text == "another's");
    });
}

TEST_CASE("close with a server that is silent or gone ends within its bound, and says that nothing is held") {
    on_each([](server_kind kind) {
        for (const bool gone : {false, true}) {
            CAPTURE(gone);
            live_server server(kind);
            app here(server.url());
            lock_user user(here);
            const auto got = user.acquire("report", R"({"ttl": "1m"})");
            REQUIRE(got.lock);
            gone ? server.kill9() : server.pause();
            const auto began = std::chrono::steady_clock::now();
            CHECK(stn_client_close(here.client(), 500, nullptr) == STN_OK);
            CHECK(std::chrono::steady_clock::now() - began < 5s);
            CHECK(stn_lock_held(got.lock.get()) == 0);
            CHECK(user.losses() == std::vector<std::int32_t>{STN_REASON_CLOSED});
            if (gone) continue;
            server.go_on(); // what was said to it before is done then
            CHECK(eventually([&] { return !stands(server, lock_key("stn", "report")); }));
        }
    });
}
