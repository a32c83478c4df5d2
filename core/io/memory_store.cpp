// SPDX-License-Identifier: MIT
#include "io/memory_store.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include <unistd.h>

#include "io/system_clock.hpp"

namespace stn {
namespace {

// The named stores of one process. A forked child starts with none of its own: the parent's copy may
// be locked for ever by a thread that did not come along.
struct registry {
    const pid_t owner = getpid();
    std::mutex mutex;
    std::map<std::string, std::weak_ptr<memory_store>, std::less<>> stores; // guarded by mutex
};

// Never freed: clients may outlive every static object.
registry& this_process() {
    static std::atomic<registry*> current{nullptr};
    registry* known = current.load(std::memory_order_acquire);
    while (known == nullptr || known->owner != getpid()) {
        auto* fresh = new registry;
        if (current.compare_exchange_strong(known, fresh, std::memory_order_acq_rel)) return *fresh;
        delete fresh;
    }
    return *known;
}

std::shared_ptr<memory_store> make_store(memory_clock kind) {
    auto made = std::make_shared<memory_store>();
    std::function<server_ms()> server_now;
    if (kind == memory_clock::manual) {
        made->manual = std::make_shared<manual_clock>();
        made->time = made->manual;
        server_now = [time = made->time] { return time->now_ms(); };
    } else {
        made->time = std::make_shared<system_clock>();
        // the date of the wall clock, the steadiness of the other
        const std::int64_t offset = wall_clock_ms() - made->time->now_ms();
        server_now = [time = made->time, offset] { return time->now_ms() + offset; };
    }
    made->server = std::make_shared<memory_server>(std::move(server_now));
    return made;
}

} // namespace

result<std::shared_ptr<memory_store>> open_memory_store(std::string_view name, memory_clock kind) {
    if (name.empty()) return make_store(kind);
    registry& all = this_process();
    const std::lock_guard lock(all.mutex);
    std::erase_if(all.stores, [](const auto& known) { return known.second.expired(); });
    const auto at = all.stores.find(name);
    if (auto open = at == all.stores.end() ? nullptr : at->second.lock()) {
        if ((open->manual != nullptr) == (kind == memory_clock::manual)) return open;
        return fail(status::invalid_argument,
                    "memory://" + std::string(name) + " is open with " +
                        (open->manual ? "clock=manual: open it so here too" : "the system's clock, not clock=manual"));
    }
    auto made = make_store(kind);
    all.stores.insert_or_assign(std::string(name), made);
    return made;
}

} // namespace stn
