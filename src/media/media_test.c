/* Tests of media.c and patch.c: grids, resized pixels and patch rows against both processors of
 * transformers 5.10.2, whole videos, and what is refused. */
#include "media/media.h"

#include "tests/recorded.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/media_rules.h"
#include "tests/noise.h"
#include "tests/oom.h"
#include "tests/oom_each.h"

#define MEDIA TESTDATA "media/"

enum { ROW = 3 * 2 * 16 * 16 };

/* ---- against the reference ------------------------------------------------------------------- */

static void expect_text(const char *found, str wanted, const char *what, const char *name) {
    if (!str_equal(str_of(found), wanted))
        fail_msg("%s: other %s than the reference's", name, what);
}

static void expect_grid(const media_item *item, const json *wanted, const char *name) {
    uint64_t t = 0, h = 0, w = 0;
    assert_true(json_u64(&t, wanted->first, UINT32_MAX));
    assert_true(json_u64(&h, wanted->first->next, UINT32_MAX));
    assert_true(json_u64(&w, wanted->first->next->next, UINT32_MAX));
    if (item->grid.t != t || item->grid.h != h || item->grid.w != w)
        fail_msg("%s: grid %u x %u x %u", name, item->grid.t, item->grid.h, item->grid.w);
    assert_int_equal(item->n_rows, t * h * w / 4);
}

/* All patch rows of the item, as one sum; made in pieces of an odd size. */
static void digest_rows(char hex[DIGEST_HEX], const media_item *item) {
    enum { PIECE = 37 };
    static float rows[PIECE * ROW];
    const uint32_t n = item->grid.t * item->grid.h * item->grid.w;
    digest *d = NULL;
    assert_int_equal(digest_open(&d, NULL), CLEF_OK);
    for (uint32_t at = 0; at < n; at += PIECE) {
        const uint32_t take = n - at < PIECE ? n - at : PIECE;
        patch_rows(rows, item, &RULES, at, take);
        digest_add(d, rows, (size_t)take * ROW * sizeof *rows);
    }
    assert_int_equal(digest_finish(d, hex, NULL), CLEF_OK);
    digest_close(d);
}

static size_t frame_bytes(const media_item *item) {
    return (size_t)item->grid.h * item->grid.w * 16 * 16 * 3;
}

static void compare_picture(const char *path, const media_options *options, const json *wanted) {
    arena mem = {0};
    const media_ref ref = {.form = MEDIA_PATH, .data = str_of(path)};
    media_item item = {0};
    clef_error err = {0};
    const clef_status s = media_load(&item, &ref, options, &mem, &err);
    if (json_get(wanted, STR("error")) != NULL) {
        assert_int_equal(s, CLEF_ERR_INPUT);
        arena_free(&mem);
        return;
    }
    if (s != CLEF_OK) fail_msg("%s: %s", path, err.text);
    char hex[DIGEST_HEX];
    expect_grid(&item, recorded_get(wanted, "grid"), path);
    assert_int_equal(digest_bytes(hex, item.rgb, frame_bytes(&item), NULL), CLEF_OK);
    expect_text(hex, recorded_text(wanted, "rgb"), "resized pixels", path);
    digest_rows(hex, &item);
    expect_text(hex, recorded_text(wanted, "rows"), "patch rows", path);
    arena_free(&mem);
}

/* A picture stored with loss enters as its golden pixels, so that every case is exact. */
static void compare_all(const media_options *options, const char *way) {
    arena mem = {0};
    const json *rows = recorded_get(recorded_load(&mem, MEDIA "images.json"), "images");
    assert_true(rows->n >= 70);
    for (const json *row = rows->first; row != NULL; row = row->next) {
        char path[256];
        snprintf(path, sizeof path, MEDIA "%.*s%s", STR_ARG(recorded_text(row, "file")),
                 recorded_get(row, "lossy")->kind == JSON_TRUE ? ".rgb.png" : "");
        compare_picture(path, options, recorded_get(row, way));
    }
    arena_free(&mem);
}

