/* guard_test.c - which hosts and origins may talk to a server on this machine. */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "server/guard.h"

static const guard LOOPBACK = {.loopback = true};

static void expect_hosts(const guard *g, const char *const *hosts, bool want) {
    for (; *hosts != NULL; hosts++)
        if (guard_host(g, str_of(*hosts)) != want) fail_msg("Host: %s", *hosts);
}

static void expect_origins(const guard *g, const char *const *origins, bool want) {
    for (; *origins != NULL; origins++)
        if (guard_origin(g, str_of(*origins)) != want) fail_msg("Origin: %s", *origins);
}

static void loopback_answers_to_its_own_names(void **state) {
    (void)state;
    static const char *const HOSTS[] = {"localhost",      "LOCALHOST:8423", "127.0.0.1",
                                        "127.0.0.1:8423", "127.255.0.9",    "[::1]",
                                        "[::1]:8423",     "localhost:1",    NULL};
    expect_hosts(&LOOPBACK, HOSTS, true);
}

static void loopback_answers_to_no_other_name(void **state) {
    (void)state;
    static const char *const HOSTS[] = {"evil.example",
                                        "",
                                        ":8423",
                                        "localhost.evil.example",
                                        "evil.example:8423",
                                        "localhost:",
                                        "localhost:80:80",
                                        "localhost:123456",
                                        "localhost:8x",
                                        "127.0.0.1.evil.example",
                                        "127.0.0.256",
                                        "127.0.0",
                                        "127.0.0.1.1",
                                        "1127.0.0.1",
                                        "128.0.0.1",
                                        "0.0.0.0",
                                        "[::1",
                                        "[::2]",
                                        "localhost\t",
                                        NULL};
    expect_hosts(&LOOPBACK, HOSTS, false);
}

static void more_hosts_can_be_allowed(void **state) {
    (void)state;
    static const char *const MORE[] = {"clef.lan", "box:9000"};
    const guard g = {.loopback = true, .hosts = MORE, .n_hosts = 2};
    static const char *const GOOD[] = {"clef.lan", "Clef.Lan:8423", "box:9000", "localhost", NULL};
    static const char *const BAD[] = {"box", "box:9001", "a.clef.lan", NULL};
    expect_hosts(&g, GOOD, true);
    expect_hosts(&g, BAD, false);
}

static void another_address_answers_to_all_unless_told(void **state) {
    (void)state;
    static const char *const MORE[] = {"clef.lan"};
    const guard open = {0}, closed = {.hosts = MORE, .n_hosts = 1};
    static const char *const ANY[] = {"10.0.0.1:8423", "what.ever", NULL};
    expect_hosts(&open, ANY, true);
    expect_hosts(&closed, ANY, false);
}

static void pages_from_this_machine_may_ask(void **state) {
    (void)state;
    static const char *const GOOD[] = {"http://localhost", "https://localhost:3000",
                                       "http://127.0.0.1:8423", "http://[::1]:5173", NULL};
    static const char *const BAD[] = {"http://evil.example",
                                      "null",
                                      "",
                                      "file://",
                                      "ftp://localhost",
                                      "http://",
                                      "http://localhost.evil.example",
                                      "http://localhost:3000/x",
                                      "http://evil@localhost",
                                      "http://localhost@evil.example",
                                      NULL};
    expect_origins(&LOOPBACK, GOOD, true);
    expect_origins(&LOOPBACK, BAD, false);
}

static void more_origins_can_be_allowed(void **state) {
    (void)state;
    static const char *const MORE[] = {"https://app.example"};
    const guard g = {.loopback = true, .origins = MORE, .n_origins = 1};
    static const char *const GOOD[] = {"https://app.example", NULL};
    static const char *const BAD[] = {"http://app.example", "https://app.example:444", NULL};
    expect_origins(&g, GOOD, true);
    expect_origins(&g, BAD, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loopback_answers_to_its_own_names),
        cmocka_unit_test(loopback_answers_to_no_other_name),
        cmocka_unit_test(more_hosts_can_be_allowed),
        cmocka_unit_test(another_address_answers_to_all_unless_told),
        cmocka_unit_test(pages_from_this_machine_may_ask),
        cmocka_unit_test(more_origins_can_be_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
