// SPDX-License-Identifier: MIT
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <stanchion/stanchion.h>

#include "engine/event_queue.hpp"
#include "engine/loop.hpp"
#include "io/manual_clock.hpp"
#include "memory.hpp"
#include "protocol/flight_table.hpp"

using namespace faults;
using namespace stn;

namespace {

// UBSan opens a pipe to see whether an object can be read, and where it cannot, takes that for an error.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

event of_kind(event_kind kind, std::uint64_t tag = 0) {
    event e;
    e.kind = kind;
    e.tag = tag;
    return e;
}

// Does `act`, the first allocation of which fails. True: there was one. The test itself must not need any
// meanwhile, so nothing is checked inside.
template <class Do> bool short_of_memory(Do&& act) {
    memory::fail(1, outage::from_then_on);
    try {
        act();
    } catch (const std::bad_alloc&) {
    }
    return memory::back();
}

struct idle final : turned {
    void on_turn(mono_ms) override {}
    void on_mail(std::size_t) override {}
    mono_ms next_external_ms() override { return forever_ms; }
};

} // namespace

TEST_CASE("a promised event needs no memory, an unpromised notification is dropped without") {
    event_queue q(0);
    for (int i = 0; i < 100; ++i) q.promise();
    const bool asked = short_of_memory([&] {
        for (std::uint64_t i = 0; i < 100; ++i) q.push(of_kind(event_kind::done, i));
    });
    CHECK(!asked);
    CHECK(short_of_memory([&] { q.push(of_kind(event_kind::revoked)); }));
    std::vector<event> got;
    CHECK(q.drain(0, 1'000, got) == status::ok);
    REQUIRE(got.size() == 100);
    for (std::uint64_t i = 0; i < 100; ++i) CHECK(got[i].tag == i);
}

TEST_CASE("a promise that cannot be made changes nothing, and one that is taken back leaves its room") {
    event_queue q(0);
    CHECK(short_of_memory([&] { q.promise(); }));
    q.promise();
    q.unpromise();
    const bool asked = short_of_memory([&] {
        q.promise();
        q.push(of_kind(event_kind::done));
    });
    CHECK(!asked);
    event e;
    CHECK(q.next(0, e) == status::ok);
    CHECK(q.next(0, e) == status::timeout);
}

TEST_CASE("room that is promised is not taken by a notification") {
    event_queue q(0);
    q.promise();
    q.push(of_kind(event_kind::revoked));
    CHECK(!short_of_memory([&] { q.push(of_kind(event_kind::done)); }));
}

TEST_CASE("a queue is closed without memory, and so are the events that come after") {
    event_queue q(0);
    for (int i = 0; i < 3; ++i) q.promise();
    q.push(of_kind(event_kind::done, 1));
    q.push(of_kind(event_kind::revoked, 2));
    q.push(of_kind(event_kind::done, 3));
    const bool asked = short_of_memory([&] {
        q.close();
        q.push(of_kind(event_kind::value, 4));
    });
    CHECK(!asked);
    for (const std::uint64_t tag : {1U, 3U, 4U}) {
        event e;
        REQUIRE(q.next(0, e) == status::ok);
        CHECK(e.tag == tag);
        CHECK(e.kind == event_kind::error);
        CHECK(e.what->code == status::closed);
    }
    event none;
    CHECK(q.next(0, none) == status::closed);
}

TEST_CASE("an errand made before is posted without memory, and runs in order") {
    idle owner;
    loop turns(std::make_shared<manual_clock>(), owner);
    std::string ran;
    errand first([&](mono_ms) { ran += 'a'; });
    errand second([&](mono_ms) { ran += 'b'; });
    const bool asked = short_of_memory([&] {
        turns.post(std::move(first));
        turns.post(std::move(second));
        turns.ask();
    });
    CHECK(!asked);
    turns.turn();
    CHECK(ran == "ab");
    turns.finish();
    CHECK(!turns.post([](mono_ms) {}));
}

TEST_CASE("a flight or seat for which there is no memory leaves the table as it was") {
    struct nothing {};
    flight_table<int, nothing> t;
    const std::string key(100, 'k');
    const flight_key k{1, 0, {}, key};
    const auto hash = hash_of(k);
    for (int others = 0; others < 200; ++others) {
        const std::string other = key + std::to_string(others);
        t.open({1, 0, {}, other}, hash_of({1, 0, {}, other}), true);
    }
    const auto live = t.live();
    decltype(t)::flight* f = nullptr;
    int failures = 0;
    for (std::uint64_t nth = 1; f == nullptr; ++nth) {
        memory::fail(nth, outage::once);
        try {
            f = t.open(k, hash, true);
        } catch (const std::bad_alloc&) {
            ++failures;
        }
        memory::back();
        if (f == nullptr) CHECK(t.find(k, hash) == nullptr);
        if (f == nullptr) CHECK(t.live() == live);
    }
    CHECK(failures > 0);
    CHECK(t.find(k, hash) == f);
    while (f->waiting < 1'000) {
        const auto before = f->waiting;
        if (short_of_memory([&] { t.join(*f, 7, 0); })) {
            CHECK(f->waiting == before);
            t.join(*f, 7, 0);
        }
        CHECK(f->waiting == before + 1);
    }
}

TEST_CASE("a manual clock walks without memory") {
    struct listener final : time_listener {
        mono_ms next_due_ms() override { return due; }
        void time_moved() override { due += 10; }
        mono_ms due = manual_clock::start_ms + 5;
    };
    manual_clock time;
    std::vector<listener> all(20);
    for (listener& l : all) time.watch(l);
    CHECK(!short_of_memory([&] { time.advance(1'000); }));
    CHECK(all.back().due > time.now_ms());
    for (listener& l : all) time.unwatch(l);
}

TEST_CASE("where no descriptor is left, a client and a queue's descriptor are refused as for want of memory" *
          doctest::skip(sanitized)) {
    stn_queue* q = nullptr;
    REQUIRE(stn_queue_new(0, &q, nullptr) == STN_OK);
    rlimit usual{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &usual) == 0);
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(next);
    rlimit none = usual;
    none.rlim_cur = static_cast<rlim_t>(next);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    stn_client* client = nullptr;
    std::int32_t fd = 0;
    CHECK(stn_client_open("memory://", nullptr, &client, nullptr) == STN_NO_MEMORY);
    CHECK(client == nullptr);
    CHECK(stn_queue_fd(q, &fd, nullptr) == STN_NO_MEMORY);
    CHECK(fd == -1);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &usual) == 0);
    CHECK(stn_queue_fd(q, &fd, nullptr) == STN_OK);
    REQUIRE(stn_client_open("memory://", nullptr, &client, nullptr) == STN_OK);
    CHECK(stn_client_close(client, 0, nullptr) == STN_OK);
    stn_client_free(client);
    stn_queue_free(q);
}