static void native_pictures_equal_the_torchvision_processor_s(void **state) {
    (void)state;
    compare_all(&(media_options){.rules = &RULES, .allow_paths = true}, "native");
}

static void native_pictures_equal_the_pil_processor_s(void **state) {
    (void)state;
    compare_all(
        &(media_options){.rules = &RULES, .allow_paths = true, .backend = MEDIA_BACKEND_PIL},
        "pil");
}

static void pictures_on_the_256_grid_equal_the_reference_s(void **state) {
    (void)state;
    compare_all(&(media_options){.rules = &RULES, .allow_paths = true, .grid = MEDIA_GRID_256},
                "g256");
}

static void pictures_on_the_448_grid_equal_the_reference_s(void **state) {
    (void)state;
    compare_all(&(media_options){.rules = &RULES, .allow_paths = true, .grid = MEDIA_GRID_448},
                "g448");
}

/* ---- order of patches ------------------------------------------------------------------------ */

static void rows_stand_in_merge_block_order(void **state) {
    (void)state;
    enum { H = 4, W = 6 };
    static uint8_t rgb[H * 16 * W * 16 * 3];
    for (uint32_t y = 0; y < H * 16; y++) memset(rgb + (size_t)y * W * 16 * 3, 0, W * 16 * 3);
    for (uint32_t y = 0; y < H * 16; y++)
        for (uint32_t x = 0; x < W * 16; x++)
            rgb[((size_t)y * W * 16 + x) * 3] = (uint8_t)(y / 16 * W + x / 16);
    const media_item item = {.grid = {1, H, W}, .n_frames = 1, .rgb = rgb};
    /* The (row, column) of each patch: vision vectors "patch_order_grid_4x6". */
    static const uint8_t WANTED[] = {0,  1,  6,  7,  2,  3,  8,  9,  4,  5,  10, 11,
                                     12, 13, 18, 19, 14, 15, 20, 21, 16, 17, 22, 23};
    static float rows[H * W * ROW];
    patch_rows(rows, &item, &RULES, 0, H * W);
    for (uint32_t i = 0; i < H * W; i++)
        assert_true(rows[i * ROW] == ((float)WANTED[i] - 127.5f) / 127.5f);
}

/* ---- videos ---------------------------------------------------------------------------------- */

typedef struct {
    media_ref *frames;
    void **files;
    uint32_t n;
} clip;

/* n made-up frames, each as a PNG file in memory. */
static clip make_clip(uint32_t n, uint32_t h, uint32_t w, uint32_t seed) {
    clip c = {.frames = calloc(n, sizeof *c.frames), .files = calloc(n, sizeof *c.files), .n = n};
    uint8_t *rgb = malloc((size_t)h * w * 3);
    assert_non_null(c.frames);
    assert_non_null(c.files);
    assert_non_null(rgb);
    for (uint32_t i = 0; i < n; i++) {
        noise_fill(rgb, (size_t)h * w * 3, seed + i, 256, 1);
        png_image how = {.version = PNG_IMAGE_VERSION, .width = w, .height = h};
        how.format = PNG_FORMAT_RGB;
        png_alloc_size_t bytes = 0;
        assert_true(png_image_write_to_memory(&how, NULL, &bytes, 0, rgb, 0, NULL));
        c.files[i] = malloc(bytes);
        assert_non_null(c.files[i]);
        assert_true(png_image_write_to_memory(&how, c.files[i], &bytes, 0, rgb, 0, NULL));
        c.frames[i] = (media_ref){.form = MEDIA_BYTES, .index = i, .data = {c.files[i], bytes}};
    }
    free(rgb);
    return c;
}

static void free_clip(clip *c) {
    for (uint32_t i = 0; i < c->n; i++) free(c->files[i]);
    free(c->files);
    free(c->frames);
}

