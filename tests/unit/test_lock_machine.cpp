// SPDX-License-Identifier: MIT
// The lock machine alone, in virtual time: its transition table, row by row.
#include <doctest/doctest.h>

#include <string>

#include "protocol/schedule.hpp"
#include "protocol/wake.hpp"
#include "support/lock_bench.hpp"

using namespace stn;
using namespace stn::test;

using state = lock_machine::state;

namespace {

lock_setup with(std::int64_t ttl_ms, bool renew = true, std::int64_t max_hold_ms = 0) {
    lock_setup s = lock_bench::usual();
    s.ttl_ms = ttl_ms;
    s.renew = renew;
    s.max_hold_ms = max_hold_ms;
    return s;
}

} // namespace

// --- taking it -----------------------------------------------------------------------------------

TEST_CASE("a free lock is granted by one command, with its fence, and counts from before the send") {
    lock_bench b;
    CHECK(b.start() == "acquire");
    CHECK(b.last_cmd.key == "stn:k:{report}");
    CHECK(b.last_cmd.args.at(1) == "30000");
    CHECK(b.last_cmd.args.at(2) == "me");
    b.now += 100;
    CHECK(b.granted(42) == "granted:42");
    CHECK(b.machine.at() == state::held);
    CHECK(b.machine.safe_until() == 5'000 + 30'000 - 302);
}

