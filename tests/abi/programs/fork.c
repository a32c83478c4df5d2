/* SPDX-License-Identifier: MIT */
/* A fork with everything open: the child may only free, and begin anew; the parent notices nothing. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stanchion/stanchion.h>

#include "check.h"

static stn_client* client;
static stn_cache* cache;
static stn_policy* policy;
static stn_queue* q;
static stn_group* group;
static stn_flight* flight;
static stn_lock* lock;
static stn_tick* tick;
static stn_event* event; /* the LEASE event, its lease taken out */
static stn_lease* lease;
static stn_scope* scope;

static int32_t loader(void* ud, stn_lease* own, stn_sink* sink) {
    (void)ud;
    (void)own;
    return stn_sink_write(sink, "child", 5);
}

#define FORKED(call) PROMISE((call) == STN_FORKED, "child: " #call)

static int child(void) {
    stn_event* ev = NULL;
    stn_error* err = NULL;
    stn_cache* c = NULL;
    stn_policy* p = NULL;
    stn_flight* f = NULL;
    stn_stats stats;
    uint32_t n;
    int32_t fd;
    alarm(30);
    FORKED(stn_client_ready(client, -1, q, 0, NULL));
    FORKED(stn_client_stats(client, &stats, sizeof stats, NULL));
    FORKED(stn_client_close(client, 0, NULL));
    FORKED(stn_cache_open(client, "x", 1, NULL, &c, NULL));
    FORKED(stn_policy_new(cache, "{}", &p, NULL));
    FORKED(stn_cache_fetch(cache, policy, "k", 1, -1, 0, NULL, q, 0, NULL, NULL, NULL));
    FORKED(stn_cache_get_or_load(cache, policy, "k", 1, -1, 0, NULL, loader, NULL, &ev, &err));
    PROMISE(err != NULL && stn_error_code(err) == STN_FORKED, "child: with an error that says so");
    stn_error_free(err);
    FORKED(stn_cache_invalidate(cache, "k", 1, 0, -1, q, 0, NULL, NULL));
    FORKED(stn_queue_next(q, 0, &ev, NULL));
    FORKED(stn_queue_fd(q, &fd, NULL));
    FORKED(stn_queue_set_sync(q, NULL));
    FORKED(stn_queue_wake(q));
    FORKED(stn_cancel(q, 1));
    FORKED(stn_queue_close(q, NULL));
    FORKED(stn_lease_fulfil(lease, "v", 1, -1, -1, -1, 0, NULL, 0, NULL, NULL));
    FORKED(stn_lease_fail(lease, STN_LOAD_FAILED, NULL, 0, NULL, NULL));
    FORKED(stn_lease_detach(lease, &n));
    FORKED(stn_lease_state(lease));
    FORKED(stn_group_join(group, "k", 1, -1, NULL, q, 0, NULL, &f, NULL));
    FORKED(stn_flight_finish(flight, STN_OK, NULL, 0, 0, NULL, NULL));
    PROMISE(stn_lease_scope(lease) == NULL && stn_flight_scope(flight) == NULL, "child: there is no scope to get");
    PROMISE(stn_event_kind(event) == STN_EVENT_LEASE && stn_event_tag(event) == 7, "child: an event can be read");

    PROMISE(stn_lock_held(lock) == 0 && stn_lock_remaining_ms(lock) == 0 && stn_lock_state(lock) == STN_FORKED,
            "child: an inherited lock is not held");
    FORKED(stn_lock_renew(lock, -1, q, 0, NULL));
    FORKED(stn_lock_release(lock, -1, NULL, 0, NULL));
    FORKED(stn_lock_wait_lost(lock, 0, NULL));
    FORKED(stn_lock_leave(lock, NULL));
    FORKED(stn_lock_acquire(client, "m", 1, "{\"ttl\": \"30s\"}", NULL, -1, NULL, q, 0, NULL, 0, NULL, NULL));
    FORKED(stn_lock_inspect(client, "l", 1, NULL, 0, -1, q, 0, NULL, NULL));
    FORKED(stn_tick_acquire(client, "t", 1, "{\"every\": \"1m\"}", -1, q, 0, NULL, NULL));
    FORKED(stn_tick_done(tick, 1, -1, NULL, 0, NULL));
    FORKED(stn_once(client, "i", 1, 1000, -1, q, 0, NULL, NULL));

    stn_event_free(event);
    stn_lock_free(lock);
    stn_tick_free(tick);
    stn_lease_free(lease);
    stn_scope_free(scope);
    stn_flight_free(flight);
    stn_group_free(group);
    stn_policy_free(policy);
    stn_cache_free(cache);
    stn_queue_free(q);
    stn_client_free(client);
    PROMISE(1, "child: everything inherited can be freed");

    PROMISE(stn_client_open("memory://", NULL, &client, NULL) == STN_OK, "child: a new client opens");
    PROMISE(stn_cache_open(client, "c", 1, "{\"ttl\": \"1m\"}", &cache, NULL) == STN_OK, "child: and a cache");
    PROMISE(stn_cache_get_or_load(cache, NULL, "k", 1, -1, 0, NULL, loader, NULL, &ev, NULL) == STN_OK,
            "child: and they work");
    stn_event_free(ev);
    stn_cache_free(cache);
    PROMISE(stn_client_close(client, -1, NULL) == STN_OK, "child: and close");
    stn_client_free(client);
    return finish();
}

