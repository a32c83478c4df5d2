// SPDX-License-Identifier: MIT
//
// A server in trouble of its own: it dies, sleeps, forgets, is full, or serves nobody for a while. What every caller
// saw, how long it took, what was left in the store, and that all is well afterwards.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>

#include "app.hpp"
#include "protocol/scripts.hpp"

using namespace stn;
using namespace stn::test;
using namespace std::chrono_literals;

namespace {

constexpr auto hang = 5s;

std::string key(std::size_t i) {
    return "k" + std::to_string(i);
}

void store_works(live_server& server, app& shop) {
    REQUIRE(shop.ready(10'000).status == STN_OK);
    REQUIRE(eventually([&] {
        static_cast<void>(shop.load("after", "well"));
        return shop.get("after").bytes == "well";
    }));
    CHECK(left_in(server).without_ttl == 0);
}

// All of these stories need callers who never stop.
class bystanders {
  public:
    bystanders(app& shop, std::size_t n, const std::function<void(app&, std::size_t)>& do_one) {
        for (std::size_t i = 0; i < n; ++i) {
            threads_.emplace_back([this, &shop, i, do_one] {
                for (std::size_t turn = i; !stop_.load(); ++turn) {
                    do_one(shop, turn);
                    ++done_;
                }
            });
        }
    }
    ~bystanders() { stop(); }
    bystanders(const bystanders&) = delete;
    bystanders& operator=(const bystanders&) = delete;
    void stop() {
        stop_.store(true);
        for (auto& t : threads_) t.join();
        threads_.clear();
    }
    [[nodiscard]] std::uint64_t done() const { return done_.load(); }

  private:
    std::atomic<bool> stop_{false};
    std::atomic<std::uint64_t> done_{0};
    std::vector<std::thread> threads_;
};

} // namespace

TEST_CASE("a hit costs one plain GET, and nothing else") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app shop(server.url());
        CHECK(shop.load("k", "v").bytes == "v");
        REQUIRE(eventually([&] { return shop.stats().fills_stored == 1; }));
        CHECK(server.ask({"CONFIG", "RESETSTAT"}).text == "OK");
        for (int i = 0; i < 100; ++i) CHECK(shop.load("k", "no").bytes == "v"); // by a lone caller's own IO
        crowd all(shop);
        for (int i = 0; i < 100; ++i) { // and by the loop, one after the other
            all.fetch("k");
            REQUIRE(all.serve());
        }
        CHECK(calls_of(server, "get") == 200);
        CHECK(calls_of(server, "evalsha") == 0);
        CHECK(calls_of(server, "publish") == 0);
        CHECK(calls_of(server, "pttl") == 0);
    });
}

TEST_CASE("a server killed and started again: told once, scripts are taught again, and all go on") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app shop(server.url());
        REQUIRE(shop.load("k", "v").bytes == "v");
        std::atomic<std::uint64_t> wrong{0};
        std::atomic<std::int64_t> slowest{0};
        bystanders all(shop, 8, [&](app& a, std::size_t i) {
            const answer got = a.load(key(i % 50), [] {
                std::this_thread::sleep_for(2ms);
                return std::string("v");
            });
            if (got.bytes != "v") ++wrong;
            slowest = std::max<std::int64_t>(slowest, got.took.count());
        });
        REQUIRE(eventually([&] { return all.done() > 200; }));
        server.kill9();
        const auto then = all.done();
        CHECK(eventually([&] { return all.done() > then + 200; })); // without it
        std::this_thread::sleep_for(300ms);                         // some attempts fail
        server.start();
        REQUIRE(shop.ready(10'000).status == STN_OK);
        CHECK(eventually([&] { return calls_of(server, "evalsha") > 0; }));
        all.stop();
        CHECK(wrong.load() == 0);
        CHECK(slowest.load() < 3'000);
        const auto said = shop.notices(STN_NOTICE_CONNECTION);
        CHECK(std::count_if(said.begin(), said.end(), [](const told& t) { return t.status != STN_OK; }) == 1);
        CHECK(said.back().status == STN_OK);
        store_works(server, shop);
    });
}

