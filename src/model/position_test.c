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

/* ---- pictures ---- */

/* The planes of a record given as runs: a length of text, or the merged grid of a picture. */
typedef struct {
    uint32_t text, rows, columns;
} run;

static void planes(const run *runs, size_t n_runs, const uint32_t *t, const uint32_t *h,
                   const uint32_t *w, uint32_t n) {
    position_picture pictures[4];
    uint32_t n_pictures = 0, row = 0;
    for (size_t i = 0; i < n_runs; i++) {
        if (runs[i].text == 0)
            pictures[n_pictures++] = (position_picture){row, runs[i].rows, runs[i].columns};
        row += runs[i].text + runs[i].rows * runs[i].columns;
    }
    assert_int_equal(row, n);
    position found[64];
    position_planes(found, n, pictures, n_pictures);
    for (uint32_t i = 0; i < n; i++)
        if (found[i].axis[0] != t[i] || found[i].axis[1] != h[i] || found[i].axis[2] != w[i])
            fail_msg("row %u stands at %u, %u, %u, wanted %u, %u, %u", i, found[i].axis[0],
                     found[i].axis[1], found[i].axis[2], t[i], h[i], w[i]);
}

#define ROW(...) ((const uint32_t[]){__VA_ARGS__})

static void text_behind_a_picture_counts_on_behind_its_longer_side(void **state) {
    (void)state;
    planes((run[]){{3, 0, 0}, {0, 2, 3}, {2, 0, 0}}, 3, ROW(0, 1, 2, 3, 3, 3, 3, 3, 3, 6, 7),
           ROW(0, 1, 2, 3, 3, 3, 4, 4, 4, 6, 7), ROW(0, 1, 2, 3, 4, 5, 3, 4, 5, 6, 7), 11);
}

static void pictures_of_other_shapes_follow_each_other(void **state) {
    (void)state;
    planes((run[]){{2, 0, 0}, {0, 2, 2}, {2, 0, 0}, {0, 1, 4}, {3, 0, 0}}, 5,
           ROW(0, 1, 2, 2, 2, 2, 4, 5, 6, 6, 6, 6, 10, 11, 12),
           ROW(0, 1, 2, 2, 3, 3, 4, 5, 6, 6, 6, 6, 10, 11, 12),
           ROW(0, 1, 2, 3, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12), 15);
}

static void a_picture_may_begin_and_end_a_record(void **state) {
    (void)state;
    planes((run[]){{0, 3, 1}, {0, 1, 1}}, 2, ROW(0, 0, 0, 3), ROW(0, 1, 2, 3), ROW(0, 0, 0, 3), 4);
}

/* Eight frequencies in sections of 3, 3 and 2: time turns 0, 3 and 6, height 1, 4 and 7, width 2
 * and 5. */
static void frequencies_take_turns_among_the_axes(void **state) {
    (void)state;
    const config cfg = {.rope_theta = 1e7, .rotary_dim = 16, .rope_sections = {3, 3, 2}};
    static const uint32_t axes[8] = {0, 1, 2, 0, 1, 2, 0, 1};
    const position place = {{5, 70, 900}};
    float frequencies[8], cosines[8], sines[8], c[8], s[8];
    position_frequencies(frequencies, &cfg);
    position_plane_angles(cosines, sines, frequencies, &cfg, &place, 1);
    for (int i = 0; i < 8; i++) {
        position_angles(c, s, frequencies, 8, place.axis[axes[i]], 1);
        assert_true(c[i] == cosines[i] && s[i] == sines[i]);
    }
}

/* Where the sections of height and width end early, time takes what is left. */
static void frequencies_beyond_a_section_turn_with_time(void **state) {
    (void)state;
    const config cfg = {.rope_theta = 1e7, .rotary_dim = 12, .rope_sections = {4, 1, 1}};
    static const uint32_t axes[6] = {0, 1, 2, 0, 0, 0};
    const position place = {{5, 70, 900}};
    float frequencies[6], cosines[6], sines[6], c[6], s[6];
    position_frequencies(frequencies, &cfg);
    position_plane_angles(cosines, sines, frequencies, &cfg, &place, 1);
    for (int i = 0; i < 6; i++) {
        position_angles(c, s, frequencies, 6, place.axis[axes[i]], 1);
        assert_true(c[i] == cosines[i] && s[i] == sines[i]);
    }
}

static void text_as_planes_has_the_bits_of_text(void **state) {
    (void)state;
    const config cfg = {.rope_theta = 1e7, .rotary_dim = 64, .rope_sections = {11, 11, 10}};
    float frequencies[32], cosines[50 * 32], sines[50 * 32], c[50 * 32], s[50 * 32];
    position places[50];
    position_frequencies(frequencies, &cfg);
    position_planes(places, 50, NULL, 0);
    position_plane_angles(cosines, sines, frequencies, &cfg, places, 50);
    position_angles(c, s, frequencies, 32, 0, 50);
    assert_memory_equal(cosines, c, sizeof c);
    assert_memory_equal(sines, s, sizeof s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frequencies_equal_torchs_bit_for_bit),
        cmocka_unit_test(angles_match_the_specifications_anchor),
        cmocka_unit_test(rows_are_consecutive_positions),
        cmocka_unit_test(text_behind_a_picture_counts_on_behind_its_longer_side),
        cmocka_unit_test(pictures_of_other_shapes_follow_each_other),
        cmocka_unit_test(a_picture_may_begin_and_end_a_record),
        cmocka_unit_test(frequencies_take_turns_among_the_axes),
        cmocka_unit_test(frequencies_beyond_a_section_turn_with_time),
        cmocka_unit_test(text_as_planes_has_the_bits_of_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
