// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <stanchion/stanchion.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iostream>
#include <numeric>

#include "text.hpp"

namespace stampede {
namespace {

constexpr std::string_view help = R"(stampede: what happens to a database when a hot key expires

  stampede [options]

A fleet of nodes serves one cached answer out of an SQLite database. The cached answer expires in
the middle of the run. Each strategy is the same program with other switches; for each the source
itself counts the queries that reach it.

  --store URL       the store the nodes share; default: an embedded one, made for this run;
                    memory://name names it. With redis://, rediss:// or unix:// each node is a
                    process of its own, and the server's own counts are held against the library's
  --ca FILE         rediss://: whom to trust (what the system trusts)
  --nodes N         clients, each a node of its own with its own cache; 1 to 500 (50)
  --requests N      callers in all, spread over the nodes; 1 to 10000000 (100000)
  --load-ms N       how long one query takes; 1 to 30000 (300)
  --arrive HOW      a duration from 100ms to 60s: callers arrive at random over it, and the key
                    expires at half time; spread is 1s; or burst: all at one moment, just after
                    the expiry (1s)
  --strategy NAMES  all, or some of these, with commas (all)
                      none     each caller for itself: no single-flight, no lease
                      lease    a lease for the fleet, but no single-flight in a node
                      flight   single-flight in each node, but no lease
                      both     single-flight and lease
                      soft     both, and the value goes soft before it is gone
  --none-cap N      at most so many callers for none, which would bring down the source, and this
                    program with it; 0 = no cap (2000)
  --lease-cap N     at most so many callers for lease, where each polls the store for itself;
                    0 = no cap (20000)
  --runs N          all of it so many times, with a summary; 1 to 1000 (1)
  --seed N          the arrivals are drawn from this number (1)
  --json            print one JSON object in place of the table
  --svg FILE        draw the run, or the last one, as a chart
  --help, --version

Exit status: 0 every promise was kept; 1 one was broken; 2 the command line is wrong; 3 it could
not be run (the store, or a file). Latency is printed, never judged.
)";

constexpr std::array<std::string_view, 15> names{"--store",     "--ca",     "--runs",     "--nodes",    "--requests",
                                                 "--load-ms",   "--arrive", "--strategy", "--none-cap", "--seed",
                                                 "--lease-cap", "--json",   "--svg",      "--help",     "--version"};

// Levenshtein.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = i;
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row.back();
}

[[noreturn]] void unknown(std::string_view name) {
    std::string text = "there is no option " + std::string(name) + ".";
    const auto* nearest =
        std::min_element(names.begin(), names.end(), [&](std::string_view one, std::string_view other) {
            return distance(name, one) < distance(name, other);
        });
    if (distance(name, *nearest) <= 3) text += " Did you mean " + std::string(*nearest) + "?";
    text += " The options are";
    for (std::string_view known : names) text += " " + std::string(known);
    throw BadOption(text);
}

std::uint64_t number(const std::string& name, const std::string& text, std::uint64_t low, std::uint64_t high) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    auto [stopped, failed] = std::from_chars(text.data(), end, value);
    if (failed != std::errc{} || stopped != end || value < low || value > high) {
        throw BadOption(name + " takes a whole number from " + std::to_string(low) + " to " + std::to_string(high) +
                        ", not '" + text + "'");
    }
    return value;
}

std::uint64_t window(const std::string& text) {
    if (text == "burst") return 0;
    if (text == "spread") return 1'000;
    std::int64_t ms = 0;
    if (stn_duration_parse(text.c_str(), &ms, nullptr) != STN_OK || ms < 100 || ms > 60'000) {
        throw BadOption("--arrive takes a duration from 100ms to 60s, such as 1s, or burst, not '" + text + "'");
    }
    return static_cast<std::uint64_t>(ms);
}

