/* Tests of pictures.c: every form of a picture that clients send, and every key of media_kwargs. */
#include "request/pictures.h"

#include <assert.h>
#include <stdio.h>

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "tests/oom.h"
#include "tests/oom_each.h"

/* Reads the members of an object; what comes out stays valid until the next call or forget(). */
static arena memory;

static clef_status read_members(pictures *out, const char *body, clef_error *err) {
    const json *root = NULL;
    arena_free(&memory);
    TRY(json_parse(&root, str_of(body), "body", &(json_limits){0}, &memory, err));
    return pictures_read(out, root, &memory, err);
}

static int forget(void **state) {
    (void)state;
    arena_free(&memory);
    return 0;
}

static pictures expect_read(const char *body) {
    pictures p = {0};
    clef_error err = {0};
    if (read_members(&p, body, &err) != CLEF_OK) fail_msg("%s\n%s", body, err.text);
    return p;
}

static void expect_refused(const char *body, clef_status status, const char *sentence) {
    pictures p = {0};
    clef_error err = {0};
    const clef_status s = read_members(&p, body, &err);
    if (s != status || strncmp(err.text, sentence, strlen(sentence)) != 0)
        fail_msg("%s\n found  %d %s\n wanted %d %s", body, s, err.text, status, sentence);
    assert_null(p.refs);
}

static void expect_text(const media_ref *ref, const char *text) {
    assert(ref != NULL);
    assert_int_equal(ref->form, MEDIA_TEXT);
    assert_true(str_equal(ref->data, str_of(text)));
}

/* ---- forms ----------------------------------------------------------------------------------- */

static void every_form_that_clients_send_gives_its_text(void **state) {
    (void)state;
    const pictures p = expect_read(
        "{\"images\":[\"data:image/png;base64,AAAA\",\"BBBB\","
        "{\"content_type\":\"image/"
        "png\",\"base64\":\"CCCC\"},{\"type\":\"image\",\"data\":\"DDDD\"},"
        "{\"url\":\"data:,E\"},{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:,F\"}},"
        "{\"type\":\"image_url\",\"image_url\":\"data:,G\"}]}");
    static const char *const WANTED[] = {
        "data:image/png;base64,AAAA", "BBBB", "CCCC", "DDDD", "data:,E", "data:,F", "data:,G"};
    assert_int_equal(p.n_images, 7);
    assert_int_equal(p.n_videos, 0);
    for (uint32_t i = 0; i < p.n_images; i++) {
        expect_text(&p.refs[i], WANTED[i]);
        assert_int_equal(p.refs[i].index, i);
        assert_false(p.refs[i].video);
    }
}

static void images_come_before_videos_whatever_the_request_s_order(void **state) {
    (void)state;
    const pictures p =
        expect_read("{\"videos\":[[\"V0\",{\"url\":\"V1\"}],\"W\"],\"images\":[\"I\"]}");
    assert_int_equal(p.n_images, 1);
    assert_int_equal(p.n_videos, 2);
    expect_text(&p.refs[0], "I");
    const media_ref *frames = &p.refs[1];
    assert_true(frames->video);
    assert_int_equal(frames->form, MEDIA_FRAMES);
    assert_int_equal(frames->n_frames, 2);
    expect_text(&frames->frames[1], "V1");
    assert_int_equal(frames->frames[1].index, 1);
    assert_true(p.refs[2].video);
    assert_int_equal(p.refs[2].index, 1);
    expect_text(&p.refs[2], "W");
}

static void nothing_is_what_null_and_empty_members_hold(void **state) {
    (void)state;
    static const char *const BODIES[] = {
        "{}", "{\"images\":null,\"videos\":null,\"media_kwargs\":null}",
        "{\"images\":[],\"videos\":{},\"media_kwargs\":[]}",
        "{\"media_kwargs\":{\"images_kwargs\":{},\"videos_kwargs\":null}}"};
    for (size_t i = 0; i < sizeof BODIES / sizeof BODIES[0]; i++) {
        const pictures p = expect_read(BODIES[i]);
        assert_int_equal(p.n_images + p.n_videos, 0);
    }
}

