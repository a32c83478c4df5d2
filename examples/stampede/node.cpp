// SPDX-License-Identifier: MIT
#include "node.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <map>
#include <thread>
#include <utility>

#include "callers.hpp"
#include "channel.hpp"
#include "opening.hpp"

// One node of a fleet: a process with a client, a cache, a queue and its share of the callers, written as a
// program with an event loop would be. Two threads: this one, which sleeps on the queue's descriptor and the way
// to the coordinator, and the client's own. It lets in the callers of the last few milliseconds together, who
// have waited for it since they were due: where fifty processes share a few cores, waking threads is most of the
// work.
//
// The source is far: a query goes to the coordinator, and its answer comes back.

namespace stampede {
namespace {

using namespace std::chrono_literals;

constexpr auto rest = 3ms;

Clock::time_point at_ns(std::int64_t ns) {
    return Clock::time_point(std::chrono::nanoseconds(ns));
}

std::int64_t ns_of(Clock::time_point at) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
}

double cpu_ms() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    auto ms = [](timeval t) { return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3; };
    return ms(used.ru_utime) + ms(used.ru_stime);
}

// Until one is readable, or that moment.
void sleep_on(std::array<int, 2> fds, Clock::time_point until) {
    std::array<pollfd, 2> polled{{{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}}};
    if (until == Clock::time_point::max()) {
        ::ppoll(polled.data(), polled.size(), nullptr, nullptr);
        return;
    }
    std::int64_t ns = std::max<std::int64_t>(0, ns_of(until) - ns_of(Clock::now()));
    timespec left{ns / 1'000'000'000, ns % 1'000'000'000};
    ::ppoll(polled.data(), polled.size(), &left, nullptr);
}

int fd_of(const Queue& queue) {
    std::int32_t fd = -1;
    check("the queue has no descriptor", [&](stn_error** err) { return stn_queue_fd(queue.get(), &fd, err); });
    return fd;
}

class Node {
  public:
    void run() {
        open(await());
        while (!closed_) {
            sleep_on({up_.fd(), queue_fd_}, next_round());
            if (!up_.listen()) return; // there is no coordinator any more
            while (auto message = up_.next()) hear(*message);
            if (closed_ || !callers_) continue;
            submit();
            take();
            if (started_ && !told_ && callers_->settled()) {
                told_ = true;
                up_.send({{"kind", "done"}});
            }
        }
    }

    void complain(const std::string& why) { up_.send({{"kind", "failed"}, {"why", why}}); }

  private:
    Message await() {
        for (;;) {
            if (auto message = up_.next()) return *message;
            sleep_on({up_.fd(), -1}, Clock::time_point::max());
            if (!up_.listen()) throw Refused("there is no coordinator");
        }
    }

