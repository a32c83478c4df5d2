// SPDX-License-Identifier: MIT
#include "engine/notices.hpp"

#include <utility>

namespace stn {

void notices::watch(const std::shared_ptr<event_queue>& home, std::uint32_t mask, std::uint64_t tag) {
    const std::lock_guard lock(mutex_);
    watchers_.reserve(watchers_.size() + 1); // or nothing has changed
    std::erase_if(watchers_, [&](const watcher& w) {
        const auto other = w.home.lock();
        return !other || other == home;
    });
    if (mask != 0) watchers_.push_back({home, mask, tag});
}

std::vector<notices::told> notices::tell(notice what, status code, const std::string& text) {
    std::vector<told> out;
    const std::lock_guard lock(mutex_);
    for (const watcher& w : watchers_) {
        auto home = w.home.lock();
        if (!home || (w.mask & static_cast<std::uint32_t>(what)) == 0) continue;
        event e;
        e.kind = event_kind::notice;
        e.notice = static_cast<std::uint32_t>(what);
        e.code = code;
        e.tag = w.tag;
        e.text = text;
        if (code != status::ok) e.what = outcome_error(fail(code, text));
        out.push_back({std::move(home), std::move(e)});
    }
    return out;
}

} // namespace stn
