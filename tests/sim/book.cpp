// SPDX-License-Identifier: MIT
#include "book.hpp"

#include <cstring>

#include "judge.hpp"

namespace stn::sim {

namespace {
constexpr std::uint32_t stamp_magic = 0x53494D31;
struct raw_stamp {
    std::uint32_t magic;
    std::int32_t key;
    std::int64_t version;
    std::uint64_t load;
};
} // namespace

std::string write_stamp(const stamp& s, std::size_t at_least) {
    const raw_stamp raw{stamp_magic, s.key, s.version, s.load};
    std::string out(std::max(sizeof raw, at_least), '.');
    std::memcpy(out.data(), &raw, sizeof raw);
    return out;
}

std::optional<stamp> read_stamp(std::string_view payload) {
    raw_stamp raw{};
    if (payload.size() < sizeof raw) return std::nullopt;
    std::memcpy(&raw, payload.data(), sizeof raw);
    if (raw.magic != stamp_magic) return std::nullopt;
    return stamp{raw.key, raw.version, raw.load};
}

std::string_view checker_name(checker c) {
    static constexpr std::string_view names[] = {
#define SIM_CHECKER_NAME(name, text) std::string_view(#name),
        SIM_CHECKER_TABLE(SIM_CHECKER_NAME)
#undef SIM_CHECKER_NAME
    };
    return names[static_cast<std::size_t>(c)];
}

} // namespace stn::sim
