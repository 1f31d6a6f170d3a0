/* base64_test.c - the vectors of RFC 4648, section 10, and the spellings that it allows and we do
 * not. */
#include "base/base64.h"

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

static const char *const pairs[][2] = {{"", ""},
                                       {"f", "Zg=="},
                                       {"fo", "Zm8="},
                                       {"foo", "Zm9v"},
                                       {"foob", "Zm9vYg=="},
                                       {"fooba", "Zm9vYmE="},
                                       {"foobar", "Zm9vYmFy"},
                                       {"\xfb\xff\xfe", "+//+"}};

static void bytes_are_spelled_as_in_the_rfc(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        buf out = {0};
        base64_encode(&out, pairs[i][0], strlen(pairs[i][0]));
        assert_true(str_equal((str){out.p, out.n}, str_of(pairs[i][1])));
        buf_free(&out);
    }
}

static void a_spelling_gives_its_bytes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        buf out = {0};
        assert_true(base64_decode(&out, str_of(pairs[i][1])));
        assert_true(str_equal((str){out.p, out.n}, str_of(pairs[i][0])));
        buf_free(&out);
    }
}

static void a_second_spelling_of_the_same_bytes_is_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "Zg",    "Zg=",   "Zh==", "Zm9=",     "Z===",       "====",     "=",    "Zm9v\n", " Zm9v",
        "Zm 9v", "Zm9vY", "-__-", "Zg==Zg==", "Zm9vYg==\n", "Zm9v====", "Zg=a", "Zm9\xc3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        buf out = {0};
        assert_false(base64_decode(&out, str_of(wrong[i])));
        assert_int_equal(out.n, 0);
        buf_free(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_spelled_as_in_the_rfc),
        cmocka_unit_test(a_spelling_gives_its_bytes),
        cmocka_unit_test(a_second_spelling_of_the_same_bytes_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
