/* body_codes.h - products of integers, for rows that were rounded to them: `--precision fast`.
 * Included by kernels_*.c after its lanes and body_tile.h.
 *
 * Rows. A row is cut into blocks of INT8_BLOCK values. A block with the largest magnitude a gets
 * the scale a / limit and the codes rint(x * (limit / a)), where limit is 127 (8 bits) or 32639 (16
 * bits: 127 * 257, the most that two signed bytes hold evenly). A block whose a is below 2^-100 has
 * only zeros; one that holds a value that is not finite has NaN for its scale, so its row's outputs
 * are NaN as they would be without rounding.
 *
 * The order of one output, from zero, blocks rising:
 *     total = fma(float(sum of code products) * row's scale, weight's scale, total)
 * The sum is exact in any order: at most 32 * 127 * 32639 < 2^31. (Above 2^24 its conversion to f32
 * rounds, the same way everywhere.) So instruction sets may differ in how they sum, and do: lanes
 * decide how many codes of a row lie side by side (CODE_STEP) and how wide a stored code is. Where
 * it is a byte, rows of 16 bits are two planes, the high bytes first.
 *
 * Layout of a tile of rows for n_k columns, per block: codes [plane][INT8_BLOCK / CODE_STEP][lanes]
 * [CODE_STEP], then scales [lanes]. Weights are codes in rising k. */
#ifndef COMPUTE_BODY_CODES_H
#define COMPUTE_BODY_CODES_H

enum {
    CODE_STEPS = INT8_BLOCK / CODE_STEP,
    MOST_PLANES = 2 / sizeof(code),
    CODE_FLOATS_8 = INT8_BLOCK * sizeof(code) / sizeof(float) + 1,
    CODE_FLOATS_16 = INT8_BLOCK * 2 / sizeof(float) + 1
};

static inline size_t count_planes(unsigned bits) {
    return bits == 16 ? MOST_PLANES : 1;
}

/* ---- rounding rows ------------------------------------------------------------------------- */

/* Codes of one block; returns its scale. */
static float round_block(int32_t *codes, const float *x, float limit) {
    const f8 zero = f8_set1(0.0f), most = f8_set1(limit), least = f8_set1(-limit);
    f8 largest = zero, not_finite = zero;
    for (size_t i = 0; i < INT8_BLOCK; i += LANES) {
        const f8 v = f8_load(x + i);
        largest = f8_max(f8_abs(v), largest);
        not_finite = f8_fma(v, zero, not_finite);
    }
    float lanes[LANES], max = 0;
    f8_store(lanes, largest);
    for (size_t i = 0; i < LANES; i++)
        if (lanes[i] > max) max = lanes[i];
    const float inverse = max >= 0x1p-100f ? limit / max : 0.0f;
    for (size_t i = 0; i < INT8_BLOCK; i += LANES) { /* a NaN becomes `least` and converts */
        const f8 v = f8_round(f8_mul(f8_load(x + i), f8_set1(inverse)));
        f8_store_ints(codes + i, f8_min(f8_max(v, least), most));
    }
    /* 0 or NaN; its sign goes with the addition. */
    return (inverse > 0 ? max / limit : 0.0f) + f8_sum(not_finite);
}

static void round_rows(float *out, const float *x, size_t stride, uint32_t n_rows, uint32_t n_lanes,
                       uint32_t n_k, unsigned bits) {
    const size_t n_planes = count_planes(bits);
    const float limit = bits == 16 ? 32639.0f : 127.0f;
    for (size_t k = 0; k < n_k; k += INT8_BLOCK) {
        code *codes = (code *)(void *)out;
        float *scales = out + n_planes * INT8_BLOCK * n_lanes * sizeof(code) / sizeof(float);
        for (size_t row = 0; row < n_lanes; row++) {
            int32_t wide[INT8_BLOCK] = {0};
            code narrow[MOST_PLANES][INT8_BLOCK];
            scales[row] = row < n_rows ? round_block(wide, x + row * stride + k, limit) : 0.0f;
            for (size_t i = 0; i < INT8_BLOCK; i++) {
                const int32_t high = n_planes == 2 ? (wide[i] + 128) >> 8 : wide[i];
                narrow[0][i] = (code)high;
                if (n_planes == 2) narrow[MOST_PLANES - 1][i] = (code)(wide[i] - 256 * high);
            }
            for (size_t step = 0; step < n_planes * CODE_STEPS; step++)
                memcpy(codes + (step * n_lanes + row) * CODE_STEP,
                       &narrow[step / CODE_STEPS][step % CODE_STEPS * CODE_STEP],
                       CODE_STEP * sizeof(code));
        }
        out = scales + n_lanes;
    }
}

/* ---- weights ------------------------------------------------------------------------------- */

static void codes_int8(code *out, const matrix *w, size_t first, size_t n) {
    const char *from = (const char *)w->data + first;
    for (size_t i = 0; i < n; i += 16) codes_from_i8(out + i, from + i);
}

ALWAYS_INLINE void codes_packed(code *out, const matrix *w, const dtype type, size_t first,
                                size_t n) {
    for (size_t done = 0; done < n; done += INT8_BLOCK)
        for (int i = 0; i < INT8_BLOCK / LANES; i++)
            f8_store_codes(out + done + i * LANES,
                           eight_codes(w, type, (first + done) / INT8_BLOCK, i));
}

static void widen_codes(void *out, float *scales, const matrix *w, size_t first, size_t n) {
    if (w->type == DTYPE_I8) codes_int8(out, w, first, n);
    if (w->type == DTYPE_INT6) codes_packed(out, w, DTYPE_INT6, first, n);
    if (w->type == DTYPE_INT4) codes_packed(out, w, DTYPE_INT4, first, n);
    for (size_t i = 0; i < n / INT8_BLOCK; i++) scales[i] = block_scale(w, first / INT8_BLOCK + i);
}

