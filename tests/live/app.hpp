// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "stanchion/stanchion.h"
#include "support/live_server.hpp"
#include "support/owned.hpp"

// What users of stanchion.h see of a store in trouble, and what the store sees of them.
namespace stn::test {

// How one call ended.
struct answer {
    std::int32_t status = STN_OK;
    std::string bytes;       // of a value
    std::uint32_t flags = 0; // of a value
    std::string message;     // of an error
    std::string server_text; // of an error
    bool may_have_applied = false;
    bool loaded = false; // by this very caller
    std::chrono::milliseconds took{};
};

struct told {
    std::int32_t what = 0; // one of stn_notice
    std::int32_t status = STN_OK;
    std::string text;
};

// None: the load fails.
using loader = std::function<std::optional<std::string>()>;

// A slow machine is no slow store: where a test does not care, commands may take their time.
inline constexpr const char* patient = R"({"command_timeout": "1s"})";

// One client with one cache, "prices". Calls block their thread; any number of threads at once.
class app {
  public:
    explicit app(const std::string& url, const std::string& options = patient,
                 const std::string& policy = R"({"ttl": "1m"})");

    answer load(std::string_view key, const loader& with, std::int64_t deadline_ms = STN_DEFAULT_MS);
    answer load(std::string_view key, std::string_view value) {
        return load(key, [&] { return std::string(value); });
    }
    answer get(std::string_view key, std::int64_t deadline_ms = STN_DEFAULT_MS);
    answer put(std::string_view key, std::string_view value, std::int64_t deadline_ms = STN_DEFAULT_MS);
    answer invalidate(std::string_view key, std::uint32_t flags = 0, std::int64_t deadline_ms = STN_DEFAULT_MS);
    answer ready(std::int64_t deadline_ms = STN_DEFAULT_MS);

    [[nodiscard]] std::vector<told> notices(); // all of them since it was opened
    [[nodiscard]] std::vector<told> notices(std::int32_t of_kind, std::optional<std::int32_t> status = {});
    [[nodiscard]] stn_stats stats();
    [[nodiscard]] stn_client* client() const { return client_.get(); }
    [[nodiscard]] stn_cache* cache() const { return cache_.get(); }

  private:
    owned<stn_client> client_;
    owned<stn_queue> told_to_;
    owned<stn_cache> cache_;
    std::vector<told> told_;
};

// Why a client cannot be opened like that; the status of success if it can.
[[nodiscard]] answer refused_open(const std::string& url, const std::string& options);

// Many callers of one queue, and their host: one thread, this one, that reads it and loads.
class crowd {
  public:
    explicit crowd(app& of, std::chrono::milliseconds load_takes = {});

    // Each begins a call; its number is the place of its answer.
    std::size_t fetch(std::string_view key, std::int64_t deadline_ms = STN_DEFAULT_MS);
    std::size_t get(std::string_view key);
    std::size_t put(std::string_view key, std::string_view value);
    std::size_t invalidate(std::string_view key);

    // Serves until everybody has an answer. False: somebody has none after all that time.
    bool serve(std::chrono::milliseconds patience = std::chrono::seconds(10));
    bool serve_until(const std::function<bool()>& done, std::chrono::milliseconds patience = std::chrono::seconds(10));

    std::vector<answer> answers;
    std::vector<std::string> values;  // loaded, in order: of key "k" it is "k!"
    std::vector<std::int32_t> filled; // what became of the fills
    [[nodiscard]] std::size_t open() const { return open_; }
    [[nodiscard]] std::size_t loading() const { return loads_.size(); }

  private:
    struct load {
        owned<stn_lease> held;
        std::size_t who;
        std::chrono::steady_clock::time_point ready;
    };
    std::size_t begin(std::string_view key);
    void take(owned<stn_event> e);
    void finish(load& one);

    app& app_;
    const std::chrono::milliseconds load_takes_;
    owned<stn_queue> queue_;
    std::vector<std::string> keys_;
    std::vector<std::chrono::steady_clock::time_point> began_;
    std::vector<load> loads_;
    std::size_t open_ = 0;
};

// n threads at once, and what each of them got.
[[nodiscard]] std::vector<answer> at_once(std::size_t n, const std::function<answer(std::size_t)>& what);

// False: not even after all that time.
[[nodiscard]] bool eventually(const std::function<bool()>& what,
                              std::chrono::milliseconds patience = std::chrono::seconds(10));

// Runs it against a Redis and against a Valkey.
void on_each(const std::function<void(server_kind)>& what);

struct remains {
    std::size_t keys = 0;
    std::size_t without_ttl = 0;
    std::size_t values = 0;
    std::size_t placeholders = 0;
    std::size_t markers = 0;
};
[[nodiscard]] remains left_in(live_server& server);
[[nodiscard]] std::string store_key(std::string_view key); // of the cache "prices"

// How often the server has executed that command since CONFIG RESETSTAT, scripts by their own EVALSHA.
[[nodiscard]] std::uint64_t calls_of(live_server& server, const std::string& command);

} // namespace stn::test
