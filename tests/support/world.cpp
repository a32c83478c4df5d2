// SPDX-License-Identifier: MIT
#include "support/world.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <doctest/doctest.h>

#include "protocol/envelope.hpp"
#include "protocol/keys.hpp"

namespace stn::test {

namespace {

constexpr std::uint64_t fill_tag = 1ULL << 40; // FILLED events of a call: its tag and this
constexpr int most_rounds = 100'000;

} // namespace

// ---- load and run

load::load(world& in, host& by, std::shared_ptr<lease> what, std::uint64_t tag)
    : world_(&in),
      host_(&by),
      held_(std::move(what)),
      tag_(tag) {
    if (!held_) throw std::logic_error("the event carries no lease");
    held_->mark_taken();
}

std::uint32_t load::answer(outcome what, bool told) {
    lease::filled_to told_to{nullptr, tag_ | fill_tag};
    if (told && !host_->queue->closed()) told_to.home = host_->queue;
    const auto answered = held_->answer(std::move(what), told_to);
    CHECK(answered);
    world_->settle();
    return answered ? answered->shared : 0;
}

std::uint32_t load::fulfil(std::string_view value, how h) {
    outcome o;
    o.storage = value;
    o.codec = world_->prices(host_->node).policy().codec;
    o.ttl_ms = h.ttl_ms;
    o.soft_ttl_ms = h.soft_ttl_ms;
    o.host_ref = h.host_ref;
    return answer(std::move(o), true);
}

std::uint32_t load::absent(how h) {
    outcome o;
    o.code = status::absent;
    o.ttl_ms = h.ttl_ms;
    o.soft_ttl_ms = h.soft_ttl_ms;
    o.host_ref = h.host_ref;
    return answer(std::move(o), true);
}

std::uint32_t load::fail(std::string_view text, status code, std::uint64_t host_ref) {
    outcome o;
    o.code = code;
    o.why = stn::fail(code, std::string(text));
    o.host_ref = host_ref;
    return answer(std::move(o), false);
}

void load::free() {
    held_.reset();
    world_->settle();
}

std::uint32_t load::detach() {
    std::uint32_t waiters = 0;
    CHECK(held_->detach(waiters));
    world_->settle();
    return waiters;
}

std::uint64_t load::scope() {
    return held_->open_scope();
}

std::uint32_t run::finish(std::string_view value, status code, std::uint64_t host_ref) {
    outcome o;
    o.code = code;
    o.storage = value;
    if (code != status::ok && code != status::absent) o.why = stn::fail(code, std::string(value));
    o.host_ref = host_ref;
    std::uint32_t shared = 0;
    CHECK(held_->finish(std::move(o), shared));
    held_.reset();
    world_->settle();
    return shared;
}

void run::free() {
    held_.reset();
    world_->settle();
}

std::uint32_t run::detach() {
    std::uint32_t waiters = 0;
    CHECK(held_->detach(waiters));
    world_->settle();
    return waiters;
}

std::uint64_t run::scope() {
    return held_->open_scope();
}

// ---- call

void call::file(event e) {
    if (e.tag & fill_tag) {
        fills.push_back(std::move(e));
        return;
    }
    if (e.terminal()) {
        ++answers_;
        CHECK_MESSAGE(answers_ == 1, "an operation has one terminal event");
        end_ = e;
        end_.held.reset();
        end_.lead.reset();
        end_.lock.reset();
        end_.tick.reset();
        answer_ = &end_;
        ended_at_ = world_->now();
    }
    got.push_back(std::move(e));
}

event_kind call::kind() const {
    return answer_ != nullptr ? answer_->kind : event_kind::none;
}

status call::code() const {
    return answer_ != nullptr ? answer_->code : refused;
}

const event& call::answer() const {
    REQUIRE_MESSAGE(answer_ != nullptr, "the call still waits");
    return *answer_;
}

std::string call::value() const {
    if (kind() == event_kind::absent) return "(absent)";
    if (kind() != event_kind::value) return "(no value: " + std::string(status_name(code())) + ")";
    return std::string(answer_->what->payload);
}

std::string call::text() const {
    return answer().what ? answer().what->why.message : std::string();
}

bool call::stale() const {
    return answer().what && answer().what->stale;
}

std::int64_t call::took_ms() const {
    REQUIRE(answer_ != nullptr);
    return ended_at_ - at;
}

std::size_t call::count(event_kind k) const {
    return static_cast<std::size_t>(std::ranges::count_if(got, [&](const event& e) { return e.kind == k; }));
}

std::optional<reason> call::revoked() const {
    for (const event& e : got) {
        if (e.kind == event_kind::revoked) return e.why;
    }
    return std::nullopt;
}

std::optional<status> call::fill() const {
    if (fills.empty()) return std::nullopt;
    return fills.back().code;
}

std::vector<reason> call::losses() const {
    std::vector<reason> out;
    for (const event& e : fills) {
        if (e.kind == event_kind::lock_lost) out.push_back(e.why);
    }
    return out;
}

std::shared_ptr<held_lock> call::take_lock() {
    for (event& e : got) {
        if (e.lock) return std::exchange(e.lock, nullptr);
    }
    REQUIRE_MESSAGE(false, "the call got no lock");
    return nullptr;
}

std::shared_ptr<held_tick> call::take_tick() {
    for (event& e : got) {
        if (e.tick) return std::exchange(e.tick, nullptr);
    }
    REQUIRE_MESSAGE(false, "the call got no tick");
    return nullptr;
}

load call::take() {
    for (event& e : got) {
        if (e.kind == event_kind::lease && e.held) return {*world_, *by_, std::exchange(e.held, nullptr), tag};
    }
    REQUIRE_MESSAGE(false, "the call holds no lease");
    return {*world_, *by_, nullptr, 0};
}

load call::take_refresh() {
    for (event& e : got) {
        if (e.kind == event_kind::refresh && e.held) return {*world_, *by_, std::exchange(e.held, nullptr), tag};
    }
    REQUIRE_MESSAGE(false, "the call was given no refresh");
    return {*world_, *by_, nullptr, 0};
}

run call::take_run() {
    if (led_) return {*world_, std::move(led_)};
    for (event& e : got) {
        if (e.kind == event_kind::flight && e.lead) return {*world_, std::exchange(e.lead, nullptr)};
    }
    REQUIRE_MESSAGE(false, "the call leads nothing");
    return {*world_, nullptr};
}

// ---- host

host::host(world& in, int on_node, std::uint64_t scope)
    : node(on_node),
      queue(std::make_shared<event_queue>(scope)),
      world_(in) {}

call& host::begin() {
    call& c = calls.emplace_back(world_, *this);
    c.tag = world_.next_tag_++;
    c.at = world_.now();
    return c;
}

cache::call host::request(call& c, std::string_view key, const fetch_how& how, cache*& in) {
    in = how.in != nullptr ? how.in : &world_.prices(node);
    cache::call r;
    r.policy = how.policy;
    r.key = key;
    r.deadline_ms = how.deadline_ms;
    r.within = how.within;
    r.home = queue;
    r.tag = c.tag;
    r.force = how.force;
    r.no_store = how.no_store;
    r.refresh = how.refresh;
    return r;
}

call& host::done(call& c, const result<std::uint64_t>& r) {
    if (r) {
        c.op = *r;
    } else {
        c.refused = r.failure().code;
    }
    world_.settle();
    return c;
}

call& host::fetch(std::string_view key, fetch_how how) {
    call& c = begin();
    cache* in = nullptr;
    const auto r = request(c, key, how, in);
    return done(c, in->fetch(r));
}

call& host::refetch(const call& undecodable, std::string_view key, fetch_how how) {
    call& c = begin();
    cache* in = nullptr;
    const auto r = request(c, key, how, in);
    return done(c, in->refetch(r, *undecodable.answer().what));
}

call& host::get(std::string_view key, fetch_how how) {
    call& c = begin();
    cache* in = nullptr;
    const auto r = request(c, key, how, in);
    return done(c, in->get(r));
}

call& host::put(std::string_view key, std::string_view value, fetch_how how, std::int64_t ttl_ms,
                std::int64_t soft_ttl_ms) {
    call& c = begin();
    cache* in = nullptr;
    const auto r = request(c, key, how, in);
    return done(c, in->put(r, value, -1, ttl_ms, soft_ttl_ms));
}

call& host::invalidate(std::string_view key, bool stale, fetch_how how) {
    call& c = begin();
    cache* in = nullptr;
    const auto r = request(c, key, how, in);
    return done(c, in->invalidate(r, stale));
}

call& host::join(group& in, std::string_view key, fetch_how how) {
    call& c = begin();
    group::joined r;
    if (const auto no = in.join(key, how.deadline_ms, how.within, queue, c.tag, r)) {
        c.refused = no->code;
    } else if (r.lead) {
        c.led_ = std::make_shared<flight_lead>(std::move(*r.lead));
        event e;
        e.kind = event_kind::flight;
        e.tag = c.tag;
        c.file(std::move(e));
    } else {
        c.op = r.op;
    }
    world_.settle();
    return c;
}

lock_call host::lock_request(const call& c, std::string_view name, acquire_how how) const {
    lock_call r;
    r.name = name;
    r.deadline_ms = how.deadline_ms;
    r.within = how.within;
    r.home = queue;
    r.tag = c.tag;
    r.loss_home = queue;
    r.loss_tag = c.tag | fill_tag;
    return r;
}

call& host::acquire(std::string_view name, const lock_policy& policy, acquire_how how) {
    call& c = begin();
    return done(c, stn::acquire(world_.core(node), lock_request(c, name, how), policy));
}

call& host::inspect(std::string_view name, std::string_view literal_key) {
    call& c = begin();
    return done(c, stn::inspect(world_.core(node), lock_request(c, name, {}), literal_key));
}

call& host::tick(std::string_view name, const tick_policy& policy, std::int64_t deadline_ms) {
    call& c = begin();
    return done(c, stn::tick(world_.core(node), lock_request(c, name, {deadline_ms}), policy));
}

call& host::once(std::string_view id, std::int64_t ttl_ms, std::int64_t deadline_ms) {
    call& c = begin();
    return done(c, stn::once(world_.core(node), lock_request(c, id, {deadline_ms}), ttl_ms));
}

namespace {

result<std::uint64_t> op_of(const std::optional<error>& refused) {
    if (refused) return *refused;
    return std::uint64_t{0};
}

} // namespace

call& host::release(held_lock& lock, std::int64_t deadline_ms) {
    call& c = begin();
    return done(c, op_of(lock.release(deadline_ms, queue, c.tag)));
}

call& host::renew(held_lock& lock, std::int64_t deadline_ms) {
    call& c = begin();
    return done(c, op_of(lock.renew(deadline_ms, queue, c.tag)));
}

call& host::done(held_tick& run, bool ok, std::int64_t deadline_ms) {
    call& c = begin();
    return done(c, op_of(run.done(ok, deadline_ms, queue, c.tag)));
}

// What stn_cancel does.
void host::cancel(const call& c) {
    const auto table = single_flight::by_op(c.op);
    if (auto l = table ? table->leave(c.op, queue.get()) : std::nullopt) {
        event e;
        e.kind = event_kind::error;
        e.code = status::cancelled;
        e.tag = l->who.tag;
        e.what = outcome_error(fail(status::cancelled, "the call was cancelled"));
        queue->push(std::move(e));
        world_.core(node).after_leave(*l);
    }
    world_.settle();
}

// What stn_queue_close does.
void host::close() {
    queue->close();
    client_core& core = world_.core(node);
    for (const auto& l : core.flights->leave_queue(queue.get())) {
        event e;
        e.kind = event_kind::error;
        e.code = status::closed;
        e.tag = l.who.tag;
        e.what = outcome_error(fail(status::closed, "the queue is closed"));
        queue->push(std::move(e));
        core.after_leave(l);
    }
    world_.settle();
}

bool host::read_now() {
    std::vector<event> fresh;
    if (queue->drain(0, SIZE_MAX, fresh) != status::ok) return false;
    for (event& e : fresh) {
        if (e.kind == event_kind::notice) {
            notices.push_back(std::move(e));
            continue;
        }
        const std::uint64_t tag = e.tag & ~fill_tag;
        const auto it = std::ranges::find_if(calls, [&](const call& c) { return c.tag == tag; });
        REQUIRE_MESSAGE(it != calls.end(), "an event of nobody's");
        it->file(std::move(e));
    }
    return true;
}

void host::read() {
    (void)read_now();
    world_.settle();
}

std::size_t host::live_calls() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(calls, [](const call& c) { return c.refused == status::ok && !c.ended(); }));
}

