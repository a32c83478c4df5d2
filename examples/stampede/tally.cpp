// SPDX-License-Identifier: MIT
#include "tally.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace stampede {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

// By nearest rank: a latency that somebody really had.
double percentile(const std::vector<float>& sorted, double share) {
    if (sorted.empty()) return 0;
    double rank = std::ceil(share * static_cast<double>(sorted.size()));
    return static_cast<double>(sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1]);
}

} // namespace

Latency latency_of(std::vector<float> latencies_ms) {
    std::sort(latencies_ms.begin(), latencies_ms.end());
    return {latencies_ms.size(), percentile(latencies_ms, 0.5), percentile(latencies_ms, 0.99),
            percentile(latencies_ms, 1)};
}

Tally::Tally(std::vector<Arrival> arrivals) : arrivals_(std::move(arrivals)), callers_(arrivals_.size()) {}

void Tally::begin(Clock::time_point start, std::string before, std::string after) {
    start_ = start;
    before_ = std::move(before);
    after_ = std::move(after);
}

double Tally::since_start_ms() const {
    return Milliseconds(Clock::now() - start_).count();
}

// The old value is what was there before the expiry: never the result of a load, and the only one
// that may be stale.
void Tally::value(std::uint64_t caller, std::string_view text, bool stale, bool loaded, bool may_be_stale) {
    bool old = text == before_;
    bool right = old ? !loaded && (!stale || may_be_stale) : text == after_ && !stale;
    if (!right) ++wrong_;
    if (old) ++old_;
    if (stale) ++stale_;
    if (loaded) ++loaded_;
    answered(caller);
}

void Tally::loaded_by_itself(std::uint64_t caller, std::string_view text) {
    value(caller, text, false, true, false);
}

void Tally::error(std::uint64_t caller, std::string text) {
    fault(std::move(text));
    answered(caller);
}

void Tally::fault(std::string text) {
    std::lock_guard lock(mutex_);
    ++errors_[std::move(text)];
}

void Tally::fill(std::string outcome) {
    std::lock_guard lock(mutex_);
    ++fills_[std::move(outcome)];
}

void Tally::answered(std::uint64_t number) {
    if (number >= callers_.size()) return fault("an answer for a caller who does not exist");
    Caller& caller = callers_[number];
    if (caller.answers.fetch_add(1) != 0) {
        ++repeated_;
        return;
    }
    caller.latency_ms = static_cast<float>(since_start_ms() - arrivals_[number].at_ms);
    ++answered_;
}

void Tally::into(Result& result) const {
    result.answered = answered_;
    result.repeated = repeated_;
    result.wrong = wrong_;
    result.old_answers = old_;
    result.stale_answers = stale_;
    result.from_load = loaded_;
    {
        std::lock_guard lock(mutex_);
        result.errors = errors_;
        result.fills = fills_;
    }
    result.latency = latency(-1, std::numeric_limits<double>::infinity());
}

Latency Tally::latency(double from_ms, double to_ms) const {
    std::vector<float> latencies;
    for (std::size_t i = 0; i < callers_.size(); ++i) {
        bool due = arrivals_[i].at_ms >= from_ms && arrivals_[i].at_ms < to_ms;
        if (due && callers_[i].answers > 0) latencies.push_back(callers_[i].latency_ms);
    }
    return latency_of(std::move(latencies));
}

nlohmann::json Tally::told() const {
    std::lock_guard lock(mutex_);
    nlohmann::json answers = nlohmann::json::array();
    nlohmann::json latencies = nlohmann::json::array();
    for (const Caller& caller : callers_) {
        answers.push_back(caller.answers.load());
        latencies.push_back(caller.latency_ms);
    }
    return {{"answered", answered_.load()},
            {"repeated", repeated_.load()},
            {"wrong", wrong_.load()},
            {"old", old_.load()},
            {"stale", stale_.load()},
            {"loaded", loaded_.load()},
            {"errors", errors_},
            {"fills", fills_},
            {"answers", std::move(answers)},
            {"latencies", std::move(latencies)}};
}

void Tally::hear(const nlohmann::json& told, const std::vector<std::size_t>& numbers) {
    std::lock_guard lock(mutex_);
    answered_ += told.at("answered").get<std::uint64_t>();
    repeated_ += told.at("repeated").get<std::uint64_t>();
    wrong_ += told.at("wrong").get<std::uint64_t>();
    old_ += told.at("old").get<std::uint64_t>();
    stale_ += told.at("stale").get<std::uint64_t>();
    loaded_ += told.at("loaded").get<std::uint64_t>();
    for (const auto& [text, count] : told.at("errors").items()) errors_[text] += count.get<std::uint64_t>();
    for (const auto& [text, count] : told.at("fills").items()) fills_[text] += count.get<std::uint64_t>();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        callers_[numbers[i]].answers += told.at("answers").at(i).get<std::uint32_t>();
        callers_[numbers[i]].latency_ms = told.at("latencies").at(i).get<float>();
    }
}

std::vector<Bucket> Tally::timeline(double bucket_ms, const std::vector<double>& queries_ms) const {
    constexpr std::size_t most = 1'000;
    double end_ms = arrivals_.empty() ? 0 : arrivals_.back().at_ms;
    for (std::size_t i = 0; i < callers_.size(); ++i) {
        double answered_ms = arrivals_[i].at_ms + static_cast<double>(callers_[i].latency_ms);
        end_ms = std::max(end_ms, answered_ms);
    }
    std::size_t count = std::min(static_cast<std::size_t>(end_ms / bucket_ms) + 1, most);
    auto bucket = [&](double ms) {
        return std::min(static_cast<std::size_t>(std::max(ms, 0.0) / bucket_ms), count - 1);
    };

    std::vector<Bucket> buckets(count);
    std::vector<std::vector<float>> latencies(count);
    std::vector<std::int64_t> change(count); // in the number of callers who wait
    for (std::size_t i = 0; i < callers_.size(); ++i) {
        std::size_t arrived = bucket(arrivals_[i].at_ms);
        ++change[arrived];
        if (callers_[i].answers == 0) continue;
        double latency_ms = static_cast<double>(callers_[i].latency_ms);
        --change[bucket(arrivals_[i].at_ms + latency_ms)];
        latencies[arrived].push_back(callers_[i].latency_ms);
    }
    for (double ms : queries_ms) ++buckets[bucket(ms)].queries;
    std::int64_t waiting = 0;
    for (std::size_t i = 0; i < count; ++i) {
        std::sort(latencies[i].begin(), latencies[i].end());
        waiting += change[i];
        buckets[i].from_ms = bucket_ms * static_cast<double>(i);
        buckets[i].arrivals = latencies[i].size();
        buckets[i].waiting = static_cast<std::uint64_t>(waiting);
        buckets[i].p50_ms = percentile(latencies[i], 0.5);
        buckets[i].max_ms = percentile(latencies[i], 1);
    }
    return buckets;
}

} // namespace stampede
