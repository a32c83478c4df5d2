// SPDX-License-Identifier: MIT
#include "io/memory_server.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "io/memory_scripts.hpp"

namespace stn {
namespace {

constexpr std::string_view wrong_type_text = "WRONGTYPE Operation against a key holding the wrong kind of value";
constexpr std::string_view no_memory_text = "OOM command not allowed when used memory > 'maxmemory'.";
constexpr std::string_view no_publish_text = "NOPERM this user has no permissions to access the channel";

} // namespace

// One run of a script on its key. As on a real server, memory is asked for until the first write.
class memory_server::script_run final : public script_host {
  public:
    script_run(memory_server& server, request& r) : server_(server), request_(r), key_(r.cmd.key) {}

    const std::string* bytes() override {
        const entry* e = server_.find(key_);
        return e != nullptr && !e->list ? &e->bytes : nullptr;
    }

    bool wrong_type() override {
        const entry* e = server_.find(key_);
        return e != nullptr && e->list;
    }

    std::int64_t pttl() override {
        const entry* e = server_.find(key_);
        // Lua counts in doubles
        return e == nullptr ? -2 : static_cast<std::int64_t>(static_cast<double>(server_.left(*e)));
    }

    std::int64_t fence() override {
        server_.last_fence_ = std::max(server_.now_ * 1'000, server_.last_fence_ + 1);
        return server_.last_fence_;
    }

    [[nodiscard]] server_ms now() const override { return server_.now_; }

    refusal set(std::string bytes, std::string_view px) override {
        if (auto refused = want_memory()) return refused;
        std::int64_t ms = 0;
        if (auto refused = read_ms(px, "set", ms)) return refused;
        if (ms <= 0) return "ERR invalid expire time in 'set' command";
        server_.store(key_, std::move(bytes), false, ms);
        return std::nullopt;
    }

    refusal set_range(std::size_t at, std::string_view patch) override {
        if (auto refused = want_memory()) return refused;
        std::string& there = server_.find(key_)->bytes;
        there.resize(std::max(there.size(), at + patch.size()));
        there.replace(at, patch.size(), patch);
        return std::nullopt;
    }

    refusal pexpire(std::string_view px) override {
        wrote_ = true;
        std::int64_t ms = 0;
        if (auto refused = read_ms(px, "pexpire", ms)) return refused;
        if (ms <= 0)
            server_.erase(key_);
        else
            server_.set_ttl(key_, ms);
        return std::nullopt;
    }

    void del() override {
        wrote_ = true;
        server_.erase(key_);
    }

    void publish(const std::string& channel, std::string_view payload) override {
        if (!server_.refuse_publish_) server_.publish(channel, payload, request_);
    }

  private:
    refusal want_memory() {
        if (server_.refuse_writes_ && !wrote_) return std::string(no_memory_text);
        wrote_ = true;
        return std::nullopt;
    }

    refusal read_ms(std::string_view text, std::string_view who, std::int64_t& ms) const {
        const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), ms);
        if (fault != std::errc{} || end != text.data() + text.size())
            return "ERR value is not an integer or out of range";
        if (ms > forever_ms - server_.now_)
            return std::string("ERR invalid expire time in '").append(who).append("' command");
        return std::nullopt;
    }

    memory_server& server_;
    request& request_;
    const std::string& key_;
    bool wrote_ = false;
};

memory_server::memory_server(std::function<server_ms()> now) : clock_(std::move(now)) {}

server_ms memory_server::now() const {
    return clock_();
}

void memory_server::submit(const std::shared_ptr<memory_peer>& from, std::uint64_t seq, const command& cmd) {
    request r{cmd, from, {}};
    {
        const std::lock_guard lock(mutex_);
        from->on_reply(seq, run(r));
    }
    for (const auto& peer : r.rung) peer->ring();
}

reply memory_server::execute(const command& cmd) {
    request r{cmd, nullptr, {}};
    reply answer;
    {
        const std::lock_guard lock(mutex_);
        answer = run(r);
    }
    for (const auto& peer : r.rung) peer->ring();
    return answer;
}

void memory_server::forget(const std::shared_ptr<memory_peer>& peer) {
    const std::lock_guard lock(mutex_);
    for (auto at = channels_.begin(); at != channels_.end();) {
        std::erase(at->second, peer);
        at = at->second.empty() ? channels_.erase(at) : std::next(at);
    }
}

