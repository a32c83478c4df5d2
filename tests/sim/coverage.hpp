// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "protocol/stat.hpp"

namespace stn::sim {

// The rows of the fill machine's transition table: X(id, state, input, next).
#define SIM_ROW_TABLE(X)                                                                                   \
    X(idle_start, "idle", "start", "looking")                                                              \
    X(idle_refetch, "idle", "start of a refetch", "queued")                                                \
    X(idle_alone, "idle", "start of a second rejection", "queued")                                         \
    X(idle_refresh, "idle", "start of a refresh", "queued")                                                \
    X(looking_fresh, "looking", "fresh value", "done")                                                     \
    X(looking_stale, "looking", "stale value, or early", "done, ask_refresh")                              \
    X(looking_absent, "looking", "absent", "done")                                                         \
    X(looking_error, "looking", "error marker", "done")                                                    \
    X(looking_nothing, "looking", "nothing", "queued")                                                     \
    X(looking_foreign, "looking", "foreign", "queued")                                                     \
    X(looking_pass, "looking", "pass marker", "queued alone")                                              \
    X(looking_newer, "looking", "newer version", "queued alone")                                           \
    X(looking_codec, "looking", "value of another codec", "queued")                                        \
    X(looking_rejected, "looking", "rejected generation", "queued")                                        \
    X(looking_first, "looking", "placeholder, first sight", "queued")                                      \
    X(looking_seen, "looking", "placeholder, seen", "waiting")                                             \
    X(looking_own, "looking", "placeholder of an own earlier token", "queued")                             \
    X(looking_forced, "looking", "value to replace by force", "queued for its generation")                 \
    X(looking_lost, "looking", "lost once", "looking again")                                               \
    X(looking_lost_twice, "looking", "lost twice", "queued alone")                                         \
    X(looking_not_sent, "looking", "not sent", "queued alone")                                             \
    X(looking_refused, "looking", "refused: the server loads, ...", "queued alone")                        \
    X(queued_slot, "queued", "slot for a lease", "leasing")                                                \
    X(queued_slot_alone, "queued", "slot for a load alone", "offered")                                     \
    X(queued_timer, "queued", "timer", "queued, a GET beside")                                             \
    X(queued_value, "queued", "a value beside", "done")                                                    \
    X(queued_other, "queued", "something else beside", "queued")                                           \
    X(leasing_granted, "leasing", "granted", "offered")                                                    \
    X(leasing_slept, "leasing", "granted, but the process slept over it", "leasing again")                 \
    X(leasing_held, "leasing", "held", "waiting")                                                          \
    X(leasing_value, "leasing", "value or marker", "as under looking")                                     \
    X(leasing_lost, "leasing", "lost", "leasing, fresh token")                                             \
    X(leasing_lost_for_good, "leasing", "lost for good, or not sent", "abandon, alone")                    \
    X(leasing_refused, "leasing", "refused: full, ...", "offered alone")                                   \
    X(leasing_useless, "leasing", "refused: the server loads, ...", "queued alone")                        \
    X(leasing_late, "leasing", "a late answer to an earlier question", "leasing")                          \
    X(asking_granted, "leasing", "refresh lease granted", "offered")                                       \
    X(asking_held, "leasing", "refresh lease held", "done, or waiting when forced")                        \
    X(asking_lost, "leasing", "refresh lease: lost", "again")                                              \
    X(asking_lost_for_good, "leasing", "refresh lease: lost twice, not sent or refused", "done, or alone") \
    X(waiting_timer, "waiting", "timer", "looking")                                                        \
    X(waiting_message, "waiting", "message", "looking")                                                    \
    X(waiting_filled, "waiting", "`filled` for a token seen here", "done")                                 \
    X(waiting_unseen, "waiting", "`filled` for a token not seen", "looking")                               \
    X(waiting_subscribed, "waiting", "resubscribed", "looking")                                            \
    X(waiting_takeover, "waiting", "takeover", "queued")                                                   \
    X(offered_read, "offered", "check: read", "loading")                                                   \
    X(offered_passed_on, "offered", "check: not read, another queue", "offered")                           \
    X(offered_no_taker, "offered", "check: not read, nobody", "abandon, looking")                          \
    X(offered_freed, "offered", "freed", "offered to the next")                                            \
    X(offered_freed_late, "offered or loading", "freed, lease run out", "leasing again")                   \
    X(offered_loaded, "offered", "loaded", "settling")                                                     \
    X(offered_extend_lost, "offered", "extend says 0", "offered, revoked")                                 \
    X(loading_loaded, "loading", "loaded", "settling")                                                     \
    X(loading_marker, "offered or loading", "failed, or too large", "abandon with a marker")               \
    X(loading_lost, "offered or loading", "loaded, the lease is gone", "done, nothing written")            \
    X(loading_alone, "offered or loading", "loaded alone", "done, nothing written, or a put")              \
    X(loading_freed, "loading", "freed", "offered to the next")                                            \
    X(loading_extended, "offered or loading", "extend says 1", "the same")                                 \
    X(loading_extend_lost, "loading", "extend says 0", "loading, revoked")                                 \
    X(loading_extend_silent, "offered or loading", "extend lost", "the same, tried again")                 \
    X(loading_extend_refused, "offered or loading", "extend refused", "the same, tried again")             \
    X(loading_renew_lost, "offered or loading", "renew of a refresh lease says 0", "the same")             \
    X(loading_max_load, "loading", "max_load", "overdue")                                                  \
    X(overdue_loaded, "overdue", "loaded", "done")                                                         \
    X(overdue_freed, "overdue", "freed", "done")                                                           \
    X(settling_stored, "settling", "fill 1", "done")                                                       \
    X(settling_refused, "settling", "fill 0", "done")                                                      \
    X(settling_lost, "settling", "lost", "the same fill again")                                            \
    X(settling_again, "settling", "refused for now", "the same fill after a pause")                        \
    X(settling_lost_for_good, "settling", "lost for good", "abandon, done")                                \
    X(settling_put_again, "settling", "put refused for now", "the same put after a pause")                 \
    X(settling_put, "settling", "put answered", "done")                                                    \
    X(settling_put_lost, "settling", "put lost", "DEL queued, done")                                       \
    X(any_nobody, "any", "nobody waits, no load", "done, tokens abandoned")                                \
    X(any_closing, "any", "closing", "done")                                                               \
    X(any_detached, "any", "an invalidation here", "the same")

enum class row : std::uint8_t {
#define SIM_ROW_ENUM(id, state, input, next) id,
    SIM_ROW_TABLE(SIM_ROW_ENUM)
#undef SIM_ROW_ENUM
        count_
};

inline constexpr std::size_t row_count = static_cast<std::size_t>(row::count_);

struct row_text {
    std::string_view state, input, next;
};
inline constexpr std::array<row_text, row_count> row_texts{{
#define SIM_ROW_TEXT(id, state, input, next) {state, input, next},
    SIM_ROW_TABLE(SIM_ROW_TEXT)
#undef SIM_ROW_TEXT
}};

struct coverage {
    std::array<std::uint64_t, row_count> rows{};
    std::uint64_t inputs = 0;                               // of all machines
    static constexpr std::uint64_t most_inputs = 1'000'000; // of one seed; some ten thousand are usual
    void visit(row r) noexcept { ++rows[static_cast<std::size_t>(r)]; }
};

} // namespace stn::sim
