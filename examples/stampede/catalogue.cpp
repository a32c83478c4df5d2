// SPDX-License-Identifier: MIT
#include "catalogue.hpp"

#include <sqlite3.h>
#include <unistd.h>

#include <mutex>
#include <random>
#include <stdexcept>

namespace stampede {
namespace {

// The folder is this process's own, and made anew.
std::filesystem::path make_folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "stampede-XXXXXX").string();
    if (!mkdtemp(pattern.data())) {
        throw std::runtime_error("no temporary folder could be made at " + pattern);
    }
    return pattern;
}

constexpr const char* schema = R"(
    CREATE TABLE category (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    CREATE TABLE product (
        id INTEGER PRIMARY KEY,
        category INTEGER NOT NULL REFERENCES category (id),
        name TEXT NOT NULL,
        price_cents INTEGER NOT NULL,
        stock INTEGER NOT NULL);
    CREATE INDEX product_by_category ON product (category);
)";

// One row of a category page: an index, a join and an aggregate over some 500 products.
constexpr const char* summary = R"(
    SELECT json_object('category', c.name, 'products', count(*), 'cheapest', min(p.price_cents),
                       'dearest', max(p.price_cents), 'mean', round(avg(p.price_cents), 2),
                       'in_stock', sum(p.stock > 0), 'worth', sum(p.price_cents * p.stock))
    FROM product p JOIN category c ON c.id = p.category
    WHERE p.category = ?1
)";

struct Freed {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Freed>;

} // namespace

// One connection, used by one thread at a time.
class Catalogue::Database {
  public:
    explicit Database(const std::filesystem::path& file) {
        sqlite3* opened = nullptr;
        int code = sqlite3_open(file.c_str(), &opened);
        db_.reset(opened);
        if (code != SQLITE_OK) fail("open the catalogue");
        run("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF");
        run(schema);
        fill();
        summary_ = prepare(summary);
        peek_ = prepare(summary);
    }

    std::string answer(int category) { return summarise(summary_.get(), category); }
    std::string peek(int category) { return summarise(peek_.get(), category); }

    std::uint64_t answered() {
        std::lock_guard lock(mutex_);
        return static_cast<std::uint64_t>(sqlite3_stmt_status(summary_.get(), SQLITE_STMTSTATUS_RUN, 0));
    }

    void reprice(int category) {
        std::lock_guard lock(mutex_);
        Statement update = prepare("UPDATE product SET price_cents = price_cents + 100 WHERE category = ?1");
        sqlite3_bind_int(update.get(), 1, category);
        step(update.get());
    }

  private:
    std::string summarise(sqlite3_stmt* statement, int category) {
        std::lock_guard lock(mutex_);
        std::string text;
        sqlite3_bind_int(statement, 1, category);
        if (sqlite3_step(statement) == SQLITE_ROW) {
            const void* bytes = sqlite3_column_blob(statement, 0);
            int size = sqlite3_column_bytes(statement, 0);
            if (bytes) text.assign(static_cast<const char*>(bytes), static_cast<std::size_t>(size));
        }
        sqlite3_reset(statement);
        return text;
    }

    void fill() {
        run("BEGIN");
        Statement category = prepare("INSERT INTO category VALUES (?1, ?2)");
        for (int id = 1; id <= categories; ++id) {
            sqlite3_bind_int(category.get(), 1, id);
            bind_name(category.get(), 2, "category " + std::to_string(id));
            step(category.get());
        }
        std::mt19937 random(7);
        Statement product = prepare("INSERT INTO product VALUES (?1, ?2, ?3, ?4, ?5)");
        for (int id = 1; id <= rows; ++id) {
            sqlite3_bind_int(product.get(), 1, id);
            sqlite3_bind_int(product.get(), 2, 1 + id % categories);
            bind_name(product.get(), 3, "product " + std::to_string(id));
            sqlite3_bind_int(product.get(), 4, static_cast<int>(99 + random() % 50'000));
            sqlite3_bind_int(product.get(), 5, static_cast<int>(random() % 40));
            step(product.get());
        }
        run("COMMIT");
    }

    [[noreturn]] void fail(const std::string& what) {
        throw std::runtime_error("SQLite could not " + what + ": " + sqlite3_errmsg(db_.get()));
    }

    void run(const char* sql) {
        if (sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail("run SQL");
    }

    Statement prepare(const char* sql) {
        sqlite3_stmt* statement = nullptr;
        if (sqlite3_prepare_v2(db_.get(), sql, -1, &statement, nullptr) != SQLITE_OK) {
            fail("prepare a statement");
        }
        return Statement(statement);
    }

    static void bind_name(sqlite3_stmt* statement, int column, const std::string& name) {
        sqlite3_bind_text(statement, column, name.data(), static_cast<int>(name.size()), SQLITE_TRANSIENT);
    }

    void step(sqlite3_stmt* statement) {
        if (sqlite3_step(statement) != SQLITE_DONE) fail("write");
        sqlite3_reset(statement);
    }

    std::mutex mutex_;
    std::unique_ptr<sqlite3, Freed> db_;
    Statement summary_;
    Statement peek_;
};

Catalogue::Catalogue() : folder_(make_folder()) {
    try {
        database_ = std::make_unique<Database>(folder_ / "catalogue.db");
    } catch (...) {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
        throw;
    }
}

Catalogue::~Catalogue() {
    database_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
}

std::string Catalogue::answer(int category) {
    return database_->answer(category);
}

std::uint64_t Catalogue::answered() const {
    return database_->answered();
}

std::string Catalogue::peek(int category) {
    return database_->peek(category);
}

void Catalogue::reprice(int category) {
    database_->reprice(category);
}

} // namespace stampede
