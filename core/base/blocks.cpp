// SPDX-License-Identifier: MIT
#include "base/blocks.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

namespace stn::blocks {

namespace {

constexpr std::size_t step = 64;      // sizes are multiples of it
constexpr std::size_t sizes = 10;     // what is larger is left to operator new
constexpr std::uint32_t handful = 16; // blocks that change hands together
constexpr std::uint32_t most = 64;    // handfuls of a size in the common stock

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool watched = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool watched = true;
#else
constexpr bool watched = false;
#endif
#else
constexpr bool watched = false;
#endif

std::atomic<bool> keeping{!watched};

struct block {
    block* next;   // of the handful
    block* beside; // the next handful; of its first block only
};

constexpr std::size_t size_of(std::size_t rank) {
    return (rank + 1) * step;
}

void free_all(block* first) noexcept {
    while (first != nullptr) ::operator delete(std::exchange(first, first->next));
}

class stock {
  public:
    // A handful, if there is one and nobody else is here.
    block* take() noexcept {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock || first_ == nullptr) return nullptr;
        --n_;
        return std::exchange(first_, first_->beside);
    }
    // False: no room, or somebody else is here.
    bool give(block* all) noexcept {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock || n_ == most) return false;
        ++n_;
        all->beside = std::exchange(first_, all);
        return true;
    }

  private:
    std::mutex mutex_;
    block* first_ = nullptr;
    std::uint32_t n_ = 0;
};

// Never destroyed: threads may outlive main.
constinit std::array<stock, sizes> common{};

// Of one thread.
struct shelf {
    block* open;     // blocks in use
    block* full;     // a whole handful, or none
    std::uint32_t n; // of `open`
};
struct shelves {
    std::array<shelf, sizes> of;
    enum : std::uint8_t { untouched, used, gone } state;
};
// Without a constructor, so that it may be touched while the thread's other objects are made and destroyed.
constinit thread_local shelves mine{};

struct sweeper {
    ~sweeper() {
        mine.state = shelves::gone;
        for (std::size_t rank = 0; rank < sizes; ++rank) {
            shelf& s = mine.of[rank];
            if (s.full != nullptr && !common[rank].give(s.full)) free_all(s.full);
            free_all(s.open);
            s = {};
        }
    }
};

// False: the thread is ending.
bool ready() noexcept {
    if (mine.state == shelves::used) return true;
    if (mine.state == shelves::gone) return false;
    thread_local const sweeper at_the_end;
    static_cast<void>(at_the_end);
    mine.state = shelves::used;
    return true;
}

bool refill(shelf& s, std::size_t rank) noexcept {
    s.open = std::exchange(s.full, nullptr);
    if (s.open == nullptr && ready()) s.open = common[rank].take();
    if (s.open == nullptr) return false;
    s.n = handful;
    return true;
}

void make_room(shelf& s, std::size_t rank) noexcept {
    if (s.full != nullptr && !common[rank].give(s.full)) free_all(s.full);
    s.full = std::exchange(s.open, nullptr);
    s.n = 0;
}

} // namespace

void* take(std::size_t bytes) {
    const std::size_t rank = (bytes - 1) / step;
    if (rank >= sizes) return ::operator new(bytes);
    shelf& s = mine.of[rank];
    if (!keeping.load(std::memory_order_relaxed) || (s.open == nullptr && !refill(s, rank))) {
        return ::operator new(size_of(rank));
    }
    --s.n;
    return std::exchange(s.open, s.open->next);
}

void give(void* p, std::size_t bytes) noexcept {
    const std::size_t rank = (bytes - 1) / step;
    if (p == nullptr || rank >= sizes || !keeping.load(std::memory_order_relaxed) || !ready()) {
        return ::operator delete(p);
    }
    shelf& s = mine.of[rank];
    if (s.n == handful) make_room(s, rank);
    ++s.n;
    s.open = new (p) block{s.open, nullptr};
}

bool keep(bool on) noexcept {
    return keeping.exchange(on);
}

} // namespace stn::blocks
