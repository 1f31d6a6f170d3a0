/* lanes_avx2.h - eight independent f32 lanes in one AVX2 register; each operation gives the bits of
 * its twin in lanes_scalar.h. Included by kernels_avx2.c before the kernel bodies, and by
 * lanes_avx512.h. */
#ifndef COMPUTE_LANES_H
#define COMPUTE_LANES_H

#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define LANES 8
#define LANES_ARE_REGISTERS 1
#ifndef LANES_WIDE
#define LANES_WIDE 0 /* lanes_avx512.h builds on this file */
#endif

typedef __m256 f8;

static inline f8 f8_load(const float *p) {
    return _mm256_loadu_ps(p);
}
static inline void f8_store(float *p, f8 a) {
    _mm256_storeu_ps(p, a);
}
static inline f8 f8_set1(float x) {
    return _mm256_set1_ps(x);
}
static inline f8 f8_add(f8 a, f8 b) {
    return _mm256_add_ps(a, b);
}
static inline f8 f8_sub(f8 a, f8 b) {
    return _mm256_sub_ps(a, b);
}
static inline f8 f8_mul(f8 a, f8 b) {
    return _mm256_mul_ps(a, b);
}
static inline f8 f8_div(f8 a, f8 b) {
    return _mm256_div_ps(a, b);
}
static inline f8 f8_sqrt(f8 a) {
    return _mm256_sqrt_ps(a);
}
static inline f8 f8_fma(f8 a, f8 b, f8 c) {
    return _mm256_fmadd_ps(a, b, c);
}
static inline f8 f8_max(f8 a, f8 b) {
    return _mm256_max_ps(a, b);
}
static inline f8 f8_min(f8 a, f8 b) {
    return _mm256_min_ps(a, b);
}
static inline f8 f8_round(f8 a) {
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline f8 f8_select_lt(f8 a, f8 b, f8 x, f8 y) {
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}
static inline f8 f8_scale2(f8 a, f8 n) {
    const __m256i bits =
        _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvttps_epi32(n), _mm256_set1_epi32(127)), 23);
    return _mm256_mul_ps(a, _mm256_castsi256_ps(bits));
}
static inline float f8_sum(f8 a) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
/* to[column] gets lane `column` of eight rows, row i in lane i. */
static inline void f8_transpose(f8 to[8], const void *from, size_t row_bytes) {
    __m256 half[8]; /* lanes 0 to 3 of rows i and i + 4, then lanes 4 to 7 */
    for (size_t i = 0; i < 8; i++) {
        const char *p = (const char *)from + i % 4 * row_bytes + i / 4 * 16;
        half[i] = _mm256_insertf128_ps(
            _mm256_castsi256_ps(
                _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)p))),
            _mm_castsi128_ps(_mm_loadu_si128((const __m128i *)(const void *)(p + 4 * row_bytes))),
            1);
    }
    for (size_t i = 0; i < 8; i += 4) {
        const __m256 a = _mm256_unpacklo_ps(half[i], half[i + 1]);
        const __m256 b = _mm256_unpackhi_ps(half[i], half[i + 1]);
        const __m256 c = _mm256_unpacklo_ps(half[i + 2], half[i + 3]);
        const __m256 d = _mm256_unpackhi_ps(half[i + 2], half[i + 3]);
        to[i] = _mm256_shuffle_ps(a, c, 0x44);
        to[i + 1] = _mm256_shuffle_ps(a, c, 0xEE);
        to[i + 2] = _mm256_shuffle_ps(b, d, 0x44);
        to[i + 3] = _mm256_shuffle_ps(b, d, 0xEE);
    }
}
/* A lane holds two bf16 values: the first ones, the second ones. */
static inline f8 f8_first_bf16(f8 a) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(a), 16));
}
static inline f8 f8_second_bf16(f8 a) {
    return _mm256_and_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32((int)0xFFFF0000u)));
}
/* A lane holds four signed bytes: byte i of each, as a number. */
static inline f8 f8_byte(f8 a, int i) {
    const __m256i left = _mm256_slli_epi32(_mm256_castps_si256(a), 24 - 8 * i);
    return _mm256_cvtepi32_ps(_mm256_srai_epi32(left, 24));
}
static inline f8 f8_load_bf16(const void *p) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
static inline f8 f8_load_i8(const void *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(p)));
}
/* An F16 number. */
static inline float f16_load(const void *p) {
    uint16_t half;
    memcpy(&half, p, sizeof half);
    return _cvtsh_ss(half);
}
/* Bits `mask` of eight bytes, from bit `shift` on. */
static inline __m256i bits_of(const void *p, int shift, int mask) {
    const __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64(p));
    return _mm256_and_si256(_mm256_srl_epi32(wide, _mm_cvtsi32_si128(shift)),
                            _mm256_set1_epi32(mask));
}
static inline f8 f8_load_i4(const void *p, int shift) {
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(bits_of(p, shift, 15), _mm256_set1_epi32(8)));
}
static inline f8 f8_load_i6(const void *p, int shift, const void *high, int high_shift) {
    const __m256i code =
        _mm256_or_si256(bits_of(p, shift, 15), _mm256_slli_epi32(bits_of(high, high_shift, 3), 4));
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(code, _mm256_set1_epi32(32)));
}

/* ---- integers: body_codes.h; a code is 16 bits wide, two of a row lie side by side ---- */

typedef int16_t code;
enum { CODE_STEP = 2 };
typedef __m256i n8, n8_rows, n8_weights;

/* Eight integral values below 2^31, converted. */
static inline void f8_store_ints(int32_t *p, f8 a) {
    _mm256_storeu_si256((__m256i *)(void *)p, _mm256_cvttps_epi32(a));
}
/* Sixteen codes from signed bytes. */
static inline void codes_from_i8(code *to, const void *from) {
    const __m128i bytes = _mm_loadu_si128(from);
    _mm256_storeu_si256((__m256i *)(void *)to, _mm256_cvtepi8_epi16(bytes));
}
/* Eight integral values that a byte holds, as codes. */
static inline void f8_store_codes(code *p, f8 a) {
    const __m256i wide = _mm256_cvttps_epi32(a);
    const __m128i low = _mm256_castsi256_si128(wide), high = _mm256_extracti128_si256(wide, 1);
    _mm_storeu_si128((__m128i *)(void *)p, _mm_packs_epi32(low, high));
}
static inline n8 n8_zero(void) {
    return _mm256_setzero_si256();
}
static inline n8 n8_times_256(n8 a) {
    return _mm256_slli_epi32(a, 8);
}
static inline f8 f8_from_ints(n8 a) {
    return _mm256_cvtepi32_ps(a);
}
static inline n8_rows n8_load_rows(const code *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
static inline n8_weights n8_load_weights(const code *p) {
    int32_t pair;
    memcpy(&pair, p, sizeof pair);
    return _mm256_set1_epi32(pair);
}
/* The empty statement pins the sum: gcc would load the weights of a whole step first, and keep the
 * sums in memory for want of registers (80 instead of 127 Gop/s). */
static inline n8 n8_dot(n8 sum, n8_rows x, n8_weights w) {
#if defined(__AVX512VNNI__)
    sum = _mm256_dpwssd_epi32(sum, x, w);
#else
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x, w));
#endif
    __asm__("" : "+v"(sum));
    return sum;
}

#endif
