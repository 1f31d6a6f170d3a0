/* linear_test.c - `linear` against a plain loop in double, and its promise of equal bits: for every
 * table, thread count and company of rows, with rows of f32 and with rows rounded to integers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "compute/kernels.h"
#include "tests/numbers.h"

static compute *open_table(const char *kernels, unsigned threads) {
    compute *c = NULL;
    clef_error err = {0};
    if (compute_open(&c, kernels, threads, &err) != CLEF_OK) fail_msg("%s", err.text);
    return c;
}

typedef struct {
    uint32_t n_rows, n_in, n_out;
    dtype type;
    bool odd_address; /* the weight begins at an odd byte */
    bool has_bias;
    linear_mode mode;
    unsigned bits; /* of the rows; 0: f32 */
} shape;

/* Values that the weights' types hold exactly, so that the plain loop sees what `linear` sees. */
static void fill_weights(unsigned char *data, dtype type, size_t n, uint32_t seed) {
    for (size_t i = 0; i < n; i++) {
        const uint32_t random = next_random(&seed);
        const float value = (float)(int32_t)(random % 255) / 64.0f - 2.0f;
        if (type == DTYPE_BF16) {
            const uint16_t half = bf16_from_float(value);
            memcpy(data + 2 * i, &half, sizeof half);
        } else if (type == DTYPE_F16) { /* 0.5 .. 1 in steps of 1/2048, either sign */
            const uint16_t half = (uint16_t)((random & 0x8000u) | 0x3800u | (random & 0x3FFu));
            memcpy(data + 2 * i, &half, sizeof half);
        } else if (type == DTYPE_I8) {
            data[i] = (unsigned char)((int)(random % 255) - 127);
        } else if (type == DTYPE_INT4 || type == DTYPE_INT6) { /* any bits: bytes, not values */
            if (i < n * dtype_bits(type) / 8) data[i] = (unsigned char)(random >> 3);
        } else {
            memcpy(data + 4 * i, &value, sizeof value);
        }
    }
}

typedef struct {
    float *x, *out, *bias;
    unsigned char *memory;
    matrix w;
    size_t stride;
} problem;

static problem make_problem(const shape *s) {
    problem p = {.stride = (size_t)s->n_out + 3};
    const size_t n_weights = (size_t)s->n_out * s->n_in;
    p.x = new_floats((size_t)s->n_rows * s->n_in);
    p.out = new_floats(s->n_rows * p.stride);
    p.bias = new_floats(s->n_out);
    p.memory = malloc(n_weights * 5 + 8);
    assert_non_null(p.memory);
    fill_random(p.x, (size_t)s->n_rows * s->n_in, 1);
    fill_random(p.out, s->n_rows * p.stride, 2);
    fill_random(p.bias, s->n_out, 3);
    unsigned char *data = p.memory + (s->odd_address ? 1 : 0);
    p.w = (matrix){.data = data, .type = s->type, .n_out = s->n_out, .n_in = s->n_in};
    fill_weights(data, s->type, n_weights, 4);
    if (s->type == DTYPE_I8 || s->type == DTYPE_INT6 || s->type == DTYPE_INT4) {
        p.w.scales = data + n_weights;
        fill_weights(data + n_weights, DTYPE_F16, n_weights / INT8_BLOCK, 5);
        for (size_t i = 0; i < n_weights / INT8_BLOCK; i++) /* scales are positive */
            data[n_weights + 2 * i + 1] &= 0x7Fu;
    }
    return p;
}

static void free_problem(problem *p) {
    free(p->x);
    free(p->out);
    free(p->bias);
    free(p->memory);
}

