// SPDX-License-Identifier: MIT
//
// Bytes that we did not write: whatever they are, the answer is a value or an error. The sanitizers watch.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "base/duration.hpp"
#include "mutator.hpp"
#include "protocol/envelope.hpp"
#include "protocol/keys.hpp"
#include "protocol/options.hpp"
#include "protocol/store_url.hpp"
#include "protocol/wake.hpp"

namespace stn::test {

namespace {

constexpr int texts = 50'000;

bool lies_in(std::string_view part, std::string_view whole) {
    return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

envelope some_envelope(entry_kind kind, std::string_view payload) {
    envelope e;
    e.kind = kind;
    e.codec = 1;
    e.generation = token_from("0123456789abcdef");
    e.created = 1'700'000'000'000;
    e.soft_at = 1'700'000'030'000;
    e.delta_ms = 300;
    e.payload = payload;
    return e;
}

// Reads with `read`, which gives a result; an error has to say something, and counts.
template <class Read> int refused(std::string_view text, Read read) {
    const auto outcome = read(text);
    if (outcome.ok()) return 0;
    REQUIRE_FALSE(outcome.failure().message.empty());
    return 1;
}

} // namespace

TEST_CASE("a damaged envelope is ours, newer or foreign, and what is ours reads back the same") {
    mutator bytes(1, {encode(some_envelope(entry_kind::value, R"({"name":"stanchion"})")),
                      encode(some_envelope(entry_kind::placeholder, "")),
                      encode(some_envelope(entry_kind::error, "the database said no"))});
    int ours = 0;
    for (int i = 0; i < texts; ++i) {
        const std::string text = bytes.next();
        envelope e;
        if (decode(text, e) != reading::ours) continue;
        ++ours;
        REQUIRE(lies_in(e.payload, text));
        const std::string again = encode(e);
        envelope f;
        REQUIRE(decode(again, f) == reading::ours);
        REQUIRE(encode(f) == again);
        REQUIRE(f.payload == e.payload);
    }
    CHECK(ours > texts / 20);
    CHECK(ours < texts);
}

TEST_CASE("a damaged wake-up message is read within its bytes, or not at all") {
    const std::string value = encode(some_envelope(entry_kind::value, "payload"));
    mutator bytes(2, {encode_wake({wake_kind::filled, token_from("0123456789abcdef"), "stn:v:shop:{apple}", value}),
                      encode_wake({wake_kind::invalidated, token_from("0123456789abcdef"), "stn:v:shop:{pear}", {}})});
    int read = 0;
    for (int i = 0; i < texts; ++i) {
        const std::string text = bytes.next();
        const auto message = decode_wake(text);
        if (!message) continue;
        ++read;
        REQUIRE(lies_in(message->key, text));
        REQUIRE(lies_in(message->envelope, text));
        const std::string copy = encode_wake(*message);
        const auto again = decode_wake(copy);
        REQUIRE(again);
        REQUIRE(again->key == message->key);
    }
    CHECK(read > texts / 20);
    CHECK(read < texts);
}

TEST_CASE("a damaged URL is read or refused, and no refusal tells the password") {
    const std::string secret = "Xylo!phone";
    mutator urls(3,
                 {"memory://", "memory://shop?clock=manual", "redis://user:Xylo!phone@localhost:6379/0",
                  "rediss://:Xylo!phone@[::1]/3", "unix://user:Xylo!phone@/var/run/redis.sock?db=2",
                  "redis+sentinel://user:Xylo!phone@one:26379,two/service/1", "redis+cluster://:Xylo!phone@one,two"});
    int errors = 0;
    for (int i = 0; i < texts; ++i) {
        const std::string url = urls.next();
        const auto parsed = parse_store_url(url);
        if (parsed.ok()) {
            if (parsed->password == secret && std::ranges::count(url, 'X') == 1) {
                REQUIRE(parsed->shown().find(secret) == std::string::npos);
            }
            continue;
        }
        ++errors;
        REQUIRE_FALSE(parsed.failure().message.empty());
        // What stands where an option does is named, and was no password: one with a raw `?` is refused before.
        if (url.find(secret, std::min(url.find('?'), url.size())) != std::string::npos) continue;
        INFO(url, "   ", parsed.failure().message);
        REQUIRE(parsed.failure().message.find(secret) == std::string::npos);
    }
    CHECK(errors > texts / 20);
    CHECK(errors < texts);
}

TEST_CASE("a damaged duration is refused, or between nothing and ten years") {
    mutator durations(4, {"1500ms", "30s", "5m", "1h30m", "2d", "3650d", "0ms"});
    int errors = 0;
    for (int i = 0; i < texts; ++i) {
        const std::string text = durations.next();
        errors += refused(text, parse_duration);
        const auto ms = parse_duration(text);
        if (ms.ok()) REQUIRE((*ms >= 0 && *ms <= max_duration_ms));
    }
    CHECK(errors > texts / 20);
    CHECK(errors < texts);
}

TEST_CASE("damaged options are read or refused with a reason") {
    mutator options(5, {R"({"ttl":"5m","soft_ttl":"4m","jitter":0.1,"error_ttl_ms":1000})",
                        R"({"ttl_ms":300000,"coalesce":true,"fleet":false,"max_loads":8})",
                        R"({"prefix":"stn","max_value":1048576})", "{}", R"({"version":2})", "[[[[{}]]]]", "null"});
    int errors = 0;
    for (int i = 0; i < texts / 5; ++i) {
        const std::string json = options.next();
        errors += refused(json, read_client_options);
        errors += refused(json, read_cache_options);
        errors += refused(json, [](std::string_view text) { return read_policy(text, fill_policy{}); });
        errors += refused(json, read_no_options);
    }
    CHECK(errors > texts / 20);
}

TEST_CASE("options nested a hundred thousand deep are refused, not followed") {
    const std::string deep = R"({"ttl":)" + std::string(100'000, '[');
    CHECK(refused(deep, read_cache_options) == 1);
    const std::string closed = R"({"ttl":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
    CHECK(refused(closed, read_cache_options) == 1);
}

TEST_CASE("two keys never become one store key, whatever is in them") {
    mutator keys(6, {"apple", "{apple}", "=apple", "a{b}c", "%7Bapple%7D", "a}b{c", std::string("a\0b", 3)});
    for (int i = 0; i < texts; ++i) {
        const std::string one = keys.next();
        const std::string two = keys.next();
        if (one == two || !valid_key(one) || !valid_key(two)) continue;
        REQUIRE(value_key("stn", "shop", one) != value_key("stn", "shop", two));
    }
}

} // namespace stn::test
