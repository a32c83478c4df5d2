/* SPDX-License-Identifier: MIT */
/*
 * The C process of a mixed fleet.
 *
 *     fleet URL load MS    fetches the key "mixed" of the cache "mixed"; its loader takes MS.
 *                         Prints `loading` when that begins, and in the end `runs value`
 *     fleet URL lock MS    takes the lock "mixed", holds it for MS. Prints its fence
 */
#define _POSIX_C_SOURCE 200809L

#include <stanchion/stanchion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int runs;

static void must(int32_t status, const char* what) {
    if (status == STN_OK) return;
    fprintf(stderr, "%s: %s\n", what, stn_status_name(status));
    exit(1);
}

static void pause_ms(long ms) {
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static int32_t load(void* ud, stn_lease* lease, stn_sink* sink) {
    (void)lease;
    ++runs;
    puts("loading");
    fflush(stdout);
    pause_ms(*(const long*)ud);
    return stn_sink_write(sink, "\"from C\"", 8);
}

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    long ms = strtol(argv[3], NULL, 10);
    stn_client* client = NULL;
    must(stn_client_open(argv[1], NULL, &client, NULL), "open");
    if (strcmp(argv[2], "load") == 0) {
        stn_cache* cache = NULL;
        stn_event* e = NULL;
        size_t n = 0;
        must(stn_cache_open(client, "mixed", 5, "{\"ttl\": \"5m\", \"codec\": \"json\"}", &cache, NULL), "cache");
        must(stn_cache_get_or_load(cache, NULL, "mixed", 5, STN_DEFAULT_MS, 0, NULL, load, &ms, &e, NULL), "load");
        const char* value = stn_event_bytes(e, &n);
        printf("%d %.*s\n", runs, (int)n, value);
        stn_event_free(e);
        stn_cache_free(cache);
    } else {
        stn_queue* q = NULL;
        stn_event* e = NULL;
        must(stn_queue_new(0, &q, NULL), "queue");
        must(stn_lock_acquire(client, "mixed", 5, "{\"ttl\": \"10s\"}", NULL, STN_DEFAULT_MS, NULL, q, 1, NULL, 0, NULL,
                              NULL),
             "acquire");
        must(stn_queue_next(q, -1, &e, NULL), "next");
        stn_lock* lock = stn_event_take_lock(e);
        if (!lock) must(stn_event_status(e), "lock");
        stn_event_free(e);
        printf("%lld\n", (long long)stn_lock_fence(lock));
        fflush(stdout);
        pause_ms(ms);
        must(stn_lock_release(lock, STN_DEFAULT_MS, q, 2, NULL), "release");
        must(stn_queue_next(q, -1, &e, NULL), "next");
        must(stn_event_status(e), "released");
        stn_event_free(e);
        stn_lock_free(lock);
        stn_queue_free(q);
    }
    must(stn_client_close(client, STN_DEFAULT_MS, NULL), "close");
    stn_client_free(client);
    return 0;
}
