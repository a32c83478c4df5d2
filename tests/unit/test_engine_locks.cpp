// SPDX-License-Identifier: MIT
// Locks of one process and of several: the line, hand-overs, losses, close.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "protocol/lock_value.hpp"
#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

namespace {

lock_policy usual(std::int64_t ttl_ms = 30'000, std::int64_t wait_ms = 10'000) {
    lock_policy p;
    p.ttl_ms = ttl_ms;
    p.wait_ms = wait_ms;
    return p;
}

} // namespace

TEST_CASE("an uncontended lock takes two commands, and tells what it is") {
    world w(1);
    lock_policy p = usual();
    p.label = "worker 7";
    call& c = w.at(0).acquire("report", p);
    REQUIRE(c.kind() == event_kind::lock);
    auto lock = c.take_lock();
    CHECK(lock->held());
    CHECK(lock->remaining_ms() == 30'000 - 302);
    CHECK(lock->fence() > 0);
    const auto there = read_lock_value(w.server->peek(w.lock_key("report")).value());
    REQUIRE(there);
    CHECK(there->holder == lock->mine());
    CHECK(there->fence == lock->fence());
    CHECK(there->label == "worker 7");
    call& back = w.at(0).release(*lock);
    CHECK(back.kind() == event_kind::done);
    CHECK(!lock->held());
    CHECK(lock->remaining_ms() == 0);
    CHECK(w.server->peek(w.lock_key("report")) == std::nullopt);
    CHECK(w.link(0).log().size() == 2);
    CHECK(w.total(stat::locks) == 1);
    CHECK(c.losses().empty());
}

TEST_CASE("another process waits, and gets it as soon as it is released, by the message") {
    world w(2);
    auto first = w.at(0).acquire("report", usual()).take_lock();
    call& c = w.at(1).acquire("report", usual());
    CHECK(!c.ended());
    w.advance(1'000);
    CHECK(!c.ended());
    const mono_ms at = w.now();
    w.at(0).release(*first);
    w.advance(1);
    REQUIRE(c.kind() == event_kind::lock);
    CHECK(w.now() - at <= 1);
    auto second = c.take_lock();
    CHECK(second->fence() > first->fence());
}

TEST_CASE("a message that is lost costs a poll, not the wait: a timer is always armed") {
    world w(2);
    auto first = w.at(0).acquire("report", usual()).take_lock();
    call& c = w.at(1).acquire("report", usual());
    w.server->refuse_publish(true);
    w.at(0).release(*first);
    w.advance(200);
    CHECK(c.kind() == event_kind::lock);
}

TEST_CASE("the wait is over: busy; a try is busy at once") {
    world w(2);
    auto first = w.at(0).acquire("report", usual()).take_lock();
    call& c = w.at(1).acquire("report", usual(30'000, 300));
    CHECK(w.at(1, "other").acquire("report", usual(30'000, 0)).code() == status::busy);
    w.advance(299);
    CHECK(!c.ended());
    w.advance(1);
    CHECK(c.code() == status::busy);
    CHECK(c.took_ms() == 300);
    call& tried = w.at(1).acquire("report", usual(30'000, 0));
    CHECK(tried.code() == status::busy);
    CHECK(tried.took_ms() == 0);
    CHECK(w.total(stat::locks_busy) == 3);
}

TEST_CASE("waiters of one process are served first come first served, and only the first asks the store") {
    world w(1);
    auto held = w.at(0).acquire("report", usual()).take_lock();
    std::vector<call*> waiting;
    for (int i = 0; i < 5; ++i) waiting.push_back(&w.at(0, "h" + std::to_string(i)).acquire("report", usual()));
    w.link(0).clear_log();
    w.advance(1'000);
    CHECK(w.link(0).count(script_id::acquire) == 0);
    for (int i = 0; i < 5; ++i) {
        w.at(0).release(*held);
        for (int k = 0; k < 5; ++k) CHECK(waiting[static_cast<std::size_t>(k)]->ended() == (k <= i));
        held = waiting[static_cast<std::size_t>(i)]->take_lock();
    }
    CHECK(w.link(0).count(script_id::acquire) == 5);
    CHECK(w.link(0).count(script_id::release) == 5);
}

TEST_CASE("a hand-over inside the process is one round trip: the release, and the acquire behind it") {
    world w(1);
    auto held = w.at(0).acquire("report", usual()).take_lock();
    call& next = w.at(0, "b").acquire("report", usual());
    w.link(0).clear_log();
    w.link(0).hold();
    w.at(0).release(*held);
    REQUIRE(w.link(0).log().size() == 2);
    CHECK(w.link(0).log()[0].cmd.script == script_id::release);
    CHECK(w.link(0).log()[1].cmd.script == script_id::acquire);
    CHECK(!next.ended());
    w.link(0).let_go();
    w.settle();
    CHECK(next.kind() == event_kind::lock);
}

TEST_CASE("a head that gives up is followed by its release first, then by the next head's acquire") {
    world w(1);
    w.link(0).hold();
    call& first = w.at(0).acquire("report", usual());
    call& second = w.at(0, "b").acquire("report", usual());
    w.at(0).cancel(first);
    const auto& log = w.link(0).log();
    REQUIRE(log.size() == 3);
    CHECK(log[0].cmd.script == script_id::acquire);
    CHECK(log[1].cmd.script == script_id::release);
    CHECK(log[2].cmd.script == script_id::acquire);
    CHECK(log[0].cmd.args[0] == log[1].cmd.args[0]);
    CHECK(log[2].cmd.args[0] != log[0].cmd.args[0]);
    w.link(0).let_go();
    w.settle();
    CHECK(first.code() == status::cancelled);
    CHECK(second.kind() == event_kind::lock);
}

TEST_CASE("a try while somebody of this process holds it, or waits for it, is busy at once and sends nothing") {
    world w(2);
    auto other = w.at(1).acquire("report", usual()).take_lock();
    call& waits = w.at(0).acquire("report", usual());
    w.link(0).clear_log();
    CHECK(w.at(0, "b").acquire("report", usual(30'000, 0)).code() == status::busy);
    CHECK(w.link(0).log().empty());
    w.at(1).release(*other);
    w.advance(1);
    REQUIRE(waits.kind() == event_kind::lock);
    w.link(0).clear_log();
    CHECK(w.at(0, "b").acquire("report", usual(30'000, 0)).code() == status::busy);
    CHECK(w.link(0).log().empty());
}

TEST_CASE("after eight hand-overs inside a process another process has its turn") {
    world w(2);
    auto held = w.at(0).acquire("report", usual()).take_lock();
    std::vector<call*> line;
    for (int i = 0; i < 20; ++i) line.push_back(&w.at(0, "h" + std::to_string(i)).acquire("report", usual()));
    call& other = w.at(1).acquire("report", usual());
    int before = 0;
    for (; before < 20 && !other.ended(); ++before) {
        w.at(0).release(*held);
        w.advance(2); // what the message of the other takes
        if (other.ended()) break;
        REQUIRE(line[static_cast<std::size_t>(before)]->ended());
        held = line[static_cast<std::size_t>(before)]->take_lock();
    }
    CHECK(other.ended());
    CHECK(before <= 8);
}

namespace {

// Processes that take the lock, hold it for a millisecond and come back at once.
class crowd {
  public:
    crowd(world& w, int processes) : w_(w), all_(static_cast<std::size_t>(processes)) {}

    // Gives who held it, in order. In the end nobody does, and nobody waits.
    std::vector<int> go(int grants) {
        std::vector<int> order;
        for (bool first = true; first || busy(); first = false) {
            const bool more = static_cast<int>(order.size()) < grants;
            for (int i = 0; i < static_cast<int>(all_.size()); ++i) {
                one& o = all_[static_cast<std::size_t>(i)];
                if (o.lock && w_.now() >= o.until) {
                    w_.at(i).release(*o.lock);
                    o.lock.reset();
                }
                if (!o.lock && o.asked == nullptr && more) o.asked = &w_.at(i).acquire("report", usual());
                if (o.asked != nullptr && o.asked->ended()) {
                    o.lock = std::exchange(o.asked, nullptr)->take_lock();
                    o.until = w_.now() + 1;
                    order.push_back(i);
                }
            }
            w_.advance(1);
        }
        return order;
    }

  private:
    struct one {
        call* asked = nullptr;
        std::shared_ptr<held_lock> lock;
        mono_ms until = 0;
    };
    [[nodiscard]] bool busy() const {
        return std::ranges::any_of(all_, [](const one& o) { return o.lock || o.asked != nullptr; });
    }
    world& w_;
    std::vector<one> all_;
};

} // namespace

TEST_CASE("processes that come back at once take turns, though nobody keeps a list") {
    for (const int processes : {2, 3, 8}) {
        CAPTURE(processes);
        world w(processes);
        const auto order = crowd(w, processes).go(400);
        for (auto at = order.begin() + 200; at + processes <= order.end() - processes; ++at) {
            REQUIRE(std::set<int>(at, at + processes).size() == static_cast<std::size_t>(processes));
        }
    }
}

TEST_CASE("who is alone again lets nobody go first for long") {
    world w(8);
    static_cast<void>(crowd(w, 8).go(100));
    const mono_ms began = w.now();
    static_cast<void>(crowd(w, 1).go(50));
    CHECK(w.now() - began < 50 * 5);
    call& c = w.at(0).acquire("report", usual());
    CHECK(c.kind() == event_kind::lock);
    CHECK(c.took_ms() == 0);
}

TEST_CASE("those who wait are bounded: one more is told overloaded") {
    client_settings s;
    s.max_waiters = 3;
    world w(1, {.ttl_ms = 60'000}, s);
    auto held = w.at(0).acquire("report", usual()).take_lock();
    std::vector<call*> line;
    for (int i = 0; i < 3; ++i) line.push_back(&w.at(0).acquire("report", usual()));
    CHECK(w.at(0).acquire("report", usual()).code() == status::overloaded);
    w.at(0).cancel(*line[1]);
    CHECK(!w.at(0).acquire("report", usual()).ended());
    CHECK(w.at(0).acquire("another", usual()).kind() == event_kind::lock);
}

TEST_CASE("a deadline in the line is kept although nothing is asked there") {
    world w(1);
    auto held = w.at(0).acquire("report", usual()).take_lock();
    call& c = w.at(0, "b").acquire("report", usual(30'000, 50));
    call& d = w.at(0, "c").acquire("report", usual());
    w.advance(50);
    CHECK(c.code() == status::busy);
    w.at(0).release(*held);
    CHECK(d.kind() == event_kind::lock);
}

TEST_CASE("a handle that is freed, or never taken out of its event, releases") {
    world w(1);
    w.at(0).acquire("report", usual()).take_lock().reset();
    w.settle();
    CHECK(w.server->peek(w.lock_key("report")) == std::nullopt);
    w.at(0).acquire("report", usual()).drop_events();
    w.settle();
    CHECK(w.server->peek(w.lock_key("report")) == std::nullopt);
    w.at(0).asleep = true;
    w.at(0).acquire("report", usual());
    CHECK(w.server->peek(w.lock_key("report")));
    w.at(0).close();
    CHECK(w.server->peek(w.lock_key("report")) == std::nullopt);
}

TEST_CASE("left alone, the key lives out its ttl, and is not renewed") {
    world w(1);
    auto lock = w.at(0).acquire("report", usual(1'000)).take_lock();
    w.advance(5'000);
    CHECK(lock->held());
    CHECK(lock->leave());
    CHECK(!lock->leave());
    CHECK(!lock->held());
    w.settle();
    CHECK(w.server->peek(w.lock_key("report")));
    w.advance(1'000);
    CHECK(w.server->peek(w.lock_key("report")) == std::nullopt);
}

TEST_CASE("renewed from inside, a lock is held for as long as anybody likes") {
    world w(2);
    auto lock = w.at(0).acquire("report", usual(1'000)).take_lock();
    call& other = w.at(1).acquire("report", usual(1'000, 30'000));
    for (int i = 0; i < 20; ++i) {
        w.advance(1'000);
        CHECK(lock->held());
    }
    CHECK(!other.ended());
    w.at(0).release(*lock);
    w.advance(1);
    CHECK(other.kind() == event_kind::lock);
}

TEST_CASE("renewing now: ok; and lost when somebody has deleted it, which is told once") {
    world w(1);
    call& c = w.at(0).acquire("report", usual(1'000));
    auto lock = c.take_lock();
    w.advance(100);
    CHECK(w.at(0).renew(*lock).kind() == event_kind::done);
    CHECK(lock->remaining_ms() == 988);
    w.server->del(w.lock_key("report"));
    CHECK(w.at(0).renew(*lock).code() == status::lost);
    CHECK(c.losses() == std::vector{reason::deleted});
    CHECK(!lock->held());
    CHECK(lock->at() == held_lock::state::lost);
    CHECK(lock->loss() == lock_loss::deleted);
    CHECK(w.at(0).renew(*lock).code() == status::lost);
    CHECK(w.at(0).release(*lock).code() == status::lost);
    CHECK(lock->wait_lost(-1) == status::ok);
}

TEST_CASE("released twice: the second time there is nothing to release") {
    world w(1);
    auto lock = w.at(0).acquire("report", usual()).take_lock();
    CHECK(w.at(0).release(*lock).kind() == event_kind::done);
    CHECK(w.at(0).release(*lock).code() == status::lost);
    CHECK(w.at(0).renew(*lock).code() == status::lost);
    CHECK(lock->wait_lost(-1) == status::ok);
}

TEST_CASE("max_hold: told, released, and free for others") {
    world w(2);
    lock_policy p = usual(1'000);
    p.max_hold_ms = 5'000;
    call& c = w.at(0).acquire("report", p);
    auto lock = c.take_lock();
    w.advance(4'999);
    CHECK(lock->held());
    w.advance(1);
    CHECK(!lock->held());
    CHECK(c.losses() == std::vector{reason::max_hold});
    CHECK(w.at(1).acquire("report", usual()).kind() == event_kind::lock);
}

TEST_CASE("a node that stood still for longer than its ttl has lost its locks, and says so once") {
    world w(2);
    call& c = w.at(0).acquire("report", usual(1'000));
    auto lock = c.take_lock();
    w.pause(0);
    w.advance(1'100);
    CHECK(!lock->held()); // the clock alone decides
    auto other = w.at(1).acquire("report", usual(1'000)).take_lock();
    w.resume(0);
    w.advance(100);
    CHECK(c.losses() == std::vector{reason::expired});
    CHECK(other->held());
    CHECK(read_lock_value(w.server->peek(w.lock_key("report")).value())->holder == other->mine());
}

TEST_CASE("a lock that another has overwritten is stolen: told once, and what stands there is left alone") {
    world w(1);
    call& c = w.at(0).acquire("report", usual(1'000));
    auto lock = c.take_lock();
    w.server->set(w.lock_key("report"), "somebody else's", 60'000);
    w.advance(1'000);
    CHECK(c.losses() == std::vector{reason::stolen});
    CHECK(w.server->peek(w.lock_key("report")) == "somebody else's");
    CHECK(w.link(0).count(script_id::release) == 0);
}

TEST_CASE("close: what is held is told closed first, and released; what waits ends with closed") {
    world w(2);
    call& c = w.at(0).acquire("report", usual());
    auto lock = c.take_lock();
    auto theirs = w.at(1).acquire("other", usual()).take_lock();
    call& waits = w.at(0).acquire("other", usual());
    call& behind = w.at(0).acquire("report", usual());
    call& closed = w.close(0, 5'000, w.at(0));
    CHECK(closed.kind() == event_kind::done);
    CHECK(closed.took_ms() == 0);
    CHECK(c.losses() == std::vector{reason::closed});
    CHECK(!lock->held());
    CHECK(waits.code() == status::closed);
    CHECK(behind.code() == status::closed);
    CHECK(w.server->peek(w.lock_key("report")) == std::nullopt);
    CHECK(w.at(0).acquire("report", usual()).code() == status::closed);
    CHECK(w.at(0).release(*lock).code() == status::lost);
}

TEST_CASE("close does not wait longer than a command for a store that says nothing") {
    world w(1);
    auto lock = w.at(0).acquire("report", usual(1'000)).take_lock();
    w.link(0).hold();
    call& closed = w.close(0, 5'000, w.at(0));
    w.advance(249);
    CHECK(!closed.ended());
    w.advance(1);
    CHECK(closed.kind() == event_kind::done);
}

TEST_CASE("a queue that is closed while its acquire is on the way leaves no lock behind") {
    world w(1);
    w.link(0).hold();
    call& c = w.at(0).acquire("report", usual());
    w.at(0).close();
    CHECK(c.code() == status::closed);
    w.link(0).let_go();
    w.settle();
    CHECK(w.server->peek(w.lock_key("report")) == std::nullopt);
}

TEST_CASE("the wait deadline bounds everything, connecting too") {
    world w(1);
    w.link(0).cut();
    call& c = w.at(0).acquire("report", usual(30'000, 700));
    w.advance(700);
    CHECK(c.code() == status::unavailable);
    CHECK(c.took_ms() == 700);
    call& later = w.at(0).acquire("report", usual());
    w.advance(100);
    w.link(0).mend();
    w.settle();
    CHECK(later.kind() == event_kind::lock);
}

TEST_CASE("asking for a lock from inside the load that holds it, or that its holder waits for, is a deadlock at once") {
    world w(1);
    call& c = w.at(0).fetch("apple");
    load outer = c.take();
    const auto scope = outer.scope();
    auto lock = w.at(0).acquire("report", usual(), {-1, scope}).take_lock();
    CHECK(w.at(0).acquire("report", usual(), {-1, scope}).code() == status::would_deadlock);
    CHECK(!w.at(0, "b").acquire("report", usual(30'000, 100)).ended()); // unrelated: it waits
    call& d = w.at(0, "b").fetch("pear");
    load inner = d.take();
    // The holder's load waits for `pear`, whose load asks for the lock.
    call& e = w.at(0).fetch("pear", {.within = scope});
    CHECK(!e.ended());
    CHECK(w.at(0, "b").acquire("report", usual(), {-1, inner.scope()}).code() == status::would_deadlock);
    inner.fulfil("green");
    outer.fulfil("red");
    CHECK(e.ended());
}

TEST_CASE("ten thousand locks of one process renew in batches, without a spike") {
    constexpr int many = 10'000;
    world w(1);
    w.may_hold_forever = true; // spares a look at every key after every step
    std::vector<std::shared_ptr<held_lock>> locks;
    {
        // All at one moment, which is the worst there is.
        host& h = w.at(0);
        for (int i = 0; i < many; ++i) {
            lock_call r;
            const std::string name = "lock " + std::to_string(i);
            r.name = name;
            r.home = h.queue;
            call& c = h.calls.emplace_back(w, h);
            c.tag = 1'000'000 + static_cast<std::uint64_t>(i);
            r.tag = c.tag;
            REQUIRE(acquire(w.core(0), r, usual()));
        }
        w.settle();
        for (call& c : h.calls) locks.push_back(c.take_lock());
    }
    w.link(0).clear_log();
    w.advance(25'000);
    std::map<mono_ms, int> per_ms;
    for (const auto& sent : w.link(0).log()) {
        CHECK(sent.cmd.script == script_id::renew);
        ++per_ms[sent.at];
    }
    const auto worst = std::ranges::max_element(per_ms, {}, [](const auto& p) { return p.second; });
    CHECK(worst->second < 60); // on average there are two in a millisecond, and four in the first round
    CHECK(w.link(0).log().size() < 4 * many);
    CHECK(std::ranges::all_of(locks, [](const auto& l) { return l->held(); }));
    CHECK(w.total(stat::locks_lost) == 0);
}

TEST_CASE("inspect: free, ours, somebody else's") {
    world w(1);
    CHECK(w.at(0).inspect("report").kind() == event_kind::absent);
    lock_policy p = usual();
    p.label = "worker 7";
    auto lock = w.at(0).acquire("report", p).take_lock();
    call& c = w.at(0).inspect("report");
    CHECK(c.value() == "{\"ours\":true,\"token\":\"" + hex(lock->mine()) + "\",\"fence\":" +
                           std::to_string(lock->fence()) + ",\"label\":\"worker 7\",\"ttl_ms\":30000}");
    CHECK(c.answer().ttl_left_ms == 30'000);
    w.may_hold_forever = true;
    w.server->set("theirs", "a secret", std::nullopt);
    CHECK(w.at(0).inspect("x", "theirs").value() == R"({"ours":false,"ttl_ms":null})");
    w.server->set_list("list", 5'000);
    CHECK(w.at(0).inspect("x", "list").code() == status::collision);
}

TEST_CASE("what a lock may be asked for with is checked before anything is sent") {
    world w(1);
    host& h = w.at(0);
    for (const std::int64_t ttl : {std::int64_t{0}, std::int64_t{-5}, std::int64_t{9}, INT64_MAX}) {
        CHECK(h.acquire("report", usual(ttl)).code() == status::invalid_argument);
    }
    CHECK(h.acquire("", usual()).code() == status::invalid_argument);
    CHECK(h.acquire(std::string(1 << 20, 'x'), usual()).code() == status::too_large);
    CHECK(h.acquire("report", usual(), {-2, 0}).code() == status::invalid_argument);
    CHECK(w.link(0).log().empty());
}
