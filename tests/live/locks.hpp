// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app.hpp"

// Locks, ticks and ids as users of stanchion.h see them.
namespace stn::test {

// How one question ended.
struct lock_answer {
    std::int32_t status = STN_OK;
    std::int32_t reason = STN_REASON_NONE;
    owned<stn_lock> lock;
    owned<stn_tick> tick;
    std::string bytes;       // of inspect
    std::string message;     // of an error
    std::string server_text; // of an error
    bool may_have_applied = false;
    std::int64_t ttl_left_ms = 0;
    std::chrono::milliseconds took{};
};

// A question that was asked, and is not answered yet.
class lock_question {
  public:
    lock_answer end(); // waits for it
    void cancel();     // and goes on waiting

  private:
    friend class lock_user;
    // Whoever waits at once does the client's work meanwhile.
    enum class end_is : bool { next, later };
    explicit lock_question(end_is when = end_is::next);
    std::chrono::steady_clock::time_point began_;
    owned<stn_queue> queue_;
    std::uint64_t op_ = 0;
    std::int32_t refused_ = STN_OK; // at once
};

inline constexpr const char* half_a_minute = R"({"ttl": "30s"})";

// What an app does with locks. Any number of threads at once.
class lock_user {
  public:
    explicit lock_user(app& of);

    lock_answer acquire(std::string_view name, const std::string& options = half_a_minute,
                        std::int64_t deadline_ms = STN_DEFAULT_MS);
    lock_question begin(std::string_view name, const std::string& options = half_a_minute,
                        std::int64_t deadline_ms = STN_DEFAULT_MS) {
        return begin(name, options, deadline_ms, lock_question::end_is::later);
    }
    lock_answer renew(const owned<stn_lock>& lock, std::int64_t deadline_ms = STN_DEFAULT_MS);
    lock_answer release(const owned<stn_lock>& lock, std::int64_t deadline_ms = STN_DEFAULT_MS);
    lock_answer inspect(std::string_view name, std::string_view key = {});
    lock_answer tick(std::string_view name, const std::string& options);
    lock_answer finish(const owned<stn_tick>& tick, bool ok);
    lock_question begin_once(std::string_view id, std::int64_t ttl_ms, std::int64_t deadline_ms = STN_DEFAULT_MS) {
        return begin_once(id, ttl_ms, deadline_ms, lock_question::end_is::later);
    }
    lock_answer once(std::string_view id, std::int64_t ttl_ms, std::int64_t deadline_ms = STN_DEFAULT_MS);

    // Reasons of the losses told since the last call, after waiting for one at most so long.
    std::vector<std::int32_t> losses(std::chrono::milliseconds patience = {});

  private:
    lock_question begin(std::string_view name, const std::string& options, std::int64_t deadline_ms,
                        lock_question::end_is when);
    lock_question begin_once(std::string_view id, std::int64_t ttl_ms, std::int64_t deadline_ms,
                             lock_question::end_is when);
    app& app_;
    owned<stn_queue> losses_;
};

// Teaches the server all scripts of locks, so that from now on each command is one EVALSHA.
void warm_up(lock_user& user);

// The bytes of the token, as they stand at the head of the lock's key.
[[nodiscard]] std::string token_of(const owned<stn_lock>& lock);

[[nodiscard]] bool stands(live_server& server, const std::string& key);

} // namespace stn::test
