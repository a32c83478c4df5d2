// SPDX-License-Identifier: MIT
#include "guard.hpp"

#include "engine/lock_calls.hpp"
#include "protocol/options.hpp"

using namespace stn;

namespace {

failure read_call(stn_client* client, const void* name, size_t n, int64_t deadline_ms, stn_queue* q, uint64_t tag,
                  const char* what, lock_call& out) {
    STN_TRY(check_handle(client, "client"));
    STN_TRY(check_bytes(name, n, what));
    STN_TRY(check_wait(deadline_ms, "deadline_ms"));
    STN_TRY(check_handle(q, "q"));
    out.name = text_of(name, n);
    out.deadline_ms = deadline_ms;
    out.home = q->q;
    out.tag = tag;
    return no_failure;
}

} // namespace

int32_t stn_tick_acquire(stn_client* client, const void* name, size_t n, const char* options_json, int64_t deadline_ms,
                         stn_queue* q, uint64_t tag, uint64_t* op, stn_error** err) noexcept {
    if (op != nullptr) *op = 0;
    return guarded(err, [&]() -> failure {
        lock_call c;
        STN_TRY(read_call(client, name, n, deadline_ms, q, tag, "name", c));
        if (options_json == nullptr) return null_argument("options_json");
        const auto policy = read_tick_options(options_json);
        if (!policy) return policy.failure();
        const auto begun = tick(*client->handle->core, c, *policy);
        if (!begun) return begun.failure();
        if (op != nullptr) *op = *begun;
        return no_failure;
    });
}

int64_t stn_tick_slot_ms(const stn_tick* tick) noexcept {
    return tick == nullptr ? 0 : tick->tick->slot();
}

int64_t stn_tick_fence(const stn_tick* tick) noexcept {
    return tick == nullptr ? 0 : tick->tick->fence();
}

const char* stn_tick_token(const stn_tick* tick) noexcept {
    return tick == nullptr ? "" : tick->token.c_str();
}

int32_t stn_tick_done(stn_tick* tick, int32_t ok, int64_t deadline_ms, stn_queue* q, uint64_t tag,
                      stn_error** err) noexcept {
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(tick, "tick"));
        STN_TRY(check_wait(deadline_ms, "deadline_ms"));
        std::shared_ptr<event_queue> home;
        if (q != nullptr) {
            STN_TRY(check_handle(q, "q"));
            if (q->q->closed()) return fail(status::closed, "the queue is closed");
            home = q->q;
        }
        return tick->tick->done(ok != 0, deadline_ms, home, tag);
    });
}

void stn_tick_free(stn_tick* tick) noexcept {
    free_handle(tick);
}

int32_t stn_once(stn_client* client, const void* id, size_t n, int64_t ttl_ms, int64_t deadline_ms, stn_queue* q,
                 uint64_t tag, uint64_t* op, stn_error** err) noexcept {
    if (op != nullptr) *op = 0;
    return guarded(err, [&]() -> failure {
        lock_call c;
        STN_TRY(read_call(client, id, n, deadline_ms, q, tag, "id", c));
        const auto begun = once(*client->handle->core, c, ttl_ms);
        if (!begun) return begun.failure();
        if (op != nullptr) *op = *begun;
        return no_failure;
    });
}
