// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "protocol/flight_table.hpp"
#include "support/chance.hpp"

using namespace stn;
using test::token_of;

namespace {

struct note {
    int lease = 0;
};
using table = flight_table<int, note>;

flight_key key(std::string_view text, std::uint8_t kind = 0, std::uint32_t space = 1, token variant = {}) {
    return {space, kind, variant, text};
}

table::flight* open(table& t, const flight_key& k, bool listed = true) {
    return t.open(k, hash_of(k), listed);
}

table::flight* find(const table& t, const flight_key& k) {
    return t.find(k, hash_of(k));
}

std::vector<int> take_all(table& t, table::flight& f) {
    std::vector<int> out;
    t.take_all(f, [&](int who) { out.push_back(who); });
    return out;
}

} // namespace

TEST_CASE("a listed flight is found by its key, an unlisted one is not") {
    table t;
    table::flight* f = open(t, key("a"));
    CHECK(find(t, key("a")) == f);
    CHECK(find(t, key("b")) == nullptr);
    t.unlist(*f);
    CHECK(find(t, key("a")) == nullptr);
    t.unlist(*f); // twice is once
    table::flight* g = open(t, key("a"), false);
    CHECK(find(t, key("a")) == nullptr);
    CHECK(t.live() == 2);
    CHECK(t.drop(*f));
    CHECK(t.drop(*g));
    CHECK(t.live() == 0);
}

TEST_CASE("what changes the result is part of a flight's identity") {
    table t;
    std::vector<flight_key> keys{key("a"),       key("a", 1), key("a", 1, 1, token_of("g1")),
                                 key("a", 0, 2), key("b"),    key("a", 1, 1, token_of("g2"))};
    std::set<table::flight*> all;
    for (const auto& k : keys) all.insert(open(t, k));
    CHECK(all.size() == keys.size());
    std::set<table::flight*> found;
    for (const auto& k : keys) found.insert(find(t, k));
    CHECK(found == all);
}

TEST_CASE("callers are taken oldest first") {
    table t;
    table::flight* f = open(t, key("a"));
    for (int i = 1; i <= 5; ++i) t.join(*f, i, forever_ms);
    CHECK(f->waiting == 5);
    CHECK(take_all(t, *f) == std::vector{1, 2, 3, 4, 5});
    CHECK(f->waiting == 0);
}

TEST_CASE("one caller leaves without disturbing the others") {
    table t;
    table::flight* f = open(t, key("a"));
    std::vector<table::seat*> seats;
    for (int i = 1; i <= 5; ++i) seats.push_back(t.join(*f, i, forever_ms));
    CHECK(t.leave(seats[2]) == 3); // the middle
    CHECK(t.leave(seats[0]) == 1); // the oldest
    CHECK(t.leave(seats[4]) == 5); // the youngest
    CHECK(take_all(t, *f) == std::vector{2, 4});
}

TEST_CASE("who comes back is the youngest") {
    table t;
    table::flight* f = open(t, key("a"));
    table::seat* first = t.join(*f, 1, forever_ms);
    t.join(*f, 2, forever_ms);
    t.rejoin(*f, t.leave(first), forever_ms);
    CHECK(take_all(t, *f) == std::vector{2, 1});
}