TEST_CASE("a put or an invalidation whose server dies is told what is known of it") {
    live_server server(server_kind::redis);
    app shop(server.url());
    REQUIRE(shop.ready().status == STN_OK);
    server.kill9();
    const answer put = shop.put("k", "v");
    CHECK((put.status == STN_UNAVAILABLE || put.status == STN_UNCERTAIN));
    CHECK(put.took < hang);
    const answer bounded = shop.invalidate("k", 0, 300);
    CHECK((bounded.status == STN_UNAVAILABLE || bounded.status == STN_UNCERTAIN));
    CHECK(bounded.took < hang);
    answer kept_at;
    std::thread asks([&] { kept_at = shop.invalidate("k"); });
    std::this_thread::sleep_for(200ms);
    server.start();
    asks.join();
    CHECK(kept_at.status == STN_OK);
    CHECK(kept_at.took < 10s);
    store_works(server, shop);
}

TEST_CASE("a server stopped for a second: late grants are not used, and there is no second herd") {
    on_each([](server_kind kind) {
        live_server server(kind);
        const std::string options = R"({"command_timeout": "250ms"})";
        app here(server.url(), options);
        app there(server.url(), options);
        REQUIRE(here.ready().status == STN_OK);
        REQUIRE(there.ready().status == STN_OK);
        server.pause();
        std::atomic<int> loads{0};
        const loader slow = [&] {
            ++loads;
            std::this_thread::sleep_for(800ms);
            return std::string("v");
        };
        std::thread wake([&] {
            std::this_thread::sleep_for(1s);
            server.go_on();
        });
        const auto answers = at_once(60, [&](std::size_t i) { return (i % 2 == 0 ? here : there).load("k", slow); });
        wake.join();
        for (const answer& a : answers) {
            CHECK(a.bytes == "v");
            CHECK(a.took < hang);
        }
        CHECK(loads.load() == 2); // one for each process, however many ask
        // The leases that were granted too late were given up behind them.
        CHECK(eventually([&] { return left_in(server).placeholders == 0; }));
        CHECK(left_in(server).values == 0);
        // And with the store all is as before: one load for both.
        REQUIRE(eventually([&] { return here.get("other").status == STN_ABSENT; }));
        REQUIRE(eventually([&] { return there.get("other").status == STN_ABSENT; }));
        loads = 0;
        for (const answer& a :
             at_once(60, [&](std::size_t i) { return (i % 2 == 0 ? here : there).load("k", slow); })) {
            CHECK(a.bytes == "v");
        }
        CHECK(loads.load() == 1);
        store_works(server, here);
    });
}

TEST_CASE("a caller's own deadline holds, whatever the store does and whoever does the IO") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app shop(server.url(), R"({"command_timeout": "1s"})");
        REQUIRE(shop.put("old", "stored").status == STN_OK);
        server.pause();
        constexpr std::int64_t mine_ms = 60;
        const auto in_time = [](const answer& a) {
            CHECK(a.took >= 50ms);
            CHECK(a.took < 800ms);
        };
        const answer read = shop.get("old", mine_ms);
        CHECK(read.status == STN_TIMEOUT);
        in_time(read);
        const answer loaded = shop.load("k", [] { return std::string("v"); }, mine_ms);
        CHECK(loaded.status == STN_TIMEOUT);
        CHECK_FALSE(loaded.loaded);
        in_time(loaded);
        for (const answer& a :
             at_once(8, [&](std::size_t) { return shop.load("k", [] { return std::string("v"); }, mine_ms); })) {
            CHECK(a.status == STN_TIMEOUT);
            in_time(a);
        }
        const answer put = shop.put("p", "v", mine_ms);
        CHECK(put.status == STN_UNCERTAIN);
        in_time(put);
        const answer gone = shop.invalidate("old", 0, mine_ms); // which waits for one answer
        CHECK(gone.status == STN_UNCERTAIN);
        CHECK(gone.may_have_applied);
        CHECK(gone.took < 3s);
        server.go_on();
        store_works(server, shop);
        CHECK(eventually([&] { return shop.get("p").status == STN_ABSENT; })); // the deletion behind it
        CHECK(shop.get("old").status == STN_ABSENT);
    });
}

