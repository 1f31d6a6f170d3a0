/* linearbench.c - how near `linear` comes to this machine's ceilings, at the 9B's shapes.
 *
 * For each shape and number of rows: GFLOP/s by the clock; GFLOP per second of processor time and
 * thread, as a percentage of the same for multiply-adds from registers; and the processor time over
 * max(compute floor, weight-read floor). Processor time is what a machine shared with other work
 * still tells: by the clock the figures then say how much of it one was given. Each try measures
 * the ceiling right before the linear, because the clock rate drifts; medians of the tries' ratios
 * are printed. The weights of consecutive calls differ, as they do in a network: 128 Mi of them, so
 * none is in a cache when its turn comes. Each try measures BF16 weights, then int8 ones, then int8
 * ones with rows that were rounded to 8 and to 16 bits (rounding not counted, as packing is not),
 * and the last column is the ratio of the first's processor time to theirs.
 *
 * Usage: linearbench [threads [rows [kernels]]]; without them 1 and 2 threads and five numbers of
 * rows with the best table. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/arena.h"
#include "base/cpu.h"
#include "compute/kernels.h"

enum { N_TRIES = 7, MAX_ROWS = 2048, MAX_SIDE = 12288 };
#define WEIGHT_BYTES ((size_t)256 << 20)

static const struct {
    uint32_t n_out, n_in;
} shapes[] = {{12288, 4096}, {4096, 12288}, {4096, 4096}, {1024, 4096}, {32, 4096}};

static void fail(const char *what) {
    fprintf(stderr, "linearbench: %s\n", what);
    exit(1);
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values) {
    qsort(values, N_TRIES, sizeof *values, compare_doubles);
    return values[N_TRIES / 2];
}

enum { N_KINDS = 4 };
static const struct {
    const char *name;
    dtype type;
    unsigned bits; /* of the rows; 0: f32 */
} kinds[N_KINDS] = {{"BF16", DTYPE_BF16, 0},
                    {"I8", DTYPE_I8, 0},
                    {"I8 x 8", DTYPE_I8, 8},
                    {"I8 x 16", DTYPE_I8, 16}};

typedef struct {
    float *x, *panels[3], *out;
    uint16_t *weights;
    unsigned char *codes;
} buffers;

/* Seconds of processor time of all threads of this process. */
static double busy_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* GFLOP per second of processor time, on the calling thread. */
static double ceiling(const kernel_table *kernels) {
    double best = 0;
    for (int i = 0; i < 5; i++) {
        double flops = 0;
        const double begin = busy_seconds();
        volatile float keep = kernels->peak(1000000, &flops);
        (void)keep;
        const double rate = 1e-9 * flops / (busy_seconds() - begin);
        if (rate > best) best = rate;
    }
    return best;
}

/* A copy of the weights. int8 codes fill the first half of their memory, the scales follow. */
static matrix weight_copy(const buffers *b, dtype type, uint32_t n_out, uint32_t n_in,
                          size_t copy) {
    const size_t at = copy * n_out * n_in;
    const char *codes = (const char *)b->codes;
    matrix w = {.data = b->weights + at, .type = type, .n_out = n_out, .n_in = n_in};
    if (type == DTYPE_I8) {
        w.data = codes + at;
        w.scales = codes + WEIGHT_BYTES / 2 + at / INT8_BLOCK * sizeof(uint16_t);
    }
    return w;
}

typedef struct {
    double clock_rate[N_TRIES], share[N_TRIES], over[N_TRIES], busy[N_TRIES];
} figures;

static void measure_kind(figures *f, int i, compute *c, const buffers *b, dtype type,
                         const panel *x, uint32_t n_out, double peak, double gbps, size_t *copy) {
    const size_t n_weights = (size_t)n_out * x->n_cols, n_copies = WEIGHT_BYTES / 2 / n_weights;
    const double matrix_bytes =
        (double)n_weights * (type == DTYPE_I8 ? 1.0 + 2.0 / INT8_BLOCK : 2.0);
    const double flops = 2.0 * x->n_rows * (double)n_weights;
    const size_t n_calls = 1 + (size_t)(5e9 / (flops + 200.0 * (double)n_weights));
    const double begin = cpu_seconds(), busy_begin = busy_seconds();
    for (size_t call = 0; call < n_calls; call++) {
        const matrix w = weight_copy(b, type, n_out, x->n_cols, *copy);
        *copy = (*copy + 1) % n_copies;
        linear(c, b->out, n_out, x, &w, NULL, LINEAR_SET);
    }
    f->busy[i] = (busy_seconds() - busy_begin) / (double)n_calls;
    f->clock_rate[i] = 1e-9 * flops * (double)n_calls / (cpu_seconds() - begin);
    f->share[i] = 1e-9 * flops / f->busy[i] / peak;
    const double compute_floor = 1e-9 * flops / peak, read_floor = 1e-9 * matrix_bytes / gbps;
    f->over[i] = f->busy[i] / (compute_floor > read_floor ? compute_floor : read_floor);
}

