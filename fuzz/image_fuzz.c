/* image_fuzz.c - any bytes as a picture file, through every decoder.
 *
 * What decodes has the pixels it says, is the same when decoded again, is refused when the limit is
 * one pixel lower, and turned as its EXIF data says it holds the same pixels. What does not decode
 * has a reason that names its place. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "media/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { MAX_PIXELS = 1 << 18 };

static clef_status decode(image *out, str bytes, uint64_t max_pixels, bool rotate,
                          clef_error *err) {
    const image_options options = {
        .max_pixels = max_pixels, .exif_rotate = rotate, .where = "images[0]"};
    return image_decode(out, bytes, &options, err);
}

static uint64_t sum(const image *i) {
    uint64_t total = 0;
    for (size_t k = 0; k < (size_t)i->w * i->h * 3; k++) total += i->rgb[k];
    return total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    const str bytes = {(const char *)data, n};
    image once = {0}, again = {0}, less = {0};
    clef_error err = {0};
    const clef_status s = decode(&once, bytes, MAX_PIXELS, false, &err);
    if (s != CLEF_OK) {
        assert(s == CLEF_ERR_INPUT || s == CLEF_ERR_LIMIT || s == CLEF_ERR_UNSUPPORTED);
        assert(strncmp(err.text, "images[0]: ", 11) == 0 && once.rgb == NULL);
        assert(utf8_check(err.text, strlen(err.text)) == strlen(err.text));
        return 0;
    }
    const uint64_t pixels = (uint64_t)once.w * once.h;
    assert(pixels > 0 && pixels <= MAX_PIXELS);
    if (decode(&again, bytes, pixels, true, NULL) != CLEF_OK) abort();
    assert((again.w == once.w && again.h == once.h) || (again.w == once.h && again.h == once.w));
    assert(sum(&again) == sum(&once));
    assert(decode(&less, bytes, pixels - 1, false, NULL) == CLEF_ERR_LIMIT);
    image_free(&again);
    if (decode(&again, bytes, pixels, false, NULL) != CLEF_OK) abort();
    assert(memcmp(again.rgb, once.rgb, pixels * 3) == 0);
    image_free(&again);
    image_free(&once);
    return 0;
}
