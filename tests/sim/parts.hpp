// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>

#include "agenda.hpp"
#include "base/random.hpp"
#include "book.hpp"
#include "coverage.hpp"
#include "judge.hpp"
#include "link.hpp"
#include "options.hpp"
#include "store.hpp"
#include "tale.hpp"

namespace stn::sim {

// What every actor of one world knows.
struct world_parts {
    const options& opt;
    agenda& when;
    tale& told;
    judge& judged;
    book& history;
    store& server;
    network& net;
    coverage& seen;
    std::map<token, std::uint64_t>& loaders; // granted token -> the load that runs under it
    bool draining = false;

    void hit(fault f) { net.hit(f); }
};

} // namespace stn::sim
