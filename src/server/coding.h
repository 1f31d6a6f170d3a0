/* coding.h - bodies that came compressed with zstd. */
#ifndef SERVER_CODING_H
#define SERVER_CODING_H

#include "base/buf.h"

/* The bytes that `coded` will be: it is one whole zstd frame that states them, else CLEF_ERR_INPUT.
 * Nothing is decoded yet, so the number may be a lie of any size. */
clef_status coding_size(size_t *out, str coded, clef_error *err);

/* Decodes it into *out, an empty buffer, in memory of the stated `size`. CLEF_ERR_INPUT when it is
 * broken or not of that size, CLEF_ERR_MEMORY. */
clef_status coding_decode(buf *out, size_t size, str coded, clef_error *err);

#endif
