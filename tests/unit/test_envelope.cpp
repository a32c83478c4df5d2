// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <random>
#include <string>

#include "protocol/envelope.hpp"

using namespace stn;

namespace {

envelope sample() {
    envelope e;
    e.kind = entry_kind::value;
    e.codec = static_cast<std::uint8_t>(codec_id::json);
    e.waited = true;
    e.generation = token_from("0123456789abcdef");
    e.created = 0x0102030405060708;
    e.soft_at = 0x1112131415161718;
    e.delta_ms = 0x21222324;
    e.payload = "{}";
    return e;
}

bool same(const envelope& a, const envelope& b) {
    return a.kind == b.kind && a.codec == b.codec && a.compressed == b.compressed && a.waited == b.waited &&
           a.generation == b.generation && a.created == b.created && a.soft_at == b.soft_at &&
           a.delta_ms == b.delta_ms && a.payload == b.payload;
}

reading read(const std::string& bytes) {
    envelope e;
    return decode(bytes, e);
}

} // namespace

TEST_CASE("version 1 of the envelope is these bytes, for ever") {
    const std::string expected("\xF5\x01\x10\x01"
                               "0123456789abcdef"
                               "\x08\x07\x06\x05\x04\x03\x02\x01"
                               "\x18\x17\x16\x15\x14\x13\x12\x11"
                               "\x24\x23\x22\x21"
                               "\x02\x00\x00\x00"
                               "{}",
                               46);
    CHECK(encode(sample()) == expected);
    CHECK(encode(envelope{}).size() == envelope_head);
}

TEST_CASE("an envelope is read as it was written: every kind, codec and flag") {
    for (int kind = 0; kind <= 4; ++kind)
        for (int codec = 0; codec <= 2; ++codec)
            for (const bool compressed : {false, true})
                for (const std::string& payload : {std::string(), std::string("x\0y", 3), std::string(5000, 'p')}) {
                    envelope e = sample();
                    e.kind = static_cast<entry_kind>(kind);
                    e.codec = static_cast<std::uint8_t>(codec);
                    e.compressed = compressed;
                    e.waited = kind % 2 == 0;
                    e.raw_length = 77;
                    e.payload = payload;
                    const std::string bytes = encode(e);
                    envelope back;
                    REQUIRE(decode(bytes, back) == reading::ours);
                    CHECK(same(e, back));
                    CHECK(back.raw_length == (compressed ? 77 : payload.size()));
                }
}

TEST_CASE("soft expiry keeps its two special values") {
    for (const server_ms soft : {server_ms{0}, never_soft, server_ms{-1}}) {
        envelope e = sample();
        e.soft_at = soft;
        const std::string bytes = encode(e);
        envelope back;
        REQUIRE(decode(bytes, back) == reading::ours);
        CHECK(back.soft_at == soft);
    }
}

TEST_CASE("a later version is newer, whatever follows") {
    std::string bytes = encode(sample());
    for (const int version : {2, 3, 127, 128, 255}) {
        bytes[1] = static_cast<char>(version);
        CHECK(read(bytes) == reading::newer);
        CHECK(read(bytes.substr(0, 2)) == reading::newer);
    }
}

TEST_CASE("what is not an envelope is foreign") {
    const std::string good = encode(sample());
    auto with = [&](std::size_t at, int byte) {
        std::string bytes = good;
        bytes[at] = static_cast<char>(byte);
        return bytes;
    };
    CHECK(read("") == reading::foreign);
    CHECK(read("\xF5") == reading::foreign);
    CHECK(read("hello, I am somebody else's value, and quite a long one") == reading::foreign);
    for (std::size_t size = 0; size < envelope_head; ++size) CHECK(read(good.substr(0, size)) == reading::foreign);
    CHECK(read(with(0, 0xF4)) == reading::foreign);
    CHECK(read(with(1, 0)) == reading::foreign);
    CHECK(read(with(2, 5)) == reading::foreign);    // no such kind
    CHECK(read(with(2, 15)) == reading::foreign);   // no such kind
    CHECK(read(with(2, 0x30)) == reading::foreign); // no such codec
    CHECK(read(with(2, 0x80)) == reading::foreign); // reserved
    CHECK(read(with(40, 3)) == reading::foreign);   // length
    CHECK(read(with(43, 1)) == reading::foreign);   // length
    CHECK(read(good + "x") == reading::foreign);
    CHECK(read(good.substr(0, good.size() - 1)) == reading::foreign);
}

TEST_CASE("a foreign or newer value leaves the answer untouched") {
    envelope out = sample();
    CHECK(decode("nonsense", out) == reading::foreign);
    CHECK(decode("\xF5\x02", out) == reading::newer);
    CHECK(same(out, sample()));
}

TEST_CASE("decoding any bytes is safe, and what is ours encodes to the same bytes again") {
    std::mt19937_64 chance(42);
    int ours = 0;
    for (int round = 0; round < 20000; ++round) {
        std::string bytes = encode(sample());
        for (auto changes = chance() % 4; changes > 0; --changes)
            bytes[chance() % bytes.size()] = static_cast<char>(chance());
        bytes.resize(chance() % 8 == 0 ? chance() % 60 : bytes.size());
        envelope e;
        if (decode(bytes, e) != reading::ours) continue;
        ++ours;
        if (bytes[3] != 0) bytes[3] = 1; // any waiter byte but 0 means the same
        CHECK(encode(e) == bytes);
    }
    CHECK(ours > 1000);
}
