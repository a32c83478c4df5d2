// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stampede {

std::string with_commas(std::uint64_t number); // 1234567 -> "1,234,567"
std::string fixed(double number, int digits);  // 3.14159, 2 -> "3.14"
std::string counted(std::uint64_t number, std::string_view noun, std::string_view plural);

} // namespace stampede
