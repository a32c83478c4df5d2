// SPDX-License-Identifier: MIT
#include "engine/lease.hpp"

#include <algorithm>
#include <utility>

#include "engine/client_core.hpp"
#include "engine/wait_graph.hpp"

namespace stn {

lease::lease(std::shared_ptr<client_core> core, std::shared_ptr<fill_run> run, single_flight::ref flight,
             std::uint64_t number, const caller& holder, bool leased, outcome_ptr fallback)
    : core_(std::move(core)),
      run_(std::move(run)),
      flight_(flight),
      number_(number),
      home_(holder.home),
      tag_(holder.tag),
      within_(holder.within),
      leased_(leased),
      fallback_(std::move(fallback)),
      word_of_end_([run = run_, number](mono_ms now) { run->freed(number, now); }) {
    core_->flights->hold(flight_);
}

lease::~lease() {
    if (!answered_.exchange(true)) give_up();
    end_edge();
    core_->flights->drop(flight_);
}

void lease::mark_read() noexcept {
    mono_ms never = -1;
    read_at_.compare_exchange_strong(never, core_->time.now_ms());
}

void lease::mark_taken() noexcept {
    if (taken_.exchange(true)) return;
    mark_read();
    counters& c = run_->cache()->stats;
    c.add(stat::loads);
    if (!leased_) c.add(stat::loads_alone);
}

void lease::give_up() noexcept {
    core_->flights->end_load(flight_, number_);
    core_->turns.post(std::move(word_of_end_));
}

void lease::end_edge() noexcept {
    wait_graph::of_process().drop(within_, flight_.id);
}

std::optional<lease::answered> lease::answer(outcome how, const filled_to& told) {
    if (answered_.load()) return std::nullopt;
    const mono_ms began = read_at_.load();
    const mono_ms now = core_->time.now_ms();
    how.delta_ms = static_cast<std::uint32_t>(std::clamp<mono_ms>(began < 0 ? 0 : now - began, 1, UINT32_MAX));
    how.created = now + core_->server_offset.load();
    how.from = source::flight;
    how.host_scope = home_->scope();
    how.key = run_->key();
    how.why.key = how.key;
    const bool failed = how.code != status::ok && how.code != status::absent;
    const auto owned = blocks::make_shared<outcome>(std::move(how));
    owned->payload = owned->storage;
    answered out{owned, 0};
    promised news(told.home.get());
    errand result([run = run_, shared_how = out.how, told](mono_ms at) { run->loaded(shared_how, told, at); });

    bool first = false;
    bool posted = false;
    const auto commit = [&] {
        first = !answered_.exchange(true);
        if (first) posted = core_->turns.post_for_help(std::move(result));
        return first;
    };
    auto who = core_->flights->answer_load(flight_, number_, commit);
    if (!who && !first && !commit()) return std::nullopt;
    news.stands();
    core_->turns.ring();
    if (failed) run_->cache()->stats.add(stat::loads_failed);
    if (who) {
        const bool spared = failed && fallback_ && out.how->created < fallback_->created + run_->policy().ttl_ms;
        out.shared = core_->deliver(*who, spared ? fallback_ : out.how);
    }
    end_edge();
    if (!posted && told.home) {
        event e;
        e.kind = event_kind::error;
        e.code = status::closed;
        e.tag = told.tag;
        e.what = core_->client_closed;
        told.home->push(std::move(e));
    }
    return out;
}

std::uint8_t lease::codec() const noexcept {
    return run_->policy().codec;
}

bool lease::detach(std::uint32_t& waiters) {
    waiters = 0;
    if (answered_.load()) return false;
    waiters = core_->flights->detach_holder(flight_, number_, [this] {
        answered_.store(true);
        core_->turns.post(std::move(word_of_end_));
    });
    return true;
}

void lease::revoke(reason) noexcept {
    revoked_.store(true);
}

lease::state lease::at() const noexcept {
    if (answered_.load()) return state::ended;
    return revoked_.load() ? state::revoked : state::live;
}

std::uint64_t lease::open_scope() {
    core_->flights->open_scope(flight_);
    return flight_.id;
}

} // namespace stn
