/* Tests of array.c. */
#include "base/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "tests/oom.h"

static void growing_keeps_the_items_and_doubles_the_room(void **state) {
    (void)state;
    int *items = NULL;
    size_t cap = 0, changes = 0;
    for (int i = 0; i < 10000; i++) {
        const size_t before = cap;
        items = array_grow(items, &cap, (size_t)i + 1, sizeof *items);
        assert_non_null(items);
        assert_true(cap > (size_t)i);
        assert_true(cap == before || cap >= 2 * before);
        changes += cap != before;
        items[i] = i;
    }
    assert_true(changes < 12);
    for (int i = 0; i < 10000; i++) assert_int_equal(items[i], i);
    free(items);
}

static void a_failure_leaves_the_items_to_the_caller(void **state) {
    (void)state;
    size_t cap = 0;
    char *items = array_grow(NULL, &cap, 1, 1);
    assert_non_null(items);
    const size_t before = cap;
    oom_fail_at(1);
    assert_null(array_grow(items, &cap, before + 1, 1));
    oom_stop();
    assert_int_equal(cap, before);
    free(items);
}

static void a_size_that_overflows_is_a_failure(void **state) {
    (void)state;
    size_t cap = 0;
    assert_null(array_grow(NULL, &cap, SIZE_MAX / 4, 8));
    assert_int_equal(cap, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(growing_keeps_the_items_and_doubles_the_room),
        cmocka_unit_test(a_failure_leaves_the_items_to_the_caller),
        cmocka_unit_test(a_size_that_overflows_is_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
