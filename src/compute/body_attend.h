/* body_attend.h - softmax(scale q k^T) v for tiles of queries, without ever holding a row of
 * scores. Included by kernels_*.c after its lanes, body_math.h and body_tile.h.
 *
 * A tile is up to TILE_LANES query rows of one head, one row per lane. Its queries are packed as
 * [head_dim][TILE_LANES], so `tile` computes scores the way it computes a linear, with keys for
 * weights, and then the value product with values for weights. The keys are walked in blocks of
 * ATTEND_BLOCK counted from key 0. Per lane, with m the running maximum, in this order:
 *     s_j   = (one chain over head_dim, cut into blocks of LINEAR_BLOCK) * scale
 *     m'    = max(m, s_j of the block)              m starts at the lowest finite number
 *     p_j   = e^(s_j - m'), fade = e^(m - m')
 *     sum   = sum * fade, then + p_j in rising j
 *     acc_d = acc_d * fade + (one chain over the block's j of p_j v_jd)
 * and acc / sum at the end.
 *
 * Starting m at a finite number keeps -inf - -inf out of the exponents: a masked score is -inf, its
 * p is exactly 0, and a fused step with p = 0 changes nothing but the sign of a zero, which the end
 * takes away. So a row has the same bits whether or not keys that it does not see are there yet,
 * also when it sees none of a block. That holds while keys and values are finite; one that is not
 * may spread to the rows of its tile.
 *
 * The tiles of one call share a key head, and each block of keys and values serves all of them
 * while it is in cache: at long context a tile alone would read memory faster than it comes. */
#ifndef COMPUTE_BODY_ATTEND_H
#define COMPUTE_BODY_ATTEND_H

#include <float.h>

/* One tile's share of the scratch. */
typedef struct {
    float *q;     /* [head_dim][TILE_LANES]; lanes without a row are zero */
    float *acc;   /* [head_dim][TILE_LANES] */
    float *max;   /* [TILE_LANES] */
    float *sum;   /* [TILE_LANES] */
    uint32_t end; /* keys that the last row sees */
    uint32_t
        masked; /* the first key that some row does not see; a lane l sees keys to masked + l - 1
                 */
} attend_lanes;

static void attend_begin(attend_lanes *t, const attend_args *a, const attend_tile *rows) {
    const float *q = a->q + rows->row0 * a->q_stride + rows->head * a->q_head_stride;
    for (size_t l = 0; l < TILE_LANES; l++) {
        for (size_t d = 0; d < a->head_dim; d++)
            t->q[d * TILE_LANES + l] = l < rows->n_rows ? q[l * a->q_stride + d] : 0.0f;
    }
    memset(t->acc, 0, (size_t)a->head_dim * TILE_LANES * sizeof *t->acc);
    for (size_t l = 0; l < TILE_LANES; l++) {
        t->max[l] = -FLT_MAX;
        t->sum[l] = 0;
    }
    const uint32_t pos0 = a->first_pos + rows->row0;
    t->end = a->causal ? pos0 + rows->n_rows : a->n_keys;
    t->masked = a->causal ? pos0 + 1 : a->n_keys;
}

/* Scores of keys key0 .. key0 + n_keys - 1, unscaled: s [n_keys][TILE_LANES]. */
static void attend_scores(float *s, const attend_args *a, const float *q, const float *k,
                          uint32_t n_keys) {
    memset(s, 0, (size_t)n_keys * TILE_LANES * sizeof *s);
    for (size_t d = 0; d < a->head_dim; d += LINEAR_BLOCK) {
        const size_t left = a->head_dim - d;
        const uint32_t n_k = left < LINEAR_BLOCK ? (uint32_t)left : LINEAR_BLOCK;
        for (size_t j = 0; j < n_keys; j += MOST_OUTS) {
            const uint32_t n_out = n_keys - j < MOST_OUTS ? (uint32_t)(n_keys - j) : MOST_OUTS;
            tile(s + j * TILE_LANES, q + d * TILE_LANES, k + j * a->kv_stride + d, a->kv_stride, 1,
                 n_out, n_k);
        }
    }
}

/* Turns the scores of a block into weights relative to the new maximum; t->max, t->sum and t->acc
 * follow it. */
