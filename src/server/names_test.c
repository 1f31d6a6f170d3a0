/* names_test.c - the names that requests may use for the model. */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "server/names.h"

static const char *const ALIASES[] = {"clef"};

static void the_names_of_clients_and_hubs_match(void **state) {
    (void)state;
    const model_names n = {.served = "clef-flash"};
    static const char *const GOOD[] = {"clef-flash",
                                       " Clef-Flash\t",
                                       "clef-flash:latest",
                                       "Cloudflare/clef-flash",
                                       "@cf/cloudflare/clef-flash",
                                       "clef-flash-9b",
                                       "jev-latest",
                                       "jev-preview",
                                       "JEV",
                                       "typesafe/jev",
                                       "typesafe/jev-latest",
                                       "~typesafe/jev-latest",
                                       "typesafe-ai/jev"};
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++)
        if (!names_match(&n, str_of(GOOD[i]))) fail_msg("%s", GOOD[i]);
}

static void other_names_do_not(void **state) {
    (void)state;
    const model_names n = {.served = "clef-flash"};
    static const char *const BAD[] = {"", " ", "clef", "gpt-x", "clef-flash2", "clef flash"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        if (names_match(&n, str_of(BAD[i]))) fail_msg("%s", BAD[i]);
    assert_false(names_match(&n, STR("jev\0x")));
}

static void an_alias_and_the_served_name_match(void **state) {
    (void)state;
    const model_names n = {.served = "mine", .aliases = ALIASES, .n_aliases = 1};
    assert_true(names_match(&n, STR("CLEF")));
    assert_true(names_match(&n, STR("Mine")));
    assert_true(names_match(&n, STR("jev")));
}

static void any_takes_all_but_blanks(void **state) {
    (void)state;
    const model_names n = {.served = "mine", .any = true};
    assert_true(names_match(&n, STR("gpt-x")));
    assert_false(names_match(&n, STR(" ")));
}

static void the_list_ends_with_the_name_that_sdks_send(void **state) {
    (void)state;
    const model_names n = {.served = "mine", .aliases = ALIASES, .n_aliases = 1};
    assert_string_equal(names_list(&n, 0), "mine");
    assert_string_equal(names_list(&n, 1), "clef");
    assert_string_equal(names_list(&n, 2), "jev-latest");
    assert_null(names_list(&n, 3));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_names_of_clients_and_hubs_match),
        cmocka_unit_test(other_names_do_not),
        cmocka_unit_test(an_alias_and_the_served_name_match),
        cmocka_unit_test(any_takes_all_but_blanks),
        cmocka_unit_test(the_list_ends_with_the_name_that_sdks_send),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