/* ---- tiles --------------------------------------------------------------------------------- */

/* 16 rows, n_out <= 6 outputs. */
ALWAYS_INLINE void codes_loop(float *out, const float *rows, const code *w, const float *w_scales,
                              uint32_t n_k, size_t n_planes, const size_t n_out) {
    const size_t n_blocks = n_k / INT8_BLOCK;
    for (size_t block = 0; block < n_blocks; block++) {
        const code *x = (const code *)(const void *)rows;
#define ZERO(o) n8 low##o = n8_zero(), high##o = low##o;
        SIX(ZERO)
        for (size_t plane = 0; plane < n_planes; plane++) {
            if (plane > 0) {
#define SHIFT(o) low##o = n8_times_256(low##o), high##o = n8_times_256(high##o);
                SIX(SHIFT)
            }
            for (size_t step = 0; step < CODE_STEPS; step++) {
                const n8_rows x_low = n8_load_rows(x), x_high = n8_load_rows(x + LANES * CODE_STEP);
#define STEP(o)                                                                    \
    if (o < n_out) {                                                               \
        const n8_weights weight = n8_load_weights(w + o * n_k + step * CODE_STEP); \
        low##o = n8_dot(low##o, x_low, weight);                                    \
        high##o = n8_dot(high##o, x_high, weight);                                 \
    }
                SIX(STEP)
                x += TILE_LANES * CODE_STEP;
            }
        }
        rows = (const float *)(const void *)x;
        const f8 low_scale = f8_load(rows), high_scale = f8_load(rows + LANES);
#define ADD(o)                                                                               \
    if (o < n_out) {                                                                         \
        float *to = out + TILE_LANES * o;                                                    \
        const f8 scale = f8_set1(w_scales[o * n_blocks]);                                    \
        f8_store(to, f8_fma(f8_mul(f8_from_ints(low##o), low_scale), scale, f8_load(to)));   \
        to += LANES;                                                                         \
        f8_store(to, f8_fma(f8_mul(f8_from_ints(high##o), high_scale), scale, f8_load(to))); \
    }
        SIX(ADD)
        rows += TILE_LANES;
        w += INT8_BLOCK;
        w_scales++;
    }
#undef ZERO
#undef SHIFT
#undef STEP
#undef ADD
}

#define VECTOR(name) f8##name
#define INTS(name) n8##name
#define LOOP(name) name##_half_loop
#include "compute/body_codes_loop.h"
#undef VECTOR
#undef INTS
#undef LOOP

#if LANES_WIDE
#define VECTOR(name) v16##name
#define INTS(name) n16##name
#define LOOP(name) name##_wide_loop
#include "compute/body_codes_loop.h"
#undef VECTOR
#undef INTS
#undef LOOP
#endif

#define CODES_CASE(loop, n)                                    \
    case n:                                                    \
        loop(out, x, w, w_scales, n_k, count_planes(bits), n); \
        break;

static void tile_codes(float *out, const float *x, const void *weights, const float *w_scales,
                       uint32_t n_out, uint32_t n_k, unsigned bits) {
    const code *w = weights;
#if LANES_WIDE
    switch (n_out) {
        CODES_CASE(codes_wide_loop, 1)
        CODES_CASE(codes_wide_loop, 2)
        CODES_CASE(codes_wide_loop, 3)
        CODES_CASE(codes_wide_loop, 4)
        CODES_CASE(codes_wide_loop, 5)
        CODES_CASE(codes_wide_loop, 6)
        CODES_CASE(codes_wide_loop, 7)
        CODES_CASE(codes_wide_loop, 8)
        CODES_CASE(codes_wide_loop, 9)
        CODES_CASE(codes_wide_loop, 10)
        CODES_CASE(codes_wide_loop, 11)
        CODES_CASE(codes_wide_loop, 12)
    }
#elif LANES_ARE_REGISTERS
    switch (n_out) {
        CODES_CASE(codes_loop, 1)
        CODES_CASE(codes_loop, 2)
        CODES_CASE(codes_loop, 3)
        CODES_CASE(codes_loop, 4)
        CODES_CASE(codes_loop, 5)
        CODES_CASE(codes_loop, 6)
    }
#else
    for (size_t o = 0; o < n_out; o++)
        codes_loop(out + o * TILE_LANES, x, w + o * n_k, w_scales + o * (n_k / INT8_BLOCK), n_k,
                   count_planes(bits), 1);
#endif
}

static void tile_codes_half(float *out, const float *x, const void *weights, const float *w_scales,
                            uint32_t n_out, uint32_t n_k, unsigned bits) {
    const code *w = weights;
#if LANES_ARE_REGISTERS
    switch (n_out) {
        CODES_CASE(codes_half_loop, 1)
        CODES_CASE(codes_half_loop, 2)
        CODES_CASE(codes_half_loop, 3)
        CODES_CASE(codes_half_loop, 4)
        CODES_CASE(codes_half_loop, 5)
        CODES_CASE(codes_half_loop, 6)
        CODES_CASE(codes_half_loop, 7)
        CODES_CASE(codes_half_loop, 8)
        CODES_CASE(codes_half_loop, 9)
        CODES_CASE(codes_half_loop, 10)
        CODES_CASE(codes_half_loop, 11)
        CODES_CASE(codes_half_loop, 12)
    }
#else
    for (size_t o = 0; o < n_out; o++)
        codes_half_loop(out + o * HALF_LANES, x, w + o * n_k, w_scales + o * (n_k / INT8_BLOCK),
                        n_k, count_planes(bits), 1);
#endif
}

#endif
