/* compute_internal.h - what the verbs of this folder share behind the opaque `compute`. */
#ifndef COMPUTE_COMPUTE_INTERNAL_H
#define COMPUTE_COMPUTE_INTERNAL_H

#include "compute/kernels.h"

/* Scratch memory of each worker, aligned to 64 bytes; a verb's items may use all of it and find
 * nothing in it that they may rely on. 576 KiB: the widened weights and totals of `linear` fill it;
 * a tile of attention with head_dim 512 (queries, ATTEND_BLOCK x 16 scores, output) needs 68 KiB.
 * Each verb asserts its own need. */
enum { WORKER_SCRATCH_FLOATS = 144 * 1024 };

struct compute {
    const kernel_table *kernels;
    pool *workers;
    float *scratch; /* [threads][WORKER_SCRATCH_FLOATS] */
    int part;       /* the one that time is charged to */
    double entered; /* when, cpu_seconds */
    compute_times times;
};

static inline float *worker_scratch(const compute *c, unsigned worker) {
    return c->scratch + (size_t)worker * WORKER_SCRATCH_FLOATS;
}

static inline void count_flops(compute *c, double flops) {
    c->times.flops[c->part] += flops;
}

#endif
