// SPDX-License-Identifier: MIT
#include "protocol/keys.hpp"

#include <algorithm>

namespace stn {
namespace {

bool name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
}

// The rule by which Redis finds the part of a key that is hashed.
bool has_hash_tag(std::string_view key) {
    const auto open = key.find('{');
    if (open == std::string_view::npos) return false;
    const auto close = key.find('}', open + 1);
    return close != std::string_view::npos && close > open + 1;
}

void append_mapped(std::string& out, std::string_view key) {
    if (has_hash_tag(key)) {
        out.push_back('=');
        out.append(key);
        return;
    }
    out.push_back('{');
    for (const char c : key) {
        switch (c) {
        case '{': out.append("%7B"); break;
        case '}': out.append("%7D"); break;
        case '%': out.append("%25"); break;
        default: out.push_back(c);
        }
    }
    out.push_back('}');
}

std::string mapped_key(std::string_view prefix, std::string_view kind, std::string_view cache, std::string_view key) {
    std::string out;
    out.reserve(prefix.size() + kind.size() + cache.size() + key.size() + 40);
    out.append(prefix).append(kind).append(cache).push_back(':');
    append_mapped(out, key);
    return out;
}

} // namespace

bool valid_key(std::string_view key) {
    return !key.empty() && key.size() <= max_key;
}

bool valid_name(std::string_view name) {
    return !name.empty() && name.size() <= max_name && std::all_of(name.begin(), name.end(), name_char);
}

bool valid_cache_name(std::string_view name) {
    const auto at = name.find('@');
    if (at == std::string_view::npos) return valid_name(name);
    const auto version = name.substr(at + 1);
    return valid_name(name.substr(0, at)) && !version.empty() && version.size() <= 20 &&
           std::all_of(version.begin(), version.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string versioned_name(std::string_view name, std::uint64_t version) {
    return std::string(name).append("@").append(std::to_string(version));
}

std::string value_key(std::string_view prefix, std::string_view cache, std::string_view key) {
    return mapped_key(prefix, ":v:", cache, key);
}

std::string refresh_key(std::string_view prefix, std::string_view cache, std::string_view key,
                        const token& generation) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out = mapped_key(prefix, ":r:", cache, key);
    out.push_back(':');
    for (const char c : generation.bytes) {
        const auto byte = static_cast<unsigned char>(c);
        out.push_back(digits[byte >> 4]);
        out.push_back(digits[byte & 15]);
    }
    return out;
}

std::string lock_key(std::string_view prefix, std::string_view name) {
    return mapped_key(prefix, ":k", {}, name);
}

std::string tick_key(std::string_view prefix, std::string_view name) {
    return mapped_key(prefix, ":t", {}, name);
}

std::string once_key(std::string_view prefix, std::string_view id) {
    return mapped_key(prefix, ":o", {}, id);
}

std::string wake_channel(std::string_view prefix, std::string_view key) {
    std::uint64_t hash = 0xcbf29ce484222325; // FNV-1a: every process of a fleet must find the same
    for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return std::string(prefix).append(":w:").append(std::to_string(hash % wake_channels));
}

} // namespace stn
