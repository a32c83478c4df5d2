// SPDX-License-Identifier: MIT
#pragma once

#include "base/clock.hpp"
#include "base/random.hpp"

namespace stn {

// One per endpoint. Five failures in a row open it for U(0.5, 1) s; then one command probes. Silence
// doubles the pause, to 10 s; a server that answers, but serves nobody (it loads, a script runs), is asked
// again after U(0.5, 1) s each time: asking costs nobody anything, and it may be well any moment. It
// gates looking and leasing only: whatever ends or renews something goes on.
class breaker {
  public:
    enum class verdict { pass, refuse };

    [[nodiscard]] verdict ask(mono_ms now);
    // Silence, or no way to the store. True when this failure opened it.
    bool failed(mono_ms now, draws& draw) { return fails(now, times_open_, draw); }
    // An answer that `ails`. True when it opened it.
    bool refused(mono_ms now, draws& draw) { return fails(now, 0, draw); }
    // True when this success closed it.
    bool succeeded();
    [[nodiscard]] bool open() const noexcept { return times_open_ > 0; }

  private:
    bool fails(mono_ms now, int times_before, draws& draw);

    static constexpr int tolerated = 5;
    int failures_ = 0;
    int times_open_ = 0; // in a row
    bool probing_ = false;
    mono_ms until_ = 0;
};

} // namespace stn
