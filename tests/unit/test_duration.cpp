// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <array>
#include <set>
#include <string>

#include "base/duration.hpp"
#include "base/nearest.hpp"

using namespace stn;

namespace {

std::int64_t ms(std::string_view text) {
    const auto parsed = parse_duration(text);
    REQUIRE_MESSAGE(parsed, text);
    return *parsed;
}

std::string why(std::string_view text) {
    const auto parsed = parse_duration(text);
    REQUIRE_MESSAGE(!parsed, text);
    CHECK(parsed.failure().code == status::invalid_argument);
    return parsed.failure().message;
}

} // namespace

TEST_CASE("a duration is whole numbers with a unit each, larger units first") {
    CHECK(ms("1500ms") == 1500);
    CHECK(ms("30s") == 30'000);
    CHECK(ms("5m") == 300'000);
    CHECK(ms("1h30m") == 5'400'000);
    CHECK(ms("2d") == 172'800'000);
    CHECK(ms("1d2h3m4s5ms") == 93'784'005);
    CHECK(ms("1h1ms") == 3'600'001);
    CHECK(ms("90m") == 5'400'000);
    CHECK(ms("0s") == 0);
    CHECK(ms("007s") == 7000);
}

TEST_CASE("ten years is the longest") {
    CHECK(ms("3650d") == max_duration_ms);
    CHECK(ms("3649d24h") == max_duration_ms);
    CHECK(ms("315360000000ms") == max_duration_ms);
    for (const char* text : {"3651d", "3650d1ms", "315360000001ms", "99999999999999999999999999d",
                             "9223372036854775807ms", "106751991168d"})
        CHECK_MESSAGE(why(text).find("over ten years") != std::string::npos, text);
}

TEST_CASE("each fault has a text of its own") {
    const std::array<std::array<std::string, 2>, 11> faults{{{"", "is empty"},
                                                             {"-5s", "has no sign"},
                                                             {"1.5s", "has no fraction"},
                                                             {"5 s", "has no space"},
                                                             {"s", "lacks a number"},
                                                             {"5", "lacks a unit"},
                                                             {"5!", "no digit and no unit"},
                                                             {"5weeks", "unknown unit \"weeks\""},
                                                             {"30m1h", "the larger first"},
                                                             {"5000d", "over ten years"},
                                                             {"1h30", "lacks a unit"}}};
    std::set<std::string> texts;
    for (const auto& [text, part] : faults) {
        CHECK_MESSAGE(why(text).find(part) != std::string::npos, why(text));
        texts.insert(why(text).substr(why(text).find(':') + 1));
    }
    CHECK(texts.size() == 10);
    for (const char* text :
         {"+5s", "1,5s", " 5s", "5s ", "\t", "5S", "5s5s", "5ms1s", "m5", "5\xc2\xb5s", ".5s", "1h-5m"})
        (void)why(text);
    CHECK(why("+5s").find("has no sign") != std::string::npos);
    CHECK(why("5s ").find("has no space") != std::string::npos);
    CHECK(why("5s5s").find("each unit once") != std::string::npos);
}

TEST_CASE("an error quotes at most a line of what was given") {
    CHECK(why(std::string(100'000, 'x')).size() < 200);
    CHECK(why("5" + std::string(100'000, 'x')).size() < 200);
}

TEST_CASE("did you mean: the name with the fewest edits, of equals the first") {
    const std::array<std::string_view, 5> names = {"ttl", "soft_ttl", "error_ttl", "jitter", "wait"};
    CHECK(nearest_name("tll", names) == "ttl");
    CHECK(nearest_name("softttl", names) == "soft_ttl");
    CHECK(nearest_name("SOFT_TTL", names) == "soft_ttl");
    CHECK(nearest_name("jiter", names) == "jitter");
    CHECK(nearest_name("wiat", names) == "wait");
    CHECK(nearest_name("", names) == "ttl");
    CHECK(nearest_name("eror_tlt", names) == "error_ttl");
    CHECK(nearest_name(std::string(1'000'000, 'j'), names) == "jitter");
    CHECK(nearest_name("x", {}).empty());
}
