// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "database.hpp"
#include "scenes.hpp"
#include "shop.hpp"

namespace {

using namespace fence;

constexpr int broken_promise = 1;
constexpr int bad_command_line = 2;
constexpr int could_not_run = 3;

constexpr std::string_view help = R"(fence: a holder that writes too late, and a database that refuses it

  fence --store URL --database CONNINFO

  --store URL           a Redis or Valkey
  --database CONNINFO   a PostgreSQL, as libpq takes it: "host=127.0.0.1 port=5432 user=...". The schema
                        fence_example is made there, and dropped in the end
  --help

run.sh starts both. Exit status: 0 every promise was seen; 1 one was broken; 2 the command line is
wrong; 3 it could not be run.
)";

struct BadOption : std::runtime_error {
    using std::runtime_error::runtime_error;
};

Places parse(const std::vector<std::string>& words) {
    Places places;
    for (std::size_t i = 0; i < words.size(); i += 2) {
        if (words[i] != "--store" && words[i] != "--database") {
            throw BadOption("there is no option " + words[i] + ". The options are --store --database --help");
        }
        if (i + 1 == words.size()) throw BadOption(words[i] + " needs a value");
        (words[i] == "--store" ? places.store : places.database) = words[i + 1];
    }
    if (places.store.empty() || places.database.empty()) throw BadOption("--store and --database are needed");
    places.prefix = "fence." + std::to_string(::getpid());
    return places;
}

bool play(Places places) {
    Report report;
    Database database(places.database);
    Shop::open(database);
    try {
        for (const bool guarded : {false, true}) {
            places.guarded = guarded;
            late_write(places, report);
            std::cout << "\n";
        }
        unique_key(places, report);
        std::cout << "\n";
        status_new(places, report);
        std::cout << "\n";
    } catch (...) {
        Shop::shut(database);
        throw;
    }
    Shop::shut(database);
    std::cout << (report.all_seen() ? "Every promise was seen.\n" : "A promise was broken.\n");
    return report.all_seen();
}

} // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (!words.empty() && words[0] == holder_word) return run_holder({words.begin() + 1, words.end()});
    if (words.size() == 1 && words[0] == "--help") {
        std::cout << help;
        return 0;
    }
    try {
        return play(parse(words)) ? 0 : broken_promise;
    } catch (const BadOption& error) {
        std::cerr << "fence: " << error.what() << "\n";
        return bad_command_line;
    } catch (const std::exception& error) {
        std::cerr << "fence: " << error.what() << "\n";
        return could_not_run;
    }
}
