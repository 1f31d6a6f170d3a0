/* attend_test.c - attention against plain double-precision loops, and its bits against themselves:
 * over kernel tables, threads, and every place where the rows may be cut. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "compute/compute.h"
#include "compute/kernels.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Operands that own their memory. Queries lie head by head with a gate behind each, as the
 * projection leaves them, and keys and values with a gap behind the last head: a wrong stride
 * reads numbers of 1e6. */
typedef struct {
    attend_args a;
    float *q, *k, *v, *out;
} operands;

static uint32_t random_bits = 1;

/* Uniform in [-1, 1). */
static float random_value(void) {
    random_bits = random_bits * 1664525 + 1013904223;
    return (float)(random_bits >> 8) / (1 << 23) - 1;
}

static float *random_heads(size_t n_rows, uint32_t n_heads, size_t head_stride, uint32_t head_dim,
                           size_t stride) {
    float *x = malloc((n_rows * stride + 1) * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n_rows * stride; i++) {
        const size_t column = i % stride;
        const bool used = column / head_stride < n_heads && column % head_stride < head_dim;
        x[i] = used ? random_value() : 1e6F;
    }
    return x;
}

static operands make(uint32_t n_rows, uint32_t n_keys, uint32_t n_heads, uint32_t n_kv_heads,
                     uint32_t head_dim, bool causal) {
    operands o = {0};
    o.a = (attend_args){.q_head_stride = 2 * (size_t)head_dim,
                        .q_stride = 2 * (size_t)head_dim * n_heads,
                        .kv_stride = (size_t)head_dim * n_kv_heads + 3,
                        .n_rows = n_rows,
                        .n_keys = n_keys,
                        .n_heads = n_heads,
                        .n_kv_heads = n_kv_heads,
                        .head_dim = head_dim,
                        .first_pos = causal ? n_keys - n_rows : 0,
                        .causal = causal,
                        .scale = 4 / sqrtf((float)head_dim)};
    random_bits = n_rows * 31 + n_keys * 7 + head_dim;
    o.q = random_heads(n_rows, n_heads, o.a.q_head_stride, head_dim, o.a.q_stride);
    o.k = random_heads(n_keys, n_kv_heads, head_dim, head_dim, o.a.kv_stride);
    o.v = random_heads(n_keys, n_kv_heads, head_dim, head_dim, o.a.kv_stride);
    o.out = malloc((size_t)n_rows * n_heads * head_dim * sizeof *o.out);
    assert_non_null(o.out);
    o.a.q = o.q;
    o.a.k = o.k;
    o.a.v = o.v;
    o.a.out = o.out;
    return o;
}

static void drop(operands *o) {
    free(o->q);
    free(o->k);
    free(o->v);
    free(o->out);
}

static size_t out_bytes(const attend_args *a) {
    return (size_t)a->n_rows * a->n_heads * a->head_dim * sizeof(float);
}

static void run(const attend_args *a, const char *kernels, unsigned threads) {
    compute *c = NULL;
    assert_int_equal(compute_open(&c, kernels, threads, NULL), CLEF_OK);
    attend(c, a);
    compute_close(c);
}

/* One row of one head in double precision; `weights` has room for n_keys. */
static void reference_row(double *out, const attend_args *a, uint32_t row, uint32_t head,
                          double *weights) {
    const uint32_t n_keys = a->causal ? a->first_pos + row + 1 : a->n_keys;
    const size_t kv_at = (size_t)(head / (a->n_heads / a->n_kv_heads)) * a->head_dim;
    const float *q = a->q + row * a->q_stride + head * a->q_head_stride;
    double max = -INFINITY, sum = 0;
    for (uint32_t j = 0; j < n_keys; j++) {
        double score = 0;
        for (uint32_t d = 0; d < a->head_dim; d++)
            score += (double)q[d] * a->k[j * a->kv_stride + kv_at + d];
        weights[j] = score * a->scale;
        max = fmax(max, weights[j]);
    }
    for (uint32_t j = 0; j < n_keys; j++) {
        weights[j] = exp(weights[j] - max);
        sum += weights[j];
    }
    for (uint32_t d = 0; d < a->head_dim; d++) {
        out[d] = 0;
        for (uint32_t j = 0; j < n_keys; j++)
            out[d] += weights[j] * a->v[j * a->kv_stride + kv_at + d];
        out[d] /= sum;
    }
}

