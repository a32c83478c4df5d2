// SPDX-License-Identifier: MIT
#include <array>
#include <string>

#include <doctest/doctest.h>

#include "stage.hpp"
#include "trial.hpp"

namespace faults {

namespace {

void open_as(trial& t, const char* options, std::int32_t wanted = STN_OK) {
    stage s;
    stn_cache* made = nullptr;
    t.make(
        "stn_cache_open",
        [&](stn_error** err) { return stn_cache_open(s.client.get(), "new", 3, options, &made, err); },
        [&] { return made == nullptr; }, wanted);
    const cache_handle owned(made);
}

void open(trial& t) {
    open_as(t, R"({"ttl": "1h", "soft_ttl_ms": 5, "version": 2, "jitter": 0.25, "codec": "json", "fleet": false})");
}

void open_wrongly(trial& t) {
    open_as(t, R"({"ttll": "1h"})", STN_UNKNOWN_OPTION);
}

void policy(trial& t) {
    stage s;
    stn_policy* made = nullptr;
    t.make(
        "stn_policy_new",
        [&](stn_error** err) { return stn_policy_new(s.cache.get(), R"({"ttl": "5m", "early": 0})", &made, err); },
        [&] { return made == nullptr; });
    const policy_handle owned(made);
}

// One fetch on trial: all that `how` says, and the event that it leads to.
struct fetch_how {
    std::int64_t deadline_ms = 20'000;
    std::uint32_t flags = 0;
    const stn_scope* within = nullptr;
    const stn_policy* policy = nullptr;
};

stn_event* fetch(trial& t, stage& s, fetch_how how = {}) {
    const auto tag = s.tag();
    std::uint64_t op = 0;
    stn_event* now = nullptr;
    const std::size_t before = s.flights();
    t.unchanged([&] { return s.flights() == before; });
    t.make(
        "stn_cache_fetch",
        [&](stn_error** err) {
            return stn_cache_fetch(s.cache.get(), how.policy, "apple", 5, how.deadline_ms, how.flags, how.within,
                                   s.q.get(), tag, &op, &now, err);
        },
        [&] { return op == 0 && now == nullptr; });
    s.owes(tag);
    CHECK((op == 0) == (now != nullptr));
    if (now != nullptr) s.read(now);
    return s.answer(s.q.get(), tag);
}

void miss(trial& t) {
    stage s;
    CHECK(stn_event_kind(fetch(t, s)) == STN_EVENT_LEASE);
}

void hit(trial& t) {
    stage s;
    s.store("apple", "red");
    CHECK(stn_event_kind(fetch(t, s)) == STN_EVENT_VALUE);
}

void with_policy(trial& t) {
    stage s;
    stn_policy* made = nullptr;
    REQUIRE(stn_policy_new(s.cache.get(), R"({"coalesce": false})", &made, nullptr) == STN_OK);
    const policy_handle owned(made);
    CHECK(stn_event_kind(fetch(t, s, {.policy = made})) == STN_EVENT_LEASE);
}

void without_store(trial& t) {
    stage s;
    CHECK(stn_event_kind(fetch(t, s, {.flags = STN_FETCH_NO_STORE})) == STN_EVENT_LEASE);
}

void joins(trial& t) {
    stage s;
    const lease_handle held = s.lead(s.r.get(), "apple");
    const auto tag = s.tag();
    t.make("stn_cache_fetch", [&](stn_error** err) {
        return stn_cache_fetch(s.cache.get(), nullptr, "apple", 5, 1'000'000, 0, nullptr, s.q.get(), tag, nullptr,
                               nullptr, err);
    });
    s.owes(tag);
    REQUIRE(stn_lease_fulfil(held.get(), "red", 3, -1, -1, -1, 0, nullptr, 0, nullptr, nullptr) == STN_OK);
    CHECK(s.value(s.q.get(), tag) == "red");
}

// Its deadline is the first of the flight's, so the loop must hear of it.
void joins_in_a_hurry(trial& t) {
    stage s;
    const lease_handle held = s.lead(s.r.get(), "apple");
    CHECK(stn_event_status(fetch(t, s, {.deadline_ms = 30})) == STN_TIMEOUT);
}

void does_not_wait(trial& t) {
    stage s;
    const lease_handle held = s.lead(s.r.get(), "apple");
    CHECK(stn_event_status(fetch(t, s, {.deadline_ms = 0})) == STN_TIMEOUT);
}

void inside_a_load(trial& t) {
    stage s;
    const lease_handle outer = s.lead(s.r.get(), "pear");
    const scope_handle scope(stn_lease_scope(outer.get()));
    const lease_handle held = s.lead(s.r.get(), "apple");
    const auto tag = s.tag();
    t.make("stn_cache_fetch", [&](stn_error** err) {
        return stn_cache_fetch(s.cache.get(), nullptr, "apple", 5, 1'000'000, 0, scope.get(), s.q.get(), tag, nullptr,
                               nullptr, err);
    });
    s.owes(tag);
    // the edge is there, once: the other way round it would be a circle
    const scope_handle inner(stn_lease_scope(held.get()));
    CHECK(stn_cache_fetch(s.cache.get(), nullptr, "pear", 4, -1, 0, inner.get(), s.q.get(), 0, nullptr, nullptr,
                          nullptr) == STN_WOULD_DEADLOCK);
    REQUIRE(stn_lease_fulfil(held.get(), "red", 3, -1, -1, -1, 0, nullptr, 0, nullptr, nullptr) == STN_OK);
    CHECK(s.value(s.q.get(), tag) == "red");
}

void leads_inside_a_load(trial& t) {
    stage s;
    const lease_handle outer = s.lead(s.r.get(), "pear");
    const scope_handle scope(stn_lease_scope(outer.get()));
    CHECK(stn_event_kind(fetch(t, s, {.within = scope.get()})) == STN_EVENT_LEASE);
}

void in_a_circle(trial& t) {
    stage s;
    const lease_handle outer = s.lead(s.r.get(), "apple");
    const scope_handle scope(stn_lease_scope(outer.get()));
    std::uint64_t op = 0;
    t.make(
        "stn_cache_fetch",
        [&](stn_error** err) {
            return stn_cache_fetch(s.cache.get(), nullptr, "apple", 5, -1, 0, scope.get(), s.q.get(), s.tag(), &op,
                                   nullptr, err);
        },
        [&] { return op == 0; }, STN_WOULD_DEADLOCK);
}

void of_no_key(trial& t) {
    stage s;
    t.make(
        "stn_cache_fetch",
        [&](stn_error** err) {
            return stn_cache_fetch(s.cache.get(), nullptr, "", 0, -1, 0, nullptr, s.q.get(), s.tag(), nullptr, nullptr,
                                   err);
        },
        {}, STN_INVALID_ARGUMENT);
}

stn_event* refetch(trial& t, stage& s, const stn_event* broken) {
    const auto tag = s.tag();
    t.make("stn_cache_refetch", [&](stn_error** err) {
        return stn_cache_refetch(s.cache.get(), nullptr, broken, 20'000, nullptr, s.q.get(), tag, nullptr, nullptr,
                                 err);
    });
    s.owes(tag);
    return s.answer(s.q.get(), tag);
}

void refetch_once(trial& t) {
    stage s;
    s.store("apple", "?");
    CHECK(stn_event_kind(refetch(t, s, s.answer(s.q.get(), s.fetch(s.q.get(), "apple")))) == STN_EVENT_LEASE);
}

void refetch_twice(trial& t) {
    stage s;
    s.store("apple", "?");
    const stn_event* broken = s.answer(s.q.get(), s.fetch(s.q.get(), "apple"));
    const auto tag = s.tag();
    REQUIRE(stn_cache_refetch(s.cache.get(), nullptr, broken, 20'000, nullptr, s.q.get(), tag, nullptr, nullptr,
                              nullptr) == STN_OK);
    s.owes(tag);
    stn_event* e = s.answer(s.q.get(), tag);
    REQUIRE(stn_event_kind(e) == STN_EVENT_LEASE);
    const lease_handle held(stn_event_take_lease(e));
    const auto again = s.tag();
    REQUIRE(stn_cache_refetch(s.cache.get(), nullptr, broken, 20'000, nullptr, s.r.get(), again, nullptr, nullptr,
                              nullptr) == STN_OK);
    s.owes(again);
    s.store("apple", "??"); // the load is refused, and its waiter reads the store
    REQUIRE(stn_lease_fulfil(held.get(), "???", 3, -1, -1, -1, 0, nullptr, 0, nullptr, nullptr) == STN_OK);
    const stn_event* answered = s.answer(s.r.get(), again);
    REQUIRE(stn_event_kind(answered) == STN_EVENT_VALUE);
    static_cast<void>(refetch(t, s, s.answer(s.q.get(), s.fetch(s.q.get(), "apple"))));
}

void get(trial& t) {
    stage s;
    s.store("apple", "red");
    const auto tag = s.tag();
    std::uint64_t op = 0;
    stn_event* now = nullptr;
    t.unchanged([&] { return s.flights() == 0; });
    t.make(
        "stn_cache_get",
        [&](stn_error** err) { return stn_cache_get(s.cache.get(), "apple", 5, -1, s.q.get(), tag, &op, &now, err); },
        [&] { return op == 0 && now == nullptr; });
    s.owes(tag);
    CHECK(s.value(s.q.get(), tag) == "red");
}

void put(trial& t) {
    stage s;
    const lease_handle held = s.lead(s.r.get(), "apple");
    const auto tag = s.tag();
    std::uint64_t op = 0;
    t.unchanged([&] { // the load is not detached, nothing is stored
        const auto joined = s.fetch(s.r.get(), "apple");
        const bool together = s.flights() == 1;
        const bool nothing = s.stored("apple") == "-";
        static_cast<void>(joined);
        return together && nothing && stn_lease_state(held.get()) == STN_LEASE_LIVE;
    });
    t.make(
        "stn_cache_put",
        [&](stn_error** err) {
            return stn_cache_put(s.cache.get(), nullptr, "apple", 5, "a value of some length", 22, -1, 1'000'000, 0,
                                 20'000, s.q.get(), tag, &op, err);
        },
        [&] { return op == 0; });
    s.owes(tag);
    CHECK(stn_event_kind(s.answer(s.q.get(), tag)) == STN_EVENT_DONE);
    CHECK(s.stored("apple") == "a value of some length");
}

void put_too_much(trial& t) {
    stage s;
    const std::string much(9 << 20, 'x');
    t.make(
        "stn_cache_put",
        [&](stn_error** err) {
            return stn_cache_put(s.cache.get(), nullptr, "apple", 5, much.data(), much.size(), -1, -1, -1, -1,
                                 s.q.get(), s.tag(), nullptr, err);
        },
        {}, STN_TOO_LARGE);
}

void invalidate_with(trial& t, std::uint32_t flags) {
    stage s;
    s.store("apple", "red");
    const auto tag = s.tag();
    std::uint64_t op = 0;
    t.unchanged([&] { return s.stored("apple") == "red"; });
    t.make(
        "stn_cache_invalidate",
        [&](stn_error** err) {
            return stn_cache_invalidate(s.cache.get(), "apple", 5, flags, 20'000, s.q.get(), tag, &op, err);
        },
        [&] { return op == 0; });
    s.owes(tag);
    CHECK(stn_event_kind(s.answer(s.q.get(), tag)) == STN_EVENT_DONE);
    CHECK(s.stored("apple") == (flags == 0 ? "-" : "red"));
}

void invalidate(trial& t) {
    invalidate_with(t, 0);
}

void make_stale(trial& t) {
    invalidate_with(t, STN_INVALIDATE_STALE);
}

void free_cache(trial& t) {
    stage s;
    const auto tag = s.fetch(s.q.get(), "apple");
    t.make_silent("stn_cache_free", [&] { s.cache.reset(); });
    CHECK(stn_event_kind(s.answer(s.q.get(), tag)) == STN_EVENT_LEASE);
}

// The last handle of a client: what waits in it ends.
void free_last(trial& t) {
    stage s("memory://", stage::meanwhile::nothing);
    const lease_handle held = s.lead(s.r.get(), "apple");
    const auto tag = s.fetch(s.q.get(), "apple");
    s.group.reset();
    s.client.reset();
    t.make_silent("stn_cache_free", [&] { s.cache.reset(); });
    CHECK(stn_event_status(s.answer(s.q.get(), tag)) == STN_CLOSED);
}

constexpr std::array all{
    scenario{"stn_cache_open", "with many options", open},
    scenario{"stn_cache_open", "with an option that there is not", open_wrongly},
    scenario{"stn_policy_new", "", policy},
    scenario{"stn_cache_fetch", "of a miss", miss},
    scenario{"stn_cache_fetch", "of a hit", hit},
    scenario{"stn_cache_fetch", "with a policy", with_policy},
    scenario{"stn_cache_fetch", "without the store", without_store},
    scenario{"stn_cache_fetch", "that joins", joins},
    scenario{"stn_cache_fetch", "that joins with the first deadline", joins_in_a_hurry},
    scenario{"stn_cache_fetch", "that does not wait", does_not_wait},
    scenario{"stn_cache_fetch", "that joins from inside a load", inside_a_load},
    scenario{"stn_cache_fetch", "that leads inside a load", leads_inside_a_load},
    scenario{"stn_cache_fetch", "that would close a circle", in_a_circle},
    scenario{"stn_cache_fetch", "of no key", of_no_key},
    scenario{"stn_cache_refetch", "", refetch_once},
    scenario{"stn_cache_refetch", "after another", refetch_twice},
    scenario{"stn_cache_get", "", get},
    scenario{"stn_cache_put", "during a load", put},
    scenario{"stn_cache_put", "of too much", put_too_much},
    scenario{"stn_cache_invalidate", "", invalidate},
    scenario{"stn_cache_invalidate", "that marks stale", make_stale},
    scenario{"stn_cache_free", "with a call under way", free_cache},
    scenario{"stn_cache_free", "of the last handle", free_last},
};

} // namespace

std::span<const scenario> scenarios_of_caches() {
    return all;
}

} // namespace faults
