/* body_delta.h - the Gated DeltaNet between its projections (MODEL.md section 2).
 * Included by kernels_*.c after its lanes, body_math.h and body_rows.h.
 *
 * Three steps over one chunk of tokens, each split over items that do not meet:
 *   delta_conv    a block of channels: convolution and SiLU, in place in a->qkv;
 *   delta_keys    one row: L2 norm of q and k of every key head, in place;
 *   delta_head    one value head: the recurrence over all rows, then its gated norm.
 * Orders that fix the bits: the convolution is one chain over rising taps from zero. A sum of
 * squares is eight partial sums (element mod 8) and the tree of f8_sum; then x * (1 / sqrt(sum +
 * 1e-6)), and for q that product times key_dim^-0.5. Per token, with S [key_dim][value_dim], fade =
 * e^g and i running over key_dim, rising, in chains from zero:
 *     u_j  = beta (v_j - fade * (sum_i S_ij k_i))
 *     S_ij = k_i u_j + (fade * S_ij)                fused
 *     o_j  = sum_i S_ij q_i                         reads the new S
 * Lanes are value columns, which never mix, so columns past value_dim are zeros that stay zero.
 *
 * The recurrence streams over S twice a token. A head's S (64 KiB at 128 x 128) does not fit the
 * first-level cache, and a block of its columns does not either as it stands: its rows are
 * value_dim apart and meet in few cache sets. So a block of columns is copied out, walks
 * DELTA_ROWS tokens, and is copied back. docs/speed.md has what this costs. */
#ifndef COMPUTE_BODY_DELTA_H
#define COMPUTE_BODY_DELTA_H

#include "compute/fmath.h"

enum { DELTA_VECTORS = DELTA_COLUMNS / LANES };

/* LANES values at p, or the n that are left of a row. */
static inline f8 delta_load(const float *p, uint32_t n) {
    return n >= LANES ? f8_load(p) : f8_load_part(p, n);
}
static inline void delta_store(float *p, f8 x, uint32_t n) {
    if (n >= LANES)
        f8_store(p, x);
    else
        f8_store_part(p, x, n);
}

static uint32_t delta_channels(const delta_args *a) {
    return 2 * a->n_key_heads * a->key_dim + a->n_value_heads * a->value_dim;
}

/* ---- convolution -------------------------------------------------------------------------- */

/* The last conv_kernel raw rows stand in a ring: row t in slot (t + conv_kernel - 1) mod
 * conv_kernel, the history before row 0 in the slots below. So tap i of row t is slot (t + i) mod
 * conv_kernel, and after n rows the history starts at slot n mod conv_kernel. */
static void delta_conv(const delta_args *a, uint32_t channel0, uint32_t n_channels) {
    const size_t channels = delta_channels(a);
    const uint32_t n_taps = a->conv_kernel;
    float taps[MAX_CONV_KERNEL][DELTA_CHANNELS], ring[MAX_CONV_KERNEL][DELTA_CHANNELS];
    memset(taps, 0, n_taps * sizeof taps[0]); /* lanes past the last channel count nothing */
    memset(ring, 0, n_taps * sizeof ring[0]);
    for (size_t i = 0; i < n_taps; i++) {
        for (uint32_t ch = 0; ch < n_channels; ch++)
            taps[i][ch] = a->conv[(channel0 + ch) * (size_t)n_taps + i];
    }
    for (size_t i = 0; i + 1 < n_taps; i++)
        memcpy(ring[i], a->history + i * channels + channel0, n_channels * sizeof(float));
    for (uint32_t t = 0; t < a->n_rows; t++) {
        float *row = a->qkv + t * channels + channel0;
        float *window[MAX_CONV_KERNEL];
        for (size_t i = 0; i < n_taps; i++) window[i] = ring[(t + i) % n_taps];
        memcpy(window[n_taps - 1], row, n_channels * sizeof *row);
        for (uint32_t ch = 0; ch < n_channels; ch += LANES) {
            f8 sum = f8_set1(0.0f);
            for (size_t i = 0; i < n_taps; i++)
                sum = f8_fma(f8_load(&taps[i][ch]), f8_load(window[i] + ch), sum);
            delta_store(row + ch, f8_silu(sum), n_channels - ch);
        }
    }
    for (size_t i = 0; i + 1 < n_taps; i++)
        memcpy(a->history + i * channels + channel0, ring[(a->n_rows + i) % n_taps],
               n_channels * sizeof(float));
}

