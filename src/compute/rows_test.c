/* rows_test.c - norms, gates and the rotation against plain loops in double, and their bits against
 * every table and thread count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "compute/compute.h"
#include "tests/numbers.h"

enum { N_ROWS = 37, N = 53, N_HEADS = 3, HEAD_DIM = 20, ROTARY = 12 };
enum { HEADS_N = N_HEADS * HEAD_DIM, GATE_N = 2 * HEADS_N + 1 };

static compute *open_table(const char *kernels, unsigned threads) {
    compute *c = NULL;
    clef_error err = {0};
    if (compute_open(&c, kernels, threads, &err) != CLEF_OK) fail_msg("%s", err.text);
    return c;
}

/* Inputs of every verb, and what each leaves in `out`. */
typedef struct {
    float x[N_ROWS * GATE_N], other[N_ROWS * GATE_N], weight[GATE_N], bias[GATE_N];
    float cos[N_ROWS * ROTARY / 2], sin[N_ROWS * ROTARY / 2];
} inputs;

static void fill_inputs(inputs *in) {
    fill_random(in->x, N_ROWS * GATE_N, 1);
    fill_random(in->other, N_ROWS * GATE_N, 2);
    fill_random(in->weight, GATE_N, 3);
    fill_random(in->bias, GATE_N, 4);
    for (size_t i = 0; i < N_ROWS * ROTARY / 2; i++) {
        in->cos[i] = cosf((float)i);
        in->sin[i] = sinf((float)i);
    }
}

typedef void verb(compute *c, const inputs *in, float *out, uint32_t row0, uint32_t n_rows);

static void run_rms_norm(compute *c, const inputs *in, float *out, uint32_t row0, uint32_t n_rows) {
    rms_norm(c, out, in->x + (size_t)row0 * N, in->weight, n_rows, N, 1e-6f);
}
static void run_layer_norm(compute *c, const inputs *in, float *out, uint32_t row0,
                           uint32_t n_rows) {
    layer_norm(c, out, in->x + (size_t)row0 * N, in->weight, in->bias, n_rows, N, 1e-6f);
}
static void run_silu_mul(compute *c, const inputs *in, float *out, uint32_t row0, uint32_t n_rows) {
    memcpy(out, in->x + (size_t)row0 * N, (size_t)n_rows * N * sizeof *out);
    silu_mul(c, out, in->other + (size_t)row0 * N, n_rows, N);
}
static void run_gelu(compute *c, const inputs *in, float *out, uint32_t row0, uint32_t n_rows) {
    memcpy(out, in->x + (size_t)row0 * N, (size_t)n_rows * N * sizeof *out);
    gelu_erf(c, out, n_rows, N);
}
static void run_gelu_tanh(compute *c, const inputs *in, float *out, uint32_t row0,
                          uint32_t n_rows) {
    memcpy(out, in->x + (size_t)row0 * N, (size_t)n_rows * N * sizeof *out);
    gelu_tanh(c, out, n_rows, N);
}
static void run_sigmoid_gate(compute *c, const inputs *in, float *out, uint32_t row0,
                             uint32_t n_rows) {
    memcpy(out, in->x + (size_t)row0 * HEADS_N, (size_t)n_rows * HEADS_N * sizeof *out);
    sigmoid_gate(c, out, in->other + (size_t)row0 * GATE_N, GATE_N, 2 * HEAD_DIM, n_rows, N_HEADS,
                 HEAD_DIM);
}
static void run_norm_rotate(compute *c, const inputs *in, float *out, uint32_t row0,
                            uint32_t n_rows) {
    memcpy(out, in->x + (size_t)row0 * GATE_N, (size_t)n_rows * GATE_N * sizeof *out);
    norm_rotate(c, &(rotate_args){.x = out,
                                  .stride = GATE_N,
                                  .head_stride = 2 * HEAD_DIM,
                                  .n_rows = n_rows,
                                  .n_heads = N_HEADS,
                                  .head_dim = HEAD_DIM,
                                  .rotary_dim = ROTARY,
                                  .weight = in->weight,
                                  .cos = in->cos + (size_t)row0 * (ROTARY / 2),
                                  .sin = in->sin + (size_t)row0 * (ROTARY / 2),
                                  .eps = 1e-6f});
}
static void run_rotate(compute *c, const inputs *in, float *out, uint32_t row0, uint32_t n_rows) {
    memcpy(out, in->x + (size_t)row0 * GATE_N, (size_t)n_rows * GATE_N * sizeof *out);
    rotate(c, &(rotate_args){.x = out,
                             .stride = GATE_N,
                             .head_stride = 2 * HEAD_DIM,
                             .n_rows = n_rows,
                             .n_heads = N_HEADS,
                             .head_dim = HEAD_DIM,
                             .rotary_dim = ROTARY,
                             .cos = in->cos + (size_t)row0 * (ROTARY / 2),
                             .sin = in->sin + (size_t)row0 * (ROTARY / 2)});
}