/* out for rows row0 .. row0 + n_rows - 1 of the problem, for free(). */
static float *solve(compute *c, const shape *s, const problem *p, uint32_t row0, uint32_t n_rows) {
    float *out = new_floats(n_rows * p->stride), *data = new_floats(panel_floats(n_rows, s->n_in));
    memcpy(out, p->out + row0 * p->stride, n_rows * p->stride * sizeof *out);
    const float *rows = p->x + (size_t)row0 * s->n_in;
    const panel x = s->bits == 0 ? panel_pack(c, data, rows, s->n_in, n_rows, s->n_in)
                                 : panel_round(c, data, rows, s->n_in, n_rows, s->n_in, s->bits);
    linear(c, out, p->stride, &x, &p->w, s->has_bias ? p->bias : NULL, s->mode);
    free(data);
    return out;
}

/* Code `i` of a weight, as compute.h lays it out. */
static int read_code(const matrix *w, size_t i) {
    const unsigned char *data = w->data;
    const size_t block = i / INT8_BLOCK, j = i % INT8_BLOCK;
    if (w->type == DTYPE_I8) return (int8_t)data[i];
    const unsigned char *bytes = data + block * (w->type == DTYPE_INT4 ? 16 : 24);
    const int low = j < 16 ? bytes[j] & 15 : bytes[j - 16] >> 4;
    if (w->type == DTYPE_INT4) return low - 8;
    return low + 16 * (bytes[16 + j % 8] >> 2 * (j / 8) & 3) - 32;
}

/* One row of the weight in f32, read without the kernels. */
static void read_row(float *out, const matrix *w, size_t o) {
    if (w->scales == NULL) {
        tensor_to_float(out, w->type, w->data, o * w->n_in, w->n_in);
        return;
    }
    for (size_t k = 0; k < w->n_in; k++) {
        const size_t i = o * w->n_in + k;
        float scale;
        tensor_to_float(&scale, DTYPE_F16, w->scales, i / INT8_BLOCK, 1);
        out[k] = (float)read_code(w, i) * scale;
    }
}

static float limit_of(unsigned bits) {
    return bits == 16 ? 32639.0f : 127.0f;
}

/* The largest magnitude of the block of columns that k is in. */
static float largest_near(const float *row, uint32_t k) {
    float largest = 0;
    for (uint32_t i = k / INT8_BLOCK * INT8_BLOCK, n = 0; n < INT8_BLOCK; i++, n++)
        if (fabsf(row[i]) > largest) largest = fabsf(row[i]);
    return largest;
}

/* Rounding moves a value by half a step at most, and what is summed then is exact but for f32. */
static void check_against_double(const shape *s, const problem *p, const float *out) {
    float *w = new_floats(s->n_in);
    for (uint32_t o = 0; o < s->n_out; o++) {
        read_row(w, &p->w, o);
        for (uint32_t r = 0; r < s->n_rows; r++) {
            double want = s->mode == LINEAR_ADD ? (double)p->out[r * p->stride + o] : 0.0;
            double size = fabs(want) + 1.0, slack = 0;
            for (uint32_t k = 0; k < s->n_in; k++) {
                const double product = (double)p->x[(size_t)r * s->n_in + k] * (double)w[k];
                want += product;
                size += fabs(product);
                if (s->bits == 0) continue;
                const double step =
                    (double)largest_near(p->x + (size_t)r * s->n_in, k) / (double)limit_of(s->bits);
                slack += 0.501 * step * fabs((double)w[k]);
            }
            if (s->has_bias) want += (double)p->bias[o];
            const double got = (double)out[r * p->stride + o];
            if (!(fabs(got - want) <= 2e-6 * size + slack))
                fail_msg("row %u, output %u of [%u x %u]: %.9g, wanted %.9g", r, o, s->n_out,
                         s->n_in, got, want);
        }
    }
    for (uint32_t r = 0; r < s->n_rows; r++) /* the gap between rows is not touched */
        assert_same_floats(out + r * p->stride + s->n_out, p->out + r * p->stride + s->n_out,
                           p->stride - s->n_out);
    free(w);
}

