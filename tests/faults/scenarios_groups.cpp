// SPDX-License-Identifier: MIT
#include <array>

#include <doctest/doctest.h>

#include "stage.hpp"
#include "trial.hpp"

namespace faults {

namespace {

void new_one(trial& t, stn_client* of) {
    stn_group* made = nullptr;
    t.make(
        "stn_group_new", [&](stn_error** err) { return stn_group_new(of, "{}", &made, err); },
        [&] { return made == nullptr; });
    const group_handle owned(made);
}

void new_in_client(trial& t) {
    stage s;
    new_one(t, s.client.get());
}

void new_without_client(trial& t) {
    new_one(t, nullptr);
}

void new_with_options(trial& t) {
    stn_group* made = nullptr;
    t.make(
        "stn_group_new", [&](stn_error** err) { return stn_group_new(nullptr, R"({"ttl": 1})", &made, err); }, {},
        STN_UNKNOWN_OPTION);
}

void lead(trial& t) {
    stage s;
    stn_flight* made = nullptr;
    std::uint64_t op = 0;
    t.unchanged([&] { return s.flights() == 0; });
    t.make(
        "stn_group_join",
        [&](stn_error** err) {
            return stn_group_join(s.group.get(), "a key of a group that is long", 29, -1, nullptr, s.q.get(), s.tag(),
                                  &op, &made, err);
        },
        [&] { return made == nullptr && op == 0; });
    CHECK(op == 0);
    const flight_handle owned(made);
    CHECK(made != nullptr);
}

void join_with(trial& t, std::int64_t deadline_ms, bool inside, std::int32_t ends) {
    stage s;
    flight_handle held = s.lead_group(s.r.get(), "apple");
    const flight_handle outer = s.lead_group(s.r.get(), "pear");
    const scope_handle scope(inside ? stn_flight_scope(outer.get()) : nullptr);
    const auto tag = s.tag();
    std::uint64_t op = 0;
    stn_flight* none = nullptr;
    t.make(
        "stn_group_join",
        [&](stn_error** err) {
            return stn_group_join(s.group.get(), "apple", 5, deadline_ms, scope.get(), s.q.get(), tag, &op, &none, err);
        },
        [&] { return none == nullptr && op == 0; });
    CHECK(none == nullptr);
    CHECK(op != 0);
    s.owes(tag);
    if (ends == STN_TIMEOUT) {
        CHECK(stn_event_status(s.answer(s.q.get(), tag)) == STN_TIMEOUT);
        return;
    }
    REQUIRE(stn_flight_finish(held.get(), STN_OK, "red", 3, 0, nullptr, nullptr) == STN_OK);
    CHECK(s.value(s.q.get(), tag) == "red");
}

void join(trial& t) {
    join_with(t, -1, false, STN_OK);
}

void join_with_deadline(trial& t) {
    join_with(t, 30, false, STN_TIMEOUT);
}

void join_without_waiting(trial& t) {
    join_with(t, 0, false, STN_TIMEOUT);
}

void join_inside_a_flight(trial& t) {
    join_with(t, -1, true, STN_OK);
}

void join_in_a_circle(trial& t) {
    stage s;
    const flight_handle outer = s.lead_group(s.r.get(), "apple");
    const scope_handle scope(stn_flight_scope(outer.get()));
    stn_flight* none = nullptr;
    t.make(
        "stn_group_join",
        [&](stn_error** err) {
            return stn_group_join(s.group.get(), "apple", 5, -1, scope.get(), s.q.get(), s.tag(), nullptr, &none, err);
        },
        [&] { return none == nullptr; }, STN_WOULD_DEADLOCK);
}

void forget(trial& t) {
    stage s;
    const flight_handle held = s.lead_group(s.r.get(), "apple");
    t.make("stn_group_forget", [&](stn_error** err) { return stn_group_forget(s.group.get(), "apple", 5, err); });
    const flight_handle another = s.lead_group(s.q.get(), "apple");
}

void forget_nothing(trial& t) {
    stage s;
    t.make(
        "stn_group_forget", [&](stn_error** err) { return stn_group_forget(s.group.get(), "", 0, err); }, {},
        STN_INVALID_ARGUMENT);
}

// A flight that `q` leads, and callers of three queues who wait for it, one of them with a deadline.
struct crowd {
    stage s;
    flight_handle held;
    std::array<std::uint64_t, 6> waits{};
    std::array<stn_queue*, 6> home{};

