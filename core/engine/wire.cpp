// SPDX-License-Identifier: MIT
#include "engine/wire.hpp"

#include <utility>

#include "protocol/commands.hpp"
#include "protocol/keys.hpp"

namespace stn {

void wire::send(command cmd, std::shared_ptr<reply_sink> sink, std::uint32_t id, bool gated, mono_ms now) {
    if (gated && breaker_.ask(now) == breaker::verdict::refuse) {
        if (sink) refused_.push_back({std::move(sink), id});
        return;
    }
    totals_.add(stat::commands);
    const command_seq seq = next_seq_++;
    if (sink) asked_.emplace(seq, asked{std::move(sink), id});
    link_.submit(seq, std::move(cmd), now);
}

void wire::listen(std::string_view prefix, mono_ms now) {
    if (std::exchange(listening_, true)) return;
    for (std::uint64_t i = 0; i < wake_channels; ++i) {
        link_.submit(next_seq_++, subscribe_command(std::string(prefix) + ":w:" + std::to_string(i)), now);
    }
}

void wire::silent(mono_ms now) {
    totals_.add(stat::commands_lost);
    if (breaker_.failed(now, chance_)) {
        totals_.add(stat::breaker_opened);
        listener_.on_breaker(true);
    }
}

void wire::settle(const transport_event& e, mono_ms now) {
    if (e.how == delivery::answered) {
        if (breaker_.succeeded()) listener_.on_breaker(false);
    } else {
        silent(now);
    }
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
            settle(e, now);
            const auto it = asked_.find(e.seq);
            if (it == asked_.end()) break;
            asked a = std::move(it->second);
            asked_.erase(it);
            a.sink->replied(a.id, e.how, std::move(e.answer), now);
            break;
        }
        case transport_event::kind::message:
            totals_.add(stat::messages);
            listener_.on_message(e.payload, now);
            break;
        case transport_event::kind::subscribed: listener_.on_subscribed(now); break;
        case transport_event::kind::connected: listener_.on_connection(true, e.payload); break;
        case transport_event::kind::disconnected: listener_.on_connection(false, e.payload); break;
        }
        e = {};
    }
}

} // namespace stn
