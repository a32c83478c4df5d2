// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "engine/event_queue.hpp"
#include "engine/loop.hpp"
#include "engine/timer_queue.hpp"
#include "engine/transport.hpp"

namespace stn {

// Who wants to know when the store can be used. Under the turn lock.
class readiness {
  public:
    explicit readiness(loop& turns) : turns_(turns) {}

    // One DONE or ERROR for `home`; its promise stands.
    void ask(std::shared_ptr<event_queue> home, std::uint64_t tag, mono_ms until);
    void heard(transport_event::kind how, status code, std::string_view why);
    void close(const outcome_ptr& closed);

  private:
    struct asker final : timer {
        readiness* of = nullptr;
        std::list<asker>::iterator self;
        std::shared_ptr<event_queue> home;
        std::uint64_t tag = 0;
        void due(mono_ms now) override;
    };
    void answer(std::list<asker>::iterator who, const outcome_ptr& error);

    loop& turns_;
    std::list<asker> askers_;
    bool up_ = false;
    std::string server_ = "{}"; // what it said of itself when it came up
    error last_ = fail(status::timeout, "the store is not connected yet");
};

} // namespace stn
