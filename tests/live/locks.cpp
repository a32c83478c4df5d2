// SPDX-License-Identifier: MIT
#include "locks.hpp"

#include <stdexcept>
#include <utility>

#include <doctest/doctest.h>

namespace stn::test {

namespace {

using steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::int64_t stuck_ms = 60'000;

owned<stn_queue> make_queue() {
    stn_queue* q = nullptr;
    if (stn_queue_new(0, &q, nullptr) != STN_OK) throw std::runtime_error("no queue");
    return owned<stn_queue>(q);
}

lock_answer read_event(stn_event* e) {
    lock_answer out;
    out.status = stn_event_status(e);
    out.reason = stn_event_reason(e);
    out.lock.reset(stn_event_take_lock(e));
    out.tick.reset(stn_event_take_tick(e));
    out.ttl_left_ms = stn_event_ttl_left_ms(e);
    std::size_t n = 0;
    if (const void* p = stn_event_bytes(e, &n)) out.bytes.assign(static_cast<const char*>(p), n);
    if (const stn_error* why = stn_event_error(e)) {
        out.message = stn_error_message(why);
        if (const char* said = stn_error_server_text(why)) out.server_text = said;
        out.may_have_applied = (stn_error_flags(why) & STN_ERROR_MAY_HAVE_APPLIED) != 0;
    }
    return out;
}

} // namespace

lock_question::lock_question(end_is when) : began_(steady::now()), queue_(make_queue()) {
    if (when == end_is::next) CHECK(stn_queue_set_sync(queue_.get(), nullptr) == STN_OK);
}

lock_answer lock_question::end() {
    lock_answer out;
    if (refused_ != STN_OK) {
        out.status = refused_;
        return out;
    }
    stn_event* raw = nullptr;
    if (stn_queue_next(queue_.get(), stuck_ms, &raw, nullptr) != STN_OK) {
        throw std::runtime_error("a question has no answer after a minute");
    }
    const owned<stn_event> e(raw);
    out = read_event(e.get());
    out.took = std::chrono::duration_cast<milliseconds>(steady::now() - began_);
    return out;
}

void lock_question::cancel() {
    CHECK(stn_cancel(queue_.get(), op_) == STN_OK);
}

lock_user::lock_user(app& of) : app_(of), losses_(make_queue()) {}

lock_question lock_user::begin(std::string_view name, const std::string& options, std::int64_t deadline_ms,
                               lock_question::end_is when) {
    lock_question out(when);
    out.refused_ = stn_lock_acquire(app_.client(), name.data(), name.size(), options.c_str(), nullptr, deadline_ms,
                                    nullptr, out.queue_.get(), 0, losses_.get(), 0, &out.op_, nullptr);
    return out;
}

lock_answer lock_user::acquire(std::string_view name, const std::string& options, std::int64_t deadline_ms) {
    return begin(name, options, deadline_ms, lock_question::end_is::next).end();
}

lock_answer lock_user::renew(const owned<stn_lock>& lock, std::int64_t deadline_ms) {
    lock_question out;
    out.refused_ = stn_lock_renew(lock.get(), deadline_ms, out.queue_.get(), 0, nullptr);
    return out.end();
}

lock_answer lock_user::release(const owned<stn_lock>& lock, std::int64_t deadline_ms) {
    lock_question out;
    out.refused_ = stn_lock_release(lock.get(), deadline_ms, out.queue_.get(), 0, nullptr);
    return out.end();
}

lock_answer lock_user::inspect(std::string_view name, std::string_view key) {
    lock_question out;
    out.refused_ = stn_lock_inspect(app_.client(), name.data(), name.size(), key.data(), key.size(), STN_DEFAULT_MS,
                                    out.queue_.get(), 0, nullptr, nullptr);
    return out.end();
}

lock_answer lock_user::tick(std::string_view name, const std::string& options) {
    lock_question out;
    out.refused_ = stn_tick_acquire(app_.client(), name.data(), name.size(), options.c_str(), STN_DEFAULT_MS,
                                    out.queue_.get(), 0, nullptr, nullptr);
    return out.end();
}

lock_answer lock_user::finish(const owned<stn_tick>& tick, bool ok) {
    lock_question out;
    out.refused_ = stn_tick_done(tick.get(), ok ? 1 : 0, STN_DEFAULT_MS, out.queue_.get(), 0, nullptr);
    return out.end();
}

lock_question lock_user::begin_once(std::string_view id, std::int64_t ttl_ms, std::int64_t deadline_ms,
                                    lock_question::end_is when) {
    lock_question out(when);
    out.refused_ =
        stn_once(app_.client(), id.data(), id.size(), ttl_ms, deadline_ms, out.queue_.get(), 0, &out.op_, nullptr);
    return out;
}

lock_answer lock_user::once(std::string_view id, std::int64_t ttl_ms, std::int64_t deadline_ms) {
    return begin_once(id, ttl_ms, deadline_ms, lock_question::end_is::next).end();
}

std::vector<std::int32_t> lock_user::losses(milliseconds patience) {
    std::vector<std::int32_t> out;
    std::int64_t wait = patience.count();
    stn_event* raw = nullptr;
    while (stn_queue_next(losses_.get(), wait, &raw, nullptr) == STN_OK) {
        const owned<stn_event> e(raw);
        CHECK(stn_event_kind(raw) == STN_EVENT_LOCK_LOST);
        CHECK(stn_event_status(raw) == STN_LOST);
        out.push_back(stn_event_reason(raw));
        wait = 0;
    }
    return out;
}

void warm_up(lock_user& user) {
    for (int i = 0; i < 2; ++i) { // the second time finds them taught
        const auto got = user.acquire("warm-up");
        REQUIRE(got.lock);
        REQUIRE(user.renew(got.lock).status == STN_OK);
        REQUIRE(user.release(got.lock).status == STN_OK);
        REQUIRE(user.once("warm-up", 1).status == STN_OK);
        std::this_thread::sleep_for(milliseconds(2));
    }
}

std::string token_of(const owned<stn_lock>& lock) {
    const std::string digits = stn_lock_token(lock.get());
    std::string out;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
        out.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
    }
    return out;
}

bool stands(live_server& server, const std::string& key) {
    return server.ask({"EXISTS", key}).integer == 1;
}

} // namespace stn::test
