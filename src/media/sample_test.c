/* Tests of sample.c against transformers 5.10.2 (tools/oracle/record_media.py). */
#include "media/sample.h"

#include "tests/recorded.h"

#include <stdio.h>

#include "tests/oom.h"
#include "tests/oom_each.h"

static const media_rules RULES = {.temporal = 2, .fps = 2.0, .min_frames = 4, .max_frames = 768};

/* A number of the recording, 0 for null. */
static double number_of(const json *row, const char *name) {
    double x = 0.0;
    const json *v = recorded_get(row, name);
    if (v->kind != JSON_NULL) assert_true(json_double(&x, v));
    return x;
}

static void expect_stamps(const sample *s, const json *stamps, uint64_t total) {
    assert_int_equal(s->n_groups, stamps->n);
    uint32_t g = 0;
    for (const json *v = stamps->first; v != NULL; v = v->next, g++) {
        char text[64];
        snprintf(text, sizeof text, "<%.1f seconds>", s->seconds[g]);
        if (!str_equal(str_of(text), v->text))
            fail_msg("total %llu, group %u: %s, wanted %.*s", (unsigned long long)total, g, text,
                     STR_ARG(v->text));
    }
}

static void frames_and_stamps_are_the_reference_s(void **state) {
    (void)state;
    arena mem = {0};
    const json *rows = recorded_get(recorded_load(&mem, TESTDATA "media/videos.json"), "samples");
    assert_true(rows->n >= 20);
    for (const json *row = rows->first; row != NULL; row = row->next) {
        const uint64_t total = recorded_count(row, "total");
        const media_metadata about = {.fps = number_of(row, "source_fps")};
        media_kwargs kwargs = {.fps = number_of(row, "fps"),
                               .num_frames = (uint32_t)number_of(row, "num_frames"),
                               .metadata = &about,
                               .n_metadata = 1};
        kwargs.fps_null = kwargs.num_frames > 0;
        sample s = {0};
        clef_error err = {0};
        if (sample_frames(&s, (uint32_t)total, 0.0, 0, &RULES, &kwargs, "videos[0]", &mem, &err) !=
            CLEF_OK)
            fail_msg("total %llu: %s", (unsigned long long)total, err.text);
        const json *indices = recorded_get(row, "indices");
        assert_int_equal(s.n, indices->n);
        uint32_t i = 0;
        for (const json *v = indices->first; v != NULL; v = v->next, i++) {
            uint64_t wanted = 0;
            assert_true(json_u64(&wanted, v, UINT32_MAX));
            if (s.frames[i] != wanted)
                fail_msg("total %llu, frame %u: %u, wanted %llu", (unsigned long long)total, i,
                         s.frames[i], (unsigned long long)wanted);
        }
        expect_stamps(&s, recorded_get(row, "stamps"), total);
    }
    arena_free(&mem);
}

static void expect_refused(uint32_t n_given, const media_kwargs *kwargs, clef_status status,
                           const char *sentence) {
    arena mem = {0};
    sample s = {0};
    clef_error err = {0};
    const clef_status found =
        sample_frames(&s, n_given, 0.0, 0, &RULES, kwargs, "videos[0]", &mem, &err);
    if (found != status || strstr(err.text, sentence) == NULL)
        fail_msg("found %d %s\n wanted %d %s", found, err.text, status, sentence);
    assert_null(s.frames);
    arena_free(&mem);
}

static void num_frames_needs_fps_null_as_in_the_reference(void **state) {
    (void)state;
    expect_refused(10, &(media_kwargs){.num_frames = 5}, CLEF_ERR_INPUT,
                   "videos[0]: num_frames and fps are mutually exclusive");
}

static void metadata_that_tells_of_more_frames_than_came_is_refused(void **state) {
    (void)state;
    const media_metadata about = {.fps = 24, .total_num_frames = 100};
    const media_kwargs kwargs = {.metadata = &about, .n_metadata = 1};
    expect_refused(10, &kwargs, CLEF_ERR_INPUT,
                   "videos[0]: total_num_frames is 100, found 10 frames to take number 14 from");
}

static void indices_for_another_number_of_frames_are_refused(void **state) {
    (void)state;
    static const uint64_t INDICES[] = {0, 5};
    const media_metadata about = {.frames_indices = INDICES, .n_indices = 2};
    const media_kwargs kwargs = {.all_frames = true, .metadata = &about, .n_metadata = 1};
    expect_refused(3, &kwargs, CLEF_ERR_INPUT, "videos[0]: 3 frames and 2 frames_indices");
}

static void a_flood_of_frames_is_refused(void **state) {
    (void)state;
    expect_refused(3, &(media_kwargs){.num_frames = 4000000000u, .fps_null = true}, CLEF_ERR_LIMIT,
                   "videos[0]: num_frames 4000000000, the limit is 65536");
}

static clef_status sample_once(void *context, clef_error *err) {
    (void)context;
    arena mem = {0};
    sample s = {0};
    const clef_status status = sample_frames(&s, 50000, 0.0, 0, &RULES,
                                             &(media_kwargs){.all_frames = true}, "v", &mem, err);
    arena_free(&mem);
    return status;
}

static void running_out_of_memory_is_told(void **state) {
    (void)state;
    assert_int_equal(oom_each(sample_once, NULL), 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_and_stamps_are_the_reference_s),
        cmocka_unit_test(num_frames_needs_fps_null_as_in_the_reference),
        cmocka_unit_test(metadata_that_tells_of_more_frames_than_came_is_refused),
        cmocka_unit_test(indices_for_another_number_of_frames_are_refused),
        cmocka_unit_test(a_flood_of_frames_is_refused),
        cmocka_unit_test(running_out_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
