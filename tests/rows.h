/* rows.h - recorded lines of tab-separated fields, as tools/parity/record_json.py writes them: in a
 * field, \xNN is a byte. */
#ifndef TESTS_ROWS_H
#define TESTS_ROWS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"

static inline unsigned rows_hex(char c) {
    assert_true((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'));
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static inline uint64_t rows_u64(str hex) {
    uint64_t value = 0;
    assert_int_equal(hex.n, 16);
    for (size_t i = 0; i < hex.n; i++) value = value << 4 | rows_hex(hex.p[i]);
    return value;
}

static inline double rows_double(str hex) {
    const uint64_t bits = rows_u64(hex);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

enum { ROWS_MAX_FIELDS = 4 };

/* Called with the unescaped fields of a line. */
typedef void rows_check(const str *field);

/* Checks every line of testdata/json/`name`, `n_fields` each; there must be at least `n_rows`. */
static inline void rows_each(const char *name, size_t n_fields, size_t n_rows, rows_check *check) {
    buf path = {0}, text = {0};
    clef_error err = {0};
    buf_printf(&path, "%sjson/%s", TESTDATA, name);
    if (file_read(&text, path.p, 16 << 20, &err) != CLEF_OK) fail_msg("%s", err.text);
    buf_free(&path);
    assert_true(n_fields <= ROWS_MAX_FIELDS);
    size_t rows = 0;
    for (char *p = text.p, *end = text.p + text.n; p < end; rows++) {
        str field[ROWS_MAX_FIELDS];
        for (size_t f = 0; f < n_fields; f++) {
            char *to = p;
            field[f].p = p;
            while (*p != '\t' && *p != '\n') {
                if (*p == '\\') {
                    *to++ = (char)(rows_hex(p[2]) << 4 | rows_hex(p[3]));
                    p += 4;
                } else {
                    *to++ = *p++;
                }
            }
            field[f].n = (size_t)(to - field[f].p);
            assert_int_equal(*p++, f + 1 == n_fields ? '\n' : '\t');
        }
        check(field);
    }
    buf_free(&text);
    assert_true(rows >= n_rows);
}

#endif
