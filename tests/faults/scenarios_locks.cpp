// SPDX-License-Identifier: MIT
#include <cstring>
#include <memory>

#include <doctest/doctest.h>

#include "stage.hpp"
#include "trial.hpp"

namespace faults {

namespace {

using lock_handle = std::unique_ptr<stn_lock, freed<stn_lock_free>>;
using tick_handle = std::unique_ptr<stn_tick, freed<stn_tick_free>>;
using lock_policy_handle = std::unique_ptr<stn_lock_policy, freed<stn_lock_policy_free>>;

constexpr const char* usual = R"({"ttl": "30s", "label": "a label that is longer than a short string"})";

stn_event* acquired(stage& s, const char* name) {
    const auto tag = s.tag();
    REQUIRE(stn_lock_acquire(s.client.get(), name, std::strlen(name), usual, nullptr, -1, nullptr, s.q.get(), tag,
                             nullptr, 0, nullptr, nullptr) == STN_OK);
    s.owes(tag);
    return s.answer(s.q.get(), tag);
}

lock_handle held(stage& s, const char* name) {
    lock_handle lock(stn_event_take_lock(acquired(s, name)));
    REQUIRE(lock);
    return lock;
}

tick_handle ticking(stage& s) {
    const auto tag = s.tag();
    REQUIRE(stn_tick_acquire(s.client.get(), "nightly", 7, R"({"every": "24h"})", -1, s.q.get(), tag, nullptr,
                             nullptr) == STN_OK);
    s.owes(tag);
    tick_handle tick(stn_event_take_tick(s.answer(s.q.get(), tag)));
    REQUIRE(tick);
    return tick;
}

// Whether somebody holds it, as an unrelated try finds.
bool is_free(stage& s, const char* name) {
    const auto tag = s.tag();
    REQUIRE(stn_lock_acquire(s.client.get(), name, std::strlen(name), usual, nullptr, 0, nullptr, s.r.get(), tag,
                             nullptr, 0, nullptr, nullptr) == STN_OK);
    s.owes(tag);
    return stn_event_kind(s.answer(s.r.get(), tag)) == STN_EVENT_LOCK;
}

void new_policy(trial& t) {
    stn_lock_policy* made = nullptr;
    t.make(
        "stn_lock_policy_new", [&](stn_error** err) { return stn_lock_policy_new(usual, &made, err); },
        [&] { return made == nullptr; });
    const lock_policy_handle owned(made);
}

void free_policy(trial& t) {
    stn_lock_policy* made = nullptr;
    REQUIRE(stn_lock_policy_new(usual, &made, nullptr) == STN_OK);
    t.make_silent("stn_lock_policy_free", [&] { stn_lock_policy_free(made); });
}

void acquire_with(trial& t, const char* json, bool waits) {
    stage s;
    lock_handle other;
    if (waits) other = held(s, "a name that is longer than a short string");
    const auto tag = s.tag();
    std::uint64_t op = 0;
    t.make(
        "stn_lock_acquire",
        [&](stn_error** err) {
            return stn_lock_acquire(s.client.get(), "a name that is longer than a short string", 41, json, nullptr, -1,
                                    nullptr, s.q.get(), tag, nullptr, 0, &op, err);
        },
        [&] { return op == 0; });
    CHECK(op != 0);
    s.owes(tag);
    other.reset();
    CHECK(stn_event_kind(s.answer(s.q.get(), tag)) == STN_EVENT_LOCK);
}

void acquire_free(trial& t) {
    acquire_with(t, usual, false);
}

void acquire_held(trial& t) {
    acquire_with(t, usual, true);
}

void take(trial& t) {
    stage s;
    stn_event* e = acquired(s, "report");
    lock_handle lock;
    t.make_quiet("stn_event_take_lock", [&] {
        lock.reset(stn_event_take_lock(e));
        return lock != nullptr;
    });
    CHECK(stn_lock_held(lock.get()) == 1);
}

void take_tick(trial& t) {
    stage s;
    const auto tag = s.tag();
    REQUIRE(stn_tick_acquire(s.client.get(), "nightly", 7, R"({"every": "24h"})", -1, s.q.get(), tag, nullptr,
                             nullptr) == STN_OK);
    s.owes(tag);
    stn_event* e = s.answer(s.q.get(), tag);
    tick_handle tick;
    t.make_quiet("stn_event_take_tick", [&] {
        tick.reset(stn_event_take_tick(e));
        return tick != nullptr;
    });
}

void wait_lost(trial& t) {
    stage s;
    const lock_handle lock = held(s, "report");
    t.make(
        "stn_lock_wait_lost", [&](stn_error** err) { return stn_lock_wait_lost(lock.get(), 0, err); }, {}, STN_TIMEOUT);
}

void renew(trial& t) {
    stage s;
    const lock_handle lock = held(s, "report");
    const auto tag = s.tag();
    t.make("stn_lock_renew", [&](stn_error** err) { return stn_lock_renew(lock.get(), -1, s.q.get(), tag, err); });
    s.owes(tag);
    CHECK(stn_event_kind(s.answer(s.q.get(), tag)) == STN_EVENT_DONE);
    CHECK(stn_lock_held(lock.get()) == 1);
}

void release(trial& t) {
    stage s;
    const lock_handle lock = held(s, "report");
    const auto tag = s.tag();
    t.unchanged([&] { return stn_lock_held(lock.get()) == 1; });
    t.make("stn_lock_release", [&](stn_error** err) { return stn_lock_release(lock.get(), -1, s.q.get(), tag, err); });
    s.owes(tag);
    CHECK(stn_event_kind(s.answer(s.q.get(), tag)) == STN_EVENT_DONE);
    CHECK(is_free(s, "report"));
}

void leave(trial& t) {
    stage s;
    const lock_handle lock = held(s, "report");
    t.unchanged([&] { return stn_lock_held(lock.get()) == 1; });
    t.make("stn_lock_leave", [&](stn_error** err) { return stn_lock_leave(lock.get(), err); });
    CHECK(!is_free(s, "report"));
}

void free_held(trial& t) {
    stage s;
    lock_handle lock = held(s, "report");
    t.make_silent("stn_lock_free", [&] { stn_lock_free(lock.release()); });
    CHECK(is_free(s, "report"));
}

void inspect(trial& t) {
    stage s;
    const lock_handle lock = held(s, "report");
    const auto tag = s.tag();
    std::uint64_t op = 0;
    t.make(
        "stn_lock_inspect",
        [&](stn_error** err) {
            return stn_lock_inspect(s.client.get(), "report", 6, nullptr, 0, -1, s.q.get(), tag, &op, err);
        },
        [&] { return op == 0; });
    s.owes(tag);
    CHECK(stn_event_kind(s.answer(s.q.get(), tag)) == STN_EVENT_VALUE);
}

void tick(trial& t) {
    stage s;
    const auto tag = s.tag();
    std::uint64_t op = 0;
    t.make(
        "stn_tick_acquire",
        [&](stn_error** err) {
            return stn_tick_acquire(s.client.get(), "nightly", 7, R"({"every": "24h"})", -1, s.q.get(), tag, &op, err);
        },
        [&] { return op == 0; });
    s.owes(tag);
    CHECK(stn_event_kind(s.answer(s.q.get(), tag)) == STN_EVENT_TICK);
}

void tick_done(trial& t) {
    stage s;
    const tick_handle held_tick = ticking(s);
    const auto tag = s.tag();
    t.make("stn_tick_done",
           [&](stn_error** err) { return stn_tick_done(held_tick.get(), 1, -1, s.q.get(), tag, err); });
    s.owes(tag);
    CHECK(stn_event_kind(s.answer(s.q.get(), tag)) == STN_EVENT_DONE);
}

void free_tick(trial& t) {
    stage s;
    tick_handle held_tick = ticking(s);
    t.make_silent("stn_tick_free", [&] { stn_tick_free(held_tick.release()); });
    ticking(s); // it is there again
}

void once(trial& t) {
    stage s;
    const auto tag = s.tag();
    std::uint64_t op = 0;
    t.make(
        "stn_once",
        [&](stn_error** err) { return stn_once(s.client.get(), "order 7", 7, 60'000, -1, s.q.get(), tag, &op, err); },
        [&] { return op == 0; });
    s.owes(tag);
    CHECK(stn_event_status(s.answer(s.q.get(), tag)) == STN_OK);
}

constexpr scenario all[] = {
    {"stn_lock_policy_new", "", new_policy},
    {"stn_lock_policy_free", "", free_policy},
    {"stn_lock_acquire", "of a free lock", acquire_free},
    {"stn_lock_acquire", "of a held lock", acquire_held},
    {"stn_event_take_lock", "", take},
    {"stn_event_take_tick", "", take_tick},
    {"stn_lock_wait_lost", "while it is held", wait_lost},
    {"stn_lock_renew", "", renew},
    {"stn_lock_release", "", release},
    {"stn_lock_leave", "", leave},
    {"stn_lock_free", "while it is held", free_held},
    {"stn_lock_inspect", "", inspect},
    {"stn_tick_acquire", "", tick},
    {"stn_tick_done", "", tick_done},
    {"stn_tick_free", "while it runs", free_tick},
    {"stn_once", "", once},
};

} // namespace

std::span<const scenario> scenarios_of_locks() {
    return all;
}

} // namespace faults
