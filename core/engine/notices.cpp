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
    if (mask != 0) watchers_.push_back({home, mask, tag, 0});
}

event notices::event_of(const watcher& to, notice what, status code, const std::string& text) {
    event e;
    e.kind = event_kind::notice;
    e.notice = static_cast<std::uint32_t>(what);
    e.code = code;
    e.tag = to.tag;
    e.text = text;
    if (code != status::ok) e.what = outcome_error(fail(code, text));
    return e;
}

std::vector<notices::told> notices::tell(notice what, status code, const std::string& text) {
    std::vector<told> out;
    const std::lock_guard lock(mutex_);
    if (what == notice::connection || what == notice::breaker) {
        std::erase_if(lasting_, [&](const trouble& t) { return t.what == what; });
        if (code != status::ok) lasting_.push_back({what, code, text});
    }
    for (watcher& w : watchers_) {
        auto home = w.home.lock();
        if (!home || (w.mask & static_cast<std::uint32_t>(what)) == 0) continue;
        w.heard |= static_cast<std::uint32_t>(what);
        out.push_back({std::move(home), event_of(w, what, code, text)});
    }
    return out;
}

std::vector<notices::told> notices::catch_up(const event_queue* home) {
    std::vector<told> out;
    const std::lock_guard lock(mutex_);
    for (watcher& w : watchers_) {
        const auto at = w.home.lock();
        if (at.get() != home) continue;
        for (const trouble& t : lasting_) {
            const auto bit = static_cast<std::uint32_t>(t.what);
            if ((w.mask & ~w.heard & bit) == 0) continue;
            w.heard |= bit;
            out.push_back({at, event_of(w, t.what, t.code, t.text)});
        }
    }
    return out;
}

} // namespace stn