// ---- world

world::world(int nodes, const fill_policy& policy, const client_settings& settings, fill_factory make_fill,
             lock_factory make_lock)
    : clock_(std::make_shared<manual_clock>()) {
    server = std::make_shared<memory_server>([this] { return clock_->now_ms() + server_ahead_ms; });
    for (int i = 0; i < nodes; ++i) {
        member n;
        n.chance = std::make_shared<test_draws>(static_cast<std::uint32_t>(i));
        auto link = std::make_unique<test_link>(server);
        n.link = link.get();
        client_parts parts;
        parts.link = std::move(link);
        parts.time = clock_;
        parts.chance = n.chance;
        parts.settings = settings;
        parts.make_fill = make_fill;
        parts.make_lock = make_lock;
        parts.threaded = false;
        n.handle = std::make_shared<client_handle>(client_core::make(std::move(parts)));
        n.core = n.handle->core.get();
        n.prices = std::make_unique<cache>(n.handle, "prices", policy);
        nodes_.push_back(std::move(n));
    }
    settle();
}

world::~world() {
    for (auto& [name, h] : hosts_) h->asleep = false;
    for (member& n : nodes_) {
        if (!n.crashed) n.paused = false;
    }
    settle();
    if (all_answered()) check_idle();
    for (member& n : nodes_) n.core->begin_close(0, nullptr, 0);
    settle();
    bool ending = false; // the store is given a moment to say what it has got back
    for (member& n : nodes_) {
        n.paused = false; // what has crashed too: it reaches nobody
        n.core->turns.turn();
        ending = ending || n.core->locks.busy() || n.core->asks.busy();
    }
    if (ending) advance(nodes_.front().core->settings.command_timeout_ms);
    for (auto& [name, h] : hosts_) {
        if (nth(h->node).crashed) continue;
        for (const call& c : h->calls) {
            CHECK_MESSAGE((c.ended() || c.refused != status::ok), "operation ", c.tag, " has no terminal event");
        }
    }
    for (auto& [name, h] : hosts_) h->calls.clear(); // leases and all
    for (member& n : nodes_) {
        n.core->turns.finish(); // a crashed one's, too
        CHECK(n.core->fetches.size() == 0);
        CHECK(n.core->flights->live() == 0);
        CHECK(n.core->turns.timers.size() == 0);
        CHECK(n.core->fetches.own_tokens.empty());
        if (!n.crashed) CHECK(n.core->locks.size() == 0);
        if (!n.crashed) CHECK(n.core->asks.size() == 0);
    }
}

