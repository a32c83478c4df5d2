// SPDX-License-Identifier: MIT
//
// The simulator's command line.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "lock_world.hpp"
#include "world.hpp"

using namespace stn;
using namespace stn::sim;

namespace {

constexpr const char* usage =
    "sim [--seeds N [--from M]]  the pinned seeds and N more (200), the coverage table, and from 1,000\n"
    "                            on every broken variant\n"
    "sim --seed N [--trace]      one seed, told; --trace: line by line\n"
    "sim --bite                  every broken variant only\n"
    "    --variant NAME          with --seed or --seeds: that variant instead of the true machine\n"
    "    --favour NAME           the true machine on the seeds of that variant\n"
    "    --locks                 fleets with locks only\n"
    "    --lock-seed N           one of them; --lock-variant NAME: broken\n"
    "    --twice                 every seed twice: both runs must be the same\n";

struct variant_text {
    variant which;
    std::string_view name;
    std::string_view text;
    checker catcher;
};
constexpr std::array variants{
#define SIM_VARIANT_TEXT(name, text, catcher) variant_text{variant::name, #name, text, checker::catcher},
    SIM_VARIANT_TABLE(SIM_VARIANT_TEXT)
#undef SIM_VARIANT_TEXT
};

constexpr std::uint64_t bite_seeds = 2'000; // at most
constexpr std::uint64_t faults_at_least = 1'000;
constexpr std::uint64_t visits_at_least = 100;
constexpr std::uint64_t full_run = 10'000; // the floors hold for this many seeds
constexpr std::uint64_t short_run = 1'000; // below, the broken variants are left out

struct request {
    std::optional<std::uint64_t> seed;
    std::uint64_t from = 0;
    std::uint64_t seeds = 200;
    bool bite = false;
    bool trace = false;
    bool twice = false;
    variant broken = variant::none;
    variant favoured = variant::none;
    bool locks_only = false;
    std::optional<std::uint64_t> lock_seed;
    lock_variant broken_lock = lock_variant::none;
};

struct score {
    std::uint64_t passed = 0;
    std::uint64_t failed = 0;

    void count(bool good) { ++(good ? passed : failed); }
    // One named check, told when it fails.
    void check(bool good, const std::string& what) {
        count(good);
        if (!good) std::printf("FAILED: %s\n", what.c_str());
    }
};

unsigned long long ull(std::uint64_t n) {
    return n;
}

std::string str(std::string_view s) {
    return std::string(s);
}

variant variant_of(std::string_view name) {
    const auto at = std::ranges::find(variants, name, &variant_text::name);
    if (at != variants.end()) return at->which;
    std::fprintf(stderr, "there is no variant %s\n", str(name).c_str());
    std::exit(2);
}

outcome_of_seed run(std::uint64_t seed, variant favoured, variant broken, bool trace = false) {
    options o = options::drawn(seed, favoured);
    o.broken = broken;
    return run_seed(o, trace);
}

void print_found(const outcome_of_seed& r, std::uint64_t seed) {
    for (const judge::verdict& v : r.found) {
        std::printf("seed %llu, %lld ms: %s: %s\n", ull(seed), static_cast<long long>(v.at / ms),
                    str(checker_name(v.by)).c_str(), v.text.c_str());
    }
}

// ---- one seed

int run_one(const request& q) {
    options o = options::drawn(*q.seed, q.favoured);
    o.broken = q.broken;
    std::fputs(o.print().c_str(), stdout);
    if (q.twice) static_cast<void>(run_seed(o, q.trace));
    const auto r = run_seed(o, q.trace);
    std::printf("faults:");
    for (std::size_t i = 0; i < fault_count; ++i) {
        if (r.faults[i] != 0) std::printf(" %s %llu", str(fault_names[i]).c_str(), ull(r.faults[i]));
    }
    std::printf("\n%llu calls, %llu loads, %llu steps, %lld ms of virtual time, digest %016llx\n", ull(r.ops),
                ull(r.loads), ull(r.steps), static_cast<long long>(r.virtual_ms), ull(r.digest));
    print_found(r, *q.seed);
    std::printf("%d passed, %d failed\n", r.found.empty() ? 1 : 0, r.found.empty() ? 0 : 1);
    return r.found.empty() ? 0 : 1;
}

// ---- many

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

void run_and_judge(std::uint64_t seed, variant favoured, const request& q, sums& all, score& s) {
    const auto r = run(seed, favoured, q.broken);
    all.add(r);
    bool good = r.found.empty();
    if (s.failed < 20) print_found(r, seed);
    if (q.twice && run(seed, favoured, q.broken).digest != r.digest) {
        std::printf("seed %llu: two runs of it differ\n", ull(seed));
        good = false;
    }
    std::uint64_t faults = 0;
    for (const std::uint64_t n : r.faults) faults += n;
    if (r.found.empty() && (r.ops < 200 || faults < 5)) {
        std::printf("seed %llu: only %llu calls and %llu faults\n", ull(seed), ull(r.ops), ull(faults));
        good = false;
    }
    s.count(good);
}

struct pin {
    std::uint64_t seed;
    variant favoured;
};

std::vector<pin> pinned() {
    std::vector<pin> out;
    std::ifstream in(STN_SIM_DIR "/pinned.txt");
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line.substr(0, line.find('#')));
        pin p{0, variant::none};
        std::string favoured;
        if (!(words >> p.seed)) continue;
        if (words >> favoured) p.favoured = variant_of(favoured);
        out.push_back(p);
    }
    return out;
}