int main(void) {
    int status = 0;
    int32_t fd = -1;
    pid_t pid;
    stn_event* answer = NULL;
    PROMISE(stn_client_open("memory://", NULL, &client, NULL) == STN_OK &&
                stn_cache_open(client, "c", 1, "{\"ttl\": \"1m\"}", &cache, NULL) == STN_OK &&
                stn_policy_new(cache, "{}", &policy, NULL) == STN_OK && stn_queue_new(0, &q, NULL) == STN_OK &&
                stn_queue_fd(q, &fd, NULL) == STN_OK && stn_group_new(client, NULL, &group, NULL) == STN_OK &&
                stn_group_join(group, "g", 1, -1, NULL, q, 8, NULL, &flight, NULL) == STN_OK && flight != NULL,
            "everything opens");
    PROMISE(stn_cache_fetch(cache, policy, "k", 1, -1, 0, NULL, q, 7, NULL, NULL, NULL) == STN_OK &&
                stn_queue_next(q, 5000, &event, NULL) == STN_OK,
            "a fetch is answered");
    lease = stn_event_take_lease(event);
    scope = stn_lease_scope(lease);
    PROMISE(lease != NULL && scope != NULL, "with a lease");
    PROMISE(stn_cache_fetch(cache, policy, "k", 1, -1, 0, NULL, q, 9, NULL, NULL, NULL) == STN_OK, "a second waits");

    PROMISE(stn_lock_acquire(client, "l", 1, "{\"ttl\": \"30s\"}", NULL, -1, NULL, q, 10, NULL, 0, NULL, NULL) ==
                    STN_OK &&
                stn_queue_next(q, 5000, &answer, NULL) == STN_OK,
            "an acquire is answered");
    lock = stn_event_take_lock(answer);
    stn_event_free(answer);
    PROMISE(stn_lock_held(lock) == 1, "with a lock");
    PROMISE(stn_tick_acquire(client, "t", 1, "{\"every\": \"24h\"}", -1, q, 11, NULL, NULL) == STN_OK &&
                stn_queue_next(q, 5000, &answer, NULL) == STN_OK,
            "a tick is answered");
    tick = stn_event_take_tick(answer);
    stn_event_free(answer);
    answer = NULL;
    PROMISE(tick != NULL, "and won");

    pid = fork();
    if (pid == 0) {
        passed_promises = failed_promises = 0;
        _exit(child());
    }
    PROMISE(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0,
            "the child came through");

    PROMISE(stn_lock_held(lock) == 1, "the parent's lock is held");
    PROMISE(stn_lock_renew(lock, -1, q, 12, NULL) == STN_OK && stn_queue_next(q, 5000, &answer, NULL) == STN_OK &&
                stn_event_kind(answer) == STN_EVENT_DONE,
            "and can be renewed: the child has released nothing");
    stn_event_free(answer);
    PROMISE(stn_tick_done(tick, 1, -1, q, 13, NULL) == STN_OK && stn_queue_next(q, 5000, &answer, NULL) == STN_OK &&
                stn_event_kind(answer) == STN_EVENT_DONE,
            "the parent's run can be ended");
    stn_event_free(answer);
    stn_lock_free(lock);
    stn_tick_free(tick);
    PROMISE(stn_lease_state(lease) == STN_LEASE_LIVE, "the parent's lease lives");
    PROMISE(stn_lease_fulfil(lease, "v", 1, -1, -1, -1, 0, NULL, 0, NULL, NULL) == STN_OK, "and can be answered");
    PROMISE(stn_queue_next(q, 5000, &answer, NULL) == STN_OK && stn_event_tag(answer) == 9 &&
                stn_event_kind(answer) == STN_EVENT_VALUE,
            "the parent's waiter has the value");
    stn_event_free(answer);
    PROMISE(stn_flight_finish(flight, STN_OK, NULL, 0, 0, NULL, NULL) == STN_OK, "the parent's flight can be finished");
    stn_event_free(event);
    stn_lease_free(lease);
    stn_scope_free(scope);
    stn_flight_free(flight);
    stn_group_free(group);
    stn_policy_free(policy);
    stn_cache_free(cache);
    stn_queue_free(q);
    PROMISE(stn_client_close(client, -1, NULL) == STN_OK, "the parent closes");
    stn_client_free(client);
    return finish();
}
