/* Names to folders and files to resolved paths, in hub caches made for the test. */
#include "checkpoint/hub.h"

#include "tests/folder.h"
#include "tests/oom.h"
#include "tests/oom_each.h"

#define COMMIT "17f0b0ad64efb65d273590632833508766b2aae6"

/* A cache with Org/Name, whose refs/main holds `ref`, and one file behind a link. */
static folder make_cache(str ref) {
    const folder f = folder_new();
    folder_make(&f, "models--Org--Name");
    folder_make(&f, "models--Org--Name/refs");
    folder_make(&f, "models--Org--Name/blobs");
    folder_make(&f, "models--Org--Name/snapshots");
    folder_make(&f, "models--Org--Name/snapshots/" COMMIT);
    folder_write(&f, "models--Org--Name/refs/main", ref);
    folder_write(&f, "models--Org--Name/blobs/abc", STR("{}"));
    folder_link(&f, "models--Org--Name/snapshots/" COMMIT "/config.json", "../../blobs/abc");
    return f;
}

static void fails(const char *model, const char *cache, clef_status status, const char *sentence) {
    char *dir = NULL;
    clef_error err = {0};
    const clef_status s = hub_resolve(&dir, model, cache, &err);
    if (s != status || strstr(err.text, sentence) == NULL)
        fail_msg("%s: status %d '%s', wanted '%s'", model, (int)s, err.text, sentence);
    assert_null(dir);
}

static void a_folder_is_taken_as_it_is(void **state) {
    (void)state;
    char *dir = NULL;
    assert_int_equal(hub_resolve(&dir, TESTDATA "toy-r2", NULL, NULL), CLEF_OK);
    assert_string_equal(dir, TESTDATA "toy-r2");
    free(dir);
}

static void a_name_is_found_in_the_cache(void **state) {
    (void)state;
    const folder f = make_cache(STR(COMMIT));
    char *dir = NULL, *file = NULL;
    clef_error err = {0};
    if (hub_resolve(&dir, "Org/Name", f.path, &err) != CLEF_OK) fail_msg("%s", err.text);
    assert_string_equal(dir, folder_path(&f, "models--Org--Name/snapshots/" COMMIT));
    if (hub_file(&file, dir, "config.json", &err) != CLEF_OK) fail_msg("%s", err.text);
    assert_non_null(strstr(file, "/models--Org--Name/blobs/abc"));
    free(file);
    free(dir);
    folder_remove(f.path);
}

static void what_is_missing_is_named(void **state) {
    (void)state;
    const folder f = make_cache(STR("0123456789abcdef"));
    fails("Org/Other", f.path, CLEF_ERR_IO, "/models--Org--Other)");
    fails("Org/Name", f.path, CLEF_ERR_IO, "/models--Org--Name/snapshots/0123456789abcdef)");
    unlink(folder_path(&f, "models--Org--Name/refs/main"));
    fails("Org/Name", f.path, CLEF_ERR_IO, "has no ");
    fails("Org/Name", NULL, CLEF_ERR_INPUT, "no hub cache was given");
    folder_remove(f.path);
}

static void a_ref_that_is_no_commit_is_refused(void **state) {
    (void)state;
    const str refs[] = {STR(""),
                        STR("../../../etc"),
                        STR(COMMIT "/../x"),
                        STR(COMMIT "\n"),
                        STR("/etc"),
                        STR(".."),
                        STR("main"),
                        STR("ABCDEF"),
                        STR("a\0b"),
                        STR("00000000000000000000000000000000000000000000000000000000000000000")};
    for (size_t i = 0; i < sizeof refs / sizeof *refs; i++) {
        const folder f = make_cache(refs[i]);
        fails("Org/Name", f.path, CLEF_ERR_FORMAT, "refs/main: found '");
        folder_remove(f.path);
    }
    buf big = {0};
    for (int i = 0; i < 5000; i++) buf_add_char(&big, 'a');
    const folder long_ref = make_cache((str){big.p, big.n});
    fails("Org/Name", long_ref.path, CLEF_ERR_LIMIT, "the limit is 4096");
    folder_remove(long_ref.path);
    buf_free(&big);
}

