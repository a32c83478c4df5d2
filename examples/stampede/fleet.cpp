// SPDX-License-Identifier: MIT
#include "fleet.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <thread>
#include <utility>

#include "arrivals.hpp"
#include "callers.hpp"
#include "handles.hpp"
#include "opening.hpp"
#include "text.hpp"

// Who does what in here:
//
//   the main thread   submits each fetch at the moment its caller arrives (stn_cache_fetch does not
//                     block): all that are due, a short rest, all that are due
//   two readers       each drains one queue, which half of the nodes share: VALUE is checked and
//                     timed, LEASE and REFRESH start a query at the source. After each batch a
//                     reader rests too, so that one wake-up serves many events: where nodes,
//                     callers and source share two cores, waking threads is most of the work
//   the source        calls back when an answer is due: stn_lease_fulfil, which gives it to
//                     everybody who joined

namespace stampede {
namespace {

using namespace std::chrono_literals;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr std::size_t reader_count = 2;
// Fifty nodes on a few cores: a thread that waits for its turn is not a store that is down.
constexpr const char* client_options = R"({"command_timeout": "5s"})";
constexpr auto head_start = 100ms; // from the put to the first arrival
constexpr auto patience = 30s;     // beyond window and load, before a caller counts as lost
constexpr auto rest = 500us;       // between two batches, of the driver and of each reader

Clock::duration to_clock(double ms) {
    return std::chrono::duration_cast<Clock::duration>(Milliseconds(ms));
}

struct Node {
    Client client;
    Cache cache;
    stn_queue* queue = nullptr;
    double asked_ms = -1; // when it first asked after the expiry; the driver's
    stn_stats before{};   // its counters when the measured part began
};

class Fleet {
  public:
    Fleet(const Options& options, const Strategy& strategy, Source& source)
        : options_(options),
          strategy_(strategy),
          source_(source),
          callers_(draw_arrivals(options.requests_for(strategy), static_cast<double>(options.window_ms), options.nodes,
                                 options.seed),
                   strategy, [&source](Callers::Done done) { source.query(hot_category, std::move(done)); }) {
        open();
    }
    ~Fleet() { close(); }
    Fleet(const Fleet&) = delete;
    Fleet& operator=(const Fleet&) = delete;

    Result stampede(bool progress) {
        source_.reset();
        put();
        for (Node& node : nodes_) node.before = stats(node);
        for (const Queue& queue : queues_) {
            readers_.emplace_back([this, q = queue.get()] { read(q); });
        }
        drive(progress);
        wait(progress);

        Result result{};
        result.strategy = strategy_;
        result.nodes = options_.nodes;
        result.wanted = options_.requests;
        result.requests = callers_.arrivals().size();
        result.wall_ms = callers_.tally().since_start_ms();
        result.expiry_ms = Milliseconds(expiry_ - start_).count();
        result.library = stats();
        result.asked_after_expiry = asked_after_expiry();
        result.every_node_asked = every_node_asked();
        forget();
        close(); // an answer that comes only now is one too many, or an error
        result.leases = callers_.leases();
        result.refreshes = callers_.refreshes();
        result.revoked = callers_.revoked();
        count_queries(result);
        callers_.tally().into(result);
        result.waiters = callers_.tally().latency(result.expiry_ms, callers_.first_load_ms());
        return result;
    }

  private:
    // --- Opening and closing --------------------------------------------------------------------

