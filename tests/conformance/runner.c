// SPDX-License-Identifier: MIT
//
// Runs the scripts of this folder over stanchion.h; README.md describes their language. Each script runs in
// a child process of its own, under a wall-clock watchdog, so that a crash or a hang fails one script and no
// more. The child writes the number of each line it begins to a pipe: that is how the parent knows where.

#define _POSIX_C_SOURCE 200809L

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "script.h"
#include "steps.h"
#include "world.h"

enum { WATCHDOG_S = 10 };

static const char* path;

static void run_script(int progress) {
    FILE* file = fopen(path, "r");
    struct step s = {0};
    const char* fault = NULL;
    int line = 0;
    step = &s;
    s.file = path;
    if (!file) bad_script("cannot be opened:", path);
    const int first = getc(file);
    if (first != '#') bad_script("a script begins with a comment that names its promise:", path);
    ungetc(first, file);
    while (step_read(file, &line, &s, &fault)) {
        s.file = path;
        if (write(progress, &s.line, sizeof s.line) < 0) abort();
        if (fault) bad_script(fault, s.source);
        steps_run(&s);
        step_free(&s);
    }
    fclose(file);
    s.file = path;
    s.line = line;
    world_end(&s);
}

static bool passes(void) {
    int progress[2];
    if (pipe(progress) != 0) abort();
    fflush(stdout);
    const pid_t child = fork();
    if (child < 0) abort();
    if (child == 0) {
        close(progress[0]);
        alarm(WATCHDOG_S);
        run_script(progress[1]);
        exit(0); // not _exit: a leak checker has its say here
    }
    close(progress[1]);
    int line = 0;
    int seen = 0;
    while (read(progress[0], &seen, sizeof seen) == (ssize_t)sizeof seen) line = seen;
    close(progress[0]);
    int how = 0;
    if (waitpid(child, &how, 0) != child) abort();
    if (WIFSIGNALED(how) && WTERMSIG(how) == SIGALRM) {
        printf("FAILED %s:%d: expected an end, came none in %d s\n", path, line, WATCHDOG_S);
    } else if (WIFSIGNALED(how)) {
        printf("FAILED %s:%d: expected an end, came signal %d\n", path, line, WTERMSIG(how));
    } else if (WEXITSTATUS(how) > 1) {
        printf("FAILED %s:%d: expected exit code 0, came %d\n", path, line, WEXITSTATUS(how));
    }
    return WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

static int by_name(const void* a, const void* b) {
    return strcmp(*(char* const*)a, *(char* const*)b);
}

static size_t list(const char* folder, char** out, size_t room) {
    DIR* dir = opendir(folder);
    if (!dir) return 0;
    size_t n = 0;
    for (struct dirent* e = readdir(dir); e && n < room; e = readdir(dir)) {
        const size_t length = strlen(e->d_name);
        if (length < 5 || strcmp(e->d_name + length - 4, ".txt") != 0) continue;
        if (strcmp(e->d_name, "CMakeLists.txt") == 0) continue;
        out[n] = malloc(strlen(folder) + length + 2);
        if (!out[n]) abort();
        sprintf(out[n++], "%s/%s", folder, e->d_name);
    }
    closedir(dir);
    qsort(out, n, sizeof *out, by_name);
    return n;
}

int main(int argc, char** argv) {
    enum { MAX_SCRIPTS = 1024 };
    static char* scripts[MAX_SCRIPTS];
    size_t n = 0;
    if (argc < 2) {
        fprintf(stderr, "usage: %s FOLDER | SCRIPT...\n", argv[0]);
        return 2;
    }
    for (int i = 1; i < argc; ++i) {
        const size_t found = list(argv[i], scripts + n, MAX_SCRIPTS - n);
        n += found;
        if (found || n == MAX_SCRIPTS) continue;
        scripts[n] = malloc(strlen(argv[i]) + 1);
        if (!scripts[n]) abort();
        strcpy(scripts[n++], argv[i]);
    }
    int passed = 0;
    int failed = 0;
    for (size_t i = 0; i < n; ++i) {
        path = scripts[i];
        if (passes()) {
            ++passed;
            printf("ok %s\n", path);
        } else {
            ++failed;
        }
    }
    for (size_t i = 0; i < n; ++i) free(scripts[i]);
    printf("%d passed, %d failed\n", passed, failed);
    return failed || !passed ? 1 : 0;
}
