// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <vector>

#include <doctest/doctest.h>

#include "stage.hpp"
#include "trial.hpp"

namespace faults {

namespace {

void new_one(trial& t) {
    stn_queue* made = nullptr;
    t.make(
        "stn_queue_new", [&](stn_error** err) { return stn_queue_new(1, &made, err); },
        [&] { return made == nullptr; });
    const queue_handle owned(made);
}

void take_next(stage& s, trial& t, std::uint64_t tag, std::int32_t kind) {
    stn_event* e = nullptr;
    t.make(
        "stn_queue_next", [&](stn_error** err) { return stn_queue_next(s.q.get(), 20'000, &e, err); },
        [&] { return e == nullptr; });
    REQUIRE(e != nullptr);
    s.read(e);
    CHECK(stn_event_tag(e) == tag);
    CHECK(stn_event_kind(e) == kind);
    CHECK((stn_event_error(e) != nullptr) == (kind == STN_EVENT_ERROR));
}

void next_value(trial& t) {
    stage s;
    s.store("apple", "red");
    take_next(s, t, s.fetch(s.q.get(), "apple"), STN_EVENT_VALUE);
}

void next_lease(trial& t) {
    stage s;
    take_next(s, t, s.fetch(s.q.get(), "apple"), STN_EVENT_LEASE);
}

void next_error(trial& t) {
    stage s;
    const lease_handle held = s.lead(s.r.get(), "apple");
    const auto tag = s.fetch(s.q.get(), "apple");
    REQUIRE(stn_lease_fail(held.get(), STN_LOAD_FAILED, "a text long enough to need memory of its own", 0, nullptr,
                           nullptr) == STN_OK);
    take_next(s, t, tag, STN_EVENT_ERROR);
}

void next_of_nothing(trial& t) {
    stage s;
    stn_event* e = nullptr;
    t.make(
        "stn_queue_next", [&](stn_error** err) { return stn_queue_next(s.q.get(), 0, &e, err); },
        [&] { return e == nullptr; }, STN_TIMEOUT);
}

void drain(trial& t) {
    stage s;
    const lease_handle held = s.lead(s.r.get(), "apple");
    std::vector<std::uint64_t> tags;
    for (int i = 0; i < 5; ++i) tags.push_back(s.fetch(s.q.get(), "apple"));
    REQUIRE(stn_lease_fulfil(held.get(), "red", 3, -1, -1, -1, 0, nullptr, 0, nullptr, nullptr) == STN_OK);
    std::vector<stn_event*> some(10, nullptr);
    std::size_t n = 0;
    t.make(
        "stn_queue_drain",
        [&](stn_error** err) { return stn_queue_drain(s.q.get(), some.size(), 20'000, some.data(), &n, err); },
        [&] { return n == 0; });
    CHECK(n > 0);
    for (std::size_t i = 0; i < n; ++i) s.read(some[i]);
    for (const auto tag : tags) CHECK(s.value(s.q.get(), tag) == "red"); // the rest is still there
}

void fd(trial& t) {
    stage s;
    std::int32_t fd = 0;
    t.make(
        "stn_queue_fd", [&](stn_error** err) { return stn_queue_fd(s.q.get(), &fd, err); }, [&] { return fd == -1; });
    CHECK(fd >= 0);
}

void doorbell(trial& t) {
    stage s;
    int rings = 0;
    const auto ring = [](void* ud) { ++*static_cast<int*>(ud); };
    t.make("stn_queue_set_doorbell",
           [&](stn_error** err) { return stn_queue_set_doorbell(s.q.get(), ring, &rings, nullptr, err); });
    s.store("apple", "red");
    CHECK(stn_queue_set_doorbell(s.q.get(), nullptr, nullptr, nullptr, nullptr) == STN_OK);
    CHECK(rings == 1);
}

void set_sync(trial& t) {
    stage s;
    t.make("stn_queue_set_sync", [&](stn_error** err) { return stn_queue_set_sync(s.q.get(), err); });
    s.store("apple", "red");
    stn_event* e = nullptr;
    REQUIRE(stn_cache_get(s.cache.get(), "apple", 5, -1, s.q.get(), 7, nullptr, nullptr, nullptr) == STN_OK);
    CHECK(stn_queue_next(s.q.get(), -1, &e, nullptr) == STN_OK);
    CHECK(stn_event_tag(e) == 7);
    stn_event_free(e);
}

void wake(trial& t) {
    stage s;
    t.make_mute("stn_queue_wake", [&] { return stn_queue_wake(s.q.get()); });
    stn_event* e = nullptr;
    CHECK(stn_queue_next(s.q.get(), -1, &e, nullptr) == STN_TIMEOUT);
}

std::uint64_t fetch_with_op(stage& s, stn_queue* q, std::uint64_t& op) {
    const auto tag = s.tag();
    REQUIRE(stn_cache_fetch(s.cache.get(), nullptr, "apple", 5, -1, 0, nullptr, q, tag, &op, nullptr, nullptr) ==
            STN_OK);
    s.owes(tag);
    return tag;
}

void cancel(trial& t) {
    stage s;
    const lease_handle held = s.lead(s.r.get(), "apple");
    std::uint64_t op = 0;
    const auto tag = fetch_with_op(s, s.q.get(), op);
    const auto other = s.fetch(s.q.get(), "apple");
    t.make_mute("stn_cancel", [&] { return stn_cancel(s.q.get(), op); });
    CHECK(stn_event_status(s.answer(s.q.get(), tag)) == STN_CANCELLED);
    REQUIRE(stn_lease_fulfil(held.get(), "red", 3, -1, -1, -1, 0, nullptr, 0, nullptr, nullptr) == STN_OK);
    CHECK(s.value(s.q.get(), other) == "red");
}

// The last one who waits: the loop must learn of it.
void cancel_last(trial& t) {
    stage s;
    const auto led = s.fetch(s.r.get(), "apple");
    const lease_handle held(stn_event_take_lease(s.answer(s.r.get(), led)));
    std::uint64_t op = 0;
    const auto tag = fetch_with_op(s, s.q.get(), op);
    std::uint32_t waiters = 0;
    REQUIRE(stn_lease_detach(held.get(), &waiters) == STN_OK);
    REQUIRE(waiters == 1);
    t.make_mute("stn_cancel", [&] { return stn_cancel(s.q.get(), op); });
    CHECK(stn_event_status(s.answer(s.q.get(), tag)) == STN_CANCELLED);
    stn_event* e = nullptr;
    REQUIRE(stn_queue_next(s.r.get(), 20'000, &e, nullptr) == STN_OK);
    s.read(e);
    CHECK(stn_event_kind(e) == STN_EVENT_REVOKED);
    CHECK(stn_event_reason(e) == STN_REASON_UNWANTED);
}

void cancel_nothing(trial& t) {
    stage s;
    t.make_mute("stn_cancel", [&] { return stn_cancel(s.q.get(), 12'345); });
}

// A queue with everything in it: an unread value and LEASE, callers that wait for a load, in two clients.
struct full_queue {
    stage s;
    stage elsewhere;
    lease_handle held;
    std::vector<std::uint64_t> tags;
    std::uint64_t heir = 0; // waits in `r` for the lease that is unread in `q`
    std::uint64_t group_waits = 0;
    flight_handle lead;

    full_queue() {
        s.store("apple", "red");
        tags.push_back(s.fetch(s.q.get(), "apple"));
        wait_for(1);
        tags.push_back(s.fetch(s.q.get(), "pear"));
        wait_for(2);
        heir = s.fetch(s.r.get(), "pear");
        held = s.lead(s.r.get(), "plum");
        for (int i = 0; i < 3; ++i) tags.push_back(s.fetch(s.q.get(), "plum"));
        lead = elsewhere.lead_group(s.r.get(), "cherry");
        group_waits = s.tag();
        stn_flight* none = nullptr;
        REQUIRE(stn_group_join(elsewhere.group.get(), "cherry", 6, 1'000'000, nullptr, s.q.get(), group_waits, nullptr,
                               &none, nullptr) == STN_OK);
        s.owes(group_waits);
        tags.push_back(group_waits);
    }

    // So many unread events, without reading any.
    void wait_for(std::size_t events) {
        stn_stats all{};
        do {
            REQUIRE(stn_client_stats(s.client.get(), &all, sizeof all, nullptr) == STN_OK);
        } while (all.events < 2 + events);
    }

    void the_heir_loads() {
        CHECK(stn_event_kind(s.answer(s.r.get(), heir)) == STN_EVENT_LEASE);
        CHECK(stn_lease_fulfil(held.get(), "blue", 4, -1, -1, -1, 0, nullptr, 0, nullptr, nullptr) == STN_OK);
    }
};

void close(trial& t) {
    full_queue f;
    t.make("stn_queue_close", [&](stn_error** err) { return stn_queue_close(f.s.q.get(), err); });
    for (const auto tag : f.tags) CHECK(stn_event_status(f.s.answer(f.s.q.get(), tag)) == STN_CLOSED);
    stn_event* none = nullptr;
    CHECK(stn_queue_next(f.s.q.get(), -1, &none, nullptr) == STN_CLOSED);
    f.the_heir_loads();
}

void free_it(trial& t) {
    full_queue f;
    t.make_silent("stn_queue_free", [&] { stn_queue_free(f.s.q.release()); });
    f.the_heir_loads();
    for (const auto tag : f.tags) f.s.forget(tag);
}

constexpr std::array all{
    scenario{"stn_queue_new", "", new_one},
    scenario{"stn_queue_next", "of a value", next_value},
    scenario{"stn_queue_next", "of a lease", next_lease},
    scenario{"stn_queue_next", "of an error", next_error},
    scenario{"stn_queue_next", "of nothing", next_of_nothing},
    scenario{"stn_queue_drain", "of five", drain},
    scenario{"stn_queue_fd", "", fd},
    scenario{"stn_queue_set_doorbell", "", doorbell},
    scenario{"stn_queue_set_sync", "", set_sync},
    scenario{"stn_queue_wake", "", wake},
    scenario{"stn_cancel", "of one of two who wait", cancel},
    scenario{"stn_cancel", "of the last who waits", cancel_last},
    scenario{"stn_cancel", "of nothing", cancel_nothing},
    scenario{"stn_queue_close", "of a full queue", close},
    scenario{"stn_queue_free", "of a full queue", free_it},
};

} // namespace

std::span<const scenario> scenarios_of_queues() {
    return all;
}

} // namespace faults
