/* linear.c - x W^T for packed rows and a weight as the file stores it.
 *
 * The rows (the panel): the columns are cut into blocks of LINEAR_BLOCK; inside a block the rows
 * stand in tiles of TILE_LANES (the last one of HALF_LANES when no more are left), and inside a
 * tile columns are outermost and the rows lie in lanes. A tile of a block is thus 16 KiB in one
 * piece, and a block of all tiles is one piece too: with the tiles outermost a block's tiles would
 * lie a power of two apart and share a few sets of the cache. Missing lanes hold zeros.
 *
 * An item of work is a block of outputs for up to MAX_ROWS rows. For each block of columns it
 * widens its weights into the worker's scratch, where they stay while every tile of rows passes,
 * and adds the tiles' results to totals beside them. A weight comes from memory once; the rows come
 * from the shared cache once per block of outputs. Between tiles the item asks for the weights of
 * its next block of columns: their rows are too far apart for the processor to guess. In its last
 * block it asks for the first weights of the item that comes next.
 *
 * Few rows of f32 that would leave lanes empty change places with the weights: TILE_LANES outputs
 * lie in lanes, laid across as they are widened, and up to tile_outs rows are broadcast, so that
 * any number of rows fills its tiles. Their panel holds, per block of columns, one row behind the
 * other. A group of outputs stays in the first-level cache while all rows pass, and the next group
 * is asked for meanwhile.
 *
 * The order of one output: per block one chain of fused multiply-adds in rising k from zero; block
 * results added in rising order to 0.0f; the total added to `out` in LINEAR_ADD; the bias last. How
 * outputs are cut into items, and what else a tile holds, does not enter it. */
#include "compute/compute.h"

#include <assert.h>

#include "compute/compute_internal.h"

enum {
    MAX_OUTS = 192,    /* outputs of an item: 192 KiB of widened weights */
    MAX_OUTS_FEW = 96, /* the same when the rows are few */
    FEW_ROWS = 128,
    MAX_ROWS = 512 /* rows of an item: 384 KiB of totals; a multiple of TILE_LANES */
};
_Static_assert(MAX_OUTS *(LINEAR_BLOCK + MAX_ROWS) <= WORKER_SCRATCH_FLOATS, "scratch too small");
_Static_assert(FEW_ROWS <= MAX_ROWS && MAX_OUTS_FEW % TILE_LANES == 0, "groups would be cut");
_Static_assert(LINEAR_BLOCK % INT8_BLOCK == 0, "blocks of codes would be cut");
_Static_assert(HALF_OUTS % TILE_OUTS == 0 && MAX_OUTS % HALF_OUTS == 0, "tiles would be cut");