TEST_CASE("the name of a seat is good once: later it names nobody, not somebody else") {
    table t;
    table::flight* f = open(t, key("a"));
    table::seat* s = t.join(*f, 1, forever_ms);
    const std::uint32_t index = s->index;
    const std::uint32_t seq = s->seq;
    CHECK(t.seat_at(index, seq) == s);
    t.leave(s);
    CHECK(t.seat_at(index, seq) == nullptr);
    table::seat* next = t.join(*f, 2, forever_ms);
    REQUIRE(next->index == index); // the same chair
    CHECK(t.seat_at(index, seq) == nullptr);
    CHECK(t.seat_at(index, next->seq) == next);
    CHECK(t.seat_at(index, 0) == nullptr);
    CHECK(t.seat_at(index + 1'000, next->seq) == nullptr);
}

TEST_CASE("a flight lives while it is held, listed or waited in") {
    table t;
    table::flight* f = open(t, key("a"));
    table::seat* s = t.join(*f, 1, forever_ms);
    t.hold(*f);
    CHECK(!t.drop(*f));
    t.unlist(*f);
    CHECK(!t.drop(*f)); // somebody waits
    CHECK(t.live() == 1);
    t.hold(*f);
    t.leave(s);
    CHECK(t.live() == 1);
    CHECK(t.drop(*f));
    CHECK(t.live() == 0);
}

TEST_CASE("a flight that nobody joins costs no memory after the first") {
    table t;
    table::flight* first = open(t, key("a"));
    t.unlist(*first);
    const std::uint64_t id = first->id;
    first->extra.lease = 7;
    CHECK(t.drop(*first));
    table::flight* second = open(t, key("b"));
    CHECK(second == first);
    CHECK(second->id != id);
    CHECK(second->extra.lease == 0);
    CHECK(second->waiting == 0);
    CHECK(second->alarm == forever_ms);
    CHECK(find(t, key("a")) == nullptr);
    CHECK(find(t, key("b")) == second);
}

TEST_CASE("tables that count in steps never give the same number") {
    table a(16, 1), b(16, 2);
    std::set<std::uint64_t> ids;
    for (int i = 0; i < 100; ++i) {
        ids.insert(open(a, key("k" + std::to_string(i)))->id);
        ids.insert(open(b, key("k" + std::to_string(i)))->id);
    }
    CHECK(ids.size() == 200);
    CHECK(!ids.contains(0));
}

TEST_CASE("an invalidation finds every flight of its key, listed or not, and no other") {
    table t;
    std::set<table::flight*> mine{open(t, key("a")), open(t, key("a", 3)), open(t, key("a", 1, 1, token_of("g"))),
                                  open(t, key("a"), false)};
    open(t, key("b"));
    open(t, key("a", 0, 2));
    for (int round = 0; round < 2; ++round) { // once with all, then with none listed
        std::set<table::flight*> seen;
        t.each_of_key(1, "a", hash_of(key("a")), [&](table::flight& f) {
            seen.insert(&f);
            t.unlist(f);
        });
        CHECK(seen == mine);
    }
}

TEST_CASE("with all flights listed only the key's own place is searched, and unlisting on the way is safe") {
    table t;
    std::vector<table::flight*> mine;
    for (std::uint8_t kind = 0; kind < 6; ++kind) mine.push_back(open(t, key("a", kind)));
    for (int i = 0; i < 50; ++i) open(t, key("other" + std::to_string(i)));
    int seen = 0;
    t.each_of_key(1, "a", hash_of(key("a")), [&](table::flight& f) {
        ++seen;
        t.unlist(f);
    });
    CHECK(seen == 6);
    for (std::uint8_t kind = 0; kind < 6; ++kind) CHECK(find(t, key("a", kind)) == nullptr);
    CHECK(find(t, key("other7")) != nullptr);
}

TEST_CASE("thousands of flights are all found, through every growth and after removals") {
    table t;
    std::vector<table::flight*> all;
    for (int i = 0; i < 5'000; ++i) all.push_back(open(t, key(std::to_string(i))));
    for (int i = 0; i < 5'000; ++i) CHECK(find(t, key(std::to_string(i))) == all[static_cast<std::size_t>(i)]);
    for (int i = 0; i < 5'000; i += 2) {
        t.unlist(*all[static_cast<std::size_t>(i)]);
        CHECK(t.drop(*all[static_cast<std::size_t>(i)]));
    }
    CHECK(t.live() == 2'500);
    for (int i = 0; i < 5'000; ++i) CHECK((find(t, key(std::to_string(i))) != nullptr) == (i % 2 == 1));
}

TEST_CASE("keys of any bytes are told apart") {
    table t;
    const std::vector<std::string> keys{std::string("\0", 1),
                                        std::string("\0\0", 2),
                                        std::string("a\0b", 3),
                                        "a",
                                        "ab",
                                        std::string(8, 'x'),
                                        std::string(9, 'x'),
                                        std::string(16, 'x'),
                                        std::string(1'024, 'x'),
                                        std::string(1'023, 'x') + "y"};
    std::set<table::flight*> all;
    for (const auto& k : keys) {
        CHECK(find(t, key(k)) == nullptr);
        all.insert(open(t, key(k)));
    }
    CHECK(all.size() == keys.size());
    for (const auto& k : keys) CHECK(all.contains(find(t, key(k))));
}

TEST_CASE("kinds and variants of a key hash alike, keys do not") {
    CHECK(hash_of(key("a")) == hash_of(key("a", 5, 1, token_of("v"))));
    std::set<std::uint64_t> tops;
    std::set<std::uint64_t> hashes;
    for (int i = 0; i < 1'000; ++i) {
        const std::uint64_t h = hash_of(key("key-" + std::to_string(i)));
        hashes.insert(h);
        tops.insert(h >> 60);
    }
    CHECK(hashes.size() == 1'000);
    CHECK(tops.size() == 16); // the shards are chosen by the top bits
    CHECK(hash_of(key("a", 0, 1)) != hash_of(key("a", 0, 2)));
}

TEST_CASE("every seat and flight can be walked") {
    table t;
    table::flight* f = open(t, key("a"));
    table::flight* g = open(t, key("b"), false);
    t.join(*f, 1, 10);
    t.leave(t.join(*f, 2, 10));
    t.join(*g, 3, 20);
    int flights = 0;
    int sum = 0;
    t.each_flight([&](table::flight&) { ++flights; });
    const auto anybody = [](int) { return true; };
    for (std::size_t at = 0; auto* s = t.find_seat(at, anybody); ++at) sum += s->who;
    CHECK(flights == 2);
    CHECK(sum == 4);
}
