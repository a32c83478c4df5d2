// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "engine/transport.hpp"
#include "io/redis_connection.hpp"
#include "io/redis_greeting.hpp"
#include "io/resolver.hpp"
#include "io/tls.hpp"
#include "protocol/store_url.hpp"

// Keeps one connection to one server standing, for ever:
//
//   state       leads to                                    when
//   ----------  ------------------------------------------  ---------------------------------------------
//   idle        resolving                                   open
//   resolving   connecting; resting                         the name has addresses; it has none
//   connecting  greeting; the next address; resting         open and secured; refused, silent; none left
//   greeting    up; the next address; resting               every answer is good; one is not, silent
//   up          resting                                     the connection ends, or is dropped
//   resting     resolving                                   the pause is over: full jitter, growing
//   closed      -                                           close
//
// The name is resolved anew for every attempt: after a failover it may lead elsewhere. One attempt has
// connect_timeout for everything, divided among the addresses that are left.
namespace stn {

struct redis_settings {
    store_url where;
    std::shared_ptr<tls_context> tls; // null: none
    std::string tls_name;             // whom the certificate must be for
    std::int64_t connect_timeout_ms = 2'000;
};

class redis_link_owner {
  public:
    redis_link_owner() = default;
    redis_link_owner(const redis_link_owner&) = delete;
    redis_link_owner& operator=(const redis_link_owner&) = delete;
    virtual ~redis_link_owner() = default;

    // The connection stands and may be appended to. `server_now`: what the server's clock showed, and
    // `round_trip_us` how old that may be; none if it would not tell.
    virtual void on_up(std::optional<server_ms> server_now, std::int64_t round_trip_us, mono_ms now) = 0;
    // An attempt has failed, or (`stood`) the standing connection has ended.
    virtual void on_down(const error& why, bool stood, mono_ms now) = 0;
    virtual void on_reply(reply r, bool push, mono_ms now) = 0;
};

class redis_link {
  public:
    redis_link(const redis_settings& settings, greeting_for purpose, draws& chance, redis_link_owner& owner);

    void open(mono_ms now); // nothing if it is open
    void close(bool stay_for_last_words);
    void abandon_after_fork() noexcept {
        if (connection_) connection_->abandon_after_fork();
    }
    // Ends the standing connection and begins again.
    void drop(const error& why, mono_ms now);

    // Goes on with whatever is ready, and with what is due.
    void turn(mono_ms now);
    [[nodiscard]] bool append(std::span<const std::string_view> words) { return connection_->append(words); }
    [[nodiscard]] std::size_t unsent() const noexcept { return connection_ ? connection_->unsent() : 0; }
    void write(mono_ms now);

    // The socket took only a part.
    [[nodiscard]] bool blocked() const noexcept { return connection_ && connection_->blocked(); }

    [[nodiscard]] bool up() const noexcept { return state_ == state::up; }
    [[nodiscard]] const std::string& server() const noexcept { return server_; } // as `described`
    [[nodiscard]] bool idle() const noexcept { return state_ == state::idle; }
    [[nodiscard]] bool settling() const noexcept;
    [[nodiscard]] mono_ms next_ms() const noexcept;
    [[nodiscard]] watched watch() const noexcept;
    void ready() noexcept { ready_ = true; }

  private:
    enum class state : std::uint8_t { idle, resolving, connecting, greeting, up, resting, closed };

    void begin(mono_ms now);
    void resolve(mono_ms now);
    void connect_next(mono_ms now);
    void greet(mono_ms now);
    void hear_greeting(mono_ms now);
    void hear(mono_ms now);
    void failed(const error& why, mono_ms now);
    void rest(mono_ms now);

    const redis_settings& settings_;
    const std::vector<greeting_step> greeting_;
    draws& chance_;
    redis_link_owner& owner_;
    state state_ = state::idle;
    bool ready_ = false;
    resolver names_;
    std::vector<endpoint> addresses_; // of this attempt, the untried ones last first
    std::unique_ptr<redis_connection> connection_;
    mono_ms attempt_until_ = 0; // of the attempt as a whole
    mono_ms step_until_ = 0;    // of this address
    mono_ms rest_until_ = 0;
    mono_ms up_since_ = 0;
    int failures_ = 0; // in a row
    std::size_t greeted_ = 0;
    std::int64_t greeted_at_us_ = 0;
    std::string server_ = "{}";
    std::optional<server_ms> server_now_;
};

} // namespace stn