static size_t min_size(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Lanes that n rows take: whole tiles, and for the rest the smaller tile that holds it. */
static size_t lanes_for(size_t n_rows) {
    const size_t rest = n_rows % TILE_LANES;
    return n_rows - rest + (rest == 0 ? 0 : rest <= HALF_LANES ? HALF_LANES : TILE_LANES);
}

/* Whether rows of f32 are broadcast. It costs 2 % more than tiles that are full, so those must have
 * more lanes empty. */
static bool broadcasts(size_t n_rows) {
    enum { MOST_EMPTY = 32 }; /* one lane for so many rows */
    return n_rows <= FEW_ROWS && (lanes_for(n_rows) - n_rows) * MOST_EMPTY > n_rows;
}

/* Rounded rows take less: codes of two bytes at most, and a scale for 32 of them. */
size_t panel_floats(uint32_t n_rows, uint32_t n_cols) {
    return lanes_for(n_rows) * n_cols;
}

/* Floats that n columns of a panel take in each lane. */
static size_t lane_floats(const kernel_table *kernels, unsigned bits, size_t n) {
    return bits == 0 ? n : n / INT8_BLOCK * kernels->code_floats[bits == 16];
}

/* ---- packing ------------------------------------------------------------------------------ */

typedef struct {
    const kernel_table *kernels;
    float *data;
    const float *x;
    size_t stride, n_rows, n_cols;
    unsigned bits; /* round_item only */
} pack_job;

/* Packs one tile of rows, all columns. */
static void pack_for_broadcast(const pack_job *j, const float *x, size_t row0, size_t n_rows) {
    for (size_t k0 = 0; k0 < j->n_cols; k0 += LINEAR_BLOCK) {
        const size_t n_k = min_size(LINEAR_BLOCK, j->n_cols - k0);
        float *to = j->data + k0 * j->n_rows + row0 * n_k;
        for (size_t row = 0; row < n_rows; row++)
            memcpy(to + row * n_k, x + row * j->stride + k0, n_k * sizeof *to);
    }
}

/* The same into lanes, 16 columns at a time: a cache line of each row. */
static void pack_item(void *context, size_t item, unsigned worker) {
    (void)worker;
    const pack_job *j = context;
    const size_t row0 = item * TILE_LANES, n_rows = min_size(TILE_LANES, j->n_rows - row0);
    const size_t lanes = lanes_for(n_rows), all_lanes = lanes_for(j->n_rows);
    const float *x = j->x + row0 * j->stride;
    if (broadcasts(j->n_rows)) {
        pack_for_broadcast(j, x, row0, n_rows);
        return;
    }
    for (size_t k0 = 0; k0 < j->n_cols; k0 += LINEAR_BLOCK) {
        const size_t n_k = min_size(LINEAR_BLOCK, j->n_cols - k0);
        float *to = j->data + k0 * all_lanes + row0 * n_k;
        for (size_t k1 = 0; k1 < n_k; k1 += 16) {
            const size_t end = min_size(k1 + 16, n_k);
            for (size_t row = 0; row < n_rows; row++)
                for (size_t k = k1; k < end; k++) to[k * lanes + row] = x[row * j->stride + k0 + k];
            for (size_t row = n_rows; row < lanes; row++)
                for (size_t k = k1; k < end; k++) to[k * lanes + row] = 0.0f;
        }
    }
}

panel panel_pack(compute *c, float *data, const float *x, size_t stride, uint32_t n_rows,
                 uint32_t n_cols) {
    pack_job job = {c->kernels, data, x, stride, n_rows, n_cols, 0};
    pool_run(c->workers, ((size_t)n_rows + TILE_LANES - 1) / TILE_LANES, pack_item, &job);
    return (panel){data, n_rows, n_cols, 0};
}

/* Rounds one tile of rows, all columns. */
static void round_item(void *context, size_t item, unsigned worker) {
    (void)worker;
    const pack_job *j = context;
    const size_t row0 = item * TILE_LANES, n_rows = min_size(TILE_LANES, j->n_rows - row0);
    const size_t all_lanes = lanes_for(j->n_rows);
    for (size_t k0 = 0; k0 < j->n_cols; k0 += LINEAR_BLOCK) {
        const size_t n_k = min_size(LINEAR_BLOCK, j->n_cols - k0);
        const size_t at = lane_floats(j->kernels, j->bits, k0) * all_lanes +
                          lane_floats(j->kernels, j->bits, n_k) * row0;
        j->kernels->round_rows(j->data + at, j->x + row0 * j->stride + k0, j->stride,
                               (uint32_t)n_rows, (uint32_t)lanes_for(n_rows), (uint32_t)n_k,
                               j->bits);
    }
}

panel panel_round(compute *c, float *data, const float *x, size_t stride, uint32_t n_rows,
                  uint32_t n_cols, unsigned bits) {
    assert(n_cols % INT8_BLOCK == 0 && (bits == 8 || bits == 16));
    pack_job job = {c->kernels, data, x, stride, n_rows, n_cols, bits};
    pool_run(c->workers, ((size_t)n_rows + TILE_LANES - 1) / TILE_LANES, round_item, &job);
    return (panel){data, n_rows, n_cols, bits};
}

/* ---- multiplying -------------------------------------------------------------------------- */

typedef struct {
    const compute *c;
    float *out;
    size_t stride;
    const panel *x;
    const matrix *w;
    const float *bias;
    linear_mode mode;
    size_t item_outs, n_row_items, n_items;
    size_t weight_bits; /* of one stored value */
} linear_job;

enum { CACHE_LINE = 64 };

/* Memory that is needed soon: n rows of `bytes` bytes, asked for a few lines at a time. */
typedef struct {
    const char *data;
    size_t n, bytes, stride;
    size_t at; /* bytes of the first row that are asked for */
} soon;

static size_t count_lines(const soon *s) {
    return s->n * ((s->bytes + CACHE_LINE - 1) / CACHE_LINE);
}

static void fetch_lines(soon *s, size_t n_lines) {
    for (; n_lines > 0 && s->n > 0; n_lines--) {
        __builtin_prefetch(s->data + s->at, 0, 2);
        s->at += CACHE_LINE;
        if (s->at >= s->bytes) {
            s->at = 0;
            s->data += s->stride;
            s->n--;
        }
    }
}

/* The outputs of an item, and the weights of it in one block of columns. */
typedef struct {
    size_t row0, n_rows, out0, n_out;
} item_range;

static item_range range_of(const linear_job *j, size_t item) {
    const size_t row0 = item % j->n_row_items * MAX_ROWS,
                 out0 = item / j->n_row_items * j->item_outs;
    return (item_range){row0, min_size(MAX_ROWS, j->x->n_rows - row0), out0,
                        min_size(j->item_outs, j->w->n_out - out0)};
}

static soon weights_soon(const linear_job *j, const item_range *r, size_t k0) {
    const size_t n_in = j->w->n_in, bits = j->weight_bits;
    return (soon){(const char *)j->w->data + (r->out0 * n_in + k0) * bits / 8, r->n_out,
                  min_size(LINEAR_BLOCK, n_in - k0) * bits / 8, n_in * bits / 8, 0};
}

/* What the item needs after its block of columns from k0 on. */
static soon weights_after(const linear_job *j, size_t item, const item_range *r, size_t k0) {
    if (k0 + LINEAR_BLOCK < j->w->n_in) return weights_soon(j, r, k0 + LINEAR_BLOCK);
    /* With threads taking turns, this one's next item is so far away. */
    item += compute_threads(j->c);
    if (item >= j->n_items) return (soon){0};
    const item_range other = range_of(j, item);
    return weights_soon(j, &other, 0);
}

/* Weights of an item for one block of columns, widened as the kernels take them. */
typedef struct {
    const float *values; /* [n_out][n_k], or codes in the same order */
    const float *scales; /* of codes: [n_out][n_k / INT8_BLOCK] */
    size_t n_out, n_k;
} block_weights;

static void multiply_tile(const linear_job *j, bool half, float *total, const float *x,
                          const block_weights *w, size_t o, size_t n_out) {
    const kernel_table *kernels = j->c->kernels;
    const uint32_t n_k = (uint32_t)w->n_k;
    if (j->x->bits == 0)
        (half ? kernels->tile_half : kernels->tile)(total, x, w->values + o * n_k, n_k, 1,
                                                    (uint32_t)n_out, n_k);
    else
        (half ? kernels->tile_codes_half : kernels->tile_codes)(
            total, x, (const char *)w->values + o * n_k * kernels->code_bytes,
            w->scales + o * (n_k / INT8_BLOCK), (uint32_t)n_out, n_k, j->x->bits);
}

/* total[tile][output][lane] += one block of columns. x: the block of the item's rows, behind which
 * the next block follows when the item has all rows; x_left floats may be read from it on. `next`
 * is asked for meanwhile. Few rows are not asked for: the processor
 * finds them alone, and a core has only so many requests under way. */
static void multiply_block(const linear_job *j, float *total, const float *x, size_t x_left,
                           const block_weights *w, size_t n_lanes, soon next) {
    const size_t tile_outs = j->c->kernels->tile_outs;
    const size_t n_groups = (w->n_out + tile_outs - 1) / tile_outs;
    const size_t n_halves = n_lanes % TILE_LANES == 0 ? 0 : (w->n_out + HALF_OUTS - 1) / HALF_OUTS;
    const size_t n_calls = n_lanes / TILE_LANES * n_groups + n_halves;
    const size_t next_lines = count_lines(&next) / n_calls + 1;
    const size_t lane_size = lane_floats(j->c->kernels, j->x->bits, w->n_k);
    for (size_t lane = 0; lane < n_lanes; lane += TILE_LANES) {
        const bool half = n_lanes - lane < TILE_LANES;
        const size_t lanes = half ? HALF_LANES : TILE_LANES, outs = half ? HALF_OUTS : tile_outs;
        const size_t tile_end = (lane + lanes) * lane_size;
        soon next_tile = {(const char *)(x + tile_end), 1,
                          min_size(x_left - tile_end, TILE_LANES * lane_size) * sizeof *x, 0, 0};
        const size_t tile_lines = count_lines(&next_tile) / n_groups + 1;
        for (size_t o = 0; o < w->n_out; o += outs) {
            fetch_lines(&next, next_lines);
            if (n_lanes > FEW_ROWS) fetch_lines(&next_tile, tile_lines);
            multiply_tile(j, half, total + lane * w->n_out + o * lanes, x + lane * lane_size, w, o,
                          min_size(outs, w->n_out - o));
        }
    }
}

static void store_totals(const linear_job *j, const float *total, const item_range *r) {
    for (size_t row = 0; row < r->n_rows; row += TILE_LANES) {
        const size_t n_rows = min_size(r->n_rows - row, TILE_LANES);
        j->c->kernels->store_tile(
            j->out + (r->row0 + row) * j->stride + r->out0, j->stride, total + row * r->n_out,
            (uint32_t)lanes_for(n_rows), (uint32_t)n_rows, (uint32_t)r->n_out,
            j->bias == NULL ? NULL : j->bias + r->out0, j->mode == LINEAR_ADD);
    }
}

static block_weights widen_block(const linear_job *j, float *memory, const item_range *r, size_t k0,
                                 size_t n_k) {
    const kernel_table *kernels = j->c->kernels;
    const size_t n_in = j->w->n_in, n_blocks = n_k / INT8_BLOCK;
    if (j->x->bits == 0) {
        for (size_t o = 0; o < r->n_out; o++)
            kernels->widen(memory + o * n_k, j->w, (r->out0 + o) * n_in + k0, n_k);
        return (block_weights){memory, NULL, r->n_out, n_k};
    }
    /* Codes take half of the memory at most, and a scale is a float for 32 of them. */
    char *codes = (char *)memory;
    float *scales = memory + r->n_out * n_k / 2;
    for (size_t o = 0; o < r->n_out; o++)
        kernels->widen_codes(codes + o * n_k * kernels->code_bytes, scales + o * n_blocks, j->w,
                             (r->out0 + o) * n_in + k0, n_k);
    return (block_weights){memory, scales, r->n_out, n_k};
}

static void linear_item(void *context, size_t item, unsigned worker) {
    const linear_job *j = context;
    const kernel_table *kernels = j->c->kernels;
    const unsigned bits = j->x->bits;
    const size_t n_in = j->w->n_in;
    const item_range r = range_of(j, item);
    const size_t n_lanes = lanes_for(r.n_rows), all_lanes = lanes_for(j->x->n_rows);
    const size_t x_end = lane_floats(kernels, bits, n_in) * all_lanes;
    float *total = worker_scratch(j->c, worker), *weights = total + (size_t)MAX_ROWS * MAX_OUTS;

    memset(total, 0, n_lanes * r.n_out * sizeof *total);
    for (size_t k0 = 0; k0 < n_in; k0 += LINEAR_BLOCK) {
        const size_t n_k = min_size(LINEAR_BLOCK, n_in - k0);
        const block_weights w = widen_block(j, weights, &r, k0, n_k);
        const size_t x0 =
            lane_floats(kernels, bits, k0) * all_lanes + lane_floats(kernels, bits, n_k) * r.row0;
        multiply_block(j, total, j->x->data + x0, x_end - x0, &w, n_lanes,
                       weights_after(j, item, &r, k0));
    }
    store_totals(j, total, &r);
}

/* ---- rows that are broadcast --------------------------------------------------------------- */

/* total[row][output] += one block of columns of TILE_LANES outputs; `next` is asked for. */
static void multiply_group(const linear_job *j, float *total, const float *x, size_t n_rows,
                           const float *weights, uint32_t n_k, soon next) {
    const size_t tile_rows = j->c->kernels->tile_outs;
    const size_t n_tiles = (n_rows + tile_rows - 1) / tile_rows;
    const size_t next_lines = count_lines(&next) / n_tiles + 1;
    for (size_t tile = 0; tile < n_tiles; tile++) { /* of equal size, or nearly */
        const size_t row = n_rows * tile / n_tiles, end = n_rows * (tile + 1) / n_tiles;
        fetch_lines(&next, next_lines);
        j->c->kernels->tile(total + row * TILE_LANES, weights, x + row * n_k, n_k, 1,
                            (uint32_t)(end - row), n_k);
    }
}

static void store(const linear_job *j, float *to, float value, size_t o) {
    if (j->mode == LINEAR_ADD) value = *to + value;
    if (j->bias != NULL) value += j->bias[o];
    *to = value;
}

static void broadcast_item(void *context, size_t item, unsigned worker) {
    const linear_job *j = context;
    const size_t n_in = j->w->n_in;
    const item_range r = range_of(j, item);
    const size_t n_groups = (r.n_out + TILE_LANES - 1) / TILE_LANES;
    float *total = worker_scratch(j->c, worker); /* [n_groups][n_rows][TILE_LANES] */
    float *weights = total + (size_t)MAX_ROWS * MAX_OUTS;

    memset(total, 0, n_groups * r.n_rows * TILE_LANES * sizeof *total);
    for (size_t k0 = 0; k0 < n_in; k0 += LINEAR_BLOCK) {
        const uint32_t n_k = (uint32_t)min_size(LINEAR_BLOCK, n_in - k0);
        for (size_t o = 0; o < r.n_out; o += TILE_LANES) {
            const item_range left = {r.row0, r.n_rows, r.out0 + o + TILE_LANES,
                                     r.n_out - min_size(r.n_out, o + TILE_LANES)};
            soon next =
                left.n_out > 0 ? weights_soon(j, &left, k0) : weights_after(j, item, &r, k0);
            next.n = min_size(next.n, TILE_LANES);
            j->c->kernels->widen_across(weights, j->w, (r.out0 + o) * n_in + k0,
                                        (uint32_t)min_size(TILE_LANES, r.n_out - o), n_k);
            multiply_group(j, total + o * r.n_rows, j->x->data + k0 * r.n_rows, r.n_rows, weights,
                           n_k, next);
        }
    }
    for (size_t row = 0; row < r.n_rows; row++)
        for (size_t o = 0; o < r.n_out; o++) {
            const size_t at = (o / TILE_LANES * r.n_rows + row) * TILE_LANES + o % TILE_LANES;
            store(j, j->out + row * j->stride + r.out0 + o, total[at], r.out0 + o);
        }
}

/* Outputs of an item: as many as fit, because each item walks over all rows, but an equal share for
 * all threads, and several items a thread for the case that one of them is held up. */
static size_t choose_item_outs(size_t n_out, size_t n_rows, size_t threads, size_t unit) {
    enum { LEAST_ITEMS = 4 }; /* of a thread */
    const size_t most = n_rows > FEW_ROWS ? MAX_OUTS : MAX_OUTS_FEW;
    const size_t needed = (n_out + threads * most - 1) / (threads * most);
    const size_t n_items = threads * (needed < LEAST_ITEMS ? LEAST_ITEMS : needed);
    const size_t share = (n_out + n_items - 1) / n_items;
    return min_size((share + unit - 1) / unit * unit, most);
}

void linear(compute *c, float *out, size_t stride, const panel *x, const matrix *w,
            const float *bias, linear_mode mode) {
    assert(x->n_cols == w->n_in && (x->bits == 0 || w->scales != NULL));
    if (w->n_out == 0) return;
    const bool across = x->bits == 0 && broadcasts(x->n_rows);
    linear_job job = {.c = c,
                      .out = out,
                      .stride = stride,
                      .x = x,
                      .w = w,
                      .bias = bias,
                      .mode = mode,
                      .item_outs = choose_item_outs(w->n_out, x->n_rows, compute_threads(c),
                                                    across ? TILE_LANES : TILE_OUTS),
                      .n_row_items = ((size_t)x->n_rows + MAX_ROWS - 1) / MAX_ROWS,
                      .weight_bits = dtype_bits(w->type)};
    const size_t n_out_items = (w->n_out + job.item_outs - 1) / job.item_outs;
    job.n_items = n_out_items * job.n_row_items;
    pool_run(c->workers, job.n_items, across ? broadcast_item : linear_item, &job);
    count_flops(c, 2.0 * x->n_rows * w->n_out * w->n_in);
}

void matrix_row(const compute *c, float *out, const matrix *w, size_t row) {
    assert(row < w->n_out);
    c->kernels->widen(out, w, row * w->n_in, w->n_in);
}

size_t compute_scratch_bytes(unsigned threads, uint32_t n_rows, uint32_t n_out, uint32_t n_in,
                             uint32_t head_dim) {
    const size_t across =
        broadcasts(n_rows) ? choose_item_outs(n_out, n_rows, threads, TILE_LANES) : 0;
    size_t outs = choose_item_outs(n_out, n_rows, threads, TILE_OUTS);
    if (across > outs) outs = across;
    const size_t totals = lanes_for(min_size(n_rows, MAX_ROWS)) * outs;
    const size_t tiles =
        ATTEND_BLOCK * TILE_LANES + (size_t)ATTEND_TILES * (2 * (size_t)head_dim + 2) * TILE_LANES;
    const size_t columns = (size_t)head_dim * DELTA_COLUMNS;
    size_t first = totals > tiles ? totals : tiles;
    if (columns > first) first = columns;
    const size_t floats = first + outs * min_size(LINEAR_BLOCK, n_in);
    return threads * min_size(floats, WORKER_SCRATCH_FLOATS) * sizeof(float);
}
