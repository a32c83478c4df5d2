// SPDX-License-Identifier: MIT
#pragma once

#include "base/clock.hpp"
#include "base/random.hpp"

namespace stn {

// One per endpoint. Five transport failures in a row open it for U(0.5, 1) s, doubling to 10 s; then
// one command probes. It gates looking and leasing only: whatever ends or renews something goes on.
class breaker {
  public:
    enum class verdict { pass, refuse };

    [[nodiscard]] verdict ask(mono_ms now);
    // True when this failure opened it.
    bool failed(mono_ms now, draws& draw);
    // True when this success closed it.
    bool succeeded();
    [[nodiscard]] bool open() const noexcept { return times_open_ > 0; }

  private:
    static constexpr int tolerated = 5;
    int failures_ = 0;
    int times_open_ = 0; // in a row
    bool probing_ = false;
    mono_ms until_ = 0;
};

} // namespace stn
