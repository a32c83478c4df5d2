// SPDX-License-Identifier: MIT
#include "text.hpp"

#include <array>
#include <charconv>

namespace stampede {

std::string with_commas(std::uint64_t number) {
    std::string digits = std::to_string(number);
    for (std::size_t from_end = 3; from_end < digits.size(); from_end += 4) {
        digits.insert(digits.size() - from_end, 1, ',');
    }
    return digits;
}

std::string fixed(double number, int digits) {
    std::array<char, 64> text{};
    auto [end, failed] =
        std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed, digits);
    return failed == std::errc{} ? std::string(text.data(), end) : "?";
}

std::string counted(std::uint64_t number, std::string_view noun, std::string_view plural) {
    return with_commas(number) + " " + std::string(number == 1 ? noun : plural);
}

} // namespace stampede
