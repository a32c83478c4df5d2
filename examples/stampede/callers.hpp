// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "handles.hpp"
#include "strategy.hpp"
#include "tally.hpp"

namespace stampede {

// What a program does that has callers and a cache: submits a fetch for each caller, and takes what the queues
// give: VALUE is checked and timed, LEASE and REFRESH start a query at the source, whose answer fulfils the
// lease and so goes to everybody who joined.
//
// A caller is a number, the tag of its fetch. The fill of the load that began with it has the same number and
// one bit more. Any thread.
class Callers {
  public:
    using Done = std::function<void(const std::string& answer)>;
    using Source = std::function<void(Done done)>; // begins a query of the hot category

    Callers(std::vector<Arrival> arrivals, const Strategy& strategy, Source source);

    Tally& tally() { return tally_; }
    const Tally& tally() const { return tally_; }
    const std::vector<Arrival>& arrivals() const { return tally_.arrivals(); }

    void submit(std::size_t caller, stn_cache* cache, stn_queue* queue);
    void take(Event event, stn_queue* queue);
    // What is in the queue now, at most; the number taken. Status as of stn_queue_drain.
    int32_t drain(stn_queue* queue, std::int64_t timeout_ms, std::size_t& taken);

    static constexpr std::size_t batch = 256; // of one drain

    bool settled() const { return tally_.answered() >= arrivals().size() && loads_open_ <= 0; }
    std::uint64_t leases() const { return leases_; }
    std::uint64_t refreshes() const { return refreshes_; }
    std::uint64_t revoked() const { return revoked_; }
    double first_load_ms() const { return first_load_ms_; } // when the first load was done; -1: none was

  private:
    void value(const stn_event* event, std::uint64_t caller);
    void load(stn_event* event, std::uint64_t caller, stn_queue* queue, bool waited_for);
    void filled(int32_t status);

    const Strategy strategy_;
    const Source source_;
    Tally tally_;
    std::atomic<std::uint64_t> leases_{0};
    std::atomic<std::uint64_t> refreshes_{0};
    std::atomic<std::uint64_t> revoked_{0};
    std::atomic<std::int64_t> loads_open_{0}; // asked, and not filled yet
    std::atomic<double> first_load_ms_{-1};
};

} // namespace stampede
