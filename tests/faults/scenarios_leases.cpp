// SPDX-License-Identifier: MIT
#include <array>

#include <doctest/doctest.h>

#include "stage.hpp"
#include "trial.hpp"

namespace faults {

namespace {

// A lease in `q`'s hands, and callers of three queues who wait for its answer.
struct crowd {
    stage s;
    lease_handle held;
    std::array<std::uint64_t, 6> waits{};
    std::array<stn_queue*, 6> home{};

    crowd() : held(s.lead(s.q.get(), "apple")) {
        home = {s.q.get(), s.q.get(), s.r.get(), s.s.get(), s.r.get(), s.s.get()};
        for (std::size_t i = 0; i < waits.size(); ++i) waits[i] = s.fetch(home[i], "apple");
    }
    void all_get(std::string_view value) {
        for (std::size_t i = 0; i < waits.size(); ++i) CHECK(s.value(home[i], waits[i]) == value);
    }
    void is_live(trial& t) {
        t.unchanged([this] { return stn_lease_state(held.get()) == STN_LEASE_LIVE && s.flights() == 1; });
    }
};

void fulfil(trial& t) {
    crowd c;
    c.is_live(t);
    const auto tag = c.s.tag();
    std::uint32_t shared = 7;
    t.make(
        "stn_lease_fulfil",
        [&](stn_error** err) {
            return stn_lease_fulfil(c.held.get(), "a value of some length", 22, -1, 1'000'000, 0, 42, c.s.q.get(), tag,
                                    &shared, err);
        },
        [&] { return shared == 0; });
    c.s.owes(tag);
    CHECK(shared == 4);
    c.all_get("a value of some length");
    CHECK(stn_event_status(c.s.answer(c.s.q.get(), tag)) == STN_OK);
    CHECK(c.s.stored("apple") == "a value of some length");
}

void fulfil_alone(trial& t) {
    stage s;
    const lease_handle held = s.lead(s.q.get(), "apple");
    t.make("stn_lease_fulfil", [&](stn_error** err) {
        return stn_lease_fulfil(held.get(), "red", 3, -1, -1, -1, 0, nullptr, 0, nullptr, err);
    });
    CHECK(s.value(s.q.get(), s.fetch(s.q.get(), "apple")) == "red");
}

void fulfil_again(trial& t) {
    stage s;
    const lease_handle held = s.lead(s.q.get(), "apple");
    REQUIRE(stn_lease_fulfil(held.get(), "red", 3, -1, -1, -1, 0, nullptr, 0, nullptr, nullptr) == STN_OK);
    t.make(
        "stn_lease_fulfil",
        [&](stn_error** err) {
            return stn_lease_fulfil(held.get(), "red", 3, -1, -1, -1, 0, s.q.get(), s.tag(), nullptr, err);
        },
        {}, STN_INVALID_ARGUMENT);
}

void fulfil_after_close(trial& t) {
    stage s;
    const lease_handle held = s.lead(s.q.get(), "apple");
    REQUIRE(stn_client_close(s.client.get(), 0, nullptr) == STN_OK);
    const auto tag = s.tag();
    t.make("stn_lease_fulfil", [&](stn_error** err) {
        return stn_lease_fulfil(held.get(), "red", 3, -1, -1, -1, 0, s.r.get(), tag, nullptr, err);
    });
    s.owes(tag);
    stn_event* e = s.answer(s.r.get(), tag);
    CHECK(stn_event_status(e) != STN_OK);
}

void fulfil_absent(trial& t) {
    crowd c;
    c.is_live(t);
    t.make("stn_lease_fulfil_absent", [&](stn_error** err) {
        return stn_lease_fulfil_absent(c.held.get(), 1'000'000, 0, nullptr, 0, nullptr, err);
    });
    c.all_get("-");
}

void fail(trial& t) {
    crowd c;
    c.is_live(t);
    std::uint32_t shared = 7;
    t.make(
        "stn_lease_fail",
        [&](stn_error** err) {
            return stn_lease_fail(c.held.get(), STN_LOAD_FAILED, "no answer from the database of this test", 42,
                                  &shared, err);
        },
        [&] { return shared == 0; });
    CHECK(shared == 4);
    c.all_get("(13 load_failed)");
}

void detach_alone(trial& t) {
    stage s;
    const lease_handle held = s.lead(s.q.get(), "apple");
    std::uint32_t waiters = 7;
    t.make_mute(
        "stn_lease_detach", [&] { return stn_lease_detach(held.get(), &waiters); }, [&] { return waiters == 0; });
    CHECK(waiters == 0);
    CHECK(stn_event_kind(s.answer(s.q.get(), s.fetch(s.q.get(), "apple"))) == STN_EVENT_LEASE);
}

void detach_from_others(trial& t) {
    crowd c;
    c.is_live(t);
    std::uint32_t waiters = 7;
    t.make_mute(
        "stn_lease_detach", [&] { return stn_lease_detach(c.held.get(), &waiters); }, [&] { return waiters == 0; });
    CHECK(waiters == 6);
    REQUIRE(stn_lease_fulfil(c.held.get(), "red", 3, -1, -1, -1, 0, nullptr, 0, nullptr, nullptr) == STN_OK);
    c.all_get("red");
}

void scope(trial& t) {
    stage s;
    const lease_handle held = s.lead(s.q.get(), "apple");
    stn_scope* made = nullptr;
    t.make_quiet("stn_lease_scope", [&] { return (made = stn_lease_scope(held.get())) != nullptr; });
    const scope_handle owned(made);
    CHECK(stn_cache_fetch(s.cache.get(), nullptr, "apple", 5, -1, 0, made, s.q.get(), 0, nullptr, nullptr, nullptr) ==
          STN_WOULD_DEADLOCK);
}

void take(trial& t) {
    stage s;
    stn_event* e = s.answer(s.q.get(), s.fetch(s.q.get(), "apple"));
    const auto waits = s.fetch(s.r.get(), "apple");
    stn_lease* taken = nullptr;
    t.make_quiet("stn_event_take_lease", [&] { return (taken = stn_event_take_lease(e)) != nullptr; });
    const lease_handle held(taken);
    CHECK(stn_event_take_lease(e) == nullptr);
    REQUIRE(stn_lease_fulfil(taken, "red", 3, -1, -1, -1, 0, nullptr, 0, nullptr, nullptr) == STN_OK);
    CHECK(s.value(s.r.get(), waits) == "red");
}

// Given up: the one who has waited longest loads, the others get what it loads.
void hands_on(crowd& c) {
    stn_event* e = c.s.answer(c.s.q.get(), c.waits[0]);
    REQUIRE(stn_event_kind(e) == STN_EVENT_LEASE);
    const lease_handle next(stn_event_take_lease(e));
    REQUIRE(stn_lease_fulfil(next.get(), "red", 3, -1, -1, -1, 0, nullptr, 0, nullptr, nullptr) == STN_OK);
    for (std::size_t i = 1; i < c.waits.size(); ++i) CHECK(c.s.value(c.home[i], c.waits[i]) == "red");
}

void free_it(trial& t) {
    crowd c;
    t.make_silent("stn_lease_free", [&] { c.held.reset(); });
    hands_on(c);
}

void free_alone(trial& t) {
    stage s;
    lease_handle held = s.lead(s.q.get(), "apple");
    t.make_silent("stn_lease_free", [&] { held.reset(); });
    s.all_flights_end();
    CHECK(stn_event_kind(s.answer(s.q.get(), s.fetch(s.q.get(), "apple"))) == STN_EVENT_LEASE);
}

void free_in_event(trial& t) {
    stage s;
    const auto tag = s.tag();
    REQUIRE(stn_cache_fetch(s.cache.get(), nullptr, "apple", 5, -1, 0, nullptr, s.q.get(), tag, nullptr, nullptr,
                            nullptr) == STN_OK);
    stn_event* e = nullptr;
    REQUIRE(stn_queue_next(s.q.get(), 20'000, &e, nullptr) == STN_OK);
    const auto waits = s.fetch(s.r.get(), "apple");
    t.make_silent("stn_event_free", [&] { stn_event_free(e); });
    CHECK(stn_event_kind(s.answer(s.r.get(), waits)) == STN_EVENT_LEASE);
}

// A lease that nobody waits for: the value is stale, and this caller refreshes it.
struct refresh {
    stage s{"memory://?clock=manual", stage::meanwhile::nothing};
    lease_handle held;

    refresh() {
        const auto stored = s.tag();
        REQUIRE(stn_cache_put(s.cache.get(), nullptr, "apple", 5, "old", 3, -1, 100'000, 1'000, -1, s.q.get(), stored,
                              nullptr, nullptr) == STN_OK);
        s.owes(stored);
        static_cast<void>(s.answer(s.q.get(), stored));
        REQUIRE(stn_client_advance(s.client.get(), 50'000, nullptr) == STN_OK);
        const auto tag = s.tag();
        REQUIRE(stn_cache_fetch(s.cache.get(), nullptr, "apple", 5, -1, STN_FETCH_REFRESH, nullptr, s.q.get(), tag,
                                nullptr, nullptr, nullptr) == STN_OK);
        s.owes(tag);
        CHECK(s.value(s.q.get(), tag) == "old");
        stn_event* e = nullptr;
        REQUIRE(stn_queue_next(s.q.get(), 20'000, &e, nullptr) == STN_OK);
        s.read(e);
        REQUIRE(stn_event_kind(e) == STN_EVENT_REFRESH);
        held.reset(stn_event_take_lease(e));
    }
};

void fulfil_refresh(trial& t) {
    refresh r;
    const auto tag = r.s.tag();
    t.unchanged([&] { return r.s.stored("apple") == "old" && stn_lease_state(r.held.get()) == STN_LEASE_LIVE; });
    t.make("stn_lease_fulfil", [&](stn_error** err) {
        return stn_lease_fulfil(r.held.get(), "new", 3, -1, -1, -1, 0, r.s.q.get(), tag, nullptr, err);
    });
    r.s.owes(tag);
    CHECK(stn_event_status(r.s.answer(r.s.q.get(), tag)) == STN_OK);
    CHECK(r.s.stored("apple") == "new");
}

void free_refresh(trial& t) {
    refresh r;
    t.make_silent("stn_lease_free", [&] { r.held.reset(); });
    CHECK(r.s.stored("apple") == "old");
    r.s.all_flights_end();
}

constexpr std::array all{
    scenario{"stn_lease_fulfil", "with waiters in three queues", fulfil},
    scenario{"stn_lease_fulfil", "with nobody waiting", fulfil_alone},
    scenario{"stn_lease_fulfil", "after another answer", fulfil_again},
    scenario{"stn_lease_fulfil", "after the client was closed", fulfil_after_close},
    scenario{"stn_lease_fulfil", "of a refresh", fulfil_refresh},
    scenario{"stn_lease_fulfil_absent", "with waiters in three queues", fulfil_absent},
    scenario{"stn_lease_fail", "with waiters in three queues", fail},
    scenario{"stn_lease_detach", "with nobody waiting", detach_alone},
    scenario{"stn_lease_detach", "with waiters", detach_from_others},
    scenario{"stn_lease_scope", "", scope},
    scenario{"stn_event_take_lease", "", take},
    scenario{"stn_lease_free", "unanswered, with waiters", free_it},
    scenario{"stn_lease_free", "unanswered, with nobody waiting", free_alone},
    scenario{"stn_lease_free", "of a refresh", free_refresh},
    scenario{"stn_event_free", "with a lease inside", free_in_event},
};

} // namespace

std::span<const scenario> scenarios_of_leases() {
    return all;
}

} // namespace faults