static const shape shapes[] = {
    {0, 20, 7, DTYPE_BF16, false, false, LINEAR_SET, 0},
    {1, 0, 7, DTYPE_BF16, false, true, LINEAR_ADD, 0},
    {1, 20, 0, DTYPE_BF16, false, false, LINEAR_SET, 0},
    {1, 1, 1, DTYPE_BF16, false, false, LINEAR_SET, 0},
    {1, 20, 7, DTYPE_BF16, true, true, LINEAR_SET, 0},
    {3, 20, 7, DTYPE_F16, true, true, LINEAR_ADD, 0},
    {8, 255, 12, DTYPE_F32, true, false, LINEAR_SET, 0},
    {9, 256, 13, DTYPE_BF16, false, false, LINEAR_ADD, 0},
    {16, 257, 6, DTYPE_BF16, true, true, LINEAR_SET, 0},
    {17, 512, 31, DTYPE_BF16, false, false, LINEAR_SET, 0},
    {25, 513, 100, DTYPE_BF16, true, true, LINEAR_ADD, 0},
    {36, 300, 205, DTYPE_BF16, false, false, LINEAR_SET, 0},
    {140, 260, 401, DTYPE_BF16, false, true, LINEAR_SET, 0},
    {530, 33, 25, DTYPE_BF16, false, false, LINEAR_SET, 0},
    {1030, 7, 19, DTYPE_F16, false, false, LINEAR_ADD, 0},
    {1, 32, 1, DTYPE_I8, false, false, LINEAR_SET, 0},
    {9, 288, 13, DTYPE_I8, true, true, LINEAR_ADD, 0},
    {36, 544, 205, DTYPE_I8, true, false, LINEAR_SET, 0},
    {530, 256, 25, DTYPE_I8, false, false, LINEAR_SET, 0},
    {1, 32, 1, DTYPE_INT6, false, false, LINEAR_SET, 0},
    {9, 288, 13, DTYPE_INT6, true, true, LINEAR_ADD, 0},
    {36, 544, 205, DTYPE_INT6, true, false, LINEAR_SET, 0},
    {1, 32, 1, DTYPE_INT4, false, false, LINEAR_SET, 0},
    {9, 288, 13, DTYPE_INT4, true, true, LINEAR_ADD, 0},
    {36, 544, 205, DTYPE_INT4, true, false, LINEAR_SET, 0},
    {0, 32, 7, DTYPE_I8, false, false, LINEAR_SET, 8},
    {1, 32, 1, DTYPE_I8, false, false, LINEAR_SET, 8},
    {9, 288, 13, DTYPE_I8, true, true, LINEAR_ADD, 8},
    {9, 288, 13, DTYPE_I8, true, true, LINEAR_ADD, 16},
    {36, 544, 205, DTYPE_I8, true, false, LINEAR_SET, 8},
    {36, 544, 205, DTYPE_I8, true, false, LINEAR_SET, 16},
    {140, 256, 401, DTYPE_I8, false, false, LINEAR_SET, 8},
    {530, 96, 25, DTYPE_I8, false, true, LINEAR_SET, 8},
    {530, 320, 25, DTYPE_I8, false, false, LINEAR_SET, 16},
    {17, 288, 19, DTYPE_INT6, true, false, LINEAR_SET, 8},
    {17, 288, 19, DTYPE_INT4, false, false, LINEAR_SET, 16},
};

#define EACH_SHAPE for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)

static void the_scalar_table_agrees_with_a_loop_in_double(void **state) {
    (void)state;
    compute *c = open_table("scalar", 1);
    EACH_SHAPE {
        problem p = make_problem(&shapes[i]);
        float *out = solve(c, &shapes[i], &p, 0, shapes[i].n_rows);
        check_against_double(&shapes[i], &p, out);
        free(out);
        free_problem(&p);
    }
    compute_close(c);
}