    crowd() : held(s.lead_group(s.q.get(), "apple")) {
        home = {s.q.get(), s.q.get(), s.r.get(), s.s.get(), s.r.get(), s.s.get()};
        for (std::size_t i = 0; i + 1 < waits.size(); ++i) waits[i] = s.join(home[i], "apple");
        waits.back() = s.tag();
        stn_flight* none = nullptr;
        REQUIRE(stn_group_join(s.group.get(), "apple", 5, 1'000'000, nullptr, home.back(), waits.back(), nullptr, &none,
                               nullptr) == STN_OK);
        s.owes(waits.back());
    }
    void all_get(std::string_view value, std::size_t but = 0) {
        for (std::size_t i = but; i < waits.size(); ++i) CHECK(s.value(home[i], waits[i]) == value);
    }
};

void finish(trial& t) {
    crowd c;
    std::uint32_t shared = 7;
    t.unchanged([&] { return c.s.flights() == 1; });
    t.make(
        "stn_flight_finish",
        [&](stn_error** err) {
            return stn_flight_finish(c.held.get(), STN_OK, "a value of some length", 22, 42, &shared, err);
        },
        [&] { return shared == 0; });
    CHECK(shared == 4);
    c.all_get("a value of some length");
    c.held.reset();
    c.s.all_flights_end(); // long before the deadline that one of them had
}

void finish_with_an_error(trial& t) {
    crowd c;
    t.make("stn_flight_finish", [&](stn_error** err) {
        return stn_flight_finish(c.held.get(), STN_LOAD_FAILED, "no answer from the database of this test", 40, 0,
                                 nullptr, err);
    });
    c.all_get("(13 load_failed)");
}

void finish_alone(trial& t) {
    stage s;
    const flight_handle held = s.lead_group(s.q.get(), "apple");
    t.make("stn_flight_finish",
           [&](stn_error** err) { return stn_flight_finish(held.get(), STN_OK, "red", 3, 0, nullptr, err); });
    const flight_handle next = s.lead_group(s.q.get(), "apple");
}

void finish_again(trial& t) {
    stage s;
    const flight_handle held = s.lead_group(s.q.get(), "apple");
    REQUIRE(stn_flight_finish(held.get(), STN_OK, "red", 3, 0, nullptr, nullptr) == STN_OK);
    t.make(
        "stn_flight_finish",
        [&](stn_error** err) { return stn_flight_finish(held.get(), STN_OK, "red", 3, 0, nullptr, err); }, {},
        STN_INVALID_ARGUMENT);
}

void detach_alone(trial& t) {
    stage s;
    const flight_handle held = s.lead_group(s.q.get(), "apple");
    std::uint32_t waiters = 7;
    t.make_mute(
        "stn_flight_detach", [&] { return stn_flight_detach(held.get(), &waiters); }, [&] { return waiters == 0; });
    const flight_handle next = s.lead_group(s.q.get(), "apple");
}

void detach_from_others(trial& t) {
    crowd c;
    std::uint32_t waiters = 7;
    t.make_mute(
        "stn_flight_detach", [&] { return stn_flight_detach(c.held.get(), &waiters); }, [&] { return waiters == 0; });
    CHECK(waiters == 6);
    REQUIRE(stn_flight_finish(c.held.get(), STN_OK, "red", 3, 0, nullptr, nullptr) == STN_OK);
    c.all_get("red");
}

void scope(trial& t) {
    stage s;
    const flight_handle held = s.lead_group(s.q.get(), "apple");
    stn_scope* made = nullptr;
    t.make_quiet("stn_flight_scope", [&] { return (made = stn_flight_scope(held.get())) != nullptr; });
    const scope_handle owned(made);
    stn_flight* none = nullptr;
    CHECK(stn_group_join(s.group.get(), "apple", 5, -1, made, s.q.get(), 0, nullptr, &none, nullptr) ==
          STN_WOULD_DEADLOCK);
}

// Given up: the one who has waited longest gets the flight, and the others what it finishes with. If there
// is no memory to hand it on, all are told so.
void hands_on(crowd& c) {
    stn_event* e = c.s.answer(c.home[0], c.waits[0]);
    if (stn_event_kind(e) == STN_EVENT_ERROR) {
        c.all_get("(13 no_memory)");
        return;
    }
    REQUIRE(stn_event_kind(e) == STN_EVENT_FLIGHT);
    const flight_handle next(stn_event_take_flight(e));
    REQUIRE(stn_flight_finish(next.get(), STN_OK, "red", 3, 0, nullptr, nullptr) == STN_OK);
    c.all_get("red", 1);
}

void take(trial& t) {
    crowd c;
    c.held.reset();
    stn_event* e = c.s.answer(c.home[0], c.waits[0]);
    REQUIRE(stn_event_kind(e) == STN_EVENT_FLIGHT);
    stn_flight* taken = nullptr;
    t.make_quiet("stn_event_take_flight", [&] { return (taken = stn_event_take_flight(e)) != nullptr; });
    const flight_handle held(taken);
    CHECK(stn_event_take_flight(e) == nullptr);
    REQUIRE(stn_flight_finish(taken, STN_OK, "red", 3, 0, nullptr, nullptr) == STN_OK);
    c.all_get("red", 1);
}

void free_it(trial& t) {
    crowd c;
    t.make_silent("stn_flight_free", [&] { c.held.reset(); });
    hands_on(c);
}

void free_alone(trial& t) {
    stage s;
    flight_handle held = s.lead_group(s.q.get(), "apple");
    t.make_silent("stn_flight_free", [&] { held.reset(); });
    const flight_handle next = s.lead_group(s.q.get(), "apple");
}

void free_group(trial& t) {
    stn_group* made = nullptr;
    REQUIRE(stn_group_new(nullptr, nullptr, &made, nullptr) == STN_OK);
    t.make_silent("stn_group_free", [&] { stn_group_free(made); });
}

constexpr std::array all{
    scenario{"stn_group_new", "in a client", new_in_client},
    scenario{"stn_group_new", "without a client", new_without_client},
    scenario{"stn_group_new", "with an option that there is not", new_with_options},
    scenario{"stn_group_join", "that leads", lead},
    scenario{"stn_group_join", "that waits", join},
    scenario{"stn_group_join", "that waits with a deadline", join_with_deadline},
    scenario{"stn_group_join", "that does not wait", join_without_waiting},
    scenario{"stn_group_join", "from inside a flight", join_inside_a_flight},
    scenario{"stn_group_join", "that would close a circle", join_in_a_circle},
    scenario{"stn_group_forget", "", forget},
    scenario{"stn_group_forget", "of no key", forget_nothing},
    scenario{"stn_flight_finish", "with waiters in three queues", finish},
    scenario{"stn_flight_finish", "with an error", finish_with_an_error},
    scenario{"stn_flight_finish", "with nobody waiting", finish_alone},
    scenario{"stn_flight_finish", "after another answer", finish_again},
    scenario{"stn_flight_detach", "with nobody waiting", detach_alone},
    scenario{"stn_flight_detach", "with waiters", detach_from_others},
    scenario{"stn_flight_scope", "", scope},
    scenario{"stn_event_take_flight", "", take},
    scenario{"stn_flight_free", "unfinished, with waiters", free_it},
    scenario{"stn_flight_free", "unfinished, with nobody waiting", free_alone},
    scenario{"stn_group_free", "with a client of its own", free_group},
};

} // namespace

std::span<const scenario> scenarios_of_groups() {
    return all;
}

} // namespace faults
