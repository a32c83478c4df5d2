// SPDX-License-Identifier: MIT
//
// The verbs of the script language: each a call or two of stanchion.h, and the judgement of what came.

#define _POSIX_C_SOURCE 200809L

#include "steps.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "world.h"

// ---- What an answer holds -------------------------------------------------------------------------------

static void check_option_ms(const char* name, int64_t came, const stn_event* e) {
    const char* text = step_option(step, name);
    if (!text) return;
    const int64_t wanted = strcmp(text, "unknown") == 0 ? -1 : milliseconds(text);
    if (wanted != came) {
        stop(step->source, "came %s, with %s %lld ms", describe(e), name, (long long)came);
    }
}

// What follows the kind, in `expect` and after the arrow of `call`.
static void check_answer(const stn_event* e, struct word* (*next)(struct step*)) {
    const uint32_t flags = stn_event_flags(e);
    const char* text = NULL;
    if (stn_event_kind(e) == STN_EVENT_VALUE) {
        const struct word* value = need(next(step), "the value");
        size_t n = 0;
        const void* bytes = stn_event_bytes(e, &n);
        check(word_is(value, "any") || (bytes && n == value->size && memcmp(bytes, value->text, n) == 0), e);
    }
    check(step_flag(step, "stale") == ((flags & STN_ANSWER_STALE) != 0), e);
    if (step_flag(step, "shared")) check(flags & STN_ANSWER_SHARED, e);
    if (step_flag(step, "alone")) check(!(flags & STN_ANSWER_SHARED), e);
    if ((text = step_option(step, "source"))) {
        check((int32_t)(flags & STN_ANSWER_SOURCE_MASK) == number_in(sources, text), e);
    }
    if ((text = step_option(step, "reason"))) check(stn_event_reason(e) == number_in(reasons, text), e);
    if ((text = step_option(step, "codec"))) check(stn_event_codec(e) == number_in(codecs, text), e);
    check_option_ms("age", stn_event_age_ms(e), e);
    check_option_ms("ttl_left", stn_event_ttl_left_ms(e), e);
    check_option_ms("load", stn_event_load_ms(e), e);
}

static void name_duty(stn_event* e, const char* name) {
    const bool flight = stn_event_kind(e) == STN_EVENT_FLIGHT;
    const bool lock = stn_event_kind(e) == STN_EVENT_LOCK;
    if (lock || stn_event_kind(e) == STN_EVENT_TICK) {
        struct thing* held = name_thing(name, lock ? LOCK : TICK);
        if (lock) {
            held->handle = stn_event_take_lock(e);
        } else {
            held->handle = stn_event_take_tick(e);
        }
        check(held->handle, e);
        return;
    }
    struct thing* t = name_thing(name, flight ? FLIGHT : LEASE);
    if (flight) {
        t->handle = stn_event_take_flight(e);
        t->scope = stn_flight_scope(t->handle);
    } else {
        t->handle = stn_event_take_lease(e);
        t->scope = stn_lease_scope(t->handle);
    }
    check(t->handle && t->scope, e);
}

// ---- The verbs: things ----------------------------------------------------------------------------------

static void do_client(void) {
    const char* name = operand("a name")->text;
    const char* url = operand("a URL")->text;
    struct word* json = step_optional(step);
    stn_client* out = NULL;
    stn_error* err = NULL;
    struct thing* t = name_thing(name, CLIENT);
    const int32_t status = stn_client_open(url, json ? json->text : NULL, &out, &err);
    t->handle = out;
    if (!judge(status, err)) forget_thing();
}

static void do_cache(void) {
    const char* name = operand("a name")->text;
    stn_client* client = use(CLIENT, "a client")->handle;
    struct word* cache = operand("the cache's name");
    struct word* json = step_optional(step);
    stn_cache* out = NULL;
    stn_error* err = NULL;
    struct thing* t = name_thing(name, CACHE);
    const int32_t status = stn_cache_open(client, cache->text, cache->size, json ? json->text : NULL, &out, &err);
    t->handle = out;
    if (!judge(status, err)) forget_thing();
}

static void do_policy(void) {
    const char* name = operand("a name")->text;
    stn_cache* cache = use(CACHE, "a cache")->handle;
    stn_policy* out = NULL;
    stn_error* err = NULL;
    struct thing* t = name_thing(name, POLICY);
    const int32_t status = stn_policy_new(cache, operand("the changes")->text, &out, &err);
    t->handle = out;
    if (!judge(status, err)) forget_thing();
}

