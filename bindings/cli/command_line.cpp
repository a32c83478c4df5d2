// SPDX-License-Identifier: MIT
#include "command_line.hpp"

#include <stanchion/stanchion.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include <CLI/CLI.hpp>

#include "exit_code.hpp"
#include "help.hpp"
#include "report.hpp"
#include "text.hpp"

namespace cli {

namespace {

constexpr auto about_lock = "Run a command while holding a lock that no other host holds";
constexpr auto about_tick = "Run a command once per slot of time, whichever host asks first";
constexpr auto about_once = "Run a command unless one has been run for the same id";
constexpr auto about_inspect = "Tell who holds a lock; exit code 0 if somebody does, 1 if it is free";
constexpr auto about_invalidate = "Remove a value from a cache, and void the loads that are running for it";
constexpr auto about_ping = "Tell whether the store can be used: its answer time, its version, rights that are missing";
constexpr auto about_completion = "Print what makes a shell complete these commands";

bool takes_command(const std::string& what) {
    return what == "lock" || what == "tick" || what == "once";
}

std::vector<std::string> names_of_options(const CLI::App& app) {
    std::vector<std::string> out;
    for (const auto* option : app.get_options()) {
        for (const auto& name : option->get_lnames()) out.push_back("--" + name);
    }
    return out;
}

} // namespace

command_line::command_line()
    : app_(std::make_unique<CLI::App>("Locks, ticks and caches of a fleet, for the shell", "stanchion")) {
    app_->formatter(std::make_shared<help_format>());
    app_->require_subcommand(1);
    add_common(*app_);
    app_->set_version_flag("--version", "stanchion " + std::string(stn_version_string()), "Print the version");
    add_lock();
    add_tick();
    add_once();
    add_inspect();
    add_invalidate();
    add_ping();
    add_completion();
}

command_line::~command_line() = default;

CLI::App* command_line::add(const std::string& name, const std::string& description) {
    auto* sub = app_->add_subcommand(name, description);
    sub->callback([this, name] { given_.what = name; });
    return sub;
}

void command_line::setting(CLI::App& to, const std::string& option, const std::string& type, const std::string& text,
                           bool required) {
    std::string key = option.substr(2);
    std::ranges::replace(key, '-', '_');
    to.add_option_function<std::string>(
          option, [this, key](const std::string& value) { given_.setting[key] = value; }, text)
        ->type_name(type)
        ->required(required);
}

void command_line::add_common(CLI::App& to) {
    const std::string group = "Options of every command";
    to.set_help_flag("-h,--help", "Print this help")->group(group);
    to.add_option("--store", given_.store,
                  "A Redis or Valkey: redis://, rediss:// or unix:// (default: $STANCHION_URL)")
        ->type_name("URL")
        ->group(group);
    const auto of_client = [&](const std::string& option, const std::string& type, const std::string& text) {
        std::string key = option.substr(2);
        std::ranges::replace(key, '-', '_');
        to.add_option_function<std::string>(
              option, [this, key](const std::string& value) { given_.client[key] = value; }, text)
            ->type_name(type)
            ->group(group);
    };
    of_client("--prefix", "NAME", "First part of every key in the store (default: stn)");
    of_client("--command-timeout", "DURATION",
              "How long one command may take; raise it for a far store (default: 250ms)");
    of_client("--tls-ca-file", "FILE", "rediss: who may have signed the server's certificate");
    of_client("--tls-cert-file", "FILE", "rediss: this client's own certificate");
    of_client("--tls-key-file", "FILE", "rediss: its key");
    of_client("--tls-server-name", "NAME", "rediss: the name to verify, instead of the URL's host");
    to.add_flag("--json", given_.json, "Answers, and messages, as JSON objects, one a line")->group(group);
    to.add_flag("-q,--quiet", given_.quiet, "No messages but errors")->group(group);
}

void command_line::add_run(CLI::App& to, const std::string& busy) {
    to.add_option("--grace", given_.grace, "From SIGTERM to SIGKILL for a command that has to stop (default: 5s)")
        ->type_name("DURATION");
    to.add_option("--busy-code", given_.busy_code, busy)->type_name("CODE")->check(CLI::Range(0, 255));
}

void command_line::add_lock() {
    auto* sub = add("lock", about_lock);
    sub->add_option("NAME", given_.name, "Of the lock")->required();
    setting(*sub, "--ttl", "DURATION", "How long a host that has died holds others up; a living one renews", true);
    setting(*sub, "--wait", "DURATION", "How long to wait for it: 0s, 10m, forever (default: 10s)");
    setting(*sub, "--max-hold", "DURATION", "Stop a command that holds it for longer");
    setting(*sub, "--label", "TEXT", "Shown by inspect (default: host:pid)");
    setting(*sub, "--key", "KEY", "The store's key itself, to share a lock with programs that use SET NX PX");
    sub->add_flag_callback(
        "--no-renew", [this] { given_.setting["renew"] = false; }, "It ends after its ttl, and the command with it");
    add_run(*sub, "Exit code when somebody else holds it (default: 75)");
    add_common(*sub);
    sub->footer("Example:\n"
                "  stanchion lock nightly-report --ttl 30s --wait 0s -- ./report.sh --all\n\n"
                "The command finds STANCHION_LOCK, STANCHION_FENCE and STANCHION_TOKEN in its environment.\n" +
                exit_codes);
}

void command_line::add_tick() {
    auto* sub = add("tick", about_tick);
    sub->add_option("NAME", given_.name, "Of the job")->required();
    setting(*sub, "--every", "DURATION", "How long a slot is", true);
    setting(*sub, "--offset", "DURATION", "When slots begin after midnight UTC (default: 0s)");
    setting(*sub, "--at-most", "DURATION", "A run that says nothing for so long counts as dead (default: --every)");
    add_run(*sub, "Exit code when another has the slot (default: 0)");
    add_common(*sub);
    sub->footer("Example, in the crontab of every host; slots change at half past, far from when cron asks:\n"
                "  0 * * * *  stanchion tick hourly-mail --every 1h --offset 30m --quiet -- ./send-mail\n\n"
                "A command that fails gives the slot back. It finds STANCHION_TICK, STANCHION_SLOT (ms since 1970),\n"
                "STANCHION_FENCE and STANCHION_TOKEN in its environment.\n" +
                exit_codes);
}

void command_line::add_once() {
    auto* sub = add("once", about_once);
    sub->add_option("ID", given_.name, "Of what is done once")->required();
    sub->add_option("--ttl", given_.ttl, "How long the id is remembered")->type_name("DURATION")->required();
    add_run(*sub, "Exit code when the id is taken (default: 0)");
    add_common(*sub);
    sub->footer("Example:\n"
                "  stanchion once order-4711-shipped --ttl 24h -- ./notify 4711\n\n"
                "The id stays taken if the command fails. It finds STANCHION_ONCE in its environment.\n" +
                exit_codes);
}

void command_line::add_inspect() {
    auto* sub = add("inspect", about_inspect);
    auto* name = sub->add_option("NAME", given_.name, "Of the lock");
    auto* key = sub->add_option("--key", given_.key, "The store's key itself, instead of a name")->type_name("KEY");
    name->excludes(key);
    add_common(*sub);
    sub->footer("Example:\n"
                "  stanchion inspect nightly-report\n");
}

void command_line::add_invalidate() {
    auto* sub = add("invalidate", about_invalidate);
    sub->add_option("CACHE", given_.name, "Of the cache; prices@2 for version 2 of prices")->required();
    sub->add_option("KEY", given_.key, "In that cache")->required();
    sub->add_flag("--stale", given_.stale, "Keep it, as stale, until one process has loaded it anew");
    add_common(*sub);
    sub->footer("Example:\n"
                "  stanchion invalidate prices 42\n");
}

void command_line::add_ping() {
    auto* sub = add("ping", about_ping);
    add_common(*sub);
    sub->footer("It writes a lock and a value of its own below the prefix, and removes them.\n\n"
                "Example:\n"
                "  stanchion ping --store rediss://db.example.org:6380 --tls-ca-file ca.pem\n");
}

void command_line::add_completion() {
    auto* sub = add("completion", about_completion);
    sub->add_option("SHELL", given_.shell, "bash, zsh or fish")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    sub->set_help_flag("-h,--help", "Print this help");
    sub->footer("Example:\n"
                "  stanchion completion bash > ~/.local/share/bash-completion/completions/stanchion\n");
}

// What CLI11 says knows no near names, and of a word too many not why it is one.
void command_line::explain(const std::string& why) const {
    const auto chosen = app_->get_subcommands();
    const CLI::App& at = chosen.empty() ? *app_ : *chosen.front();
    const auto see = " See stanchion " + (chosen.empty() ? "" : at.get_name() + " ") + "--help";
    const auto left = app_->remaining(true);
    const auto dashed = std::ranges::find_if(left, [](const auto& word) { return word.starts_with("-"); });
    std::string text;
    if (dashed != left.end()) {
        const auto word = dashed->substr(0, dashed->find('='));
        text = "there is no option " + without_password(word) + "." + suggestion(word, names_of_options(at));
    } else if (chosen.empty() && !left.empty()) {
        std::vector<std::string> names;
        for (const auto* sub : app_->get_subcommands({})) names.push_back(sub->get_name());
        text =
            "there is no command " + in_quotes(without_password(left.front())) + "." + suggestion(left.front(), names);
    } else if (!left.empty()) {
        text = in_quotes(without_password(left.front())) + " is a word too many.";
        if (takes_command(at.get_name())) text += " The command to run comes after --";
    } else if (chosen.empty()) {
        text = "what shall it do?";
    } else {
        text = without_password(why);
    }
    if (!text.ends_with('.') && !text.ends_with('?')) text += '.';
    throw failure(exit_usage, "usage", text + see);
}

std::optional<options> command_line::read(const std::vector<std::string>& words) {
    // What comes after `--` is the command's, whatever it looks like.
    const auto dashes = std::ranges::find(words, "--");
    std::vector<std::string> ours(words.begin(), dashes);
    given_.json = std::ranges::find(ours, "--json") != ours.end(); // for the failure of all else
    std::ranges::reverse(ours);                                    // as CLI11 takes them
    try {
        app_->parse(std::move(ours));
    } catch (const CLI::Success& asked) {
        static_cast<void>(app_->exit(asked));
        return std::nullopt;
    } catch (const CLI::ParseError& error) {
        explain(error.what());
    }
    if (dashes != words.end()) given_.command.assign(dashes + 1, words.end());
    if (takes_command(given_.what) && given_.command.empty()) {
        throw failure(exit_usage, "usage", "there is no command to run: it comes after --");
    }
    if (!takes_command(given_.what) && dashes != words.end()) {
        throw failure(exit_usage, "usage", given_.what + " runs no command: nothing may come after --");
    }
    if (given_.what == "inspect" && given_.name.empty() && given_.key.empty()) {
        throw failure(exit_usage, "usage", "inspect takes the name of a lock, or --key");
    }
    if (const char* url = std::getenv("STANCHION_URL"); given_.store.empty() && url != nullptr) given_.store = url;
    return given_;
}

} // namespace cli
