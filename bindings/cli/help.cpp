// SPDX-License-Identifier: MIT
#include "help.hpp"

#include <vector>

namespace cli {

const std::string exit_codes = R"(
Exit code: the command's own; 128 + N if signal N ended it. Else:
   64  the command line is wrong           75  busy: somebody else holds it
   65  the key holds something else        77  denied: the store's access rules
   69  the store cannot be reached         79  the lock was lost: the command was stopped
   70  a fault of this program            126  the command cannot be executed
   74  uncertain: the reply was lost      127  there is no such command
)";

namespace {

std::string row(const std::string& left, const std::string& right) {
    constexpr std::size_t column = 30;
    std::string out = "  " + left;
    if (out.size() + 2 > column) {
        out += "\n";
        out.append(column, ' ');
    } else {
        out.resize(column, ' ');
    }
    return out + right + "\n";
}

std::string usage(const CLI::App& app) {
    std::string out = "Usage: stanchion";
    if (app.get_parent() == nullptr) return out + " COMMAND [OPTION...]\n";
    out += " " + app.get_name();
    bool runs = false;
    for (const auto* option : app.get_options()) {
        if (option->get_positional()) out += " " + option->get_name(true);
        if (option->nonpositional() && option->get_required()) out += " " + spelled(*option);
        runs = runs || option->check_lname("busy-code");
    }
    return out + " [OPTION...]" + (runs ? " -- COMMAND [ARGUMENT...]" : "") + "\n";
}

} // namespace

std::string spelled(const CLI::Option& option) {
    std::string out;
    for (const auto& name : option.get_snames()) out += "-" + name + ", ";
    for (const auto& name : option.get_lnames()) out += "--" + name;
    if (option.get_items_expected_max() > 0)
        out += " " + option.get_type_name().substr(0, option.get_type_name().find(':'));
    return out;
}

std::string help_format::make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const {
    std::string out = app->get_description() + ".\n\n" + usage(*app);
    std::string words;
    for (const auto* option : app->get_options()) {
        if (option->get_positional()) words += row(option->get_name(true), option->get_description());
    }
    if (!words.empty()) out += "\n" + words;
    const auto subcommands = app->get_subcommands([](const CLI::App*) { return true; });
    if (!subcommands.empty()) out += "\nCommands:\n";
    for (const auto* sub : subcommands) out += row(sub->get_name(), sub->get_description());
    for (const auto& group : app->get_groups()) {
        std::string lines;
        for (const auto* option : app->get_options()) {
            if (option->nonpositional() && option->get_group() == group) {
                lines +=
                    row(spelled(*option), option->get_description() + (option->get_required() ? " (required)" : ""));
            }
        }
        if (!lines.empty()) out += "\n" + group + ":\n" + lines;
    }
    if (!app->get_footer().empty()) out += "\n" + app->get_footer();
    return out;
}

} // namespace cli