static void do_queue(void) {
    const char* name = operand("a name")->text;
    stn_queue* out = NULL;
    stn_error* err = NULL;
    struct thing* t = name_thing(name, QUEUE);
    const int32_t status = stn_queue_new(option_number("scope"), &out, &err);
    t->handle = out;
    judge(status, err);
}

static void do_group(void) {
    const char* name = operand("a name")->text;
    struct word* owner = step_optional(step);
    struct word* json = step_optional(step);
    stn_client* client = owner ? find(owner->text, CLIENT, "a client")->handle : NULL;
    stn_group* out = NULL;
    stn_error* err = NULL;
    struct thing* t = name_thing(name, GROUP);
    const int32_t status = stn_group_new(client, json ? json->text : NULL, &out, &err);
    t->handle = out;
    if (!judge(status, err)) forget_thing();
}

static void do_free(void) {
    struct thing* t = use(NOTHING, "something to free");
    if (t->kind == QUEUE) bad_script("close queues, do not free", t->name);
    free_thing(t);
}

static void do_close(void) {
    struct thing* t = use(NOTHING, "a client or queue");
    stn_error* err = NULL;
    int32_t status = STN_OK;
    if (t->kind == QUEUE) {
        status = stn_queue_close(t->handle, &err);
        judge(status, err);
        return;
    }
    if (t->kind != CLIENT) bad_script("cannot be closed:", t->name);
    struct word* to = step_optional(step);
    const int64_t deadline = option_ms("deadline");
    if (!to) {
        status = stn_client_close(t->handle, deadline, &err);
        judge(status, err);
        return;
    }
    stn_queue* q = find(to->text, QUEUE, "a queue")->handle;
    struct tag* tag = use_tag(true);
    status = stn_client_close_begin(t->handle, deadline, q, tag->number, &err);
    if (judge(status, err)) ++tag->begun;
}

// ---- The verbs: operations ------------------------------------------------------------------------------

// What all operations of a cache have in common.
struct call {
    stn_cache* cache;
    struct word* key;
    struct thing* queue;
    struct tag* tag;
    stn_event* now;
    stn_event** now_at;
    uint64_t op;
};

static void call_to(struct call* c) {
    c->queue = use(QUEUE, "a queue");
    c->tag = use_tag(true);
    c->now_at = step_flag(step, "now") ? &c->now : NULL;
}

static struct call call_begin(void) {
    struct call c = {0};
    c.cache = use(CACHE, "a cache")->handle;
    c.key = operand("a key");
    return c;
}

static void call_end(struct call* c, int32_t status, stn_error* err) {
    if (judge(status, err)) {
        ++c->tag->begun;
        c->tag->op = c->op;
        if ((c->op == 0) != (c->now != NULL)) stop(step->source, "came op %llu", (unsigned long long)c->op);
        if (c->now) keep(c->queue, c->now);
    } else if (c->op || c->now) {
        stop(step->source, "came an operation for a call that failed");
    }
}

static stn_policy* option_policy(void) {
    const char* name = step_option(step, "policy");
    return name ? find(name, POLICY, "a policy")->handle : NULL;
}

static stn_scope* option_within(void) {
    const char* name = step_option(step, "within");
    return name ? scope_of(name) : NULL;
}

static uint32_t fetch_flags(void) {
    return (step_flag(step, "force") ? STN_FETCH_FORCE : 0U) | (step_flag(step, "no_store") ? STN_FETCH_NO_STORE : 0U) |
           (step_flag(step, "refresh") ? STN_FETCH_REFRESH : 0U);
}

static void do_fetch(void) {
    struct call c = call_begin();
    call_to(&c);
    const uint32_t flags = fetch_flags();
    stn_error* err = NULL;
    const int32_t status =
        stn_cache_fetch(c.cache, option_policy(), c.key->text, c.key->size, option_ms("deadline"), flags,
                        option_within(), c.queue->handle, c.tag->number, &c.op, c.now_at, &err);
    call_end(&c, status, err);
}

