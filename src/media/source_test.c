/* Tests of source.c. */
#include "media/source.h"

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/oom.h"
#include "tests/oom_each.h"

static const char PNG_FILE[] = TESTDATA "media/gray1.png";
enum { PLENTY = 1 << 20 };

static clef_status bytes_of(str *out, buf *storage, str text, size_t max_bytes, bool allow_paths,
                            clef_error *err) {
    const media_ref ref = {.form = MEDIA_TEXT, .data = text};
    return source_bytes(out, storage, &ref, max_bytes, allow_paths, "images[1]", err);
}

static void expect_bytes(str text, str wanted) {
    buf storage = {0};
    str out = {0};
    clef_error err = {0};
    if (bytes_of(&out, &storage, text, PLENTY, false, &err) != CLEF_OK)
        fail_msg("%.*s: %s", STR_ARG(text), err.text);
    if (!str_equal(out, wanted)) fail_msg("%.*s: other bytes", STR_ARG(text));
    buf_free(&storage);
}

static void expect_refused(str text, clef_status status, const char *sentence) {
    buf storage = {0};
    str out = {0};
    clef_error err = {0};
    const clef_status s = bytes_of(&out, &storage, text, PLENTY, false, &err);
    if (s != status || strncmp(err.text, sentence, strlen(sentence)) != 0)
        fail_msg("%.*s\n found  %d %s\n wanted %d %s", STR_ARG(text), s, err.text, status,
                 sentence);
    buf_free(&storage);
}

static void base64_of_every_length_is_decoded(void **state) {
    (void)state;
    expect_bytes(STR("Zg=="), STR("f"));
    expect_bytes(STR("Zm8="), STR("fo"));
    expect_bytes(STR("Zm9v"), STR("foo"));
    expect_bytes(STR("Zm9vYg=="), STR("foob"));
    expect_bytes(STR("Zm9vYmE="), STR("fooba"));
    expect_bytes(STR("Zm9vYmFy"), STR("foobar"));
    expect_bytes(STR("AP+/+A=="), STR("\0\xff\xbf\xf8"));
}

/* Longer than the block that is decoded at once. */
static void long_base64_is_decoded(void **state) {
    (void)state;
    enum { GROUPS = 5000 };
    char *text = malloc(GROUPS * 4), *wanted = malloc(GROUPS * 3);
    assert_non_null(text);
    assert_non_null(wanted);
    for (size_t i = 0; i < GROUPS * 4; i++) text[i] = "Zm9v"[i % 4];
    for (size_t i = 0; i < GROUPS * 3; i++) wanted[i] = "foo"[i % 3];
    expect_bytes((str){text, GROUPS * 4}, (str){wanted, GROUPS * 3});
    text[GROUPS * 4 - 3] = '*';
    expect_refused((str){text, GROUPS * 4}, CLEF_ERR_INPUT, "images[1]: byte 19997 is '*'");
    free(text);
    free(wanted);
}

static void base64_may_be_broken_into_lines(void **state) {
    (void)state;
    expect_bytes(STR("Zm9v\n"), STR("foo"));
    expect_bytes(STR("Zm\r\n9v\r\nYg=\n="), STR("foob"));
    expect_bytes(STR("data:image/png;base64,\nZm9v\nYmFy"), STR("foobar"));
    expect_refused(STR("\n\r\n"), CLEF_ERR_INPUT, "images[1]: empty");
    expect_refused(STR("Zm9v\nZm 9"), CLEF_ERR_INPUT, "images[1]: byte 7 is 0x20");
    expect_refused(STR("Zm9v\nZm9\n"), CLEF_ERR_INPUT,
                   "images[1]: base64 of 9 characters that is cut");
}