/* The recorded media_kwargs, of the few forms that the recorder uses. */
static media_kwargs kwargs_of(const json *row, media_metadata *about, uint64_t indices[8]) {
    const json *given = recorded_get(row, "media_kwargs");
    media_kwargs k = {0};
    uint64_t n = 0;
    const json *v = json_get(given, STR("do_sample_frames"));
    k.all_frames = v != NULL && v->kind == JSON_FALSE;
    v = json_get(given, STR("num_frames"));
    if (v != NULL) {
        assert_true(json_u64(&n, v, UINT32_MAX));
        k.num_frames = (uint32_t)n;
        k.fps_null = true;
    }
    v = json_get(given, STR("size"));
    if (v != NULL) {
        k.video.min_pixels = recorded_count(v, "shortest_edge");
        k.video.max_pixels = recorded_count(v, "longest_edge");
    }
    v = json_get(given, STR("video_metadata"));
    if (v == NULL) return k;
    about->total_num_frames = recorded_count(v->first, "total_num_frames");
    assert_true(json_double(&about->fps, recorded_get(v->first, "fps")));
    const json *list = json_get(v->first, STR("frames_indices"));
    if (list != NULL) {
        for (const json *e = list->first; e != NULL; e = e->next)
            assert_true(json_u64(&indices[about->n_indices++], e, UINT32_MAX));
        about->frames_indices = indices;
    }
    k.metadata = about;
    k.n_metadata = 1;
    return k;
}

static void compare_video(const json *row) {
    arena mem = {0};
    char name[64];
    snprintf(name, sizeof name, "%.*s", STR_ARG(recorded_text(row, "name")));
    clip c = make_clip((uint32_t)recorded_count(row, "n"), (uint32_t)recorded_count(row, "h"),
                       (uint32_t)recorded_count(row, "w"), (uint32_t)recorded_count(row, "seed"));
    media_metadata about = {0};
    uint64_t indices[8];
    const media_kwargs kwargs = kwargs_of(row, &about, indices);
    const media_options options = {.rules = &RULES, .kwargs = &kwargs};
    const media_ref ref = {
        .form = MEDIA_FRAMES, .video = true, .frames = c.frames, .n_frames = c.n};
    media_item item = {0};
    clef_error err = {0};
    if (media_load(&item, &ref, &options, &mem, &err) != CLEF_OK)
        fail_msg("%s: %s", name, err.text);
    expect_grid(&item, recorded_get(row, "grid"), name);
    const uint64_t n_taken = recorded_count(row, "frames");
    assert_int_equal(item.n_frames, (n_taken + 1) / 2 * 2);
    char hex[DIGEST_HEX];
    assert_int_equal(digest_bytes(hex, item.rgb, frame_bytes(&item) * n_taken, NULL), CLEF_OK);
    expect_text(hex, recorded_text(row, "rgb"), "resized pixels", name);
    digest_rows(hex, &item);
    expect_text(hex, recorded_text(row, "rows"), "patch rows", name);
    uint32_t g = 0;
    for (const json *v = recorded_get(row, "stamps")->first; v != NULL; v = v->next, g++) {
        char text[64];
        snprintf(text, sizeof text, "<%.1f seconds>", item.seconds[g]);
        expect_text(text, v->text, "timestamps", name);
    }
    assert_int_equal(g, item.grid.t);
    free_clip(&c);
    arena_free(&mem);
}

