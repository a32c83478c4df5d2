// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agenda.hpp"
#include "base/random.hpp"
#include "options.hpp"

namespace stn::sim {

// What every value carries, so that whoever meets one knows where it comes from.
struct stamp {
    std::int32_t key = 0;
    std::int64_t version = 0; // of the source, when it was read
    std::uint64_t load = 0;
};

[[nodiscard]] std::string write_stamp(const stamp& s, std::size_t at_least = 0);
[[nodiscard]] std::optional<stamp> read_stamp(std::string_view payload);

// One run of a loader; puts have an entry too, because their values need a stamp.
struct load_entry {
    std::uint64_t id = 0;
    int node = 0;
    int key = 0;
    bool put = false;      // of a put
    bool no_fleet = false; // of a process without the fleet, which stores it by a put
    bool refresh = false;
    token lease{};             // none: it has none, or nobody knows
    micros began = 0;          // the LEASE event was read
    std::int64_t version = -1; // -1: the source has not been read yet
    std::size_t size = 0;      // of what it came to
    bool stored = false;
    micros stored_at = 0;
};

// One accepted call.
struct op_entry {
    op_kind kind = op_kind::fetch;
    int node = 0;
    int key = 0;
    int answers = 0;
    int refreshes = 0; // REFRESH events
    int revocations = 0;
    int leases = 0;       // LEASE and REFRESH events
    bool excused = false; // its process died
    bool no_wait = false;
    bool forced = false;
    bool no_store = false;
    mono_ms deadline = forever_ms; // on the node's clock
    micros began = 0;
    micros ended = never;         // answered
    std::int64_t floor = 0;       // versions below it were deleted by this process before the call
    std::int64_t floor_stale = 0; // versions below it may only come marked stale
    micros floor_put = 0;         // loads begun before it were written over by a put of this process
    std::int64_t version = 0;     // invalidations: what the source was changed to
    std::uint64_t load = 0;       // fill: whose
    std::uint64_t op = 0;
};

// The true history of a seed. Tags of operations are places in `ops`, counted from 1.
struct book {
    explicit book(int keys) : source(static_cast<std::size_t>(keys), 1) {}

    std::vector<std::int64_t> source; // version by key
    std::deque<load_entry> loads;     // by id - 1
    std::deque<op_entry> ops;         // by tag - 1

    load_entry& new_load() {
        load_entry& made = loads.emplace_back();
        made.id = loads.size();
        return made;
    }
    [[nodiscard]] load_entry* load(std::uint64_t id) { return id == 0 || id > loads.size() ? nullptr : &loads[id - 1]; }
    std::uint64_t new_op(const op_entry& o) {
        ops.push_back(o);
        return ops.size();
    }
    [[nodiscard]] op_entry* op(std::uint64_t tag) { return tag == 0 || tag > ops.size() ? nullptr : &ops[tag - 1]; }
};

} // namespace stn::sim
