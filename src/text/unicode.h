/* unicode.h - what the tokenizer asks about characters: the class of one, and NFC of a text. All
 * text here is valid UTF-8; utf8_check has been asked before. */
#ifndef TEXT_UNICODE_H
#define TEXT_UNICODE_H

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "text/unicode_tables.h"

/* Classes of the split patterns, from the general categories of Unicode 16.0. */
typedef enum {
    CLASS_OTHER, /* punctuation, symbols, controls, unassigned */
    CLASS_LETTER,
    CLASS_MARK,
    CLASS_NUMBER,
    CLASS_SPACE,  /* white space other than the next */
    CLASS_NEWLINE /* U+000A, U+000D */
} char_class;

static inline char_class unicode_class(uint32_t point) {
    return (char_class)
        unicode_class_blocks[(uint32_t)unicode_class_index[point >> 7] << 7 | (point & 127)];
}

/* The code point at p and, in *width, its bytes. Faster than utf8_decode because it trusts p. */
static inline uint32_t unicode_point(const char *p, size_t *width) {
    const unsigned char *u = (const unsigned char *)p;
    if (u[0] < 0x80) {
        *width = 1;
        return u[0];
    }
    if (u[0] < 0xE0) {
        *width = 2;
        return (u[0] & 0x1Fu) << 6 | (u[1] & 0x3Fu);
    }
    if (u[0] < 0xF0) {
        *width = 3;
        return (u[0] & 0x0Fu) << 12 | (u[1] & 0x3Fu) << 6 | (u[2] & 0x3Fu);
    }
    *width = 4;
    return (u[0] & 0x07u) << 18 | (u[1] & 0x3Fu) << 12 | (u[2] & 0x3Fu) << 6 | (u[3] & 0x3Fu);
}

/* True when a quick look proves that `text` is in NFC already; false when it may not be. */
bool unicode_is_nfc(str text);

/* Appends the NFC form of `text`, with the data of Unicode 9.0. Linear in the length for any text.
 * On failure (memory alone) what was appended must not be used. */
clef_status unicode_nfc(buf *out, str text, clef_error *err);

#endif
