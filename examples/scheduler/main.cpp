// SPDX-License-Identifier: MIT
#include <chrono>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include "acts.hpp"
#include "crew.hpp"
#include "instance.hpp"
#include "server.hpp"

namespace {

using namespace scheduler;
using namespace std::chrono_literals;

constexpr int broken_promise = 1;
constexpr int bad_command_line = 2;
constexpr int could_not_run = 3;
constexpr int most_attempts = 3;

constexpr std::string_view help = R"(scheduler: two instances of one service, and a job that must not run twice

  scheduler [options]

  --store URL   a Redis or Valkey that the instances share; default: a redis-server made for this run
  --only ACT    one of them:
                  ticks     a job for each second: exactly one instance runs it
                  broken    broken on purpose: a lock of 1 s, a job of 2 s, no renewal
                  renewed   the same with renewal
  --help

Exit status: 0 every promise was seen; 1 one was broken; 2 the command line is wrong; 3 it could
not be run. An act in which the machine stood still for too long is run again, twice at most.
)";

struct BadOption : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Options {
    std::string store;
    std::string only;
};

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        std::string name = argv[i];
        if (name != "--store" && name != "--only") {
            throw BadOption("there is no option " + name + ". The options are --store --only --help");
        }
        if (++i == argc) throw BadOption(name + " needs a value");
        (name == "--store" ? options.store : options.only) = argv[i];
    }
    if (!options.only.empty() && options.only != "ticks" && options.only != "broken" && options.only != "renewed") {
        throw BadOption("there is no act '" + options.only + "'. The acts are ticks broken renewed");
    }
    return options;
}

// The three acts, played by one crew.
class Stage {
  public:
    Stage(const Options& options, const std::string& store) : options_(options), crew_(2, store) {}

    bool play() {
        act("ticks", "A job for each second: both instances ask for every one", Ticks{1s, 200ms, 4'300ms}, judge_ticks);
        act("broken", "Broken on purpose: the lock lasts 1 s, the job takes 2 s, and renewal is off",
            Locked{1s, false, 2s, 1}, judge_broken);
        act("renewed", "The same lock and the same job, but the lock is renewed, as it is by default",
            Locked{1s, true, 2s, 2}, judge_renewed);
        std::cout << (kept_ ? "Every promise was seen.\n" : "A promise was broken.\n");
        return kept_;
    }

  private:
    template <class Work>
    void act(const std::string& name, const std::string& title, const Work& work,
             Finding (*judge)(const Journal&, const Work&)) {
        if (!options_.only.empty() && options_.only != name) return;
        std::cout << title << "\n\n" << std::flush;
        Finding finding;
        for (int attempt = 1; attempt <= most_attempts; ++attempt) {
            finding = judge(crew_.work(work), work);
            std::cout << finding.drawing << "\n";
            if (finding.kept() || !finding.napped || attempt == most_attempts) break;
            std::cout << "    The machine stood still for too long. Once more:\n\n" << std::flush;
        }
        for (const Promise& promise : finding.promises) {
            std::cout << (promise.kept ? "    yes  " : "    NO   ") << promise.text << "\n";
            kept_ = kept_ && promise.kept;
        }
        std::cout << "\n" << std::flush;
    }

    const Options& options_;
    Crew crew_;
    bool kept_ = true;
};

int play(const Options& options) {
    std::optional<Server> server;
    if (options.store.empty()) server.emplace();
    return Stage(options, server ? server->url() : options.store).play() ? 0 : broken_promise;
}

} // namespace

int main(int argc, char** argv) {
    std::string_view word = argc == 2 ? argv[1] : "";
    if (word == instance_word) return run_instance();
    if (word == "--help") {
        std::cout << help;
        return 0;
    }
    try {
        return play(parse(argc, argv));
    } catch (const BadOption& error) {
        std::cerr << "scheduler: " << error.what() << "\n";
        return bad_command_line;
    } catch (const std::exception& error) {
        std::cerr << "scheduler: " << error.what() << "\n";
        return could_not_run;
    }
}
