/* vision.c - the tower's blocks over the patches of one picture or video.
 *
 *     x = patch W + b + interpolated position row
 *     each block:  x += proj(attention(norm1(x)));  x += fc2(gelu_tanh(fc1(norm2(x))))
 *     out = fc2(gelu_erf(fc1(norm(x), four rows of a merge block side by side)))
 *
 * Attention sees one frame group: a whole picture, or two frames of a video. So a block goes over
 * the rows twice, a few whole groups at a time: first keys and values of all rows, then, in steps,
 * everything else. Held at once are x, keys and values of those groups, and the buffers of a step;
 * never a matrix of scores, and pixels become patches only when a step comes to them.
 *
 * Traps: rows are in merge-block order, so their place in the grid is not their number
 * (place_of_row); the two GELUs differ; the rotation's angles count patches, not tokens, and know
 * no time; the position table is sampled with corners aligned, with torch's linspace in f32. */
#include "model/vision.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compute/fmath.h"

static const float norm_eps = 1e-6f;
static const double rotary_theta = 10000.0;

/* A place of the position table's rows or columns: between `low` and `high`, `part` of the way. */
typedef struct {
    uint32_t low, high;
    float part;
} sample;

/* What comes next. A block goes over a batch of groups twice. */
typedef enum { EMBED, KEYS_AND_VALUES, MIX_AND_FEED, MERGE, COMPLETE } phase;

struct vision {
    const model *m;
    vision_input in;
    float *out;
    phase next;
    uint32_t block, begin, row; /* of the next step: block, first row of its batch, first row */
    uint32_t n_rows, group, max_rows; /* patches in all, of a frame group, of a step */
    uint32_t batch;                   /* rows of the groups whose keys and values are held */
    float *x;                         /* [n_rows, hidden] */
    float *kv;                        /* [batch, 2 hidden]: keys, then values of a row */
    float *y;                         /* [max_rows, hidden] */
    float *wide;                      /* [max_rows, wide_floats] */
    float *panel;
    float *cos, *sin;           /* [max_rows, head_dim / 2]: of the rows of a step */
    float *edge_cos, *edge_sin; /* [h + w, head_dim / 4]: of grid rows, then of grid columns */
    sample *edge;               /* [h + w]: their places in the position table */
    size_t done;                /* rows times passes over them */
    arena mem;
};

/* ---- memory ---- */

