// SPDX-License-Identifier: MIT
#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace fence {

struct DatabaseError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What a statement gave: how many rows it changed or found, and their texts.
struct Rows {
    std::int64_t count = 0;
    std::vector<std::vector<std::string>> values;
};

// One connection. Parameters are bound ($1, $2, ...), never pasted into the text.
class Database {
  public:
    explicit Database(const std::string& conninfo);

    Rows run(const std::string& sql, const std::vector<std::string>& parameters = {});
    std::int64_t number(const std::string& sql, const std::vector<std::string>& parameters = {}); // the only one

  private:
    struct Finish {
        void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
    };
    std::unique_ptr<PGconn, Finish> connection_;
};

// What is done on the connection until commit() is done together, or at the end of the scope not at all.
class Transaction {
  public:
    explicit Transaction(Database& database);
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;

    void commit();

  private:
    Database& database_;
    bool open_ = true;
};

} // namespace fence
