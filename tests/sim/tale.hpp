// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>
#include <string_view>

#include "agenda.hpp"
#include "base/random.hpp"

namespace stn::sim {

// What happened, line by line when asked for, and always as one number: two runs of a seed must end
// with the same one.
class tale {
  public:
    explicit tale(const agenda& when) noexcept : when_(when) {}

    void tell(bool on) noexcept { on_ = on; }
    [[nodiscard]] bool on() const noexcept { return on_; }
    [[nodiscard]] std::uint64_t digest() const noexcept { return digest_; }

    void note(std::uint64_t what) noexcept {
        digest_ = (digest_ ^ what) * 0x9E3779B97F4A7C15ULL;
        digest_ ^= digest_ >> 32;
    }

    template <class... Parts> void line(std::string_view who, const Parts&... parts) {
        if (!on_) return;
        std::ostringstream out;
        (out << ... << parts);
        const micros now = when_.now();
        std::printf("%6lld.%03lld  %-9.*s %s\n", static_cast<long long>(now / ms), static_cast<long long>(now % ms),
                    static_cast<int>(who.size()), who.data(), out.str().c_str());
    }

  private:
    const agenda& when_;
    bool on_ = false;
    std::uint64_t digest_ = 0;
};

// The first bytes of a token, for a reader.
[[nodiscard]] inline std::string brief(std::string_view token_bytes) {
    static constexpr char hex[] = "0123456789abcdef";
    if (token_bytes.empty()) return "-";
    std::string out;
    for (std::size_t i = 0; i < 3 && i < token_bytes.size(); ++i) {
        const auto byte = static_cast<unsigned char>(token_bytes[i]);
        out.push_back(hex[byte >> 4]);
        out.push_back(hex[byte & 15]);
    }
    return out;
}

[[nodiscard]] inline std::string brief(const token& t) {
    return t.none() ? "-" : brief(t.view());
}

} // namespace stn::sim