reply memory_server::run(request& r) {
    const command& cmd = r.cmd;
    expire();
    ++verbs_[static_cast<std::size_t>(cmd.what)];
    switch (cmd.what) {
    case verb::get: {
        const entry* e = find(cmd.key);
        if (e == nullptr) return {};
        return e->list ? reply::of_error(std::string(wrong_type_text)) : reply::of_bulk(e->bytes);
    }
    case verb::del: return reply::of_integer(erase(cmd.key) ? 1 : 0);
    case verb::publish:
        if (cmd.args.size() != 1) return reply::of_error("ERR wrong number of arguments for 'publish' command");
        if (refuse_publish_) return reply::of_error(std::string(no_publish_text));
        return reply::of_integer(publish(cmd.key, cmd.args[0], r));
    case verb::subscribe: {
        if (r.from == nullptr) return reply::of_error("ERR nobody is there to hear");
        peers& hearers = channels_[cmd.key];
        if (std::find(hearers.begin(), hearers.end(), r.from) == hearers.end()) hearers.push_back(r.from);
        r.from->on_subscribed(cmd.key);
        return reply::of_status("OK");
    }
    case verb::script: return run_script(r);
    case verb::time:
        return reply::of_array(
            {reply::of_bulk(std::to_string(now_ / 1000)), reply::of_bulk(std::to_string(now_ % 1000 * 1000))});
    case verb::ping: return reply::of_status("PONG");
    }
    return reply::of_error("ERR unknown command");
}

reply memory_server::run_script(request& r) {
    if (r.cmd.script < script_id::count_) ++scripts_[static_cast<std::size_t>(r.cmd.script)];
    script_run host(*this, r);
    return run_memory_script(r.cmd.script, r.cmd.args, host);
}

std::int64_t memory_server::publish(const std::string& channel, std::string_view payload, request& r) {
    const auto at = channels_.find(channel);
    if (at == channels_.end()) return 0;
    for (const auto& peer : at->second) {
        peer->on_message(channel, payload);
        if (peer != r.from) r.rung.push_back(peer);
    }
    return static_cast<std::int64_t>(at->second.size());
}

void memory_server::expire() {
    now_ = clock_();
    while (!due_.empty() && due_.begin()->first <= now_) erase(*due_.begin()->second);
}

memory_server::entry* memory_server::find(const std::string& key) {
    const auto at = keys_.find(key);
    return at == keys_.end() ? nullptr : &at->second;
}

void memory_server::store(const std::string& key, std::string bytes, bool list, std::optional<std::int64_t> ttl_ms) {
    entry& e = keys_[key];
    e.bytes = std::move(bytes);
    e.list = list;
    set_ttl(key, ttl_ms);
}

void memory_server::set_ttl(const std::string& key, std::optional<std::int64_t> ttl_ms) {
    const auto at = keys_.find(key);
    entry& e = at->second;
    if (e.due) due_.erase(*e.due);
    e.due.reset();
    if (ttl_ms) e.due = due_.emplace(add_ms(now_, *ttl_ms), &at->first);
}

bool memory_server::erase(const std::string& key) {
    const auto at = keys_.find(key);
    if (at == keys_.end()) return false;
    if (const auto due = at->second.due) due_.erase(*due);
    keys_.erase(at);
    return true;
}

std::int64_t memory_server::left(const entry& e) const {
    return e.due ? (*e.due)->first - now_ : -1;
}

std::vector<std::string> memory_server::keys() {
    const std::lock_guard lock(mutex_);
    expire();
    std::vector<std::string> out;
    out.reserve(keys_.size());
    for (const auto& [key, e] : keys_) out.push_back(key);
    std::sort(out.begin(), out.end());
    return out;
}

std::optional<std::string> memory_server::peek(const std::string& key) {
    const std::lock_guard lock(mutex_);
    expire();
    const entry* e = find(key);
    return e == nullptr ? std::nullopt : std::optional(e->bytes);
}

std::optional<std::int64_t> memory_server::pttl(const std::string& key) {
    const std::lock_guard lock(mutex_);
    expire();
    const entry* e = find(key);
    return e == nullptr ? std::nullopt : std::optional(left(*e));
}

void memory_server::set(const std::string& key, std::string bytes, std::optional<std::int64_t> ttl_ms) {
    const std::lock_guard lock(mutex_);
    expire();
    store(key, std::move(bytes), false, ttl_ms);
}

void memory_server::set_list(const std::string& key, std::optional<std::int64_t> ttl_ms) {
    const std::lock_guard lock(mutex_);
    expire();
    store(key, {}, true, ttl_ms);
}

bool memory_server::del(const std::string& key) {
    const std::lock_guard lock(mutex_);
    expire();
    return erase(key);
}

void memory_server::flush() {
    const std::lock_guard lock(mutex_);
    keys_.clear();
    due_.clear();
}

void memory_server::refuse_writes(bool on) {
    const std::lock_guard lock(mutex_);
    refuse_writes_ = on;
}

void memory_server::refuse_publish(bool on) {
    const std::lock_guard lock(mutex_);
    refuse_publish_ = on;
}

std::uint64_t memory_server::count(verb what) {
    const std::lock_guard lock(mutex_);
    return verbs_[static_cast<std::size_t>(what)];
}

std::uint64_t memory_server::count(script_id what) {
    const std::lock_guard lock(mutex_);
    return what < script_id::count_ ? scripts_[static_cast<std::size_t>(what)] : 0;
}

std::uint64_t memory_server::count_all() {
    const std::lock_guard lock(mutex_);
    return std::accumulate(verbs_.begin(), verbs_.end(), std::uint64_t{0});
}

void memory_server::reset_counts() {
    const std::lock_guard lock(mutex_);
    verbs_.fill(0);
    scripts_.fill(0);
}

} // namespace stn
