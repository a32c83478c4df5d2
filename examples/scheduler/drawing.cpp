// SPDX-License-Identifier: MIT
#include "drawing.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <set>

namespace scheduler {
namespace {

constexpr std::int64_t column_ns = 100'000'000;
constexpr std::int64_t second_ns = 1'000'000'000;

class Bars {
  public:
    explicit Bars(const std::vector<Run>& runs) {
        for (const Run& run : runs) {
            from_ns_ = std::min(from_ns_, run.asked_ns);
            to_ns_ = std::max(to_ns_, run.ended_ns);
            instances_ = std::max(instances_, run.who + 1);
        }
        rows_.assign(instances_, std::string(column(to_ns_) + 1, ' '));
        for (const Run& run : runs) {
            fill(run.who, run.asked_ns, run.begun_ns, '.');
            fill(run.who, run.begun_ns, run.held_until_ns(), '=');
            fill(run.who, run.held_until_ns(), run.ended_ns, '!');
        }
    }

    std::string text() const {
        std::string axis(column(to_ns_) + 8, ' ');
        for (std::int64_t at = 0; at <= to_ns_ - from_ns_; at += second_ns) {
            std::string mark = std::to_string(at / second_ns) + (at == 0 ? " s" : "");
            axis.replace(static_cast<std::size_t>(at / column_ns), mark.size(), mark);
        }
        std::string text = "       " + axis.substr(0, axis.find_last_not_of(' ') + 1) + "\n";
        for (std::size_t who = 0; who < instances_; ++who) {
            text += "    " + name_of(who) + "  " + rows_[who].substr(0, rows_[who].find_last_not_of(' ') + 1) + "\n";
        }
        return text + "       . waits for the lock   = at work, and holds it   ! at work, and holds it no longer\n";
    }

  private:
    std::size_t column(std::int64_t at_ns) const {
        return static_cast<std::size_t>((at_ns - from_ns_ + column_ns / 2) / column_ns);
    }

    void fill(std::size_t who, std::int64_t from_ns, std::int64_t to_ns, char with) {
        for (std::size_t i = column(from_ns); i < column(to_ns); ++i) rows_[who][i] = with;
    }

    std::int64_t from_ns_ = INT64_MAX;
    std::int64_t to_ns_ = 0;
    std::size_t instances_ = 0;
    std::vector<std::string> rows_;
};

std::string utc(std::int64_t ms) {
    std::time_t seconds = static_cast<std::time_t>(ms / 1000);
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    char text[16];
    std::snprintf(text, sizeof text, "%02d:%02d:%02d.%03d", parts.tm_hour, parts.tm_min, parts.tm_sec,
                  static_cast<int>(ms % 1000));
    return text;
}

std::string padded(std::string text, std::size_t width) {
    text.resize(std::max(text.size(), width), ' ');
    return text;
}

} // namespace

std::string name_of(std::size_t who) {
    return std::string(1, static_cast<char>('A' + static_cast<char>(who)));
}

std::string in_ms(std::int64_t ns) {
    return std::to_string(ns / 1'000'000) + " ms";
}

std::string draw_locks(const std::vector<Run>& runs) {
    return runs.empty() ? "" : Bars(runs).text();
}

std::string draw_slots(const std::vector<Run>& runs, const Journal& journal) {
    std::string text = "    slot (UTC)     run by   for      fence              told meanwhile\n";
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const Run& run = runs[i];
        std::int64_t until = i + 1 < runs.size() ? runs[i + 1].begun_ns : INT64_MAX;
        std::set<std::string> told;
        for (const Entry& entry : journal) {
            bool meanwhile = entry.at_ns >= run.begun_ns && entry.at_ns < until;
            if (meanwhile && entry.what == Happening::taken) told.insert(name_of(entry.who) + " " + entry.text);
        }
        text += "    " + padded(utc(run.slot_ms), 15) + padded(name_of(run.who), 9) +
                padded(in_ms(run.ended_ns - run.begun_ns), 9) + padded(std::to_string(run.fence), 19);
        for (const std::string& who : told) text += (who == *told.begin() ? "" : ", ") + who;
        text.erase(text.find_last_not_of(' ') + 1);
        text += "\n";
    }
    return text;
}

} // namespace scheduler
