// SPDX-License-Identifier: MIT
#include <atomic>
#include <barrier>
#include <functional>
#include <thread>
#include <vector>

#include "database.hpp"
#include "scenes.hpp"

namespace fence {
namespace {

constexpr int crowd = 8;

// Lets all do it at one moment, each on a connection of its own; how many were told that they did it?
std::int64_t all_at_once(const Places& places, const std::function<std::int64_t(Database&, int)>& change) {
    std::atomic<std::int64_t> changed{0};
    std::atomic<bool> failed{false};
    std::barrier begin(crowd);
    std::vector<std::thread> threads;
    for (int who = 0; who < crowd; ++who) {
        threads.emplace_back([&, who] {
            std::unique_ptr<Database> database;
            try {
                database = std::make_unique<Database>(places.database);
            } catch (const std::exception&) {
                failed = true;
            }
            begin.arrive_and_wait();
            try {
                if (database) changed += change(*database, who);
            } catch (const std::exception&) {
                failed = true;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    if (failed) throw DatabaseError("one of " + std::to_string(crowd) + " connections failed");
    return changed;
}

} // namespace

void unique_key(const Places& places, Report& report) {
    report.scene("No lock: a unique key, and " + std::to_string(crowd) + " who want to pay the same order");
    const std::string key = "order 7'); DROP TABLE payment; --"; // a parameter is data, whatever it holds
    const char* pay = "INSERT INTO payment (key, amount) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING";
    const std::int64_t paid =
        all_at_once(places, [&](Database& database, int) { return database.run(pay, {key, "1250"}).count; });
    Database database(places.database);
    report.promise(paid == 1, std::to_string(paid) + " of them paid");
    report.promise(database.run(pay, {key, "1250"}).count == 0, "nor does it pay who tries again later");
    report.promise(database.number("SELECT sum(amount) FROM payment WHERE key = $1", {key}) == 1'250,
                   "one payment is in the table");
}

void status_new(const Places& places, Report& report) {
    report.scene("No lock: a status, and " + std::to_string(crowd) + " who want to send the same parcel");
    Database database(places.database);
    database.run("INSERT INTO parcel (id, status) VALUES (7, 'new')");
    const char* send = "UPDATE parcel SET status = 'sent', who = $2 WHERE id = $1 AND status = 'new'";
    const std::int64_t sent =
        all_at_once(places, [&](Database& own, int who) { return own.run(send, {"7", std::to_string(who)}).count; });
    report.promise(sent == 1, std::to_string(sent) + " of them sent it");
    report.promise(database.run(send, {"7", "late"}).count == 0, "nor does it who comes later");
    report.promise(database.number("SELECT count(*) FROM parcel WHERE status = 'sent' AND who <> 'late'") == 1,
                   "one parcel was sent");
}

} // namespace fence
