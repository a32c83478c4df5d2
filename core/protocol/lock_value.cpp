// SPDX-License-Identifier: MIT
#include "protocol/lock_value.hpp"

#include <charconv>

#include <nlohmann/json.hpp>

namespace stn {
namespace {

constexpr std::string_view upper_digits = "0123456789ABCDEF";
constexpr std::size_t token_size = 16;

bool plain(unsigned char c) {
    return c > 0x20 && c < 0x7F && c != ':' && c != '%';
}

int digit(char c) {
    const auto at = upper_digits.find(c);
    return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

std::string unescape_label(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool escaped =
            text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
        out.push_back(escaped ? static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2])) : text[i]);
        if (escaped) i += 2;
    }
    return out;
}

} // namespace

std::string escape_label(std::string_view label) {
    std::string out;
    for (const char c : label) {
        const auto byte = static_cast<unsigned char>(c);
        if (plain(byte)) {
            out.push_back(c);
        } else {
            out.append({'%', upper_digits[byte >> 4], upper_digits[byte & 15]});
        }
    }
    return out;
}

std::optional<lock_value> read_lock_value(std::string_view bytes) {
    if (bytes.size() <= token_size || bytes[token_size] != ':') return std::nullopt;
    const std::string_view rest = bytes.substr(token_size + 1);
    const auto colon = rest.find(':');
    if (colon == std::string_view::npos || rest.starts_with('-')) return std::nullopt;
    lock_value out;
    const std::string_view fence = rest.substr(0, colon);
    const auto [end, fault] = std::from_chars(fence.data(), fence.data() + fence.size(), out.fence);
    if (fault != std::errc{} || end != fence.data() + fence.size()) return std::nullopt;
    out.holder = token_from(bytes.substr(0, token_size));
    out.label = unescape_label(rest.substr(colon + 1));
    return out;
}

std::string show_lock(std::string_view bytes, std::int64_t pttl_ms) {
    nlohmann::ordered_json shown;
    const auto lock = read_lock_value(bytes);
    shown["ours"] = lock.has_value(); // what another's holds is not for our eyes: it may be a secret of theirs
    if (lock) {
        shown["token"] = hex(lock->holder);
        shown["fence"] = lock->fence;
        shown["label"] = lock->label;
    }
    if (pttl_ms >= 0) {
        shown["ttl_ms"] = pttl_ms;
    } else {
        shown["ttl_ms"] = nullptr;
    }
    return shown.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string hex(const token& t) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    for (const char c : t.bytes) {
        const auto byte = static_cast<unsigned char>(c);
        out.push_back(digits[byte >> 4]);
        out.push_back(digits[byte & 15]);
    }
    return out;
}

} // namespace stn
