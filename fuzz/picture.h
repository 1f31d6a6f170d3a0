/* picture.h - what holds for any bytes that are decoded as a picture.
 *
 * What decodes has the pixels it says, is the same when decoded again, is refused when the limit is
 * one pixel lower, and turned as its EXIF data says it holds the same pixels. What does not decode
 * has a reason that names its place. */
#ifndef FUZZ_PICTURE_H
#define FUZZ_PICTURE_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "media/image.h"

enum { PICTURE_MAX_PIXELS = 1 << 18 };

static inline clef_status picture_decode(image *out, str bytes, uint64_t max_pixels, bool rotate,
                                         clef_error *err) {
    const image_options options = {
        .max_pixels = max_pixels, .exif_rotate = rotate, .where = "images[0]"};
    return image_decode(out, bytes, &options, err);
}

static inline uint64_t picture_sum(const image *i) {
    uint64_t total = 0;
    for (size_t k = 0; k < (size_t)i->w * i->h * 3; k++) total += i->rgb[k];
    return total;
}

/* Aborts where the property does not hold. */
static inline void picture_check(str bytes) {
    image once = {0}, again = {0}, less = {0};
    clef_error err = {0};
    const clef_status s = picture_decode(&once, bytes, PICTURE_MAX_PIXELS, false, &err);
    if (s != CLEF_OK) {
        assert(s == CLEF_ERR_INPUT || s == CLEF_ERR_LIMIT || s == CLEF_ERR_UNSUPPORTED);
        assert(strncmp(err.text, "images[0]: ", 11) == 0 && once.rgb == NULL);
        assert(utf8_check(err.text, strlen(err.text)) == strlen(err.text));
        return;
    }
    const uint64_t pixels = (uint64_t)once.w * once.h;
    assert(pixels > 0 && pixels <= PICTURE_MAX_PIXELS);
    if (picture_decode(&again, bytes, pixels, true, NULL) != CLEF_OK) abort();
    assert((again.w == once.w && again.h == once.h) || (again.w == once.h && again.h == once.w));
    assert(picture_sum(&again) == picture_sum(&once));
    assert(picture_decode(&less, bytes, pixels - 1, false, NULL) == CLEF_ERR_LIMIT);
    image_free(&again);
    if (picture_decode(&again, bytes, pixels, false, NULL) != CLEF_OK) abort();
    assert(memcmp(again.rgb, once.rgb, pixels * 3) == 0);
    image_free(&again);
    image_free(&once);
}

/* The same for bytes that begin as files of one format do: `mark` is laid over them at `at`, so
 * that whatever the fuzzer makes goes to that format's decoder. */
static inline void picture_check_as(const uint8_t *data, size_t n, size_t at, str mark) {
    if (n < at + mark.n) return;
    char *bytes = malloc(n);
    if (bytes == NULL) abort();
    memcpy(bytes, data, n);
    memcpy(bytes + at, mark.p, mark.n);
    picture_check((str){bytes, n});
    free(bytes);
}

#endif
