/* SPDX-License-Identifier: MIT */
/* What the programs of this folder share: they print one line per promise and `N passed, M failed` at the end. */
#ifndef STN_TESTS_ABI_CHECK_H
#define STN_TESTS_ABI_CHECK_H

#include <stdio.h>
#include <stdlib.h>

static int passed_promises;
static int failed_promises;

static void promise(int kept, const char* what, const char* file, int line) {
    if (kept) {
        ++passed_promises;
        printf("ok      %s\n", what);
    } else {
        ++failed_promises;
        printf("FAILED  %s (%s:%d)\n", what, file, line);
    }
    fflush(stdout);
}

#define PROMISE(kept, what) promise((kept) ? 1 : 0, what, __FILE__, __LINE__)

static int finish(void) {
    printf("%d passed, %d failed\n", passed_promises, failed_promises);
    return failed_promises == 0 ? 0 : 1;
}

#endif
