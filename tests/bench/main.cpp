// SPDX-License-Identifier: MIT
//
// bench [--unpinned] [Google Benchmark's own flags]: each figure beside its floor, in one run, interleaved, as medians.
// Pinned to one CPU unless told otherwise (waking another virtual CPU costs more than all of this together).

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <sched.h>

namespace {

struct pair {
    const char* what;
    const char* ours;
    const char* floor;
    double budget; // ours / floor, 0: none
};

const pair pairs[] = {
    {"uncontended flight (core) / mutex lock+unlock", "flight_core", "floor_mutex", 0},
    {"uncontended flight (core) / lean map flight", "flight_core", "floor_map_flight", 60.0 / 42},
    {"uncontended flight (C ABI) / lean map flight", "flight_abi", "floor_map_flight", 0},
    {"join of a running flight (core) / lean join", "join_core", "floor_join", 60.0 / 25},
    {"join of a running flight (C ABI) / lean join", "join_abi", "floor_join", 0},
    {"blocking full join (C ABI) / futex hand-off", "handoff_abi", "floor_handoff", 0},
    {"hit on the embedded store, blocking (C ABI) / futex hand-off", "hit_abi", "floor_handoff", 0},
};

class ratios final : public benchmark::ConsoleReporter {
  public:
    ratios() : ConsoleReporter(OO_None) {}
    void ReportRuns(const std::vector<Run>& runs) override {
        for (const Run& run : runs) {
            if (run.run_type != Run::RT_Iteration) continue;
            std::string name = run.benchmark_name();
            times_[name.substr(0, name.find('/'))].push_back(run.GetAdjustedRealTime());
        }
    }
    void Finalize() override {
        std::printf("%-62s %10s %10s %8s %8s\n", "", "ours ns", "floor ns", "ratio", "budget");
        for (const pair& p : pairs) {
            const double ours = median(times_[p.ours]);
            const double floor = median(times_[p.floor]);
            if (ours <= 0 || floor <= 0) continue;
            std::printf("%-62s %10.1f %10.1f %8.2f", p.what, ours, floor, ours / floor);
            if (p.budget > 0) {
                std::printf(" %8.2f%s", p.budget, ours / floor <= p.budget ? "" : "  over");
            }
            std::printf("\n");
        }
    }

  private:
    static double median(std::vector<double> v) {
        if (v.empty()) return 0;
        std::ranges::sort(v);
        return v[v.size() / 2];
    }
    std::map<std::string, std::vector<double>> times_;
};

void pin() {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    if (::sched_setaffinity(0, sizeof one, &one) != 0) std::perror("sched_setaffinity");
}

} // namespace

int main(int argc, char** argv) {
    std::vector<char*> args;
    bool pinned = true;
    for (int i = 0; i < argc; ++i) {
        if (std::strcmp(argv[i], "--unpinned") == 0) {
            pinned = false;
        } else {
            args.push_back(argv[i]);
        }
    }
    std::string repeat = "--benchmark_repetitions=7";
    std::string mixed = "--benchmark_enable_random_interleaving=true";
    std::string brief = "--benchmark_min_time=0.1";
    for (std::string* more : {&repeat, &mixed, &brief}) args.insert(args.begin() + 1, more->data());
    int n = static_cast<int>(args.size());
    if (pinned) pin();
    benchmark::Initialize(&n, args.data());
    if (benchmark::ReportUnrecognizedArguments(n, args.data())) return 2;
    std::printf("%s\n", pinned ? "S: pinned to one CPU" : "U: unpinned");
    ratios reporter;
    benchmark::RunSpecifiedBenchmarks(&reporter);
    return 0;
}
