// SPDX-License-Identifier: MIT
//
// What the server may answer, row by row, in its own words: those of Redis 7.0.15 and Valkey 8.0.1 taken from
// the servers themselves (tests/live brings them there again), those of Redis 6 from its source.
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <string_view>

#include "protocol/refusal.hpp"

using namespace stn;

namespace {

// As the server ends it when a script ran into it, since Redis 7.
constexpr std::string_view in_script = " script: 87a063c579e0673c6e51206062c44401893142b2, on @user_script:1.";
// As Redis 6 wraps it.
constexpr std::string_view wrapped =
    "ERR Error running script (call to f_6b1bf486c81ceb7edf3c093f4c48582e38c0e791): @user_script:1: ";

refusal of(std::string text) {
    return classify(reply::of_error(std::move(text)));
}

refusal of(std::string_view a, std::string_view b) {
    return of(std::string(a) + std::string(b));
}

constexpr std::string_view wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
constexpr std::string_view oom = "OOM command not allowed when used memory > 'maxmemory'.";
constexpr std::string_view read_only = "READONLY You can't write against a read only replica.";
constexpr std::string_view no_replicas = "NOREPLICAS Not enough good replicas to write.";
constexpr std::string_view misconf =
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that "
    "may modify the data set are disabled, because this instance is configured to report errors during writes if RDB "
    "snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB "
    "error.";

} // namespace

TEST_CASE("LOADING: the store reads its data after a start") {
    CHECK(of("LOADING Redis is loading the dataset in memory") == refusal::loading);
    CHECK(of("LOADING Valkey is loading the dataset in memory") == refusal::loading);
    const auto& t = traits_of(refusal::loading);
    CHECK(t.means == status::unavailable);
    CHECK(t.again == retry_pace::slowly);
    CHECK(t.ails);
    CHECK(!t.redial); // a restarted primary is still the primary
    CHECK(!t.fatal);
}

TEST_CASE("READONLY: the node was demoted; the connection is made again, and who is primary is asked again") {
    CHECK(of(std::string(read_only)) == refusal::read_only);
    CHECK(of(read_only, in_script) == refusal::read_only);
    CHECK(of(wrapped, "@user_script: 1: -READONLY You can't write against a read only replica.") == refusal::read_only);
    const auto& t = traits_of(refusal::read_only);
    CHECK(t.means == status::unavailable);
    CHECK(t.redial);
    CHECK(!t.ails); // it still answers reads
    CHECK(!t.fatal);
}

TEST_CASE("MASTERDOWN: a replica without its primary") {
    CHECK(of("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.") ==
          refusal::master_down);
    CHECK(of("MASTERDOWN Link with MASTER is down and slave-serve-stale-data is set to 'no'.") == refusal::master_down);
    const auto& t = traits_of(refusal::master_down);
    CHECK(t.means == status::unavailable);
    CHECK(t.redial);
    CHECK(t.ails);
}

TEST_CASE("CLUSTERDOWN: no majority, or a slot that nobody serves") {
    CHECK(of("CLUSTERDOWN Hash slot not served") == refusal::cluster_down);
    CHECK(of("CLUSTERDOWN The cluster is down") == refusal::cluster_down);
    const auto& t = traits_of(refusal::cluster_down);
    CHECK(t.means == status::unavailable);
    CHECK(t.again == retry_pace::soon);
    CHECK(t.ails);
    CHECK(!t.redial);
}

TEST_CASE("MOVED: another node has the slot") {
    CHECK(of("MOVED 15495 127.0.0.1:35655") == refusal::moved);
    CHECK(status_of(refusal::moved) == status::unsupported);
    CHECK(traits_of(refusal::moved).fatal);
}

TEST_CASE("ASK: the slot migrates, and the key is not here") {
    CHECK(of("ASK 15495 127.0.0.1:41529") == refusal::ask);
    CHECK(status_of(refusal::ask) == status::unsupported);
}

TEST_CASE("TRYAGAIN: several keys of a slot that migrates") {
    CHECK(of("TRYAGAIN Multiple keys request during rehashing of slot") == refusal::try_again);
    CHECK(traits_of(refusal::try_again).again == retry_pace::soon);
    CHECK(!traits_of(refusal::try_again).ails);
}

TEST_CASE("CROSSSLOT: our own fault") {
    CHECK(of("CROSSSLOT Keys in request don't hash to the same slot") == refusal::cross_slot);
    CHECK(status_of(refusal::cross_slot) == status::internal);
    CHECK(traits_of(refusal::cross_slot).fatal);
}

