// SPDX-License-Identifier: MIT
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "trial.hpp"

using namespace faults;

namespace {

std::vector<scenario> all_scenarios() {
    std::vector<scenario> all;
    for (const auto some : {scenarios_of_clients(), scenarios_of_queues(), scenarios_of_caches(), scenarios_of_leases(),
                            scenarios_of_loaders(), scenarios_of_groups(), scenarios_of_locks()}) {
        all.insert(all.end(), some.begin(), some.end());
    }
    return all;
}

// Nothing in these may fail: they read memory, or free it.
const std::set<std::string_view> cannot_fail{
    "stn_version_number", "stn_version_string",    "stn_abi_version",   "stn_status_name",
    "stn_error_code",     "stn_error_message",     "stn_error_key",     "stn_error_server_text",
    "stn_error_flags",    "stn_error_free",        "stn_bytes_data",    "stn_bytes_size",
    "stn_bytes_free",     "stn_event_kind",        "stn_event_tag",     "stn_event_status",
    "stn_event_flags",    "stn_event_reason",      "stn_event_codec",   "stn_event_bytes",
    "stn_event_age_ms",   "stn_event_ttl_left_ms", "stn_event_load_ms", "stn_event_host_ref",
    "stn_event_error",    "stn_lease_state",       "stn_policy_free",   "stn_scope_free",
    "stn_lock_held",      "stn_lock_remaining_ms", "stn_lock_fence",    "stn_lock_token",
    "stn_lock_state",     "stn_lock_loss",         "stn_tick_slot_ms",  "stn_tick_fence",
    "stn_tick_token",
};

std::vector<std::string> exported() {
    std::ifstream file(STN_SOURCE_DIR "/capi/stanchion.symbols");
    return {std::istream_iterator<std::string>(file), {}};
}

} // namespace

TEST_CASE("every exported function has a scenario here, or cannot fail") {
    std::set<std::string_view> known = cannot_fail;
    const auto all = all_scenarios();
    for (const scenario& s : all) known.insert(s.entry);
    const auto names = exported();
    CHECK(names.size() > 70);
    for (const std::string& name : names) CHECK_MESSAGE(known.contains(name), name, " has no scenario");
    for (const std::string_view name : known) {
        CHECK_MESSAGE(std::ranges::count(names, name) == 1, name, " is not exported any more");
    }
}

// Whose bodies may not throw because all they do is to free.
bool frees(std::string_view name) {
    return name.ends_with("_free");
}

TEST_CASE("every entry is noexcept, and guards all that could throw") {
    std::string code;
    for (const auto& file : std::filesystem::directory_iterator(STN_SOURCE_DIR "/capi/src")) {
        if (file.path().extension() != ".cpp") continue;
        std::ifstream in(file.path());
        code.append(std::istreambuf_iterator<char>(in), {});
    }
    for (const std::string& name : exported()) {
        CAPTURE(name);
        // a definition begins a line, and ends with a brace alone on one
        const std::regex start("\\n[a-z][\\w *]*\\b" + name + R"(\([^{};]*\)([^{};]*)\{)");
        std::smatch found;
        REQUIRE(std::regex_search(code, found, start));
        CHECK(found[1].str() == " noexcept ");
        const std::string rest = found.suffix();
        const std::string body = rest.substr(0, rest.find("\n}\n"));
        const bool guarded = body.find("guarded(") != std::string::npos || body.find("quietly<") != std::string::npos;
        CHECK(guarded != (cannot_fail.contains(name) || frees(name)));
    }
}

TEST_CASE("what is thrown inside an entry does not leave it, and changes nothing") {
    for (const scenario& s : all_scenarios()) {
        for (const thrown what : {thrown::bad_alloc, thrown::runtime_error, thrown::number}) {
            CAPTURE(s.entry);
            CAPTURE(s.when);
            CAPTURE(static_cast<int>(what));
            trial t = trial::throwing(what);
            s.play(t);
            CHECK(t.made());
        }
    }
}

// One allocation after the other fails, until the call comes to its end without that many.
TEST_CASE("an entry that runs out of memory anywhere says so, and has changed nothing") {
    std::uint64_t failed = 0;
    for (const scenario& s : all_scenarios()) {
        for (const outage how : {outage::once, outage::from_then_on}) {
            bool bitten = true;
            for (std::uint64_t nth = 1; bitten; ++nth) {
                CAPTURE(s.entry);
                CAPTURE(s.when);
                CAPTURE(nth);
                CAPTURE(static_cast<int>(how));
                REQUIRE(nth < 1'000);
                trial t = trial::without_memory(nth, how);
                s.play(t);
                CHECK(t.made());
                bitten = t.bitten();
                failed += bitten ? 1 : 0;
            }
        }
    }
    MESSAGE("allocations that failed: ", failed);
    CHECK(failed > 500);
}
