/* fmath.c - the elementary functions of fmath.h.
 *
 * exp, sigmoid, SiLU, erf and the GELUs are body_math.h over one lane, so they are the lane
 * functions of the kernel tables by construction. softplus, sine and cosine are scalar only: a few
 * values a token need them, so they work in double and round once at the end. No function calls
 * libm but for fma, rint, floor and ldexp, which are exact or fixed by IEEE 754.
 *
 * Largest errors, in units of the last place of the true value. Over all floats (tools/mathcheck):
 * exp 1.014, sigmoid 1.480, softplus 0.500. Over every 97th bit pattern: erf 0.963; sine and cosine
 * up to 2^26 rounded rightly. */
#include "compute/fmath.h"

#include <stdbool.h>

#define LANES 1
#include "compute/lanes_scalar.h"

#include "compute/body_math.h"

float fmath_exp(float x) {
    return f8_exp(f8_set1(x)).v[0];
}

float fmath_sigmoid(float x) {
    return f8_sigmoid(f8_set1(x)).v[0];
}

float fmath_silu(float x) {
    return f8_silu(f8_set1(x)).v[0];
}

float fmath_erf(float x) {
    return f8_erf(f8_set1(x)).v[0];
}

float fmath_gelu(float x) {
    return f8_gelu(f8_set1(x)).v[0];
}

float fmath_gelu_tanh(float x) {
    return f8_gelu_tanh(f8_set1(x)).v[0];
}

/* e^x for x in [-104, 0], within 2^-45: Taylor's series around the nearest multiple of ln 2. */
static double exp_below_zero(double x) {
    const double n = rint(x * 0x1.71547652b82fep+0);
    const double r = fma(n, -0x1.62e42fefa39efp-1, x);
    double p = 1.0;
    for (int k = 13; k >= 1; k--) p = fma(p, r / k, 1.0);
    return ldexp(p, (int)n);
}

/* max(x, 0) + ln(1 + t) with t = e^-|x|, and ln(1 + t) = 2 atanh(s) with s = t / (2 + t) <= 1/3: a
 * series whose terms fall by at least nine. */
float fmath_softplus(float x) {
    if (!(x <= 20.0f)) return x; /* a NaN too */
    if (x < -104.0f) return 0.0f;
    const double t = exp_below_zero(x < 0.0f ? (double)x : -(double)x);
    const double s = t / (2.0 + t), s2 = s * s;
    double p = 0.0;
    for (int k = 27; k >= 1; k -= 2) p = fma(p, s2, 1.0 / k);
    return (float)((x > 0.0f ? (double)x : 0.0) + 2.0 * s * p);
}

/* The angle less n quarter turns. pi / 2 stands in two doubles: the first step rounds relative to
 * its own result, and no float below 2^30 comes nearer than 2^-30 to a multiple of pi / 2, so what
 * is left keeps 40 bits. The series end below 2^-40. */
void fmath_sincos(float *sine, float *cosine, float angle) {
    const double a = (double)angle;
    const double n = rint(a * 0x1.45f306dc9c883p-1);
    double r = fma(n, -0x1.921fb54442d18p+0, a);
    r = fma(n, -0x1.1a62633145c07p-54, r);
    const double r2 = r * r;
    double s = 0.0, c = 0.0;
    for (int k = 15; k >= 3; k -= 2) s = fma(s, -r2 / ((k + 2) * (k + 1)), 1.0);
    for (int k = 14; k >= 2; k -= 2) c = fma(c, -r2 / ((k + 2) * (k + 1)), 1.0);
    s = r * fma(s, -r2 / 6.0, 1.0);
    c = fma(c, -r2 / 2.0, 1.0);
    const double quarter = n - 4.0 * floor(n * 0.25);
    const bool swap = quarter == 1.0 || quarter == 3.0;
    const double s_turned = swap ? c : s, c_turned = swap ? s : c;
    *sine = (float)(quarter >= 2.0 ? -s_turned : s_turned);
    *cosine = (float)(quarter == 1.0 || quarter == 2.0 ? -c_turned : c_turned);
}
