// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/result.hpp"
#include "engine/transport.hpp"
#include "protocol/policy.hpp"

namespace stn {

// All that a client needs of the outside world.
struct store {
    std::unique_ptr<transport> link;
    std::shared_ptr<clock> time;
    std::shared_ptr<draws> chance;
    std::shared_ptr<adjustable_clock> manual; // null unless clock=manual
    std::string shown;                        // the URL without its password
};

// Does not connect: a store that is down is no error here.
[[nodiscard]] result<store> open_store(std::string_view url, const client_settings& settings = {});

} // namespace stn
