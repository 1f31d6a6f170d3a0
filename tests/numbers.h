/* numbers.h - what the tests of src/compute share: reproducible values, comparing bits. */
#ifndef TESTS_NUMBERS_H
#define TESTS_NUMBERS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A step of xorshift; never 0 for a seed that is not. */
static inline uint32_t next_random(uint32_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

/* Values in [-1, 1). */
static inline void fill_random(float *x, size_t n, uint32_t seed) {
    for (size_t i = 0; i < n; i++) x[i] = (float)(next_random(&seed) >> 8) * 0x1p-23f - 1.0f;
}

/* n floats, aligned to 64 bytes, for free(). */
static inline float *new_floats(size_t n) {
    float *p = aligned_alloc(64, (n * sizeof *p + 64) / 64 * 64);
    assert_non_null(p);
    return p;
}

static inline uint32_t float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float float_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Equal to the bit, or both NaN: which NaN comes out of an operation is the compiler's choice. */
static inline void assert_same_floats(const float *a, const float *b, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (float_bits(a[i]) != float_bits(b[i]) && !(isnan(a[i]) && isnan(b[i])))
            fail_msg("value %zu of %zu: %a and %a differ", i, n, (double)a[i], (double)b[i]);
}

#endif