TEST_CASE("SCRIPT FLUSH under load: no caller notices") {
    on_each([](server_kind kind) {
        for (const bool may_load : {true, false}) {
            CAPTURE(may_load);
            live_server server(kind);
            const std::vector<std::string> rights{
                "ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", may_load ? "+script" : "-script"};
            CHECK(server.ask(rights).text == "OK");
            app shop("redis://app:pw@127.0.0.1:" + std::to_string(server.port()));
            REQUIRE(shop.ready().status == STN_OK);
            std::atomic<std::uint64_t> wrong{0};
            bystanders all(shop, 8, [&](app& a, std::size_t i) {
                const std::string k = key(i % 20);
                const answer got = i % 5 == 0   ? a.put(k, "v")
                                   : i % 5 == 1 ? a.invalidate(k)
                                   : i % 5 == 2 ? a.invalidate(k, STN_INVALIDATE_STALE)
                                                : a.load(k, "v");
                if (got.status != STN_OK) ++wrong;
            });
            for (int i = 0; i < 100; ++i) {
                CHECK(server.ask({"SCRIPT", "FLUSH"}).text == "OK");
                std::this_thread::sleep_for(2ms);
            }
            all.stop();
            CHECK(wrong.load() == 0);
            CHECK(all.done() > 100);
            const stn_stats s = shop.stats();
            CHECK(s.loads_alone == 0);
            CHECK(s.fills_lost == 0);
            CHECK(s.commands_lost == 0);
            CHECK(shop.notices(STN_NOTICE_LOG).empty());
            store_works(server, shop);
        }
    });
}

TEST_CASE("FLUSHALL during a load: its value is for its callers only, and somebody else loads again") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app here(server.url());
        app there(server.url());
        REQUIRE(here.ready().status == STN_OK);
        REQUIRE(there.ready().status == STN_OK);
        crowd first(here, 500ms);
        for (int i = 0; i < 10; ++i) first.fetch("k");
        REQUIRE(first.serve_until([&] { return first.loading() == 1; }));
        crowd second(there, 10ms);
        for (int i = 0; i < 10; ++i) second.fetch("k");
        REQUIRE_FALSE(second.serve_until([&] { return second.open() < 10; }, 100ms));
        CHECK(server.ask({"FLUSHALL"}).text == "OK");
        REQUIRE(second.serve()); // they look again, and find nobody at work
        CHECK(second.values.size() == 1);
        REQUIRE(first.serve());
        CHECK(first.values.size() == 1);
        REQUIRE(first.serve_until([&] { return !first.filled.empty(); }));
        CHECK(first.filled.front() == STN_REFUSED);
        for (const answer& a : first.answers) CHECK(a.bytes == "k!");
        for (const answer& a : second.answers) CHECK(a.bytes == "k!");
        CHECK(here.get("k").bytes == "k!");
        CHECK(left_in(server).placeholders == 0);
        store_works(server, here);
    });
}

TEST_CASE("a full store: hits are hits, loads are loads, deletions work, and it is told once") {
    on_each([](server_kind kind) {
        live_server server(kind, {.config = {"maxmemory-policy noeviction"}});
        app shop(server.url());
        REQUIRE(shop.put("old", "stored").status == STN_OK);
        crowd early(shop, 100ms); // has its lease before
        early.fetch("early");
        REQUIRE(early.serve_until([&] { return early.loading() == 1; }));
        CHECK(server.ask({"CONFIG", "SET", "maxmemory", "1"}).text == "OK");
        CHECK(shop.load("old", "no").bytes == "stored");
        const auto answers = at_once(16, [&](std::size_t i) { return shop.load(key(i % 4), "v"); });
        for (const answer& a : answers) {
            CHECK(a.bytes == "v");
            CHECK(a.took < hang);
        }
        REQUIRE(early.serve_until([&] { return !early.filled.empty(); }));
        CHECK(early.answers.front().bytes == "early!");
        CHECK(early.filled.front() == STN_UNAVAILABLE);
        const answer put = shop.put("new", "v");
        CHECK(put.status == STN_REFUSED);
        CHECK(put.server_text.starts_with("OOM"));
        CHECK_FALSE(put.may_have_applied);
        CHECK(shop.invalidate("old", STN_INVALIDATE_STALE).status == STN_OK); // by deletion, if need be
        CHECK(shop.invalidate("old").status == STN_OK);
        const answer failed = shop.load("failing", [] { return std::optional<std::string>(); });
        CHECK(failed.status == STN_LOAD_FAILED);
        const remains left = left_in(server);
        CHECK(left.keys == 0);
        CHECK(shop.notices(STN_NOTICE_LOG).size() == 1);
        CHECK(shop.stats().breaker_opened == 0);
        CHECK(server.ask({"CONFIG", "SET", "maxmemory", "0"}).text == "OK");
        store_works(server, shop);
    });
}

