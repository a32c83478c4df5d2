// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "database.hpp"

namespace fence {

// The stock of a shop, with one item: the part to read. Whoever sells some of it holds the lock of the stock and brings
// the lock's fence.
class Shop {
  public:
    static void open(Database& database); // makes the tables
    static void shut(Database& database);

    // `guarded`: as it should be; else without a fence.
    Shop(Database& database, bool guarded) : database_(database), guarded_(guarded) {}

    void fill(std::int64_t units);

    // How many units there are, read for a holder: from here on everybody with an older fence is refused. Nothing: this
    // holder is refused, for a newer one was here.
    std::optional<std::int64_t> enter(std::int64_t fence);

    // Leaves `left` units, and notes what was sold. False: refused. To be called in a transaction, so that both or
    // neither is done.
    bool sell(std::int64_t fence, std::int64_t sold, std::int64_t left, const std::string& who);

    std::int64_t units();
    std::int64_t sales(const std::string& who);

  private:
    Database& database_;
    const bool guarded_;
};

} // namespace fence
