// SPDX-License-Identifier: MIT
#include "branches.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "protocol/envelope.hpp"
#include "protocol/wake.hpp"

namespace stn::differ {

namespace {

// What the first checks of a script make of a key. The scripts do not share a line of code, so neither
// do their branches, but they ask the same questions.
enum class stand : std::uint8_t {
    nothing,
    wrong_type,
    empty,
    newer,
    short_,
    other_head,
    reserved_bit,
    unknown_kind,
    unknown_codec,
    wrong_length,
    ours,
};
constexpr std::array stand_names = {"nothing",       "wrong type",   "empty",        "newer",
                                    "short",         "other head",   "reserved bit", "unknown kind",
                                    "unknown codec", "wrong length", "ours"};

struct stood {
    stand as = stand::nothing;
    entry_kind kind = entry_kind::value; // when ours
    bool compressed = false;
    bool waited = false;
    bool forever = false;
    std::string generation;

    [[nodiscard]] std::string name() const { return stand_names.at(static_cast<std::size_t>(as)); }
    [[nodiscard]] std::string kind_name() const {
        if (kind == entry_kind::placeholder) return "placeholder";
        if (kind != entry_kind::value) return "marker";
        return compressed ? "compressed value" : "value";
    }
};

unsigned char byte(std::string_view bytes, std::size_t at) {
    return static_cast<unsigned char>(bytes[at]);
}

std::string_view generation_in(std::string_view envelope) {
    return envelope.size() < 20 ? std::string_view{} : envelope.substr(4, 16);
}

// As lease, mark_stale and put look at a key.
stood judge(const state& s) {
    stood out;
    const std::string_view v = s.bytes;
    out.forever = s.pttl_ms == -1;
    out.generation = generation_in(v);
    if (v.size() > 3) out.waited = v[3] != '\0';
    const auto is = [&](stand what) {
        out.as = what;
        return out;
    };
    if (s.is == shape::nothing) return is(stand::nothing);
    if (s.is == shape::list) return is(stand::wrong_type);
    if (v.empty()) return is(stand::empty);
    if (v.size() > 1 && byte(v, 0) == 0xF5 && byte(v, 1) > 1) return is(stand::newer);
    if (v.size() < envelope_head) return is(stand::short_);
    if (byte(v, 0) != 0xF5 || byte(v, 1) != 1) return is(stand::other_head);
    const unsigned flags = byte(v, 2);
    if (flags >= 128) return is(stand::reserved_bit);
    if (flags % 16 > 4) return is(stand::unknown_kind);
    if (flags / 16 % 4 == 3) return is(stand::unknown_codec);
    out.kind = static_cast<entry_kind>(flags % 16);
    out.compressed = flags >= 64;
    const std::size_t length = byte(v, 40) + 256UL * byte(v, 41) + 65536UL * byte(v, 42) + 16777216UL * byte(v, 43);
    if (!out.compressed && length != v.size() - envelope_head) return is(stand::wrong_length);
    return is(stand::ours);
}

// As extend, fill and abandon look at a key: its first 20 bytes.
std::string judge_head(const state& s, bool placeholder) {
    if (s.is == shape::nothing) return "nothing";
    if (s.is == shape::list) return "wrong type";
    if (s.bytes.size() < 20) return "short";
    if (byte(s.bytes, 0) != 0xF5 || byte(s.bytes, 1) != 1) return "other head";
    if (placeholder && byte(s.bytes, 2) % 16 != 1) return "no placeholder";
    return {};
}

// As refresh, renew and release look at a key: whose token begins it.
std::string judge_token(const state& s, const std::string& mine, bool exact) {
    if (s.is == shape::nothing) return "nothing";
    if (s.is == shape::list) return "wrong type";
    if (s.bytes == mine) return "mine";
    return !exact && s.bytes.starts_with(mine) ? "mine and more" : "another's";
}

bool refused(const reply& r) {
    return r.kind == reply_kind::error;
}

std::string refusal(const reply& r) {
    return r.text.starts_with("OOM") ? "no memory" : "bad time";
}

std::int64_t number(const reply& r, std::size_t at) {
    return r.kind == reply_kind::array && r.items.size() > at ? r.items[at].integer : -99;
}

std::string lease_branch(const step& s, const sight& seen) {
    const std::vector<std::string>& args = s.what.args;
    const stood was = judge(seen.before);
    std::size_t rejects = 0;
    std::from_chars(args[2].data(), args[2].data() + args[2].size(), rejects);
    const auto rejects_end = args.begin() + 3 + static_cast<std::ptrdiff_t>(rejects);
    const bool rejected = std::find(args.begin() + 3, rejects_end, was.generation) != rejects_end;
    const bool earlier = std::find(rejects_end, args.end(), was.generation) != args.end();
    const bool same = was.generation == generation_in(args[0]);

    std::string from; // why it comes to SET
    std::string detail;
    if (was.as == stand::nothing) {
        from = "nothing";
    } else if (was.as != stand::ours && was.as != stand::newer) {
        from = "not ours";
        detail = ": " + was.name();
    } else if (was.as == stand::ours && was.forever) {
        from = "no TTL";
        detail = ": " + was.kind_name();
    } else if (was.as == stand::ours && was.kind != entry_kind::placeholder && rejected) {
        from = "rejected";
        detail = ": " + was.kind_name();
    } else if (was.as == stand::ours && was.kind == entry_kind::placeholder && (same || earlier)) {
        from = "mine";
        detail = std::string(same ? ": same token" : ": earlier token") + (was.waited ? ", waited for" : "");
    }
    if (refused(seen.answer)) return from + ", " + refusal(seen.answer) + " -> refused";
    switch (number(seen.answer, 0)) {
    case 1: return from + detail + (number(seen.answer, 1) == 1 ? " -> granted over it" : " -> granted");
    case 2: {
        const bool marked = seen.after.bytes.size() > 3 && seen.after.bytes[3] != '\0';
        return std::string("another's, ") +
               (was.waited ? "marked"
                : marked   ? "unmarked"
                           : "unmarked, no memory") +
               " -> held";
    }
    case 3: return (was.as == stand::newer ? "newer" : was.kind_name()) + " -> told";
    default: return "no reply of a lease";
    }
}

std::string telling(const step& s, const sight& seen, bool waited, std::size_t wake_at) {
    if (!seen.told.empty()) {
        const auto heard = decode_wake(seen.told[0].payload);
        if (!heard) return "told what is no wake-up";
        if (heard->envelope.empty()) return "told without envelope";
        return heard->envelope.size() < envelope_in_wake ? "told with envelope" : "told with the largest envelope";
    }
    if (!waited) return "nobody waits";
    if (s.what.args.at(wake_at + 1).empty()) return "no channel";
    return s.muted ? "may not publish" : "not heard";
}

// What became of a PEXPIRE.
std::string renewed(const sight& seen) {
    if (refused(seen.answer)) return "bad time";
    return seen.after.is == shape::nothing ? "renewed to nothing" : "renewed";
}

using labels = std::vector<std::string>;

labels extend_branches(const step& s, const sight& seen) {
    if (auto why = judge_head(seen.before, true); !why.empty()) return {why};
    if (generation_in(seen.before.bytes) != s.what.args[0]) return {"another's"};
    return {"mine -> " + renewed(seen)};
}

labels fill_branches(const step& s, const sight& seen) {
    if (auto why = judge_head(seen.before, false); !why.empty()) return {why};
    const std::string_view stands = generation_in(seen.before.bytes);
    if (stands != s.what.args[0])
        return {stands == generation_in(s.what.args[1]) ? "filled already" : "another generation"};
    if (refused(seen.answer)) return {"expected, " + refusal(seen.answer) + " -> refused"};
    return {"expected -> stored", telling(s, seen, seen.before.bytes[3] != '\0', 3)};
}

labels abandon_branches(const step& s, const sight& seen) {
    if (auto why = judge_head(seen.before, true); !why.empty()) return {why};
    const std::vector<std::string>& args = s.what.args;
    if (std::find(args.begin() + 6, args.end(), generation_in(seen.before.bytes)) == args.end()) return {"another's"};
    std::string gone = "mine -> gone";
    if (args[0] != "none") gone = seen.answer.integer == 2 ? "mine -> marker refused" : "mine -> marker " + args[0];
    if (s.full && args[0] != "none" && seen.answer.integer == 1) gone += ", at maxmemory";
    return {gone, telling(s, seen, seen.before.bytes[3] != '\0', 3)};
}

labels mark_stale_branches(const step& s, const sight& seen) {
    const stood was = judge(seen.before);
    if (was.as == stand::nothing) return {"nothing"};
    std::string from = was.as == stand::ours ? was.kind_name() : was.name();
    if (was.as == stand::ours && was.kind == entry_kind::value) {
        if (was.forever) from = "value without TTL";
        if (s.full && !was.forever) from = "value, no memory";
    }
    if (seen.answer.integer == 1) return {from + " -> marked"};
    return {from + " -> deleted", telling(s, seen, true, 1)};
}

labels put_branches(const step& s, const sight& seen) {
    const stood was = judge(seen.before);
    if (refused(seen.answer)) return {refusal(seen.answer) + " -> refused"};
    std::string from = was.as == stand::ours ? was.forever ? "ours without TTL" : "ours" : was.name();
    from += seen.answer.integer == 2 ? " -> stored over it" : " -> stored";
    if (was.as == stand::nothing || was.as == stand::wrong_type) return {from};
    if (was.as != stand::ours) return {from, "not ours, nobody can wait"};
    return {from, telling(s, seen, was.waited, 2)};
}

labels refresh_branches(const step& s, const sight& seen) {
    const std::string whose = judge_token(seen.before, s.what.args[0], true);
    if (whose == "mine") return {"mine -> " + renewed(seen)};
    const std::string from = whose == "another's" && seen.before.pttl_ms == -1 ? "nobody's for ever" : whose;
    if (refused(seen.answer)) return {refusal(seen.answer) + " -> refused"};
    return {from + (number(seen.answer, 0) == 1 ? " -> granted" : " -> held")};
}

labels renew_branches(const step& s, const sight& seen) {
    const std::string whose = judge_token(seen.before, s.what.args[0], false);
    if (!whose.starts_with("mine")) return {whose};
    return {whose + " -> " + renewed(seen)};
}

labels release_branches(const step& s, const sight& seen) {
    const std::string whose = judge_token(seen.before, s.what.args[0], false);
    if (!whose.starts_with("mine")) return {whose};
    return {whose + " -> released", telling(s, seen, true, 1)};
}

labels acquire_branches(const step& s, const sight& seen) {
    const std::string whose = judge_token(seen.before, s.what.args[0], false);
    if (whose == "wrong type") return {whose};
    if (whose == "another's") return {seen.before.pttl_ms == -1 ? "another's for ever" : whose};
    if (whose.starts_with("mine")) return {whose + " -> " + renewed(seen)};
    return {refused(seen.answer) ? refusal(seen.answer) + " -> refused" : "nothing -> granted"};
}

labels tick_branches(const sight& seen) {
    if (seen.before.is == shape::list) return {"wrong type"};
    if (refused(seen.answer)) return {seen.answer.text.starts_with("OOM") ? "no memory -> refused" : "no sense"};
    const bool there = seen.before.is != shape::nothing;
    const bool done = seen.before.bytes.ends_with(":done");
    const bool mine = there && seen.before.bytes == seen.after.bytes;
    switch (number(seen.answer, 0)) {
    case 0: return {done ? "taken, done" : "taken, running"};
    case 1: return {mine ? "mine" : !there ? "nothing -> granted" : done ? "done -> granted" : "dead -> granted"};
    case 2: return {"still running"};
    case 3: return {"foreign"};
    default: return {"no reply of a tick"};
    }
}

labels tick_end_branches(const step& s, const sight& seen) {
    if (seen.before.is == shape::nothing) return {"nothing"};
    if (seen.before.is == shape::list) return {"wrong type"};
    if (refused(seen.answer)) return {"bad time"};
    if (seen.answer.integer == -1) return {"another's"};
    const std::string from = s.what.args[1] == "undone" ? "mine -> gone" : "mine -> done";
    return {from + (s.full ? ", at maxmemory" : "")};
}

labels once_branches(const step& s, const sight& seen) {
    const std::string whose = judge_token(seen.before, s.what.args[0], true);
    if (whose != "nothing") return {whose};
    return {refused(seen.answer) ? refusal(seen.answer) + " -> refused" : "nothing -> granted"};
}

labels inspect_branches(const sight& seen) {
    if (seen.before.is == shape::nothing) return {"nothing"};
    if (seen.before.is == shape::list) return {"wrong type"};
    return {seen.before.pttl_ms == -1 ? "bytes for ever" : "bytes"};
}

labels script_branches(const step& s, const sight& seen) {
    switch (s.what.script) {
    case script_id::lease: return {lease_branch(s, seen)};
    case script_id::extend: return extend_branches(s, seen);
    case script_id::fill: return fill_branches(s, seen);
    case script_id::abandon: return abandon_branches(s, seen);
    case script_id::mark_stale: return mark_stale_branches(s, seen);
    case script_id::put: return put_branches(s, seen);
    case script_id::refresh: return refresh_branches(s, seen);
    case script_id::renew: return renew_branches(s, seen);
    case script_id::release: return release_branches(s, seen);
    case script_id::acquire: return acquire_branches(s, seen);
    case script_id::tick: return tick_branches(seen);
    case script_id::tick_end: return tick_end_branches(s, seen);
    case script_id::once: return once_branches(s, seen);
    case script_id::inspect: return inspect_branches(seen);
    case script_id::count_: break;
    }
    return {};
}

labels plain_branches(const step& s, const sight& seen) {
    const reply& r = seen.answer;
    switch (s.what.what) {
    case verb::get: return {r.kind == reply_kind::nil ? "nothing" : refused(r) ? "wrong type" : "bytes"};
    case verb::del: return {r.integer == 0 ? "nothing" : "deleted"};
    case verb::publish:
        if (refused(r)) return {"may not publish"};
        return {r.integer == 0 ? "nobody hears" : r.integer == 1 ? "one hears" : "two hear"};
    case verb::subscribe: return {r.text == "OK" ? "heard from now on" : "refused"};
    case verb::time: return {"time"};
    case verb::ping: return {r.text == "PONG" ? "pong" : "no pong"};
    case verb::script: break;
    }
    return {};
}

std::string name_of(const command& c) {
    constexpr std::array verbs = {"get", "del", "publish", "subscribe", "script", "time", "ping"};
    return c.what == verb::script ? std::string(script_name(c.script)) : verbs.at(static_cast<std::size_t>(c.what));
}

} // namespace

std::vector<std::string> branches_of(const step& s, const sight& seen) {
    const std::string name = name_of(s.what) + ": ";
    labels out = s.what.what == verb::script ? script_branches(s, seen) : plain_branches(s, seen);
    if (s.crossed) out.emplace_back("after its expiry");
    for (std::string& label : out) label.insert(0, name);
    return out;
}

std::string blind_branch(script_id id) {
    return std::string(script_name(id)) + ": reading is refused";
}

} // namespace stn::differ
