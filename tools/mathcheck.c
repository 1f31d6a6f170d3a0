/* mathcheck.c - the largest error of each function of fmath.h over every float there is, in units
 * of the last place of the true value; the truth is libm's double. fmath_test.c
 * holds a sample of floats to bounds. Takes some minutes a function.
 *
 * gelu is counted in units of the last place of x: below zero its other factor cancels, in the
 * reference too, and loses digits of the result but none of x. Usage: mathcheck [name...] */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compute/fmath.h"

static double sigmoid(double x) {
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}
static double softplus(double x) {
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
static double silu(double x) {
    return x * sigmoid(x);
}
static double gelu(double x) {
    return x * (0.5 * erfc(-x * sqrt(0.5)));
}
static float fmath_sine(float x) {
    float s, c;
    fmath_sincos(&s, &c, x);
    return s;
}
static float fmath_cosine(float x) {
    float s, c;
    fmath_sincos(&s, &c, x);
    return c;
}

static const struct {
    const char *name;
    float (*function)(float);
    double (*truth)(double);
    double limit;  /* |x| up to it; sine and cosine promise no more */
    int of_factor; /* in units of the last place of |x| */
} functions[] = {
    {"exp", fmath_exp, exp, INFINITY, 0},
    {"sigmoid", fmath_sigmoid, sigmoid, INFINITY, 0},
    {"softplus", fmath_softplus, softplus, INFINITY, 0},
    {"erf", fmath_erf, erf, INFINITY, 0},
    {"silu", fmath_silu, silu, 0x1.fffffep+127, 0},
    {"gelu", fmath_gelu, gelu, 0x1.fffffep+127, 1},
    {"sine", fmath_sine, sin, 0x1p30, 0},
    {"cosine", fmath_cosine, cos, 0x1p30, 0},
};

static double last_place(double value) {
    const int exponent = value == 0.0 ? -126 : ilogb(value);
    return ldexp(1.0, (exponent < -126 ? -126 : exponent) - 23);
}

static void check(size_t f) {
    double worst = 0;
    float worst_at = 0;
    for (uint64_t i = 0; i <= UINT32_MAX; i++) {
        const uint32_t bits = (uint32_t)i;
        float x;
        memcpy(&x, &bits, sizeof x);
        if (!(fabs((double)x) <= functions[f].limit)) continue;
        const double want = functions[f].truth((double)x);
        const float got = functions[f].function(x);
        if (got == (float)want) continue; /* at most half a unit */
        const double unit = last_place(functions[f].of_factor ? (double)x : want);
        double error = fabs((double)got - want) / unit;
        if (!isfinite(got) || !isfinite((float)want)) error = INFINITY;
        if (error > worst) {
            worst = error;
            worst_at = x;
        }
    }
    printf("%-8s ", functions[f].name);
    if (worst == 0)
        printf("rounded rightly everywhere\n");
    else
        printf("%.3f at %a\n", worst, (double)worst_at);
    fflush(stdout);
}

int main(int argc, char **argv) {
    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
        int wanted = argc == 1;
        for (int i = 1; i < argc; i++)
            if (strcmp(argv[i], functions[f].name) == 0) wanted = 1;
        if (wanted) check(f);
    }
    return 0;
}