TEST_CASE("a busy server: loads go on without it, an invalidation is done when it is well again") {
    on_each([](server_kind kind) {
        live_server server(kind, {.config = {"busy-reply-threshold 1"}});
        app shop(server.url());
        REQUIRE(shop.put("old", "stored").status == STN_OK);
        plain_connection hog = server.connect();
        hog.send({"EVAL", "while true do end", "0"});
        std::thread hogging([&] { static_cast<void>(hog.receive()); });
        REQUIRE(eventually([&] { return shop.get("old").server_text.starts_with("BUSY"); }));
        const answer read = shop.get("old");
        CHECK(read.status == STN_UNAVAILABLE);
        const auto answers = at_once(16, [&](std::size_t i) { return shop.load(key(i % 4), "v"); });
        for (const answer& a : answers) {
            CHECK(a.bytes == "v");
            CHECK(a.took < hang);
        }
        std::thread kills([&] {
            std::this_thread::sleep_for(300ms);
            CHECK(server.ask({"SCRIPT", "KILL"}).text == "OK");
        });
        const answer gone = shop.invalidate("old");
        CHECK(gone.status == STN_OK);
        CHECK(gone.took < hang);
        kills.join();
        hogging.join();
        CHECK(server.ask({"EXISTS", store_key("old")}).integer == 0);
        CHECK(shop.notices(STN_NOTICE_CONNECTION, STN_UNAVAILABLE).empty()); // it stood all the time
        store_works(server, shop);
    });
}

TEST_CASE("a server that loads its data: it is waited for, callers are not kept waiting") {
    on_each([](server_kind kind) {
        live_server server(kind, {.config = {"enable-debug-command yes", "key-load-delay 500",
                                             "loading-process-events-interval-bytes 1024", "dbfilename dump.rdb"}});
        CHECK(server.ask({"DEBUG", "POPULATE", "2000", "old", "100"}).text == "OK");
        CHECK(server.ask({"SAVE"}).text == "OK");
        server.kill9();
        server.start_without_waiting();
        app shop(server.url(), R"({"connect_timeout": "300ms"})");
        const answer now = shop.ready(700);
        CHECK(now.status == STN_UNAVAILABLE);
        CHECK(now.server_text.empty());
        CHECK(now.message.find("LOADING") != std::string::npos);
        const answer a = shop.load("k", "v");
        CHECK(a.bytes == "v");
        CHECK(a.took < hang);
        CHECK(shop.ready(20'000).status == STN_OK);
        CHECK(shop.notices(STN_NOTICE_CONNECTION, STN_UNAVAILABLE).size() == 1);
        CHECK(shop.load("k2", "v").bytes == "v");
        CHECK(eventually([&] { return shop.get("k2").bytes == "v"; }));
    });
}

TEST_CASE("no place for one more connection: told in its own words, and taken as soon as there is one") {
    on_each([](server_kind kind) {
        live_server server(kind);
        CHECK(server.ask({"CONFIG", "SET", "maxclients", "1"}).text == "OK");
        app shop(server.url());
        const answer full = shop.ready(500);
        CHECK(full.status == STN_UNAVAILABLE);
        CHECK(full.message.find("max number of clients") != std::string::npos);
        const answer a = shop.load("k", "v");
        CHECK(a.bytes == "v");
        CHECK(a.took < hang);
        CHECK(server.ask({"CONFIG", "SET", "maxclients", "100"}).text == "OK");
        store_works(server, shop);
        CHECK(shop.notices(STN_NOTICE_CONNECTION, STN_UNAVAILABLE).size() == 1);
    });
}

TEST_CASE("a read-only replica: connections are made anew, loads go on, and a promotion is noticed") {
    on_each([](server_kind kind) {
        live_server primary(kind, {.config = {"repl-diskless-sync-delay 0"}});
        live_server replica(kind);
        CHECK(primary.ask({"SET", "there", "yes", "PX", "60000"}).text == "OK");
        CHECK(replica.ask({"REPLICAOF", "127.0.0.1", std::to_string(primary.port())}).text == "OK");
        REQUIRE(eventually([&] { return replica.ask({"GET", "there"}).text == "yes"; }));
        app shop(replica.url());
        REQUIRE(shop.ready().status == STN_OK);
        const answer put = shop.put("k", "v");
        CHECK(put.status == STN_UNAVAILABLE);
        CHECK(put.server_text.starts_with("READONLY"));
        CHECK_FALSE(put.may_have_applied);
        for (std::size_t i = 0; i < 10; ++i) {
            const answer a = shop.load(key(i), "v");
            CHECK(a.bytes == "v");
            CHECK(a.took < hang);
        }
        CHECK(shop.notices(STN_NOTICE_CONNECTION, STN_UNAVAILABLE).size() >= 1);
        std::thread promotes([&] {
            std::this_thread::sleep_for(300ms);
            CHECK(replica.ask({"REPLICAOF", "NO", "ONE"}).text == "OK");
        });
        CHECK(shop.invalidate("k").status == STN_OK); // once it is the primary
        promotes.join();
        store_works(replica, shop);
        CHECK(shop.put("k", "v").status == STN_OK);
    });
}

TEST_CASE("a store with too few replicas takes no writes: loads go on, and each refusal says why") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app shop(server.url());
        REQUIRE(shop.put("old", "stored").status == STN_OK);
        CHECK(server.ask({"CONFIG", "SET", "min-replicas-to-write", "1"}).text == "OK");
        CHECK(shop.load("old", "no").bytes == "stored");
        const answer a = shop.load("k", "v");
        CHECK(a.bytes == "v");
        CHECK(a.took < hang);
        const answer put = shop.put("k", "v");
        CHECK(put.status == STN_UNAVAILABLE);
        CHECK(put.server_text.starts_with("NOREPLICAS"));
        CHECK_FALSE(put.may_have_applied);
        CHECK(shop.notices(STN_NOTICE_LOG).size() == 1);
        CHECK(shop.stats().breaker_opened == 0);
        answer gone;
        std::thread asks([&] { gone = shop.invalidate("old"); });
        std::this_thread::sleep_for(200ms);
        CHECK(server.ask({"CONFIG", "SET", "min-replicas-to-write", "0"}).text == "OK");
        asks.join();
        CHECK(gone.status == STN_OK);
        store_works(server, shop);
    });
}

