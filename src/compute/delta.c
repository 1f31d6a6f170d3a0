/* delta.c - shares the steps of the Gated DeltaNet out over the workers; see body_delta.h for them.
 * Each step reads what the one before wrote for other items, so it begins when that one has
 * ended. */
#include <assert.h>

#include "compute/compute_internal.h"

_Static_assert(WORKER_SCRATCH_FLOATS >= MAX_HEAD_DIM * DELTA_COLUMNS,
               "no room for a block of columns");

enum { KEY_ROWS = 8 }; /* rows of an item of the key step */

typedef struct {
    compute *c;
    const delta_args *a;
    uint32_t n_channels;
} delta_job;

static void conv_item(void *context, size_t item, unsigned worker) {
    (void)worker;
    const delta_job *job = context;
    const uint32_t first = (uint32_t)item * DELTA_CHANNELS, left = job->n_channels - first;
    job->c->kernels->delta_conv(job->a, first, left < DELTA_CHANNELS ? left : DELTA_CHANNELS);
}

static void keys_item(void *context, size_t item, unsigned worker) {
    (void)worker;
    const delta_job *job = context;
    const uint32_t first = (uint32_t)item * KEY_ROWS;
    for (uint32_t r = first; r < job->a->n_rows && r < first + KEY_ROWS; r++)
        job->c->kernels->delta_keys(job->a, r);
}

static void head_item(void *context, size_t item, unsigned worker) {
    const delta_job *job = context;
    job->c->kernels->delta_head(job->a, (uint32_t)item, worker_scratch(job->c, worker));
}

void gated_delta(compute *c, const delta_args *a) {
    assert(a->key_dim <= MAX_HEAD_DIM && a->n_value_heads % a->n_key_heads == 0);
    assert(a->conv_kernel >= 1 && a->conv_kernel <= MAX_CONV_KERNEL);
    const uint32_t value_width = a->n_value_heads * a->value_dim;
    delta_job job = {c, a, 2 * a->n_key_heads * a->key_dim + value_width};
    pool_run(c->workers, (job.n_channels + DELTA_CHANNELS - 1) / DELTA_CHANNELS, conv_item, &job);
    pool_run(c->workers, (a->n_rows + KEY_ROWS - 1) / KEY_ROWS, keys_item, &job);
    pool_run(c->workers, a->n_value_heads, head_item, &job);

    /* Per element of S and token: fade, predict, write, read. */
    const double recurrence = 7.0 * value_width * a->key_dim;
    const double convolution = 2.0 * job.n_channels * a->conv_kernel;
    count_flops(c, a->n_rows * (recurrence + convolution));
}
