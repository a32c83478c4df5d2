// SPDX-License-Identifier: MIT
#include "io/system_random.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include <sys/random.h>

namespace stn {
namespace {

void fill_random(void* to, std::size_t size) {
    auto* at = static_cast<char*>(to);
    while (size > 0) {
        const ssize_t n = getrandom(at, size, 0);
        if (n < 0 && errno != EINTR) std::abort(); // a token that can be guessed fences nothing
        if (n > 0) {
            at += n;
            size -= static_cast<std::size_t>(n);
        }
    }
}

} // namespace

system_random::system_random() {
    std::uint64_t seed = 0;
    fill_random(&seed, sizeof seed);
    state_ = seed;
}

token system_random::make_token() {
    token t;
    do fill_random(t.bytes.data(), t.bytes.size());
    while (t.none()); // none() means "no token" everywhere
    return t;
}

// SplitMix64: any number of threads may draw from one counter.
double system_random::unit() {
    std::uint64_t z = state_.fetch_add(0x9e3779b97f4a7c15, std::memory_order_relaxed) + 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    return (static_cast<double>(z >> 11) + 1) * 0x1p-53;
}

} // namespace stn
