// SPDX-License-Identifier: MIT
//
// What a store's access rules do to callers: they load all the same, the operator is told once and in words that
// help, and the day the rules are put right all is well without a restart.
#include <doctest/doctest.h>

#include <algorithm>

#include "app.hpp"

using namespace stn;
using namespace stn::test;
using namespace std::chrono_literals;

namespace {

constexpr auto hang = 5s;

std::string url_of(const live_server& server, const std::string& who) {
    return "redis://" + who + "127.0.0.1:" + std::to_string(server.port());
}

} // namespace

TEST_CASE("a wrong password: denied, in words of its own, and right as soon as it is the right one") {
    on_each([](server_kind kind) {
        live_server server(kind, {.password = "right"});
        for (const std::string who : {":wrong@", "nobody:wrong@"}) {
            CAPTURE(who);
            app shop(url_of(server, who));
            const answer r = shop.ready(10'000);
            CHECK(r.status == STN_DENIED);
            CHECK(r.took < 2s); // at once: only a person can help
            CHECK(r.message.find("refuses the user or password of the URL") != std::string::npos);
            CHECK(r.message.find("WRONGPASS") != std::string::npos);
            CHECK(r.message.find("wrong@") == std::string::npos); // the password is never printed
            const answer a = shop.load("k", "v");
            CHECK(a.bytes == "v");
            CHECK(a.took < hang);
            const answer get = shop.get("k");
            CHECK((get.status == STN_UNAVAILABLE || get.status == STN_DENIED));
            std::this_thread::sleep_for(300ms); // some attempts more
            CHECK(shop.notices(STN_NOTICE_CONNECTION).size() == 1);
            CHECK(shop.notices(STN_NOTICE_CONNECTION, STN_DENIED).size() == 1);
            if (who == ":wrong@") {
                CHECK(server.ask({"ACL", "SETUSER", "default", ">wrong"}).text == "OK");
            } else {
                CHECK(server.ask({"ACL", "SETUSER", "nobody", "on", ">wrong", "~*", "&*", "+@all"}).text == "OK");
            }
            CHECK(eventually([&] { return shop.ready(1'000).status == STN_OK; }));
            CHECK(shop.load("k", "v").bytes == "v");
            CHECK(shop.get("k").bytes == "v");
            CHECK(shop.invalidate("k").status == STN_OK);
        }
        CHECK(left_in(server).without_ttl == 0);
    });
}

TEST_CASE("no password where one is asked for: denied, and told what to do") {
    on_each([](server_kind kind) {
        live_server server(kind, {.password = "right"});
        app shop(url_of(server, ""));
        const answer r = shop.ready(10'000);
        CHECK(r.status == STN_DENIED);
        CHECK(r.took < 2s);
        CHECK(r.message.find("asks for a password") != std::string::npos);
        CHECK(shop.load("k", "v").bytes == "v");
    });
}

TEST_CASE("a password where none is asked for: denied") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app shop(url_of(server, ":secret@"));
        const answer r = shop.ready(10'000);
        CHECK(r.status == STN_DENIED);
        CHECK(r.message.find("secret") == std::string::npos);
    });
}

TEST_CASE("the password is taken away while the connection stands: loads go on, told once, and back again") {
    live_server server(server_kind::redis);
    CHECK(server.ask({"ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all"}).text == "OK");
    app shop(url_of(server, "app:pw@"));
    REQUIRE(shop.ready().status == STN_OK);
    CHECK(server.ask({"ACL", "DELUSER", "app"}).integer == 1); // and its connections are closed
    const answer a = shop.load("k", "v");
    CHECK(a.bytes == "v");
    CHECK(a.took < hang);
    CHECK(eventually([&] {
        return !shop.notices(STN_NOTICE_CONNECTION, STN_DENIED).empty() ||
               !shop.notices(STN_NOTICE_CONNECTION, STN_UNAVAILABLE).empty();
    }));
    CHECK(server.ask({"ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all"}).text == "OK");
    CHECK(eventually([&] { return shop.ready(1'000).status == STN_OK; }));
    CHECK(shop.load("k", "v").bytes == "v");
    CHECK(shop.get("k").bytes == "v");
}

TEST_CASE("a database that there is not: refused, in words of its own") {
    live_server server(server_kind::redis);
    app shop(server.url() + "/999");
    const answer r = shop.ready(10'000);
    CHECK(r.status == STN_REFUSED);
    CHECK(r.message.find("refuses the database of the URL") != std::string::npos);
    CHECK(shop.load("k", "v").bytes == "v");
}

TEST_CASE("another database is another place") {
    live_server server(server_kind::redis);
    app here(server.url() + "/1");
    app there(server.url() + "/2");
    CHECK(here.put("k", "v").status == STN_OK);
    CHECK(here.get("k").bytes == "v");
    CHECK(there.get("k").status == STN_ABSENT);
}

TEST_CASE("a user who may neither publish nor subscribe: waiters go by their timers, told once") {
    on_each([](server_kind kind) {
        for (const std::string rule : {"resetchannels", "-publish", "-subscribe"}) {
            CAPTURE(rule);
            live_server server(kind);
            CHECK(server.ask({"ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", rule}).text == "OK");
            if (rule == "-publish") {
                CHECK(server.ask({"ACL", "SETUSER", "app", "-subscribe"}).text == "OK");
            }
            app here(url_of(server, "app:pw@"));
            app there(url_of(server, "app:pw@"));
            REQUIRE(here.ready().status == STN_OK);
            REQUIRE(there.ready().status == STN_OK);
            crowd first(here, 200ms);
            first.fetch("k");
            REQUIRE(first.serve_until([&] { return first.loading() == 1; }));
            answer waited;
            std::thread waits([&] { waited = there.load("k", "no"); });
            REQUIRE(first.serve());
            REQUIRE(first.serve_until([&] { return !first.filled.empty(); }));
            waits.join();
            CHECK(first.filled.front() == STN_OK); // a refused message undoes no write
            CHECK(waited.bytes == "k!");
            CHECK_FALSE(waited.loaded);
            CHECK(waited.took < 2s);
            CHECK(here.invalidate("k").status == STN_OK);
            CHECK(here.invalidate("k", STN_INVALIDATE_STALE).status == STN_OK);
            CHECK(here.put("k", "v").status == STN_OK);
            CHECK(there.get("k").bytes == "v");
            // Once: of whoever had a lease or waited for one, each opened the way for messages.
            CHECK(eventually([&] { return !here.notices(STN_NOTICE_CONNECTION, STN_DENIED).empty(); }));
            std::this_thread::sleep_for(50ms);
            CHECK(here.notices(STN_NOTICE_CONNECTION, STN_DENIED).size() == 1);
            CHECK(there.notices(STN_NOTICE_CONNECTION, STN_DENIED).size() == 1);
            CHECK(here.notices(STN_NOTICE_CONNECTION, STN_DENIED).front().text.find("NOPERM") != std::string::npos);
            CHECK(here.stats().breaker_opened == 0);
            CHECK(left_in(server).without_ttl == 0);
        }
    });
}

TEST_CASE("a user who may not write: hits are hits, loads go on, a write is denied at once") {
    on_each([](server_kind kind) {
        live_server server(kind);
        app owner(server.url());
        CHECK(owner.put("old", "stored").status == STN_OK);
        CHECK(server.ask({"ACL", "SETUSER", "app", "on", ">pw", "%R~*", "&*", "+@all"}).text == "OK");
        app shop(url_of(server, "app:pw@"));
        REQUIRE(shop.ready().status == STN_OK);
        CHECK(shop.load("old", "no").bytes == "stored");
        const answer a = shop.load("new", "v");
        CHECK(a.bytes == "v");
        CHECK(a.took < hang);
        const answer put = shop.put("new", "v");
        CHECK(put.status == STN_DENIED);
        CHECK_FALSE(put.server_text.empty());
        CHECK(put.took < hang);
        const answer gone = shop.invalidate("old");
        CHECK(gone.status == STN_DENIED);
        CHECK(gone.took < hang); // nobody waits ten seconds for a person
        CHECK(shop.notices(STN_NOTICE_LOG).size() == 1);
        CHECK(shop.stats().breaker_opened == 0);
        CHECK(server.ask({"ACL", "SETUSER", "app", "~*"}).text == "OK");
        CHECK(shop.put("new", "v").status == STN_OK);
    });
}

TEST_CASE("a user without rights but for the data: the greeting asks for no more than it gets") {
    on_each([](server_kind kind) {
        live_server server(kind);
        CHECK(server
                  .ask({"ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "-@all", "+get", "+set", "+del", "+eval",
                        "+evalsha", "+getrange", "+setrange", "+pttl", "+pexpire", "+publish", "+subscribe"})
                  .text == "OK");
        app shop(url_of(server, "app:pw@"));
        const answer r = shop.ready(10'000);
        CHECK(r.status == STN_OK);
        CHECK(shop.load("k", "v").bytes == "v");
        CHECK(eventually([&] { return shop.get("k").bytes == "v"; }));
    });
}
