// SPDX-License-Identifier: MIT
#include "support/link.hpp"

#include <algorithm>
#include <utility>

#include "protocol/commands.hpp"

namespace stn::test {

test_link::test_link(std::shared_ptr<memory_server> server)
    : server_(std::move(server)),
      inner_(std::make_unique<memory_transport>(server_)) {}

test_link::~test_link() = default;

void test_link::next(verb which, fate what, int times, std::string text) {
    rules_.push_back({[which](const command& c) { return c.what == which; }, what, times, std::move(text)});
}

void test_link::next(script_id which, fate what, int times, std::string text) {
    rules_.push_back({[which](const command& c) { return c.what == verb::script && c.script == which; }, what, times,
                      std::move(text)});
}

void test_link::every(fate what, std::string text) {
    rules_.push_back({[](const command&) { return true; }, what, -1, std::move(text)});
}

void test_link::heal() {
    rules_.clear();
}

test_link::rule* test_link::rule_for(const command& cmd) {
    for (rule& r : rules_) {
        if (r.times == 0 || !r.which(cmd)) continue;
        if (r.times > 0) --r.times;
        return &r;
    }
    return nullptr;
}

void test_link::tell(transport_event::kind what, std::string payload) {
    transport_event e;
    e.what = what;
    if (what == transport_event::kind::disconnected) e.code = status::unavailable;
    e.payload = std::move(payload);
    due_.emplace(0, std::move(e));
}

void test_link::tell_reply(command_seq seq, delivery how, reply answer, mono_ms at) {
    transport_event e;
    e.seq = seq;
    e.how = how;
    e.answer = std::move(answer);
    due_.emplace(at, std::move(e));
}

void test_link::submit(command_seq seq, command cmd, mono_ms now) {
    ++activity_;
    if (cmd.what == verb::subscribe) {
        channels_.push_back(cmd.key);
    } else {
        log_.push_back({now, cmd});
    }
    if (inner_ == nullptr || closed_) {
        tell_reply(seq, delivery::not_sent, {}, now);
        return;
    }
    open_.insert(seq);
    if (rule* r = rule_for(cmd)) {
        switch (r->what) {
        case fate::lose_reply: silent_.insert(seq); break;
        case fate::vanish: return;
        case fate::refuse: tell_reply(seq, delivery::answered, reply::of_error(r->text), now + delay_ms_); return;
        case fate::not_sent: tell_reply(seq, delivery::not_sent, {}, now); return;
        }
    }
    if (holding_) {
        held_.push_back({seq, std::move(cmd), false});
        return;
    }
    inner_->submit(seq, std::move(cmd), now);
}

void test_link::let_go() {
    holding_ = false;
    ++activity_;
    for (way& w : std::exchange(held_, {})) {
        if (w.old || inner_ == nullptr) {
            (void)server_->execute(w.cmd);
        } else {
            inner_->submit(w.seq, std::move(w.cmd), 0);
        }
    }
}

void test_link::cut() {
    if (inner_ == nullptr) return;
    ++activity_;
    inner_.reset();
    due_.clear();
    silent_.clear();
    for (const command_seq seq : std::exchange(open_, {})) tell_reply(seq, delivery::lost, {}, 0);
    for (way& w : held_) w.old = true;
    tell(transport_event::kind::disconnected, "cut");
}

void test_link::mend() {
    if (inner_ != nullptr) return;
    ++activity_;
    inner_ = std::make_unique<memory_transport>(server_);
    inner_->set_ring(ring_);
    // What a real transport does by itself: subscribe again, and say so once.
    for (const std::string& channel : channels_) inner_->submit(0, subscribe_command(channel), 0);
    for (transport_event e; inner_->poll(e, 0);) {
    }
    tell(transport_event::kind::connected, {});
    if (!channels_.empty()) tell(transport_event::kind::subscribed, {});
}

// Whatever the connection has for us.
void test_link::take_in(mono_ms now) {
    if (inner_ == nullptr) return;
    transport_event e;
    while (inner_->poll(e, now)) {
        const bool is_reply = e.what == transport_event::kind::reply;
        if (is_reply && silent_.erase(e.seq) > 0) continue;
        due_.emplace(is_reply ? now + delay_ms_ : now, std::exchange(e, {}));
    }
}

bool test_link::poll(transport_event& out, mono_ms now) {
    take_in(now);
    if (due_.empty() || due_.begin()->first > now) return false;
    ++activity_;
    out = std::move(due_.begin()->second);
    due_.erase(due_.begin());
    if (out.what == transport_event::kind::reply) open_.erase(out.seq);
    return true;
}

mono_ms test_link::next_ms() const {
    if (inner_ != nullptr && inner_->next_ms() == 0) return 0;
    return due_.empty() ? forever_ms : due_.begin()->first;
}

server_ms test_link::server_time(mono_ms /*now*/) {
    return server_->now();
}

void test_link::set_ring(std::function<void()> ring) {
    ring_ = std::move(ring);
    if (inner_ != nullptr) inner_->set_ring(ring_);
}

void test_link::close() {
    closed_ = true;
    for (const command_seq seq : std::exchange(open_, {})) tell_reply(seq, delivery::lost, {}, 0);
    if (inner_ != nullptr) inner_->close();
}

std::size_t test_link::count(verb which) const {
    return static_cast<std::size_t>(std::ranges::count_if(log_, [&](const sent& s) { return s.cmd.what == which; }));
}

std::size_t test_link::count(script_id which) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        log_, [&](const sent& s) { return s.cmd.what == verb::script && s.cmd.script == which; }));
}

} // namespace stn::test