static void attend_softmax(attend_lanes *t, float *s, uint32_t key0, uint32_t n_keys,
                           const attend_args *a) {
    static const float lane_numbers[TILE_LANES] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                   8, 9, 10, 11, 12, 13, 14, 15};
    const f8 scale = f8_set1(a->scale);
    for (size_t l = 0; l < TILE_LANES; l += LANES) {
        const f8 lane = f8_load(lane_numbers + l);
        const f8 max_before = f8_load(t->max + l);
        f8 max = max_before;
        for (size_t j = 0; j < n_keys; j++) {
            f8 score = f8_mul(f8_load(s + j * TILE_LANES + l), scale);
            if (key0 + j >= t->masked) {
                const f8 seen_from = f8_set1((float)(key0 + j - t->masked + 1));
                score = f8_select_lt(lane, seen_from, f8_set1(-INFINITY), score);
            }
            f8_store(s + j * TILE_LANES + l, score);
            max = f8_max(max, score);
        }
        const f8 fade = f8_exp(f8_sub(max_before, max));
        f8 sum = f8_mul(f8_load(t->sum + l), fade);
        for (size_t j = 0; j < n_keys; j++) {
            const f8 p = f8_exp(f8_sub(f8_load(s + j * TILE_LANES + l), max));
            f8_store(s + j * TILE_LANES + l, p);
            sum = f8_add(sum, p);
        }
        f8_store(t->max + l, max);
        f8_store(t->sum + l, sum);
        for (size_t d = 0; d < a->head_dim; d++) {
            float *acc = t->acc + d * TILE_LANES + l;
            f8_store(acc, f8_mul(f8_load(acc), fade));
        }
    }
}

static void attend_block(attend_lanes *t, float *s, const attend_args *a, const float *k,
                         const float *v, uint32_t key0) {
    const uint32_t n_keys = t->end - key0 < ATTEND_BLOCK ? t->end - key0 : ATTEND_BLOCK;
    attend_scores(s, a, t->q, k, n_keys);
    attend_softmax(t, s, key0, n_keys, a);
    for (size_t d = 0; d < a->head_dim; d += MOST_OUTS) {
        const size_t left = a->head_dim - d;
        const uint32_t n_out = left < MOST_OUTS ? (uint32_t)left : MOST_OUTS;
        tile(t->acc + d * TILE_LANES, s, v + d, 1, a->kv_stride, n_out, n_keys);
    }
}

static void attend_finish(const attend_lanes *t, const attend_args *a, const attend_tile *rows) {
    const size_t stride = (size_t)a->n_heads * a->head_dim;
    float *out = a->out + rows->row0 * stride + (size_t)rows->head * a->head_dim;
    for (size_t l = 0; l < rows->n_rows; l++) {
        for (size_t d = 0; d < a->head_dim; d++)
            out[l * stride + d] = t->acc[d * TILE_LANES + l] / t->sum[l] + 0.0f; /* no -0 */
    }
}

static void attend_tiles(const attend_args *a, const attend_tile *tiles, uint32_t n_tiles,
                         float *scratch) {
    attend_lanes lanes[ATTEND_TILES];
    float *scores = scratch;
    float *next = scores + (size_t)ATTEND_BLOCK * TILE_LANES;
    uint32_t end = 0;
    for (size_t i = 0; i < n_tiles; i++) {
        attend_lanes *t = &lanes[i];
        t->q = next;
        t->acc = t->q + (size_t)a->head_dim * TILE_LANES;
        t->max = t->acc + (size_t)a->head_dim * TILE_LANES;
        t->sum = t->max + TILE_LANES;
        next = t->sum + TILE_LANES;
        attend_begin(t, a, &tiles[i]);
        if (t->end > end) end = t->end;
    }
    const uint32_t kv_head = tiles[0].head / (a->n_heads / a->n_kv_heads);
    for (uint32_t key0 = 0; key0 < end; key0 += ATTEND_BLOCK) {
        const size_t at = key0 * a->kv_stride + (size_t)kv_head * a->head_dim;
        for (size_t i = 0; i < n_tiles; i++) {
            if (key0 < lanes[i].end) attend_block(&lanes[i], scores, a, a->k + at, a->v + at, key0);
        }
    }
    for (size_t i = 0; i < n_tiles; i++) attend_finish(&lanes[i], a, &tiles[i]);
}

#endif
