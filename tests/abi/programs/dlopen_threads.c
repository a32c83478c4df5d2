/* SPDX-License-Identifier: MIT */
/*
 * Loads the library (argv[1]) twice by name and closes both handles while a client's thread and a loader run: the code
 * must stay where it is. Leaves a client unclosed at exit: that must be harmless too.
 */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include <stanchion/stanchion.h>

#include "check.h"

#define USED(X)              \
    X(stn_client_open)       \
    X(stn_client_close)      \
    X(stn_client_free)       \
    X(stn_client_stats)      \
    X(stn_cache_open)        \
    X(stn_cache_free)        \
    X(stn_cache_get_or_load) \
    X(stn_sink_write)        \
    X(stn_event_kind)        \
    X(stn_event_free)

static struct {
#define POINTER(name) __typeof__(name)* name;
    USED(POINTER)
#undef POINTER
} api;

static void load_symbol(void* library, const char* name, void* pointer) {
    void* symbol = dlsym(library, name);
    PROMISE(symbol != NULL, name);
    if (symbol == NULL) exit(1);
    memcpy(pointer, &symbol, sizeof symbol);
}

static void nap(long ms) {
    struct timespec t;
    t.tv_sec = ms / 1000;
    t.tv_nsec = ms % 1000 * 1000000;
    nanosleep(&t, NULL);
}

static int32_t slow_loader(void* ud, stn_lease* lease, stn_sink* sink) {
    (void)ud;
    (void)lease;
    nap(300);
    return api.stn_sink_write(sink, "late", 4);
}

static void* load_slowly(void* cache) {
    static int fine;
    stn_event* event = NULL;
    fine = api.stn_cache_get_or_load((stn_cache*)cache, NULL, "k", 1, STN_DEFAULT_MS, 0, NULL, slow_loader, NULL,
                                     &event, NULL) == STN_OK &&
           api.stn_event_kind(event) == STN_EVENT_VALUE;
    api.stn_event_free(event);
    return &fine;
}

static stn_client* left_open;

int main(int argc, char** argv) {
    const char* path = argc > 1 ? argv[1] : "libstanchion.so.0";
    stn_client* client = NULL;
    stn_cache* cache = NULL;
    stn_stats stats;
    pthread_t loader;
    void* fine = NULL;
    void* first = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void* second = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (first == NULL || second == NULL) printf("%s\n", dlerror());
    PROMISE(first != NULL && first == second, "a second dlopen gives the same library");
    if (first == NULL) return finish();
#define LOAD(name) load_symbol(first, #name, &api.name);
    USED(LOAD)
#undef LOAD
    PROMISE(api.stn_client_open("memory://", NULL, &client, NULL) == STN_OK, "a client opens");
    PROMISE(api.stn_client_open("memory://", NULL, &left_open, NULL) == STN_OK, "a second client opens");
    PROMISE(api.stn_cache_open(client, "c", 1, "{\"ttl\": \"1m\"}", &cache, NULL) == STN_OK, "a cache opens");
    PROMISE(pthread_create(&loader, NULL, load_slowly, cache) == 0, "a thread begins to load");
    nap(50);
    PROMISE(dlclose(second) == 0, "the second handle closes");
    PROMISE(dlclose(first) == 0, "the first handle closes, while a loader runs");
    nap(50);
    pthread_join(loader, &fine);
    PROMISE(*(int*)fine, "the loader's call returned its value after the dlclose");
    PROMISE(api.stn_client_stats(client, &stats, sizeof stats, NULL) == STN_OK && stats.loads == 1,
            "the client answers after the dlclose");
    PROMISE(dlopen(path, RTLD_NOW | RTLD_NOLOAD) != NULL, "the library is still mapped");
    api.stn_cache_free(cache);
    PROMISE(api.stn_client_close(client, STN_DEFAULT_MS, NULL) == STN_OK, "the client closes after the dlclose");
    api.stn_client_free(client);
    return finish();
}
