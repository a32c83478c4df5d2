// SPDX-License-Identifier: MIT
//
// bench_locks [--rounds N] [--ms N] [--contest-ms N] [--placement S|U|SU] [--server redis|valkey] [--only TEXT]
//             [--peers PYTHON SCRIPT]
// Lock cycles beside raw hiredis, and processes that contend for one lock, beside locks from PyPI if there is a Python
// that has them (see run.sh). S: the server and all of ours on one CPU, which is what judges; U: placed by the kernel.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "contest.hpp"
#include "cycles.hpp"
#include "support/live_server.hpp"
#include "timed.hpp"

namespace {

using namespace stn::bench;

struct choice {
    int rounds = 5;
    int ms = 300;
    int contest_ms = 3'000;
    std::string placements = "SU";
    std::string only;
    std::vector<std::string> peers;
    stn::test::server_kind kind = stn::test::server_kind::redis;
};

choice read(int argc, char** argv) {
    choice c;
    for (int i = 1; i < argc; i += 2) {
        const std::string_view name = argv[i];
        if (i + 1 == argc) give_up("an option has no value");
        const char* const value = argv[i + 1];
        if (name == "--rounds") {
            c.rounds = std::atoi(value);
        } else if (name == "--ms") {
            c.ms = std::atoi(value);
        } else if (name == "--contest-ms") {
            c.contest_ms = std::atoi(value);
        } else if (name == "--placement") {
            c.placements = value;
        } else if (name == "--only") {
            c.only = value;
        } else if (name == "--server") {
            c.kind = std::strcmp(value, "valkey") == 0 ? stn::test::server_kind::valkey : stn::test::server_kind::redis;
        } else if (name == "--peers" && i + 2 < argc) {
            c.peers = {value, argv[i + 2]};
            ++i;
        } else {
            give_up("bench_locks: no such option; they stand on top of main.cpp");
        }
    }
    if (c.rounds < 1 || c.ms < 1 || c.contest_ms < 1) give_up("--rounds and the times are positive numbers");
    return c;
}

void cycles(const choice& how, const stn::test::live_server& server, bool pinned) {
    own_cycles own(server.url());
    std::printf("%-34s %10s %10s %7s %7s\n", "lock cycles, a key for each", "ours /s", "floor /s", "ratio", "budget");
    for (const int threads : {1, 8, 32}) {
        std::vector<double> ours, floor, ratio;
        for (int i = 0; i < how.rounds; ++i) {
            floor.push_back(raw_cycles(server.port(), threads, how.ms));
            ours.push_back(own.run(threads, how.ms));
            ratio.push_back(ours.back() / floor.back());
        }
        const double budget = threads == 1 && pinned ? 0.85 : threads == 32 ? pinned ? 2.5 : 1.5 : 0;
        std::printf("%2d %-31s %10.0f %10.0f %7.2f %7.2f%s\n", threads, threads == 1 ? "thread" : "threads",
                    median(ours), median(floor), median(ratio), budget, median(ratio) < budget ? "  missed" : "");
        std::fflush(stdout);
    }
}

void contests(const choice& how, const stn::test::live_server& server) {
    const std::string port = std::to_string(server.port());
    struct entry {
        const char* who;
        std::vector<std::string> program;
    };
    std::vector<entry> all = {{"stanchion", {"/proc/self/exe", "--contestant", server.url()}}};
    if (!how.peers.empty()) {
        all.push_back({"python-redis-lock (BLPOP)", {how.peers[0], how.peers[1], "python-redis-lock", port}});
        all.push_back({"redis-py Lock (polling)", {how.peers[0], how.peers[1], "redis-py", port}});
    }
    contest one;
    one.processes = 1;
    one.ms = std::min(how.contest_ms, 1'000);
    const double alone_ms = 1'000 / run_contest(all[0].program, one).per_second;
    std::printf("%-34s %7s %8s %8s %8s %8s %7s %14s\n", "processes on one key, 1 ms hold", "/s", "p50 ms", "p99 ms",
                "max ms", "ideal", "p99/id.", "least..most");
    for (const int processes : {2, 8, 32}) {
        for (const entry& e : all) {
            contest c;
            c.processes = processes;
            c.ms = how.contest_ms;
            const contest_result r = run_contest(e.program, c);
            const double ideal = (processes - 1) * alone_ms;
            const double mean = r.per_second * c.ms / 1'000 / processes;
            std::printf("%2d %-31s %7.0f %8.1f %8.1f %8.1f %8.1f %7.1f %6zu..%-6zu  %+.0f%% %+.0f%%\n", processes,
                        e.who, r.per_second, r.p50_ms, r.p99_ms, r.longest_ms, ideal, r.p99_ms / ideal, r.least, r.most,
                        100 * (static_cast<double>(r.least) / mean - 1),
                        100 * (static_cast<double>(r.most) / mean - 1));
            std::fflush(stdout);
        }
    }
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 7 && std::strcmp(argv[1], "--contestant") == 0) {
        be_contestant(argv[2], std::atoi(argv[4]), std::atoi(argv[6]));
        return 0;
    }
    const choice how = read(argc, argv);
    const stn::test::live_server server(how.kind);
    for (const char placement : how.placements) {
        const bool pinned = placement == 'S';
        place(server.pid(), pinned);
        place(0, pinned); // before our client's thread is made
        std::printf("%s\n", pinned ? "S: one CPU" : "U: unpinned");
        if (std::string_view("cycles").find(how.only) != std::string_view::npos) cycles(how, server, pinned);
        if (std::string_view("contests").find(how.only) != std::string_view::npos) contests(how, server);
    }
    return 0;
}