static void a_picture_of_another_kind_is_refused_naming_its_place(void **state) {
    (void)state;
    static const struct {
        const char *body, *sentence;
    } ROWS[] = {
        {"{\"images\":\"x\"}", "images: found a string, wanted an array"},
        {"{\"images\":[\"a\",7]}", "images[1]: found a number, wanted a data URL"},
        {"{\"images\":[null]}", "images[0]: found null"},
        {"{\"images\":[[\"a\"]]}", "images[0]: found an array"},
        {"{\"images\":[{}]}", "images[0]: an object without a picture"},
        {"{\"images\":[{\"base64\":null}]}", "images[0]: an object without a picture"},
        {"{\"images\":[{\"base64\":1}]}", "images[0]: found a number"},
        {"{\"images\":[{\"url\":{\"url\":\"a\"}}]}", "images[0]: found an object"},
        {"{\"images\":[{\"image_url\":{}}]}", "images[0]: found an object"},
        {"{\"images\":[{\"data\":\"a\",\"url\":\"b\"}]}",
         "images[0]: an object with 'data' and 'url'"},
        {"{\"videos\":[[]]}", "videos[0]: a video without frames"},
        {"{\"videos\":[[\"a\"],[\"a\",[\"b\"]]]}", "videos[1][1]: found an array"},
        {"{\"videos\":true}", "videos: found true"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
        expect_refused(ROWS[i].body, CLEF_ERR_INPUT, ROWS[i].sentence);
}

/* ---- media_kwargs ---------------------------------------------------------------------------- */

static void a_flat_size_reaches_both_kinds(void **state) {
    (void)state;
    const media_kwargs k =
        expect_read("{\"media_kwargs\":{\"size\":{\"shortest_edge\":9,\"longest_edge\":99},"
                    "\"do_resize\":false}}")
            .kwargs;
    assert_int_equal(k.image.min_pixels, 9);
    assert_int_equal(k.image.max_pixels, 99);
    assert_int_equal(k.video.min_pixels, 9);
    assert_int_equal(k.video.max_pixels, 99);
    assert_true(k.image.keep_size);
    assert_true(k.video.keep_size);
}

static void nested_settings_reach_one_kind(void **state) {
    (void)state;
    const media_kwargs k = expect_read("{\"media_kwargs\":{\"images_kwargs\":{\"size\":{\"shortest_"
                                       "edge\":1,\"longest_edge\":2}},"
                                       "\"videos_kwargs\":{\"do_resize\":false,\"fps\":0.5}}}")
                               .kwargs;
    assert_int_equal(k.image.max_pixels, 2);
    assert_int_equal(k.video.max_pixels, 0);
    assert_false(k.image.keep_size);
    assert_true(k.video.keep_size);
    assert_true(k.fps == 0.5);
}

static void a_pair_of_bounds_replaces_the_size_of_images_alone(void **state) {
    (void)state;
    const media_kwargs k =
        expect_read("{\"media_kwargs\":{\"size\":{\"shortest_edge\":1,\"longest_edge\":2},"
                    "\"min_pixels\":3,\"max_pixels\":4}}")
            .kwargs;
    assert_int_equal(k.image.min_pixels, 3);
    assert_int_equal(k.image.max_pixels, 4);
    assert_int_equal(k.video.max_pixels, 2);
}

static void video_settings_are_read(void **state) {
    (void)state;
    const pictures p = expect_read(
        "{\"videos\":[\"a\",\"b\"],\"media_kwargs\":{\"fps\":null,\"num_frames\":5,"
        "\"do_sample_frames\":true,\"video_metadata\":[{\"fps\":29.97,\"total_num_frames\":300,"
        "\"width\":1},{\"frames_indices\":[0,8,15],\"fps\":null}]}}");
    assert_true(p.kwargs.fps_null);
    assert_int_equal(p.kwargs.num_frames, 5);
    assert_false(p.kwargs.all_frames);
    assert_int_equal(p.kwargs.n_metadata, 2);
    assert(p.kwargs.metadata != NULL);
    assert_true(p.kwargs.metadata[0].fps == 29.97);
    assert_int_equal(p.kwargs.metadata[0].total_num_frames, 300);
    assert_true(p.kwargs.metadata[1].fps == 0.0);
    assert_int_equal(p.kwargs.metadata[1].n_indices, 3);
    assert_int_equal(p.kwargs.metadata[1].frames_indices[2], 15);
}

static void one_video_may_have_its_metadata_outside_a_list(void **state) {
    (void)state;
    const pictures p =
        expect_read("{\"videos\":[\"a\"],\"media_kwargs\":{\"video_metadata\":{\"fps\":30}}}");
    assert_int_equal(p.kwargs.n_metadata, 1);
    assert(p.kwargs.metadata != NULL);
    assert_true(p.kwargs.metadata[0].fps == 30.0);
}

static void what_is_not_taken_is_refused_by_name(void **state) {
    (void)state;
    static const struct {
        const char *kwargs, *sentence;
    } ROWS[] = {
        {"{\"image_mean\":[0,0,0]}", "media_kwargs.image_mean: not taken here"},
        {"{\"resample\":2}", "media_kwargs.resample: not taken here"},
        {"{\"do_rescale\":true}", "media_kwargs.do_rescale: not taken here"},
        {"{\"text_kwargs\":{}}", "media_kwargs.text_kwargs: not taken here"},
        {"{\"images_kwargs\":{\"fps\":2}}", "media_kwargs.images_kwargs.fps: not taken here"},
        {"{\"videos_kwargs\":{\"min_pixels\":2}}",
         "media_kwargs.videos_kwargs.min_pixels: not taken here"},
        {"{\"images_kwargs\":{\"images_kwargs\":{\"a\":1}}}",
         "media_kwargs.images_kwargs.images_kwargs: not taken here"},
        {"{\"size\":{\"shortest_edge\":1,\"longest_edge\":2,\"height\":3}}",
         "media_kwargs.size: found other members"},
        {"{\"video_metadata\":{\"rate\":1}}", "media_kwargs.video_metadata.rate: unknown"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        char body[256];
        snprintf(body, sizeof body, "{\"videos\":[\"a\"],\"media_kwargs\":%s}", ROWS[i].kwargs);
        expect_refused(body, CLEF_ERR_UNSUPPORTED, ROWS[i].sentence);
    }
}

static void a_value_of_the_wrong_kind_is_refused_naming_its_path(void **state) {
    (void)state;
    static const struct {
        const char *kwargs, *sentence;
    } ROWS[] = {
        {"7", "media_kwargs: found a number, wanted an object"},
        {"{\"images_kwargs\":1}", "media_kwargs.images_kwargs: found a number"},
        {"{\"size\":5}", "media_kwargs.size: found a number"},
        {"{\"size\":{\"shortest_edge\":1}}", "media_kwargs.size.longest_edge: missing"},
        {"{\"size\":{\"shortest_edge\":0,\"longest_edge\":2}}",
         "media_kwargs.size.shortest_edge: found a number, wanted a positive integer"},
        {"{\"size\":{\"shortest_edge\":1,\"longest_edge\":2e3}}",
         "media_kwargs.size.longest_edge: found a number"},
        {"{\"min_pixels\":4}", "media_kwargs.min_pixels: stands alone"},
        {"{\"images_kwargs\":{\"max_pixels\":4}}",
         "media_kwargs.images_kwargs.max_pixels: stands alone"},
        {"{\"do_resize\":0}", "media_kwargs.do_resize: found a number, wanted true or false"},
        {"{\"fps\":0}", "media_kwargs.fps: found a number, wanted a positive number"},
        {"{\"fps\":\"2\"}", "media_kwargs.fps: found a string"},
        {"{\"num_frames\":-1}", "media_kwargs.num_frames: found a number"},
        {"{\"num_frames\":2.0}", "media_kwargs.num_frames: found a number"},
        {"{\"do_sample_frames\":\"no\"}", "media_kwargs.do_sample_frames: found a string"},
        {"{\"video_metadata\":3}", "media_kwargs.video_metadata: found a number"},
        {"{\"video_metadata\":[]}", "media_kwargs.video_metadata: for 0 videos, found 1 of them"},
        {"{\"video_metadata\":[{\"fps\":-1}]}",
         "media_kwargs.video_metadata[0].fps: found a number"},
        {"{\"video_metadata\":{\"frames_indices\":[0.5]}}",
         "media_kwargs.video_metadata.frames_indices: found a number"},
        {"{\"fps\":2,\"videos_kwargs\":{\"fps\":3}}",
         "media_kwargs.fps: also stands in videos_kwargs"},
        {"{\"do_resize\":true,\"images_kwargs\":{\"do_resize\":true}}",
         "media_kwargs.do_resize: also stands in images_kwargs"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        char body[256];
        snprintf(body, sizeof body, "{\"videos\":[\"a\"],\"media_kwargs\":%s}", ROWS[i].kwargs);
        expect_refused(body, CLEF_ERR_INPUT, ROWS[i].sentence);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static clef_status read_everything(void *context, clef_error *err) {
    (void)context;
    pictures p = {0};
    return read_members(&p,
                        "{\"images\":[\"a\"],\"videos\":[[\"b\"]],\"media_kwargs\":"
                        "{\"video_metadata\":{\"frames_indices\":[0]}}}",
                        err);
}

static void running_out_of_memory_is_told(void **state) {
    (void)state;
    assert_true(oom_each(read_everything, NULL) > 0);
}

int main(void) {
#define T(name) cmocka_unit_test_teardown(name, forget)
    const struct CMUnitTest tests[] = {
        T(every_form_that_clients_send_gives_its_text),
        T(images_come_before_videos_whatever_the_request_s_order),
        T(nothing_is_what_null_and_empty_members_hold),
        T(a_picture_of_another_kind_is_refused_naming_its_place),
        T(a_flat_size_reaches_both_kinds),
        T(nested_settings_reach_one_kind),
        T(a_pair_of_bounds_replaces_the_size_of_images_alone),
        T(video_settings_are_read),
        T(one_video_may_have_its_metadata_outside_a_list),
        T(what_is_not_taken_is_refused_by_name),
        T(a_value_of_the_wrong_kind_is_refused_naming_its_path),
        T(running_out_of_memory_is_told),
    };
#undef T
    return cmocka_run_group_tests(tests, NULL, NULL);
}
