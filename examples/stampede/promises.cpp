// SPDX-License-Identifier: MIT
#include "promises.hpp"

#include "text.hpp"

namespace stampede {
namespace {

std::string listed(const std::map<std::string, std::uint64_t>& counts) {
    std::string text;
    for (const auto& [what, count] : counts) {
        text += (text.empty() ? "" : "; ") + with_commas(count) + " x " + what;
    }
    return text;
}

Promise answers(const Result& result) {
    std::uint64_t unanswered = result.requests - result.answered;
    if (unanswered == 0 && result.repeated == 0 && result.wrong == 0 && result.errors.empty()) {
        return {true, "every caller got exactly one answer, the right one"};
    }
    std::string text = "of " + with_commas(result.requests) + " callers " + with_commas(unanswered) +
                       " got no answer; " + with_commas(result.repeated) + " answers too many, " +
                       with_commas(result.wrong) + " wrong";
    if (!result.errors.empty()) text += "; errors: " + listed(result.errors);
    return {false, text};
}

Promise agreement(const Result& result) {
    return {result.queries == result.library.loads && result.queries == result.executed,
            "the source was asked " + counted(result.queries, "query", "queries") + ", SQLite ran " +
                with_commas(result.executed) + ", the library says " + counted(result.library.loads, "load", "loads")};
}

Promise queries(const Result& result) {
    std::string found = counted(result.queries, "query", "queries");
    if (!result.strategy.fleet) {
        return {result.queries <= result.nodes,
                found + ": at most one for each of " + counted(result.nodes, "node", "nodes")};
    }
    if (!result.asked_after_expiry) {
        return {result.queries <= 1, found + ": nobody came after the expiry, so one at most"};
    }
    return {result.queries == 1, found + ": exactly one"};
}

Promise fills(const Result& result) {
    auto stored = result.fills.find("stored");
    std::uint64_t count = stored == result.fills.end() ? 0 : stored->second;
    bool kept = count == result.queries && result.fills.size() <= 1;
    return {kept, "what was loaded was stored" + (kept ? "" : ": " + listed(result.fills))};
}

Promise nobody_waited(const Result& result) {
    bool kept =
        result.leases == 0 && result.from_load == 0 && result.library.waits == 0 && result.library.leases_granted == 0;
    if (kept) {
        return {true, "nobody waited: " + counted(result.stale_answers, "caller", "callers") +
                          " got the stale value at once, " + counted(result.refreshes, "refresh", "refreshes") +
                          " ran in the background"};
    }
    return {false, counted(result.leases, "caller had", "callers had") + " to load, " + with_commas(result.from_load) +
                       " were answered by a load, " + counted(result.library.waits, "flight", "flights") + " waited"};
}

Promise one_lease(const Result& result) {
    const stn_stats& library = result.library;
    std::string text = counted(library.misses, "flight", "flights") +
                       " missed: " + counted(library.leases_granted, "lease", "leases") + " granted, " +
                       with_commas(library.leases_held) + " refused";
    if (!result.every_node_asked) {
        return {library.leases_granted <= 1, text + " (not every node was asked in time to miss)"};
    }
    return {library.misses == result.nodes && library.leases_granted == 1 && library.leases_held == result.nodes - 1,
            text + ", one flight for each node"};
}

Promise commands(const Result& result) {
    const ServerCounts& counts = result.server->counts;
    std::string text = "the library says " + counted(result.library.commands, "command", "commands") + ", the server " +
                       with_commas(counts.sent()) + ": " + counted(counts.plain(), "GET", "GETs") + " and " +
                       counted(counts.scripts, "script", "scripts");
    if (!result.server->alone) return {true, text + " (not judged: others use this server)"};
    return {counts.sent() == result.library.commands, text};
}

Promise nothing_left(const Result& result) {
    const KeysLeft& keys = result.server->keys;
    std::string text = "in the store " + counted(keys.found, "key was", "keys were") + " left, ";
    text += keys.without_ttl == 0 ? "all with a TTL" : with_commas(keys.without_ttl) + " without a TTL";
    text += keys.undeleted == 0 ? ", and deleted" : "; " + with_commas(keys.undeleted) + " could not be deleted";
    bool seen = keys.found > 0 || result.queries == 0; // what was loaded was stored
    return {seen && keys.without_ttl == 0 && keys.undeleted == 0, text};
}

} // namespace

std::vector<Promise> judge(const Result& result) {
    const Strategy& strategy = result.strategy;
    std::vector<Promise> promises{answers(result), agreement(result), fills(result)};
    if (strategy.coalesce || strategy.fleet) promises.push_back(queries(result));
    if (strategy.coalesce && strategy.fleet) {
        promises.push_back(strategy.soft ? nobody_waited(result) : one_lease(result));
    }
    if (result.server) {
        promises.push_back(commands(result));
        promises.push_back(nothing_left(result));
    }
    return promises;
}

} // namespace stampede
