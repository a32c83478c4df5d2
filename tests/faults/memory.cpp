// SPDX-License-Identifier: MIT
#include "memory.hpp"

#include <cstdlib>
#include <new>

#include "base/blocks.hpp"

namespace {

struct fuse {
    std::uint64_t left = 0; // allocations until one fails; 0: not armed
    bool stays = false;
    bool blown = false;
};
thread_local fuse here;

bool runs_out() noexcept {
    if (here.blown && here.stays) return true;
    if (here.left == 0 || --here.left != 0) return false;
    return here.blown = true;
}

void* take(std::size_t size, std::size_t alignment) noexcept {
    if (runs_out()) return nullptr;
    if (size == 0) size = 1;
    if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return std::malloc(size);
    return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void* take_or_throw(std::size_t size, std::size_t alignment) {
    void* const p = take(size, alignment);
    if (p == nullptr) throw std::bad_alloc();
    return p;
}

constexpr std::size_t usual = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

std::size_t number(std::align_val_t a) noexcept {
    return static_cast<std::size_t>(a);
}

} // namespace

namespace faults {

void memory::fail(std::uint64_t nth, outage how) noexcept {
    stn::blocks::keep(false); // whatever needs memory asks for it here
    here = {nth, how == outage::from_then_on, false};
}

bool memory::back() noexcept {
    const bool blown = here.blown;
    here = {};
    return blown;
}

} // namespace faults

// clang-format off
void* operator new(std::size_t n) { return take_or_throw(n, usual); }
void* operator new[](std::size_t n) { return take_or_throw(n, usual); }
void* operator new(std::size_t n, std::align_val_t a) { return take_or_throw(n, number(a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return take_or_throw(n, number(a)); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return take(n, usual); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return take(n, usual); }
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept { return take(n, number(a)); }
void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept { return take(n, number(a)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
// clang-format on