TEST_CASE("NOSCRIPT: by its first word, for Redis and Valkey go on differently") {
    CHECK(of("NOSCRIPT No matching script. Please use EVAL.") == refusal::no_script);
    CHECK(of("NOSCRIPT No matching script.") == refusal::no_script);
    CHECK(of("NOSCRIPT") == refusal::no_script);
    CHECK(!traits_of(refusal::no_script).fatal);
    CHECK(!traits_of(refusal::no_script).redial);
}

TEST_CASE("BUSY: a long script; not to be taken for a lost lease") {
    CHECK(of("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.") ==
          refusal::busy_script);
    CHECK(of("BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.") ==
          refusal::busy_script);
    CHECK(of("BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.") ==
          refusal::busy_script);
    const auto& t = traits_of(refusal::busy_script);
    CHECK(t.means == status::unavailable);
    CHECK(t.again == retry_pace::soon);
    CHECK(t.ails);
    CHECK(!t.redial);
}

TEST_CASE("UNKILLABLE and NOTBUSY answer SCRIPT KILL only, and BUSYGROUP and BUSYKEY are not BUSY") {
    CHECK(of("NOTBUSY No scripts in execution right now.") == refusal::other);
    CHECK(of("UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait "
             "the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.") ==
          refusal::other);
    CHECK(of("BUSYKEY Target key name already exists.") == refusal::other);
    CHECK(of("BUSYGROUP Consumer Group name already exists") == refusal::other);
}

TEST_CASE("OOM: no memory for this write, and nothing wrong with the endpoint") {
    CHECK(of(std::string(oom)) == refusal::out_of_memory);
    CHECK(of(oom, in_script) == refusal::out_of_memory);
    CHECK(of(wrapped, "@user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.") ==
          refusal::out_of_memory);
    CHECK(of("@user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.") ==
          refusal::out_of_memory); // as redis.pcall gave it
    const auto& t = traits_of(refusal::out_of_memory);
    CHECK(t.means == status::refused);
    CHECK(t.again == retry_pace::never);
    CHECK(!t.ails);
    CHECK(!t.fatal);
}

TEST_CASE("NOREPLICAS: a primary that may have been cut off") {
    CHECK(of(std::string(no_replicas)) == refusal::no_replicas);
    CHECK(of(no_replicas, in_script) == refusal::no_replicas);
    const auto& t = traits_of(refusal::no_replicas);
    CHECK(t.means == status::unavailable);
    CHECK(t.again == retry_pace::slowly);
    CHECK(!t.ails); // reads work
    CHECK(t.alert);
}

TEST_CASE("MISCONF: it cannot save, and refuses all writes, even DEL") {
    CHECK(of(std::string(misconf)) == refusal::misconf);
    CHECK(of(misconf, in_script) == refusal::misconf);
    CHECK(of("MISCONF Errors writing to the AOF file: No space left on device") == refusal::misconf);
    const auto& t = traits_of(refusal::misconf);
    CHECK(t.means == status::refused);
    CHECK(t.again == retry_pace::slowly);
    CHECK(!t.ails);
    CHECK(t.alert);
}

TEST_CASE("NOAUTH and WRONGPASS: credentials; the connection is made again, once") {
    CHECK(of("NOAUTH Authentication required.") == refusal::no_auth);
    CHECK(of("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> "
             "<pass> option can be used to authenticate the client and select the RESP protocol version at the same "
             "time") == refusal::no_auth);
    CHECK(of("WRONGPASS invalid username-password pair or user is disabled.") == refusal::wrong_pass);
    CHECK(of("ERR AUTH <password> called without any password configured for the default user. Are you sure your "
             "configuration is correct?") == refusal::wrong_pass);
    CHECK(of("ERR Client sent AUTH, but no password is set") == refusal::wrong_pass);
    for (const refusal r : {refusal::no_auth, refusal::wrong_pass}) {
        CHECK(status_of(r) == status::denied);
        CHECK(traits_of(r).redial);
        CHECK(traits_of(r).fatal);
        CHECK(!traits_of(r).ails);
    }
    CHECK(traits_of(refusal::no_auth).again == retry_pace::soon); // the password may just have been changed
    CHECK(traits_of(refusal::wrong_pass).again == retry_pace::never);
}