    void open() {
        control_ = make_queue();
        for (Queue& queue : queues_) queue = make_queue();
        std::string url = options_.store;
        std::string name = "stampede-" + std::string(strategy_.name);
        if (url.empty()) url = "memory://stampede-" + std::to_string(getpid()) + "-" + name;
        std::string policy = policy_json(options_, strategy_);
        nodes_.resize(options_.nodes);
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            Node& node = nodes_[i];
            node.queue = queues_[i % queues_.size()].get();
            node.client = open_client(url, client_options);
            node.cache = open_cache(node.client.get(), name, policy);
        }
        for (Node& node : nodes_) {
            check("the store is not ready",
                  [&](stn_error** err) { return stn_client_ready(node.client.get(), 5'000, control_.get(), 0, err); });
        }
        for (std::size_t i = 0; i < nodes_.size(); ++i) expect_done(control_.get(), "the store is not ready");
    }

    // Puts the value so that it expires, or goes soft, in the middle of the window, or just before
    // a burst; again, should this machine have napped between the send and the answer. From then
    // on the source has another answer.
    void put() {
        std::string before = source_.peek(hot_category);
        FirstValue value = first_value(options_, strategy_, head_start);
        for (int attempt = 1;; ++attempt) {
            Clock::time_point sent = Clock::now();
            put_first(nodes_[0].cache.get(), before, value, control_.get());
            expect_done(control_.get(), "the first value cannot be put");
            expiry_ = sent + value.until;
            start_ = options_.burst() ? expiry_ + burst_after : sent + head_start;
            if (Clock::now() - sent < surely_after || attempt == 5) break;
        }
        source_.reprice(hot_category);
        callers_.tally().begin(start_, before, source_.peek(hot_category));
    }

    // Leaves no key behind in a store that outlives this run. Its failure is not the subject.
    void forget() {
        stn_cache_invalidate(nodes_[0].cache.get(), hot_key.data(), hot_key.size(), 0, 1'000, control_.get(), 0,
                             nullptr, nullptr);
        stn_event* event = nullptr;
        stn_queue_next(control_.get(), 1'500, &event, nullptr);
        stn_event_free(event);
    }

    void close() {
        source_.finish(); // it calls back into this object
        for (Node& node : nodes_) stn_client_close(node.client.get(), 1'000, nullptr);
        for (Queue& queue : queues_) stn_queue_close(queue.get(), nullptr);
        for (std::thread& reader : readers_) reader.join();
        readers_.clear();
        nodes_.clear();
    }

    // --- The driver -----------------------------------------------------------------------------

    void drive(bool progress) {
        const std::vector<Arrival>& arrivals = callers_.arrivals();
        for (std::size_t next = 0; next < arrivals.size();) {
            std::this_thread::sleep_until(std::max(start_ + to_clock(arrivals[next].at_ms), Clock::now() + rest));
            double now_ms = callers_.tally().since_start_ms();
            while (next < arrivals.size() && arrivals[next].at_ms <= now_ms) submit(next++);
            if (progress) show();
        }
    }

    void submit(std::size_t caller) {
        Node& node = nodes_[callers_.arrivals()[caller].node];
        if (node.asked_ms < 0 && Clock::now() > expiry_ + surely_after) {
            node.asked_ms = callers_.tally().since_start_ms();
        }
        callers_.submit(caller, node.cache.get(), node.queue);
    }

    void wait(bool progress) {
        Clock::time_point limit = start_ + patience + std::chrono::milliseconds(options_.window_ms + options_.load_ms);
        Clock::time_point refresh_limit = Clock::now() + 2s; // it begins when its callers have their answers already
        auto refresh_to_come = [&] {
            return strategy_.soft && asked_after_expiry() && callers_.refreshes() == 0 && Clock::now() < refresh_limit;
        };
        while ((!callers_.settled() || refresh_to_come()) && Clock::now() < limit) {
            if (progress) show();
            std::this_thread::sleep_for(1ms);
        }
        if (progress) std::cerr << "\r\033[K" << std::flush;
    }

    void show() {
        Clock::time_point now = Clock::now();
        if (now - shown_ < 100ms) return;
        shown_ = now;
        std::cerr << "\r\033[K" << strategy_.title << ": " << with_commas(callers_.tally().answered()) << " of "
                  << counted(callers_.arrivals().size(), "caller", "callers") << " answered, "
                  << counted(source_.queries(), "query", "queries") << std::flush;
    }

    // --- A reader -------------------------------------------------------------------------------

    void read(stn_queue* queue) {
        for (;;) {
            std::size_t n = 0;
            int32_t status = callers_.drain(queue, -1, n);
            if (n > 0 && n < Callers::batch) std::this_thread::sleep_for(rest);
            if (status != STN_OK && status != STN_TIMEOUT) return; // closed and empty
        }
    }

    // --- Counting -------------------------------------------------------------------------------

    static stn_stats stats(const Node& node) {
        stn_stats now{};
        check("there are no stats",
              [&](stn_error** err) { return stn_client_stats(node.client.get(), &now, sizeof now, err); });
        return now;
    }

    // The library's own counters over all nodes, since the measured part began.
    stn_stats stats() const {
        stn_stats sum{};
        for (const Node& node : nodes_) {
            stn_stats now = stats(node);
#define STAMPEDE_ADD(name, doc) sum.name += now.name - node.before.name;
            STN_STATS_MAP(STAMPEDE_ADD)
#undef STAMPEDE_ADD
        }
        return sum;
    }

    bool asked_after_expiry() const {
        return std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.asked_ms >= 0; });
    }

    // Did every node ask in the first half of the first load? Then each must have missed.
    bool every_node_asked() const {
        double limit_ms = callers_.first_load_ms() - static_cast<double>(options_.load_ms) / 2;
        return std::all_of(nodes_.begin(), nodes_.end(),
                           [&](const Node& node) { return node.asked_ms >= 0 && node.asked_ms < limit_ms; });
    }

    void count_queries(Result& result) const {
        Source::Counts counts = source_.counts();
        result.queries = counts.queries;
        result.executed = counts.executed;
        result.peak = counts.peak;
        std::vector<double> begun_ms;
        for (Clock::time_point begun : counts.begun) {
            begun_ms.push_back(Milliseconds(begun - start_).count());
        }
        result.loaded_ms = callers_.first_load_ms();
        if (!begun_ms.empty()) result.asked_ms = begun_ms.front();
        result.bucket_ms = options_.bucket_ms();
        result.timeline = callers_.tally().timeline(result.bucket_ms, begun_ms);
    }

    const Options& options_;
    const Strategy strategy_;
    Source& source_;
    Callers callers_;
    Clock::time_point start_;  // the first caller may arrive
    Clock::time_point expiry_; // of the value that was put
    Clock::time_point shown_;  // the last progress line; the driver's

    Queue control_; // the main thread's own, for put and the like
    std::array<Queue, reader_count> queues_;
    std::vector<Node> nodes_;
    std::vector<std::thread> readers_;
};

} // namespace

Result run(const Options& options, const Strategy& strategy, Source& source, bool progress) {
    Fleet fleet(options, strategy, source);
    return fleet.stampede(progress);
}

} // namespace stampede