/* The largest difference of a->out from the reference. */
static double worst_error(const attend_args *a) {
    double *weights = malloc(a->n_keys * sizeof *weights);
    double *want = malloc(a->head_dim * sizeof *want);
    assert_non_null(weights);
    assert_non_null(want);
    double worst = 0;
    for (uint32_t r = 0; r < a->n_rows; r++) {
        for (uint32_t h = 0; h < a->n_heads; h++) {
            reference_row(want, a, r, h, weights);
            const float *got = a->out + ((size_t)r * a->n_heads + h) * a->head_dim;
            for (uint32_t d = 0; d < a->head_dim; d++) {
                const double error = fabs(want[d] - got[d]);
                if (!(error <= worst)) worst = error; /* NaN counts */
            }
        }
    }
    free(weights);
    free(want);
    return worst;
}

static void check(uint32_t n_rows, uint32_t n_keys, uint32_t n_heads, uint32_t n_kv_heads,
                  uint32_t head_dim, bool causal) {
    operands o = make(n_rows, n_keys, n_heads, n_kv_heads, head_dim, causal);
    run(&o.a, NULL, 2);
    const double worst = worst_error(&o.a);
    if (!(worst <= 1e-5))
        fail_msg("%u rows, %u keys, heads %u/%u of %u, %s: off by %g", n_rows, n_keys, n_heads,
                 n_kv_heads, head_dim, causal ? "causal" : "all keys", worst);
    drop(&o);
}

static void any_number_of_rows_matches_the_double_softmax(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= 200; n++) check(n, n, 2, 1, 20, true);
}

static void key_counts_around_the_block_borders_match(void **state) {
    (void)state;
    static const uint32_t n_keys[] = {1, 2, 63, 64, 65, 127, 128, 129, 513};
    for (size_t i = 0; i < COUNT(n_keys); i++) {
        const uint32_t n = n_keys[i];
        check(n < 17 ? n : 17, n, 2, 2, 36, true);
        check(1, n, 2, 2, 36, true);
        check(17, n, 2, 2, 36, false);
    }
}

static void any_head_size_matches(void **state) {
    (void)state;
    static const uint32_t head_dims[] = {1, 2, 5, 6, 7, 20, 36, 64, 255, 256, 257, 511, 512};
    for (size_t i = 0; i < COUNT(head_dims); i++) check(19, 83, 2, 1, head_dims[i], true);
}

static void query_heads_read_the_key_head_of_their_group(void **state) {
    (void)state;
    check(21, 70, 6, 2, 20, true);
    check(21, 70, 4, 1, 20, true);
    check(21, 70, 3, 3, 20, false);
    check(70, 70, 12, 2, 20, true);
    check(70, 70, 16, 4, 64, true);
}

/* One GPU stack gave wrong, varying values from 4,032 keys on. */
static void long_records_match_in_the_form_of_the_joint_head(void **state) {
    (void)state;
    static const uint32_t n_keys[] = {3583, 3584, 4031, 4032, 4096, 8192};
    for (size_t i = 0; i < COUNT(n_keys); i++) check(5, n_keys[i], 2, 2, 64, false);
}

static void every_table_gives_the_bits_of_the_scalar_one(void **state) {
    (void)state;
    static const uint32_t head_dims[] = {5, 64, 300};
    for (size_t i = 0; i < COUNT(head_dims); i++) {
        for (int causal = 0; causal < 2; causal++) {
            operands o = make(37, 150, 4, 2, head_dims[i], causal);
            run(&o.a, "scalar", 1);
            float *want = malloc(out_bytes(&o.a));
            assert_non_null(want);
            memcpy(want, o.out, out_bytes(&o.a));
            for (size_t t = 0; kernels_at(t) != NULL; t++) {
                compute *c = NULL;
                assert_int_equal(compute_open(&c, kernels_at(t)->name, 1, NULL), CLEF_OK);
                memset(o.out, 0xff, out_bytes(&o.a));
                attend(c, &o.a);
                compute_close(c);
                assert_memory_equal(want, o.out, out_bytes(&o.a));
            }
            free(want);
            drop(&o);
        }
    }
}

static void any_number_of_threads_gives_the_same_bits(void **state) {
    (void)state;
    operands o = make(150, 350, 4, 2, 36, true);
    run(&o.a, NULL, 1);
    float *want = malloc(out_bytes(&o.a));
    assert_non_null(want);
    memcpy(want, o.out, out_bytes(&o.a));
    for (unsigned threads = 2; threads <= 9; threads++) {
        memset(o.out, 0xff, out_bytes(&o.a));
        run(&o.a, NULL, threads);
        assert_memory_equal(want, o.out, out_bytes(&o.a));
    }
    free(want);
    drop(&o);
}

