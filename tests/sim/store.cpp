// SPDX-License-Identifier: MIT
#include "store.hpp"

#include <algorithm>
#include <charconv>

#include "protocol/commands.hpp"
#include "protocol/envelope.hpp"
#include "protocol/keys.hpp"

namespace stn::sim {

namespace {

constexpr std::string_view refresh_prefix = "stn:r:";

std::string shown(std::string_view bytes) {
    envelope e;
    switch (decode(bytes, e)) {
    case reading::foreign: return bytes.size() == 16 ? brief(bytes) : "foreign";
    case reading::newer: return "newer";
    case reading::ours: break;
    }
    static constexpr std::string_view kinds[] = {"value", "placeholder", "absent", "error", "pass"};
    std::string out(kinds[static_cast<std::size_t>(e.kind)]);
    out += " " + brief(e.generation);
    if (const auto s = read_stamp(e.payload))
        out += " v" + std::to_string(s->version) + " load " + std::to_string(s->load);
    if (e.soft_at == 0) out += " marked";
    if (e.waited) out += " waited";
    return out;
}

// As in the name of a refresh key.
std::string hex(std::string_view bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        out.push_back(digits[byte >> 4]);
        out.push_back(digits[byte & 15]);
    }
    return out;
}

std::int64_t number(std::string_view text) {
    std::int64_t n = 0;
    std::from_chars(text.data(), text.data() + text.size(), n);
    return n;
}

} // namespace

