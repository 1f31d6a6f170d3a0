/* resize.c - target sizes, and antialiased bicubic resizing of 8-bit pictures.
 *
 * Both of the reference's libraries filter with the Keys kernel (a = -1/2), stretched by the scale
 * when a side shrinks, first along rows into an 8-bit picture, then along columns; a side that
 * keeps its length is not filtered. They differ in how weights become integers:
 *
 *   Pillow   22 fraction bits, weights of 32 bits
 *   ATen     as many bits, up to 22, as keep the axis's largest weight below 2^15
 *
 * Everything up to the integer weights is double arithmetic in one fixed order. In sizes too:
 * rounding noise decides some of the ceilings (239 x 239 becomes 288 x 288, not 256 x 256), so the
 * order of operations must not be touched.
 *
 * They also differ in the order of the passes. ATen filters along rows first. Pillow 13 filters
 * along columns first when the height loses more than twice what the width does; its versions up
 * to 12.1 never did, 12.2 and 12.3 when a picture over 100 times as high as wide got lower. These
 * rules were found by trying each version on random sizes; they differ by a level or two on
 * photographs. */
#include "media/resize.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum { CHANNELS = 3, MAX_RATIO = 200, PILLOW_BITS = 22, ATEN_BITS = 22, ATEN_WEIGHTS = 1 << 15 };

/* ---- target sizes ---------------------------------------------------------------------------- */

/* In the reference's words: round(side / factor) * factor, with Python's rounding half to even. */
static double round_side(double side, double factor) {
    return nearbyint(side / factor) * factor;
}

static double shrink_side(double side, double beta, double factor) {
    return fmax(factor, floor(side / beta / factor) * factor);
}

static double grow_side(double side, double beta, double factor) {
    return ceil(side * beta / factor) * factor;
}

/* `n` frames stand behind the bounds' ratio, `t` behind the test against them. */
static clef_status choose_sides(uint32_t *out_h, uint32_t *out_w, double n, double t, double h,
                                double w, double factor, uint64_t min_pixels, uint64_t max_pixels,
                                const char *where, clef_error *err) {
    const double least = (double)min_pixels, most = (double)max_pixels;
    double high = round_side(h, factor), wide = round_side(w, factor);
    if (t * high * wide > most) {
        const double beta = sqrt((n * h * w) / most);
        high = shrink_side(h, beta, factor);
        wide = shrink_side(w, beta, factor);
    } else if (t * high * wide < least) {
        const double beta = sqrt(least / (n * h * w));
        high = grow_side(h, beta, factor);
        wide = grow_side(w, beta, factor);
    }
    if (t * high * wide > (double)MEDIA_MOST_PIXELS)
        return clef_fail(err, CLEF_ERR_LIMIT,
                         "%s: resized to %.0f x %.0f there are %.0f pixels, the limit is %u", where,
                         wide, high, t * high * wide, MEDIA_MOST_PIXELS);
    *out_h = (uint32_t)high;
    *out_w = (uint32_t)wide;
    return CLEF_OK;
}

static clef_status check_ratio(double h, double w, const char *where, clef_error *err) {
    if (fmax(h, w) / fmin(h, w) <= MAX_RATIO) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_INPUT,
                     "%s: %.0f x %.0f pixels: one side may be at most %d times the other", where, w,
                     h, MAX_RATIO);
}

clef_status resize_image_sides(uint32_t *out_h, uint32_t *out_w, uint32_t h, uint32_t w,
                               uint32_t factor, uint64_t min_pixels, uint64_t max_pixels,
                               const char *where, clef_error *err) {
    assert(h > 0 && w > 0 && factor > 0 && min_pixels > 0 && max_pixels > 0);
    TRY(check_ratio(h, w, where, err));
    return choose_sides(out_h, out_w, 1, 1, h, w, factor, min_pixels, max_pixels, where, err);
}

clef_status resize_video_sides(uint32_t *out_h, uint32_t *out_w, uint32_t n, uint32_t h, uint32_t w,
                               uint32_t factor, uint32_t temporal, uint64_t min_pixels,
                               uint64_t max_pixels, media_video_rounding rounding,
                               const char *where, clef_error *err) {
    assert(n > 0 && h > 0 && w > 0 && factor > 0 && min_pixels > 0 && max_pixels > 0);
    const bool even = rounding == MEDIA_ROUND_EVEN;
    if (even && n < temporal)
        return clef_fail(err, CLEF_ERR_INPUT, "%s: %u frames, wanted at least %u", where, n,
                         temporal);
    double high = h, wide = w;
    if (h < factor || w < factor) {
        if (!even)
            return clef_fail(err, CLEF_ERR_INPUT,
                             "%s: frames of %u x %u pixels, wanted at least %u on each side", where,
                             w, h, factor);
        const double scale = fmax((double)factor / h, (double)factor / w);
        high = trunc(h * scale);
        wide = trunc(w * scale);
    }
    TRY(check_ratio(high, wide, where, err));
    const double groups = even ? nearbyint((double)n / temporal) : ceil((double)n / temporal);
    return choose_sides(out_h, out_w, n, groups * temporal, high, wide, factor, min_pixels,
                        max_pixels, where, err);
}

