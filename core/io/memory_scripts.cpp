// SPDX-License-Identifier: MIT
//
// The scripts of core/protocol/scripts, line by line in C++. Change both or neither: the names, the
// order of the checks and the replies are the same on purpose.
#include "io/memory_scripts.hpp"

#include <algorithm>
#include <charconv>
#include <span>

#include "protocol/envelope.hpp"
#include "protocol/lock_value.hpp"
#include "protocol/wake.hpp"

namespace stn {
namespace {

using arguments = std::span<const std::string>;

constexpr std::string_view wrong_type_text = "WRONGTYPE Operation against a key holding the wrong kind of value";
constexpr std::size_t token_at = 4;
constexpr std::size_t created_at = 20;
constexpr std::size_t waiter_at = 3;
constexpr std::size_t lock_head = 20;
constexpr std::string_view head_of_ours("\xF5\x01", 2);

std::string_view generation_of(std::string_view bytes) {
    return bytes.size() < token_at ? std::string_view{} : bytes.substr(token_at, 16);
}

bool waited_for(std::string_view bytes) {
    return bytes[waiter_at] != '\0';
}

// As the scripts that look at the first 20 bytes only.
bool has_head(std::string_view bytes) {
    return bytes.size() >= lock_head && bytes.starts_with(head_of_ours);
}

bool is_placeholder(std::string_view bytes) {
    return has_head(bytes) && static_cast<unsigned char>(bytes[2]) % 16 == 1;
}

bool among(std::string_view generation, arguments tokens) {
    return std::find(tokens.begin(), tokens.end(), generation) != tokens.end();
}

std::string_view small(std::string_view envelope) {
    return envelope.size() <= envelope_in_wake ? envelope : std::string_view{};
}

void tell(script_host& host, const std::string& channel, wake_kind kind, std::string_view replaced,
          std::string_view tail, std::string_view envelope) {
    if (channel.empty()) return;
    std::string message("\x01", 1);
    message.push_back(static_cast<char>(kind));
    message.append(replaced).append(tail).append(envelope);
    host.publish(channel, message);
}

reply pair(std::int64_t a, std::int64_t b) {
    return reply::of_array({reply::of_integer(a), reply::of_integer(b)});
}

reply triple(std::int64_t a, std::int64_t b, std::string bytes) {
    return reply::of_array({reply::of_integer(a), reply::of_integer(b), reply::of_bulk(std::move(bytes))});
}

reply lease(arguments args, script_host& host) {
    std::string placeholder = args[0];
    std::size_t rejected = 0;
    std::from_chars(args[2].data(), args[2].data() + args[2].size(), rejected);
    rejected = std::min(rejected, args.size() - 3);
    const arguments rejects = args.subspan(3, rejected);
    const arguments earlier = args.subspan(3 + rejected);

    std::int64_t foreign = host.wrong_type() ? 1 : 0;
    if (const std::string* v = host.bytes()) {
        const std::int64_t pttl = host.pttl();
        envelope e;
        const reading read = decode(*v, e);
        if (read == reading::newer) return triple(3, pttl, *v);
        const std::string_view generation = generation_of(*v);
        if (read == reading::foreign || pttl == -1) {
            foreign = 1;
        } else if (e.kind != entry_kind::placeholder) {
            if (!among(generation, rejects)) return triple(3, pttl, *v);
        } else if (generation == generation_of(placeholder) || among(generation, earlier)) {
            placeholder[waiter_at] = (*v)[waiter_at];
        } else {
            std::string seen = *v;
            if (!waited_for(seen)) (void)host.set_range(waiter_at, std::string_view("\x01", 1));
            return triple(2, pttl, std::move(seen));
        }
    }
    if (auto refused = host.set(std::move(placeholder), args[1])) return reply::of_error(*refused);
    return triple(1, foreign, {});
}

reply extend(arguments args, script_host& host) {
    const std::string* v = host.bytes();
    if (v == nullptr || !is_placeholder(*v) || generation_of(*v) != args[0]) return reply::of_integer(0);
    if (auto refused = host.pexpire(args[1])) return reply::of_error(*refused);
    return reply::of_integer(1);
}

reply fill(arguments args, script_host& host) {
    const std::string* v = host.bytes();
    if (v == nullptr || !has_head(*v)) return reply::of_integer(0);
    if (generation_of(*v) != args[0]) return reply::of_integer(generation_of(*v) == generation_of(args[1]) ? 1 : 0);
    const bool waited = waited_for(*v);
    if (auto refused = host.set(args[1], args[2])) return reply::of_error(*refused);
    if (waited) tell(host, args[4], wake_kind::filled, args[0], args[5], small(args[1]));
    return reply::of_integer(1);
}

reply abandon(arguments args, script_host& host) {
    const std::string* v = host.bytes();
    if (v == nullptr || !is_placeholder(*v) || !among(generation_of(*v), args.subspan(6))) return reply::of_integer(0);
    const std::string head = v->substr(0, lock_head);
    host.del();
    std::int64_t answer = 1;
    wake_kind kind = wake_kind::released;
    std::string_view bytes;
    if (args[0] != "none") {
        if (host.set(args[1], args[2])) {
            answer = 2;
            kind = wake_kind::pass;
        } else {
            kind = args[0] == "error" ? wake_kind::failed : wake_kind::pass;
            bytes = small(args[1]);
        }
    }
    if (waited_for(head)) tell(host, args[4], kind, generation_of(head), args[5], bytes);
    return reply::of_integer(answer);
}

reply mark_stale(arguments args, script_host& host) {
    std::string generation(16, '\0');
    if (!host.wrong_type()) {
        const std::string* v = host.bytes();
        if (v == nullptr) return reply::of_integer(0);
        envelope e;
        const bool ours = decode(*v, e) == reading::ours;
        if (ours) generation = e.generation.str();
        if (ours && e.kind == entry_kind::value && host.pttl() != -1) {
            std::string patch = args[0] + v->substr(created_at, 8);
            patch.append(8, '\0');
            if (!host.set_range(token_at, patch)) return reply::of_integer(1);
        }
    }
    host.del();
    tell(host, args[2], wake_kind::invalidated, generation, args[3], {});
    return reply::of_integer(2);
}

reply put(arguments args, script_host& host) {
    std::int64_t answer = host.wrong_type() ? 2 : 1;
    bool waited = false;
    std::string generation;
    if (const std::string* v = host.bytes()) {
        envelope e;
        const reading read = decode(*v, e);
        if (read != reading::newer && (read == reading::foreign || host.pttl() == -1)) answer = 2;
        waited = read == reading::ours && e.waited;
        generation = generation_of(*v);
    }
    if (auto refused = host.set(args[0], args[1])) return reply::of_error(*refused);
    if (waited) tell(host, args[3], wake_kind::filled, generation, args[4], small(args[0]));
    return reply::of_integer(answer);
}

reply refresh(arguments args, script_host& host) {
    if (const std::string* v = host.bytes()) {
        if (*v == args[0]) {
            if (auto refused = host.pexpire(args[1])) return reply::of_error(*refused);
            return pair(1, 0);
        }
        if (const std::int64_t pttl = host.pttl(); pttl != -1) return pair(0, pttl);
    }
    if (auto refused = host.set(args[0], args[1])) return reply::of_error(*refused);
    return pair(1, 0);
}

reply renew(arguments args, script_host& host) {
    if (host.wrong_type()) return reply::of_integer(-1);
    const std::string* v = host.bytes();
    if (v == nullptr) return reply::of_integer(0);
    if (!v->starts_with(args[0])) return reply::of_integer(-1);
    if (auto refused = host.pexpire(args[1])) return reply::of_error(*refused);
    return reply::of_integer(1);
}

reply release(arguments args, script_host& host) {
    if (host.wrong_type()) return reply::of_integer(-1);
    const std::string* v = host.bytes();
    if (v == nullptr) return reply::of_integer(0);
    if (!v->starts_with(args[0])) return reply::of_integer(-1);
    host.del();
    tell(host, args[2], wake_kind::released, args[0], args[3], {});
    return reply::of_integer(1);
}

// As '(%d+)' in Lua; at most `most` digits.
std::optional<std::int64_t> digits(std::string_view text, std::size_t most) {
    std::int64_t n = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), n);
    const bool whole = fault == std::errc{} && end == text.data() + text.size() && text.size() <= most;
    return whole ? std::optional(n) : std::nullopt;
}