/* ---- queries and keys --------------------------------------------------------------------- */

static void delta_l2_norm(float *x, uint32_t n, float scale) {
    const f8 inverse = f8_set1(1.0f / sqrtf(sum_of_squares(x, n) + 1e-6f));
    for (size_t i = 0; i < n; i += LANES) {
        const f8 unit = f8_mul(delta_load(x + i, n - i), inverse);
        delta_store(x + i, f8_mul(unit, f8_set1(scale)), n - i);
    }
}

static void delta_keys(const delta_args *a, uint32_t row) {
    const float scale = (float)(1.0 / sqrt(a->key_dim));
    float *q = a->qkv + row * (size_t)delta_channels(a);
    float *k = q + (size_t)a->n_key_heads * a->key_dim;
    for (uint32_t h = 0; h < a->n_key_heads; h++) {
        delta_l2_norm(q + (size_t)h * a->key_dim, a->key_dim, scale);
        delta_l2_norm(k + (size_t)h * a->key_dim, a->key_dim, 1);
    }
}

/* ---- recurrence --------------------------------------------------------------------------- */

/* beta and e^g of one head for rows row0 .. row0 + n_rows - 1. */
static void delta_gates(const delta_args *a, uint32_t head, uint32_t row0, uint32_t n_rows,
                        float *beta, float *fade) {
    for (uint32_t t = 0; t < n_rows; t++) {
        const size_t at = (size_t)(row0 + t) * a->n_value_heads + head;
        beta[t] = fmath_sigmoid(a->b[at]);
        fade[t] = fmath_exp(a->decay[head] * fmath_softplus(a->a[at] + a->dt_bias[head]));
    }
}

/* One token on one block of columns: s [key_dim][DELTA_COLUMNS], o [DELTA_COLUMNS]. */
static inline void delta_step(float *s, const float *q, const float *k, const float *v, float *o,
                              uint32_t key_dim, float beta, float fade) {
    const f8 fades = f8_set1(fade);
    f8 u[DELTA_VECTORS], sum[DELTA_VECTORS];
    for (size_t j = 0; j < DELTA_VECTORS; j++) sum[j] = f8_set1(0);
    for (size_t i = 0; i < key_dim; i++) {
        const f8 key = f8_set1(k[i]);
        for (size_t j = 0; j < DELTA_VECTORS; j++)
            sum[j] = f8_fma(f8_load(s + i * DELTA_COLUMNS + j * LANES), key, sum[j]);
    }
    for (size_t j = 0; j < DELTA_VECTORS; j++) {
        const f8 error = f8_sub(f8_load(v + j * LANES), f8_mul(fades, sum[j]));
        u[j] = f8_mul(f8_set1(beta), error);
        sum[j] = f8_set1(0);
    }
    for (size_t i = 0; i < key_dim; i++) {
        const f8 key = f8_set1(k[i]), query = f8_set1(q[i]);
        for (size_t j = 0; j < DELTA_VECTORS; j++) {
            float *at = s + i * DELTA_COLUMNS + j * LANES;
            const f8 state = f8_fma(key, u[j], f8_mul(fades, f8_load(at)));
            f8_store(at, state);
            sum[j] = f8_fma(state, query, sum[j]);
        }
    }
    for (size_t j = 0; j < DELTA_VECTORS; j++) f8_store(o + j * LANES, sum[j]);
}

