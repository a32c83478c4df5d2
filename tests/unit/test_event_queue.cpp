// SPDX-License-Identifier: MIT
//
// The mailbox, by one thread (tests/stress has several).
#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <vector>

#include <poll.h>

#include "engine/event_queue.hpp"
#include "support/world.hpp"

using namespace stn;

namespace {

event done(std::uint64_t tag) {
    event e;
    e.kind = event_kind::done;
    e.tag = tag;
    return e;
}

void push_all(event_queue& q, const std::vector<std::uint64_t>& tags) {
    q.push(tags.begin(), tags.end(), done);
}

bool readable(int fd) {
    pollfd p{fd, POLLIN, 0};
    return ::poll(&p, 1, 0) == 1;
}

struct bell {
    int rings = 0;
    int freed = 0;
    std::function<void()> also;
    static void ring(void* ud) {
        auto* self = static_cast<bell*>(ud);
        ++self->rings;
        if (self->also) self->also();
    }
    static void free_ud(void* ud) { ++static_cast<bell*>(ud)->freed; }
};

} // namespace

TEST_CASE("events come out oldest first, one by one or many at once") {
    const auto q = std::make_shared<event_queue>(0);
    event e;
    CHECK(q->next(0, e) == status::timeout);
    q->push(done(1));
    push_all(*q, {2, 3, 4});
    push_all(*q, {});
    REQUIRE(q->next(0, e) == status::ok);
    CHECK(e.tag == 1);
    std::vector<event> some;
    CHECK(q->drain(0, 2, some) == status::ok);
    CHECK(some.size() == 2);
    CHECK(some[1].tag == 3);
    some.clear();
    CHECK(q->drain(0, 10, some) == status::ok);
    CHECK(some.size() == 1);
    some.clear();
    CHECK(q->drain(0, 10, some) == status::timeout);
    CHECK(some.empty());
}

TEST_CASE("a wake lets one waiting call return; with events there it changes nothing") {
    const auto q = std::make_shared<event_queue>(0);
    event e;
    q->wake();
    CHECK(q->next(-1, e) == status::timeout); // at once
    q->wake();
    q->push(done(1));
    CHECK(q->next(-1, e) == status::ok);
}

TEST_CASE("after a close what was queued becomes ERROR closed with its tag and reference, then `closed`") {
    const auto q = std::make_shared<event_queue>(0);
    event value = done(1);
    value.host_ref = 7;
    event told;
    told.kind = event_kind::revoked;
    q->push(std::move(value));
    q->push(std::move(told)); // not terminal: it just vanishes
    CHECK(q->close());
    CHECK(!q->close());
    CHECK(q->closed());
    q->push(done(2)); // what is still to come
    push_all(*q, {3, 4});
    event e;
    REQUIRE(q->next(0, e) == status::ok);
    CHECK(e.kind == event_kind::error);
    CHECK(e.code == status::closed);
    CHECK(e.tag == 1);
    CHECK(e.host_ref == 7);
    CHECK(e.what->why.code == status::closed);
    for (const std::uint64_t tag : {2U, 3U, 4U}) {
        REQUIRE(q->next(0, e) == status::ok);
        CHECK(e.code == status::closed);
        CHECK(e.tag == tag);
    }
    CHECK(q->next(-1, e) == status::closed);
    CHECK(q->next(-1, e) == status::closed);
}

TEST_CASE("`closed` is said when nothing that was promised is still to come, and then nothing can be promised") {
    const auto q = std::make_shared<event_queue>(0);
    q->promise();
    q->promise();
    q->promise();
    q->close();
    CHECK_THROWS_AS(q->promise(), queue_is_closed);
    event e;
    CHECK(q->next(0, e) == status::timeout);
    q->push(done(1));
    REQUIRE(q->next(0, e) == status::ok);
    CHECK(e.code == status::closed);
    CHECK(q->next(0, e) == status::timeout);
    q->unpromise(); // it was not begun after all
    CHECK(q->next(0, e) == status::timeout);
    q->push(done(2));
    REQUIRE(q->next(-1, e) == status::ok);
    CHECK(e.tag == 2);
    CHECK(q->next(-1, e) == status::closed);
}

