// SPDX-License-Identifier: MIT
#include "report.hpp"

#include <algorithm>
#include <array>
#include <iomanip>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>

#include "catalogue.hpp"
#include "promises.hpp"
#include "text.hpp"

namespace stampede {
namespace {

using Json = nlohmann::ordered_json;

constexpr int title_width = 20;
constexpr std::array<int, 11> widths{10, 10, 9, 10, 10, 10, 10, 11, 9, 9, 9};

void print_columns(std::ostream& out, std::string_view first, const std::vector<std::string>& cells) {
    out << std::left << std::setw(title_width) << first << std::right;
    for (std::size_t i = 0; i < cells.size(); ++i) out << std::setw(widths[i]) << cells[i];
    out << std::endl;
}

Json latency_json(const Latency& latency) {
    return {{"callers", latency.callers}, {"p50", latency.p50_ms}, {"p99", latency.p99_ms}, {"max", latency.max_ms}};
}

bool capped(const Result& result) {
    return result.requests < result.wanted;
}

std::string callers_shown(const Result& result) {
    return with_commas(result.requests) + (capped(result) ? "*" : "");
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

void print_heading(std::ostream& out, const Options& options, const std::string& server) {
    out << "One cached answer, "
        << (options.processes() ? counted(options.nodes, "process", "processes")
                                : counted(options.nodes, "node", "nodes"))
        << ", " << counted(options.requests, "caller", "callers")
        << (options.burst() ? " at one moment, just after it expired"
                            : " over " + options.window() + ", it expires at half time")
        << ". A query takes " << options.load_ms << " ms.\n"
        << "(store " << store_shown(options) << (server.empty() ? "" : ", " + server) << ", seed " << options.seed
        << ")\n\n";
    if (options.processes()) {
        print_columns(out, "strategy",
                      {"callers", "queries", "granted", "refused", "waiters", "p50 ms", "p99 ms", "max ms", "commands",
                       "server", "wall s"});
        return;
    }
    print_columns(out, "strategy",
                  {"callers", "queries", "at once", "library", "p50 ms", "p99 ms", "max ms", "commands", "wall s"});
}

void print_row(std::ostream& out, const Result& result) {
    if (result.server) {
        const Latency& waiters = result.waiters;
        print_columns(out, result.strategy.title,
                      {callers_shown(result), with_commas(result.queries), with_commas(result.library.leases_granted),
                       with_commas(result.library.leases_held), with_commas(waiters.callers), fixed(waiters.p50_ms, 1),
                       fixed(waiters.p99_ms, 1), fixed(waiters.max_ms, 1), with_commas(result.library.commands),
                       with_commas(result.server->counts.sent()), fixed(result.wall_ms / 1000, 2)});
        if (const auto& empty = result.server->empty_events) {
            out << "  beside it, as many empty events, no store: p50 " << fixed(empty->p50_ms, 1) << ", p99 "
                << fixed(empty->p99_ms, 1) << ", the last after " << fixed(empty->max_ms, 1) << " ms" << std::endl;
        }
        return;
    }
    print_columns(out, result.strategy.title,
                  {callers_shown(result), with_commas(result.queries), with_commas(result.peak),
                   with_commas(result.library.loads), fixed(result.latency.p50_ms, 1), fixed(result.latency.p99_ms, 1),
                   fixed(result.latency.max_ms, 1), with_commas(result.library.commands),
                   fixed(result.wall_ms / 1000, 2)});
}

void print_promises(std::ostream& out, const Options& options, const std::vector<Result>& results) {
    if (options.processes()) {
        out << "\nqueries: counted by the source; granted, refused: leases; waiters: who came between the expiry and "
               "the end of the first load,\nand their latency; commands: as sent, by the library's count and by the "
               "server's (without opening connections and what scripts do inside)\n";
    } else {
        out << "\nqueries: counted by the source; at once: most of them at one moment; library: the loads "
               "it counted itself\n";
    }
    if (std::any_of(results.begin(), results.end(), capped)) {
        out << "* capped: with more callers this strategy is a load test of your machine (--none-cap, "
               "--lease-cap)\n";
    }
    std::size_t broken = 0;
    for (const Result& result : results) {
        if (options.runs > 1 && all_kept({result})) continue;
        out << "\n" << result.strategy.title;
        if (options.runs > 1) out << ", run " << result.run;
        out << "\n";
        for (const Promise& promise : judge(result)) {
            out << (promise.kept ? "  kept    " : "  BROKEN  ") << promise.text << "\n";
            broken += promise.kept ? 0U : 1U;
        }
    }
    out << "\n"
        << (broken == 0 ? "Every promise was kept." : counted(broken, "promise was", "promises were") + " broken.")
        << std::endl;
}

void print_summary(std::ostream& out, const Options& options, const std::vector<Result>& results) {
    if (options.runs == 1) return;
    struct Spread {
        std::vector<double> seen;
        std::string shown(int digits) {
            std::sort(seen.begin(), seen.end());
            return fixed(seen.front(), digits) + " / " + fixed(seen[seen.size() / 2], digits) + " / " +
                   fixed(seen.back(), digits);
        }
    };
    out << "\nOver " << options.runs << " runs, each least / median / most:\n";
    for (const Strategy& strategy : options.chosen) {
        Spread queries;
        Spread p50;
        Spread p99;
        Spread longest;
        Spread commands;
        for (const Result& result : results) {
            if (result.strategy.name != strategy.name) continue;
            queries.seen.push_back(static_cast<double>(result.queries));
            p50.seen.push_back(result.waiters.p50_ms);
            p99.seen.push_back(result.waiters.p99_ms);
            longest.seen.push_back(result.waiters.max_ms);
            commands.seen.push_back(static_cast<double>(result.library.commands));
        }
        out << "  " << strategy.title << ": queries " << queries.shown(0) << "; waiters' p50 " << p50.shown(1)
            << ", p99 " << p99.shown(1) << ", max " << longest.shown(1) << " ms; commands " << commands.shown(0)
            << "\n";
    }
    std::uint64_t kept = 0;
    for (std::uint64_t run = 1; run <= options.runs; ++run) {
        std::vector<Result> of_run;
        std::copy_if(results.begin(), results.end(), std::back_inserter(of_run),
                     [&](const Result& result) { return result.run == run; });
        if (all_kept(of_run)) ++kept;
    }
    out << kept << " of " << options.runs << " runs kept every promise." << std::endl;
}

void print_json(std::ostream& out, const Options& options, const std::vector<Result>& results) {
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
        Json server;
        if (result.server) {
            const OnServer& on = *result.server;
            server = {{"name", on.name},
                      {"alone", on.alone},
                      {"commands", on.counts.sent()},
                      {"get", on.counts.get},
                      {"getrange", on.counts.getrange},
                      {"scripts", on.counts.scripts},
                      {"keys_left", on.keys.found},
                      {"keys_without_ttl", on.keys.without_ttl},
                      {"keys_undeleted", on.keys.undeleted},
                      {"nodes_cpu_ms", on.cpu_ms},
                      {"empty_events_ms", on.empty_events ? latency_json(*on.empty_events) : Json()}};
        }
        runs.push_back({{"strategy", result.strategy.name},
                        {"run", result.run},
                        {"coalesce", result.strategy.coalesce},
                        {"fleet", result.strategy.fleet},
                        {"soft", result.strategy.soft},
                        {"callers", result.requests},
                        {"capped", capped(result)},
                        {"queries", result.queries},
                        {"queries_executed", result.executed},
                        {"queries_peak", result.peak},
                        {"latency_ms", latency_json(result.latency)},
                        {"waiters_ms", latency_json(result.waiters)},
                        {"server", std::move(server)},
                        {"commands", result.library.commands},
                        {"wall_ms", result.wall_ms},
                        {"expiry_ms", result.expiry_ms},
                        {"first_query_ms", result.asked_ms},
                        {"first_loaded_ms", result.loaded_ms},
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
                {"source", {{"rows", Catalogue::rows}, {"categories", Catalogue::categories}}},
                {"every_promise_kept", all_kept(results)},
                {"strategies", runs}};
    out << report.dump(2) << std::endl;
}

} // namespace stampede
