// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <sched.h>
#include <unistd.h>

namespace stn::bench {

[[noreturn]] inline void give_up(const char* why) {
    std::fprintf(stderr, "%s\n", why);
    std::exit(1);
}

// Binds a process and the threads it will make to one CPU, or lets the kernel place them.
inline void place(pid_t who, bool pinned) {
    cpu_set_t set;
    CPU_ZERO(&set);
    const long cpus = ::sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 0; i < (pinned ? 1 : cpus); ++i) CPU_SET(static_cast<std::size_t>(i), &set);
    if (::sched_setaffinity(who, sizeof set, &set) != 0) std::perror("sched_setaffinity");
}

inline double median(std::vector<double> v) {
    std::ranges::sort(v);
    return v[v.size() / 2];
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
