// SPDX-License-Identifier: MIT
//
// Queues and clients that are closed while threads use them: whatever was accepted ends, once.
#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "handles.hpp"

using namespace stn::stress;

namespace {

constexpr const char* policy = R"({"ttl":"2ms","jitter":0,"error_ttl":"1ms","lease":"100ms","wait":"2s"})";

std::string key_of(std::uint32_t n) {
    return "key" + std::to_string(n);
}

std::int32_t fetch(stn_cache* cache, std::uint32_t key, stn_queue* q, std::uint64_t tag) {
    const std::string k = key_of(key);
    return stn_cache_fetch(cache, nullptr, k.data(), k.size(), -1, 0, nullptr, q, tag, nullptr, nullptr, nullptr);
}

void answer(stn_event* e, dice& chance) {
    owned<stn_lease> lease(stn_event_take_lease(e));
    if (lease && !chance.one_in(4)) {
        stn_lease_fulfil(lease.get(), "x", 1, STN_CODEC_DEFAULT, -1, -1, 0, nullptr, 0, nullptr, nullptr);
    }
}

void wait_for(const std::atomic<std::uint64_t>& count, std::uint64_t at_least) {
    while (count.load() < at_least) std::this_thread::yield();
}

// Not more than that: those who write may be faster.
std::uint64_t read_some(stn_queue* q) {
    std::uint64_t n = 0;
    while (n < 500 && next(q, 0)) ++n;
    return n;
}

// Starts them all, and joins them when it ends.
class crew {
  public:
    template <class Work> void add(Work work) { all_.emplace_back(std::move(work)); }
    ~crew() { join(); }
    void join() {
        for (auto& t : all_) t.join();
        all_.clear();
    }

  private:
    std::vector<std::thread> all_;
};

} // namespace

