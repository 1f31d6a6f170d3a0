/* Tests of resize.c against what torch 2.11, Pillow 13 and transformers 5.10.2 gave
 * (tools/oracle/record_media.py). */
#include "media/resize.h"

#include "tests/recorded.h"

#include <stdlib.h>

#include "base/digest.h"
#include "tests/noise.h"
#include "tests/oom.h"
#include "tests/oom_each.h"

enum { FACTOR = 32, TEMPORAL = 2, MIN_PIXELS = 65536, MAX_PIXELS = 16777216 };

static void expect_digest(const uint8_t *rgb, size_t n, str wanted, const char *mode,
                          uint64_t seed) {
    char hex[DIGEST_HEX];
    assert_int_equal(digest_bytes(hex, rgb, n, NULL), CLEF_OK);
    if (!str_equal(str_of(hex), wanted))
        fail_msg("%s, picture %llu: other pixels than the reference's", mode,
                 (unsigned long long)seed);
}

static void both_modes_give_the_reference_s_bits(void **state) {
    (void)state;
    arena mem = {0};
    uint32_t n = 0;
    const json *rows = recorded_get(recorded_load(&mem, TESTDATA "media/resize.json"), "resize");
    for (const json *row = rows->first; row != NULL; row = row->next, n++) {
        const uint32_t h = (uint32_t)recorded_count(row, "h");
        const uint32_t w = (uint32_t)recorded_count(row, "w");
        const uint32_t out_h = (uint32_t)recorded_count(row, "out_h");
        const uint32_t out_w = (uint32_t)recorded_count(row, "out_w");
        const uint32_t top = (uint32_t)recorded_count(row, "top");
        const uint64_t seed = recorded_count(row, "seed");
        const size_t bytes = (size_t)h * w * 3, out_bytes = (size_t)out_h * out_w * 3;
        uint8_t *in = malloc(bytes), *out = malloc(out_bytes);
        assert_non_null(in);
        assert_non_null(out);
        noise_fill(in, bytes, (uint32_t)seed, top, top == 2 ? 255 : 1);
        assert_int_equal(resize_rgb(out, out_h, out_w, in, h, w, RESIZE_PILLOW, NULL), CLEF_OK);
        expect_digest(out, out_bytes, recorded_text(row, "pillow"), "Pillow", seed);
        assert_int_equal(resize_rgb(out, out_h, out_w, in, h, w, RESIZE_ATEN, NULL), CLEF_OK);
        expect_digest(out, out_bytes, recorded_text(row, "aten"), "ATen", seed);
        free(in);
        free(out);
    }
    assert_true(n >= 100);
    arena_free(&mem);
}

/* ---- sides ----------------------------------------------------------------------------------- */

static void expect_sides(const json *wanted, clef_status s, uint32_t h, uint32_t w,
                         const json *row) {
    if (wanted->kind == JSON_NULL) {
        if (s != CLEF_ERR_INPUT) fail_msg("the case at byte %zu: wanted an error", row->at);
        return;
    }
    uint64_t out_h = 0, out_w = 0;
    assert_true(json_u64(&out_h, wanted->first, UINT32_MAX));
    assert_true(json_u64(&out_w, wanted->first->next, UINT32_MAX));
    if (s != CLEF_OK || h != out_h || w != out_w)
        fail_msg("the case at byte %zu: %u x %u, wanted %llu x %llu", row->at, h, w,
                 (unsigned long long)out_h, (unsigned long long)out_w);
}

static void pictures_get_the_reference_s_sides(void **state) {
    (void)state;
    arena mem = {0};
    const json *rows = recorded_get(recorded_load(&mem, TESTDATA "media/sizes.json"), "images");
    assert_true(rows->n >= 200);
    for (const json *row = rows->first; row != NULL; row = row->next) {
        uint32_t h = 0, w = 0;
        const clef_status s = resize_image_sides(
            &h, &w, (uint32_t)recorded_count(row, "h"), (uint32_t)recorded_count(row, "w"), FACTOR,
            recorded_count(row, "min"), recorded_count(row, "max"), "images[0]", NULL);
        expect_sides(recorded_get(row, "out"), s, h, w, row);
    }
    arena_free(&mem);
}

