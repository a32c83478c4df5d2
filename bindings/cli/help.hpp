// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace cli {

// Closes the help of what runs a command.
extern const std::string exit_codes;

// How help is laid out: for people, 100 columns, and the same with every version of CLI11.
class help_format : public CLI::Formatter {
  public:
    std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

// "--wait DURATION", "-q, --quiet"
[[nodiscard]] std::string spelled(const CLI::Option& option);

} // namespace cli
