// SPDX-License-Identifier: MIT
#include "protocol/commands.hpp"

#include <charconv>

#include "protocol/envelope.hpp"
#include "protocol/lock_value.hpp"
#include "protocol/wake.hpp"

namespace stn {
namespace {

command plain(verb what, std::string_view key) {
    return {what, script_id::count_, std::string(key), {}};
}

command script(script_id id, std::string_view key, std::vector<std::string> args) {
    return {verb::script, id, std::string(key), std::move(args)};
}

void append_wake(std::vector<std::string>& args, const wake_target& wake) {
    args.emplace_back(wake.sharded ? "SPUBLISH" : "PUBLISH");
    args.push_back(wake.channel);
    args.push_back(wake.tail);
}

void append_tokens(std::vector<std::string>& args, std::span<const token> tokens) {
    for (const token& t : tokens) args.push_back(t.str());
}

std::string_view marker_name(marker_kind marker) {
    switch (marker) {
    case marker_kind::none: return "none";
    case marker_kind::error: return "error";
    case marker_kind::pass: return "pass";
    }
    return "none";
}

std::optional<std::int64_t> decimal(const reply& r) {
    std::int64_t n = 0;
    const char* end = r.text.data() + r.text.size();
    const auto [at, fault] = std::from_chars(r.text.data(), end, n);
    if (r.kind != reply_kind::bulk || fault != std::errc{} || at != end) return std::nullopt;
    return n;
}

bool is_pair(const reply& r) {
    return r.kind == reply_kind::array && r.items.size() == 2 && r.items[0].kind == reply_kind::integer &&
           r.items[1].kind == reply_kind::integer;
}

} // namespace

command get_command(std::string_view key) {
    return plain(verb::get, key);
}

command del_command(std::string_view key) {
    return plain(verb::del, key);
}

command publish_command(std::string_view channel, std::string_view message) {
    command c = plain(verb::publish, channel);
    c.args.emplace_back(message);
    return c;
}

command subscribe_command(std::string_view channel) {
    return plain(verb::subscribe, channel);
}

command time_command() {
    return plain(verb::time, {});
}

command lease_command(std::string_view key, std::string_view placeholder, std::int64_t lease_ms,
                      std::span<const token> rejected, std::span<const token> earlier) {
    std::vector<std::string> args{std::string(placeholder), std::to_string(lease_ms), std::to_string(rejected.size())};
    append_tokens(args, rejected);
    append_tokens(args, earlier);
    return script(script_id::lease, key, std::move(args));
}

lease_answer read_lease(const reply& r) {
    lease_answer out;
    if (r.kind != reply_kind::array || r.items.size() != 3 || r.items[0].kind != reply_kind::integer ||
        r.items[1].kind != reply_kind::integer || r.items[2].kind != reply_kind::bulk)
        return out;
    envelope e;
    switch (r.items[0].integer) {
    case 1:
        out.what = lease_answer::kind::granted;
        out.overwrote_foreign = r.items[1].integer != 0;
        break;
    case 2:
        out.what = lease_answer::kind::held;
        out.pttl_ms = r.items[1].integer;
        out.bytes = r.items[2].text;
        break;
    case 3:
        out.what = lease_answer::kind::value;
        out.pttl_ms = r.items[1].integer;
        out.bytes = r.items[2].text;
        out.newer = decode(out.bytes, e) == reading::newer;
        break;
    default: break;
    }
    return out;
}

command extend_command(std::string_view key, const token& mine, std::int64_t ms) {
    return script(script_id::extend, key, {mine.str(), std::to_string(ms)});
}

command fill_command(std::string_view key, const token& expected, std::string_view envelope, std::int64_t px,
                     const wake_target& wake) {
    std::vector<std::string> args{expected.str(), std::string(envelope), std::to_string(px)};
    append_wake(args, wake);
    return script(script_id::fill, key, std::move(args));
}

command abandon_command(std::string_view key, marker_kind marker, std::string_view marker_envelope,
                        std::int64_t marker_px, const wake_target& wake, std::span<const token> tokens) {
    std::vector<std::string> args{std::string(marker_name(marker)), std::string(marker_envelope),
                                  std::to_string(marker_px)};
    append_wake(args, wake);
    append_tokens(args, tokens);
    return script(script_id::abandon, key, std::move(args));
}

command mark_stale_command(std::string_view key, const token& fresh, const wake_target& wake) {
    std::vector<std::string> args{fresh.str()};
    append_wake(args, wake);
    return script(script_id::mark_stale, key, std::move(args));
}

command put_command(std::string_view key, std::string_view envelope, std::int64_t px, const wake_target& wake) {
    std::vector<std::string> args{std::string(envelope), std::to_string(px)};
    append_wake(args, wake);
    return script(script_id::put, key, std::move(args));
}

command refresh_command(std::string_view key, const token& mine, std::int64_t ms) {
    return script(script_id::refresh, key, {mine.str(), std::to_string(ms)});
}

std::optional<refresh_answer> read_refresh(const reply& r) {
    if (!is_pair(r)) return std::nullopt;
    return refresh_answer{r.items[0].integer == 1, r.items[1].integer};
}

command renew_command(std::string_view key, const token& mine, std::int64_t ms) {
    return script(script_id::renew, key, {mine.str(), std::to_string(ms)});
}

command release_command(std::string_view key, const token& mine, std::string_view channel) {
    std::vector<std::string> args{mine.str()};
    append_wake(args, {std::string(channel), wake_tail(key)});
    return script(script_id::release, key, std::move(args));
}

command release_command(std::string_view key, const token& mine, std::string_view channel, int seen) {
    return script(script_id::release, key, {mine.str(), "PUBLISH", std::string(channel), released_tail(key, seen)});
}

command acquire_command(std::string_view key, const token& mine, std::int64_t ttl_ms, std::string_view label) {
    return script(script_id::acquire, key, {mine.str(), std::to_string(ttl_ms), escape_label(label)});
}

std::optional<acquire_answer> read_acquire(const reply& r) {
    if (!is_pair(r)) return std::nullopt;
    const std::int64_t n = r.items[1].integer;
    return r.items[0].integer == 1 ? acquire_answer{true, n, 0} : acquire_answer{false, 0, n};
}

command tick_command(std::string_view key, const token& mine, const tick_times& when) {
    return script(
        script_id::tick, key,
        {mine.str(), std::to_string(when.every_ms), std::to_string(when.offset_ms), std::to_string(when.at_most_ms)});
}

std::optional<tick_answer> read_tick(const reply& r) {
    if (r.kind != reply_kind::array || r.items.size() != 3) return std::nullopt;
    for (const reply& item : r.items) {
        if (item.kind != reply_kind::integer) return std::nullopt;
    }
    const std::int64_t n = r.items[2].integer;
    tick_answer out;
    out.slot = r.items[1].integer;
    switch (r.items[0].integer) {
    case 0:
        out.what = tick_answer::kind::taken;
        out.in_ms = n;
        break;
    case 1:
        out.what = tick_answer::kind::granted;
        out.fence = n;
        break;
    case 2:
        out.what = tick_answer::kind::still_running;
        out.in_ms = n;
        break;
    case 3: break;
    default: return std::nullopt;
    }
    return out;
}

command tick_end_command(std::string_view key, const token& mine, bool done, std::int64_t memory_ms) {
    return script(script_id::tick_end, key, {mine.str(), done ? "done" : "undone", std::to_string(memory_ms)});
}

command once_command(std::string_view key, const token& mine, std::int64_t ttl_ms) {
    return script(script_id::once, key, {mine.str(), std::to_string(ttl_ms)});
}

command inspect_command(std::string_view key) {
    return script(script_id::inspect, key, {});
}

std::optional<inspect_answer> read_inspect(const reply& r) {
    if (r.kind != reply_kind::array || r.items.size() != 2 || r.items[0].kind != reply_kind::integer ||
        r.items[1].kind != reply_kind::bulk)
        return std::nullopt;
    return inspect_answer{r.items[0].integer, r.items[1].text};
}

std::optional<std::int64_t> read_integer(const reply& r) {
    if (r.kind != reply_kind::integer) return std::nullopt;
    return r.integer;
}

std::optional<server_ms> read_time(const reply& r) {
    if (r.kind != reply_kind::array || r.items.size() != 2) return std::nullopt;
    const auto seconds = decimal(r.items[0]);
    const auto micros = decimal(r.items[1]);
    if (!seconds || !micros || *seconds < 0 || *seconds > forever_ms / 2000 || *micros < 0 || *micros >= 1'000'000)
        return std::nullopt;
    return *seconds * 1000 + *micros / 1000;
}

} // namespace stn
