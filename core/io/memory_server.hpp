// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "protocol/command.hpp"
#include "protocol/reply.hpp"

namespace stn {

// One connection to the memory server. `on_reply` and `on_message` are called under the server's
// lock, in the order of execution, and may only take note; `ring` comes after it, without a lock,
// to those who got a message from somebody else's command.
class memory_peer {
  public:
    memory_peer() = default;
    memory_peer(const memory_peer&) = delete;
    memory_peer& operator=(const memory_peer&) = delete;
    virtual ~memory_peer() = default;

    virtual void on_reply(std::uint64_t seq, reply answer) = 0;
    virtual void on_message(std::string_view channel, std::string_view payload) = 0;
    virtual void ring() = 0;
};

// The store inside the process: the commands and scripts we use, with a real server's semantics.
// Each script of core/protocol/scripts is written here once more, in C++; a differential test holds
// the two together. What differs from a real server, on purpose:
//   - a key is gone at the very millisecond of its TTL (a real one still shows it there, with PTTL
//   0);
//   - expired keys leave at the next command, read or not, so that nothing piles up;
//   - PUBLISH and SPUBLISH are one, and reach the publisher too if it subscribed.
class memory_server {
  public:
    explicit memory_server(std::function<server_ms()> now);
    ~memory_server();
    memory_server(const memory_server&) = delete;
    memory_server& operator=(const memory_server&) = delete;

    // Executes at once; the reply goes to `from`.
    void submit(const std::shared_ptr<memory_peer>& from, std::uint64_t seq, const command& cmd);
    void forget(const std::shared_ptr<memory_peer>& peer);
    // The same from nowhere: cannot subscribe.
    reply execute(const command& cmd);
    [[nodiscard]] server_ms now() const;

    // For tests and simulators, past the commands: not counted, and nobody is told.
    [[nodiscard]] std::vector<std::string> keys();
    [[nodiscard]] std::optional<std::string> peek(std::string_view key);
    [[nodiscard]] std::optional<std::int64_t> pttl(std::string_view key); // -1: a key without a TTL
    void set(std::string_view key, std::string_view bytes, std::optional<std::int64_t> ttl_ms);
    void set_list(std::string_view key,
                  std::optional<std::int64_t> ttl_ms); // WRONGTYPE to all we do
    bool del(std::string_view key);
    void flush();
    void refuse_writes(bool on);  // as at maxmemory
    void refuse_publish(bool on); // as by an ACL
    [[nodiscard]] std::uint64_t count(verb what);
    [[nodiscard]] std::uint64_t count(script_id what);
    [[nodiscard]] std::uint64_t count_all();
    void reset_counts();

  private:
    struct entry;
    struct script_run;
    friend struct script_run;
    using key_map = std::unordered_map<std::string, entry>;
    using due_map = std::multimap<server_ms, const std::string*>;
    using peer_set = std::set<std::shared_ptr<memory_peer>>;

    reply run(const command& cmd, const std::shared_ptr<memory_peer>& from, peer_set& rung);
    reply run_script(const command& cmd, const std::shared_ptr<memory_peer>& from, peer_set& rung);
    std::int64_t publish(const std::string& channel, std::string_view payload,
                         const std::shared_ptr<memory_peer>& from, peer_set& rung);
    void expire();
    entry* find(std::string_view key);
    void store(std::string_view key, std::string bytes, bool list,
               std::optional<std::int64_t> ttl_ms);
    void set_due(entry& e, const std::string& key, std::optional<std::int64_t> ttl_ms);
    bool erase(std::string_view key);

    const std::function<server_ms()> now_;
    std::mutex mutex_;
    key_map keys_; // guarded by mutex_, like all below
    due_map due_;
    std::map<std::string, peer_set, std::less<>> channels_;
    std::array<std::uint64_t, 8> verbs_{};
    std::array<std::uint64_t, static_cast<std::size_t>(script_id::count_)> scripts_{};
    bool refuse_writes_ = false;
    bool refuse_publish_ = false;
};

} // namespace stn
