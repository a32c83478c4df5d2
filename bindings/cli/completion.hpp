// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace cli {

// The script that makes `shell` (bash, zsh or fish) complete what the grammar knows.
[[nodiscard]] std::string completion(const CLI::App& grammar, const std::string& shell);

} // namespace cli
