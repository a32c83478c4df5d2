// SPDX-License-Identifier: MIT
#ifndef STN_CONFORMANCE_SCRIPT_H
#define STN_CONFORMANCE_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// One step of a script: a line cut into words. Words are taken in order, options by name; `unused`
// finds what no verb wanted, so a misspelt word is never passed over in silence.

enum { STEP_WORDS = 32 };

struct word {
    char* text; // NUL-terminated, and may have NULs inside
    size_t size;
    bool quoted;
    bool used;
};

struct step {
    const char* file;
    int line;
    char* source; // the line as written, for messages
    size_t count;
    size_t arrow;                      // index of the first word after `->`, or `count`
    struct word words[STEP_WORDS + 1]; // the last is never written
};

// The next step, or false at the end. A line that is no step sets *fault, which is static.
bool step_read(FILE* file, int* line, struct step* step, const char** fault);
void step_free(struct step* step);

// Before the arrow: the next unused word, or NULL; the same if it is a plain operand.
struct word* step_operand(struct step* step);
struct word* step_optional(struct step* step);
// The value of `name=...`, or NULL; whether the bare word `name` stands there; the name after `as`.
const char* step_option(struct step* step, const char* name);
bool step_flag(struct step* step, const char* name);
const char* step_as(struct step* step);
// After the arrow: the next unused word, or NULL.
struct word* step_promise(struct step* step);

const struct word* step_unused(const struct step* step);
bool word_is(const struct word* word, const char* text);

#endif