static void every_table_gives_the_bits_of_the_scalar_one(void **state) {
    (void)state;
    compute *scalar = open_table("scalar", 1);
    for (size_t t = 0; kernels_at(t) != NULL; t++) {
        compute *other = open_table(kernels_at(t)->name, 1);
        EACH_SHAPE {
            const shape *s = &shapes[i];
            problem p = make_problem(s);
            float *a = solve(scalar, s, &p, 0, s->n_rows), *b = solve(other, s, &p, 0, s->n_rows);
            assert_same_floats(a, b, s->n_rows * p.stride);
            free(a);
            free(b);
            free_problem(&p);
        }
        compute_close(other);
    }
    compute_close(scalar);
}

static void any_number_of_threads_gives_the_same_bits(void **state) {
    (void)state;
    compute *one = open_table(NULL, 1);
    for (unsigned threads = 2; threads <= 16; threads = threads == 2 ? 3 : threads + 13) {
        compute *many = open_table(NULL, threads);
        EACH_SHAPE {
            const shape *s = &shapes[i];
            problem p = make_problem(s);
            float *a = solve(one, s, &p, 0, s->n_rows), *b = solve(many, s, &p, 0, s->n_rows);
            assert_same_floats(a, b, s->n_rows * p.stride);
            free(a);
            free(b);
            free_problem(&p);
        }
        compute_close(many);
    }
    compute_close(one);
}

/* Cut into runs of 1, 2, 3, ... rows, each of which packs its rows anew. */
static void a_row_has_the_same_bits_alone_and_among_others(void **state) {
    (void)state;
    compute *c = open_table(NULL, 1);
    EACH_SHAPE {
        const shape *s = &shapes[i];
        problem p = make_problem(s);
        float *all = solve(c, s, &p, 0, s->n_rows);
        for (uint32_t row = 0, n = 1; row < s->n_rows; row += n++) {
            if (n > s->n_rows - row) n = s->n_rows - row;
            float *part = solve(c, s, &p, row, n);
            assert_same_floats(part, all + row * p.stride, n * p.stride);
            free(part);
        }
        free(all);
        free_problem(&p);
    }
    compute_close(c);
}

/* Every remainder of a tile, and both sides of each border between the ways that rows take. */
static void every_number_of_rows_gives_the_same_bits(void **state) {
    (void)state;
    static const shape all[] = {{145, 272, 21, DTYPE_BF16, true, true, LINEAR_ADD, 0},
                                {145, 288, 35, DTYPE_I8, false, false, LINEAR_SET, 0}};
    static const uint32_t more[] = {63, 64, 65, 100, 127, 128, 129, 135, 144};
    compute *scalar = open_table("scalar", 1);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        problem p = make_problem(&all[i]);
        float *want = solve(scalar, &all[i], &p, 0, all[i].n_rows);
        check_against_double(&all[i], &p, want);
        for (size_t t = 0; kernels_at(t) != NULL; t++) {
            compute *c = open_table(kernels_at(t)->name, 1);
            for (uint32_t n = 1; n <= 48 + sizeof more / sizeof *more; n++) {
                const uint32_t n_rows = n <= 48 ? n : more[n - 49];
                float *got = solve(c, &all[i], &p, 0, n_rows);
                assert_same_floats(got, want, n_rows * p.stride);
                free(got);
            }
            compute_close(c);
        }
        free(want);
        free_problem(&p);
    }
    compute_close(scalar);
}

/* The order of compute.h, written down: chains of LINEAR_BLOCK, totals in rising order. */
static void check_order(const shape *s) {
    compute *c = open_table(NULL, 1);
    problem p = make_problem(s);
    float *out = solve(c, s, &p, 0, s->n_rows), *w = new_floats(s->n_in);
    for (uint32_t o = 0; o < s->n_out; o++) {
        read_row(w, &p.w, o);
        for (uint32_t r = 0; r < s->n_rows; r++) {
            float total = 0.0f;
            for (uint32_t k0 = 0; k0 < s->n_in; k0 += LINEAR_BLOCK) {
                float chain = 0.0f;
                for (uint32_t k = k0; k < k0 + LINEAR_BLOCK && k < s->n_in; k++)
                    chain = fmaf(p.x[r * s->n_in + k], w[k], chain);
                total += chain;
            }
            const float want = p.out[r * p.stride + o] + total + p.bias[o];
            assert_same_floats(&out[r * p.stride + o], &want, 1);
        }
    }
    free(w);
    free(out);
    free_problem(&p);
    compute_close(c);
}

