// SPDX-License-Identifier: MIT
#include "processes.hpp"

#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <random>
#include <stdexcept>
#include <thread>

#include "channel.hpp"
#include "node.hpp"
#include "opening.hpp"
#include "text.hpp"

// The coordinator: one process with one thread. It starts the nodes, lets one of them put the value that
// expires, names the moment at which all of them begin, answers queries as the one owner of the database, and
// then asks everybody for their counts: the nodes, the database, the server.

namespace stampede {
namespace {

using namespace std::chrono_literals;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr auto first_head_start = 400ms; // from the put to the first arrival: all nodes have to be told
constexpr auto last_head_start = 5s;
constexpr auto patience = 30s; // beyond window and load, before a caller counts as lost

// The moment to begin was over before every node knew it.
struct TooLate : std::runtime_error {
    using std::runtime_error::runtime_error;
};

std::int64_t ns_of(Clock::time_point at) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
}

std::string fresh_prefix() {
    constexpr std::string_view digits = "0123456789abcdef";
    std::random_device chance;
    std::string prefix = "stampede-";
    for (int i = 0; i < 16; ++i) prefix += digits[chance() % digits.size()];
    return prefix;
}

struct Child {
    pid_t pid;
    Channel channel;
    std::vector<std::size_t> numbers; // of its callers
    std::map<std::string, Message> said;
};

class Processes {
  public:
    Processes(const Options& options, const Strategy& strategy, Desk& desk, Server& server,
              std::chrono::milliseconds head_start)
        : options_(options),
          strategy_(strategy),
          desk_(desk),
          server_(server),
          head_start_(head_start),
          prefix_(fresh_prefix()),
          tally_(draw_arrivals(options.requests_for(strategy), static_cast<double>(options.window_ms), options.nodes,
                               options.seed)) {}
    ~Processes() {
        for (Child& child : children_) {
            ::kill(child.pid, SIGKILL);
            ::waitpid(child.pid, nullptr, 0);
        }
        if (cleaned_) return;
        try {
            server_.remove(prefix_);
        } catch (const Refused&) {
            // what is left has a TTL
        }
    }
    Processes(const Processes&) = delete;
    Processes& operator=(const Processes&) = delete;

    Result stampede(bool progress) {
        Result result{};
        OnServer on{};
        on.name = server_.name();
        on.alone = server_.alone();
        desk_.reset();
        open();
        begin(on);
        answer(progress);
        count(result, on);
        if (options_.burst()) on.empty_events = empty_events();
        on.keys = server_.keys(prefix_);
        close(result);
        on.keys.undeleted = server_.remove(prefix_);
        cleaned_ = true;
        result.server = std::move(on);
        return result;
    }

  private:
    // --- Nodes -----------------------------------------------------------------------------------

    void open() {
        std::vector<std::vector<std::size_t>> shares(options_.nodes);
        const std::vector<Arrival>& arrivals = tally_.arrivals();
        for (std::size_t i = 0; i < arrivals.size(); ++i) shares[arrivals[i].node].push_back(i);
        for (std::vector<std::size_t>& share : shares) spawn(std::move(share));
        for (Child& child : children_) {
            Message mine = Message::array();
            for (std::size_t number : child.numbers) mine.push_back(arrivals[number].at_ms);
            // Fifty processes on a few cores: one that waits for its turn is not a store that is down.
            Message client = {{"prefix", prefix_}, {"command_timeout", "5s"}, {"connect_timeout", "20s"}};
            if (!options_.ca.empty()) client["tls_ca_file"] = options_.ca;
            child.channel.send({{"store", options_.store},
                                {"client", client.dump()},
                                {"cache", std::string(strategy_.name)},
                                {"policy", policy_json(options_, strategy_)},
                                {"strategy", std::string(strategy_.name)},
                                {"arrivals", std::move(mine)}});
        }
        all("ready", 60s);
    }

    void spawn(std::vector<std::size_t> numbers) {
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
            throw std::runtime_error("there are no sockets left for so many nodes");
        }
        Channel ours(ends[0]);
        Channel theirs(ends[1]);
        posix_spawn_file_actions_t files;
        posix_spawn_file_actions_init(&files);
        posix_spawn_file_actions_adddup2(&files, theirs.fd(), node_fd);
        std::string program = "stampede";
        std::string word = node_word;
        char* words[] = {program.data(), word.data(), nullptr};
        pid_t pid = -1;
        int failed = ::posix_spawn(&pid, "/proc/self/exe", &files, nullptr, words, environ);
        posix_spawn_file_actions_destroy(&files);
        if (failed != 0) throw std::runtime_error("a node cannot be started");
        children_.push_back({pid, std::move(ours), std::move(numbers), {}});
    }

    void tell_all(const Message& message) {
        for (Child& child : children_) child.channel.send(message);
    }