TEST_CASE("the descriptor is readable while events wait, after a wake, and for ever after a close") {
    const auto q = std::make_shared<event_queue>(0);
    q->push(done(1));
    const auto fd = q->fd();
    REQUIRE(fd);
    CHECK(*q->fd() == *fd);
    CHECK(readable(*fd));
    event e;
    CHECK(q->next(0, e) == status::ok);
    CHECK(readable(*fd)); // not yet seen empty
    CHECK(q->next(0, e) == status::timeout);
    CHECK(!readable(*fd));
    q->push(done(2));
    CHECK(readable(*fd));
    std::vector<event> some;
    CHECK(q->drain(0, 10, some) == status::ok);
    CHECK(!readable(*fd)); // drained with room left
    q->wake();
    CHECK(readable(*fd));
    CHECK(q->next(0, e) == status::timeout);
    CHECK(!readable(*fd));
    q->close();
    CHECK(readable(*fd));
    CHECK(q->next(0, e) == status::closed);
    CHECK(readable(*fd));
}

TEST_CASE("the doorbell rings once until the queue was seen empty") {
    const auto q = std::make_shared<event_queue>(0);
    bell b;
    CHECK(q->set_doorbell(bell::ring, &b, bell::free_ud) == status::ok);
    CHECK(b.rings == 0);
    q->push(done(1));
    q->push(done(2));
    CHECK(b.rings == 1);
    event e;
    CHECK(q->next(0, e) == status::ok);
    CHECK(q->next(0, e) == status::ok);
    q->push(done(3));
    CHECK(b.rings == 1); // not yet seen empty
    CHECK(q->next(0, e) == status::ok);
    CHECK(q->next(0, e) == status::timeout);
    q->push(done(4));
    CHECK(b.rings == 2);
    CHECK(b.freed == 0);
    CHECK(q->set_doorbell(nullptr, nullptr, nullptr) == status::ok);
    CHECK(b.freed == 1);
    CHECK(q->next(0, e) == status::ok);
    CHECK(q->next(0, e) == status::timeout);
    q->push(done(5));
    CHECK(b.rings == 2);
}

TEST_CASE("a doorbell set while events wait rings in that call; a close rings it too") {
    const auto q = std::make_shared<event_queue>(0);
    q->push(done(1));
    bell b;
    q->set_doorbell(bell::ring, &b, nullptr);
    CHECK(b.rings == 1);
    event e;
    CHECK(q->next(0, e) == status::ok);
    CHECK(q->next(0, e) == status::timeout);
    bell c;
    q->set_doorbell(bell::ring, &c, bell::free_ud);
    CHECK(c.rings == 0);
    q->push(done(2));
    CHECK(c.rings == 1);
    CHECK(b.rings == 1);
}

TEST_CASE("a ring may use the queue, but not change the doorbell") {
    const auto q = std::make_shared<event_queue>(0);
    bell b;
    status inside = status::ok;
    std::uint64_t read = 0;
    b.also = [&] {
        event e;
        if (q->next(0, e) == status::ok) read = e.tag;
        inside = q->set_doorbell(nullptr, nullptr, nullptr);
    };
    q->set_doorbell(bell::ring, &b, nullptr);
    q->push(done(9));
    CHECK(read == 9);
    CHECK(inside == status::would_deadlock);
}

TEST_CASE("a queue that is freed with a doorbell frees its ud once") {
    bell b;
    {
        const auto q = std::make_shared<event_queue>(0);
        q->set_doorbell(bell::ring, &b, bell::free_ud);
    }
    CHECK(b.freed == 1);
}

TEST_CASE("no more than a thousand unread notices are kept, newer ones are dropped") {
    const auto q = std::make_shared<event_queue>(0);
    const auto notice_of = [](std::uint64_t tag) {
        event e;
        e.kind = event_kind::notice;
        e.tag = tag;
        return e;
    };
    for (std::uint64_t i = 0; i < 1'500; ++i) q->push(notice_of(i));
    q->push(done(7));
    std::vector<event> all;
    CHECK(q->drain(0, SIZE_MAX, all) == status::ok);
    CHECK(all.size() == 1'001);
    CHECK(all[999].tag == 999);
    CHECK(all.back().kind == event_kind::done);
    q->push(notice_of(5'000));
    event e;
    REQUIRE(q->next(0, e) == status::ok);
    CHECK(e.tag == 5'000);
}
