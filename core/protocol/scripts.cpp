// SPDX-License-Identifier: MIT
#include "protocol/scripts.hpp"

#include <array>
#include <cstddef>

namespace stn {
namespace {

constexpr auto script_count = static_cast<std::size_t>(script_id::count_);

constexpr std::array<std::string_view, script_count> names = {"lease", "extend",   "fill",  "abandon", "mark_stale",
                                                              "put",   "refresh",  "renew", "release", "acquire",
                                                              "tick",  "tick_end", "once",  "inspect"};

// Runs while compiling: a script without a file does not build.
consteval std::array<std::size_t, script_count> find_all() {
    std::array<std::size_t, script_count> places{};
    for (std::size_t i = 0; i < script_count; ++i) {
        std::size_t at = 0;
        while (scripts::table[at].name != names[i]) ++at;
        places[i] = at;
    }
    return places;
}

constexpr auto places = find_all();

} // namespace

std::string_view script_name(script_id id) noexcept {
    return id < script_id::count_ ? names[static_cast<std::size_t>(id)] : std::string_view{};
}

const scripts::embedded& script_of(script_id id) noexcept {
    return scripts::table[places[static_cast<std::size_t>(id)]];
}

} // namespace stn