/* ---- weights --------------------------------------------------------------------------------- */

/* The weights of one axis: output i is the sum of `count[i]` inputs from `first[i]` on. */
typedef struct {
    uint32_t n, stride; /* outputs; weights kept for each */
    uint32_t *first, *count;
    int32_t *weights; /* [n, stride] */
    int bits;         /* fraction bits */
} axis;

static void axis_free(axis *a) {
    free(a->first);
    free(a->count);
    free(a->weights);
}

static double keys(double x) {
    const double a = -0.5;
    if (x < 0.0) x = -x;
    if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    if (x < 2.0) return (((x - 5.0) * x + 8.0) * x - 4.0) * a;
    return 0.0;
}

/* Fills the window of output i and returns its largest weight. */
static double weigh(axis *a, double *weights, uint32_t i, uint32_t n_in, double scale,
                    double support, double shrink) {
    const double center = (i + 0.5) * scale;
    const double low = center - support + 0.5;
    const uint32_t first = low < 0.0 ? 0 : (uint32_t)low;
    const double high = center + support + 0.5;
    const uint32_t end = high > n_in ? n_in : (uint32_t)high;
    const uint32_t count = end - first;
    assert(count <= a->stride);
    double sum = 0.0, largest = 0.0;
    for (uint32_t k = 0; k < count; k++) {
        weights[k] = keys((k + first - center + 0.5) * shrink);
        sum += weights[k];
    }
    for (uint32_t k = 0; k < count; k++) {
        weights[k] /= sum;
        largest = fmax(largest, weights[k]);
    }
    a->first[i] = first;
    a->count[i] = count;
    return largest;
}

static int32_t to_fixed(double weight, int bits) {
    const double scaled = weight * (double)(1 << bits);
    return (int32_t)(scaled < 0.0 ? scaled - 0.5 : scaled + 0.5);
}

static int aten_bits(double largest) {
    int bits = 0;
    while (bits < ATEN_BITS && (int)(0.5 + largest * (double)(1 << (bits + 1))) < ATEN_WEIGHTS)
        bits++;
    return bits;
}

static bool axis_make(axis *out, uint32_t n_in, uint32_t n_out, resize_mode mode) {
    const double scale = (double)n_in / n_out;
    const double stretch = fmax(scale, 1.0);
    const double support = 2.0 * stretch;
    axis a = {.n = n_out, .stride = (uint32_t)ceil(support) * 2 + 1};
    const size_t n_weights = (size_t)n_out * a.stride;
    double *exact = malloc(n_weights * sizeof *exact);
    a.first = malloc(n_out * sizeof *a.first);
    a.count = malloc(n_out * sizeof *a.count);
    a.weights = malloc(n_weights * sizeof *a.weights);
    if (exact == NULL || a.first == NULL || a.count == NULL || a.weights == NULL) {
        free(exact);
        axis_free(&a);
        return false;
    }
    double largest = 0.0;
    for (uint32_t i = 0; i < n_out; i++) {
        double *row = exact + (size_t)i * a.stride;
        largest = fmax(largest, weigh(&a, row, i, n_in, scale, support, 1.0 / stretch));
    }
    a.bits = mode == RESIZE_PILLOW ? PILLOW_BITS : aten_bits(largest);
    for (uint32_t i = 0; i < n_out; i++)
        for (uint32_t k = 0; k < a.count[i]; k++) {
            const size_t at = (size_t)i * a.stride + k;
            a.weights[at] = to_fixed(exact[at], a.bits);
        }
    free(exact);
    *out = a;
    return true;
}

/* ---- the two passes -------------------------------------------------------------------------- */

static uint8_t to_byte(int32_t sum, int bits) {
    const int32_t v = sum >> bits;
    return (uint8_t)(v < 0 ? 0 : v > UINT8_MAX ? UINT8_MAX : v);
}

