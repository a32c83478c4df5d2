// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "options.hpp"

namespace CLI {
class App;
}

namespace cli {

// The grammar of the command line: subcommands, their options, and the help of each. Help and completion are made of
// it, so they know what it knows.
class command_line {
  public:
    command_line();
    ~command_line();
    command_line(const command_line&) = delete;
    command_line& operator=(const command_line&) = delete;

    // Nothing: help or the version was asked for, and printed. Throws failure.
    [[nodiscard]] std::optional<options> read(const std::vector<std::string>& words);
    // Where `read` has failed: how far it got, so that the failure is told as was asked for.
    [[nodiscard]] const options& so_far() const { return given_; }
    [[nodiscard]] const CLI::App& grammar() const { return *app_; }

  private:
    void add_lock();
    void add_tick();
    void add_once();
    void add_inspect();
    void add_invalidate();
    void add_ping();
    void add_completion();
    CLI::App* add(const std::string& name, const std::string& description);
    void add_common(CLI::App& to);
    void add_run(CLI::App& to, const std::string& busy);
    void setting(CLI::App& to, const std::string& option, const std::string& type, const std::string& text,
                 bool required = false);
    [[noreturn]] void explain(const std::string& why) const;

    const std::unique_ptr<CLI::App> app_;
    options given_;
};

} // namespace cli
