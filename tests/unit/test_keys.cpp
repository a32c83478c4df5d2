// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "protocol/keys.hpp"

using namespace stn;

namespace {

// Redis's rule, written once more and differently: the bytes that decide the slot.
std::string hashed_part(const std::string& key) {
    const auto open = key.find('{');
    if (open == std::string::npos) return key;
    const auto close = key.find('}', open);
    if (close == std::string::npos || close == open + 1) return key;
    return key.substr(open + 1, close - open - 1);
}

void words_over(const std::string& alphabet, std::size_t longest, std::vector<std::string>& out) {
    std::size_t from = out.size();
    out.emplace_back();
    for (std::size_t length = 1; length <= longest; ++length) {
        const std::size_t to = out.size();
        for (; from < to; ++from)
            for (const char c : alphabet) out.push_back(out[from] + c);
    }
}

token generation() {
    return token_from(std::string("\x00\x01\x7f\x80\xff\xab\xcd\xef 2345678", 16));
}

} // namespace

TEST_CASE("keys are mapped as the design says") {
    CHECK(value_key("stn", "users", "42") == "stn:v:users:{42}");
    CHECK(value_key("stn", "users@2", "a:b c") == "stn:v:users@2:{a:b c}");
    CHECK(value_key("p", "c", "{user1}.name") == "p:v:c:={user1}.name");
    CHECK(value_key("p", "c", "x{user1}{b}") == "p:v:c:=x{user1}{b}");
    CHECK(value_key("p", "c", "{a}%7B") == "p:v:c:={a}%7B");
    CHECK(value_key("p", "c", "{}") == "p:v:c:{%7B%7D}");
    CHECK(value_key("p", "c", "}{a") == "p:v:c:{%7D%7Ba}");
    CHECK(value_key("p", "c", "100%") == "p:v:c:{100%25}");
    CHECK(value_key("p", "c", "=x") == "p:v:c:{=x}");
    CHECK(value_key("p", "c", std::string("a\0b", 3)) == std::string("p:v:c:{a\0b}", 11));
    CHECK(refresh_key("p", "c", "k", generation()) == "p:r:c:{k}:00017f80ffabcdef2032333435363738");
}

TEST_CASE("no two keys share a store key: all words of up to 6 letters over { } % = 7 B :") {
    std::vector<std::string> words;
    words_over("{}%=7B:", 6, words);
    std::map<std::string, std::string> seen;
    for (const std::string& word : words) {
        if (word.empty()) continue;
        const auto [at, fresh] = seen.emplace(value_key("p", "c", word), word);
        REQUIRE_MESSAGE(fresh, word << " and " << at->second << " are both " << at->first);
    }
    CHECK(seen.size() == words.size() - 1);
}

TEST_CASE("no two caches or kinds share a store key, even if keys look like separators") {
    std::map<std::string, int> seen;
    std::vector<std::string> words;
    words_over(":{}a", 4, words);
    int made = 0;
    for (const std::string& word : words) {
        if (word.empty()) continue;
        for (const char* prefix : {"p", "v", "p.v"})
            for (const char* cache : {"a", "v", "a@1"}) {
                ++seen[value_key(prefix, cache, word)];
                ++seen[refresh_key(prefix, cache, word, generation())];
                made += 2;
            }
    }
    CHECK(static_cast<int>(seen.size()) == made);
}

TEST_CASE("all store keys of one key hash to one slot; a key with a tag of its own stays with that tag") {
    std::vector<std::string> words;
    words_over("{}%a", 6, words);
    for (const std::string& word : words) {
        if (word.empty()) continue;
        const std::string slot = hashed_part(value_key("p", "c", word));
        REQUIRE(slot == hashed_part(refresh_key("p", "c", word, generation())));
        REQUIRE(slot == hashed_part(value_key("p", "other", word)));
        REQUIRE(!slot.empty());
        if (hashed_part(word) != word) REQUIRE(slot == hashed_part(word));
        if (word.find_first_of("{}%") == std::string::npos) REQUIRE(slot == word);
    }
}

TEST_CASE("wake-up channels are 64, the same in every process, and evenly used") {
    CHECK(wake_channel("stn", "") == "stn:w:37");       // FNV-1a 64 of nothing: cbf29ce484222325
    CHECK(wake_channel("stn", "a") == "stn:w:12");      // af63dc4c8601ec8c
    CHECK(wake_channel("stn", "foobar") == "stn:w:40"); // 85944171f73967e8
    std::map<std::string, int> used;
    for (int i = 0; i < 6400; ++i) ++used[wake_channel("stn", "user:" + std::to_string(i))];
    CHECK(used.size() == wake_channels);
    for (const auto& [channel, count] : used) CHECK_MESSAGE((count > 50 && count < 150), channel);
}

TEST_CASE("a name is 1 to 64 letters, digits, dots, underscores, hyphens") {
    CHECK(valid_name("stn"));
    CHECK(valid_name("A-z_0.9"));
    CHECK(valid_name(std::string(64, 'a')));
    CHECK(!valid_name(""));
    CHECK(!valid_name(std::string(65, 'a')));
    for (const char* bad : {"a:b", "a b", "a@1", "{a}", "a/b", "caf\xc3\xa9"}) CHECK_MESSAGE(!valid_name(bad), bad);
}

TEST_CASE("a cache name may carry one version") {
    CHECK(versioned_name("users", 2) == "users@2");
    CHECK(valid_cache_name("users"));
    CHECK(valid_cache_name(versioned_name("users", 2)));
    CHECK(valid_cache_name(versioned_name(std::string(64, 'a'), UINT64_MAX)));
    for (const char* bad : {"", "@2", "users@", "users@x", "users@2@3", "users@-1", "users@2 "})
        CHECK_MESSAGE(!valid_cache_name(bad), bad);
}

TEST_CASE("a key is 1 to 1,024 bytes of any kind") {
    CHECK(!valid_key(""));
    CHECK(valid_key(std::string(1, '\0')));
    CHECK(valid_key(std::string(max_key, 'k')));
    CHECK(!valid_key(std::string(max_key + 1, 'k')));
}
