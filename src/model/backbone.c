/* backbone.c - the decoder layers.
 *
 *     x = embedding row, or a picture's row laid over it
 *     each layer:  x += mixer(norm(x));  x += down(SiLU(gate(norm(x))) * up(norm(x)))
 *     hidden = final norm(x)
 *
 * The mixer is gated attention on every fourth layer and Gated DeltaNet on the others. Projections
 * run over all rows of the chunk at once; what depends on a record's past runs per segment.
 *
 * Traps: the query projection is packed per head as [query | gate]; q and k are normed per head
 * before they rotate; causality goes by sequence index. The norm weights already hold the "1 +" of
 * the reference (checkpoint/bind). */
#include "model/backbone.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Takes the state from out->mem; false when there is not enough. */
static bool reserve(sequence *out, const config *cfg, uint32_t n_tokens) {
    sequence s = *out;
    s.keys = arena_alloc(&s.mem, cfg->n_layers, sizeof *s.keys);
    s.values = arena_alloc(&s.mem, cfg->n_layers, sizeof *s.values);
    s.history = arena_alloc(&s.mem, cfg->n_layers, sizeof *s.history);
    s.state = arena_alloc(&s.mem, cfg->n_layers, sizeof *s.state);
    bool have = s.keys != NULL && s.values != NULL && s.history != NULL && s.state != NULL;
    for (uint32_t i = 0; have && i < cfg->n_layers; i++) {
        if (cfg->full[i]) {
            const size_t row = (size_t)cfg->n_kv_heads * cfg->head_dim;
            s.keys[i] = arena_alloc(&s.mem, n_tokens, row * sizeof(float));
            s.values[i] = arena_alloc(&s.mem, n_tokens, row * sizeof(float));
            have = s.keys[i] != NULL && s.values[i] != NULL;
        } else {
            const size_t head = (size_t)cfg->key_dim * cfg->value_dim;
            s.history[i] =
                arena_alloc(&s.mem, cfg->conv_kernel - 1, config_channels(cfg) * sizeof(float));
            s.state[i] = arena_alloc(&s.mem, cfg->n_value_heads, head * sizeof(float));
            have = s.history[i] != NULL && s.state[i] != NULL;
        }
    }
    *out = s;
    return have;
}

size_t sequence_bytes(const config *cfg, uint32_t n_tokens) {
    sequence s = {.mem.count_only = true};
    const size_t bytes = reserve(&s, cfg, n_tokens) ? s.mem.total_bytes : SIZE_MAX;
    arena_free(&s.mem);
    return bytes;
}

clef_status sequence_open(sequence *out, const config *cfg, uint32_t n_tokens, clef_error *err) {
    sequence s = {.capacity = n_tokens};
    if (!reserve(&s, cfg, n_tokens)) {
        arena_free(&s.mem);
        return clef_fail(err, CLEF_ERR_MEMORY,
                         "out of memory for the state of a record of %u tokens", n_tokens);
    }
    *out = s;
    return CLEF_OK;
}

void sequence_close(sequence *s) {
    arena_free(&s->mem);
    *s = (sequence){0};
}

void sequence_copy_rows(sequence *to, uint32_t at, const sequence *from, uint32_t first, uint32_t n,
                        const config *cfg) {
    assert(n <= to->capacity - at && n <= from->capacity - first);
    const size_t row = (size_t)cfg->n_kv_heads * cfg->head_dim;
    for (uint32_t i = 0; i < cfg->n_layers; i++) {
        if (!cfg->full[i]) continue;
        memcpy(to->keys[i] + at * row, from->keys[i] + first * row, n * row * sizeof(float));
        memcpy(to->values[i] + at * row, from->values[i] + first * row, n * row * sizeof(float));
    }
}

