// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include <hiredis/hiredis.h>

#include "io/reply_builder.hpp"

using namespace stn;

namespace {

struct free_reader {
    void operator()(redisReader* r) const { ::redisReaderFree(r); }
};

// hiredis' reader with our builder; bytes in, replies out.
class intake {
  public:
    intake() : reader_(::redisReaderCreateWithFunctions(nullptr)) { builder_.attach(*reader_); }

    void feed(std::string_view bytes) {
        REQUIRE(::redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) == REDIS_OK);
    }
    // False: there is none, or it is no reply.
    bool next(reply& out) {
        void* found = nullptr;
        failed = ::redisReaderGetReply(reader_.get(), &found) != REDIS_OK;
        if (failed || found == nullptr) return false;
        push = builder_.was_push();
        out = builder_.take();
        return true;
    }
    reply only(std::string_view bytes) {
        feed(bytes);
        reply out;
        CHECK(next(out));
        return out;
    }
    [[nodiscard]] bool over_bounds() const { return builder_.over_bounds(); }
    bool push = false;
    bool failed = false;

  private:
    reply_builder builder_;
    std::unique_ptr<redisReader, free_reader> reader_;
};

reply of(std::string_view bytes) {
    return intake().only(bytes);
}

} // namespace

TEST_CASE("each kind of RESP2 is read as what it is") {
    CHECK(of("+OK\r\n").kind == reply_kind::status);
    CHECK(of("+OK\r\n").text == "OK");
    CHECK(of("-ERR no\r\n").kind == reply_kind::error);
    CHECK(of("-ERR no\r\n").text == "ERR no");
    CHECK(of(":-12\r\n").kind == reply_kind::integer);
    CHECK(of(":-12\r\n").integer == -12);
    CHECK(of(std::string_view("$3\r\na\0b\r\n", 9)).text == std::string("a\0b", 3));
    CHECK(of("$0\r\n\r\n").kind == reply_kind::bulk);
    CHECK(of("$0\r\n\r\n").text.empty());
    CHECK(of("$-1\r\n").kind == reply_kind::nil);
    CHECK(of("*-1\r\n").kind == reply_kind::nil);
    CHECK(of("*0\r\n").kind == reply_kind::array);
    CHECK(of("*0\r\n").items.empty());
}

TEST_CASE("arrays in arrays keep their order and their kinds") {
    const reply r = of("*3\r\n*2\r\n:1\r\n$1\r\na\r\n$-1\r\n-ERR x\r\n");
    REQUIRE(r.items.size() == 3);
    REQUIRE(r.items[0].items.size() == 2);
    CHECK(r.items[0].items[0].integer == 1);
    CHECK(r.items[0].items[1].text == "a");
    CHECK(r.items[1].kind == reply_kind::nil);
    CHECK(r.items[2].kind == reply_kind::error);
}

TEST_CASE("each kind of RESP3 becomes the nearest of RESP2") {
    CHECK(of("_\r\n").kind == reply_kind::nil);
    CHECK(of("#t\r\n").integer == 1);
    CHECK(of("#f\r\n").kind == reply_kind::integer);
    CHECK(of(",3.5\r\n").kind == reply_kind::bulk);
    CHECK(of(",3.5\r\n").text == "3.5");
    CHECK(of("(12345678901234567890\r\n").text == "12345678901234567890");
    CHECK(of("=7\r\ntxt:abc\r\n").text == "abc");
    const reply map = of("%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n");
    CHECK(map.kind == reply_kind::array);
    REQUIRE(map.items.size() == 4);
    CHECK(map.items[3].integer == 2);
    CHECK(of("~2\r\n:1\r\n:2\r\n").items.size() == 2);
}

TEST_CASE("a push is told from a reply, and only while it is the one") {
    intake in;
    in.feed(">2\r\n+message\r\n+x\r\n*2\r\n+message\r\n+x\r\n>1\r\n+y\r\n:1\r\n");
    reply r;
    for (const bool push : {true, false, true, false}) {
        REQUIRE(in.next(r));
        CHECK(in.push == push);
    }
}

TEST_CASE("bytes that come one by one are read as those that come at once") {
    const std::string all = "*2\r\n$5\r\nhello\r\n%1\r\n+a\r\n,1.25\r\n$2\r\nok\r\n";
    intake in;
    std::vector<reply> got;
    for (const char c : all) {
        in.feed(std::string_view(&c, 1));
        reply r;
        while (in.next(r)) got.push_back(r);
    }
    REQUIRE(got.size() == 2);
    CHECK(got[0].items[0].text == "hello");
    CHECK(got[0].items[1].items[1].text == "1.25");
    CHECK(got[1].text == "ok");
}

TEST_CASE("no reply leaves anything in the next") {
    intake in;
    CHECK(in.only("*2\r\n:7\r\n$1\r\na\r\n").items.size() == 2);
    const reply r = in.only("$-1\r\n");
    CHECK(r.items.empty());
    CHECK(r.text.empty());
    CHECK(r.integer == 0);
}

TEST_CASE("a reply with more parts than any of ours is refused before there is room for them") {
    SUBCASE("at once") {
        intake in;
        in.feed("*4097\r\n");
        reply r;
        CHECK_FALSE(in.next(r));
        CHECK(in.failed);
    }
    SUBCASE("bit by bit") {
        intake in;
        in.feed("*4096\r\n*1\r\n");
        reply r;
        CHECK_FALSE(in.next(r));
        CHECK(in.failed);
        CHECK(in.over_bounds());
    }
    SUBCASE("as many as allowed") {
        intake in;
        std::string all = "*4096\r\n";
        for (int i = 0; i < 4'096; ++i) all += ":1\r\n";
        CHECK(in.only(all).items.size() == 4'096);
        CHECK(in.only(all).items.size() == 4'096); // counted anew for each
    }
}

TEST_CASE("a reply deeper than any of ours is refused") {
    for (const int levels : {8, 9}) {
        CAPTURE(levels);
        std::string all;
        for (int i = 0; i < levels; ++i) all += "*1\r\n";
        intake in;
        in.feed(all + ":1\r\n");
        reply r;
        const bool good = levels <= reply_builder::deepest;
        CHECK(in.next(r) == good);
        CHECK(in.failed != good);
    }
}

TEST_CASE("what is no reply is a failure, and stays one") {
    for (const char* bytes : {"HTTP/1.1 400\r\n", "$x\r\n", ":\r\n", "*-2\r\n", "#maybe\r\n"}) {
        CAPTURE(std::string(bytes));
        intake in;
        in.feed(bytes);
        reply r;
        CHECK_FALSE(in.next(r));
        CHECK(in.failed);
    }
}
