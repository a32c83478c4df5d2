// SPDX-License-Identifier: MIT
//
// Values that the host cannot decode.
#include <doctest/doctest.h>

#include <vector>

#include "support/world.hpp"

using namespace stn;
using namespace stn::test;

TEST_CASE("100 callers on a broken value make one load") {
    world w;
    host& h = w.at(0);
    h.put("apple", "broken");
    std::vector<call*> first;
    std::vector<call*> second;
    for (int i = 0; i < 100; ++i) first.push_back(&h.fetch("apple"));
    for (const call* c : first) {
        REQUIRE(c->value() == "broken");
        second.push_back(&h.refetch(*c, "apple"));
    }
    load made = w.leader().take();
    w.advance(300);
    made.fulfil("whole");
    int answered = 0;
    for (const call* c : second) {
        if (c->leads()) continue;
        CHECK(c->value() == "whole");
        ++answered;
    }
    CHECK(answered == 99);
    CHECK(w.total(stat::loads) == 1);
    CHECK(w.stored_value("apple") == "whole");
    CHECK(w.total(stat::rejected) == 100);
}

TEST_CASE("eight processes on a broken value make one load") {
    world w(8);
    w.at(0).put("apple", "broken");
    std::vector<call*> first;
    std::vector<call*> second;
    for (int n = 0; n < 8; ++n) first.push_back(&w.at(n).fetch("apple"));
    for (int n = 0; n < 8; ++n) {
        const call& undecodable = *first[static_cast<std::size_t>(n)];
        REQUIRE(undecodable.value() == "broken");
        second.push_back(&w.at(n).refetch(undecodable, "apple"));
    }
    load made = w.leader().take();
    w.advance(300);
    made.fulfil("whole");
    w.advance(1);
    for (const call* c : second) CHECK((c->leads() || c->value() == "whole"));
    CHECK(w.total(stat::loads) == 1);
}

TEST_CASE("a refetch that comes late finds the new value, and loads nothing") {
    world w(2);
    w.at(0).put("apple", "broken");
    call& early = w.at(0).fetch("apple");
    call& late = w.at(1).fetch("apple");
    w.at(0).refetch(early, "apple").take().fulfil("whole");
    call& again = w.at(1).refetch(late, "apple");
    CHECK(again.value() == "whole");
    CHECK(w.total(stat::loads) == 1);
}

TEST_CASE("a refetch voids the broken value: a fetch beside it waits for the whole one") {
    world w;
    host& h = w.at(0);
    h.put("apple", "broken");
    call& c = h.fetch("apple");
    call& again = h.refetch(c, "apple");
    REQUIRE(again.leads());
    CHECK(w.stored("apple")->kind == entry_kind::placeholder);
    call& other = h.fetch("apple");
    CHECK(!other.ended());
    again.take().fulfil("whole");
    CHECK(other.value() == "whole");
}

TEST_CASE("a second rejection in one call loads for this process only, stores nothing, and says so once") {
    world w;
    host& h = w.at(0);
    w.core(0).told.watch(h.queue, 0x7fffffff, 0);
    h.put("apple", "broken");
    call& one = h.fetch("apple");
    call& other = h.fetch("apple");
    call& again = h.refetch(one, "apple");
    again.take().fulfil("another format"); // by a program of another version, say
    call& found = h.refetch(other, "apple");
    REQUIRE(found.value() == "another format");
    CHECK(found.answer().what->retried);
    for (int i = 0; i < 2; ++i) {
        call& alone = h.refetch(found, "apple");
        REQUIRE(alone.leads());
        call& joined = h.refetch(found, "apple");
        CHECK(!joined.ended()); // single-flight all the same
        alone.take().fulfil("mine");
        CHECK(joined.value() == "mine");
        CHECK(alone.fill() == status::lost);
    }
    CHECK(w.stored_value("apple") == "another format");
    int told = 0;
    for (const event& e : h.notices) told += e.notice == static_cast<std::uint32_t>(notice::version) ? 1 : 0;
    CHECK(told == 1);
}

TEST_CASE("what this process itself has just loaded is not loaded again because it cannot be decoded") {
    world w;
    host& h = w.at(0);
    call& leader = h.fetch("apple");
    call& joined = h.fetch("apple");
    leader.take().fulfil("red");
    REQUIRE(joined.value() == "red");
    CHECK(h.refetch(joined, "apple").refused == status::undecodable);
}

TEST_CASE("a value of another codec is loaded again by itself, once for the fleet") {
    fill_policy json{.ttl_ms = 60'000};
    json.codec = 1;
    world w(4, json);
    const auto raw = w.open(0, "prices", {.ttl_ms = 60'000});
    w.at(0).put("apple", "raw bytes", {.in = raw.get()});
    std::vector<call*> all;
    for (int n = 0; n < 4; ++n) all.push_back(&w.at(n).fetch("apple"));
    w.leader().take().fulfil("{}");
    w.advance(1);
    for (const call* c : all) CHECK((c->leads() || c->value() == "{}"));
    CHECK(w.total(stat::loads) == 1);
    CHECK(w.total(stat::rejected) >= 1);
    CHECK(w.at(0).get("apple").value() == "{}");
}

TEST_CASE("a plain get of another codec is told undecodable") {
    world w;
    fill_policy json{.ttl_ms = 60'000};
    json.codec = 1;
    const auto other = w.open(0, "prices", json);
    w.at(0).put("apple", "{}", {.in = other.get()});
    CHECK(w.at(0).get("apple").code() == status::undecodable);
}
