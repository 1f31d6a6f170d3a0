/* Tests of arena.c. */
#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/oom.h"

static void pieces_are_aligned_zeroed_and_apart(void **state) {
    (void)state;
    arena a = {0};
    unsigned char *pieces[300];
    for (size_t i = 0; i < 300; i++) {
        pieces[i] = arena_alloc(&a, i, 7);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % 64, 0);
        for (size_t k = 0; k < 7 * i; k++) assert_int_equal(pieces[i][k], 0);
        memset(pieces[i], (int)(i % 255) + 1, 7 * i);
    }
    for (size_t i = 0; i < 300; i++)
        for (size_t k = 0; k < 7 * i; k++) assert_int_equal(pieces[i][k], i % 255 + 1);
    arena_free(&a);
    assert_null(a.block);
    assert_int_equal(a.total_bytes, 0);
}

static void small_pieces_are_aligned_to_eight_and_packed(void **state) {
    (void)state;
    arena a = {0};
    char *before = arena_alloc_small(&a, 1);
    for (size_t i = 0; i < 100; i++) {
        char *p = arena_alloc_small(&a, 5);
        assert_int_equal((uintptr_t)p % 8, 0);
        assert_ptr_equal(p, before + 8);
        before = p;
    }
    arena_free(&a);
}

static void a_piece_larger_than_any_block_is_given(void **state) {
    (void)state;
    arena a = {0};
    const size_t n = (size_t)9 << 20;
    char *p = arena_alloc(&a, n, 1);
    assert_non_null(p);
    p[0] = p[n - 1] = 1;
    assert_true(a.total_bytes >= n && a.total_bytes < n + n / 2);
    arena_free(&a);
}

static void a_product_that_overflows_is_refused(void **state) {
    (void)state;
    arena a = {0};
    assert_null(arena_alloc(&a, SIZE_MAX / 2, 3));
    assert_null(arena_alloc(&a, SIZE_MAX, 1));
    assert_null(arena_alloc_small(&a, SIZE_MAX - 8));
    arena_free(&a);
}

static void the_ceiling_is_kept_and_the_arena_stays_usable(void **state) {
    (void)state;
    arena a = {.max_bytes = 100000};
    assert_non_null(arena_alloc(&a, 1, 1000));
    assert_false(a.reached);
    assert_null(arena_alloc(&a, 1, 100000));
    assert_true(a.reached);
    for (int i = 0; i < 1000; i++) arena_alloc_small(&a, 400);
    assert_true(a.total_bytes <= 100000);
    arena_free(&a);
}

static void a_copy_ends_in_a_zero_byte(void **state) {
    (void)state;
    arena a = {0};
    char text[] = "a\0b";
    const str copy = arena_copy(&a, (str){text, 3});
    memset(text, 'x', sizeof text);
    assert_int_equal(copy.n, 3);
    assert_memory_equal(copy.p, "a\0b", 4);
    assert_string_equal(arena_copy(&a, (str){NULL, 0}).p, "");
    arena_free(&a);
}

static void a_failed_allocation_gives_null(void **state) {
    (void)state;
    arena a = {0};
    oom_fail_at(1);
    assert_null(arena_alloc(&a, 1, 1));
    oom_fail_at(1);
    assert_null(arena_copy(&a, STR("x")).p);
    oom_stop();
    assert_int_equal(a.total_bytes, 0);
    assert_false(a.reached); /* by the ceiling: there is none */
    arena_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_zeroed_and_apart),
        cmocka_unit_test(small_pieces_are_aligned_to_eight_and_packed),
        cmocka_unit_test(a_piece_larger_than_any_block_is_given),
        cmocka_unit_test(a_product_that_overflows_is_refused),
        cmocka_unit_test(the_ceiling_is_kept_and_the_arena_stays_usable),
        cmocka_unit_test(a_copy_ends_in_a_zero_byte),
        cmocka_unit_test(a_failed_allocation_gives_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
