// SPDX-License-Identifier: MIT
#include "engine/lock_calls.hpp"

#include <string>
#include <utility>

#include "engine/wait_graph.hpp"
#include "protocol/keys.hpp"
#include "protocol/lock_value.hpp"
#include "protocol/options.hpp"

namespace stn {

namespace {

// Kinds of flights that are no fill_mode, and whose callers share nothing.
constexpr std::uint8_t kind_lock = 101;
constexpr std::uint8_t kind_chore = 102;

std::optional<error> refuse(const client_core& core, const lock_call& c, std::string_view what) {
    if (c.name.empty()) return fail(status::invalid_argument, "the name of the " + std::string(what) + " is empty");
    if (c.name.size() > max_key) {
        return fail(status::too_large, "the name has " + std::to_string(c.name.size()) + " bytes; the limit is " +
                                           std::to_string(max_key));
    }
    if (c.deadline_ms < -1) {
        return fail(status::invalid_argument, "deadline_ms is " + std::to_string(c.deadline_ms) +
                                                  "; it is -1 (the default), 0 (do not wait) or more");
    }
    if (core.closing()) return fail(status::closed, "the client is closed", std::string(c.name));
    if (c.home->closed()) return fail(status::closed, "the queue is closed", std::string(c.name));
    return std::nullopt;
}

// One round trip and one more for a lost reply; and the time of connecting, while it may still end well.
std::int64_t patience(const client_core& core) {
    return 2 * core.settings.command_timeout_ms + (core.settling ? core.settings.connect_timeout_ms : 0);
}

template <class Begin>
result<std::uint64_t> enter(client_core& core, const lock_call& c, std::uint8_t kind, Begin begin) {
    const single_flight::visitor who{c.home, c.tag, c.within};
    const single_flight::entry how{{0, kind, {}, c.name}, false, true, true};
    bool posted = true;
    const auto t = core.flights->enter(how, who, [&](const single_flight::ticket& ticket) {
        posted = core.turns.post_for_help(begin(ticket.flight));
    });
    if (t.what != single_flight::ticket::kind::leads) {
        return fail(status::closed, "the client is closed", std::string(c.name));
    }
    if (!posted) core.flights->drop(t.flight);
    core.turn_for(c.home.get());
    return t.op;
}

result<std::uint64_t> begin_chore(client_core& core, const lock_call& c, chores::request r) {
    r.name = c.name;
    r.deadline = add_ms(core.time.now_ms(), c.deadline_ms <= 0 ? patience(core) : c.deadline_ms);
    return enter(core, c, kind_chore, [&](const single_flight::ref& flight) {
        r.flight = flight;
        return errand([&core, r = std::move(r)](mono_ms now) mutable { core.asks.begin(std::move(r), now); });
    });
}

} // namespace

result<std::uint64_t> acquire(client_core& core, const lock_call& c, const lock_policy& policy) {
    if (auto no = refuse(core, c, "lock")) return *no;
    if (auto no = check_lock_policy(policy)) return *no;
    lock_run::request r;
    r.setup.name = c.name;
    r.setup.key = policy.key.empty() ? lock_key(core.settings.prefix, c.name) : policy.key;
    r.setup.channel = wake_channel(core.settings.prefix, r.setup.key); // however the key was named
    r.setup.label = policy.label;
    r.setup.ttl_ms = policy.ttl_ms;
    r.setup.max_hold_ms = policy.max_hold_ms;
    r.setup.renew = policy.renew;
    r.setup.command_timeout_ms = core.settings.command_timeout_ms;
    const std::int64_t wait = c.deadline_ms < 0 ? policy.wait_ms : c.deadline_ms;
    r.once = wait == 0;
    r.deadline = add_ms(core.time.now_ms(), r.once ? patience(core) : wait);
    r.within = wait_graph::of_process().is_open(c.within) ? c.within : 0;
    r.loss = {c.loss_home, c.loss_tag};
    return enter(core, c, kind_lock, [&](const single_flight::ref& flight) {
        r.flight = flight;
        return errand([&core, r = std::move(r)](mono_ms now) mutable { core.locks.begin(std::move(r), now); });
    });
}

result<std::uint64_t> inspect(client_core& core, const lock_call& c, std::string_view literal_key) {
    if (auto no = refuse(core, c, "lock")) return *no;
    chores::request r;
    r.what = chores::request::kind::inspect;
    r.key = literal_key.empty() ? lock_key(core.settings.prefix, c.name) : std::string(literal_key);
    return begin_chore(core, c, std::move(r));
}

result<std::uint64_t> tick(client_core& core, const lock_call& c, const tick_policy& policy) {
    if (auto no = refuse(core, c, "tick")) return *no;
    if (auto no = check_tick_policy(policy)) return *no;
    chores::request r;
    r.what = chores::request::kind::tick;
    r.key = tick_key(core.settings.prefix, c.name);
    r.when.every_ms = policy.every_ms;
    r.when.offset_ms = policy.offset_ms;
    r.when.at_most_ms = policy.at_most_ms > 0 ? policy.at_most_ms : policy.every_ms;
    return begin_chore(core, c, std::move(r));
}

result<std::uint64_t> once(client_core& core, const lock_call& c, std::int64_t ttl_ms) {
    if (auto no = refuse(core, c, "id")) return *no;
    if (ttl_ms < 1 || ttl_ms > longest_ttl_ms) {
        return fail(status::invalid_argument, "ttl_ms is " + std::to_string(ttl_ms) + "; it is 1 ms to ten years",
                    std::string(c.name));
    }
    chores::request r;
    r.what = chores::request::kind::once;
    r.key = once_key(core.settings.prefix, c.name);
    r.ttl_ms = ttl_ms;
    return begin_chore(core, c, std::move(r));
}

} // namespace stn
