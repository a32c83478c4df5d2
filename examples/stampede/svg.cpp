// SPDX-License-Identifier: MIT
#include "svg.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>

#include "text.hpp"

namespace stampede {
namespace {

constexpr double width = 1000;
constexpr double top = 124; // of the first row's plots
constexpr double row_height = 104;
constexpr double plot_height = 72;
constexpr double queries_left = 282;
constexpr double callers_left = 662;
constexpr double plot_width = 310;

constexpr std::string_view style = R"(
  text { font-family: ui-sans-serif, system-ui, "Segoe UI", "DejaVu Sans", Arial, sans-serif; font-size: 12px; fill: #4b5563 }
  .paper { fill: #ffffff } .grid { stroke: #e5e7eb } .base { stroke: #9ca3af }
  .title { font-size: 20px; font-weight: 600; fill: #111827 } .name { font-size: 14px; font-weight: 600; fill: #111827 }
  .big { font-size: 30px; font-weight: 600; fill: #111827 } .unit { font-size: 13px; font-weight: 400 } .small { font-size: 11px; fill: #6b7280 }
  .bars { fill: #dc4c3e } .most { fill: #3b82f6; fill-opacity: 0.22 } .half { stroke: #2563eb; stroke-width: 2; fill: none }
  .expiry { stroke: #b45309; stroke-dasharray: 4 3 } .expires { font-size: 11px; fill: #b45309 }
  @media (prefers-color-scheme: dark) {
    text { fill: #c3c9d2 } .paper { fill: #14181f } .grid { stroke: #2b313b } .base { stroke: #6b7280 }
    .title, .name, .big { fill: #f3f4f6 } .small { fill: #9aa3af }
    .bars { fill: #f0705f } .most { fill: #60a5fa; fill-opacity: 0.25 } .half { stroke: #60a5fa }
    .expiry { stroke: #f59e0b } .expires { fill: #f59e0b }
  }
)";

std::string at(double number) {
    return fixed(number, 1);
}

std::string text(double x, double y, std::string_view kind, std::string_view words, std::string_view anchor = "start") {
    return "<text x=\"" + at(x) + "\" y=\"" + at(y) + "\" class=\"" + std::string(kind) + "\" text-anchor=\"" +
           std::string(anchor) + "\">" + std::string(words) + "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, std::string_view kind) {
    return "<line x1=\"" + at(x1) + "\" y1=\"" + at(y1) + "\" x2=\"" + at(x2) + "\" y2=\"" + at(y2) + "\" class=\"" +
           std::string(kind) + "\"/>\n";
}

// The smallest of these steps x 10^n that is not below.
double round_up(double number, std::initializer_list<double> steps) {
    double unit = std::pow(10, std::floor(std::log10(std::max(number, 1e-3))));
    for (double step : steps) {
        if (number <= step * unit * 1.0001) return step * unit;
    }
    return 10 * unit;
}

std::string short_number(double number) {
    if (number >= 1e6) return fixed(number / 1e6, number < 1e7 ? 1 : 0) + "M";
    if (number >= 1e4) return fixed(number / 1e3, 0) + "k";
    return with_commas(static_cast<std::uint64_t>(std::llround(number)));
}

// What all rows share.
class Chart {
  public:
    Chart(const Options& options, const std::vector<Result>& results) : options_(options), results_(results) {
        double most_queries = 1;
        double most_felt = 1;
        for (const Result& result : results) {
            for (const Bucket& bucket : result.timeline) {
                double end_ms = bucket.from_ms + result.bucket_ms;
                bool busy = bucket.arrivals > 0 || bucket.queries > 0 || bucket.waiting > 0;
                if (busy && (options.burst() || bucket.arrivals > 0)) {
                    span_ms_ = std::max(span_ms_, end_ms);
                }
                most_queries = std::max(most_queries, static_cast<double>(bucket.queries));
                most_felt = std::max(most_felt, felt(result, bucket));
            }
        }
        span_ms_ = std::max(span_ms_, static_cast<double>(options.window_ms));
        decades_ = std::max(1.0, std::ceil(std::log10(most_queries)));
        felt_top_ = round_up(most_felt, {1, 1.5, 2, 3, 4, 5, 6, 8});
    }

    std::string draw() const {
        double height = top + row_height * static_cast<double>(results_.size()) + 12;
        std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + at(width) + " " + at(height) +
                          "\" width=\"" + at(width) + "\" height=\"" + at(height) + "\" role=\"img\">\n<title>" +
                          title() + "</title>\n<style>" + std::string(style) +
                          "</style>\n<rect width=\"100%\" height=\"100%\" " + "rx=\"8\" class=\"paper\"/>\n";
        svg += text(28, 38, "title", title());
        svg += text(28, 60, "", subtitle());
        svg += text(queries_left, 90, "name", "queries reaching the source");
        svg += text(queries_left, 106, "small", "per " + short_number(bucket_ms()) + " ms, on a log scale");
        svg += text(callers_left, 90, "name", options_.burst() ? "callers still waiting" : "what callers wait");
        svg +=
            text(callers_left, 106, "small",
                 options_.burst() ? "share of those who came" : "by the moment of arrival: line median, area longest");
        for (std::size_t i = 0; i < results_.size(); ++i) {
            svg += row(results_[i], top + row_height * static_cast<double>(i));
        }
        svg += time_axis(queries_left, height - 26) + time_axis(callers_left, height - 26);
        return svg + "</svg>\n";
    }

  private:
    // What the area shows: the longest wait, or of a burst the share of callers who still wait.
    double felt(const Result& result, const Bucket& bucket) const {
        return options_.burst() ? 100 * static_cast<double>(bucket.waiting) / static_cast<double>(result.requests)
                                : bucket.max_ms;
    }
    double bucket_ms() const { return results_.empty() ? 20 : results_.front().bucket_ms; }

    std::string title() const {
        return "A hot key expires under " + counted(options_.requests, "caller", "callers") + " on " +
               counted(options_.nodes, "node", "nodes");
    }

    std::string subtitle() const {
        std::string words = "One query takes " + std::to_string(options_.load_ms) + " ms. Callers come ";
        words += options_.burst() ? "all at one moment, just after the expiry."
                                  : "at random over " + options_.window() + "; the key expires in the middle.";
        return words + " Stanchion " + stn_version_string() + ".";
    }

    double x(double left, double ms) const { return left + plot_width * std::clamp(ms / span_ms_, 0.0, 1.0); }
    // One query is one step above the ground, so that it can be seen.
    double query_y(double ground, double queries) const {
        if (queries < 1) return ground;
        return ground - plot_height * (std::log10(queries) + 0.4) / (decades_ + 0.4);
    }
    double felt_y(double ground, double value) const { return ground - plot_height * std::min(value / felt_top_, 1.0); }

    std::string row(const Result& result, double y) const {
        double ground = y + plot_height;
        std::string svg = label(result, y);
        for (int decade = 0; decade <= static_cast<int>(decades_); ++decade) {
            double count = std::pow(10, decade);
            double line_y = query_y(ground, count);
            svg += line(queries_left, line_y, queries_left + plot_width, line_y, "grid");
            svg += text(queries_left - 6, line_y + 4, "small", short_number(count), "end");
        }
        for (double share : {0.5, 1.0}) {
            double line_y = felt_y(ground, felt_top_ * share);
            svg += line(callers_left, line_y, callers_left + plot_width, line_y, "grid");
            svg += text(callers_left - 6, line_y + 4, "small",
                        short_number(felt_top_ * share) + (options_.burst() ? "%" : " ms"), "end");
        }
        svg += bars(result, ground);
        svg += area(result, ground);
        if (!options_.burst()) svg += median(result, ground);
        for (double left : {queries_left, callers_left}) {
            if (result.expiry_ms >= 0) {
                double expiry = x(left, result.expiry_ms);
                svg += line(expiry, y - 6, expiry, ground, "expiry");
                svg += text(expiry + 4, y + 2, "expires", result.strategy.soft ? "goes soft" : "expires");
            }
            svg += line(left, ground, left + plot_width, ground, "base");
        }
        return svg;
    }

    static std::string label(const Result& result, double y) {
        std::string queries = short_number(static_cast<double>(result.queries)) + "<tspan class=\"unit\" dx=\"7\">" +
                              (result.queries == 1 ? "query" : "queries") + "</tspan>";
        std::string latency = "p50 " + fixed(result.latency.p50_ms, 1) + " · p99 " + fixed(result.latency.p99_ms, 0) +
                              " · max " + fixed(result.latency.max_ms, 0) + " ms";
        std::string callers = result.requests < result.wanted
                                  ? "capped: " + counted(result.requests, "caller", "callers")
                                  : counted(result.library.commands, "command", "commands") + " to the store";
        return text(28, y + 8, "name", result.strategy.title) + text(28, y + 41, "big", queries) +
               text(28, y + 59, "small", latency) + text(28, y + 74, "small", callers);
    }

    std::string bars(const Result& result, double ground) const {
        std::string svg;
        for (const Bucket& bucket : result.timeline) {
            if (bucket.queries == 0) continue;
            double left = x(queries_left, bucket.from_ms);
            double right = x(queries_left, bucket.from_ms + result.bucket_ms);
            double bar_y = query_y(ground, static_cast<double>(bucket.queries));
            svg += "<rect x=\"" + at(left + 0.4) + "\" y=\"" + at(bar_y) + "\" width=\"" +
                   at(std::max(right - left - 0.8, 2.0)) + "\" height=\"" + at(ground - bar_y) +
                   "\" class=\"bars\"/>\n";
        }
        return svg;
    }

    using Value = std::function<double(const Bucket&)>;

    std::string points(const Result& result, double ground, const Value& value) const {
        std::string list;
        for (const Bucket& bucket : result.timeline) {
            if (!options_.burst() && bucket.arrivals == 0) continue;
            double middle = x(callers_left, bucket.from_ms + result.bucket_ms / 2);
            list += " " + at(middle) + "," + at(felt_y(ground, value(bucket)));
        }
        return list;
    }

    std::string area(const Result& result, double ground) const {
        if (result.timeline.empty()) return "";
        double first = x(callers_left, result.bucket_ms / 2);
        double last = x(callers_left, result.timeline.back().from_ms + result.bucket_ms / 2);
        return "<polygon points=\"" + at(first) + "," + at(ground) +
               points(result, ground, [&](const Bucket& bucket) { return felt(result, bucket); }) + " " + at(last) +
               "," + at(ground) + "\" class=\"most\"/>\n";
    }

    std::string median(const Result& result, double ground) const {
        return "<polyline points=\"" + points(result, ground, [](const Bucket& bucket) { return bucket.p50_ms; }) +
               "\" class=\"half\"/>\n";
    }

    std::string time_axis(double left, double y) const {
        double step = round_up(span_ms_ / 6, {1, 2, 5});
        std::string svg;
        for (double ms = 0; ms <= span_ms_ * 1.001; ms += step) {
            svg += text(x(left, ms), y, "small", short_number(ms) + (ms == 0 ? " ms" : ""), "middle");
        }
        return svg;
    }

    const Options& options_;
    const std::vector<Result>& results_;
    double span_ms_ = 1;
    double decades_ = 1;
    double felt_top_ = 1;
};

} // namespace

std::string chart(const Options& options, const std::vector<Result>& results) {
    return Chart(options, results).draw();
}

} // namespace stampede
