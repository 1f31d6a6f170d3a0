/* kernels_test.c - every table that this processor runs against the scalar one, loop by loop, with
 * sizes 0 and 1 and odd tails; their elementary functions against fmath; and the choice of a table.
 */
#include "compute/kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "compute/fmath.h"
#include "tests/numbers.h"

#define EACH_TABLE(t)                                 \
    for (size_t i_ = 0; kernels_at(i_) != NULL; i_++) \
        for (const kernel_table *t = kernels_at(i_); t != NULL; t = NULL)

/* ---- elementary functions ------------------------------------------------------------------- */

enum { BATCH = 1024 + 5 };

static void fill_ones(float *x) {
    for (size_t i = 0; i < BATCH; i++) x[i] = 1.0f;
}

/* Each lane function through the row that uses it, with a neutral second factor. */
static void run_exp(const kernel_table *t, float *x) {
    t->exp_row(x, BATCH);
}
static void run_gelu(const kernel_table *t, float *x) {
    t->gelu_row(x, BATCH);
}
static void run_gelu_tanh(const kernel_table *t, float *x) {
    t->gelu_tanh_row(x, BATCH);
}
static void run_silu(const kernel_table *t, float *x) {
    float ones[BATCH];
    fill_ones(ones);
    t->silu_mul_row(x, ones, BATCH);
}
static void run_sigmoid(const kernel_table *t, float *x) {
    float ones[BATCH];
    fill_ones(ones);
    t->sigmoid_mul_row(ones, x, BATCH);
    memcpy(x, ones, sizeof ones);
}

/* Two million bit patterns from all of f32 (fewer where an emulator takes an hour for them), and
 * every one near the places where a function changes its form: zero, subnormals, 1, 4, the ends of
 * exp, infinities, NaN. */
static void compare(void (*run)(const kernel_table *, float *), float (*function)(float)) {
    static const float places[] = {0.0f,   0x1p-149f, 0x1p-126f, 0.5f,     1.0f,    1.4142135f,
                                   4.0f,   5.656854f, 20.0f,     88.7228f, 89.0f,   103.97f,
                                   105.0f, 0x1p23f,   0x1p31f,   0x1p127f, INFINITY};
#if defined(EMULATED)
    enum { N_SAMPLES = 50 };
#else
    enum { N_SAMPLES = 2000 };
#endif
    enum { N_PLACES = sizeof places / sizeof places[0] };
    EACH_TABLE(t) {
        for (uint32_t batch = 0; batch < N_SAMPLES + 2 * N_PLACES; batch++) {
            float x[BATCH], got[BATCH], want[BATCH];
            for (uint32_t i = 0; i < BATCH; i++) {
                uint32_t bits = (batch * BATCH + i) * 2087u;
                if (batch >= N_SAMPLES) {
                    const uint32_t place = batch - N_SAMPLES;
                    bits = float_bits(places[place / 2]) + i - BATCH / 2;
                    bits = (bits & 0x7FFFFFFFu) | (place % 2 ? 0x80000000u : 0);
                }
                x[i] = float_of_bits(bits);
                want[i] = function(x[i]);
            }
            memcpy(got, x, sizeof got);
            run(t, got);
            assert_same_floats(got, want, BATCH);
        }
    }
}

static void exp_in_lanes_has_the_bits_of_fmath(void **state) {
    (void)state;
    compare(run_exp, fmath_exp);
}
static void gelu_in_lanes_has_the_bits_of_fmath(void **state) {
    (void)state;
    compare(run_gelu, fmath_gelu);
}
static void gelu_tanh_in_lanes_has_the_bits_of_fmath(void **state) {
    (void)state;
    compare(run_gelu_tanh, fmath_gelu_tanh);
}
static void silu_in_lanes_has_the_bits_of_fmath(void **state) {
    (void)state;
    compare(run_silu, fmath_silu);
}
static void sigmoid_in_lanes_has_the_bits_of_fmath(void **state) {
    (void)state;
    compare(run_sigmoid, fmath_sigmoid);
}

/* ---- tiles and rows ------------------------------------------------------------------------- */

enum { MAX_K = 300, MAX_N = 67 };