reply acquire(arguments args, script_host& host) {
    if (host.wrong_type()) return reply::of_error(std::string(wrong_type_text));
    if (const std::string* v = host.bytes()) {
        if (!v->starts_with(args[0])) return pair(0, host.pttl());
        const auto lock = read_lock_value(*v);
        if (auto refused = host.pexpire(args[1])) return reply::of_error(*refused);
        return pair(1, lock ? lock->fence : 0);
    }
    const std::int64_t fence = host.fence();
    std::string value = args[0] + ":" + std::to_string(fence) + ":" + args[2];
    if (auto refused = host.set(std::move(value), args[1])) return reply::of_error(*refused);
    return pair(1, fence);
}

struct tick_value {
    server_ms start = 0;
    std::string_view token;
    std::int64_t fence = 0;
    bool running = false;
};

std::optional<tick_value> read_tick_value(std::string_view v) {
    constexpr std::size_t most_digits = 16;
    tick_value out;
    const auto colon = v.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto start = digits(v.substr(0, colon), most_digits);
    const std::string_view rest = v.substr(colon + 1);
    if (!start || rest.size() < 17 || rest[16] != ':') return std::nullopt;
    out.start = *start;
    out.token = rest.substr(0, 16);
    const std::string_view tail = rest.substr(17);
    const auto last = tail.find(':');
    if (last == std::string_view::npos || tail.starts_with('-')) return std::nullopt;
    const auto fence = digits(tail.substr(0, last), most_digits);
    const std::string_view state = tail.substr(last + 1);
    if (!fence || (state != "running" && state != "done")) return std::nullopt;
    out.fence = *fence;
    out.running = state == "running";
    return out;
}

