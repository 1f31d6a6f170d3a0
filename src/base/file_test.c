/* Tests of file.c; its files lie in a folder of their own under the build folder. */
#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/oom.h"

static char folder[] = BUILD_DIR "file_test.XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state) {
    (void)state;
    return rmdir(folder);
}

/* A file with `n` bytes i % 251, to be given to drop. */
static char *make_file(size_t n) {
    char *path = file_join(folder, "file");
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (size_t i = 0; i < n; i++) fputc((int)(i % 251), f);
    assert_int_equal(fclose(f), 0);
    return path;
}

static void drop(char *path) {
    assert_int_equal(remove(path), 0);
    free(path);
}

static void assert_bytes(const void *data, size_t n) {
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++)
        if (p[i] != i % 251) fail_msg("byte %zu is %u", i, p[i]);
}

static void a_file_is_read_whole_behind_what_the_buffer_holds(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3000000};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        char *path = make_file(sizes[k]);
        buf out = {0};
        buf_add_text(&out, "x");
        assert_int_equal(file_read(&out, path, sizes[k], NULL), CLEF_OK);
        assert_int_equal(out.n, 1 + sizes[k]);
        assert_bytes(out.p + 1, sizes[k]);
        buf_free(&out);
        drop(path);
    }
}

static void a_file_over_the_limit_is_refused_with_both_sizes(void **state) {
    (void)state;
    char *path = make_file(101);
    buf out = {0};
    clef_error err = {0};
    assert_int_equal(file_read(&out, path, 100, &err), CLEF_ERR_LIMIT);
    assert_non_null(strstr(err.text, "101 bytes, the limit is 100"));
    assert_int_equal(out.n, 0);
    buf_free(&out);
    drop(path);
}

static void what_is_no_regular_file_is_refused_at_once(void **state) {
    (void)state;
    char *pipe = file_join(folder, "pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    const char *const paths[] = {folder, pipe, "/dev/zero"};
    for (size_t k = 0; k < 3; k++) {
        buf out = {0};
        file_map map = {0};
        clef_error err = {0};
        assert_int_equal(file_read(&out, paths[k], 1 << 20, &err), CLEF_ERR_IO);
        assert_non_null(strstr(err.text, paths[k]));
        assert_non_null(strstr(err.text, "wanted a regular file"));
        assert_int_equal(file_map_open(&map, paths[k], &err), CLEF_ERR_IO);
        assert_null(map.data);
        buf_free(&out);
    }
    drop(pipe);
}

static void a_missing_file_is_named(void **state) {
    (void)state;
    buf out = {0};
    clef_error err = {0};
    file_map map = {0};
    assert_int_equal(file_read(&out, "no/such/file", 10, &err), CLEF_ERR_IO);
    assert_string_equal(err.text, "no/such/file: No such file or directory");
    assert_int_equal(file_map_open(&map, "no/such/file", &err), CLEF_ERR_IO);
    assert_string_equal(err.text, "no/such/file: No such file or directory");
}

static void a_mapped_file_shows_its_bytes(void **state) {
    (void)state;
    char *path = make_file(70000);
    file_map map = {0};
    assert_int_equal(file_map_open(&map, path, NULL), CLEF_OK);
    drop(path); /* the mapping holds the file */
    assert_int_equal(map.n, 70000);
    assert_bytes(map.data, map.n);
    file_unmap(&map);
    assert_null(map.data);
    file_unmap(&map);
}

static void an_empty_file_maps_to_nothing(void **state) {
    (void)state;
    char *path = make_file(0);
    file_map map = {.n = 7};
    assert_int_equal(file_map_open(&map, path, NULL), CLEF_OK);
    assert_null(map.data);
    assert_int_equal(map.n, 0);
    file_unmap(&map);
    drop(path);
}

static void a_failed_allocation_is_reported(void **state) {
    (void)state;
    char *path = make_file(100);
    unsigned failed = 0;
    for (clef_status s = CLEF_ERR_MEMORY; s != CLEF_OK;) {
        buf out = {0};
        oom_fail_at(failed + 1);
        s = file_read(&out, path, 100, NULL);
        oom_stop();
        buf_free(&out);
        if (s == CLEF_OK) break;
        assert_int_equal(s, CLEF_ERR_MEMORY);
        failed++;
    }
    assert_int_equal(failed, 2);
    oom_fail_at(1);
    assert_null(file_join("a", "b"));
    oom_stop();
    drop(path);
}

static void joined_names_have_one_slash(void **state) {
    (void)state;
    static const char *const cases[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}, {"/", "b", "/b"}};
    for (size_t k = 0; k < 4; k++) {
        char *path = file_join(cases[k][0], cases[k][1]);
        assert_string_equal(path, cases[k][2]);
        free(path);
    }
}

static void existence_is_told(void **state) {
    (void)state;
    assert_true(file_exists(folder));
    assert_false(file_exists("no/such/file"));
    assert_true(file_is_named(folder));
    assert_false(file_is_named("no/such/file"));
    char link[300];
    snprintf(link, sizeof link, "%s/link", folder);
    unlink(link);
    assert_int_equal(symlink("nothing", link), 0);
    assert_true(file_is_named(link));
    assert_false(file_exists(link));
    unlink(link);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_whole_behind_what_the_buffer_holds),
        cmocka_unit_test(a_file_over_the_limit_is_refused_with_both_sizes),
        cmocka_unit_test(what_is_no_regular_file_is_refused_at_once),
        cmocka_unit_test(a_missing_file_is_named),
        cmocka_unit_test(a_mapped_file_shows_its_bytes),
        cmocka_unit_test(an_empty_file_maps_to_nothing),
        cmocka_unit_test(a_failed_allocation_is_reported),
        cmocka_unit_test(joined_names_have_one_slash),
        cmocka_unit_test(existence_is_told),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
