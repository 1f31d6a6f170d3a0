/* compute.c - opening a kernel table over a pool, the accounts of time and operations, and the two
 * ceilings of the machine that speed is reported against. */
#include "compute/compute.h"

#include <stdlib.h>

#include "base/cpu.h"
#include "compute/compute_internal.h"

clef_status compute_open(compute **out, const char *kernels, unsigned threads, clef_error *err) {
    const kernel_table *table = NULL;
    TRY(kernels_choose(&table, kernels, err));
    compute *c = calloc(1, sizeof *c);
    if (c == NULL) return clef_fail_memory(err);
    c->kernels = table;
    c->part = CLEF_PART_OTHER;
    c->entered = cpu_seconds();
    clef_status s = pool_open(&c->workers, threads, err);
    if (s == CLEF_OK) {
        const size_t bytes = WORKER_SCRATCH_FLOATS * sizeof(float);
        c->scratch = aligned_alloc(64, pool_threads(c->workers) * bytes);
        if (c->scratch == NULL) s = clef_fail_memory(err);
    }
    if (s != CLEF_OK) {
        compute_close(c);
        return s;
    }
    *out = c;
    return CLEF_OK;
}

void compute_close(compute *c) {
    if (c == NULL) return;
    pool_close(c->workers);
    free(c->scratch);
    free(c);
}

const char *compute_kernels(const compute *c) {
    return c->kernels->name;
}

unsigned compute_threads(const compute *c) {
    return pool_threads(c->workers);
}

void compute_enter(compute *c, int part) {
    const double now = cpu_seconds();
    c->times.seconds[c->part] += now - c->entered;
    c->entered = now;
    c->part = part;
}

compute_times compute_take_times(compute *c) {
    compute_enter(c, c->part);
    const compute_times taken = c->times;
    c->times = (compute_times){0};
    return taken;
}

/* ---- ceilings ----------------------------------------------------------------------------- */

enum { N_TRIES = 9 };

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t n) {
    qsort(values, n, sizeof *values, compare_doubles);
    return values[n / 2];
}

/* Each item writes to a line of its own. */
typedef union {
    struct {
        double flops;
        float value; /* kept, so that the work is not optimised away */
    } done;
    char line[64];
} peak_result;

typedef struct {
    const kernel_table *kernels;
    uint64_t rounds;
    peak_result *results; /* [threads] */
} peak_job;

static void peak_item(void *context, size_t item, unsigned worker) {
    (void)worker;
    const peak_job *j = context;
    peak_result *r = &j->results[item];
    r->done.value = j->kernels->peak(j->rounds, &r->done.flops);
}

/* One item a thread. The rounds are doubled until a try takes 20 ms. */
double compute_peak_gflops(compute *c) {
    const unsigned threads = compute_threads(c);
    peak_job job = {c->kernels, 1000, (peak_result *)(void *)c->scratch};
    double gflops[N_TRIES];
    for (int i = 0; i < N_TRIES;) {
        const double begin = cpu_seconds();
        pool_run(c->workers, threads, peak_item, &job);
        const double seconds = cpu_seconds() - begin;
        if (seconds < 0.02) {
            job.rounds *= 2;
            continue;
        }
        double flops = 0;
        for (unsigned t = 0; t < threads; t++) flops += job.results[t].done.flops;
        gflops[i++] = 1e-9 * flops / seconds;
    }
    return median(gflops, N_TRIES);
}

/* More than the caches of any processor that this is likely to meet. */
#define READ_BYTES ((size_t)512 << 20)
#define READ_PIECE ((size_t)1 << 20)
enum { N_PIECES = (int)(READ_BYTES / READ_PIECE) };

typedef struct {
    unsigned char *memory;
    uint64_t *sums; /* [N_PIECES] */
} read_job;

static void fill_item(void *context, size_t item, unsigned worker) {
    (void)worker;
    const read_job *j = context;
    memset(j->memory + item * READ_PIECE, (int)(item & 255), READ_PIECE);
}

static void read_item(void *context, size_t item, unsigned worker) {
    (void)worker;
    const read_job *j = context;
    const unsigned char *p = j->memory + item * READ_PIECE;
    uint64_t sums[8] = {0};
    for (size_t at = 0; at < READ_PIECE; at += sizeof sums) {
        uint64_t line[8];
        memcpy(line, p + at, sizeof line);
        for (int i = 0; i < 8; i++) sums[i] += line[i];
    }
    for (int i = 1; i < 8; i++) sums[0] += sums[i];
    j->sums[item] = sums[0];
}

clef_status compute_read_gbps(compute *c, double *out, clef_error *err) {
    read_job job = {aligned_alloc(64, READ_BYTES), calloc(N_PIECES, sizeof *job.sums)};
    clef_status s = CLEF_OK;
    if (job.memory == NULL || job.sums == NULL) {
        s = clef_fail_memory(err);
    } else {
        pool_run(c->workers, N_PIECES, fill_item, &job);
        double gbps[N_TRIES];
        for (int i = 0; i < N_TRIES; i++) {
            const double begin = cpu_seconds();
            pool_run(c->workers, N_PIECES, read_item, &job);
            gbps[i] = 1e-9 * (double)READ_BYTES / (cpu_seconds() - begin);
        }
        *out = median(gbps, N_TRIES);
    }
    free(job.memory);
    free(job.sums);
    return s;
}
