/* Tests of tensor.c. The oracle for the 16-bit types is their definition: sign, exponent and
 * fraction put together with ldexp. */
#include "base/tensor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

static double by_definition(uint16_t bits, int exponent_bits) {
    const int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = (bits & 0x7FFF) >> fraction_bits, top = (1 << exponent_bits) - 1;
    const double fraction = ldexp(bits & ((1 << fraction_bits) - 1), -fraction_bits);
    double size;
    if (exponent == top)
        size = fraction == 0 ? (double)INFINITY : (double)NAN;
    else
        size = exponent == 0 ? ldexp(fraction, 1 - bias) : ldexp(1 + fraction, exponent - bias);
    return (bits & 0x8000) != 0 ? -size : size;
}

static void expect(float got, double wanted, unsigned bits) {
    if (isnan(wanted) ? !isnan(got) : ((double)got != wanted || !signbit(got) != !signbit(wanted)))
        fail_msg("%04x became %a, wanted %a", bits, (double)got, wanted);
}

static void every_16_bit_value_widens_to_its_definition(void **state) {
    (void)state;
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        expect(f16_to_float((uint16_t)bits), by_definition((uint16_t)bits, 5), bits);
        expect(bf16_to_float((uint16_t)bits), by_definition((uint16_t)bits, 8), bits);
    }
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void bf16_survives_widening_and_narrowing(void **state) {
    (void)state;
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        const float value = bf16_to_float((uint16_t)bits);
        if (isnan(value))
            assert_true(isnan(bf16_to_float(bf16_from_float(value))));
        else
            assert_int_equal(bf16_from_float(value), bits);
    }
}

static void narrowing_to_bf16_takes_the_nearest_and_the_even_of_two(void **state) {
    (void)state;
    for (uint32_t high = 0; high < 0x7F80; high += 37) {
        assert_int_equal(bf16_from_float(float_of(high << 16 | 0x7FFF)), high);
        assert_int_equal(bf16_from_float(float_of(high << 16 | 0x8000)), high + high % 2);
        assert_int_equal(bf16_from_float(float_of(high << 16 | 0x8001)), high + 1);
        assert_int_equal(bf16_from_float(float_of(0x80000000u | high << 16 | 0x8001)),
                         0x8000 + high + 1);
    }
    assert_int_equal(bf16_from_float(float_of(0x7F7FFFFF)), 0x7F80); /* the largest: to infinity */
    assert_true(isnan(bf16_to_float(bf16_from_float(float_of(0x7F800001)))));
}

static void f16_survives_widening_and_narrowing(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        const int is_nan = (bits & 0x7FFF) > 0x7C00;
        const uint16_t back = f16_from_float(f16_to_float((uint16_t)bits));
        if (is_nan)
            assert_true((back & 0x7FFF) > 0x7C00);
        else
            assert_int_equal(back, bits);
    }
}

/* Half way between neighbours, and one f32 step to either side of it; the half-way points of the
 * subnormals and the border to infinity included. */
static void narrowing_to_f16_takes_the_nearest_and_the_even_of_two(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 0x7C00; bits++) {
        const double low = by_definition((uint16_t)bits, 5);
        const double high = bits == 0x7BFF ? 65536.0 : by_definition((uint16_t)(bits + 1), 5);
        const float half = (float)((low + high) / 2);
        assert_int_equal(f16_from_float(half), bits + bits % 2);
        assert_int_equal(f16_from_float(-half), 0x8000 + bits + bits % 2);
        assert_int_equal(f16_from_float(nextafterf(half, 0)), bits);
        assert_int_equal(f16_from_float(nextafterf(half, INFINITY)), bits + 1);
    }
    assert_int_equal(f16_from_float(1e30f), 0x7C00);
    assert_int_equal(f16_from_float(0x1p-149f), 0);
}

static void values_widen_from_unaligned_bytes_and_any_start(void **state) {
    (void)state;
    unsigned char bytes[1 + 12 * sizeof(float)];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 29 % 120);
    static const dtype types[] = {DTYPE_BF16, DTYPE_F16, DTYPE_F32};
    for (size_t k = 0; k < 3; k++) {
        float out[5] = {0};
        tensor_to_float(out, types[k], bytes + 1, 3, 4);
        for (size_t i = 0; i < 4; i++) {
            float wanted;
            uint16_t bits;
            memcpy(&bits, bytes + 1 + (3 + i) * sizeof bits, sizeof bits);
            memcpy(&wanted, bytes + 1 + (3 + i) * sizeof wanted, sizeof wanted);
            if (types[k] != DTYPE_F32)
                wanted = (float)by_definition(bits, types[k] == DTYPE_F16 ? 5 : 8);
            assert_memory_equal(&out[i], &wanted, sizeof wanted);
        }
        assert_true(out[4] == 0);
    }
}

static void each_type_has_a_name_and_the_width_in_it(void **state) {
    (void)state;
    for (int type = 0; type < DTYPE_COUNT; type++) {
        const char *name = dtype_name((dtype)type);
        assert_non_null(name);
        unsigned width = 0;
        for (const char *p = name + 1; *p >= '0' && *p <= '9'; p++)
            width = width * 10 + (unsigned)(*p - '0');
        if (type == DTYPE_BOOL) width = 8;
        if (type == DTYPE_BF16) width = 16;
        assert_int_equal(dtype_bits((dtype)type), width);
        for (int other = 0; other < type; other++)
            assert_string_not_equal(name, dtype_name((dtype)other));
    }
    assert_string_equal(dtype_name(DTYPE_BF16), "BF16");
    assert_string_equal(dtype_name(DTYPE_F8_E4M3FNUZ), "F8_E4M3FNUZ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_16_bit_value_widens_to_its_definition),
        cmocka_unit_test(bf16_survives_widening_and_narrowing),
        cmocka_unit_test(narrowing_to_bf16_takes_the_nearest_and_the_even_of_two),
        cmocka_unit_test(f16_survives_widening_and_narrowing),
        cmocka_unit_test(narrowing_to_f16_takes_the_nearest_and_the_even_of_two),
        cmocka_unit_test(values_widen_from_unaligned_bytes_and_any_start),
        cmocka_unit_test(each_type_has_a_name_and_the_width_in_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
