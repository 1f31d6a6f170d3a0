/* status.c - formats the one sentence of an error.
 *
 * The trap: names from files and requests go into the sentence, so it may hold any byte. What
 * leaves here is valid UTF-8 on one line, because it is printed and put into JSON as it is. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* Copies `in` into err->text, escaping what may not be printed. */
static void set_text(clef_error *err, const char *in, size_t n) {
    const size_t room = sizeof err->text - sizeof "...";
    size_t used = 0, at = 0;
    while (at < n) {
        uint32_t point = 0;
        const size_t width = utf8_decode(&point, in + at, n - at);
        char piece[8];
        size_t piece_n = width;
        if (width == 0 || utf8_is_unsafe(point)) {
            const size_t bytes = width == 0 ? 1 : width;
            piece_n = (size_t)snprintf(piece, sizeof piece, "\\x%02x", (unsigned char)in[at]);
            at += 1;
            if (bytes > 1) { /* all its bytes are escaped in turn */
                for (size_t i = 1; i < bytes && used + piece_n <= room; i++) {
                    memcpy(err->text + used, piece, piece_n);
                    used += piece_n;
                    piece_n =
                        (size_t)snprintf(piece, sizeof piece, "\\x%02x", (unsigned char)in[at]);
                    at += 1;
                }
            }
        } else {
            memcpy(piece, in + at, width);
            at += width;
        }
        if (used + piece_n > room) {
            memcpy(err->text + used, "...", 4);
            return;
        }
        memcpy(err->text + used, piece, piece_n);
        used += piece_n;
    }
    err->text[used] = '\0';
}

/* The names stand in parentheses because they are macros for the analyser. */
clef_status(clef_fail)(clef_error *err, clef_status status, const char *format, ...) {
    if (err == NULL) return status;
    char raw[2 * sizeof err->text];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    err->status = status;
    set_text(err, raw, n < 0 ? 0 : strlen(raw));
    return status;
}

clef_status(clef_fail_memory)(clef_error *err) {
    return clef_fail(err, CLEF_ERR_MEMORY, "out of memory");
}
