/* SPDX-License-Identifier: MIT */
/*
 * locker WHAT URL OPTIONS HOW NAME NUMBER [FILE]: a process of its own for tests of locks, ticks and ids. HOW is the JSON
 * of the lock or of the tick. It tells, one line each:
 *
 *     hold    takes the lock and keeps an eye on it for NUMBER ms (-1: until a line comes in), or until it is lost: "held TOKEN", or "none
 *             STATUS REASON"; "woke 0" or "woke 1" (held or not) when it finds that it has slept over 450 ms; "lost REASON" for each such event; then gives
 *             it back, "released STATUS", and "told N": how often a loss was told
 *     leave   takes the lock, tells "held TOKEN", and returns from main with everything open
 *     desert  the same, but first a fork child calls exit(): "child STATUS", and NUMBER ms later it returns
 *     count   takes it again and again for NUMBER ms, each time makes FILE, which must not exist, writes the fence into
 *             FILE.fence, where a smaller one must stand, and removes FILE: "counted N", or "wrong ..."
 *     run     asks for the slot every 20 ms for NUMBER ms: "ran SLOT" for each that it gets and ends
 *     hang    gets a slot and never ends it: "running SLOT FENCE"
 *     fail    gets a slot and ends it undone: "undone SLOT"
 *     once    claims the id NAME for NUMBER ms: "first" or "second"
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tell.h"

static stn_client* client;
static stn_queue* answers;
static stn_queue* losses;
static const char* how;
static const char* name;
static const char* file;
static int64_t number;
static int losses_told;

static void tell_number(const char* what, int64_t n) {
    char digits[32];
    int len = snprintf(digits, sizeof digits, "%" PRId64, n);
    tell(what, digits, (size_t)len);
}

static stn_event* next_answer(void) {
    stn_event* e = NULL;
    stn_queue_next(answers, 30000, &e, NULL);
    return e;
}

static const char* reason_name(int32_t reason) {
    switch (reason) {
#define REASON_NAME(number, NAME, name, text) \
    case STN_REASON_##NAME: return #name;
        STN_REASON_MAP(REASON_NAME)
#undef REASON_NAME
    default: return "?";
    }
}

static const char* why_none = "?";
static const char* reason_of_none = "?";

/* NULL: not now. */
static stn_lock* acquire(int64_t deadline_ms) {
    stn_event* e;
    stn_lock* lock;
    if (stn_lock_acquire(client, name, strlen(name), how, NULL, deadline_ms, NULL, answers, 0, losses, 0, NULL, NULL) !=
        STN_OK)
        return NULL;
    e = next_answer();
    lock = stn_event_take_lock(e);
    why_none = stn_status_name(stn_event_status(e));
    reason_of_none = reason_name(stn_event_reason(e));
    stn_event_free(e);
    return lock;
}

static int32_t give_back(stn_lock* lock) {
    stn_event* e;
    int32_t code = stn_lock_release(lock, -1, answers, 0, NULL);
    if (code == STN_OK) {
        e = next_answer();
        code = stn_event_status(e);
        stn_event_free(e);
    }
    stn_lock_free(lock);
    return code;
}

static void hear_losses(int64_t for_ms) {
    stn_event* e = NULL;
    while (stn_queue_next(losses, for_ms, &e, NULL) == STN_OK) {
        const char* why = reason_name(stn_event_reason(e));
        tell("lost", why, strlen(why));
        stn_event_free(e);
        ++losses_told;
        for_ms = 0;
    }
}

static int line_came(void) {
    struct pollfd in;
    in.fd = 0;
    in.events = POLLIN;
    return poll(&in, 1, 0) > 0;
}

static int hold(void) {
    stn_lock* lock = acquire(-1);
    int64_t until, seen;
    const char* end;
    if (lock == NULL) {
        printf("none %s %s\n", why_none, reason_of_none);
        return 0;
    }
    seen = now_ms();
    tell("held", stn_lock_token(lock), strlen(stn_lock_token(lock)));
    until = seen + number;
    while (losses_told == 0 && (number < 0 ? !line_came() : now_ms() < until)) {
        sleep_ms(1);
        const int64_t now = now_ms();
        const int32_t held = stn_lock_held(lock);
        if (now - seen > 450) tell_number("woke", held);
        seen = now;
        hear_losses(0);
    }
    end = stn_status_name(give_back(lock));
    tell("released", end, strlen(end));
    hear_losses(100);
    tell_number("told", losses_told);
    return 0;
}

static int leave(void) {
    stn_lock* lock = acquire(-1);
    if (lock == NULL) return 1;
    tell("held", stn_lock_token(lock), strlen(stn_lock_token(lock)));
    return 0;
}