void sequence_copy_state(sequence *to, const sequence *from, const config *cfg) {
    const size_t history = (size_t)(cfg->conv_kernel - 1) * config_channels(cfg);
    const size_t state = (size_t)cfg->n_value_heads * cfg->key_dim * cfg->value_dim;
    for (uint32_t i = 0; i < cfg->n_layers; i++) {
        if (cfg->full[i]) continue;
        memcpy(to->history[i], from->history[i], history * sizeof(float));
        memcpy(to->state[i], from->state[i], state * sizeof(float));
    }
}

/* A linear whose packed input is at hand; dense output. */
static void project(const model *m, float *out, const panel *x, const matrix *w, linear_mode mode) {
    linear(m->c, out, w->n_out, x, w, NULL, mode);
}

/* Packs rows for linears. When the model is fast and the linears that read them have codes, the
 * rows are rounded to integers: to 8 bits, but to 16 where rounding costs most: in the first 3/8 of
 * the layers, whose weights a converter keeps wide as well, and wherever `wide` says so. */
static panel pack_rows(const model *m, workspace *ws, uint32_t layer, const float *x,
                       uint32_t n_rows, uint32_t n_cols, bool codes, bool wide) {
    if (!m->fast || !codes) return panel_pack(m->c, ws->panel, x, n_cols, n_rows, n_cols);
    const bool early = layer < ((uint64_t)m->cfg->n_layers * 3 + 7) / 8;
    return panel_round(m->c, ws->panel, x, n_cols, n_rows, n_cols, wide || early ? 16 : 8);
}

static bool has_codes(const matrix *w) {
    return w->scales != NULL;
}

/* out_proj or o_proj of ws->mixed, added to the residual: 16 bits. */
static void add_mixed(const model *m, workspace *ws, uint32_t layer, uint32_t n_rows,
                      const matrix *w) {
    const panel p = pack_rows(m, ws, layer, ws->mixed, n_rows, w->n_in, has_codes(w), true);
    project(m, ws->x, &p, w, LINEAR_ADD);
}

/* ---- gated attention ---- */

static void attention(const model *m, workspace *ws, const panel *y, uint32_t layer,
                      const segment *segments, uint32_t n_segments) {
    const config *cfg = m->cfg;
    const layer_weights *w = &m->w->layers[layer];
    const uint32_t n = y->n_rows, hd = cfg->head_dim, half = cfg->rotary_dim / 2;
    const size_t q_row = (size_t)2 * cfg->n_heads * hd, kv_row = (size_t)cfg->n_kv_heads * hd;
    float *q = ws->wide, *k = q + n * q_row, *v = k + n * kv_row;

    project(m, q, y, &w->attention.q, LINEAR_SET);
    project(m, k, y, &w->attention.k, LINEAR_SET);
    project(m, v, y, &w->attention.v, LINEAR_SET);
    compute_enter(m->c, CLEF_PART_ATTENTION);
    uint32_t row = 0;
    for (uint32_t i = 0; i < n_segments; i++) {
        const segment *s = &segments[i];
        float *cos = ws->cos + (size_t)row * half, *sin = ws->sin + (size_t)row * half;
        if (s->positions == NULL)
            position_angles(cos, sin, m->frequencies, half, s->seq->n_done, s->n_rows);
        else
            position_plane_angles(cos, sin, m->frequencies, cfg, s->positions, s->n_rows);
        row += s->n_rows;
    }
    rotate_args rotate = {.x = q,
                          .stride = q_row,
                          .head_stride = (size_t)2 * hd,
                          .n_rows = n,
                          .n_heads = cfg->n_heads,
                          .head_dim = hd,
                          .rotary_dim = cfg->rotary_dim,
                          .weight = w->attention.q_norm,
                          .cos = ws->cos,
                          .sin = ws->sin,
                          .eps = cfg->rms_eps};
    norm_rotate(m->c, &rotate);
    rotate.x = k;
    rotate.stride = kv_row;
    rotate.head_stride = hd;
    rotate.n_heads = cfg->n_kv_heads;
    rotate.weight = w->attention.k_norm;
    norm_rotate(m->c, &rotate);

    row = 0;
    for (uint32_t i = 0; i < n_segments; i++) {
        const segment *s = &segments[i];
        const size_t at = s->seq->n_done * kv_row, bytes = s->n_rows * kv_row * sizeof(float);
        memcpy(s->seq->keys[layer] + at, k + row * kv_row, bytes);
        memcpy(s->seq->values[layer] + at, v + row * kv_row, bytes);
        attend(m->c, &(attend_args){.out = ws->mixed + (size_t)row * cfg->n_heads * hd,
                                    .q = q + row * q_row,
                                    .k = s->seq->keys[layer],
                                    .v = s->seq->values[layer],
                                    .q_stride = q_row,
                                    .q_head_stride = (size_t)2 * hd,
                                    .kv_stride = kv_row,
                                    .n_rows = s->n_rows,
                                    .n_keys = s->seq->n_done + s->n_rows,
                                    .n_heads = cfg->n_heads,
                                    .n_kv_heads = cfg->n_kv_heads,
                                    .head_dim = hd,
                                    .first_pos = s->seq->n_done,
                                    .causal = true,
                                    .scale = 1.0f / sqrtf((float)hd)});
        row += s->n_rows;
    }
    sigmoid_gate(m->c, ws->mixed, q + hd, q_row, (size_t)2 * hd, n, cfg->n_heads, hd);
    compute_enter(m->c, CLEF_PART_LINEARS);
    add_mixed(m, ws, layer, n, &w->attention.o);
}

