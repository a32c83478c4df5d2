/* SPDX-License-Identifier: MIT */
/*
 * caller WHAT URL OPTIONS POLICY KEY NUMBER: a process of its own for tests of a fleet, as plain as a C program can
 * be: nothing is done about any signal.
 *
 *     load    get_or_load KEY with a loader that takes NUMBER ms
 *     reject  fetch KEY; a value that begins with "broken" cannot be decoded here and is asked for again; loads take
 *             NUMBER ms
 *     insist  load, put and invalidate keys of its own for NUMBER ms, whatever happens
 *     alone   the same with loads only: each by this thread, its IO too
 *
 * Tells "loading" when a loader begins, and in the end "value ..." or "error ...", one line each.
 */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <stdlib.h>

#include "tell.h"

static int64_t number;

static int32_t slow(void* ud, stn_lease* lease, stn_sink* sink) {
    (void)ud;
    (void)lease;
    tell("loading", "", 0);
    sleep_ms(number);
    return stn_sink_write(sink, "good", 4);
}

static int32_t quick(void* ud, stn_lease* lease, stn_sink* sink) {
    (void)ud;
    (void)lease;
    return stn_sink_write(sink, "good", 4);
}

static int tell_value(const stn_event* e) {
    size_t n = 0;
    const char* bytes = stn_event_bytes(e, &n);
    tell("value", bytes, n);
    return 0;
}

static int load(stn_cache* cache, const char* key) {
    stn_event* e = NULL;
    stn_error* err = NULL;
    int32_t code = stn_cache_get_or_load(cache, NULL, key, strlen(key), 60000, 0, NULL, slow, NULL, &e, &err);
    return code == STN_OK ? tell_value(e) : fails(err);
}

static int reject(stn_cache* cache, const char* key) {
    stn_queue* q = NULL;
    stn_event* e = NULL;
    stn_lease* lease;
    const char* bytes;
    size_t n = 0;
    if (stn_queue_new(0, &q, NULL) != STN_OK) return 1;
    if (stn_cache_fetch(cache, NULL, key, strlen(key), 60000, 0, NULL, q, 0, NULL, NULL, NULL) != STN_OK) return 1;
    for (;;) {
        if (stn_queue_next(q, 60000, &e, NULL) != STN_OK) return 1;
        switch (stn_event_kind(e)) {
        case STN_EVENT_LEASE:
            lease = stn_event_take_lease(e);
            tell("loading", "", 0);
            sleep_ms(number);
            stn_lease_fulfil(lease, "good", 4, STN_CODEC_DEFAULT, -1, -1, 0, q, 1, NULL, NULL);
            break;
        case STN_EVENT_FILLED: tell("value", "good", 4); return 0;
        case STN_EVENT_VALUE:
            bytes = stn_event_bytes(e, &n);
            if (n < 6 || memcmp(bytes, "broken", 6) != 0) return tell_value(e);
            if (stn_cache_refetch(cache, NULL, e, 60000, NULL, q, 0, NULL, NULL, NULL) != STN_OK) return 1;
            break;
        case STN_EVENT_ERROR: return fails(stn_event_error(e));
        default: break;
        }
        stn_event_free(e);
    }
}

static int insist(stn_cache* cache, int alone) {
    const int64_t until = now_ms() + number;
    stn_queue* q = NULL;
    char key[32];
    unsigned turn = 0;
    uint64_t wrong = 0;
    if (stn_queue_new(0, &q, NULL) != STN_OK) return 1;
    tell("loading", "", 0);
    for (; now_ms() < until; ++turn) {
        stn_event* e = NULL;
        int n = snprintf(key, sizeof key, "own%u", turn % 100);
        if (stn_cache_get_or_load(cache, NULL, key, (size_t)n, -1, 0, NULL, quick, NULL, &e, NULL) != STN_OK) ++wrong;
        stn_event_free(e);
        if (alone) {
            sleep_ms(2); /* the connection is to end between two calls */
            continue;
        }
        stn_cache_put(cache, NULL, key, (size_t)n, "good", 4, STN_CODEC_DEFAULT, -1, -1, -1, q, 0, NULL, NULL);
        stn_cache_invalidate(cache, key, (size_t)n, 0, 100, q, 0, NULL, NULL);
        while (stn_queue_next(q, 0, &e, NULL) == STN_OK) stn_event_free(e);
    }
    if (wrong != 0) return fails(NULL);
    tell("value", "good", 4);
    return 0;
}

int main(int argc, char** argv) {
    stn_client* client = NULL;
    stn_cache* cache = NULL;
    stn_error* err = NULL;
    int out;
    if (argc != 7) return 2;
    number = strtoll(argv[6], NULL, 10);
    if (stn_client_open(argv[2], argv[3], &client, &err) != STN_OK) return fails(err);
    if (stn_cache_open(client, "prices", 6, argv[4], &cache, &err) != STN_OK) return fails(err);
    out = strcmp(argv[1], "load") == 0     ? load(cache, argv[5])
          : strcmp(argv[1], "reject") == 0 ? reject(cache, argv[5])
                                           : insist(cache, strcmp(argv[1], "alone") == 0);
    if (out == 0) stn_client_close(client, 1000, NULL);
    return out;
}
