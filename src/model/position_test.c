/* position_test.c - the frequencies are the reference's to the last bit; angles at known positions.
 */
#include "model/position.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/file.h"
#include "text/json.h"

static void frequencies_equal_torchs_bit_for_bit(void **state) {
    (void)state;
    buf text = {0};
    arena mem = {0};
    clef_error err = {0};
    const json *doc = NULL;
    assert_int_equal(file_read(&text, TESTDATA "golden/rope.json", 1 << 20, &err), CLEF_OK);
    assert_int_equal(
        json_parse(&doc, (str){text.p, text.n}, "rope.json", &(json_limits){0}, &mem, &err),
        CLEF_OK);
    uint32_t n_checked = 0;
    for (const json *e = json_get(doc, STR("entries"))->first; e != NULL; e = e->next) {
        uint64_t theta = 0, dims = 0;
        assert_true(json_u64(&theta, json_get(e, STR("theta")), UINT32_MAX));
        assert_true(json_u64(&dims, json_get(e, STR("dims")), 512));
        const config cfg = {.rope_theta = (double)theta, .rotary_dim = (uint32_t)dims};
        float found[256];
        position_frequencies(found, &cfg);
        uint32_t i = 0;
        for (const json *b = json_get(e, STR("bits"))->first; b != NULL;
             b = b->next, i++, n_checked++) {
            uint32_t bits;
            memcpy(&bits, &found[i], sizeof bits);
            if (bits != strtoul(b->text.p, NULL, 16))
                fail_msg("dims %u, frequency %u: %08x, torch has %s", (unsigned)dims, i, bits,
                         b->text.p);
        }
        assert_int_equal(i, dims / 2);
    }
    assert_true(n_checked >= 32);
    arena_free(&mem);
    buf_free(&text);
}

/* Position 37, frequencies 0 and 3 of the release. */
static void angles_match_the_specifications_anchor(void **state) {
    (void)state;
    const config cfg = {.rope_theta = 1e7, .rotary_dim = 64};
    float frequencies[32], cosines[32], sines[32];
    position_frequencies(frequencies, &cfg);
    position_angles(cosines, sines, frequencies, 32, 37, 1);
    assert_true(fabsf(cosines[0] - 0.765414f) < 1e-6f && fabsf(sines[0] + 0.643538f) < 1e-6f);
    assert_true(fabsf(cosines[3] + 0.305948f) < 1e-6f && fabsf(sines[3] - 0.952048f) < 1e-6f);
}

static void rows_are_consecutive_positions(void **state) {
    (void)state;
    const config cfg = {.rope_theta = 1e7, .rotary_dim = 8};
    float frequencies[4], one_c[4], one_s[4], many_c[3 * 4], many_s[3 * 4];
    position_frequencies(frequencies, &cfg);
    position_angles(many_c, many_s, frequencies, 4, 16382, 3);
    for (uint32_t row = 0; row < 3; row++) {
        position_angles(one_c, one_s, frequencies, 4, 16382 + row, 1);
        assert_memory_equal(one_c, many_c + 4 * row, sizeof one_c);
        assert_memory_equal(one_s, many_s + 4 * row, sizeof one_s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frequencies_equal_torchs_bit_for_bit),
        cmocka_unit_test(angles_match_the_specifications_anchor),
        cmocka_unit_test(rows_are_consecutive_positions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
