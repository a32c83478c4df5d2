// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace stn {

// 128 random bits that fence a lease, or name a generation of a value.
struct token {
    std::array<char, 16> bytes{};

    [[nodiscard]] std::string_view view() const noexcept { return {bytes.data(), bytes.size()}; }
    [[nodiscard]] std::string str() const { return std::string(view()); }
    [[nodiscard]] bool none() const noexcept { return *this == token{}; }
    friend bool operator==(const token&, const token&) = default;
    friend auto operator<=>(const token&, const token&) = default;
};

// `bytes` must be 16 long.
[[nodiscard]] inline token token_from(std::string_view bytes) noexcept {
    token t;
    bytes.copy(t.bytes.data(), t.bytes.size());
    return t;
}

// Where chance comes from. Tokens are asked for one by one (a pool would be shared by fork); draws
// need only be fair.
class draws {
  public:
    draws() = default;
    draws(const draws&) = delete;
    draws& operator=(const draws&) = delete;
    virtual ~draws() = default;

    [[nodiscard]] virtual token make_token() = 0;
    // Uniform in (0, 1].
    [[nodiscard]] virtual double unit() = 0;
};

} // namespace stn