static void do_refetch(void) {
    struct call c = {0};
    c.cache = use(CACHE, "a cache")->handle;
    stn_event* rejected = use(EVENT, "an event kept by `as`")->handle;
    call_to(&c);
    stn_error* err = NULL;
    const int32_t status = stn_cache_refetch(c.cache, option_policy(), rejected, option_ms("deadline"), option_within(),
                                             c.queue->handle, c.tag->number, &c.op, c.now_at, &err);
    call_end(&c, status, err);
}

static void do_get(void) {
    struct call c = call_begin();
    call_to(&c);
    stn_error* err = NULL;
    const int32_t status = stn_cache_get(c.cache, c.key->text, c.key->size, option_ms("deadline"), c.queue->handle,
                                         c.tag->number, &c.op, c.now_at, &err);
    call_end(&c, status, err);
}

static void do_put(void) {
    struct call c = call_begin();
    const struct word* value = operand("a value");
    call_to(&c);
    stn_error* err = NULL;
    const int32_t status = stn_cache_put(c.cache, option_policy(), c.key->text, c.key->size, value->text, value->size,
                                         option_codec(), option_ms("ttl"), option_ms("soft_ttl"), option_ms("deadline"),
                                         c.queue->handle, c.tag->number, &c.op, &err);
    call_end(&c, status, err);
}

static void do_invalidate(void) {
    struct call c = call_begin();
    call_to(&c);
    const uint32_t flags = step_flag(step, "stale") ? STN_INVALIDATE_STALE : 0U;
    stn_error* err = NULL;
    const int32_t status = stn_cache_invalidate(c.cache, c.key->text, c.key->size, flags, option_ms("deadline"),
                                                c.queue->handle, c.tag->number, &c.op, &err);
    call_end(&c, status, err);
}

static void do_cancel(void) {
    struct thing* queue = use(QUEUE, "a queue");
    judge(stn_cancel(queue->handle, use_tag(false)->op), NULL);
}

static void do_ready(void) {
    stn_client* client = use(CLIENT, "a client")->handle;
    stn_queue* q = use(QUEUE, "a queue")->handle;
    struct tag* tag = use_tag(true);
    stn_error* err = NULL;
    const int32_t status = stn_client_ready(client, option_ms("deadline"), q, tag->number, &err);
    if (judge(status, err)) ++tag->begun;
}

static void do_watch(void) {
    stn_client* client = use(CLIENT, "a client")->handle;
    stn_queue* q = use(QUEUE, "a queue")->handle;
    const struct tag* tag = use_tag(true);
    const int32_t mask = number_in(notices, operand("a notice")->text);
    stn_error* err = NULL;
    const int32_t status = stn_client_watch(client, (uint32_t)mask, q, tag->number, &err);
    judge(status, err);
}

// ---- The verbs: leases, flights, the blocking form ------------------------------------------------------

static void do_fulfil(void) {
    stn_lease* lease = use(LEASE, "a lease")->handle;
    const struct word* value = operand("a value");
    struct word* to = step_optional(step);
    stn_queue* q = to ? find(to->text, QUEUE, "a queue")->handle : NULL;
    struct tag* tag = to ? use_tag(true) : NULL;
    const uint64_t number = tag ? tag->number : 0;
    const int64_t ttl = option_ms("ttl");
    const uint64_t ref = option_number("ref");
    uint32_t shared = 0;
    stn_error* err = NULL;
    int32_t status = STN_OK;
    if (word_is(value, "absent")) {
        status = stn_lease_fulfil_absent(lease, ttl, ref, q, number, &shared, &err);
    } else {
        status = stn_lease_fulfil(lease, value->text, value->size, option_codec(), ttl, option_ms("soft_ttl"), ref, q,
                                  number, &shared, &err);
    }
    judge_number(status, err, "shared", shared);
    if (status == STN_OK && tag) ++tag->begun;
}

static void do_fail(void) {
    stn_lease* lease = use(LEASE, "a lease")->handle;
    const int32_t code = number_in(statuses, operand("a code")->text);
    struct word* text = step_optional(step);
    uint32_t shared = 0;
    stn_error* err = NULL;
    const int32_t status = stn_lease_fail(lease, code, text ? text->text : NULL, option_number("ref"), &shared, &err);
    judge_number(status, err, "shared", shared);
}

