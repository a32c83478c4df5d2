// SPDX-License-Identifier: MIT
#include "acts.hpp"

#include <algorithm>
#include <map>

#include "drawing.hpp"
#include "runs.hpp"

namespace scheduler {
namespace {

constexpr std::size_t least_slots = 4;

std::string times(std::size_t count, const std::string& noun) {
    return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

bool fences_rise(const std::vector<Run>& runs) {
    return std::is_sorted(runs.begin(), runs.end(),
                          [](const Run& one, const Run& other) { return one.fence <= other.fence; });
}

// The first pair of runs that were at work at one time.
std::pair<const Run*, const Run*> overlapping(const std::vector<Run>& runs) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
        for (std::size_t j = i + 1; j < runs.size(); ++j) {
            if (overlap_ns(runs[i], runs[j]) > 0) return {&runs[i], &runs[j]};
        }
    }
    return {nullptr, nullptr};
}

void add_trouble(Finding& finding, const Journal& journal) {
    for (const Entry& entry : journal) {
        if (entry.what != Happening::trouble) continue;
        finding.napped = true;
        finding.drawing += "    " + name_of(entry.who) + " had trouble: " + entry.text + "\n";
    }
}

} // namespace

bool Finding::kept() const {
    return std::all_of(promises.begin(), promises.end(), [](const Promise& promise) { return promise.kept; });
}

Finding judge_ticks(const Journal& journal, const Ticks& work) {
    std::vector<Run> runs = runs_of(journal);
    Finding finding;
    finding.drawing = draw_slots(runs, journal);
    add_trouble(finding, journal);
    std::map<std::int64_t, std::size_t> slots;
    for (const Run& run : runs) ++slots[run.slot_ms];
    std::size_t twice = 0;
    for (const auto& [slot_ms, count] : slots) twice += count > 1 ? 1 : 0;
    std::size_t due = 0;
    if (!slots.empty()) {
        due = static_cast<std::size_t>((slots.rbegin()->first - slots.begin()->first) / work.every.count()) + 1;
    }
    finding.napped = finding.napped || (twice == 0 && (slots.size() < due || due < least_slots));
    finding.promises.push_back({twice == 0, "no slot was run twice: " + std::to_string(twice) + " were"});
    finding.promises.push_back({slots.size() == due && due >= least_slots,
                                "no slot was left out: " + times(due, "slot") + ", " + times(runs.size(), "run")});
    finding.promises.push_back({!runs.empty() && fences_rise(runs), "each run has a larger fence than the one before"});
    return finding;
}

Finding judge_broken(const Journal& journal, const Locked&) {
    std::vector<Run> runs = runs_of(journal);
    Finding finding;
    finding.drawing = draw_locks(runs);
    add_trouble(finding, journal);
    auto [first, second] = overlapping(runs);
    finding.napped = finding.napped || first == nullptr;
    if (first == nullptr) {
        finding.promises.push_back({false, "two runs overlap"});
        return finding;
    }
    finding.promises.push_back({true, "two runs overlap, for " + in_ms(overlap_ns(*first, *second)) + ": " +
                                          name_of(second->who) + " begins while " + name_of(first->who) +
                                          " is at work"});
    bool told = std::all_of(runs.begin(), runs.end(), [](const Run& run) {
        return run.losses.size() == 1 && run.losses.front().text == "expired";
    });
    finding.promises.push_back({told, "each holder is told once that its lock was lost, and why: expired"});
    const Entry& late = first->writes.back();
    finding.promises.push_back({!late.held, "held() says no before " + name_of(first->who) + "'s late write"});
    std::vector<Entry> no = refused(journal);
    bool only_the_late_one = no.size() == 1 && no.front().who == late.who && no.front().at_ns == late.at_ns;
    finding.promises.push_back({only_the_late_one, "that write, and no other, would be refused: its fence " +
                                                       std::to_string(first->fence) + " is below " +
                                                       std::to_string(second->fence)});
    return finding;
}

Finding judge_renewed(const Journal& journal, const Locked& work) {
    std::vector<Run> runs = runs_of(journal);
    Finding finding;
    finding.drawing = draw_locks(runs);
    add_trouble(finding, journal);
    std::size_t lost = 0;
    bool held = true;
    for (const Run& run : runs) {
        lost += run.losses.size();
        held = held && !run.writes.empty() && run.writes.back().held;
    }
    finding.napped = finding.napped || lost > 0;
    auto [first, second] = overlapping(runs);
    std::int64_t overlap = first == nullptr ? 0 : overlap_ns(*first, *second);
    finding.promises.push_back({!runs.empty() && overlap == 0,
                                times(runs.size(), "run") + " of " + in_ms(work.job / std::chrono::nanoseconds(1)) +
                                    " under a lock of " + in_ms(work.ttl / std::chrono::nanoseconds(1)) +
                                    ": no two overlap" + (overlap > 0 ? ", but for " + in_ms(overlap) : "")});
    finding.promises.push_back(
        {held && lost == 0, "each holder held it to its end: " + std::to_string(lost) + " were lost"});
    finding.promises.push_back(
        {refused(journal).empty() && fences_rise(runs), "fences rise, and no write would be refused"});
    return finding;
}

} // namespace scheduler
