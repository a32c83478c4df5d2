// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <mutex>

namespace stn {

// Threads that sleep until something is there, under their owner's mutex; the oldest is woken first. Two
// system calls for each sleep, one on either side: a condition variable needs a third, because glibc takes
// its mutex back as if others waited for it.
class sleepers {
  public:
    // Taken off the list under the mutex, woken after it was let go.
    class woken {
      public:
        woken() = default;
        void wake() noexcept;

      private:
        friend class sleepers;
        struct sleeper* first_ = nullptr;
    };

    class moment {
      public:
        explicit moment(std::int64_t ms_from_now) noexcept; // -1: never

      private:
        friend class sleepers;
        timespec at_{};
        bool never_ = false;
    };
    // Lets the mutex go meanwhile. False: nobody woke it until then.
    bool sleep(std::unique_lock<std::mutex>& lock, const moment& until) noexcept;
    [[nodiscard]] woken take(std::size_t at_most) noexcept;
    [[nodiscard]] woken take_all() noexcept { return take(SIZE_MAX); }

  private:
    struct sleeper* first_ = nullptr;
    struct sleeper* last_ = nullptr;
};

} // namespace stn
