// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include <stanchion/stanchion.h>

#include "memory.hpp"

// A scenario sets a stage and makes one call in it, through its trial. The trial makes the call with a
// fault, judges what came of it, and makes it once more without; the scenario then sees to it that
// all is as if nothing had happened.
namespace faults {

enum class thrown : std::uint8_t { none, bad_alloc, runtime_error, number };

class trial {
  public:
    using call = std::function<std::int32_t(stn_error**)>;
    using check = std::function<bool()>;

    // Something is thrown as soon as `entry` is entered.
    static trial throwing(thrown what);
    // An allocation fails somewhere on the way.
    static trial without_memory(std::uint64_t nth, outage how);

    // A call that reports. `cleared`: its out parameters are NULL or 0. `unchanged` is checked after a
    // failure. In the end it gives `wanted`.
    void make(std::string_view entry, const call& it, const check& cleared = {}, std::int32_t wanted = STN_OK);
    // The same for one that has no `err`.
    void make_mute(std::string_view entry, const std::function<std::int32_t()>& it, const check& cleared = {});
    // A call that can say NULL only.
    void make_quiet(std::string_view entry, const std::function<bool()>& gives);
    // A call that can say nothing, and does its work whatever happens.
    void make_silent(std::string_view entry, const std::function<void()>& it);

    void unchanged(check so) { unchanged_ = std::move(so); }
    // The fault has come to pass.
    [[nodiscard]] bool bitten() const noexcept { return bitten_; }
    // The call was made.
    [[nodiscard]] bool made() const noexcept { return made_; }

  private:
    void arm(std::string_view entry);
    void disarm();
    void judge(std::int32_t code, bool tells, const stn_error* err) const;

    thrown what_ = thrown::none;
    std::uint64_t nth_ = 0;
    outage how_ = outage::once;
    check unchanged_;
    bool bitten_ = false;
    bool made_ = false;
};

struct scenario {
    std::string_view entry;
    std::string_view when;
    void (*play)(trial&);
};

// Every entry, some of them in several situations.
std::span<const scenario> scenarios_of_clients();
std::span<const scenario> scenarios_of_queues();
std::span<const scenario> scenarios_of_caches();
std::span<const scenario> scenarios_of_leases();
std::span<const scenario> scenarios_of_loaders();
std::span<const scenario> scenarios_of_groups();
std::span<const scenario> scenarios_of_locks();

} // namespace faults
