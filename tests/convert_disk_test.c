/* convert_disk_test.c - clef_convert stopped at each single change that it makes to the disk, by
 * the process's death and by errors of the disk: nothing that opens is incomplete, the sentence
 * says what to do, and the same command goes on to the same bytes. */
#include <sys/wait.h>

#include "base/file.h"
#include "clef.h"
#include "tests/disk.h"
#include "tests/folder.h"

#define TOY TESTDATA "gate/toy-blocks"

/* Holds "done", which no one disturbed, and "made" with its partial folder, which are removed
 * between two tries. */
static folder home;
static char done[300], made[300], partial[320];

static clef_status convert(const char *out, clef_error *err) {
    const clef_convert_options o = {
        .model = TOY, .out = out, .format = CLEF_FORMAT_INT8, .jobs = 1};
    return clef_convert(&o, NULL, err);
}

static int make_done(void **state) {
    (void)state;
    home = folder_new();
    snprintf(done, sizeof done, "%s/done", home.path);
    snprintf(made, sizeof made, "%s/made", home.path);
    snprintf(partial, sizeof partial, "%s.partial", made);
    clef_error err = {0};
    if (convert(done, &err) != CLEF_OK) fail_msg("%s", err.text);
    return 0;
}

static int remove_done(void **state) {
    (void)state;
    folder_remove(home.path);
    return 0;
}

/* Whether `path` is "done" to the byte; `records`: beside records of finished shards. */
static bool is_done(const char *path, bool records) {
    char command[1000];
    snprintf(command, sizeof command, "diff -r %s '%s' '%s' >&2", records ? "-x '*.record'" : "",
             done, path);
    return system(command) == 0; /* NOLINT(cert-env33-c): the test's own command */
}

/* Looks at what the stop before change `n` left, and lets the same command go on. Returns whether
 * the partial folder was complete. */
static bool check_rest(unsigned n) {
    clef_engine *e = NULL;
    const clef_options options = {.model = partial};
    const bool opens = clef_open(&e, &options, NULL) == CLEF_OK;
    clef_close(e);
    if (opens && !is_done(partial, true))
        fail_msg("stopped at change %u: the partial folder opens and is not complete", n);
    clef_error err = {0};
    if (!file_exists(made) && convert(made, &err) != CLEF_OK)
        fail_msg("after change %u it does not go on: %s", n, err.text);
    if (!is_done(made, false)) fail_msg("stopped at change %u: other bytes", n);
    assert_false(file_exists(partial));
    folder_remove(made);
    return opens;
}

/* Every change of a conversion is counted here too, so that a test cannot end early unseen. */
enum { LEAST_CHANGES = 40 };

static void a_conversion_killed_at_any_change_leaves_nothing_incomplete_that_opens(void **state) {
    (void)state;
    unsigned n_killed = 0, n_open = 0;
    for (unsigned n = 1;; n++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            disk_stop_at(n, 0);
            _exit((int)convert(made, NULL));
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        const bool killed = WIFSIGNALED(status);
        if (!killed) assert_int_equal(WEXITSTATUS(status), CLEF_OK);
        n_killed += killed;
        n_open += check_rest(n);
        if (!killed) break;
    }
    assert_true(n_killed >= LEAST_CHANGES);
    /* Before the record's end, before the folder is flushed, before it gets its name. */
    assert_int_equal(n_open, 3);
}

/* One conversion whose change `n` fails; whether it noticed. */
static bool change_fails(unsigned n, int error, const char *advice) {
    clef_error err = {0};
    disk_stop_at(n, error);
    const clef_status s = convert(made, &err);
    disk_stop_at(0, 0);
    if (s != CLEF_OK) {
        assert_int_equal(s, CLEF_ERR_IO);
        if (strstr(err.text, strerror(error)) == NULL || strstr(err.text, advice) == NULL)
            fail_msg("change %u: %s", n, err.text);
    }
    check_rest(n);
    return s != CLEF_OK;
}

static void a_disk_that_is_full_at_any_change_is_told_and_the_same_command_goes_on(void **state) {
    (void)state;
    unsigned n = 1;
    while (change_fails(n, ENOSPC, "make room and give the same command again")) n++;
    assert_true(n > LEAST_CHANGES);
}

static void a_disk_that_is_or_becomes_read_only_is_told(void **state) {
    (void)state;
    for (unsigned n = 1; n <= LEAST_CHANGES; n += 13)
        assert_true(change_fails(n, EROFS, "choose a target that you may write to"));
}

static void a_disk_that_breaks_is_told(void **state) {
    (void)state;
    for (unsigned n = 1; n <= LEAST_CHANGES; n += 7) assert_true(change_fails(n, EIO, ""));
}

static void a_disk_without_room_is_told_before_the_work(void **state) {
    (void)state;
    clef_error err = {0};
    disk_free(409600);
    const clef_status s = convert(made, &err);
    disk_free(UINT64_MAX);
    assert_int_equal(s, CLEF_ERR_IO);
    assert_non_null(strstr(err.text, "made: 0.9 MB are needed and 0.4 MB free: make room"));
    assert_false(file_exists(made));
    assert_int_equal(rmdir(partial), 0); /* nothing was written */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_conversion_killed_at_any_change_leaves_nothing_incomplete_that_opens),
        cmocka_unit_test(a_disk_that_is_full_at_any_change_is_told_and_the_same_command_goes_on),
        cmocka_unit_test(a_disk_that_is_or_becomes_read_only_is_told),
        cmocka_unit_test(a_disk_that_breaks_is_told),
        cmocka_unit_test(a_disk_without_room_is_told_before_the_work),
    };
    return cmocka_run_group_tests(tests, make_done, remove_done);
}
