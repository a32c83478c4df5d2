// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "base/blocks.hpp"

using namespace stn;

namespace {

// Sanitizers have it off, so that they see each block; here it is what is tested.
struct kept_blocks {
    kept_blocks() = default;
    ~kept_blocks() { blocks::keep(before); }
    kept_blocks(const kept_blocks&) = delete;
    kept_blocks& operator=(const kept_blocks&) = delete;
    const bool before = blocks::keep(true);
};

std::vector<void*> taken(std::size_t n, std::size_t bytes) {
    std::vector<void*> all;
    for (std::size_t i = 0; i < n; ++i) {
        all.push_back(blocks::take(bytes));
        std::memset(all.back(), 0xA5, bytes);
    }
    return all;
}

void give_all(const std::vector<void*>& all, std::size_t bytes) {
    for (void* p : all) blocks::give(p, bytes);
}

// Runs on a thread of its own, which starts with nothing and leaves what it kept to the others.
template <class Do> void elsewhere(Do&& act) {
    std::thread(std::forward<Do>(act)).join();
}

} // namespace

TEST_CASE("a block that was given is taken next, by a size of its class") {
    const kept_blocks on;
    void* const p = blocks::take(100);
    blocks::give(p, 100);
    CHECK(blocks::take(128) == p);
    void* const smaller = blocks::take(64);
    CHECK(smaller != p);
    blocks::give(smaller, 1);
    blocks::give(p, 65);
    void* const other = blocks::take(129);
    CHECK(other != p);
    blocks::give(other, 192);
    CHECK(blocks::take(128) == p);
    blocks::give(p, 128);
}

TEST_CASE("a thread has back the last 32 blocks that it gave, before any other") {
    const kept_blocks on;
    constexpr std::size_t bytes = 450;
    elsewhere([] {
        const auto made = taken(32, bytes);
        give_all(made, bytes);
        const auto again = taken(32, bytes);
        CHECK(std::set<void*>(again.begin(), again.end()) == std::set<void*>(made.begin(), made.end()));
        give_all(again, bytes);
    });
}

TEST_CASE("objects of a thread that outlive its blocks may still take and give some") {
    const kept_blocks on;
    struct late {
        ~late() { blocks::give(blocks::take(100), 100); }
        bool touched = false;
    };
    elsewhere([] {
        thread_local late made_first;
        made_first.touched = true;
        blocks::give(blocks::take(100), 100);
    });
}

TEST_CASE("what one thread gives another takes, by sixteens") {
    const kept_blocks on;
    constexpr std::size_t bytes = 600;
    const auto made = taken(48, bytes);
    const std::set<void*> ours(made.begin(), made.end());
    CHECK(ours.size() == 48);
    give_all(made, bytes); // 32 stay here
    std::size_t met = 0;
    elsewhere([&] {
        const auto got = taken(16, bytes);
        for (void* p : got) met += ours.count(p);
        give_all(got, bytes);
    });
    CHECK(met == 16);
}

TEST_CASE("a thread that ends leaves a whole handful to others") {
    const kept_blocks on;
    constexpr std::size_t bytes = 520;
    std::set<void*> theirs;
    elsewhere([&] {
        const auto all = taken(17, bytes);
        theirs.insert(all.begin(), all.end());
        give_all(all, bytes);
    });
    std::size_t met = 0;
    elsewhere([&] {
        const auto got = taken(64, bytes);
        for (void* p : got) met += theirs.count(p);
        give_all(got, bytes);
    });
    CHECK(met >= 16);
}

TEST_CASE("no block is lost or given twice between threads that pass them on") {
    const kept_blocks on;
    constexpr std::size_t bytes = 240;
    std::array<std::vector<void*>, 2> hands;
    for (int round = 0; round < 200; ++round) {
        elsewhere([&] { hands[0] = taken(50, bytes); });
        std::thread giver([&] { give_all(hands[0], bytes); });
        std::thread taker([&] { hands[1] = taken(50, bytes); });
        giver.join();
        taker.join();
        CHECK(std::set<void*>(hands[1].begin(), hands[1].end()).size() == 50);
        give_all(hands[1], bytes);
    }
}

TEST_CASE("what is large, and everything while nothing is to be kept, is allocated and freed") {
    const kept_blocks on;
    blocks::give(blocks::take(641), 641);
    blocks::give(blocks::take(1 << 20), 1 << 20);
    blocks::give(nullptr, 64);
    void* const kept = blocks::take(300);
    blocks::give(kept, 300);
    blocks::keep(false);
    void* const fresh = blocks::take(300);
    CHECK(fresh != kept);
    blocks::give(fresh, 300);
    blocks::keep(true);
    void* const again = blocks::take(300);
    CHECK(again == kept);
    blocks::give(again, 300);
}

TEST_CASE("objects, shared objects and containers live in blocks, and a size beyond all memory is refused") {
    const kept_blocks on;
    struct thing : blocks::made {
        virtual ~thing() = default;
    };
    struct large final : thing {
        std::array<char, 400> more{};
    };
    const void* where = nullptr;
    {
        const std::unique_ptr<thing> one(new large);
        where = one.get();
    }
    void* const again = blocks::take(sizeof(large));
    CHECK(again == where); // its own size went back, not its base's
    blocks::give(again, sizeof(large));

    const auto shared = blocks::make_shared<std::array<int, 8>>();
    CHECK(shared->size() == 8);
    blocks::unordered_map<int, int> map;
    for (int i = 0; i < 100; ++i) map[i] = i;
    CHECK(map.size() == 100);
    CHECK_THROWS_AS(static_cast<void>(blocks::allocator<int>().allocate(SIZE_MAX)), std::bad_alloc);
}
