// SPDX-License-Identifier: MIT
#include "contest.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "branches.hpp"
#include "protocol/scripts.hpp"

namespace stn::differ {

namespace {

constexpr std::uint64_t keys = 6;
constexpr std::uint64_t between_crossings = 300;
constexpr std::uint64_t crossed_keys = 40;
constexpr std::int64_t crossing_ms = 25;
constexpr int candidates = 20;
constexpr std::uint64_t enough_visits = 110;
constexpr std::uint64_t subscribed_at_most = 3;
constexpr server_ms some_time = 1'000'000'000'000;
constexpr std::int64_t edge_ms = 3; // around an expiry; and longer a command does not take

std::string key_number(std::uint64_t n) {
    return n == 0 ? std::string("p:v:c:{\0\xff\n}", 11) : "p:v:c:{key " + std::to_string(n) + "}";
}

} // namespace

contest::contest(test::live_server& server, std::uint64_t seed, const script_texts& instead)
    : seed_(seed),
      server_(server),
      chance_(seed),
      real_(server, instead) {
    memory_.set_time(real_.now());
}

bool contest::true_scripts() const {
    for (std::size_t i = 0; i < real_.sha1().size(); ++i) {
        if (real_.sha1()[i] != script_of(static_cast<script_id>(i)).sha1) return false;
    }
    return true;
}

// The least that any branch was visited, as it was a few commands ago.
std::uint64_t contest::fewest_visits() {
    if (seen.compared < next_count_) return fewest_;
    next_count_ = seen.compared + 25;
    fewest_ = UINT64_MAX;
    for (const std::string_view branch : all_branches()) fewest_ = std::min(fewest_, seen.memory[std::string(branch)]);
    return fewest_;
}

// Some steps are the first that is drawn. While a branch is short of visits, the others are one that visits such a
// branch, or the rarest of many.
step contest::choose(const std::string& key, const state& now, bool fresh) {
    step best = chance_.draw(key, now, fresh);
    const std::uint64_t fewest = fewest_visits();
    if (fewest >= enough_visits || chance_.one_in(4)) return best;
    std::uint64_t least = UINT64_MAX;
    for (int i = 0; i < candidates && least > fewest + 5; ++i) {
        step drawn = chance_.draw(key, now, fresh);
        forecast_.set_time(some_time);
        forecast_.del(key);
        if (now.is != shape::nothing) {
            const auto ttl = now.pttl_ms < 0 ? std::nullopt : std::optional(now.pttl_ms + 1);
            forecast_.put(key, {now.is == shape::list, now.bytes, ttl});
        }
        std::uint64_t visited = UINT64_MAX;
        for (const std::string& branch : branches_of(drawn, forecast_.run(drawn, {some_time, some_time, some_time})))
            visited = std::min(visited, seen.memory[branch]);
        if (visited < least) best = std::move(drawn);
        least = std::min(least, visited);
    }
    return best;
}

// False: the key expired, or is about to, while this was done.
bool contest::settled(const std::string& key, const times& at) const {
    const auto due = due_.find(key);
    const bool edge = due != due_.end() && due->second >= at.begin - edge_ms && due->second <= at.end + edge_ms;
    return !edge && at.end - at.begin <= edge_ms && (at.scene == 0 || at.begin - at.scene <= edge_ms);
}

void contest::forget(const std::string& key) {
    real_.del(key);
    memory_.del(key);
    due_.erase(key);
}

void contest::compare(step s) {
    const std::string& key = s.what.key;
    if (s.before) due_.erase(key);
    times at;
    const sight real = real_.run(s, at);
    const sight memory = memory_.run(s, at);
    const bool whole = settled(key, at);
    if (const auto due = due_.find(key); due != due_.end()) {
        s.crossed = due->second < at.begin;
        due_.erase(due);
    }
    if (memory.after.pttl_ms >= 0) due_[key] = at.begin + memory.after.pttl_ms;
    if (!whole || !settled(key, at)) {
        ++seen.edges;
        forget(key);
        return;
    }
    ++seen.compared;
    seen.live += memory.before.is != shape::nothing ? 1 : 0;
    seen.crossed += s.crossed ? 1 : 0;
    seen.told += real.told.size();
    for (const std::string& branch : branches_of(s, memory)) ++seen.memory[branch];
    for (const std::string& branch : branches_of(s, real)) ++seen.real[branch];
    const std::string what = difference(memory, real);
    if (what.empty()) return;
    ++seen.different;
    if (loud_) {
        std::printf("DIFFERENT: %s\n   seed %llu, command %llu%s%s%s\n   %s\n   memory %s\n   %s  %s\n", what.c_str(),
                    static_cast<unsigned long long>(seed_), static_cast<unsigned long long>(seen.compared),
                    s.full ? ", at maxmemory" : "", s.muted ? ", may not publish" : "", s.crossed ? ", expired" : "",
                    shown(s.what).c_str(), shown(memory).c_str(),
                    std::string(test::server_name(server_.kind())).c_str(), shown(real).c_str());
    }
    forget(key);
}

void contest::walk(const std::string& key) {
    step s = choose(key, memory_.look(key), true); // as it was when the last command ran
    if (s.what.what == verb::subscribe) ++subscribed_;
    compare(s);
    if (subscribed_ < subscribed_at_most) return;
    subscribed_ = 0;
    memory_.forget_second_ear();
    real_.forget_second_ear();
}

// Many keys that all expire within one wait: by the TTL they were put with, or by one that a script set.
void contest::cross() {
    server_ms last = 0;
    for (std::uint64_t n = 0; n < crossed_keys; ++n) {
        const std::string key = key_number(100 + n);
        step s;
        s.before = chance_.draw_scene(crossing_ms, script_id::lease);
        s.what = get_command(key);
        if (chance_.one_in(2)) {
            const token mine = token_from("mmmmmmmmmmmmmmmm");
            s.before.reset();
            s.what = chance_.one_in(2) ? refresh_command(key, mine, crossing_ms)
                                       : put_command(key, "not an envelope", crossing_ms, {});
        }
        compare(s);
        if (const auto due = due_.find(key); due != due_.end()) last = std::max(last, due->second);
    }
    const auto wait = last + edge_ms + 2 - real_.now();
    if (wait > 0) std::this_thread::sleep_for(std::chrono::milliseconds(wait));
    for (std::uint64_t n = 0; n < crossed_keys; ++n) {
        const std::string key = key_number(100 + n);
        step s = choose(key, {}, false);
        while (s.what.what != verb::script && s.what.what != verb::get && s.what.what != verb::del)
            s = choose(key, {}, false);
        compare(s);
        forget(key);
    }
}

void contest::run(std::uint64_t commands, std::uint64_t visits_each, std::uint64_t most_different, bool loud) {
    loud_ = loud;
    std::uint64_t next_crossing = between_crossings;
    const auto enough = [&] {
        return seen.compared >= commands && (fewest_visits() >= visits_each || seen.compared >= 3 * commands);
    };
    while (!enough() && seen.different < most_different) {
        walk(key_number(chance_.below(keys)));
        if (seen.compared < next_crossing) continue;
        cross();
        next_crossing = seen.compared + between_crossings;
    }
}

void contest::run_blind(std::uint64_t times_each) {
    const std::string key = key_number(200);
    std::uint64_t short_of = static_cast<std::uint64_t>(script_id::count_);
    while (short_of > 0 && seen.different == 0) {
        step s = chance_.draw(key, {});
        if (s.what.what != verb::script || !s.before || s.before->list) continue;
        std::uint64_t& visited = seen.real[blind_branch(s.what.script)];
        if (visited == times_each) continue;
        step look;
        look.before = s.before;
        look.before->ttl_ms.reset();
        look.what = get_command(key);
        times at;
        const state before = real_.run(look, at).after;
        const reply answer = real_.ask_blind(s.what);
        look.before.reset();
        const state after = real_.run(look, at).after;
        if (answer.kind == reply_kind::error && answer.text.find("WRONGTYPE") == std::string::npos &&
            before.is == after.is && before.bytes == after.bytes && after.pttl_ms == -1) {
            if (++visited == times_each) --short_of;
            continue;
        }
        ++seen.different;
        std::printf("DIFFERENT: %s was refused to read, answered %s and left %s\n", shown(s.what).c_str(),
                    test::shown(answer).c_str(), shown(after).c_str());
    }
    real_.del(key);
}

} // namespace stn::differ