static void tiles_have_the_bits_of_the_scalar_table(void **state) {
    (void)state;
    static const uint32_t depths[] = {0, 1, 2, 7, 64, 256, 299};
    float *x = new_floats(MAX_K * TILE_LANES), *w = new_floats(MAX_K * 16 + 1);
    float *start = new_floats(HALF_OUTS * TILE_LANES), *a = new_floats(HALF_OUTS * TILE_LANES),
          *b = new_floats(HALF_OUTS * TILE_LANES);
    fill_random(x, MAX_K * TILE_LANES, 1);
    fill_random(w, MAX_K * 16 + 1, 2);
    fill_random(start, HALF_OUTS * TILE_LANES, 3);
    const size_t bytes = HALF_OUTS * TILE_LANES * sizeof *a;
    EACH_TABLE(t) {
        for (uint32_t n_out = 1; n_out <= HALF_OUTS; n_out++)
            for (size_t d = 0; d < sizeof depths / sizeof depths[0]; d++)
                for (int across = 0; across < 2; across++) { /* weights along k, or along outputs */
                    const size_t w_out = across ? 1 : MAX_K, w_k = across ? 13 : 1;
                    for (int half = 0; half < 2; half++) {
                        if (!half && n_out > t->tile_outs) continue;
                        memcpy(a, start, bytes);
                        memcpy(b, start, bytes);
                        const kernel_table *s = &kernels_scalar;
                        const uint32_t step = half ? HALF_OUTS : s->tile_outs;
                        for (uint32_t o = 0; o < n_out; o += step)
                            (half ? s->tile_half
                                  : s->tile)(a + o * TILE_LANES, x, w + 1 + o * w_out, w_out, w_k,
                                             n_out - o < step ? n_out - o : step, depths[d]);
                        (half ? t->tile_half : t->tile)(b, x, w + 1, w_out, w_k, n_out, depths[d]);
                        assert_same_floats(a, b, HALF_OUTS * TILE_LANES);
                    }
                }
    }
    free(x);
    free(w);
    free(start);
    free(a);
    free(b);
}

static void a_tile_is_one_chain_of_fused_steps_per_output(void **state) {
    (void)state;
    float *x = new_floats(MAX_K * TILE_LANES), *out = new_floats(HALF_OUTS * TILE_LANES);
    float w[HALF_OUTS * MAX_K];
    fill_random(x, MAX_K * TILE_LANES, 1);
    fill_random(w, HALF_OUTS * MAX_K, 2);
    EACH_TABLE(t) {
        for (size_t i = 0; i < HALF_OUTS * TILE_LANES; i++) out[i] = 0.5f;
        t->tile(out, x, w, MAX_K, 1, t->tile_outs, MAX_K);
        for (size_t o = 0; o < t->tile_outs; o++)
            for (size_t lane = 0; lane < TILE_LANES; lane++) {
                float chain = 0.0f;
                for (size_t k = 0; k < MAX_K; k++)
                    chain = fmaf(x[k * TILE_LANES + lane], w[o * MAX_K + k], chain);
                const float want = 0.5f + chain;
                assert_same_floats(&out[o * TILE_LANES + lane], &want, 1);
            }
    }
    free(x);
    free(out);
}

static void widening_gives_the_stored_values_at_any_address(void **state) {
    (void)state;
    unsigned char stored[4 * MAX_N + 9];
    for (size_t i = 0; i < sizeof stored; i++) stored[i] = (unsigned char)(i * 37 + 11);
    static const dtype types[] = {DTYPE_BF16, DTYPE_F16, DTYPE_F32};
    EACH_TABLE(t) {
        for (size_t type = 0; type < 3; type++)
            for (size_t n = 0; n < MAX_N - 3; n++)
                for (size_t offset = 0; offset < 2; offset++) {
                    float got[MAX_N], want[MAX_N];
                    const matrix w = {.data = stored + offset, .type = types[type]};
                    t->widen(got, &w, 3, n);
                    tensor_to_float(want, types[type], stored + offset, 3, n);
                    assert_same_floats(got, want, n);
                }
    }
}

