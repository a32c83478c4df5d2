// SPDX-License-Identifier: MIT
#include "io/redis_transport.hpp"

#include <algorithm>
#include <utility>

#include "io/system_clock.hpp"
#include "protocol/commands.hpp"
#include "protocol/schedule.hpp"
#include "protocol/scripts.hpp"

namespace stn {

namespace {

constexpr std::size_t most_in_flight = 100'000;             // commands
constexpr std::size_t most_unsent = std::size_t{256} << 20; // bytes, beside the one command that is added
constexpr std::size_t most_waiting = 10'000;                // commands, for the first connection

std::string_view word_of(verb v) {
    switch (v) {
    case verb::get: return "GET";
    case verb::del: return "DEL";
    case verb::publish: return "PUBLISH";
    case verb::subscribe: return "SUBSCRIBE";
    case verb::script: return "EVALSHA";
    case verb::time: return "TIME";
    case verb::ping: return "PING";
    }
    return "PING";
}

bool is(const reply& r, std::size_t at, std::string_view text) {
    return r.items.size() > at && r.items[at].text == text;
}

} // namespace

redis_transport::redis_transport(redis_settings settings, std::shared_ptr<draws> chance)
    : settings_(std::move(settings)),
      chance_(std::move(chance)),
      commands_owner_(*this),
      messages_owner_(*this),
      commands_(settings_, greeting_for::commands, *chance_, commands_owner_),
      messages_(settings_, greeting_for::messages, *chance_, messages_owner_),
      ahead_ms_(wall_clock_ms() - system_clock().now_ms()) {}

redis_transport::~redis_transport() = default;

// ---- commands

void redis_transport::submit(command_seq seq, command cmd, mono_ms now) {
    now_ = now;
    if (closed_) {
        tell(seq, delivery::not_sent);
        return;
    }
    if (cmd.what == verb::subscribe) {
        channels_[std::move(cmd.key)].asked = seq;
        subscribe_asked_ = true;
        return;
    }
    if (commands_.idle()) commands_.open(now);
    if (commands_.up()) {
        if (sent_.size() >= most_in_flight || commands_.unsent() >= most_unsent) {
            tell(seq, delivery::not_sent);
            return;
        }
        append({cmd.what == verb::script ? pending::kind::script : pending::kind::plain, 0, seq, now, std::move(cmd)});
    } else if (commands_.settling() && waiting_.size() < most_waiting) {
        waiting_.push_back({seq, std::move(cmd)});
    } else {
        tell(seq, delivery::not_sent);
    }
}

void redis_transport::append(pending one) {
    sent_.push_back(std::move(one));
    pending& p = sent_.back();
    words_.clear();
    if (p.what == pending::kind::load) {
        words_ = {"SCRIPT", "LOAD", script_of(p.cmd.script).text};
    } else if (p.what == pending::kind::script) {
        const auto& script = script_of(p.cmd.script);
        const bool by_text = p.tries > 1;
        words_ = {by_text ? "EVAL" : "EVALSHA", by_text ? script.text : script.sha1, "1", p.cmd.key};
    } else {
        words_.push_back(word_of(p.cmd.what));
        if (!p.cmd.key.empty()) words_.push_back(p.cmd.key);
    }
    words_.insert(words_.end(), p.cmd.args.begin(), p.cmd.args.end());
    batches_.appended();
    if (!commands_.append(words_)) {
        commands_.drop(fail(status::no_memory, "no memory to send with"), now_);
    } else if (p.what == pending::kind::plain) {
        p.cmd = {};
    }
}

void redis_transport::flush(mono_ms now) {
    now_ = now;
    if (subscribe_asked_ && !closed_) {
        messages_.open(now);
        if (messages_.up()) subscribe();
    }
    const std::size_t unsent = commands_.unsent();
    if (!commands_.up() || unsent == 0) return;
    const std::int64_t now_us = monotonic_us();
    if (!commands_.blocked() && !batches_.may_leave(unsent) && !batches_.stalled(now_us)) return;
    batches_.left(now_us);
    commands_.write(now);
}

void redis_transport::settle(pending of, reply r, mono_ms now) {
    switch (of.what) {
    case pending::kind::load:
    case pending::kind::ping: break;
    case pending::kind::time:
        if (const auto t = read_time(r)) note_time(*t, monotonic_us() - time_asked_us_, now);
        break;
    case pending::kind::script:
        if (classify(r) == refusal::no_script && of.tries < 2) {
            if (!wanted_ || wanted_(of.seq)) {
                teach(std::move(of), now);
                return;
            }
        }
        [[fallthrough]];
    case pending::kind::plain: tell(of.seq, delivery::answered, std::move(r)); return;
    }
    heed(r, now);
}

void redis_transport::teach(pending of, mono_ms now) {
    ++of.tries;
    of.at = now;
    if (of.tries == 1) append({pending::kind::load, 0, 0, now, {verb::script, of.cmd.script, {}, {}}});
    append(std::move(of));
}

void redis_transport::heed(const reply& r, mono_ms now) {
    const refusal why = classify(r);
    if (why == refusal::none || !traits_of(why).redial) return;
    commands_.drop(refused_by_store(r, {}), now);
}

void redis_transport::commands_side::on_reply(reply r, bool push, mono_ms now) {
    if (push) {
        of_.hear_message(r);
        return;
    }
    if (of_.sent_.empty()) {
        const error why = classify(r) == refusal::none
                              ? fail(status::not_redis, "the server sent a reply that nobody had asked for")
                              : refused_by_store(r, {});
        of_.commands_.drop(why, now);
        return;
    }
    pending first = std::move(of_.sent_.front());
    of_.sent_.pop_front();
    of_.batches_.replied(&monotonic_us);
    const bool told = first.what == pending::kind::plain || first.what == pending::kind::script;
    const reply refused = r.kind == reply_kind::error ? r : reply{};
    of_.settle(std::move(first), std::move(r), now);
    if (told && refused.kind == reply_kind::error) of_.heed(refused, now);
}

void redis_transport::keep_alive(mono_ms now) {
    if (commands_.up() && !sent_.empty() && now >= sent_.front().at + schedule::silence_ms) {
        commands_.drop(fail(status::unavailable, "the server has not answered for ten seconds"), now);
    }
    if (commands_.up() && now >= alive_at_) {
        alive_at_ = now + schedule::keep_alive_ms;
        append({pending::kind::ping, 0, 0, now, {verb::ping, script_id::count_, {}, {}}});
        append({pending::kind::time, 0, 0, now, time_command()});
        time_asked_us_ = monotonic_us();
    }
    if (!messages_.up() || now < listening_at_) return;
    if (std::exchange(listening_asked_, true)) {
        messages_.drop(fail(status::unavailable, "the server sends no messages any more"), now);
        return;
    }
    listening_at_ = now + schedule::silence_ms;
    constexpr std::string_view ping[] = {"PING"};
    static_cast<void>(messages_.append(ping));
    messages_.write(now);
}

// ---- connections

void redis_transport::commands_side::on_up(std::optional<server_ms> server_now, std::int64_t round_trip_us,
                                           mono_ms now) {
    of_.batches_.reset();
    if (server_now) of_.note_time(*server_now, round_trip_us, now);
    of_.alive_at_ = now + schedule::keep_alive_ms;
    of_.told_down_ = false;
    of_.tell_connection(transport_event::kind::connected, {});
    for (std::size_t n = of_.waiting_.size(); n > 0 && !of_.waiting_.empty(); --n) {
        waiting w = std::move(of_.waiting_.front());
        of_.waiting_.pop_front();
        of_.submit(w.seq, std::move(w.cmd), now);
    }
}

void redis_transport::commands_side::on_down(const error& why, bool stood, mono_ms) {
    of_.end_all();
    const bool news = stood || !of_.told_down_;
    of_.told_down_ = true;
    of_.tell_connection(news ? transport_event::kind::disconnected : transport_event::kind::not_connected, why);
}

// Nothing is sent again: what became of these commands, only who asked can find out.
void redis_transport::end_all() {
    const std::size_t certainly_not = batches_.unsent();
    batches_.reset();
    for (std::size_t i = 0; i < sent_.size(); ++i) {
        const pending& p = sent_[i];
        if (p.what != pending::kind::plain && p.what != pending::kind::script) continue;
        const bool left = sent_.size() - i > certainly_not;
        tell(p.seq, left ? delivery::lost : delivery::not_sent);
    }
    sent_.clear();
    for (const waiting& w : waiting_) tell(w.seq, delivery::not_sent);
    waiting_.clear();
}

void redis_transport::turn(mono_ms now) {
    now_ = now;
    if (closed_) return;
    if (watched_[0].ready) commands_.ready();
    if (watched_[1].ready) messages_.ready();
    watched_[0].ready = watched_[1].ready = false;
    commands_.open(now);
    commands_.turn(now);
    messages_.turn(now);
    keep_alive(now);
    if (messages_.blocked()) messages_.write(now);
}

bool redis_transport::poll(transport_event& out, mono_ms now) {
    if (heard_of_ == told_.size()) {
        told_.clear();
        heard_of_ = 0;
        turn(now);
        if (told_.empty()) return false;
    }
    out = std::move(told_[heard_of_++]);
    return true;
}

std::span<watched> redis_transport::watch() {
    watched_[0] = commands_.watch();
    watched_[1] = messages_.watch();
    if (messages_.idle()) return std::span(watched_).first(1);
    return watched_;
}

mono_ms redis_transport::next_ms() const {
    if (closed_) return forever_ms;
    if (heard_of_ != told_.size()) return 0;
    mono_ms at = std::min(commands_.next_ms(), messages_.next_ms());
    if (messages_.up()) at = std::min(at, listening_at_);
    if (!commands_.up()) return at;
    if (!sent_.empty()) at = std::min(at, sent_.front().at + schedule::silence_ms);
    if (batches_.unsent() != 0) at = std::min(at, now_ + batching::stall_us / 1'000);
    return std::min(at, alive_at_);
}

// ---- messages

void redis_transport::messages_side::on_up(std::optional<server_ms>, std::int64_t, mono_ms now) {
    of_.listening_at_ = now + schedule::keep_alive_ms;
    of_.listening_asked_ = false;
    of_.subscribe();
}

void redis_transport::messages_side::on_down(const error&, bool, mono_ms) {
    of_.heard_ = 0;
    for (auto& [name, c] : of_.channels_) c.heard = false;
}

void redis_transport::messages_side::on_reply(reply r, bool, mono_ms now) {
    of_.listening_at_ = now + schedule::keep_alive_ms;
    of_.listening_asked_ = false;
    if (r.kind == reply_kind::error) { // waiters go by their timers then
        of_.tell_connection(transport_event::kind::trouble, refused_by_store(r, {}));
        return;
    }
    of_.hear_message(r);
}

void redis_transport::subscribe() {
    subscribe_asked_ = false;
    std::vector<std::string_view> words{"SUBSCRIBE"};
    for (const auto& [name, c] : channels_) {
        if (!c.heard) words.push_back(name);
    }
    if (words.size() > 1 && messages_.append(words)) messages_.write(now_);
}

void redis_transport::confirm(const std::string& name) {
    const auto it = channels_.find(name);
    if (it == channels_.end() || std::exchange(it->second.heard, true)) return;
    ++heard_;
    const command_seq asked = std::exchange(it->second.asked, 0);
    if (asked != 0) tell(asked, delivery::answered, reply::of_status("OK"));
    if (heard_ != channels_.size()) return;
    transport_event e;
    e.what = transport_event::kind::subscribed;
    told_.push_back(std::move(e));
}

// RESP2 tells messages as arrays, RESP3 as pushes; the words are the same. Anything else is not for us.
void redis_transport::hear_message(reply& r) {
    if (r.kind != reply_kind::array || r.items.size() != 3) return;
    if (is(r, 0, "subscribe")) confirm(r.items[1].text);
    if (!is(r, 0, "message") && !is(r, 0, "smessage")) return;
    transport_event e;
    e.what = transport_event::kind::message;
    e.channel = std::move(r.items[1].text);
    e.payload = std::move(r.items[2].text);
    told_.push_back(std::move(e));
}

// ---- telling

void redis_transport::tell(command_seq seq, delivery how, reply r) {
    transport_event e;
    e.seq = seq;
    e.how = how;
    e.answer = std::move(r);
    told_.push_back(std::move(e));
}

void redis_transport::tell_connection(transport_event::kind what, const error& why) {
    transport_event e;
    e.what = what;
    e.code = what == transport_event::kind::connected ? status::ok : why.code;
    e.payload =
        what == transport_event::kind::connected ? commands_.server() : settings_.where.shown() + ": " + why.message;
    if (!why.server_text.empty()) e.payload += " (\"" + why.server_text + "\")";
    told_.push_back(std::move(e));
}

// The server looked at its clock about half a round trip ago.
void redis_transport::note_time(server_ms server_now, std::int64_t round_trip_us, mono_ms now) {
    ahead_ms_ = server_now + round_trip_us / 2'000 - now;
}

server_ms redis_transport::server_time(mono_ms now) {
    return now + ahead_ms_;
}

void redis_transport::abandon_after_fork() noexcept {
    commands_.abandon_after_fork();
    messages_.abandon_after_fork();
}

void redis_transport::close() {
    if (std::exchange(closed_, true)) return;
    commands_.close(true);
    messages_.close(false);
    end_all();
    for (auto& [name, c] : channels_) {
        if (const command_seq asked = std::exchange(c.asked, 0); asked != 0) tell(asked, delivery::lost);
    }
}

} // namespace stn