static clef_status video_sides(uint32_t *h, uint32_t *w, const json *row,
                               media_video_rounding rounding) {
    return resize_video_sides(
        h, w, (uint32_t)recorded_count(row, "n"), (uint32_t)recorded_count(row, "h"),
        (uint32_t)recorded_count(row, "w"), FACTOR, TEMPORAL, recorded_count(row, "min"),
        recorded_count(row, "max"), rounding, "videos[0]", NULL);
}

static void videos_get_the_sides_of_either_generation(void **state) {
    (void)state;
    arena mem = {0};
    uint32_t differ = 0;
    const json *rows = recorded_get(recorded_load(&mem, TESTDATA "media/sizes.json"), "videos");
    assert_true(rows->n >= 100);
    for (const json *row = rows->first; row != NULL; row = row->next) {
        uint32_t h = 0, w = 0, later_h = 0, later_w = 0;
        const clef_status s = video_sides(&h, &w, row, MEDIA_ROUND_CEIL);
        const clef_status later = video_sides(&later_h, &later_w, row, MEDIA_ROUND_EVEN);
        expect_sides(recorded_get(row, "out"), s, h, w, row);
        expect_sides(recorded_get(row, "later"), later, later_h, later_w, row);
        differ += h != later_h || w != later_w;
    }
    assert_true(differ >= 10);
    arena_free(&mem);
}

static void a_ratio_above_200_names_the_sides(void **state) {
    (void)state;
    uint32_t h = 0, w = 0;
    clef_error err = {0};
    assert_int_equal(
        resize_image_sides(&h, &w, 1, 201, FACTOR, MIN_PIXELS, MAX_PIXELS, "images[3]", &err),
        CLEF_ERR_INPUT);
    assert_string_equal(err.text,
                        "images[3]: 201 x 1 pixels: one side may be at most 200 times the other");
}

static void bounds_of_a_request_cannot_ask_for_a_bomb(void **state) {
    (void)state;
    uint32_t h = 0, w = 0;
    clef_error err = {0};
    const uint64_t huge = 1ull << 40;
    assert_int_equal(resize_image_sides(&h, &w, 10, 10, FACTOR, huge, huge, "images[0]", &err),
                     CLEF_ERR_LIMIT);
    assert_non_null(strstr(err.text, "the limit is 178956970"));
    assert_int_equal(resize_video_sides(&h, &w, 768, 64, 64, FACTOR, TEMPORAL, huge, huge,
                                        MEDIA_ROUND_CEIL, "videos[0]", &err),
                     CLEF_ERR_LIMIT);
}

static void a_short_side_of_a_video_is_refused(void **state) {
    (void)state;
    uint32_t h = 0, w = 0;
    clef_error err = {0};
    assert_int_equal(resize_video_sides(&h, &w, 4, 31, 64, FACTOR, TEMPORAL, 4096, MAX_PIXELS,
                                        MEDIA_ROUND_CEIL, "videos[1]", &err),
                     CLEF_ERR_INPUT);
    assert_string_equal(err.text,
                        "videos[1]: frames of 64 x 31 pixels, wanted at least 32 on each side");
}

/* ---- memory ---------------------------------------------------------------------------------- */

static clef_status resize_once(void *context, clef_error *err) {
    uint8_t *out = context, in[5 * 7 * 3] = {0};
    return resize_rgb(out, 64, 32, in, 5, 7, RESIZE_ATEN, err);
}

static void running_out_of_memory_is_told(void **state) {
    (void)state;
    static uint8_t out[64 * 32 * 3];
    assert_true(oom_each(resize_once, out) >= 9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_modes_give_the_reference_s_bits),
        cmocka_unit_test(pictures_get_the_reference_s_sides),
        cmocka_unit_test(videos_get_the_sides_of_either_generation),
        cmocka_unit_test(a_ratio_above_200_names_the_sides),
        cmocka_unit_test(bounds_of_a_request_cannot_ask_for_a_bomb),
        cmocka_unit_test(a_short_side_of_a_video_is_refused),
        cmocka_unit_test(running_out_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