static void measure(compute *c, const kernel_table *kernels, const buffers *b, uint32_t n_out,
                    uint32_t n_in, uint32_t n_rows, double gbps) {
    const panel rows[3] = {panel_pack(c, b->panels[0], b->x, n_in, n_rows, n_in),
                           panel_round(c, b->panels[1], b->x, n_in, n_rows, n_in, 8),
                           panel_round(c, b->panels[2], b->x, n_in, n_rows, n_in, 16)};
    figures f[N_KINDS];
    double faster[N_KINDS][N_TRIES];
    size_t copy[N_KINDS] = {0};
    for (int i = 0; i < N_TRIES; i++) {
        const double peak = ceiling(kernels);
        for (int k = 0; k < N_KINDS; k++) {
            measure_kind(&f[k], i, c, b, kinds[k].type, &rows[kinds[k].bits / 8], n_out, peak, gbps,
                         &copy[k]);
            faster[k][i] = f[0].busy[i] / f[k].busy[i];
        }
    }
    for (int k = 0; k < N_KINDS; k++)
        printf("%u threads  [%5u x %5u]  %4u rows  %-7s  %6.1f GFLOP/s  %5.1f %% of the ceiling  "
               "%.2f x the floor  %.2f x as fast as BF16\n",
               compute_threads(c), n_out, n_in, n_rows, kinds[k].name, median(f[k].clock_rate),
               100.0 * median(f[k].share), median(f[k].over), median(faster[k]));
    fflush(stdout);
}

/* 1e9 bytes per second of processor time, streamed by one thread. */
static double read_ceiling(const buffers *b) {
    double best = 0;
    for (int i = 0; i < 5; i++) {
        const double begin = busy_seconds();
        uint64_t sum[8] = {0};
        for (size_t at = 0; at < WEIGHT_BYTES; at += 64) {
            uint64_t line[8];
            memcpy(line, (const char *)b->weights + at, 64);
            for (int k = 0; k < 8; k++) sum[k] += line[k];
        }
        for (int k = 1; k < 8; k++) sum[0] += sum[k];
        volatile uint64_t keep = sum[0];
        (void)keep;
        const double rate = 1e-9 * (double)WEIGHT_BYTES / (busy_seconds() - begin);
        if (rate > best) best = rate;
    }
    return best;
}

static float *new_rows(arena *mem) {
    return arena_alloc(mem, (size_t)MAX_ROWS * MAX_SIDE, sizeof(float));
}

int main(int argc, char **argv) {
    /* Rows lie on large pages, as the engine's do; weights on small ones, as a mapped file's. */
    arena mem = {0};
    const buffers b = {new_rows(&mem),
                       {new_rows(&mem), new_rows(&mem), new_rows(&mem)},
                       new_rows(&mem),
                       aligned_alloc(64, WEIGHT_BYTES),
                       aligned_alloc(64, WEIGHT_BYTES)};
    if (b.x == NULL || b.panels[0] == NULL || b.panels[1] == NULL || b.panels[2] == NULL ||
        b.out == NULL || b.weights == NULL || b.codes == NULL)
        fail("out of memory");
    for (size_t i = 0; i < (size_t)MAX_ROWS * MAX_SIDE; i++)
        b.x[i] = (float)(i % 1009) / 1009.0f - 0.5f;
    for (size_t i = 0; i < WEIGHT_BYTES / 2; i++)
        b.weights[i] = bf16_from_float((float)(i % 997) / 997.0f - 0.5f);
    for (size_t i = 0; i < WEIGHT_BYTES / 2; i++) b.codes[i] = (unsigned char)(i % 127);
    for (size_t i = WEIGHT_BYTES / 2; i < WEIGHT_BYTES; i++) b.codes[i] = 0x11; /* 0.000516 */

    const unsigned threads_given = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    const uint32_t rows_given = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    if (rows_given > MAX_ROWS) fail("at most 2048 rows");
    static const uint32_t rows[] = {512, 256, 64, 36, 1};
    for (unsigned threads = 1; threads <= 2; threads++) {
        compute *c = NULL;
        clef_error err = {0};
        const unsigned used = threads_given > 0 ? threads_given : threads;
        if (compute_open(&c, argc > 3 ? argv[3] : NULL, used, &err) != CLEF_OK) fail(err.text);
        const kernel_table *kernels = NULL;
        if (kernels_choose(&kernels, compute_kernels(c), &err) != CLEF_OK) fail(err.text);
        const double gbps = read_ceiling(&b);
        printf("%s: a thread does %.1f GFLOP/s from registers and reads %.1f GB/s\n",
               compute_kernels(c), ceiling(kernels), gbps);
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
            for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
                if (rows_given == 0 || r == 0)
                    measure(c, kernels, &b, shapes[s].n_out, shapes[s].n_in,
                            rows_given > 0 ? rows_given : rows[r], gbps);
        compute_close(c);
        if (threads_given > 0) break;
    }
    arena_free(&mem);
    free(b.weights);
    free(b.codes);
    return 0;
}
