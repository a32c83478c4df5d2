// SPDX-License-Identifier: MIT
#include "engine/held_lock.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/client_core.hpp"

namespace stn {

namespace {

constexpr std::int64_t longest_ms = 315'360'000'000; // ten years; keeps `now + timeout` from overflowing

} // namespace

held_lock::held_lock(std::shared_ptr<client_core> core, std::shared_ptr<lock_run> run, std::int64_t fence,
                     mono_ms safe_until)
    : core_(std::move(core)),
      run_(std::move(run)),
      fence_(fence),
      word_of_end_([run = run_](mono_ms now) { run->let_go({}, forever_ms, now); }),
      safe_until_(safe_until) {}

held_lock::~held_lock() {
    if (end(state::let_go)) core_->turns.post(std::move(word_of_end_));
}

std::int64_t held_lock::remaining_ms() const noexcept {
    const mono_ms until = safe_until_.load(); // read first: what ends it is seen at the latest then
    if (state_.load() != state::held) return 0;
    return std::max<std::int64_t>(0, until - core_->time.now_ms());
}

const token& held_lock::mine() const noexcept {
    return run_->mine();
}

const std::string& held_lock::name() const noexcept {
    return run_->name();
}

bool held_lock::end(state how) noexcept {
    state was = state::held;
    if (!state_.compare_exchange_strong(was, how)) return false;
    const std::lock_guard lock(mutex_);
    ended_.notify_all();
    return true;
}

bool held_lock::lose(lock_loss why) noexcept {
    loss_.store(why);
    return end(state::lost);
}

status held_lock::wait_lost(std::int64_t timeout_ms) noexcept {
    std::unique_lock lock(mutex_);
    const auto over = [this] { return state_.load() != state::held; };
    if (timeout_ms < 0 || timeout_ms > longest_ms) {
        ended_.wait(lock, over);
        return status::ok;
    }
    return ended_.wait_for(lock, std::chrono::milliseconds(timeout_ms), over) ? status::ok : status::timeout;
}

error held_lock::why_not(std::string_view what) const {
    const bool lost = at() == state::lost;
    return fail(status::lost,
                "the lock " + std::string(lost ? "was lost" : "was released already") + ": there is nothing to " +
                    std::string(what),
                name());
}

std::optional<error> held_lock::renew(std::int64_t deadline_ms, const std::shared_ptr<event_queue>& home,
                                      std::uint64_t tag) {
    if (at() != state::held) return why_not("renew");
    const mono_ms until =
        add_ms(core_->time.now_ms(), deadline_ms < 0 ? 4 * core_->settings.command_timeout_ms : deadline_ms);
    promised word(home.get());
    errand task([run = run_, home, tag, until](mono_ms now) { run->renew({home, tag}, until, now); });
    if (!core_->post_for(home.get(), std::move(task))) return fail(status::closed, "the client is closed", name());
    word.stands();
    return std::nullopt;
}

std::optional<error> held_lock::release(std::int64_t deadline_ms, const std::shared_ptr<event_queue>& home,
                                        std::uint64_t tag) {
    if (at() != state::held) return why_not("release");
    const mono_ms until =
        add_ms(core_->time.now_ms(), deadline_ms < 0 ? 4 * core_->settings.command_timeout_ms : deadline_ms);
    promised word(home.get());
    errand task([run = run_, home, tag, until](mono_ms now) { run->let_go({home, tag}, until, now); });
    if (!end(state::let_go)) return why_not("release");
    if (!core_->post_for(home.get(), std::move(task))) return fail(status::closed, "the client is closed", name());
    word.stands();
    return std::nullopt;
}

bool held_lock::leave() {
    errand task([run = run_](mono_ms now) { run->leave(now); });
    if (!end(state::left)) return false;
    core_->turns.post(std::move(task));
    return true;
}

} // namespace stn