static void base64_is_taken_strictly(void **state) {
    (void)state;
    expect_refused(STR(""), CLEF_ERR_INPUT, "images[1]: empty");
    expect_refused(STR("Zm9"), CLEF_ERR_INPUT, "images[1]: base64 of 3 characters that is cut");
    expect_refused(STR("Z==="), CLEF_ERR_INPUT, "images[1]: byte 1 is '='");
    expect_refused(STR("===="), CLEF_ERR_INPUT, "images[1]: byte 0 is '='");
    expect_refused(STR("Zg==Zg=="), CLEF_ERR_INPUT, "images[1]: byte 2 is '='");
    expect_refused(STR("Zm9v Zm9"), CLEF_ERR_INPUT, "images[1]: byte 4 is 0x20");
    expect_refused(STR("Zm-_"), CLEF_ERR_INPUT, "images[1]: byte 2 is '-'");
    expect_refused(STR("Zm\xc3\xa9"), CLEF_ERR_INPUT, "images[1]: byte 2 is 0xc3");
    expect_refused(STR("Zh=="), CLEF_ERR_INPUT,
                   "images[1]: base64 of 4 characters that is cut or has bits behind");
    expect_refused(STR("Zm9="), CLEF_ERR_INPUT,
                   "images[1]: base64 of 4 characters that is cut or has bits behind");
}

static void data_urls_of_any_type_are_decoded(void **state) {
    (void)state;
    expect_bytes(STR("data:image/png;base64,Zm9v"), STR("foo"));
    expect_bytes(STR("data:;base64,Zm9v"), STR("foo"));
    expect_bytes(STR("DATA:text/plain;charset=utf-8;BASE64,Zm9v"), STR("foo"));
    expect_refused(STR("data:image/png,Zm9v"), CLEF_ERR_INPUT,
                   "images[1]: a data URL that is not base64");
    expect_refused(STR("data:image/png;base64"), CLEF_ERR_INPUT,
                   "images[1]: a data URL without a comma");
    expect_refused(STR("data:"), CLEF_ERR_INPUT, "images[1]: a data URL without a comma");
    expect_refused(STR("data:;base64,"), CLEF_ERR_INPUT, "images[1]: empty");
}

static void nothing_is_fetched_and_no_path_is_read(void **state) {
    (void)state;
    expect_refused(STR("http://example.org/a.png"), CLEF_ERR_UNSUPPORTED,
                   "images[1]: a URL of scheme 'http': pictures are not fetched");
    expect_refused(STR("HTTPS://example.org/a.png"), CLEF_ERR_UNSUPPORTED,
                   "images[1]: a URL of scheme 'HTTPS'");
    expect_refused(STR("file:///etc/passwd"), CLEF_ERR_UNSUPPORTED,
                   "images[1]: a URL of scheme 'file'");
    expect_refused(STR("photo.jpg"), CLEF_ERR_INPUT, "images[1]: byte 5 is '.'");
    buf storage = {0};
    str out = {0};
    clef_error err = {0};
    const media_ref ref = {.form = MEDIA_PATH, .data = STR("/etc/passwd")};
    assert_int_equal(source_bytes(&out, &storage, &ref, PLENTY, false, "images[1]", &err),
                     CLEF_ERR_UNSUPPORTED);
    assert_string_equal(err.text,
                        "images[1]: paths are not read here, wanted a data URL or base64");
}

static void a_caller_may_allow_paths_and_file_urls(void **state) {
    (void)state;
    char here[1024], url[2048];
    assert_non_null(getcwd(here, sizeof here));
    snprintf(url, sizeof url, "file://localhost%s/" TESTDATA "media/gray%%31.png", here);
    const media_ref refs[] = {
        {.form = MEDIA_PATH, .data = str_of(PNG_FILE)},
        {.form = MEDIA_TEXT, .data = str_of(url)},
        {.form = MEDIA_TEXT, .data = STR("file:" TESTDATA "media/gray1.png")},
    };
    for (size_t i = 0; i < sizeof refs / sizeof refs[0]; i++) {
        buf storage = {0};
        str out = {0};
        clef_error err = {0};
        if (source_bytes(&out, &storage, &refs[i], PLENTY, true, "images[1]", &err) != CLEF_OK)
            fail_msg("%s", err.text);
        assert_true(out.n > 8 && memcmp(out.p, "\x89PNG", 4) == 0);
        buf_free(&storage);
    }
}

