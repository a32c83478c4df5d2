// SPDX-License-Identifier: MIT
//
// Brings both servers to each refusal that they can be brought to, and asks what it is taken for: versions change
// their wording, and `classify` must not notice.
#include <doctest/doctest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "protocol/commands.hpp"
#include "protocol/envelope.hpp"
#include "protocol/refusal.hpp"
#include "protocol/scripts.hpp"
#include "support/chance.hpp"
#include "support/live_server.hpp"
#include "support/ports.hpp"

using namespace stn;
using namespace stn::test;
using namespace std::chrono_literals;

namespace {

constexpr auto hang = 20s;
const std::string loop_for_ever = "while true do end";

// One of our scripts, as it is sent where the server does not know it yet.
std::vector<std::string> by_text(const command& c) {
    std::vector<std::string> words{"EVAL", std::string(script_of(c.script).text), "1", c.key};
    words.insert(words.end(), c.args.begin(), c.args.end());
    return words;
}

std::string envelope_of(entry_kind kind, const token& generation) {
    envelope e;
    e.kind = kind;
    e.generation = generation;
    return encode(e);
}

const token mine = token_of("mine");

command put() {
    return put_command("k", envelope_of(entry_kind::value, token_of("g")), 60'000, {});
}
command lease() {
    return lease_command("k", envelope_of(entry_kind::placeholder, mine), 10'000, {}, {});
}
command fill() {
    return fill_command("k", mine, envelope_of(entry_kind::value, token_of("g")), 60'000, {});
}

template <class Connection> std::string what(Connection& c, const std::vector<std::string>& words) {
    const reply r = c.ask(words);
    CAPTURE(shown(r));
    const refusal why = classify(r);
    CHECK((why != refusal::none) == (r.kind == reply_kind::error));
    return std::string(traits_of(why).name);
}

template <class Connection> std::string what(Connection& c, const command& ours) {
    return what(c, by_text(ours));
}

} // namespace

TEST_CASE("what a server says to commands, keys and scripts that it does not like") {
    for (const server_kind kind : server_kinds) {
        CAPTURE(server_name(kind));
        live_server s(kind);
        s.ask({"LPUSH", "list", "x"});
        CHECK(what(s, {"EVALSHA", std::string(40, '0'), "1", "k"}) == "no_script");
        CHECK(what(s, {"GET", "list"}) == "wrong_type");
        CHECK(what(s, {"EVAL", "return redis.call('GET', KEYS[1])", "1", "list"}) == "wrong_type");
        CHECK(what(s, {"EVAL", "return redis.pcall('GET', KEYS[1])", "1", "list"}) == "wrong_type");
        CHECK(what(s, {"NOSUCH", "thing"}) == "unknown_command");
        CHECK(what(s, {"CLIENT", "NOSUCH"}) == "unknown_command");
        CHECK(what(s, {"HELLO", "9"}) == "unknown_command");
        CHECK(what(s, {"EVAL", "return redis.call('NOSUCH')", "0"}) == "unknown_command");
        CHECK(what(s, {"SET", "k", "v", "NOSUCH"}) == "syntax");
        CHECK(what(s, {"GET"}) == "syntax");
        CHECK(what(s, {"EVAL", "return redis.call('GET')", "0"}) == "syntax");
        CHECK(what(s, {"EVAL", "return nosuch + 1", "0"}) == "other");
        CHECK(what(s, {"EVAL", "return (", "0"}) == "other");
        CHECK(what(s, {"SCRIPT", "KILL"}) == "other");
        CHECK(what(s, {"AUTH", "secret"}) == "wrong_pass"); // there is no password
        s.ask({"MULTI"});
        CHECK(what(s, {"NOSUCH"}) == "unknown_command");
        CHECK(what(s, {"EXEC"}) == "exec_abort");
        s.ask({"SET", "k", "WRONGTYPE Operation against a key holding the wrong kind of value"});
        CHECK(what(s, {"GET", "k"}) == "none");
        CHECK(what(s, {"GET", "nothing"}) == "none");
    }
}

TEST_CASE("what access rules say, to commands and inside our scripts") {
    for (const server_kind kind : server_kinds) {
        CAPTURE(server_name(kind));
        live_server s(kind);
        const auto user = [&](const std::vector<std::string>& rules) {
            std::vector<std::string> words{"ACL", "SETUSER", "u", "reset", "on", ">pw"};
            words.insert(words.end(), rules.begin(), rules.end());
            REQUIRE(s.ask(words).text == "OK");
            plain_connection c = s.connect();
            REQUIRE(c.ask({"AUTH", "u", "pw"}).text == "OK");
            return c;
        };
        plain_connection no_set = user({"~*", "&*", "+@all", "-set", "-get"});
        CHECK(what(no_set, {"GET", "k"}) == "no_perm");
        CHECK(what(no_set, put()) == "no_perm");
        CHECK(what(no_set, lease()) == "no_perm");
        CHECK(what(no_set, renew_command("k", mine, 1'000)) == "no_perm"); // what pcall gave, passed on
        plain_connection no_script = user({"~*", "&*", "+@all", "-eval", "-evalsha"});
        CHECK(what(no_script, put()) == "no_perm");
        CHECK(what(no_script, {"EVALSHA", std::string(40, '0'), "1", "k"}) == "no_perm");
        plain_connection other_keys = user({"~stn:*", "&*", "+@all"});
        CHECK(what(other_keys, {"GET", "k"}) == "no_perm");
        CHECK(what(other_keys, put()) == "no_perm");
        CHECK(what(other_keys, {"EVAL", "return redis.call('GET', 'k')", "0"}) == "no_perm");
        CHECK(s.ask({"EXISTS", "k"}).integer == 0);
        plain_connection no_channel = user({"~*", "resetchannels", "+@all"});
        CHECK(what(no_channel, {"PUBLISH", "ch", "x"}) == "no_perm");
        CHECK(what(no_channel, {"SUBSCRIBE", "ch"}) == "no_perm");
        CHECK(what(no_channel, {"EVAL", "return redis.call('PUBLISH', 'ch', 'x')", "0"}) == "no_perm");
        CHECK(what(no_channel, lease()) == "none");
        CHECK(what(no_channel, fill()) == "none"); // an unsaid message makes no write an error
        CHECK(what(no_channel, {"AUTH", "u", "wrong"}) == "wrong_pass");
    }
}

TEST_CASE("what a server with a password says to strangers") {
    for (const server_kind kind : server_kinds) {
        CAPTURE(server_name(kind));
        const live_server s(kind, {.password = "secret"});
        plain_connection c = plain_connection::to_port(s.port());
        CHECK(what(c, {"GET", "k"}) == "no_auth");
        CHECK(what(c, put()) == "no_auth");
        CHECK(what(c, {"HELLO", "3"}) == "no_auth");
        CHECK(what(c, {"AUTH", "wrong"}) == "wrong_pass");
        CHECK(what(c, {"HELLO", "3", "AUTH", "default", "wrong"}) == "wrong_pass");
        CHECK(what(c, {"AUTH", "secret"}) == "none");
    }
}

TEST_CASE("a full server refuses what needs memory, and lets our scripts let go") {
    for (const server_kind kind : server_kinds) {
        CAPTURE(server_name(kind));
        live_server s(kind);
        CHECK(what(s, lease()) == "none");
        s.ask({"CONFIG", "SET", "maxmemory", "1"});
        CHECK(what(s, {"SET", "k2", "v"}) == "out_of_memory");
        CHECK(what(s, put()) == "out_of_memory");
        CHECK(what(s, fill()) == "out_of_memory");
        CHECK(what(s, refresh_command("r", mine, 1'000)) == "out_of_memory");
        CHECK(s.ask(by_text(extend_command("k", mine, 10'000))).integer == 1);
        CHECK(s.ask(by_text(abandon_command("k", marker_kind::none, {}, 0, {}, std::vector{mine}))).integer == 1);
        CHECK(what(s, lease()) == "out_of_memory");
        CHECK(what(s, {"DEL", "k"}) == "none");
        CHECK(what(s, {"GET", "k"}) == "none");
    }
}

TEST_CASE("a server that cannot save, or lacks replicas, refuses every write, and reads well") {
    for (const server_kind kind : server_kinds) {
        CAPTURE(server_name(kind));
        live_server s(kind, {.config = {"dir /proc", "save 3600 1"}});
        CHECK(what(s, lease()) == "none");
        s.ask({"CONFIG", "SET", "min-replicas-to-write", "1"});
        CHECK(what(s, put()) == "no_replicas");
        CHECK(what(s, {"DEL", "k"}) == "no_replicas");
        CHECK(what(s, extend_command("k", mine, 10'000)) == "no_replicas");
        CHECK(what(s, {"GET", "k"}) == "none");
        s.ask({"CONFIG", "SET", "min-replicas-to-write", "0"});
        CHECK(what(s, put()) == "none");
        s.ask({"BGSAVE"});
        const auto until = std::chrono::steady_clock::now() + hang;
        while (s.ask({"INFO", "persistence"}).text.find("rdb_last_bgsave_status:err") == std::string::npos) {
            REQUIRE(std::chrono::steady_clock::now() < until);
            std::this_thread::sleep_for(5ms);
        }
        CHECK(what(s, put()) == "misconf");
        CHECK(what(s, lease()) == "none"); // it finds a value
        CHECK(what(s, {"DEL", "k"}) == "misconf");
        CHECK(what(s, {"GET", "k"}) == "none");
    }
}

TEST_CASE("a replica refuses writes, and one that has lost its primary everything") {
    for (const server_kind kind : server_kinds) {
        CAPTURE(server_name(kind));
        live_server s(kind);
        CHECK(what(s, lease()) == "none");
        REQUIRE(s.ask({"REPLICAOF", "127.0.0.1", "1"}).text == "OK"); // nobody
        CHECK(what(s, put()) == "read_only");
        CHECK(what(s, extend_command("k", mine, 10'000)) == "read_only"); // unknown, not lost
        CHECK(what(s, {"DEL", "k"}) == "read_only");
        CHECK(what(s, {"GET", "k"}) == "none");
        s.ask({"CONFIG", "SET", "replica-serve-stale-data", "no"});
        CHECK(what(s, {"GET", "k"}) == "master_down");
        CHECK(what(s, {"PUBLISH", "ch", "x"}) == "none");
        s.ask({"REPLICAOF", "NO", "ONE"});
    }
}

TEST_CASE("while a script runs, everything is refused; the script that is killed says so") {
    for (const server_kind kind : server_kinds) {
        CAPTURE(server_name(kind));
        live_server s(kind, {.config = {"lua-time-limit 20"}});
        plain_connection runs = s.connect();
        runs.send({"EVAL", loop_for_ever, "0"});
        std::thread sender([&] {
            const reply ended = runs.receive();
            CAPTURE(shown(ended));
            CHECK(classify(ended) == refusal::script_killed);
        });
        const auto until = std::chrono::steady_clock::now() + hang;
        while (classify(s.ask({"PING"})) != refusal::busy_script) {
            if (std::chrono::steady_clock::now() > until) break;
            std::this_thread::sleep_for(5ms);
        }
        CHECK(what(s, {"GET", "k"}) == "busy_script");
        CHECK(what(s, put()) == "busy_script");
        CHECK(what(s, extend_command("k", mine, 10'000)) == "busy_script");
        CHECK(what(s, {"DEL", "k"}) == "busy_script");
        CHECK(what(s, {"SCRIPT", "KILL"}) == "none");
        sender.join();
        CHECK(what(s, {"GET", "k"}) == "none");
    }
}

TEST_CASE("a server that loads its data refuses everything but PUBLISH") {
    for (const server_kind kind : server_kinds) {
        CAPTURE(server_name(kind));
        live_server s(kind, {.config = {"save 3600 1", "rdbcompression no", "key-load-delay 1000",
                                        "loading-process-events-interval-bytes 1024"}});
        s.ask({"EVAL", "for i = 1, 2000 do redis.call('SET', 'k' .. i, string.rep('x', 200)) end", "0"});
        s.stop();
        s.start_without_waiting();
        std::string said = "nothing";
        const auto until = std::chrono::steady_clock::now() + hang;
        while (said == "nothing" && std::chrono::steady_clock::now() < until) {
            try {
                plain_connection c = plain_connection::to_port(s.port());
                said = what(c, {"GET", "k1"});
                CHECK(what(c, put()) == "loading");
                CHECK(what(c, {"DEL", "k1"}) == "loading");
                CHECK(what(c, {"PUBLISH", "ch", "x"}) == "none");
            } catch (const std::runtime_error&) {
                std::this_thread::sleep_for(1ms); // it does not listen yet
            }
        }
        CHECK(said == "loading");
        s.wait_until_ready();
        CHECK(s.ask({"EXISTS", "k1"}).integer == 1);
    }
}

TEST_CASE("a server with too many clients says so at the door") {
    for (const server_kind kind : server_kinds) {
        CAPTURE(server_name(kind));
        live_server s(kind);
        s.ask({"CONFIG", "SET", "maxclients", "4"});
        std::vector<plain_connection> in; // and the one of `ask`
        for (int i = 0; i < 3; ++i) {
            in.push_back(s.connect());
            CHECK(in.back().ask({"PING"}).text == "PONG");
        }
        const reply said = s.connect().receive();
        CAPTURE(shown(said));
        CHECK(classify(said) == refusal::max_clients);
    }
}

TEST_CASE("a cluster whose slots nobody serves, and commands that name keys of several") {
    for (const server_kind kind : server_kinds) {
        CAPTURE(server_name(kind));
        live_server s(kind, {.config = {"cluster-enabled yes", "cluster-port " + std::to_string(free_port())}});
        CHECK(what(s, {"GET", "k"}) == "cluster_down");
        CHECK(what(s, put()) == "cluster_down");
        REQUIRE(s.ask({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"}).text == "OK");
        const auto until = std::chrono::steady_clock::now() + hang;
        while (classify(s.ask({"GET", "k"})) == refusal::cluster_down && std::chrono::steady_clock::now() < until) {
            std::this_thread::sleep_for(10ms);
        }
        CHECK(what(s, lease()) == "none");
        CHECK(what(s, {"MGET", "a", "b"}) == "cross_slot");
        CHECK(what(s, {"EVAL", "return 1", "2", "a", "b"}) == "cross_slot");
    }
}
