// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "io/memory_server.hpp"
#include "protocol/command.hpp"
#include "protocol/reply.hpp"
#include "support/live_server.hpp"
#include "support/plain_connection.hpp"

// One command, given to the embedded store and to a real server, and what each shows of it.
//
// There is one clock: the real server's. It says what time it is before and after each command, in the
// same write as the command; the embedded store then does the same at that time. So no wait and no
// scheduler comes between the two, and expiry can be compared to a few milliseconds.
namespace stn::differ {

// What is put into a key past the scripts.
struct scene {
    bool list = false; // WRONGTYPE to everything of ours
    std::string bytes;
    std::optional<std::int64_t> ttl_ms;
};

struct step {
    command what;
    std::optional<scene> before; // put there first
    bool full = false;           // the server is at maxmemory
    bool muted = false;          // who asks may not publish
    bool crossed = false;        // the key was there and has expired since anybody looked
};

enum class shape : std::uint8_t { nothing, string, list };

struct state {
    shape is = shape::nothing;
    std::string bytes;
    std::int64_t pttl_ms = -2; // -1: no TTL
};

struct message {
    std::string channel;
    std::string payload;
    friend bool operator==(const message&, const message&) = default;
};

// What one side shows of a step.
struct sight {
    state before;
    reply answer;
    state after;
    std::vector<message> told;
};

// When the real server did it, by its own clock.
struct times {
    server_ms scene = 0;
    server_ms begin = 0;
    server_ms end = 0;
};

// The first hears all of these; the second what `subscribe` steps let it hear.
inline constexpr std::array channels = {"stn:w:1", "stn:w:2"};
inline constexpr const char* sharded_channel = "stn:w:{k}";
inline constexpr const char* no_channel = ""; // where a script that does not look would tell

// Texts of scripts that replace the true ones on the real server.
using script_texts = std::map<script_id, std::string>;

class memory_side {
  public:
    memory_side();
    sight run(const step& s, const times& at);
    state look(const std::string& key);
    void put(const std::string& key, const scene& what);
    void del(const std::string& key) { server_.del(key); }
    void set_time(server_ms now) { now_ = now; }
    void forget_second_ear();

  private:
    class ear;

    server_ms now_ = 0;
    memory_server server_;
    std::shared_ptr<ear> first_;
    std::shared_ptr<ear> second_;
};

class real_side {
  public:
    real_side(test::live_server& server, const script_texts& instead);
    sight run(const step& s, times& at);
    void del(const std::string& key);
    [[nodiscard]] server_ms now();
    void forget_second_ear();
    [[nodiscard]] const std::vector<std::string>& sha1() const { return sha1_; }
    // The step's command from somebody whose GET and GETRANGE are refused.
    reply ask_blind(const command& c);

  private:
    [[nodiscard]] std::vector<std::string> words(const command& c) const;
    state receive_state(test::plain_connection& from);
    void hear(test::plain_connection& ear, std::vector<message>& told);

    test::live_server& server_;
    std::vector<std::string> sha1_; // by script_id
    test::plain_connection admin_;
    test::plain_connection mute_;
    test::plain_connection blind_;
    test::plain_connection first_;
    std::optional<test::plain_connection> second_;
    bool second_hears_ = false;
};

// Empty: they agree. Times may differ by `tolerance_ms`.
inline constexpr std::int64_t tolerance_ms = 8;
[[nodiscard]] std::string difference(const sight& memory, const sight& real);

[[nodiscard]] std::string shown(const state& s);
[[nodiscard]] std::string shown(const command& c);
[[nodiscard]] std::string shown(const sight& s);

} // namespace stn::differ