static void do_detach(void) {
    struct thing* t = use(NOTHING, "a lease or flight");
    uint32_t waiters = 0;
    int32_t status = STN_OK;
    if (t->kind == LEASE) {
        status = stn_lease_detach(t->handle, &waiters);
    } else if (t->kind == FLIGHT) {
        status = stn_flight_detach(t->handle, &waiters);
    } else {
        bad_script("cannot be detached:", t->name);
    }
    judge_number(status, NULL, "waiters", waiters);
}

static void do_state(void) {
    const stn_lease* lease = use(LEASE, "a lease")->handle;
    const int32_t wanted = number_in(lease_states, operand("a state")->text);
    const int32_t came = stn_lease_state(lease);
    if (came != wanted) stop(step->source, "came %s", name_in(lease_states, came));
}

static void do_join(void) {
    stn_group* group = use(GROUP, "a group")->handle;
    const struct word* key = operand("a key");
    struct thing* queue = use(QUEUE, "a queue");
    struct tag* tag = use_tag(true);
    uint64_t op = 0;
    stn_flight* lead = NULL;
    stn_error* err = NULL;
    const int32_t status = stn_group_join(group, key->text, key->size, option_ms("deadline"), option_within(),
                                          queue->handle, tag->number, &op, &lead, &err);
    if (!judge(status, err)) return;
    const struct word* w = need(step_promise(step), "`lead NAME` or `waits`");
    if (word_is(w, "lead") != (lead != NULL)) stop(step->source, "came %s", lead ? "the lead" : "a wait");
    if ((op == 0) != (lead != NULL)) stop(step->source, "came op %llu", (unsigned long long)op);
    if (lead) {
        struct thing* t = name_thing(need(step_promise(step), "a name")->text, FLIGHT);
        t->handle = lead;
        t->scope = stn_flight_scope(lead);
    } else {
        tag->op = op;
        ++tag->begun;
    }
}

// A quoted value, `absent`, or `error CODE "text"`.
static int32_t outcome(const struct word** bytes) {
    *bytes = operand("an outcome");
    if (word_is(*bytes, "absent")) {
        *bytes = NULL;
        return STN_ABSENT;
    }
    if (!word_is(*bytes, "error")) return STN_OK;
    const int32_t code = number_in(statuses, operand("a code")->text);
    *bytes = step_optional(step);
    return code;
}

static void do_finish(void) {
    stn_flight* flight = use(FLIGHT, "a flight")->handle;
    const struct word* bytes = NULL;
    const int32_t code = outcome(&bytes);
    uint32_t shared = 0;
    stn_error* err = NULL;
    const int32_t status = stn_flight_finish(flight, code, bytes ? bytes->text : NULL, bytes ? bytes->size : 0,
                                             option_number("ref"), &shared, &err);
    judge_number(status, err, "shared", shared);
}

static void do_forget(void) {
    stn_group* group = use(GROUP, "a group")->handle;
    const struct word* key = operand("a key");
    stn_error* err = NULL;
    const int32_t status = stn_group_forget(group, key->text, key->size, &err);
    judge(status, err);
}

struct source_of {
    int32_t code;
    const struct word* bytes;
    int64_t ttl_ms;
    int runs;
};

static int32_t load(void* ud, stn_lease* lease, stn_sink* sink) {
    struct source_of* source = ud;
    ++source->runs;
    if (stn_lease_state(lease) != STN_LEASE_LIVE) return STN_INTERNAL;
    if (source->ttl_ms >= 0) stn_sink_ttl(sink, source->ttl_ms, STN_DEFAULT_MS);
    if (source->code == STN_OK) return stn_sink_write(sink, source->bytes->text, source->bytes->size);
    if (source->code != STN_ABSENT && source->bytes) stn_sink_error(sink, source->bytes->text);
    return source->code;
}

static void do_call(void) {
    struct call c = call_begin();
    struct source_of source = {0, NULL, STN_DEFAULT_MS, 0};
    source.code = outcome(&source.bytes);
    source.ttl_ms = option_ms("ttl");
    const int64_t deadline = option_ms("deadline");
    const uint32_t flags = fetch_flags();
    stn_policy* policy = option_policy();
    stn_scope* within = option_within();
    const int runs = step_flag(step, "loading") ? 1 : 0;
    stn_event* e = NULL;
    stn_error* err = NULL;
    const int32_t status = stn_cache_get_or_load(c.cache, policy, c.key->text, c.key->size, deadline, flags, within,
                                                 load, &source, &e, &err);
    if (judge(status, err)) {
        const char* kind = need(step_promise(step), "value or absent")->text;
        check(stn_event_kind(e) == number_in(events, kind), e);
        check_answer(e, step_promise);
        stn_event_free(e);
    }
    if (source.runs != runs) stop(step->source, "came %d runs of the loader", source.runs);
}