static void a_file_that_cannot_be_read_is_named_with_its_place(void **state) {
    (void)state;
    static const struct {
        str text;
        const char *sentence;
    } ROWS[] = {
#define ROW(s, sentence) {{(s), sizeof(s) - 1}, sentence}
        ROW("file:///nowhere/a.png", "images[1]: /nowhere/a.png: "),
        ROW("file://host/a.png", "images[1]: a file: URL with a host"),
        ROW("file:", "images[1]: an empty path"),
        ROW("file:a%0", "images[1]: a % in a file: URL needs two hex digits"),
        ROW("file:a%zz", "images[1]: a % in a file: URL needs two hex digits"),
        ROW("file:a%00b", "images[1]: an empty path or one with a zero byte"),
        ROW("photo.jpg", "images[1]: byte 5 is '.': wanted a data URL, a file: URL or base64"),
        ROW("http://example.org/a.png", "images[1]: a URL of scheme 'http': pictures are not "
                                        "fetched, wanted a data URL, a file: "
                                        "URL or base64"),
#undef ROW
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        buf storage = {0};
        str out = {0};
        clef_error err = {0};
        assert_true(bytes_of(&out, &storage, ROWS[i].text, PLENTY, true, &err) != CLEF_OK);
        if (strncmp(err.text, ROWS[i].sentence, strlen(ROWS[i].sentence)) != 0)
            fail_msg("found %s\n wanted %s", err.text, ROWS[i].sentence);
        buf_free(&storage);
    }
}

static void more_bytes_than_allowed_are_refused_before_they_are_decoded(void **state) {
    (void)state;
    const media_ref refs[] = {
        {.form = MEDIA_TEXT, .data = STR("Zm9vYmFy")},
        {.form = MEDIA_BYTES, .data = STR("foobar")},
        {.form = MEDIA_PATH, .data = str_of(PNG_FILE)},
    };
    for (size_t i = 0; i < sizeof refs / sizeof refs[0]; i++) {
        buf storage = {0};
        str out = {0};
        clef_error err = {0};
        assert_int_equal(source_bytes(&out, &storage, &refs[i], 4, true, "images[1]", &err),
                         CLEF_ERR_LIMIT);
        assert_non_null(strstr(err.text, "the limit is 4"));
        buf_free(&storage);
    }
}

static clef_status decode_once(void *context, clef_error *err) {
    buf storage = {0};
    str out = {0};
    const clef_status s = source_bytes(&out, &storage, context, PLENTY, true, "images[1]", err);
    buf_free(&storage);
    return s;
}

static void running_out_of_memory_is_told(void **state) {
    (void)state;
    media_ref text = {.form = MEDIA_TEXT, .data = STR("data:;base64,Zm9v")};
    media_ref path = {.form = MEDIA_TEXT, .data = STR("file:" TESTDATA "media/gray1.png")};
    assert_true(oom_each(decode_once, &text) > 0);
    assert_true(oom_each(decode_once, &path) > 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base64_of_every_length_is_decoded),
        cmocka_unit_test(long_base64_is_decoded),
        cmocka_unit_test(base64_may_be_broken_into_lines),
        cmocka_unit_test(base64_is_taken_strictly),
        cmocka_unit_test(data_urls_of_any_type_are_decoded),
        cmocka_unit_test(nothing_is_fetched_and_no_path_is_read),
        cmocka_unit_test(a_caller_may_allow_paths_and_file_urls),
        cmocka_unit_test(a_file_that_cannot_be_read_is_named_with_its_place),
        cmocka_unit_test(more_bytes_than_allowed_are_refused_before_they_are_decoded),
        cmocka_unit_test(running_out_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
