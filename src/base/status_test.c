/* Tests of status.c. */
#include "base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"

static void the_sentence_and_the_status_are_written_and_returned(void **state) {
    (void)state;
    clef_error err = {0};
    assert_int_equal(clef_fail(&err, CLEF_ERR_LIMIT, "%s: %d", "x", 3), CLEF_ERR_LIMIT);
    assert_int_equal(err.status, CLEF_ERR_LIMIT);
    assert_string_equal(err.text, "x: 3");
}

static void the_error_may_be_null(void **state) {
    (void)state;
    assert_int_equal(clef_fail(NULL, CLEF_ERR_IO, "x"), CLEF_ERR_IO);
    assert_int_equal(clef_fail_memory(NULL), CLEF_ERR_MEMORY);
}

static void what_may_not_be_printed_is_escaped(void **state) {
    (void)state;
    clef_error err = {0};
    clef_fail(&err, CLEF_ERR_INPUT, "%s",
              "a\n\t\x7F\xFF\xC3\xA9\xC0\x80\xC2\x85\xE2\x80\xA8\xF0\x9F");
    assert_string_equal(err.text, "a\\x0a\\x09\\x7f\\xff\xC3\xA9\\xc0\\x80\\xc2\\x85\\xe2\\x80"
                                  "\\xa8\\xf0\\x9f");
}

static void what_turns_or_hides_text_is_escaped(void **state) {
    (void)state;
    clef_error err = {0};
    /* NOLINTNEXTLINE(misc-misleading-bidirectional): the trap itself is the input. */
    clef_fail(&err, CLEF_ERR_INPUT, "%s", "a\xE2\x80\xAE|\xE2\x80\x8B|\xF3\xA0\x81\x81");
    assert_string_equal(err.text, "a\\xe2\\x80\\xae|\\xe2\\x80\\x8b|\\xf3\\xa0\\x81\\x81");
}

/* Every length around the room there is, of characters of every width. */
static void a_long_sentence_ends_in_dots_and_stays_valid(void **state) {
    (void)state;
    static const char *const pieces[] = {"a",    "\xC3\xA9",    "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
                                         "\xFF", "\xE2\x80\xA8"};
    for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
        for (size_t lead = 0; lead < 16; lead++) {
            char text[2600] = "";
            memset(text, 'x', lead);
            size_t n = lead;
            while (n + 4 < sizeof text) {
                const size_t width = strlen(pieces[k]);
                memcpy(text + n, pieces[k], width);
                n += width;
            }
            clef_error err;
            memset(&err, 'x', sizeof err);
            clef_fail(&err, CLEF_ERR_INPUT, "%s", text);
            const char *end = memchr(err.text, 0, sizeof err.text);
            assert_non_null(end);
            const size_t length = (size_t)(end - err.text);
            assert_true(length > sizeof err.text - 20);
            assert_memory_equal(end - 3, "...", 3);
            assert_int_equal(utf8_check(err.text, length), length);
        }
    }
}

static void a_sentence_that_just_fits_is_whole(void **state) {
    (void)state;
    clef_error err = {0};
    char text[sizeof err.text] = "";
    memset(text, 'x', sizeof text - sizeof "...");
    clef_fail(&err, CLEF_ERR_INPUT, "%s", text);
    assert_string_equal(err.text, text);
}

static clef_status passed_up(clef_status s, int *reached) {
    TRY(s);
    *reached = 1;
    return CLEF_ERR_INTERNAL;
}

static void try_returns_a_failure_at_once(void **state) {
    (void)state;
    int reached = 0;
    assert_int_equal(passed_up(CLEF_ERR_IO, &reached), CLEF_ERR_IO);
    assert_int_equal(reached, 0);
    assert_int_equal(passed_up(CLEF_OK, &reached), CLEF_ERR_INTERNAL);
    assert_int_equal(reached, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sentence_and_the_status_are_written_and_returned),
        cmocka_unit_test(the_error_may_be_null),
        cmocka_unit_test(what_may_not_be_printed_is_escaped),
        cmocka_unit_test(what_turns_or_hides_text_is_escaped),
        cmocka_unit_test(a_long_sentence_ends_in_dots_and_stays_valid),
        cmocka_unit_test(a_sentence_that_just_fits_is_whole),
        cmocka_unit_test(try_returns_a_failure_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
