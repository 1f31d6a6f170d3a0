/* utf8.h - walking UTF-8: the strict decoder (no overlong forms, no surrogates, at most U+10FFFF).
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the code point at `p`, which has `n` readable bytes. Returns its length in bytes, 1 to 4,
 * or 0 when n is 0 or the bytes are no valid UTF-8; *point is set only on success. */
size_t utf8_decode(uint32_t *point, const char *p, size_t n);

/* Writes `point` (a Unicode scalar value) to `p`, which has room for 4 bytes; returns its length.
 */
size_t utf8_encode(char *p, uint32_t point);

/* The offset of the first byte that is not part of valid UTF-8, or `n` when all of it is valid. */
size_t utf8_check(const char *p, size_t n);

/* Whether a character steers a terminal, breaks the line or, unseen itself, changes how its
 * neighbours are shown: controls, line separators, directions, zero widths, tags. */
bool utf8_is_unsafe(uint32_t point);

#endif