static const struct {
    verb *run;
    size_t row_floats; /* of the result */
} verbs[] = {{run_rms_norm, N},  {run_layer_norm, N},         {run_silu_mul, N},
             {run_gelu, N},      {run_sigmoid_gate, HEADS_N}, {run_norm_rotate, GATE_N},
             {run_gelu_tanh, N}, {run_rotate, GATE_N}};

#define EACH_VERB for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)

static void every_table_and_thread_count_gives_the_same_bits(void **state) {
    (void)state;
    static inputs in;
    fill_inputs(&in);
    static float want[N_ROWS * GATE_N], got[N_ROWS * GATE_N];
    compute *scalar = open_table("scalar", 1);
    for (unsigned threads = 1; threads <= 3; threads++) {
        compute *best = open_table(NULL, threads);
        EACH_VERB {
            verbs[i].run(scalar, &in, want, 0, N_ROWS);
            verbs[i].run(best, &in, got, 0, N_ROWS);
            assert_same_floats(got, want, N_ROWS * verbs[i].row_floats);
        }
        compute_close(best);
    }
    compute_close(scalar);
}

static void a_row_has_the_same_bits_alone_and_among_others(void **state) {
    (void)state;
    static inputs in;
    fill_inputs(&in);
    static float all[N_ROWS * GATE_N], one[GATE_N];
    compute *c = open_table(NULL, 2);
    EACH_VERB {
        const size_t n = verbs[i].row_floats;
        verbs[i].run(c, &in, all, 0, N_ROWS);
        for (uint32_t row = 0; row < N_ROWS; row++) {
            verbs[i].run(c, &in, one, row, 1);
            assert_same_floats(one, all + row * n, n);
        }
    }
    compute_close(c);
}

static void no_rows_are_no_work(void **state) {
    (void)state;
    static inputs in;
    float out[1] = {7.0f};
    compute *c = open_table(NULL, 2);
    EACH_VERB verbs[i].run(c, &in, out, 0, 0);
    assert_true(out[0] == 7.0f);
    compute_close(c);
}

static void assert_near(float got, double want) {
    if (!(fabs((double)got - want) <= 2e-6 * (1.0 + fabs(want))))
        fail_msg("%.9g, wanted %.9g", (double)got, want);
}

static double rms_scale(const float *x, size_t n) {
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += (double)x[k] * (double)x[k];
    return 1.0 / sqrt(sum / (double)n + 1e-6);
}

static void the_norms_agree_with_loops_in_double(void **state) {
    (void)state;
    static inputs in;
    fill_inputs(&in);
    static float out[N_ROWS * N];
    compute *c = open_table(NULL, 1);
    run_rms_norm(c, &in, out, 0, N_ROWS);
    for (size_t r = 0; r < N_ROWS; r++)
        for (size_t k = 0; k < N; k++)
            assert_near(out[r * N + k], (double)in.x[r * N + k] * rms_scale(in.x + r * N, N) *
                                            (double)in.weight[k]);
    run_layer_norm(c, &in, out, 0, N_ROWS);
    for (size_t r = 0; r < N_ROWS; r++) {
        double mean = 0, variance = 0;
        for (size_t k = 0; k < N; k++) mean += (double)in.x[r * N + k] / N;
        for (size_t k = 0; k < N; k++) variance += pow((double)in.x[r * N + k] - mean, 2) / N;
        for (size_t k = 0; k < N; k++)
            assert_near(out[r * N + k], ((double)in.x[r * N + k] - mean) / sqrt(variance + 1e-6) *
                                                (double)in.weight[k] +
                                            (double)in.bias[k]);
    }
    compute_close(c);
}

/* A row far from zero: one pass over x and x^2 would lose the variance. */
static void layer_norm_takes_the_mean_away_first(void **state) {
    (void)state;
    float x[64], weight[64], bias[64] = {0}, out[64];
    for (size_t k = 0; k < 64; k++) {
        x[k] = 4096.0f + (k % 2 ? 0.25f : -0.25f);
        weight[k] = 1.0f;
    }
    compute *c = open_table(NULL, 1);
    layer_norm(c, out, x, weight, bias, 1, 64, 1e-6f);
    for (size_t k = 0; k < 64; k++)
        assert_near(out[k], (k % 2 ? 0.25 : -0.25) / sqrt(0.0625 + 1e-6));
    compute_close(c);
}

static double sigmoid(double x) {
    return 1.0 / (1.0 + exp(-x));
}

