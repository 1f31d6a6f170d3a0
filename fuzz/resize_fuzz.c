/* resize_fuzz.c - any sides through the choice of sizes and both filters.
 *
 * Chosen sides are whole blocks, inside the bounds where the bounds leave room, and are refused
 * only for their ratio, their bounds or a short side. A picture of one colour keeps it to a level,
 * one of the same size is copied, and the channels do not mix. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "media/resize.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { FACTOR = 32, TEMPORAL = 2, SIDE = 70 };

typedef struct {
    uint16_t h, w, frames;
    uint32_t min_pixels, max_pixels;
    uint8_t from_h, from_w, to_h, to_w, mode, red, green, blue;
} input;

static void check_sides(const input *in) {
    const uint32_t h = in->h + 1u, w = in->w + 1u, n = in->frames + 1u;
    const uint64_t least = in->min_pixels % (1u << 24) + 1u;
    const uint64_t most = in->max_pixels % (1u << 24) + 1u;
    uint32_t out_h = 0, out_w = 0;
    clef_status s =
        resize_image_sides(&out_h, &out_w, h, w, FACTOR, least, most, "images[0]", NULL);
    if (s == CLEF_OK) {
        assert(out_h > 0 && out_w > 0 && out_h % FACTOR == 0 && out_w % FACTOR == 0);
        assert((uint64_t)out_h * out_w <= MEDIA_MOST_PIXELS);
        const uint64_t pixels = (uint64_t)h * w;
        if (h % FACTOR == 0 && w % FACTOR == 0 && pixels >= least && pixels <= most)
            assert(out_h == h && out_w == w);
    } else {
        const uint32_t longer = h > w ? h : w, shorter = h > w ? w : h;
        assert(s == CLEF_ERR_LIMIT || longer > 200ull * shorter);
    }
    for (int r = MEDIA_ROUND_CEIL; r <= MEDIA_ROUND_EVEN; r++) {
        s = resize_video_sides(&out_h, &out_w, n, h, w, FACTOR, TEMPORAL, least, most,
                               (media_video_rounding)r, "videos[0]", NULL);
        assert(s != CLEF_OK || (out_h > 0 && out_w > 0 && out_h % FACTOR == 0));
    }
}

static void check_filter(const input *in) {
    const uint32_t h = in->from_h % SIDE + 1, w = in->from_w % SIDE + 1;
    const uint32_t oh = in->to_h % SIDE + 1, ow = in->to_w % SIDE + 1;
    const uint8_t color[3] = {in->red, in->green, in->blue};
    const resize_mode mode = in->mode % 2 == 0 ? RESIZE_ATEN : RESIZE_PILLOW;
    uint8_t *from = malloc((size_t)h * w * 3), *to = malloc((size_t)oh * ow * 3);
    assert(from != NULL && to != NULL);
    for (size_t i = 0; i < (size_t)h * w * 3; i++) from[i] = color[i % 3];
    if (resize_rgb(to, oh, ow, from, h, w, mode, NULL) != CLEF_OK) abort();
    for (size_t i = 0; i < (size_t)oh * ow * 3; i++) assert(abs(to[i] - color[i % 3]) <= 1);
    /* The green channel alone is changed: the others keep theirs. */
    uint8_t *second = malloc((size_t)oh * ow * 3);
    assert(second != NULL);
    for (size_t i = 1; i < (size_t)h * w * 3; i += 3) from[i] = (uint8_t)(i * in->blue >> 3);
    if (resize_rgb(second, oh, ow, from, h, w, mode, NULL) != CLEF_OK) abort();
    for (size_t i = 0; i < (size_t)oh * ow * 3; i++) assert(i % 3 == 1 || second[i] == to[i]);
    if (h == oh && w == ow) assert(memcmp(second, from, (size_t)h * w * 3) == 0);
    free(from);
    free(to);
    free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    input in = {0};
    if (n < sizeof in) return 0;
    memcpy(&in, data, sizeof in);
    check_sides(&in);
    check_filter(&in);
    return 0;
}