// ---- The verbs: locks, ticks, ids -----------------------------------------------------------------------

// Begins an operation that ends with one event.
static struct tag* begin_tag(void) {
    struct tag* tag = use_tag(true);
    ++tag->begun;
    return tag;
}

static void acquire_step(void) {
    stn_client* client = use(CLIENT, "a client")->handle;
    const struct word* name = operand("a name");
    const char* json = operand("the options")->text;
    stn_queue* q = use(QUEUE, "a queue")->handle;
    struct tag* tag = use_tag(true);
    const char* lost = step_option(step, "lost");
    const char* within = step_option(step, "within");
    stn_error* err = NULL;
    const int32_t status = stn_lock_acquire(
        client, name->text, name->size, json, NULL, option_ms("deadline"), within ? scope_of(within) : NULL, q,
        tag->number, lost ? find(lost, QUEUE, "a queue")->handle : NULL, tag->number, &tag->op, &err);
    if (judge(status, err)) ++tag->begun;
}

static void do_held(void) {
    const stn_lock* lock = use(LOCK, "a lock")->handle;
    const char* word = operand("a state")->text;
    const int32_t wanted = number_in(lock_states, word);
    if (stn_lock_state(lock) != wanted || stn_lock_held(lock) != (wanted == STN_LOCK_HELD)) {
        stop(step->source, "came %s", name_in(lock_states, stn_lock_state(lock)));
    }
    const char* left = step_option(step, "remaining");
    if (left && stn_lock_remaining_ms(lock) != milliseconds(left)) {
        stop(step->source, "came remaining %lld ms", (long long)stn_lock_remaining_ms(lock));
    }
}

static void do_later(void) {
    const stn_lock* first = use(LOCK, "a lock")->handle;
    const stn_lock* second = use(LOCK, "a lock")->handle;
    if (stn_lock_fence(first) >= stn_lock_fence(second) || strcmp(stn_lock_token(first), stn_lock_token(second)) == 0) {
        stop(step->source, "came fences %lld and %lld", (long long)stn_lock_fence(first),
             (long long)stn_lock_fence(second));
    }
}

static void handle_step(int32_t (*what)(stn_lock*, int64_t, stn_queue*, uint64_t, stn_error**)) {
    stn_lock* lock = use(LOCK, "a lock")->handle;
    stn_queue* q = use(QUEUE, "a queue")->handle;
    struct tag* tag = use_tag(true);
    stn_error* err = NULL;
    const int32_t status = what(lock, option_ms("deadline"), q, tag->number, &err);
    if (judge(status, err)) ++tag->begun;
}

static void do_renew(void) {
    handle_step(stn_lock_renew);
}

static void do_release(void) {
    handle_step(stn_lock_release);
}

static void do_leave(void) {
    stn_error* err = NULL;
    const int32_t status = stn_lock_leave(use(LOCK, "a lock")->handle, &err);
    judge(status, err);
}

static void do_inspect(void) {
    stn_client* client = use(CLIENT, "a client")->handle;
    const struct word* name = operand("a name");
    stn_queue* q = use(QUEUE, "a queue")->handle;
    struct tag* tag = begin_tag();
    stn_error* err = NULL;
    const int32_t status = stn_lock_inspect(client, name->text, name->size, NULL, 0, option_ms("deadline"), q,
                                            tag->number, &tag->op, &err);
    judge(status, err);
}

static void do_tick(void) {
    stn_client* client = use(CLIENT, "a client")->handle;
    const struct word* name = operand("a name");
    const char* json = operand("the options")->text;
    stn_queue* q = use(QUEUE, "a queue")->handle;
    struct tag* tag = use_tag(true);
    stn_error* err = NULL;
    const int32_t status =
        stn_tick_acquire(client, name->text, name->size, json, option_ms("deadline"), q, tag->number, &tag->op, &err);
    if (judge(status, err)) ++tag->begun;
}

