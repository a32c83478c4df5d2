// SPDX-License-Identifier: MIT
#include "io/system_clock.hpp"

#include <ctime>

namespace stn {
namespace {

std::int64_t read_ms(clockid_t which) {
    timespec t{};
    static_cast<void>(clock_gettime(which, &t)); // cannot fail for these clocks
    return static_cast<std::int64_t>(t.tv_sec) * 1000 + t.tv_nsec / 1'000'000;
}

} // namespace

mono_ms system_clock::now_ms() {
    return read_ms(CLOCK_BOOTTIME);
}

std::int64_t monotonic_us() {
    timespec t{};
    static_cast<void>(clock_gettime(CLOCK_MONOTONIC, &t));
    return static_cast<std::int64_t>(t.tv_sec) * 1'000'000 + t.tv_nsec / 1'000;
}

std::int64_t wall_clock_ms() {
    return read_ms(CLOCK_REALTIME);
}

} // namespace stn
