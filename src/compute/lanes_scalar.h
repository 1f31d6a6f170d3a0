/* lanes_scalar.h - eight independent f32 lanes in plain C: the definition of what a lane operation
 * gives. Included by kernels_scalar.c before the kernel bodies, and by fmath.c with LANES 1. */
#ifndef COMPUTE_LANES_H
#define COMPUTE_LANES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/tensor.h"

#ifndef LANES
#define LANES 8
#endif
/* Whether it pays to unroll a loop over many f8; here it only takes a compiler minutes. */
#define LANES_ARE_REGISTERS 0
/* Whether 16 lanes are one vector too, a v16. */
#define LANES_WIDE 0

typedef struct {
    float v[LANES];
} f8;

#define EACH_LANE for (int i = 0; i < LANES; i++)

static inline f8 f8_load(const float *p) {
    f8 r;
    memcpy(&r, p, sizeof r);
    return r;
}
static inline void f8_store(float *p, f8 a) {
    memcpy(p, &a, sizeof a);
}
static inline f8 f8_set1(float x) {
    f8 r;
    EACH_LANE r.v[i] = x;
    return r;
}
static inline f8 f8_add(f8 a, f8 b) {
    EACH_LANE a.v[i] += b.v[i];
    return a;
}
static inline f8 f8_sub(f8 a, f8 b) {
    EACH_LANE a.v[i] -= b.v[i];
    return a;
}
static inline f8 f8_mul(f8 a, f8 b) {
    EACH_LANE a.v[i] *= b.v[i];
    return a;
}
static inline f8 f8_div(f8 a, f8 b) {
    EACH_LANE a.v[i] /= b.v[i];
    return a;
}
static inline f8 f8_sqrt(f8 a) {
    EACH_LANE a.v[i] = sqrtf(a.v[i]);
    return a;
}
/* a * b + c, rounded once */
static inline f8 f8_fma(f8 a, f8 b, f8 c) {
    EACH_LANE c.v[i] = fmaf(a.v[i], b.v[i], c.v[i]);
    return c;
}
/* a > b ? a : b, so b where either is NaN */
static inline f8 f8_max(f8 a, f8 b) {
    EACH_LANE a.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
    return a;
}
static inline f8 f8_min(f8 a, f8 b) {
    EACH_LANE a.v[i] = a.v[i] < b.v[i] ? a.v[i] : b.v[i];
    return a;
}
/* to the nearest integer, ties to even */
static inline f8 f8_round(f8 a) {
    EACH_LANE a.v[i] = rintf(a.v[i]);
    return a;
}
/* a < b ? x : y */
static inline f8 f8_select_lt(f8 a, f8 b, f8 x, f8 y) {
    EACH_LANE x.v[i] = a.v[i] < b.v[i] ? x.v[i] : y.v[i];
    return x;
}
/* a * 2^n for integral n in [-126, 127]; a NaN where `a` is one, whatever n. Adding 1.5 * 2^23
 * moves the integer into the low bits of the sum, which also holds for an n that no conversion
 * takes. */