/* Every code with every scale that a bundle may hold, the subnormal ones included. */
static void a_code_times_its_scale_is_exact(void **state) {
    (void)state;
    enum { N_CODES = 256, N_BLOCKS = N_CODES / INT8_BLOCK };
    int8_t stored[N_CODES + 1];
    for (int i = 0; i < N_CODES; i++) stored[i + 1] = (int8_t)(i == 0 ? 0 : i - 128);
    EACH_TABLE(t) {
        for (uint16_t bits = 1; bits < 0x7C00u; bits++) {
            unsigned char scales[1 + 2 * N_BLOCKS]; /* at an odd address, as the codes */
            for (int i = 0; i < N_BLOCKS; i++) memcpy(scales + 1 + 2 * i, &bits, sizeof bits);
            const int exponent = bits >> 10;
            const double scale =
                exponent == 0 ? ldexp(bits, -24) : ldexp(1024 + (bits & 1023), exponent - 25);
            const matrix w = {.data = stored + 1, .scales = scales + 1, .type = DTYPE_I8};
            float got[N_CODES];
            t->widen(got, &w, 0, N_CODES);
            for (int i = 0; i < N_CODES; i++)
                if ((double)got[i] != (double)stored[i + 1] * scale)
                    fail_msg("code %d, scale %a: %a", stored[i + 1], scale, (double)got[i]);
        }
    }
}

static void widening_across_gives_the_widened_rows_as_columns(void **state) {
    (void)state;
    enum { N_IN = LINEAR_BLOCK + 5 };
    static unsigned char stored[4 * TILE_LANES * N_IN + 1];
    for (size_t i = 0; i < sizeof stored; i++) stored[i] = (unsigned char)(i * 37 % 251 + 3);
    static const dtype types[] = {DTYPE_BF16, DTYPE_F16, DTYPE_F32};
    static const uint32_t lengths[] = {1, 8, 15, 16, 33, LINEAR_BLOCK};
    float *got = new_floats(TILE_LANES * LINEAR_BLOCK), row[LINEAR_BLOCK];
    EACH_TABLE(t) {
        for (size_t type = 0; type < 3; type++)
            for (size_t length = 0; length < sizeof lengths / sizeof *lengths; length++)
                for (uint32_t n_out = 1; n_out <= TILE_LANES; n_out++) {
                    const matrix w = {.data = stored + 1, .type = types[type], .n_in = N_IN};
                    const uint32_t n = lengths[length];
                    t->widen_across(got, &w, 3, n_out, n);
                    for (uint32_t o = 0; o < TILE_LANES; o++) {
                        memset(row, 0, sizeof row);
                        if (o < n_out) t->widen(row, &w, 3 + (size_t)o * N_IN, n);
                        for (uint32_t k = 0; k < n; k++)
                            assert_same_floats(&got[k * TILE_LANES + o], &row[k], 1);
                    }
                }
    }
    free(got);
}

static void codes_across_are_their_rows_as_columns(void **state) {
    (void)state;
    enum { N_IN = LINEAR_BLOCK + INT8_BLOCK };
    static signed char stored[(TILE_LANES + 1) * N_IN + 1];
    static unsigned char scales[sizeof stored / INT8_BLOCK * 2 + 1];
    for (size_t i = 0; i < sizeof stored; i++) stored[i] = (signed char)((int)(i * 37 % 255) - 127);
    for (size_t i = 0; i < sizeof scales; i++) scales[i] = (unsigned char)(i * 11 % 120);
    const matrix w = {.data = stored + 1, .scales = scales + 1, .type = DTYPE_I8, .n_in = N_IN};
    float *got = new_floats(TILE_LANES * LINEAR_BLOCK), row[LINEAR_BLOCK];
    EACH_TABLE(t) {
        for (uint32_t n = INT8_BLOCK; n <= LINEAR_BLOCK; n += INT8_BLOCK)
            for (uint32_t n_out = 1; n_out <= TILE_LANES; n_out++) {
                t->widen_across(got, &w, INT8_BLOCK, n_out, n);
                for (uint32_t o = 0; o < TILE_LANES; o++) {
                    memset(row, 0, sizeof row);
                    if (o < n_out) t->widen(row, &w, INT8_BLOCK + (size_t)o * N_IN, n);
                    for (uint32_t k = 0; k < n; k++)
                        assert_same_floats(&got[k * TILE_LANES + o], &row[k], 1);
                }
            }
    }
    free(got);
}

/* Every number of rows and outputs up to a few more than a tile; what lies between the rows stays.
 */
