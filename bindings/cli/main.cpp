// SPDX-License-Identifier: MIT
//
// stanchion: locks, ticks and caches of a fleet, for the shell. Over stanchion.h alone; see README.md.
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "child.hpp"
#include "command_line.hpp"
#include "commands.hpp"
#include "completion.hpp"
#include "exit_code.hpp"
#include "report.hpp"

namespace {

cli::ending carry_out(const cli::options& given) {
    const bool shares_group = !given.command.empty() && cli::child::at_terminal();
    const cli::signals outside(!given.command.empty() && !shares_group);
    const auto at_terminal = [&](cli::ending how) {
        if (!shares_group) how.signal = 0;
        return how;
    };
    try {
        if (given.what == "lock") return at_terminal(cli::run_lock(given, outside, shares_group));
        if (given.what == "tick") return at_terminal(cli::run_tick(given, outside, shares_group));
        if (given.what == "once") return at_terminal(cli::run_once(given, outside, shares_group));
        if (given.what == "inspect") return cli::inspect(given, outside);
        if (given.what == "invalidate") return cli::invalidate(given, outside);
        return cli::ping(given, outside);
    } catch (const cli::interrupted& e) {
        return {cli::exit_signal + e.by.number, e.by.from_terminal ? e.by.number : 0};
    }
}

} // namespace

int main(int argc, char** argv) {
    cli::command_line line;
    cli::ending end;
    try {
        const auto given = line.read({argv + (argc > 0 ? 1 : 0), argv + argc});
        if (!given) return cli::exit_ok;
        if (given->what == "completion") {
            std::cout << cli::completion(line.grammar(), given->shell);
            return cli::exit_ok;
        }
        end = carry_out(*given);
    } catch (const cli::failure& e) {
        cli::tell(line.so_far(), e);
        return e.code;
    } catch (const std::exception& e) {
        cli::tell(line.so_far(), cli::failure(cli::exit_internal, "internal", e.what()));
        return cli::exit_internal;
    }
    // Who was interrupted at the terminal ends by that signal, so that the script that called us ends too.
    if (end.signal == SIGINT || end.signal == SIGQUIT) cli::die_of(end.signal);
    return end.exit;
}
