// SPDX-License-Identifier: MIT

#include <atomic>
#include <string>
#include <thread>

#include <benchmark/benchmark.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <stanchion/stanchion.h>

// One thread asks, another answers, the first goes on: with a futex, and as a caller who joins a flight that the other
// thread leads. Asking is done the same way in both.
namespace {

const std::string key = "user:123456";

class futex_cell {
  public:
    void set(std::uint32_t to) {
        value_.store(to);
        ::syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
    std::uint32_t wait_past(std::uint32_t old) {
        while (value_.load() == old) ::syscall(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, old, nullptr, nullptr, 0);
        return value_.load();
    }

  private:
    std::atomic<std::uint32_t> value_{0};
};

constexpr std::uint32_t stop = UINT32_MAX;

void floor_handoff(benchmark::State& state) {
    futex_cell ask;
    futex_cell answer;
    std::thread other([&] {
        for (std::uint32_t seen = 0;;) {
            seen = ask.wait_past(seen);
            if (seen == stop) return;
            answer.set(seen);
        }
    });
    std::uint32_t turn = 0;
    for (auto _ : state) {
        ask.set(turn + 1);
        answer.wait_past(turn);
        ++turn;
    }
    ask.set(stop);
    other.join();
}
BENCHMARK(floor_handoff);

void handoff_abi(benchmark::State& state) {
    stn_group* g = nullptr;
    stn_queue* q = nullptr;
    stn_queue* leads = nullptr;
    stn_group_new(nullptr, nullptr, &g, nullptr);
    stn_queue_new(0, &q, nullptr);
    stn_queue_new(0, &leads, nullptr);
    futex_cell ask;
    std::atomic<stn_flight*> flight{nullptr};
    const auto lead = [&] {
        stn_flight* f = nullptr;
        stn_group_join(g, key.data(), key.size(), -1, nullptr, leads, 0, nullptr, &f, nullptr);
        flight.store(f);
    };
    lead();
    std::thread other([&] {
        for (std::uint32_t seen = 0;;) {
            seen = ask.wait_past(seen);
            stn_flight* f = flight.load();
            if (seen != stop) stn_flight_finish(f, STN_OK, "v", 1, 0, nullptr, nullptr);
            stn_flight_free(f);
            if (seen == stop) return;
        }
    });
    std::uint32_t turn = 0;
    for (auto _ : state) {
        stn_flight* none = nullptr;
        stn_group_join(g, key.data(), key.size(), -1, nullptr, q, 0, nullptr, &none, nullptr);
        ask.set(++turn);
        stn_event* e = nullptr;
        stn_queue_next(q, -1, &e, nullptr);
        stn_event_free(e);
        lead();
    }
    ask.set(stop);
    other.join();
    stn_queue_free(q);
    stn_queue_free(leads);
    stn_group_free(g);
}
BENCHMARK(handoff_abi);

int32_t never(void*, stn_lease*, stn_sink* sink) {
    stn_sink_write(sink, "value", 5);
    return STN_OK;
}

void hit_abi(benchmark::State& state) {
    stn_client* c = nullptr;
    stn_cache* cache = nullptr;
    stn_client_open("memory://", nullptr, &c, nullptr);
    stn_cache_open(c, "bench", 5, R"({"ttl": "1h"})", &cache, nullptr);
    for (auto _ : state) {
        stn_event* e = nullptr;
        stn_cache_get_or_load(cache, nullptr, key.data(), key.size(), -1, 0, nullptr, never, nullptr, &e, nullptr);
        stn_event_free(e);
    }
    stn_client_close(c, 0, nullptr);
    stn_cache_free(cache);
    stn_client_free(c);
}
BENCHMARK(hit_abi);

} // namespace