static void the_gates_agree_with_loops_in_double(void **state) {
    (void)state;
    static inputs in;
    fill_inputs(&in);
    static float out[N_ROWS * GATE_N];
    compute *c = open_table(NULL, 1);
    run_silu_mul(c, &in, out, 0, N_ROWS);
    for (size_t i = 0; i < (size_t)N_ROWS * N; i++)
        assert_near(out[i], (double)in.x[i] * sigmoid((double)in.x[i]) * (double)in.other[i]);
    run_gelu(c, &in, out, 0, N_ROWS);
    for (size_t i = 0; i < (size_t)N_ROWS * N; i++)
        assert_near(out[i], 0.5 * (double)in.x[i] * (1.0 + erf((double)in.x[i] / sqrt(2.0))));
    run_gelu_tanh(c, &in, out, 0, N_ROWS);
    for (size_t i = 0; i < (size_t)N_ROWS * N; i++) {
        const double v = (double)in.x[i], u = sqrt(2.0 / acos(-1.0)) * (v + 0.044715 * v * v * v);
        assert_near(out[i], 0.5 * v * (1.0 + tanh(u)));
    }
    run_sigmoid_gate(c, &in, out, 0, N_ROWS);
    for (size_t r = 0; r < N_ROWS; r++)
        for (size_t h = 0; h < N_HEADS; h++)
            for (size_t i = 0; i < HEAD_DIM; i++) {
                const size_t at = r * HEADS_N + h * HEAD_DIM + i;
                const float gate = in.other[r * GATE_N + h * 2 * HEAD_DIM + i];
                assert_near(out[at], (double)in.x[at] * sigmoid((double)gate));
            }
    compute_close(c);
}

static void the_rotation_turns_pairs_half_the_rotary_width_apart(void **state) {
    (void)state;
    static inputs in;
    fill_inputs(&in);
    static float out[N_ROWS * GATE_N];
    compute *c = open_table(NULL, 1);
    run_norm_rotate(c, &in, out, 0, N_ROWS);
    for (size_t r = 0; r < N_ROWS; r++)
        for (size_t h = 0; h < N_HEADS; h++) {
            const float *x = in.x + r * GATE_N + h * 2 * HEAD_DIM;
            const float *y = out + r * GATE_N + h * 2 * HEAD_DIM;
            const double scale = rms_scale(x, HEAD_DIM);
            double n[HEAD_DIM];
            for (size_t i = 0; i < HEAD_DIM; i++)
                n[i] = (double)x[i] * scale * (double)in.weight[i];
            for (size_t i = 0; i < ROTARY / 2; i++) {
                const double turn_c = (double)in.cos[r * (ROTARY / 2) + i];
                const double turn_s = (double)in.sin[r * (ROTARY / 2) + i];
                assert_near(y[i], n[i] * turn_c - n[i + ROTARY / 2] * turn_s);
                assert_near(y[i + ROTARY / 2], n[i + ROTARY / 2] * turn_c + n[i] * turn_s);
            }
            for (size_t i = ROTARY; i < HEAD_DIM; i++) assert_near(y[i], n[i]);
            for (size_t i = HEAD_DIM; i < 2 * HEAD_DIM; i++) /* the gate beside it */
                assert_true(y[i] == x[i]);
        }
    compute_close(c);
}

static void a_rotation_alone_turns_the_values_as_they_are(void **state) {
    (void)state;
    static inputs in;
    fill_inputs(&in);
    static float out[N_ROWS * GATE_N];
    compute *c = open_table(NULL, 1);
    run_rotate(c, &in, out, 0, N_ROWS);
    for (size_t r = 0; r < N_ROWS; r++)
        for (size_t h = 0; h < N_HEADS; h++) {
            const float *x = in.x + r * GATE_N + h * 2 * HEAD_DIM;
            const float *y = out + r * GATE_N + h * 2 * HEAD_DIM;
            for (size_t i = 0; i < ROTARY / 2; i++) {
                const double turn_c = (double)in.cos[r * (ROTARY / 2) + i];
                const double turn_s = (double)in.sin[r * (ROTARY / 2) + i];
                const double a = (double)x[i], b = (double)x[i + ROTARY / 2];
                assert_near(y[i], a * turn_c - b * turn_s);
                assert_near(y[i + ROTARY / 2], b * turn_c + a * turn_s);
            }
            for (size_t i = ROTARY; i < 2 * HEAD_DIM; i++) assert_true(y[i] == x[i]);
        }
    compute_close(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_table_and_thread_count_gives_the_same_bits),
        cmocka_unit_test(a_row_has_the_same_bits_alone_and_among_others),
        cmocka_unit_test(no_rows_are_no_work),
        cmocka_unit_test(the_norms_agree_with_loops_in_double),
        cmocka_unit_test(layer_norm_takes_the_mean_away_first),
        cmocka_unit_test(the_gates_agree_with_loops_in_double),
        cmocka_unit_test(the_rotation_turns_pairs_half_the_rotary_width_apart),
        cmocka_unit_test(a_rotation_alone_turns_the_values_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
