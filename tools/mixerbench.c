/* mixerbench.c - what the two mixers of a layer cost at the sizes of clef-flash 9B, for a chunk of
 * 512 rows: attention at the start, at 4,096 and at 16,384 tokens, and the Gated DeltaNet.
 *
 *   build/tools/mixerbench [THREADS]
 *
 * The machine may be shared, so two clocks are shown: the median wall time of five runs after one
 * that warms up, and the least processor time of all threads together, from which GFLOP/s of one
 * core (two operations a multiply-add; the recurrence of the delta rule counts seven for an element
 * of its state and token) and the share of a core's ceiling of fused multiply-adds are computed.
 * Only on an idle machine do they agree. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/cpu.h"
#include "compute/compute.h"
#include "compute/kernels.h"

enum { N_ROWS = 512, N_RUNS = 5 };

static float *random_floats(size_t n) {
    float *x = malloc(n * sizeof *x);
    if (x == NULL) {
        fprintf(stderr, "mixerbench: out of memory\n");
        exit(1);
    }
    uint32_t bits = 1;
    for (size_t i = 0; i < n; i++) {
        bits = bits * 1664525 + 1013904223;
        x[i] = (float)(bits >> 8) / (1 << 23) - 1;
    }
    return x;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Processor time of all threads of this process. */
static double core_seconds(void) {
    return (double)clock() / CLOCKS_PER_SEC;
}

/* GFLOP/s of one core with the table that compute_open takes. */
static double core_ceiling(void) {
    const kernel_table *table = NULL;
    double best = 0;
    if (kernels_choose(&table, NULL, NULL) != CLEF_OK) exit(1);
    for (int i = 0; i < 9; i++) {
        double flops;
        const double begin = core_seconds();
        const volatile float value = table->peak(1000000, &flops);
        (void)value;
        const double gflops = flops / (core_seconds() - begin) / 1e9;
        if (gflops > best) best = gflops;
    }
    return best;
}

/* Runs `work` and prints a line. */
static void measure(compute *c, const char *name, void (*work)(compute *, void *), void *context,
                    double ceiling) {
    double seconds[N_RUNS], least = 1e9, flops = 0;
    work(c, context);
    for (int i = 0; i < N_RUNS; i++) {
        compute_take_times(c);
        const double begin = cpu_seconds(), core_begin = core_seconds();
        work(c, context);
        seconds[i] = cpu_seconds() - begin;
        const double core = core_seconds() - core_begin;
        if (core < least) least = core;
        flops = compute_take_times(c).flops[CLEF_PART_ATTENTION];
    }
    qsort(seconds, N_RUNS, sizeof *seconds, by_value);
    const double gflops = flops / least / 1e9;
    printf("%-24s wall %8.4f s   cores %8.4f s  %6.1f GFLOP/s  %5.1f %%\n", name,
           seconds[N_RUNS / 2], least, gflops, 100 * gflops / ceiling);
}

static void run_attend(compute *c, void *context) {
    attend(c, context);
}

static void measure_attend(compute *c, uint32_t first_pos, double ceiling) {
    enum { HEADS = 16, KV_HEADS = 4, DIM = 256 };
    const uint32_t n_keys = first_pos + N_ROWS;
    float *q = random_floats((size_t)N_ROWS * HEADS * 2 * DIM);
    float *k = random_floats((size_t)n_keys * KV_HEADS * DIM);
    float *v = random_floats((size_t)n_keys * KV_HEADS * DIM);
    float *out = random_floats((size_t)N_ROWS * HEADS * DIM);
    attend_args a = {.out = out,
                     .q = q,
                     .k = k,
                     .v = v,
                     .q_stride = (size_t)HEADS * 2 * DIM,
                     .q_head_stride = (size_t)2 * DIM,
                     .kv_stride = (size_t)KV_HEADS * DIM,
                     .n_rows = N_ROWS,
                     .n_keys = n_keys,
                     .n_heads = HEADS,
                     .n_kv_heads = KV_HEADS,
                     .head_dim = DIM,
                     .first_pos = first_pos,
                     .causal = true,
                     .scale = 0.0625f};
    char name[64];
    snprintf(name, sizeof name, "attend, rows from %u", (unsigned)first_pos);
    measure(c, name, run_attend, &a, ceiling);
    free(q);
    free(k);
    free(v);
    free(out);
}

static void run_delta(compute *c, void *context) {
    gated_delta(c, context);
}

/* gated_delta overwrites its rows, so each run gets what the one before left: numbers that shrink
 * from run to run, but stay far from those that a processor slows down for. */
static void measure_delta(compute *c, double ceiling) {
    enum { KEY_HEADS = 16, VALUE_HEADS = 32, DIM = 128, TAPS = 4 };
    enum { CHANNELS = 2 * KEY_HEADS * DIM + VALUE_HEADS * DIM, WIDTH = VALUE_HEADS * DIM };
    float *out = random_floats((size_t)N_ROWS * WIDTH), *z = random_floats((size_t)N_ROWS * WIDTH);
    float *qkv = random_floats((size_t)N_ROWS * CHANNELS);
    float *a_rows = random_floats((size_t)N_ROWS * VALUE_HEADS);
    float *b_rows = random_floats((size_t)N_ROWS * VALUE_HEADS);
    float *conv = random_floats((size_t)CHANNELS * TAPS);
    float *decay = random_floats(VALUE_HEADS), *dt_bias = random_floats(VALUE_HEADS);
    float *norm = random_floats(DIM);
    float *history = random_floats((size_t)(TAPS - 1) * CHANNELS);
    float *state = random_floats((size_t)VALUE_HEADS * DIM * DIM);
    for (int h = 0; h < VALUE_HEADS; h++) decay[h] = -0.5f - 0.5f * decay[h];
    delta_args a = {.out = out,
                    .qkv = qkv,
                    .z = z,
                    .a = a_rows,
                    .b = b_rows,
                    .conv = conv,
                    .decay = decay,
                    .dt_bias = dt_bias,
                    .norm = norm,
                    .history = history,
                    .state = state,
                    .n_rows = N_ROWS,
                    .n_key_heads = KEY_HEADS,
                    .n_value_heads = VALUE_HEADS,
                    .key_dim = DIM,
                    .value_dim = DIM,
                    .conv_kernel = TAPS,
                    .eps = 1e-6f};
    measure(c, "gated_delta", run_delta, &a, ceiling);
    float *const all[] = {out, z, qkv, a_rows, b_rows, conv, decay, dt_bias, norm, history, state};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
}

int main(int argc, char **argv) {
    const unsigned threads = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : cpu_count();
    compute *c = NULL;
    clef_error err = {0};
    if (compute_open(&c, NULL, threads, &err) != CLEF_OK) {
        fprintf(stderr, "mixerbench: %s\n", err.text);
        return 1;
    }
    compute_enter(c, CLEF_PART_ATTENTION);
    const double ceiling = core_ceiling();
    printf("%s, %u threads, ceiling of a core %.1f GFLOP/s\n", compute_kernels(c),
           compute_threads(c), ceiling);
    static const uint32_t first_pos[] = {0, 3584, 15872};
    for (int i = 0; i < 3; i++) measure_attend(c, first_pos[i], ceiling);
    measure_delta(c, ceiling);
    compute_close(c);
    return 0;
}
