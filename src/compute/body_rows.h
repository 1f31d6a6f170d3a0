/* body_rows.h - norms, gates and the rotation of one row.
 *
 * A sum over a row is eight partial sums (k mod 8) in rising k, joined by f8_sum's tree; the lanes
 * beyond the row's end hold zeros. Divisions and square roots are the exact IEEE operations: the
 * processor's approximations differ between makers. */
#ifndef COMPUTE_BODY_ROWS_H
#define COMPUTE_BODY_ROWS_H

/* The first n < LANES values at p, zeros behind them; and back. */
static inline f8 f8_load_part(const float *p, size_t n) {
    float part[LANES] = {0};
    memcpy(part, p, n * sizeof *p);
    return f8_load(part);
}
static inline void f8_store_part(float *p, f8 a, size_t n) {
    float part[LANES];
    f8_store(part, a);
    memcpy(p, part, n * sizeof *p);
}

static float sum_of_squares(const float *x, size_t n) {
    f8 sum = f8_set1(0.0f);
    size_t k = 0;
    for (; k + LANES <= n; k += LANES) {
        const f8 v = f8_load(x + k);
        sum = f8_fma(v, v, sum);
    }
    if (k < n) {
        const f8 v = f8_load_part(x + k, n - k);
        sum = f8_fma(v, v, sum);
    }
    return f8_sum(sum);
}

/* out = x * inverse * weight */
static void scale_row(float *out, const float *x, const float *weight, size_t n, float inverse) {
    const f8 scale = f8_set1(inverse);
    size_t k = 0;
    for (; k + LANES <= n; k += LANES)
        f8_store(out + k, f8_mul(f8_mul(f8_load(x + k), scale), f8_load(weight + k)));
    if (k < n) {
        const f8 w = f8_load_part(weight + k, n - k);
        f8_store_part(out + k, f8_mul(f8_mul(f8_load_part(x + k, n - k), scale), w), n - k);
    }
}

static void rms_norm_row(float *out, const float *x, const float *weight, uint32_t n, float eps) {
    const float mean = sum_of_squares(x, n) / (float)n;
    scale_row(out, x, weight, n, 1.0f / sqrtf(mean + eps));
}

/* The mean first, then the centred values, which go to `out`, and their squares. */
static void layer_norm_row(float *out, const float *x, const float *weight, const float *bias,
                           uint32_t n, float eps) {
    f8 sum = f8_set1(0.0f);
    size_t k = 0;
    for (; k + LANES <= n; k += LANES) sum = f8_add(sum, f8_load(x + k));
    if (k < n) sum = f8_add(sum, f8_load_part(x + k, n - k));
    const f8 mean = f8_set1(f8_sum(sum) / (float)n);
    for (k = 0; k + LANES <= n; k += LANES) f8_store(out + k, f8_sub(f8_load(x + k), mean));
    if (k < n) f8_store_part(out + k, f8_sub(f8_load_part(x + k, n - k), mean), n - k);
    const float variance = sum_of_squares(out, n) / (float)n;
    const f8 scale = f8_set1(1.0f / sqrtf(variance + eps));
    for (k = 0; k + LANES <= n; k += LANES) {
        const f8 v = f8_mul(f8_load(out + k), scale);
        f8_store(out + k, f8_fma(v, f8_load(weight + k), f8_load(bias + k)));
    }
    if (k < n) {
        const f8 v = f8_mul(f8_load_part(out + k, n - k), scale);
        const f8 w = f8_load_part(weight + k, n - k), b = f8_load_part(bias + k, n - k);
        f8_store_part(out + k, f8_fma(v, w, b), n - k);
    }
}

static void silu_mul_row(float *gate, const float *up, size_t n) {
    size_t k = 0;
    for (; k + LANES <= n; k += LANES)
        f8_store(gate + k, f8_mul(f8_silu(f8_load(gate + k)), f8_load(up + k)));
    if (k < n) {
        const f8 g = f8_silu(f8_load_part(gate + k, n - k));
        f8_store_part(gate + k, f8_mul(g, f8_load_part(up + k, n - k)), n - k);
    }
}

static void sigmoid_mul_row(float *x, const float *gate, size_t n) {
    size_t k = 0;
    for (; k + LANES <= n; k += LANES)
        f8_store(x + k, f8_mul(f8_load(x + k), f8_sigmoid(f8_load(gate + k))));
    if (k < n) {
        const f8 g = f8_sigmoid(f8_load_part(gate + k, n - k));
        f8_store_part(x + k, f8_mul(f8_load_part(x + k, n - k), g), n - k);
    }
}

static void gelu_row(float *x, size_t n) {
    size_t k = 0;
    for (; k + LANES <= n; k += LANES) f8_store(x + k, f8_gelu(f8_load(x + k)));
    if (k < n) f8_store_part(x + k, f8_gelu(f8_load_part(x + k, n - k)), n - k);
}

static void gelu_tanh_row(float *x, size_t n) {
    size_t k = 0;
    for (; k + LANES <= n; k += LANES) f8_store(x + k, f8_gelu_tanh(f8_load(x + k)));
    if (k < n) f8_store_part(x + k, f8_gelu_tanh(f8_load_part(x + k, n - k)), n - k);
}

static void exp_row(float *x, size_t n) {
    size_t k = 0;
    for (; k + LANES <= n; k += LANES) f8_store(x + k, f8_exp(f8_load(x + k)));
    if (k < n) f8_store_part(x + k, f8_exp(f8_load_part(x + k, n - k)), n - k);
}

/* Pairs (i, i + rotary_dim / 2) turned by the angle i. */
static void rotate_row(float *x, uint32_t rotary_dim, const float *cos, const float *sin) {
    const size_t n = rotary_dim / 2;
    float *y = x + n;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const f8 a = f8_load(x + i), b = f8_load(y + i), c = f8_load(cos + i), s = f8_load(sin + i);
        f8_store(x + i, f8_sub(f8_mul(a, c), f8_mul(b, s)));
        f8_store(y + i, f8_add(f8_mul(b, c), f8_mul(a, s)));
    }
    if (i < n) {
        const f8 a = f8_load_part(x + i, n - i), b = f8_load_part(y + i, n - i);
        const f8 c = f8_load_part(cos + i, n - i), s = f8_load_part(sin + i, n - i);
        f8_store_part(x + i, f8_sub(f8_mul(a, c), f8_mul(b, s)), n - i);
        f8_store_part(y + i, f8_add(f8_mul(b, c), f8_mul(a, s)), n - i);
    }
}

#endif
