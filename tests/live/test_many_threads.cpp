// SPDX-License-Identifier: MIT
//
// One client on a real server, used from many threads in every way at once: the loop, callers who do its IO, queues.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <stanchion/stanchion.h>

#include "support/live_server.hpp"

using namespace stn::test;

namespace {

struct client {
    explicit client(const std::string& url, const char* options = "{\"command_timeout\": \"10s\"}") {
        REQUIRE(stn_client_open(url.c_str(), options, &of, nullptr) == STN_OK);
        REQUIRE(stn_cache_open(of, "many", 4, "{\"ttl\": \"1h\"}", &cache, nullptr) == STN_OK);
    }
    ~client() {
        stn_client_close(of, -1, nullptr);
        stn_cache_free(cache);
        stn_client_free(of);
    }
    client(const client&) = delete;
    client& operator=(const client&) = delete;
    stn_client* of = nullptr;
    stn_cache* cache = nullptr;
};

std::string key_of(int n) {
    return "k" + std::to_string(n);
}

std::int32_t load(void* ud, stn_lease*, stn_sink* sink) {
    ++*static_cast<std::atomic<int>*>(ud);
    return stn_sink_write(sink, "value", 5);
}

// A blocking get_or_load: the kind of its answer.
std::int32_t blocking(const client& c, int key, std::atomic<int>& loads) {
    stn_event* e = nullptr;
    const std::string name = key_of(key);
    if (stn_cache_get_or_load(c.cache, nullptr, name.data(), name.size(), 20'000, 0, nullptr, load, &loads, &e,
                              nullptr) != STN_OK) {
        return STN_EVENT_ERROR;
    }
    const std::int32_t kind = stn_event_kind(e);
    stn_event_free(e);
    return kind;
}

// Gets by a queue of its own, a few in flight.
int by_queue(const client& c, int calls, int keys, bool sync) {
    stn_queue* q = nullptr;
    if (stn_queue_new(0, &q, nullptr) != STN_OK) return 0;
    if (sync && stn_queue_set_sync(q, nullptr) != STN_OK) return 0;
    int answered = 0;
    int begun = 0;
    while (answered < calls) {
        for (; begun < calls && begun - answered < 16; ++begun) {
            const std::string name = key_of(begun % keys);
            stn_cache_get(c.cache, name.data(), name.size(), 20'000, q, 0, nullptr, nullptr, nullptr);
        }
        stn_event* e = nullptr;
        if (stn_queue_next(q, 20'000, &e, nullptr) != STN_OK) break;
        if (stn_event_kind(e) != STN_EVENT_ERROR) ++answered;
        stn_event_free(e);
    }
    stn_queue_free(q);
    return answered;
}

} // namespace

TEST_CASE("callers who come and go alone, in company and by queue are all answered, and each key is loaded once") {
    live_server server(server_kind::redis);
    const client c(server.url());
    constexpr int keys = 50;
    constexpr int rounds = 300;
    std::atomic<int> loads{0};
    std::atomic<int> wrong{0};
    std::atomic<int> answered{0};
    // One thread goes on alone when the others are through, and again and again they meet.
    std::vector<std::thread> all;
    for (int me = 0; me < 6; ++me) {
        all.emplace_back([&, me] {
            for (int i = 0; i < rounds * (me == 0 ? 4 : 1); ++i) {
                if (blocking(c, (me * 7 + i) % keys, loads) != STN_EVENT_VALUE) ++wrong;
                if (me > 0 && i % 50 == 49) std::this_thread::sleep_for(std::chrono::milliseconds(30));
            }
        });
    }
    for (const bool sync : {false, true}) all.emplace_back([&, sync] { answered += by_queue(c, 500, keys, sync); });
    for (std::thread& t : all) t.join();
    CHECK(wrong == 0);
    CHECK(answered == 1'000);
    CHECK(loads == keys);
}

TEST_CASE("a caller alone is answered while others only open and close clients of their own") {
    live_server server(server_kind::valkey);
    const client c(server.url());
    std::atomic<int> loads{0};
    std::atomic<bool> go_on{true};
    std::thread others([&] {
        while (go_on) {
            const client own(server.url());
            std::atomic<int> none{0};
            CHECK(blocking(own, 1, none) == STN_EVENT_VALUE);
        }
    });
    int wrong = 0;
    for (int i = 0; i < 2'000; ++i) wrong += blocking(c, i % 3, loads) == STN_EVENT_VALUE ? 0 : 1;
    go_on = false;
    others.join();
    CHECK(wrong == 0);
}

TEST_CASE("a close ends a caller who does the client's IO") {
    live_server server(server_kind::redis);
    for (int round = 0; round < 20; ++round) {
        auto c = std::make_unique<client>(server.url());
        std::atomic<int> loads{0};
        REQUIRE(blocking(*c, 1, loads) == STN_EVENT_VALUE);
        std::atomic<int> ended{0};
        std::thread caller([&] {
            while (blocking(*c, 1, loads) == STN_EVENT_VALUE) {
            }
            ended = 1;
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        CHECK(stn_client_close(c->of, 1'000, nullptr) == STN_OK);
        caller.join();
        CHECK(ended == 1);
    }
}

TEST_CASE("a lone caller who is told by a message does not wait for his timer") {
    live_server server(server_kind::redis);
    const client one(server.url());
    const client other(server.url());
    // `other` loads for a while; `one` is alone in its client, waits for the load elsewhere, and is told.
    std::atomic<int> loads{0};
    struct slow {
        static std::int32_t load(void* ud, stn_lease*, stn_sink* sink) {
            ++*static_cast<std::atomic<int>*>(ud);
            std::this_thread::sleep_for(std::chrono::milliseconds(150));
            return stn_sink_write(sink, "slow", 4);
        }
    };
    std::thread loader([&] {
        stn_event* e = nullptr;
        CHECK(stn_cache_get_or_load(other.cache, nullptr, "s", 1, 20'000, 0, nullptr, slow::load, &loads, &e,
                                    nullptr) == STN_OK);
        stn_event_free(e);
    });
    while (loads == 0) std::this_thread::yield();
    CHECK(blocking(one, 0, loads) == STN_EVENT_VALUE); // another key: loads by itself
    stn_event* e = nullptr;
    std::atomic<int> own{0};
    REQUIRE(stn_cache_get_or_load(one.cache, nullptr, "s", 1, 20'000, 0, nullptr, load, &own, &e, nullptr) == STN_OK);
    std::size_t n = 0;
    const char* const bytes = static_cast<const char*>(stn_event_bytes(e, &n));
    CHECK(std::string(bytes, n) == "slow");
    stn_event_free(e);
    loader.join();
    CHECK(own == 0);
}