static void rows_cut_anywhere_keep_their_bits(void **state) {
    (void)state;
    operands o = make(140, 140, 4, 2, 12, true);
    run(&o.a, NULL, 2);
    float *want = malloc(out_bytes(&o.a));
    assert_non_null(want);
    memcpy(want, o.out, out_bytes(&o.a));
    compute *c = NULL;
    assert_int_equal(compute_open(&c, NULL, 2, NULL), CLEF_OK);
    for (uint32_t cut = 1; cut < o.a.n_rows; cut++) {
        attend_args before = o.a, after = o.a;
        before.n_rows = before.n_keys = cut;
        after.n_rows -= cut;
        after.first_pos = cut;
        after.q += cut * after.q_stride;
        after.out += (size_t)cut * after.n_heads * after.head_dim;
        memset(o.out, 0xff, out_bytes(&o.a));
        attend(c, &before);
        attend(c, &after);
        assert_memory_equal(want, o.out, out_bytes(&o.a));
    }
    compute_close(c);
    free(want);
    drop(&o);
}

static void one_row_at_a_time_gives_the_same_bits(void **state) {
    (void)state;
    operands o = make(140, 140, 4, 2, 12, true);
    run(&o.a, NULL, 2);
    compute *c = NULL;
    assert_int_equal(compute_open(&c, NULL, 1, NULL), CLEF_OK);
    const size_t row_floats = (size_t)o.a.n_heads * o.a.head_dim;
    float *got = malloc(row_floats * sizeof *got);
    assert_non_null(got);
    for (uint32_t r = 0; r < o.a.n_rows; r++) {
        attend_args row = o.a;
        row.n_rows = 1;
        row.first_pos = r;
        row.n_keys = r + 1;
        row.q += r * row.q_stride;
        row.out = got;
        attend(c, &row);
        assert_memory_equal(got, o.out + r * row_floats, row_floats * sizeof *got);
    }
    free(got);
    compute_close(c);
    drop(&o);
}

static void queries_of_the_head_do_not_see_their_neighbours(void **state) {
    (void)state;
    operands o = make(40, 130, 2, 2, 20, false);
    run(&o.a, NULL, 1);
    const size_t row_floats = (size_t)o.a.n_heads * o.a.head_dim;
    float *got = malloc(3 * row_floats * sizeof *got);
    assert_non_null(got);
    attend_args rows = o.a;
    rows.n_rows = 3;
    rows.q += 23 * rows.q_stride;
    rows.out = got;
    run(&rows, NULL, 1);
    assert_memory_equal(got, o.out + 23 * row_floats, 3 * row_floats * sizeof *got);
    free(got);
    drop(&o);
}

static void large_later_keys_and_values_leave_earlier_rows_alone(void **state) {
    (void)state;
    operands o = make(40, 100, 2, 1, 20, true);
    run(&o.a, NULL, 1);
    const uint32_t last = o.a.n_keys - 1;
    const size_t earlier_bytes = out_bytes(&o.a) / o.a.n_rows * (o.a.n_rows - 1);
    float *want = malloc(earlier_bytes);
    assert_non_null(want);
    memcpy(want, o.out, earlier_bytes);
    for (uint32_t d = 0; d < o.a.head_dim; d++) {
        o.k[last * o.a.kv_stride + d] = 1e30F;
        o.v[last * o.a.kv_stride + d] = -1e30F;
    }
    run(&o.a, NULL, 1);
    assert_memory_equal(want, o.out, earlier_bytes);
    free(want);
    drop(&o);
}

/* The sum at row 65 is -0: the -1 of the first block fades to it, and the products of the second
 * are too small for any number but -0. A third product, 0 times key 66 that the row does not see,
 * would make it 0. */
static void a_later_key_leaves_the_sign_of_a_zero_alone(void **state) {
    (void)state;
    operands o = make(2, 67, 1, 1, 1, true);
    o.a.scale = 1;
    for (uint32_t j = 0; j < 67; j++) {
        o.k[j * o.a.kv_stride] = j < 64 ? -200.0f : j == 64 ? 0.0f : -50.0f;
        o.v[j * o.a.kv_stride] = j < 64 ? -1.0f : j == 64 ? 0.0f : j == 65 ? -1e-30f : 1.0f;
    }
    o.q[0] = o.q[o.a.q_stride] = 1;
    run(&o.a, NULL, 1);
    const float want = o.out[0];
    o.a.n_rows = 1;
    o.a.n_keys = 66;
    run(&o.a, NULL, 1);
    assert_memory_equal(&want, o.out, sizeof want);
    drop(&o);
}

