// SPDX-License-Identifier: MIT
#include "engine/wire.hpp"

#include <utility>

#include "protocol/commands.hpp"
#include "protocol/keys.hpp"

namespace stn {

namespace {

bool takes_or_writes(const command& cmd) {
    if (cmd.what != verb::script) return false;
    return cmd.script == script_id::lease || cmd.script == script_id::refresh || cmd.script == script_id::fill ||
           cmd.script == script_id::put || cmd.script == script_id::acquire || cmd.script == script_id::tick ||
           cmd.script == script_id::once;
}

constexpr std::size_t most_last_words = 10'000;

bool lets_go(const command& cmd) {
    if (cmd.what == verb::del) return true;
    return cmd.what == verb::script && (cmd.script == script_id::abandon || cmd.script == script_id::release);
}

} // namespace

void wire::send(command cmd, std::shared_ptr<reply_sink> sink, std::uint32_t id, bool gated, mono_ms now) {
    if (gated && breaker_.ask(now) == breaker::verdict::refuse) {
        if (sink) refused_.push_back({std::move(sink), id, false});
        return;
    }
    totals_.add(stat::commands);
    const bool again = lets_go(cmd) && (!sink || !sink->awaits(id)) && last_words_.size() < most_last_words;
    const command_seq seq = expect({std::move(sink), id, takes_or_writes(cmd)});
    if (again) last_words_.emplace(seq, cmd);
    link_.submit(seq, std::move(cmd), now);
}

void wire::listen(std::string_view prefix, mono_ms now) {
    if (std::exchange(listening_, true)) return;
    for (std::uint64_t i = 0; i < wake_channels; ++i) {
        link_.submit(expect({}), subscribe_command(std::string(prefix) + ":w:" + std::to_string(i)), now);
    }
}

void wire::silent(mono_ms now) {
    totals_.add(stat::commands_lost);
    opened(breaker_.failed(now, chance_));
}

void wire::settle_last_word(const transport_event& e) {
    if (last_words_.empty()) return;
    const auto it = last_words_.find(e.seq);
    if (it == last_words_.end()) return;
    if (e.how != delivery::answered && unsaid_.size() < most_last_words) unsaid_.push_back(std::move(it->second));
    last_words_.erase(it);
}

void wire::say_last_words(mono_ms now) {
    for (command& cmd : std::exchange(unsaid_, {})) send(std::move(cmd), nullptr, 0, false, now);
}

void wire::opened(bool now_open) {
    if (!now_open) return;
    totals_.add(stat::breaker_opened);
    listener_.on_breaker(true);
}

// Only the server's own failures count. A `wanted` answer ends them; others do not: PUBLISH and SUBSCRIBE
// work while the server loads.
void wire::settle(const transport_event& e, bool wanted, mono_ms now) {
    if (e.how != delivery::answered) {
        silent(now);
        return;
    }
    const refusal why = classify(e.answer);
    const refusal_traits& t = traits_of(why);
    if (t.ails) {
        opened(breaker_.refused(now, chance_));
    } else if (wanted && breaker_.succeeded()) {
        listener_.on_breaker(false);
    }
    const std::uint32_t bit = std::uint32_t{1} << static_cast<unsigned>(why);
    if (t.alert && (std::exchange(alerted_, alerted_ | bit) & bit) == 0) listener_.on_alert(why, e.answer.text);
}

command_seq wire::expect(asked who) {
    if (who.sink) ++in_flight_;
    asked_.push_back(std::move(who));
    return first_asked_ + asked_.size() - 1;
}

bool wire::wanted(command_seq seq) const {
    const std::size_t at = seq - first_asked_; // before the first it wraps, and is past the end too
    if (at >= asked_.size() || !asked_[at].sink) return true;
    return !asked_[at].only_if_awaited || asked_[at].sink->awaits(asked_[at].id);
}

wire::asked wire::take(command_seq seq) {
    const std::size_t at = seq - first_asked_;
    if (at >= asked_.size()) return {};
    asked out = std::exchange(asked_[at], {});
    if (out.sink) --in_flight_;
    while (!asked_.empty() && !asked_.front().sink) {
        asked_.pop_front();
        ++first_asked_;
    }
    return out;
}

void wire::poll(mono_ms now) {
    while (!refused_.empty()) {
        auto batch = std::exchange(refused_, {});
        for (asked& a : batch) a.sink->replied(a.id, delivery::not_sent, {}, now);
    }
    transport_event e;
    while (link_.poll(e, now)) {
        switch (e.what) {
        case transport_event::kind::reply: {
            settle_last_word(e);
            const asked who = take(e.seq);
            settle(e, who.sink != nullptr, now);
            if (who.sink) who.sink->replied(who.id, e.how, std::move(e.answer), now);
            break;
        }
        case transport_event::kind::message:
            totals_.add(stat::messages);
            listener_.on_message(e.payload, now);
            break;
        case transport_event::kind::subscribed: listener_.on_subscribed(now); break;
        case transport_event::kind::connected:
            alerted_ = 0;
            if (breaker_.succeeded()) listener_.on_breaker(false);
            listener_.on_connection(e.what, status::ok, e.payload, now);
            say_last_words(now);
            break;
        case transport_event::kind::disconnected:
        case transport_event::kind::not_connected:
        case transport_event::kind::trouble: listener_.on_connection(e.what, e.code, e.payload, now); break;
        }
        e = {};
    }
}

} // namespace stn
