// SPDX-License-Identifier: MIT
#include "exit_hook.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "engine/event_queue.hpp"
#include "fork.hpp"

namespace stn {

namespace {

// The loop of a client may be what called exit(): nobody is waited for longer than this beyond his own bound.
constexpr std::int64_t moment_ms = 100;

struct exit_list {
    struct entry {
        std::weak_ptr<client_core> core;
        std::int64_t within_ms;
    };
    const fork_mark made;
    std::mutex mutex;
    std::vector<entry> entries;
};

// Used while the process ends, so never destroyed. A fork child does not touch its parent's, whose mutex may be
// held there for ever: it begins a list of its own.
std::atomic<exit_list*> of_process{nullptr};

exit_list& list_of_process() {
    exit_list* list = of_process.load();
    while (list == nullptr || list->made.forked()) {
        auto fresh = std::make_unique<exit_list>();
        if (of_process.compare_exchange_strong(list, fresh.get())) return *fresh.release();
    }
    return *list;
}

// All at once, so that the longest bound is the whole one.
void close_all() {
    exit_list* const list = of_process.load();
    if (list == nullptr || list->made.forked()) return;
    std::vector<exit_list::entry> entries;
    {
        const std::lock_guard lock(list->mutex);
        entries.swap(list->entries);
    }
    const auto home = std::make_shared<event_queue>(0);
    std::vector<std::shared_ptr<client_core>> open;
    std::int64_t within_ms = 0;
    for (const exit_list::entry& e : entries) {
        auto core = e.core.lock();
        if (!core) continue;
        core->begin_close(e.within_ms, home, 0);
        within_ms = std::max(within_ms, e.within_ms);
        open.push_back(std::move(core));
    }
    if (open.empty()) return;
    const mono_ms until = open.front()->time.now_ms() + within_ms + moment_ms;
    for (std::size_t closed = 0; closed < open.size(); ++closed) {
        event e;
        const std::int64_t left = until - open.front()->time.now_ms();
        if (left <= 0 || home->next(left, e) != status::ok) return;
    }
}

void at_exit() noexcept {
    try {
        close_all();
    } catch (const std::bad_alloc&) {
        return; // what is held ends by its ttl
    }
}

} // namespace

void close_at_exit(const std::shared_ptr<client_core>& core, std::int64_t within_ms) {
    exit_list& list = list_of_process();
    const std::lock_guard lock(list.mutex);
    static const bool registered = std::atexit(at_exit) == 0; // a fork inherits it
    if (!registered) throw std::bad_alloc();
    std::erase_if(list.entries, [](const exit_list::entry& e) { return e.core.expired(); });
    list.entries.push_back({core, within_ms});
}

} // namespace stn
