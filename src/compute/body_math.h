/* body_math.h - exp, sigmoid, SiLU, erf and both GELUs over lanes: the one definition of each. The
 * kernel tables include it over eight lanes, fmath.c over one, so all of them give the same bits.
 *
 * The polynomials are minimax fits printed by tools/fmath_coefficients.py; fmath_test.c and
 * tools/mathcheck.c hold their errors. A NaN goes in and comes out as a NaN: the bounds below are
 * written with the constant first because f8_min and f8_max give their second operand when either
 * is a NaN. */
#ifndef COMPUTE_BODY_MATH_H
#define COMPUTE_BODY_MATH_H

static inline f8 f8_abs(f8 x) {
    return f8_max(f8_sub(f8_set1(0.0f), x), x);
}

/* e^x = 2^n e^r with n = round(x / ln 2); ln 2 in two parts, the first of 14 bits, so that n times
 * it is exact. 2^n is applied in two halves: n itself may be outside the exponents of f32 where the
 * result is a subnormal or just below infinity. */
static inline f8 f8_exp(f8 x) {
    x = f8_min(f8_set1(89.0f), f8_max(f8_set1(-105.0f), x));
    const f8 n = f8_round(f8_mul(x, f8_set1(0x1.715476p+0f)));
    f8 r = f8_fma(n, f8_set1(-0x1.62ep-1f), x);
    r = f8_fma(n, f8_set1(-0x1.0bfbe8p-15f), r);
    f8 q = f8_set1(0x1.6a2444p-10f); /* (e^r - 1 - r) / r^2 */
    q = f8_fma(q, r, f8_set1(0x1.1239d4p-7f));
    q = f8_fma(q, r, f8_set1(0x1.5558f2p-5f));
    q = f8_fma(q, r, f8_set1(0x1.555492p-3f));
    q = f8_fma(q, r, f8_set1(0x1.fffffcp-2f));
    const f8 p = f8_add(f8_fma(f8_mul(r, r), q, r), f8_set1(1.0f));
    const f8 half = f8_round(f8_mul(n, f8_set1(0.5f)));
    return f8_scale2(f8_scale2(p, half), f8_sub(n, half));
}

/* 1 / (1 + e) or e / (1 + e) with e = e^-|x|, which cannot overflow. The quotient is corrected by
 * what the sum and the division rounded away: e's own error leaves no room for theirs. */
static inline f8 f8_sigmoid(f8 x) {
    const f8 zero = f8_set1(0.0f), one = f8_set1(1.0f);
    const f8 e = f8_exp(f8_sub(zero, f8_abs(x)));
    const f8 above = f8_select_lt(x, zero, e, one);
    const f8 below = f8_add(one, e);
    const f8 q = f8_div(above, below), minus_q = f8_sub(zero, q);
    f8 left = f8_fma(minus_q, below, above);
    left = f8_fma(minus_q, f8_sub(e, f8_sub(below, one)), left);
    const f8 inverse = f8_fma(below, f8_set1(-0.5f), f8_set1(1.5f)); /* 1 / below within 1/8 */
    return f8_fma(left, inverse, q);
}

static inline f8 f8_silu(f8 x) {
    return f8_mul(x, f8_sigmoid(x));
}

/* Up to 1 a polynomial in x^2; above it 1 - erfc, with -ln erfc a polynomial in |x| - 1. From 4 on
 * erfc is below half an ulp of 1. */
static inline f8 f8_erf(f8 x) {
    const f8 one = f8_set1(1.0f), zero = f8_set1(0.0f);
    const f8 a = f8_abs(x);

    const f8 t = f8_mul(x, x);
    f8 p = f8_set1(0x1.4969f6p-14f);
    p = f8_fma(p, t, f8_set1(-0x1.a3f6e8p-11f));
    p = f8_fma(p, t, f8_set1(0x1.5405aep-8f));
    p = f8_fma(p, t, f8_set1(-0x1.b7f90cp-6f));
    p = f8_fma(p, t, f8_set1(0x1.ce2cf8p-4f));
    p = f8_fma(p, t, f8_set1(-0x1.81273ep-2f));
    p = f8_fma(p, t, f8_set1(0x1.06eba8p-3f));
    const f8 near = f8_fma(x, p, x);

    const f8 u = f8_sub(f8_min(f8_set1(4.0f), a), one);
    f8 g = f8_set1(0x1.06c5b8p-16f);
    g = f8_fma(g, u, f8_set1(-0x1.039ac2p-12f));
    g = f8_fma(g, u, f8_set1(0x1.f20f66p-10f));
    g = f8_fma(g, u, f8_set1(-0x1.44855ap-7f));
    g = f8_fma(g, u, f8_set1(0x1.53c4ccp-5f));
    g = f8_fma(g, u, f8_set1(0x1.afaeb8p-1f));
    g = f8_fma(g, u, f8_set1(0x1.51c9a2p+1f));
    g = f8_fma(g, u, f8_set1(0x1.d97fc0p+0f));
    const f8 far = f8_sub(one, f8_exp(f8_sub(zero, g)));

    return f8_select_lt(a, one, near, f8_select_lt(x, zero, f8_sub(zero, far), far));
}

static inline f8 f8_gelu(f8 x) {
    const f8 phi = f8_fma(f8_erf(f8_mul(x, f8_set1(0x1.6a09e6p-1f))), f8_set1(0.5f), f8_set1(0.5f));
    return f8_mul(x, phi);
}

/* x (1 + tanh u) / 2 = x sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3). */
static inline f8 f8_gelu_tanh(f8 x) {
    const f8 slope = f8_fma(f8_mul(x, x), f8_set1(0x1.2444f2p-4f), f8_set1(0x1.988454p+0f));
    return f8_mul(x, f8_sigmoid(f8_mul(x, slope)));
}

#endif