static void the_order_of_additions_is_the_one_that_compute_h_states(void **state) {
    (void)state;
    static const shape all[] = {{2, 700, 5, DTYPE_BF16, false, true, LINEAR_ADD, 0},
                                {2, 704, 5, DTYPE_I8, false, true, LINEAR_ADD, 0},
                                {2, 704, 5, DTYPE_INT6, false, true, LINEAR_ADD, 0},
                                {2, 704, 5, DTYPE_INT4, false, true, LINEAR_ADD, 0}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) check_order(&all[i]);
}

/* One row's dot product with codes, by the definition in body_codes.h. */
static float rounded_dot(const float *x, const matrix *w, uint32_t o, unsigned bits) {
    const float limit = limit_of(bits);
    float total = 0;
    for (uint32_t k0 = 0; k0 < w->n_in; k0 += INT8_BLOCK) {
        const float largest = largest_near(x, k0);
        const float inverse = largest < 0x1p-100f ? 0.0f : limit / largest;
        int64_t sum = 0;
        for (uint32_t k = k0; k < k0 + INT8_BLOCK; k++)
            sum += (int64_t)rintf(x[k] * inverse) * read_code(w, (size_t)o * w->n_in + k);
        float w_scale;
        tensor_to_float(&w_scale, DTYPE_F16, w->scales, ((size_t)o * w->n_in + k0) / INT8_BLOCK, 1);
        total = fmaf((float)sum * (inverse > 0 ? largest / limit : 0.0f), w_scale, total);
    }
    return total;
}

static void rounded_rows_follow_their_definition(void **state) {
    (void)state;
    for (unsigned bits = 8; bits <= 16; bits += 8) {
        const shape s = {3, 704, 5, DTYPE_I8, false, false, LINEAR_SET, bits};
        compute *c = open_table(NULL, 1);
        problem p = make_problem(&s);
        memset(p.x, 0, 40 * sizeof *p.x);                  /* a block of zeros */
        for (int i = 64; i < 96; i++) p.x[i] *= 0x1p-101f; /* of what counts as zeros */
        for (int i = 96; i < 128; i++) p.x[i] *= 0x1p-99f; /* and of what is above them */
        for (int i = 128; i < 160; i++) p.x[i] = (float)(i - 128) - 0.5f; /* ties: to even */
        p.x[159] = limit_of(bits);
        for (size_t i = 0; i < 3 * 704 / INT8_BLOCK; i++) /* scales down to the least subnormal */
            if (i % 5 == 0) memcpy((char *)p.memory + 5 * 704 + 2 * i, &(uint16_t){1}, 2);
        float *out = solve(c, &s, &p, 0, s.n_rows);
        for (uint32_t r = 0; r < s.n_rows; r++)
            for (uint32_t o = 0; o < s.n_out; o++) {
                const float want = rounded_dot(p.x + (size_t)r * s.n_in, &p.w, o, bits);
                assert_same_floats(&out[r * p.stride + o], &want, 1);
            }
        free(out);
        free_problem(&p);
        compute_close(c);
    }
}