TEST_CASE("a lock of somebody else is asked for again, with a timer always armed, capped by what is left of it") {
    lock_bench b;
    b.start();
    CHECK(b.busy(20'000).empty());
    CHECK(b.machine.at() == state::waiting);
    CHECK(b.wakes_in() == 50); // 25..75
    CHECK(b.next_timer() == "acquire");
    CHECK(b.busy(8).empty());
    CHECK(b.wakes_in() == 14); // 8 + 1 + U(0, 10)
    for (int i = 0; i < 20; ++i) {
        CHECK(b.next_timer() == "acquire");
        CHECK(b.busy().empty());
        CHECK(b.wakes_in() <= 200);
    }
    CHECK(b.one_token());
}

TEST_CASE("a message that it was released is faster than the timer, and one timer is armed all the same") {
    lock_bench b;
    b.start();
    b.busy();
    CHECK(b.message() == "acquire");
    CHECK(b.busy().empty());
    CHECK(b.wakes_in() > 0);
    CHECK(b.wakes_in() <= 200);
}

TEST_CASE("who has seen as many releases as are believed in tries at once; a newcomer lets others go first") {
    lock_bench b;
    b.start();
    b.busy();
    for (int ahead = 2; ahead > 0; --ahead) {
        CHECK(b.message(3).empty());
        CHECK(b.wakes_in() == ahead * schedule::lock_step_ms);
        CHECK(b.next_timer() == "acquire"); // should they not be there
        CHECK(b.busy().empty());
    }
    CHECK(b.message(3) == "acquire");
    CHECK(b.machine.releases_seen() == 3);
    CHECK(b.machine.contended());
}

TEST_CASE("what the process has waited through before counts too, and is told with the release") {
    lock_setup s = lock_bench::usual();
    s.seen = 2;
    lock_bench b(s);
    b.start();
    b.busy();
    CHECK(b.message(3) == "acquire");
    CHECK(b.granted(7) == "granted:7");
    CHECK(b.release() == "release");
    CHECK(b.last_cmd.args.at(3) == released_tail("stn:k:{report}", 3));
}

TEST_CASE("a release that is heard of while an acquire is on its way is not missed: its answer may be from before") {
    lock_bench b;
    b.start();
    CHECK(b.message(1).empty());
    CHECK(b.busy() == "acquire");
    CHECK(b.message(4).empty());
    CHECK(b.busy().empty());
    CHECK(b.wakes_in() == 2 * schedule::lock_step_ms);
    CHECK(b.next_timer() == "acquire");
    CHECK(b.busy().empty());
    CHECK(b.wakes_in() >= 25); // nothing was heard since
}

TEST_CASE("a short wait is not spent on letting others go first") {
    lock_bench b;
    b.start(40);
    b.busy();
    CHECK(b.message(100).empty());
    CHECK(b.wakes_in() == 20);
}

TEST_CASE("without anybody else nothing is contended") {
    lock_bench b;
    b.hold();
    CHECK(!b.machine.contended());
    CHECK(b.message().empty());
    CHECK(b.machine.releases_seen() == 0);
}

TEST_CASE("the wait ends by its deadline: busy, and nothing is left to do when every answer has come") {
    lock_bench b;
    b.start(100);
    b.busy();
    CHECK(b.next_timer() == "acquire");
    b.busy();
    CHECK(b.pass(50) == "failed:busy done");
    CHECK(b.now == 5'100);
    CHECK(b.machine.at() == state::released);
}

TEST_CASE("a poll whose answer would come after the deadline is not sent") {
    lock_bench b;
    b.start(60);
    b.busy();
    CHECK(b.wakes_in() == 50);
    CHECK(b.pass(50).empty());
    CHECK(b.next_timer() == "failed:busy done");
}

TEST_CASE("a try asks once") {
    lock_bench b;
    CHECK(b.try_it() == "acquire");
    CHECK(b.busy() == "failed:busy done");
    lock_bench free;
    free.try_it();
    CHECK(free.granted() == "granted:7");
}

TEST_CASE("a lost reply is resolved by asking again with the same token") {
    lock_bench b;
    b.start();
    CHECK(b.lost() == "acquire");
    CHECK(b.granted() == "granted:7");
    lock_bench silent;
    silent.start();
    CHECK(silent.pass(250) == "acquire");
    CHECK(silent.one_token());
    CHECK(silent.granted() == "granted:7");
    CHECK(silent.machine.safe_until() == 5'250 + 30'000 - 302);
}

TEST_CASE("the late reply of an earlier copy grants too, counted from when that copy was sent") {
    lock_bench b;
    b.start();
    const auto first = b.last_id;
    CHECK(b.pass(250) == "acquire");
    CHECK(b.reply_to(first, delivery::answered, lock_bench::pair(1, 9)) == "granted:9");
    CHECK(b.machine.safe_until() == 5'000 + 30'000 - 302);
    CHECK(b.granted(9).empty()); // the copy's own reply
}

TEST_CASE("one more copy that finds another fence, or another's lock, tells that what was granted was taken away") {
    struct row {
        reply says;
        std::string told;
    };
    const row rows[] = {{lock_bench::pair(1, 9), ""},
                        {lock_bench::pair(1, 10), "lost:deleted release"},
                        {lock_bench::pair(0, 500), "lost:stolen done"}};
    for (const row& r : rows) {
        CAPTURE(r.told);
        lock_bench b;
        b.start();
        const auto first = b.last_id;
        CHECK(b.pass(250) == "acquire");
        const auto second = b.last_id;
        CHECK(b.reply_to(first, delivery::answered, lock_bench::pair(1, 9)) == "granted:9");
        CHECK(b.reply_to(second, delivery::answered, r.says) == r.told);
        CHECK(b.held() == r.told.empty());
    }
}

TEST_CASE("one more copy that is lost or refused says nothing of what was granted") {
    for (const auto how : {delivery::lost, delivery::not_sent, delivery::answered}) {
        lock_bench b;
        b.start();
        const auto first = b.last_id;
        b.pass(250);
        const auto second = b.last_id;
        b.reply_to(first, delivery::answered, lock_bench::pair(1, 9));
        CHECK(b.reply_to(second, how, reply::of_error("NOSCRIPT No matching script.")).empty());
        CHECK(b.held());
    }
}

TEST_CASE("an acquire that nobody answers is uncertain at the deadline, and a release follows on its heels") {
    lock_bench b;
    b.start(1'000);
    CHECK(b.pass(999) == "acquire acquire acquire");
    const auto last = b.last_id;
    CHECK(b.pass(1) == "failed:uncertain release");
    CHECK(b.last_why.may_have_applied);
    CHECK(b.machine.at() == state::uncertain);
    CHECK(b.one_token());
    CHECK(b.reply_to(last, delivery::answered, lock_bench::pair(1, 9)).empty()); // a late grant is not used
    CHECK(b.number(1) == "done");
}

TEST_CASE("a cancelled acquire is followed by its release, sent again until it is answered") {
    lock_bench b;
    b.start();
    CHECK(b.give_up() == "failed:cancelled release");
    CHECK(b.lost().empty());
    CHECK(b.next_timer() == "release"); // on the connection that is there now
    CHECK(b.not_sent().empty());
    CHECK(b.feed(lock_input::kind::connected) == "release");
    CHECK(b.number(0) == "done");
    CHECK(b.one_token());
}

TEST_CASE("what is given up while nothing is on its way needs no command") {
    lock_bench b;
    b.start();
    b.busy();
    CHECK(b.give_up() == "failed:cancelled done");
    lock_bench idle;
    CHECK(idle.give_up(status::busy) == "failed:busy done");
}

TEST_CASE("an acquire whose answer never came is cleaned up even if a later one said busy") {
    lock_bench b;
    b.start();
    b.lost();
    b.busy();
    CHECK(b.give_up() == "failed:cancelled release");
    CHECK(b.number(-1) == "done");
}

TEST_CASE("cleaning up ends with the ttl, answered or not") {
    lock_bench b(with(1'000));
    b.start();
    b.give_up();
    const std::string said = b.pass(2'000);
    CHECK(said.ends_with(" done"));
    CHECK(b.machine.wake_at() == forever_ms);
}

TEST_CASE("a grant that comes when the lock may have run out again is no grant: it is asked for again") {
    lock_bench b(with(1'000));
    b.start();
    b.sleep(990);
    CHECK(b.granted() == "acquire");
    CHECK(b.granted() == "granted:7");
    CHECK(b.held());
}

TEST_CASE("a store that cannot serve now is asked again until the deadline, and is never taken for a holder") {
    for (const char* text :
         {"LOADING Redis is loading the dataset in memory", "BUSY Redis is busy running a script.",
          "READONLY You can't write against a read only replica.", "CLUSTERDOWN The cluster is down",
          "MISCONF Redis is configured to save RDB snapshots", "NOREPLICAS Not enough good replicas"}) {
        lock_bench b;
        b.start(5'000);
        CHECK(b.said_no(text).empty());
        CHECK(b.machine.at() == state::waiting);
        CHECK(b.next_timer() == "acquire");
        CHECK(b.granted() == "granted:7");
        lock_bench hopeless;
        hopeless.start(100);
        hopeless.said_no(text);
        std::string said;
        while (!said.starts_with("failed")) {
            said = hopeless.next_timer();
            if (said == "acquire") hopeless.said_no(text);
        }
        CHECK_MESSAGE(said == "failed:unavailable done", text);
        CHECK(hopeless.now == 5'100);
    }
}

TEST_CASE("a store that is full says unavailable at once, not busy") {
    lock_bench b;
    b.start();
    CHECK(b.said_no("OOM command not allowed when used memory > 'maxmemory'.") == "failed:unavailable done");
}

TEST_CASE("a key of another type is a collision, a missing right is denied: at once") {
    lock_bench b;
    b.start();
    CHECK(b.said_no("WRONGTYPE Operation against a key holding the wrong kind of value") == "failed:collision done");
    lock_bench denied;
    denied.start();
    CHECK(denied.said_no("NOPERM this user has no permissions") == "failed:denied done");
    lock_bench twice;
    twice.start();
    CHECK(twice.said_no("NOAUTH Authentication required.").empty());
    CHECK(twice.next_timer() == "acquire");
    CHECK(twice.said_no("NOAUTH Authentication required.") == "failed:denied done");
}

TEST_CASE("a store that cannot be reached is unavailable at the deadline, and nothing is cleaned up") {
    lock_bench b;
    b.start(30);
    CHECK(b.not_sent().empty());
    std::string said;
    while (!said.starts_with("failed")) {
        said = b.next_timer();
        if (said == "acquire") b.not_sent();
    }
    CHECK(said == "failed:unavailable done");
    CHECK(b.now == 5'030);
}

TEST_CASE("as soon as the connection stands, who waits asks") {
    lock_bench b;
    b.start();
    b.not_sent();
    CHECK(b.feed(lock_input::kind::connected) == "acquire");
    CHECK(b.feed(lock_input::kind::connected).empty());
}

TEST_CASE("a lock without a TTL is busy with its own reason, is told once, and is polled at the normal step") {
    lock_bench b;
    b.start(300);
    CHECK(b.busy(-1) == "no_ttl");
    CHECK(b.wakes_in() == 50);
    CHECK(b.next_timer() == "acquire");
    CHECK(b.busy(-1).empty());
    b.feed(lock_input::kind::timer);
    std::string said;
    while (!said.starts_with("failed")) {
        said = b.next_timer();
        if (said == "acquire") b.busy(-1);
    }
    CHECK(said == "failed:busy:no_ttl done");
}

TEST_CASE("courtesy: a start with a pause asks after it") {
    lock_bench b;
    lock_input in;
    in.at = b.now + 3;
    in.until = b.now + 1'000;
    CHECK(b.feed(std::move(in)).empty());
    CHECK(b.wakes_in() == 3);
    CHECK(b.next_timer() == "acquire");
}

// --- keeping it ----------------------------------------------------------------------------------

TEST_CASE("it is renewed after a third of its ttl at the latest, again and again") {
    lock_bench b;
    b.hold();
    for (int i = 0; i < 5; ++i) {
        CHECK(b.wakes_in() >= 7'500);
        CHECK(b.wakes_in() <= 10'000);
        CHECK(b.next_timer() == "renew");
        CHECK(b.machine.at() == state::renewing);
        CHECK(b.last_cmd.args.at(1) == "30000");
        const mono_ms sent = b.now;
        b.now += 40;
        CHECK(b.number(1).empty());
        CHECK(b.machine.safe_until() == sent + 30'000 - 302);
    }
    CHECK(b.one_token());
}

TEST_CASE("renewal is spread: what was taken together is not renewed together") {
    lock_bench a;
    lock_bench b;
    a.hold();
    b.chance.always = 1.0;
    b.hold();
    CHECK(a.wakes_in() != b.wakes_in());
}

TEST_CASE("whatever is no answer is unknown, not lost: renewal goes on every ttl/12 until the lock ends") {
    for (const char* text :
         {"LOADING Redis is loading the dataset in memory", "BUSY Redis is busy running a script.",
          "READONLY You can't write against a read only replica.", "CLUSTERDOWN The cluster is down",
          "MISCONF Redis is configured to save RDB snapshots", "NOPERM this user has no permissions", "ERR whatever"}) {
        lock_bench b;
        b.hold();
        CHECK(b.next_timer() == "renew");
        CHECK(b.said_no(text).empty());
        CHECK(b.machine.at() == state::held);
        CHECK(b.wakes_in() == 2'500);
        CHECK(b.next_timer() == "renew");
        CHECK(b.number(1).empty());
        CHECK(b.held());
    }
}

TEST_CASE("renewals that are never answered: tried again to the end, and lost as expired then, once") {
    lock_bench b;
    b.hold();
    const std::string said = b.pass(29'697);
    CHECK(said == "renew renew renew renew renew renew renew renew");
    CHECK(b.held());
    CHECK(b.pass(1) == "lost:expired release");
    CHECK(!b.held());
    CHECK(b.machine.at() == state::lost);
    CHECK(b.number(0) == "done");
    CHECK(b.pass(60'000).empty());
}

TEST_CASE("the late reply of an earlier renewal counts from when that one was sent") {
    lock_bench b;
    b.hold();
    b.next_timer();
    const auto first = b.last_id;
    const mono_ms sent = b.now;
    CHECK(b.pass(250).empty()); // given up on
    CHECK(b.next_timer() == "renew");
    CHECK(b.reply_to(first, delivery::answered, reply::of_integer(1)).empty());
    CHECK(b.machine.safe_until() == sent + 30'000 - 302);
    CHECK(b.machine.at() == state::renewing);
}

TEST_CASE("a renewal that finds nothing means deleted, one that finds another means stolen: lost at once, for good") {
    lock_bench b;
    b.hold();
    b.next_timer();
    CHECK(b.number(0) == "lost:deleted release");
    CHECK(b.number(0) == "done");
    CHECK(!b.held());
    lock_bench stolen;
    stolen.hold();
    stolen.next_timer();
    CHECK(stolen.number(-1) == "lost:stolen done"); // nothing of ours is there to be released
    CHECK(stolen.release().empty());
    CHECK(stolen.pass(60'000).empty());
}

TEST_CASE("a process that slept past its lock has lost it, whatever answer was waiting for it") {
    lock_bench b;
    b.hold();
    b.next_timer();
    b.sleep(25'000);
    CHECK(b.number(1) == "lost:expired release");
    CHECK(!b.held());
}

TEST_CASE("without renewal it ends with its ttl, and that is told") {
    lock_bench b(with(1'000, false));
    b.hold();
    CHECK(b.pass(987).empty());
    CHECK(b.pass(1) == "lost:expired release");
}

TEST_CASE("at max_hold it is lost with that reason, released, and not renewed any more") {
    lock_bench b(with(30'000, true, 12'000));
    b.hold();
    CHECK(b.pass(11'000) == "renew");
    b.number(1);
    CHECK(b.pass(1'000) == "lost:max_hold release");
    CHECK(b.number(1) == "done");
    CHECK(b.pass(60'000).empty());
}

TEST_CASE("a short lock is renewed several times before it ends, although commands may take long") {
    lock_bench b(with(300));
    b.hold();
    const std::string said = b.pass(294);
    CHECK(said == "renew renew renew");
}

TEST_CASE("renewing now: the same ttl, and an answer of three values") {
    lock_bench b;
    b.hold();
    CHECK(b.renew() == "renew");
    CHECK(b.last_cmd.args.at(1) == "30000");
    CHECK(b.number(1) == "renewed:ok");
    CHECK(b.renew() == "renew");
    CHECK(b.pass(1'000) == "renewed:uncertain");
    CHECK(b.held());
    CHECK(b.number(1).empty());
    CHECK(b.renew() == "renew");
    CHECK(b.number(0) == "lost:deleted renewed:lost release");
    lock_bench stolen;
    stolen.hold();
    stolen.renew();
    CHECK(stolen.number(-1) == "lost:stolen renewed:not_mine done");
}

TEST_CASE("renewing now a lock without renewal keeps it for one more ttl, and does not begin to renew it") {
    lock_bench b(with(1'000, false));
    b.hold();
    b.pass(500);
    CHECK(b.renew() == "renew");
    CHECK(b.number(1) == "renewed:ok");
    CHECK(b.pass(987).empty());
    CHECK(b.pass(1) == "lost:expired release");
    lock_bench silent(with(1'000, false));
    silent.hold();
    CHECK(silent.renew(50) == "renew");
    CHECK(silent.pass(50) == "renewed:uncertain");
    CHECK(silent.pass(937).empty());
    CHECK(silent.next_timer() == "lost:expired release");
}

// --- giving it back ------------------------------------------------------------------------------

TEST_CASE("release stops the watchdog first, and is held no longer from that moment on") {
    lock_bench b;
    b.hold();
    b.next_timer(); // a renewal is on its way
    CHECK(b.release() == "release");
    CHECK(!b.held());
    CHECK(b.last_cmd.args.at(2) == "stn:w:1");
    CHECK(b.number(1) == "released:ok done");
    CHECK(b.pass(60'000).empty());
    CHECK(b.one_token());
}

TEST_CASE("a release that finds nothing, or another's lock, says so") {
    lock_bench b;
    b.hold();
    b.release();
    CHECK(b.number(0) == "released:lost done");
    lock_bench other;
    other.hold();
    other.release();
    CHECK(other.number(-1) == "released:not_mine done");
}

TEST_CASE("a resent release that finds nothing, or another's lock, is uncertain, not 'not mine'") {
    for (const int found : {0, -1}) {
        lock_bench b;
        b.hold();
        b.release();
        CHECK(b.pass(250) == "release");
        CHECK(b.number(found) == "released:uncertain done");
        lock_bench cut;
        cut.hold();
        cut.release();
        CHECK(cut.lost().empty());
        CHECK(cut.next_timer() == "release");
        CHECK(cut.number(found) == "released:uncertain done");
    }
    lock_bench b;
    b.hold();
    b.release();
    b.pass(250);
    CHECK(b.number(1) == "released:ok done");
}

TEST_CASE("the late answer of the first release is as good as that of the second") {
    lock_bench b;
    b.hold();
    b.release();
    const auto first = b.last_id;
    b.pass(250);
    CHECK(b.reply_to(first, delivery::answered, reply::of_integer(1)) == "released:ok done");
}

TEST_CASE("a release that was not sent is no copy: what the next one finds is certain") {
    lock_bench b;
    b.hold();
    b.release();
    CHECK(b.not_sent().empty());
    CHECK(b.next_timer() == "release");
    CHECK(b.number(0) == "released:lost done");
}

TEST_CASE("a release that nobody answers is uncertain at its deadline, and is tried on until the ttl is over") {
    lock_bench b(with(2'000));
    b.hold();
    b.release(400);
    CHECK(b.pass(400) == "release released:uncertain");
    CHECK(b.last_why.may_have_applied);
    CHECK(b.machine.at() == state::uncertain);
    const std::string said = b.pass(3'000);
    CHECK(said.starts_with("release "));
    CHECK(said.ends_with(" done"));
    lock_bench unsent;
    unsent.hold();
    unsent.release(30);
    std::string last;
    for (unsent.not_sent(); !last.starts_with("released"); last = unsent.next_timer()) {
        if (last == "release") unsent.not_sent();
    }
    CHECK(last == "released:unavailable");
}

TEST_CASE("a store that cannot release now is asked again; one that forbids it ends it") {
    lock_bench b;
    b.hold();
    b.release();
    CHECK(b.said_no("LOADING Redis is loading the dataset in memory").empty());
    CHECK(b.next_timer() == "release");
    CHECK(b.number(1) == "released:ok done");
    lock_bench denied;
    denied.hold();
    denied.release();
    CHECK(denied.said_no("NOPERM this user has no permissions") == "released:denied done");
}

TEST_CASE("left alone, the key lives out its ttl: nothing is sent any more") {
    lock_bench b;
    b.hold();
    CHECK(b.feed(lock_input::kind::leave) == "done");
    CHECK(!b.held());
    CHECK(b.pass(60'000).empty());
}

TEST_CASE("closing: what is held is lost with that reason and released; what waits ends") {
    lock_bench b;
    b.hold();
    CHECK(b.feed(lock_input::kind::closing) == "lost:closed release");
    CHECK(b.number(1) == "done");
    lock_bench waits;
    waits.start();
    waits.busy();
    CHECK(waits.feed(lock_input::kind::closing) == "failed:closed done");
    lock_bench asks;
    asks.start();
    CHECK(asks.feed(lock_input::kind::closing) == "failed:closed release");
    lock_bench releases;
    releases.hold();
    releases.release();
    CHECK(releases.feed(lock_input::kind::closing).empty());
    CHECK(releases.number(1) == "released:ok done");
}

// --- all of it -----------------------------------------------------------------------------------

TEST_CASE("whatever point it is cancelled or closed at, the lock ends in nobody's hands, told once, with one token") {
    using k = lock_input::kind;
    for (const k end : {k::give_up, k::closing, k::release}) {
        for (int point = 0; point < 9; ++point) {
            lock_bench b;
            std::string all;
            const auto add = [&](const std::string& s) { all += s + " "; };
            if (point > 0) add(b.start());
            if (point == 2) add(b.busy());
            if (point == 3) add(b.lost());
            if (point == 4) add(b.not_sent());
            if (point == 5) add(b.said_no("LOADING x"));
            if (point > 5) add(b.granted());
            if (point > 6) add(b.next_timer());
            if (point == 8) add(b.number(0));
            add(end == k::release ? b.release() : end == k::give_up ? b.give_up() : b.feed(k::closing));
            for (int i = 0; i < 400 && b.machine.wake_at() != forever_ms; ++i) {
                if (b.machine.wake_at() > b.now) add(b.next_timer());
                if (!b.held()) add(b.number(0));
            }
            const auto times = [&](const std::string& what) {
                int n = 0;
                for (auto at = all.find(what); at != std::string::npos; at = all.find(what, at + 1)) ++n;
                return n;
            };
            CHECK_MESSAGE(b.one_token(), all);
            CHECK_MESSAGE(times("failed:") + times("lost:") + times("released:") <= 1, all);
            CHECK_MESSAGE(times("done") <= 1, all);
            const bool may_stand = b.machine.at() != state::idle && end != k::give_up;
            if (may_stand && end == k::closing) CHECK_MESSAGE(times("done") == 1, all);
        }
    }
}

TEST_CASE("only what is still wanted is worth sending again after NOSCRIPT") {
    lock_bench b;
    b.start();
    const auto acquire = b.last_id;
    CHECK(b.machine.awaits(acquire));
    b.give_up();
    CHECK(!b.machine.awaits(acquire));
    CHECK(b.machine.awaits(b.last_id)); // the release
    lock_bench held;
    held.hold();
    held.next_timer();
    CHECK(held.machine.awaits(held.last_id));
}
