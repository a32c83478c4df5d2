/* SPDX-License-Identifier: MIT */
/*
 * Stanchion: single-flight, fleet-wide leases and cache-aside, as a C library.
 *
 * This file is the manual. What it does not say is not promised; what it says holds for every binding too.
 *
 * A stanchion is the post that keeps a crowd in line. When a hot key expires, the callers of one process join one
 * *flight*; of all the flights of a fleet one gets the *lease* and runs its *loader*; the others wait for the value.
 *
 * Words: *client* one store (in memory, or a Redis deployment) and its loop; *flight* one in-process run for a key,
 * which callers join; *lease* the fleet-wide right to rebuild one key; *fill* writing the rebuilt value; *loader* the
 * host's function that reads the source; *host* the program or language runtime that calls this library; *soft / hard
 * expiry* refresh from / gone at; *absent* a cached "there is no such thing".
 *
 * The shape of a program
 *
 *     blocking                                        with a queue
 *     --------                                        ------------
 *     stn_client_open("memory://", ...)               the same, and stn_queue_new(0, &q, ...)
 *     stn_cache_open(client, "prices", ...)           stn_cache_fetch(cache, ..., q, tag, &op, &now, ...)
 *     stn_cache_get_or_load(cache, ..., load, ...)    stn_queue_next(q, ..., &ev, ...) and by stn_event_kind(ev):
 *       -> an event: VALUE or ABSENT                    VALUE, ABSENT   the answer
 *                                                       LEASE           load it, then stn_lease_fulfil (or _fail)
 *                                                       ERROR           stn_event_error(ev)
 *
 * ---- Ownership -------------------------------------------------------------------------------------------------
 * Every handle is an opaque struct of its own type. What `_open`, `_new`, `_take_...`, `_scope` or an out parameter
 * gives belongs to the caller, who ends it with the `_free` of its type, once. `_free(NULL)` does nothing. `_free`
 * never blocks, never joins a thread, does no input or output, and may be called on any thread (from a finalizer of a
 * garbage collector, for example) and in any order: a handle keeps alive what it needs. `_free` never calls back, with
 * one exception told at stn_queue_set_doorbell. `_free` is never needed for the correctness of others.
 * A pointer to data (`const char *`, `const void *`, `const stn_error *`) that a getter returns is borrowed: it lives
 * as long as the handle it was asked of. Handles passed in are borrowed for the call, `policy` and `within` too.
 * Memory of this library is never given to free(), and the host's memory is never freed here.
 *
 * ---- Threads ---------------------------------------------------------------------------------------------------
 * Client, cache, policy, queue, group and scope: any number of threads at once. Lease and flight: any thread, several
 * at once; the first of two answers wins. Event, error, bytes: any thread, getters at once with getters. Sink: only
 * the loader it was given to, while that runs. Nothing may be called on a handle while or after it is freed, and
 * nothing at all from a signal handler. Each function says whether it blocks; one that does not takes short locks at
 * most, and does not wait for the store. Thread identity means nothing: see `within`.
 * A client has one thread of its own, with all signals blocked; no thread ever raises SIGPIPE.
 *
 * ---- Callbacks -------------------------------------------------------------------------------------------------
 * There are three: the doorbell, its `free_ud`, and the loader of stn_cache_get_or_load, which runs on the caller's
 * own thread. None may throw an exception or longjmp out. No lock of this library is held while one runs.
 *
 * ---- Bytes and text --------------------------------------------------------------------------------------------
 * Bytes go in as `(const void *p, size_t n)` and are copied before the call returns; p may be NULL only if n is 0.
 * A value may be empty; an empty value is not absence. Keys have 1 to 1,024 bytes, NUL allowed. `const char *` is
 * NUL-terminated UTF-8. Names of caches, and prefixes, have 1 to 64 of [A-Za-z0-9._-].
 *
 * ---- Errors ----------------------------------------------------------------------------------------------------
 * Functions that can fail return an int32_t: STN_OK (0) or a negative number of STN_STATUS_MAP. **A negative return
 * means that nothing was done or begun and no event will come** (of the blocking functions, it is the outcome). Treat a
 * number you do not know as `internal`.
 * `err`, always last, may be NULL. If not, it is always written: NULL on STN_OK, else an error the caller frees with
 * stn_error_free (never NULL then, not even out of memory). There is no last error of a thread. Out parameters are
 * always written too, with NULL or 0 on failure; those marked nullable may be NULL.
 * Where a function lists its codes, "any" stands for the four that every one may return:
 *     invalid_argument   a required pointer is NULL, a number is out of range, a flag is unknown
 *     forked             the handle was made before a fork, in the parent
 *     no_memory          and nothing was changed
 *     internal           a fault of this library; please report its message
 *
 * ---- NULL ------------------------------------------------------------------------------------------------------
 * NULL for a required handle or pointer is answered `invalid_argument`; a getter answers 0, NULL or -1. Options are
 * JSON text; NULL means "{}".
 *
 * ---- Durations -------------------------------------------------------------------------------------------------
 * int64_t milliseconds. In JSON, text with units or a number whose name ends in _ms: "ttl": "5m" or "ttl_ms": 300000;
 * not both, and no bare number under the plain name. Text: parts of digits and a unit, d h m s ms, falling, each at
 * most once: "1500ms", "1h30m"; no sign, fraction or blank. Unless said otherwise 1 ms .. 10 years
 * (STN_DURATION_MAX_MS). `deadline_ms` and `timeout_ms` count from the call: -1 = the default (told at each function),
 * 0 = do not wait, STN_NO_LIMIT = for ever; other negative numbers are `invalid_argument`.
 *
 * ---- Queues, operations, events --------------------------------------------------------------------------------
 * A queue is a mailbox of events: one per event loop or thread, for any number of clients. Functions that take
 * `q, tag` begin an *operation* and return at once. **Each accepted operation gives exactly one terminal event**
 * whatever happens - cancel, close, queue close, fork (in the parent) - with the caller's `tag`, any number.
 * `op`, where there is one, is the operation's number for stn_cancel: unique per queue, never 0, written before any
 * event of it can be read; nullable. `now`, where there is one, is "now or later": an answer that is in process
 * memory already (any terminal event) comes back through it at once, and then nothing is queued and *op is 0. With
 * `now` NULL everything is queued. Kinds of event that you do not know are to be ignored, and freed.
 *
 * Now or later, an event belongs to who received it, and is freed with stn_event_free. A lease or flight inside it is
 * taken out with stn_event_take_lease or _take_flight; freeing the event with it inside gives it up as
 * stn_lease_free or stn_flight_free would.
 *
 * ---- Who waits for whom: `within` ------------------------------------------------------------------------------
 * A loader may itself fetch. Such a call names the load that makes it: `within` is the scope of its lease or flight
 * (stn_lease_scope, stn_flight_scope), else NULL. A call that would close a circle of loads waiting for each other,
 * of any length in this process, is answered `would_deadlock` at once. The scope of a load that has ended is ignored.
 * A wrong NULL costs this protection, no more: such a circle then ends by the deadline.
 *
 * ---- Host references -------------------------------------------------------------------------------------------
 * Callers who joined a load can get the leader's very object or exception. The leader passes `host_ref`, a number of
 * the host's choosing (0 = none), and learns in `*shared` how many events will carry it: those for queues with the
 * `host_scope` of the queue that its LEASE, REFRESH or FLIGHT came from (one scope per interpreter or environment,
 * 0 = never). Other callers get the code, text and bytes. The host drops the object after exactly `*shared` events,
 * and should expect an event to be read before the call has returned the count. Closing a queue or a client does not
 * change the count: such an event becomes ERROR `closed` and keeps its host_ref.
 *
 * ---- Shutdown --------------------------------------------------------------------------------------------------
 * stn_client_close, then drain and free. New work is refused at once; running loaders have until the deadline to give
 * their answer; then every open operation ends with ERROR `closed`. A process may also just exit: no destructor of
 * this library runs then, and leases in the store end by their TTL.
 *
 * ---- Fork ------------------------------------------------------------------------------------------------------
 * The child owns nothing: on handles made before the fork only `_free` is right (it closes descriptors and touches
 * nothing shared); everything else answers `forked`, except that getters of events, errors and bytes, which only read
 * memory, still do. What the child makes itself works. The parent notices nothing.
 *
 * ---- Versions --------------------------------------------------------------------------------------------------
 * Within one STN_ABI_VERSION (the number in libstanchion.so.N) functions are never removed or changed, numbers never
 * reused; functions, codes, event kinds, reasons and stats are added. ABI 0 is not frozen yet. "Since 0.1" holds for
 * everything below that says nothing else.
 */
