// SPDX-License-Identifier: MIT
#include <array>
#include <cstring>
#include <string>

#include <pthread.h>
#include <signal.h>

#include <doctest/doctest.h>

#include "io/memory_store.hpp"
#include "stage.hpp"
#include "trial.hpp"

namespace faults {

namespace {

void duration(trial& t) {
    std::int64_t ms = 7;
    t.make(
        "stn_duration_parse", [&](stn_error** err) { return stn_duration_parse("1h30m", &ms, err); },
        [&] { return ms == 0; });
    CHECK(ms == 5'400'000);
}

void bad_duration(trial& t) {
    std::int64_t ms = 7;
    t.make(
        "stn_duration_parse", [&](stn_error** err) { return stn_duration_parse("5 fortnights", &ms, err); },
        [&] { return ms == 0; }, STN_INVALID_ARGUMENT);
}

void open_with(trial& t, const char* url, const char* options, std::int32_t wanted = STN_OK) {
    sigset_t before{};
    ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
    t.unchanged([&] { // a thread that could not be started leaves no trace either
        sigset_t now{};
        ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
        return std::memcmp(&before, &now, sizeof now) == 0;
    });
    stn_client* made = nullptr;
    t.make(
        "stn_client_open", [&](stn_error** err) { return stn_client_open(url, options, &made, err); },
        [&] { return made == nullptr; }, wanted);
    if (wanted != STN_OK) return;
    const client_handle client(made);
    CHECK(stn_client_close(made, 0, nullptr) == STN_OK);
}

void open_private(trial& t) {
    open_with(t, "memory://",
              R"({"prefix": "a", "command_timeout": "1s", "connect_timeout_ms": 5, "max_loads_down": 3})");
}

// No client, no store: another may be made of this name.
void open_named(trial& t) {
    stn_client* made = nullptr;
    t.unchanged([] { return stn::open_memory_store("faults", stn::memory_clock::system).ok(); });
    t.make(
        "stn_client_open",
        [&](stn_error** err) { return stn_client_open("memory://faults?clock=manual", "{}", &made, err); },
        [&] { return made == nullptr; });
    const client_handle client(made);
    CHECK(stn_client_close(made, 0, nullptr) == STN_OK);
}

void open_wrongly(trial& t) {
    open_with(t, "memory://", R"({"prefxi": "a"})", STN_UNKNOWN_OPTION);
}

void open_broken(trial& t) {
    open_with(t, "memory://", R"({"prefix": ["a", {"b": [1]}]})", STN_INVALID_ARGUMENT);
}

void open_nowhere(trial& t) {
    open_with(t, "redis+cluster://someone:secret@nowhere:6379", nullptr, STN_UNSUPPORTED);
}

void open_redis(trial& t) {
    stn_client* made = nullptr;
    t.make(
        "stn_client_open", [&](stn_error** err) { return stn_client_open("redis://127.0.0.1:1/3", "{}", &made, err); },
        [&] { return made == nullptr; });
    const client_handle client(made);
    CHECK(stn_client_close(made, 0, nullptr) == STN_OK);
}

void ready(trial& t) {
    stage s;
    const auto tag = s.tag();
    t.make("stn_client_ready",
           [&](stn_error** err) { return stn_client_ready(s.client.get(), -1, s.q.get(), tag, err); });
    s.owes(tag);
    CHECK(stn_event_kind(s.answer(s.q.get(), tag)) == STN_EVENT_DONE);
}

void close(trial& t) {
    stage s;
    const lease_handle held = s.lead(s.q.get(), "apple");
    const auto waits = s.fetch(s.r.get(), "apple");
    t.unchanged([&] { // it is still open
        s.store("pear", "green");
        return stn_lease_state(held.get()) == STN_LEASE_LIVE;
    });
    t.make("stn_client_close", [&](stn_error** err) { return stn_client_close(s.client.get(), 0, err); });
    CHECK(stn_event_status(s.answer(s.r.get(), waits)) == STN_CLOSED);
}

void close_begin(trial& t) {
    stage s;
    const auto tag = s.tag();
    t.unchanged([&] {
        s.store("pear", "green");
        return true;
    });
    t.make("stn_client_close_begin",
           [&](stn_error** err) { return stn_client_close_begin(s.client.get(), 0, s.q.get(), tag, err); });
    s.owes(tag);
    CHECK(stn_event_kind(s.answer(s.q.get(), tag)) == STN_EVENT_DONE);
}

void close_again(trial& t) {
    stage s;
    REQUIRE(stn_client_close(s.client.get(), 0, nullptr) == STN_OK);
    const auto tag = s.tag();
    t.make("stn_client_close_begin",
           [&](stn_error** err) { return stn_client_close_begin(s.client.get(), 0, s.q.get(), tag, err); });
    s.owes(tag);
    CHECK(stn_event_kind(s.answer(s.q.get(), tag)) == STN_EVENT_DONE);
}

void close_on_a_closed_queue(trial& t) {
    stage s;
    REQUIRE(stn_queue_close(s.q.get(), nullptr) == STN_OK);
    const auto tag = s.tag();
    t.make("stn_client_close_begin",
           [&](stn_error** err) { return stn_client_close_begin(s.client.get(), 0, s.q.get(), tag, err); });
    s.owes(tag);
    CHECK(stn_client_close(s.client.get(), 0, nullptr) == STN_OK);
    CHECK(stn_event_status(s.answer(s.q.get(), tag)) == STN_CLOSED);
}

void advance(trial& t) {
    stage s("memory://?clock=manual", stage::meanwhile::nothing);
    s.store("apple", "red"); // and nothing is left for the turns to do
    t.make("stn_client_advance", [&](stn_error** err) { return stn_client_advance(s.client.get(), 3'599'999, err); });
    CHECK(s.stored("apple") == "red");
    CHECK(stn_client_advance(s.client.get(), 1'000'000, nullptr) == STN_OK);
    CHECK(s.stored("apple") == "-");
}

void watch(trial& t) {
    stage s;
    t.make("stn_client_watch",
           [&](stn_error** err) { return stn_client_watch(s.client.get(), STN_NOTICE_ALL, s.q.get(), s.tag(), err); });
}

void watch_other_things(trial& t) {
    stage s;
    REQUIRE(stn_client_watch(s.client.get(), STN_NOTICE_MARGIN, s.r.get(), 1, nullptr) == STN_OK);
    REQUIRE(stn_client_watch(s.client.get(), STN_NOTICE_MARGIN, s.q.get(), 2, nullptr) == STN_OK);
    t.make("stn_client_watch",
           [&](stn_error** err) { return stn_client_watch(s.client.get(), STN_NOTICE_BREAKER, s.q.get(), 3, err); });
}

void stats(trial& t) {
    stage s;
    stn_stats all{};
    t.make("stn_client_stats",
           [&](stn_error** err) { return stn_client_stats(s.client.get(), &all, sizeof all, err); });
}

void stats_json_of(trial& t, bool one_cache) {
    stage s;
    s.store("apple", "red");
    stn_bytes* text = nullptr;
    t.make(
        "stn_client_stats_json",
        [&](stn_error** err) {
            return stn_client_stats_json(s.client.get(), one_cache ? s.cache.get() : nullptr, &text, err);
        },
        [&] { return text == nullptr; });
    const bytes_handle owned(text);
    CHECK(std::string(static_cast<const char*>(stn_bytes_data(text))).find(R"("puts":1)") != std::string::npos);
}

void stats_json(trial& t) {
    stats_json_of(t, false);
}

void stats_json_of_a_cache(trial& t) {
    stats_json_of(t, true);
}

void free_client(trial& t) {
    stage s;
    const lease_handle held = s.lead(s.q.get(), "apple");
    s.cache.reset();
    s.group.reset();
    t.make_silent("stn_client_free", [&] { s.client.reset(); });
}

constexpr std::array all{
    scenario{"stn_duration_parse", "of a duration", duration},
    scenario{"stn_duration_parse", "of something else", bad_duration},
    scenario{"stn_client_open", "with all options", open_private},
    scenario{"stn_client_open", "on a named store", open_named},
    scenario{"stn_client_open", "with an option that there is not", open_wrongly},
    scenario{"stn_client_open", "with an option of the wrong type", open_broken},
    scenario{"stn_client_open", "on a store that there is not", open_nowhere},
    scenario{"stn_client_open", "on a Redis that is not there", open_redis},
    scenario{"stn_client_ready", "", ready},
    scenario{"stn_client_close", "with a lease out and a caller waiting", close},
    scenario{"stn_client_close_begin", "", close_begin},
    scenario{"stn_client_close_begin", "of a closed client", close_again},
    scenario{"stn_client_close_begin", "on a closed queue", close_on_a_closed_queue},
    scenario{"stn_client_advance", "", advance},
    scenario{"stn_client_watch", "", watch},
    scenario{"stn_client_watch", "in place of a subscription", watch_other_things},
    scenario{"stn_client_stats", "", stats},
    scenario{"stn_client_stats_json", "", stats_json},
    scenario{"stn_client_stats_json", "of a cache", stats_json_of_a_cache},
    scenario{"stn_client_free", "with a lease out", free_client},
};

} // namespace

std::span<const scenario> scenarios_of_clients() {
    return all;
}

} // namespace faults