static void a_stored_tile_is_its_transpose_with_sum_and_bias(void **state) {
    (void)state;
    enum { MOST = 35, STRIDE = 41 };
    float *total = new_floats(MOST * TILE_LANES), *out = new_floats(TILE_LANES * STRIDE);
    float bias[MOST];
    for (size_t i = 0; i < MOST * TILE_LANES; i++) total[i] = (float)i / 7.0f;
    for (size_t o = 0; o < MOST; o++) bias[o] = -1.0f / (float)(o + 3);
    EACH_TABLE(t) {
        for (uint32_t n_out = 1; n_out <= MOST; n_out++)
            for (uint32_t n_rows = 1; n_rows <= TILE_LANES; n_rows++)
                for (int kind = 0; kind < 4; kind++) {
                    const bool add = kind % 2 == 1;
                    const uint32_t n_lanes = n_rows <= HALF_LANES ? HALF_LANES : TILE_LANES;
                    for (size_t i = 0; i < TILE_LANES * STRIDE; i++) out[i] = (float)i;
                    t->store_tile(out + 1, STRIDE, total, n_lanes, n_rows, n_out,
                                  kind < 2 ? NULL : bias, add);
                    for (size_t i = 0; i < TILE_LANES * STRIDE; i++) {
                        const size_t row = i / STRIDE, o = i % STRIDE - 1;
                        float want = (float)i;
                        if (row < n_rows && i % STRIDE > 0 && o < n_out) {
                            want = total[o * n_lanes + row];
                            if (add) want = (float)i + want;
                            if (kind >= 2) want += bias[o];
                        }
                        assert_same_floats(&out[i], &want, 1);
                    }
                }
    }
    free(total);
    free(out);
}

/* A block of INT4 and one of INT6 in which every code has bits of its own, and a block in front. */
static void packed_codes_come_out_where_they_were_put(void **state) {
    (void)state;
    static const struct {
        dtype type;
        int offset, bytes;
    } kinds[] = {{DTYPE_INT4, 8, INT4_BYTES}, {DTYPE_INT6, 32, INT6_BYTES}};
    EACH_TABLE(t) {
        for (size_t k = 0; k < 2; k++) {
            unsigned char stored[2 * INT6_BYTES + 1] = {0}, scales[5] = {0};
            int codes[INT8_BLOCK];
            unsigned char *block = stored + 1 + kinds[k].bytes; /* at an odd address */
            for (int i = 0; i < INT8_BLOCK; i++) {
                const int stored_code = (i * 37 + 5) % (2 * kinds[k].offset);
                codes[i] = stored_code - kinds[k].offset;
                block[i % 16] |= (unsigned char)((stored_code & 15) << i / 16 * 4);
                if (k == 1) block[16 + i % 8] |= (unsigned char)(stored_code >> 4 << i / 8 * 2);
            }
            const uint16_t two = 0x4000;
            memcpy(scales + 3, &two, sizeof two);
            const matrix w = {.data = stored + 1, .scales = scales + 1, .type = kinds[k].type};
            float got[INT8_BLOCK];
            t->widen(got, &w, INT8_BLOCK, INT8_BLOCK);
            for (int i = 0; i < INT8_BLOCK; i++)
                if (got[i] != 2.0f * (float)codes[i])
                    fail_msg("%s: code %d is %d, came out as %g", t->name, i, codes[i],
                             (double)got[i] / 2);
        }
    }
}

/* All rows, every length: the values behind the end must stay as they are. */
static void rows_of_every_length_have_the_bits_of_the_scalar_table(void **state) {
    (void)state;
    enum { N_ROWS = 5 };
    float in[MAX_N], weight[MAX_N], bias[MAX_N];
    fill_random(in, MAX_N, 1);
    fill_random(weight, MAX_N, 2);
    fill_random(bias, MAX_N, 3);
    EACH_TABLE(t) {
        for (uint32_t n = 0; n + 1 < MAX_N; n++)
            for (int row = 0; row < N_ROWS; row++) {
                float out[2][MAX_N];
                for (int i = 0; i < 2; i++) {
                    const kernel_table *k = i == 0 ? &kernels_scalar : t;
                    memcpy(out[i], in, sizeof in);
                    if (row == 0) k->rms_norm_row(out[i], in, weight, n, 1e-6f);
                    if (row == 1) k->layer_norm_row(out[i], in, weight, bias, n, 1e-6f);
                    if (row == 2) k->silu_mul_row(out[i], weight, n);
                    if (row == 3) k->sigmoid_mul_row(out[i], weight, n);
                    if (row == 4) k->rotate_row(out[i], n / 2 * 2, weight, bias);
                }
                assert_same_floats(out[0], out[1], MAX_N);
                assert_same_floats(out[1] + n, in + n, MAX_N - n);
            }
    }
}

