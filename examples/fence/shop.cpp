// SPDX-License-Identifier: MIT
#include "shop.hpp"

namespace fence {

using std::to_string;

void Shop::open(Database& database) {
    database.run("CREATE SCHEMA fence_example");
    database.run("CREATE TABLE item (id bigint PRIMARY KEY, units bigint NOT NULL, fence bigint NOT NULL DEFAULT 0)");
    database.run("CREATE TABLE sale (item bigint NOT NULL, units bigint NOT NULL, who text NOT NULL)");
    database.run("CREATE TABLE payment (key text PRIMARY KEY, amount bigint NOT NULL)");
    database.run("CREATE TABLE parcel (id bigint PRIMARY KEY, status text NOT NULL, who text)");
}

void Shop::shut(Database& database) {
    database.run("DROP SCHEMA fence_example CASCADE");
}

void Shop::fill(std::int64_t units) {
    database_.run("DELETE FROM sale");
    database_.run("DELETE FROM item");
    database_.run("INSERT INTO item (id, units) VALUES (1, $1)", {to_string(units)});
}

std::optional<std::int64_t> Shop::enter(std::int64_t fence) {
    const Rows rows = guarded_
                          ? database_.run("UPDATE item SET fence = $2 WHERE id = $1 AND fence <= $2 RETURNING units",
                                          {"1", to_string(fence)})
                          : database_.run("SELECT units FROM item WHERE id = $1", {"1"});
    if (rows.values.empty()) return std::nullopt;
    return std::stoll(rows.values[0][0]);
}

bool Shop::sell(std::int64_t fence, std::int64_t sold, std::int64_t left, const std::string& who) {
    const Rows rows = guarded_ ? database_.run("UPDATE item SET units = $2, fence = $3 WHERE id = $1 AND fence <= $3",
                                               {"1", to_string(left), to_string(fence)})
                               : database_.run("UPDATE item SET units = $2 WHERE id = $1", {"1", to_string(left)});
    if (rows.count == 0) return false;
    database_.run("INSERT INTO sale (item, units, who) VALUES ($1, $2, $3)", {"1", to_string(sold), who});
    return true;
}

std::int64_t Shop::units() {
    return database_.number("SELECT units FROM item WHERE id = 1");
}

std::int64_t Shop::sales(const std::string& who) {
    return database_.number("SELECT count(*) FROM sale WHERE who = $1", {who});
}

} // namespace fence
