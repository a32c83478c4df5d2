// SPDX-License-Identifier: MIT
#define _POSIX_C_SOURCE 200809L

#include "world.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THINGS = 64, MAX_TAGS = 128 };

struct step* step;
static struct thing things[MAX_THINGS];
static size_t thing_count;
static struct tag tags[MAX_TAGS];
static size_t tag_count;

// ---- Failing --------------------------------------------------------------------------------------------

void stop(const char* expected, const char* format, ...) {
    va_list args;
    va_start(args, format);
    printf("FAILED %s:%d: expected `%s`, ", step->file, step->line, expected);
    vprintf(format, args);
    printf("\n");
    va_end(args);
    fflush(stdout);
    _exit(1);
}

void bad_script(const char* what, const char* word) {
    printf("FAILED %s:%d: not a step: %s `%s`\n", step->file, step->line, what, word);
    fflush(stdout);
    _exit(1);
}

// ---- Names ----------------------------------------------------------------------------------------------

struct word* need(struct word* word, const char* what) {
    if (!word) bad_script("missing", what);
    return word;
}

struct word* operand(const char* what) {
    return need(step_operand(step), what);
}

struct thing* find(const char* name, enum kind kind, const char* what) {
    for (size_t i = 0; i < thing_count; ++i) {
        if (strcmp(things[i].name, name) != 0) continue;
        if (kind != NOTHING && things[i].kind != kind) break;
        if (!things[i].handle) bad_script("freed already", name);
        return &things[i];
    }
    bad_script(what, name);
}

struct thing* use(enum kind kind, const char* what) {
    return find(operand(what)->text, kind, what);
}

static char* copy(const char* text) {
    char* out = malloc(strlen(text) + 1);
    if (!out) abort();
    return strcpy(out, text);
}

struct thing* name_thing(const char* name, enum kind kind) {
    for (size_t i = 0; i < thing_count; ++i) {
        if (strcmp(things[i].name, name) == 0) bad_script("named twice", name);
    }
    if (thing_count == MAX_THINGS) bad_script("too many things, at", name);
    struct thing* t = &things[thing_count++];
    t->name = copy(name);
    t->kind = kind;
    return t;
}

void forget_thing(void) {
    free(things[--thing_count].name);
    memset(&things[thing_count], 0, sizeof things[0]);
}

struct tag* use_tag(bool make) {
    const char* name = operand("a tag")->text;
    for (size_t i = 0; i < tag_count; ++i) {
        if (strcmp(tags[i].name, name) == 0) return &tags[i];
    }
    if (!make || tag_count == MAX_TAGS) bad_script("no such tag", name);
    tags[tag_count].name = copy(name);
    tags[tag_count].number = tag_count + 1;
    return &tags[tag_count++];
}

stn_scope* scope_of(const char* name) {
    for (size_t i = 0; i < thing_count; ++i) {
        if (strcmp(things[i].name, name) == 0 && things[i].scope) return things[i].scope;
    }
    bad_script("no load called", name);
}

static const char* name_of(uint64_t tag) {
    return tag >= 1 && tag <= tag_count ? tags[tag - 1].name : "(a tag nobody gave)";
}

// ---- Numbers and names of numbers -----------------------------------------------------------------------

int64_t milliseconds(const char* text) {
    char* end = NULL;
    const long long number = strtoll(text, &end, 10);
    if (end != text && *end == '\0') return number;
    if (strcmp(text, "none") == 0) return STN_NO_LIMIT;
    int64_t ms = 0;
    if (stn_duration_parse(text, &ms, NULL) != STN_OK) bad_script("no duration", text);
    return ms;
}

int64_t option_ms(const char* name) {
    const char* text = step_option(step, name);
    return text ? milliseconds(text) : STN_DEFAULT_MS;
}

uint64_t option_number(const char* name) {
    const char* text = step_option(step, name);
    return text ? strtoull(text, NULL, 10) : 0;
}

#define STATUS_ROW(number, NAME, name, retryable, text) {number, #name},
const struct numbered statuses[] = {STN_STATUS_MAP(STATUS_ROW){0, NULL}};
#define REASON_ROW(number, NAME, name, text) {number, #name},
const struct numbered reasons[] = {STN_REASON_MAP(REASON_ROW){0, NULL}};
const struct numbered codecs[] = {
    {STN_CODEC_RAW, "raw"}, {STN_CODEC_JSON, "json"}, {STN_CODEC_PRIVATE, "private"}, {0, NULL}};
const struct numbered sources[] = {{STN_SOURCE_NONE, "none"},     {STN_SOURCE_STORE, "store"},
                                   {STN_SOURCE_FLIGHT, "flight"}, {STN_SOURCE_NEAR, "near"},
                                   {STN_SOURCE_MEMORY, "memory"}, {0, NULL}};
