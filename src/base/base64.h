/* base64.h - the standard alphabet of RFC 4648 with padding, strictly. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/buf.h"

/* Appends the spelling of `n` bytes, 4 characters for each 3 begun. */
void base64_encode(buf *out, const void *bytes, size_t n);

/* Appends the bytes that `text` spells. False, with nothing appended, unless the text is the only
 * spelling of its bytes: padded to a multiple of 4, no blanks, no other characters, the bits beyond
 * the last byte zero. Also false, with `out` failed, when memory is exhausted. */
bool base64_decode(buf *out, str text);

#endif
