/* buf.c - growable bytes. Capacity doubles; a failed growth is remembered, not reported, so that a
 * writer of many small pieces needs one check. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"

/* Makes room for `n` more bytes and a terminator. */
static bool reserve(buf *b, size_t n) {
    size_t need;
    if (b->failed) return false;
    if (!size_add(&need, b->n, n) || !size_add(&need, need, 1)) {
        b->failed = true;
        return false;
    }
    if (need <= b->cap) return true;
    size_t cap = b->cap < 64 ? 64 : b->cap;
    while (cap < need) cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    char *p = realloc(b->p, cap);
    if (p == NULL) {
        b->failed = true;
        return false;
    }
    b->p = p;
    b->cap = cap;
    return true;
}

void buf_add(buf *b, const void *bytes, size_t n) {
    if (!reserve(b, n)) return;
    if (n > 0) memcpy(b->p + b->n, bytes, n);
    b->n += n;
    b->p[b->n] = '\0';
}

void buf_add_str(buf *b, str s) {
    buf_add(b, s.p, s.n);
}

void buf_add_text(buf *b, const char *text) {
    buf_add(b, text, strlen(text));
}

void buf_add_char(buf *b, char c) {
    buf_add(b, &c, 1);
}

void buf_printf(buf *b, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0) b->failed = true;
    if (n >= 0 && reserve(b, (size_t)n)) {
        vsnprintf(b->p + b->n, (size_t)n + 1, format, again);
        b->n += (size_t)n;
    }
    va_end(again);
}

void buf_add_safe(buf *out, str text) {
    for (size_t at = 0; at < text.n;) {
        uint32_t point = 0;
        const size_t width = utf8_decode(&point, text.p + at, text.n - at);
        if (width == 0) {
            buf_printf(out, "\\x{%02x}", (unsigned)(unsigned char)text.p[at]);
            at++;
            continue;
        }
        if (utf8_is_unsafe(point))
            buf_printf(out, "\\u{%x}", (unsigned)point);
        else if (point == '\\')
            buf_add_text(out, "\\\\");
        else
            buf_add(out, text.p + at, width);
        at += width;
    }
}

clef_status buf_status(const buf *b, clef_error *err) {
    return b->failed ? clef_fail_memory(err) : CLEF_OK;
}

char *buf_take(buf *b) {
    reserve(b, 0);
    if (!b->failed) b->p[b->n] = '\0';
    char *p = b->failed ? NULL : b->p;
    if (b->failed) free(b->p);
    *b = (buf){0};
    return p;
}

void buf_free(buf *b) {
    free(b->p);
    *b = (buf){0};
}