static inline f8 f8_scale2(f8 a, f8 n) {
    EACH_LANE {
        const float moved = n.v[i] + 0x1.8p+23f;
        uint32_t bits;
        memcpy(&bits, &moved, sizeof bits);
        bits = (bits + 127u) << 23;
        float two_n;
        memcpy(&two_n, &bits, sizeof two_n);
        a.v[i] *= two_n;
    }
    return a;
}
#if LANES == 8
/* The fixed tree ((0+4)+(2+6)) + ((1+5)+(3+7)). */
static inline float f8_sum(f8 a) {
    const float s0 = a.v[0] + a.v[4], s1 = a.v[1] + a.v[5], s2 = a.v[2] + a.v[6],
                s3 = a.v[3] + a.v[7];
    return (s0 + s2) + (s1 + s3);
}
/* to[column] gets lane `column` of eight rows, row i in lane i. */
static inline void f8_transpose(f8 to[8], const void *from, size_t row_bytes) {
    for (size_t column = 0; column < 8; column++)
        EACH_LANE memcpy(&to[column].v[i],
                         (const char *)from + (size_t)i * row_bytes + column * sizeof(float),
                         sizeof(float));
}
/* A lane holds two bf16 values: the first ones, the second ones. */
static inline f8 f8_first_bf16(f8 a) {
    EACH_LANE {
        uint32_t bits;
        memcpy(&bits, &a.v[i], sizeof bits);
        bits <<= 16;
        memcpy(&a.v[i], &bits, sizeof bits);
    }
    return a;
}
static inline f8 f8_second_bf16(f8 a) {
    EACH_LANE {
        uint32_t bits;
        memcpy(&bits, &a.v[i], sizeof bits);
        bits &= 0xFFFF0000u;
        memcpy(&a.v[i], &bits, sizeof bits);
    }
    return a;
}
/* A lane holds four signed bytes: byte i of each, as a number. */
static inline f8 f8_byte(f8 a, int byte) {
    EACH_LANE {
        signed char bytes[sizeof(float)];
        memcpy(bytes, &a.v[i], sizeof bytes);
        a.v[i] = (float)bytes[byte];
    }
    return a;
}
/* Eight bf16 values, widened. */
static inline f8 f8_load_bf16(const void *p) {
    f8 r;
    EACH_LANE {
        uint16_t half;
        memcpy(&half, (const char *)p + 2 * i, sizeof half);
        const uint32_t bits = (uint32_t)half << 16;
        memcpy(&r.v[i], &bits, sizeof bits);
    }
    return r;
}
/* Eight signed bytes. */
static inline f8 f8_load_i8(const void *p) {
    f8 r;
    EACH_LANE r.v[i] = (float)((const int8_t *)p)[i];
    return r;
}
/* An F16 number. */
static inline float f16_load(const void *p) {
    uint16_t half;
    memcpy(&half, p, sizeof half);
    return f16_to_float(half);
}
/* Four bits of eight bytes, from bit `shift` (0 or 4) on, less 8. */
static inline f8 f8_load_i4(const void *p, int shift) {
    f8 r;
    EACH_LANE r.v[i] = (float)((((const uint8_t *)p)[i] >> shift & 15) - 8);
    return r;
}
/* The same with two more bits above them, of eight other bytes, less 32. */
static inline f8 f8_load_i6(const void *p, int shift, const void *high, int high_shift) {
    f8 r;
    EACH_LANE {
        const int low = ((const uint8_t *)p)[i] >> shift & 15;
        r.v[i] = (float)((low | (((const uint8_t *)high)[i] >> high_shift & 3) << 4) - 32);
    }
    return r;
}

/* ---- integers: body_codes.h; a code is 16 bits wide, two of a row lie side by side ---- */

typedef int16_t code;
enum { CODE_STEP = 2 };
typedef struct {
    int32_t v[LANES];
} n8;
typedef struct {
    code v[LANES][CODE_STEP];
} n8_rows;
typedef struct {
    code v[CODE_STEP];
} n8_weights;

/* Eight integral values below 2^31, converted. */
static inline void f8_store_ints(int32_t *p, f8 a) {
    EACH_LANE p[i] = (int32_t)a.v[i];
}
/* Sixteen codes from signed bytes. */
static inline void codes_from_i8(code *to, const void *from) {
    /* NOLINTNEXTLINE(bugprone-signed-char-misuse,cert-str34-c): numbers, no characters. */
    for (int i = 0; i < 16; i++) to[i] = ((const int8_t *)from)[i];
}
/* Eight integral values that a byte holds, as codes. */
static inline void f8_store_codes(code *p, f8 a) {
    EACH_LANE p[i] = (code)a.v[i];
}
static inline n8 n8_zero(void) {
    return (n8){{0}};
}
static inline n8 n8_times_256(n8 a) {
    EACH_LANE a.v[i] *= 256;
    return a;
}
static inline f8 f8_from_ints(n8 a) {
    f8 r;
    EACH_LANE r.v[i] = (float)a.v[i];
    return r;
}
static inline n8_rows n8_load_rows(const code *p) {
    n8_rows r;
    memcpy(&r, p, sizeof r);
    return r;
}
static inline n8_weights n8_load_weights(const code *p) {
    n8_weights r;
    memcpy(&r, p, sizeof r);
    return r;
}
static inline n8 n8_dot(n8 sum, n8_rows x, n8_weights w) {
    EACH_LANE sum.v[i] += x.v[i][0] * w.v[0] + x.v[i][1] * w.v[1];
    return sum;
}
#endif

#undef EACH_LANE

#endif
