/* buf.h - growable bytes with a sticky failure: writers append freely and ask once at the end. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/status.h"
#include "base/str.h"

/* {0} is an empty buffer. `p` is zero-terminated after the last byte whenever it is not NULL. */
typedef struct {
    char *p;
    size_t n, cap;
    bool failed; /* memory ran out; the content is then incomplete and must not be used */
} buf;

void buf_add(buf *b, const void *bytes, size_t n);
void buf_add_str(buf *b, str s);
void buf_add_text(buf *b, const char *zero_terminated);
void buf_add_char(buf *b, char c);
void buf_printf(buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends untrusted text so that it cannot steer a terminal or hide: characters that utf8.h calls
 * unsafe and bytes that are no UTF-8 come out as \u{1b} or \x{ff}, a backslash as two. */
void buf_add_safe(buf *out, str text);

/* CLEF_ERR_MEMORY when any append since {0} failed. */
clef_status buf_status(const buf *b, clef_error *err);

/* Hands over the zero-terminated bytes (never NULL unless the buffer failed), to be freed with
 * free(); the buffer is empty afterwards. */
char *buf_take(buf *b);
void buf_free(buf *b);

#endif