static void what_is_no_name_is_refused(void **state) {
    (void)state;
    const folder f = make_cache(STR(COMMIT));
    const char *names[] = {"",       "Name",   "Org/",   "/Name", "Org/Name/x", "../Name",
                           "Org/..", "Org/.x", "a--b/c", "-a/b",  "a/b-",       "a/b c",
                           "a/b\n",  "a\\b/c", "\xFF/b", "a/b..c"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        fails(names[i], f.path, CLEF_ERR_INPUT, "no name of the form Org/Name");
    fails(TESTDATA "README.md", f.path, CLEF_ERR_INPUT, "a file, wanted a model folder");
    folder_remove(f.path);
}

static void file_fails(const char *dir, const char *name, clef_status status,
                       const char *sentence) {
    char *path = NULL;
    clef_error err = {0};
    const clef_status s = hub_file(&path, dir, name, &err);
    if (s != status || strstr(err.text, sentence) == NULL)
        fail_msg("status %d '%s', wanted '%s'", (int)s, err.text, sentence);
    assert_null(path);
}

static void a_missing_file_is_named(void **state) {
    (void)state;
    file_fails(TESTDATA "toy-r2", "none.json", CLEF_ERR_IO,
               TESTDATA "toy-r2/none.json: No such file or directory");
}

static void links_may_not_leave_the_folder(void **state) {
    (void)state;
    const folder f = folder_new();
    folder_make(&f, "model");
    folder_make(&f, "model-2");
    folder_write(&f, "model-2/x", STR("x"));
    folder_write(&f, "model/here", STR("x"));
    folder_link(&f, "model/a", "../model-2/x");
    folder_link(&f, "model/b", "here");
    char dir[1024];
    snprintf(dir, sizeof dir, "%s", folder_path(&f, "model"));
    file_fails(dir, "a", CLEF_ERR_FORMAT, "wanted a file inside");
    file_fails(dir, "../model-2/x", CLEF_ERR_FORMAT, "wanted a file inside");
    char *path = NULL;
    assert_int_equal(hub_file(&path, dir, "b", NULL), CLEF_OK);
    assert_non_null(strstr(path, "/model/here"));
    free(path);
    folder_remove(f.path);
}

static void links_of_a_snapshot_may_not_leave_its_model(void **state) {
    (void)state;
    const folder f = make_cache(STR(COMMIT));
    folder_write(&f, "stray", STR("x"));
    folder_link(&f, "models--Org--Name/snapshots/" COMMIT "/x", "../../../stray");
    char dir[1024];
    snprintf(dir, sizeof dir, "%s", folder_path(&f, "models--Org--Name/snapshots/" COMMIT));
    file_fails(dir, "x", CLEF_ERR_FORMAT, "wanted a file inside");
    folder_remove(f.path);
}

static clef_status resolve(void *context, clef_error *err) {
    char *dir = NULL, *file = NULL;
    clef_status s = hub_resolve(&dir, "Org/Name", context, err);
    if (s == CLEF_OK) s = hub_file(&file, dir, "config.json", err);
    free(dir);
    free(file);
    return s;
}

static void every_failed_allocation_is_reported(void **state) {
    (void)state;
    folder f = make_cache(STR(COMMIT));
    assert_true(oom_each(resolve, f.path) > 4);
    folder_remove(f.path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_is_taken_as_it_is),
        cmocka_unit_test(a_name_is_found_in_the_cache),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(a_ref_that_is_no_commit_is_refused),
        cmocka_unit_test(what_is_no_name_is_refused),
        cmocka_unit_test(a_missing_file_is_named),
        cmocka_unit_test(links_may_not_leave_the_folder),
        cmocka_unit_test(links_of_a_snapshot_may_not_leave_its_model),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
