// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "io/manual_clock.hpp"
#include "io/memory_server.hpp"

namespace stn {

// A memory server with the clock it lives on. The clock belongs to the store, so that all its
// clients see one time.
struct memory_store {
    std::shared_ptr<clock> time;
    std::shared_ptr<manual_clock> manual; // null: the system's clock
    std::shared_ptr<memory_server> server;
};

enum class memory_clock : bool { system, manual };

// The store of that name in this process: opened if nobody has it open, gone with the last pointer
// to it. Without a name it is private. A store has one clock: asking for the other is an error.
[[nodiscard]] result<std::shared_ptr<memory_store>> open_memory_store(std::string_view name, memory_clock kind);

} // namespace stn
