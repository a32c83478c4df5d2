// SPDX-License-Identifier: MIT
#include "protocol/breaker.hpp"

#include "protocol/schedule.hpp"

namespace stn {

breaker::verdict breaker::ask(mono_ms now) {
    if (times_open_ == 0) return verdict::pass;
    if (now < until_) return verdict::refuse;
    if (probing_ && now < until_ + schedule::probe_patience_ms) return verdict::refuse;
    probing_ = true;
    until_ = now;
    return verdict::pass;
}

bool breaker::fails(mono_ms now, int times_before, draws& draw) {
    ++failures_;
    const bool opens = times_open_ == 0 && failures_ >= tolerated;
    if (!opens && !probing_) return false;
    until_ = now + schedule::breaker_pause(times_before, draw);
    times_open_ = times_before + 1;
    probing_ = false;
    return opens;
}

bool breaker::succeeded() {
    const bool was_open = times_open_ > 0;
    failures_ = 0;
    times_open_ = 0;
    probing_ = false;
    return was_open;
}

} // namespace stn
