// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cache.hpp"
#include "engine/client_core.hpp"
#include "engine/group.hpp"
#include "engine/held_lock.hpp"
#include "engine/lock_calls.hpp"
#include "io/manual_clock.hpp"
#include "support/chance.hpp"
#include "support/link.hpp"

// A fleet inside one test: nodes on one memory server, one clock that moves when it is told to, no
// thread, no sleep.
//
//     world w(2, {.ttl_ms = 60'000});         two clients, and a cache "prices" on each
//     call& first = w.at(0).fetch("apple");   at(n): a host of node n, that is a queue and who reads it
//     load made = first.take();               the host takes the lease ...
//     w.advance(300);                         ... and needs 300 ms
//     made.fulfil("red");
//     CHECK(first.fill() == status::ok);
//
// After each step all nodes are turned, and all hosts read their queues, until nothing happens any
// more; `advance` does so at every due timer. A host that is `asleep` does not read, a node that is
// paused does not turn. When a world ends it closes its clients and checks what holds in every test:
// one terminal event for each operation, no key without a TTL, nothing left over.
namespace stn::test {

class world;
class host;

// A load in the hands of its host.
class load {
  public:
    load(world& in, host& by, std::shared_ptr<lease> what, std::uint64_t tag);

    struct how {
        std::int64_t ttl_ms = -1;
        std::int64_t soft_ttl_ms = -1;
        std::uint64_t host_ref = 0;
    };
    // Each gives how many events carry the host_ref.
    std::uint32_t fulfil(std::string_view value) { return fulfil(value, {}); }
    std::uint32_t fulfil(std::string_view value, how h);
    std::uint32_t absent() { return absent({}); }
    std::uint32_t absent(how h);
    std::uint32_t fail(std::string_view text = "no such luck", status code = status::load_failed,
                       std::uint64_t host_ref = 0);
    void free();            // without an answer
    std::uint32_t detach(); // how many wait
    [[nodiscard]] lease::state state() const { return held_->at(); }
    [[nodiscard]] std::uint64_t scope(); // for calls made by this loader

  private:
    std::uint32_t answer(outcome what, bool told);

    world* world_;
    host* host_;
    std::shared_ptr<lease> held_;
    std::uint64_t tag_;
};

// A run of a group in the hands of its leader.
class run {
  public:
    run(world& in, std::shared_ptr<flight_lead> what) : world_(&in), held_(std::move(what)) {}
    std::uint32_t finish(std::string_view value, status code = status::ok, std::uint64_t host_ref = 0);
    void free();
    std::uint32_t detach();
    [[nodiscard]] std::uint64_t scope();

  private:
    world* world_;
    std::shared_ptr<flight_lead> held_;
};

// One operation, and what has come of it so far.
class call {
  public:
    call(world& in, host& by) : world_(&in), by_(&by) {}

    [[nodiscard]] bool ended() const { return answer_ != nullptr; }
    [[nodiscard]] event_kind kind() const; // of the terminal event; none: it still waits
    [[nodiscard]] status code() const;     // of the terminal event, or why the call was refused
    [[nodiscard]] std::string value() const;
    [[nodiscard]] std::string text() const; // of an error
    [[nodiscard]] bool stale() const;
    [[nodiscard]] const event& answer() const;
    [[nodiscard]] std::int64_t took_ms() const; // from the call to its terminal event
    [[nodiscard]] bool leads() const { return kind() == event_kind::lease; }
    [[nodiscard]] std::size_t count(event_kind k) const;
    [[nodiscard]] std::optional<reason> revoked() const;
    [[nodiscard]] std::optional<status> fill() const; // what FILLED said
    // LOCK_LOST events of the lock that this call took.
    [[nodiscard]] std::vector<reason> losses() const;
    // Takes the lock or the tick out of its event.
    std::shared_ptr<held_lock> take_lock();
    std::shared_ptr<held_tick> take_tick();
    // Takes the lease (or REFRESH) out of its event. Fails the test when there is none.
    load take();
    load take_refresh();
    run take_run();
    void drop_events() { got.clear(); }

    std::uint64_t tag = 0;
    std::uint64_t op = 0;
    status refused = status::ok; // else nothing was begun
    mono_ms at = 0;
    std::deque<event> got;
    std::vector<event> fills; // and losses

  private:
    friend class host;
    friend class world;
    void file(event e);
    world* world_;
    host* by_;
    const event* answer_ = nullptr; // kept in `end_`
    event end_;
    mono_ms ended_at_ = 0;
    std::shared_ptr<flight_lead> led_;
    int answers_ = 0;
};

struct acquire_how {
    std::int64_t deadline_ms = -1;
    std::uint64_t within = 0;
};

struct fetch_how {
    std::int64_t deadline_ms = -1;
    std::uint64_t within = 0;
    bool force = false;
    bool no_store = false;
    bool refresh = false;
    std::shared_ptr<const fill_policy> policy = nullptr;
    cache* in = nullptr; // else the node's "prices"
};

class host {
  public:
    host(world& in, int node, std::uint64_t scope);

