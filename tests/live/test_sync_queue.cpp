// SPDX-License-Identifier: MIT
//
// Queues whose reader begins the operations himself, and does the client's work while he waits.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "app.hpp"

using namespace stn::test;
using namespace std::chrono_literals;

namespace {

owned<stn_queue> sync_queue() {
    stn_queue* q = nullptr;
    REQUIRE(stn_queue_new(0, &q, nullptr) == STN_OK);
    REQUIRE(stn_queue_set_sync(q, nullptr) == STN_OK);
    return owned<stn_queue>(q);
}

std::int32_t begin_get(const app& of, const std::string& key, const owned<stn_queue>& q, std::uint64_t tag,
                       std::int64_t deadline_ms = STN_DEFAULT_MS) {
    return stn_cache_get(of.cache(), key.data(), key.size(), deadline_ms, q.get(), tag, nullptr, nullptr, nullptr);
}

owned<stn_event> next(const owned<stn_queue>& q, std::int64_t timeout_ms = 30'000) {
    stn_event* e = nullptr;
    const std::int32_t code = stn_queue_next(q.get(), timeout_ms, &e, nullptr);
    REQUIRE((code == STN_OK || code == STN_TIMEOUT));
    return owned<stn_event>(e);
}

// How often the threads of the library have gone to sleep, of all clients of this process.
std::uint64_t sleeps_of_the_library() {
    std::uint64_t sum = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream name(task.path() / "comm");
        std::string word;
        if (!(name >> word) || word != "stanchion") continue;
        std::ifstream status(task.path() / "status");
        while (status >> word) {
            if (word != "voluntary_ctxt_switches:") continue;
            std::uint64_t n = 0;
            status >> n;
            sum += n;
        }
    }
    return sum;
}

} // namespace

TEST_CASE("whoever waits on a sync queue does the work himself: the library's thread sleeps through it") {
    live_server server(server_kind::redis);
    app shop(server.url());
    REQUIRE(shop.ready(10'000).status == STN_OK);
    REQUIRE(shop.put("k", "v").status == STN_OK);
    const auto q = sync_queue();
    constexpr std::uint64_t gets = 2'000;
    std::this_thread::sleep_for(100ms); // the company of before is over
    const std::uint64_t before = sleeps_of_the_library();
    for (std::uint64_t i = 1; i <= gets; ++i) {
        REQUIRE(begin_get(shop, "k", q, i) == STN_OK);
        const auto e = next(q);
        REQUIRE(stn_event_kind(e.get()) == STN_EVENT_VALUE);
        REQUIRE(stn_event_tag(e.get()) == i);
    }
    CHECK(sleeps_of_the_library() - before < gets / 4);
}

TEST_CASE("whoever waits on a sync queue waits no longer than he said, and is answered by the deadline") {
    live_server server(server_kind::redis);
    app shop(server.url());
    REQUIRE(shop.ready(10'000).status == STN_OK);
    const auto q = sync_queue();
    server.pause();
    REQUIRE(begin_get(shop, "k", q, 7, 500) == STN_OK);
    CHECK_FALSE(next(q, 0));
    CHECK_FALSE(next(q, 50));
    const auto e = next(q);
    REQUIRE(e);
    CHECK(stn_event_kind(e.get()) == STN_EVENT_ERROR);
    CHECK(stn_event_tag(e.get()) == 7);
    server.go_on();
    REQUIRE(begin_get(shop, "k", q, 8, 20'000) == STN_OK);
    CHECK(stn_event_kind(next(q).get()) == STN_EVENT_ABSENT);
}

TEST_CASE("one sync queue serves several clients, one after the other and at once") {
    live_server server(server_kind::redis);
    app here(server.url());
    app there(server.url());
    REQUIRE(here.put("k", "v").status == STN_OK);
    const auto q = sync_queue();
    for (std::uint64_t i = 0; i < 50; ++i) {
        REQUIRE(begin_get(here, "k", q, 1) == STN_OK);
        REQUIRE(begin_get(there, "k", q, 2) == STN_OK);
        const auto first = next(q);
        const auto second = next(q);
        CHECK(stn_event_kind(first.get()) == STN_EVENT_VALUE);
        CHECK(stn_event_kind(second.get()) == STN_EVENT_VALUE);
        CHECK(stn_event_tag(first.get()) + stn_event_tag(second.get()) == 3);
    }
}

TEST_CASE("what was begun for a sync queue that is closed instead of read ends all the same") {
    live_server server(server_kind::redis);
    app shop(server.url());
    REQUIRE(shop.ready(10'000).status == STN_OK);
    const auto q = sync_queue();
    REQUIRE(begin_get(shop, "k", q, 1) == STN_OK);
    REQUIRE(begin_get(shop, "l", q, 2) == STN_OK);
    CHECK(stn_queue_close(q.get(), nullptr) == STN_OK);
    for (int i = 0; i < 2; ++i) {
        const auto e = next(q);
        REQUIRE(e);
        CHECK(stn_event_status(e.get()) == STN_CLOSED);
    }
    stn_event* none = nullptr;
    CHECK(stn_queue_next(q.get(), 0, &none, nullptr) == STN_CLOSED);
    CHECK(stn_client_close(shop.client(), 5'000, nullptr) == STN_OK);
}

TEST_CASE("a loader of a sync queue's caller runs as long as it likes: its lease is renewed meanwhile") {
    live_server server(server_kind::redis);
    app shop(server.url(), patient, R"({"ttl": "1m", "lease": "300ms"})");
    const auto q = sync_queue();
    REQUIRE(stn_cache_fetch(shop.cache(), nullptr, "k", 1, 20'000, 0, nullptr, q.get(), 1, nullptr, nullptr, nullptr) ==
            STN_OK);
    auto e = next(q);
    REQUIRE(stn_event_kind(e.get()) == STN_EVENT_LEASE);
    const owned<stn_lease> lease(stn_event_take_lease(e.get()));
    std::this_thread::sleep_for(900ms);
    REQUIRE(stn_lease_fulfil(lease.get(), "v", 1, STN_CODEC_DEFAULT, -1, -1, 0, q.get(), 2, nullptr, nullptr) ==
            STN_OK);
    e = next(q);
    CHECK(stn_event_kind(e.get()) == STN_EVENT_FILLED);
    CHECK(stn_event_status(e.get()) == STN_OK);
    CHECK(shop.get("k").bytes == "v");
}
