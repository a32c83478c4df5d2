// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace stn::bench {

[[noreturn]] inline void give_up(const char* why) {
    std::fprintf(stderr, "bench_store: %s\n", why);
    std::exit(1);
}

inline std::string key_of(int n) {
    return "user:" + std::to_string(100'000 + n);
}
inline std::string store_key_of(int n) {
    return "stn:v:bench:{" + key_of(n) + "}";
}

// Operations a second of `threads` threads, each of which counts its own until it is told to stop.
template <class Work> double timed(int threads, int ms, Work work) {
    using clock = std::chrono::steady_clock;
    std::atomic<bool> go_on{true};
    std::atomic<std::uint64_t> sum{0};
    std::vector<std::thread> all;
    const auto began = clock::now();
    for (int i = 0; i < threads; ++i) {
        all.emplace_back([&, i] { sum += work(i, go_on); });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    go_on = false;
    for (std::thread& t : all) t.join();
    return static_cast<double>(sum) / std::chrono::duration<double>(clock::now() - began).count();
}

} // namespace stn::bench
