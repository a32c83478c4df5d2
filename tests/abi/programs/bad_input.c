/* SPDX-License-Identifier: MIT */
/* Bad input, each with a code and a message of its own; and the numbers at the edge that are still good. */
#include <string.h>

#include <stanchion/stanchion.h>

#include "check.h"

static stn_client* client;
static stn_queue* q;
static stn_error* err;

/* The call takes &err; it must answer `expected` and mention `word`. */
#define REFUSED(call, expected, word)                                                         \
    do {                                                                                      \
        err = NULL;                                                                           \
        const int32_t code = (call);                                                          \
        const int kept = code == (expected) && strstr(stn_error_message(err), word) != 0;     \
        PROMISE(kept, #call " is " #expected ", " word);                                      \
        if (!kept) printf("        %s: %s\n", stn_status_name(code), stn_error_message(err)); \
        stn_error_free(err);                                                                  \
    } while (0)

#define ACCEPTED(call)                                                                       \
    do {                                                                                     \
        err = NULL;                                                                          \
        const int32_t code = (call);                                                         \
        PROMISE(code == STN_OK && err == NULL, #call " is fine");                            \
        if (code) printf("        %s: %s\n", stn_status_name(code), stn_error_message(err)); \
        stn_error_free(err);                                                                 \
    } while (0)

static void durations(void) {
    static const struct {
        const char* text;
        int64_t ms;
    } good[] = {{"1ms", 1},
                {"1500ms", 1500},
                {"5m", 300000},
                {"1h30m", 5400000},
                {"2d3h", 183600000},
                {"0s", 0},
                {"3650d", STN_DURATION_MAX_MS}};
    static const char* const bad[] = {"",
                                      "5",
                                      "m",
                                      "-5m",
                                      "+5m",
                                      "5.5s",
                                      "1 m",
                                      "5m ",
                                      "5 m",
                                      "30m1h",
                                      "1m1m",
                                      "5x",
                                      "5M",
                                      "3651d",
                                      "1e3ms",
                                      "0x5s",
                                      "99999999999999999999ms"};
    size_t i;
    int64_t ms;
    for (i = 0; i < sizeof good / sizeof good[0]; ++i) {
        PROMISE(stn_duration_parse(good[i].text, &ms, NULL) == STN_OK && ms == good[i].ms, good[i].text);
    }
    for (i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        PROMISE(stn_duration_parse(bad[i], &ms, NULL) == STN_INVALID_ARGUMENT && ms == 0, bad[i]);
    }
}

static void urls(void) {
    stn_client* c = NULL;
    REFUSED(stn_client_open("", NULL, &c, &err), STN_INVALID_ARGUMENT, "");
    REFUSED(stn_client_open("memory", NULL, &c, &err), STN_INVALID_ARGUMENT, "");
    REFUSED(stn_client_open("memory://a b", NULL, &c, &err), STN_INVALID_ARGUMENT, "");
    REFUSED(stn_client_open("memory://?clock=cuckoo", NULL, &c, &err), STN_INVALID_ARGUMENT, "clock");
    REFUSED(stn_client_open("redis+cluster://localhost", NULL, &c, &err), STN_UNSUPPORTED, "redis");
    REFUSED(stn_client_open("gopher://host", NULL, &c, &err), STN_INVALID_ARGUMENT, "gopher");
    (void)stn_client_open("redis://user:s3cret@host:notaport/x?y", NULL, &c, &err);
    PROMISE(err != NULL && strstr(stn_error_message(err), "s3cret") == NULL, "a password is never printed");
    stn_error_free(err);
    REFUSED(stn_client_open("memory://", "{\"prefx\": \"a\"}", &c, &err), STN_UNKNOWN_OPTION, "prefix");
    REFUSED(stn_client_open("memory://", "{\"prefix\": \"a b\"}", &c, &err), STN_INVALID_ARGUMENT, "prefix");
    REFUSED(stn_client_open("memory://", "{\"close_at_exit\": \"2m\"}", &c, &err), STN_INVALID_ARGUMENT,
            "close_at_exit");
    REFUSED(stn_client_open("memory://", "{\"max_loads_down\": 0}", &c, &err), STN_INVALID_ARGUMENT, "max_loads_down");
    REFUSED(stn_client_open("memory://", "[]", &c, &err), STN_INVALID_ARGUMENT, "object");
    REFUSED(stn_client_open("memory://", "{", &c, &err), STN_INVALID_ARGUMENT, "JSON");
}

static int32_t open_cache(const char* options, stn_error** out) {
    stn_cache* cache = NULL;
    const int32_t code = stn_cache_open(client, "c", 1, options, &cache, out);
    stn_cache_free(cache);
    return code;
}

static void cache_options(void) {
    stn_cache* c = NULL;
    stn_policy* p = NULL;
    REFUSED(open_cache("{\"ttl\": \"5m\", \"sof_ttl\": \"1m\"}", &err), STN_UNKNOWN_OPTION, "soft_ttl");
    REFUSED(open_cache("{\"ttl\": \"0s\"}", &err), STN_INVALID_ARGUMENT, "ttl");
    REFUSED(open_cache("{\"ttl\": \"-5m\"}", &err), STN_INVALID_ARGUMENT, "ttl");
    REFUSED(open_cache("{\"ttl\": \"1.5s\"}", &err), STN_INVALID_ARGUMENT, "ttl");
    REFUSED(open_cache("{\"ttl\": 300}", &err), STN_INVALID_ARGUMENT, "ttl");
    REFUSED(open_cache("{\"ttl_ms\": 0}", &err), STN_INVALID_ARGUMENT, "ttl");
    REFUSED(open_cache("{\"ttl_ms\": -1}", &err), STN_INVALID_ARGUMENT, "ttl");
    REFUSED(open_cache("{\"ttl_ms\": 1.5}", &err), STN_INVALID_ARGUMENT, "ttl");
    REFUSED(open_cache("{\"ttl_ms\": \"5m\"}", &err), STN_INVALID_ARGUMENT, "ttl");
    REFUSED(open_cache("{\"ttl\": \"3651d\"}", &err), STN_INVALID_ARGUMENT, "ttl");
    REFUSED(open_cache("{\"ttl\": \"5m\", \"ttl_ms\": 300000}", &err), STN_INVALID_ARGUMENT, "ttl");
    REFUSED(open_cache("{\"ttl\": \"5m\", \"soft_ttl\": \"5m\"}", &err), STN_INVALID_ARGUMENT, "soft_ttl");
    REFUSED(open_cache("{\"ttl\": \"5m\", \"jitter\": 1.1}", &err), STN_INVALID_ARGUMENT, "jitter");
    REFUSED(open_cache("{\"ttl\": \"5m\", \"early\": -1}", &err), STN_INVALID_ARGUMENT, "early");
    REFUSED(open_cache("{\"ttl\": \"5m\", \"codec\": \"xml\"}", &err), STN_INVALID_ARGUMENT, "codec");
    REFUSED(open_cache("{\"ttl\": \"5m\", \"fleet\": 1}", &err), STN_INVALID_ARGUMENT, "fleet");
    REFUSED(open_cache("{\"ttl\": \"5m\", \"version\": 0}", &err), STN_INVALID_ARGUMENT, "version");
    REFUSED(open_cache("{\"ttl\": \"5m\", \"max_value\": 0}", &err), STN_INVALID_ARGUMENT, "max_value");
    ACCEPTED(open_cache(NULL, &err));
    ACCEPTED(open_cache("{\"ttl_ms\": 1}", &err));
    ACCEPTED(open_cache("{\"ttl\": \"3650d\"}", &err));
    ACCEPTED(open_cache("{\"ttl\": \"5m\", \"wait_ms\": 0, \"early\": 0, \"jitter\": 0, \"error_ttl_ms\": 0}", &err));
    ACCEPTED(open_cache("{\"ttl\": \"5m\", \"lease\": \"auto\", \"version\": 2, \"codec\": \"private\"}", &err));
    ACCEPTED(open_cache("{\"ttl\": \"5m\", \"lease\": \"2s\", \"coalesce\": false, \"fleet\": false}", &err));
    REFUSED(stn_cache_open(client, "", 0, NULL, &c, &err), STN_INVALID_ARGUMENT, "name");
    REFUSED(stn_cache_open(client, "a:b", 3, NULL, &c, &err), STN_INVALID_ARGUMENT, "name");

    ACCEPTED(stn_cache_open(client, "c", 1, "{\"ttl\": \"5m\"}", &c, &err));
    REFUSED(stn_policy_new(c, "{\"codec\": \"json\"}", &p, &err), STN_UNKNOWN_OPTION, "codec");
    REFUSED(stn_policy_new(c, "{\"soft_ttl\": \"6m\"}", &p, &err), STN_INVALID_ARGUMENT, "soft_ttl");
    ACCEPTED(stn_policy_new(c, "{\"ttl\": \"10m\", \"soft_ttl\": \"6m\"}", &p, &err));
    stn_policy_free(p);
    stn_cache_free(c);
}

static int32_t loader(void* ud, stn_lease* lease, stn_sink* sink) {
    (void)ud;
    (void)lease;
    return stn_sink_write(sink, "v", 1);
}

static int32_t get(stn_cache* c, const char* key, size_t n, int64_t deadline_ms, uint32_t flags, stn_error** out) {
    stn_event* event = NULL;
    const int32_t code = stn_cache_get_or_load(c, NULL, key, n, deadline_ms, flags, NULL, loader, NULL, &event, out);
    stn_event_free(event);
    return code;
}

static int32_t put(stn_cache* c, size_t size, int32_t codec, int64_t ttl_ms, int64_t soft_ttl_ms, stn_error** out) {
    static const char bytes[100];
    return stn_cache_put(c, NULL, "p", 1, bytes, size, codec, ttl_ms, soft_ttl_ms, -1, q, 0, NULL, out);
}

static void calls(void) {
    static char key[1025];
    stn_cache* c = NULL;
    stn_cache* no_ttl = NULL;
    stn_policy* foreign = NULL;
    stn_event* event = NULL;
    memset(key, 'k', sizeof key);
    ACCEPTED(stn_cache_open(client, "c", 1, "{\"ttl\": \"5m\", \"max_value\": 64}", &c, &err));
    ACCEPTED(stn_cache_open(client, "n", 1, NULL, &no_ttl, &err));
    ACCEPTED(stn_policy_new(no_ttl, "{\"ttl\": \"1m\"}", &foreign, &err));

    REFUSED(get(c, "", 0, -1, 0, &err), STN_INVALID_ARGUMENT, "key");
    REFUSED(get(c, NULL, 3, -1, 0, &err), STN_INVALID_ARGUMENT, "key");
    REFUSED(get(c, key, 1025, -1, 0, &err), STN_TOO_LARGE, "key");
    ACCEPTED(get(c, key, 1024, -1, 0, &err));
    ACCEPTED(get(c, "a\0b", 3, -1, 0, &err));
    REFUSED(get(c, "k", 1, -2, 0, &err), STN_INVALID_ARGUMENT, "deadline");
    REFUSED(get(c, "k", 1, -1, 8, &err), STN_INVALID_ARGUMENT, "flag");
    REFUSED(get(c, "k", 1, -1, STN_FETCH_REFRESH, &err), STN_INVALID_ARGUMENT, "REFRESH");
    REFUSED(get(no_ttl, "k", 1, -1, 0, &err), STN_INVALID_ARGUMENT, "ttl");
    REFUSED(stn_cache_get_or_load(c, foreign, "k", 1, -1, 0, NULL, loader, NULL, &event, &err), STN_INVALID_ARGUMENT,
            "policy");
    REFUSED(put(c, 65, -1, -1, -1, &err), STN_TOO_LARGE, "max_value");
    REFUSED(put(c, 1, STN_CODEC_JSON, -1, -1, &err), STN_INVALID_ARGUMENT, "codec");
    REFUSED(put(c, 1, -1, 0, -1, &err), STN_INVALID_ARGUMENT, "ttl");
    REFUSED(put(c, 1, -1, -2, -1, &err), STN_INVALID_ARGUMENT, "ttl");
    REFUSED(put(c, 1, -1, STN_DURATION_MAX_MS + 1, -1, &err), STN_INVALID_ARGUMENT, "ttl");
    REFUSED(put(c, 1, -1, 100, 100, &err), STN_INVALID_ARGUMENT, "soft_ttl");
    REFUSED(put(no_ttl, 1, -1, -1, -1, &err), STN_INVALID_ARGUMENT, "ttl");
    ACCEPTED(put(c, 64, -1, 100, 99, &err));
    ACCEPTED(stn_queue_next(q, 5000, &event, &err));
    stn_event_free(event);
    REFUSED(stn_cache_invalidate(c, "k", 1, 2, -1, q, 0, NULL, &err), STN_INVALID_ARGUMENT, "flag");
    REFUSED(stn_client_advance(client, 1000, &err), STN_UNSUPPORTED, "clock");
    stn_policy_free(foreign);
    stn_cache_free(no_ttl);
    stn_cache_free(c);
}

int main(void) {
    durations();
    urls();
    ACCEPTED(stn_client_open("memory://", NULL, &client, &err));
    ACCEPTED(stn_queue_new(0, &q, &err));
    cache_options();
    calls();
    stn_queue_free(q);
    ACCEPTED(stn_client_close(client, -1, &err));
    REFUSED(open_cache("{\"ttl\": \"5m\"}", &err), STN_CLOSED, "closed");
    stn_client_free(client);
    return finish();
}
