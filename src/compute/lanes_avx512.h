/* lanes_avx512.h - the eight lanes of lanes_avx2.h, and sixteen in one AVX-512 register for the
 * tiles of a product, where 16 rows are one vector; each operation gives the bits of its twin in
 * lanes_scalar.h. Needs AVX-512 F, BW and VL; sums products of integers with VNNI where the file
 * that includes it is compiled for that. Included by kernels_avx512.c and kernels_avx512vnni.c
 * only, before the kernel bodies. */
#ifndef COMPUTE_LANES_AVX512_H
#define COMPUTE_LANES_AVX512_H

#define LANES_WIDE 1
#include "compute/lanes_avx2.h"

typedef __m512 v16;

static inline v16 v16_load(const float *p) {
    return _mm512_loadu_ps(p);
}
static inline void v16_store(float *p, v16 a) {
    _mm512_storeu_ps(p, a);
}
static inline v16 v16_set1(float x) {
    return _mm512_set1_ps(x);
}
static inline v16 v16_add(v16 a, v16 b) {
    return _mm512_add_ps(a, b);
}
static inline v16 v16_mul(v16 a, v16 b) {
    return _mm512_mul_ps(a, b);
}
static inline v16 v16_fma(v16 a, v16 b, v16 c) {
    return _mm512_fmadd_ps(a, b, c);
}
/* In no result: of the ceiling, whose value nobody compares. */
static inline float v16_sum(v16 a) {
    return _mm512_reduce_add_ps(a);
}

/* ---- integers ---- */

typedef __m512i n16, n16_rows, n16_weights;

static inline n16 n16_zero(void) {
    return _mm512_setzero_si512();
}
static inline n16 n16_times_256(n16 a) {
    return _mm512_slli_epi32(a, 8);
}
static inline v16 v16_from_ints(n16 a) {
    return _mm512_cvtepi32_ps(a);
}
static inline n16_rows n16_load_rows(const code *p) {
    return _mm512_loadu_si512(p);
}
static inline n16_weights n16_load_weights(const code *p) {
    int32_t pair;
    memcpy(&pair, p, sizeof pair);
    return _mm512_set1_epi32(pair);
}
/* Pinned as n8_dot is. */
static inline n16 n16_dot(n16 sum, n16_rows x, n16_weights w) {
#if defined(__AVX512VNNI__)
    sum = _mm512_dpwssd_epi32(sum, x, w);
#else
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(x, w));
#endif
    __asm__("" : "+v"(sum));
    return sum;
}

#endif
