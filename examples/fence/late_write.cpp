// SPDX-License-Identifier: MIT
#include <thread>

#include "database.hpp"
#include "scenes.hpp"
#include "shop.hpp"

namespace fence {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using std::to_string;

// Until a statement of somebody else waits for what our transaction has written; 5 s at most.
bool somebody_waits(const Places& places) {
    Database look(places.database);
    for (int i = 0; i < 500; ++i) {
        const char* waiting =
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
        if (look.number(waiting) > 0) return true;
        std::this_thread::sleep_for(10ms);
    }
    return false;
}

} // namespace

void late_write(const Places& places, Report& report) {
    report.scene(places.guarded ? "A holder stands still, and the table knows fences"
                                : "A holder stands still, and the table knows nothing of fences");
    const stanchion::client store = open_store(places);
    Database database(places.database);
    Shop shop(database, places.guarded);
    shop.fill(10);

    Holder a(places);
    const json held = a.hear();
    report.tell("A", "holds the lock, fence " + to_string(held.at("fence").get<std::int64_t>()) + "; finds " +
                         to_string(held.at("found").get<std::int64_t>()) + " units and is about to sell 1");
    a.wait_until_paused();
    report.tell("A", "stands still: the whole process, by SIGSTOP");

    const stanchion::lock mine(store, lock_name, {.ttl = 5s, .wait = 20s});
    report.tell("B", "gets the lock, fence " + to_string(mine.fence()));
    Transaction transaction(database);
    const std::int64_t found = shop.enter(mine.fence()).value();
    const bool sold = shop.sell(mine.fence(), 3, found - 3, "B");
    report.tell("B", "finds " + to_string(found) + " units, sells 3, writes that " + to_string(found - 3) +
                         " are left" + (places.guarded ? ", and has not committed yet" : ""));
    if (places.guarded) {
        a.go_on();
        const bool waits = somebody_waits(places);
        report.tell("A",
                    std::string("goes on, and writes that 9 are left") + (waits ? "; the database lets it wait" : ""));
        transaction.commit();
        report.tell("B", "commits");
    } else {
        transaction.commit();
        a.go_on();
        report.tell("A", "goes on, and writes that 9 are left");
    }
    const json late = a.hear();
    const bool accepted = late.at("sold");
    report.tell("A", std::string("its write was ") + (accepted ? "accepted" : "refused") + "; held() says " +
                         (late.at("held").get<bool>() ? "yes" : "no") +
                         ", the lock was lost: " + late.at("loss").get<std::string>());
    const std::int64_t units = shop.units();
    const std::int64_t sales_of_a = shop.sales("A");
    report.tell(" ", "the table says: " + to_string(units) + " units");
    const bool held_throughout = mine.held();
    if (!accepted) {
        mine.release();
        const json again = a.hear();
        report.tell("A", "begins again under a new lock: finds " + to_string(again.at("found").get<std::int64_t>()) +
                             " units, sells 1");
    }

    report.promise(mine.fence() > held.at("fence").get<std::int64_t>(), "B's fence is larger than A's");
    report.promise(!late.at("held").get<bool>(), "A's held() says no as soon as it goes on");
    report.promise(sold && held_throughout, "B held the lock all the time");
    if (!places.guarded) {
        report.promise(accepted && units == 9, "and yet A's late write went through: the 3 units that B sold are back");
        return;
    }
    report.promise(!accepted && sales_of_a == 0, "A's late write was refused, with all of its transaction");
    report.promise(units == 7 && shop.sales("B") == 1, "what B wrote stays");
    report.promise(shop.units() == 6 && shop.sales("A") == 1,
                   "whoever was refused may begin again: 6 units, both sales");
}

} // namespace fence