/* The widest codes on both sides, all of one sign and of alternating signs: nothing saturates. */
static void check_widest(const char *kernels, unsigned bits, int signs) {
    const shape s = {17, 64, 7, DTYPE_I8, false, false, LINEAR_SET, bits};
    compute *c = open_table(kernels, 1);
    problem p = make_problem(&s);
    for (size_t i = 0; i < 17 * 64; i++) p.x[i] = signs & 1 ? -2.0f : 2.0f;
    for (size_t i = 0; i < 7 * 64; i++)
        p.memory[i] = (unsigned char)(signs & 2 && i % 2 ? -127 : 127);
    float *out = solve(c, &s, &p, 0, s.n_rows);
    for (uint32_t r = 0; r < s.n_rows; r++)
        for (uint32_t o = 0; o < s.n_out; o++) {
            const float want = rounded_dot(p.x + (size_t)r * s.n_in, &p.w, o, bits);
            assert_true(signs & 2 ? want == 0.0f : fabsf(want) > 1.0f);
            assert_same_floats(&out[r * p.stride + o], &want, 1);
        }
    free(out);
    free_problem(&p);
    compute_close(c);
}

static void the_widest_codes_are_summed_exactly(void **state) {
    (void)state;
    for (size_t t = 0; kernels_at(t) != NULL; t++)
        for (unsigned bits = 8; bits <= 16; bits += 8)
            for (int signs = 0; signs < 4; signs++) check_widest(kernels_at(t)->name, bits, signs);
}

/* A NaN or an infinity in one row may not reach another through the tile that they share. */
static void check_not_finite(unsigned bits) {
    const shape s = {36,    320,   20,         bits == 0 ? DTYPE_BF16 : DTYPE_I8,
                     false, false, LINEAR_SET, bits};
    compute *c = open_table(NULL, 1);
    problem p = make_problem(&s);
    float *before = solve(c, &s, &p, 0, s.n_rows);
    p.x[5 * s.n_in + 7] = NAN;
    p.x[35 * s.n_in] = INFINITY;
    float *after = solve(c, &s, &p, 0, s.n_rows);
    for (uint32_t r = 0; r < s.n_rows; r++)
        for (uint32_t o = 0; o < s.n_out; o++) {
            const size_t at = r * p.stride + o;
            if (r == 5 || r == 35) {
                assert_false(isfinite(after[at]));
            } else {
                assert_same_floats(&after[at], &before[at], 1);
            }
        }
    free(before);
    free(after);
    free_problem(&p);
    compute_close(c);
}

static void a_row_that_is_not_finite_leaves_its_neighbours_alone(void **state) {
    (void)state;
    for (unsigned bits = 0; bits <= 16; bits += 8) check_not_finite(bits);
}

static void the_operations_are_charged_to_the_part_entered(void **state) {
    (void)state;
    const shape s = {36, 300, 20, DTYPE_BF16, false, false, LINEAR_SET, 0};
    compute *c = open_table(NULL, 1);
    problem p = make_problem(&s);
    compute_enter(c, CLEF_PART_LINEARS);
    free(solve(c, &s, &p, 0, s.n_rows));
    compute_enter(c, CLEF_PART_OTHER);
    const compute_times times = compute_take_times(c), empty = compute_take_times(c);
    assert_true(times.flops[CLEF_PART_LINEARS] == 2.0 * 36 * 300 * 20);
    assert_true(times.flops[CLEF_PART_OTHER] == 0.0);
    assert_true(times.seconds[CLEF_PART_LINEARS] > 0.0);
    assert_true(empty.flops[CLEF_PART_LINEARS] == 0.0 && empty.seconds[CLEF_PART_LINEARS] == 0.0);
    free_problem(&p);
    compute_close(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_scalar_table_agrees_with_a_loop_in_double),
        cmocka_unit_test(every_table_gives_the_bits_of_the_scalar_one),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(a_row_has_the_same_bits_alone_and_among_others),
        cmocka_unit_test(every_number_of_rows_gives_the_same_bits),
        cmocka_unit_test(the_order_of_additions_is_the_one_that_compute_h_states),
        cmocka_unit_test(rounded_rows_follow_their_definition),
        cmocka_unit_test(the_widest_codes_are_summed_exactly),
        cmocka_unit_test(a_row_that_is_not_finite_leaves_its_neighbours_alone),
        cmocka_unit_test(the_operations_are_charged_to_the_part_entered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
