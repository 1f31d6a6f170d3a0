/* Tests of pool.c. Run them under the thread sanitizer too (make tsan). */
#include "base/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdlib.h>

#include "tests/oom.h"
#include "tests/rest.h"

enum { MAX_ITEMS = 1000, MAX_THREADS = 7 };

typedef struct {
    unsigned done[MAX_ITEMS];             /* not atomic: each item has one owner */
    unsigned per_worker[MAX_THREADS][64]; /* likewise each worker's; spread over cache lines */
    atomic_uint wrong_worker;
    unsigned n_threads;
} tally;

static void count(void *context, size_t item, unsigned worker) {
    tally *t = context;
    if (worker >= t->n_threads) {
        atomic_fetch_add(&t->wrong_worker, 1);
        return;
    }
    t->done[item]++;
    t->per_worker[worker][0]++;
}

static void every_item_is_done_once_by_a_worker_in_range(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 3, 7, 64, MAX_ITEMS};
    for (unsigned n_threads = 1; n_threads <= MAX_THREADS; n_threads += 2) {
        pool *p = NULL;
        assert_int_equal(pool_open(&p, n_threads, NULL), CLEF_OK);
        assert_int_equal(pool_threads(p), n_threads);
        for (unsigned round = 0; round < 50; round++) {
            tally *t = calloc(1, sizeof *t);
            assert_non_null(t);
            t->n_threads = n_threads;
            const size_t n = sizes[round % (sizeof sizes / sizeof *sizes)];
            pool_run(p, n, count, t);
            for (size_t i = 0; i < MAX_ITEMS; i++) assert_int_equal(t->done[i], i < n);
            unsigned all = 0;
            for (unsigned w = 0; w < n_threads; w++) all += t->per_worker[w][0];
            assert_int_equal(all, n);
            assert_int_equal(atomic_load(&t->wrong_worker), 0);
            free(t);
        }
        pool_close(p);
    }
}

typedef struct {
    atomic_uint here;
    unsigned n_threads;
} meeting;

/* Returns only when as many workers have arrived as there are threads. */
static void meet(void *context, size_t item, unsigned worker) {
    (void)item, (void)worker;
    meeting *m = context;
    atomic_fetch_add(&m->here, 1);
    while (atomic_load(&m->here) < m->n_threads) {
    }
}

static void all_threads_work_at_the_same_time(void **state) {
    (void)state;
    pool *p = NULL;
    assert_int_equal(pool_open(&p, 3, NULL), CLEF_OK);
    meeting m = {.n_threads = 3};
    pool_run(p, 3, meet, &m);
    assert_int_equal(atomic_load(&m.here), 3);
    pool_close(p);
}

static void an_unused_pool_closes(void **state) {
    (void)state;
    pool *p = NULL;
    assert_int_equal(pool_open(&p, 4, NULL), CLEF_OK);
    pool_close(p);
    pool_close(NULL);
}

/* Before its first round, and after it. */
static void idle_workers_take_no_processor_time(void **state) {
    (void)state;
    pool *p = NULL;
    assert_int_equal(pool_open(&p, 3, NULL), CLEF_OK);
    for (int round = 0; round < 2; round++) {
        meeting m = {.n_threads = 3};
        if (round > 0) pool_run(p, 3, meet, &m);
        assert_true(rest_comes(CLOCK_PROCESS_CPUTIME_ID));
    }
    pool_close(p);
}

static void every_failed_allocation_is_reported(void **state) {
    (void)state;
    unsigned failed = 0;
    for (;; failed++) {
        pool *p = NULL;
        clef_error err = {0};
        oom_fail_at(failed + 1);
        const clef_status s = pool_open(&p, 3, &err);
        oom_stop();
        if (s == CLEF_OK) {
            pool_close(p);
            break;
        }
        assert_int_equal(s, CLEF_ERR_MEMORY);
        assert_int_equal(err.status, CLEF_ERR_MEMORY);
        assert_null(p);
    }
    assert_true(failed >= 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_is_done_once_by_a_worker_in_range),
        cmocka_unit_test(all_threads_work_at_the_same_time),
        cmocka_unit_test(an_unused_pool_closes),
        cmocka_unit_test(idle_workers_take_no_processor_time),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
