/* lanes_neon.h - eight independent f32 lanes in two NEON registers; each operation gives the bits
 * of its twin in lanes_scalar.h. Included by kernels_neon.c only, before the kernel bodies. */
#ifndef COMPUTE_LANES_H
#define COMPUTE_LANES_H

#include <arm_neon.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define LANES 8
#define LANES_ARE_REGISTERS 1
#define LANES_WIDE 0

typedef struct {
    float32x4_t lo, hi; /* lanes 0 to 3, 4 to 7 */
} f8;

static inline f8 f8_load(const float *p) {
    return (f8){vld1q_f32(p), vld1q_f32(p + 4)};
}
static inline void f8_store(float *p, f8 a) {
    vst1q_f32(p, a.lo);
    vst1q_f32(p + 4, a.hi);
}
static inline f8 f8_set1(float x) {
    return (f8){vdupq_n_f32(x), vdupq_n_f32(x)};
}
static inline f8 f8_add(f8 a, f8 b) {
    return (f8){vaddq_f32(a.lo, b.lo), vaddq_f32(a.hi, b.hi)};
}
static inline f8 f8_sub(f8 a, f8 b) {
    return (f8){vsubq_f32(a.lo, b.lo), vsubq_f32(a.hi, b.hi)};
}
static inline f8 f8_mul(f8 a, f8 b) {
    return (f8){vmulq_f32(a.lo, b.lo), vmulq_f32(a.hi, b.hi)};
}
static inline f8 f8_div(f8 a, f8 b) {
    return (f8){vdivq_f32(a.lo, b.lo), vdivq_f32(a.hi, b.hi)};
}
static inline f8 f8_sqrt(f8 a) {
    return (f8){vsqrtq_f32(a.lo), vsqrtq_f32(a.hi)};
}
static inline f8 f8_fma(f8 a, f8 b, f8 c) {
    return (f8){vfmaq_f32(c.lo, a.lo, b.lo), vfmaq_f32(c.hi, a.hi, b.hi)};
}
/* vmaxq would give NaN where either is NaN, and +0 of two zeros. */
static inline f8 f8_max(f8 a, f8 b) {
    return (f8){vbslq_f32(vcgtq_f32(a.lo, b.lo), a.lo, b.lo),
                vbslq_f32(vcgtq_f32(a.hi, b.hi), a.hi, b.hi)};
}
static inline f8 f8_min(f8 a, f8 b) {
    return (f8){vbslq_f32(vcltq_f32(a.lo, b.lo), a.lo, b.lo),
                vbslq_f32(vcltq_f32(a.hi, b.hi), a.hi, b.hi)};
}
static inline f8 f8_round(f8 a) {
    return (f8){vrndnq_f32(a.lo), vrndnq_f32(a.hi)};
}
static inline f8 f8_select_lt(f8 a, f8 b, f8 x, f8 y) {
    return (f8){vbslq_f32(vcltq_f32(a.lo, b.lo), x.lo, y.lo),
                vbslq_f32(vcltq_f32(a.hi, b.hi), x.hi, y.hi)};
}
/* 2^n for four integral n in [-126, 127]. */
static inline float32x4_t four_pow2(float32x4_t n) {
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23));
}
static inline f8 f8_scale2(f8 a, f8 n) {
    return (f8){vmulq_f32(a.lo, four_pow2(n.lo)), vmulq_f32(a.hi, four_pow2(n.hi))};
}
static inline float f8_sum(f8 a) {
    const float32x4_t four = vaddq_f32(a.lo, a.hi);
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
/* to[column] gets lanes 0 to 3 of column `column` from four rows. */
static inline void four_columns(float32x4_t to[4], const void *from, size_t row_bytes) {
    float32x4_t row[4];
    for (size_t i = 0; i < 4; i++)
        memcpy(&row[i], (const char *)from + i * row_bytes, sizeof row[i]);
    const float32x4x2_t a = vzipq_f32(row[0], row[2]), b = vzipq_f32(row[1], row[3]);
    const float32x4x2_t low = vzipq_f32(a.val[0], b.val[0]), high = vzipq_f32(a.val[1], b.val[1]);
    to[0] = low.val[0];
    to[1] = low.val[1];
    to[2] = high.val[0];
    to[3] = high.val[1];
}
/* to[column] gets lane `column` of eight rows, row i in lane i. */
static inline void f8_transpose(f8 to[8], const void *from, size_t row_bytes) {
    for (size_t part = 0; part < 8; part += 4) {
        const char *p = (const char *)from + part * sizeof(float);
        float32x4_t lo[4], hi[4];
        four_columns(lo, p, row_bytes);
        four_columns(hi, p + 4 * row_bytes, row_bytes);
        for (size_t i = 0; i < 4; i++) to[part + i] = (f8){lo[i], hi[i]};
    }
}
/* A lane holds two bf16 values: the first ones, the second ones. */
static inline f8 f8_first_bf16(f8 a) {
    return (f8){vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(a.lo), 16)),
                vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(a.hi), 16))};
}
static inline f8 f8_second_bf16(f8 a) {
    const uint32x4_t mask = vdupq_n_u32(0xFFFF0000u);
    return (f8){vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(a.lo), mask)),
                vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(a.hi), mask))};
}
/* A lane holds four signed bytes: byte i of each, as a number. */
static inline f8 f8_byte(f8 a, int i) {
    const int32x4_t up = vdupq_n_s32(24 - 8 * i);
    return (f8){vcvtq_f32_s32(vshrq_n_s32(vshlq_s32(vreinterpretq_s32_f32(a.lo), up), 24)),
                vcvtq_f32_s32(vshrq_n_s32(vshlq_s32(vreinterpretq_s32_f32(a.hi), up), 24))};
}
static inline f8 f8_load_bf16(const void *p) {
    uint16x8_t half;
    memcpy(&half, p, sizeof half); /* weights have any alignment */
    return (f8){vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(half), 16)),
                vreinterpretq_f32_u32(vshll_n_u16(vget_high_u16(half), 16))};
}

