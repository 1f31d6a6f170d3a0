/* Tests of rules.c: the two layouts of processor files, and values that cannot be computed with. */
#include "media/media.h"

#include "tests/folder.h"
#include "tests/oom.h"
#include "tests/oom_each.h"

static media_rules load(const folder *f) {
    arena mem = {0};
    media_rules r = {0};
    clef_error err = {0};
    if (media_rules_load(&r, f->path, &mem, &err) != CLEF_OK) fail_msg("%s", err.text);
    arena_free(&mem);
    return r;
}

static void a_folder_without_processor_files_has_the_published_rules(void **state) {
    (void)state;
    folder f = folder_new();
    const media_rules r = load(&f);
    assert_int_equal(r.patch, 16);
    assert_int_equal(r.temporal, 2);
    assert_int_equal(r.merge, 2);
    assert_int_equal(r.image_min_pixels, 65536);
    assert_int_equal(r.image_max_pixels, 16777216);
    assert_int_equal(r.video_min_pixels, 4096);
    assert_int_equal(r.video_max_pixels, 25165824);
    assert_true(r.fps == 2.0 && r.mean[2] == 0.5f && r.std[0] == 0.5f);
    assert_int_equal(r.min_frames, 4);
    assert_int_equal(r.max_frames, 768);
    folder_remove(f.path);
}

static void processor_config_json_holds_both_processors(void **state) {
    (void)state;
    folder f = folder_new();
    folder_write(&f, "processor_config.json",
                 STR("{\"image_processor\":{\"size\":{\"shortest_edge\":100,\"longest_edge\":200},"
                     "\"do_resize\":true,\"resample\":3,\"rescale_factor\":0.00392156862745098,"
                     "\"merge_size\":3,\"image_mean\":[0.1,0.2,0.3],\"temporal_patch_size\":null},"
                     "\"video_processor\":{\"size\":{\"shortest_edge\":7,\"longest_edge\":8},"
                     "\"fps\":1.5,\"max_frames\":9,\"merge_size\":3}}"));
    folder_write(&f, "preprocessor_config.json", STR("{\"merge_size\":5}"));
    const media_rules r = load(&f);
    assert_int_equal(r.merge, 3);
    assert_int_equal(r.temporal, 2);
    assert_int_equal(r.image_min_pixels, 100);
    assert_int_equal(r.image_max_pixels, 200);
    assert_int_equal(r.video_min_pixels, 7);
    assert_int_equal(r.video_max_pixels, 8);
    assert_int_equal(r.max_frames, 9);
    assert_true(r.fps == 1.5 && r.mean[0] == 0.1f && r.mean[2] == 0.3f);
    folder_remove(f.path);
}

static void older_folders_have_a_file_for_each_processor(void **state) {
    (void)state;
    folder f = folder_new();
    folder_write(&f, "processor_config.json", STR("{\"processor_class\":\"X\"}"));
    folder_write(&f, "preprocessor_config.json", STR("{\"min_pixels\":10,\"max_pixels\":20}"));
    folder_write(&f, "video_preprocessor_config.json", STR("{\"min_frames\":6}"));
    const media_rules r = load(&f);
    assert_int_equal(r.image_min_pixels, 10);
    assert_int_equal(r.image_max_pixels, 20);
    assert_int_equal(r.min_frames, 6);
    folder_remove(f.path);
}

static void what_cannot_be_computed_with_is_refused_naming_file_and_member(void **state) {
    (void)state;
    static const struct {
        const char *text, *sentence;
    } ROWS[] = {
        {"[]", "preprocessor_config.json: found an array, wanted an object"},
        {"{", "preprocessor_config.json: "},
        {"{\"patch_size\":0}", "patch_size: found 0, wanted a positive integer"},
        {"{\"patch_size\":16.5}", "patch_size: found 16.5, wanted a positive integer"},
        {"{\"merge_size\":\"2\"}", "merge_size: found a string, wanted a positive integer"},
        {"{\"image_std\":[0.5,0.5]}", "image_std: found an array, wanted three numbers"},
        {"{\"image_std\":[0.5,0,1]}", "image_std: found 0, wanted a positive number"},
        {"{\"size\":{\"shortest_edge\":9,\"longest_edge\":8}}",
         "size: shortest_edge 9 is above longest_edge 8"},
        {"{\"do_resize\":false}", "do_resize: found false, wanted true"},
        {"{\"resample\":2}", "resample: found 2, wanted 3 (bicubic)"},
        {"{\"rescale_factor\":1}", "rescale_factor: found 1, wanted 1/255"},
    };
    folder f = folder_new();
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        arena mem = {0};
        media_rules r = {0};
        clef_error err = {0};
        folder_write(&f, "preprocessor_config.json", str_of(ROWS[i].text));
        assert_int_equal(media_rules_load(&r, f.path, &mem, &err), CLEF_ERR_FORMAT);
        if (strstr(err.text, ROWS[i].sentence) == NULL)
            fail_msg("%s\n found  %s\n wanted %s", ROWS[i].text, err.text, ROWS[i].sentence);
        assert_int_equal(r.patch, 0);
        arena_free(&mem);
    }
    folder_remove(f.path);
}

static void a_video_processor_of_other_patches_is_refused(void **state) {
    (void)state;
    folder f = folder_new();
    folder_write(&f, "video_preprocessor_config.json", STR("{\"patch_size\":14}"));
    arena mem = {0};
    media_rules r = {0};
    clef_error err = {0};
    assert_int_equal(media_rules_load(&r, f.path, &mem, &err), CLEF_ERR_FORMAT);
    assert_non_null(strstr(err.text, "the video processor has another patch"));
    arena_free(&mem);
    folder_remove(f.path);
}

static clef_status load_once(void *context, clef_error *err) {
    arena mem = {0};
    media_rules r;
    const clef_status s = media_rules_load(&r, context, &mem, err);
    arena_free(&mem);
    return s;
}

static void running_out_of_memory_is_told(void **state) {
    (void)state;
    folder f = folder_new();
    folder_write(&f, "preprocessor_config.json", STR("{\"min_pixels\":10,\"max_pixels\":20}"));
    assert_true(oom_each(load_once, f.path) > 3);
    folder_remove(f.path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_without_processor_files_has_the_published_rules),
        cmocka_unit_test(processor_config_json_holds_both_processors),
        cmocka_unit_test(older_folders_have_a_file_for_each_processor),
        cmocka_unit_test(what_cannot_be_computed_with_is_refused_naming_file_and_member),
        cmocka_unit_test(a_video_processor_of_other_patches_is_refused),
        cmocka_unit_test(running_out_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
