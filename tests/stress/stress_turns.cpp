// SPDX-License-Identifier: MIT
//
// Who turns the loop: a caller that finds it free, or its own thread. Every hand-over is a chance to lose
// a wake-up; a lost one shows as an operation that never ends.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/cache.hpp"
#include "engine/client_core.hpp"
#include "handles.hpp"
#include "io/open_store.hpp"

using namespace stn;
using stress::dice;
using stress::stuck_ms;

namespace {

std::shared_ptr<client_handle> threaded_client() {
    auto opened = open_store("memory://");
    REQUIRE(opened);
    client_parts parts;
    parts.link = std::move(opened->link);
    parts.time = std::move(opened->time);
    parts.chance = std::move(opened->chance);
    return std::make_shared<client_handle>(client_core::make(std::move(parts)));
}

// How often the loop was turned by another thread than before. Its task runs under the turn lock, perhaps when who
// posted it has gone.
class switches {
  public:
    void turned() {
        const auto me = std::this_thread::get_id();
        if (me == last_) return;
        last_ = me;
        count_.fetch_add(1, std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

  private:
    std::thread::id last_; // turn lock
    std::atomic<std::uint64_t> count_{0};
};

// One blocking caller: begins an operation, helps or leaves it to the loop's thread, and waits.
class caller_thread {
  public:
    caller_thread(cache& in, std::shared_ptr<switches> seen, std::uint32_t number)
        : cache_(in),
          core_(*in.owner()->core),
          seen_(std::move(seen)),
          chance_(number),
          queue_(std::make_shared<event_queue>(1)),
          sync_queue_(std::make_shared<event_queue>(1)) {
        sync_queue_->set_sync();
    }

    // False: its event never came.
    bool once(bool helped, std::string_view key, std::int64_t deadline_ms = -1) {
        const auto note = [seen = seen_](mono_ms) { seen->turned(); };
        const auto& home = helped ? sync_queue_ : queue_;
        if (!helped) core_.turns.ring(); // or else whoever is alone begins it himself
        core_.post_for(home.get(), errand(note));
        cache::call c;
        c.key = key;
        c.deadline_ms = deadline_ms;
        c.home = home;
        c.tag = ++tag_;
        if (!cache_.fetch(c)) return false;
        event e;
        while (true) {
            if (home->next(stuck_ms, e) != status::ok) return false;
            if (e.tag == tag_ && e.terminal()) break;
        }
        if (e.held) {
            outcome how;
            how.storage = "x";
            e.held->mark_taken();
            e.held->answer(std::move(how), {});
        }
        return true;
    }

    bool rolls(std::uint32_t n) { return chance_.one_in(n); }
    std::uint32_t below(std::uint32_t n) { return chance_.below(n); }

  private:
    cache& cache_;
    client_core& core_;
    const std::shared_ptr<switches> seen_;
    dice chance_;
    std::shared_ptr<event_queue> queue_;
    std::shared_ptr<event_queue> sync_queue_;
    std::uint64_t tag_ = 0;
};

// A load without a lease, and with hours to go: nothing else wakes the loop.
class long_load {
  public:
    long_load() : prices_(client, "prices", {.ttl_ms = 60'000, .max_load_ms = 36'000'000, .fleet = false}) {
        cache::call c;
        c.key = "held";
        c.home = queue_;
        REQUIRE(prices_.fetch(c));
        REQUIRE(queue_->next(stuck_ms, held_) == status::ok);
        REQUIRE(held_.held);
    }
    cache& prices() { return prices_; }

    const std::shared_ptr<client_handle> client = threaded_client();

  private:
    cache prices_;
    const std::shared_ptr<event_queue> queue_ = std::make_shared<event_queue>(1);
    event held_;
};

// Whether what this thread posts for a queue that somebody else may read ran on this thread; it has run then.
bool ran_here(client_core& core, event_queue& queue) {
    const auto ran_on = std::make_shared<std::atomic<std::thread::id>>();
    REQUIRE(core.post_for(&queue, errand([ran_on](mono_ms) { ran_on->store(std::this_thread::get_id()); })));
    const std::thread::id not_yet;
    for (int n = 0; n < 1'000 && ran_on->load() == not_yet; ++n) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    REQUIRE(ran_on->load() != not_yet);
    return ran_on->load() == std::this_thread::get_id();
}

} // namespace

TEST_CASE("ten thousand switches between the caller's own turn and the loop's thread lose no wake-up") {
    cache prices(threaded_client(), "prices", {.ttl_ms = 60'000});
    const auto seen = std::make_shared<switches>();
    caller_thread me(prices, seen, 1);
    std::uint64_t lost = 0;
    std::uint64_t rounds = 0;
    for (; seen->count() < 10'000 && rounds < 100'000 && lost == 0; ++rounds) {
        if (!me.once(true, "apple")) ++lost;
        if (!me.once(false, "apple")) ++lost;
    }
    CHECK(lost == 0);
    CHECK(seen->count() >= 10'000);
}

TEST_CASE("what was posted for a sync queue that holds an answer already runs all the same") {
    const auto client = threaded_client();
    const auto eventually = [](const std::atomic<bool>& what) {
        for (int i = 0; i < 1'000 && !what.load(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return what.load();
    };
    const auto begun = std::make_shared<std::atomic<bool>>(false);
    REQUIRE(client->core->turns.post([begun](mono_ms) { begun->store(true); }));
    REQUIRE(eventually(*begun));
    std::this_thread::sleep_for(std::chrono::milliseconds(50)); // the loop sleeps now
    const auto queue = std::make_shared<event_queue>(1);
    queue->set_sync();
    queue->promise();
    event there;
    there.kind = event_kind::done;
    queue->push(std::move(there));
    const auto ran = std::make_shared<std::atomic<bool>>(false);
    REQUIRE(client->core->post_for(queue.get(), errand([ran](mono_ms) { ran->store(true); })));
    event e;
    CHECK(queue->next(-1, e) == status::ok);
    CHECK(eventually(*ran));
}

TEST_CASE("what is asked alone is begun by the thread that asks, once the loop listens") {
    const auto client = threaded_client();
    event_queue queue(1);
    int here = 0;
    for (int i = 0; i < 1'000 && here < 10; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1)); // it may have gone to sleep meanwhile
        if (ran_here(*client->core, queue)) ++here;
    }
    CHECK(here == 10);
}

TEST_CASE("what is asked while something goes on is left to the loop's thread") {
    long_load one;
    event_queue queue(1);
    int here = 0;
    for (int i = 0; i < 100; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (ran_here(*one.client->core, queue)) ++here;
    }
    CHECK(here == 0);
}

TEST_CASE("what a transport has to tell is heard though it came when the loop had looked and did not sleep yet") {
    class late final : public transport {
      public:
        explicit late(std::shared_ptr<std::atomic<bool>> heard) : heard_(std::move(heard)) {}
        void submit(command_seq, command, mono_ms) override {}
        bool poll(transport_event&, mono_ms) override {
            asked_ = true;
            if (told_) heard_->store(true);
            return false;
        }
        // The loop asks for it last before it sleeps.
        std::span<watched> watch() override {
            if (asked_ && !std::exchange(told_, true)) ring_();
            return {};
        }
        mono_ms next_ms() const override { return forever_ms; }
        server_ms server_time(mono_ms now) override { return now; }
        void set_ring(std::function<void()> ring) override { ring_ = std::move(ring); }
        void close() override {}

      private:
        const std::shared_ptr<std::atomic<bool>> heard_;
        std::function<void()> ring_;
        bool asked_ = false;
        bool told_ = false;
    };
    const auto heard = std::make_shared<std::atomic<bool>>(false);
    auto opened = open_store("memory://");
    REQUIRE(opened);
    client_parts parts;
    parts.link = std::make_unique<late>(heard);
    parts.time = std::move(opened->time);
    parts.chance = std::move(opened->chance);
    const auto client = std::make_shared<client_handle>(client_core::make(std::move(parts)));
    for (int i = 0; i < 1'000 && !heard->load(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(heard->load());
}

TEST_CASE("four threads that help and leave it as they like lose no wake-up") {
    cache prices(threaded_client(), "prices", {.ttl_ms = 2, .jitter = 0});
    const auto seen = std::make_shared<switches>();
    std::atomic<std::uint64_t> lost{0};
    {
        std::vector<std::thread> all;
        for (std::uint32_t i = 0; i < 4; ++i) {
            all.emplace_back([&, i] {
                caller_thread me(prices, seen, i);
                // 10,000 rounds each, and however many more the machine needs to switch often enough
                const auto enough = [&](int n) { return n >= 1'000'000 || (n >= 10'000 && seen->count() > 100); };
                for (int n = 0; !enough(n) && lost.load() == 0; ++n) {
                    if (!me.once(me.rolls(2), "key" + std::to_string(me.below(4)))) lost.fetch_add(1);
                }
            });
        }
        for (auto& t : all) t.join();
    }
    CHECK(lost == 0);
    CHECK(seen->count() > 100);
}

TEST_CASE("a timer that a helping caller armed is kept by the loop's thread") {
    long_load one;
    const auto seen = std::make_shared<switches>();
    caller_thread me(one.prices(), seen, 1);
    std::uint64_t lost = me.once(true, "held", 1'100) ? 0 : 1; // until it is known that the lease was read
    for (int i = 0; i < 300 && lost == 0; ++i) {
        // joins the load of the other queue, and its deadline is all that can end it
        if (!me.once(true, "held", 1 + i % 5)) ++lost;
    }
    CHECK(lost == 0);
}

TEST_CASE("while one caller waits for its answer, others are not kept waiting by it") {
    const auto client = threaded_client();
    cache prices(client, "prices", {.ttl_ms = 60'000});
    const auto seen = std::make_shared<switches>();
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> lost{0};
    std::uint64_t answered = 0;
    std::thread busy([&] {
        caller_thread me(prices, seen, 7);
        while (!stop.load()) {
            if (!me.once(true, "apple")) lost.fetch_add(1);
        }
    });
    caller_thread me(prices, seen, 8);
    for (int i = 0; i < 5'000 && lost.load() == 0; ++i) {
        if (me.once(i % 2 == 0, "pear")) ++answered;
    }
    stop.store(true);
    busy.join();
    CHECK(lost == 0);
    CHECK(answered == 5'000);
}
