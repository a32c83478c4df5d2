// SPDX-License-Identifier: MIT
#include "stage.hpp"

#include <chrono>
#include <thread>

#include <doctest/doctest.h>

#include "handles.hpp"

namespace faults {

namespace {

constexpr std::int64_t long_ms = 20'000; // nothing here takes that long

bool terminal(const stn_event* e) {
    const std::int32_t kind = stn_event_kind(e);
    return kind != STN_EVENT_REFRESH && kind != STN_EVENT_REVOKED && kind != STN_EVENT_NOTICE;
}

queue_handle new_queue(std::uint64_t scope) {
    stn_queue* q = nullptr;
    REQUIRE(stn_queue_new(scope, &q, nullptr) == STN_OK);
    return queue_handle(q);
}

} // namespace

stage::stage(const char* url, meanwhile goes_on) : q(new_queue(1)), r(new_queue(1)), s(new_queue(2)) {
    stn_client* made = nullptr;
    REQUIRE(stn_client_open(url, nullptr, &made, nullptr) == STN_OK);
    client.reset(made);
    stn_cache* opened = nullptr;
    REQUIRE(stn_cache_open(made, "prices", 6, R"({"ttl": "1h"})", &opened, nullptr) == STN_OK);
    cache.reset(opened);
    stn_group* grouped = nullptr;
    REQUIRE(stn_group_new(made, nullptr, &grouped, nullptr) == STN_OK);
    group.reset(grouped);
    if (goes_on == meanwhile::a_load) keep_busy();
}

// While something goes on, the loop's thread makes all turns but those of blocking calls: a turn that runs out of memory
// ends the process, and what is on trial here is what comes before it.
void stage::keep_busy() {
    busy_queue_ = new_queue(9);
    stn_cache* opened = nullptr;
    REQUIRE(stn_cache_open(client.get(), "busy", 4, R"({"ttl": "1h", "fleet": false})", &opened, nullptr) == STN_OK);
    busy_cache_.reset(opened);
    REQUIRE(stn_cache_fetch(opened, nullptr, "k", 1, -1, 0, nullptr, busy_queue_.get(), 1, nullptr, nullptr, nullptr) ==
            STN_OK);
    stn_event* e = nullptr;
    REQUIRE(stn_queue_next(busy_queue_.get(), long_ms, &e, nullptr) == STN_OK);
    busy_.reset(stn_event_take_lease(e));
    stn_event_free(e);
    REQUIRE(busy_);
}

stage::~stage() {
    if (client) CHECK(stn_client_close(client.get(), 0, nullptr) == STN_OK);
    for (stn_queue* from : {q.get(), r.get(), s.get()}) {
        if (from != nullptr) read_all(from);
    }
    for (const auto& [tag, n] : owed_) CHECK_MESSAGE(came_[tag] == n, "operation ", tag);
    for (const auto& [tag, n] : came_) CHECK_MESSAGE(owed_[tag] == n, "nobody's operation ", tag);
}

void stage::read(stn_event* e) {
    events_.emplace_back(e);
    if (terminal(e)) ++came_[stn_event_tag(e)];
}

void stage::read_all(stn_queue* from) {
    stn_event* e = nullptr;
    while (stn_queue_next(from, 0, &e, nullptr) == STN_OK) read(e);
}

stn_event* stage::answer(stn_queue* from, std::uint64_t tag) {
    for (const auto& e : events_) {
        if (terminal(e.get()) && stn_event_tag(e.get()) == tag) return e.get();
    }
    for (;;) {
        stn_event* e = nullptr;
        REQUIRE_MESSAGE(stn_queue_next(from, long_ms, &e, nullptr) == STN_OK, "operation ", tag, " is stuck");
        read(e);
        if (terminal(e) && stn_event_tag(e) == tag) return e;
    }
}

std::uint64_t stage::fetch(stn_queue* to, std::string_view key, const stn_scope* within) {
    const std::uint64_t t = tag();
    REQUIRE(stn_cache_fetch(cache.get(), nullptr, key.data(), key.size(), long_ms, 0, within, to, t, nullptr, nullptr,
                            nullptr) == STN_OK);
    owes(t);
    return t;
}

std::uint64_t stage::join(stn_queue* to, std::string_view key) {
    const std::uint64_t t = tag();
    stn_flight* lead = nullptr;
    REQUIRE(stn_group_join(group.get(), key.data(), key.size(), -1, nullptr, to, t, nullptr, &lead, nullptr) == STN_OK);
    REQUIRE(lead == nullptr);
    owes(t);
    return t;
}

lease_handle stage::lead(stn_queue* to, std::string_view key) {
    stn_event* e = answer(to, fetch(to, key));
    REQUIRE(stn_event_kind(e) == STN_EVENT_LEASE);
    return lease_handle(stn_event_take_lease(e));
}

flight_handle stage::lead_group(stn_queue* to, std::string_view key) {
    stn_flight* lead = nullptr;
    REQUIRE(stn_group_join(group.get(), key.data(), key.size(), -1, nullptr, to, tag(), nullptr, &lead, nullptr) ==
            STN_OK);
    REQUIRE(lead != nullptr);
    return flight_handle(lead);
}

void stage::store(std::string_view key, std::string_view value) {
    const std::uint64_t t = tag();
    REQUIRE(stn_cache_put(cache.get(), nullptr, key.data(), key.size(), value.data(), value.size(), -1, -1, -1, -1,
                          q.get(), t, nullptr, nullptr) == STN_OK);
    owes(t);
    CHECK(stn_event_kind(answer(q.get(), t)) == STN_EVENT_DONE);
}

std::string stage::stored(std::string_view key) {
    const std::uint64_t t = tag();
    REQUIRE(stn_cache_get(cache.get(), key.data(), key.size(), -1, q.get(), t, nullptr, nullptr, nullptr) == STN_OK);
    owes(t);
    return value(q.get(), t);
}

std::string stage::value(stn_queue* from, std::uint64_t tag) {
    const stn_event* e = answer(from, tag);
    if (stn_event_kind(e) == STN_EVENT_ABSENT) return "-";
    if (stn_event_kind(e) != STN_EVENT_VALUE) {
        return "(" + std::to_string(stn_event_kind(e)) + " " + stn_status_name(stn_event_status(e)) + ")";
    }
    std::size_t n = 0;
    const void* p = stn_event_bytes(e, &n);
    return {static_cast<const char*>(p), n};
}

std::size_t stage::flights() const {
    const std::size_t all = client->handle->core->flights->live();
    return busy_ && all != 0 ? all - 1 : all; // it has ended if the client was closed
}

void stage::all_flights_end() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(long_ms);
    while (flights() != 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    CHECK(flights() == 0);
}

} // namespace faults