    // Takes in what the nodes say and answers their queries, until that moment at most.
    void listen(Clock::time_point until) {
        std::vector<pollfd> polled;
        for (const Child& child : children_) polled.push_back({child.channel.fd(), POLLIN, 0});
        std::int64_t ns = std::max<std::int64_t>(0, ns_of(std::min(until, desk_.next_due())) - ns_of(Clock::now()));
        timespec left{ns / 1'000'000'000, ns % 1'000'000'000};
        ::ppoll(polled.data(), polled.size(), &left, nullptr);
        serve();
        for (std::size_t i = 0; i < children_.size(); ++i) {
            if (polled[i].revents == 0) continue;
            bool there = children_[i].channel.listen();
            while (auto message = children_[i].channel.next()) hear(i, std::move(*message));
            if (!there && !children_[i].said.contains("closed")) {
                throw std::runtime_error("node " + std::to_string(i) + " has ended");
            }
        }
        serve();
    }

    void serve() {
        Desk::Due due{};
        while (desk_.pop(Clock::now(), due)) {
            children_[due.node].channel.send({{"kind", "answer"}, {"id", due.id}, {"text", due.answer}});
        }
    }

    void hear(std::size_t node, Message message) {
        std::string kind = message.at("kind");
        if (kind == "query") {
            desk_.ask(node, message.at("id"), hot_category);
        } else if (kind == "failed") {
            throw Refused(message.at("why").get<std::string>());
        } else {
            children_[node].said[kind] = std::move(message);
        }
    }

    std::size_t heard(const std::string& kind) const {
        return static_cast<std::size_t>(std::count_if(children_.begin(), children_.end(),
                                                      [&](const Child& child) { return child.said.contains(kind); }));
    }

    void all(const std::string& kind, Clock::duration at_most) {
        Clock::time_point limit = Clock::now() + at_most;
        while (heard(kind) < children_.size()) {
            if (Clock::now() > limit) throw Refused("not every node has said that it is " + kind);
            listen(limit);
        }
    }

    // --- The run ---------------------------------------------------------------------------------

    // Puts the value, lets the source have another answer from then on, and agrees on the beginning; all over
    // again, should the machine have napped meanwhile.
    void begin(OnServer& on) {
        std::string before = desk_.catalogue().peek(hot_category);
        FirstValue value = first_value(options_, strategy_, head_start_);
        Clock::time_point sent;
        for (int attempt = 1;; ++attempt) {
            Child& first = children_[0];
            first.said.erase("put");
            first.channel.send(
                {{"kind", "put"}, {"text", before}, {"ttl_ms", value.ttl_ms}, {"soft_ttl_ms", value.soft_ttl_ms}});
            while (!first.said.contains("put")) listen(Clock::now() + 1s);
            sent = Clock::time_point(std::chrono::nanoseconds(first.said["put"].at("sent_ns").get<std::int64_t>()));
            std::chrono::nanoseconds took(first.said["put"].at("took_ns").get<std::int64_t>());
            if (took < surely_after || attempt == 5) break;
        }
        expiry_ = sent + value.until;
        start_ = options_.burst() ? expiry_ + burst_after : sent + head_start_;
        desk_.catalogue().reprice(hot_category);
        std::string after = desk_.catalogue().peek(hot_category);
        tally_.begin(start_, before, after);
        on.counts = server_.counts();
        tell_all({{"kind", "start"},
                  {"start_ns", ns_of(start_)},
                  {"expiry_ns", ns_of(expiry_)},
                  {"before", before},
                  {"after", after}});
        all("armed", 10s);
        if (Clock::now() > start_) throw TooLate("the machine is too slow: the nodes were not told in time");
    }

    void answer(bool progress) {
        Clock::time_point limit = start_ + patience + std::chrono::milliseconds(options_.window_ms + options_.load_ms);
        while (heard("done") < children_.size() && Clock::now() < limit) {
            listen(std::min(limit, Clock::now() + 100ms));
            if (!progress) continue;
            std::cerr << "\r\033[K" << strategy_.title << ": " << counted(desk_.queries(), "query", "queries") << ", "
                      << heard("done") << " of " << counted(children_.size(), "node", "nodes") << " done" << std::flush;
        }
        if (progress) std::cerr << "\r\033[K" << std::flush;
    }

    // A refresh begins when its callers have their answers already, and what was loaded is written later still. So
    // asks until nothing has happened between two questions.
    void settle(Result& result) {
        Clock::time_point limit = Clock::now() + patience + std::chrono::milliseconds(options_.load_ms);
        Clock::time_point refresh_limit = Clock::now() + (strategy_.soft ? 2s : 0s);
        std::uint64_t before = 0;
        for (;;) {
            double asked_ms = tally_.since_start_ms();
            for (Child& child : children_) child.said.erase("stats");
            tell_all({{"kind", "stats"}});
            all("stats", 10s);
            std::uint64_t happened = 1;
            bool quiet = desk_.next_due() == Clock::time_point::max();
            for (Child& child : children_) {
                const Message& stats = child.said["stats"];
                quiet = quiet && stats.at("settled").get<bool>();
                happened += stats.at("since").at("commands").get<std::uint64_t>();
                happened += stats.at("since").at("events").get<std::uint64_t>();
            }
            bool refreshed = desk_.queries() > 0 || Clock::now() > refresh_limit;
            if ((quiet && refreshed && happened == before) || Clock::now() > limit) return;
            if (happened != before) result.wall_ms = asked_ms;
            before = happened;
            for (Clock::time_point until = Clock::now() + 20ms; Clock::now() < until;) listen(until);
        }
    }

