// SPDX-License-Identifier: MIT
//
// Eight threads on four keys: joins, answers, cancels and deadlines as they come. Whatever the scheduler
// does, each operation has one terminal event, and each host reference is carried as often as was said.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "handles.hpp"

using namespace stn::stress;

namespace {

constexpr std::uint32_t threads = 8;

// What the threads did; the sums must agree.
struct sums {
    std::atomic<std::uint64_t> begun{0};
    std::atomic<std::uint64_t> refused{0};
    std::atomic<std::uint64_t> ended{0};
    std::atomic<std::uint64_t> ended_twice{0};
    std::atomic<std::uint64_t> never_ended{0};
    std::atomic<std::uint64_t> shared{0};
    std::atomic<std::uint64_t> carried{0};
    std::atomic<std::uint64_t> wrong_value{0};
    std::atomic<std::uint64_t> cancelled{0};
    std::atomic<std::uint64_t> leases{0};
};

// Leases that one thread takes and another one answers.
class lost_property {
  public:
    void leave(owned<stn_lease> lease, std::uint32_t key) {
        const std::lock_guard lock(mutex_);
        left_.emplace_back(std::move(lease), key);
    }
    std::pair<owned<stn_lease>, std::uint32_t> find() {
        const std::lock_guard lock(mutex_);
        if (left_.empty()) return {nullptr, 0};
        auto out = std::move(left_.back());
        left_.pop_back();
        return out;
    }

  private:
    std::mutex mutex_;
    std::vector<std::pair<owned<stn_lease>, std::uint32_t>> left_;
};

// One thread with a queue of its own. Tags: the number of the operation and the key it is about.
class worker {
  public:
    worker(std::uint32_t number, sums& total, lost_property& left)
        : chance_(number),
          total_(total),
          left_(left),
          queue_(open_queue(1 + number % 2)) {}

    void fetches(stn_cache* cache, std::uint32_t count) {
        for (std::uint32_t i = 0; i < count; ++i) {
            begin(cache);
            if (chance_.one_in(8)) cancel_one();
            if (chance_.one_in(4)) answer_found();
            while (auto e = next(queue_.get(), open_.size() > 32 ? stuck_ms : 0)) {
                take_in(std::move(e));
                if (open_.size() <= 16) break;
            }
        }
        finish();
    }

    void joins(stn_group* group, std::uint32_t count) {
        for (std::uint32_t i = 0; i < count; ++i) {
            join(group);
            if (chance_.one_in(4)) cancel_one();
            if (chance_.one_in(2)) end_one_run();
            while (auto e = next(queue_.get(), 0)) take_in(std::move(e));
        }
        while (!runs_.empty()) end_one_run();
        finish();
    }

  private:
    struct operation {
        std::uint64_t op = 0;
        std::uint32_t key = 0;
        int ends = 0;
    };
    struct running {
        owned<stn_flight> flight;
        std::uint32_t key;
    };

    static const std::string& key_of(std::uint32_t key) {
        static const std::array<std::string, 4> names{"apple", "pear", "plum", "fig"};
        return names.at(key);
    }

    std::uint64_t new_operation(std::uint32_t key) {
        done_.push_back({0, key, 0});
        return done_.size() - 1;
    }

    void accepted(std::int32_t status, std::uint64_t tag, std::uint64_t op) {
        if (status != STN_OK) {
            done_[tag].ends = 1;
            total_.refused.fetch_add(1);
            return;
        }
        total_.begun.fetch_add(1);
        done_[tag].op = op;
        open_.push_back(tag);
    }

    void begin(stn_cache* cache) {
        const std::uint32_t key = chance_.below(4);
        const std::string& k = key_of(key);
        const std::uint64_t tag = new_operation(key);
        static constexpr std::array<std::int64_t, 6> deadlines{-1, -1, -1, 0, 1, 20};
        const std::int64_t deadline = deadlines.at(chance_.below(6));
        std::uint64_t op = 0;
        std::int32_t status = STN_OK;
        const std::uint32_t what = chance_.below(64);
        if (what == 0) {
            status = stn_cache_put(cache, nullptr, k.data(), k.size(), k.data(), k.size(), STN_CODEC_DEFAULT, -1, -1,
                                   -1, queue_.get(), tag, &op, nullptr);
        } else if (what < 3) {
            const std::uint32_t stale = what == 1 ? STN_INVALIDATE_STALE : 0;
            status = stn_cache_invalidate(cache, k.data(), k.size(), stale, -1, queue_.get(), tag, &op, nullptr);
        } else if (what < 6) {
            status = stn_cache_get(cache, k.data(), k.size(), -1, queue_.get(), tag, &op, nullptr, nullptr);
        } else {
            std::uint32_t flags = what < 16 ? STN_FETCH_REFRESH : 0;
            if (what == 62) flags = STN_FETCH_FORCE;
            if (what == 63) flags = STN_FETCH_NO_STORE;
            status = stn_cache_fetch(cache, nullptr, k.data(), k.size(), deadline, flags, nullptr, queue_.get(), tag,
                                     &op, nullptr, nullptr);
        }
        accepted(status, tag, op);
    }

