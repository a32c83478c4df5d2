// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include "io/manual_clock.hpp"
#include "io/system_clock.hpp"
#include "io/system_random.hpp"

using namespace stn;

namespace {

constexpr mono_ms start = manual_clock::start_ms;

// A timer wheel of one: due at the first of its times, and it notes when each was run.
class timers : public time_listener {
  public:
    explicit timers(manual_clock& time) : time_(time) {}

    mono_ms next_due_ms() override { return due.empty() ? forever_ms : *due.begin(); }

    void time_moved() override {
        ++told;
        while (!due.empty() && *due.begin() <= time_.now_ms()) {
            due.erase(due.begin());
            ran.push_back(time_.now_ms() - start);
            if (on_run) on_run();
        }
    }

    std::multiset<mono_ms> due;
    std::vector<mono_ms> ran;
    std::function<void()> on_run;
    int told = 0;

  private:
    manual_clock& time_;
};

using times = std::vector<mono_ms>;

} // namespace

TEST_CASE("a manual clock starts at a fixed time and moves only when told to") {
    manual_clock time;
    CHECK(time.now_ms() == start);
    time.advance(1500);
    CHECK(time.now_ms() == start + 1500);
    time.advance(0);
    time.advance(-7);
    CHECK(time.now_ms() == start + 1500);
}

TEST_CASE("advance stops at each due timer, in order, over all listeners") {
    manual_clock time;
    timers a(time), b(time);
    time.watch(a);
    time.watch(b);
    a.due = {start + 10, start + 30, start + 101};
    b.due = {start + 20, start + 30};
    time.advance(100);
    CHECK(a.ran == times{10, 30});
    CHECK(b.ran == times{20, 30});
    CHECK(time.now_ms() == start + 100);
    time.advance(1);
    CHECK(a.ran == times{10, 30, 101});
    time.unwatch(a);
    time.unwatch(b);
}

TEST_CASE("a timer that sets itself again is run at each of its times within one jump") {
    manual_clock time;
    timers lease(time);
    time.watch(lease);
    lease.due = {start + 1000};
    lease.on_run = [&] { lease.due.insert(time.now_ms() + 1000); };
    time.advance(3'600'000);
    CHECK(lease.ran.size() == 3600);
    CHECK(lease.ran.back() == 3'600'000);
    time.unwatch(lease);
}

TEST_CASE("what was due before, or becomes due at the same moment, is run at once") {
    manual_clock time;
    timers a(time), b(time);
    time.watch(a);
    time.watch(b);
    b.due = {start + 5};
    b.on_run = [&] { a.due.insert(time.now_ms()); };
    a.due = {start - 100};
    time.advance(5);
    CHECK(a.ran == times{0, 5});
    time.unwatch(a);
    time.unwatch(b);
}

TEST_CASE("everybody is told once at the target, due or not") {
    manual_clock time;
    timers a(time);
    time.watch(a);
    time.advance(50);
    CHECK(a.told == 1);
    time.advance(0);
    CHECK(a.told == 2);
    time.unwatch(a);
    time.advance(50);
    CHECK(a.told == 2);
}

TEST_CASE("a listener that is due for ever does not stop the time") {
    manual_clock time;
    struct stuck final : time_listener {
        mono_ms next_due_ms() override { return 0; }
        void time_moved() override { ++told; }
        int told = 0;
    } bad;
    timers good(time);
    time.watch(bad);
    time.watch(good);
    good.due = {start + 10};
    time.advance(1'000'000);
    CHECK(good.ran == times{10});
    CHECK(time.now_ms() == start + 1'000'000);
    CHECK(bad.told < 10'000);
    time.unwatch(bad);
    time.unwatch(good);
}

TEST_CASE("an advance from inside a timer moves the target of the running one") {
    manual_clock time;
    timers a(time);
    time.watch(a);
    a.due = {start + 10, start + 150};
    a.on_run = [&] {
        if (a.ran.size() == 1) time.advance(100);
    };
    time.advance(50);
    CHECK(time.now_ms() == start + 150);
    CHECK(a.ran == times{10, 150});
    time.unwatch(a);
}

TEST_CASE("a listener may take itself or another away while it is told") {
    manual_clock time;
    timers a(time), b(time);
    time.watch(a);
    time.watch(b);
    a.due = {start + 10, start + 20};
    b.due = {start + 10, start + 20};
    a.on_run = [&] {
        time.unwatch(a);
        time.unwatch(b);
    };
    time.advance(15);
    time.advance(100);
    CHECK(a.ran == times{10});
    CHECK(b.ran.empty());
}

TEST_CASE("a listener that comes while time moves is heard from then on") {
    manual_clock time;
    timers a(time), late(time);
    late.due = {start + 30};
    time.watch(a);
    a.due = {start + 10};
    a.on_run = [&] { time.watch(late); };
    time.advance(50);
    CHECK(late.ran == times{30});
    time.watch(late); // twice is once
    late.due = {start + 60};
    time.advance(50);
    CHECK(late.ran == times{30, 60});
    time.unwatch(a);
    time.unwatch(late);
}

TEST_CASE("unwatch returns only when no call runs, whichever thread is advancing") {
    manual_clock time;
    std::atomic<bool> stop{false};
    std::thread driver([&] {
        while (!stop) time.advance(10);
    });
    std::thread second([&] {
        while (!stop) time.advance(3);
    });
    for (int round = 0; round < 300; ++round) {
        struct probe final : time_listener {
            explicit probe(manual_clock& clock) : time(clock) {}
            ~probe() override { alive = 0; }
            mono_ms next_due_ms() override {
                if (alive != 1) dead_calls = dead_calls + 1;
                return time.now_ms() + 1;
            }
            void time_moved() override {
                if (alive != 1) dead_calls = dead_calls + 1;
                ++calls;
            }
            manual_clock& time;
            std::atomic<int> alive{1};
            std::atomic<int> dead_calls{0};
            std::atomic<int> calls{0};
        };
        probe p(time);
        time.watch(p);
        while (p.calls == 0) std::this_thread::yield();
        time.unwatch(p);
        const int calls = p.calls;
        std::this_thread::yield();
        CHECK(p.calls == calls);
        CHECK(p.dead_calls == 0);
    }
    stop = true;
    driver.join();
    second.join();
}

TEST_CASE("the system's clock goes on, and its random tokens differ") {
    system_clock time;
    const mono_ms before = time.now_ms();
    CHECK(before > 0);
    CHECK(time.now_ms() >= before);
    CHECK(wall_clock_ms() > 1'600'000'000'000);

    system_random chance;
    std::set<token> tokens;
    for (int i = 0; i < 1000; ++i) tokens.insert(chance.make_token());
    CHECK(tokens.size() == 1000);
}

TEST_CASE("draws are in (0, 1], fair, and differ between two objects") {
    system_random a, b;
    double sum = 0;
    int low = 0;
    for (int i = 0; i < 100'000; ++i) {
        const double u = a.unit();
        REQUIRE((u > 0 && u <= 1));
        sum += u;
        low += u <= 0.01 ? 1 : 0;
    }
    CHECK(sum / 100'000 == doctest::Approx(0.5).epsilon(0.02));
    CHECK((low > 700 && low < 1300));
    CHECK(a.unit() != b.unit());
}
