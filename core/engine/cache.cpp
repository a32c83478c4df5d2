// SPDX-License-Identifier: MIT
#include "engine/cache.hpp"

#include <algorithm>
#include <utility>

#include "engine/wait_graph.hpp"
#include "protocol/keys.hpp"
#include "protocol/schedule.hpp"
#include "protocol/wake.hpp"

namespace stn {

namespace {

constexpr std::int64_t longest_ttl_ms = 315'360'000'000; // ten years

// Kinds of flights that are no fill_mode.
constexpr std::uint8_t kind_write = 100;

} // namespace

cache::cache(std::shared_ptr<client_handle> owner, std::string_view name, const fill_policy& policy)
    : owner_(std::move(owner)),
      state_(owner_->core->cache(name, policy.max_loads)),
      policy_(std::make_shared<const fill_policy>(policy)) {}

std::shared_ptr<const key_names> cache::names_of(std::string_view key) const {
    auto n = blocks::make_shared<key_names>();
    n->prefix = owner_->core->settings.prefix;
    n->cache = state_->name;
    n->key = key;
    n->store_key = value_key(n->prefix, n->cache, key);
    return n;
}

std::optional<error> cache::refuse(const call& c, bool needs_ttl) const {
    if (c.key.empty()) return fail(status::invalid_argument, "the key is empty");
    if (c.key.size() > max_key) {
        return fail(status::too_large,
                    "the key has " + std::to_string(c.key.size()) + " bytes; the limit is " + std::to_string(max_key));
    }
    if (c.deadline_ms < -1) {
        return fail(status::invalid_argument, "deadline_ms is " + std::to_string(c.deadline_ms) +
                                                  "; it is -1 (the default), 0 (do not wait) or more");
    }
    if (needs_ttl && (c.policy ? *c.policy : *policy_).ttl_ms <= 0) {
        return fail(status::invalid_argument,
                    "the cache \"" + state_->name + "\" was opened without \"ttl\": it can get and invalidate only",
                    std::string(c.key));
    }
    if (c.home->closed()) return fail(status::closed, "the queue is closed", std::string(c.key));
    const client_core& core = *owner_->core;
    if (core.closing() && (core.closed() || !wait_graph::of_process().is_open(c.within))) {
        return fail(status::closed, "the client is closed", std::string(c.key));
    }
    return std::nullopt;
}

std::optional<error> cache::check_lifetime(std::int64_t ttl_ms, std::int64_t soft_ttl_ms) {
    if (ttl_ms != -1 && (ttl_ms < 1 || ttl_ms > longest_ttl_ms)) {
        return fail(status::invalid_argument,
                    "ttl_ms is " + std::to_string(ttl_ms) + "; it is -1 (the policy's) or 1 ms to ten years");
    }
    if (soft_ttl_ms < -1 || soft_ttl_ms > longest_ttl_ms) {
        return fail(status::invalid_argument, "soft_ttl_ms is " + std::to_string(soft_ttl_ms) +
                                                  "; it is -1 (the policy's), 0 (none) or below ttl");
    }
    if (ttl_ms > 0 && soft_ttl_ms >= ttl_ms) {
        return fail(status::invalid_argument, "soft_ttl_ms (" + std::to_string(soft_ttl_ms) +
                                                  ") is not below ttl_ms (" + std::to_string(ttl_ms) + ")");
    }
    return std::nullopt;
}

result<std::uint64_t> cache::enter(const call& c, fill_mode mode, const token& generation, bool joins) {
    const auto& policy = c.policy ? c.policy : policy_;
    client_core& core = *owner_->core;
    const mono_ms now = core.time.now_ms();
    single_flight::visitor who{c.home, c.tag, c.within};
    who.refresh = c.refresh;
    who.came = now;
    std::int64_t wait = c.deadline_ms;
    if (mode == fill_mode::peek) {
        if (wait <= 0) {
            wait = core.settings.command_timeout_ms * (1 + schedule::look_resends);
            if (core.settling) wait += core.settings.connect_timeout_ms;
        }
    } else if (wait < 0) {
        wait = schedule::default_wait(*policy, state_->average_load_ms.load());
    }
    who.no_wait = mode != fill_mode::peek && wait == 0;
    who.deadline = who.no_wait ? forever_ms : add_ms(now, wait);

    const single_flight::entry how{
        {state_->space, static_cast<std::uint8_t>(mode), generation, c.key}, joins, true, true};
    bool posted = true;
    const auto tell_loop = [&](const single_flight::ticket& t) {
        if (t.what == single_flight::ticket::kind::leads) {
            fill_run::start s;
            s.flight = t.flight;
            s.cache = state_;
            s.alarm = t.alarm;
            s.setup.mode = mode;
            s.setup.policy = policy;
            s.setup.names = names_of(c.key);
            s.setup.generation = generation;
            posted = core.turns.post_for_help(
                [&core, s = std::move(s)](mono_ms at) mutable { core.fetches.begin(std::move(s), at); });
        } else {
            posted = core.turns.post_for_help([&core, f = t.flight, at = *t.alarm](mono_ms) {
                if (const auto run = core.fetches.find(f.id)) run->set_alarm(at);
                core.flights->drop(f);
            });
        }
    };
    const auto t = core.flights->enter(how, who, tell_loop);
    using kind = single_flight::ticket::kind;
    switch (t.what) {
    case kind::would_deadlock:
        state_->stats.add(stat::deadlocks);
        return fail(status::would_deadlock, "this call would wait for the load that makes it", std::string(c.key));
    case kind::closed: return fail(status::closed, "the client is closed", std::string(c.key));
    case kind::no_wait: {
        event e;
        e.kind = event_kind::error;
        e.code = status::timeout;
        e.tag = c.tag;
        e.what = outcome_error(
            fail(status::timeout, "another load is running, and this call does not wait", std::string(c.key)));
        if (c.now == nullptr) c.home->promise();
        state_->stats.add(stat::timeouts);
        if (c.now != nullptr) {
            *c.now = std::move(e);
            return std::uint64_t{0};
        }
        const std::uint64_t op = single_flight::ended_op();
        c.home->push(std::move(e));
        return op;
    }
    case kind::joined: state_->stats.add(stat::joins); break;
    case kind::leads: state_->stats.add(stat::flights); break;
    }
    const bool told = t.what == kind::leads || t.alarm;
    if (told && !posted) core.flights->drop(t.flight);
    if (told) core.turn_for(c.home.get());
    return t.op;
}

result<std::uint64_t> cache::fetch(const call& c) {
    if (auto no = refuse(c, true)) return *no;
    const auto& policy = c.policy ? *c.policy : *policy_;
    if (c.no_store) return enter(c, fill_mode::no_store, {}, false);
    return enter(c, c.force ? fill_mode::force : fill_mode::normal, {}, policy.coalesce);
}

result<std::uint64_t> cache::refetch(const call& c, const outcome& undecodable) {
    if (auto no = refuse(c, true)) return *no;
    state_->stats.add(stat::rejected);
    const auto& policy = c.policy ? *c.policy : *policy_;
    if (undecodable.from == source::flight || undecodable.generation.none()) {
        return fail(status::undecodable, "this process itself has just loaded the value that it cannot decode",
                    std::string(c.key));
    }
    if (!undecodable.retried) return enter(c, fill_mode::refetch, undecodable.generation, policy.coalesce);
    client_core& core = *owner_->core;
    errand news([&core, state = state_](mono_ms) {
        if (std::exchange(state->version_told, true)) return;
        core.tell(notice::version, status::undecodable,
                  "cache \"" + state->name + "\" holds values of two formats: raise its version");
    });
    auto begun = enter(c, fill_mode::alone, {}, policy.coalesce);
    if (begun) core.turns.post(std::move(news));
    return begun;
}

result<std::uint64_t> cache::get(const call& c) {
    if (auto no = refuse(c, false)) return *no;
    return enter(c, fill_mode::peek, {}, policy_->coalesce);
}

void cache::detach(std::string_view key) const {
    state_->stats.add(stat::detached, owner_->core->flights->detach(state_->space, key));
}

result<std::uint64_t> cache::change(const call& c, writes::request what) {
    client_core& core = *owner_->core;
    const auto r = blocks::make_shared<writes::request>(std::move(what));
    r->cache = state_;
    r->names = names_of(c.key);
    r->policy = c.policy ? c.policy : policy_;
    errand task([&core, r](mono_ms at) {
        core.fetches.detached(r->cache->space, r->names->store_key, at);
        core.changes.begin(std::move(*r), at);
    });
    const single_flight::visitor who{c.home, c.tag};
    const single_flight::entry how{{state_->space, kind_write, {}, c.key}, false, true, false};
    const auto t = core.flights->enter(how, who);
    if (t.what != single_flight::ticket::kind::leads) return fail(status::closed, "the client is closed");
    detach(c.key);
    r->flight = t.flight;
    if (!core.post_for(c.home.get(), std::move(task))) core.flights->drop(t.flight);
    return t.op;
}

result<std::uint64_t> cache::put(const call& c, std::string_view value, std::int32_t codec, std::int64_t ttl_ms,
                                 std::int64_t soft_ttl_ms) {
    const auto& policy = c.policy ? *c.policy : *policy_;
    if (auto no = refuse(c, ttl_ms < 0)) return *no;
    if (auto no = check_lifetime(ttl_ms, soft_ttl_ms)) return *no;
    if (codec != -1 && codec != policy.codec) {
        return fail(status::invalid_argument,
                    "codec " + std::to_string(codec) + " is not the cache's own (" + std::to_string(policy.codec) + ")",
                    std::string(c.key));
    }
    if (value.size() > policy.max_value) {
        return fail(status::too_large,
                    "the value has " + std::to_string(value.size()) + " bytes; max_value is " +
                        std::to_string(policy.max_value),
                    std::string(c.key));
    }
    auto v = blocks::make_shared<outcome>();
    v->storage = value;
    v->payload = v->storage;
    v->codec = policy.codec;
    v->ttl_ms = ttl_ms > 0 ? ttl_ms : policy.ttl_ms;
    v->soft_ttl_ms = soft_ttl_ms >= 0 ? soft_ttl_ms : policy.soft_ttl_ms < v->ttl_ms ? policy.soft_ttl_ms : 0;
    writes::request r;
    r.what = writes::request::kind::put;
    r.value = std::move(v);
    r.own_deadline = c.deadline_ms > 0;
    r.deadline =
        add_ms(owner_->core->time.now_ms(), r.own_deadline ? c.deadline_ms : owner_->core->settings.command_timeout_ms);
    return change(c, std::move(r));
}

result<std::uint64_t> cache::invalidate(const call& c, bool stale) {
    if (auto no = refuse(c, false)) return *no;
    writes::request r;
    r.what = stale ? writes::request::kind::mark_stale : writes::request::kind::erase;
    const std::int64_t until = c.deadline_ms < 0 ? 10'000 : c.deadline_ms;
    r.deadline = add_ms(owner_->core->time.now_ms(), until);
    return change(c, std::move(r));
}

} // namespace stn
