// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stn::sim {

// Everything that goes wrong: X(name, what happens).
#define SIM_FAULT_TABLE(X)                                                                \
    X(delay, "commands or replies of one connection are held up")                         \
    X(drop, "a connection dies unnoticed: what is sent on it from then on never arrives") \
    X(reply_lost, "a command ran, its reply never came")                                  \
    X(late_bytes, "a connection is cut, what was sent on it runs much later")             \
    X(reorder, "a command of an old connection ran after one of a newer connection")      \
    X(disconnect, "a connection is cut, with what was sent on it")                        \
    X(outage, "the server answers nobody and takes no connection")                        \
    X(message_delayed, "a wake-up message comes late")                                    \
    X(message_dropped, "a wake-up message never comes")                                   \
    X(subscription_lost, "no messages for a while, then `subscribed`")                    \
    X(clock_jump, "the server's clock leaps past TTLs")                                   \
    X(foreign_delete, "somebody else deletes a key, or it is evicted")                    \
    X(foreign_bytes, "somebody else writes over a key")                                   \
    X(foreign_type, "somebody else puts a list in place of a key")                        \
    X(persisted, "somebody else takes a lease's TTL away")                                \
    X(newer_format, "a later version of the library writes a key")                        \
    X(flushed, "FLUSHALL")                                                                \
    X(out_of_memory, "the server refuses writes that need memory")                        \
    X(publish_refused, "the server refuses to publish")                                   \
    X(refusing, "the server answers, but refuses: it loads, a script runs, a replica")    \
    X(pause, "a process stands still, its clock goes on")                                 \
    X(stall, "a client's loop gets no CPU while its host goes on")                        \
    X(drift, "a node's clock is more than 0.1 % wrong")                                   \
    X(slow_host, "a queue is not read for more than a second")                            \
    X(crash, "a process dies")                                                            \
    X(reopen, "a client is closed and opened again")                                      \
    X(queue_closed, "a queue is closed with calls running")                               \
    X(untaken, "a LEASE event is thrown away")                                            \
    X(freed, "a lease is freed without an answer")                                        \
    X(detached, "the caller that loads is cancelled")                                     \
    X(load_failed, "a loader fails")                                                      \
    X(load_long, "a load runs past max_load")                                             \
    X(too_large, "a loaded value is over max_value")                                      \
    X(rejected, "a host cannot decode a value")                                           \
    X(circle, "a loader fetches")                                                         \
    X(cancelled, "a caller goes away")

enum class fault : std::uint8_t {
#define SIM_FAULT_ENUM(name, text) name,
    SIM_FAULT_TABLE(SIM_FAULT_ENUM)
#undef SIM_FAULT_ENUM
        count_
};

inline constexpr std::size_t fault_count = static_cast<std::size_t>(fault::count_);

inline constexpr std::array<std::string_view, fault_count> fault_names{
#define SIM_FAULT_NAME(name, text) std::string_view(#name),
    SIM_FAULT_TABLE(SIM_FAULT_NAME)
#undef SIM_FAULT_NAME
};

inline constexpr std::array<std::string_view, fault_count> fault_texts{
#define SIM_FAULT_TEXT(name, text) std::string_view(text),
    SIM_FAULT_TABLE(SIM_FAULT_TEXT)
#undef SIM_FAULT_TEXT
};

using fault_counts = std::array<std::uint64_t, fault_count>;

} // namespace stn::sim
