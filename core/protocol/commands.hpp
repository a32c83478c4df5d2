// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "protocol/command.hpp"
#include "protocol/reply.hpp"

namespace stn {

// The one place that knows the order of a script's arguments besides the script itself.

// Where a script tells what it did. No channel: it tells nobody.
struct wake_target {
    std::string channel;
    std::string tail; // wake_tail(store key)
    bool sharded = false;
};

[[nodiscard]] command get_command(std::string_view key);
[[nodiscard]] command del_command(std::string_view key);
[[nodiscard]] command publish_command(std::string_view channel, std::string_view message);
[[nodiscard]] command subscribe_command(std::string_view channel);
[[nodiscard]] command time_command();

// `placeholder` is the envelope that becomes the lease. `rejected` generations are misses (values
// that could not be decoded), `earlier` are this process's own tokens whose answers never came.
[[nodiscard]] command lease_command(std::string_view key, std::string_view placeholder, std::int64_t lease_ms,
                                    std::span<const token> rejected, std::span<const token> earlier);

struct lease_answer {
    enum class kind : std::uint8_t {
        granted,
        held,  // `bytes`: the other's placeholder, `pttl_ms`: what is left of it
        value, // `bytes`: a value or a marker, or something of a `newer` version
        bad,   // an error, or no lease reply at all
    };
    kind what = kind::bad;
    std::int64_t pttl_ms = 0;
    std::string bytes;
    bool overwrote_foreign = false;
    bool newer = false;
};

[[nodiscard]] lease_answer read_lease(const reply& r);

// 1: still mine, lasts `ms` from now; 0: not mine any more.
[[nodiscard]] command extend_command(std::string_view key, const token& mine, std::int64_t ms);

// 1: stored (or had been); 0: what was expected is gone, nothing written.
[[nodiscard]] command fill_command(std::string_view key, const token& expected, std::string_view envelope,
                                   std::int64_t px, const wake_target& wake);

enum class marker_kind : std::uint8_t { none, error, pass };

// 1: given up; 2: given up, but the marker was refused; 0: none of `tokens` holds the key.
[[nodiscard]] command abandon_command(std::string_view key, marker_kind marker, std::string_view marker_envelope,
                                      std::int64_t marker_px, const wake_target& wake, std::span<const token> tokens);

// 0: nothing there; 1: a value was marked; 2: whatever it was is deleted, and `invalidated` told.
[[nodiscard]] command mark_stale_command(std::string_view key, const token& fresh, const wake_target& wake);

// 1: stored; 2: stored over something that was not ours.
[[nodiscard]] command put_command(std::string_view key, std::string_view envelope, std::int64_t px,
                                  const wake_target& wake);

[[nodiscard]] command refresh_command(std::string_view key, const token& mine, std::int64_t ms);

struct refresh_answer {
    bool granted = false;
    std::int64_t pttl_ms = 0; // of the other's lease
};

[[nodiscard]] std::optional<refresh_answer> read_refresh(const reply& r);

// 1: mine, lasts `ms` from now; 0: nobody's; -1: another's.
[[nodiscard]] command renew_command(std::string_view key, const token& mine, std::int64_t ms);

// 1: was mine, deleted and told; 0: nobody's; -1: another's.
[[nodiscard]] command release_command(std::string_view key, const token& mine, std::string_view channel);
// Of a lock, whose holder had waited through `seen` releases.
[[nodiscard]] command release_command(std::string_view key, const token& mine, std::string_view channel, int seen);

// `label` as it is; it is escaped here.
[[nodiscard]] command acquire_command(std::string_view key, const token& mine, std::int64_t ttl_ms,
                                      std::string_view label);

struct acquire_answer {
    bool granted = false;
    std::int64_t fence = 0;
    std::int64_t pttl_ms = 0; // of what stands there instead; -1: it does not end by itself
};

[[nodiscard]] std::optional<acquire_answer> read_acquire(const reply& r);

// When the slots of a tick begin, and how long a run that tells nothing holds later ones up.
struct tick_times {
    std::int64_t every_ms = 0;
    std::int64_t offset_ms = 0;
    std::int64_t at_most_ms = 0;
    // How long the store remembers a slot.
    [[nodiscard]] std::int64_t memory_ms() const noexcept { return std::max(2 * every_ms, at_most_ms); }
};

[[nodiscard]] command tick_command(std::string_view key, const token& mine, const tick_times& when);

struct tick_answer {
    enum class kind : std::uint8_t {
        taken,         // `slot` was given out; the next one begins in `in_ms`
        granted,       // `slot` is mine, with `fence`
        still_running, // the run of `slot`, an earlier one; it counts as dead in `in_ms`
        foreign,       // what stands there is no tick
    };
    kind what = kind::foreign;
    server_ms slot = 0;
    std::int64_t fence = 0;
    std::int64_t in_ms = 0;
};

[[nodiscard]] std::optional<tick_answer> read_tick(const reply& r);

// 1: was mine, ended; 0: nobody's; -1: another's.
[[nodiscard]] command tick_end_command(std::string_view key, const token& mine, bool done, std::int64_t memory_ms);

// 1: mine; 0: another's.
[[nodiscard]] command once_command(std::string_view key, const token& mine, std::int64_t ttl_ms);

[[nodiscard]] command inspect_command(std::string_view key);

struct inspect_answer {
    std::int64_t pttl_ms = -2; // -2: nothing stands there; -1: it does not end by itself
    std::string bytes;
};

[[nodiscard]] std::optional<inspect_answer> read_inspect(const reply& r);

[[nodiscard]] std::optional<std::int64_t> read_integer(const reply& r);
[[nodiscard]] std::optional<server_ms> read_time(const reply& r);

} // namespace stn
