// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/random.hpp"

namespace stn::test {

// A token that reads as `text` (at most 16 bytes).
[[nodiscard]] inline token token_of(std::string_view text) {
    token t;
    text.copy(t.bytes.data(), t.bytes.size());
    return t;
}

// Chance with a memory: the same for every run, and what a test says where a test cares.
class test_draws final : public draws {
  public:
    // Tokens of different `who` differ.
    explicit test_draws(std::uint32_t who = 0) : who_(who), state_(0x9E3779B97F4A7C15ULL * (who + 1)) {}

    [[nodiscard]] token make_token() override {
        return token_of("T" + std::to_string(who_) + "/" + std::to_string(++made_));
    }

    [[nodiscard]] double unit() override {
        ++drawn;
        if (always) return *always;
        state_ += 0x9E3779B97F4A7C15ULL; // splitmix64
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
        z ^= z >> 31;
        return (static_cast<double>(z >> 11) + 1) / 9007199254740992.0;
    }

    std::optional<double> always;
    std::uint64_t drawn = 0;

  private:
    std::uint32_t who_;
    std::uint64_t made_ = 0;
    std::uint64_t state_;
};

} // namespace stn::test
