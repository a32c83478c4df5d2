// SPDX-License-Identifier: MIT
#include "database.hpp"

namespace fence {
namespace {

struct Clear {
    void operator()(PGresult* result) const noexcept { PQclear(result); }
};

} // namespace

Database::Database(const std::string& conninfo) : connection_(PQconnectdb(conninfo.c_str())) {
    if (PQstatus(connection_.get()) != CONNECTION_OK) throw DatabaseError(PQerrorMessage(connection_.get()));
    run("SET client_min_messages = warning");
    run("SET search_path = fence_example");
}

Rows Database::run(const std::string& sql, const std::vector<std::string>& parameters) {
    std::vector<const char*> texts;
    for (const std::string& parameter : parameters) texts.push_back(parameter.c_str());
    std::unique_ptr<PGresult, Clear> result(PQexecParams(connection_.get(), sql.c_str(), static_cast<int>(texts.size()),
                                                         nullptr, texts.data(), nullptr, nullptr, 0));
    const ExecStatusType status = PQresultStatus(result.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        throw DatabaseError(PQerrorMessage(connection_.get()));
    }
    Rows rows;
    const std::string count = PQcmdTuples(result.get());
    rows.count = count.empty() ? 0 : std::stoll(count);
    for (int row = 0; row < PQntuples(result.get()); ++row) {
        rows.values.emplace_back();
        for (int column = 0; column < PQnfields(result.get()); ++column) {
            rows.values.back().emplace_back(PQgetvalue(result.get(), row, column));
        }
    }
    return rows;
}

std::int64_t Database::number(const std::string& sql, const std::vector<std::string>& parameters) {
    return std::stoll(run(sql, parameters).values.at(0).at(0));
}

Transaction::Transaction(Database& database) : database_(database) {
    database_.run("BEGIN");
}

Transaction::~Transaction() {
    if (!open_) return;
    try {
        database_.run("ROLLBACK");
    } catch (const DatabaseError&) {
        // the connection is gone, and the transaction with it
    }
}

void Transaction::commit() {
    open_ = false;
    database_.run("COMMIT");
}

} // namespace fence
