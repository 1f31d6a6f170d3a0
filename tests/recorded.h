/* recorded.h - the recorded JSON files of testdata/ as tests read them. A file or member that is
 * not there fails the test: a recording that is not compared proves nothing. */
#ifndef TESTS_RECORDED_H
#define TESTS_RECORDED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "text/json.h"

/* The tree of the file at `path`, in `mem`. */
static inline const json *recorded_load(arena *mem, const char *path) {
    enum { LARGEST = 64 << 20 };
    buf text = {0};
    clef_error err = {0};
    const json_limits limits = {0};
    const json *root = NULL;
    clef_status s = file_read(&text, path, LARGEST, &err);
    if (s == CLEF_OK) s = json_parse(&root, (str){text.p, text.n}, path, &limits, mem, &err);
    buf_free(&text);
    if (s != CLEF_OK) fail_msg("%s", err.text);
    return root;
}

static inline const json *recorded_get(const json *object, const char *name) {
    const json *v = json_get(object, str_of(name));
    if (v == NULL) fail_msg("the recording has no member '%s'", name);
    return v;
}

static inline str recorded_text(const json *object, const char *name) {
    const json *v = recorded_get(object, name);
    assert_int_equal(v->kind, JSON_STRING);
    return v->text;
}

static inline uint64_t recorded_count(const json *object, const char *name) {
    uint64_t value = 0;
    assert_true(json_u64(&value, recorded_get(object, name), INT64_MAX));
    return value;
}

/* The numbers of an array as float32, in `mem`; *n of them. */
static inline const float *recorded_floats(arena *mem, const json *array, uint32_t *n) {
    float *out = arena_alloc(mem, array->n, sizeof *out);
    assert_non_null(out);
    *n = 0;
    for (const json *v = array->first; v != NULL; v = v->next) {
        double value = 0;
        assert_true(json_double(&value, v));
        out[(*n)++] = (float)value;
    }
    return out;
}

static inline bool recorded_is_span(const json *pair, span found) {
    uint64_t begin = 0, end = 0;
    assert_true(pair->n == 2 && json_u64(&begin, pair->first, UINT32_MAX) &&
                json_u64(&end, pair->first->next, UINT32_MAX));
    return begin == found.begin && end == found.end;
}

/* The first index at which the ids differ from the recorded array; SIZE_MAX when they are equal. */
static inline size_t recorded_ids_differ(const json *array, const int32_t *ids, size_t n) {
    size_t i = 0;
    for (const json *v = array->first; v != NULL; v = v->next, i++) {
        uint64_t id = 0;
        assert_true(json_u64(&id, v, INT32_MAX));
        if (i >= n || ids[i] != (int32_t)id) return i;
    }
    return i == n ? SIZE_MAX : i;
}

/* Fails unless `found` is exactly `wanted`; `what` names the comparison. */
static inline void recorded_same_text(str found, str wanted, const char *what) {
    if (str_equal(found, wanted)) return;
    size_t at = 0;
    while (at < found.n && at < wanted.n && found.p[at] == wanted.p[at]) at++;
    const size_t from = at < 40 ? 0 : at - 40;
    fail_msg("%s: differs at byte %zu\n found  ...%.*s\n wanted ...%.*s", what, at,
             (int)(found.n - from < 120 ? found.n - from : 120), found.p + from,
             (int)(wanted.n - from < 120 ? wanted.n - from : 120), wanted.p + from);
}

#endif