    void join(stn_group* group) {
        const std::uint32_t key = chance_.below(4);
        const std::string& k = key_of(key);
        const std::uint64_t tag = new_operation(key);
        static constexpr std::array<std::int64_t, 4> deadlines{-1, -1, 1, 0};
        std::uint64_t op = 0;
        stn_flight* lead = nullptr;
        const std::int32_t status = stn_group_join(group, k.data(), k.size(), deadlines.at(chance_.below(4)), nullptr,
                                                   queue_.get(), tag, &op, &lead, nullptr);
        if (status == STN_OK && lead != nullptr) {
            total_.begun.fetch_add(1);
            total_.ended.fetch_add(1);
            done_[tag].ends = 1;
            runs_.push_back({owned<stn_flight>(lead), key});
            return;
        }
        accepted(status, tag, op);
    }

    void cancel_one() {
        if (open_.empty()) return;
        stn_cancel(queue_.get(), done_[open_[chance_.below(static_cast<std::uint32_t>(open_.size()))]].op);
    }

    void take_in(owned<stn_event> e) {
        const std::uint64_t tag = stn_event_tag(e.get());
        operation& o = done_[tag];
        if (stn_event_host_ref(e.get()) != 0) total_.carried.fetch_add(1);
        if (stn_event_status(e.get()) == STN_CANCELLED) total_.cancelled.fetch_add(1);
        if (stn_event_kind(e.get()) == STN_EVENT_VALUE) {
            std::size_t n = 0;
            const auto* p = static_cast<const char*>(stn_event_bytes(e.get(), &n));
            if (std::string_view(p, n) != key_of(o.key)) total_.wrong_value.fetch_add(1);
        }
        if (terminal(e.get())) {
            if (++o.ends > 1) total_.ended_twice.fetch_add(1);
            total_.ended.fetch_add(1);
            std::erase(open_, tag);
        }
        const std::int32_t kind = stn_event_kind(e.get());
        if (kind == STN_EVENT_FLIGHT) {
            runs_.push_back({owned<stn_flight>(stn_event_take_flight(e.get())), o.key});
        } else if ((kind == STN_EVENT_LEASE || kind == STN_EVENT_REFRESH) && !chance_.one_in(16)) {
            total_.leases.fetch_add(1);
            owned<stn_lease> lease(stn_event_take_lease(e.get()));
            if (chance_.one_in(4)) {
                left_.leave(std::move(lease), o.key);
            } else {
                answer(std::move(lease), o.key);
            }
        } // else the event is freed with its lease inside
    }

    void answer_found() {
        auto [lease, key] = left_.find();
        if (lease) answer(std::move(lease), key);
    }

    void answer(owned<stn_lease> lease, std::uint32_t key) {
        const std::string& value = key_of(key);
        const std::uint64_t ref = chance_.one_in(2) ? 1 : 0;
        std::uint32_t shared = 0;
        switch (chance_.below(8)) {
        case 0: return; // freed
        case 1: stn_lease_fail(lease.get(), STN_LOAD_FAILED, "boom", ref, &shared, nullptr); break;
        case 2: {
            std::uint32_t waiters = 0;
            stn_lease_detach(lease.get(), &waiters);
            if (waiters == 0) return;
            [[fallthrough]];
        }
        case 3: {
            const std::uint64_t tag = new_operation(key);
            const std::int32_t status = stn_lease_fulfil(lease.get(), value.data(), value.size(), STN_CODEC_DEFAULT, -1,
                                                         -1, ref, queue_.get(), tag, &shared, nullptr);
            accepted(status, tag, 0);
            break;
        }
        case 4: stn_lease_fulfil_absent(lease.get(), -1, ref, nullptr, 0, &shared, nullptr); break;
        default:
            stn_lease_fulfil(lease.get(), value.data(), value.size(), STN_CODEC_DEFAULT, -1, -1, ref, nullptr, 0,
                             &shared, nullptr);
            break;
        }
        total_.shared.fetch_add(shared);
    }