static int desert(void) {
    stn_lock* lock = acquire(-1);
    int status = -1;
    pid_t child;
    if (lock == NULL) return 1;
    tell("held", stn_lock_token(lock), strlen(stn_lock_token(lock)));
    child = fork();
    if (child == 0) {
        alarm(20);
        exit(7);
    }
    waitpid(child, &status, 0);
    tell_number("child", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    sleep_ms(number);
    return 0;
}

/* What stood there before; -1: it is not ours to write. */
static int64_t exchange_fence(int64_t mine) {
    char path[1024];
    char digits[32] = "0";
    int64_t before;
    FILE* f;
    snprintf(path, sizeof path, "%s.fence", file);
    f = fopen(path, "r");
    if (f != NULL) {
        if (fgets(digits, sizeof digits, f) == NULL) digits[0] = '\0';
        fclose(f);
    }
    before = strtoll(digits, NULL, 10);
    f = fopen(path, "w");
    if (f == NULL) return -1;
    fprintf(f, "%" PRId64 "\n", mine);
    fclose(f);
    return before;
}

static int count(void) {
    const int64_t until = now_ms() + number;
    int64_t n = 0;
    while (now_ms() < until) {
        stn_lock* lock = acquire(500);
        int fd;
        if (lock == NULL) continue;
        /* with so much time left that no pause of the machine outlasts it */
        if (stn_lock_remaining_ms(lock) > 1000) {
            fd = open(file, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
            if (fd < 0) {
                tell("wrong", "two at once", 11);
                return 1;
            }
            if (exchange_fence(stn_lock_fence(lock)) >= stn_lock_fence(lock)) {
                tell("wrong", "fence", 5);
                return 1;
            }
            sleep_ms(1);
            close(fd);
            if (unlink(file) != 0) {
                tell("wrong", "gone", 4);
                return 1;
            }
            ++n;
        }
        give_back(lock);
    }
    tell_number("counted", n);
    return 0;
}

/* NULL: not now. */
static stn_tick* get_slot(void) {
    stn_event* e;
    stn_tick* tick;
    if (stn_tick_acquire(client, name, strlen(name), how, -1, answers, 0, NULL, NULL) != STN_OK) return NULL;
    e = next_answer();
    tick = stn_event_take_tick(e);
    stn_event_free(e);
    return tick;
}

static void end_slot(stn_tick* tick, int32_t ok) {
    if (stn_tick_done(tick, ok, -1, answers, 0, NULL) == STN_OK) stn_event_free(next_answer());
    stn_tick_free(tick);
}

static int run(void) {
    int64_t until = now_ms() + number;
    for (; now_ms() < until; sleep_ms(20)) {
        stn_tick* tick = get_slot();
        if (tick == NULL) continue;
        tell_number("ran", stn_tick_slot_ms(tick));
        sleep_ms(3);
        end_slot(tick, 1);
    }
    return 0;
}

static int one_slot(int hangs) {
    stn_tick* tick;
    char text[64];
    while ((tick = get_slot()) == NULL) sleep_ms(5);
    if (hangs) {
        int len = snprintf(text, sizeof text, "%" PRId64 " %" PRId64, stn_tick_slot_ms(tick), stn_tick_fence(tick));
        tell("running", text, (size_t)len);
        sleep_ms(INT32_MAX);
    }
    tell_number("undone", stn_tick_slot_ms(tick));
    end_slot(tick, 0);
    return 0;
}

static int once(void) {
    stn_event* e;
    if (stn_once(client, name, strlen(name), number, 5000, answers, 0, NULL, NULL) != STN_OK) return 1;
    e = next_answer();
    if (stn_event_kind(e) != STN_EVENT_DONE) return fails(stn_event_error(e));
    tell(stn_event_status(e) == STN_OK ? "first" : "second", "", 0);
    stn_event_free(e);
    return 0;
}

int main(int argc, char** argv) {
    stn_error* err = NULL;
    const char* what;
    int out;
    if (argc < 7) return 2;
    what = argv[1];
    how = argv[4];
    name = argv[5];
    number = strtoll(argv[6], NULL, 10);
    file = argc > 7 ? argv[7] : "";
    if (stn_queue_new(0, &answers, NULL) != STN_OK || stn_queue_new(0, &losses, NULL) != STN_OK) return 1;
    if (stn_client_open(argv[2], argv[3], &client, &err) != STN_OK) return fails(err);
    if (strcmp(what, "leave") == 0) return leave();
    if (strcmp(what, "desert") == 0) return desert();
    out = strcmp(what, "hold") == 0    ? hold()
          : strcmp(what, "count") == 0 ? count()
          : strcmp(what, "run") == 0   ? run()
          : strcmp(what, "once") == 0  ? once()
                                       : one_slot(strcmp(what, "hang") == 0);
    stn_client_close(client, 1000, NULL);
    return out;
}