std::vector<Strategy> chosen(const std::string& text) {
    if (text == "all") return {strategies.begin(), strategies.end()};
    std::vector<Strategy> found;
    for (std::size_t start = 0; start <= text.size();) {
        std::size_t comma = std::min(text.find(',', start), text.size());
        std::string_view word = std::string_view(text).substr(start, comma - start);
        const auto* known = std::find_if(strategies.begin(), strategies.end(),
                                         [&](const Strategy& strategy) { return strategy.name == word; });
        if (known == strategies.end()) {
            throw BadOption("there is no strategy '" + std::string(word) +
                            "'. The strategies are none lease flight both soft, or all");
        }
        found.push_back(*known);
        start = comma + 1;
    }
    return found;
}

// The nodes have to share a store, and live in real time.
std::string store(const std::string& url) {
    if (url == "memory://") return "";
    if (url.starts_with("memory://") && url.find("clock=manual") != std::string::npos) {
        throw BadOption("--store: the stampede runs in real time, a manual clock would stand still");
    }
    return url;
}

} // namespace

std::string Options::window() const {
    bool whole = window_ms % 1'000 == 0;
    return std::to_string(whole ? window_ms / 1'000 : window_ms) + (whole ? " s" : " ms");
}

// 20 ms (5 in a burst), wider where the run takes so long that there would be more than 80.
double Options::bucket_ms() const {
    auto whole_ms = static_cast<double>(window_ms);
    double expected_ms = std::max(whole_ms, whole_ms / 2 + static_cast<double>(load_ms));
    double finest_ms = burst() ? 5 : 20;
    return finest_ms * std::max(1.0, std::ceil(expected_ms / 80 / finest_ms));
}

bool Options::processes() const {
    return store.starts_with("redis://") || store.starts_with("rediss://") || store.starts_with("unix://");
}

std::uint64_t Options::requests_for(const Strategy& strategy) const {
    std::uint64_t cap = strategy.cap == Strategy::Cap::bare    ? none_cap
                        : strategy.cap == Strategy::Cap::lease ? lease_cap
                                                               : 0;
    return cap == 0 ? requests : std::min(cap, requests);
}

std::optional<Options> parse(const std::vector<std::string>& words) {
    Options options;
    for (std::size_t i = 0; i < words.size(); ++i) {
        std::size_t equals = words[i].starts_with("--") ? words[i].find('=') : std::string::npos;
        bool attached = equals != std::string::npos;
        std::string name = words[i].substr(0, equals);
        auto value = [&] {
            if (attached) return words[i].substr(equals + 1);
            if (i + 1 == words.size()) throw BadOption(name + " needs a value; see --help");
            return words[++i];
        };
        auto no_value = [&] {
            if (attached) throw BadOption(name + " takes no value");
        };
        if (name == "--store") {
            options.store = store(value());
        } else if (name == "--ca") {
            options.ca = value();
        } else if (name == "--runs") {
            options.runs = number(name, value(), 1, 1'000);
        } else if (name == "--nodes") {
            options.nodes = number(name, value(), 1, 500);
        } else if (name == "--requests") {
            options.requests = number(name, value(), 1, 10'000'000);
        } else if (name == "--load-ms") {
            options.load_ms = number(name, value(), 1, 30'000);
        } else if (name == "--arrive") {
            options.window_ms = window(value());
        } else if (name == "--strategy") {
            options.chosen = chosen(value());
        } else if (name == "--none-cap") {
            options.none_cap = number(name, value(), 0, 10'000'000);
        } else if (name == "--lease-cap") {
            options.lease_cap = number(name, value(), 0, 10'000'000);
        } else if (name == "--seed") {
            options.seed = number(name, value(), 0, UINT64_MAX);
        } else if (name == "--svg") {
            options.svg = value();
            if (options.svg.empty()) throw BadOption("--svg takes the name of a file");
        } else if (name == "--json") {
            no_value();
            options.json = true;
        } else if (name == "--help" || name == "-h") {
            no_value();
            std::cout << help;
            return std::nullopt;
        } else if (name == "--version") {
            no_value();
            std::cout << "stampede, with stanchion " << stn_version_string() << "\n";
            return std::nullopt;
        } else {
            unknown(name);
        }
    }
    return options;
}

} // namespace stampede