TEST_CASE("NOPERM, and what scripts say in its place") {
    CHECK(of("NOPERM this user has no permissions to run the 'evalsha' command") == refusal::no_perm);
    CHECK(of("NOPERM this user has no permissions to access one of the keys used as arguments") == refusal::no_perm);
    CHECK(of("NOPERM this user has no permissions to access one of the channels used as arguments") ==
          refusal::no_perm);
    CHECK(of("NOPERM User limited has no permissions to run the 'get' command") == refusal::no_perm);
    CHECK(of("NOPERM No permissions to access a key") == refusal::no_perm);
    CHECK(of("ERR ACL failure in script: No permissions to access a channel", in_script) == refusal::no_perm);
    CHECK(of("ERR The user executing the script can't run this command or subcommand", in_script) == refusal::no_perm);
    CHECK(of("ERR The user executing the script can't run this command or subcommand") == refusal::no_perm);
    CHECK(of("ERR The user executing the script can't access at least one of the keys mentioned in the command "
             "arguments",
             in_script) == refusal::no_perm);
    CHECK(of("ERR The user executing the script can't publish to the channel mentioned in the command", in_script) ==
          refusal::no_perm);
    CHECK(of("ERR ACL failure in script: User limited has no permissions to run the 'set' command", in_script) ==
          refusal::no_perm);
    CHECK(of(wrapped, "@user_script: 1: The user executing the script can't run this command or subcommand") ==
          refusal::no_perm);
    CHECK(of("@user_script: 14: The user executing the script can't run this command or subcommand") ==
          refusal::no_perm);
    CHECK(of("DENIED Redis is running in protected mode because protected mode is enabled and no password is set for "
             "the default user.") == refusal::no_perm);
    const auto& t = traits_of(refusal::no_perm);
    CHECK(t.means == status::denied);
    CHECK(t.fatal);
    CHECK(!t.ails);
    CHECK(!t.redial);
}

TEST_CASE("EXECABORT: we use no transactions") {
    CHECK(of("EXECABORT Transaction discarded because of previous errors.") == refusal::exec_abort);
    CHECK(status_of(refusal::exec_abort) == status::internal);
}

TEST_CASE("WRONGTYPE: a key that is not ours, and nothing wrong with the store") {
    CHECK(of(std::string(wrong_type)) == refusal::wrong_type);
    CHECK(of(wrong_type, in_script) == refusal::wrong_type);
    CHECK(of(wrapped, wrong_type) == refusal::wrong_type);
    CHECK(of("ERR Error running script (call to f_6b1bf486c81ceb7edf3c093f4c48582e38c0e791): @user_script:112: ",
             wrong_type) == refusal::wrong_type);
    const auto& t = traits_of(refusal::wrong_type);
    CHECK(t.means == status::collision);
    CHECK(!t.ails);
    CHECK(!t.redial);
    CHECK(!t.alert); // caches overwrite it, and count it
}

TEST_CASE("ERR max number of clients: refused at the door") {
    CHECK(of("ERR max number of clients reached") == refusal::max_clients);
    CHECK(of("ERR max number of clients + cluster connections reached") == refusal::max_clients);
    const auto& t = traits_of(refusal::max_clients);
    CHECK(t.means == status::unavailable);
    CHECK(t.again == retry_pace::slowly);
    CHECK(t.ails);
    CHECK(t.redial);
}

TEST_CASE("ERR unknown command, ERR syntax: an old server, or one with renamed commands") {
    CHECK(of("ERR unknown command 'FOO', with args beginning with: 'bar' ") == refusal::unknown_command);
    CHECK(of("ERR unknown command `FOO`, with args beginning with: ") == refusal::unknown_command);
    CHECK(of("ERR unknown subcommand 'NOPE'. Try CLIENT HELP.") == refusal::unknown_command);
    CHECK(of("ERR Unknown Redis command called from script", in_script) == refusal::unknown_command);
    CHECK(of("ERR Unknown command called from script", in_script) == refusal::unknown_command);
    CHECK(of(wrapped, "@user_script: 1: Unknown Redis command called from Lua script") == refusal::unknown_command);
    CHECK(of("NOPROTO unsupported protocol version") == refusal::unknown_command);
    CHECK(of("ERR syntax error") == refusal::syntax);
    CHECK(of("ERR wrong number of arguments for 'get' command") == refusal::syntax);
    CHECK(of(wrapped, "@user_script: 1: Wrong number of args calling Redis command From Lua script") ==
          refusal::syntax);
    for (const refusal r : {refusal::unknown_command, refusal::syntax}) {
        CHECK(status_of(r) == status::unsupported);
        CHECK(traits_of(r).fatal);
    }
}

TEST_CASE("Script killed by user: nothing was written, it may be sent again") {
    CHECK(of("ERR Script killed by user with SCRIPT KILL...", in_script) == refusal::script_killed);
    CHECK(of("ERR Script killed by user with SCRIPT KILL.", in_script) == refusal::script_killed);
    CHECK(of(wrapped, "Script killed by user with SCRIPT KILL...") == refusal::script_killed);
    CHECK(traits_of(refusal::script_killed).again == retry_pace::soon);
}

