/* coding_test.c - compressed bodies: those that are taken, and what only looks like one. The frames
 * are made by libzstd. */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdlib.h>
#include <zstd.h>

#include "server/coding.h"

enum { N_TEXT = 5000 };

static char text[N_TEXT];

static int write_text(void **state) {
    (void)state;
    for (size_t i = 0; i < N_TEXT; i++) text[i] = (char)(i * i % 251 % 64);
    return 0;
}

/* Appends a frame of the first n bytes of `text`. */
static void add_frame(buf *out, size_t n, bool stated) {
    char frame[N_TEXT + 1000];
    ZSTD_CCtx *c = ZSTD_createCCtx();
    assert_non_null(c);
    ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, stated);
    const size_t got = ZSTD_compress2(c, frame, sizeof frame, text, n);
    assert_false(ZSTD_isError(got));
    buf_add(out, frame, got);
    ZSTD_freeCCtx(c);
}

static clef_status undo(buf *out, str coded, clef_error *err) {
    size_t size;
    TRY(coding_size(&size, coded, err));
    return coding_decode(out, size, coded, err);
}

static void refused(str coded, const char *words) {
    clef_error err = {0};
    buf out = {0};
    assert_int_equal(undo(&out, coded, &err), CLEF_ERR_INPUT);
    if (strstr(err.text, words) == NULL) fail_msg("'%s', wanted '%s'", err.text, words);
    assert_null(out.p);
}

static void a_frame_gives_what_went_in(void **state) {
    (void)state;
    static const size_t SIZES[] = {0, 1, 255, 256, N_TEXT};
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        buf coded = {0}, out = {0};
        add_frame(&coded, SIZES[i], true);
        assert_int_equal(undo(&out, (str){coded.p, coded.n}, NULL), CLEF_OK);
        assert_true(str_equal((str){out.p, out.n}, (str){text, SIZES[i]}));
        buf_free(&out);
        buf_free(&coded);
    }
}

static void a_part_of_a_frame_is_refused(void **state) {
    (void)state;
    buf coded = {0};
    add_frame(&coded, N_TEXT, true);
    for (size_t n = 0; n < coded.n; n++) {
        char *part = malloc(n + 1); /* of its very size, for the sanitizer */
        assert_non_null(part);
        memcpy(part, coded.p, n);
        refused((str){part, n}, "broken");
        free(part);
    }
    buf_free(&coded);
}

static void a_changed_frame_is_refused_or_keeps_its_size(void **state) {
    (void)state;
    buf coded = {0};
    add_frame(&coded, N_TEXT, true);
    for (size_t i = 0; i < coded.n; i++) {
        coded.p[i] = (char)(coded.p[i] ^ 0x55);
        buf out = {0};
        size_t size = 0;
        const str s = {coded.p, coded.n};
        if (coding_size(&size, s, NULL) == CLEF_OK && size <= N_TEXT * 2 &&
            coding_decode(&out, size, s, NULL) == CLEF_OK)
            assert_int_equal(out.n, size);
        buf_free(&out);
        coded.p[i] = (char)(coded.p[i] ^ 0x55);
    }
    buf_free(&coded);
}

static void what_stands_behind_a_frame_is_refused(void **state) {
    (void)state;
    buf coded = {0};
    add_frame(&coded, N_TEXT, true);
    const size_t one = coded.n;
    buf_add_char(&coded, 'x');
    refused((str){coded.p, coded.n}, "1 bytes behind the zstd frame");
    coded.n = one;
    add_frame(&coded, 1, true);
    refused((str){coded.p, coded.n}, "behind the zstd frame");
    buf_free(&coded);
}

static void a_frame_without_a_size_is_refused(void **state) {
    (void)state;
    buf coded = {0};
    add_frame(&coded, N_TEXT, false);
    refused((str){coded.p, coded.n}, "does not state its size");
    buf_free(&coded);
}

/* The size stands in two bytes behind the magic number and the descriptor, less 256. */
static void a_frame_of_another_size_than_stated_is_refused(void **state) {
    (void)state;
    buf coded = {0};
    add_frame(&coded, N_TEXT, true);
    size_t size = 0;
    for (int by = -1; by <= 1; by += 2) {
        const char right = coded.p[5];
        coded.p[5] = (char)(right + by);
        assert_int_equal(coding_size(&size, (str){coded.p, coded.n}, NULL), CLEF_OK);
        assert_int_equal((int)size, N_TEXT + by);
        refused((str){coded.p, coded.n}, "broken");
        coded.p[5] = right;
    }
    buf_free(&coded);
}

static void other_codings_are_refused(void **state) {
    (void)state;
    refused(STR(""), "no zstd frame");
    refused(STR("{\"state\": \"\"}"), "no zstd frame");
    refused(STR("\x50\x2a\x4d\x18\0\0\0\0"), "no zstd frame"); /* one to skip */
    refused(STR("\x1f\x8b\x08\0\0\0\0\0\0\3\3\0\0\0\0\0\0\0\0\0"), "no zstd frame");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_gives_what_went_in),
        cmocka_unit_test(a_part_of_a_frame_is_refused),
        cmocka_unit_test(a_changed_frame_is_refused_or_keeps_its_size),
        cmocka_unit_test(what_stands_behind_a_frame_is_refused),
        cmocka_unit_test(a_frame_without_a_size_is_refused),
        cmocka_unit_test(a_frame_of_another_size_than_stated_is_refused),
        cmocka_unit_test(other_codings_are_refused),
    };
    return cmocka_run_group_tests(tests, write_text, NULL);
}
