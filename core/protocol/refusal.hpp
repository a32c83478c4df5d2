// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/status.hpp"
#include "protocol/reply.hpp"

// What the server may answer instead of a result: one function that tells the refusals apart, and one
// table of what follows from each. Whoever gets a reply asks here; nobody else reads error texts.
//
// A refused command was not applied. (One exception: a script may have written before an access rule
// stopped it; ours write last.)
//
//   means   the status that a caller of ours gets, should it come to that
//   again   when the same command is worth sending again: `soon` 50-200 ms, `slowly` 100 ms-1 s
//           (schedule::refused_pause), `never` by itself
//   ails    the server serves nobody now: a failure of the endpoint, which the breaker counts. All other
//           refusals are answers of a healthy server: a corrupt value, a full memory or a missing right
//           say nothing about the next key
//   redial  the connection is no good: drop it, and ask again who is primary
//   fatal   a mistake of configuration, or ours: only a person can help. With `again` it is worth one more
//           try, on the connection made anew
//   alert   told to the operator, once for each connection
namespace stn {

enum class retry_pace : std::uint8_t { never, soon, slowly };

inline constexpr unsigned refusal_ails = 1;
inline constexpr unsigned refusal_redial = 2;
inline constexpr unsigned refusal_fatal = 4;
inline constexpr unsigned refusal_alert = 8;

// X(name, means, again, traits, what it means and what to do)
#define STN_REFUSAL_TABLE(X)                                                                                           \
    X(none, ok, never, 0, "")                                                                                          \
    X(loading, unavailable, slowly, refusal_ails,                                                                      \
      "the store has just started and is still reading its data: it answers when that is done")                        \
    X(read_only, unavailable, soon, refusal_redial | refusal_alert,                                                    \
      "this node is a read-only replica: the address has to lead to the primary")                                      \
    X(master_down, unavailable, soon, refusal_ails | refusal_redial,                                                   \
      "this node is a replica that has lost its primary: the address has to lead to a primary")                        \
    X(cluster_down, unavailable, soon, refusal_ails,                                                                   \
      "the cluster has no majority, or nobody serves this slot: look after its nodes")                                 \
    X(moved, unsupported, never, refusal_fatal | refusal_alert,                                                        \
      "the store is a cluster and the key lives on another node: the URL has to be redis+cluster://")                  \
    X(ask, unsupported, never, refusal_fatal | refusal_alert,                                                          \
      "the store is a cluster and the key is on its way to another node: the URL has to be redis+cluster://")          \
    X(try_again, unavailable, soon, 0, "the cluster is just moving these keys: try again in a moment")                 \
    X(cross_slot, internal, never, refusal_fatal | refusal_alert,                                                      \
      "the command names keys of several slots: a fault inside the library, please report it")                         \
    X(no_script, refused, soon, 0,                                                                                     \
      "the store has forgotten the script that was just loaded: somebody flushes scripts all the time")                \
    X(busy_script, unavailable, soon, refusal_ails,                                                                    \
      "the store is busy with somebody's long script: find it in SLOWLOG, end it by SCRIPT KILL")                      \
    X(out_of_memory, refused, never, refusal_alert,                                                                    \
      "the store is full: raise maxmemory, or set maxmemory-policy to one that evicts")                                \
    X(no_replicas, unavailable, slowly, refusal_alert,                                                                 \
      "the store takes no writes while it has too few replicas (min-replicas-to-write): look after them")              \
    X(misconf, refused, slowly, refusal_alert,                                                                         \
      "the store takes no writes because it cannot save its data to disk: see its log")                                \
    X(no_auth, denied, soon, refusal_redial | refusal_fatal | refusal_alert,                                           \
      "the store asks for a password: give user and password in the URL")                                              \
    X(wrong_pass, denied, never, refusal_redial | refusal_fatal | refusal_alert,                                       \
      "the store does not accept this user and password: correct them in the URL")                                     \
    X(no_perm, denied, never, refusal_fatal | refusal_alert,                                                           \
      "the store's access rules forbid this command, key or channel: ACL LOG names it")                                \
    X(exec_abort, internal, never, refusal_fatal | refusal_alert,                                                      \
      "a transaction was given up, and the library uses none: a fault inside it, please report it")                    \
    X(wrong_type, collision, never, refusal_fatal,                                                                     \
      "the key holds a list, hash or the like, which is not ours: choose another prefix, or delete the key")           \
    X(max_clients, unavailable, slowly, refusal_ails | refusal_redial,                                                 \
      "the store takes no more connections: raise maxclients, or find who holds them")                                 \
    X(unknown_command, unsupported, never, refusal_fatal | refusal_alert,                                              \
      "the store does not know a command that is needed: it is too old (6.2 is the least), or the command is renamed") \
    X(syntax, unsupported, never, refusal_fatal | refusal_alert,                                                       \
      "the store does not know a form of a command that is needed: it is too old (6.2 is the least)")                  \
    X(script_killed, refused, soon, 0, "somebody ended the script by SCRIPT KILL before it wrote anything")            \
    X(other, refused, never, 0, "the store refused the command")

enum class refusal : std::uint8_t {
#define STN_REFUSAL_ENUM(name, means, again, traits, text) name,
    STN_REFUSAL_TABLE(STN_REFUSAL_ENUM)
#undef STN_REFUSAL_ENUM
};

struct refusal_traits {
    std::string_view name;
    status means = status::ok;
    retry_pace again = retry_pace::never;
    bool ails = false;
    bool redial = false;
    bool fatal = false;
    bool alert = false;
    std::string_view text;
};

// `none` for whatever is not an error reply: bytes that read like an error are a value.
[[nodiscard]] refusal classify(const reply& r) noexcept;
[[nodiscard]] const refusal_traits& traits_of(refusal why) noexcept;
[[nodiscard]] status status_of(refusal why) noexcept;

// The store as a whole is of no use to this client for now, other than when it has refused this one
// command: what is loaded then is loaded without it, and bounded as such.
[[nodiscard]] bool store_useless(refusal why) noexcept;

// What may go into a log of a server's error line: old servers repeat the arguments of a command that they
// do not know, values and passwords among them.
[[nodiscard]] std::string_view loggable(std::string_view server_text) noexcept;

// For the caller: what it means, and the server's own words.
[[nodiscard]] error refused_by_store(const reply& r, std::string key);

} // namespace stn
