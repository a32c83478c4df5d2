// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/event_queue.hpp"

namespace stn {

enum class notice : std::uint32_t { log = 1, breaker = 2, connection = 4, version = 8, margin = 16 };

// Who wants to hear what happens to a client.
class notices {
  public:
    // One subscription per queue; mask 0 ends it.
    void watch(const std::shared_ptr<event_queue>& home, std::uint32_t mask, std::uint64_t tag);
    // Trouble that lasts is told once: who came later than that hears it now. In a turn, after `watch`.
    struct told;
    [[nodiscard]] std::vector<told> catch_up(const event_queue* home);
    // Whom to tell; the events go out with the caller's outbox.
    struct told {
        std::shared_ptr<event_queue> home;
        event what;
    };
    [[nodiscard]] std::vector<told> tell(notice what, status code, const std::string& text);

  private:
    struct watcher {
        std::weak_ptr<event_queue> home;
        std::uint32_t mask;
        std::uint64_t tag;
        std::uint32_t heard = 0; // bits told since it came
    };
    struct trouble {
        notice what;
        status code;
        std::string text;
    };
    [[nodiscard]] static event event_of(const watcher& to, notice what, status code, const std::string& text);

    std::mutex mutex_;
    std::vector<watcher> watchers_; // mutex_
    std::vector<trouble> lasting_;  // mutex_; of the connection and the breaker
};

} // namespace stn
