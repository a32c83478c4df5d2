// SPDX-License-Identifier: MIT
#include "draw.hpp"

#include <array>

#include "protocol/wake.hpp"

namespace stn::differ {

namespace {

constexpr std::uint64_t tokens = 5;
// More often, the more branches they have.
constexpr std::array scripts = {script_id::lease,      script_id::lease,      script_id::lease,   script_id::lease,
                                script_id::lease,      script_id::lease,      script_id::extend,  script_id::fill,
                                script_id::fill,       script_id::abandon,    script_id::abandon, script_id::abandon,
                                script_id::mark_stale, script_id::mark_stale, script_id::put,     script_id::put,
                                script_id::refresh,    script_id::renew,      script_id::release, script_id::acquire,
                                script_id::acquire,    script_id::tick,       script_id::tick,    script_id::tick_end,
                                script_id::tick_end,   script_id::once,       script_id::inspect};

token token_number(std::uint64_t n) {
    return token_from(std::string(16, static_cast<char>('a' + n)));
}

} // namespace

token drawer::draw_token() {
    if (hint_ && !one_in(3)) return *hint_;
    return token_number(below(tokens));
}

std::vector<token> drawer::draw_tokens() {
    std::vector<token> out(below(3));
    for (token& t : out) t = draw_token();
    return out;
}

void drawer::take_hint(const std::string& bytes) {
    hint_.reset();
    for (std::uint64_t n = 0; n < tokens; ++n) {
        const token t = token_number(n);
        if (bytes.find(':' + t.str() + ':') != std::string::npos) hint_ = t;
        if (bytes.starts_with(t.view()) || (bytes.size() >= 20 && bytes.substr(4, 16) == t.view())) hint_ = t;
    }
}

entry_kind drawer::draw_kind() {
    if (one_in(3)) return static_cast<entry_kind>(2 + below(3));
    return one_in(2) ? entry_kind::value : entry_kind::placeholder;
}

std::string drawer::draw_envelope(entry_kind kind, std::uint64_t one_is_large) {
    // at times around the size up to which an envelope travels in a wake-up
    std::size_t length = below(40);
    if (one_in(one_is_large)) length = envelope_in_wake - envelope_head + (one_in(2) ? 0 : below(2) * 2 - 1);
    if (one_in(60)) length = 65'530 + below(100); // the third byte of the length
    const std::string payload(length, 'p');
    envelope e;
    e.kind = kind;
    e.codec = static_cast<std::uint8_t>(below(3));
    e.compressed = one_in(5);
    e.waited = one_in(2);
    e.generation = draw_token();
    e.created = static_cast<server_ms>(below(1'000));
    e.soft_at = one_in(2) ? never_soft : 99;
    e.delta_ms = 7;
    e.payload = payload;
    e.raw_length = 5;
    return encode(e);
}

std::string drawer::draw_bytes() {
    std::string bytes = draw_envelope(draw_kind());
    switch (below(24)) {
    case 0: return std::string(below(60), 'x');
    case 1: return {};
    case 2: return bytes.substr(0, 1 + below(19));
    case 3: return bytes.substr(0, 19 + below(26)); // around 20 and 44
    case 4: bytes[1] = '\0'; return bytes;
    case 5: bytes[0] = 'x'; return bytes;
    case 6: bytes[1] = static_cast<char>(2 + (one_in(2) ? 0 : below(254))); return bytes;
    case 7: bytes[2] = static_cast<char>(bytes[2] | '\x80'); return bytes;
    case 8: bytes[2] = static_cast<char>(one_in(2) ? 5 : 5 + below(11)); return bytes;
    case 9: bytes[2] = static_cast<char>(bytes[2] | 0x30); return bytes;
    case 10: return bytes + "y"; // a wrong length, unless compressed
    case 11: bytes[40 + below(4)] ^= 1; return bytes;
    case 12: bytes[below(44)] = static_cast<char>(below(256)); return bytes;
    case 13: return draw_token().str();
    case 14: return bytes.substr(0, 44);
    default: return bytes;
    }
}

std::int64_t drawer::draw_ms() {
    switch (below(16)) {
    case 0:
    case 1: return 0;
    case 2: return -3;
    case 3:
    case 4: return INT64_MAX;
    case 5: return std::int64_t{1} << 60;
    case 6: return static_cast<std::int64_t>(20 + below(20));
    default: return static_cast<std::int64_t>(500 + below(60'000));
    }
}

scene drawer::draw_scene(std::optional<std::int64_t> ttl_ms, script_id suits) {
    scene out;
    out.list = one_in(12);
    out.ttl_ms = ttl_ms;
    if (out.list) return out;
    if (one_in(2))
        out.bytes = draw_bytes();
    else if (suits == script_id::extend || suits == script_id::fill || suits == script_id::abandon)
        out.bytes = draw_envelope(entry_kind::placeholder);
    else if (suits == script_id::refresh || suits == script_id::renew || suits == script_id::release)
        out.bytes = draw_token().str() + (one_in(2) ? ":17:label" : "");
    else if (suits == script_id::acquire || suits == script_id::once)
        out.bytes = draw_token().str() + (one_in(2) ? ":17:label" : "");
    else if (suits == script_id::tick || suits == script_id::tick_end)
        out.bytes = draw_tick();
    else
        out.bytes = draw_bytes();
    return out;
}

// Of long ago or of the far future, so that no slot begins between the two sides; or nearly one.
std::string drawer::draw_tick() {
    std::string start = one_in(4) ? "9000000000000" : std::to_string(below(8));
    if (one_in(6)) start.insert(0, "-");
    std::string bytes = start + ":" + draw_token().str() + ":" + std::to_string(below(100'000));
    bytes += one_in(2) ? ":running" : ":done";
    switch (below(12)) {
    case 0: bytes.insert(0, "12345678901234"); break;
    case 1: bytes.pop_back(); break;
    case 2: bytes.erase(below(bytes.size()), 1); break;
    case 3: bytes[below(bytes.size())] = static_cast<char>(below(256)); break;
    case 4:
    case 5:
    case 6: bytes.insert(bytes.rfind(':'), "1234567890123456"); break;
    default: break;
    }
    return bytes;
}

tick_times drawer::draw_tick_times() {
    constexpr std::int64_t age = 4'000'000'000'000; // one slot since the epoch: none begins while we look
    tick_times out{age, static_cast<std::int64_t>(below(8)), static_cast<std::int64_t>(below(1'000))};
    if (one_in(3)) out.at_most_ms = 9'000'000'000'000; // nothing is dead
    if (one_in(8)) out.every_ms = -static_cast<std::int64_t>(below(2));
    if (one_in(20)) out.at_most_ms = -1;
    return out;
}

command drawer::draw_script(const std::string& key, script_id id) {
    wake_target wake{channels[below(channels.size())], wake_tail(key)};
    if (one_in(4)) wake.channel.clear();
    if (one_in(5)) wake = {sharded_channel, wake_tail(key), true};
    switch (id) {
    case script_id::lease: {
        envelope e;
        e.kind = entry_kind::placeholder;
        e.generation = draw_token();
        e.delta_ms = 3;
        return lease_command(key, encode(e), draw_ms(), draw_tokens(), draw_tokens());
    }
    case script_id::extend: return extend_command(key, draw_token(), draw_ms());
    case script_id::fill: return fill_command(key, draw_token(), draw_envelope(draw_kind(), 3), draw_ms(), wake);
    case script_id::abandon: {
        const auto marker = static_cast<marker_kind>(below(3));
        const entry_kind kind = marker == marker_kind::error ? entry_kind::error : entry_kind::pass;
        std::vector<token> mine = draw_tokens();
        mine.push_back(draw_token());
        return abandon_command(key, marker, draw_envelope(kind, 3), draw_ms(), wake, mine);
    }
    case script_id::mark_stale: return mark_stale_command(key, draw_token(), wake);
    case script_id::put: return put_command(key, draw_envelope(entry_kind::value, 3), draw_ms(), wake);
    case script_id::refresh: return refresh_command(key, draw_token(), draw_ms());
    case script_id::acquire: return acquire_command(key, draw_token(), draw_ms(), one_in(2) ? "" : "a label:1");
    case script_id::tick: return tick_command(key, draw_token(), draw_tick_times());
    case script_id::tick_end: return tick_end_command(key, draw_token(), !one_in(3), draw_ms());
    case script_id::once: return once_command(key, draw_token(), draw_ms());
    case script_id::inspect: return inspect_command(key);
    case script_id::renew: return renew_command(key, draw_token(), draw_ms());
    default: break;
    }
    command c = release_command(key, draw_token(), wake.channel);
    if (wake.sharded) c.args[1] = "SPUBLISH";
    return c;
}

command drawer::draw_plain(const std::string& key) {
    const std::string channel = channels[below(channels.size())];
    switch (below(8)) {
    case 0:
    case 1: return del_command(key);
    case 2:
    case 3: return publish_command(one_in(3) ? "stn:w:99" : channel, draw_bytes());
    case 4: return subscribe_command(channel);
    case 5: {
        if (one_in(2)) return time_command();
        command c;
        c.what = verb::ping;
        return c;
    }
    default: return get_command(key);
    }
}

step drawer::draw(const std::string& key, const state& now, bool fresh) {
    step out;
    const bool plain = one_in(6);
    const script_id id = scripts[below(scripts.size())];
    hint_.reset();
    if (fresh && (now.is == shape::nothing ? !one_in(6) : one_in(2))) {
        std::optional<std::int64_t> ttl;
        if (!one_in(5)) ttl = static_cast<std::int64_t>(1'000 + below(60'000));
        out.before = draw_scene(ttl, id);
    }
    take_hint(out.before ? out.before->bytes : now.bytes);
    out.what = plain ? draw_plain(key) : draw_script(key, id);
    out.full = one_in(6);
    out.muted = one_in(6);
    return out;
}

} // namespace stn::differ
