// SPDX-License-Identifier: MIT
//
// sim --seed N [--variant NAME] [--trace]   one seed, told
// sim --seeds N [--from M] [--variant NAME] many, then the coverage table
// sim --bite                                every broken variant, until its checker catches it
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "world.hpp"

using namespace stn;
using namespace stn::sim;

namespace {

struct request {
    std::uint64_t seed = 0;
    std::uint64_t from = 0;
    std::uint64_t seeds = 0;
    bool one = false;
    bool bite = false;
    bool trace = false;
    bool twice = false;
    variant broken = variant::none;
};

struct sums {
    fault_counts faults{};
    coverage seen;
    stat_block stats;
    std::uint64_t fills_refused = 0;
    std::uint64_t ops = 0;
    std::uint64_t loads = 0;
    std::uint64_t steps = 0;
    std::uint64_t virtual_ms = 0;

    void add(const outcome_of_seed& o) {
        for (std::size_t i = 0; i < fault_count; ++i) faults[i] += o.faults[i];
        for (std::size_t i = 0; i < row_count; ++i) seen.rows[i] += o.seen.rows[i];
        stats.merge(o.stats);
        fills_refused += o.fills_refused;
        ops += o.ops;
        loads += o.loads;
        steps += o.steps;
        virtual_ms += static_cast<std::uint64_t>(o.virtual_ms);
    }
};

void print_found(const outcome_of_seed& r, std::uint64_t seed) {
    for (const judge::verdict& v : r.found) {
        std::printf("seed %llu, %lld ms: %s: %s\n", static_cast<unsigned long long>(seed),
                    static_cast<long long>(v.at / ms), std::string(checker_name(v.by)).c_str(), v.text.c_str());
    }
}

void print_faults(const fault_counts& faults) {
    for (std::size_t i = 0; i < fault_count; ++i) {
        if (faults[i] != 0) {
            std::printf(" %s %llu", std::string(fault_names[i]).c_str(), static_cast<unsigned long long>(faults[i]));
        }
    }
    std::printf("\n");
}

int run_one(const request& q) {
    const options o = options::drawn(q.seed, q.broken);
    std::fputs(o.print().c_str(), stdout);
    const auto r = run_seed(o, q.trace);
    std::printf("faults:");
    print_faults(r.faults);
    std::printf("%llu calls, %llu loads, %llu steps, %lld ms of virtual time, digest %016llx\n",
                static_cast<unsigned long long>(r.ops), static_cast<unsigned long long>(r.loads),
                static_cast<unsigned long long>(r.steps), static_cast<long long>(r.virtual_ms),
                static_cast<unsigned long long>(r.digest));
    print_found(r, q.seed);
    std::printf("%d passed, %d failed\n", r.found.empty() ? 1 : 0, r.found.empty() ? 0 : 1);
    return r.found.empty() ? 0 : 1;
}

int run_many(const request& q) {
    sums all;
    std::uint64_t failed = 0;
    for (std::uint64_t seed = q.from; seed < q.from + q.seeds; ++seed) {
        const auto r = run_seed(options::drawn(seed, q.broken), false);
        all.add(r);
        if (!r.found.empty()) {
            ++failed;
            if (failed <= 20) print_found(r, seed);
        }
        if (q.twice && run_seed(options::drawn(seed, q.broken), false).digest != r.digest) {
            std::printf("seed %llu: two runs differ\n", static_cast<unsigned long long>(seed));
            ++failed;
        }
    }
    for (std::size_t i = 0; i < row_count; ++i) {
        std::printf("%10llu  %s + %s -> %s\n", static_cast<unsigned long long>(all.seen.rows[i]),
                    std::string(row_texts[i].state).c_str(), std::string(row_texts[i].input).c_str(),
                    std::string(row_texts[i].next).c_str());
    }
    std::printf("faults:");
    print_faults(all.faults);
    std::printf("%llu calls, %llu loads, %llu steps, %llu fills refused, %llu promotions, %llu s virtual\n",
                static_cast<unsigned long long>(all.ops), static_cast<unsigned long long>(all.loads),
                static_cast<unsigned long long>(all.steps), static_cast<unsigned long long>(all.fills_refused),
                static_cast<unsigned long long>(all.stats[stat::promotions]),
                static_cast<unsigned long long>(all.virtual_ms / 1000));
    std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(q.seeds - std::min(q.seeds, failed)),
                static_cast<unsigned long long>(failed));
    return failed == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    request q;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        const char* value = i + 1 < argc ? argv[i + 1] : "0";
        if (word == "--seed") q.one = true, q.seed = std::strtoull(value, nullptr, 10), ++i;
        if (word == "--seeds") q.seeds = std::strtoull(value, nullptr, 10), ++i;
        if (word == "--from") q.from = std::strtoull(value, nullptr, 10), ++i;
        if (word == "--trace") q.trace = true;
        if (word == "--twice") q.twice = true;
        if (word == "--bite") q.bite = true;
    }
    return q.one ? run_one(q) : run_many(q);
}
