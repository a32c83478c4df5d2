// SPDX-License-Identifier: MIT
#include "guard.hpp"

#include <memory>
#include <new>

using namespace stn;

namespace {

failure not_yet(status s) {
    return s == status::closed ? fail(s, "the queue is closed") : fail(s, "no event came in time");
}

// Everything the queue waits for ends now, on all clients. It takes no memory: closing is also freeing.
void end_operations(event_queue& q) noexcept {
    std::size_t number = 0;
    while (const auto flights = single_flight::next_table(number)) {
        single_flight::cursor at;
        while (const auto l = flights->leave_next(&q, at)) {
            event e;
            e.kind = event_kind::error; // a closed queue adds why
            e.tag = l->who.tag;
            q.push(std::move(e));
            if (const auto core = flights->owner.lock()) core->after_leave(*l);
        }
    }
}

void close_queue(event_queue& q) noexcept {
    if (q.close()) end_operations(q);
}

} // namespace

int32_t stn_queue_new(uint64_t host_scope, stn_queue** out, stn_error** err) noexcept {
    if (out != nullptr) *out = nullptr;
    return guarded(err, [&]() -> failure {
        if (out == nullptr) return null_argument("out");
        auto made = std::make_unique<stn_queue>();
        made->q = std::make_shared<event_queue>(host_scope);
        *out = made.release();
        return no_failure;
    });
}

int32_t stn_queue_next(stn_queue* q, int64_t timeout_ms, stn_event** out, stn_error** err) noexcept {
    if (out != nullptr) *out = nullptr;
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(q, "q"));
        STN_TRY(check_wait(timeout_ms, "timeout_ms"));
        if (out == nullptr) return null_argument("out");
        auto made = std::make_unique<stn_event>();
        const status s = q->q->next(timeout_ms, made->e);
        if (s != status::ok) return not_yet(s);
        *out = finish_event(std::move(made));
        return no_failure;
    });
}

int32_t stn_queue_drain(stn_queue* q, size_t cap, int64_t timeout_ms, stn_event** evs, size_t* n,
                        stn_error** err) noexcept {
    if (n != nullptr) *n = 0;
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(q, "q"));
        STN_TRY(check_wait(timeout_ms, "timeout_ms"));
        if (cap == 0) return fail(status::invalid_argument, "cap is 0; it is 1 or more");
        if (evs == nullptr) return null_argument("evs");
        if (n == nullptr) return null_argument("n");
        const status s = q->q->drain_to(timeout_ms, cap, [&]() -> event* {
            evs[*n] = new (std::nothrow) stn_event();
            return evs[*n] == nullptr ? nullptr : &evs[(*n)++]->e;
        });
        if (s != status::ok) return not_yet(s);
        if (*n == 0) throw std::bad_alloc();
        for (std::size_t i = 0; i < *n; ++i) evs[i] = finish_event(std::unique_ptr<stn_event>(evs[i]));
        return no_failure;
    });
}

int32_t stn_queue_fd(stn_queue* q, int32_t* fd, stn_error** err) noexcept {
    if (fd != nullptr) *fd = -1;
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(q, "q"));
        if (fd == nullptr) return null_argument("fd");
        const auto made = q->q->fd();
        if (!made) return made.failure();
        *fd = *made;
        return no_failure;
    });
}

int32_t stn_queue_set_doorbell(stn_queue* q, stn_doorbell fn, void* ud, stn_free_ud free_ud, stn_error** err) noexcept {
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(q, "q"));
        if (q->q->set_doorbell(fn, ud, free_ud) == status::ok) return no_failure;
        return fail(status::would_deadlock, "the doorbell is set from inside a ring of this queue");
    });
}

int32_t stn_queue_set_sync(stn_queue* q, stn_error** err) noexcept {
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(q, "q"));
        q->q->set_sync();
        return no_failure;
    });
}

int32_t stn_queue_wake(stn_queue* q) noexcept {
    return guarded(nullptr, [&]() -> failure {
        STN_TRY(check_handle(q, "q"));
        q->q->wake();
        return no_failure;
    });
}

int32_t stn_cancel(stn_queue* q, uint64_t op) noexcept {
    return guarded(nullptr, [&]() -> failure {
        STN_TRY(check_handle(q, "q"));
        const auto flights = single_flight::by_op(op);
        if (!flights) return no_failure;
        const auto why = outcome_error(fail(status::cancelled, "the call was cancelled"));
        const auto l = flights->leave(op, q->q.get());
        if (!l) return no_failure;
        const auto core = flights->owner.lock();
        if (core) core->totals.add(stat::cancelled);
        event e;
        e.kind = event_kind::error;
        e.code = status::cancelled;
        e.tag = l->who.tag;
        e.what = why;
        q->q->push(std::move(e));
        if (core) core->after_leave(*l);
        return no_failure;
    });
}

int32_t stn_queue_close(stn_queue* q, stn_error** err) noexcept {
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(q, "q"));
        close_queue(*q->q);
        return no_failure;
    });
}

void stn_queue_free(stn_queue* q) noexcept {
    if (q == nullptr) return;
    if (q->made.forked()) {
        q->q->abandon_after_fork();
        return;
    }
    // If nobody else holds it, no operation waits for it, and nothing need be looked for.
    if (q->q.use_count() > 1) close_queue(*q->q);
    delete q;
}
