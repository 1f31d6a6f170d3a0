/* json_fuzz.c - any bytes as JSON. What parses and is written in the answer style parses again to
 * an equal tree; the prompt style is a fixed point of itself; every offset lies inside the text and
 * points at the value; a refusal names an offset inside the text, in valid UTF-8. */
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/utf8.h"
#include "text/pyjson.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const json_limits LIMITS = {.max_depth = 200, .allow_nonfinite = true};

static void hold(bool property, const char *words) {
    if (property) return;
    fprintf(stderr, "json_fuzz: not so: %s\n", words);
    abort();
}

static void check_refusal(const clef_error *err, size_t n) {
    static const char begin[] = "fuzz: byte ";
    hold(strncmp(err->text, begin, sizeof begin - 1) == 0, "a refusal names an offset");
    hold(strtoull(err->text + sizeof begin - 1, NULL, 10) <= n, "the offset lies inside the text");
    const size_t length = strlen(err->text);
    hold(utf8_check(err->text, length) == length, "the sentence is valid UTF-8");
}

static void check_offset(const json *v, str text) {
    hold(v->at < text.n, "a value's offset lies inside the text");
    const char c = text.p[v->at];
    const bool number = c == '-' || (c >= '0' && c <= '9') || c == 'N' || c == 'I';
    const bool right[] = {
        [JSON_NULL] = c == 'n',   [JSON_FALSE] = c == 'f',  [JSON_TRUE] = c == 't',
        [JSON_NUMBER] = number,   [JSON_STRING] = c == '"', [JSON_ARRAY] = c == '[',
        [JSON_OBJECT] = c == '{',
    };
    hold(right[v->kind], "a value's offset points at it");
}

static void check_same_number(str a, str b) {
    buf x = {0}, y = {0};
    pyjson_number(&x, a);
    pyjson_number(&y, b);
    hold(x.n == y.n && memcmp(x.p, y.p, x.n) == 0, "numbers are equal after writing");
    buf_free(&x);
    buf_free(&y);
}

typedef struct {
    const json *a, *b;
} pair;

/* `a` was read from `text`, `b` from what was written of it. */
static void check_equal(const json *a, const json *b, str text) {
    pair *stack = NULL;
    size_t n = 0, cap = 0;
    stack = array_grow(stack, &cap, 1, sizeof *stack);
    hold(stack != NULL, "memory suffices");
    stack[n++] = (pair){a, b};
    while (n > 0) {
        const pair p = stack[--n];
        hold(p.a->kind == p.b->kind && p.a->n == p.b->n, "kinds and counts are equal");
        hold(str_equal(p.a->name, p.b->name), "names are equal");
        check_offset(p.a, text);
        if (p.a->kind == JSON_NUMBER)
            check_same_number(p.a->text, p.b->text);
        else
            hold(str_equal(p.a->text, p.b->text), "strings are equal");
        uint32_t children = 0;
        const json *y = p.b->first;
        for (const json *x = p.a->first; x != NULL; x = x->next, y = y->next, children++) {
            hold(y != NULL, "both have the child");
            stack = array_grow(stack, &cap, n + 1, sizeof *stack);
            hold(stack != NULL, "memory suffices");
            stack[n++] = (pair){x, y};
        }
        hold(y == NULL && children == p.a->n, "the count is that of the children");
    }
    free(stack);
}

/* Writes `v` and reads that again. */
static const json *again(buf *out, const json *v, pyjson_style style, arena *mem) {
    const json *w = NULL;
    hold(pyjson_write(out, v, style, NULL) == CLEF_OK, "what was read can be written");
    hold(json_parse(&w, (str){out->p, out->n}, "again", &LIMITS, mem, NULL) == CLEF_OK,
         "what was written can be read");
    return w;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    const str text = {(const char *)data, n};
    arena mem = {0};
    clef_error err = {0};
    const json *v = NULL;
    if (json_parse(&v, text, "fuzz", &LIMITS, &mem, &err) != CLEF_OK) {
        check_refusal(&err, n);
        arena_free(&mem);
        return 0;
    }
    buf answer = {0}, prompt = {0}, twice = {0};
    check_equal(v, again(&answer, v, PYJSON_ANSWER, &mem), text);
    again(&twice, again(&prompt, v, PYJSON_PROMPT, &mem), PYJSON_PROMPT, &mem);
    hold(prompt.n == twice.n && memcmp(prompt.p, twice.p, prompt.n) == 0,
         "the prompt style is a fixed point");
    buf_free(&answer);
    buf_free(&prompt);
    buf_free(&twice);
    arena_free(&mem);
    return 0;
}