TEST_CASE("the connection for messages is lost: it is opened again, and waiters look again") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app here(server.url());
        app there(server.url());
        crowd first(here, 400ms);
        first.fetch("k");
        REQUIRE(first.serve_until([&] { return first.loading() == 1; }));
        answer waited;
        std::thread waits([&] { waited = there.load("k", "no"); });
        REQUIRE(eventually([&] { return there.stats().waits == 1; }));
        CHECK(server.ask({"CLIENT", "KILL", "TYPE", "pubsub"}).integer >= 1);
        REQUIRE(first.serve());
        waits.join();
        CHECK(waited.bytes == "k!");
        CHECK(waited.took < 2s);
        CHECK(there.notices(STN_NOTICE_CONNECTION, STN_UNAVAILABLE).empty()); // commands were never in trouble
        CHECK(eventually([&] {
            return server.ask({"PUBSUB", "NUMSUB", "stn:w:0"}).items.at(1).integer == 2; // both listen again
        }));
        store_works(server, here);
    });
}

TEST_CASE("one endpoint has one breaker: a silent store costs each caller little, and is told once") {
    live_server server(server_kind::redis);
    app shop(server.url(), R"({"command_timeout": "100ms"})");
    REQUIRE(shop.ready().status == STN_OK);
    server.pause();
    static_cast<void>(at_once(12, [&](std::size_t i) { return shop.load(key(i), "v"); }));
    const auto began = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < 30; ++i) CHECK(shop.load(key(i), "v").bytes == "v");
    // The breaker lets one in a second or so try: 30 calls would take six seconds without it.
    CHECK(std::chrono::steady_clock::now() - began < 2s);
    CHECK(shop.notices(STN_NOTICE_BREAKER).size() == 1);
    CHECK(shop.stats().breaker_opened == 1);
    server.go_on();
    store_works(server, shop);
    CHECK(shop.notices(STN_NOTICE_BREAKER).size() == 2);
}
