/* SPDX-License-Identifier: MIT */
/*
 * A C program that links libstanchion: the blocking form with a loader, then the form with a queue. It prints what it
 * does and exits with 1 when a promise of stanchion.h is broken.
 *
 *     cc linked.c -lstanchion
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stanchion/stanchion.h>

static int step;

static void promise(int kept, const char* what) {
    printf("%2d. %s: %s\n", ++step, what, kept ? "yes" : "NO");
    if (!kept) exit(1);
}

/* Every call reports by its code; `err` has the detail. */
static void check(int32_t code, stn_error* err, const char* what) {
    if (code == STN_OK) return;
    fprintf(stderr, "%s: %s (%s)\n", what, stn_status_name(code), stn_error_message(err));
    stn_error_free(err);
    exit(1);
}

static int holds(const stn_event* event, const char* text) {
    size_t n = 0;
    const void* bytes = stn_event_bytes(event, &n);
    return stn_event_kind(event) == STN_EVENT_VALUE && n == strlen(text) && memcmp(bytes, text, n) == 0;
}

/* ---- Blocking: the loader runs in this thread, inside the call ---- */

static int32_t load_price(void* ud, stn_lease* lease, stn_sink* sink) {
    int* loads = (int*)ud;
    (void)lease;
    ++*loads;
    return stn_sink_write(sink, "12.50", 5);
}

static int32_t load_nothing(void* ud, stn_lease* lease, stn_sink* sink) {
    (void)ud;
    (void)lease;
    return stn_sink_absent(sink);
}

static int32_t load_badly(void* ud, stn_lease* lease, stn_sink* sink) {
    (void)ud;
    (void)lease;
    stn_sink_error(sink, "the database is on fire");
    return STN_LOAD_FAILED;
}

static void blocking(stn_cache* cache) {
    stn_event* event = NULL;
    stn_error* err = NULL;
    int loads = 0;
    int i;
    for (i = 0; i < 2; ++i) {
        check(stn_cache_get_or_load(cache, NULL, "42", 2, STN_DEFAULT_MS, 0, NULL, load_price, &loads, &event, &err),
              err, "get_or_load");
        promise(holds(event, "12.50"), i == 0 ? "a miss runs the loader" : "the next caller gets what it loaded");
        stn_event_free(event);
    }
    promise(loads == 1, "the loader ran once for two callers");

    check(stn_cache_get_or_load(cache, NULL, "43", 2, STN_DEFAULT_MS, 0, NULL, load_nothing, NULL, &event, &err), err,
          "get_or_load");
    promise(stn_event_kind(event) == STN_EVENT_ABSENT, "\"there is no such thing\" is an answer of its own");
    stn_event_free(event);

    promise(stn_cache_get_or_load(cache, NULL, "44", 2, STN_DEFAULT_MS, 0, NULL, load_badly, NULL, &event, &err) ==
                    STN_LOAD_FAILED &&
                strstr(stn_error_message(err), "on fire") != NULL && event == NULL,
            "a failed load is reported in its own words");
    stn_error_free(err);
}

/* ---- With a queue: calls return at once, answers come as events; the loader is whatever the program does ---- */

enum { FIRST = 1, SECOND = 2, STORED = 3, THIRD = 4, READY = 5 };

static stn_event* next(stn_queue* q, uint64_t tag) {
    stn_event* event = NULL;
    stn_error* err = NULL;
    check(stn_queue_next(q, 5000, &event, &err), err, "queue_next");
    promise(stn_event_tag(event) == tag, "the event that comes next is the one expected");
    return event;
}

static void fetch(stn_cache* cache, stn_queue* q, uint64_t tag) {
    stn_error* err = NULL;
    check(stn_cache_fetch(cache, NULL, "99", 2, STN_DEFAULT_MS, 0, NULL, q, tag, NULL, NULL, &err), err, "fetch");
}

static void with_a_queue(stn_client* client, stn_cache* cache) {
    stn_queue* q = NULL;
    stn_queue* writes = NULL; /* what became of a write may be known before or after its readers have their answer */
    stn_event* event;
    stn_lease* lease;
    stn_error* err = NULL;
    check(stn_queue_new(0, &q, &err), err, "queue_new");
    check(stn_queue_new(0, &writes, &err), err, "queue_new");
    check(stn_client_ready(client, STN_DEFAULT_MS, q, READY, &err), err, "client_ready");
    event = next(q, READY);
    promise(stn_event_kind(event) == STN_EVENT_DONE, "the store is ready");
    stn_event_free(event);

    fetch(cache, q, FIRST);
    event = next(q, FIRST);
    lease = stn_event_take_lease(event);
    promise(stn_event_kind(event) == STN_EVENT_LEASE && lease != NULL, "the first caller is given the lease");
    stn_event_free(event);

    fetch(cache, q, SECOND); /* joins: there is nothing to read until the lease is answered */
    promise(stn_queue_next(q, 50, &event, NULL) == STN_TIMEOUT, "the second caller waits");

    check(stn_lease_fulfil(lease, "seven", 5, STN_CODEC_DEFAULT, STN_DEFAULT_MS, STN_DEFAULT_MS, 0, writes, STORED,
                           NULL, &err),
          err, "lease_fulfil");
    promise(stn_lease_state(lease) == STN_LEASE_ENDED, "an answered lease has ended");
    stn_lease_free(lease);
    event = next(q, SECOND);
    promise(holds(event, "seven"), "the second caller gets the value");
    promise((stn_event_flags(event) & STN_ANSWER_SHARED) != 0, "and is told that it was shared");
    stn_event_free(event);
    event = next(writes, STORED);
    promise(stn_event_kind(event) == STN_EVENT_FILLED && stn_event_status(event) == STN_OK, "the value was stored");
    stn_event_free(event);

    fetch(cache, q, THIRD);
    event = next(q, THIRD);
    promise(holds(event, "seven") && stn_event_age_ms(event) >= 0, "a later caller finds it, with its age");
    stn_event_free(event);

    check(stn_queue_close(q, &err), err, "queue_close");
    promise(stn_queue_next(q, STN_DEFAULT_MS, &event, NULL) == STN_CLOSED, "a closed, empty queue says so");
    stn_queue_free(q);
    stn_queue_free(writes);
}

int main(void) {
    stn_client* client = NULL;
    stn_cache* cache = NULL;
    stn_error* err = NULL;
    stn_stats stats;
    printf("stanchion %s\n", stn_version_string());
    check(stn_client_open("memory://", NULL, &client, &err), err, "client_open");

    promise(stn_cache_open(client, "x", 1, "{\"tll\": \"5m\"}", &cache, &err) == STN_UNKNOWN_OPTION &&
                strstr(stn_error_message(err), "ttl") != NULL,
            "a misspelt option is refused, and the right one named");
    printf("    %s\n", stn_error_message(err));
    stn_error_free(err);

    check(stn_cache_open(client, "prices", 6, "{\"ttl\": \"5m\"}", &cache, &err), err, "cache_open");
    blocking(cache);
    with_a_queue(client, cache);

    check(stn_client_stats(client, &stats, sizeof stats, &err), err, "client_stats");
    promise(stats.loads == 4 && stats.loads_failed == 1 && stats.joins == 1 && stats.fills_stored == 3,
            "the counters agree");
    stn_cache_free(cache);
    check(stn_client_close(client, STN_DEFAULT_MS, &err), err, "client_close");
    stn_client_free(client);
    printf("every promise was kept\n");
    return 0;
}
