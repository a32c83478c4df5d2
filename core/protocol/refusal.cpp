// SPDX-License-Identifier: MIT
#include "protocol/refusal.hpp"

#include <array>
#include <cstddef>
#include <utility>

namespace stn {

namespace {

constexpr std::array all_traits{
#define STN_REFUSAL_TRAITS(name, means, again, traits, text) \
    refusal_traits{#name,                                    \
                   status::means,                            \
                   retry_pace::again,                        \
                   ((traits) & refusal_ails) != 0,           \
                   ((traits) & refusal_redial) != 0,         \
                   ((traits) & refusal_fatal) != 0,          \
                   ((traits) & refusal_alert) != 0,          \
                   text},
    STN_REFUSAL_TABLE(STN_REFUSAL_TRAITS)
#undef STN_REFUSAL_TRAITS
};

struct known {
    std::string_view begins;
    refusal what;
};

// First words: what follows them differs between versions, and between Redis and Valkey.
constexpr known codes[]{
    {"LOADING", refusal::loading},
    {"READONLY", refusal::read_only},
    {"MASTERDOWN", refusal::master_down},
    {"CLUSTERDOWN", refusal::cluster_down},
    {"MOVED", refusal::moved},
    {"ASK", refusal::ask},
    {"TRYAGAIN", refusal::try_again},
    {"CROSSSLOT", refusal::cross_slot},
    {"NOSCRIPT", refusal::no_script},
    {"BUSY", refusal::busy_script},
    {"OOM", refusal::out_of_memory},
    {"NOREPLICAS", refusal::no_replicas},
    {"MISCONF", refusal::misconf},
    {"NOAUTH", refusal::no_auth},
    {"WRONGPASS", refusal::wrong_pass},
    {"NOPERM", refusal::no_perm},
    {"DENIED", refusal::no_perm}, // protected mode
    {"EXECABORT", refusal::exec_abort},
    {"WRONGTYPE", refusal::wrong_type},
    {"NOPROTO", refusal::unknown_command}, // HELLO with a version it has not
};

// After "ERR ", which says nothing by itself.
constexpr known sentences[]{
    {"ACL failure in script", refusal::no_perm},
    {"The user executing the script can't", refusal::no_perm},
    {"max number of clients", refusal::max_clients},
    {"unknown command", refusal::unknown_command},
    {"unknown subcommand", refusal::unknown_command},
    {"Unknown subcommand", refusal::unknown_command},
    {"Unknown command", refusal::unknown_command},
    {"Unknown Redis command", refusal::unknown_command},
    {"syntax error", refusal::syntax},
    {"wrong number of arguments", refusal::syntax},
    {"Wrong number of args", refusal::syntax},
    {"Script killed by user", refusal::script_killed},
    {"AUTH <password> called without any password", refusal::wrong_pass},
    {"Client sent AUTH, but no password is set", refusal::wrong_pass},
};

bool drop(std::string_view& text, std::string_view prefix) {
    if (!text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
}

// Redis 6 tells of an error inside a script as "ERR Error running script (call to f_<sha>): @user_script:1:
// <error>", and the error itself, as redis.pcall gives it too, may be "@user_script: 1: -OOM ...". False: this is
// no such text, or there is nothing in it.
bool unwrap(std::string_view& text) {
    const std::string_view before = text;
    if (drop(text, "ERR Error running script (call to ")) {
        const auto end = text.find("): ");
        if (end == std::string_view::npos) return false;
        text.remove_prefix(end + 3);
    }
    while (drop(text, "@user_script:")) {
        const auto colon = text.find(": ", text.starts_with(' ') ? 1 : 0);
        if (colon == std::string_view::npos) return false;
        text.remove_prefix(colon + 2);
    }
    if (text.size() == before.size()) return false;
    drop(text, "-");
    return true;
}

refusal read_sentence(std::string_view text) {
    for (const known& k : sentences) {
        if (text.starts_with(k.begins)) return k.what;
    }
    return refusal::other;
}

refusal read_code(std::string_view text) {
    const std::string_view word = text.substr(0, text.find_first_of(" \r\n"));
    for (const known& k : codes) {
        if (word == k.begins) return k.what;
    }
    return refusal::other;
}

} // namespace

refusal classify(const reply& r) noexcept {
    if (r.kind != reply_kind::error) return refusal::none;
    std::string_view text = r.text;
    const bool bare = unwrap(text); // then a sentence needs no ERR
    const refusal what = read_code(text);
    if (what != refusal::other) return what;
    return drop(text, "ERR ") || bare ? read_sentence(text) : refusal::other;
}

const refusal_traits& traits_of(refusal why) noexcept {
    return all_traits[static_cast<std::size_t>(why)];
}

status status_of(refusal why) noexcept {
    return traits_of(why).means;
}

bool store_useless(refusal why) noexcept {
    const status means = status_of(why);
    return means != status::ok && means != status::refused && means != status::collision;
}

std::string_view loggable(std::string_view server_text) noexcept {
    return server_text.substr(0, server_text.find(", with args beginning with")).substr(0, 256);
}

error refused_by_store(const reply& r, std::string key) {
    const refusal_traits& t = traits_of(classify(r));
    error e = fail(t.means, std::string(t.text), std::move(key));
    e.server_text = r.text;
    return e;
}

} // namespace stn