/* Eight signed bytes. */
static inline f8 f8_of_i8(int8x8_t codes) {
    const int16x8_t wide = vmovl_s8(codes);
    return (f8){vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide))),
                vcvtq_f32_s32(vmovl_s16(vget_high_s16(wide)))};
}
static inline f8 f8_load_i8(const void *p) {
    int8x8_t codes;
    memcpy(&codes, p, sizeof codes);
    return f8_of_i8(codes);
}
/* An F16 number. */
static inline float f16_load(const void *p) {
    __fp16 half;
    memcpy(&half, p, sizeof half);
    return half;
}
/* Bits `mask` of eight bytes, from bit `shift` on. */
static inline uint8x8_t bits_of(const void *p, int shift, uint8_t mask) {
    uint8x8_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    return vand_u8(vshl_u8(bytes, vdup_n_s8((int8_t)-shift)), vdup_n_u8(mask));
}
static inline f8 f8_load_i4(const void *p, int shift) {
    return f8_of_i8(vsub_s8(vreinterpret_s8_u8(bits_of(p, shift, 15)), vdup_n_s8(8)));
}
static inline f8 f8_load_i6(const void *p, int shift, const void *high, int high_shift) {
    const uint8x8_t code =
        vorr_u8(bits_of(p, shift, 15), vshl_n_u8(bits_of(high, high_shift, 3), 4));
    return f8_of_i8(vsub_s8(vreinterpret_s8_u8(code), vdup_n_s8(32)));
}

/* ---- integers: body_codes.h ---- */

typedef struct {
    int32x4_t lo, hi;
} n8;

/* Eight integral values below 2^31, converted. */
static inline void f8_store_ints(int32_t *p, f8 a) {
    vst1q_s32(p, vcvtq_s32_f32(a.lo));
    vst1q_s32(p + 4, vcvtq_s32_f32(a.hi));
}
static inline int16x8_t f8_to_i16(f8 a) {
    return vcombine_s16(vmovn_s32(vcvtq_s32_f32(a.lo)), vmovn_s32(vcvtq_s32_f32(a.hi)));
}
static inline n8 n8_zero(void) {
    return (n8){vdupq_n_s32(0), vdupq_n_s32(0)};
}
static inline n8 n8_times_256(n8 a) {
    return (n8){vshlq_n_s32(a.lo, 8), vshlq_n_s32(a.hi, 8)};
}
static inline f8 f8_from_ints(n8 a) {
    return (f8){vcvtq_f32_s32(a.lo), vcvtq_f32_s32(a.hi)};
}

#ifdef __ARM_FEATURE_DOTPROD

/* A code is a byte, four of a row lie side by side. */
typedef int8_t code;
enum { CODE_STEP = 4 };
typedef struct {
    int8x16_t lo, hi; /* rows 0 to 3, 4 to 7 */
} n8_rows;
typedef int8x16_t n8_weights;

/* Sixteen codes from signed bytes. */
static inline void codes_from_i8(code *to, const void *from) {
    memcpy(to, from, 16);
}
/* Eight integral values that a byte holds, as codes. */
static inline void f8_store_codes(code *p, f8 a) {
    vst1_s8(p, vmovn_s16(f8_to_i16(a)));
}
static inline n8_rows n8_load_rows(const code *p) {
    return (n8_rows){vld1q_s8(p), vld1q_s8(p + 16)};
}
static inline n8_weights n8_load_weights(const code *p) {
    int32_t four;
    memcpy(&four, p, sizeof four);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
}
static inline n8 n8_dot(n8 sum, n8_rows x, n8_weights w) {
    return (n8){vdotq_s32(sum.lo, x.lo, w), vdotq_s32(sum.hi, x.hi, w)};
}

#else

/* A code is 16 bits wide, two of a row lie side by side. */
typedef int16_t code;
enum { CODE_STEP = 2 };
typedef int16x8x2_t n8_rows; /* the first codes of eight rows, the second ones */
typedef struct {
    int16x4_t first, second;
} n8_weights;

/* Sixteen codes from signed bytes. */
static inline void codes_from_i8(code *to, const void *from) {
    int8x16_t bytes;
    memcpy(&bytes, from, sizeof bytes);
    vst1q_s16(to, vmovl_s8(vget_low_s8(bytes)));
    vst1q_s16(to + 8, vmovl_s8(vget_high_s8(bytes)));
}
/* Eight integral values that a byte holds, as codes. */
static inline void f8_store_codes(code *p, f8 a) {
    vst1q_s16(p, f8_to_i16(a));
}
static inline n8_rows n8_load_rows(const code *p) {
    return vld2q_s16(p);
}
static inline n8_weights n8_load_weights(const code *p) {
    return (n8_weights){vdup_n_s16(p[0]), vdup_n_s16(p[1])};
}
static inline n8 n8_dot(n8 sum, n8_rows x, n8_weights w) {
    sum.lo = vmlal_s16(sum.lo, vget_low_s16(x.val[0]), w.first);
    sum.hi = vmlal_s16(sum.hi, vget_high_s16(x.val[0]), w.first);
    sum.lo = vmlal_s16(sum.lo, vget_low_s16(x.val[1]), w.second);
    sum.hi = vmlal_s16(sum.hi, vget_high_s16(x.val[1]), w.second);
    return sum;
}

#endif

#endif
