// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>

// Memory for small things that one thread makes and another destroys, over and over. malloc takes the lock of the
// maker's arena at both ends, and two busy threads spend their time on it. Here blocks change hands sixteen at a time
// ("magazines": Bonwick and Adams, Magazines and Vmem, 2001).
//
// No thread ever waits: while another is at the common stock, blocks come from `operator new` and go back there. So a
// fork may happen at any time. A thread keeps at most 32 blocks of a size, and the process at most 1,024 besides.
namespace stn::blocks {

[[nodiscard]] void* take(std::size_t bytes);
void give(void* p, std::size_t bytes) noexcept; // as many as were taken

// Off: every block is allocated and freed, for who counts allocations, or watches them as a sanitizer does. Gives what
// was.
bool keep(bool on) noexcept;

// For containers and allocate_shared.
template <class T> struct allocator {
    static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    using value_type = T;
    static constexpr std::size_t each = sizeof(T); // NOLINT(bugprone-sizeof-expression): it may be a pointer
    allocator() = default;
    template <class U> allocator(const allocator<U>&) noexcept {}
    [[nodiscard]] T* allocate(std::size_t n) {
        if (n > std::numeric_limits<std::size_t>::max() / each) throw std::bad_alloc();
        return static_cast<T*>(take(n * each));
    }
    void deallocate(T* p, std::size_t n) noexcept { give(static_cast<void*>(p), n * each); }
    template <class U> bool operator==(const allocator<U>&) const noexcept { return true; }
};

template <class T, class... Args> [[nodiscard]] std::shared_ptr<T> make_shared(Args&&... args) {
    return std::allocate_shared<T>(allocator<T>(), std::forward<Args>(args)...);
}

template <class Key, class T>
using unordered_map =
    std::unordered_map<Key, T, std::hash<Key>, std::equal_to<Key>, allocator<std::pair<const Key, T>>>;
template <class Key, class T>
using unordered_multimap =
    std::unordered_multimap<Key, T, std::hash<Key>, std::equal_to<Key>, allocator<std::pair<const Key, T>>>;

// For classes that are made by `new`. Where they are destroyed through a base, that has a virtual destructor.
struct made {
    static void* operator new(std::size_t n) { return take(n); }
    static void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
        try {
            return take(n);
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
    }
    static void* operator new(std::size_t, void* at) noexcept { return at; }
    static void operator delete(void* p, std::size_t n) noexcept { give(p, n); }
};

} // namespace stn::blocks
