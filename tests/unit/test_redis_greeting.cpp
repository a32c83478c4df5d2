// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>

#include "io/redis_greeting.hpp"
#include "protocol/command.hpp"

using namespace stn;
using kind = greeting_step::kind;

namespace {

std::vector<greeting_step> greeting(const char* url, greeting_for purpose = greeting_for::commands) {
    const auto where = parse_store_url(url);
    REQUIRE(where.ok());
    return greeting_of(*where, purpose);
}

std::size_t count(const std::vector<greeting_step>& steps, kind what) {
    return static_cast<std::size_t>(
        std::count_if(steps.begin(), steps.end(), [&](const greeting_step& s) { return s.what == what; }));
}

std::optional<error> judged(kind what, const char* said) {
    return judge({what, {}}, reply::of_error(said));
}

} // namespace

TEST_CASE("a greeting says who we are first, and asks the time last") {
    const auto steps = greeting("redis://user:pw@h/3");
    CHECK(steps.front().words == std::vector<std::string>{"AUTH", "user", "pw"});
    CHECK(steps[1].words == std::vector<std::string>{"HELLO", "3"});
    CHECK(steps.back().what == kind::time);
    CHECK(count(steps, kind::load) == static_cast<std::size_t>(script_id::count_));
    const auto select = std::find_if(steps.begin(), steps.end(), [](const auto& s) { return s.what == kind::select; });
    REQUIRE(select != steps.end());
    CHECK(select->words == std::vector<std::string>{"SELECT", "3"});
    for (auto s = steps.begin(); s != select; ++s) CHECK(s->what != kind::load);
}

TEST_CASE("a greeting leaves out what the URL does not ask for") {
    const auto steps = greeting("redis://h");
    CHECK(count(steps, kind::auth) == 0);
    CHECK(count(steps, kind::select) == 0);
    CHECK(greeting("redis://:pw@h").front().words == std::vector<std::string>{"AUTH", "pw"});
}

TEST_CASE("a connection for messages teaches nothing and selects nothing") {
    const auto steps = greeting("redis://:pw@h/3", greeting_for::messages);
    CHECK(count(steps, kind::auth) == 1);
    CHECK(count(steps, kind::load) + count(steps, kind::select) + count(steps, kind::time) == 0);
}

TEST_CASE("what a good server says is good") {
    for (const kind what : {kind::auth, kind::hello, kind::name, kind::select, kind::load, kind::time}) {
        CHECK_FALSE(judge({what, {}}, reply::of_status("OK")));
        CHECK_FALSE(judge({what, {}}, reply::of_array({})));
    }
}

TEST_CASE("an old server, and a user with few rights, are used as far as they go") {
    CHECK_FALSE(judged(kind::hello, "ERR unknown command 'HELLO', with args beginning with: '3'"));
    CHECK_FALSE(judged(kind::hello, "NOPROTO unsupported protocol version"));
    CHECK_FALSE(judged(kind::hello, "NOPERM this user has no permissions to run the 'hello' command"));
    CHECK_FALSE(judged(kind::name, "NOPERM this user has no permissions to run the 'client|setname' command"));
    CHECK_FALSE(judged(kind::load, "NOPERM this user has no permissions to run the 'script|load' command"));
    CHECK_FALSE(judged(kind::load, "ERR unknown command 'SCRIPT'"));
    CHECK_FALSE(judged(kind::time, "NOPERM this user has no permissions to run the 'time' command"));
}

TEST_CASE("credentials and a database that are refused end the attempt, with the server's own words") {
    const auto pass = judged(kind::auth, "WRONGPASS invalid username-password pair or user is disabled.");
    REQUIRE(pass);
    CHECK(pass->code == status::denied);
    CHECK(pass->server_text.starts_with("WRONGPASS"));
    const auto none = judged(kind::auth, "ERR AUTH <password> called without any password configured");
    REQUIRE(none);
    CHECK(none->code == status::denied);
    const auto db = judged(kind::select, "ERR DB index is out of range");
    REQUIRE(db);
    CHECK(db->code == status::refused);
    CHECK(db->server_text == "ERR DB index is out of range");
}

TEST_CASE("no password where one is asked for is denied, whatever step finds it out") {
    for (const kind what : {kind::hello, kind::name, kind::select, kind::load, kind::time}) {
        const auto no = judged(what, "NOAUTH Authentication required.");
        REQUIRE(no);
        CHECK(no->code == status::denied);
    }
}

TEST_CASE("a server that serves nobody now is no connection") {
    for (const kind what : {kind::auth, kind::hello, kind::load, kind::time}) {
        for (const char* said : {"LOADING Redis is loading the dataset in memory", "ERR max number of clients reached",
                                 "BUSY Redis is busy running a script.",
                                 "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."}) {
            const auto no = judged(what, said);
            REQUIRE(no);
            CHECK(no->code == status::unavailable);
            CHECK(no->server_text == said);
        }
    }
}
