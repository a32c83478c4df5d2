// SPDX-License-Identifier: MIT
#include "sides.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "protocol/commands.hpp"
#include "protocol/scripts.hpp"

namespace stn::differ {

using test::plain_connection;

namespace {

constexpr std::size_t script_count = static_cast<std::size_t>(script_id::count_);

bool near(std::int64_t a, std::int64_t b) {
    return a == b || (a >= 0 && b >= 0 && std::max(a, b) - std::min(a, b) <= tolerance_ms);
}

// The code of an error; of an ERR the sentence too, without the script's name and line.
std::string gist(std::string_view text) {
    const std::string_view code = text.substr(0, text.find(' '));
    return std::string(code == "ERR" ? text.substr(0, text.find(" script: ")) : code);
}

// Fences are the server's time in microseconds: 16 digits, and more than anything else that is a number here.
constexpr std::int64_t least_fence = 100'000'000'000'000;

bool near_fence(std::int64_t a, std::int64_t b) {
    return a >= least_fence && b >= least_fence && std::max(a, b) - std::min(a, b) <= (tolerance_ms + 2) * 1'000;
}

// Where the fence stands in `bytes`, and how long it is.
std::pair<std::size_t, std::size_t> fence_in(std::string_view bytes) {
    for (std::size_t from = 0; from < bytes.size();) {
        const std::size_t end = std::min(bytes.find_first_not_of("0123456789", from), bytes.size());
        if (end - from == 16) return {from, 16};
        from = end + 1;
    }
    return {0, 0};
}

bool same_bytes(std::string_view a, std::string_view b) {
    if (a == b) return true;
    const auto [at, length] = fence_in(a);
    if (length == 0 || fence_in(b) != std::pair{at, length}) return false;
    if (a.substr(0, at) != b.substr(0, at) || a.substr(at + length) != b.substr(at + length)) return false;
    return near_fence(std::stoll(std::string(a.substr(at, length))), std::stoll(std::string(b.substr(at, length))));
}

// {pttl, bytes}
bool same_inspected(const reply& a, const reply& b) {
    return near(a.items[0].integer, b.items[0].integer) && same_bytes(a.items[1].text, b.items[1].text);
}

bool same(const reply& a, const reply& b) {
    if (a.kind != b.kind) return false;
    if (a.kind == reply_kind::error) return gist(a.text) == gist(b.text);
    if (a.kind == reply_kind::integer) return a.integer == b.integer;
    if (a.kind != reply_kind::array) return same_bytes(a.text, b.text);
    if (const auto at = read_time(a)) return near(*at, read_time(b).value_or(-1));
    if (a.items.size() != b.items.size()) return false;
    if (read_inspect(a) && read_inspect(b)) return same_inspected(a, b);
    for (std::size_t i = 0; i < a.items.size(); ++i) {
        // {1, fence}, {1, slot, fence}
        if (near_fence(a.items[i].integer, b.items[i].integer)) continue;
        // {0, slot, ms} and {2, slot, ms}
        if (i == 2 && a.items[0].integer != 1 && near(a.items[2].integer, b.items[2].integer)) continue;
        // {2, pttl, ...}, {3, pttl, ...} and {0, pttl}; but {1, foreign, ''} and {1, 0}
        const bool time = i == 1 && a.items[0].integer != 1 && b.items[1].kind == reply_kind::integer;
        if (time ? !near(a.items[1].integer, b.items[1].integer) : !same(a.items[i], b.items[i])) return false;
    }
    return true;
}

bool same(const state& a, const state& b) {
    return a.is == b.is && same_bytes(a.bytes, b.bytes) && near(a.pttl_ms, b.pttl_ms);
}

server_ms must_be_time(const reply& r) {
    const auto at = read_time(r);
    if (!at) throw std::runtime_error("TIME answered " + test::shown(r));
    return *at;
}

void must_be_ok(const reply& r) {
    if (r.kind == reply_kind::error) throw std::runtime_error("a command of the test itself failed: " + r.text);
}

} // namespace

// ---- memory

class memory_side::ear final : public memory_peer {
  public:
    void on_reply(std::uint64_t, reply answer) override { answer_ = std::move(answer); }
    void on_subscribed(std::string_view) override {}
    void on_message(std::string_view channel, std::string_view payload) override {
        told_.push_back({std::string(channel), std::string(payload)});
    }
    void ring() override {}

