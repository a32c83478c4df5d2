// SPDX-License-Identifier: MIT
//
// bench_store [--rounds N] [--ms N] [--placement S|U] [--server redis|valkey] [--only TEXT]
// Hits on a real server, beside raw hiredis in the same run: interleaved, medians. S: the server and all of ours on
// one CPU, which is what judges; U: placed by the kernel. The raw floor is checked against redis-benchmark: a row
// whose floor is more than 15 % off is marked invalid.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "loads.hpp"
#include "support/live_server.hpp"
#include "timed.hpp"

namespace {

using stn::bench::give_up;
using stn::bench::median;
using stn::bench::place;

struct choice {
    int rounds = 5;
    int ms = 300;
    std::string placements = "SU";
    std::string only;
    stn::test::server_kind kind = stn::test::server_kind::redis;
};

choice read(int argc, char** argv) {
    choice c;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string_view name = argv[i];
        const char* const value = argv[i + 1];
        if (name == "--rounds") {
            c.rounds = std::atoi(value);
        } else if (name == "--ms") {
            c.ms = std::atoi(value);
        } else if (name == "--placement") {
            c.placements = value;
        } else if (name == "--only") {
            c.only = value;
        } else if (name == "--server") {
            c.kind = std::strcmp(value, "valkey") == 0 ? stn::test::server_kind::valkey : stn::test::server_kind::redis;
        } else {
            give_up("options: --rounds N, --ms N, --placement S|U|SU, --server redis|valkey, --only TEXT");
        }
    }
    if (c.rounds < 1 || c.ms < 1) give_up("--rounds and --ms are positive numbers");
    return c;
}

// What redis-benchmark says of GETs with these clients and pipeline.
double benchmark_of_redis(std::uint16_t port, int clients, int pipeline) {
    const std::string line = "redis-benchmark -p " + std::to_string(port) + " -c " + std::to_string(clients) + " -P " +
                             std::to_string(pipeline) + " -n " + std::to_string(pipeline > 1 ? 1'000'000 : 50'000) +
                             " --csv GET " + stn::bench::store_key_of(0) + " 2>/dev/null | tail -n 1";
    FILE* const out = ::popen(line.c_str(), "r");
    if (out == nullptr) return 0;
    char text[256] = "";
    const bool read = std::fgets(text, sizeof text, out) != nullptr;
    ::pclose(out);
    const char* const comma = std::strstr(text, "\",\"");
    return read && comma != nullptr ? std::atof(comma + 3) : 0;
}

struct row {
    const char* what;
    std::function<double()> ours;
    std::function<double()> floor;
    std::array<int, 2> benchmark; // clients, pipeline
    double budget_s;              // ours / floor, at least; 0: none
    double budget_u;
};

void measure(const choice& how, const std::vector<row>& rows, std::uint16_t port, bool pinned) {
    std::printf("%s\n%-44s %10s %10s %7s %7s   %s\n", pinned ? "S: one CPU" : "U: unpinned", "", "ours /s", "floor /s",
                "ratio", "budget", "floor / redis-benchmark");
    for (const row& r : rows) {
        if (std::string_view(r.what).find(how.only) == std::string_view::npos) continue;
        std::vector<double> ours, floor, ratio, check;
        for (int i = 0; i < how.rounds; ++i) {
            floor.push_back(r.floor());
            ours.push_back(r.ours());
            ratio.push_back(ours.back() / floor.back());
            if (i < 3) check.push_back(benchmark_of_redis(port, r.benchmark[0], r.benchmark[1]));
        }
        const double budget = pinned ? r.budget_s : r.budget_u;
        const double off = median(check) > 0 ? median(floor) / median(check) : 0;
        std::printf("%-44s %10.0f %10.0f %7.2f %7.2f   %.2f%s%s\n", r.what, median(ours), median(floor), median(ratio),
                    budget, off,
                    off < 0.85   ? "  invalid"
                    : off > 1.15 ? "  invalid (the floor is faster)"
                                 : "",
                    budget > 0 && median(ratio) < budget ? "  missed" : "");
        std::fflush(stdout);
    }
}

} // namespace

int main(int argc, char** argv) {
    const choice how = read(argc, argv);
    constexpr int depth = 256;
    stn::test::live_server server(how.kind);
    for (const char placement : how.placements) {
        const bool pinned = placement == 'S';
        place(server.pid(), pinned);
        place(0, pinned); // before our client's thread is made
        stn::bench::own_client own(server.url(), depth);
        const std::uint16_t port = server.port();
        const auto raw = [&](int threads) {
            return [&how, port, threads] { return stn::bench::raw_sync(port, threads, how.ms); };
        };
        std::vector<row> rows;
        for (const int threads : {1, 8, 32}) {
            const double s = threads == 1 ? 0.8 : threads == 32 ? 2.5 : 0;
            const double u = threads == 32 ? 1.5 : 0;
            static const char* const gets[] = {"get, 1 thread", "get, 8 threads", "get, 32 threads"};
            static const char* const loads[] = {"get_or_load, 1 thread", "get_or_load, 8 threads",
                                                "get_or_load, 32 threads"};
            const int at = threads == 1 ? 0 : threads == 8 ? 1 : 2;
            rows.push_back(
                {gets[at], [&, threads] { return own.get(threads, how.ms); }, raw(threads), {threads, 1}, s, u});
            rows.push_back({loads[at],
                            [&, threads] { return own.get_or_load(threads, how.ms); },
                            raw(threads),
                            {threads, 1},
                            s,
                            u});
        }
        rows.push_back({"get, 256 in flight by queue",
                        [&] { return own.get_in_flight(depth, how.ms); },
                        [&how, port] { return stn::bench::raw_pipeline(port, depth, how.ms); },
                        {1, depth},
                        0.4,
                        0});
        measure(how, rows, port, pinned);
    }
    return 0;
}