static void the_ceiling_counts_what_it_does(void **state) {
    (void)state;
    EACH_TABLE(t) {
        double flops = 0;
        const float value = t->peak(10, &flops);
        assert_true(isfinite(value));
        const bool wide = t->tile_outs == HALF_OUTS; /* 16 lanes in a register */
        assert_true(flops == 2.0 * 12 * (wide ? 16 : 8) * 10);
    }
}

/* ---- choosing ------------------------------------------------------------------------------- */

static void the_fastest_table_is_the_default(void **state) {
    (void)state;
    const kernel_table *t = NULL;
    assert_int_equal(kernels_choose(&t, NULL, NULL), CLEF_OK);
#if defined(__aarch64__)
    assert_string_equal(t->name, cpu_features() & CPU_NEON_DOT ? "neondot" : "neon");
#else
    const uint32_t has = cpu_features();
    assert_string_equal(t->name, has & CPU_AVX512_VNNI ? "avx512vnni"
                                 : has & CPU_AVX512    ? "avx512"
                                 : has & CPU_AVX2_FMA  ? "avx2"
                                                       : "scalar");
#endif
}

#if defined(__x86_64__)
/* The tests above compare whatever kernels_at lists; skipped, this one says that they had no
 * AVX-512 to compare. */
static void the_avx512_tables_are_compared(void **state) {
    (void)state;
    if (!(cpu_features() & CPU_AVX512)) {
        print_message("this CPU has no AVX-512\n");
        skip();
    }
    bool plain = false, vnni = false;
    EACH_TABLE(t) {
        plain = plain || strcmp(t->name, "avx512") == 0;
        vnni = vnni || strcmp(t->name, "avx512vnni") == 0;
    }
    assert_true(plain);
    assert_int_equal(vnni, (cpu_features() & CPU_AVX512_VNNI) != 0);
}
#endif

static void the_scalar_table_can_always_be_chosen(void **state) {
    (void)state;
    const kernel_table *t = NULL;
    assert_int_equal(kernels_choose(&t, "scalar", NULL), CLEF_OK);
    assert_ptr_equal(t, &kernels_scalar);
}

static void an_unknown_table_is_refused_by_naming_those_there_are(void **state) {
    (void)state;
    const kernel_table *t = NULL;
    clef_error err = {0};
    assert_int_equal(kernels_choose(&t, "AVX2", &err), CLEF_ERR_INPUT);
    assert_non_null(strstr(err.text, "'AVX2'"));
    assert_non_null(strstr(err.text, "scalar"));
    assert_null(t);
    assert_int_equal(kernels_choose(&t, "", &err), CLEF_ERR_INPUT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_in_lanes_has_the_bits_of_fmath),
        cmocka_unit_test(gelu_in_lanes_has_the_bits_of_fmath),
        cmocka_unit_test(gelu_tanh_in_lanes_has_the_bits_of_fmath),
        cmocka_unit_test(silu_in_lanes_has_the_bits_of_fmath),
        cmocka_unit_test(sigmoid_in_lanes_has_the_bits_of_fmath),
        cmocka_unit_test(tiles_have_the_bits_of_the_scalar_table),
        cmocka_unit_test(a_tile_is_one_chain_of_fused_steps_per_output),
        cmocka_unit_test(widening_gives_the_stored_values_at_any_address),
        cmocka_unit_test(a_code_times_its_scale_is_exact),
        cmocka_unit_test(widening_across_gives_the_widened_rows_as_columns),
        cmocka_unit_test(codes_across_are_their_rows_as_columns),
        cmocka_unit_test(a_stored_tile_is_its_transpose_with_sum_and_bias),
        cmocka_unit_test(packed_codes_come_out_where_they_were_put),
        cmocka_unit_test(rows_of_every_length_have_the_bits_of_the_scalar_table),
        cmocka_unit_test(the_ceiling_counts_what_it_does),
        cmocka_unit_test(the_fastest_table_is_the_default),
#if defined(__x86_64__)
        cmocka_unit_test(the_avx512_tables_are_compared),
#endif
        cmocka_unit_test(the_scalar_table_can_always_be_chosen),
        cmocka_unit_test(an_unknown_table_is_refused_by_naming_those_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
