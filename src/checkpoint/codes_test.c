/* codes_test.c - int6 and int4: where the bits go, against bytes made by hand, and how good the
 * scale that is found is, against every scale that F16 has. */
#include "checkpoint/codes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/numbers.h"

static const dtype packed[] = {DTYPE_INT6, DTYPE_INT4};
#define EACH_TYPE(t) for (size_t t = 0; t < 2; t++)

static int limit_of(dtype type) {
    return type == DTYPE_INT6 ? 31 : 7;
}

/* A block of 24 bytes at most. */
typedef struct {
    unsigned char bytes[INT6_BYTES];
    int8_t codes[INT8_BLOCK];
    float scale;
    code_loss loss;
} block;

static block quantise(dtype type, const float *w) {
    block b = {.scale = 0};
    uint16_t scale = 0;
    assert_true(codes_quantise_row(type, b.bytes, &scale, w, INT8_BLOCK, &b.loss));
    codes_unpack(b.codes, type, b.bytes, 0);
    b.scale = f16_to_float(scale);
    return b;
}

/* Roughly normal: the sum of twelve. */
static float gauss(uint32_t *seed) {
    float sum = -6.0f;
    for (int i = 0; i < 12; i++) sum += (float)(next_random(seed) >> 8) / 16777216.0f;
    return sum;
}

static void fill(float *w, uint32_t seed, float size) {
    for (int i = 0; i < INT8_BLOCK; i++) w[i] = bf16_to_float(bf16_from_float(size * gauss(&seed)));
}

/* ---- bits ---- */

/* Values that a scale of 1 holds exactly: -7 .. 7 and again, or -31 .. 31 in steps. */
static void every_code_stands_where_compute_h_says(void **state) {
    (void)state;
    EACH_TYPE(t) {
        const int most = limit_of(packed[t]), offset = most + 1;
        float w[INT8_BLOCK];
        for (int i = 0; i < INT8_BLOCK; i++) w[i] = (float)((i * 5 + 3) % (2 * most + 1) - most);
        w[0] = (float)most;
        w[31] = (float)-most;
        const block b = quantise(packed[t], w);
        assert_true(b.scale == 1.0f && b.loss.error2 == 0.0 && b.loss.n_clipped == 0);
        for (int i = 0; i < INT8_BLOCK; i++) {
            const int stored = (int)w[i] + offset;
            assert_int_equal(b.codes[i], (int)w[i]);
            assert_int_equal(b.bytes[i % 16] >> i / 16 * 4 & 15, stored & 15);
            if (packed[t] == DTYPE_INT6)
                assert_int_equal(b.bytes[16 + i % 8] >> i / 8 * 2 & 3, stored >> 4);
        }
    }
}

static void a_code_that_no_converter_writes_is_found(void **state) {
    (void)state;
    EACH_TYPE(t) {
        const size_t block_bytes = codes_bytes(packed[t], INT8_BLOCK);
        for (size_t i = 0; i < 2 * INT8_BLOCK; i++) {
            unsigned char bytes[2 * INT6_BYTES];
            memset(bytes, 0x55, sizeof bytes);
            unsigned char *at = bytes + i / INT8_BLOCK * block_bytes;
            const size_t k = i % INT8_BLOCK;
            assert_int_equal(codes_find_bad(packed[t], bytes, 2 * INT8_BLOCK), 2 * INT8_BLOCK);
            at[k % 16] &= (unsigned char)(k < 16 ? 0xF0 : 0x0F);
            if (packed[t] == DTYPE_INT6) at[16 + k % 8] &= (unsigned char)~(3u << k / 8 * 2);
            assert_int_equal(codes_find_bad(packed[t], bytes, 2 * INT8_BLOCK), i);
        }
    }
    int8_t codes[INT8_BLOCK] = {-127, 127};
    assert_int_equal(codes_find_bad(DTYPE_I8, codes, INT8_BLOCK), INT8_BLOCK);
    codes[9] = -128;
    assert_int_equal(codes_find_bad(DTYPE_I8, codes, INT8_BLOCK), 9);
}

static void rows_of_a_tensor_tell_what_it_holds(void **state) {
    (void)state;
    tensor t = {.type = DTYPE_U8, .rank = 2, .shape = {3, 48}};
    assert_int_equal(codes_of(&t, 64), DTYPE_INT6);
    assert_int_equal(codes_of(&t, 96), DTYPE_INT4);
    assert_int_equal(codes_of(&t, 48), DTYPE_U8);
    assert_int_equal(codes_of(&t, 128), DTYPE_U8);
    t.rank = 1;
    assert_int_equal(codes_of(&t, 64), DTYPE_U8);
    t.type = DTYPE_I8;
    assert_int_equal(codes_of(&t, 64), DTYPE_I8);
}