reply numbers(std::int64_t a, std::int64_t b, std::int64_t c) {
    return reply::of_array({reply::of_integer(a), reply::of_integer(b), reply::of_integer(c)});
}

reply tick(arguments args, script_host& host) {
    constexpr std::int64_t longest = 10'000'000'000'000;
    const std::int64_t every = digits(args[1], 20).value_or(0);
    const std::int64_t offset = digits(args[2], 20).value_or(longest + 1);
    const std::int64_t at_most = digits(args[3], 20).value_or(-1);
    if (every < 1 || every > longest || offset < -longest || offset > longest || at_most < 0 || at_most > longest) {
        return reply::of_error("ERR the slots of the tick make no sense");
    }
    if (host.wrong_type()) return reply::of_error(std::string(wrong_type_text));
    const server_ms now = host.now();
    const std::int64_t into = (now - offset) % every;
    const server_ms slot = now - (into < 0 ? into + every : into);
    if (const std::string* v = host.bytes()) {
        const auto there = read_tick_value(*v);
        if (!there) return numbers(3, 0, 0);
        if (there->running && there->token == args[0]) return numbers(1, there->start, there->fence);
        if (there->start >= slot) return numbers(0, there->start, slot + every - now);
        const server_ms dead = there->fence / 1'000 + at_most;
        if (there->running && now <= dead) return numbers(2, there->start, dead + 1 - now);
    }
    const std::int64_t fence = host.fence();
    std::string value = std::to_string(slot) + ":" + args[0] + ":" + std::to_string(fence) + ":running";
    const std::string px = std::to_string(std::max(2 * every, at_most));
    if (auto refused = host.set(std::move(value), px)) return reply::of_error(*refused);
    return numbers(1, slot, fence);
}

reply tick_end(arguments args, script_host& host) {
    if (host.wrong_type()) return reply::of_integer(-1);
    const std::string* v = host.bytes();
    if (v == nullptr) return reply::of_integer(0);
    const auto there = read_tick_value(*v);
    if (!there || there->token != args[0]) return reply::of_integer(-1);
    std::string value = v->substr(0, v->rfind(':')) + ":done";
    host.del();
    if (args[1] == "done") {
        if (auto refused = host.set(std::move(value), args[2])) return reply::of_error(*refused);
    }
    return reply::of_integer(1);
}

reply once(arguments args, script_host& host) {
    if (host.wrong_type()) return reply::of_error(std::string(wrong_type_text));
    if (const std::string* v = host.bytes()) return reply::of_integer(*v == args[0] ? 1 : 0);
    if (auto refused = host.set(args[0], args[1])) return reply::of_error(*refused);
    return reply::of_integer(1);
}

reply inspect(arguments, script_host& host) {
    if (host.wrong_type()) return reply::of_error(std::string(wrong_type_text));
    const std::string* v = host.bytes();
    return reply::of_array({reply::of_integer(host.pttl()), reply::of_bulk(v != nullptr ? *v : std::string())});
}

struct known_script {
    reply (*run)(arguments, script_host&);
    std::size_t arguments_at_least;
};

constexpr known_script scripts[] = {{lease, 3}, {extend, 2},   {fill, 6},  {abandon, 6}, {mark_stale, 4},
                                    {put, 5},   {refresh, 2},  {renew, 2}, {release, 4}, {acquire, 3},
                                    {tick, 4},  {tick_end, 3}, {once, 2},  {inspect, 0}};

} // namespace

reply run_memory_script(script_id id, const std::vector<std::string>& args, script_host& host) {
    if (id >= script_id::count_) return reply::of_error("NOSCRIPT No matching script.");
    const known_script& script = scripts[static_cast<std::size_t>(id)];
    if (args.size() < script.arguments_at_least) return reply::of_error("ERR wrong number of arguments for a script");
    return script.run(args, host);
}

} // namespace stn
