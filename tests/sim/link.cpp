// SPDX-License-Identifier: MIT
#include "link.hpp"

#include <algorithm>
#include <utility>

namespace stn::sim {

// ---- one connection

connection::connection(network& net, link& owner, int node, std::uint64_t seed)
    : net_(net),
      owner_(&owner),
      node_(node),
      number_(net.next_connection++),
      dice_(seed) {}

micros connection::delay() {
    return dice_.between(net_.opt.delay_low, net_.opt.delay_high);
}

void connection::push(outgoing o) {
    const micros now = net_.when.now();
    o.sent = now;
    o.at = std::max(out_floor_, now + delay());
    if (!to_server_.empty()) {
        const outgoing& last = to_server_.back();
        const bool together = last.sent == now && !dice_.one_in(net_.opt.split_one_in);
        o.at = together ? last.at : std::max(o.at, last.at);
    }
    for (const command_seq s : o.seqs) unanswered_.push_back(s);
    if (o.seqs.empty() && o.seq != 0) unanswered_.push_back(o.seq);
    const bool first = to_server_.empty();
    to_server_.push_back(std::move(o));
    if (first) net_.when.at(to_server_.front().at, *this, arrive);
}

void connection::send(command_seq seq, command cmd) {
    push({0, 0, seq, std::move(cmd), {}, {}, false});
}

void connection::subscribe(const std::vector<std::string>& channels, const std::vector<command_seq>& seqs) {
    command c;
    c.what = verb::subscribe;
    push({0, 0, 0, std::move(c), seqs, channels, false});
}

void connection::unsubscribe() {
    subscribed_ = false;
    net_.server.server().forget(shared_from_this());
}

void connection::hold_up(micros how_long, bool towards_server) {
    const micros until = net_.when.now() + how_long;
    if (towards_server) {
        out_floor_ = until;
        for (outgoing& o : to_server_) o.at = std::max(o.at, until);
    } else {
        in_floor_ = until;
        for (incoming& i : to_client_) i.at = std::max(i.at, until);
    }
}

void connection::cut(bool lost, micros late_by) {
    owner_ = nullptr;
    unsubscribe();
    for (const incoming& i : to_client_) {
        if (i.what.what == transport_event::kind::reply) net_.hit(fault::reply_lost);
    }
    to_client_.clear();
    messages_.clear();
    if (lost) {
        to_server_.clear();
        return;
    }
    if (late_by > 0 && !to_server_.empty()) net_.hit(fault::late_bytes);
    for (outgoing& o : to_server_) o.at += late_by;
}

// PUBLISH is let through by a server that loads, and by replicas.
bool connection::refused(const command& cmd) const {
    if (net_.when.now() >= net_.refusing_until || cmd.what == verb::subscribe || cmd.what == verb::publish)
        return false;
    return net_.refusing_reads || cmd.what != verb::get;
}

void connection::execute(outgoing& o) {
    auto& newest = net_.newest_run[static_cast<std::size_t>(node_)];
    if (number_ < newest) {
        net_.hit(fault::reorder);
    } else {
        newest = number_;
    }
    if (o.cmd.what == verb::subscribe) {
        if (owner_ == nullptr) return;
        for (const std::string& c : o.channels) {
            command one;
            one.what = verb::subscribe;
            one.key = c;
            if (net_.server.relevant(c)) net_.server.server().submit(shared_from_this(), 0, one);
        }
        subscribed_ = true;
        for (const command_seq s : o.seqs) {
            transport_event e;
            e.seq = s;
            e.answer = reply::of_status("OK");
            answer(std::move(e));
        }
        transport_event e;
        e.what = transport_event::kind::subscribed;
        answer(std::move(e));
        return;
    }
    if (o.cmd.what == verb::script && !refused(o.cmd)) {
        const auto script = static_cast<std::size_t>(o.cmd.script);
        if (o.taught) net_.scripts.set(script);
        if (!net_.scripts.test(script)) {
            transport_event e;
            e.seq = o.seq;
            e.answer = reply::of_error("NOSCRIPT No matching script. Please use EVAL.");
            if (owner_ != nullptr) answer(std::move(e), std::move(o.cmd));
            return;
        }
    }
    const bool skipped = net_.opt.broken == variant::mark_skips && o.cmd.what == verb::script &&
                         o.cmd.script == script_id::mark_stale && net_.server.holds_placeholder(o.cmd.key);
    transport_event e;
    e.seq = o.seq;
    e.answer = refused(o.cmd) ? reply::of_error(std::string(net_.refusal)) : net_.server.run(node_, o.cmd, skipped);
    if (owner_ == nullptr) {
        net_.hit(fault::reply_lost);
        return;
    }
    answer(std::move(e));
}

void connection::answer(transport_event e, std::optional<command> unknown) {
    micros at = std::max(in_floor_, net_.when.now() + delay());
    const bool first = to_client_.empty();
    if (!first) at = std::max(at, to_client_.back().at);
    to_client_.push_back({at, std::move(e), std::move(unknown)});
    if (first) net_.when.at(at, *this, deliver);
}

void connection::on_message(std::string_view channel, std::string_view payload) {
    if (owner_ == nullptr || !subscribed_) return;
    if (drop_messages_ > 0) {
        --drop_messages_;
        net_.hit(fault::message_dropped);
        return;
    }
    transport_event e;
    e.what = transport_event::kind::message;
    e.channel = channel;
    e.payload = payload;
    const micros now = net_.when.now();
    const bool held = messages_held_until_ > now;
    if (held) net_.hit(fault::message_delayed);
    if (net_.opt.one_stream && !held) {
        answer(std::move(e));
        return;
    }
    micros at = std::max(messages_held_until_, now + delay());
    if (!messages_.empty()) at = std::max(at, messages_.back().at);
    messages_.push_back({at, std::move(e), std::nullopt});
    net_.when.at(at, *this, deliver_message);
}

// As the real transport does it: a script that the server did not know is loaded and sent again, if somebody still
// waits for what it says.
void connection::hear(incoming i) {
    if (!i.unknown || !owner_->wanted(i.what.seq)) {
        owner_->arrived(std::move(i.what));
        return;
    }
    ++net_.taught;
    push({0, 0, i.what.seq, *std::move(i.unknown), {}, {}, true});
}

void connection::act(std::uint32_t what, std::uint64_t) {
    const micros now = net_.when.now();
    switch (what) {
    case arrive:
        if (dead_) to_server_.clear();
        if (now < net_.out_until && !to_server_.empty()) hold_up(net_.out_until - now, true);
        while (!to_server_.empty() && to_server_.front().at <= now) {
            outgoing o = std::move(to_server_.front());
            to_server_.pop_front();
            execute(o);
        }
        if (!to_server_.empty()) net_.when.at(to_server_.front().at, *this, arrive);
        break;
    case deliver:
        if (dead_) to_client_.clear();
        while (!to_client_.empty() && to_client_.front().at <= now) {
            incoming i = std::move(to_client_.front());
            to_client_.pop_front();
            if (i.what.what == transport_event::kind::reply) unanswered_.pop_front();
            if (owner_ != nullptr) hear(std::move(i));
        }
        if (!to_client_.empty()) net_.when.at(to_client_.front().at, *this, deliver);
        break;
    case deliver_message:
        if (dead_) messages_.clear();
        while (!messages_.empty() && messages_.front().at <= now) {
            incoming i = std::move(messages_.front());
            messages_.pop_front();
            if (owner_ != nullptr) owner_->arrived(std::move(i.what));
        }
        break;
    default: break;
    }
}

// ---- the transport

link::link(network& net, int node, node_clock& time, std::uint64_t seed, std::function<void()> wake)
    : net_(net),
      node_(node),
      time_(time),
      dice_(seed),
      wake_(std::move(wake)) {
    measure(time_.now_ms());
    begin_connect();
}

link::~link() {
    if (now_) now_->cut(true, 0);
}

void link::measure(mono_ms now) {
    const std::int64_t fault_ms = net_.opt.delay_high / ms + 1;
    offset_ = net_.server.now() - now + dice_.between(-fault_ms, fault_ms);
    measured_ = now;
}

server_ms link::server_time(mono_ms now) {
    if (state_ == state::up && now - measured_ > 30'000) measure(now);
    return now + offset_;
}

void link::begin_connect() {
    state_ = state::connecting;
    ++attempt_;
    const micros now = net_.when.now();
    const micros trip =
        2 * dice_.between(net_.opt.delay_low, net_.opt.delay_high) + (dice_.one_in(4) ? dice_.between(0, 50 * ms) : 0);
    if (now < net_.out_until) {
        const micros limit = net_.opt.settings.connect_timeout_ms * ms;
        net_.when.at(now + (dice_.one_in(2) ? trip : limit), *this, refused, attempt_);
    } else {
        net_.when.at(now + trip, *this, connected, attempt_);
    }
}

void link::tell(command_seq seq, delivery how) {
    transport_event e;
    e.seq = seq;
    e.how = how;
    inbox_.push_back(std::move(e));
}

void link::submit(command_seq seq, command cmd, mono_ms) {
    if (cmd.what == verb::subscribe) {
        channels_.push_back(cmd.key);
        if (state_ == state::closed || state_ == state::waiting) {
            tell(seq, delivery::not_sent);
        } else {
            new_channels_.push_back(std::move(cmd.key));
            new_subscriptions_.push_back(seq);
        }
        return;
    }
    if (cmd.what == verb::get || (cmd.what == verb::script && cmd.script == script_id::lease)) {
        const auto at = std::ranges::find(looks_, cmd.key, &std::pair<std::string, micros>::first);
        if (at != looks_.end()) {
            at->second = net_.when.now();
        } else {
            looks_.emplace_back(cmd.key, net_.when.now());
        }
    }
    switch (state_) {
    case state::connecting: held_.push_back({seq, std::move(cmd)}); break;
    case state::waiting:
    case state::closed: tell(seq, delivery::not_sent); break;
    case state::up: {
        if (!new_channels_.empty()) {
            now_->subscribe(std::exchange(new_channels_, {}), std::exchange(new_subscriptions_, {}));
        }
        const bool script = cmd.what == verb::script;
        now_->send(seq, std::move(cmd));
        if (armed_ && (script || !armed_->by_script)) {
            striking_ = *std::exchange(armed_, {});
            const micros soon = dice_.one_in(2) ? 0 : dice_.between(0, 2 * net_.opt.delay_high);
            net_.when.at(net_.when.now() + soon, *this, strike, attempt_);
        }
        break;
    }
    }
}

bool link::poll(transport_event& out, mono_ms) {
    if (inbox_.empty()) return false;
    out = std::move(inbox_.front());
    inbox_.pop_front();
    return true;
}

void link::arrived(transport_event e) {
    if (state_ == state::closed) return;
    inbox_.push_back(std::move(e));
    wake_();
}

void link::lose(std::string_view why) {
    for (const command_seq s : now_->unanswered()) tell(s, delivery::lost);
    now_.reset();
    transport_event e;
    e.what = transport_event::kind::disconnected;
    e.code = status::unavailable;
    e.payload = why;
    inbox_.push_back(std::move(e));
    net_.told.line("net", "n", node_, " connection lost: ", why);
    begin_connect(); // what is submitted meanwhile waits for it
    wake_();
}

void link::act(std::uint32_t what, std::uint64_t with) {
    if (state_ == state::closed) return;
    if (what == resubscribe) {
        if (state_ == state::up && with == now_->number()) now_->subscribe(channels_, {});
        return;
    }
    if (with != attempt_) return;
    switch (what) {
    case connected:
        if (net_.when.now() < net_.out_until) {
            begin_connect();
            return;
        }
        state_ = state::up;
        failures_ = 0;
        now_ = std::make_shared<connection>(net_, *this, node_, dice_.next());
        all_.push_back(now_);
        measure(time_.now_ms());
        net_.scripts = network::all_scripts();
        net_.told.line("net", "n", node_, " connected, connection ", now_->number());
        {
            transport_event e;
            e.what = transport_event::kind::connected;
            inbox_.push_back(std::move(e));
        }
        new_channels_.clear();
        if (!channels_.empty()) now_->subscribe(channels_, std::exchange(new_subscriptions_, {}));
        for (held& h : std::exchange(held_, {})) now_->send(h.seq, std::move(h.cmd));
        wake_();
        break;
    case refused:
        for (const held& h : std::exchange(held_, {})) tell(h.seq, delivery::not_sent);
        for (const command_seq s : std::exchange(new_subscriptions_, {})) tell(s, delivery::not_sent);
        new_channels_.clear();
        state_ = state::waiting;
        ++attempt_;
        net_.when.at(net_.when.now() + (dice_.between(20, 100) << std::min(failures_++, 4)) * ms, *this, retry,
                     attempt_);
        wake_();
        break;
    case retry: begin_connect(); break;
    case strike: break_now(striking_); break;
    case noticed: lose("nothing comes any more"); break;
    default: break;
    }
}

bool link::break_now(const breakage& how) {
    if (!up()) return false;
    if (how.lost) net_.hit(fault::disconnect);
    now_->cut(how.lost, how.late_by);
    if (how.noticed_after == 0) {
        lose("reset");
    } else {
        net_.when.at(net_.when.now() + how.noticed_after, *this, noticed, attempt_);
    }
    return true;
}

micros link::last_look(const std::string& key) const {
    for (const auto& [name, when] : looks_) {
        if (name == key) return when;
    }
    return 0;
}

bool link::blackhole(micros noticed_after) {
    if (!up()) return false;
    now_->blackhole();
    now_->unsubscribe();
    net_.when.at(net_.when.now() + noticed_after, *this, noticed, attempt_);
    return true;
}

bool link::hold_up(micros how_long, bool towards_server) {
    if (!up()) return false;
    now_->hold_up(how_long, towards_server);
    return true;
}

bool link::hold_messages(micros until) {
    if (state_ != state::up) return false;
    now_->hold_messages(until);
    return true;
}

bool link::drop_messages(int n) {
    if (state_ != state::up) return false;
    now_->drop_messages(n);
    return true;
}

bool link::lose_subscription(micros how_long) {
    if (state_ != state::up || channels_.empty()) return false;
    now_->unsubscribe();
    net_.when.at(net_.when.now() + how_long, *this, resubscribe, now_->number());
    return true;
}

void link::crash(bool bytes_lost) {
    state_ = state::closed;
    wake_ = [] {};
    if (now_) now_->cut(bytes_lost, 0);
    now_.reset();
}

void link::close() {
    if (state_ == state::closed) return;
    if (state_ == state::up && !new_channels_.empty()) {
        for (const command_seq s : std::exchange(new_subscriptions_, {})) tell(s, delivery::lost);
    }
    for (const held& h : std::exchange(held_, {})) tell(h.seq, delivery::not_sent);
    if (now_) {
        for (const command_seq s : now_->unanswered()) tell(s, delivery::lost);
        now_->cut(false, 0); // what was written still goes out
        now_.reset();
    }
    state_ = state::closed;
}

} // namespace stn::sim
