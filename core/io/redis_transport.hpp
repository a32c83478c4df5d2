// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "engine/transport.hpp"
#include "io/batching.hpp"
#include "io/redis_link.hpp"
#include "protocol/refusal.hpp"

// The way to a Redis or Valkey: one connection for commands, pipelined, and one for messages, opened when
// the first channel is asked for.
//
//   - Replies come in the order of commands; each command has its place in `sent_` until its reply.
//   - What was handed to the kernel when a connection ends is `lost`; what was not, `not_sent`. Nothing is
//     sent again, but for one case that the server has surely not executed: a script it does not know is
//     loaded and asked for again on the same connection, if anybody still wants it. A user who may not load
//     scripts sends the text.
//   - Commands wait for the first attempt to connect only; while the server is known to be away they are
//     `not_sent` at once.
//   - A reply that says this is the wrong node (READONLY) ends the connection: the name may lead to the right
//     one by now.
//   - A server that is silent for `silence_ms` is given up. Before that the connection is kept: what was sent
//     after a command that timed out (an abandon, a release) has to run after it.
namespace stn {

class redis_transport final : public transport {
  public:
    redis_transport(redis_settings settings, std::shared_ptr<draws> chance);
    ~redis_transport() override;

    void submit(command_seq seq, command cmd, mono_ms now) override;
    bool poll(transport_event& out, mono_ms now) override;
    void flush(mono_ms now) override;
    [[nodiscard]] std::span<watched> watch() override;
    [[nodiscard]] mono_ms next_ms() const override;
    [[nodiscard]] server_ms server_time(mono_ms now) override;
    [[nodiscard]] bool settling() const override { return !closed_ && commands_.settling(); }
    void set_ring(std::function<void()>) override {} // the sleeper wakes by what it watches
    void set_wanted(const std::function<bool(command_seq)>& wanted) override { wanted_ = wanted; }
    void close() override;
    void abandon_after_fork() noexcept override;

  private:
    struct pending {
        enum class kind : std::uint8_t { plain, script, load, ping, time };
        kind what = kind::plain;
        std::uint8_t tries = 0; // of a script the server did not know
        command_seq seq = 0;
        mono_ms at = 0; // appended
        command cmd;    // of a script, until its reply
    };
    struct waiting {
        command_seq seq;
        command cmd;
    };
    struct channel {
        command_seq asked = 0; // 0: told already
        bool heard = false;
    };
    class commands_side final : public redis_link_owner {
      public:
        explicit commands_side(redis_transport& of) : of_(of) {}
        void on_up(std::optional<server_ms> server_now, std::int64_t round_trip_us, mono_ms now) override;
        void on_down(const error& why, bool stood, mono_ms now) override;
        void on_reply(reply r, bool push, mono_ms now) override;

      private:
        redis_transport& of_;
    };
    class messages_side final : public redis_link_owner {
      public:
        explicit messages_side(redis_transport& of) : of_(of) {}
        void on_up(std::optional<server_ms> server_now, std::int64_t round_trip_us, mono_ms now) override;
        void on_down(const error& why, bool stood, mono_ms now) override;
        void on_reply(reply r, bool push, mono_ms now) override;

      private:
        redis_transport& of_;
    };

    void turn(mono_ms now);
    void append(pending one);
    void keep_alive(mono_ms now);
    void settle(pending of, reply r, mono_ms now);
    void teach(pending of, mono_ms now);
    void heed(const reply& r, mono_ms now);
    void hear_message(reply& r);
    void confirm(const std::string& name);
    void subscribe();
    void end_all();
    void tell(command_seq seq, delivery how, reply r = {});
    void tell_connection(transport_event::kind what, const error& why);
    void note_time(server_ms server_now, std::int64_t round_trip_us, mono_ms now);

    const redis_settings settings_;
    const std::shared_ptr<draws> chance_;
    commands_side commands_owner_;
    messages_side messages_owner_;
    redis_link commands_;
    redis_link messages_;
    std::function<bool(command_seq)> wanted_;
    std::vector<transport_event> told_;
    std::size_t heard_of_ = 0;    // of them, by `poll`
    std::deque<waiting> waiting_; // for the first connection
    std::deque<pending> sent_;
    batching batches_;
    std::map<std::string, channel, std::less<>> channels_;
    std::size_t heard_ = 0;               // channels that the server has confirmed on this connection
    std::vector<std::string_view> words_; // of `append`, kept for its memory
    watched watched_[2];
    std::int64_t ahead_ms_ = 0; // of the server's clock over ours
    std::int64_t time_asked_us_ = 0;
    mono_ms now_ = 0;
    mono_ms alive_at_ = 0;     // when the server is asked for a sign of life
    mono_ms listening_at_ = 0; // the same on the other connection
    bool listening_asked_ = false;
    bool told_down_ = false;
    bool subscribe_asked_ = false;
    bool closed_ = false;
};

} // namespace stn
