// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/random.hpp"

namespace stn::sim {

// The only chance there is: xoshiro256**, seeded. Every actor has its own, so that what one of them
// draws does not shift what the others draw.
class dice {
  public:
    explicit dice(std::uint64_t seed) noexcept {
        for (std::uint64_t& s : state_) {
            seed += 0x9E3779B97F4A7C15ULL;
            std::uint64_t z = seed;
            z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
            z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
            s = z ^ (z >> 31);
        }
    }

    std::uint64_t next() noexcept {
        const std::uint64_t out = rotated(state_[1] * 5, 7) * 9;
        const std::uint64_t t = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= t;
        state_[3] = rotated(state_[3], 45);
        return out;
    }

    // Both ends included.
    std::int64_t between(std::int64_t low, std::int64_t high) noexcept {
        return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
    }
    std::size_t below(std::size_t n) noexcept { return static_cast<std::size_t>(next() % n); }
    // Never for 0.
    bool one_in(std::int64_t n) noexcept { return n > 0 && between(1, n) == 1; }
    double unit() noexcept { return static_cast<double>((next() >> 11) + 1) * 0x1.0p-53; }

    template <class T> const T& of(std::span<const T> all) noexcept { return all[below(all.size())]; }
    // An index, by weight; the weights must not all be 0.
    std::size_t weighed(std::span<const int> weights) noexcept {
        std::int64_t sum = 0;
        for (const int w : weights) sum += w;
        std::int64_t at = between(0, sum - 1);
        for (std::size_t i = 0; i < weights.size(); ++i) {
            at -= weights[i];
            if (at < 0) return i;
        }
        return 0;
    }

  private:
    static std::uint64_t rotated(std::uint64_t x, unsigned by) noexcept { return (x << by) | (x >> (64 - by)); }
    std::array<std::uint64_t, 4> state_{};
};

class seeded_draws final : public draws {
  public:
    explicit seeded_draws(std::uint64_t seed) noexcept : dice_(seed) {}

    [[nodiscard]] token make_token() override {
        token t;
        const std::uint64_t words[2] = {dice_.next(), dice_.next()};
        std::memcpy(t.bytes.data(), words, sizeof words);
        return t;
    }
    [[nodiscard]] double unit() override { return dice_.unit(); }

  private:
    dice dice_;
};

} // namespace stn::sim