#ifndef STANCHION_STANCHION_H
#define STANCHION_STANCHION_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define STN_API __attribute__((visibility("default")))
#else
#define STN_API
#endif
#if defined(__cplusplus)
#define STN_NOEXCEPT noexcept
extern "C" {
#else
#define STN_NOEXCEPT
#endif

/* ==== Versions ================================================================================================ */

#define STN_VERSION_MAJOR 0
#define STN_VERSION_MINOR 1
#define STN_VERSION_PATCH 0
#define STN_VERSION_NUMBER (STN_VERSION_MAJOR * 10000 + STN_VERSION_MINOR * 100 + STN_VERSION_PATCH)
#define STN_VERSION_STRING "0.1.0"
#define STN_ABI_VERSION 0

/* The version of the library that runs, major * 10000 + minor * 100 + patch; compare it with STN_VERSION_NUMBER, that
 * of this header. Does not block; any thread, in a fork child too. Since 0.1. */
STN_API uint32_t stn_version_number(void) STN_NOEXCEPT;

/* The same as text, "0.1.0": static, never freed. Does not block; any thread. Since 0.1. */
STN_API const char* stn_version_string(void) STN_NOEXCEPT;

/* The ABI of the library that runs. A program that loads it by name checks that this is STN_ABI_VERSION. Does not
 * block; any thread. Since 0.1. */
STN_API uint32_t stn_abi_version(void) STN_NOEXCEPT;

/* ==== Handles ================================================================================================= */

/* Each is ended by its own `_free`, the sink by nobody. */
typedef struct stn_error stn_error;             /* what went wrong */
typedef struct stn_bytes stn_bytes;             /* bytes made by the library */
typedef struct stn_client stn_client;           /* one store */
typedef struct stn_queue stn_queue;             /* a mailbox of events */
typedef struct stn_event stn_event;             /* one answer or notification */
typedef struct stn_cache stn_cache;             /* a name, and the policy for its keys */
typedef struct stn_policy stn_policy;           /* a variant of a cache's policy, immutable */
typedef struct stn_lease stn_lease;             /* the right and duty to load one key */
typedef struct stn_group stn_group;             /* single-flight without a cache */
typedef struct stn_flight stn_flight;           /* the duty to finish one run of a group */
typedef struct stn_lock stn_lock;               /* a lock in your hands */
typedef struct stn_lock_policy stn_lock_policy; /* how locks are taken and kept, read once */
typedef struct stn_tick stn_tick;               /* the run of one slot in your hands */
typedef struct stn_scope stn_scope;             /* names a running load, for `within`; counted */
typedef struct stn_sink stn_sink;               /* takes a loader's result */

/* ==== Status codes ============================================================================================ */

/*
 * X(number, NAME, name, retryable, text). A code exists only where a caller can react to it in a way of its own.
 * `retryable`: the same call may well succeed later, unchanged. `uncertain` means: it may have been applied.
 */
#define STN_STATUS_MAP(X)                                                                  \
    X(0, OK, ok, 0, "ok")                                                                  \
    X(-1, ABSENT, absent, 0, "there is no such thing")                                     \
    X(-2, INVALID_ARGUMENT, invalid_argument, 0, "an argument is not valid")               \
    X(-3, UNKNOWN_OPTION, unknown_option, 0, "there is no option of that name")            \
    X(-4, TOO_LARGE, too_large, 0, "the value or key is too large")                        \
    X(-5, COLLISION, collision, 0, "the key holds something that is not ours")             \
    X(-6, UNDECODABLE, undecodable, 0, "the stored value cannot be decoded")               \
    X(-7, LOAD_FAILED, load_failed, 0, "the loader failed")                                \
    X(-8, WOULD_DEADLOCK, would_deadlock, 0, "the call would wait for itself")             \
    X(-9, OVERLOADED, overloaded, 1, "too many loads are running already")                 \
    X(-10, BUSY, busy, 1, "somebody else holds it")                                        \
    X(-11, TIMEOUT, timeout, 1, "the deadline passed")                                     \
    X(-12, CANCELLED, cancelled, 0, "the call was cancelled")                              \
    X(-13, UNCERTAIN, uncertain, 1, "the reply was lost: it may have been applied or not") \
    X(-14, LOST, lost, 0, "it was held and is held no longer")                             \
    X(-15, NOT_MINE, not_mine, 0, "it belongs to somebody else")                           \
    X(-16, REFUSED, refused, 1, "the store refused the command")                           \
    X(-17, UNAVAILABLE, unavailable, 1, "the store cannot be reached")                     \
    X(-18, DENIED, denied, 0, "the store's access rules forbid it")                        \
    X(-19, NOT_REDIS, not_redis, 0, "the server does not speak the Redis protocol")        \
    X(-20, UNSUPPORTED, unsupported, 0, "not supported")                                   \
    X(-21, CLOSED, closed, 0, "the client or queue is closed")                             \
    X(-22, FORKED, forked, 0, "the handle was made before a fork")                         \
    X(-23, NO_MEMORY, no_memory, 1, "out of memory")                                       \
    X(-24, INTERNAL, internal, 0, "a fault inside the library")

enum stn_status {
#define STN_STATUS_ENUM(number, NAME, name, retryable, text) STN_##NAME = number,
    STN_STATUS_MAP(STN_STATUS_ENUM)
#undef STN_STATUS_ENUM
};

/* The name of a status, "load_failed"; of a number it does not know, "unknown". Static, never freed. Does not block;
 * any thread. Since 0.1. */
STN_API const char* stn_status_name(int32_t status) STN_NOEXCEPT;

/* ==== Durations =============================================================================================== */

#define STN_DEFAULT_MS INT64_C(-1)                /* the default of the policy or the function */
#define STN_NO_LIMIT INT64_MAX                    /* as a deadline or time-out: for ever */
#define STN_DURATION_MAX_MS INT64_C(315360000000) /* 10 years of 365 days, the longest TTL */

/* Reads a duration text ("5m", "1h30m", "1500ms", "0s") into *ms, 0 .. STN_DURATION_MAX_MS. This is the one parser of
 * all languages. Does not block; any thread.
 * Codes: ok; invalid_argument (the message names the part that is wrong), no_memory, internal. Since 0.1. */
STN_API int32_t stn_duration_parse(const char* text, int64_t* ms, stn_error** err) STN_NOEXCEPT;

/* ==== Errors ================================================================================================== */

enum stn_error_flag {
    STN_ERROR_RETRYABLE = 1,       /* the same call may succeed later */
    STN_ERROR_SERVER_REPLY = 2,    /* the store itself said so: see stn_error_server_text */
    STN_ERROR_MAY_HAVE_APPLIED = 4 /* a command was sent whose reply is unknown */
};

/* Getters of an error: none blocks, any thread, results borrowed from `error`. Since 0.1. */

/* Its status, negative; 0 for NULL. */
STN_API int32_t stn_error_code(const stn_error* error) STN_NOEXCEPT;
/* What happened, for people: one line, UTF-8, no password and no value in it. Never NULL ("" for NULL). */
STN_API const char* stn_error_message(const stn_error* error) STN_NOEXCEPT;
/* The key or name it is about, as the caller gave it, and its length in *n (nullable); NULL and 0 if there is none. */
STN_API const void* stn_error_key(const stn_error* error, size_t* n) STN_NOEXCEPT;
/* The store's own error line, unchanged; NULL if the store did not answer with an error. */
STN_API const char* stn_error_server_text(const stn_error* error) STN_NOEXCEPT;
/* Bits of stn_error_flag. */
STN_API uint32_t stn_error_flags(const stn_error* error) STN_NOEXCEPT;
/* Frees an error that an `err` parameter gave, not one borrowed from an event. */
STN_API void stn_error_free(stn_error* error) STN_NOEXCEPT;

/* ==== Bytes =================================================================================================== */

/* The bytes, borrowed from `bytes`, followed by a NUL that stn_bytes_size does not count. Never NULL except for NULL.
 * Does not block; any thread. Since 0.1. */
STN_API const void* stn_bytes_data(const stn_bytes* bytes) STN_NOEXCEPT;
/* How many. Does not block; any thread. Since 0.1. */
STN_API size_t stn_bytes_size(const stn_bytes* bytes) STN_NOEXCEPT;
/* Since 0.1. */
STN_API void stn_bytes_free(stn_bytes* bytes) STN_NOEXCEPT;

/* ==== Client ================================================================================================== */

/*
 * Opens a client on a store and starts its thread. Does not block and does not wait for a connection: a store that is
 * down is no error here (see stn_client_ready). Any thread. *out belongs to the caller.
 *
 * url
 *     memory://        the embedded store, private to this client
 *     memory://name    the same, shared by the clients of this process that name it; name as of a cache. A store dies
 *                      with its last client
 *     ...?clock=manual its clock moves only by stn_client_advance, for tests; clients of one name must agree
 *     redis://[[user][:password]@]host[:port][/db]         a Redis or Valkey; port 6379, database 0
 *     rediss://...                                         the same over TLS 1.2 or newer; the server's chain and name
 *                                                          are always verified
 *     unix://[[user][:password]@]/path[?db=n]              the same over a socket of this machine
 *     redis+sentinel://, redis+cluster://                  `unsupported` until a later release
 * User, password and path are percent-encoded. The password is never printed. A server needs GET, DEL, PUBLISH,
 * SUBSCRIBE, EVALSHA with SCRIPT LOAD or EVAL, TIME and PING, and inside scripts SET, GETRANGE, SETRANGE, PEXPIRE, PTTL,
 * STRLEN and EXISTS, on the keys and channels of `prefix`. Without TIME the local clock stands in for the server's;
 * without SUBSCRIBE or PUBLISH waiters are told by their timers only.
 *
 * A client has one connection for commands and, from the first wait for another process on, one for messages. It
 * connects again for ever, with growing random pauses of at most 5 s, and says so once in either direction
 * (STN_NOTICE_CONNECTION). While it connects for the first time, or anew after a connection that stood, operations wait
 * for how that ends, at most connect_timeout; while the store is known to be away they go on without it at once. A
 * server that is silent for 10 s is given up and dialled again.
 *
 * options_json
 *     name              type      default  range               meaning
 *     "prefix"          text      "stn"    a name              first part of every key and channel; every program that
 *                                                              shares a store's caches must use the same
 *     "command_timeout" duration  250 ms   1 ms .. 1 h         how long one command may take; raise it for a far store
 *     "connect_timeout" duration  2 s      1 ms .. 1 h         how long connecting may take, the callers' deadlines
 *                                                              count meanwhile
 *     "close_at_exit"   duration  0        0 .. 1 min          > 0: exit(), and returning from main, closes the client
 *                                                              and waits so long for it: locks that are held are
 *                                                              released. Not at _exit, a signal or abort; not in a
 *                                                              child for what its parent opened
 *     "max_loads_down"  integer   32       1 .. 1,000,000      loads at one time while the store is down, all caches
 *                                                              together: as much as the source bears
 *     "max_waiters"     integer   10,000   1 .. 1,000,000      callers that wait for locks behind others of this client
 *     "tls_ca_file"     text      -        a PEM file          who may sign the server's certificate, instead of the
 *                                                              system's authorities
 *     "tls_cert_file"   text      -        a PEM file          this client's own certificate and chain, with
 *     "tls_key_file"    text      -        a PEM file          its key
 *     "tls_server_name" text      -        a name or address   asked for and verified instead of the URL's host
 * The tls_ options are for rediss:// only. Their files are read at this call.
 *
 * Codes: ok; invalid_argument (malformed URL, wrong type or range, a file that cannot be used; the message names it),
 * unknown_option (names it and the nearest known one), unsupported (scheme), no_memory, internal. Since 0.1.
 */
STN_API int32_t stn_client_open(const char* url, const char* options_json, stn_client** out,
                                stn_error** err) STN_NOEXCEPT;

/*
 * Asks for one DONE event when the store is connected and logged in. Optional: a client connects by itself, from its
 * opening on. Does not block; any thread. deadline_ms: -1 = connect_timeout, 0 = is it ready now?
 * Codes: ok, closed, any. Events: DONE, whose bytes are a JSON object with what the server has told of itself, each of
 * "server" ("redis", "valkey", "memory"), "version", "mode" and "role" if it did; ERROR, whose text names the address and
 * what went wrong there:
 *     timeout      the first attempt has not ended by the deadline
 *     unavailable  nobody listens, the name has no address, the server is loading or too busy, its certificate is
 *                  refused (text: for another name, expired, unknown authority, self-signed, no TLS on this port)
 *     denied       user or password are refused: told at once, though the client goes on trying
 *     refused      the database is refused: at once, likewise
 *     not_redis    something else listens there: at once, likewise
 *     closed       the client was closed
 * Since 0.1.
 */
STN_API int32_t stn_client_ready(stn_client* client, int64_t deadline_ms, stn_queue* q, uint64_t tag,
                                 stn_error** err) STN_NOEXCEPT;

/*
 * Closes, and waits for it: BLOCKS, to deadline_ms (-1 = 5 s) and a moment more. New work is refused at once with
 * `closed`, except fetches `within` a running lease, which are taken until the deadline; running loaders have until
 * then to give their answer; then every open operation ends with ERROR `closed`, leases still held are revoked
 * (REVOKED, reason closed) and abandoned, and the connections and the thread end. It returns as soon as that is done.
 * Any thread, but not from a doorbell or a loader of this client. A second close, of either form, joins the first,
 * whose deadline holds. Queues live on: read them. The handle still needs stn_client_free.
 * Codes: ok (also if loaders were cut off), any. Since 0.1.
 */
STN_API int32_t stn_client_close(stn_client* client, int64_t deadline_ms, stn_error** err) STN_NOEXCEPT;

/* The same without blocking, from any thread; one DONE event when the client is closed. Codes: ok, any. Events: DONE;
 * ERROR closed if the queue was closed first (the client closes all the same). Since 0.1. */
STN_API int32_t stn_client_close_begin(stn_client* client, int64_t deadline_ms, stn_queue* q, uint64_t tag,
                                       stn_error** err) STN_NOEXCEPT;

/* Gives the handle back. Does not close: a client without a close ends by itself, silently, when the last cache, group,
 * lease, flight or operation of it has ended. Since 0.1. */
STN_API void stn_client_free(stn_client* client) STN_NOEXCEPT;

/*
 * Moves the clock of a memory store with clock=manual by ms (0 .. STN_DURATION_MAX_MS), for all clients that share it:
 * values, leases and markers expire, and with them go the deadlines, time-outs, renewals and looks of these clients,
 * from one due moment to the next, so that a lease held across a jump is renewed on the way. What was begun before the
 * call is done first; events that follow are queued when it returns. The time-outs of stn_queue_next and _drain stay in
 * real time. Does not wait for anything but other turns of these clients; any thread, not from a doorbell.
 * Codes: ok, unsupported (the store has no manual clock), closed, any. Since 0.1.
 */
STN_API int32_t stn_client_advance(stn_client* client, int64_t ms, stn_error** err) STN_NOEXCEPT;

/* ---- Notices: what an operator wants to know ---- */

enum stn_notice {
    STN_NOTICE_LOG = 1,        /* a line for the log; each is worth reading, there are no levels */
    STN_NOTICE_BREAKER = 2,    /* status unavailable: the breaker opened, loads go on without the store; ok: closed */
    STN_NOTICE_CONNECTION = 4, /* status ok: connected; else why the connection ended or failed */
    STN_NOTICE_VERSION = 8,    /* two formats under one cache name: raise the option `version` */
    STN_NOTICE_MARGIN = 16,    /* ttl - soft_ttl is less than 2 x the load time: a refresh may come too late */
    STN_NOTICE_ALL = 0x7fffffff
};

/*
 * Subscribes a queue to the client's notices: NOTICE events with this tag, stn_event_reason one of the bits of mask,
 * the text in stn_event_bytes, each condition told once; a connection or breaker that is in trouble already is told
 * now. This is not an operation: it has no terminal event and ends with the client, the queue, or mask 0. One
 * subscription per client and queue; another call replaces mask and tag. At most 1,000 unread notices are kept per
 * queue, newer ones are dropped. Does not block; any thread.
 * Codes: ok, closed, any. Since 0.1.
 */
STN_API int32_t stn_client_watch(stn_client* client, uint32_t mask, stn_queue* q, uint64_t tag,
                                 stn_error** err) STN_NOEXCEPT;

/* ---- Stats ---- */

/* X(name, doc): counters since the client was opened. Fields are only ever added, at the end. */
#define STN_STATS_MAP(X)                                                                        \
    X(flights, "flights started, by fetches and by the groups of the client")                   \
    X(joins, "callers who joined a flight that another caller led")                             \
    X(gets, "GETs sent: one per look at a key, by flights and by plain gets")                   \
    X(hits, "looks that found a fresh value")                                                   \
    X(stale_hits, "looks that found a value past its soft expiry")                              \
    X(absent_hits, "looks that found a cached absence")                                         \
    X(misses, "first looks of a flight, and plain gets, that found nothing to answer with")     \
    X(loads, "loads begun: LEASE events and refreshes taken, loaders run")                      \
    X(loads_failed, "loads that ended with an error")                                           \
    X(loads_alone, "loads begun without a lease: fleet off, store down, pass marker, NO_STORE") \
    X(leases_granted, "leases granted by the store, those for a refresh too")                   \
    X(leases_held, "leases refused because another process holds one, those for a refresh too") \
    X(leases_lost, "leases found gone or taken over while we held them")                        \
    X(fills_stored, "rebuilt values written")                                                   \
    X(fills_refused, "rebuilt values not written because the key had changed meanwhile")        \
    X(fills_lost, "rebuilt values whose write failed or got no reply")                          \
    X(markers_error, "error markers written after a failed load")                               \
    X(markers_pass, "pass markers written for values too large to store")                       \
    X(looks, "looks at a key while waiting for another process")                                \
    X(waits, "flights that waited for another process")                                         \
    X(promotions, "waiters who took over a lease given up by its holder")                       \
    X(withdrawals, "LEASE events taken back because nobody read them within 1 s")               \
    X(detached, "flights detached by an invalidation, by max_load or by the loss of the lease") \
    X(refreshes, "background refreshes begun")                                                  \
    X(refreshes_lost, "refreshes whose result was not stored")                                  \
    X(early_refreshes, "refreshes drawn before the soft expiry")                                \
    X(invalidations, "invalidations done")                                                      \
    X(puts, "puts done")                                                                        \
    X(rejected, "values rejected by the host or by their codec")                                \
    X(foreign, "keys found to hold something that is not ours")                                 \
    X(newer, "values found in a format newer than this library's")                              \
    X(timeouts, "operations that ended with timeout")                                           \
    X(cancelled, "operations that ended with cancelled")                                        \
    X(deadlocks, "calls answered would_deadlock")                                               \
    X(overloaded, "operations that ended with overloaded")                                      \
    X(breaker_opened, "times the breaker opened")                                               \
    X(commands, "commands sent to the store")                                                   \
    X(commands_lost, "commands whose reply never came")                                         \
    X(messages, "wake-up messages received")                                                    \
    X(renewals, "lease and lock renewals sent")                                                 \
    X(events, "events delivered to queues and through `now`")                                   \
    X(soft_margin_small, "values written with ttl - soft_ttl below 2 x their load time")        \
    X(locks, "locks granted")                                                                   \
    X(locks_busy, "acquires that ended because somebody else held the lock")                    \
    X(locks_lost, "locks lost while they were held")                                            \
    X(ticks, "slots of ticks won")

/* The only public struct: a snapshot. */
typedef struct stn_stats {
#define STN_STATS_FIELD(name, doc) uint64_t name;
    STN_STATS_MAP(STN_STATS_FIELD)
#undef STN_STATS_FIELD
} stn_stats;

/* Writes a snapshot; size is sizeof(stn_stats) as the caller knows it: a longer struct is filled up with zeros, a
 * shorter one gets its part. The numbers are read one by one, not at one instant. Does not block; any thread, after
 * close too. Codes: ok, any. Since 0.1. */
STN_API int32_t stn_client_stats(stn_client* client, stn_stats* out, size_t size, stn_error** err) STN_NOEXCEPT;

/* The same as a JSON object {"flights": 1, ...}; with a cache (nullable), the numbers of that cache only, those that
 * belong to the connection left out. *out belongs to the caller. Does not block; any thread. Codes: ok, any.
 * Since 0.1. */
STN_API int32_t stn_client_stats_json(stn_client* client, stn_cache* cache, stn_bytes** out,
                                      stn_error** err) STN_NOEXCEPT;

/* ==== Queue =================================================================================================== */

/* The doorbell, and what is called once when its ud is needed no more. */
typedef void (*stn_doorbell)(void* ud);
typedef void (*stn_free_ud)(void* ud);

/*
 * Makes a queue. It belongs to no client. host_scope: queues with the same number share host references (see above);
 * 0 = none. Take an address of the host's own as the number, so that two hosts in one process do not meet.
 * Read it promptly: a LEASE that waits in it for 1 s is withdrawn and offered to a caller of another queue
 * (its own caller then waits again), a REFRESH is given up. Does not block; any thread. *out belongs to the caller.
 * Codes: ok, any. Since 0.1.
 */
STN_API int32_t stn_queue_new(uint64_t host_scope, stn_queue** out, stn_error** err) STN_NOEXCEPT;

/*
 * Takes the next event, oldest first. BLOCKS until there is one, to timeout_ms (-1 = for ever, 0 = not at all). Any
 * thread; several may wait, each event goes to one. After a close it hands out what is left without waiting.
 * *out belongs to the caller.
 * Codes: ok; timeout (no event, or stn_queue_wake), closed (closed and empty: it will never hold an event again), any.
 * Since 0.1.
 */
STN_API int32_t stn_queue_next(stn_queue* q, int64_t timeout_ms, stn_event** out, stn_error** err) STN_NOEXCEPT;

/*
 * The same for up to `cap` (1 or more) events at once: BLOCKS until there is one, takes what is there, writes them to
 * evs[0 .. *n - 1], each the caller's. Codes: as stn_queue_next, with *n = 0 unless ok. Since 0.1.
 */
STN_API int32_t stn_queue_drain(stn_queue* q, size_t cap, int64_t timeout_ms, stn_event** evs, size_t* n,
                                stn_error** err) STN_NOEXCEPT;

/*
 * A descriptor for poll, epoll or an asyncio reader: readable while events wait, after a wake, and for ever after a
 * close. Then call stn_queue_next or _drain with time-out 0 until they answer timeout. Do not read,
 * write or close it; it lives until stn_queue_free. It is made at the first call (an eventfd, close-on-exec).
 * Does not block; any thread. Codes: ok, any (no_memory also if no descriptor is left). Since 0.1.
 */
STN_API int32_t stn_queue_fd(stn_queue* q, int32_t* fd, stn_error** err) STN_NOEXCEPT;

/*
 * Sets the doorbell, for hosts that are woken by a call: fn(ud) when an event arrives in a queue that was seen empty
 * (answered timeout, or was drained with room left) since the last ring; once, until it is seen empty again. It rings
 * in this call if events wait already. fn runs on any thread, inside one of the caller's own stn_ calls too; it
 * should only pass the signal on, and may call any function that does not block, but not this one.
 * After stn_queue_set_doorbell(q, NULL, NULL, NULL) has returned no ring is running or will start: it BLOCKS while one
 * runs. free_ud(ud) (nullable) is called once when ud is needed no more: in the call that replaces or removes the
 * doorbell; or, if the queue is freed with it, by stn_queue_free or by the thread whose ring was running then. To keep
 * stn_queue_free free of calls, remove the doorbell first. On a negative return free_ud is not called.
 * Codes: ok, would_deadlock (called from a ring of this queue), any. Since 0.1.
 */
STN_API int32_t stn_queue_set_doorbell(stn_queue* q, stn_doorbell fn, void* ud, stn_free_ud free_ud,
                                       stn_error** err) STN_NOEXCEPT;

/*
 * Promises that whoever begins an operation for this queue then waits for its event, in stn_queue_next or _drain, before
 * he does anything else. In return nothing is handed to the library's own thread: an operation may begin only in that
 * call, and while he is the only one who waits for this client, its IO is done there, on his thread. So a blocking call
 * of a host's own, made of an operation and stn_queue_next, costs what one of the library's costs (a GET from a store on
 * the same machine about half). Doorbells of other queues may ring inside that call. What the library begins by itself
 * (renewals, time-outs, reconnecting, notices) needs nobody. For good; call it before the queue is used. Do not use it
 * for a queue that is read by its descriptor or its doorbell: there, an operation may never begin.
 * Does not block; any thread. Codes: ok, any. Since 0.1.
 */
STN_API int32_t stn_queue_set_sync(stn_queue* q, stn_error** err) STN_NOEXCEPT;

/* Lets one thread that waits in stn_queue_next or _drain, or the next that would, return timeout at once; makes the
 * descriptor readable until then. Does not ring. Does not block; any thread. Codes: ok, any.
 * Since 0.1. */
STN_API int32_t stn_queue_wake(stn_queue* q) STN_NOEXCEPT;

/*
 * Cancels an operation of this queue by its op. Its terminal event becomes ERROR `cancelled`, or stays the outcome if
 * that was decided already (a LEASE then waits in the queue: free the event and the next waiter gets it). Others who
 * wait for the same key are not disturbed; a put or invalidation that was sent may still be applied. A number whose
 * operation has ended, or that never was, is ignored. Does not block; any thread. Codes: ok, any. Since 0.1.
 */
STN_API int32_t stn_cancel(stn_queue* q, uint64_t op) STN_NOEXCEPT;

/*
 * Closes the queue: its operations on all clients are cancelled, a LEASE or FLIGHT unread in it is given up (the next
 * waiter gets it), and everything unread becomes ERROR `closed` with its tag and host_ref, to be read as before. New
 * operations on it answer `closed`. A lease already taken stays good. Legal from any thread, also while others wait in
 * it; does not block. A second close does nothing. Codes: ok, any. Since 0.1.
 */
STN_API int32_t stn_queue_close(stn_queue* q, stn_error** err) STN_NOEXCEPT;

/* Closes if need be, drops what is unread (host references in it are not counted down: read the queue to its end
 * first if you use them), closes the descriptor. No thread may be waiting in it. Since 0.1. */
STN_API void stn_queue_free(stn_queue* q) STN_NOEXCEPT;

/* ==== Event =================================================================================================== */

/* Kinds; T = terminal. Numbers are fixed. */
enum stn_event_kind {
    STN_EVENT_VALUE = 1,      /* T the value: bytes, codec, ages, flags */
    STN_EVENT_ABSENT = 2,     /* T there is no such thing (status absent) */
    STN_EVENT_LEASE = 3,      /* T load it: take the lease, then fulfil, fail or free it */
    STN_EVENT_REFRESH = 4,    /*   after VALUE, same tag: load it in the background; take the lease as above */
    STN_EVENT_FLIGHT = 5,     /* T of a group: run it: take the flight, then finish or free it */
    STN_EVENT_LOCK = 6,       /* T the lock is yours: take it, then release or free it */
    STN_EVENT_TICK = 7,       /* T the slot is yours: take the tick, run, then stn_tick_done or free it */
    STN_EVENT_DONE = 8,       /* T done; status busy of a tick or an id that somebody else has, else ok */
    STN_EVENT_FILLED = 9,     /* T what became of a fill: status ok, refused, lost, unavailable, too_large, ... */
    STN_EVENT_REVOKED = 10,   /*  the lease taken with this tag is not worth its load any more: see the reason */
    STN_EVENT_LOCK_LOST = 11, /* the lock acquired with this loss_tag is held no longer: see the reason. Once */
    STN_EVENT_NOTICE = 12,    /*   see stn_client_watch */
    STN_EVENT_ERROR = 13      /* T see stn_event_error */
};

/* Flags of VALUE and ABSENT. */
enum stn_event_flag {
    STN_ANSWER_STALE = 1,         /* past its soft expiry, marked stale, or served in place of an error */
    STN_ANSWER_SHARED = 2,        /* this caller joined a flight that another caller led */
    STN_ANSWER_SOURCE_MASK = 0xf0 /* flags & STN_ANSWER_SOURCE_MASK is one of stn_source */
};

/* Where an answer came from. */
enum stn_source {
    STN_SOURCE_NONE = 0,
    STN_SOURCE_STORE = 0x10,  /* read from the store */
    STN_SOURCE_FLIGHT = 0x20, /* loaded by this process, just now */
    STN_SOURCE_NEAR = 0x30,   /* the near cache (a later release) */
    STN_SOURCE_MEMORY = 0x40  /* a value this process still held, in place of an error or of waiting */
};

/* X(number, NAME, name, text): why, for ABSENT, REVOKED, LOCK_LOST and what is busy. (A NOTICE's reason is its STN_NOTICE_ bit.) */
#define STN_REASON_MAP(X)                                                                       \
    X(0, NONE, none, "no reason to tell")                                                       \
    X(1, MISS, miss, "ABSENT of stn_cache_get: nothing is cached, not even absence")            \
    X(2, LOST, lost, "REVOKED: the store deleted the lease or gave it to another")              \
    X(3, INVALIDATED, invalidated, "REVOKED: the key was invalidated meanwhile")                \
    X(4, MAX_LOAD, max_load, "REVOKED: the load takes longer than max_load")                    \
    X(5, CLOSED, closed, "REVOKED, LOCK_LOST: the client is closed")                            \
    X(6, UNWANTED, unwanted, "REVOKED: its caller has gone and nobody waits")                   \
    X(7, EXPIRED, expired, "LOCK_LOST: no renewal was answered before its ttl was over")        \
    X(8, DELETED, deleted, "LOCK_LOST: somebody deleted the key, or the store forgot it")       \
    X(9, STOLEN, stolen, "LOCK_LOST: somebody else's lock stands in the key")                   \
    X(10, MAX_HOLD, max_hold, "LOCK_LOST: it was held for max_hold")                            \
    X(11, NO_TTL, no_ttl, "busy: what stands in the key has no TTL and does not end by itself") \
    X(12, TAKEN, taken, "busy: the slot, or the id, was given out")                             \
    X(13, STILL_RUNNING, still_running, "busy: the run of an earlier slot goes on, and this slot is skipped")

enum stn_reason {
#define STN_REASON_ENUM(number, NAME, name, text) STN_REASON_##NAME = number,
    STN_REASON_MAP(STN_REASON_ENUM)
#undef STN_REASON_ENUM
};

/* How a value's bytes are to be read. The number travels with the value. */
enum stn_codec {
    STN_CODEC_DEFAULT = -1, /* in a call: the cache's */
    STN_CODEC_RAW = 0,      /* bytes */
    STN_CODEC_JSON = 1,     /* strict UTF-8 JSON, for every language; not checked here */
    STN_CODEC_PRIVATE = 2   /* a format of one language or program */
};

/* Getters of an event: none blocks, any thread, results borrowed from `event`. Since 0.1. */

/* One of stn_event_kind; 0 for NULL. */
STN_API int32_t stn_event_kind(const stn_event* event) STN_NOEXCEPT;
/* The tag of the operation, or of the subscription, it belongs to. */
STN_API uint64_t stn_event_tag(const stn_event* event) STN_NOEXCEPT;
/* STN_OK, or: absent of ABSENT, the error's code of ERROR, the outcome of FILLED, ok or busy of DONE, lost of LOCK_LOST,
 * see stn_notice for NOTICE. */
STN_API int32_t stn_event_status(const stn_event* event) STN_NOEXCEPT;
/* Bits of stn_event_flag and stn_source. */
STN_API uint32_t stn_event_flags(const stn_event* event) STN_NOEXCEPT;
/* One of stn_reason; of NOTICE one of stn_notice. */
STN_API int32_t stn_event_reason(const stn_event* event) STN_NOEXCEPT;
/* Of VALUE, one of stn_codec; else -1. Of a group's VALUE always raw. */
STN_API int32_t stn_event_codec(const stn_event* event) STN_NOEXCEPT;
/* The bytes of VALUE, the text of NOTICE or the object of stn_client_ready's DONE, with their number in *n (nullable).
 * Never NULL for these, even if empty; NULL and 0 for the others. Not NUL-terminated. */
STN_API const void* stn_event_bytes(const stn_event* event, size_t* n) STN_NOEXCEPT;
/* Of VALUE and ABSENT of a cache: ms since it was loaded, by the store's clock; -1 if unknown. */
STN_API int64_t stn_event_age_ms(const stn_event* event) STN_NOEXCEPT;
/* Of VALUE and ABSENT of a cache: ms to its soft expiry, 0 if that has passed; -1 if it has none. (The hard expiry is
 * kept by the store and not told with the value.) Of VALUE of stn_lock_inspect: ms the lock lasts, -1: for ever. Of DONE
 * busy of a tick: ms to the next slot (reason taken), or until the run counts as dead (still_running). */
STN_API int64_t stn_event_ttl_left_ms(const stn_event* event) STN_NOEXCEPT;
/* Of VALUE: ms the load took that made it. Of LEASE and REFRESH: ms the last load took. -1 if unknown. */
STN_API int64_t stn_event_load_ms(const stn_event* event) STN_NOEXCEPT;
/* The leader's host_ref, or 0. */
STN_API uint64_t stn_event_host_ref(const stn_event* event) STN_NOEXCEPT;
/* What went wrong: of ERROR never NULL; of FILLED and NOTICE with a negative status; else NULL. */
STN_API const stn_error* stn_event_error(const stn_event* event) STN_NOEXCEPT;

/* Takes the lease out of a LEASE or REFRESH event: the caller's from now on, whatever becomes of the event. NULL if the
 * event holds none, or it was taken already, or after a fork. Does not block; any thread, once. Since 0.1. */
STN_API stn_lease* stn_event_take_lease(stn_event* event) STN_NOEXCEPT;
/* The same for the flight in a FLIGHT event. Since 0.1. */
STN_API stn_flight* stn_event_take_flight(stn_event* event) STN_NOEXCEPT;

/* The same for the lock in a LOCK event. Since 0.1. */
STN_API stn_lock* stn_event_take_lock(stn_event* event) STN_NOEXCEPT;
/* The same for the tick in a TICK event. Since 0.1. */
STN_API stn_tick* stn_event_take_tick(stn_event* event) STN_NOEXCEPT;

/* Frees an event and what was not taken out of it: a lease as by stn_lease_free, a flight as by stn_flight_free, a lock
 * as by stn_lock_free, a tick as by stn_tick_free. Since 0.1. */
STN_API void stn_event_free(stn_event* event) STN_NOEXCEPT;

/* ==== Cache and policy ======================================================================================== */

/*
 * Opens a cache: a name for a family of keys, and the policy for them. Does no input or output, does not block; any
 * thread. Opening one name twice is fine: both are the same cache in the store, each with its own policy. *out belongs
 * to the caller and keeps the client's core alive.
 *
 * options_json; the first three only here, the others also in stn_policy_new
 *     name          type      default    range             meaning
 *     "codec"       text      "raw"      raw|json|private  how values are encoded; a stored value of another codec is
 *                                                          treated as one that cannot be decoded
 *     "version"     integer   none       1 .. 2147483647   2 makes the cache "name@2": raise it when the values' model
 *                                                          changes, so that old and new programs do not fight
 *     "max_loads"   integer   none       1 .. 1,000,000    loads of this cache at one time in this client: to protect
 *                                                          a source that bears only so many
 *     "ttl"         duration  required                     hard expiry; a cache without it can get and invalidate only
 *     "soft_ttl"    duration  none       below ttl         from here on answers are STALE and one caller refreshes
 *                                                          (see STN_FETCH_REFRESH)
 *     "absent_ttl"  duration  30 s                         how long absence is cached
 *     "error_ttl"   duration  1 s        0 .. 10 years     how long a failed load is not tried again by the fleet;
 *                                                          0 = it is tried at once
 *     "jitter"      number    0.1        0 .. 1            adds U(0, ttl x jitter) to soft and hard expiry alike
 *     "early"       number    1.0        0 .. 10, 0 = off  eagerness to refresh before soft expiry (XFetch's beta)
 *     "lease"       duration  "auto"     100 ms .. 1 h     length of a lease; "auto": 3 x the usual load, 1 .. 10 s.
 *                                                          It is renewed while the load runs: rarely to be touched
 *     "wait"        duration  max(10 s,  0 .. 10 years     how long a caller waits for somebody else's load;
 *                             2 x load)                    0 = not at all
 *     "max_load"    duration  60 s                         a load older than this is given up on: its callers get
 *                                                          timeout, and another may begin
 *     "max_value"   integer   8388608    1 .. 536870912    bytes; a larger value is returned but not stored
 *     "coalesce"    boolean   true                         callers of this process join one flight
 *     "fleet"       boolean   true                         one load for the whole fleet, by lease; false: one per
 *                                                          process, one round trip fewer on a miss, and a load in
 *                                                          progress may overwrite another process's invalidation
 * Codes: ok, closed, unknown_option (names it and the nearest known one), any. Since 0.1.
 */
STN_API int32_t stn_cache_open(stn_client* client, const char* name, size_t n, const char* options_json,
                               stn_cache** out, stn_error** err) STN_NOEXCEPT;
/* Operations in progress go on. Since 0.1. */
STN_API void stn_cache_free(stn_cache* cache) STN_NOEXCEPT;

/* Makes a variant of the cache's policy: the cache's own, changed where json says so. For calls on this cache only
 * (`invalid_argument` elsewhere); NULL there means the cache's own. Does not block; any thread. *out belongs to the
 * caller and may be freed right after the last call that names it. Codes: ok, unknown_option, any. Since 0.1. */
STN_API int32_t stn_policy_new(stn_cache* cache, const char* json, stn_policy** out, stn_error** err) STN_NOEXCEPT;
/* Since 0.1. */
STN_API void stn_policy_free(stn_policy* policy) STN_NOEXCEPT;

/* ==== Fetch, get, put, invalidate ============================================================================= */

enum stn_fetch_flag {
    STN_FETCH_FORCE = 1,    /* load even if a fresh value is there, which stays readable until the new one is written */
    STN_FETCH_NO_STORE = 2, /* a hit is served; else a load for this caller alone: no joining, no lease, no write */
    STN_FETCH_REFRESH = 4   /* this caller would run a refresh: a REFRESH event may follow its VALUE */
};

enum stn_invalidate_flag {
    STN_INVALIDATE_STALE = 1 /* keep the value, as stale: readers get it while one caller refreshes */
};

/*
 * The main thing: gives the value of a key, or the duty to load it. Joins the flight for the key if one runs here;
 * else looks in the store, and on a miss asks for the lease. Does not block; any thread.
 *
 * Ends as one of
 *     VALUE    fresh, or STALE
 *     ABSENT   a cached absence
 *     LEASE    this caller loads: run the loader, then stn_lease_fulfil, _fulfil_absent or _fail. Everybody else who
 *              asks for the key, in the fleet, waits for that
 *     ERROR    load_failed (or whatever code the leader's stn_lease_fail gave), would_deadlock, overloaded (no
 *              max_loads slot came free), timeout, cancelled, closed. A store that is down is no error: callers are
 *              given leases without it, and nothing is written
 * With STN_FETCH_REFRESH a VALUE that is due for a refresh may be followed by one REFRESH event with the same tag: load
 * and answer its lease in the same way, nobody waits for it. In a flight it goes to the first caller who asked. At most
 * one caller of the fleet gets it for each generation of the value, so it may never come. If no caller of the flight
 * has the flag, no refresh lease is asked for.
 *
 * deadline_ms bounds the waiting of this caller: -1 = the policy's `wait`; 0 = the store is asked, a lease may be
 * granted, but nobody else's load is waited for. Over: a value still at hand (STALE), else timeout.
 * policy nullable; within nullable; op nullable; now nullable.
 * Codes: ok, too_large (key), would_deadlock, closed, any (also: the policy has no ttl). Since 0.1.
 */
STN_API int32_t stn_cache_fetch(stn_cache* cache, const stn_policy* policy, const void* key, size_t n,
                                int64_t deadline_ms, uint32_t flags, const stn_scope* within, stn_queue* q,
                                uint64_t tag, uint64_t* op, stn_event** now, stn_error** err) STN_NOEXCEPT;

/*
 * For a host that could not decode a VALUE event of this cache: a fetch of the same key that treats that generation of
 * the value as a miss. Any number of callers in the fleet with the same broken value make one load. The event stays
 * the caller's and may be freed after the call. A caller whose second answer is rejected too loads for itself and
 * stores nothing (STN_NOTICE_VERSION tells). All else as stn_cache_fetch with flags 0. Since 0.1.
 */
STN_API int32_t stn_cache_refetch(stn_cache* cache, const stn_policy* policy, const stn_event* undecodable,
                                  int64_t deadline_ms, const stn_scope* within, stn_queue* q, uint64_t tag,
                                  uint64_t* op, stn_event** now, stn_error** err) STN_NOEXCEPT;

/*
 * What the store may say to a get, a put or an invalidation (a fetch goes on without it). The error's message says what
 * it means and what to do; if the store answered, stn_error_server_text has its own words.
 *     UNAVAILABLE  it cannot be reached, or serves nobody now: LOADING, BUSY, CLUSTERDOWN, MASTERDOWN, READONLY,
 *                  NOREPLICAS, TRYAGAIN, max number of clients
 *     REFUSED      this command, now: OOM, MISCONF, or something unknown
 *     DENIED       by its access rules: NOAUTH, WRONGPASS, NOPERM. Not retryable
 *     UNSUPPORTED  it is too old, has the command renamed, or is a cluster (MOVED). Not retryable
 *     COLLISION    WRONGTYPE: the key holds something that is not ours. A get takes that for a miss, a put overwrites it
 *     INTERNAL     CROSSSLOT, EXECABORT: a fault inside the library
 */

/*
 * Reads the key and never loads it nor waits for a load. Does not block; any thread. deadline_ms: -1 or 0 =
 * command_timeout (and connect_timeout if need be). op and now nullable.
 * Codes: ok, too_large (key), closed, any. Events: VALUE; ABSENT (reason miss: nothing cached; else cached absence);
 * ERROR load_failed (a marker of a failed load), undecodable (another codec), timeout, cancelled, closed, or one of the
 * store's (see above). Since 0.1.
 */
STN_API int32_t stn_cache_get(stn_cache* cache, const void* key, size_t n, int64_t deadline_ms, stn_queue* q,
                              uint64_t tag, uint64_t* op, stn_event** now, stn_error** err) STN_NOEXCEPT;

/*
 * Writes a value without a lease; the last writer wins. Loads in progress for the key are detached as by an
 * invalidation, but a put is outside the invalidation promise: prefer stn_cache_invalidate. Does not block; any thread.
 * codec: STN_CODEC_DEFAULT or the cache's own. ttl_ms: -1 = the policy's, else 1 .. STN_DURATION_MAX_MS; jittered in
 * both cases. soft_ttl_ms: below the ttl; 0 = none; -1 = the policy's, or none if ttl_ms is given.
 * deadline_ms: -1 or 0 = command_timeout; until then a put is sent again if the store refused it for now, never if its
 * reply was lost. policy and op nullable.
 * Codes: ok, too_large (key, or value over max_value), closed, any (also: no ttl). Events: DONE; ERROR uncertain (the
 * reply was lost: a deletion of the key was queued), timeout, cancelled, closed, or one of the store's (see above).
 * Since 0.1.
 */
STN_API int32_t stn_cache_put(stn_cache* cache, const stn_policy* policy, const void* key, size_t n, const void* p,
                              size_t len, int32_t codec, int64_t ttl_ms, int64_t soft_ttl_ms, int64_t deadline_ms,
                              stn_queue* q, uint64_t tag, uint64_t* op, stn_error** err) STN_NOEXCEPT;

/*
 * Deletes the key's value, or with STN_INVALIDATE_STALE marks it stale; in both cases a load in progress anywhere loses
 * its lease and cannot store its result. Callers of this process who fetch after this call has returned never get the
 * old value (with STALE: never unmarked); between processes see the README. Tried again until deadline_ms (-1 = 10 s,
 * 0 = once), unless the store says what only a person can change; failure is always reported. Does not block; any
 * thread. op nullable.
 * Codes: ok, too_large (key), closed, any. Events: DONE; ERROR uncertain, timeout, cancelled, closed, or one of the
 * store's (see above) - after each of which the old value may live on to its TTL. Since 0.1.
 */
STN_API int32_t stn_cache_invalidate(stn_cache* cache, const void* key, size_t n, uint32_t flags, int64_t deadline_ms,
                                     stn_queue* q, uint64_t tag, uint64_t* op, stn_error** err) STN_NOEXCEPT;

/* ==== Lease =================================================================================================== */

/*
 * A lease is the duty to answer for one key: fulfil, fulfil_absent or fail, once, then stn_lease_free. It is renewed in
 * the background for as long as the load may take (max_load). If the load stops being worth its while one REVOKED event
 * comes to the queue that the LEASE or REFRESH event came from, with its tag; the loader may stop, or go on: callers
 * who joined in time still get its answer. The lease itself is held until it is answered or freed.
 */

enum stn_lease_state {
    STN_LEASE_LIVE = 1,    /* an answer will be stored, as far as we know */
    STN_LEASE_REVOKED = 2, /* an answer reaches those who still wait, and will not be stored */
    STN_LEASE_ENDED = 3    /* answered, or detached with nobody waiting */
};

/*
 * Answers with a value: everybody here who joined has it when this returns, the write is queued. codec, ttl_ms and
 * soft_ttl_ms as in stn_cache_put. host_ref and shared: see Host references; shared is nullable if host_ref is 0. With
 * q (nullable) one FILLED event with tag tells what became of the write, perhaps before the others have their answer.
 * Does not block; any thread. The lease is then ended, not freed.
 * Codes: ok (also if the lease was revoked), closed (q is closed; nothing was done), any (also: answered already).
 * FILLED status: ok (stored); refused (the key had changed: invalidated, or taken over); lost (the lease was revoked
 * before, or there was none; nothing was sent); unavailable (the store could not be asked, said no, a second time if
 * only for now, or its reply was lost); too_large (over max_value: others in the fleet load for themselves for 1 s).
 * Or ERROR closed. Since 0.1.
 */
STN_API int32_t stn_lease_fulfil(stn_lease* lease, const void* p, size_t len, int32_t codec, int64_t ttl_ms,
                                 int64_t soft_ttl_ms, uint64_t host_ref, stn_queue* q, uint64_t tag, uint32_t* shared,
                                 stn_error** err) STN_NOEXCEPT;

/* Answers that there is no such thing; ttl_ms -1 = the policy's absent_ttl. All else as stn_lease_fulfil. Since 0.1. */
STN_API int32_t stn_lease_fulfil_absent(stn_lease* lease, int64_t ttl_ms, uint64_t host_ref, stn_queue* q, uint64_t tag,
                                        uint32_t* shared, stn_error** err) STN_NOEXCEPT;

/*
 * Answers with an error: everybody here who joined gets ERROR with `code` (negative) and text (nullable, cut at 1,024
 * bytes). With load_failed the fleet does not try again for error_ttl and gets load_failed at once; any other code only
 * gives the lease up. A value within its hard TTL is served, STALE, in place of the error. Does not block; any thread.
 * shared is nullable if host_ref is 0. Codes: ok, any (also: answered already). Since 0.1.
 */
STN_API int32_t stn_lease_fail(stn_lease* lease, int32_t code, const char* text, uint64_t host_ref, uint32_t* shared,
                               stn_error** err) STN_NOEXCEPT;

/*
 * The caller for whom this load began has gone (its task was cancelled): how many others wait? *waiters = 0: the lease
 * is given up in the same instant, stop loading. Else go on loading for them, and answer; if they all go too, REVOKED
 * (unwanted) comes. A refresh that nobody waits for is given up. Does not block; any thread.
 * Codes: ok, any (also: answered already). Since 0.1.
 */
STN_API int32_t stn_lease_detach(stn_lease* lease, uint32_t* waiters) STN_NOEXCEPT;

/* The scope of this load, for `within`: a counted copy, the caller's, to be freed with stn_scope_free; good after
 * stn_lease_free too. NULL if out of memory or after a fork. Does not block; any thread. Since 0.1. */
STN_API stn_scope* stn_lease_scope(stn_lease* lease) STN_NOEXCEPT;

/* One of stn_lease_state, for loaders that look now and then; 0 for NULL, STN_FORKED after a fork. Does not block; any
 * thread. Since 0.1. */
STN_API int32_t stn_lease_state(const stn_lease* lease) STN_NOEXCEPT;

/* Frees the lease. Without an answer it is given up: the caller who has waited longest gets LEASE, or if nobody waits
 * the key becomes free at once. Since 0.1. */
STN_API void stn_lease_free(stn_lease* lease) STN_NOEXCEPT;

/* Since 0.1. */
STN_API void stn_scope_free(stn_scope* scope) STN_NOEXCEPT;

/* ==== The blocking form: a loader ============================================================================= */

/*
 * Reads the source and writes the result to the sink. Runs on the thread that called stn_cache_get_or_load. Returns
 * STN_OK (the sink holds the value, or absence), STN_ABSENT (the same as stn_sink_absent and STN_OK), or another
 * negative status: the load failed, as by stn_lease_fail with that code (use load_failed for a fault of the source).
 * A positive number counts as load_failed. `lease` and `sink` are borrowed while it runs: ask the lease for its state
 * and its scope (for fetches inside the loader), do not answer, detach or free it. Must not throw or longjmp.
 */
typedef int32_t (*stn_loader)(void* ud, stn_lease* lease, stn_sink* sink);

/* All five: only in the loader; none blocks. Since 0.1. */

/* Appends to the value. Codes: ok, too_large (over 512 MiB; what was written stays), any. */
STN_API int32_t stn_sink_write(stn_sink* sink, const void* p, size_t n) STN_NOEXCEPT;
/* There is no such thing; what was written is dropped. Codes: ok, any. */
STN_API int32_t stn_sink_absent(stn_sink* sink) STN_NOEXCEPT;
/* Own expiry for this result, as in stn_cache_put; of an absence, ttl_ms alone counts. Codes: ok, any. */
STN_API int32_t stn_sink_ttl(stn_sink* sink, int64_t ttl_ms, int64_t soft_ttl_ms) STN_NOEXCEPT;
/* The codec of the value, as in stn_cache_put. Codes: ok, any. */
STN_API int32_t stn_sink_codec(stn_sink* sink, int32_t codec) STN_NOEXCEPT;
/* The text of the error, should the loader return one; cut at 1,024 bytes. Codes: ok, any. */
STN_API int32_t stn_sink_error(stn_sink* sink, const char* text) STN_NOEXCEPT;

/*
 * Fetch, and if need be load, in one call. BLOCKS: for the store, for somebody else's load to deadline_ms (as in
 * stn_cache_fetch), and for its own loader, which is never interrupted. Any thread, but not a doorbell. No queue is
 * needed. loader runs at most once, here, before this returns; ud is passed to it. policy and within are nullable.
 * flags: STN_FETCH_FORCE, STN_FETCH_NO_STORE; STN_FETCH_REFRESH is `invalid_argument`: a refresh needs a queue, so
 * callers of this function are answered STALE until another caller's refresh or the hard expiry.
 * *out: on ok, VALUE or ABSENT, the caller's to free; tag 0.
 * Codes: ok; load_failed, or the code that the loader here or its leader returned; would_deadlock, overloaded, timeout,
 * too_large (key), closed, any (also: no ttl). Since 0.1.
 */
STN_API int32_t stn_cache_get_or_load(stn_cache* cache, const stn_policy* policy, const void* key, size_t n,
                                      int64_t deadline_ms, uint32_t flags, const stn_scope* within, stn_loader loader,
                                      void* ud, stn_event** out, stn_error** err) STN_NOEXCEPT;

/* ==== Group: single-flight without a cache ==================================================================== */

/*
 * Makes a group: callers of this process who ask for one key at one time share one run. Nothing is stored: once a
 * flight is finished the next caller starts another. client nullable: with one, the group closes with it, and its
 * flights count in its stats. options_json: none yet. Does not block; any thread. *out belongs to the caller.
 * Codes: ok, closed, unknown_option, any. Since 0.1.
 */
STN_API int32_t stn_group_new(stn_client* client, const char* options_json, stn_group** out,
                              stn_error** err) STN_NOEXCEPT;
/* Flights in progress go on. Since 0.1. */
STN_API void stn_group_free(stn_group* group) STN_NOEXCEPT;

/*
 * Joins the flight of a key, or leads it. If *lead is set this caller leads: it runs the work, then stn_flight_finish
 * and stn_flight_free; nothing is queued and *op is 0. Else it waits for one event:
 *     VALUE, ABSENT, ERROR   what the leader finished with (flag SHARED; host_ref)
 *     FLIGHT                 the leader gave up and this caller has waited longest: take the flight and run the work
 *     ERROR                  timeout, cancelled, would_deadlock, closed
 * deadline_ms bounds the waiting: -1 = for ever, 0 = timeout at once if another leads. Does not block; any thread.
 * within and op nullable, lead required. Codes: ok, too_large (key), would_deadlock, closed, any. Since 0.1.
 */
STN_API int32_t stn_group_join(stn_group* group, const void* key, size_t n, int64_t deadline_ms,
                               const stn_scope* within, stn_queue* q, uint64_t tag, uint64_t* op, stn_flight** lead,
                               stn_error** err) STN_NOEXCEPT;

/* Makes the next caller of the key start a flight of its own; who joined already is served as before. Does not block;
 * any thread. Codes: ok (also if none runs), too_large (key), any. Since 0.1. */
STN_API int32_t stn_group_forget(stn_group* group, const void* key, size_t n, stn_error** err) STN_NOEXCEPT;

/*
 * Ends a flight: everybody who joined has the outcome when this returns. code STN_OK: VALUE with the bytes; STN_ABSENT:
 * ABSENT; another negative status: ERROR, the bytes being its text (UTF-8, cut at 1,024 bytes). p NULL and len 0 are
 * fine for hosts that pass objects by host_ref; shared is nullable if that is 0. Does not block; any thread.
 * Codes: ok, any (also: finished already). Since 0.1.
 */
STN_API int32_t stn_flight_finish(stn_flight* flight, int32_t code, const void* p, size_t len, uint64_t host_ref,
                                  uint32_t* shared, stn_error** err) STN_NOEXCEPT;

/* The caller for whom this flight began has gone; *waiters = 0: the flight is over in the same instant, stop the work.
 * Else go on for them. No REVOKED follows if they all go too. Does not block; any thread. Codes: ok, any (also:
 * finished already). Since 0.1. */
STN_API int32_t stn_flight_detach(stn_flight* flight, uint32_t* waiters) STN_NOEXCEPT;

/* As stn_lease_scope. Since 0.1. */
STN_API stn_scope* stn_flight_scope(stn_flight* flight) STN_NOEXCEPT;

/* Frees the flight. Unfinished, it is given up: the caller who has waited longest gets FLIGHT. Since 0.1. */
STN_API void stn_flight_free(stn_flight* flight) STN_NOEXCEPT;

/* ==== Locks =================================================================================================== */

/*
 * A lock is a key in the store that carries a token. It is best-effort coordination, not consensus: with one primary and
 * no failover, restart, eviction, flush, foreign DEL, clock step or paused virtual machine, and clocks that run alike to
 * 1 %, at most one holder of a name has stn_lock_held() true at any moment. Effects that must not happen twice are
 * protected by the database: pass stn_lock_fence() along (`UPDATE ... WHERE id = :id AND fence <= :fence`). Fences of one
 * name increase from grant to grant as long as the store's clock does not step back.
 *
 * Every outcome has three values: it is so, it is not so, or nobody knows (`uncertain`). A reply that is lost is resolved
 * by asking again with the same token. Whoever gives up (deadline, cancel, close) has the lock released behind its
 * acquire, on the same connection: never is a key left behind that nobody holds, beyond one ttl.
 *
 * options_json
 *     name        type      default   range                 meaning
 *     "ttl"       duration  required  10 ms .. 10 years     a holder that has died blocks others for that long at most
 *     "wait"      duration  10 s      0 .. 10 years, or     how long to wait for it; 0: a try, which ends after one
 *                                     "forever"             answer of the store
 *     "renew"     boolean   true                            kept for as long as it is held, by a thread of the library
 *     "max_hold"  duration  none      1 ms .. 10 years      then it is lost (reason max_hold) and released: for holders
 *                                                           that may hang
 *     "label"     text      none      at most 64 bytes      shown to whoever inspects the key, "host:pid" for example
 *     "key"       text      none      a key                 the store's key itself, for locks shared with programs that
 *                                                           use `SET key token NX PX`; the name is then only a name
 */

/* Reads options once, for many acquires. Does not block; any thread. *out belongs to the caller and may be freed right
 * after the last call that names it. Codes: ok, unknown_option, any. Since 0.1. */
STN_API int32_t stn_lock_policy_new(const char* json, stn_lock_policy** out, stn_error** err) STN_NOEXCEPT;
/* Since 0.1. */
STN_API void stn_lock_policy_free(stn_lock_policy* policy) STN_NOEXCEPT;

/*
 * Asks for the lock of that name (1 .. 1,024 bytes of any kind). Not re-entrant: whoever holds it waits for himself, or
 * with `within` is told would_deadlock. Waiters of one client are served first come first served and only the first asks
 * the store; between processes who has waited longest tries first, which is no promise. Does not block; any thread.
 * Exactly one of options_json and policy is given. deadline_ms: -1 = the policy's `wait`, 0 = a try; it bounds everything, connecting too. within nullable; loss_q
 * nullable: without it a loss is told by stn_lock_state and stn_lock_wait_lost only; op nullable.
 * Codes: ok, too_large (name), unknown_option, closed, any.
 * Events:
 *     LOCK         it is yours
 *     ERROR        busy         somebody else holds it (reason no_ttl: and what stands there does not end by itself); a
 *                               try is also busy, and asks nobody, if somebody of this client holds it or waits for it
 *                  uncertain    the store did not answer in time, and may hold this acquire's token at this moment; its
 *                               release is on the way
 *                  unavailable  the store cannot be reached, or does no work now (LOADING, ...), or is full
 *                  collision    the key holds a list, hash or the like
 *                  denied, unsupported, internal  see "What the store may say" above
 *                  overloaded   max_waiters callers wait for locks already
 *                  would_deadlock, cancelled, closed
 * and, once, to loss_q, if it is lost while it is held:
 *     LOCK_LOST    status lost, reason expired, deleted, stolen, max_hold or closed. Not after stn_lock_release, whose own
 *                  event tells then
 * Since 0.1.
 */
STN_API int32_t stn_lock_acquire(stn_client* client, const void* name, size_t n, const char* options_json,
                                 const stn_lock_policy* policy, int64_t deadline_ms, const stn_scope* within,
                                 stn_queue* q, uint64_t tag, stn_queue* loss_q, uint64_t loss_tag, uint64_t* op,
                                 stn_error** err) STN_NOEXCEPT;

enum stn_lock_state {
    STN_LOCK_HELD = 1,
    STN_LOCK_RELEASED = 2, /* stn_lock_release was called */
    STN_LOCK_LOST = 3,     /* see stn_lock_loss. Final: nothing makes it held again */
    STN_LOCK_LEFT = 4      /* stn_lock_leave was called */
};

/* Getters of a lock: none blocks, asks nobody, any thread. In a fork child it is not held. Since 0.1. */

/* 1: surely held at this moment, by the local clock alone; 0: not, or not surely. Ask before each effect. */
STN_API int32_t stn_lock_held(const stn_lock* lock) STN_NOEXCEPT;
/* For how long it is surely held if nothing more is heard of the store; 0: it is not. */
STN_API int64_t stn_lock_remaining_ms(const stn_lock* lock) STN_NOEXCEPT;
/* A number that is larger for every later grant of this name; below 2^53. */
STN_API int64_t stn_lock_fence(const stn_lock* lock) STN_NOEXCEPT;
/* The token as 32 hexadecimal digits, as stn_lock_inspect shows it; borrowed from `lock`, never NULL. */
STN_API const char* stn_lock_token(const stn_lock* lock) STN_NOEXCEPT;
/* One of stn_lock_state; 0 for NULL, STN_FORKED in a fork child. */
STN_API int32_t stn_lock_state(const stn_lock* lock) STN_NOEXCEPT;
/* Of a lost lock: a stn_reason; else STN_REASON_NONE. */
STN_API int32_t stn_lock_loss(const stn_lock* lock) STN_NOEXCEPT;

/* Waits until it is held no longer, whyever (see stn_lock_state): BLOCKS, up to timeout_ms (-1 = for ever). Any thread;
 * another may release it meanwhile. Codes: ok; timeout (it is held), forked, any. Since 0.1. */
STN_API int32_t stn_lock_wait_lost(stn_lock* lock, int64_t timeout_ms, stn_error** err) STN_NOEXCEPT;

/* Renews now, with the same ttl as ever. Rarely needed: renewal goes by itself. Does not block; any thread. deadline_ms:
 * -1 = four times command_timeout. Codes: ok; lost (it is held no longer), closed, any. Events: DONE; ERROR lost,
 * not_mine (another's lock stands there), uncertain (no answer by the deadline: it may be renewed or not). Since 0.1. */
STN_API int32_t stn_lock_renew(stn_lock* lock, int64_t deadline_ms, stn_queue* q, uint64_t tag,
                               stn_error** err) STN_NOEXCEPT;

/*
 * Gives it back: not held from this moment on, nothing is renewed any more. Tried until deadline_ms (-1 = four times
 * command_timeout), and silently on until the ttl is over. Does not block; any thread. q nullable: nobody wants to know.
 * Codes: ok; lost (it is held no longer: lost, released or left already), closed, any.
 * Events: DONE; ERROR lost (it had expired or was deleted before), not_mine (another's stands there), uncertain (no
 * answer, or only a second copy's: it may have been released or not; it is not held), unavailable, or one of the store's.
 * Since 0.1.
 */
STN_API int32_t stn_lock_release(stn_lock* lock, int64_t deadline_ms, stn_queue* q, uint64_t tag,
                                 stn_error** err) STN_NOEXCEPT;

/* Forgets it: the key lives out its ttl, nobody renews or releases it. Does not block; any thread. Codes: ok; lost (it is
 * held no longer), forked, any. Since 0.1. */
STN_API int32_t stn_lock_leave(stn_lock* lock, stn_error** err) STN_NOEXCEPT;

/* Frees it; what is held is released, in the background. Since 0.1. */
STN_API void stn_lock_free(stn_lock* lock) STN_NOEXCEPT;

/*
 * Tells what stands in the lock's key: by its name, or with key_n > 0 in the store's key itself (then the name may be
 * empty). Does not block; any thread. deadline_ms: -1 or 0 = two command_timeouts. op nullable.
 * Codes: ok, too_large (name), closed, any. Events: ABSENT (it is free); VALUE, whose bytes are a JSON object
 *     {"ours":true,"token":"<32 digits>","fence":1795951382177300,"label":"...","ttl_ms":29000}
 *     {"ours":false,"ttl_ms":null}   somebody else's, of another library; ttl_ms null: it does not end by itself
 * and stn_event_ttl_left_ms the same time; ERROR timeout, collision, cancelled, closed, or one of the store's. Since 0.1.
 */
STN_API int32_t stn_lock_inspect(stn_client* client, const void* name, size_t n, const void* key, size_t key_n,
                                 int64_t deadline_ms, stn_queue* q, uint64_t tag, uint64_t* op,
                                 stn_error** err) STN_NOEXCEPT;

/* ==== Ticks and ids =========================================================================================== */

/*
 * A job that is to run once per slot of time, whoever runs it: every host asks at its own time, by its own clock, and one
 * of them gets the slot. The store's clock alone says which slot it is (UTC, shifted by `offset`), so a slot is given out
 * once however short the run is and however wrong the hosts' clocks are.
 *
 * options_json
 *     name        type      default   range              meaning
 *     "every"     duration  required  1 ms .. 10 years   how long a slot is
 *     "offset"    duration  0         below "every"      when slots begin after midnight UTC, 1970: "2h" with "24h"
 *     "at_most"   duration  every     1 ms .. 10 years   a run that tells nothing counts as dead after that: how long a
 *                                                        dead runner holds later slots up. Runs are not renewed: a living
 *                                                        one that takes longer may overlap the next
 * Does not block; any thread. deadline_ms: -1 or 0 = two command_timeouts. op nullable.
 * Codes: ok, too_large (name), unknown_option, closed, any.
 * Events:
 *     TICK         the slot is yours: run, then stn_tick_done
 *     DONE         status busy, reason taken (the slot was given out) or still_running (the run of an earlier slot goes
 *                  on: this slot is skipped unless it ends in time); stn_event_ttl_left_ms says for how long
 *     ERROR        uncertain (no answer in time; the slot is given back if it was given), unavailable, collision (the key
 *                  holds something else), cancelled, closed, or one of the store's
 * Since 0.1.
 */
STN_API int32_t stn_tick_acquire(stn_client* client, const void* name, size_t n, const char* options_json,
                                 int64_t deadline_ms, stn_queue* q, uint64_t tag, uint64_t* op,
                                 stn_error** err) STN_NOEXCEPT;

/* Getters of a tick: none blocks, any thread. Since 0.1. */

/* When its slot began, ms since the epoch by the store's clock. */
STN_API int64_t stn_tick_slot_ms(const stn_tick* tick) STN_NOEXCEPT;
/* As stn_lock_fence. */
STN_API int64_t stn_tick_fence(const stn_tick* tick) STN_NOEXCEPT;
/* As stn_lock_token. */
STN_API const char* stn_tick_token(const stn_tick* tick) STN_NOEXCEPT;

/*
 * Ends the run. ok not 0: the slot stays used; 0: it failed, and another host may take the slot again. Tried until
 * deadline_ms (-1 = four times command_timeout). Does not block; any thread; once. q nullable: nobody wants to know.
 * Codes: ok; lost (it was ended already), closed, any. Events: DONE; ERROR lost (the run took longer than at_most, and
 * was forgotten or is another's by now), uncertain, unavailable, or one of the store's. Since 0.1.
 */
STN_API int32_t stn_tick_done(stn_tick* tick, int32_t ok, int64_t deadline_ms, stn_queue* q, uint64_t tag,
                              stn_error** err) STN_NOEXCEPT;

/* Frees it; a run that was not ended has failed, as by stn_tick_done(tick, 0). Since 0.1. */
STN_API void stn_tick_free(stn_tick* tick) STN_NOEXCEPT;

/*
 * Claims an id (1 .. 1,024 bytes) for ttl_ms: the first claimant until then gets ok, all others busy; for work that is
 * announced more than once. The claim cannot be given back. Does not block; any thread. ttl_ms: 1 ..
 * STN_DURATION_MAX_MS. deadline_ms: -1 or 0 = two command_timeouts. op nullable.
 * Codes: ok, too_large (id), closed, any. Events: DONE, status ok or busy (reason taken); ERROR uncertain (no answer in
 * time; the claim is taken back if it was made), unavailable, collision, cancelled, closed, or one of the store's.
 * Since 0.1.
 */
STN_API int32_t stn_once(stn_client* client, const void* id, size_t n, int64_t ttl_ms, int64_t deadline_ms,
                         stn_queue* q, uint64_t tag, uint64_t* op, stn_error** err) STN_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* STANCHION_STANCHION_H */
