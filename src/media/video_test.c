/* Tests of video.c, or in a build without video of video_none.c: which frames come, in which order,
 * and what is refused. The clips are made by tools/oracle/record_media.py and hold what its formula
 * says. */
#include "media/media.h"

#include "tests/recorded.h"

#include <stdlib.h>

#include "base/digest.h"
#include "media/resize.h"
#include "media/video.h"
#include "tests/media_rules.h"
#include "tests/noise.h"

static clef_status load(media_item *item, const media_ref *ref, const media_kwargs *kwargs,
                        arena *mem, clef_error *err) {
    const media_options options = {.rules = &RULES, .kwargs = kwargs, .allow_paths = true};
    return media_load(item, ref, &options, mem, err);
}

static void expect_refused(const media_ref *ref, clef_status status, const char *sentence) {
    arena mem = {0};
    media_item item = {0};
    clef_error err = {0};
    const clef_status s = load(&item, ref, NULL, &mem, &err);
    if (s != status || strncmp(err.text, sentence, strlen(sentence)) != 0)
        fail_msg("found  %d %s\n wanted %d %s", s, err.text, status, sentence);
    arena_free(&mem);
}

#ifndef CLEF_VIDEO

static void a_video_file_is_refused_in_a_build_without_video(void **state) {
    (void)state;
    const media_ref ref = {
        .form = MEDIA_PATH, .video = true, .data = STR(TESTDATA "media/rising.mp4")};
    expect_refused(&ref, CLEF_ERR_UNSUPPORTED,
                   "videos[0]: a video file: built without video (make VIDEO=1)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_video_file_is_refused_in_a_build_without_video),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

enum { W = 32, H = 48, FRAME = W * H * 3 };

static media_item load_clip(const char *path, const media_kwargs *kwargs, arena *mem) {
    const media_ref ref = {.form = MEDIA_PATH, .video = true, .data = str_of(path)};
    media_item item = {0};
    clef_error err = {0};
    if (load(&item, &ref, kwargs, mem, &err) != CLEF_OK) fail_msg("%s", err.text);
    return item;
}

static void without_resizing_the_sides_of_a_file_have_to_fit(void **state) {
    (void)state;
    arena mem = {0};
    const media_kwargs kwargs = {.all_frames = true, .video.keep_size = true};
    const media_ref ref = {
        .form = MEDIA_PATH, .video = true, .data = STR(TESTDATA "media/exact.avi")};
    media_item item = {0};
    clef_error err = {0};
    assert_int_equal(load(&item, &ref, &kwargs, &mem, &err), CLEF_ERR_INPUT);
    assert_non_null(strstr(err.text, "videos[0]: 32 x 48 pixels with do_resize false"));
    arena_free(&mem);
}

static void two_frames_a_second_are_taken_and_stamped(void **state) {
    (void)state;
    arena mem = {0};
    const media_item item = load_clip(TESTDATA "media/rising.mp4", NULL, &mem);
    /* 20 frames at 10 a second: 0, 6, 13, 19, each of gray 10 (number + 1). */
    static const int NUMBERS[] = {0, 6, 13, 19};
    assert_int_equal(item.grid.t, 2);
    assert_int_equal(item.n_frames, 4);
    const size_t frame = (size_t)item.grid.h * item.grid.w * 16 * 16 * 3;
    for (size_t k = 0; k < 4; k++)
        for (size_t i = 0; i < frame; i++)
            if (abs(item.rgb[k * frame + i] - 10 * (NUMBERS[k] + 1)) > 2)
                fail_msg("frame %zu is %u", k, item.rgb[k * frame + i]);
    assert_true(item.seconds[0] == (0 / 10.0 + 6 / 10.0) / 2);
    assert_true(item.seconds[1] == (13 / 10.0 + 19 / 10.0) / 2);
    arena_free(&mem);
}

static void a_file_gives_what_the_list_of_its_frames_gives(void **state) {
    (void)state;
    arena mem = {0};
    const media_kwargs kwargs = {.all_frames = true};
    const media_item item = load_clip(TESTDATA "media/exact.avi", &kwargs, &mem);
    assert_int_equal(item.grid.t, 10);
    uint8_t *wanted = malloc(FRAME);
    const size_t h = item.grid.h * 16u, w = item.grid.w * 16u;
    uint8_t *resized = malloc(h * w * 3);
    assert_non_null(wanted);
    assert_non_null(resized);
    for (uint32_t k = 0; k < 20; k++) {
        noise_fill(wanted, FRAME, 300 + k, 4, 1);
        assert_int_equal(
            resize_rgb(resized, (uint32_t)h, (uint32_t)w, wanted, H, W, RESIZE_ATEN, NULL),
            CLEF_OK);
        assert_memory_equal(resized, item.rgb + k * h * w * 3, h * w * 3);
    }
    free(wanted);
    free(resized);
    arena_free(&mem);
}

static clef_status add_to_digest(void *context, uint32_t number, const image *i, clef_error *err) {
    (void)number;
    (void)err;
    digest_add(context, i->rgb, (size_t)i->w * i->h * 3);
    return CLEF_OK;
}

static void frames_have_the_pixels_of_pyav(void **state) {
    (void)state;
    enum { FRAMES = 6 };
    buf file = {0}, wanted = {0};
    digest *d = NULL;
    char found[DIGEST_HEX];
    clef_error err = {0};
    bool all[FRAMES];
    memset(all, true, sizeof all);
    const image_options options = {.max_pixels = 1 << 20, .where = "videos[0]"};
    assert_int_equal(file_read(&file, TESTDATA "media/blocks.avi", 1 << 20, NULL), CLEF_OK);
    assert_int_equal(file_read(&wanted, TESTDATA "media/blocks.avi.sha256", 100, NULL), CLEF_OK);
    assert_int_equal(digest_open(&d, NULL), CLEF_OK);
    if (video_decode((str){file.p, file.n}, all, FRAMES, add_to_digest, d, &options, &err) !=
        CLEF_OK)
        fail_msg("%s", err.text);
    assert_int_equal(digest_finish(d, found, NULL), CLEF_OK);
    assert_memory_equal(found, wanted.p, DIGEST_HEX - 1);
    digest_close(d);
    buf_free(&file);
    buf_free(&wanted);
}

static void what_is_no_video_is_refused_naming_it(void **state) {
    (void)state;
    expect_refused(&(media_ref){.form = MEDIA_BYTES,
                                .video = true,
                                .index = 1,
                                .data = STR("no video at all, but some bytes of text")},
                   CLEF_ERR_INPUT, "videos[1]: a broken video file, or none: ");
}

static void a_cut_or_damaged_video_is_refused(void **state) {
    (void)state;
    buf file = {0};
    assert_int_equal(file_read(&file, TESTDATA "media/rising.mp4", 1 << 20, NULL), CLEF_OK);
    media_ref ref = {.form = MEDIA_BYTES, .video = true, .data = {file.p, file.n / 2}};
    expect_refused(&ref, CLEF_ERR_INPUT, "videos[0]: a broken video file, or none: ");
    ref.data.n = file.n;
    noise_fill((uint8_t *)file.p + file.n / 4, file.n / 4, 1, 256, 1);
    expect_refused(&ref, CLEF_ERR_INPUT, "videos[0]: a broken video file, or none: ");
    buf_free(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_resizing_the_sides_of_a_file_have_to_fit),
        cmocka_unit_test(two_frames_a_second_are_taken_and_stamped),
        cmocka_unit_test(a_file_gives_what_the_list_of_its_frames_gives),
        cmocka_unit_test(frames_have_the_pixels_of_pyav),
        cmocka_unit_test(what_is_no_video_is_refused_naming_it),
        cmocka_unit_test(a_cut_or_damaged_video_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
