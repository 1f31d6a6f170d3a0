/* Tests of image.c and the decoders: pixels as Pillow 13 converts them, of every kind of file that
 * tools/oracle/record_media.py makes, and what is refused. */
#include "media/image.h"

#include "tests/recorded.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/digest.h"
#include "media/media.h"
#include "tests/oom.h"
#include "tests/oom_each.h"

#define MEDIA TESTDATA "media/"

static buf read_file(const char *name) {
    char path[256];
    buf out = {0};
    clef_error err = {0};
    snprintf(path, sizeof path, MEDIA "%s", name);
    if (file_read(&out, path, 1 << 24, &err) != CLEF_OK) fail_msg("%s", err.text);
    return out;
}

static clef_status decode(image *out, str bytes, bool rotate, clef_error *err) {
    const image_options options = {
        .max_pixels = MEDIA_MOST_PIXELS, .exif_rotate = rotate, .where = "images[2]"};
    return image_decode(out, bytes, &options, err);
}

static image decode_file(const char *name, bool rotate) {
    buf file = read_file(name);
    image i = {0};
    clef_error err = {0};
    if (decode(&i, (str){file.p, file.n}, rotate, &err) != CLEF_OK)
        fail_msg("%s: %s", name, err.text);
    buf_free(&file);
    return i;
}

static void text_of(char out[64], str s) {
    snprintf(out, 64, "%.*s", STR_ARG(s));
}

static void expect_digest(const image *i, str wanted, const char *name) {
    char hex[DIGEST_HEX];
    assert_int_equal(digest_bytes(hex, i->rgb, (size_t)i->w * i->h * 3, NULL), CLEF_OK);
    if (!str_equal(str_of(hex), wanted)) fail_msg("%s: other pixels than Pillow's", name);
}

static const json *cases(arena *mem) {
    return recorded_get(recorded_load(mem, MEDIA "images.json"), "images")->first;
}

static bool is_lossy(const json *row) {
    return recorded_get(row, "lossy")->kind == JSON_TRUE;
}

/* ---- pixels ---------------------------------------------------------------------------------- */

static void files_without_loss_give_pillow_s_pixels(void **state) {
    (void)state;
    arena mem = {0};
    uint32_t n = 0;
    for (const json *row = cases(&mem); row != NULL; row = row->next) {
        if (is_lossy(row)) continue;
        char name[64];
        text_of(name, recorded_text(row, "file"));
        image i = decode_file(name, false);
        assert_int_equal(i.w, recorded_count(row, "w"));
        assert_int_equal(i.h, recorded_count(row, "h"));
        expect_digest(&i, recorded_text(row, "rgb"), name);
        image_free(&i);
        n++;
    }
    assert_true(n >= 40);
    arena_free(&mem);
}

/* Decoders may differ by a level where the standard leaves rounding open. */
static void files_with_loss_give_pillow_s_pixels_within_a_level(void **state) {
    (void)state;
    arena mem = {0};
    uint32_t n = 0;
    size_t samples = 0, differing = 0;
    for (const json *row = cases(&mem); row != NULL; row = row->next) {
        if (!is_lossy(row)) continue;
        char name[64], golden_name[80];
        text_of(name, recorded_text(row, "file"));
        snprintf(golden_name, sizeof golden_name, "%s.rgb.png", name);
        image i = decode_file(name, false), golden = decode_file(golden_name, false);
        expect_digest(&golden, recorded_text(row, "rgb"), golden_name);
        assert_int_equal(i.w, golden.w);
        assert_int_equal(i.h, golden.h);
        const size_t bytes = (size_t)i.w * i.h * 3;
        for (size_t k = 0; k < bytes; k++) {
            const int apart = abs(i.rgb[k] - golden.rgb[k]);
            if (apart > 1) fail_msg("%s: sample %zu is %d levels away", name, k, apart);
            differing += apart != 0;
        }
        samples += bytes;
        image_free(&i);
        image_free(&golden);
        n++;
    }
    print_message("%u files, %zu of %zu samples differ\n", n, differing, samples);
    assert_true(n >= 20);
    arena_free(&mem);
}

static void orientation_turns_where_it_is_asked_for(void **state) {
    (void)state;
    arena mem = {0};
    uint32_t n = 0;
    for (const json *row = cases(&mem); row != NULL; row = row->next) {
        const json *turned = json_get(row, STR("turned"));
        char name[64];
        text_of(name, recorded_text(row, "file"));
        image i = decode_file(name, true);
        if (turned == NULL) {
            assert_int_equal(i.w, recorded_count(row, "w"));
        } else {
            uint64_t w = 0, h = 0;
            assert_true(json_u64(&w, turned->first, UINT32_MAX));
            assert_true(json_u64(&h, turned->first->next, UINT32_MAX));
            assert_int_equal(i.w, w);
            assert_int_equal(i.h, h);
            expect_digest(&i, turned->first->next->next->text, name);
            n++;
        }
        image_free(&i);
    }
    assert_int_equal(n, 9);
    arena_free(&mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_without_loss_give_pillow_s_pixels),
        cmocka_unit_test(files_with_loss_give_pillow_s_pixels_within_a_level),
        cmocka_unit_test(orientation_turns_where_it_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
