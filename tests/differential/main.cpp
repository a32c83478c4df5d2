// SPDX-License-Identifier: MIT
//
// The command line of the differential test.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "bites.hpp"
#include "branches.hpp"
#include "contest.hpp"
#include "protocol/scripts.hpp"

using namespace stn;
using namespace stn::differ;

namespace {

constexpr const char* usage = "differential [--seed N] [--commands N] [--server redis|valkey|both] [--bite]\n"
                              "    --seed      what to draw from; else a new one every time\n"
                              "    --commands  how many to compare on each server (20,000)\n"
                              "    --bite      only the broken scripts\n";

constexpr std::uint64_t full_run = 20'000; // the floors hold from here on, and the broken scripts are tried
constexpr std::uint64_t visits_at_least = 100;
constexpr std::uint64_t most_different = 10;
constexpr std::uint64_t bite_commands = 100'000; // the rarest takes 2,000 or so

struct request {
    std::uint64_t seed = 0;
    std::uint64_t commands = full_run;
    std::vector<test::server_kind> servers{std::begin(test::server_kinds), std::end(test::server_kinds)};
    bool only_bites = false;
};

struct tally {
    std::uint64_t passed = 0;
    std::uint64_t failed = 0;

    void check(bool good, const std::string& what) {
        ++(good ? passed : failed);
        if (!good) std::printf("FAILED: %s\n", what.c_str());
    }
};

unsigned long long ull(std::uint64_t n) {
    return n;
}

std::uint64_t visits_in(const visits& v, std::string_view branch) {
    const auto at = v.find(branch);
    return at == v.end() ? 0 : at->second;
}

void show_branches(const score& s, bool full, const std::string& server, tally& t) {
    std::printf("%10s %10s  branch\n", "memory", server.c_str());
    for (const std::string_view branch : all_branches()) {
        const std::uint64_t memory = visits_in(s.memory, branch);
        const std::uint64_t real = visits_in(s.real, branch);
        const std::string name(branch);
        std::printf("%10llu %10llu  %s\n", ull(memory), ull(real), name.c_str());
        if (!full) continue;
        t.check(memory >= visits_at_least, "100 visits on memory of " + name);
        t.check(real >= visits_at_least, "100 visits on " + server + " of " + name);
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(script_id::count_); ++i) {
        const std::string name = blind_branch(static_cast<script_id>(i));
        const std::uint64_t real = visits_in(s.real, name);
        std::printf("%10s %10llu  %s\n", "-", ull(real), name.c_str());
        if (full) t.check(real >= visits_at_least, "100 visits on " + server + " of " + name);
    }
    const auto known = all_branches();
    for (const auto& [branch, n] : s.memory) {
        if (n > 0 && std::find(known.begin(), known.end(), branch) == known.end())
            t.check(false, "an unknown branch was taken: " + branch);
    }
}

void compare(test::server_kind kind, const request& q, tally& t) {
    const std::string name(test::server_name(kind));
    test::live_server server(kind);
    contest c(server, q.seed);
    t.check(c.true_scripts(), name + " has the scripts under the SHA1 that the build embedded");
    const bool full = q.commands >= full_run;
    c.run(q.commands, full ? visits_at_least : 0, most_different, true);
    if (c.seen.different == 0) c.run_blind(full ? visits_at_least : 5);
    const score& s = c.seen;
    std::printf("\nmemory and %s, seed %llu\n", name.c_str(), ull(q.seed));
    show_branches(s, full, name, t);
    std::printf("%llu commands compared, %llu on live keys, %llu after an expiry, %llu messages; %llu left out at the "
                "edge of an expiry; %llu differ\n",
                ull(s.compared), ull(s.live), ull(s.crossed), ull(s.told), ull(s.edges), ull(s.different));
    t.check(s.different == 0, "memory and " + name + " do the same, seed " + std::to_string(q.seed));
    t.check(s.live * 2 >= s.compared, "half of the commands meet a live key");
    t.check(s.edges * 10 <= s.compared, "few commands are left out");
}

void try_bites(test::server_kind kind, const request& q, tally& t) {
    test::live_server server(kind);
    std::printf("\nbroken scripts on %s, each until it is seen\n", std::string(test::server_name(kind)).c_str());
    for (const bite& b : bites()) {
        std::string text(script_of(b.script).text);
        const auto at = text.find(b.from);
        const std::string what =
            std::string(script_name(b.script)) + ": '" + std::string(b.from) + "' is '" + std::string(b.to) + "'";
        if (at == std::string::npos) {
            t.check(false, "there is no such text any more: " + what);
            continue;
        }
        text.replace(at, b.from.size(), b.to);
        contest c(server, q.seed, {{b.script, text}});
        c.run(bite_commands, 0, 1, false);
        std::printf("%8llu  %s\n", ull(c.seen.compared), what.c_str());
        t.check(c.seen.different > 0, "seen: " + what);
    }
}

std::optional<request> read(const std::vector<std::string_view>& words) {
    request q;
    q.seed = std::random_device()();
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string_view word = words[i];
        if (word == "--bite") {
            q.only_bites = true;
            continue;
        }
        if (i + 1 == words.size()) return std::nullopt;
        const std::string value(words[++i]);
        if (word == "--seed")
            q.seed = std::strtoull(value.c_str(), nullptr, 10);
        else if (word == "--commands")
            q.commands = std::strtoull(value.c_str(), nullptr, 10);
        else if (word == "--server" && value == "redis")
            q.servers = {test::server_kind::redis};
        else if (word == "--server" && value == "valkey")
            q.servers = {test::server_kind::valkey};
        else if (word != "--server" || value != "both")
            return std::nullopt;
    }
    return q;
}

} // namespace

int main(int argc, char** argv) {
    const auto q = read({argv + 1, argv + argc});
    if (!q) {
        std::fputs(usage, stderr);
        return 2;
    }
    std::printf("seed %llu\n", ull(q->seed));
    tally t;
    try {
        if (!q->only_bites) {
            for (const test::server_kind kind : q->servers) compare(kind, *q, t);
        }
        if (q->only_bites || q->commands >= full_run) try_bites(q->servers.front(), *q, t);
    } catch (const std::exception& e) {
        t.check(false, e.what());
    }
    std::printf("%llu passed, %llu failed\n", ull(t.passed), ull(t.failed));
    return t.failed == 0 ? 0 : 1;
}