TEST_CASE("a queue closed under load: every operation that was accepted has its event, and none comes after") {
    const auto client = open_client();
    const auto cache = open_cache(client, "prices", policy);
    dice chance(1);
    std::uint64_t begun_in_all = 0;
    for (std::uint32_t round = 0; round < 300; ++round) {
        const auto q = open_queue();
        std::atomic<std::uint64_t> begun{0};
        std::uint64_t ended = 0;
        crew all;
        for (std::uint32_t i = 0; i < 4; ++i) {
            all.add([&, i] {
                dice mine(100 * round + i);
                for (std::uint64_t n = 0; n < 400; ++n) {
                    if (fetch(cache.get(), mine.below(8), q.get(), n) != STN_OK) return;
                    begun.fetch_add(1);
                }
            });
        }
        all.add([&] {
            dice mine(100 * round + 50);
            std::int32_t status = STN_OK;
            while (status != STN_CLOSED) {
                const auto e = next(q.get(), stuck_ms, &status);
                if (status == STN_TIMEOUT) return;
                if (!e) continue;
                if (terminal(e.get())) ++ended;
                answer(e.get(), mine);
            }
        });
        wait_for(begun, chance.below(400));
        CHECK(stn_queue_close(q.get(), nullptr) == STN_OK);
        all.join();
        CHECK(ended == begun);
        CHECK(!next(q.get(), 0));
        begun_in_all += begun;
    }
    CHECK(begun_in_all > 10'000);
}

TEST_CASE("a client closed under load: every operation that was accepted ends, and the close with it") {
    dice chance(2);
    for (std::uint32_t round = 0; round < 150; ++round) {
        const auto client = open_client(round % 2 == 0 ? "memory://" : "memory://closing");
        const auto cache = open_cache(client, "prices", policy);
        const auto group = open_group(client);
        std::atomic<std::uint64_t> begun{0};
        std::atomic<std::uint64_t> ended{0};
        crew all;
        for (std::uint32_t i = 0; i < 4; ++i) {
            all.add([&, i] {
                dice mine(100 * round + i);
                const auto q = open_queue();
                std::uint64_t open = 0;
                bool closed = false;
                for (std::uint64_t n = 0; n < 100'000 && !closed; ++n) {
                    if (mine.one_in(2)) {
                        closed = fetch(cache.get(), mine.below(8), q.get(), n) != STN_OK;
                        open += closed ? 0 : 1;
                    } else {
                        const std::string k = key_of(mine.below(4));
                        stn_flight* lead = nullptr;
                        closed = stn_group_join(group.get(), k.data(), k.size(), -1, nullptr, q.get(), n, nullptr,
                                                &lead, nullptr) != STN_OK;
                        const owned<stn_flight> run(lead);
                        if (lead != nullptr) {
                            stn_flight_finish(lead, STN_OK, "x", 1, 0, nullptr, nullptr);
                        } else {
                            open += closed ? 0 : 1;
                        }
                    }
                    if (!closed) begun.fetch_add(1);
                    while (const auto e = next(q.get(), 0)) {
                        if (terminal(e.get())) --open;
                        answer(e.get(), mine);
                    }
                }
                while (open > 0) {
                    const auto e = next(q.get(), stuck_ms);
                    if (!e) return;
                    if (terminal(e.get())) --open;
                    answer(e.get(), mine);
                }
                ended.fetch_add(1);
            });
        }
        wait_for(begun, chance.below(2'000));
        CHECK(stn_client_close(client.get(), chance.one_in(2) ? 0 : 20, nullptr) == STN_OK);
        all.join();
        CHECK(ended == 4);
    }
}

TEST_CASE("clients that are opened, used and let go of by eight threads end by themselves") {
    std::atomic<std::uint64_t> wrong{0};
    {
        crew all;
        for (std::uint32_t i = 0; i < 8; ++i) {
            all.add([&, i] {
                dice mine(i);
                for (int round = 0; round < 60; ++round) {
                    const auto q = open_queue();
                    std::uint64_t open = 0;
                    {
                        auto client = open_client(mine.one_in(2) ? "memory://let-go" : "memory://");
                        const auto cache = open_cache(client, "prices", policy);
                        if (mine.one_in(2)) client.reset(); // the cache keeps it alive
                        for (std::uint64_t n = 0; n < 20; ++n) {
                            if (fetch(cache.get(), mine.below(4), q.get(), n) == STN_OK) ++open;
                        }
                    }
                    while (open > 0) {
                        const auto e = next(q.get(), stuck_ms);
                        if (!e) break;
                        if (terminal(e.get())) --open;
                        answer(e.get(), mine);
                    }
                    wrong += open;
                }
            });
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("a doorbell that is taken away while events come never rings after that") {
    struct bell {
        std::atomic<bool> there{true};
        std::atomic<std::uint64_t> rings{0};
        std::atomic<std::uint64_t> late{0};
        static void ring(void* ud) {
            auto* self = static_cast<bell*>(ud);
            self->rings.fetch_add(1);
            if (!self->there.load()) self->late.fetch_add(1);
        }
    };
    const auto client = open_client();
    const auto group = open_group(client);
    const auto q = open_queue();
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> begun{0};
    std::uint64_t ended = 0;
    std::uint64_t rings = 0;
    std::uint64_t late = 0;
    crew all;
    for (std::uint32_t i = 0; i < 3; ++i) {
        all.add([&, i] {
            dice mine(i);
            while (!stop.load()) {
                const std::string k = key_of(mine.below(2));
                stn_flight* lead = nullptr;
                stn_group_join(group.get(), k.data(), k.size(), -1, nullptr, q.get(), 0, nullptr, &lead, nullptr);
                const owned<stn_flight> run(lead);
                if (lead != nullptr) {
                    std::this_thread::yield();
                    stn_flight_finish(lead, STN_OK, "x", 1, 0, nullptr, nullptr);
                } else {
                    begun.fetch_add(1);
                }
            }
        });
    }
    for (int round = 0; round < 2'000; ++round) {
        bell b;
        CHECK(stn_queue_set_doorbell(q.get(), bell::ring, &b, nullptr, nullptr) == STN_OK);
        ended += read_some(q.get());
        std::this_thread::yield();
        CHECK(stn_queue_set_doorbell(q.get(), nullptr, nullptr, nullptr, nullptr) == STN_OK);
        b.there.store(false);
        ended += read_some(q.get());
        rings += b.rings;
        late += b.late;
    }
    stop.store(true);
    all.join();
    while (const auto e = next(q.get(), 0)) ++ended;
    CHECK(late == 0);
    CHECK(rings > 0);
    CHECK(ended == begun);
}
