// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>

#include "protocol/wake.hpp"

using namespace stn;

TEST_CASE("version 1 of the wake-up message is these bytes, for ever") {
    const wake_message m{wake_kind::released, token_from("0123456789abcdef"), "stn:v:c:{k}", "E"};
    CHECK(encode_wake(m) == std::string("\x01\x03"
                                        "0123456789abcdef"
                                        "\x0B\x00"
                                        "stn:v:c:{k}"
                                        "E",
                                        32));
    CHECK(wake_tail("ab") == std::string("\x02\x00"
                                         "ab",
                                         4));
    CHECK(wake_tail(std::string(0x1234, 'k')).substr(0, 2) == "\x34\x12");
    CHECK(released_tail("ab", 0x1234) == std::string("\x02\x00"
                                                     "ab"
                                                     "\x34\x12",
                                                     6));
}

TEST_CASE("what the holder of a lock had waited through is read as it was written, and may be unknown") {
    for (const int seen : {0, 1, 31, 0xFFFF, 1'000'000}) {
        const std::string bytes = "\x01\x03" + std::string(16, 't') + released_tail("stn:k:{k}", seen);
        const auto back = decode_wake(bytes);
        REQUIRE(back);
        CHECK(back->key == "stn:k:{k}");
        CHECK(waited_through(*back) == std::min(seen, 0xFFFF));
    }
    CHECK(!waited_through({wake_kind::released, token_from("0123456789abcdef"), "k", ""}));
    CHECK(!waited_through({wake_kind::released, token_from("0123456789abcdef"), "k", "x"}));
}

TEST_CASE("a message is read as it was written; an envelope over 4 KiB does not travel") {
    for (int kind = 0; kind <= 4; ++kind)
        for (const std::size_t size : {std::size_t{0}, std::size_t{44}, envelope_in_wake, envelope_in_wake + 1}) {
            const std::string key = "stn:v:c:{" + std::string(1024, '\0') + "}";
            const std::string envelope(size, 'e');
            const wake_message m{static_cast<wake_kind>(kind), token_from("fedcba9876543210"), key, envelope};
            const std::string bytes = encode_wake(m);
            const auto back = decode_wake(bytes);
            REQUIRE(back);
            CHECK(back->kind == m.kind);
            CHECK(back->replaced == m.replaced);
            CHECK(back->key == key);
            CHECK(back->envelope.size() == (size <= envelope_in_wake ? size : 0));
        }
}

TEST_CASE("what is no wake-up message is nothing") {
    const std::string good = encode_wake({wake_kind::filled, token_from("0123456789abcdef"), "key", "env"});
    auto with = [&](std::size_t at, int byte) {
        std::string bytes = good;
        bytes[at] = static_cast<char>(byte);
        return bytes;
    };
    CHECK(decode_wake(good));
    for (std::size_t size = 0; size < 23; ++size) CHECK(!decode_wake(good.substr(0, size)));
    CHECK(!decode_wake(with(0, 2)));     // a later version: look again by timer
    CHECK(!decode_wake(with(1, 5)));     // no such kind
    CHECK(!decode_wake(with(18, 0)));    // no key
    CHECK(!decode_wake(with(18, 7)));    // a key longer than the message
    CHECK(!decode_wake(with(19, 0xFF))); // much longer
    CHECK(!decode_wake(good + std::string(envelope_in_wake, 'e')));
    CHECK(!decode_wake(std::string(1 << 20, '\x01')));
}

TEST_CASE("decoding any bytes is safe") {
    std::mt19937_64 chance(7);
    const std::string good = encode_wake({wake_kind::pass, token_from("0123456789abcdef"), "a key", "envelope"});
    for (int round = 0; round < 20000; ++round) {
        std::string bytes = good;
        for (auto changes = chance() % 5; changes > 0; --changes)
            bytes[chance() % bytes.size()] = static_cast<char>(chance());
        if (chance() % 4 == 0) bytes.resize(chance() % 64);
        const auto m = decode_wake(bytes);
        if (!m) continue;
        CHECK(m->key.size() + m->envelope.size() + 20 == bytes.size());
        CHECK(encode_wake(*m) == bytes);
    }
}