    void count(Result& result, OnServer& on) {
        result.strategy = strategy_;
        result.nodes = options_.nodes;
        result.wanted = options_.requests;
        result.requests = tally_.arrivals().size();
        result.expiry_ms = Milliseconds(expiry_ - start_).count();
        settle(result);
        ServerCounts now = server_.counts();
        on.counts = {now.get - on.counts.get, now.getrange - on.counts.getrange, now.scripts - on.counts.scripts};
        for (Child& child : children_) {
            const Message& since = child.said["stats"].at("since");
#define STAMPEDE_ADD(name, doc) result.library.name += since.at(#name).get<std::uint64_t>();
            STN_STATS_MAP(STAMPEDE_ADD)
#undef STAMPEDE_ADD
            on.cpu_ms += child.said["stats"].at("cpu_ms").get<double>();
        }
        result.queries = desk_.queries();
        result.executed = desk_.executed();
        result.peak = desk_.peak();
    }

    // As many events as there were callers, in the same processes and at one moment too, but with nothing in
    // them and no store behind them.
    Latency empty_events() {
        std::int64_t at_ns = ns_of(Clock::now() + 500ms);
        for (Child& child : children_) {
            child.channel.send({{"kind", "empty"}, {"count", child.numbers.size()}, {"at_ns", at_ns}});
        }
        all("emptied", 30s);
        std::vector<float> taken_ms;
        for (Child& child : children_) {
            for (float ms : child.said["emptied"].at("taken_ms")) taken_ms.push_back(ms);
        }
        return latency_of(std::move(taken_ms));
    }

    void close(Result& result) {
        tell_all({{"kind", "close"}});
        all("closed", 30s);
        double first_load_ms = -1;
        result.every_node_asked = true;
        for (const Child& child : children_) {
            double ms = child.said.at("closed").at("first_load_ms");
            if (ms >= 0 && (first_load_ms < 0 || ms < first_load_ms)) first_load_ms = ms;
        }
        for (Child& child : children_) {
            const Message& said = child.said["closed"];
            tally_.hear(said.at("told"), child.numbers);
            result.leases += said.at("leases").get<std::uint64_t>();
            result.refreshes += said.at("refreshes").get<std::uint64_t>();
            result.revoked += said.at("revoked").get<std::uint64_t>();
            double asked_ms = said.at("asked_ms");
            bool asked = asked_ms >= 0;
            result.asked_after_expiry = result.asked_after_expiry || asked;
            bool in_time = asked && asked_ms < first_load_ms - static_cast<double>(options_.load_ms) / 2;
            result.every_node_asked = result.every_node_asked && in_time;
        }
        end();
        tally_.into(result);
        result.waiters = tally_.latency(result.expiry_ms, first_load_ms);
        std::vector<double> begun_ms;
        for (Clock::time_point begun : desk_.begun()) begun_ms.push_back(Milliseconds(begun - start_).count());
        result.loaded_ms = first_load_ms;
        if (!begun_ms.empty()) result.asked_ms = begun_ms.front();
        result.bucket_ms = options_.bucket_ms();
        result.timeline = tally_.timeline(result.bucket_ms, begun_ms);
    }

    void end() {
        for (; !children_.empty(); children_.pop_back()) {
            int how = 0;
            ::waitpid(children_.back().pid, &how, 0);
            if (how != 0) tally_.fault("a node that did not end well (" + std::to_string(how) + ")");
        }
    }

    const Options& options_;
    const Strategy strategy_;
    Desk& desk_;
    Server& server_;
    const std::chrono::milliseconds head_start_;
    const std::string prefix_;
    Tally tally_;
    std::vector<Child> children_;
    Clock::time_point start_;  // the first caller may arrive
    Clock::time_point expiry_; // of the value that was put
    bool cleaned_ = false;     // no key is left in the store
};

} // namespace

Result run_processes(const Options& options, const Strategy& strategy, Desk& desk, Server& server, bool progress) {
    for (std::chrono::milliseconds head_start = first_head_start;; head_start *= 3) {
        try {
            Processes processes(options, strategy, desk, server, head_start);
            return processes.stampede(progress);
        } catch (const TooLate&) {
            if (head_start > last_head_start) throw;
        }
    }
}

} // namespace stampede
