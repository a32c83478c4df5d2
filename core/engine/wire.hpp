// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/random.hpp"
#include "engine/counters.hpp"
#include "engine/transport.hpp"
#include "protocol/breaker.hpp"
#include "protocol/refusal.hpp"

namespace stn {

// Who waits for replies.
class reply_sink {
  public:
    reply_sink() = default;
    reply_sink(const reply_sink&) = delete;
    reply_sink& operator=(const reply_sink&) = delete;
    virtual ~reply_sink() = default;
    virtual void replied(std::uint32_t id, delivery how, reply r, mono_ms now) = 0;
    // Whether that reply still matters.
    [[nodiscard]] virtual bool awaits(std::uint32_t id) const = 0;
};

// What a client hears besides replies.
class wire_listener {
  public:
    wire_listener() = default;
    wire_listener(const wire_listener&) = delete;
    wire_listener& operator=(const wire_listener&) = delete;
    virtual ~wire_listener() = default;
    virtual void on_message(std::string_view payload, mono_ms now) = 0;
    virtual void on_subscribed(mono_ms now) = 0;
    virtual void on_connection(transport_event::kind how, status code, std::string_view why, mono_ms now) = 0;
    virtual void on_breaker(bool open) = 0;
    // A refusal with `alert`; once for each kind and connection.
    virtual void on_alert(refusal why, std::string_view server_text) = 0;
};

// Commands out, replies back to who asked, the breaker in between. Under the turn lock.
//
// What lets go of something (an abandon, a release, the deletion behind a put that was lost) and is nobody's
// to send again is kept until it was answered: if its connection ends first, it goes out on the next one.
// Each such command is idempotent, and finds nothing when somebody else was there meanwhile.
class wire {
  public:
    wire(transport& link, draws& chance, counters& totals, wire_listener& who)
        : link_(link),
          chance_(chance),
          totals_(totals),
          listener_(who) {
        link_.set_wanted([this](command_seq seq) { return wanted(seq); });
    }
    wire(const wire&) = delete;
    wire& operator=(const wire&) = delete;

    // `sink` null: nobody wants the reply. A gated command that the breaker refuses is `not_sent`.
    void send(command cmd, std::shared_ptr<reply_sink> sink, std::uint32_t id, bool gated, mono_ms now);
    // Subscribes to all wake-up channels, once. That opens the way for messages and is not counted as a command.
    void listen(std::string_view prefix, mono_ms now);
    // A command ran into its deadline.
    void silent(mono_ms now);
    void poll(mono_ms now);
    void flush(mono_ms now) { link_.flush(now); }
    [[nodiscard]] std::span<watched> watch() { return link_.watch(); }
    // Connecting for the first time, or anew: what is begun now had better wait for how that ends.
    [[nodiscard]] bool settling() const { return link_.settling(); }
    [[nodiscard]] mono_ms next_ms() const { return refused_.empty() ? link_.next_ms() : 0; }
    [[nodiscard]] server_ms server_time(mono_ms now) { return link_.server_time(now); }
    [[nodiscard]] bool down() const noexcept { return breaker_.open(); }
    [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_; }

  private:
    struct asked {
        std::shared_ptr<reply_sink> sink; // null: nobody wants the reply, or has it
        std::uint32_t id = 0;
        bool only_if_awaited = false; // it takes or writes something: run late it would do harm
    };
    void settle(const transport_event& e, bool wanted, mono_ms now);
    void settle_last_word(const transport_event& e);
    void say_last_words(mono_ms now);
    void opened(bool now_open);
    [[nodiscard]] command_seq expect(asked who);
    [[nodiscard]] asked take(command_seq seq);
    [[nodiscard]] bool wanted(command_seq seq) const;

    transport& link_;
    draws& chance_;
    counters& totals_;
    wire_listener& listener_;
    breaker breaker_;
    bool listening_ = false;
    std::uint32_t alerted_ = 0; // refusals told since the connection stands, a bit each
    std::deque<asked> asked_;   // one for each command since `first_asked_`; those at the front that are done leave
    command_seq first_asked_ = 1;
    std::size_t in_flight_ = 0;
    std::vector<asked> refused_;
    std::unordered_map<command_seq, command> last_words_; // on their way
    std::vector<command> unsaid_;                         // for the next connection
};

} // namespace stn
