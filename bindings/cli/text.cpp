// SPDX-License-Identifier: MIT
#include "text.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace cli {

namespace {

// Levenshtein.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = i;
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row.back();
}

} // namespace

std::string in_quotes(std::string_view name) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : name) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7f) {
            out += "\\x";
            out += digits[byte >> 4];
            out += digits[byte & 15];
        } else {
            if (c == '"' || c == '\\') out += '\\';
            out += c;
        }
    }
    return out + '"';
}

std::string without_password(std::string_view text) {
    const auto scheme = text.find("://");
    const auto at = text.rfind('@');
    if (scheme == std::string_view::npos || at == std::string_view::npos || at < scheme) return std::string(text);
    return std::string(text.substr(0, scheme + 3)) + "***" + std::string(text.substr(at));
}

std::string about(std::int64_t ms) {
    const auto in = [&](std::int64_t unit, const char* name) {
        return std::to_string((ms + unit - 1) / unit) + ' ' + name;
    };
    if (ms < 1'000) return in(1, "ms");
    if (ms < 120'000) return in(1'000, "s");
    if (ms < 7'200'000) return in(60'000, "min");
    return in(3'600'000, "h");
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
    const auto nearest = std::ranges::min_element(known, {}, [&](const auto& one) { return distance(word, one); });
    if (nearest == known.end() || distance(word, *nearest) > std::max<std::size_t>(2, word.size() / 3)) return {};
    return " Did you mean " + *nearest + "?";
}

} // namespace cli