static void do_tick_done(void) {
    stn_tick* tick = use(TICK, "a tick")->handle;
    stn_queue* q = use(QUEUE, "a queue")->handle;
    struct tag* tag = use_tag(true);
    stn_error* err = NULL;
    const int32_t ok = step_flag(step, "failed") ? 0 : 1;
    const int32_t status = stn_tick_done(tick, ok, option_ms("deadline"), q, tag->number, &err);
    if (judge(status, err)) ++tag->begun;
}

static void do_once(void) {
    stn_client* client = use(CLIENT, "a client")->handle;
    const struct word* id = operand("an id");
    const int64_t ttl_ms = milliseconds(operand("a ttl")->text);
    stn_queue* q = use(QUEUE, "a queue")->handle;
    struct tag* tag = use_tag(true);
    stn_error* err = NULL;
    const int32_t status =
        stn_once(client, id->text, id->size, ttl_ms, option_ms("deadline"), q, tag->number, &tag->op, &err);
    if (judge(status, err)) ++tag->begun;
}

// ---- The verbs: time and judgement ----------------------------------------------------------------------

static void do_advance(void) {
    stn_client* client = use(CLIENT, "a client")->handle;
    const int64_t ms = milliseconds(operand("a duration")->text);
    stn_error* err = NULL;
    const int32_t status = stn_client_advance(client, ms, &err);
    judge(status, err);
}

static void do_duration(void) {
    int64_t ms = 0;
    stn_error* err = NULL;
    const int32_t status = stn_duration_parse(operand("a text")->text, &ms, &err);
    judge_number(status, err, "ms", (uint64_t)ms);
}

static void do_expect(void) {
    struct thing* queue = use(QUEUE, "a queue");
    const struct tag* tag = use_tag(false);
    const char* kind_name = operand("a kind of event")->text;
    const int32_t kind = number_in(events, kind_name);
    const char* name = step_as(step);
    stn_event* e = await(queue, tag->number, EXPECT_MS);
    if (!e) {
        stop(step->source, "nothing came%s%s", queue->held ? " but, for others, " : "",
             queue->held ? describe(queue->hand[0]) : "");
    }
    check(stn_event_kind(e) == kind, e);
    switch (kind) {
    case STN_EVENT_VALUE:
    case STN_EVENT_ABSENT: check_answer(e, step_operand); break;
    case STN_EVENT_LEASE:
    case STN_EVENT_REFRESH:
    case STN_EVENT_FLIGHT:
        check_option_ms("load", stn_event_load_ms(e), e);
        if (name) name_duty(e, name);
        name = NULL;
        break;
    case STN_EVENT_LOCK:
    case STN_EVENT_TICK:
        if (name) name_duty(e, name);
        name = NULL;
        break;
    case STN_EVENT_DONE: check(stn_event_status(e) == (step_flag(step, "busy") ? STN_BUSY : STN_OK), e); break;
    case STN_EVENT_LOCK_LOST: check(stn_event_reason(e) == number_in(reasons, operand("a reason")->text), e); break;
    case STN_EVENT_FILLED: check(stn_event_status(e) == number_in(statuses, operand("a code")->text), e); break;
    case STN_EVENT_REVOKED: check(stn_event_reason(e) == number_in(reasons, operand("a reason")->text), e); break;
    case STN_EVENT_NOTICE: check(stn_event_reason(e) == number_in(notices, operand("a notice")->text), e); break;
    default: break;
    }
    const char* reason = NULL;
    const bool told = kind == STN_EVENT_DONE || kind == STN_EVENT_ERROR;
    if (told && (reason = step_option(step, "reason"))) check(stn_event_reason(e) == number_in(reasons, reason), e);
    if (kind == STN_EVENT_DONE) check_option_ms("ttl_left", stn_event_ttl_left_ms(e), e);
    const char* ref = step_option(step, "ref");
    if (ref) check(stn_event_host_ref(e) == strtoull(ref, NULL, 10), e);
    if (kind == STN_EVENT_ERROR) {
        check(stn_event_status(e) == number_in(statuses, operand("a code")->text), e);
        judge_texts(stn_error_message(stn_event_error(e)), step_operand);
    }
    if (name) {
        name_thing(name, EVENT)->handle = e;
    } else {
        stn_event_free(e);
    }
}

