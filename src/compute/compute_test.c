/* compute_test.c - opening, running out of memory, the accounts of time, the two ceilings. */
#include "compute/compute.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "tests/oom.h"

static void it_says_which_table_and_how_many_threads(void **state) {
    (void)state;
    compute *c = NULL;
    assert_int_equal(compute_open(&c, "scalar", 3, NULL), CLEF_OK);
    assert_string_equal(compute_kernels(c), "scalar");
    assert_int_equal(compute_threads(c), 3);
    compute_close(c);
}

static void an_unknown_table_opens_nothing(void **state) {
    (void)state;
    compute *c = NULL;
    clef_error err = {0};
    assert_int_equal(compute_open(&c, "sse9", 1, &err), CLEF_ERR_INPUT);
    assert_non_null(strstr(err.text, "'sse9'"));
    assert_null(c);
}

static void closing_nothing_is_allowed(void **state) {
    (void)state;
    compute_close(NULL);
}

static void every_allocation_that_fails_is_an_error_of_memory(void **state) {
    (void)state;
    clef_status s = CLEF_ERR_MEMORY;
    unsigned n = 0;
    while (s != CLEF_OK) {
        compute *c = NULL;
        oom_fail_at(++n);
        s = compute_open(&c, NULL, 2, NULL);
        oom_stop();
        if (s != CLEF_OK) assert_int_equal(s, CLEF_ERR_MEMORY);
        if (s != CLEF_OK) assert_null(c);
        compute_close(c);
    }
    assert_true(n > 2);
}

static void the_read_ceiling_without_memory_is_an_error(void **state) {
    (void)state;
    compute *c = NULL;
    assert_int_equal(compute_open(&c, NULL, 1, NULL), CLEF_OK);
    for (unsigned n = 1; n <= 2; n++) {
        double gbps = -1;
        oom_fail_at(n);
        assert_int_equal(compute_read_gbps(c, &gbps, NULL), CLEF_ERR_MEMORY);
        oom_stop();
        assert_true(gbps == -1);
    }
    compute_close(c);
}

static void the_ceilings_are_positive(void **state) {
    (void)state;
    compute *c = NULL;
    assert_int_equal(compute_open(&c, NULL, 2, NULL), CLEF_OK);
    assert_true(compute_peak_gflops(c) > 0.01);
    double gbps = 0;
    assert_int_equal(compute_read_gbps(c, &gbps, NULL), CLEF_OK);
    assert_true(gbps > 0.01);
    compute_close(c);
}

static void time_goes_to_the_part_last_entered(void **state) {
    (void)state;
    compute *c = NULL;
    assert_int_equal(compute_open(&c, NULL, 1, NULL), CLEF_OK);
    compute_take_times(c);
    const double begin = cpu_seconds();
    compute_enter(c, CLEF_PART_HEAD);
    while (cpu_seconds() - begin < 0.02) continue;
    compute_enter(c, CLEF_PART_DELTA);
    const compute_times times = compute_take_times(c);
    const double took = cpu_seconds() - begin;
    double sum = 0;
    for (int part = 0; part < CLEF_N_PARTS; part++) sum += times.seconds[part];
    assert_true(times.seconds[CLEF_PART_HEAD] >= 0.019 && sum <= took + 0.001);
    assert_true(times.seconds[CLEF_PART_ATTENTION] == 0.0);
    compute_close(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_says_which_table_and_how_many_threads),
        cmocka_unit_test(an_unknown_table_opens_nothing),
        cmocka_unit_test(closing_nothing_is_allowed),
        cmocka_unit_test(every_allocation_that_fails_is_an_error_of_memory),
        cmocka_unit_test(the_read_ceiling_without_memory_is_an_error),
        cmocka_unit_test(the_ceilings_are_positive),
        cmocka_unit_test(time_goes_to_the_part_last_entered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
