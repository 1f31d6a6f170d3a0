/* attend.c - shares attention out over the workers.
 *
 * An item is a few tiles of one key head; see body_attend.h for why. Items late in the sequence see
 * the most keys, so they go first and the short ones fill the gaps at the end. */
#include <assert.h>

#include "compute/compute_internal.h"

_Static_assert(WORKER_SCRATCH_FLOATS >=
                   ATTEND_BLOCK * TILE_LANES + ATTEND_TILES * (2 * MAX_HEAD_DIM + 2) * TILE_LANES,
               "no room for the tiles of an item");

typedef struct {
    compute *c;
    const attend_args *a;
    uint32_t n_tiles, n_items; /* of one key head */
    uint32_t per_item;         /* tiles */
} attend_job;

/* Tile `index` of a key head: its query heads run fastest. */
static attend_tile tile_at(const attend_args *a, uint32_t kv_head, uint32_t index) {
    const uint32_t group = a->n_heads / a->n_kv_heads;
    const uint32_t row0 = index / group * TILE_LANES, left = a->n_rows - row0;
    return (attend_tile){.head = kv_head * group + index % group,
                         .row0 = row0,
                         .n_rows = left < TILE_LANES ? left : TILE_LANES};
}

static void attend_item(void *context, size_t item, unsigned worker) {
    const attend_job *job = context;
    const attend_args *a = job->a;
    const uint32_t kv_head = (uint32_t)item % a->n_kv_heads;
    const uint32_t from_end = (uint32_t)item / a->n_kv_heads;
    const uint32_t first = (job->n_items - 1 - from_end) * job->per_item;
    const uint32_t left = job->n_tiles - first;
    const uint32_t n = left < job->per_item ? left : job->per_item;
    attend_tile tiles[ATTEND_TILES];
    for (uint32_t i = 0; i < n; i++) tiles[i] = tile_at(a, kv_head, first + i);
    job->c->kernels->attend_tiles(a, tiles, n, worker_scratch(job->c, worker));
}

void attend(compute *c, const attend_args *a) {
    assert(a->head_dim <= MAX_HEAD_DIM && a->n_keys > 0 && a->n_heads % a->n_kv_heads == 0);
    assert(!a->causal || a->first_pos + a->n_rows <= a->n_keys);
    attend_job job = {.c = c, .a = a};
    const uint32_t n_row_tiles = (a->n_rows + TILE_LANES - 1) / TILE_LANES;
    job.n_tiles = n_row_tiles * (a->n_heads / a->n_kv_heads);
    /* With few tiles every worker getting one is worth more than shared keys. */
    const uint32_t fair = job.n_tiles * a->n_kv_heads / (2 * compute_threads(c));
    job.per_item = fair < 1 ? 1 : fair < ATTEND_TILES ? fair : ATTEND_TILES;
    job.n_items = (job.n_tiles + job.per_item - 1) / job.per_item;
    pool_run(c->workers, (size_t)job.n_items * a->n_kv_heads, attend_item, &job);

    const double n_rows = a->n_rows;
    const double n_scores =
        a->causal ? n_rows * a->first_pos + n_rows * (n_rows + 1) / 2 : n_rows * a->n_keys;
    count_flops(c, 2 * 2.0 * n_scores * a->n_heads * a->head_dim);
}
