/* fmath_test.c - the elementary functions against libm in double, over a sample of all floats; the
 * sample is every 16411th bit pattern. tools/mathcheck looks at every one of them. */
#include "compute/fmath.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/numbers.h"

/* |got - want| in units of the last place of a float of want's size. */
static double error_in_ulps(float got, double want) {
    if (isnan(want)) return isnan(got) ? 0 : INFINITY;
    if ((float)want == got) return 0;
    if (isinf(got) || isnan(got) || isinf((float)want)) return INFINITY;
    const int exponent = want == 0.0 ? -126 : ilogb(want);
    return fabs((double)got - want) / ldexp(1.0, (exponent < -126 ? -126 : exponent) - 23);
}

static void check(float (*function)(float), double (*wanted)(double), double most_ulps) {
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 16411) {
        const float x = float_of_bits((uint32_t)bits);
        const double error = error_in_ulps(function(x), wanted((double)x));
        if (error > most_ulps)
            fail_msg("%a gives %a, off by %g ulp", (double)x, (double)function(x), error);
    }
}

static double sigmoid(double x) {
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}
static double softplus(double x) {
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static void exp_is_within_two_ulp(void **state) {
    (void)state;
    check(fmath_exp, exp, 2.0);
}
static void sigmoid_is_within_two_ulp(void **state) {
    (void)state;
    check(fmath_sigmoid, sigmoid, 2.0);
}
static void softplus_is_within_one_ulp(void **state) {
    (void)state;
    check(fmath_softplus, softplus, 1.0);
}
static void erf_is_within_one_ulp(void **state) {
    (void)state;
    check(fmath_erf, erf, 1.0);
}

/* The product rounds once more; against x * sigmoid(x) of the float that sigmoid gave. */
static void silu_is_the_product_of_its_two_factors(void **state) {
    (void)state;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 16411) {
        const float x = float_of_bits((uint32_t)bits);
        const float got = fmath_silu(x), want = x * fmath_sigmoid(x);
        assert_same_floats(&got, &want, 1);
    }
}

/* Below zero 1 + erf cancels, in the reference too: the bound is absolute there, relative to |x|.
 */
static void gelu_is_within_two_ulp_of_its_larger_factor(void **state) {
    (void)state;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 16411) {
        const float x = float_of_bits((uint32_t)bits);
        if (!isfinite(x)) continue;
        const double want = 0.5 * (double)x * (1.0 + erf((double)x * sqrt(0.5)));
        if (fabs((double)fmath_gelu(x) - want) > 0x1p-23 * fabs((double)x) + 0x1p-149)
            fail_msg("%a gives %a, wanted %a", (double)x, (double)fmath_gelu(x), want);
    }
}

/* Two rounded constants and an argument that grows as the cube: relative to the larger factor. */
static void gelu_tanh_is_within_four_ulp_of_its_larger_factor(void **state) {
    (void)state;
    const double slope = sqrt(2.0 / acos(-1.0));
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 16411) {
        const float x = float_of_bits((uint32_t)bits);
        if (!isfinite(x)) continue;
        const double v = (double)x;
        const double want = 0.5 * v * (1.0 + tanh(slope * (v + 0.044715 * v * v * v)));
        if (fabs((double)fmath_gelu_tanh(x) - want) > 0x1p-22 * fabs(v) + 0x1p-149)
            fail_msg("%a gives %a, wanted %a", v, (double)fmath_gelu_tanh(x), want);
    }
}

static void sine_and_cosine_are_right_for_large_angles(void **state) {
    (void)state;
    for (uint64_t bits = 0; bits <= float_bits(0x1p30f); bits += 4999)
        for (int sign = 0; sign < 2; sign++) {
            const float x = float_of_bits((uint32_t)bits | (sign ? 0x80000000u : 0));
            float s, c;
            fmath_sincos(&s, &c, x);
            if (error_in_ulps(s, sin((double)x)) > 0.51 || error_in_ulps(c, cos((double)x)) > 0.51)
                fail_msg("%a gives %a, %a", (double)x, (double)s, (double)c);
        }
}

/* The rotation of position 37 at frequency 0, whose angle is the position itself. */
static void the_rotation_of_the_specification_comes_out(void **state) {
    (void)state;
    float s, c;
    fmath_sincos(&s, &c, 37.0f);
    assert_true(fabsf(c - 0.765414f) < 1e-6f && fabsf(s + 0.643538f) < 1e-6f);
}

static void the_ends_of_the_range_come_out_exactly(void **state) {
    (void)state;
    assert_true(fmath_exp(0.0f) == 1.0f && fmath_exp(-0.0f) == 1.0f);
    assert_true(fmath_exp(INFINITY) == INFINITY && fmath_exp(-INFINITY) == 0.0f);
    assert_true(fmath_exp(88.73f) == INFINITY && fmath_exp(88.72f) < INFINITY);
    assert_true(fmath_exp(-103.98f) == 0.0f && fmath_exp(-103.97f) == 0x1p-149f);
    assert_true(fmath_sigmoid(INFINITY) == 1.0f && fmath_sigmoid(-INFINITY) == 0.0f);
    assert_true(fmath_sigmoid(0.0f) == 0.5f);
    assert_true(fmath_softplus(INFINITY) == INFINITY && fmath_softplus(-INFINITY) == 0.0f);
    assert_true(fmath_softplus(21.5f) == 21.5f);
    assert_true(fmath_erf(INFINITY) == 1.0f && fmath_erf(-INFINITY) == -1.0f);
    assert_true(fmath_erf(0.0f) == 0.0f && signbit(fmath_erf(-0.0f)));
}

static void a_nan_stays_one(void **state) {
    (void)state;
    float s, c;
    fmath_sincos(&s, &c, NAN);
    assert_true(isnan(s) && isnan(c));
    fmath_sincos(&s, &c, INFINITY);
    assert_true(isnan(s) && isnan(c));
    assert_true(isnan(fmath_exp(NAN)) && isnan(fmath_sigmoid(NAN)) && isnan(fmath_softplus(NAN)));
    assert_true(isnan(fmath_silu(NAN)) && isnan(fmath_erf(NAN)) && isnan(fmath_gelu(NAN)));
    assert_true(isnan(fmath_gelu_tanh(NAN)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_within_two_ulp),
        cmocka_unit_test(sigmoid_is_within_two_ulp),
        cmocka_unit_test(softplus_is_within_one_ulp),
        cmocka_unit_test(erf_is_within_one_ulp),
        cmocka_unit_test(silu_is_the_product_of_its_two_factors),
        cmocka_unit_test(gelu_is_within_two_ulp_of_its_larger_factor),
        cmocka_unit_test(gelu_tanh_is_within_four_ulp_of_its_larger_factor),
        cmocka_unit_test(sine_and_cosine_are_right_for_large_angles),
        cmocka_unit_test(the_rotation_of_the_specification_comes_out),
        cmocka_unit_test(the_ends_of_the_range_come_out_exactly),
        cmocka_unit_test(a_nan_stays_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
