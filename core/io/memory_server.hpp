// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "protocol/command.hpp"
#include "protocol/reply.hpp"

namespace stn {

// One connection to the memory server. All but `ring` are called under the server's lock, in the order
// of execution, and may only take note; `ring` comes after it, without a lock, to those who got a
// message by somebody else's command.
class memory_peer {
  public:
    memory_peer() = default;
    memory_peer(const memory_peer&) = delete;
    memory_peer& operator=(const memory_peer&) = delete;
    virtual ~memory_peer() = default;

    virtual void on_reply(std::uint64_t seq, reply answer) = 0;
    virtual void on_subscribed(std::string_view channel) = 0; // before the reply
    virtual void on_message(std::string_view channel, std::string_view payload) = 0;
    virtual void ring() = 0;
};

// The store inside the process: the commands and scripts we use, with a real server's semantics. Each
// script of core/protocol/scripts is written once more beside it, in memory_scripts.cpp; a
// differential test holds the two together. What differs from a real server, on purpose:
//   - a key is gone at the very millisecond of its TTL (a real one still shows it there, with PTTL 0);
//   - no two fences are the same, even of one microsecond: max(now, last + 1);
//   - expired keys leave at the next command, read or not, so that nothing piles up;
//   - there are no separate sharded channels, and a publisher hears itself if it subscribed.
class memory_server {
  public:
    explicit memory_server(std::function<server_ms()> now);
    memory_server(const memory_server&) = delete;
    memory_server& operator=(const memory_server&) = delete;

    // Executes at once; the reply goes to `from`.
    void submit(const std::shared_ptr<memory_peer>& from, std::uint64_t seq, const command& cmd);
    void forget(const std::shared_ptr<memory_peer>& peer);
    // The same from nowhere: it cannot subscribe.
    reply execute(const command& cmd);
    [[nodiscard]] server_ms now() const;

    // For tests and simulators, past the commands: not counted, and nobody is told.
    [[nodiscard]] std::vector<std::string> keys(); // sorted
    [[nodiscard]] std::optional<std::string> peek(const std::string& key);
    [[nodiscard]] std::optional<std::int64_t> pttl(const std::string& key); // -1: a key without a TTL
    void set(const std::string& key, std::string bytes, std::optional<std::int64_t> ttl_ms);
    void set_list(const std::string& key, std::optional<std::int64_t> ttl_ms); // WRONGTYPE to all we do
    bool del(const std::string& key);
    void flush();
    void refuse_writes(bool on);  // as at maxmemory
    void refuse_publish(bool on); // as by an ACL
    [[nodiscard]] std::uint64_t count(verb what);
    [[nodiscard]] std::uint64_t count(script_id what);
    [[nodiscard]] std::uint64_t count_all();
    void reset_counts();

  private:
    class script_run;
    using due_map = std::multimap<server_ms, const std::string*>;
    using peers = std::vector<std::shared_ptr<memory_peer>>;
    struct entry {
        std::string bytes;
        bool list = false;
        std::optional<due_map::iterator> due; // none: no TTL
    };
    // Who asks, and who has to be rung when the lock is open.
    struct request {
        const command& cmd;
        std::shared_ptr<memory_peer> from;
        peers rung;
    };

    reply run(request& r);
    reply run_script(request& r);
    std::int64_t publish(const std::string& channel, std::string_view payload, request& r);
    void expire();
    entry* find(const std::string& key);
    void store(const std::string& key, std::string bytes, bool list, std::optional<std::int64_t> ttl_ms);
    void set_ttl(const std::string& key, std::optional<std::int64_t> ttl_ms);
    bool erase(const std::string& key);
    [[nodiscard]] std::int64_t left(const entry& e) const; // -1: no TTL

    const std::function<server_ms()> clock_;
    mutable std::mutex mutex_;
    server_ms now_ = 0; // of the command that runs; guarded by mutex_, like all below
    std::unordered_map<std::string, entry> keys_;
    due_map due_;
    std::map<std::string, peers, std::less<>> channels_;
    std::array<std::uint64_t, static_cast<std::size_t>(verb::ping) + 1> verbs_{};
    std::array<std::uint64_t, static_cast<std::size_t>(script_id::count_)> scripts_{};
    std::int64_t last_fence_ = 0;
    bool refuse_writes_ = false;
    bool refuse_publish_ = false;
};

} // namespace stn
