// SPDX-License-Identifier: MIT
#include "base/duration.hpp"

#include <array>
#include <cstddef>
#include <string>

namespace stn {
namespace {

struct unit {
    std::string_view name;
    std::int64_t ms;
};

constexpr std::array<unit, 5> units{{{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}}};

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

template <class Is> std::string_view take_while(std::string_view& text, Is is) {
    std::size_t n = 0;
    while (n < text.size() && is(text[n])) ++n;
    const auto taken = text.substr(0, n);
    text.remove_prefix(n);
    return taken;
}

error refuse(std::string_view text, std::string_view why) {
    std::string message("duration \"");
    message.append(text.substr(0, 40)).append("\": ").append(why);
    return fail(status::invalid_argument, std::move(message));
}

// Saturates: whatever is over the limit is refused with one text.
std::int64_t number(std::string_view digits) {
    std::int64_t n = 0;
    for (const char c : digits) {
        n = n * 10 + (c - '0');
        if (n > max_duration_ms) return max_duration_ms + 1;
    }
    return n;
}

} // namespace

result<std::int64_t> parse_duration(std::string_view text) {
    if (text.empty()) return fail(status::invalid_argument, "a duration is empty: write 30s, 1500ms, 1h30m");
    if (text.front() == '-' || text.front() == '+') return refuse(text, "has no sign");

    std::int64_t total = 0;
    std::size_t next_unit = 0;
    for (std::string_view rest = text; !rest.empty();) {
        const auto digits = take_while(rest, is_digit);
        if (!rest.empty() && (rest[0] == '.' || rest[0] == ','))
            return refuse(text, "has no fraction: write the smaller unit, 1500ms instead of 1.5s");
        if (!rest.empty() && (rest[0] == ' ' || (rest[0] >= '\t' && rest[0] <= '\r')))
            return refuse(text, "has no space");
        if (digits.empty()) return refuse(text, "lacks a number before the unit");
        const auto name = take_while(rest, is_letter);
        if (name.empty())
            return refuse(text, rest.empty() ? "lacks a unit: d, h, m, s or ms"
                                             : "holds a character that is no digit and no unit");
        std::size_t at = 0;
        while (at < units.size() && units[at].name != name) ++at;
        if (at == units.size()) {
            std::string why("unknown unit \"");
            why.append(name.substr(0, 20)).append("\": use d, h, m, s or ms");
            return refuse(text, why);
        }
        if (at < next_unit) return refuse(text, "has each unit once, the larger first: 1h30m");
        next_unit = at + 1;

        const std::int64_t n = number(digits);
        if (n > (max_duration_ms - total) / units[at].ms) return refuse(text, "is over ten years");
        total += n * units[at].ms;
    }
    return total;
}

} // namespace stn
