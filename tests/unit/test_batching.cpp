// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "io/batching.hpp"

using namespace stn;

namespace {

// Time goes on when it is told to.
struct pipe_of {
    batching batches;
    std::int64_t now_us = 1'000'000;

    void leave(std::size_t commands) {
        batches.appended(commands);
        batches.left(now_us);
    }
    void replies(std::size_t n, std::int64_t after_us = 0) {
        now_us += after_us;
        for (std::size_t i = 0; i < n; ++i) batches.replied([&] { return now_us; });
    }
};

} // namespace

TEST_CASE("the first batch leaves at once, the next one when it is back") {
    pipe_of p;
    p.batches.appended();
    CHECK(p.batches.may_leave(10));
    p.batches.left(p.now_us);
    p.batches.appended(3);
    CHECK_FALSE(p.batches.may_leave(30));
    p.replies(1, 20);
    CHECK(p.batches.may_leave(30));
}

TEST_CASE("a batch is back with its last reply") {
    pipe_of p;
    p.leave(3);
    p.batches.appended();
    p.replies(2, 20);
    CHECK_FALSE(p.batches.may_leave(10));
    p.replies(1);
    CHECK(p.batches.may_leave(10));
}

TEST_CASE("as many batches are under way as fit into a round trip") {
    pipe_of p;
    p.leave(1);
    p.replies(1, 1'000);
    CHECK(p.batches.most() == 11);
    for (int i = 0; i < 11; ++i) {
        p.batches.appended();
        CHECK(p.batches.may_leave(10));
        p.batches.left(p.now_us);
    }
    p.batches.appended();
    CHECK_FALSE(p.batches.may_leave(10));
}

TEST_CASE("a slow reply among quick ones changes little, a quick one among slow ones all") {
    pipe_of p;
    p.leave(1);
    p.replies(1, 90);
    CHECK(p.batches.most() == 1);
    p.leave(1);
    p.replies(1, 5'000); // a server that had something else to do
    CHECK(p.batches.most() <= 2);
    p.leave(1);
    p.replies(1, 50);
    CHECK(p.batches.most() == 1);
}

TEST_CASE("much to send leaves in any case") {
    pipe_of p;
    p.leave(1);
    p.batches.appended();
    CHECK_FALSE(p.batches.may_leave(batching::large - 1));
    CHECK(p.batches.may_leave(batching::large));
}

TEST_CASE("a server that does not answer holds nothing back for long, and gets no more than a batch each while") {
    pipe_of p;
    p.leave(1);
    p.batches.appended();
    CHECK_FALSE(p.batches.stalled(p.now_us + batching::stall_us - 1));
    p.now_us += batching::stall_us;
    CHECK(p.batches.stalled(p.now_us));
    p.batches.left(p.now_us);
    p.batches.appended();
    CHECK_FALSE(p.batches.stalled(p.now_us + batching::stall_us - 1));
    CHECK(p.batches.stalled(p.now_us + batching::stall_us));
    p.replies(2, 20);
    CHECK(p.batches.may_leave(10));
}

TEST_CASE("what was appended and has not left is known by number") {
    pipe_of p;
    p.leave(5);
    CHECK(p.batches.unsent() == 0);
    p.batches.appended(2);
    CHECK(p.batches.unsent() == 2);
    p.replies(5, 10);
    CHECK(p.batches.unsent() == 2);
    p.batches.left(p.now_us);
    CHECK(p.batches.unsent() == 0);
}

TEST_CASE("bytes left over of commands that have left do not wait for anything") {
    pipe_of p;
    p.leave(1);
    CHECK(p.batches.may_leave(10)); // the socket took only a part
}

TEST_CASE("a new connection begins as the first did") {
    pipe_of p;
    p.leave(1);
    p.replies(1, 1'000);
    p.leave(1);
    p.batches.appended();
    p.batches.reset();
    CHECK(p.batches.unsent() == 0);
    CHECK(p.batches.most() == 1);
    p.batches.appended();
    CHECK(p.batches.may_leave(10));
}
