// SPDX-License-Identifier: MIT
#include "journal.hpp"

#include <chrono>
#include <nlohmann/json.hpp>

namespace scheduler {

using nlohmann::json;

std::int64_t now_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

std::string line_of(const Entry& entry) {
    return json{static_cast<int>(entry.what), entry.at_ns, entry.fence, entry.slot_ms, entry.held, entry.text}.dump();
}

Entry entry_of(const std::string& line) {
    json parts = json::parse(line);
    return {static_cast<Happening>(parts.at(0).get<int>()),
            parts.at(1),
            parts.at(2),
            parts.at(3),
            parts.at(4),
            parts.at(5),
            0};
}

} // namespace scheduler