    call& fetch(std::string_view key) { return fetch(key, {}); }
    call& fetch(std::string_view key, fetch_how how);
    call& refetch(const call& undecodable, std::string_view key) { return refetch(undecodable, key, {}); }
    call& refetch(const call& undecodable, std::string_view key, fetch_how how);
    call& get(std::string_view key) { return get(key, {}); }
    call& get(std::string_view key, fetch_how how);
    call& put(std::string_view key, std::string_view value) { return put(key, value, {}); }
    call& put(std::string_view key, std::string_view value, fetch_how how, std::int64_t ttl_ms = -1,
              std::int64_t soft_ttl_ms = -1);
    call& invalidate(std::string_view key, bool stale = false) { return invalidate(key, stale, {}); }
    call& invalidate(std::string_view key, bool stale, fetch_how how);
    call& join(group& in, std::string_view key) { return join(in, key, {}); }
    call& join(group& in, std::string_view key, fetch_how how);
    call& acquire(std::string_view name, const lock_policy& policy) { return acquire(name, policy, {}); }
    call& acquire(std::string_view name, const lock_policy& policy, acquire_how how);
    call& release(held_lock& lock, std::int64_t deadline_ms = -1);
    call& renew(held_lock& lock, std::int64_t deadline_ms = -1);
    call& inspect(std::string_view name, std::string_view literal_key = {});
    call& tick(std::string_view name, const tick_policy& policy, std::int64_t deadline_ms = -1);
    call& done(held_tick& run, bool ok, std::int64_t deadline_ms = -1);
    call& once(std::string_view id, std::int64_t ttl_ms, std::int64_t deadline_ms = -1);
    void cancel(const call& c);
    void close(); // the queue

    void read(); // what is there now, also when asleep
    [[nodiscard]] std::size_t live_calls() const;

    bool asleep = false;
    const int node;
    const std::shared_ptr<event_queue> queue;
    std::deque<call> calls;
    std::vector<event> notices;

  private:
    friend class world;
    call& begin();
    cache::call request(call& c, std::string_view key, const fetch_how& how, cache*& in);
    call& done(call& c, const result<std::uint64_t>& r);
    [[nodiscard]] lock_call lock_request(const call& c, std::string_view name, acquire_how how) const;
    bool read_now();

    world& world_;
};

class world {
  public:
    explicit world(int nodes = 1) : world(nodes, fill_policy{.ttl_ms = 60'000}) {}
    world(int nodes, const fill_policy& policy) : world(nodes, policy, client_settings{}) {}
    world(int nodes, const fill_policy& policy, const client_settings& settings, fill_factory make_fill = {},
          lock_factory make_lock = {});
    ~world();
    world(const world&) = delete;
    world& operator=(const world&) = delete;

    // The host of that name on a node; made when first named.
    host& at(int node, const std::string& name = "main", std::uint64_t scope = 1);
    [[nodiscard]] std::unique_ptr<cache> open(int node, std::string_view name, const fill_policy& policy);
    [[nodiscard]] std::unique_ptr<group> new_group(int node);
    [[nodiscard]] cache& prices(int node) { return *nth(node).prices; }
    [[nodiscard]] client_core& core(int node) { return *nth(node).core; }
    [[nodiscard]] test_link& link(int node) { return *nth(node).link; }
    [[nodiscard]] test_draws& chance(int node) { return *nth(node).chance; }
    void always(double unit); // what every node draws from now on
    [[nodiscard]] int size() const { return static_cast<int>(nodes_.size()); }

    void settle();
    void advance(std::int64_t ms);
    [[nodiscard]] mono_ms now() const { return clock_->now_ms(); }

    // The node stands still, and so do the hosts on it; `crash`: for ever, and its connection ends.
    void pause(int node) { nth(node).paused = true; }
    void resume(int node);
    void crash(int node);
    // client close; the host gets DONE.
    call& close(int node, std::int64_t deadline_ms, host& by);

    [[nodiscard]] std::uint64_t stat_of(int node, stat s) const;
    [[nodiscard]] std::uint64_t total(stat s) const;
    [[nodiscard]] std::string store_key(std::string_view key) const;
    // What stands in the key. `payload` is only to be read through `stored_value`.
    [[nodiscard]] std::string lock_key(std::string_view name) const;
    [[nodiscard]] std::optional<envelope> stored(std::string_view key);
    [[nodiscard]] std::optional<std::string> stored_value(std::string_view key); // of a value
    void store(std::string_view key, const envelope& e, std::optional<std::int64_t> ttl_ms);

    // All calls of all hosts that are `which`.
    std::vector<call*> calls(const std::function<bool(const call&)>& which);
    call& leader(); // the one who holds a lease not answered; fails the test unless there is exactly one

    std::shared_ptr<memory_server> server;
    std::int64_t server_ahead_ms = 0; // of the nodes' clock
    bool may_hold_forever = false;    // a test that puts a key without a TTL there says so

  private:
    friend class host;
    struct member {
        std::shared_ptr<client_handle> handle;
        client_core* core = nullptr;
        test_link* link = nullptr;
        std::shared_ptr<test_draws> chance;
        std::unique_ptr<cache> prices;
        bool paused = false;
        bool crashed = false;
    };
    [[nodiscard]] member& nth(int node) { return nodes_.at(static_cast<std::size_t>(node)); }
    [[nodiscard]] const member& nth(int node) const { return nodes_.at(static_cast<std::size_t>(node)); }
    [[nodiscard]] std::uint64_t activity() const;
    void check_keys();
    void check_idle();
    [[nodiscard]] bool all_answered() const;

    std::shared_ptr<manual_clock> clock_;
    std::vector<member> nodes_;
    std::map<std::string, std::unique_ptr<host>> hosts_;
    std::uint64_t next_tag_ = 1;
    std::uint64_t read_ = 0;
    std::string stored_bytes_;
};

} // namespace stn::test