static void scores_far_apart_pick_one_value(void **state) {
    (void)state;
    operands o = make(3, 200, 1, 1, 8, false);
    o.a.scale = 1e4F;
    for (uint32_t j = 0; j < 200; j++) {
        for (uint32_t d = 0; d < 8; d++) o.k[j * o.a.kv_stride + d] = d == 0 ? (float)j : 0;
    }
    for (uint32_t r = 0; r < 3; r++) o.q[r * o.a.q_stride] = r == 0 ? -1 : 1;
    run(&o.a, NULL, 1);
    assert_memory_equal(o.out, o.v, 8 * sizeof(float));
    assert_memory_equal(o.out + 8, o.v + 199 * o.a.kv_stride, 8 * sizeof(float));
    assert_memory_equal(o.out + 16, o.v + 199 * o.a.kv_stride, 8 * sizeof(float));
    drop(&o);
}

static void equal_scores_give_the_mean(void **state) {
    (void)state;
    operands o = make(1, 128, 1, 1, 8, false);
    memset(o.q, 0, 8 * sizeof(float));
    run(&o.a, NULL, 1);
    for (uint32_t d = 0; d < 8; d++) {
        double mean = 0;
        for (uint32_t j = 0; j < 128; j++) mean += (double)o.v[j * o.a.kv_stride + d] / 128;
        assert_float_equal(o.out[d], mean, 1e-6);
    }
    drop(&o);
}

static void a_block_of_scores_below_all_numbers_gives_way_to_a_later_score(void **state) {
    (void)state;
    operands o = make(1, 65, 1, 1, 8, false);
    for (uint32_t j = 0; j < 65; j++) o.k[j * o.a.kv_stride] = j < 64 ? -1e30F : 1;
    o.q[0] = 1e30F;
    for (uint32_t d = 1; d < 8; d++) o.q[d] = 0;
    run(&o.a, NULL, 1);
    assert_memory_equal(o.out, o.v + 64 * o.a.kv_stride, 8 * sizeof(float));
    drop(&o);
}

/* A NaN must reach the check at the end, not turn into a plausible number. */
static void a_query_that_is_not_a_number_stays_visible(void **state) {
    (void)state;
    operands o = make(20, 100, 2, 1, 20, true);
    o.q[7 * o.a.q_stride + 3] = NAN;
    run(&o.a, NULL, 1);
    for (uint32_t d = 0; d < 20; d++) {
        assert_true(isnan(o.out[7 * 40 + d]));
        assert_false(isnan(o.out[7 * 40 + 20 + d]));
        assert_false(isnan(o.out[6 * 40 + d]));
    }
    drop(&o);
}

static void a_key_that_is_not_a_number_stays_visible(void **state) {
    (void)state;
    operands o = make(3, 100, 1, 1, 20, false);
    o.k[31 * o.a.kv_stride + 3] = NAN;
    run(&o.a, NULL, 1);
    for (uint32_t i = 0; i < 3 * 20; i++) assert_true(isnan(o.out[i]));
    drop(&o);
}

static void a_causal_head_counts_half_of_its_square(void **state) {
    (void)state;
    operands o = make(100, 100, 2, 1, 20, true);
    compute *c = NULL;
    assert_int_equal(compute_open(&c, NULL, 1, NULL), CLEF_OK);
    compute_take_times(c);
    compute_enter(c, 0);
    attend(c, &o.a);
    const compute_times times = compute_take_times(c);
    assert_float_equal(times.flops[0], 2 * 2.0 * 2 * 20 * 5050, 0.5);
    compute_close(c);
    drop(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_rows_matches_the_double_softmax),
        cmocka_unit_test(key_counts_around_the_block_borders_match),
        cmocka_unit_test(any_head_size_matches),
        cmocka_unit_test(query_heads_read_the_key_head_of_their_group),
        cmocka_unit_test(long_records_match_in_the_form_of_the_joint_head),
        cmocka_unit_test(every_table_gives_the_bits_of_the_scalar_one),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(rows_cut_anywhere_keep_their_bits),
        cmocka_unit_test(one_row_at_a_time_gives_the_same_bits),
        cmocka_unit_test(queries_of_the_head_do_not_see_their_neighbours),
        cmocka_unit_test(large_later_keys_and_values_leave_earlier_rows_alone),
        cmocka_unit_test(a_later_key_leaves_the_sign_of_a_zero_alone),
        cmocka_unit_test(scores_far_apart_pick_one_value),
        cmocka_unit_test(equal_scores_give_the_mean),
        cmocka_unit_test(a_block_of_scores_below_all_numbers_gives_way_to_a_later_score),
        cmocka_unit_test(a_query_that_is_not_a_number_stays_visible),
        cmocka_unit_test(a_key_that_is_not_a_number_stays_visible),
        cmocka_unit_test(a_causal_head_counts_half_of_its_square),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