    void open(const Message& setup) {
        std::vector<Arrival> arrivals;
        for (double at_ms : setup.at("arrivals")) arrivals.push_back({at_ms, 0});
        std::string name = setup.at("strategy");
        const auto* strategy = std::find_if(strategies.begin(), strategies.end(),
                                            [&](const Strategy& known) { return known.name == name; });
        control_ = make_queue();
        queue_ = make_queue();
        queue_fd_ = fd_of(queue_);
        client_ = open_client(setup.at("store"), setup.at("client"));
        cache_ = open_cache(client_.get(), setup.at("cache"), setup.at("policy"));
        callers_.emplace(std::move(arrivals), *strategy, [this](Callers::Done done) {
            std::uint64_t id = ++asked_;
            waiting_.emplace(id, std::move(done));
            up_.send({{"kind", "query"}, {"id", id}});
        });
        check("the store is not ready",
              [&](stn_error** err) { return stn_client_ready(client_.get(), 20'000, control_.get(), 0, err); });
        expect_done(control_.get(), "the store is not ready");
        up_.send({{"kind", "ready"}});
    }

    // --- What the coordinator says ---------------------------------------------------------------

    void hear(const Message& message) {
        std::string kind = message.at("kind");
        if (kind == "answer") {
            auto waiting = waiting_.extract(message.at("id").get<std::uint64_t>());
            if (!waiting.empty()) waiting.mapped()(message.at("text"));
        } else if (kind == "put") {
            FirstValue value{{}, message.at("ttl_ms"), message.at("soft_ttl_ms")};
            Clock::time_point sent = Clock::now();
            put_first(cache_.get(), message.at("text"), value, control_.get());
            expect_done(control_.get(), "the first value cannot be put");
            up_.send({{"kind", "put"}, {"sent_ns", ns_of(sent)}, {"took_ns", ns_of(Clock::now()) - ns_of(sent)}});
        } else if (kind == "start") {
            start_ = at_ns(message.at("start_ns"));
            surely_expired_ = at_ns(message.at("expiry_ns")) + surely_after;
            callers_->tally().begin(start_, message.at("before"), message.at("after"));
            before_ = stats();
            cpu_before_ms_ = cpu_ms();
            started_ = true;
            up_.send({{"kind", "armed"}});
        } else if (kind == "stats") {
            tell_stats();
        } else if (kind == "empty") {
            empty_events(message.at("count"), at_ns(message.at("at_ns")));
        } else if (kind == "close") {
            close();
        }
    }

    stn_stats stats() const {
        stn_stats now{};
        check("there are no stats",
              [&](stn_error** err) { return stn_client_stats(client_.get(), &now, sizeof now, err); });
        return now;
    }

    void tell_stats() {
        stn_stats now = stats();
        Message since = Message::object();
#define STAMPEDE_SINCE(name, doc) since[#name] = now.name - before_.name;
        STN_STATS_MAP(STAMPEDE_SINCE)
#undef STAMPEDE_SINCE
        up_.send({{"kind", "stats"},
                  {"since", std::move(since)},
                  {"settled", callers_->settled()},
                  {"cpu_ms", cpu_ms() - cpu_before_ms_}});
    }

    // An answer that comes only now is one too many, or an error: so the tally is told last.
    void close() {
        stn_client_close(client_.get(), 1'000, nullptr);
        stn_queue_close(queue_.get(), nullptr);
        take();
        up_.send({{"kind", "closed"},
                  {"told", callers_->tally().told()},
                  {"leases", callers_->leases()},
                  {"refreshes", callers_->refreshes()},
                  {"revoked", callers_->revoked()},
                  {"first_load_ms", callers_->first_load_ms()},
                  {"asked_ms", asked_ms_}});
        closed_ = true;
    }

    // --- A round ---------------------------------------------------------------------------------

    bool more_to_come() const { return started_ && next_ < callers_->arrivals().size(); }

    Clock::time_point next_arrival() const {
        if (!more_to_come()) return Clock::time_point::max();
        std::chrono::duration<double, std::milli> at(callers_->arrivals()[next_].at_ms);
        return start_ + std::chrono::duration_cast<Clock::duration>(at);
    }

    Clock::time_point next_round() const {
        return more_to_come() ? std::max(next_arrival(), submitted_ + rest) : Clock::time_point::max();
    }

    void submit() {
        Clock::time_point now = Clock::now();
        if (now < next_round()) return;
        submitted_ = now;
        double now_ms = callers_->tally().since_start_ms();
        if (asked_ms_ < 0 && now > surely_expired_) asked_ms_ = now_ms;
        while (more_to_come() && callers_->arrivals()[next_].at_ms <= now_ms) {
            callers_->submit(next_++, cache_.get(), queue_.get());
        }
    }

    void take() {
        for (std::size_t n = 1; n > 0;) callers_->drain(queue_.get(), 0, n);
    }

    // --- What a crowd costs without a store ------------------------------------------------------

    // So many callers join one flight; at a moment that all nodes share it is finished, and each gets an event
    // without anything in it. Told is how long after that moment each event was taken.
    void empty_events(std::uint64_t count, Clock::time_point at) {
        Queue queue = make_queue();
        int fd = fd_of(queue);
        stn_group* made = nullptr;
        check("there is no group", [&](stn_error** err) { return stn_group_new(nullptr, nullptr, &made, err); });
        std::unique_ptr<stn_group, FreedBy<stn_group_free>> group(made);
        std::unique_ptr<stn_flight, FreedBy<stn_flight_free>> flight;
        for (std::uint64_t i = 0; i <= count; ++i) {
            stn_flight* lead = nullptr;
            check("the flight cannot be joined", [&](stn_error** err) {
                return stn_group_join(group.get(), "k", 1, -1, nullptr, queue.get(), i, nullptr, &lead, err);
            });
            if (lead) flight.reset(lead);
        }
        std::this_thread::sleep_until(at);
        stn_flight_finish(flight.get(), STN_OK, nullptr, 0, 0, nullptr, nullptr);
        std::vector<float> taken_ms;
        std::array<stn_event*, Callers::batch> events{};
        while (taken_ms.size() < count && Clock::now() < at + 20s) {
            sleep_on({up_.fd(), fd}, at + 20s);
            for (std::size_t n = 1; n > 0;) {
                stn_queue_drain(queue.get(), events.size(), 0, events.data(), &n, nullptr);
                for (std::size_t i = 0; i < n; ++i) {
                    Event event(events[i]);
                    if (stn_event_kind(event.get()) != STN_EVENT_VALUE) continue;
                    taken_ms.push_back(std::chrono::duration<float, std::milli>(Clock::now() - at).count());
                }
            }
        }
        up_.send({{"kind", "emptied"}, {"taken_ms", taken_ms}});
    }

    Channel up_{node_fd};
    Client client_;
    Cache cache_;
    Queue control_; // for what is waited for
    Queue queue_;
    int queue_fd_ = -1;
    std::optional<Callers> callers_;
    std::map<std::uint64_t, Callers::Done> waiting_; // for the source
    std::uint64_t asked_ = 0;

    Clock::time_point start_;
    Clock::time_point submitted_;
    Clock::time_point surely_expired_;
    stn_stats before_{};
    double cpu_before_ms_ = 0;
    double asked_ms_ = -1; // when it first asked after the expiry
    std::size_t next_ = 0; // caller
    bool started_ = false;
    bool told_ = false; // that every caller has its answer
    bool closed_ = false;
};

} // namespace

int run_node() {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Node node;
    try {
        node.run();
        return 0;
    } catch (const std::exception& error) {
        node.complain(error.what());
        return 1;
    }
}

} // namespace stampede
