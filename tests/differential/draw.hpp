// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "protocol/commands.hpp"
#include "protocol/envelope.hpp"
#include "sides.hpp"

namespace stn::differ {

// Draws steps, from a seed. A few tokens only, and more often than not one that stands in the key: else all would be
// strangers to each other.
class drawer {
  public:
    explicit drawer(std::uint64_t seed) : chance_(seed) {}

    // About a key in which `now` stands. `fresh` false: with what stands there.
    step draw(const std::string& key, const state& now, bool fresh = true);
    scene draw_scene(std::optional<std::int64_t> ttl_ms, script_id suits);
    std::uint64_t below(std::uint64_t n) { return chance_() % n; }
    bool one_in(std::uint64_t n) { return below(n) == 0; }

  private:
    command draw_plain(const std::string& key);
    command draw_script(const std::string& key, script_id id);
    std::string draw_envelope(entry_kind kind, std::uint64_t one_is_large = 20);
    std::string draw_bytes();
    std::string draw_tick();
    tick_times draw_tick_times();
    std::int64_t draw_ms();
    entry_kind draw_kind();
    token draw_token();
    std::vector<token> draw_tokens();
    void take_hint(const std::string& bytes);

    std::mt19937_64 chance_;
    std::optional<token> hint_;
};

} // namespace stn::differ
