// SPDX-License-Identifier: MIT
#include "report.hpp"

#include <algorithm>
#include <array>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <ostream>

#include "promises.hpp"
#include "source.hpp"
#include "text.hpp"

namespace stampede {
namespace {

constexpr int title_width = 20;
constexpr std::array<int, 9> widths{10, 10, 9, 10, 10, 10, 10, 11, 9};

void print_columns(std::ostream& out, std::string_view first, const std::array<std::string, widths.size()>& cells) {
    out << std::left << std::setw(title_width) << first << std::right;
    for (std::size_t i = 0; i < widths.size(); ++i) out << std::setw(widths[i]) << cells[i];
    out << std::endl;
}

bool capped(const Result& result) {
    return result.requests < result.wanted;
}

// The address without what may be secret in it.
std::string store_shown(const Options& options) {
    if (options.store.empty()) return "memory://";
    std::size_t host = options.store.find("://");
    std::size_t at = options.store.rfind('@');
    if (host == std::string::npos || at == std::string::npos || at < host) return options.store;
    return options.store.substr(0, host + 3) + "..." + options.store.substr(at);
}

} // namespace

bool all_kept(const std::vector<Result>& results) {
    return std::all_of(results.begin(), results.end(), [](const Result& result) {
        std::vector<Promise> promises = judge(result);
        return std::all_of(promises.begin(), promises.end(), [](const Promise& promise) { return promise.kept; });
    });
}

void print_heading(std::ostream& out, const Options& options) {
    out << "One cached answer, " << counted(options.nodes, "node", "nodes") << ", "
        << counted(options.requests, "caller", "callers")
        << (options.burst() ? " at one moment, just after it expired"
                            : " over " + options.window() + ", it expires at half time")
        << ". A query takes " << options.load_ms << " ms.\n"
        << "(store " << store_shown(options) << ", seed " << options.seed << ")\n\n";
    print_columns(out, "strategy",
                  {"callers", "queries", "at once", "library", "p50 ms", "p99 ms", "max ms", "commands", "wall s"});
}

void print_row(std::ostream& out, const Result& result) {
    print_columns(out, result.strategy.title,
                  {with_commas(result.requests) + (capped(result) ? "*" : ""), with_commas(result.queries),
                   with_commas(result.peak), with_commas(result.library.loads), fixed(result.latency.p50_ms, 1),
                   fixed(result.latency.p99_ms, 1), fixed(result.latency.max_ms, 1),
                   with_commas(result.library.commands), fixed(result.wall_ms / 1000, 2)});
}

void print_promises(std::ostream& out, const std::vector<Result>& results) {
    out << "\nqueries: counted by the source; at once: most of them at one moment; library: the loads "
           "it counted itself\n";
    if (std::any_of(results.begin(), results.end(), capped)) {
        out << "* capped: with more callers this strategy is a load test of your machine (--none-cap, "
               "--lease-cap)\n";
    }
    std::size_t broken = 0;
    for (const Result& result : results) {
        out << "\n" << result.strategy.title << "\n";
        for (const Promise& promise : judge(result)) {
            out << (promise.kept ? "  kept    " : "  BROKEN  ") << promise.text << "\n";
            broken += promise.kept ? 0U : 1U;
        }
    }
    out << "\n"
        << (broken == 0 ? "Every promise was kept." : counted(broken, "promise was", "promises were") + " broken.")
        << std::endl;
}

void print_json(std::ostream& out, const Options& options, const std::vector<Result>& results) {
    using Json = nlohmann::ordered_json;
    Json runs = Json::array();
    for (const Result& result : results) {
        Json promises = Json::array();
        for (const Promise& promise : judge(result)) {
            promises.push_back({{"kept", promise.kept}, {"text", promise.text}});
        }
        Json timeline = Json::array();
        for (const Bucket& bucket : result.timeline) {
            timeline.push_back({{"from_ms", bucket.from_ms},
                                {"arrivals", bucket.arrivals},
                                {"queries", bucket.queries},
                                {"waiting", bucket.waiting},
                                {"p50_ms", bucket.p50_ms},
                                {"max_ms", bucket.max_ms}});
        }
        Json library = Json::object();
#define STAMPEDE_STAT(name, doc) library[#name] = result.library.name;
        STN_STATS_MAP(STAMPEDE_STAT)
#undef STAMPEDE_STAT
        runs.push_back(
            {{"strategy", result.strategy.name},
             {"coalesce", result.strategy.coalesce},
             {"fleet", result.strategy.fleet},
             {"soft", result.strategy.soft},
             {"callers", result.requests},
             {"capped", capped(result)},
             {"queries", result.queries},
             {"queries_peak", result.peak},
             {"latency_ms",
              {{"p50", result.latency.p50_ms}, {"p99", result.latency.p99_ms}, {"max", result.latency.max_ms}}},
             {"commands", result.library.commands},
             {"wall_ms", result.wall_ms},
             {"expiry_ms", result.expiry_ms},
             {"answers",
              {{"callers_answered", result.answered},
               {"too_many", result.repeated},
               {"wrong", result.wrong},
               {"old", result.old_answers},
               {"stale", result.stale_answers},
               {"from_load", result.from_load},
               {"errors", result.errors}}},
             {"events",
              {{"lease", result.leases},
               {"refresh", result.refreshes},
               {"revoked", result.revoked},
               {"filled", result.fills}}},
             {"library", library},
             {"promises", promises},
             {"bucket_ms", result.bucket_ms},
             {"timeline", timeline}});
    }
    Json report{{"program", "stampede"},
                {"stanchion", stn_version_string()},
                {"store", store_shown(options)},
                {"nodes", options.nodes},
                {"requests", options.requests},
                {"load_ms", options.load_ms},
                {"arrive", options.burst() ? "burst" : "poisson"},
                {"window_ms", options.window_ms},
                {"seed", options.seed},
                {"source", {{"rows", Source::rows}, {"categories", Source::categories}}},
                {"every_promise_kept", all_kept(results)},
                {"strategies", runs}};
    out << report.dump(2) << std::endl;
}

} // namespace stampede
