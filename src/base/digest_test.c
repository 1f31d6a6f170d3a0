/* digest_test.c - SHA-256 of FIPS 180-2's examples, in pieces and of files. */
#include "base/digest.h"

#include <string.h>

#include "tests/folder.h"

static const char abc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
static const char empty[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

static void bytes_have_the_published_sums(void **state) {
    (void)state;
    char hex[DIGEST_HEX];
    assert_int_equal(digest_bytes(hex, "abc", 3, NULL), CLEF_OK);
    assert_string_equal(hex, abc);
    assert_int_equal(digest_bytes(hex, NULL, 0, NULL), CLEF_OK);
    assert_string_equal(hex, empty);
}

static void pieces_have_the_sum_of_the_whole(void **state) {
    (void)state;
    char hex[DIGEST_HEX];
    digest *d = NULL;
    assert_int_equal(digest_open(&d, NULL), CLEF_OK);
    digest_add(d, "a", 1);
    digest_add(d, NULL, 0);
    digest_add(d, "bc", 2);
    assert_int_equal(digest_finish(d, hex, NULL), CLEF_OK);
    assert_string_equal(hex, abc);
    digest_close(d);
    digest_close(NULL);
}

/* As `git hash-object` of git 2.39 prints. */
static void a_file_has_the_name_that_git_gives_it(void **state) {
    (void)state;
    char hex[DIGEST_HEX];
    digest *d = NULL;
    assert_int_equal(digest_open_git(&d, 3, NULL), CLEF_OK);
    digest_add(d, "ab", 2);
    digest_add(d, "c", 1);
    assert_int_equal(digest_finish(d, hex, NULL), CLEF_OK);
    assert_string_equal(hex, "f2ba8f84ab5c1bce84a7b441cb1959cfc7093b7f");
    digest_close(d);
    assert_int_equal(digest_open_git(&d, 0, NULL), CLEF_OK);
    assert_int_equal(digest_finish(d, hex, NULL), CLEF_OK);
    assert_string_equal(hex, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
    digest_close(d);
}

static clef_status count(void *user, size_t n, clef_error *err) {
    (void)err;
    *(size_t *)user += n;
    return CLEF_OK;
}

static clef_status stop(void *user, size_t n, clef_error *err) {
    (void)user;
    return clef_fail(err, CLEF_ERR_CANCELLED, "stopped after %zu bytes", n);
}

static void a_file_is_summed_and_measured(void **state) {
    (void)state;
    const folder f = folder_new();
    folder_write(&f, "abc", STR("abc"));
    folder_write(&f, "empty", STR(""));
    char hex[DIGEST_HEX];
    uint64_t size = 0;
    size_t seen = 0;
    assert_int_equal(digest_file(hex, &size, folder_path(&f, "abc"), count, &seen, NULL), CLEF_OK);
    assert_string_equal(hex, abc);
    assert_true(size == 3 && seen == 3);
    assert_int_equal(digest_file(hex, &size, folder_path(&f, "empty"), NULL, NULL, NULL), CLEF_OK);
    assert_string_equal(hex, empty);
    assert_true(size == 0);
    folder_remove(f.path);
}

static void a_step_may_end_the_reading(void **state) {
    (void)state;
    const folder f = folder_new();
    folder_write(&f, "abc", STR("abc"));
    char hex[DIGEST_HEX];
    uint64_t size = 0;
    clef_error err = {0};
    assert_int_equal(digest_file(hex, &size, folder_path(&f, "abc"), stop, NULL, &err),
                     CLEF_ERR_CANCELLED);
    assert_string_equal(err.text, "stopped after 3 bytes");
    folder_remove(f.path);
}

static void a_missing_file_is_named(void **state) {
    (void)state;
    char hex[DIGEST_HEX];
    uint64_t size = 0;
    clef_error err = {0};
    assert_int_equal(digest_file(hex, &size, TESTDATA "none", NULL, NULL, &err), CLEF_ERR_IO);
    assert_non_null(strstr(err.text, TESTDATA "none"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_have_the_published_sums),
        cmocka_unit_test(pieces_have_the_sum_of_the_whole),
        cmocka_unit_test(a_file_has_the_name_that_git_gives_it),
        cmocka_unit_test(a_file_is_summed_and_measured),
        cmocka_unit_test(a_step_may_end_the_reading),
        cmocka_unit_test(a_missing_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
