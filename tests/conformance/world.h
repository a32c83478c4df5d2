// SPDX-License-Identifier: MIT
#ifndef STN_CONFORMANCE_WORLD_H
#define STN_CONFORMANCE_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "script.h"
#include "stanchion/stanchion.h"

// What a running script has named, what its queues gave, and how a step fails. One script per process: all of
// it is global.

enum { EXPECT_MS = 2000, NOTHING_MS = 50, MAX_HAND = 64 };

enum kind { NOTHING, CLIENT, CACHE, POLICY, QUEUE, GROUP, LEASE, FLIGHT, EVENT, LOCK, TICK };

struct thing {
    char* name;
    enum kind kind;
    void* handle;              // NULL once it is freed
    stn_scope* scope;          // of a lease or flight, to the end of the script: naming an ended load is legal
    stn_event* hand[MAX_HAND]; // of a queue: read, but not expected yet
    size_t held;
};

struct tag {
    char* name;
    uint64_t number;
    uint64_t op;
    int begun; // operations
    int ended; // terminal events
};

struct numbered {
    int32_t number;
    const char* name;
};

extern struct step* step; // the one that runs
extern const struct numbered statuses[], reasons[], codecs[], sources[], lease_states[], lock_states[], notices[],
    events[];

// One FAILED line, then the end of the process: what the step promised did not come; the step is no step.
void stop(const char* expected, const char* format, ...) __attribute__((noreturn, format(printf, 2, 3)));
void bad_script(const char* what, const char* word) __attribute__((noreturn));

// Words of the step. `what` names the missing word.
struct word* need(struct word* word, const char* what);
struct word* operand(const char* what);
int64_t milliseconds(const char* text);
int64_t option_ms(const char* name);      // or STN_DEFAULT_MS
uint64_t option_number(const char* name); // or 0
int32_t option_codec(void);               // or STN_CODEC_DEFAULT
int32_t number_in(const struct numbered* table, const char* name);
const char* name_in(const struct numbered* table, int32_t number);

// Things and tags.
struct thing* find(const char* name, enum kind kind, const char* what);
struct thing* use(enum kind kind, const char* what);
struct thing* name_thing(const char* name, enum kind kind);
void forget_thing(void); // the last one named
void free_thing(struct thing* thing);
stn_scope* scope_of(const char* name);
struct tag* use_tag(bool make);

// What a call returned, against what follows the arrow. True if it was accepted, as it should be.
bool judge(int32_t status, stn_error* err);
void judge_number(int32_t status, stn_error* err, const char* name, uint64_t came);
void judge_texts(const char* message, struct word* (*next)(struct step*));

// Events.
int64_t clock_ms(void);
void keep(struct thing* queue, stn_event* e);
bool read_one(struct thing* queue, int64_t timeout_ms, int32_t* status); // into the hand
stn_event* await(struct thing* queue, uint64_t tag, int64_t wait_ms);    // the oldest of its tag, or NULL
const char* describe(const stn_event* e);
void check(bool fits, const stn_event* e);

// The promises that hold for every script: no answer is left that it did not expect, and after the close of all
// clients and queues every operation has had exactly one terminal event. Then frees everything.
void world_end(struct step* last);

#endif