static inline void prefetch(const float *p, size_t n) {
    enum { LINE_FLOATS = 16 };
    for (size_t i = 0; i < n; i += LINE_FLOATS) __builtin_prefetch(p + i);
}

/* Columns column0 .. of one head over rows row0 .. row0 + n_rows - 1; o goes to a->out. */
static void delta_columns(const delta_args *a, uint32_t head, uint32_t column0, uint32_t row0,
                          uint32_t n_rows, const float *beta, const float *fade, float *s) {
    const size_t channels = delta_channels(a), out_stride = (size_t)a->n_value_heads * a->value_dim;
    const uint32_t left = a->value_dim - column0;
    const uint32_t n_columns = left < DELTA_COLUMNS ? left : DELTA_COLUMNS;
    const size_t n_bytes = n_columns * sizeof(float);
    const uint32_t key_head = head / (a->n_value_heads / a->n_key_heads);
    const size_t q_at = (size_t)key_head * a->key_dim;
    const size_t k_at = q_at + (size_t)a->n_key_heads * a->key_dim;
    const size_t v_at =
        2 * (size_t)a->n_key_heads * a->key_dim + (size_t)head * a->value_dim + column0;
    float *state = a->state + (size_t)head * a->key_dim * a->value_dim + column0;
    memset(s, 0, (size_t)a->key_dim * DELTA_COLUMNS * sizeof *s);
    for (size_t i = 0; i < a->key_dim; i++)
        memcpy(s + i * DELTA_COLUMNS, state + i * a->value_dim, n_bytes);
    for (uint32_t t = 0; t < n_rows; t++) {
        const float *row = a->qkv + (row0 + t) * channels;
        float v[DELTA_COLUMNS] = {0}, o[DELTA_COLUMNS];
        memcpy(v, row + v_at, n_bytes);
        /* Rows are too far apart for the processor to see the pattern by itself; without this a
         * quarter of the time is spent waiting for them. */
        const float *next = t + 1 < n_rows ? row + channels : row;
        prefetch(next + q_at, a->key_dim);
        prefetch(next + k_at, a->key_dim);
        prefetch(next + v_at, n_columns);
        delta_step(s, row + q_at, row + k_at, v, o, a->key_dim, beta[t], fade[t]);
        memcpy(a->out + (row0 + t) * out_stride + (size_t)head * a->value_dim + column0, o,
               n_bytes);
    }
    for (size_t i = 0; i < a->key_dim; i++)
        memcpy(state + i * a->value_dim, s + i * DELTA_COLUMNS, n_bytes);
}

/* o * rsqrt(mean(o^2) + eps) * norm, then times SiLU(z). */
static void delta_gated_norm(const delta_args *a, uint32_t head, uint32_t row) {
    const uint32_t n = a->value_dim;
    const size_t at = ((size_t)row * a->n_value_heads + head) * n;
    float *o = a->out + at;
    rms_norm_row(o, o, a->norm, n, a->eps);
    for (size_t j = 0; j < n; j += LANES) {
        const f8 gate = f8_silu(delta_load(a->z + at + j, n - j));
        delta_store(o + j, f8_mul(delta_load(o + j, n - j), gate), n - j);
    }
}

static void delta_head(const delta_args *a, uint32_t head, float *scratch) {
    float beta[DELTA_ROWS], fade[DELTA_ROWS];
    for (uint32_t row0 = 0; row0 < a->n_rows; row0 += DELTA_ROWS) {
        const uint32_t n_rows = a->n_rows - row0 < DELTA_ROWS ? a->n_rows - row0 : DELTA_ROWS;
        delta_gates(a, head, row0, n_rows, beta, fade);
        for (uint32_t column0 = 0; column0 < a->value_dim; column0 += DELTA_COLUMNS)
            delta_columns(a, head, column0, row0, n_rows, beta, fade, scratch);
        for (uint32_t t = 0; t < n_rows; t++) delta_gated_norm(a, head, row0 + t);
    }
}

#endif
