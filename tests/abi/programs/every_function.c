/* SPDX-License-Identifier: MIT */
/*
 * Every function of stanchion.h, linked and called with NULL for all that it requires: codes answer
 * `invalid_argument` with an error that says so, out parameters are cleared, getters answer nothing, frees do nothing.
 */
#include <string.h>

#include <stanchion/stanchion.h>

#include "check.h"

static stn_error* err;
static char somewhere; /* out parameters start as a pointer to here, and must end as NULL */
#define STALE_POINTER(type) ((type*)(void*)&somewhere)

/* The call takes &err and must refuse. */
#define REFUSES(call)                                                                                         \
    do {                                                                                                      \
        int32_t code;                                                                                         \
        err = STALE_POINTER(stn_error);                                                                       \
        code = (call);                                                                                        \
        PROMISE(code == STN_INVALID_ARGUMENT && err != NULL && (const void*)err != (const void*)&somewhere && \
                    stn_error_code(err) == code && stn_error_message(err)[0] != '\0',                         \
                #call);                                                                                       \
        if ((const void*)err != (const void*)&somewhere) stn_error_free(err);                                 \
        err = NULL;                                                                                           \
    } while (0)

#define ANSWERS(call, expected) PROMISE((call) == (expected), #call " == " #expected)

static int32_t loader(void* ud, stn_lease* lease, stn_sink* sink) {
    (void)ud;
    (void)lease;
    (void)sink;
    return STN_INTERNAL;
}

static void ring(void* ud) {
    (void)ud;
}

static void versions_and_names(void) {
    ANSWERS(stn_version_number(), (uint32_t)STN_VERSION_NUMBER);
    ANSWERS(strcmp(stn_version_string(), STN_VERSION_STRING), 0);
    ANSWERS(stn_abi_version(), (uint32_t)STN_ABI_VERSION);
#define NAMED(number, NAME, name, retryable, text) \
    ANSWERS((int32_t)STN_##NAME, number);          \
    PROMISE(strcmp(stn_status_name(number), #name) == 0, "stn_status_name(" #number ") is " #name);
    STN_STATUS_MAP(NAMED)
#undef NAMED
    ANSWERS(strcmp(stn_status_name(1), "unknown"), 0);
    ANSWERS(strcmp(stn_status_name(-1000), "unknown"), 0);
}

static void nothing_to_get(void) {
    size_t n = 7;
    ANSWERS(stn_error_code(NULL), 0);
    ANSWERS(stn_error_message(NULL)[0], '\0');
    ANSWERS(stn_error_key(NULL, &n), NULL);
    ANSWERS(n, 0u);
    ANSWERS(stn_error_key(NULL, NULL), NULL);
    ANSWERS(stn_error_server_text(NULL), NULL);
    ANSWERS(stn_error_flags(NULL), 0u);
    ANSWERS(stn_bytes_data(NULL), NULL);
    ANSWERS(stn_bytes_size(NULL), 0u);
    ANSWERS(stn_event_kind(NULL), 0);
    ANSWERS(stn_event_tag(NULL), 0u);
    ANSWERS(stn_event_status(NULL), 0);
    ANSWERS(stn_event_flags(NULL), 0u);
    ANSWERS(stn_event_reason(NULL), 0);
    ANSWERS(stn_event_codec(NULL), -1);
    n = 7;
    ANSWERS(stn_event_bytes(NULL, &n), NULL);
    ANSWERS(n, 0u);
    ANSWERS(stn_event_bytes(NULL, NULL), NULL);
    ANSWERS(stn_event_age_ms(NULL), -1);
    ANSWERS(stn_event_ttl_left_ms(NULL), -1);
    ANSWERS(stn_event_load_ms(NULL), -1);
    ANSWERS(stn_event_host_ref(NULL), 0u);
    ANSWERS(stn_event_error(NULL), NULL);
    ANSWERS(stn_event_take_lease(NULL), NULL);
    ANSWERS(stn_event_take_flight(NULL), NULL);
    ANSWERS(stn_event_take_lock(NULL), NULL);
    ANSWERS(stn_event_take_tick(NULL), NULL);
    ANSWERS(stn_lock_held(NULL), 0);
    ANSWERS(stn_lock_remaining_ms(NULL), 0);
    ANSWERS(stn_lock_fence(NULL), 0);
    ANSWERS(stn_lock_token(NULL)[0], '\0');
    ANSWERS(stn_lock_state(NULL), 0);
    ANSWERS(stn_lock_loss(NULL), STN_REASON_NONE);
    ANSWERS(stn_tick_slot_ms(NULL), 0);
    ANSWERS(stn_tick_fence(NULL), 0);
    ANSWERS(stn_tick_token(NULL)[0], '\0');
    ANSWERS(stn_lease_scope(NULL), NULL);
    ANSWERS(stn_lease_state(NULL), 0);
    ANSWERS(stn_flight_scope(NULL), NULL);
}

static void nothing_to_free(void) {
    stn_error_free(NULL);
    stn_bytes_free(NULL);
    stn_client_free(NULL);
    stn_queue_free(NULL);
    stn_event_free(NULL);
    stn_cache_free(NULL);
    stn_policy_free(NULL);
    stn_lease_free(NULL);
    stn_scope_free(NULL);
    stn_group_free(NULL);
    stn_flight_free(NULL);
    stn_lock_policy_free(NULL);
    stn_lock_free(NULL);
    stn_tick_free(NULL);
    PROMISE(1, "every _free(NULL) does nothing");
}

static void nothing_to_use(void) {
    stn_client* client = STALE_POINTER(stn_client);
    stn_queue* queue = STALE_POINTER(stn_queue);
    stn_event* event = STALE_POINTER(stn_event);
    stn_event* events[2] = {NULL, NULL};
    stn_cache* cache = STALE_POINTER(stn_cache);
    stn_policy* policy = STALE_POINTER(stn_policy);
    stn_group* group = STALE_POINTER(stn_group);
    stn_flight* flight = STALE_POINTER(stn_flight);
    stn_bytes* bytes = STALE_POINTER(stn_bytes);
    stn_lock_policy* locks = STALE_POINTER(stn_lock_policy);
    stn_stats stats;
    size_t n = 7;
    int64_t ms = 7;
    uint64_t op = 7;
    uint32_t count = 7;
    int32_t fd = 7;

    REFUSES(stn_duration_parse(NULL, &ms, &err));
    REFUSES(stn_duration_parse("5m", NULL, &err));
    REFUSES(stn_client_open(NULL, NULL, &client, &err));
    ANSWERS(client, NULL);
    REFUSES(stn_client_open("memory://", NULL, NULL, &err));
    REFUSES(stn_client_ready(NULL, 0, NULL, 0, &err));
    REFUSES(stn_client_close(NULL, 0, &err));
    REFUSES(stn_client_close_begin(NULL, 0, NULL, 0, &err));
    REFUSES(stn_client_advance(NULL, 1, &err));
    REFUSES(stn_client_watch(NULL, STN_NOTICE_ALL, NULL, 0, &err));
    REFUSES(stn_client_stats(NULL, &stats, sizeof stats, &err));
    REFUSES(stn_client_stats_json(NULL, NULL, &bytes, &err));
    ANSWERS(bytes, NULL);

    REFUSES(stn_queue_new(0, NULL, &err));
    REFUSES(stn_queue_next(NULL, 0, &event, &err));
    ANSWERS(event, NULL);
    REFUSES(stn_queue_drain(NULL, 2, 0, events, &n, &err));
    ANSWERS(n, 0u);
    REFUSES(stn_queue_fd(NULL, &fd, &err));
    REFUSES(stn_queue_set_doorbell(NULL, ring, NULL, NULL, &err));
    ANSWERS(stn_queue_set_sync(NULL, NULL), STN_INVALID_ARGUMENT);
    ANSWERS(stn_queue_wake(NULL), STN_INVALID_ARGUMENT);
    ANSWERS(stn_cancel(NULL, 1), STN_INVALID_ARGUMENT);
    REFUSES(stn_queue_close(NULL, &err));
    (void)queue;

    REFUSES(stn_cache_open(NULL, "c", 1, NULL, &cache, &err));
    ANSWERS(cache, NULL);
    REFUSES(stn_policy_new(NULL, "{}", &policy, &err));
    ANSWERS(policy, NULL);
    event = STALE_POINTER(stn_event);
    REFUSES(stn_cache_fetch(NULL, NULL, "k", 1, -1, 0, NULL, NULL, 0, &op, &event, &err));
    ANSWERS(op, 0u);
    ANSWERS(event, NULL);
    REFUSES(stn_cache_refetch(NULL, NULL, NULL, -1, NULL, NULL, 0, &op, &event, &err));
    REFUSES(stn_cache_get(NULL, "k", 1, -1, NULL, 0, &op, &event, &err));
    REFUSES(stn_cache_put(NULL, NULL, "k", 1, "v", 1, -1, -1, -1, -1, NULL, 0, &op, &err));
    REFUSES(stn_cache_invalidate(NULL, "k", 1, 0, -1, NULL, 0, &op, &err));
    REFUSES(stn_cache_get_or_load(NULL, NULL, "k", 1, -1, 0, NULL, loader, NULL, &event, &err));

    REFUSES(stn_lease_fulfil(NULL, "v", 1, -1, -1, -1, 0, NULL, 0, &count, &err));
    ANSWERS(count, 0u);
    REFUSES(stn_lease_fulfil_absent(NULL, -1, 0, NULL, 0, NULL, &err));
    REFUSES(stn_lease_fail(NULL, STN_LOAD_FAILED, "t", 0, NULL, &err));
    ANSWERS(stn_lease_detach(NULL, &count), STN_INVALID_ARGUMENT);
    ANSWERS(stn_sink_write(NULL, "v", 1), STN_INVALID_ARGUMENT);
    ANSWERS(stn_sink_absent(NULL), STN_INVALID_ARGUMENT);
    ANSWERS(stn_sink_ttl(NULL, 1, -1), STN_INVALID_ARGUMENT);
    ANSWERS(stn_sink_codec(NULL, 0), STN_INVALID_ARGUMENT);
    ANSWERS(stn_sink_error(NULL, "t"), STN_INVALID_ARGUMENT);

    REFUSES(stn_lock_policy_new(NULL, &locks, &err));
    ANSWERS(locks, NULL);
    REFUSES(stn_lock_policy_new("{\"ttl\": \"30s\"}", NULL, &err));
    op = 7;
    REFUSES(stn_lock_acquire(NULL, "l", 1, "{\"ttl\": \"30s\"}", NULL, -1, NULL, NULL, 0, NULL, 0, &op, &err));
    ANSWERS(op, 0u);
    REFUSES(stn_lock_wait_lost(NULL, 0, &err));
    REFUSES(stn_lock_renew(NULL, -1, NULL, 0, &err));
    REFUSES(stn_lock_release(NULL, -1, NULL, 0, &err));
    REFUSES(stn_lock_leave(NULL, &err));
    op = 7;
    REFUSES(stn_lock_inspect(NULL, "l", 1, NULL, 0, -1, NULL, 0, &op, &err));
    ANSWERS(op, 0u);
    op = 7;
    REFUSES(stn_tick_acquire(NULL, "t", 1, "{\"every\": \"1m\"}", -1, NULL, 0, &op, &err));
    ANSWERS(op, 0u);
    REFUSES(stn_tick_done(NULL, 1, -1, NULL, 0, &err));
    op = 7;
    REFUSES(stn_once(NULL, "i", 1, 1000, -1, NULL, 0, &op, &err));
    ANSWERS(op, 0u);

    REFUSES(stn_group_new(NULL, NULL, NULL, &err));
    REFUSES(stn_group_join(NULL, "k", 1, -1, NULL, NULL, 0, &op, &flight, &err));
    ANSWERS(flight, NULL);
    REFUSES(stn_group_forget(NULL, "k", 1, &err));
    REFUSES(stn_flight_finish(NULL, STN_OK, NULL, 0, 0, NULL, &err));
    ANSWERS(stn_flight_detach(NULL, &count), STN_INVALID_ARGUMENT);
    ANSWERS(stn_group_new(NULL, NULL, &group, NULL), STN_OK);
    stn_group_free(group);
}

int main(void) {
    versions_and_names();
    nothing_to_get();
    nothing_to_free();
    nothing_to_use();
    return finish();
}