    void end_one_run() {
        if (runs_.empty()) return;
        running r = std::move(runs_.back());
        runs_.pop_back();
        const std::string& value = key_of(r.key);
        std::uint32_t shared = 0;
        std::uint32_t waiters = 0;
        switch (chance_.below(8)) {
        case 0: return; // freed: the next one leads
        case 1: stn_flight_finish(r.flight.get(), STN_LOAD_FAILED, "boom", 4, 1, &shared, nullptr); break;
        case 2:
            stn_flight_detach(r.flight.get(), &waiters);
            if (waiters == 0) return;
            [[fallthrough]];
        default: stn_flight_finish(r.flight.get(), STN_OK, value.data(), value.size(), 1, &shared, nullptr); break;
        }
        total_.shared.fetch_add(shared);
    }

    // Reads on, and leads and answers on, until nothing of this thread is open.
    void finish() {
        while (!open_.empty()) {
            auto e = next(queue_.get(), stuck_ms);
            if (!e) break;
            take_in(std::move(e));
            while (!runs_.empty()) end_one_run();
            answer_found();
        }
        total_.never_ended.fetch_add(open_.size());
    }

    dice chance_;
    sums& total_;
    lost_property& left_;
    owned<stn_queue> queue_;
    std::vector<operation> done_;
    std::vector<std::uint64_t> open_;
    std::vector<running> runs_;
};

void check(const sums& s) {
    CHECK(s.refused == 0);
    CHECK(s.ended == s.begun);
    CHECK(s.ended_twice == 0);
    CHECK(s.never_ended == 0);
    CHECK(s.carried == s.shared);
    CHECK(s.wrong_value == 0);
}

} // namespace

TEST_CASE("400,000 joins of a group from eight threads: each has one outcome, and the references add up") {
    const auto client = open_client();
    const auto group = open_group(client);
    sums total;
    lost_property left;
    {
        std::vector<std::thread> all;
        for (std::uint32_t i = 0; i < threads; ++i) {
            all.emplace_back([&, i] { worker(i, total, left).joins(group.get(), 50'000); });
        }
        for (auto& t : all) t.join();
    }
    check(total);
    CHECK(total.begun == 400'000);
    CHECK(total.cancelled > 0);
    CHECK(total.shared > 0);
}

TEST_CASE("200,000 operations on a cache from eight threads: each has one outcome, and the references add up") {
    const auto client = open_client();
    const auto cache = open_cache(client, "prices",
                                  R"({"ttl":"3ms","soft_ttl":"1ms","jitter":0,"absent_ttl":"1ms","error_ttl":"1ms",
                                      "lease":"100ms","wait":"2s"})");
    sums total;
    lost_property left;
    {
        std::vector<std::thread> all;
        for (std::uint32_t i = 0; i < threads; ++i) {
            all.emplace_back([&, i] { worker(i, total, left).fetches(cache.get(), 25'000); });
        }
        for (auto& t : all) t.join();
    }
    check(total);
    CHECK(total.leases > 0);
    CHECK(total.cancelled > 0);
    CHECK(total.shared > 0);
}

TEST_CASE("four clients of one store from eight threads: each operation has one outcome") {
    constexpr const char* policy = R"({"ttl":"3ms","soft_ttl":"1ms","jitter":0,"error_ttl":"1ms","lease":"100ms"})";
    std::vector<owned<stn_client>> clients;
    std::vector<owned<stn_cache>> caches;
    for (int i = 0; i < 4; ++i) {
        clients.push_back(open_client("memory://stress"));
        caches.push_back(open_cache(clients.back(), "prices", policy));
    }
    sums total;
    lost_property left;
    {
        std::vector<std::thread> all;
        for (std::uint32_t i = 0; i < threads; ++i) {
            all.emplace_back([&, i] { worker(i, total, left).fetches(caches[i % 4].get(), 5'000); });
        }
        for (auto& t : all) t.join();
    }
    check(total);
    CHECK(total.leases > 0);
}