// The floors are checked on a full run only; a short one just shows the table.
void cover(const sums& all, bool full, score& s) {
    std::printf("\n%10s  state, input -> next\n", "visits");
    for (std::size_t i = 0; i < row_count; ++i) {
        const row_text& t = row_texts[i];
        std::printf("%10llu  %s, %s -> %s\n", ull(all.seen.rows[i]), str(t.state).c_str(), str(t.input).c_str(),
                    str(t.next).c_str());
        if (full) {
            s.check(all.seen.rows[i] >= visits_at_least, "100 visits of the row " + str(t.state) + ", " + str(t.input));
        }
    }
    std::printf("\n%10s  fault\n", "injections");
    for (std::size_t i = 0; i < fault_count; ++i) {
        std::printf("%10llu  %s: %s\n", ull(all.faults[i]), str(fault_names[i]).c_str(), str(fault_texts[i]).c_str());
        if (full) s.check(all.faults[i] >= faults_at_least, "1,000 injections of " + str(fault_names[i]));
    }
    std::printf("\n%llu calls, %llu loads, %llu steps, %llu s of virtual time\n", ull(all.ops), ull(all.loads),
                ull(all.steps), ull(all.virtual_ms / 1'000));
    std::printf("%llu fills stored, %llu refused; %llu promotions, %llu withdrawals; %llu leases granted, %llu held\n",
                ull(all.stats[stat::fills_stored]), ull(all.fills_refused), ull(all.stats[stat::promotions]),
                ull(all.stats[stat::withdrawals]), ull(all.stats[stat::leases_granted]),
                ull(all.stats[stat::leases_held]));
    s.check(all.fills_refused > 0, "some fills are refused");
    s.check(all.stats[stat::promotions] > 0, "some callers are promoted");
}

// ---- the checkers bite

void bite(score& s) {
    std::printf("\nbroken variants, each until its checker catches it:\n");
    for (const variant_text& v : variants) {
        std::uint64_t caught = bite_seeds;
        std::string by_others;
        for (std::uint64_t seed = 0; seed < bite_seeds && caught == bite_seeds; ++seed) {
            const auto r = run(seed, v.which, v.which);
            if (r.found.empty()) continue;
            const checker by = r.found.front().by;
            if (by == v.catcher) {
                caught = seed;
            } else if (by_others.find(checker_name(by)) == std::string::npos) {
                by_others += (by_others.empty() ? "; also by " : ", ") + str(checker_name(by));
            }
        }
        bool true_passes = true;
        for (std::uint64_t seed = 0; seed <= std::min(caught, bite_seeds - 1); ++seed) {
            const auto r = run(seed, v.which, variant::none);
            print_found(r, seed);
            true_passes = true_passes && r.found.empty();
        }
        std::printf("  %-16s %s: ", str(v.name).c_str(), str(v.text).c_str());
        if (caught < bite_seeds) {
            std::printf("caught by %s at seed %llu%s\n", str(checker_name(v.catcher)).c_str(), ull(caught),
                        by_others.c_str());
        } else {
            std::printf("NOT caught by %s%s\n", str(checker_name(v.catcher)).c_str(), by_others.c_str());
        }
        s.check(caught < bite_seeds, "the variant " + str(v.name) + " is caught");
        s.check(true_passes, "the true machine passes the seeds of " + str(v.name));
    }
}

// ---- locks

struct lock_variant_text {
    lock_variant which;
    std::string_view name;
    std::string_view text;
    checker catcher;
};
constexpr std::array lock_variants{
#define SIM_LOCK_VARIANT_TEXT(name, text, catcher) lock_variant_text{lock_variant::name, #name, text, checker::catcher},
    SIM_LOCK_VARIANT_TABLE(SIM_LOCK_VARIANT_TEXT)
#undef SIM_LOCK_VARIANT_TEXT
};

constexpr std::uint64_t lock_bite_seeds = 1'000; // at most

void print_locks(const outcome_of_locks& r, std::uint64_t seed) {
    for (const judge::verdict& v : r.found) {
        std::printf("locks, seed %llu, %lld ms: %s: %s\n", ull(seed), static_cast<long long>(v.at / ms),
                    str(checker_name(v.by)).c_str(), v.text.c_str());
    }
}

void bite_locks(score& s) {
    std::printf("\nbroken locks, each until its checker catches it:\n");
    for (const lock_variant_text& v : lock_variants) {
        std::uint64_t caught = lock_bite_seeds;
        for (std::uint64_t seed = 0; seed < lock_bite_seeds && caught == lock_bite_seeds; ++seed) {
            const auto r = run_locks(seed, v.which, false);
            if (!r.found.empty() && r.found.front().by == v.catcher) caught = seed;
        }
        std::printf("  %-18s %s: %s\n", str(v.name).c_str(), str(v.text).c_str(),
                    caught < lock_bite_seeds
                        ? ("caught by " + str(checker_name(v.catcher)) + " at seed " + std::to_string(caught)).c_str()
                        : "NOT caught");
        s.check(caught < lock_bite_seeds, "the variant " + str(v.name) + " is caught");
    }
}

// As many seeds of fleets with locks.
void run_lock_seeds(const request& q, score& s) {
    outcome_of_locks all;
    for (std::uint64_t seed = q.from; seed < q.from + q.seeds; ++seed) {
        const auto r = run_locks(seed, lock_variant::none, false);
        print_locks(r, seed);
        bool good = r.found.empty();
        if (q.twice) good = good && run_locks(seed, lock_variant::none, false).digest == r.digest;
        s.count(good);
        for (std::size_t i = 0; i < fault_count; ++i) all.faults[i] += r.faults[i];
        all.stats.merge(r.stats);
        all.acquires += r.acquires;
        all.grants += r.grants;
        all.contended += r.contended;
        all.losses += r.losses;
        all.uncertain += r.uncertain;
        all.deleted += r.deleted;
        all.taught += r.taught;
        all.steps += r.steps;
    }
    std::printf(
        "\nlocks: %llu acquires, %llu granted, %llu of them after a wait, %llu lost, %llu uncertain, %llu renewals, "
        "%llu deleted by others, %llu scripts taught again, %llu steps\n",
        ull(all.acquires), ull(all.grants), ull(all.contended), ull(all.losses), ull(all.uncertain),
        ull(all.stats[stat::renewals]), ull(all.deleted), ull(all.taught), ull(all.steps));
    if (q.seeds < short_run) return;
    s.check(all.contended > q.seeds, "many locks are waited for");
    s.check(all.losses > q.seeds, "many locks are lost");
    s.check(all.uncertain > 0, "some acquires are uncertain");
    s.check(all.deleted > q.seeds / 10, "locks are deleted by others");
    s.check(all.taught > q.seeds / 10, "scripts are forgotten, and taught again");
    for (const fault f : {fault::reply_lost, fault::late_bytes, fault::reorder, fault::crash, fault::reopen}) {
        s.check(all.faults[static_cast<std::size_t>(f)] > q.seeds / 10,
                "locks meet the fault " + str(fault_names[static_cast<std::size_t>(f)]));
    }
}

int run_many(const request& q) {
    score s;
    sums all;
    if (!q.bite && !q.locks_only) {
        const bool as_is = q.broken == variant::none && q.favoured == variant::none;
        if (as_is) {
            for (const pin& p : pinned()) run_and_judge(p.seed, p.favoured, q, all, s);
        }
        for (std::uint64_t seed = q.from; seed < q.from + q.seeds; ++seed) {
            run_and_judge(seed, q.favoured, q, all, s);
            if ((seed - q.from) % 1'000 == 999) std::printf("%llu seeds\n", ull(seed - q.from + 1));
            std::fflush(stdout);
        }
        cover(all, as_is && q.seeds >= full_run, s);
    }
    if (q.lock_seed) {
        const auto r = run_locks(*q.lock_seed, q.broken_lock, q.trace);
        print_locks(r, *q.lock_seed);
        s.count(r.found.empty());
    } else if (!q.bite && q.broken == variant::none && q.favoured == variant::none) {
        run_lock_seeds(q, s);
    }
    if (!q.locks_only && (q.bite || (q.broken == variant::none && q.seeds >= short_run))) bite(s);
    if (!q.lock_seed && (q.bite || (q.broken == variant::none && q.seeds >= short_run))) bite_locks(s);
    std::printf("%llu passed, %llu failed\n", ull(s.passed), ull(s.failed));
    return s.failed == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    request q;
    const std::vector<std::string_view> words(argv + 1, argv + argc);
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string_view word = words[i];
        const auto value = [&] { return i + 1 < words.size() ? words[++i] : std::string_view("0"); };
        const auto number = [&] { return std::strtoull(str(value()).c_str(), nullptr, 10); };
        if (word == "--seed") {
            q.seed = number();
        } else if (word == "--seeds") {
            q.seeds = number();
        } else if (word == "--from") {
            q.from = number();
        } else if (word == "--variant") {
            q.broken = q.favoured = variant_of(value());
        } else if (word == "--favour") {
            q.favoured = variant_of(value());
        } else if (word == "--trace") {
            q.trace = true;
        } else if (word == "--twice") {
            q.twice = true;
        } else if (word == "--locks") {
            q.locks_only = true;
        } else if (word == "--lock-seed") {
            q.locks_only = true;
            q.lock_seed = number();
        } else if (word == "--lock-variant") {
            const auto at = std::ranges::find(lock_variants, value(), &lock_variant_text::name);
            if (at != lock_variants.end()) q.broken_lock = at->which;
        } else if (word == "--bite") {
            q.bite = true;
        } else {
            std::fputs(usage, stderr);
            return 2;
        }
    }
    return q.seed ? run_one(q) : run_many(q);
}
