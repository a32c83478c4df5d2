// SPDX-License-Identifier: MIT
#include "protocol/envelope.hpp"

namespace stn {
namespace {

constexpr char magic = static_cast<char>(0xF5);
constexpr unsigned char version = 1;
constexpr unsigned codec_shift = 4;
constexpr unsigned codec_mask = 3;
constexpr unsigned kind_mask = 0x0F;
constexpr unsigned compressed_bit = 0x40;
constexpr unsigned reserved_bit = 0x80;

template <class T> void append(std::string& to, T number) {
    auto bits = static_cast<std::uint64_t>(number);
    for (std::size_t i = 0; i < sizeof(T); ++i, bits >>= 8) to.push_back(static_cast<char>(bits & 0xFF));
}

template <class T> T read(std::string_view from, std::size_t at) {
    std::uint64_t bits = 0;
    for (std::size_t i = sizeof(T); i-- > 0;) bits = bits << 8 | static_cast<unsigned char>(from[at + i]);
    return static_cast<T>(bits);
}

} // namespace

std::string encode(const envelope& e) {
    std::string out;
    out.reserve(envelope_head + e.payload.size());
    out.push_back(magic);
    out.push_back(static_cast<char>(version));
    out.push_back(static_cast<char>(static_cast<unsigned>(e.kind) | (e.codec & codec_mask) << codec_shift |
                                    (e.compressed ? compressed_bit : 0)));
    out.push_back(e.waited ? 1 : 0);
    out.append(e.generation.view());
    append(out, e.created);
    append(out, e.soft_at);
    append(out, e.delta_ms);
    append(out, e.compressed ? e.raw_length : static_cast<std::uint32_t>(e.payload.size()));
    out.append(e.payload);
    return out;
}

reading decode(std::string_view bytes, envelope& out) {
    if (bytes.size() < 2 || bytes[0] != magic) return reading::foreign;
    if (static_cast<unsigned char>(bytes[1]) > version) return reading::newer;
    if (bytes[1] != version || bytes.size() < envelope_head) return reading::foreign;

    const unsigned flags = static_cast<unsigned char>(bytes[2]);
    const unsigned kind = flags & kind_mask;
    const unsigned codec = flags >> codec_shift & codec_mask;
    if ((flags & reserved_bit) != 0 || kind > static_cast<unsigned>(entry_kind::pass) ||
        codec > static_cast<unsigned>(codec_id::private_))
        return reading::foreign;
    const bool compressed = (flags & compressed_bit) != 0;
    const auto raw_length = read<std::uint32_t>(bytes, 40);
    const std::string_view payload = bytes.substr(envelope_head);
    if (!compressed && raw_length != payload.size()) return reading::foreign;

    out.kind = static_cast<entry_kind>(kind);
    out.codec = static_cast<std::uint8_t>(codec);
    out.compressed = compressed;
    out.waited = bytes[3] != 0;
    out.generation = token_from(bytes.substr(4, 16));
    out.created = read<server_ms>(bytes, 20);
    out.soft_at = read<server_ms>(bytes, 28);
    out.delta_ms = read<std::uint32_t>(bytes, 36);
    out.payload = payload;
    out.raw_length = raw_length;
    return reading::ours;
}

} // namespace stn
