/* codes.c - int6 and int4: a scale is searched for, then the codes are packed.
 *
 * Of the largest code q (31 or 7), per block of 32 values w:
 *
 *     codes(s)  = clamp( round_half_even( w / s ), -q, q )
 *     error(s)  = sum of (w - codes(s) s)^2
 *
 * The scale max|w| / q is seldom the best one. With seven steps it pays to clip the few largest
 * values and to place the others better; with 31 the error depends on how 32 values happen to fall
 * between the steps, and a wider step is often the luckier one. So N_TRIED first scales are tried,
 * max|w| over 6.5 to 10.5 (int4) or 24.8 to 34.1 (int6); each is replaced by the scale that is best
 * for the codes it gives (sum of w c / sum of c^2, least squares), rounded to F16, and the least
 * error(s) wins, the earlier of equals. On normal values the squared error is then 0.89 (int4) and
 * 0.84 (int6) of what max|w| / q leaves, and within 1.1 % of the best of all F16 scales
 * (codes_test.c); twice as many tries win 1 % more.
 *
 * All in f32 and in one order, so that any machine finds the same codes. A block of zeros has the
 * least scale that F16 holds. int8 has its own rule (int8.c). */
#include "checkpoint/codes.h"

#include <assert.h>
#include <math.h>

#include "checkpoint/int8.h"

enum { N_TRIED = 16, N_SUMS = 4 };

void code_loss_add(code_loss *sum, const code_loss *more) {
    sum->error2 += more->error2;
    sum->size2 += more->size2;
    sum->n_clipped += more->n_clipped;
    if (more->largest > sum->largest) sum->largest = more->largest;
}

bool codes_type(dtype type) {
    return type == DTYPE_I8 || type == DTYPE_INT6 || type == DTYPE_INT4;
}

const char *codes_name(dtype type) {
    return type == DTYPE_I8     ? "int8"
           : type == DTYPE_INT6 ? "int6"
           : type == DTYPE_INT4 ? "int4"
                                : "16bit";
}

size_t codes_bytes(dtype type, size_t n) {
    return n / INT8_BLOCK *
           (type == DTYPE_I8     ? INT8_BLOCK
            : type == DTYPE_INT6 ? INT6_BYTES
                                 : INT4_BYTES);
}

dtype codes_of(const tensor *t, uint64_t n_in) {
    if (t->type != DTYPE_U8 || t->rank != 2 || n_in % INT8_BLOCK != 0) return t->type;
    const uint64_t n_blocks = n_in / INT8_BLOCK;
    if (t->shape[1] == n_blocks * INT6_BYTES) return DTYPE_INT6;
    return t->shape[1] == n_blocks * INT4_BYTES ? DTYPE_INT4 : DTYPE_U8;
}

/* ---- packing ----------------------------------------------------------------------------------
 */

static void pack(unsigned char *out, const int8_t *codes, dtype type) {
    const int offset = type == DTYPE_INT6 ? 32 : 8;
    unsigned char stored[INT8_BLOCK];
    for (int i = 0; i < INT8_BLOCK; i++) stored[i] = (unsigned char)(codes[i] + offset);
    for (int i = 0; i < INT4_BYTES; i++)
        out[i] = (unsigned char)((stored[i] & 15) | (stored[i + INT4_BYTES] & 15) << 4);
    for (int i = 0; type == DTYPE_INT6 && i < INT6_BYTES - INT4_BYTES; i++)
        out[INT4_BYTES + i] = (unsigned char)(stored[i] >> 4 | stored[i + 8] >> 4 << 2 |
                                              stored[i + 16] >> 4 << 4 | stored[i + 24] >> 4 << 6);
}

void codes_unpack(int8_t out[INT8_BLOCK], dtype type, const void *codes, size_t i) {
    const unsigned char *p = (const unsigned char *)codes + codes_bytes(type, i * INT8_BLOCK);
    if (type == DTYPE_I8) {
        memcpy(out, p, INT8_BLOCK);
        return;
    }
    for (int k = 0; k < INT8_BLOCK; k++) {
        const int low = p[k % INT4_BYTES] >> k / INT4_BYTES * 4 & 15;
        const int high = type == DTYPE_INT6 ? p[INT4_BYTES + k % 8] >> k / 8 * 2 & 3 : 0;
        out[k] = (int8_t)(type == DTYPE_INT6 ? (low | high << 4) - 32 : low - 8);
    }
}