/* ---- scales ---- */

/* The least error of a block over all positive scales of F16, codes chosen in double. */
static double least_error(const float *w, int limit) {
    double least = INFINITY;
    for (uint16_t bits = 1; bits < 0x7C00u; bits++) {
        const double scale = (double)f16_to_float(bits);
        double error = 0;
        for (int i = 0; i < INT8_BLOCK && error < least; i++) {
            double code = rint((double)w[i] / scale);
            if (code > limit) code = limit;
            if (code < -limit) code = -limit;
            error += ((double)w[i] - code * scale) * ((double)w[i] - code * scale);
        }
        if (error < least) least = error;
    }
    return least;
}

static double error_of_the_widest(const float *w, int limit) {
    float most = 0;
    double error = 0;
    for (int i = 0; i < INT8_BLOCK; i++)
        if (fabsf(w[i]) > most) most = fabsf(w[i]);
    const double scale = (double)f16_to_float(f16_from_float(most / (float)limit));
    for (int i = 0; i < INT8_BLOCK; i++) {
        const double d = (double)w[i] - rint((double)w[i] / scale) * scale;
        error += d * d;
    }
    return error;
}

static void the_scale_is_nearly_the_best_that_f16_has(void **state) {
    (void)state;
    EACH_TYPE(t) {
        double found = 0, best = 0, widest = 0;
        for (uint32_t seed = 0; seed < 60; seed++) {
            float w[INT8_BLOCK];
            fill(w, seed * 977 + 1, 0.02f);
            const block b = quantise(packed[t], w);
            const double least = least_error(w, limit_of(packed[t]));
            if (b.loss.error2 > 1.25 * least)
                fail_msg("seed %u: error %g, the best is %g", seed, b.loss.error2, least);
            found += b.loss.error2;
            best += least;
            widest += error_of_the_widest(w, limit_of(packed[t]));
        }
        print_message("%s: error %.3f of the widest scale\'s, %.4f of the best\n",
                      codes_name(packed[t]), found / widest, found / best);
        assert_true(found <= 1.02 * best);
        assert_true(found <= 0.92 * widest);
    }
}

static void what_is_told_is_what_was_lost(void **state) {
    (void)state;
    EACH_TYPE(t) {
        float w[INT8_BLOCK];
        double error2 = 0, size2 = 0, largest = 0;
        fill(w, 5, 3.0f);
        const block b = quantise(packed[t], w);
        for (int i = 0; i < INT8_BLOCK; i++) {
            const double error = (double)w[i] - (double)((float)b.codes[i] * b.scale);
            error2 += error * error;
            size2 += (double)w[i] * (double)w[i];
            if (fabs(error) > largest) largest = fabs(error);
        }
        assert_true(b.loss.error2 == error2 && b.loss.size2 == size2 && b.loss.largest == largest);
    }
}

static void a_block_of_zeros_or_of_the_least_values_has_a_positive_scale(void **state) {
    (void)state;
    EACH_TYPE(t) {
        for (int e = -140; e < -8; e += 6) {
            float w[INT8_BLOCK] = {0};
            if (e > -140) fill(w, 3, ldexpf(1.0f, e));
            const block b = quantise(packed[t], w);
            assert_true(b.scale >= 0x1p-24f);
            for (int i = 0; i < INT8_BLOCK; i++)
                assert_true(abs(b.codes[i]) <= limit_of(packed[t]));
            if (e == -140) assert_true(codes_zero(packed[t], b.bytes, 0));
        }
    }
}

static void a_value_that_f16_cannot_hold_is_refused(void **state) {
    (void)state;
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY, 65520.0f, -1e30f};
    EACH_TYPE(t) {
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            float w[INT8_BLOCK] = {1.0f, 2.0f, bad[i]};
            unsigned char bytes[INT6_BYTES];
            uint16_t scale = 0;
            code_loss loss;
            assert_false(codes_quantise_row(packed[t], bytes, &scale, w, INT8_BLOCK, &loss));
        }
        float w[INT8_BLOCK] = {65504.0f, -65504.0f};
        assert_true(quantise(packed[t], w).loss.largest <= 32.0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_stands_where_compute_h_says),
        cmocka_unit_test(a_code_that_no_converter_writes_is_found),
        cmocka_unit_test(rows_of_a_tensor_tell_what_it_holds),
        cmocka_unit_test(the_scale_is_nearly_the_best_that_f16_has),
        cmocka_unit_test(what_is_told_is_what_was_lost),
        cmocka_unit_test(a_block_of_zeros_or_of_the_least_values_has_a_positive_scale),
        cmocka_unit_test(a_value_that_f16_cannot_hold_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