// When everybody has their answer and every load is over, a client holds nothing.
bool world::all_answered() const {
    for (const auto& [name, h] : hosts_) {
        if (nth(h->node).crashed) return false;
        for (const call& c : h->calls) {
            if (!c.ended() && c.refused == status::ok) return false;
            for (const event& e : c.got) {
                if (e.carries()) return false;
            }
            if (c.led_) return false;
        }
    }
    return true;
}

void world::check_idle() {
    advance(5'000);
    for (member& n : nodes_) {
        if (n.core->closed() || n.core->fetches.busy() || n.core->changes.busy()) continue;
        if (n.core->locks.busy() || n.core->asks.busy()) continue;
        CHECK_MESSAGE(n.core->fetches.size() == 0, "an idle client keeps a flight");
        CHECK_MESSAGE(n.core->flights->live() == 0, "an idle client keeps a flight");
        CHECK_MESSAGE(n.core->turns.timers.size() == 0, "an idle client keeps a timer");
        CHECK(n.core->fetches.down_slots.running() == 0);
    }
}

host& world::at(int node, const std::string& name, std::uint64_t scope) {
    auto& h = hosts_[std::to_string(node) + "/" + name];
    if (!h) h = std::make_unique<host>(*this, node, scope);
    return *h;
}

std::unique_ptr<cache> world::open(int node, std::string_view name, const fill_policy& policy) {
    return std::make_unique<cache>(nth(node).handle, name, policy);
}

std::unique_ptr<group> world::new_group(int node) {
    return std::make_unique<group>(nth(node).handle);
}

void world::always(double unit) {
    for (member& n : nodes_) n.chance->always = unit;
}

std::uint64_t world::activity() const {
    std::uint64_t sum = read_;
    for (const member& n : nodes_) sum += n.link->activity() + n.core->totals.snapshot()[stat::events];
    return sum;
}

void world::settle() {
    int quiet = 0;
    for (int round = 0; quiet < 3; ++round) {
        REQUIRE_MESSAGE(round < most_rounds, "the world does not come to rest");
        const std::uint64_t before = activity();
        for (member& n : nodes_) {
            if (n.paused) continue;
            n.core->turns.turn();
            if (n.core->closed()) n.core->turns.finish(); // as the loop's thread would
        }
        for (auto& [name, h] : hosts_) {
            if (h->asleep || nth(h->node).paused) continue;
            if (h->read_now()) ++read_;
        }
        quiet = activity() == before ? quiet + 1 : 0;
    }
    check_keys();
}

void world::advance(std::int64_t ms) {
    settle();
    const mono_ms target = now() + ms;
    while (now() < target) {
        mono_ms next = target;
        for (member& n : nodes_) {
            if (!n.paused) next = std::min(next, n.core->turns.next_due_ms());
        }
        REQUIRE_MESSAGE(next > now(), "a node is due and does nothing");
        clock_->advance(next - now());
        settle();
    }
}

void world::check_keys() {
    if (may_hold_forever) return;
    for (const std::string& key : server->keys()) {
        CHECK_MESSAGE(server->pttl(key).value_or(0) != -1, "a key without a TTL: ", key);
    }
}

void world::resume(int node) {
    nth(node).paused = false;
    settle();
}

void world::crash(int node) {
    auto& n = nth(node);
    n.paused = n.crashed = true;
    n.link->cut();
    settle();
}

call& world::close(int node, std::int64_t deadline_ms, host& by) {
    call& c = by.begin();
    core(node).begin_close(deadline_ms, by.queue, c.tag);
    settle();
    return c;
}

std::uint64_t world::stat_of(int node, stat s) const {
    return nth(node).core->stats()[s];
}

std::uint64_t world::total(stat s) const {
    std::uint64_t sum = 0;
    for (const member& n : nodes_) sum += n.core->stats()[s];
    return sum;
}

std::string world::lock_key(std::string_view name) const {
    return stn::lock_key(nodes_.front().core->settings.prefix, name);
}

std::string world::store_key(std::string_view key) const {
    return value_key(nodes_.front().core->settings.prefix, "prices", key);
}

std::optional<envelope> world::stored(std::string_view key) {
    const auto bytes = server->peek(store_key(key));
    if (!bytes) return std::nullopt;
    stored_bytes_ = *bytes;
    envelope e;
    if (decode(stored_bytes_, e) != reading::ours) return std::nullopt;
    return e;
}

std::optional<std::string> world::stored_value(std::string_view key) {
    const auto e = stored(key);
    if (!e || e->kind != entry_kind::value) return std::nullopt;
    return std::string(e->payload);
}

void world::store(std::string_view key, const envelope& e, std::optional<std::int64_t> ttl_ms) {
    server->set(store_key(key), encode(e), ttl_ms);
}

std::vector<call*> world::calls(const std::function<bool(const call&)>& which) {
    std::vector<call*> out;
    for (auto& [name, h] : hosts_) {
        for (call& c : h->calls) {
            if (which(c)) out.push_back(&c);
        }
    }
    return out;
}

call& world::leader() {
    const auto who = calls([](const call& c) {
        return std::ranges::any_of(c.got, [](const event& e) { return e.kind == event_kind::lease && e.held; });
    });
    REQUIRE(who.size() == 1);
    return *who.front();
}

} // namespace stn::test