static void do_nothing(void) {
    struct thing* queue = use(QUEUE, "a queue");
    struct word* w = step_optional(step);
    if (!w) {
        int32_t status = STN_OK;
        if (queue->held || read_one(queue, NOTHING_MS, &status)) {
            stop(step->source, "came %s", describe(queue->hand[0]));
        }
        return;
    }
    w->used = false;
    const stn_event* e = await(queue, use_tag(false)->number, NOTHING_MS);
    if (e) stop(step->source, "came %s", describe(e));
}

static void do_ended(void) {
    struct thing* queue = use(QUEUE, "a queue");
    int32_t status = STN_OK;
    if (queue->held || read_one(queue, NOTHING_MS, &status)) stop(step->source, "came %s", describe(queue->hand[0]));
    if (status != STN_CLOSED) stop(step->source, "came %s", stn_status_name(status));
}

static bool stat_by_name(stn_client* client, const char* name, uint64_t* value) {
    stn_stats stats;
    stn_error* err = NULL;
    if (stn_client_stats(client, &stats, sizeof stats, &err) != STN_OK) stop(step->source, "came no stats");
#define STAT_FIELD(field, doc) \
    if (strcmp(name, #field) == 0) return *value = stats.field, true;
    STN_STATS_MAP(STAT_FIELD)
    return false;
}

static bool stat_in_json(stn_client* client, stn_cache* cache, const char* name, uint64_t* value) {
    stn_bytes* json = NULL;
    stn_error* err = NULL;
    if (stn_client_stats_json(client, cache, &json, &err) != STN_OK) stop(step->source, "came no stats");
    const size_t n = strlen(name);
    const char* at = strstr(stn_bytes_data(json), name);
    while (at && (at[-1] != '"' || at[n] != '"')) at = strstr(at + 1, name);
    if (at) *value = strtoull(at + n + 1 + strspn(at + n + 1, ": "), NULL, 10);
    stn_bytes_free(json);
    return at != NULL;
}

static void do_stats(void) {
    stn_client* client = use(CLIENT, "a client")->handle;
    const char* name = operand("a counter")->text;
    const struct word* relation = operand("==, <= or >=");
    const uint64_t wanted = strtoull(operand("a number")->text, NULL, 10);
    const char* of = step_option(step, "cache");
    stn_cache* cache = of ? find(of, CACHE, "a cache")->handle : NULL;
    uint64_t came = 0;
    for (const int64_t until = clock_ms() + EXPECT_MS;;) {
        const bool known = cache ? stat_in_json(client, cache, name, &came) : stat_by_name(client, name, &came);
        if (!known) bad_script("no counter", name);
        if (word_is(relation, "==") ? came == wanted : word_is(relation, ">=") ? came >= wanted : came <= wanted) {
            return;
        }
        if (clock_ms() >= until) stop(step->source, "came %llu", (unsigned long long)came);
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
}

static const struct {
    const char* name;
    void (*run)(void);
} verbs[] = {
    {"client", do_client},     {"cache", do_cache},
    {"policy", do_policy},     {"queue", do_queue},
    {"group", do_group},       {"free", do_free},
    {"close", do_close},       {"fetch", do_fetch},
    {"refetch", do_refetch},   {"get", do_get},
    {"put", do_put},           {"invalidate", do_invalidate},
    {"cancel", do_cancel},     {"ready", do_ready},
    {"watch", do_watch},       {"fulfil", do_fulfil},
    {"fail", do_fail},         {"detach", do_detach},
    {"state", do_state},       {"join", do_join},
    {"finish", do_finish},     {"forget", do_forget},
    {"call", do_call},         {"advance", do_advance},
    {"duration", do_duration}, {"expect", do_expect},
    {"nothing", do_nothing},   {"ended", do_ended},
    {"stats", do_stats},       {"acquire", acquire_step},
    {"held", do_held},         {"later", do_later},
    {"renew", do_renew},       {"release", do_release},
    {"leave", do_leave},       {"inspect", do_inspect},
    {"tick", do_tick},         {"tick_done", do_tick_done},
    {"once", do_once},
};

// ---- Running --------------------------------------------------------------------------------------------

void steps_run(struct step* s) {
    step = s;
    const struct word* verb = operand("a verb");
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; ++i) {
        if (!word_is(verb, verbs[i].name)) continue;
        verbs[i].run();
        const struct word* left = step_unused(step);
        if (left) bad_script("a word too many:", left->text);
        return;
    }
    bad_script("unknown verb", verb->text);
}
