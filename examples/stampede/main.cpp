// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <fstream>
#include <iostream>

#include "fleet.hpp"
#include "options.hpp"
#include "report.hpp"
#include "source.hpp"
#include "svg.hpp"

namespace {

using namespace stampede;

constexpr int broken_promise = 1;
constexpr int bad_command_line = 2;
constexpr int could_not_run = 3;

int run_all(const Options& options) {
    std::ofstream svg; // opened before the work: a name that cannot be written is told at once
    if (!options.svg.empty()) {
        svg.open(options.svg);
        if (!svg) throw std::runtime_error("--svg: " + options.svg + " cannot be written");
    }
    bool progress = isatty(STDERR_FILENO) != 0;
    Source source{std::chrono::milliseconds(options.load_ms)};
    std::vector<Result> results;
    for (const Strategy& strategy : options.chosen) {
        results.push_back(run(options, strategy, source, progress));
        if (options.json) continue;
        if (results.size() == 1) print_heading(std::cout, options);
        print_row(std::cout, results.back());
    }
    if (options.json) {
        print_json(std::cout, options, results);
    } else {
        print_promises(std::cout, results);
    }
    if (svg.is_open()) {
        svg << chart(options, results) << std::flush;
        if (!svg) throw std::runtime_error("--svg: " + options.svg + " cannot be written");
        if (!options.json) std::cout << "The chart is in " << options.svg << "\n";
    }
    return all_kept(results) ? 0 : broken_promise;
}

} // namespace

int main(int argc, char** argv) {
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