/* ---- Gated DeltaNet ---- */

static void delta(const model *m, workspace *ws, const panel *y, uint32_t layer,
                  const segment *segments, uint32_t n_segments) {
    const config *cfg = m->cfg;
    const layer_weights *w = &m->w->layers[layer];
    const uint32_t n = y->n_rows, heads = cfg->n_value_heads;
    const size_t channels = config_channels(cfg), values = (size_t)heads * cfg->value_dim;
    float *qkv = ws->wide, *z = qkv + n * channels, *a = z + n * values, *b = a + (size_t)n * heads;

    project(m, qkv, y, &w->delta.qkv, LINEAR_SET);
    project(m, z, y, &w->delta.z, LINEAR_SET);
    project(m, a, y, &w->delta.a, LINEAR_SET);
    project(m, b, y, &w->delta.b, LINEAR_SET);
    compute_enter(m->c, CLEF_PART_DELTA);
    uint32_t row = 0;
    for (uint32_t i = 0; i < n_segments; i++) {
        const segment *s = &segments[i];
        gated_delta(m->c, &(delta_args){.out = ws->mixed + row * values,
                                        .qkv = qkv + row * channels,
                                        .z = z + row * values,
                                        .a = a + (size_t)row * heads,
                                        .b = b + (size_t)row * heads,
                                        .conv = w->delta.conv,
                                        .decay = w->delta.decay,
                                        .dt_bias = w->delta.dt_bias,
                                        .norm = w->delta.norm,
                                        .history = s->seq->history[layer],
                                        .state = s->seq->state[layer],
                                        .n_rows = s->n_rows,
                                        .n_key_heads = cfg->n_key_heads,
                                        .n_value_heads = heads,
                                        .key_dim = cfg->key_dim,
                                        .value_dim = cfg->value_dim,
                                        .conv_kernel = cfg->conv_kernel,
                                        .eps = cfg->rms_eps});
        row += s->n_rows;
    }
    compute_enter(m->c, CLEF_PART_LINEARS);
    add_mixed(m, ws, layer, n, &w->delta.out);
}

/* ---- the layer walk ---- */

/* Norms ws->x into ws->y and packs it for the linears that read it; `codes`: all of them have
 * codes.
 */
