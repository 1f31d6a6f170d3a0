/* install_test.c - make install puts everything in its place, and a stranger's program compiles,
 * links and runs against what it finds there, as the README says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "clef.h"

/* Where the tests install: an absolute prefix, so that pkg-config's answer can be used as it is. */
static char prefix[1024];

/* Runs a shell command with $P as the prefix, its output in the test's; fails unless it succeeds.
 */
static void shell(const char *command) {
    char line[4096];
    snprintf(line, sizeof line, "P='%s'; unset MAKEFLAGS MFLAGS; %s", prefix, command);
    /* NOLINTNEXTLINE(cert-env33-c): the commands are the test's own. */
    const int status = system(line);
    if (status != 0) fail_msg("exit status %d: %s", WEXITSTATUS(status), command);
}

static int install_once(void **state) {
    (void)state;
    char here[900];
    if (getcwd(here, sizeof here) == NULL) return -1;
    snprintf(prefix, sizeof prefix, "%s/" BUILD_DIR "installed", here);
    shell("rm -rf \"$P\" && make -s install PREFIX=\"$P\" DESTDIR= B=$(dirname " BUILD_DIR
          "x) >/dev/null");
    return 0;
}

static bool is_installed(const char *name) {
    char *path = file_join(prefix, name);
    const bool there = file_exists(path);
    free(path);
    return there;
}

static void every_file_is_in_its_place(void **state) {
    (void)state;
    assert_true(is_installed("bin/clef"));
    assert_true(is_installed("lib/libclef.a"));
    assert_true(is_installed("lib/libclef.so"));
    assert_true(is_installed("lib/libclef.so.0"));
    assert_true(is_installed("lib/libclef.so." CLEF_VERSION));
    assert_true(is_installed("lib/pkgconfig/clef.pc"));
    assert_true(is_installed("include/clef.h"));
    assert_true(is_installed("share/man/man1/clef.1"));
}

static void the_shared_library_exports_nothing_but_clef_h(void **state) {
    (void)state;
    shell(
        "nm -D --defined-only \"$P/lib/libclef.so\" | awk '{ print $3 }' | sort > \"$P/exported\"");
    shell("sed -n 's/^CLEF_API .*[ *]\\(clef_[a-z_]*\\)(.*/\\1/p' include/clef.h | sort > "
          "\"$P/stated\"");
    shell("test -s \"$P/stated\" && diff \"$P/stated\" \"$P/exported\" >&2");
}

static void the_installed_program_runs(void **state) {
    (void)state;
    shell("test \"$(\"$P/bin/clef\" --version)\" = 'clef " CLEF_VERSION "'");
}

static void the_example_links_with_the_shared_library_and_answers(void **state) {
    (void)state;
    shell(
        "export PKG_CONFIG_PATH=\"$P/lib/pkgconfig\" && "
        "cc -Wall -Wextra -Werror examples/ask.c $(pkg-config --cflags --libs clef) -o \"$P/ask\"");
    shell("LD_LIBRARY_PATH=\"$P/lib\" \"$P/ask\" " TESTDATA "toy-r2 < examples/request.json "
          "> \"$P/example.out\"");
    shell("\"$P/bin/clef\" ask " TESTDATA "toy-r2 < examples/request.json > \"$P/clef.out\"");
    /* The example's first line is the answer; a line for each of the nine options follows. */
    shell("head -n 1 \"$P/example.out\" | cmp - \"$P/clef.out\" >&2");
    shell("test \"$(tail -n +2 \"$P/example.out\" | grep -c ': logit .*, probability ')\" = 9");
}

static void the_example_links_with_the_static_library(void **state) {
    (void)state;
    shell("export PKG_CONFIG_PATH=\"$P/lib/pkgconfig\" && cc examples/ask.c "
          "$(pkg-config --cflags clef) \"$P/lib/libclef.a\" -lm -lcrypto -lpng -ljpeg -lwebp "
          "-lwebpdemux -pthread -o "
          "\"$P/ask-static\"");
    shell("\"$P/ask-static\" " TESTDATA
          "toy-r2 < examples/request.json | cmp - \"$P/example.out\"");
}

static void a_staged_install_touches_only_its_destination(void **state) {
    (void)state;
    shell("make -s install PREFIX=/usr DESTDIR=\"$P/stage\" B=$(dirname " BUILD_DIR
          "x) >/dev/null");
    shell("test -x \"$P/stage/usr/bin/clef\" && "
          "grep -qx 'prefix=/usr' \"$P/stage/usr/lib/pkgconfig/clef.pc\"");
}

static void uninstall_leaves_no_file(void **state) {
    (void)state;
    shell("make -s uninstall PREFIX=/usr DESTDIR=\"$P/stage\" >/dev/null && "
          "test -z \"$(find \"$P/stage\" ! -type d)\"");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_file_is_in_its_place),
        cmocka_unit_test(the_shared_library_exports_nothing_but_clef_h),
        cmocka_unit_test(the_installed_program_runs),
        cmocka_unit_test(the_example_links_with_the_shared_library_and_answers),
        cmocka_unit_test(the_example_links_with_the_static_library),
        cmocka_unit_test(a_staged_install_touches_only_its_destination),
        cmocka_unit_test(uninstall_leaves_no_file),
    };
    return cmocka_run_group_tests(tests, install_once, NULL);
}
