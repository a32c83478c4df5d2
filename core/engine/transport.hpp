// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "protocol/command.hpp"
#include "protocol/reply.hpp"

namespace stn {

using command_seq = std::uint64_t;

// What a transport tells its client, in the order in which it happened.
struct transport_event {
    enum class kind : std::uint8_t {
        reply,         // of command `seq`
        message,       // `channel`, `payload`
        subscribed,    // messages flow (again): whatever was missed meanwhile is missed
        connected,     // the connection stands (told once per change); `payload`: the server, as a JSON object
        disconnected,  // it does not (told once per change); `code` and `payload` say why
        not_connected, // one more attempt has failed; `code` and `payload` say why
        trouble,       // the connection stands, but not all of it works; `code` and `payload` say why
    };
    kind what = kind::reply;
    command_seq seq = 0;
    delivery how = delivery::answered;
    reply answer;
    std::string channel;
    std::string payload;
    status code = status::ok;
};

// A descriptor to sleep on.
struct watched {
    int fd = -1;
    bool writable = false; // wake also when it can be written to
    bool ready = false;    // it woke the sleeper
};

// The way to one store. Used under the client's turn lock only, except `wake`. Commands of one
// transport are applied in the order in which they were submitted; each gets exactly one reply event.
// It never resends and knows nothing of what a command means.
class transport {
  public:
    transport() = default;
    transport(const transport&) = delete;
    transport& operator=(const transport&) = delete;
    virtual ~transport() = default;

    virtual void submit(command_seq seq, command cmd, mono_ms now) = 0;
    // The next thing to tell, or false.
    virtual bool poll(transport_event& out, mono_ms now) = 0;
    // The turn ends: what was submitted may leave.
    virtual void flush(mono_ms now) { static_cast<void>(now); }
    // What to sleep on until the next turn; the sleeper marks what is ready before it.
    [[nodiscard]] virtual std::span<watched> watch() { return {}; }
    // When `poll` should be asked at the latest, although nobody rang.
    [[nodiscard]] virtual mono_ms next_ms() const = 0;
    // The server's clock, as well as it is known.
    [[nodiscard]] virtual server_ms server_time(mono_ms now) = 0;
    // `ring` is called from any thread, without locks of ours, when `poll` has something new that no
    // submit of this client caused.
    virtual void set_ring(std::function<void()> ring) = 0;
    // Whether an attempt to connect is under way that is worth waiting for: none has failed yet.
    [[nodiscard]] virtual bool settling() const { return false; }
    // `wanted` tells whether somebody still waits for the reply of a command: one that the server did not
    // know is taught and sent again only then. Under the turn lock.
    virtual void set_wanted(const std::function<bool(command_seq)>&) {}
    // Ends it: commands in flight are told `lost`, no ring comes after it returns.
    virtual void close() = 0;
    // For a fork child: closes descriptors, and says nothing to anybody.
    virtual void abandon_after_fork() noexcept {}
};

} // namespace stn
