// SPDX-License-Identifier: MIT
//
// Locks shared with programs that use `SET key token NX PX`, and keys that hold something else.
#include <doctest/doctest.h>

#include "locks.hpp"
#include "protocol/keys.hpp"

using namespace stn;
using namespace stn::test;
using namespace std::chrono_literals;

namespace {

const std::string theirs = "jobs:{nightly}:lock"; // as somebody else named it
const std::string on_their_key = R"({"ttl": "30s", "wait": "10s", "key": "jobs:{nightly}:lock"})";
const std::string try_their_key = R"({"ttl": "30s", "wait": "0s", "key": "jobs:{nightly}:lock"})";

// Somebody else's lock, taken and given back in the way that most have.
struct foreign_lock {
    live_server& server;
    std::string token = "6f1c0e5c9b8d4f3a";

    bool take(int px = 60'000) {
        return server.ask({"SET", theirs, token, "NX", "PX", std::to_string(px)}).kind != reply_kind::nil;
    }
    bool give_back() {
        const std::string compare_and_delete =
            "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('DEL', KEYS[1])";
        return server.ask({"EVAL", compare_and_delete, "1", theirs, token}).integer == 1;
    }
    bool extend(int px) {
        const std::string compare_and_extend = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return "
                                               "redis.call('PEXPIRE', KEYS[1], ARGV[2])";
        return server.ask({"EVAL", compare_and_extend, "1", theirs, token, std::to_string(px)}).integer == 1;
    }
};

} // namespace

TEST_CASE("a lock that another library holds on the same key is respected, and had when it is given back") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app here(server.url(), patient);
        lock_user user(here);
        foreign_lock other{server};
        REQUIRE(other.take());
        const auto busy = user.acquire("nightly", try_their_key);
        CHECK(busy.status == STN_BUSY);
        CHECK(busy.reason == STN_REASON_NONE);
        auto waits = user.begin("nightly", on_their_key);
        std::this_thread::sleep_for(100ms);
        CHECK(other.extend(60'000)); // theirs all the time
        CHECK(other.give_back());    // of which nobody sends a message
        const auto got = waits.end();
        REQUIRE(got.lock);
        CHECK(got.took < 5s);
        CHECK(user.release(got.lock).status == STN_OK);
    });
}

TEST_CASE("our lock is respected by another library on the same key, on each way it has") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app here(server.url(), patient);
        lock_user user(here);
        foreign_lock other{server};
        const auto got = user.acquire("nightly", on_their_key);
        REQUIRE(got.lock);
        CHECK(stands(server, theirs));
        CHECK_FALSE(stands(server, lock_key("stn", "nightly")));
        CHECK_FALSE(other.take());
        CHECK_FALSE(other.give_back());
        CHECK_FALSE(other.extend(1));
        CHECK(user.renew(got.lock).status == STN_OK);
        CHECK(stn_lock_held(got.lock.get()) == 1);
        CHECK(user.release(got.lock).status == STN_OK);
        CHECK(other.take());
        // Ours touches theirs on no way either.
        CHECK(user.renew(got.lock).status == STN_LOST);
        CHECK(user.release(got.lock).status == STN_LOST);
        CHECK(server.ask({"GET", theirs}).text == other.token);
    });
}

TEST_CASE("a lock of another library that ends by its own TTL is had soon after, and not before") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app here(server.url(), patient);
        lock_user user(here);
        const auto taken = std::chrono::steady_clock::now();
        REQUIRE(foreign_lock{server}.take(700));
        const auto got = user.acquire("nightly", on_their_key);
        REQUIRE(got.lock);
        CHECK(std::chrono::steady_clock::now() - taken > 690ms);
        CHECK(got.took < 5s);
    });
}

TEST_CASE("a foreign lock without a TTL: busy with the reason no_ttl, shown, noticed once, never deleted") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app here(server.url(), patient);
        lock_user user(here);
        REQUIRE(here.ready(10'000).status == STN_OK);
        CHECK(server.ask({"SET", theirs, "for ever"}).text == "OK");
        const auto busy = user.acquire("nightly", on_their_key, 600);
        CHECK(busy.status == STN_BUSY);
        CHECK(busy.reason == STN_REASON_NO_TTL);
        CHECK_FALSE(busy.message.empty());
        CHECK(user.acquire("nightly", try_their_key).reason == STN_REASON_NO_TTL);
        const auto shown = user.inspect("", theirs);
        CHECK(shown.status == STN_OK);
        CHECK(shown.bytes.find("\"ours\":false") != std::string::npos);
        CHECK(shown.bytes.find("\"ttl_ms\":null") != std::string::npos);
        CHECK(shown.ttl_left_ms == -1);
        CHECK(server.ask({"GET", theirs}).text == "for ever");
        CHECK(here.notices(STN_NOTICE_LOG, STN_BUSY).size() == 1);
        auto waits = user.begin("nightly", on_their_key);
        std::this_thread::sleep_for(50ms);
        CHECK(server.ask({"DEL", theirs}).integer == 1); // by a person
        CHECK(waits.end().lock);
    });
}

TEST_CASE("a key that holds something of another type is a collision, and is left as it is") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app here(server.url(), patient);
        lock_user user(here);
        for (const std::string& key :
             {lock_key("stn", "queue"), tick_key("stn", "queue"), once_key("stn", "queue"), theirs}) {
            CHECK(server.ask({"RPUSH", key, "job"}).integer == 1);
        }
        const auto collides = [](const lock_answer& a) {
            CHECK(a.status == STN_COLLISION);
            CHECK_FALSE(a.message.empty());
            CHECK(a.took < 5s); // and waits for nothing
        };
        collides(user.acquire("queue"));
        collides(user.acquire("queue", R"({"ttl": "30s", "wait": "0s"})"));
        collides(user.acquire("nightly", on_their_key));
        collides(user.inspect("queue"));
        collides(user.tick("queue", R"({"every": "1m"})"));
        collides(user.once("queue", 1'000));
        for (const std::string& key :
             {lock_key("stn", "queue"), tick_key("stn", "queue"), once_key("stn", "queue"), theirs}) {
            CHECK(server.ask({"LLEN", key}).integer == 1);
        }
        // While it is held: somebody else's by now.
        const auto got = user.acquire("other");
        REQUIRE(got.lock);
        const std::string other = lock_key("stn", "other");
        CHECK(server.ask({"DEL", other}).integer == 1);
        CHECK(server.ask({"RPUSH", other, "job"}).integer == 1);
        CHECK(user.renew(got.lock).status == STN_NOT_MINE);
        CHECK(user.losses(5s) == std::vector<std::int32_t>{STN_REASON_STOLEN});
        CHECK(server.ask({"LLEN", other}).integer == 1);
    });
}

TEST_CASE("a lock shows who holds it, and for how long") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app here(server.url(), patient);
        lock_user user(here);
        CHECK(user.inspect("report").status == STN_ABSENT);
        const auto got = user.acquire("report", R"({"ttl": "30s", "label": "host:7 \"a\""})");
        REQUIRE(got.lock);
        const auto shown = user.inspect("report");
        const std::string head = R"({"ours":true,"token":")" + std::string(stn_lock_token(got.lock.get())) +
                                 R"(","fence":)" + std::to_string(stn_lock_fence(got.lock.get())) +
                                 R"(,"label":"host:7 \"a\"","ttl_ms":)";
        CHECK(shown.bytes.starts_with(head));
        CHECK(shown.ttl_left_ms > 20'000);
        CHECK(shown.ttl_left_ms <= 30'000);
    });
}
