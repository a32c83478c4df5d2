// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string_view>

#include "protocol/reply.hpp"

struct redisReader;

namespace stn {

// Lets hiredis' reader build our replies directly, and no larger than any that we ask for: a server that is
// none, or is out of its mind, cannot have us allocate without end. RESP3's kinds become the nearest of
// RESP2's: a map or set is an array, a double, big number or verbatim text is a bulk, a boolean is an integer.
class reply_builder {
  public:
    static constexpr std::size_t most_bytes = (std::size_t{512} << 20) + 4'096; // a bulk of Redis has at most 512 MiB
    static constexpr std::size_t most_items = 4'096;                            // of one reply, all levels together
    static constexpr int deepest = 8;

    // The reader must not outlive this.
    void attach(redisReader& to);
    // The reply that the reader has finished.
    [[nodiscard]] reply take();
    [[nodiscard]] bool was_push() const noexcept { return push_; }
    [[nodiscard]] bool over_bounds() const noexcept { return over_bounds_; }

  private:
    struct functions;
    reply root_;
    std::size_t items_ = 0;
    bool push_ = false;
    bool over_bounds_ = false;
};

} // namespace stn