static uint32_t larger(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* Floats of a row of `wide`: pixels, queries, the MLP, or a fourth of a merge block's 4 hidden. */
static uint32_t wide_floats(const vision_sizes *v) {
    return larger(larger(VISION_PATCH_VALUES, v->intermediate), v->hidden);
}

static bool reserve(vision *t, const config *cfg) {
    const vision_sizes *v = &cfg->vision;
    const size_t row = v->hidden * sizeof(float), quarter = v->hidden / v->n_heads / 4;
    const size_t edges = (size_t)t->in.grid.h + t->in.grid.w;
    t->x = arena_alloc(&t->mem, t->n_rows, row);
    t->kv = arena_alloc(&t->mem, t->batch, 2 * row);
    t->y = arena_alloc(&t->mem, t->max_rows, row);
    t->wide = arena_alloc(&t->mem, t->max_rows, wide_floats(v) * sizeof(float));
    /* A merge block is a row four times as wide, of which there are a fourth. */
    size_t packed = panel_floats(t->max_rows, wide_floats(v));
    const size_t merged = panel_floats(t->max_rows / 4, 4 * v->hidden);
    if (merged > packed) packed = merged;
    t->panel = arena_alloc(&t->mem, packed, sizeof(float));
    t->cos = arena_alloc(&t->mem, t->max_rows, 2 * quarter * sizeof(float));
    t->sin = arena_alloc(&t->mem, t->max_rows, 2 * quarter * sizeof(float));
    t->edge_cos = arena_alloc(&t->mem, edges, quarter * sizeof(float));
    t->edge_sin = arena_alloc(&t->mem, edges, quarter * sizeof(float));
    t->edge = arena_alloc(&t->mem, edges, sizeof *t->edge);
    return t->x != NULL && t->kv != NULL && t->y != NULL && t->wide != NULL && t->panel != NULL &&
           t->cos != NULL && t->sin != NULL && t->edge_cos != NULL && t->edge_sin != NULL &&
           t->edge != NULL;
}

/* A tower without memory: the sizes of its parts. */
static vision shape(const vision_input *in, uint32_t max_rows) {
    const media_grid g = in->grid;
    assert(g.t > 0 && g.h > 0 && g.w > 0 && g.h % VISION_MERGE == 0 && g.w % VISION_MERGE == 0);
    assert(max_rows >= 4 && (uint64_t)g.t * g.h * g.w <= UINT32_MAX);
    vision t = {.in = *in, .group = g.h * g.w, .n_rows = g.t * g.h * g.w};
    t.max_rows = max_rows - max_rows % 4; /* whole merge blocks */
    if (t.max_rows > t.n_rows) t.max_rows = t.n_rows;
    /* As many whole groups as fill a step: the groups of a video may be tiny. */
    const uint32_t groups = larger(t.max_rows / t.group, 1);
    t.batch = (groups < g.t ? groups : g.t) * t.group;
    return t;
}

size_t vision_bytes(const config *cfg, media_grid grid, uint32_t max_rows) {
    vision t = shape(&(vision_input){.grid = grid}, max_rows);
    t.mem.count_only = true;
    const size_t bytes = reserve(&t, cfg) ? t.mem.total_bytes : SIZE_MAX;
    arena_free(&t.mem);
    return bytes;
}

/* ---- places ---- */

typedef struct {
    uint32_t row, column;
} place;

/* Where patch `row` of the matrix lies in its frame: merge blocks row by row, inside a block its
 * two rows of two. */
static place place_of_row(const vision *t, uint32_t row) {
    const uint32_t p = row % t->group, block = p / 4, across = t->in.grid.w / 2;
    return (place){.row = block / across * 2 + p / 2 % 2, .column = block % across * 2 + p % 2};
}

/* n places over `side` rows of the table, as torch.linspace(0, side - 1, n) gives them: counted
 * from the nearer end, in f32. */
static void sample_side(sample *out, uint32_t side, uint32_t n) {
    const float last = (float)(side - 1);
    const float step = n > 1 ? last / (float)(n - 1) : 0.0f;
    for (uint32_t i = 0; i < n; i++) {
        const float at = i < n / 2 ? step * (float)i : last - step * (float)(n - 1 - i);
        out[i].low = (uint32_t)at;
        out[i].high = out[i].low + 1 < side ? out[i].low + 1 : side - 1;
        out[i].part = at - (float)out[i].low;
    }
}

/* Angles of the first n places along one side; `quarter` frequencies, each rounded as torch does.
 */
static void angles_of_side(float *cos, float *sin, uint32_t quarter, uint32_t n) {
    for (uint32_t k = 0; k < quarter; k++) {
        const float exponent = (float)(2 * k) / (float)(2 * quarter);
        const float frequency = 1.0f / (float)pow(rotary_theta, (double)exponent);
        for (uint32_t i = 0; i < n; i++)
            fmath_sincos(&sin[i * quarter + k], &cos[i * quarter + k], (float)i * frequency);
    }
}

static void prepare_sides(vision *t) {
    const media_grid g = t->in.grid;
    const vision_sizes *v = &t->m->cfg->vision;
    const uint32_t quarter = v->hidden / v->n_heads / 4;
    const size_t columns = (size_t)g.h * quarter;
    sample_side(t->edge, v->side, g.h);
    sample_side(t->edge + g.h, v->side, g.w);
    angles_of_side(t->edge_cos, t->edge_sin, quarter, g.h);
    angles_of_side(t->edge_cos + columns, t->edge_sin + columns, quarter, g.w);
}

/* The angles of rows first .. first + n - 1 into t->cos and t->sin: those of the grid row, then
 * those of the grid column. */
static void gather_angles(vision *t, uint32_t first, uint32_t n) {
    const vision_sizes *v = &t->m->cfg->vision;
    const size_t quarter = v->hidden / v->n_heads / 4, bytes = quarter * sizeof(float);
    for (uint32_t i = 0; i < n; i++) {
        const place p = place_of_row(t, first + i);
        const size_t to = 2 * quarter * i, row = quarter * p.row;
        const size_t column = quarter * ((size_t)t->in.grid.h + p.column);
        memcpy(t->cos + to, t->edge_cos + row, bytes);
        memcpy(t->sin + to, t->edge_sin + row, bytes);
        memcpy(t->cos + to + quarter, t->edge_cos + column, bytes);
        memcpy(t->sin + to + quarter, t->edge_sin + column, bytes);
    }
}

/* ---- steps ---- */

/* The linear of `n` rows that are packed; dense or strided output. */
static void project(const vision *t, float *out, size_t stride, const panel *x,
                    const linear_weights *w, linear_mode mode) {
    linear(t->m->c, out, stride, x, &w->w, w->b, mode);
}

static panel pack(const vision *t, const float *x, uint32_t n_rows, uint32_t n_cols) {
    compute_enter(t->m->c, CLEF_PART_LINEARS);
    return panel_pack(t->m->c, t->panel, x, n_cols, n_rows, n_cols);
}

/* Norms n rows from `first` on into t->y. */
static void norm_rows(const vision *t, uint32_t first, uint32_t n, const norm_weights *w) {
    const uint32_t h = t->m->cfg->vision.hidden;
    compute_enter(t->m->c, CLEF_PART_OTHER);
    layer_norm(t->m->c, t->y, t->x + (size_t)first * h, w->w, w->b, n, h, norm_eps);
}

static void rotate_heads(const vision *t, float *x, size_t stride, uint32_t n) {
    const vision_sizes *v = &t->m->cfg->vision;
    const uint32_t head_dim = v->hidden / v->n_heads;
    rotate(t->m->c, &(rotate_args){.x = x,
                                   .stride = stride,
                                   .head_stride = head_dim,
                                   .n_rows = n,
                                   .n_heads = v->n_heads,
                                   .head_dim = head_dim,
                                   .rotary_dim = head_dim,
                                   .cos = t->cos,
                                   .sin = t->sin});
}

/* Adds the interpolated position rows to n embedded rows. The four products are rounded and added
 * in the reference's order. */
static void add_positions(vision *t, uint32_t first, uint32_t n) {
    const vision_sizes *v = &t->m->cfg->vision;
    const matrix *table = &t->m->w->vision.positions;
    const size_t h = v->hidden;
    float *corners = t->wide; /* [4, h] */
    for (uint32_t i = 0; i < n; i++) {
        const place p = place_of_row(t, first + i);
        const sample r = t->edge[p.row], c = t->edge[t->in.grid.h + p.column];
        const uint32_t rows[4] = {r.low, r.low, r.high, r.high};
        const uint32_t columns[4] = {c.low, c.high, c.low, c.high};
        const float shares[4] = {(1.0f - r.part) * (1.0f - c.part), (1.0f - r.part) * c.part,
                                 r.part * (1.0f - c.part), r.part * c.part};
        for (size_t k = 0; k < 4; k++)
            matrix_row(t->m->c, corners + k * h, table, (size_t)rows[k] * v->side + columns[k]);
        float *x = t->x + ((size_t)first + i) * h;
        for (size_t d = 0; d < h; d++) {
            float sum = corners[d] * shares[0];
            for (size_t k = 1; k < 4; k++) sum = sum + corners[k * h + d] * shares[k];
            x[d] += sum;
        }
    }
}

static void embed(vision *t, uint32_t first, uint32_t n) {
    const size_t h = t->m->cfg->vision.hidden;
    compute_enter(t->m->c, CLEF_PART_OTHER);
    t->in.patches(t->in.patches_context, t->wide, first, n);
    const panel p = pack(t, t->wide, n, VISION_PATCH_VALUES);
    project(t, t->x + first * h, h, &p, &t->m->w->vision.patch, LINEAR_SET);
    compute_enter(t->m->c, CLEF_PART_OTHER);
    add_positions(t, first, n);
}

/* Keys and values of n rows, to where row `first` stands in the batch that begins at `begin`. */
static void keys_and_values(vision *t, const vision_block *w, uint32_t begin, uint32_t first,
                            uint32_t n) {
    const size_t h = t->m->cfg->vision.hidden;
    float *k = t->kv + (first - begin) * 2 * h;
    norm_rows(t, first, n, &w->norm1);
    const panel p = pack(t, t->y, n, (uint32_t)h);
    linear(t->m->c, k, 2 * h, &p, &w->k, w->k_bias, LINEAR_SET);
    linear(t->m->c, k + h, 2 * h, &p, &w->v, w->v_bias, LINEAR_SET);
    compute_enter(t->m->c, CLEF_PART_ATTENTION);
    gather_angles(t, first, n);
    rotate_heads(t, k, 2 * h, n);
}

/* Attention of n rows, whose queries stand in t->wide, into t->y: group by group. */
static void attend_groups(const vision *t, uint32_t begin, uint32_t first, uint32_t n) {
    const vision_sizes *v = &t->m->cfg->vision;
    const size_t h = v->hidden;
    const uint32_t head_dim = v->hidden / v->n_heads;
    for (uint32_t row = first; row < first + n;) {
        const uint32_t group = row / t->group * t->group, end = group + t->group;
        const uint32_t rows = (end < first + n ? end : first + n) - row;
        const float *k = t->kv + (size_t)(group - begin) * 2 * h;
        attend(t->m->c, &(attend_args){.out = t->y + (row - first) * h,
                                       .q = t->wide + (row - first) * h,
                                       .k = k,
                                       .v = k + h,
                                       .q_stride = h,
                                       .q_head_stride = head_dim,
                                       .kv_stride = 2 * h,
                                       .n_rows = rows,
                                       .n_keys = t->group,
                                       .n_heads = v->n_heads,
                                       .n_kv_heads = v->n_heads,
                                       .head_dim = head_dim,
                                       .scale = 1.0f / sqrtf((float)head_dim)});
        row += rows;
    }
}

/* The rest of a block for n rows, once the keys and values of their groups are there. */
static void mix_and_feed(vision *t, const vision_block *w, uint32_t begin, uint32_t first,
                         uint32_t n) {
    const vision_sizes *v = &t->m->cfg->vision;
    const size_t h = v->hidden;
    float *x = t->x + first * h;
    norm_rows(t, first, n, &w->norm1);
    panel p = pack(t, t->y, n, v->hidden);
    linear(t->m->c, t->wide, h, &p, &w->q, w->q_bias, LINEAR_SET);
    compute_enter(t->m->c, CLEF_PART_ATTENTION);
    gather_angles(t, first, n);
    rotate_heads(t, t->wide, h, n);
    attend_groups(t, begin, first, n);
    p = pack(t, t->y, n, v->hidden);
    project(t, x, h, &p, &w->out, LINEAR_ADD);

    norm_rows(t, first, n, &w->norm2);
    p = pack(t, t->y, n, v->hidden);
    project(t, t->wide, v->intermediate, &p, &w->fc1, LINEAR_SET);
    compute_enter(t->m->c, CLEF_PART_OTHER);
    gelu_tanh(t->m->c, t->wide, n, v->intermediate);
    p = pack(t, t->wide, n, v->intermediate);
    project(t, x, h, &p, &w->fc2, LINEAR_ADD);
}

/* Four rows of a merge block lie side by side in t->y as they are. */
static void merge(vision *t, float *out, uint32_t first, uint32_t n) {
    const vision_weights *w = &t->m->w->vision;
    const uint32_t merged = 4 * t->m->cfg->vision.hidden, n_merged = n / 4;
    norm_rows(t, first, n, &w->norm);
    panel p = pack(t, t->y, n_merged, merged);
    project(t, t->wide, merged, &p, &w->fc1, LINEAR_SET);
    compute_enter(t->m->c, CLEF_PART_OTHER);
    gelu_erf(t->m->c, t->wide, n_merged, merged);
    p = pack(t, t->wide, n_merged, merged);
    const size_t hidden = t->m->cfg->hidden;
    project(t, out + first / 4 * hidden, hidden, &p, &w->fc2, LINEAR_SET);
}

/* ---- the walk ---- */

static void show(const vision *t, uint32_t block) {
    if (t->in.watch != NULL) t->in.watch(t->in.watch_context, block, t->x);
}

/* Where the rows that belong together end: a batch of groups inside a block, else all. */
static uint32_t end_of_pass(const vision *t) {
    const bool in_block = t->next == KEYS_AND_VALUES || t->next == MIX_AND_FEED;
    const uint32_t left = t->n_rows - t->begin;
    return in_block && left > t->batch ? t->begin + t->batch : t->n_rows;
}

/* Goes on behind a pass that ended at row `end`. */
static void next_pass(vision *t, uint32_t end) {
    t->row = t->begin;
    if (t->next == KEYS_AND_VALUES) {
        t->next = MIX_AND_FEED;
        return;
    }
    if (t->next == MIX_AND_FEED && end < t->n_rows) {
        t->next = KEYS_AND_VALUES;
        t->row = t->begin = end;
        return;
    }
    t->row = t->begin = 0;
    if (t->next == MERGE) {
        t->next = COMPLETE;
        return;
    }
    if (t->next == MIX_AND_FEED) t->block++;
    show(t, t->block);
    t->next = t->block < t->m->cfg->vision.depth ? KEYS_AND_VALUES : MERGE;
}

bool vision_step(vision *t) {
    if (t->next == COMPLETE) return false;
    const uint32_t end = end_of_pass(t), left = end - t->row;
    const uint32_t n = left < t->max_rows ? left : t->max_rows;
    const vision_block *w = &t->m->w->vision.blocks[t->block];
    switch (t->next) {
    case EMBED:
        embed(t, t->row, n);
        break;
    case KEYS_AND_VALUES:
        keys_and_values(t, w, t->begin, t->row, n);
        break;
    case MIX_AND_FEED:
        mix_and_feed(t, w, t->begin, t->row, n);
        break;
    case MERGE:
        merge(t, t->out, t->row, n);
        break;
    case COMPLETE:
        break;
    }
    t->row += n;
    t->done += n;
    if (t->row == end) next_pass(t, end);
    return t->next != COMPLETE;
}

double vision_share(const vision *t) {
    const double passes = 2.0 * t->m->cfg->vision.depth + 2.0;
    return (double)t->done / (passes * t->n_rows);
}

void vision_close(vision *t) {
    if (t == NULL) return;
    arena_free(&t->mem);
    free(t);
}

clef_status vision_open(vision **out, const model *m, float *rows, const vision_input *in,
                        uint32_t max_rows, clef_error *err) {
    assert(m->cfg->vision.depth > 0);
    vision *t = malloc(sizeof *t);
    if (t != NULL) *t = shape(in, max_rows);
    if (t == NULL || !reserve(t, m->cfg)) {
        vision_close(t);
        return clef_fail(err, CLEF_ERR_MEMORY, "out of memory for a picture of %u x %u patches",
                         in->grid.w, in->grid.h);
    }
    t->m = m;
    t->out = rows;
    prepare_sides(t);
    *out = t;
    return CLEF_OK;
}
