// SPDX-License-Identifier: MIT
#include "protocol/wake.hpp"

#include <algorithm>

namespace stn {
namespace {

constexpr char version = 1;
constexpr std::size_t token_at = 2;
constexpr std::size_t length_at = 18;
constexpr std::size_t key_at = 20;

void append_u16(std::string& to, std::uint16_t n) {
    to.push_back(static_cast<char>(n & 0xFF));
    to.push_back(static_cast<char>(n >> 8));
}

std::uint16_t read_u16(std::string_view bytes) {
    return static_cast<std::uint16_t>(static_cast<unsigned char>(bytes[0]) | static_cast<unsigned char>(bytes[1]) << 8);
}

} // namespace

std::string wake_tail(std::string_view store_key) {
    const auto length = static_cast<std::uint16_t>(store_key.size());
    std::string out;
    out.reserve(4 + store_key.size());
    append_u16(out, length);
    out.append(store_key);
    return out;
}

std::string released_tail(std::string_view store_key, int seen) {
    std::string out = wake_tail(store_key);
    append_u16(out, static_cast<std::uint16_t>(std::clamp(seen, 0, 0xFFFF)));
    return out;
}

std::optional<int> waited_through(const wake_message& released) {
    if (released.envelope.size() < 2) return std::nullopt;
    return read_u16(released.envelope);
}

std::string encode_wake(const wake_message& m) {
    std::string out;
    out.push_back(version);
    out.push_back(static_cast<char>(m.kind));
    out.append(m.replaced.view());
    out.append(wake_tail(m.key));
    if (m.envelope.size() <= envelope_in_wake) out.append(m.envelope);
    return out;
}

std::optional<wake_message> decode_wake(std::string_view bytes) {
    if (bytes.size() < key_at || bytes[0] != version) return std::nullopt;
    const auto kind = static_cast<unsigned char>(bytes[1]);
    if (kind > static_cast<unsigned char>(wake_kind::invalidated)) return std::nullopt;
    const std::size_t length = read_u16(bytes.substr(length_at));
    const std::string_view rest = bytes.substr(key_at);
    if (length == 0 || length > rest.size() || rest.size() - length > envelope_in_wake) return std::nullopt;
    return wake_message{static_cast<wake_kind>(kind), token_from(bytes.substr(token_at, 16)), rest.substr(0, length),
                        rest.substr(length)};
}

} // namespace stn
