// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "arrivals.hpp"
#include "result.hpp"
#include "source.hpp"

namespace stampede {

Latency latency_of(std::vector<float> latencies_ms);

// What each caller got, and when. A caller is a number; its slot is written by whoever brings the
// answer, and read when all threads are at rest. A caller's latency counts from the moment it was
// due to arrive, so a driver that falls behind would show, not hide.
class Tally {
  public:
    explicit Tally(std::vector<Arrival> arrivals);

    // Before the first caller: time zero, and the value from before and from after the expiry.
    void begin(Clock::time_point start, std::string before, std::string after);

    // Any thread.
    void value(std::uint64_t caller, std::string_view text, bool stale, bool loaded, bool may_be_stale);
    void loaded_by_itself(std::uint64_t caller, std::string_view text);
    void error(std::uint64_t caller, std::string text); // this caller's answer is an error
    void fault(std::string text);                       // not as promised, and nobody's answer
    void fill(std::string outcome);

    const std::vector<Arrival>& arrivals() const { return arrivals_; }
    std::uint64_t answered() const { return answered_; }
    double since_start_ms() const;

    // At rest: what one process knows of its callers, for the process that has all of them. `numbers`: which
    // of its callers they are. Throws nlohmann::json::exception if `told` is not what another Tally told.
    nlohmann::json told() const;
    void hear(const nlohmann::json& told, const std::vector<std::size_t>& numbers);
    // At rest: of the callers who were due in this time and have an answer.
    Latency latency(double from_ms, double to_ms) const;
    // At rest: everything a Result holds about callers.
    void into(Result& result) const;
    // At rest: the run in buckets of time, for the chart.
    std::vector<Bucket> timeline(double bucket_ms, const std::vector<double>& queries_ms) const;

  private:
    struct Caller {
        std::atomic<std::uint32_t> answers{0};
        float latency_ms = 0;
    };

    void answered(std::uint64_t caller);

    const std::vector<Arrival> arrivals_;
    std::vector<Caller> callers_;
    Clock::time_point start_; // these three from begin() on
    std::string before_;
    std::string after_;

    std::atomic<std::uint64_t> answered_{0};
    std::atomic<std::uint64_t> repeated_{0};
    std::atomic<std::uint64_t> wrong_{0};
    std::atomic<std::uint64_t> old_{0};
    std::atomic<std::uint64_t> stale_{0};
    std::atomic<std::uint64_t> loaded_{0};

    mutable std::mutex mutex_;
    std::map<std::string, std::uint64_t> errors_; // mutex_
    std::map<std::string, std::uint64_t> fills_;  // mutex_
};

} // namespace stampede
