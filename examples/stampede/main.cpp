// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <optional>
#include <string_view>

#include "desk.hpp"
#include "fleet.hpp"
#include "node.hpp"
#include "options.hpp"
#include "processes.hpp"
#include "report.hpp"
#include "server.hpp"
#include "source.hpp"
#include "svg.hpp"

namespace {

using namespace stampede;

constexpr int broken_promise = 1;
constexpr int bad_command_line = 2;
constexpr int could_not_run = 3;

// Runs one strategy, with threads or with processes.
class Stage {
  public:
    explicit Stage(const Options& options) : options_(options) {
        std::chrono::milliseconds load(options.load_ms);
        if (options.processes()) {
            server_.emplace(options.store, options.ca);
            desk_.emplace(load);
        } else {
            source_.emplace(load);
        }
    }

    std::string server() const { return server_ ? server_->name() : ""; }

    Result run(const Strategy& strategy) {
        if (server_) return run_processes(options_, strategy, *desk_, *server_, progress_);
        return stampede::run(options_, strategy, *source_, progress_);
    }

  private:
    const Options& options_;
    const bool progress_ = isatty(STDERR_FILENO) != 0;
    std::optional<Source> source_; // of threads
    std::optional<Server> server_; // of processes, as the next
    std::optional<Desk> desk_;
};

int run_all(const Options& options) {
    std::ofstream svg; // opened before the work: a name that cannot be written is told at once
    if (!options.svg.empty()) {
        svg.open(options.svg);
        if (!svg) throw std::runtime_error("--svg: " + options.svg + " cannot be written");
    }
    Stage stage(options);
    std::vector<Result> results;
    for (std::uint64_t run = 1; run <= options.runs; ++run) {
        for (const Strategy& strategy : options.chosen) {
            results.push_back(stage.run(strategy));
            results.back().run = run;
            if (options.json) continue;
            if (results.size() == 1) print_heading(std::cout, options, stage.server());
            print_row(std::cout, results.back());
        }
    }
    if (options.json) {
        print_json(std::cout, options, results);
    } else {
        print_promises(std::cout, options, results);
        print_summary(std::cout, options, results);
    }
    if (svg.is_open()) {
        auto last = results.end() - static_cast<std::ptrdiff_t>(options.chosen.size());
        svg << chart(options, {last, results.end()}) << std::flush;
        if (!svg) throw std::runtime_error("--svg: " + options.svg + " cannot be written");
        if (!options.json) std::cout << "The chart is in " << options.svg << "\n";
    }
    return all_kept(results) ? 0 : broken_promise;
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 2 && std::string_view(argv[1]) == node_word) return run_node();
    try {
        std::optional<Options> options = parse({argv + 1, argv + argc});
        return options ? run_all(*options) : 0;
    } catch (const BadOption& error) {
        std::cerr << "stampede: " << error.what() << "\n";
        return bad_command_line;
    } catch (const std::exception& error) {
        std::cerr << "stampede: " << error.what() << "\n";
        return could_not_run;
    }
}
