/* body_tile.h - the tile of a matrix product, the widening of stored weights, and the ceiling that
 * both are measured against.
 *
 * Lanes are rows, weights are broadcast: 16 rows x 6 outputs are twelve accumulators, which leaves
 * four of sixteen registers for two vectors of x and the weight, and a step in k costs two loads
 * and six broadcasts for twelve fused multiply-adds. For the last rows of a panel 8 x 12 holds the
 * same number of accumulators; where 16 rows are one register (LANES_WIDE) so does 16 x 12. Each
 * accumulator is a variable of its own and each count a constant where the loop is written: of an
 * array, clang keeps parts in memory. */
#ifndef COMPUTE_BODY_TILE_H
#define COMPUTE_BODY_TILE_H

#include "base/tensor.h"

enum { MOST_OUTS = LANES_WIDE ? HALF_OUTS : TILE_OUTS };

#define ALWAYS_INLINE static inline __attribute__((always_inline))

#define SIX(do_it) do_it(0) do_it(1) do_it(2) do_it(3) do_it(4) do_it(5)
#define TWELVE(do_it) SIX(do_it) do_it(6) do_it(7) do_it(8) do_it(9) do_it(10) do_it(11)

/* 16 rows, n_out <= 6 outputs. */
ALWAYS_INLINE void tile_loop(float *out, const float *x, const float *w, size_t w_out, size_t w_k,
                             uint32_t n_k, const size_t n_out) {
#define ZERO(o) f8 low##o = f8_set1(0.0f), high##o = low##o;
    SIX(ZERO)
    for (uint32_t k = 0; k < n_k; k++) {
        const f8 x_low = f8_load(x), x_high = f8_load(x + LANES);
#define STEP(o)                                    \
    if (o < n_out) {                               \
        const f8 weight = f8_set1(w[o * w_out]);   \
        low##o = f8_fma(x_low, weight, low##o);    \
        high##o = f8_fma(x_high, weight, high##o); \
    }
        SIX(STEP)
        x += TILE_LANES;
        w += w_k;
    }
#define ADD(o)                                                      \
    if (o < n_out) {                                                \
        float *to = out + TILE_LANES * o;                           \
        f8_store(to, f8_add(f8_load(to), low##o));                  \
        f8_store(to + LANES, f8_add(f8_load(to + LANES), high##o)); \
    }
    SIX(ADD)
#undef ZERO
#undef STEP
#undef ADD
}

#define VECTOR(name) f8##name
#define LOOP(name) name##_half_loop
#include "compute/body_tile_loop.h"
#undef VECTOR
#undef LOOP

#if LANES_WIDE
#define VECTOR(name) v16##name
#define LOOP(name) name##_wide_loop
#include "compute/body_tile_loop.h"
#undef VECTOR
#undef LOOP
#endif

/* A loop for each number of outputs where lanes are registers; weights contiguous in k (linears,
 * scores) are most of the work and get loops of their own. */
#define TILE_CASE(loop, n)                       \
    case n:                                      \
        if (w_k == 1) {                          \
            loop(out, x, w, w_out, 1, n_k, n);   \
        } else {                                 \
            loop(out, x, w, w_out, w_k, n_k, n); \
        }                                        \
        break;

static void tile(float *out, const float *x, const float *w, size_t w_out, size_t w_k,
                 uint32_t n_out, uint32_t n_k) {
#if LANES_WIDE
    switch (n_out) {
        TILE_CASE(tile_wide_loop, 1)
        TILE_CASE(tile_wide_loop, 2)
        TILE_CASE(tile_wide_loop, 3)
        TILE_CASE(tile_wide_loop, 4)
        TILE_CASE(tile_wide_loop, 5)
        TILE_CASE(tile_wide_loop, 6)
        TILE_CASE(tile_wide_loop, 7)
        TILE_CASE(tile_wide_loop, 8)
        TILE_CASE(tile_wide_loop, 9)
        TILE_CASE(tile_wide_loop, 10)
        TILE_CASE(tile_wide_loop, 11)
        TILE_CASE(tile_wide_loop, 12)
    }
#elif LANES_ARE_REGISTERS
    switch (n_out) {
        TILE_CASE(tile_loop, 1)
        TILE_CASE(tile_loop, 2)
        TILE_CASE(tile_loop, 3)
        TILE_CASE(tile_loop, 4)
        TILE_CASE(tile_loop, 5)
        TILE_CASE(tile_loop, 6)
    }
#else
    for (size_t o = 0; o < n_out; o++)
        tile_loop(out + o * TILE_LANES, x, w + o * w_out, 0, w_k, n_k, 1);
#endif
}

static void tile_half(float *out, const float *x, const float *w, size_t w_out, size_t w_k,
                      uint32_t n_out, uint32_t n_k) {
#if LANES_ARE_REGISTERS
    switch (n_out) {
        TILE_CASE(tile_half_loop, 1)
        TILE_CASE(tile_half_loop, 2)
        TILE_CASE(tile_half_loop, 3)
        TILE_CASE(tile_half_loop, 4)
        TILE_CASE(tile_half_loop, 5)
        TILE_CASE(tile_half_loop, 6)
        TILE_CASE(tile_half_loop, 7)
        TILE_CASE(tile_half_loop, 8)
        TILE_CASE(tile_half_loop, 9)
        TILE_CASE(tile_half_loop, 10)
        TILE_CASE(tile_half_loop, 11)
        TILE_CASE(tile_half_loop, 12)
    }
#else
    for (size_t o = 0; o < n_out; o++)
        tile_half_loop(out + o * HALF_LANES, x, w + o * w_out, 0, w_k, n_k, 1);
#endif
}

/* Eight outputs of the rows in eight lanes. */
ALWAYS_INLINE void store_eight(float *out, size_t stride, const float *total, size_t n_lanes,
                               size_t n_rows, const float *bias, bool add) {
    f8 rows[8];
    f8_transpose(rows, total, n_lanes * sizeof *total);
    for (size_t row = 0; row < n_rows; row++, out += stride) {
        f8 value = rows[row];
        if (add) value = f8_add(f8_load(out), value);
        if (bias != NULL) value = f8_add(value, f8_load(bias));
        f8_store(out, value);
    }
}

static void store_tile(float *out, size_t stride, const float *total, uint32_t n_lanes,
                       uint32_t n_rows, uint32_t n_out, const float *bias, bool add) {
    for (size_t row = 0; row < n_rows; row += LANES) {
        const size_t rows = n_rows - row < LANES ? n_rows - row : LANES;
        float *to = out + row * stride;
        const float *from = total + row;
        size_t o = 0;
        for (; o + 8 <= n_out; o += 8)
            store_eight(to + o, stride, from + o * n_lanes, n_lanes, rows,
                        bias == NULL ? NULL : bias + o, add);
        for (; o < n_out; o++)
            for (size_t i = 0; i < rows; i++) {
                float value = from[o * n_lanes + i];
                if (add) value = to[i * stride + o] + value;
                if (bias != NULL) value += bias[o];
                to[i * stride + o] = value;
            }
    }
}

static inline float block_scale(const matrix *w, size_t block) {
    return f16_load((const char *)w->scales + block * sizeof(uint16_t));
}

/* Codes 8 i .. 8 i + 7 of a block. Of packed ones the bits of any eight neighbours stand at the
 * same place of eight bytes in a row. `type` is w's own, as a constant. */
ALWAYS_INLINE f8 eight_codes(const matrix *w, const dtype type, size_t block, int i) {
    const char *data = w->data;
    if (type == DTYPE_I8) return f8_load_i8(data + block * INT8_BLOCK + i * LANES);
    const bool six = type == DTYPE_INT6;
    const char *codes = data + block * (six ? INT6_BYTES : INT4_BYTES);
    const char *low = codes + i % 2 * LANES;
    return six ? f8_load_i6(low, i / 2 * 4, codes + INT4_BYTES, 2 * i) : f8_load_i4(low, i / 2 * 4);
}

/* Exact: a code has 7 bits at most and a scale 11, and their product 18 of the 24 that f32 has. */
ALWAYS_INLINE void widen_blocks(float *out, const matrix *w, const dtype type, size_t first,
                                size_t n) {
    for (size_t done = 0; done < n; done += INT8_BLOCK) {
        const size_t block = (first + done) / INT8_BLOCK;
        const f8 scale = f8_set1(block_scale(w, block));
        for (int i = 0; i < INT8_BLOCK / LANES; i++)
            f8_store(out + done + i * LANES, f8_mul(eight_codes(w, type, block, i), scale));
    }
}

static void widen(float *out, const matrix *w, size_t first, size_t n) {
    if (w->type == DTYPE_I8) {
        widen_blocks(out, w, DTYPE_I8, first, n);
        return;
    }
    if (w->type == DTYPE_INT6) {
        widen_blocks(out, w, DTYPE_INT6, first, n);
        return;
    }
    if (w->type == DTYPE_INT4) {
        widen_blocks(out, w, DTYPE_INT4, first, n);
        return;
    }
    size_t done = 0;
    if (w->type == DTYPE_BF16) {
        const char *p = (const char *)w->data + 2 * first;
        for (; done + LANES <= n; done += LANES) f8_store(out + done, f8_load_bf16(p + 2 * done));
    }
    if (done < n) tensor_to_float(out + done, w->type, w->data, first + done, n - done);
}

/* Eight outputs, whose n values (a multiple of 16) are `row_bytes` apart, into eight of TILE_LANES
 * lanes. Two values of an output change places together: a shuffle then moves twice as many. */
static void bf16_across(float *out, const char *p, size_t row_bytes, size_t n) {
    for (size_t k = 0; k < n; k += 16) {
        f8 pairs[8];
        f8_transpose(pairs, p + 2 * k, row_bytes);
        for (size_t i = 0; i < 8; i++) {
            f8_store(out + (k + 2 * i) * TILE_LANES, f8_first_bf16(pairs[i]));
            f8_store(out + (k + 2 * i + 1) * TILE_LANES, f8_second_bf16(pairs[i]));
        }
    }
}

/* The same for eight outputs of int8 codes, n a multiple of INT8_BLOCK. Four codes of an output
 * change places together. */
static void i8_across(float *out, const matrix *w, size_t first, size_t n) {
    for (size_t k = 0; k < n; k += INT8_BLOCK, out += INT8_BLOCK * TILE_LANES) {
        f8 fours[8];
        float scales[8];
        f8_transpose(fours, (const char *)w->data + first + k, w->n_in);
        for (size_t o = 0; o < 8; o++)
            scales[o] = block_scale(w, (first + o * w->n_in + k) / INT8_BLOCK);
        const f8 scale = f8_load(scales);
        for (size_t i = 0; i < 8; i++) {
            float *to = out + 4 * i * TILE_LANES;
            f8_store(to, f8_mul(f8_byte(fours[i], 0), scale));
            f8_store(to + TILE_LANES, f8_mul(f8_byte(fours[i], 1), scale));
            f8_store(to + 2 * TILE_LANES, f8_mul(f8_byte(fours[i], 2), scale));
            f8_store(to + 3 * TILE_LANES, f8_mul(f8_byte(fours[i], 3), scale));
        }
    }
}

/* The same for n_out <= 8 outputs of any type and n <= LINEAR_BLOCK; zeros for missing outputs. */
static void any_across(float *out, const matrix *w, size_t first, size_t n_out, size_t n) {
    float rows[LANES * LINEAR_BLOCK] = {0};
    for (size_t o = 0; o < n_out; o++) widen(rows + o * LINEAR_BLOCK, w, first + o * w->n_in, n);
    size_t k = 0;
    for (; k + 8 <= n; k += 8) {
        f8 columns[8];
        f8_transpose(columns, rows + k, LINEAR_BLOCK * sizeof *rows);
        for (size_t i = 0; i < 8; i++) f8_store(out + (k + i) * TILE_LANES, columns[i]);
    }
    for (; k < n; k++)
        for (size_t o = 0; o < LANES; o++) out[k * TILE_LANES + o] = rows[o * LINEAR_BLOCK + k];
}

static void widen_across(float *out, const matrix *w, size_t first, uint32_t n_out, size_t n) {
    for (size_t o = 0; o < TILE_LANES; o += LANES) {
        const size_t left = n_out > o ? n_out - o : 0, at = first + o * w->n_in;
        if (w->type == DTYPE_BF16 && left >= LANES && n % 16 == 0) {
            bf16_across(out + o, (const char *)w->data + 2 * at, 2 * (size_t)w->n_in, n);
        } else if (w->type == DTYPE_I8 && left >= LANES) {
            i8_across(out + o, w, at, n);
        } else {
            any_across(out + o, w, at, left < LANES ? left : LANES, n);
        }
    }
}

#if LANES_WIDE
#define WIDEST(name) v16##name
#else
#define WIDEST(name) f8##name
#endif

static float peak(uint64_t n, double *flops) {
    const WIDEST() scale = WIDEST(_set1)(0.999f), step = WIDEST(_set1)(0.001f);
#define START(i) WIDEST() sum##i = WIDEST(_set1)((float)i);
    TWELVE(START)
    for (uint64_t round = 0; round < n; round++) {
#define STEP(i) sum##i = WIDEST(_fma)(sum##i, scale, step);
        TWELVE(STEP)
    }
    WIDEST() all = WIDEST(_set1)(0.0f);
#define ADD(i) all = WIDEST(_add)(all, sum##i);
    TWELVE(ADD)
#undef START
#undef STEP
#undef ADD
    const size_t n_lanes = sizeof all / sizeof(float);
    *flops = 2.0 * 12 * (double)n_lanes * (double)n;
    return WIDEST(_sum)(all);
}

#endif
