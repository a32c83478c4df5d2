// SPDX-License-Identifier: MIT
#include "fleet.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <iostream>
#include <memory>
#include <thread>

#include "arrivals.hpp"
#include "handles.hpp"
#include "tally.hpp"
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
//
// A caller is a number, the tag of its fetch. The fill of the load that began with it has the same
// number and one bit more.

namespace stampede {
namespace {

using namespace std::chrono_literals;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr std::size_t reader_count = 2;
constexpr int hot_category = 7;
constexpr std::string_view key = "category:7";
// Fifty nodes on a few cores: a thread that waits for its turn is not a store that is down.
constexpr const char* client_options = R"({"command_timeout": "5s"})";
constexpr std::uint64_t fill_tag = std::uint64_t{1} << 63;
constexpr auto head_start = 100ms;  // from the put to the first arrival
constexpr auto burst_after = 20ms;  // from the expiry to a burst
constexpr auto patience = 30s;      // beyond window and load, before a caller counts as lost
constexpr auto rest = 500us;        // between two batches, of the driver and of each reader
constexpr auto surely_after = 10ms; // this long after the expiry everybody sees it

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
          tally_(draw_arrivals(options.requests_for(strategy), static_cast<double>(options.window_ms), options.nodes,
                               options.seed)) {
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
        result.requests = tally_.arrivals().size();
        result.wall_ms = tally_.since_start_ms();
        result.expiry_ms = Milliseconds(expiry_ - start_).count();
        result.library = stats();
        result.asked_after_expiry =
            std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.asked_ms >= 0; });
        result.every_node_asked = every_node_asked();
        forget();
        close(); // an answer that comes only now is one too many, or an error
        result.leases = leases_;
        result.refreshes = refreshes_;
        result.revoked = revoked_;
        count_queries(result);
        tally_.into(result);
        return result;
    }

  private:
    // --- Opening and closing --------------------------------------------------------------------

    void open() {
        make(control_);
        for (Queue& queue : queues_) make(queue);
        std::string url = options_.store;
        std::string name = "stampede-" + std::string(strategy_.name);
        if (url.empty()) url = "memory://stampede-" + std::to_string(getpid()) + "-" + name;
        std::string policy = policy_json();
        nodes_.resize(options_.nodes);
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            Node& node = nodes_[i];
            node.queue = queues_[i % queues_.size()].get();
            check("the store cannot be opened", [&](stn_error** err) {
                stn_client* client = nullptr;
                int32_t status = stn_client_open(url.c_str(), client_options, &client, err);
                node.client.reset(client);
                return status;
            });
            check("the cache cannot be opened", [&](stn_error** err) {
                stn_cache* cache = nullptr;
                int32_t status =
                    stn_cache_open(node.client.get(), name.data(), name.size(), policy.c_str(), &cache, err);
                node.cache.reset(cache);
                return status;
            });
        }
        for (Node& node : nodes_) {
            check("the store is not ready",
                  [&](stn_error** err) { return stn_client_ready(node.client.get(), 5'000, control_.get(), 0, err); });
        }
        for (std::size_t i = 0; i < nodes_.size(); ++i) await("the store is not ready");
    }

    static void make(Queue& queue) {
        check("there is no queue", [&](stn_error** err) {
            stn_queue* made = nullptr;
            int32_t status = stn_queue_new(0, &made, err);
            queue.reset(made);
            return status;
        });
    }

    // No jitter: the worst case is the subject here, one key gone at one moment. What a load
    // writes outlives the run; the value that expires is put with a ttl of its own.
    std::string policy_json() const {
        auto flag = [](bool on) { return std::string(on ? "true" : "false"); };
        std::string json = R"({"codec": "json", "jitter": 0, "ttl": "1h")";
        if (strategy_.soft) json += R"(, "soft_ttl": "30m")";
        json += R"(, "coalesce": )" + flag(strategy_.coalesce);
        json += R"(, "fleet": )" + flag(strategy_.fleet);
        json += R"(, "wait_ms": )" + std::to_string(10'000 + 2 * options_.load_ms) + "}";
        return json;
    }

    // The next event of the control queue has to be DONE.
    void await(const char* what) {
        stn_event* raw = nullptr;
        check(what, [&](stn_error** err) { return stn_queue_next(control_.get(), 10'000, &raw, err); });
        Event event(raw);
        if (stn_event_kind(raw) != STN_EVENT_DONE) {
            throw Refused(std::string(what) + ": " + described(stn_event_status(raw), stn_event_error(raw)));
        }
    }

    // Puts the value so that it expires, or goes soft, in the middle of the window, or just before
    // a burst; again, should this machine have napped between the send and the answer. From then
    // on the source has another answer.
    void put() {
        std::string before = source_.peek(hot_category);
        std::chrono::milliseconds until = head_start + std::chrono::milliseconds(options_.window_ms / 2);
        // Soft expiry leaves far more than twice the load: the refresh has all the time it needs.
        std::chrono::milliseconds margin = 10s + 3 * std::chrono::milliseconds(options_.load_ms);
        std::int64_t ends_ms = until.count() + 1; // a store may count in whole ms: rather late than early
        std::int64_t ttl_ms = strategy_.soft ? ends_ms + margin.count() : ends_ms;
        std::int64_t soft_ttl_ms = strategy_.soft ? ends_ms : 0;
        for (int attempt = 1;; ++attempt) {
            Clock::time_point sent = Clock::now();
            check("the first value cannot be put", [&](stn_error** err) {
                return stn_cache_put(nodes_[0].cache.get(), nullptr, key.data(), key.size(), before.data(),
                                     before.size(), STN_CODEC_DEFAULT, ttl_ms, soft_ttl_ms, 5'000, control_.get(), 0,
                                     nullptr, err);
            });
            await("the first value cannot be put");
            expiry_ = sent + until;
            start_ = options_.burst() ? expiry_ + burst_after : sent + head_start;
            if (Clock::now() - sent < surely_after || attempt == 5) break;
        }
        source_.reprice(hot_category);
        tally_.begin(start_, before, source_.peek(hot_category));
    }

    // Leaves no key behind in a store that outlives this run. Its failure is not the subject.
    void forget() {
        stn_cache_invalidate(nodes_[0].cache.get(), key.data(), key.size(), 0, 1'000, control_.get(), 0, nullptr,
                             nullptr);
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
        const std::vector<Arrival>& arrivals = tally_.arrivals();
        for (std::size_t next = 0; next < arrivals.size();) {
            std::this_thread::sleep_until(std::max(start_ + to_clock(arrivals[next].at_ms), Clock::now() + rest));
            double now_ms = tally_.since_start_ms();
            while (next < arrivals.size() && arrivals[next].at_ms <= now_ms) submit(next++);
            if (progress) show();
        }
    }

    void submit(std::size_t caller) {
        Node& node = nodes_[tally_.arrivals()[caller].node];
        if (node.asked_ms < 0 && Clock::now() > expiry_ + surely_after) {
            node.asked_ms = tally_.since_start_ms();
        }
        stn_event* now = nullptr;
        stn_error* raw = nullptr;
        auto flags = static_cast<std::uint32_t>(strategy_.soft ? STN_FETCH_REFRESH : 0);
        int32_t status = stn_cache_fetch(node.cache.get(), nullptr, key.data(), key.size(), STN_DEFAULT_MS, flags,
                                         nullptr, node.queue, caller, nullptr, &now, &raw);
        Error error(raw);
        if (status != STN_OK) {
            tally_.error(caller, described(status, raw));
        } else if (now) {
            take(Event(now), node.queue);
        }
    }

    void wait(bool progress) {
        Clock::time_point limit = start_ + patience + std::chrono::milliseconds(options_.window_ms + options_.load_ms);
        while ((tally_.answered() < tally_.arrivals().size() || loads_open_ > 0) && Clock::now() < limit) {
            if (progress) show();
            std::this_thread::sleep_for(1ms);
        }
        if (progress) std::cerr << "\r\033[K" << std::flush;
    }

    void show() {
        Clock::time_point now = Clock::now();
        if (now - shown_ < 100ms) return;
        shown_ = now;
        std::cerr << "\r\033[K" << strategy_.title << ": " << with_commas(tally_.answered()) << " of "
                  << counted(tally_.arrivals().size(), "caller", "callers") << " answered, "
                  << counted(source_.queries(), "query", "queries") << std::flush;
    }

    // --- Events; on a reader, or inside submit --------------------------------------------------

    void read(stn_queue* queue) {
        std::array<stn_event*, 256> events{};
        for (;;) {
            std::size_t n = 0;
            int32_t status = stn_queue_drain(queue, events.size(), -1, events.data(), &n, nullptr);
            for (std::size_t i = 0; i < n; ++i) take(Event(events[i]), queue);
            if (n > 0 && n < events.size()) std::this_thread::sleep_for(rest);
            if (status != STN_OK && status != STN_TIMEOUT) return; // closed and empty
        }
    }

    void take(Event event, stn_queue* queue) {
        std::uint64_t tag = stn_event_tag(event.get());
        switch (stn_event_kind(event.get())) {
        case STN_EVENT_VALUE: value(event.get(), tag); break;
        case STN_EVENT_LEASE:
            ++leases_;
            load(event.get(), tag, queue, true);
            break;
        case STN_EVENT_REFRESH:
            ++refreshes_;
            load(event.get(), tag, queue, false);
            break;
        case STN_EVENT_FILLED: filled(stn_event_status(event.get())); break;
        case STN_EVENT_REVOKED: ++revoked_; break;
        case STN_EVENT_ABSENT: tally_.error(tag, "absent: nobody ever said so"); break;
        case STN_EVENT_ERROR: {
            std::string text = described(stn_event_status(event.get()), stn_event_error(event.get()));
            if (tag & fill_tag) {
                filled(stn_event_status(event.get()));
            } else {
                tally_.error(tag, std::move(text));
            }
            break;
        }
        default: break; // a kind of a later version, not ours to judge
        }
    }

    void value(const stn_event* event, std::uint64_t caller) {
        std::size_t n = 0;
        const void* bytes = stn_event_bytes(event, &n);
        std::uint32_t flags = stn_event_flags(event);
        tally_.value(caller, {static_cast<const char*>(bytes), n}, flags & STN_ANSWER_STALE,
                     (flags & STN_ANSWER_SOURCE_MASK) == STN_SOURCE_FLIGHT, strategy_.soft);
    }

    // Takes the lease and asks the source. A caller who got LEASE has its answer from itself; for
    // a REFRESH nobody waits.
    void load(stn_event* event, std::uint64_t caller, stn_queue* queue, bool waited_for) {
        std::shared_ptr<stn_lease> lease(stn_event_take_lease(event), stn_lease_free);
        if (!lease) {
            tally_.fault("an event without the lease that it announced");
            return;
        }
        ++loads_open_;
        source_.query(hot_category, [=, this](const std::string& answer) {
            if (first_load_ms_ < 0) first_load_ms_ = tally_.since_start_ms();
            if (waited_for) tally_.loaded_by_itself(caller, answer);
            stn_error* raw = nullptr;
            int32_t status =
                stn_lease_fulfil(lease.get(), answer.data(), answer.size(), STN_CODEC_DEFAULT, STN_DEFAULT_MS,
                                 STN_DEFAULT_MS, 0, queue, fill_tag | caller, nullptr, &raw);
            Error error(raw);
            if (status == STN_OK) return; // FILLED will follow
            tally_.fault("fulfil: " + described(status, raw));
            --loads_open_;
        });
    }

    void filled(int32_t status) {
        tally_.fill(status == STN_OK ? "stored" : stn_status_name(status));
        --loads_open_;
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

    // Did every node ask in the first half of the first load? Then each must have missed.
    bool every_node_asked() const {
        double limit_ms = first_load_ms_ - static_cast<double>(options_.load_ms) / 2;
        return std::all_of(nodes_.begin(), nodes_.end(),
                           [&](const Node& node) { return node.asked_ms >= 0 && node.asked_ms < limit_ms; });
    }

    void count_queries(Result& result) const {
        Source::Counts counts = source_.counts();
        result.queries = counts.queries;
        result.peak = counts.peak;
        std::vector<double> begun_ms;
        for (Clock::time_point begun : counts.begun) {
            begun_ms.push_back(Milliseconds(begun - start_).count());
        }
        result.bucket_ms = bucket_ms();
        result.timeline = tally_.timeline(result.bucket_ms, begun_ms);
    }

    // The same for all strategies: 20 ms (5 in a burst), wider where the run takes so long that
    // there would be more than 80.
    double bucket_ms() const {
        auto window_ms = static_cast<double>(options_.window_ms);
        double expected_ms = std::max(window_ms, window_ms / 2 + static_cast<double>(options_.load_ms));
        double finest_ms = options_.burst() ? 5 : 20;
        return finest_ms * std::max(1.0, std::ceil(expected_ms / 80 / finest_ms));
    }

    const Options& options_;
    const Strategy strategy_;
    Source& source_;
    Tally tally_;
    Clock::time_point start_;  // the first caller may arrive
    Clock::time_point expiry_; // of the value that was put
    Clock::time_point shown_;  // the last progress line; the driver's

    Queue control_; // the main thread's own, for put and the like
    std::array<Queue, reader_count> queues_;
    std::vector<Node> nodes_;
    std::vector<std::thread> readers_;

    std::atomic<std::uint64_t> leases_{0};
    std::atomic<std::uint64_t> refreshes_{0};
    std::atomic<std::uint64_t> revoked_{0};
    std::atomic<std::int64_t> loads_open_{0}; // asked, and not filled yet
    std::atomic<double> first_load_ms_{-1};   // when the first load was done
};

} // namespace

Result run(const Options& options, const Strategy& strategy, Source& source, bool progress) {
    Fleet fleet(options, strategy, source);
    return fleet.stampede(progress);
}

} // namespace stampede