const struct numbered lease_states[] = {
    {STN_LEASE_LIVE, "live"}, {STN_LEASE_REVOKED, "revoked"}, {STN_LEASE_ENDED, "ended"}, {0, NULL}};
const struct numbered lock_states[] = {{STN_LOCK_HELD, "held"},
                                       {STN_LOCK_RELEASED, "released"},
                                       {STN_LOCK_LOST, "lost"},
                                       {STN_LOCK_LEFT, "left"},
                                       {0, NULL}};
const struct numbered notices[] = {{STN_NOTICE_LOG, "log"},
                                   {STN_NOTICE_BREAKER, "breaker"},
                                   {STN_NOTICE_CONNECTION, "connection"},
                                   {STN_NOTICE_VERSION, "version"},
                                   {STN_NOTICE_MARGIN, "margin"},
                                   {STN_NOTICE_ALL, "all"},
                                   {0, NULL}};
const struct numbered events[] = {{STN_EVENT_VALUE, "value"},     {STN_EVENT_ABSENT, "absent"},
                                  {STN_EVENT_LEASE, "lease"},     {STN_EVENT_REFRESH, "refresh"},
                                  {STN_EVENT_FLIGHT, "flight"},   {STN_EVENT_LOCK, "lock"},
                                  {STN_EVENT_TICK, "tick"},       {STN_EVENT_LOCK_LOST, "lock_lost"},
                                  {STN_EVENT_DONE, "done"},       {STN_EVENT_FILLED, "filled"},
                                  {STN_EVENT_REVOKED, "revoked"}, {STN_EVENT_NOTICE, "notice"},
                                  {STN_EVENT_ERROR, "error"},     {0, NULL}};

int32_t number_in(const struct numbered* table, const char* name) {
    for (; table->name; ++table) {
        if (strcmp(table->name, name) == 0) return table->number;
    }
    bad_script("unknown name", name);
}

const char* name_in(const struct numbered* table, int32_t number) {
    for (; table->name; ++table) {
        if (table->number == number) return table->name;
    }
    return "(unknown)";
}

int32_t option_codec(void) {
    const char* name = step_option(step, "codec");
    return name ? number_in(codecs, name) : STN_CODEC_DEFAULT;
}

// ---- What a call gave -----------------------------------------------------------------------------------

static bool contains(const void* bytes, size_t size, const struct word* part) {
    for (size_t i = 0; i + part->size <= size; ++i) {
        if (memcmp((const char*)bytes + i, part->text, part->size) == 0) return true;
    }
    return false;
}

void judge_texts(const char* message, struct word* (*next)(struct step*)) {
    for (struct word* w = next(step); w; w = next(step)) {
        const bool lacks = word_is(w, "lacks");
        if (lacks) w = need(next(step), "a text after `lacks`");
        if (!w->quoted) bad_script("unknown word", w->text);
        if (contains(message, strlen(message), w) == lacks) stop(step->source, "came the text \"%s\"", message);
    }
}

bool judge(int32_t status, stn_error* err) {
    const bool fails = word_is(&step->words[step->arrow], "fails");
    int32_t wanted = STN_OK;
    if (fails) {
        step_promise(step);
        wanted = number_in(statuses, need(step_promise(step), "a code")->text);
    }
    if (status != wanted) stop(step->source, "came %s \"%s\"", stn_status_name(status), stn_error_message(err));
    if (err && stn_error_code(err) != status) {
        stop(step->source, "came an error of code %s", stn_status_name(stn_error_code(err)));
    }
    if (fails) judge_texts(stn_error_message(err), step_promise);
    stn_error_free(err);
    return !fails;
}

void judge_number(int32_t status, stn_error* err, const char* name, uint64_t came) {
    if (!judge(status, err) || step->arrow == step->count) return;
    if (!word_is(step_promise(step), name)) bad_script("after -> wanted", name);
    const char* text = need(step_promise(step), "a number")->text;
    if (strtoull(text, NULL, 10) != came) stop(step->source, "came %llu", (unsigned long long)came);
}

// ---- Events ---------------------------------------------------------------------------------------------

static bool is_terminal(const stn_event* e) {
    const int32_t kind = stn_event_kind(e);
    return kind != STN_EVENT_REFRESH && kind != STN_EVENT_REVOKED && kind != STN_EVENT_LOCK_LOST &&
           kind != STN_EVENT_NOTICE;
}

void keep(struct thing* queue, stn_event* e) {
    const uint64_t tag = stn_event_tag(e);
    if (tag >= 1 && tag <= tag_count && is_terminal(e)) ++tags[tag - 1].ended;
    if (queue->held == MAX_HAND) bad_script("too many events kept of queue", queue->name);
    queue->hand[queue->held++] = e;
}

