// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace stampede {

// The data behind the cache: an SQLite file in a folder of its own, gone with this object. Any thread.
class Catalogue {
  public:
    static constexpr int rows = 10'000;
    static constexpr int categories = 20;

    Catalogue();
    ~Catalogue();
    Catalogue(const Catalogue&) = delete;
    Catalogue& operator=(const Catalogue&) = delete;

    // The summary of one category, a JSON text, or an empty one if SQLite failed.
    std::string answer(int category);
    // How often SQLite ran the statement of `answer`, by its own count.
    std::uint64_t answered() const;
    // The same text by a statement of its own, so that nobody counts it.
    std::string peek(int category);
    // All prices of the category rise.
    void reprice(int category);

  private:
    class Database;

    const std::filesystem::path folder_;
    std::unique_ptr<Database> database_; // locks itself
};

} // namespace stampede
