/* int8_test.c - the quantiser against tools/int8/record.py, block by block, and what it reports. */
#include "checkpoint/int8.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "tests/numbers.h"

/* One recorded block: a line of testdata/int8.tsv. */
typedef struct {
    char name[64];
    float w[INT8_BLOCK];
    uint16_t scale;
    int8_t codes[INT8_BLOCK];
} block;

static void parse_block(block *b, char *line) {
    char *save = NULL, *fields[4];
    for (int i = 0; i < 4; i++) {
        fields[i] = strtok_r(i == 0 ? line : NULL, "\t", &save);
        assert_non_null(fields[i]);
    }
    snprintf(b->name, sizeof b->name, "%s", fields[0]);
    char *w = fields[1], *code = fields[3];
    for (int i = 0; i < INT8_BLOCK; i++) {
        b->w[i] = float_of_bits((uint32_t)strtoul(w, &w, 16));
        b->codes[i] = (int8_t)strtol(code, &code, 10);
    }
    b->scale = (uint16_t)strtoul(fields[2], NULL, 16);
}

static void every_recorded_block_has_its_scale_and_codes(void **state) {
    (void)state;
    buf text = {0};
    clef_error err = {0};
    if (file_read(&text, TESTDATA "int8.tsv", 1 << 24, &err) != CLEF_OK) fail_msg("%s", err.text);
    unsigned n = 0;
    for (char *save = NULL, *line = strtok_r(text.p, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        if (line[0] == '#') continue;
        block b;
        parse_block(&b, line);
        int8_t codes[INT8_BLOCK];
        uint16_t scale = 0;
        code_loss loss;
        assert_true(int8_quantise_row(codes, &scale, b.w, INT8_BLOCK, &loss));
        if (scale != b.scale) fail_msg("%s: scale %04x, recorded %04x", b.name, scale, b.scale);
        for (int i = 0; i < INT8_BLOCK; i++)
            if (codes[i] != b.codes[i])
                fail_msg("%s: code %d is %d, recorded %d", b.name, i, codes[i], b.codes[i]);
        n++;
    }
    assert_int_equal(n, 166);
    buf_free(&text);
}

static void halves_go_to_the_even_code(void **state) {
    (void)state;
    float w[INT8_BLOCK] = {15.875f, 0.0625f, 0.1875f, 0.3125f, -0.0625f, -0.1875f, -0.3125f};
    int8_t codes[INT8_BLOCK];
    uint16_t scale = 0;
    code_loss loss;
    assert_true(int8_quantise_row(codes, &scale, w, INT8_BLOCK, &loss));
    const int8_t wanted[7] = {127, 0, 2, 2, 0, -2, -2};
    assert_memory_equal(codes, wanted, sizeof wanted);
}

static void a_row_of_two_blocks_has_the_scale_of_each(void **state) {
    (void)state;
    float w[2 * INT8_BLOCK];
    for (int i = 0; i < 2 * INT8_BLOCK; i++) w[i] = i < INT8_BLOCK ? 127.0f : 0.5f * 127.0f;
    int8_t codes[2 * INT8_BLOCK];
    uint16_t scales[2];
    code_loss loss;
    assert_true(int8_quantise_row(codes, scales, w, 2 * INT8_BLOCK, &loss));
    assert_true(f16_to_float(scales[0]) == 1.0f && f16_to_float(scales[1]) == 0.5f);
    assert_true(loss.error2 == 0.0 && loss.largest == 0.0 && loss.n_clipped == 0);
    assert_true(loss.size2 == 32 * 127.0 * 127.0 * 1.25);
}

static void what_a_row_loses_is_told(void **state) {
    (void)state;
    float w[INT8_BLOCK] = {127.0f, 0.25f, -0.5f};
    int8_t codes[INT8_BLOCK];
    uint16_t scale = 0;
    code_loss loss;
    assert_true(int8_quantise_row(codes, &scale, w, INT8_BLOCK, &loss));
    assert_true(loss.error2 == 0.0625 + 0.25 && loss.largest == 0.5);
    /* 1.24 * 2^-23 is nearest to the subnormal 2^-23, so 157 steps are clipped to 127. */
    w[0] = 127.0f * 1.24f * 0x1p-23f;
    w[1] = w[2] = 0.0f;
    assert_true(int8_quantise_row(codes, &scale, w, INT8_BLOCK, &loss));
    assert_int_equal(codes[0], 127);
    assert_int_equal(loss.n_clipped, 1);
}

static void a_value_that_f16_cannot_hold_is_refused(void **state) {
    (void)state;
    const float bad[] = {NAN, INFINITY, -INFINITY, 65520.0f, -1e30f};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        float w[INT8_BLOCK] = {1.0f, 2.0f, bad[i]};
        int8_t codes[INT8_BLOCK];
        uint16_t scale = 0;
        code_loss loss;
        assert_false(int8_quantise_row(codes, &scale, w, INT8_BLOCK, &loss));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_recorded_block_has_its_scale_and_codes),
        cmocka_unit_test(halves_go_to_the_even_code),
        cmocka_unit_test(a_row_of_two_blocks_has_the_scale_of_each),
        cmocka_unit_test(what_a_row_loses_is_told),
        cmocka_unit_test(a_value_that_f16_cannot_hold_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
