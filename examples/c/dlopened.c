/* SPDX-License-Identifier: MIT */
/*
 * A C program that does not link libstanchion but loads it by name, as a plugin or a foreign-function interface would.
 * The header gives the types, dlsym the addresses. It exits with 1 when something is missing or a promise is broken.
 *
 *     cc dlopened.c -ldl
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stanchion/stanchion.h>

/* What this program uses: each becomes a pointer of the type that the header declares. */
#define USED(X)              \
    X(stn_abi_version)       \
    X(stn_version_string)    \
    X(stn_status_name)       \
    X(stn_error_message)     \
    X(stn_error_free)        \
    X(stn_client_open)       \
    X(stn_client_close)      \
    X(stn_client_free)       \
    X(stn_cache_open)        \
    X(stn_cache_free)        \
    X(stn_cache_get_or_load) \
    X(stn_sink_write)        \
    X(stn_event_kind)        \
    X(stn_event_bytes)       \
    X(stn_event_free)

static struct {
#define POINTER(name) __typeof__(name)* name;
    USED(POINTER)
#undef POINTER
} api;

static void fail(const char* what, const char* detail) {
    fprintf(stderr, "%s: %s\n", what, detail);
    exit(1);
}

/* ISO C has no cast from the void* of dlsym to a function pointer; the bytes are the same. */
static void load_symbol(void* library, const char* name, void* pointer) {
    void* symbol = dlsym(library, name);
    if (symbol == NULL) fail("not in the library", name);
    memcpy(pointer, &symbol, sizeof symbol);
}

static void check(int32_t code, stn_error* err, const char* what) {
    if (code == STN_OK) return;
    fprintf(stderr, "%s: %s (%s)\n", what, api.stn_status_name(code), api.stn_error_message(err));
    api.stn_error_free(err);
    exit(1);
}

static int32_t load(void* ud, stn_lease* lease, stn_sink* sink) {
    const char* text = (const char*)ud;
    (void)lease;
    return api.stn_sink_write(sink, text, strlen(text));
}

int main(int argc, char** argv) {
    static char text[] = "loaded by a program that never linked the library";
    const char* path = argc > 1 ? argv[1] : "libstanchion.so.0";
    stn_client* client = NULL;
    stn_cache* cache = NULL;
    stn_event* event = NULL;
    stn_error* err = NULL;
    size_t n = 0;
    const void* bytes;
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) fail("dlopen", dlerror());

#define LOAD(name) load_symbol(library, #name, &api.name);
    USED(LOAD)
#undef LOAD
    if (api.stn_abi_version() != STN_ABI_VERSION) fail(path, "another ABI than this program was written for");
    printf("loaded stanchion %s\n", api.stn_version_string());

    check(api.stn_client_open("memory://", NULL, &client, &err), err, "client_open");
    check(api.stn_cache_open(client, "greetings", 9, "{\"ttl\": \"1m\"}", &cache, &err), err, "cache_open");
    check(api.stn_cache_get_or_load(cache, NULL, "hello", 5, STN_DEFAULT_MS, 0, NULL, load, text, &event, &err), err,
          "get_or_load");
    bytes = api.stn_event_bytes(event, &n);
    if (api.stn_event_kind(event) != STN_EVENT_VALUE || n != strlen(text) || memcmp(bytes, text, n) != 0) {
        fail("get_or_load", "not the value that was loaded");
    }
    printf("%.*s\n", (int)n, (const char*)bytes);
    api.stn_event_free(event);
    api.stn_cache_free(cache);
    check(api.stn_client_close(client, STN_DEFAULT_MS, &err), err, "client_close");
    api.stn_client_free(client);
    return dlclose(library) == 0 ? 0 : 1;
}