TEST_CASE("whatever else it says is refused, and nothing more is read into it") {
    for (const char* text :
         {"",
          " ",
          "ERR",
          "ERR ",
          "ERR value is not an integer or out of range",
          "ERR DB index is out of range",
          "ERR invalid expire time in 'set' command",
          "WRONGTYPED x",
          "wrongtype x",
          "-WRONGTYPE x",
          "ERR LOADING x",
          "ERR the key WRONGTYPE is taken",
          "UNBLOCKED client unblocked via CLIENT UNBLOCK",
          "IOERR x",
          "ERR Error running script (call to f_0",
          "ERR Error running script (call to f_0): ",
          "ERR Error running script (call to f_0): @user_script:",
          "@user_script:",
          "@user_script: ",
          "@user_script: 1: ",
          "@user_script: 1: -",
          "syntax error",
          "max number of clients reached",
          "ERR Error running script (call to f_0): - ",
          "ERR Error running script (call to f_0): @user_script:1: user_script:1: it said WRONGTYPE",
          "ERR user_script:1: Script attempted to access nonexistent global variable 'nosuch' script: 14042e77, on "
          "@user_script:1."}) {
        CAPTURE(text);
        CHECK(of(text) == refusal::other);
    }
    CHECK(status_of(refusal::other) == status::refused);
    CHECK(!traits_of(refusal::other).fatal);
    CHECK(!traits_of(refusal::other).ails);
}

TEST_CASE("a value that reads like an error is a value") {
    for (const std::string_view text : {wrong_type, oom, std::string_view("LOADING"), std::string_view("-ERR x")}) {
        CHECK(classify(reply::of_bulk(std::string(text))) == refusal::none);
        CHECK(classify(reply::of_status(std::string(text))) == refusal::none);
        CHECK(classify(reply::of_array({reply::of_error(std::string(text))})) == refusal::none);
    }
    CHECK(classify(reply{}) == refusal::none);
    CHECK(classify(reply::of_integer(-1)) == refusal::none);
    CHECK(status_of(refusal::none) == status::ok);
}

TEST_CASE("each refusal has a text of its own, an error status, and traits that go together") {
    std::set<std::string_view> texts;
    for (int i = 1; i <= static_cast<int>(refusal::other); ++i) {
        const auto& t = traits_of(static_cast<refusal>(i));
        CAPTURE(t.name);
        CHECK(texts.insert(t.text).second);
        CHECK(t.text.size() > 20);
        CHECK(t.means != status::ok);
        CHECK(!(t.ails && t.fatal));                                // nobody can wait for what nobody repairs
        if (t.ails) CHECK(t.means == status::unavailable);          // and who waits is told to come again
        if (t.fatal) CHECK(!status_retryable(t.means));             // as nobody else is
        if (t.means == status::denied) CHECK((t.fatal && t.alert)); // somebody has to hear of it
        if (t.again != retry_pace::never && !t.fatal) CHECK(status_retryable(t.means));
    }
}

TEST_CASE("the store is of no use when it serves nobody, or not us; a single refusal is no such thing") {
    for (const refusal r : {refusal::loading, refusal::busy_script, refusal::cluster_down, refusal::master_down,
                            refusal::read_only, refusal::no_replicas, refusal::no_auth, refusal::no_perm,
                            refusal::max_clients, refusal::unknown_command, refusal::moved}) {
        CHECK(store_useless(r));
    }
    for (const refusal r : {refusal::none, refusal::out_of_memory, refusal::misconf, refusal::wrong_type,
                            refusal::no_script, refusal::script_killed, refusal::other}) {
        CHECK(!store_useless(r));
    }
}

TEST_CASE("what goes into a log repeats no argument of a command") {
    CHECK(loggable("ERR unknown command 'AUTH', with args beginning with: 'secret' ") == "ERR unknown command 'AUTH'");
    CHECK(loggable(oom) == oom);
    CHECK(loggable(std::string(10'000, 'x')).size() == 256);
    CHECK(loggable("").empty());
}

TEST_CASE("an error made of a refusal says what it means, and has the server's own words beside it") {
    const error e = refused_by_store(reply::of_error("NOAUTH Authentication required."), "apple");
    CHECK(e.code == status::denied);
    CHECK(e.key == "apple");
    CHECK(e.message == traits_of(refusal::no_auth).text);
    CHECK(e.server_text == "NOAUTH Authentication required.");
    CHECK(!e.may_have_applied);
}
