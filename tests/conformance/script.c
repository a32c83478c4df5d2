// SPDX-License-Identifier: MIT
#include "script.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct buffer {
    char* text;
    size_t size;
    size_t room;
};

static void put(struct buffer* b, char c) {
    if (b->size + 1 >= b->room) {
        b->room = b->room ? b->room * 2 : 64;
        b->text = realloc(b->text, b->room);
        if (!b->text) abort();
    }
    b->text[b->size++] = c;
    b->text[b->size] = '\0';
}

static bool read_line(FILE* file, struct buffer* b) {
    int c = getc(file);
    if (c == EOF) return false;
    for (; c != EOF && c != '\n'; c = getc(file)) put(b, (char)c);
    return true;
}

static int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

// "text", "text"*3; \" \\ \n \xHH
static const char* read_quoted(const char** at, struct buffer* out) {
    const char* p = *at + 1;
    for (; *p != '"'; ++p) {
        if (*p == '\0') return "a text without its closing quote";
        if (*p != '\\') {
            put(out, *p);
            continue;
        }
        ++p;
        if (*p == '"' || *p == '\\') {
            put(out, *p);
        } else if (*p == 'n') {
            put(out, '\n');
        } else if (*p == 'x' && hex(p[1]) >= 0 && hex(p[2]) >= 0) {
            put(out, (char)(hex(p[1]) * 16 + hex(p[2])));
            p += 2;
        } else {
            return "an escape that is none of \\\" \\\\ \\n \\xHH";
        }
    }
    ++p;
    if (*p == '*') {
        char* end = NULL;
        const long times = strtol(p + 1, &end, 10);
        if (end == p + 1 || times < 1 || times > 100000) return "a text times what?";
        p = end;
        const size_t once = out->size;
        for (long i = 1; i < times; ++i) {
            for (size_t j = 0; j < once; ++j) put(out, out->text[j]);
        }
    }
    *at = p;
    return NULL;
}

// {...} up to the brace that closes it; braces inside its texts do not count.
static const char* read_braced(const char** at, struct buffer* out) {
    const char* p = *at;
    int depth = 0;
    bool text = false;
    for (;; ++p) {
        if (*p == '\0') return "a brace that is not closed";
        put(out, *p);
        if (text && *p == '\\' && p[1] != '\0') {
            put(out, *++p);
        } else if (*p == '"') {
            text = !text;
        } else if (!text && *p == '{') {
            ++depth;
        } else if (!text && *p == '}' && --depth == 0) {
            break;
        }
    }
    *at = p + 1;
    return NULL;
}

static const char* cut(struct step* step) {
    for (const char* p = step->source;;) {
        while (*p == ' ') ++p;
        if (*p == '\0' || *p == '#') return NULL;
        if (step->count == STEP_WORDS) return "too many words";
        struct buffer b = {NULL, 0, 0};
        const char* fault = NULL;
        const bool quoted = *p == '"';
        if (quoted) {
            put(&b, '\0'); // an empty text has a buffer too
            b.size = 0;
            fault = read_quoted(&p, &b);
        } else if (*p == '{') {
            fault = read_braced(&p, &b);
        } else {
            while (*p != ' ' && *p != '\0') put(&b, *p++);
        }
        struct word* w = &step->words[step->count++];
        *w = (struct word){b.text, b.size, quoted, false};
        if (fault) return fault;
        if (*p != ' ' && *p != '\0') return "no blank after a word";
    }
}

bool step_read(FILE* file, int* line, struct step* step, const char** fault) {
    *fault = NULL;
    for (;;) {
        struct buffer b = {NULL, 0, 0};
        if (!read_line(file, &b)) return false;
        ++*line;
        const char* p = b.text ? b.text : "";
        while (*p == ' ') ++p;
        if (*p == '\0' || *p == '#') {
            free(b.text);
            continue;
        }
        memset(step, 0, sizeof *step);
        step->line = *line;
        step->source = b.text;
        *fault = cut(step);
        step->arrow = step->count;
        for (size_t i = 0; i < step->count; ++i) {
            if (!word_is(&step->words[i], "->")) continue;
            step->words[i].used = true;
            step->arrow = i + 1;
            break;
        }
        return true;
    }
}

void step_free(struct step* step) {
    for (size_t i = 0; i < step->count; ++i) free(step->words[i].text);
    free(step->source);
    memset(step, 0, sizeof *step);
}

bool word_is(const struct word* word, const char* text) {
    return word && word->text && !word->quoted && strcmp(word->text, text) == 0;
}

static struct word* next_unused(struct step* step, size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) {
        if (!step->words[i].used) return &step->words[i];
    }
    return NULL;
}

static struct word* take(struct word* word) {
    if (word) word->used = true;
    return word;
}

struct word* step_operand(struct step* step) {
    return take(next_unused(step, 0, step->arrow));
}

static bool is_option(const struct word* w) {
    if (w->quoted || !islower((unsigned char)w->text[0])) return false;
    return w->text[strspn(w->text, "abcdefghijklmnopqrstuvwxyz_")] == '=';
}

struct word* step_optional(struct step* step) {
    struct word* w = next_unused(step, 0, step->arrow);
    return w && !is_option(w) ? take(w) : NULL;
}

const char* step_option(struct step* step, const char* name) {
    const size_t n = strlen(name);
    for (size_t i = 0; i < step->count; ++i) {
        struct word* w = &step->words[i];
        if (w->used || w->quoted || strncmp(w->text, name, n) != 0 || w->text[n] != '=') continue;
        w->used = true;
        return w->text + n + 1;
    }
    return NULL;
}

bool step_flag(struct step* step, const char* name) {
    for (size_t i = 0; i < step->count; ++i) {
        if (step->words[i].used || !word_is(&step->words[i], name)) continue;
        step->words[i].used = true;
        return true;
    }
    return false;
}

const char* step_as(struct step* step) {
    for (size_t i = 0; i + 1 < step->arrow; ++i) {
        if (step->words[i].used || !word_is(&step->words[i], "as")) continue;
        step->words[i].used = step->words[i + 1].used = true;
        return step->words[i + 1].text;
    }
    return NULL;
}

struct word* step_promise(struct step* step) {
    return take(next_unused(step, step->arrow, step->count));
}

const struct word* step_unused(const struct step* step) {
    for (size_t i = 0; i < step->count; ++i) {
        if (!step->words[i].used) return &step->words[i];
    }
    return NULL;
}
