// SPDX-License-Identifier: MIT
#include "engine/readiness.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace stn {

void readiness::asker::due(mono_ms) {
    of->answer(self, outcome_error(of->last_));
}

void readiness::ask(std::shared_ptr<event_queue> home, std::uint64_t tag, mono_ms until) {
    const auto it = askers_.emplace(askers_.end());
    it->of = this;
    it->self = it;
    it->home = std::move(home);
    it->tag = tag;
    if (up_) {
        answer(it, nullptr);
    } else {
        turns_.timers.set(*it, until); // even if that is now: what has come from the store is heard first
    }
}

void readiness::heard(transport_event::kind how, status code, std::string_view why) {
    if (how == transport_event::kind::trouble) return;
    up_ = how == transport_event::kind::connected;
    if (up_) {
        server_ = why;
    } else {
        last_ = fail(code, std::string(why));
    }
    // What only a person can change is told at once; for the rest there is time until the deadline.
    const bool hopeless = !up_ && code != status::unavailable && code != status::timeout;
    if (!up_ && !hopeless) return;
    const outcome_ptr how_it_is = up_ ? nullptr : outcome_error(last_);
    while (!askers_.empty()) answer(askers_.begin(), how_it_is);
}

void readiness::close(const outcome_ptr& closed) {
    while (!askers_.empty()) answer(askers_.begin(), closed);
}

void readiness::answer(std::list<asker>::iterator who, const outcome_ptr& error) {
    event e;
    e.tag = who->tag;
    e.kind = error ? event_kind::error : event_kind::done;
    if (!error) {
        e.text = server_;
    } else {
        e.code = error->code;
        e.what = error;
    }
    turns_.timers.cancel(*who);
    turns_.out.add(std::move(who->home), std::move(e));
    askers_.erase(who);
}

} // namespace stn