size_t codes_find_bad(dtype type, const void *codes, size_t n) {
    const int least = type == DTYPE_I8 ? -128 : type == DTYPE_INT6 ? -32 : -8;
    if (type == DTYPE_I8) { /* by far the most bytes, and one library call */
        const unsigned char *data = codes, *bad = memchr(data, 0x80, n);
        return bad == NULL ? n : (size_t)(bad - data);
    }
    for (size_t block = 0; block < n / INT8_BLOCK; block++) {
        int8_t c[INT8_BLOCK];
        codes_unpack(c, type, codes, block);
        for (size_t i = 0; i < INT8_BLOCK; i++)
            if (c[i] == least) return block * INT8_BLOCK + i;
    }
    return n;
}

bool codes_zero(dtype type, const void *codes, size_t i) {
    int8_t c[INT8_BLOCK];
    codes_unpack(c, type, codes, i);
    for (int k = 0; k < INT8_BLOCK; k++)
        if (c[k] != 0) return false;
    return true;
}

/* ---- searching --------------------------------------------------------------------------------
 */

/* To the nearest integer, ties to even, for |x| < 2^22: what is added leaves no bits below one. */
static float nearest(float x) {
    return (x + 0x1.8p+23f) - 0x1.8p+23f;
}

static void choose_codes(float *codes, const float *w, float scale, float limit) {
    for (int i = 0; i < INT8_BLOCK; i++) {
        const float x = w[i] / scale;
        const float low = x < -limit ? -limit : x;
        codes[i] = nearest(low > limit ? limit : low);
    }
}

/* Four sums side by side: a single chain of additions would take four times as long. */
static float add_up(const float *sums) {
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

static float error_of(const float *w, const float *codes, float scale) {
    float sums[N_SUMS] = {0};
    for (int i = 0; i < INT8_BLOCK; i++) {
        const float d = w[i] - codes[i] * scale;
        sums[i % N_SUMS] += d * d;
    }
    return add_up(sums);
}

static float to_scale(float x) {
    return f16_to_float(f16_from_float(x < 0x1p-24f ? 0x1p-24f : x));
}

/* The best scale for given codes; `first` when they are all zero. */
static float refine(const float *w, const float *codes, float first) {
    float products[N_SUMS] = {0}, squares[N_SUMS] = {0};
    for (int i = 0; i < INT8_BLOCK; i++) {
        products[i % N_SUMS] += w[i] * codes[i];
        squares[i % N_SUMS] += codes[i] * codes[i];
    }
    const float square = add_up(squares);
    return to_scale(square > 0.0f ? add_up(products) / square : first);
}

static float search_scale(const float *w, float most, float limit) {
    const bool six = limit == 31.0f;
    const float widest = six ? 0.8f * limit : limit - 0.5f;
    const float narrowest = six ? 1.1f * limit : 1.5f * limit;
    float best = to_scale(most / limit), least = INFINITY, codes[INT8_BLOCK];
    for (int i = 0; i < N_TRIED; i++) {
        const float steps = widest + (narrowest - widest) * (float)i / (float)(N_TRIED - 1);
        const float first = to_scale(most / steps);
        choose_codes(codes, w, first, limit);
        const float scale = refine(w, codes, first);
        choose_codes(codes, w, scale, limit);
        const float error = error_of(w, codes, scale);
        if (error < least) {
            least = error;
            best = scale;
        }
    }
    return best;
}

static bool quantise_block(dtype type, unsigned char *out, uint16_t *scale_bits, const float *w,
                           code_loss *loss) {
    const float limit = type == DTYPE_INT6 ? 31.0f : 7.0f;
    float most = 0.0f, codes[INT8_BLOCK];
    int8_t whole[INT8_BLOCK];
    for (int i = 0; i < INT8_BLOCK; i++) {
        if (!(fabsf(w[i]) < 65520.0f)) return false;
        if (fabsf(w[i]) > most) most = fabsf(w[i]);
    }
    const float scale = search_scale(w, most, limit);
    *scale_bits = f16_from_float(scale);
    choose_codes(codes, w, scale, limit);
    for (int i = 0; i < INT8_BLOCK; i++) {
        const double error = (double)w[i] - (double)(codes[i] * scale);
        whole[i] = (int8_t)codes[i];
        loss->error2 += error * error;
        loss->size2 += (double)w[i] * (double)w[i];
        if (fabs(error) > loss->largest) loss->largest = fabs(error);
        if (fabsf(w[i] / scale) > limit + 0.5f) loss->n_clipped++;
    }
    pack(out, whole, type);
    return true;
}

bool codes_quantise_row(dtype type, void *codes, uint16_t *scales, const float *w, size_t n,
                        code_loss *loss) {
    assert(codes_type(type));
    if (type == DTYPE_I8) return int8_quantise_row(codes, scales, w, n, loss);
    *loss = (code_loss){0};
    for (size_t i = 0; i < n; i += INT8_BLOCK)
        if (!quantise_block(type, (unsigned char *)codes + codes_bytes(type, i),
                            scales + i / INT8_BLOCK, w + i, loss))
            return false;
    return true;
}
