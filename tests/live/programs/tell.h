/* SPDX-License-Identifier: MIT */
/* What the programs of these tests have in common. */
#ifndef STN_LIVE_TELL_H
#define STN_LIVE_TELL_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "stanchion/stanchion.h"

static void sleep_ms(int64_t ms) {
    struct timespec span;
    span.tv_sec = ms / 1000;
    span.tv_nsec = ms % 1000 * 1000000;
    nanosleep(&span, NULL);
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void tell(const char* what, const char* more, size_t n) {
    printf("%s%s%.*s\n", what, n == 0 ? "" : " ", (int)n, more);
    fflush(stdout);
}

static int fails(const stn_error* e) {
    tell("error", stn_error_message(e), strlen(stn_error_message(e)));
    return 1;
}

#endif /* STN_LIVE_TELL_H */