/* in[n_rows, w, 3] to out[n_rows, a->n, 3]. */
static void filter_rows(uint8_t *out, const uint8_t *in, uint32_t n_rows, uint32_t w,
                        const axis *a) {
    const int32_t half = a->bits == 0 ? 0 : 1 << (a->bits - 1);
    for (uint32_t y = 0; y < n_rows; y++) {
        const uint8_t *row = in + (size_t)y * w * CHANNELS;
        for (uint32_t i = 0; i < a->n; i++, out += CHANNELS) {
            const int32_t *weights = a->weights + (size_t)i * a->stride;
            const uint8_t *p = row + (size_t)a->first[i] * CHANNELS;
            int32_t r = half, g = half, b = half;
            for (uint32_t k = 0; k < a->count[i]; k++, p += CHANNELS) {
                r += p[0] * weights[k];
                g += p[1] * weights[k];
                b += p[2] * weights[k];
            }
            out[0] = to_byte(r, a->bits);
            out[1] = to_byte(g, a->bits);
            out[2] = to_byte(b, a->bits);
        }
    }
}

/* Adds n samples times a weight. A weight of 16 bits is multiplied as such, which every vector unit
 * has an instruction for. */
static void add_weighted(int32_t *restrict sums, const uint8_t *restrict in, uint32_t n,
                         int32_t weight) {
    if (weight >= INT16_MIN && weight <= INT16_MAX) {
        const int16_t narrow = (int16_t)weight;
        for (uint32_t s = 0; s < n; s++) sums[s] += (int16_t)in[s] * narrow;
    } else {
        for (uint32_t s = 0; s < n; s++) sums[s] += in[s] * weight;
    }
}

/* in[_, w, 3] to out[a->n, w, 3], a piece of a row at a time so that the sums stay in the cache. */
static void filter_columns(uint8_t *out, const uint8_t *in, uint32_t w, const axis *a) {
    enum { PIECE = 1024 };
    const int32_t half = a->bits == 0 ? 0 : 1 << (a->bits - 1);
    const size_t row_bytes = (size_t)w * CHANNELS;
    int32_t sums[PIECE];
    for (uint32_t i = 0; i < a->n; i++) {
        const int32_t *weights = a->weights + (size_t)i * a->stride;
        const uint8_t *window = in + a->first[i] * row_bytes;
        for (size_t at = 0; at < row_bytes; at += PIECE) {
            const uint32_t n = row_bytes - at < PIECE ? (uint32_t)(row_bytes - at) : PIECE;
            for (uint32_t s = 0; s < n; s++) sums[s] = half;
            for (uint32_t k = 0; k < a->count[i]; k++)
                add_weighted(sums, window + k * row_bytes + at, n, weights[k]);
            uint8_t *to = out + i * row_bytes + at;
            for (uint32_t s = 0; s < n; s++) to[s] = to_byte(sums[s], a->bits);
        }
    }
}

static clef_status filter_both(uint8_t *out, const uint8_t *in, uint32_t h, uint32_t w,
                               const axis *across, const axis *down, bool down_first,
                               clef_error *err) {
    const size_t high = down_first ? down->n : h, wide = down_first ? w : across->n;
    uint8_t *between = malloc(high * wide * CHANNELS);
    if (between == NULL) return clef_fail_memory(err);
    if (down_first) {
        filter_columns(between, in, w, down);
        filter_rows(out, between, down->n, w, across);
    } else {
        filter_rows(between, in, h, w, across);
        filter_columns(out, between, across->n, down);
    }
    free(between);
    return CLEF_OK;
}

static bool columns_first(uint32_t h, uint32_t w, uint32_t out_h, uint32_t out_w) {
    return out_h < h && (int64_t)h - out_h > 2 * ((int64_t)w - out_w);
}

clef_status resize_rgb(uint8_t *out, uint32_t out_h, uint32_t out_w, const uint8_t *in, uint32_t h,
                       uint32_t w, resize_mode mode, clef_error *err) {
    axis across = {0}, down = {0};
    const bool wide = out_w != w, high = out_h != h;
    if ((wide && !axis_make(&across, w, out_w, mode)) ||
        (high && !axis_make(&down, h, out_h, mode))) {
        axis_free(&across);
        return clef_fail_memory(err);
    }
    clef_status s = CLEF_OK;
    const bool down_first = mode == RESIZE_PILLOW && columns_first(h, w, out_h, out_w);
    if (wide && high)
        s = filter_both(out, in, h, w, &across, &down, down_first, err);
    else if (wide)
        filter_rows(out, in, h, w, &across);
    else if (high)
        filter_columns(out, in, w, &down);
    else
        memcpy(out, in, (size_t)h * w * CHANNELS);
    axis_free(&across);
    axis_free(&down);
    return s;
}
