/* row_store_test.c - sharing, the order of dropping, and the bound in bytes. */
#include "engine/row_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/oom.h"

enum { FLOATS = 1000 };
/* Two of the pictures below fit, three do not. */
static const uint64_t ROOM = 2 * (FLOATS * sizeof(float) + 256);

static row_store *open_store(uint64_t max_bytes) {
    row_store *s = NULL;
    assert_int_equal(row_store_open(&s, max_bytes, NULL), CLEF_OK);
    return s;
}

/* Makes rows whose first value is `value`, lets others find them, and gives them back. */
static void add(row_store *s, const char *hex, float value) {
    char name[DIGEST_HEX];
    stored_rows *r = row_store_new(FLOATS);
    assert_non_null(r);
    stored_floats(r)[0] = value;
    snprintf(name, sizeof name, "%s", hex);
    row_store_add(s, r, name);
    row_store_release(s, r);
}

/* The first value under a digest, 0 when there is none. */
static float value_of(row_store *s, const char *hex) {
    char name[DIGEST_HEX];
    snprintf(name, sizeof name, "%s", hex);
    stored_rows *r = row_store_find(s, name);
    const float value = r == NULL ? 0 : stored_floats(r)[0];
    row_store_release(s, r);
    return value;
}

static void rows_are_found_by_their_digest(void **state) {
    (void)state;
    row_store *s = open_store(ROOM);
    add(s, "a", 1);
    add(s, "b", 2);
    assert_true(value_of(s, "a") == 1 && value_of(s, "b") == 2 && value_of(s, "c") == 0);
    row_store_close(s);
}

static void the_least_recently_used_rows_go_first(void **state) {
    (void)state;
    row_store *s = open_store(ROOM);
    add(s, "a", 1);
    add(s, "b", 2);
    assert_true(value_of(s, "a") == 1);
    add(s, "c", 3);
    assert_true(value_of(s, "b") == 0);
    assert_true(value_of(s, "a") == 1 && value_of(s, "c") == 3);
    row_store_close(s);
}

static void rows_that_are_read_are_kept_over_the_bound(void **state) {
    (void)state;
    row_store *s = open_store(ROOM);
    char a[DIGEST_HEX] = "a";
    add(s, "a", 1);
    stored_rows *r = row_store_find(s, a);
    add(s, "b", 2);
    add(s, "c", 3);
    assert_true(stored_floats(r)[0] == 1 && value_of(s, "a") == 1 && value_of(s, "b") == 0);
    row_store_release(s, r);
    add(s, "d", 4);
    add(s, "e", 5);
    assert_true(value_of(s, "a") == 0);
    row_store_close(s);
}

static void the_first_of_equal_pictures_stays_and_the_second_is_freed(void **state) {
    (void)state;
    row_store *s = open_store(ROOM);
    add(s, "a", 1);
    add(s, "a", 2);
    assert_true(value_of(s, "a") == 1);
    row_store_close(s);
}

static void a_store_without_room_keeps_nothing(void **state) {
    (void)state;
    row_store *s = open_store(0);
    add(s, "a", 1);
    assert_true(value_of(s, "a") == 0);
    row_store_close(s);
    row_store_close(NULL);
}

static void want_of_memory_is_told(void **state) {
    (void)state;
    row_store *s = NULL;
    oom_fail_at(1);
    assert_int_equal(row_store_open(&s, 1, NULL), CLEF_ERR_MEMORY);
    oom_stop();
    oom_fail_at(1);
    assert_null(row_store_new(FLOATS));
    oom_stop();
    assert_null(row_store_new(SIZE_MAX / 2));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_found_by_their_digest),
        cmocka_unit_test(the_least_recently_used_rows_go_first),
        cmocka_unit_test(rows_that_are_read_are_kept_over_the_bound),
        cmocka_unit_test(the_first_of_equal_pictures_stays_and_the_second_is_freed),
        cmocka_unit_test(a_store_without_room_keeps_nothing),
        cmocka_unit_test(want_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
