// SPDX-License-Identifier: MIT

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <benchmark/benchmark.h>
#include <stanchion/stanchion.h>

#include "engine/client_core.hpp"
#include "engine/group.hpp"
#include "io/open_store.hpp"

namespace {

using namespace stn;

const std::string key = "user:123456";

// ---- floors

void floor_mutex(benchmark::State& state) {
    std::mutex m;
    for (auto _ : state) {
        m.lock();
        benchmark::ClobberMemory();
        m.unlock();
    }
}
BENCHMARK(floor_mutex);

// The least a single-flight can do: find or insert under a mutex, run, take it out again.
void floor_map_flight(benchmark::State& state) {
    struct flight {
        int waiting = 0;
    };
    std::mutex m;
    std::unordered_map<std::string, flight> flights;
    for (auto _ : state) {
        {
            const std::lock_guard lock(m);
            benchmark::DoNotOptimize(flights.try_emplace(key));
        }
        {
            const std::lock_guard lock(m);
            flights.erase(key);
        }
    }
}
BENCHMARK(floor_map_flight);

constexpr int batch = 1'000;

// Find the flight under a mutex and add oneself to its list.
void floor_join(benchmark::State& state) {
    struct waiter {
        std::shared_ptr<int> home;
        std::uint64_t tag;
    };
    std::mutex m;
    std::unordered_map<std::string, std::vector<waiter>> flights;
    flights[key].reserve(batch);
    const auto home = std::make_shared<int>(0);
    std::uint64_t tag = 0;
    for (auto _ : state) {
        {
            const std::lock_guard lock(m);
            flights.find(key)->second.push_back({home, tag++});
        }
        if (tag % batch == 0) {
            state.PauseTiming();
            flights[key].clear();
            state.ResumeTiming();
        }
    }
}
BENCHMARK(floor_join);

// ---- ours

std::shared_ptr<client_handle> a_client() {
    auto opened = open_store("memory://");
    client_parts parts;
    parts.link = std::move(opened->link);
    parts.time = std::move(opened->time);
    parts.chance = std::move(opened->chance);
    return std::make_shared<client_handle>(client_core::make(std::move(parts)));
}

void flight_core(benchmark::State& state) {
    group g(a_client());
    const auto home = std::make_shared<event_queue>(1);
    for (auto _ : state) {
        group::joined joined;
        std::uint32_t shared = 0;
        g.join(key, -1, 0, home, 1, joined);
        joined.lead->finish([] { return outcome{}; }, shared);
    }
}
BENCHMARK(flight_core);

void join_core(benchmark::State& state) {
    group g(a_client());
    const auto home = std::make_shared<event_queue>(1);
    auto lead = std::make_unique<group::joined>();
    g.join(key, -1, 0, home, 0, *lead);
    std::uint64_t tag = 0;
    std::uint32_t shared = 0;
    std::vector<event> drained;
    for (auto _ : state) {
        group::joined joined;
        g.join(key, -1, 0, home, ++tag, joined);
        benchmark::DoNotOptimize(joined.op);
        if (tag % batch == 0) {
            state.PauseTiming();
            lead->lead->finish(outcome{}, shared);
            drained.clear();
            home->drain(0, batch, drained);
            lead = std::make_unique<group::joined>();
            g.join(key, -1, 0, home, 0, *lead);
            state.ResumeTiming();
        }
    }
}
BENCHMARK(join_core);

void flight_abi(benchmark::State& state) {
    stn_group* g = nullptr;
    stn_queue* q = nullptr;
    stn_group_new(nullptr, nullptr, &g, nullptr);
    stn_queue_new(0, &q, nullptr);
    for (auto _ : state) {
        stn_flight* lead = nullptr;
        stn_group_join(g, key.data(), key.size(), -1, nullptr, q, 0, nullptr, &lead, nullptr);
        stn_flight_finish(lead, STN_OK, nullptr, 0, 0, nullptr, nullptr);
        stn_flight_free(lead);
    }
    stn_queue_free(q);
    stn_group_free(g);
}
BENCHMARK(flight_abi);

void join_abi(benchmark::State& state) {
    stn_group* g = nullptr;
    stn_queue* q = nullptr;
    stn_group_new(nullptr, nullptr, &g, nullptr);
    stn_queue_new(0, &q, nullptr);
    stn_flight* lead = nullptr;
    stn_flight* none = nullptr;
    stn_group_join(g, key.data(), key.size(), -1, nullptr, q, 0, nullptr, &lead, nullptr);
    std::uint64_t tag = 0;
    std::vector<stn_event*> drained(batch);
    for (auto _ : state) {
        std::uint64_t op = 0;
        stn_group_join(g, key.data(), key.size(), -1, nullptr, q, ++tag, &op, &none, nullptr);
        if (tag % batch == 0) {
            state.PauseTiming();
            stn_flight_finish(lead, STN_OK, nullptr, 0, 0, nullptr, nullptr);
            stn_flight_free(lead);
            std::size_t n = 0;
            stn_queue_drain(q, drained.size(), 0, drained.data(), &n, nullptr);
            for (std::size_t i = 0; i < n; ++i) stn_event_free(drained[i]);
            stn_group_join(g, key.data(), key.size(), -1, nullptr, q, 0, nullptr, &lead, nullptr);
            state.ResumeTiming();
        }
    }
    stn_flight_free(lead);
    stn_queue_free(q);
    stn_group_free(g);
}
BENCHMARK(join_abi);

} // namespace