static panel normed(const model *m, workspace *ws, uint32_t layer, uint32_t n_rows,
                    const float *weight, bool codes) {
    const config *cfg = m->cfg;
    compute_enter(m->c, CLEF_PART_OTHER);
    rms_norm(m->c, ws->y, ws->x, weight, n_rows, cfg->hidden, cfg->rms_eps);
    compute_enter(m->c, CLEF_PART_LINEARS);
    return pack_rows(m, ws, layer, ws->y, n_rows, cfg->hidden, codes, false);
}

/* Whether all linears that read a mixer's input have codes. */
static bool mixer_has_codes(const layer_weights *w) {
    if (w->full)
        return has_codes(&w->attention.q) && has_codes(&w->attention.k) &&
               has_codes(&w->attention.v);
    return has_codes(&w->delta.qkv) && has_codes(&w->delta.z) && has_codes(&w->delta.a) &&
           has_codes(&w->delta.b);
}

bool backbone_can_round(const config *cfg, const weights *w) {
    for (uint32_t i = 0; i < cfg->n_layers; i++) {
        const layer_weights *l = &w->layers[i];
        if (mixer_has_codes(l) || has_codes(l->full ? &l->attention.o : &l->delta.out) ||
            (has_codes(&l->gate) && has_codes(&l->up)) || has_codes(&l->down))
            return true;
    }
    return false;
}

static void feed_forward(const model *m, workspace *ws, uint32_t layer, uint32_t n_rows) {
    const layer_weights *w = &m->w->layers[layer];
    const uint32_t inner = m->cfg->intermediate;
    const panel y =
        normed(m, ws, layer, n_rows, w->post_norm, has_codes(&w->gate) && has_codes(&w->up));
    float *gate = ws->wide, *up = gate + (size_t)n_rows * inner;
    project(m, gate, &y, &w->gate, LINEAR_SET);
    project(m, up, &y, &w->up, LINEAR_SET);
    compute_enter(m->c, CLEF_PART_OTHER);
    silu_mul(m->c, gate, up, n_rows, inner);
    compute_enter(m->c, CLEF_PART_LINEARS);
    const panel p = pack_rows(m, ws, layer, gate, n_rows, inner, has_codes(&w->down), true);
    project(m, ws->x, &p, &w->down, LINEAR_ADD);
}

void backbone_chunk(const model *m, workspace *ws, const segment *segments, uint32_t n_segments,
                    backbone_watch *watch, void *context) {
    const config *cfg = m->cfg;
    const matrix *embed = &m->w->embed;
    compute_enter(m->c, CLEF_PART_OTHER);
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_segments; i++)
        assert(segments[i].n_rows <= segments[i].seq->capacity - segments[i].seq->n_done);
    for (uint32_t i = 0; i < n_segments; i++)
        for (uint32_t r = 0; r < segments[i].n_rows; r++, n++) {
            float *x = ws->x + (size_t)n * cfg->hidden;
            const float *laid = segments[i].laid == NULL ? NULL : segments[i].laid[r];
            if (laid != NULL)
                memcpy(x, laid, cfg->hidden * sizeof *x);
            else
                matrix_row(m->c, x, embed, segments[i].ids[r]);
        }
    if (watch != NULL) watch(context, 0, ws->x);
    for (uint32_t layer = 0; layer < cfg->n_layers; layer++) {
        const layer_weights *w = &m->w->layers[layer];
        const panel y = normed(m, ws, layer, n, w->input_norm, mixer_has_codes(w));
        if (cfg->full[layer])
            attention(m, ws, &y, layer, segments, n_segments);
        else
            delta(m, ws, &y, layer, segments, n_segments);
        feed_forward(m, ws, layer, n);
        if (watch != NULL) watch(context, layer + 1, ws->x);
    }
    compute_enter(m->c, CLEF_PART_OTHER);
    rms_norm(m->c, ws->y, ws->x, m->w->final_norm, n, cfg->hidden, cfg->rms_eps);
    if (watch != NULL) watch(context, cfg->n_layers + 1, ws->y);
    for (uint32_t i = 0; i < n_segments; i++) segments[i].seq->n_done += segments[i].n_rows;
}