    reply answer_;
    std::vector<message> told_;
};

memory_side::memory_side()
    : server_([this] { return now_; }),
      first_(std::make_shared<ear>()),
      second_(std::make_shared<ear>()) {
    for (const char* channel : channels) server_.submit(first_, 0, subscribe_command(channel));
    server_.submit(first_, 0, subscribe_command(sharded_channel));
    server_.submit(first_, 0, subscribe_command(no_channel));
}

void memory_side::forget_second_ear() {
    server_.forget(second_);
    second_ = std::make_shared<ear>();
}

state memory_side::look(const std::string& key) {
    const auto bytes = server_.peek(key);
    if (!bytes) return {};
    const bool list = server_.execute(get_command(key)).kind == reply_kind::error;
    return {list ? shape::list : shape::string, *bytes, server_.pttl(key).value_or(-2)};
}

void memory_side::put(const std::string& key, const scene& what) {
    if (what.list)
        server_.set_list(key, what.ttl_ms);
    else
        server_.set(key, what.bytes, what.ttl_ms);
}

sight memory_side::run(const step& s, const times& at) {
    if (s.before) {
        set_time(at.scene);
        put(s.what.key, *s.before);
    }
    set_time(at.begin);
    sight out;
    out.before = look(s.what.key);
    server_.refuse_writes(s.full);
    server_.refuse_publish(s.muted);
    if (s.what.what == verb::subscribe) {
        server_.submit(second_, 0, s.what);
        out.answer = second_->answer_;
    } else {
        out.answer = server_.execute(s.what);
    }
    server_.refuse_writes(false);
    server_.refuse_publish(false);
    out.after = look(s.what.key);
    for (ear* e : {first_.get(), second_.get()}) {
        out.told.insert(out.told.end(), e->told_.begin(), e->told_.end());
        e->told_.clear();
    }
    return out;
}

// ---- a real server

real_side::real_side(test::live_server& server, const script_texts& instead)
    : server_(server),
      admin_(server.connect()),
      mute_(server.connect()),
      blind_(server.connect()),
      first_(server.connect()) {
    must_be_ok(admin_.ask({"FLUSHALL"}));
    for (std::size_t i = 0; i < script_count; ++i) {
        const auto id = static_cast<script_id>(i);
        const auto changed = instead.find(id);
        const reply loaded = admin_.ask(
            {"SCRIPT", "LOAD", changed == instead.end() ? std::string(script_of(id).text) : changed->second});
        must_be_ok(loaded);
        sha1_.push_back(loaded.text);
    }
    must_be_ok(admin_.ask({"ACL", "SETUSER", "mute", "on", "nopass", "~*", "+@all", "resetchannels"}));
    must_be_ok(admin_.ask({"ACL", "SETUSER", "blind", "on", "nopass", "~*", "&*", "+@all", "-get", "-getrange"}));
    must_be_ok(mute_.ask({"AUTH", "mute", "any"}));
    must_be_ok(blind_.ask({"AUTH", "blind", "any"}));
    for (const char* channel : channels) must_be_ok(first_.ask({"SUBSCRIBE", channel}));
    must_be_ok(first_.ask({"SSUBSCRIBE", sharded_channel}));
    must_be_ok(first_.ask({"SUBSCRIBE", no_channel}));
    forget_second_ear();
}

void real_side::forget_second_ear() {
    const auto hearers = [&] {
        return admin_.ask({"PUBSUB", "NUMSUB", channels[0]}).items.at(1).integer +
               admin_.ask({"PUBSUB", "NUMSUB", channels[1]}).items.at(1).integer;
    };
    second_.reset();
    second_hears_ = false;
    while (hearers() > static_cast<std::int64_t>(channels.size())) {
    } // until the server knows
    second_ = server_.connect();
}

std::vector<std::string> real_side::words(const command& c) const {
    switch (c.what) {
    case verb::get: return {"GET", c.key};
    case verb::del: return {"DEL", c.key};
    case verb::publish: return {"PUBLISH", c.key, c.args.at(0)};
    case verb::subscribe: return {"SUBSCRIBE", c.key};
    case verb::time: return {"TIME"};
    case verb::ping: return {"PING"};
    case verb::script: break;
    }
    std::vector<std::string> out = {"EVALSHA", sha1_.at(static_cast<std::size_t>(c.script)), "1", c.key};
    out.insert(out.end(), c.args.begin(), c.args.end());
    return out;
}

state real_side::receive_state(plain_connection& from) {
    const reply type = from.receive();
    const reply bytes = from.receive();
    const reply pttl = from.receive();
    state out;
    out.is = type.text == "none" ? shape::nothing : type.text == "string" ? shape::string : shape::list;
    if (bytes.kind == reply_kind::bulk) out.bytes = bytes.text;
    out.pttl_ms = pttl.integer;
    return out;
}

void real_side::hear(plain_connection& ear, std::vector<message>& told) {
    // answered as a message to who has subscribed, and behind all that was published before
    for (reply r = ear.ask({"PING"}); r.kind == reply_kind::array && r.items.at(0).text != "pong"; r = ear.receive())
        told.push_back({r.items.at(1).text, r.items.at(2).text});
}

sight real_side::run(const step& s, times& at) {
    plain_connection& asks = s.muted ? mute_ : admin_;
    const std::string& key = s.what.key;
    const auto send_look = [&] {
        asks.send({"TYPE", key});
        asks.send({"GET", key});
        asks.send({"PTTL", key});
    };
    if (s.before) {
        asks.send({"TIME"});
        asks.send({"DEL", key});
        if (s.before->list)
            asks.send({"RPUSH", key, "an item"});
        else
            asks.send({"SET", key, s.before->bytes});
        if (s.before->ttl_ms) asks.send({"PEXPIRE", key, std::to_string(*s.before->ttl_ms)});
    }
    if (s.full) asks.send({"CONFIG", "SET", "maxmemory", "1"});
    asks.send({"TIME"});
    send_look();
    if (s.what.what != verb::subscribe) asks.send(words(s.what));
    send_look();
    asks.send({"TIME"});
    if (s.full) asks.send({"CONFIG", "SET", "maxmemory", "0"});

    sight out;
    if (s.before) {
        at.scene = must_be_time(asks.receive());
        for (int i = s.before->ttl_ms ? 3 : 2; i > 0; --i) must_be_ok(asks.receive());
    }
    if (s.full) must_be_ok(asks.receive());
    at.begin = must_be_time(asks.receive());
    out.before = receive_state(asks);
    if (s.what.what == verb::subscribe) {
        second_hears_ = true;
        const reply told = second_->ask(words(s.what));
        if (told.items.size() == 3 && told.items[0].text == "subscribe" && told.items[1].text == key)
            out.answer = reply::of_status("OK");
    } else {
        out.answer = asks.receive();
    }
    out.after = receive_state(asks);
    at.end = must_be_time(asks.receive());
    if (s.full) must_be_ok(asks.receive());
    hear(first_, out.told);
    if (second_hears_) hear(*second_, out.told);
    return out;
}

void real_side::del(const std::string& key) {
    must_be_ok(admin_.ask({"DEL", key}));
}

server_ms real_side::now() {
    return must_be_time(admin_.ask({"TIME"}));
}

reply real_side::ask_blind(const command& c) {
    return blind_.ask(words(c));
}

// ---- both

std::string difference(const sight& memory, const sight& real) {
    if (!same(memory.before, real.before)) return "what stood there before";
    if (!same(memory.answer, real.answer)) return "the reply";
    if (!same(memory.after, real.after)) return "what stands there now";
    if (memory.told != real.told) return "the messages";
    return {};
}

std::string shown(const state& s) {
    if (s.is == shape::nothing) return "nothing";
    return (s.is == shape::list ? "a list" : test::shown(s.bytes)) + " for " + std::to_string(s.pttl_ms) + " ms";
}

std::string shown(const command& c) {
    constexpr std::array verbs = {"GET", "DEL", "PUBLISH", "SUBSCRIBE", "script", "TIME", "PING"};
    std::string out =
        c.what == verb::script ? std::string(script_name(c.script)) : verbs.at(static_cast<std::size_t>(c.what));
    out += " " + test::shown(c.key);
    for (const std::string& arg : c.args) out += " " + test::shown(arg);
    return out;
}

std::string shown(const sight& s) {
    std::string out =
        "before " + shown(s.before) + "\n      reply " + test::shown(s.answer) + "\n      after " + shown(s.after);
    for (const message& m : s.told) out += "\n      told  " + m.channel + " " + test::shown(m.payload);
    return out;
}

} // namespace stn::differ
