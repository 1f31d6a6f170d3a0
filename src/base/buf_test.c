/* Tests of buf.c. */
#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "tests/oom.h"

static void appended_pieces_stand_in_order_behind_a_terminator(void **state) {
    (void)state;
    buf b = {0};
    buf_add(&b, "a\0b", 3);
    buf_add_str(&b, (str){NULL, 0});
    buf_add_text(&b, "cd");
    buf_add_char(&b, 'e');
    buf_printf(&b, "%d-%s", 12, "f");
    assert_int_equal(b.n, 10);
    assert_memory_equal(b.p, "a\0bcde12-f", 11);
    assert_int_equal(buf_status(&b, NULL), CLEF_OK);
    buf_free(&b);
    assert_null(b.p);
}

static void growth_keeps_every_byte(void **state) {
    (void)state;
    buf b = {0};
    for (int i = 0; i < 100000; i++) buf_printf(&b, "%c", i % 251 + 1);
    assert_int_equal(b.n, 100000);
    for (int i = 0; i < 100000; i++) assert_int_equal((unsigned char)b.p[i], i % 251 + 1);
    buf_free(&b);
}

static void taking_empties_the_buffer_and_is_never_null(void **state) {
    (void)state;
    buf b = {0};
    char *empty = buf_take(&b);
    assert_string_equal(empty, "");
    free(empty);
    buf_add_text(&b, "abc");
    char *text = buf_take(&b);
    assert_string_equal(text, "abc");
    free(text);
    assert_null(b.p);
    assert_int_equal(b.n, 0);
}

static void a_failure_sticks_until_the_end(void **state) {
    (void)state;
    buf b = {0};
    clef_error err = {0};
    buf_add_text(&b, "before");
    oom_fail_at(1);
    buf_add(&b, (char[200]){0}, 200);
    oom_stop();
    buf_add_text(&b, "after");
    assert_true(b.failed);
    assert_int_equal(buf_status(&b, &err), CLEF_ERR_MEMORY);
    assert_string_equal(err.text, "out of memory");
    assert_null(buf_take(&b));
}

static void a_size_that_overflows_is_a_failure(void **state) {
    (void)state;
    buf b = {0};
    buf_add_char(&b, 'x');
    buf_add(&b, "y", SIZE_MAX - 1);
    assert_true(b.failed);
    buf_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appended_pieces_stand_in_order_behind_a_terminator),
        cmocka_unit_test(growth_keeps_every_byte),
        cmocka_unit_test(taking_empties_the_buffer_and_is_never_null),
        cmocka_unit_test(a_failure_sticks_until_the_end),
        cmocka_unit_test(a_size_that_overflows_is_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