static stn_event* from_hand(struct thing* queue, size_t i) {
    stn_event* e = queue->hand[i];
    memmove(&queue->hand[i], &queue->hand[i + 1], (queue->held - i - 1) * sizeof e);
    --queue->held;
    return e;
}

const char* describe(const stn_event* e) {
    static char text[512];
    size_t n = 0;
    const char* bytes = stn_event_bytes(e, &n);
    const stn_error* err = stn_event_error(e);
    const uint32_t flags = stn_event_flags(e);
    snprintf(text, sizeof text, "%s for %s: status %s%s%.*s%s%s%s%s%s, source %s, reason %s, codec %d, ref %llu",
             name_in(events, stn_event_kind(e)), name_of(stn_event_tag(e)), stn_status_name(stn_event_status(e)),
             bytes ? ", \"" : "", (int)(n < 80 ? n : 80), bytes ? bytes : "", bytes ? "\"" : "", err ? ", text " : "",
             err ? stn_error_message(err) : "", flags & STN_ANSWER_STALE ? ", stale" : "",
             flags & STN_ANSWER_SHARED ? ", shared" : "", name_in(sources, (int32_t)(flags & STN_ANSWER_SOURCE_MASK)),
             name_in(reasons, stn_event_reason(e)), stn_event_codec(e), (unsigned long long)stn_event_host_ref(e));
    return text;
}

int64_t clock_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Reads one event into the hand; false when none came in time or ever will.
bool read_one(struct thing* queue, int64_t timeout_ms, int32_t* status) {
    stn_event* e = NULL;
    stn_error* err = NULL;
    *status = stn_queue_next(queue->handle, timeout_ms, &e, &err);
    stn_error_free(err);
    if (*status == STN_OK) keep(queue, e);
    return *status == STN_OK;
}

// The oldest event of a tag, taken out of the hand.
stn_event* await(struct thing* queue, uint64_t tag, int64_t wait_ms) {
    const int64_t until = clock_ms() + wait_ms;
    for (size_t i = 0;;) {
        for (; i < queue->held; ++i) {
            if (stn_event_tag(queue->hand[i]) == tag) return from_hand(queue, i);
        }
        const int64_t left = until - clock_ms();
        int32_t status = STN_OK;
        if (!read_one(queue, left > 0 ? left : 0, &status) && status != STN_TIMEOUT) return NULL;
        if (status == STN_TIMEOUT && left <= 0) return NULL;
    }
}

void check(bool fits, const stn_event* e) {
    if (!fits) stop(step->source, "came %s", describe(e));
}

// ---- The end of a script --------------------------------------------------------------------------------

void free_thing(struct thing* t) {
    switch (t->kind) {
    case CLIENT: stn_client_free(t->handle); break;
    case CACHE: stn_cache_free(t->handle); break;
    case POLICY: stn_policy_free(t->handle); break;
    case QUEUE: stn_queue_free(t->handle); break;
    case GROUP: stn_group_free(t->handle); break;
    case LEASE: stn_lease_free(t->handle); break;
    case FLIGHT: stn_flight_free(t->handle); break;
    case EVENT: stn_event_free(t->handle); break;
    case LOCK: stn_lock_free(t->handle); break;
    case TICK: stn_tick_free(t->handle); break;
    case NOTHING: break;
    }
    t->handle = NULL;
}

void world_end(struct step* last) {
    step = last;
    int32_t status = STN_OK;
    for (size_t i = 0; i < thing_count; ++i) {
        struct thing* t = &things[i];
        if (t->kind != QUEUE) continue;
        while (read_one(t, 0, &status)) {
        }
        while (t->held) {
            stn_event* e = from_hand(t, 0);
            if (is_terminal(e)) stop("no event left over", "came %s", describe(e));
            stn_event_free(e);
        }
    }
    for (size_t i = 0; i < thing_count; ++i) {
        if (things[i].kind == CLIENT && things[i].handle) stn_client_close(things[i].handle, 0, NULL);
    }
    for (size_t i = 0; i < thing_count; ++i) {
        struct thing* t = &things[i];
        if (t->kind != QUEUE) continue;
        stn_queue_close(t->handle, NULL);
        while (read_one(t, 0, &status)) stn_event_free(from_hand(t, 0));
        if (status != STN_CLOSED) stop("a closed queue to end with closed", "came %s", stn_status_name(status));
    }
    for (size_t i = 0; i < tag_count; ++i) {
        if (tags[i].begun == tags[i].ended) continue;
        stop("one terminal event for each operation", "came %d for the %d of %s", tags[i].ended, tags[i].begun,
             tags[i].name);
    }
    for (size_t i = 0; i < thing_count; ++i) { // in the order of making: any order is legal
        if (things[i].handle) free_thing(&things[i]);
        stn_scope_free(things[i].scope);
        free(things[i].name);
    }
    for (size_t i = 0; i < tag_count; ++i) free(tags[i].name);
}