static void videos_equal_the_reference_s(void **state) {
    (void)state;
    arena mem = {0};
    const json *rows = recorded_get(recorded_load(&mem, MEDIA "videos.json"), "videos");
    assert_true(rows->n >= 10);
    for (const json *row = rows->first; row != NULL; row = row->next) compare_video(row);
    arena_free(&mem);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void expect_refused(const media_ref *ref, const media_options *options, clef_status status,
                           const char *sentence) {
    arena mem = {0};
    media_item item = {0};
    clef_error err = {0};
    const clef_status s = media_load(&item, ref, options, &mem, &err);
    if (s != status || strncmp(err.text, sentence, strlen(sentence)) != 0)
        fail_msg("found  %d %s\n wanted %d %s", s, err.text, status, sentence);
    assert_null(item.rgb);
    arena_free(&mem);
}

static void a_frame_of_another_size_is_refused_naming_it(void **state) {
    (void)state;
    clip c = make_clip(3, 64, 64, 1), d = make_clip(1, 64, 96, 1);
    c.frames[2] = d.frames[0];
    const media_ref ref = {
        .form = MEDIA_FRAMES, .video = true, .index = 1, .frames = c.frames, .n_frames = 3};
    expect_refused(&ref, &(media_options){.rules = &RULES}, CLEF_ERR_INPUT,
                   "videos[1][2]: a frame of 96 x 64 pixels in a video of 64 x 64");
    free_clip(&c);
    free_clip(&d);
}

static void a_broken_frame_is_refused_naming_it(void **state) {
    (void)state;
    clip c = make_clip(2, 64, 64, 1);
    c.frames[1].data = STR("no picture");
    const media_ref ref = {.form = MEDIA_FRAMES, .video = true, .frames = c.frames, .n_frames = 2};
    expect_refused(&ref, &(media_options){.rules = &RULES}, CLEF_ERR_INPUT,
                   "videos[0][1]: 10 bytes that are no picture");
    free_clip(&c);
}

static void without_resizing_sides_have_to_fit(void **state) {
    (void)state;
    clip c = make_clip(1, 64, 50, 1);
    const media_kwargs kwargs = {.image.keep_size = true, .video.keep_size = true};
    const media_options options = {.rules = &RULES, .kwargs = &kwargs};
    expect_refused(&c.frames[0], &options, CLEF_ERR_INPUT,
                   "images[0]: 50 x 64 pixels with do_resize false, wanted multiples of 32");
    const media_ref ref = {.form = MEDIA_FRAMES, .video = true, .frames = c.frames, .n_frames = 1};
    expect_refused(&ref, &options, CLEF_ERR_INPUT,
                   "videos[0]: 50 x 64 pixels with do_resize false, wanted multiples of 32");
    free_clip(&c);
}

static void without_resizing_a_small_picture_stays_small(void **state) {
    (void)state;
    arena mem = {0};
    clip c = make_clip(1, 32, 64, 1);
    const media_kwargs kwargs = {.image.keep_size = true};
    const media_options options = {.rules = &RULES, .kwargs = &kwargs};
    media_item item = {0};
    assert_int_equal(media_load(&item, &c.frames[0], &options, &mem, NULL), CLEF_OK);
    assert_int_equal(item.grid.h, 2);
    assert_int_equal(item.grid.w, 4);
    free_clip(&c);
    arena_free(&mem);
}

static void the_caller_s_limit_lowers_the_size(void **state) {
    (void)state;
    arena mem = {0};
    const media_ref ref = {.form = MEDIA_PATH, .data = STR(MEDIA "smooth_640x480.png")};
    const media_options options = {.rules = &RULES, .allow_paths = true, .max_pixels = 100000};
    media_item item = {0};
    assert_int_equal(media_load(&item, &ref, &options, &mem, NULL), CLEF_OK);
    assert_int_equal(item.grid.h, 16);
    assert_int_equal(item.grid.w, 22);
    arena_free(&mem);
}

static void a_request_cannot_raise_the_caller_s_limit(void **state) {
    (void)state;
    arena mem = {0};
    const media_ref ref = {.form = MEDIA_PATH, .data = STR(MEDIA "smooth_33x31.png")};
    const media_kwargs huge = {.image = {.min_pixels = 4000000, .max_pixels = 4000000}};
    const media_options options = {
        .rules = &RULES, .allow_paths = true, .kwargs = &huge, .max_pixels = 65536};
    media_item item = {0};
    assert_int_equal(media_load(&item, &ref, &options, &mem, NULL), CLEF_OK);
    assert_int_equal(item.grid.h, 16);
    assert_int_equal(item.grid.w, 18); /* rounded up, as the least size is */
    arena_free(&mem);
}

static void a_picture_kept_at_its_size_is_held_to_the_caller_s_limit(void **state) {
    (void)state;
    arena mem = {0};
    clip c = make_clip(1, 64, 64, 1);
    const media_kwargs kept = {.image.keep_size = true};
    media_options options = {.rules = &RULES, .kwargs = &kept, .max_pixels = 64 * 64};
    media_item item = {0};
    clef_error err = {0};
    assert_int_equal(media_load(&item, &c.frames[0], &options, &mem, &err), CLEF_OK);
    options.max_pixels--;
    assert_int_equal(media_load(&item, &c.frames[0], &options, &mem, &err), CLEF_ERR_LIMIT);
    assert_string_equal(err.text, "images[0]: 64 x 64 pixels with do_resize false, the limit is "
                                  "4095 pixels");
    free_clip(&c);
    arena_free(&mem);
}

/* As the reference has it: too small for the least is enlarged, whatever the most. */
static void without_the_caller_s_limit_a_least_size_above_the_most_stands(void **state) {
    (void)state;
    arena mem = {0};
    clip c = make_clip(1, 64, 64, 1);
    const media_kwargs crossed = {.image = {.min_pixels = 65536, .max_pixels = 4096}};
    const media_options options = {.rules = &RULES, .kwargs = &crossed};
    media_item item = {0};
    assert_int_equal(media_load(&item, &c.frames[0], &options, &mem, NULL), CLEF_OK);
    assert_int_equal(item.grid.h, 16);
    assert_int_equal(item.grid.w, 16);
    free_clip(&c);
    arena_free(&mem);
}

/* 64 x 64 pixels that are to be 100,000,000: 97,969 tokens and 300 MB. */
static void more_tokens_than_a_record_has_are_refused_before_resizing(void **state) {
    (void)state;
    arena mem = {.max_bytes = 1 << 20};
    clip c = make_clip(4, 64, 64, 1);
    const media_kwargs kwargs = {.image = {.min_pixels = 100000000, .max_pixels = 100000000},
                                 .video = {.min_pixels = 100000000, .max_pixels = 100000000}};
    const media_options options = {
        .rules = &RULES, .kwargs = &kwargs, .max_rows = 16384, .rows_before = 7};
    media_item item = {0};
    clef_error err = {0};
    assert_int_equal(media_load(&item, &c.frames[0], &options, &mem, &err), CLEF_ERR_LIMIT);
    assert_string_equal(err.text, "images[0]: it takes 97969 tokens behind 7 of those before it, "
                                  "the limit of a record is 16384; smaller or fewer pictures take "
                                  "less");
    const media_ref video = {
        .form = MEDIA_FRAMES, .video = true, .frames = c.frames, .n_frames = 4};
    assert_int_equal(media_load(&item, &video, &options, &mem, &err), CLEF_ERR_LIMIT);
    assert_int_equal(strncmp(err.text, "videos[0]: it takes ", 20), 0);
    free_clip(&c);
    arena_free(&mem);
}

static void pixels_of_all_pictures_together_are_bounded(void **state) {
    (void)state;
    arena mem = {0};
    clip c = make_clip(4, 64, 64, 1);
    const media_kwargs smaller = {.image.keep_size = true,
                                  .video = {.min_pixels = 4096, .max_pixels = 4096}};
    media_options options = {.rules = &RULES, .kwargs = &smaller, .max_total_pixels = 3 * 64 * 64};
    media_item item = {0};
    clef_error err = {0};
    options.pixels_before = 2 * 64 * 64;
    assert_int_equal(media_load(&item, &c.frames[0], &options, &mem, &err), CLEF_OK);
    assert_int_equal(item.n_pixels, 64 * 64);
    options.pixels_before++;
    assert_int_equal(media_load(&item, &c.frames[0], &options, &mem, &err), CLEF_ERR_LIMIT);
    assert_string_equal(err.text, "images[0]: the pictures up to this one have 12289 pixels "
                                  "together, the limit is 12288");
    options.pixels_before = 0;
    const media_ref video = {
        .form = MEDIA_FRAMES, .video = true, .frames = c.frames, .n_frames = 4};
    assert_int_equal(media_load(&item, &video, &options, &mem, &err), CLEF_ERR_LIMIT);
    assert_int_equal(strncmp(err.text, "videos[0][3]: the pictures up to ", 33), 0);
    free_clip(&c);
    arena_free(&mem);
}

static void pixels_that_resizing_makes_count_as_well(void **state) {
    (void)state;
    arena mem = {0};
    clip c = make_clip(2, 64, 64, 1); /* a picture becomes 256 x 256, a video 2 x 256 x 256 */
    const media_kwargs larger = {.video = {.min_pixels = 131072, .max_pixels = 131072}};
    media_options options = {.rules = &RULES, .kwargs = &larger, .max_total_pixels = 131072};
    const media_ref video = {
        .form = MEDIA_FRAMES, .video = true, .frames = c.frames, .n_frames = 2};
    media_item item = {0};
    clef_error err = {0};
    assert_int_equal(media_load(&item, &video, &options, &mem, &err), CLEF_OK);
    assert_int_equal(item.n_pixels, 131072);
    options.pixels_before = 1;
    assert_int_equal(media_load(&item, &video, &options, &mem, &err), CLEF_ERR_LIMIT);
    assert_string_equal(err.text, "videos[0]: the pictures up to this one have 131073 pixels "
                                  "together, the limit is 131072");
    options.pixels_before = 65536;
    assert_int_equal(media_load(&item, &c.frames[1], &options, &mem, &err), CLEF_OK);
    assert_int_equal(item.n_pixels, 65536);
    options.pixels_before++;
    assert_int_equal(media_load(&item, &c.frames[1], &options, &mem, &err), CLEF_ERR_LIMIT);
    assert_int_equal(strncmp(err.text, "images[1]: the pictures up to this one have 131073", 50),
                     0);
    free_clip(&c);
    arena_free(&mem);
}

/* Goes on `left` times. */
static clef_status go_on(void *user, clef_error *err) {
    unsigned *left = user;
    if (*left == 0) return clef_fail(err, CLEF_ERR_CANCELLED, "no more");
    --*left;
    return CLEF_OK;
}

/* How often loading asks; it is stopped at each of these places, and at none later. */
static unsigned count_questions(const media_ref *ref) {
    for (unsigned n = 0;; n++) {
        unsigned left = n;
        arena mem = {0};
        media_item item = {0};
        clef_error err = {0};
        const media_options options = {
            .rules = &RULES, .allow_paths = true, .stop = {go_on, &left}};
        const clef_status s = media_load(&item, ref, &options, &mem, &err);
        arena_free(&mem);
        if (s == CLEF_OK) return n;
        assert_int_equal(s, CLEF_ERR_CANCELLED);
        assert_string_equal(err.text, "no more");
    }
}

static void loading_can_be_stopped_between_frames_and_rows(void **state) {
    (void)state;
    clip c = make_clip(8, 256, 32, 1);
    const media_ref video = {
        .form = MEDIA_FRAMES, .video = true, .frames = c.frames, .n_frames = 8};
    const media_ref jpeg = {.form = MEDIA_PATH, .data = STR(MEDIA "photo.jpg")};
    const media_ref scans = {.form = MEDIA_PATH, .data = STR(MEDIA "photo_progressive.jpg")};
    const media_ref webp = {.form = MEDIA_PATH, .data = STR(MEDIA "photo.webp")};
    assert_int_equal(count_questions(&c.frames[0]), 1 + 256 / 64);
    assert_int_equal(count_questions(&video), 4 * (1 + 256 / 64)); /* the least frames taken */
    assert_true(count_questions(&jpeg) > 1 + 10);
    assert_true(count_questions(&scans) > count_questions(&jpeg) + 10);
    assert_int_equal(count_questions(&webp), 1);
    free_clip(&c);
}

static void equal_pictures_have_equal_digests_and_others_do_not(void **state) {
    (void)state;
    arena mem = {0};
    media_item a = {0}, b = {0}, c = {0}, d = {0};
    clip first = make_clip(1, 64, 64, 1), second = make_clip(1, 64, 64, 2);
    media_options options = {.rules = &RULES};
    assert_int_equal(media_load(&a, &first.frames[0], &options, &mem, NULL), CLEF_OK);
    assert_int_equal(media_load(&b, &first.frames[0], &options, &mem, NULL), CLEF_OK);
    assert_int_equal(media_load(&c, &second.frames[0], &options, &mem, NULL), CLEF_OK);
    options.backend = MEDIA_BACKEND_PIL;
    assert_int_equal(media_load(&d, &first.frames[0], &options, &mem, NULL), CLEF_OK);
    assert_string_equal(a.digest, b.digest);
    assert_string_not_equal(a.digest, c.digest);
    assert_string_not_equal(a.digest, d.digest);
    free_clip(&first);
    free_clip(&second);
    arena_free(&mem);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static clef_status load_once(void *context, clef_error *err) {
    arena mem = {0};
    media_item item = {0};
    const media_options options = {.rules = &RULES, .grid = MEDIA_GRID_448};
    const clef_status s = media_load(&item, context, &options, &mem, err);
    arena_free(&mem);
    return s;
}

static void running_out_of_memory_is_told(void **state) {
    (void)state;
    clip c = make_clip(3, 64, 96, 1);
    media_ref ref = {.form = MEDIA_FRAMES, .video = true, .frames = c.frames, .n_frames = 3};
    assert_true(oom_each(load_once, &c.frames[0]) > 5);
    assert_true(oom_each(load_once, &ref) > 5);
    free_clip(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(native_pictures_equal_the_torchvision_processor_s),
        cmocka_unit_test(native_pictures_equal_the_pil_processor_s),
        cmocka_unit_test(pictures_on_the_256_grid_equal_the_reference_s),
        cmocka_unit_test(pictures_on_the_448_grid_equal_the_reference_s),
        cmocka_unit_test(rows_stand_in_merge_block_order),
        cmocka_unit_test(videos_equal_the_reference_s),
        cmocka_unit_test(a_frame_of_another_size_is_refused_naming_it),
        cmocka_unit_test(a_broken_frame_is_refused_naming_it),
        cmocka_unit_test(without_resizing_sides_have_to_fit),
        cmocka_unit_test(without_resizing_a_small_picture_stays_small),
        cmocka_unit_test(the_caller_s_limit_lowers_the_size),
        cmocka_unit_test(a_request_cannot_raise_the_caller_s_limit),
        cmocka_unit_test(a_picture_kept_at_its_size_is_held_to_the_caller_s_limit),
        cmocka_unit_test(without_the_caller_s_limit_a_least_size_above_the_most_stands),
        cmocka_unit_test(more_tokens_than_a_record_has_are_refused_before_resizing),
        cmocka_unit_test(pixels_of_all_pictures_together_are_bounded),
        cmocka_unit_test(pixels_that_resizing_makes_count_as_well),
        cmocka_unit_test(loading_can_be_stopped_between_frames_and_rows),
        cmocka_unit_test(equal_pictures_have_equal_digests_and_others_do_not),
        cmocka_unit_test(running_out_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
