/* coding.c - see coding.h. RFC 8878, read by libzstd.
 *
 * The official Python SDK compresses bodies from 1,024 bytes on where its Python can (3.14, or an
 * extra package), and takes no refusal for an answer. What it sends is one frame that states its
 * size; of that form the memory is known before anything is decoded, and no window is needed. So
 * other forms, which the RFC has too, are refused, and so are the formats before it, which libzstd
 * may have been built to read as well. */
#include "server/coding.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

static clef_status broken(clef_error *err) {
    return clef_fail(err, CLEF_ERR_INPUT, "no zstd frame, or a broken one");
}

clef_status coding_size(size_t *out, str coded, clef_error *err) {
    static const char magic[] = {0x28, (char)0xB5, 0x2F, (char)0xFD};
    if (coded.n < sizeof magic || memcmp(coded.p, magic, sizeof magic) != 0) return broken(err);
    const size_t frame = ZSTD_findFrameCompressedSize(coded.p, coded.n);
    if (ZSTD_isError(frame)) return broken(err);
    if (frame < coded.n)
        return clef_fail(err, CLEF_ERR_INPUT, "%zu bytes behind the zstd frame, wanted none",
                         coded.n - frame);
    const unsigned long long size = ZSTD_getFrameContentSize(coded.p, coded.n);
    if (size == ZSTD_CONTENTSIZE_ERROR) return broken(err);
    if (size == ZSTD_CONTENTSIZE_UNKNOWN)
        return clef_fail(err, CLEF_ERR_INPUT, "a zstd frame that does not state its size");
    *out = size > SIZE_MAX ? SIZE_MAX : (size_t)size;
    return CLEF_OK;
}

clef_status coding_decode(buf *out, size_t size, str coded, clef_error *err) {
    size_t cap;
    if (!size_add(&cap, size, 1)) return clef_fail_memory(err);
    char *text = malloc(cap);
    if (text == NULL) return clef_fail_memory(err);
    const size_t got = ZSTD_decompress(text, size, coded.p, coded.n);
    if (ZSTD_isError(got) || got != size) {
        free(text);
        return ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation ? clef_fail_memory(err)
                                                                      : broken(err);
    }
    text[size] = '\0';
    *out = (buf){.p = text, .n = size, .cap = cap};
    return CLEF_OK;
}
