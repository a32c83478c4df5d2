// SPDX-License-Identifier: MIT
#include "guard.hpp"

#include "engine/lock_calls.hpp"
#include "protocol/lock_value.hpp"
#include "protocol/options.hpp"

using namespace stn;

namespace {

failure check_queue(const stn_queue* q) {
    STN_TRY(check_handle(q, "q"));
    if (q->q->closed()) return fail(status::closed, "the queue is closed");
    return no_failure;
}

// Where the answer of an operation on a handle goes.
failure told_to(stn_queue* q, std::shared_ptr<event_queue>& home) {
    if (q == nullptr) return no_failure;
    STN_TRY(check_queue(q));
    home = q->q;
    return no_failure;
}

} // namespace

int32_t stn_lock_policy_new(const char* json, stn_lock_policy** out, stn_error** err) noexcept {
    if (out != nullptr) *out = nullptr;
    return guarded(err, [&]() -> failure {
        if (json == nullptr) return null_argument("json");
        if (out == nullptr) return null_argument("out");
        auto read = read_lock_options(json);
        if (!read) return read.failure();
        *out = new stn_lock_policy{{}, std::move(*read)};
        return no_failure;
    });
}

void stn_lock_policy_free(stn_lock_policy* policy) noexcept {
    free_handle(policy);
}

int32_t stn_lock_acquire(stn_client* client, const void* name, size_t n, const char* options_json,
                         const stn_lock_policy* policy, int64_t deadline_ms, const stn_scope* within, stn_queue* q,
                         uint64_t tag, stn_queue* loss_q, uint64_t loss_tag, uint64_t* op, stn_error** err) noexcept {
    if (op != nullptr) *op = 0;
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(client, "client"));
        STN_TRY(check_bytes(name, n, "name"));
        STN_TRY(check_wait(deadline_ms, "deadline_ms"));
        STN_TRY(check_queue(q));
        if ((options_json == nullptr) == (policy == nullptr)) {
            return fail(status::invalid_argument, "exactly one of options_json and policy is given, the other is NULL");
        }
        lock_call c;
        STN_TRY(scope_of(within, c.within));
        STN_TRY(told_to(loss_q, c.loss_home));
        lock_policy own;
        if (policy != nullptr) {
            STN_TRY(check_handle(policy, "policy"));
        } else {
            auto read = read_lock_options(options_json);
            if (!read) return read.failure();
            own = std::move(*read);
        }
        c.name = text_of(name, n);
        c.deadline_ms = deadline_ms;
        c.home = q->q;
        c.tag = tag;
        c.loss_tag = loss_tag;
        const auto begun = acquire(*client->handle->core, c, policy != nullptr ? policy->policy : own);
        if (!begun) return begun.failure();
        if (op != nullptr) *op = *begun;
        return no_failure;
    });
}

int32_t stn_lock_held(const stn_lock* lock) noexcept {
    return lock != nullptr && !lock->made.forked() && lock->lock->held() ? 1 : 0;
}

int64_t stn_lock_remaining_ms(const stn_lock* lock) noexcept {
    return lock == nullptr || lock->made.forked() ? 0 : lock->lock->remaining_ms();
}

int64_t stn_lock_fence(const stn_lock* lock) noexcept {
    return lock == nullptr ? 0 : lock->lock->fence();
}

const char* stn_lock_token(const stn_lock* lock) noexcept {
    return lock == nullptr ? "" : lock->token.c_str();
}

int32_t stn_lock_state(const stn_lock* lock) noexcept {
    if (lock == nullptr) return 0;
    if (lock->made.forked()) return STN_FORKED;
    // The clock may know it before anybody is told.
    const auto at = lock->lock->at();
    if (at == held_lock::state::held && !lock->lock->held()) return STN_LOCK_LOST;
    return static_cast<int32_t>(at);
}

int32_t stn_lock_loss(const stn_lock* lock) noexcept {
    if (lock == nullptr || lock->made.forked()) return STN_REASON_NONE;
    if (stn_lock_state(lock) != STN_LOCK_LOST) return STN_REASON_NONE;
    switch (lock->lock->loss()) {
    case lock_loss::none:
    case lock_loss::expired: break;
    case lock_loss::deleted: return STN_REASON_DELETED;
    case lock_loss::stolen: return STN_REASON_STOLEN;
    case lock_loss::max_hold: return STN_REASON_MAX_HOLD;
    case lock_loss::closed: return STN_REASON_CLOSED;
    }
    return STN_REASON_EXPIRED;
}

int32_t stn_lock_wait_lost(stn_lock* lock, int64_t timeout_ms, stn_error** err) noexcept {
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(lock, "lock"));
        STN_TRY(check_wait(timeout_ms, "timeout_ms"));
        const auto held = lock->lock; // the handle may be freed meanwhile
        if (held->wait_lost(timeout_ms) == status::ok) return no_failure;
        return fail(status::timeout, "the lock is held still");
    });
}

int32_t stn_lock_renew(stn_lock* lock, int64_t deadline_ms, stn_queue* q, uint64_t tag, stn_error** err) noexcept {
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(lock, "lock"));
        STN_TRY(check_wait(deadline_ms, "deadline_ms"));
        STN_TRY(check_queue(q));
        return lock->lock->renew(deadline_ms, q->q, tag);
    });
}

int32_t stn_lock_release(stn_lock* lock, int64_t deadline_ms, stn_queue* q, uint64_t tag, stn_error** err) noexcept {
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(lock, "lock"));
        STN_TRY(check_wait(deadline_ms, "deadline_ms"));
        std::shared_ptr<event_queue> home;
        STN_TRY(told_to(q, home));
        return lock->lock->release(deadline_ms, home, tag);
    });
}

int32_t stn_lock_leave(stn_lock* lock, stn_error** err) noexcept {
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(lock, "lock"));
        if (!lock->lock->leave()) return fail(status::lost, "the lock is held no longer");
        return no_failure;
    });
}

void stn_lock_free(stn_lock* lock) noexcept {
    free_handle(lock);
}

int32_t stn_lock_inspect(stn_client* client, const void* name, size_t n, const void* key, size_t key_n,
                         int64_t deadline_ms, stn_queue* q, uint64_t tag, uint64_t* op, stn_error** err) noexcept {
    if (op != nullptr) *op = 0;
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(client, "client"));
        STN_TRY(check_bytes(name, n, "name"));
        STN_TRY(check_bytes(key, key_n, "key"));
        STN_TRY(check_wait(deadline_ms, "deadline_ms"));
        STN_TRY(check_queue(q));
        lock_call c;
        c.name = n == 0 ? text_of(key, key_n) : text_of(name, n);
        c.deadline_ms = deadline_ms;
        c.home = q->q;
        c.tag = tag;
        const auto begun = inspect(*client->handle->core, c, text_of(key, key_n));
        if (!begun) return begun.failure();
        if (op != nullptr) *op = *begun;
        return no_failure;
    });
}