store::store(const options& o, const agenda& when, tale& told, judge& judged, book& history)
    : when_(when),
      told_(told),
      judge_(judged),
      book_(history),
      began_(1'700'000'000'000 + static_cast<server_ms>(o.seed % 1'000)),
      server_([this] { return now(); }),
      floors_(static_cast<std::size_t>(o.keys), 0),
      passed_(static_cast<std::size_t>(o.keys), -never / 2) {
    for (int k = 0; k < o.keys; ++k) {
        const std::string name = "k" + std::to_string(k);
        keys_.push_back(value_key("stn", "c", name));
        numbers_.emplace(keys_.back(), k);
        channels_.push_back(wake_channel("stn", name));
    }
}

bool store::relevant(const std::string& channel) const {
    return std::ranges::find(channels_, channel) != channels_.end();
}

bool store::holds_placeholder(const std::string& key) {
    const auto bytes = server_.peek(key);
    envelope e;
    return bytes && decode(*bytes, e) == reading::ours && e.kind == entry_kind::placeholder;
}

reply store::run(int node, const command& cmd, bool skipped) {
    if (cmd.what != verb::script && cmd.what != verb::del) {
        reply r = server_.execute(cmd);
        if (told_.on() && cmd.what == verb::get) {
            told_.line("server", "n", node, " get -> ", r.kind == reply_kind::bulk ? shown(r.text) : "nothing");
        }
        return r;
    }
    const auto before = server_.peek(cmd.key);
    const std::int64_t left_ms = onlooker ? server_.pttl(cmd.key).value_or(-2) : 0;
    reply r = skipped ? reply::of_integer(0) : server_.execute(cmd);
    if (onlooker) onlooker(cmd, before.value_or(std::string()), left_ms);
    watch(node, cmd, before.value_or(std::string()), before.has_value(), r);
    return r;
}

void store::watch(int node, const command& cmd, const std::string& before, bool was, const reply& r) {
    const auto found = server_.peek(cmd.key);
    const std::string& after = found ? *found : std::string();
    const bool changed = was != found.has_value() || before != after;
    if (told_.on()) {
        std::string args;
        if (cmd.what == verb::script &&
            (cmd.script == script_id::extend || cmd.script == script_id::fill || cmd.script == script_id::refresh ||
             cmd.script == script_id::renew || cmd.script == script_id::release)) {
            args = " " + brief(cmd.args[0]);
        }
        if (cmd.what == verb::script && cmd.script == script_id::lease) args = " " + shown(cmd.args[0]);
        if (cmd.what == verb::script && cmd.script == script_id::abandon) {
            args = " " + cmd.args[0];
            for (std::size_t i = 6; i < cmd.args.size(); ++i) args += " " + brief(cmd.args[i]);
        }
        const std::string said = r.kind == reply_kind::integer ? std::to_string(r.integer)
                                 : r.kind == reply_kind::error ? r.text
                                 : r.kind == reply_kind::array ? std::to_string(r.items[0].integer)
                                                               : "?";
        told_.line("server", "n", node, " ", cmd.what == verb::del ? "del" : script_name(cmd.script), args, " -> ",
                   said, "; ", cmd.key.starts_with(refresh_prefix) ? "refresh key " : "key ",
                   was ? shown(before) : "nothing", " -> ", found ? shown(after) : "nothing");
    }
    if (found && changed) {
        const auto left = server_.pttl(cmd.key);
        if (left && *left < 0) judge_.broken(checker::ttl_everywhere, cmd.key, " has no TTL after a command of ours");
    }
    if (cmd.key.starts_with(refresh_prefix)) {
        watch_refresh_key(cmd, r);
        return;
    }
    const auto at = numbers_.find(cmd.key);
    if (at == numbers_.end()) return;
    const int key = at->second;
    if (cmd.what == verb::del) {
        gone(key);
        return;
    }
    switch (cmd.script) {
    case script_id::lease: watch_lease(node, key, cmd, after); break;
    case script_id::fill: watch_fill(node, key, cmd, before, r); break;
    case script_id::put: watch_put(key, cmd, r); break;
    case script_id::abandon:
        if (cmd.args[0] == "pass" && changed) passed_[static_cast<std::size_t>(key)] = when_.now();
        break;
    case script_id::mark_stale:
        if (r.kind != reply_kind::error) gone(key);
        break;
    default: break;
    }
}

// From now on nothing may be stored that was read before now.
void store::gone(int key) {
    const auto k = static_cast<std::size_t>(key);
    floors_[k] = std::max(floors_[k], book_.source[k]);
}

void store::watch_lease(int node, int key, const command& cmd, const std::string& after) {
    envelope mine;
    envelope there;
    if (decode(cmd.args[0], mine) != reading::ours || decode(after, there) != reading::ours) return;
    if (there.kind != entry_kind::placeholder || there.generation != mine.generation) return;
    grant g;
    g.key = key;
    g.at = when_.now();
    grants_.emplace(mine.generation.str(), g); // the first grant of a token counts
    static_cast<void>(node);
}

void store::watch_fill(int node, int key, const command& cmd, const std::string& before, const reply& r) {
    envelope old;
    envelope fresh;
    if (r.kind != reply_kind::integer) return;
    if (r.integer == 0) ++fills_refused_;
    if (decode(cmd.args[1], fresh) != reading::ours) return;
    const bool stored = r.integer == 1 && decode(before, old) == reading::ours && old.generation.view() == cmd.args[0];
    if (!stored) return;
    const auto s = read_stamp(fresh.payload);
    load_entry* load = s ? book_.load(s->load) : nullptr;
    if (load == nullptr || load->key != key || load->version != s->version || load->put) {
        judge_.broken(checker::right_value, "node ", node, " stored something that no load of key ", key, " made");
        return;
    }
    load->stored = true;
    load->stored_at = when_.now();
    told_.note(load->id);
    judge_age(*load);
    if (old.kind == entry_kind::placeholder) {
        const auto at = grants_.find(cmd.args[0]);
        if (at == grants_.end()) {
            judge_.broken(checker::one_load_per_lease, "load ", load->id, " is stored for a token never granted");
            return;
        }
        grant& g = at->second;
        if (g.stored_load != 0 && g.stored_load != load->id) {
            judge_.broken(checker::one_load_per_lease, "loads ", g.stored_load, " and ", load->id,
                          " are both stored for token ", brief(cmd.args[0]));
        }
        g.stored_load = load->id;
        if (load->began < g.at) {
            judge_.broken(checker::one_load_per_lease, "load ", load->id, " began before its lease ",
                          brief(cmd.args[0]), " was granted");
        }
        if (!load->lease.none() && load->lease.view() != cmd.args[0]) {
            judge_.broken(checker::one_load_per_lease, "load ", load->id, " ran under ", brief(load->lease),
                          " and is stored for ", brief(cmd.args[0]));
        }
        return;
    }
    if (const auto at = refreshes_.find(hex(cmd.args[0])); at != refreshes_.end()) at->second.stored = true;
}

void store::judge_age(const load_entry& load) {
    const std::int64_t floor = floors_[static_cast<std::size_t>(load.key)];
    if (load.version >= floor) return;
    judge_.broken(checker::no_stale_after_invalidation, "key ", load.key, ": load ", load.id, " read version ",
                  load.version, " and is stored after version ", floor, " was announced");
}

void store::watch_put(int key, const command& cmd, const reply& r) {
    envelope e;
    if (r.kind != reply_kind::integer || decode(cmd.args[0], e) != reading::ours) return;
    const auto s = read_stamp(e.payload);
    load_entry* load = s ? book_.load(s->load) : nullptr;
    if (load == nullptr || load->key != key || load->version != s->version) {
        judge_.broken(checker::right_value, "a put stored something that nobody made for key ", key);
        return;
    }
    load->stored = true;
    if (!load->put && !load->no_fleet) judge_age(*load); // with the fleet on, a load is stored by `fill` only
}

void store::watch_refresh_key(const command& cmd, const reply& r) {
    const std::string generation = cmd.key.substr(cmd.key.rfind(':') + 1);
    switch (cmd.script) {
    case script_id::refresh: {
        const auto said = read_refresh(r);
        if (!said || !said->granted) return;
        auto& one = refreshes_[generation];
        if (one.stored && now() < one.until && one.holder != cmd.args[0]) {
            judge_.broken(checker::one_refresh, "generation ", generation.substr(0, 6),
                          " was refreshed already, and its refresh lease is given out again");
        }
        one.holder = cmd.args[0];
        one.until = now() + number(cmd.args[1]);
        grant g;
        g.at = when_.now();
        g.generation = true;
        grants_.emplace(cmd.args[0], g);
        break;
    }
    case script_id::renew:
        if (r.kind == reply_kind::integer && r.integer == 1) {
            refreshes_[generation].until = now() + number(cmd.args[1]);
        }
        break;
    case script_id::release:
        if (auto& one = refreshes_[generation]; r.kind == reply_kind::integer && r.integer == 1 && !one.stored) {
            one.until = 0; // given back unused
        }
        break;
    default: break;
    }
}

bool store::delete_key(int key) {
    const bool had = server_.del(value_key_of(key));
    if (had) gone(key);
    return had;
}

void store::write_bytes(int key, dice& d) {
    const std::string bytes = d.one_in(2) ? std::string("not an envelope, but rather long for what it says")
                                          : std::string(static_cast<std::size_t>(d.between(0, 30)), '\xF5');
    server_.set(value_key_of(key), bytes,
                d.one_in(3) ? std::nullopt : std::optional<std::int64_t>(d.between(50, 5'000)));
    gone(key);
}

void store::write_list(int key, dice& d) {
    server_.set_list(value_key_of(key), d.one_in(3) ? std::nullopt : std::optional<std::int64_t>(d.between(50, 5'000)));
    gone(key);
}

bool store::persist(int key) {
    if (!holds_placeholder(value_key_of(key))) return false;
    server_.set(value_key_of(key), *server_.peek(value_key_of(key)), std::nullopt);
    return true;
}

bool store::write_newer(int key, dice& d) {
    server_.set(value_key_of(key), std::string("\xF5\x02 of a later version, of unknown length and content"),
                d.between(50, 1'500));
    gone(key);
    return true;
}

void store::flush() {
    server_.flush();
    refreshes_.clear();
    for (int k = 0; k < static_cast<int>(keys_.size()); ++k) gone(k);
}

void store::acknowledged(int key, std::int64_t version) {
    const auto bytes = server_.peek(value_key_of(key));
    envelope e;
    if (!bytes || decode(*bytes, e) != reading::ours || e.soft_at == 0) return;
    const auto s = read_stamp(e.payload);
    const load_entry* load = s ? book_.load(s->load) : nullptr;
    if (load == nullptr || load->put || load->no_fleet || s->version >= version) return;
    judge_.broken(checker::no_stale_after_invalidation, "key ", key, " holds version ", s->version,
                  " unmarked when the invalidation of version ", version, " is acknowledged");
}

void store::last_look() {
    leap(std::int64_t{30} * 24 * 3'600 * 1'000);
    for (const std::string& key : server_.keys()) {
        const auto bytes = server_.peek(key);
        envelope e;
        if (key.starts_with(refresh_prefix) ||
            (bytes && decode(*bytes, e) == reading::ours && e.kind != entry_kind::placeholder)) {
            judge_.broken(checker::ttl_everywhere, key, " never expires");
        }
    }
}

} // namespace stn::sim
