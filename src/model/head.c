/* head.c - the joint schema head.
 *
 *   feed    x = LN(hidden); memory row = memory_projection x; span sums; the last row is `global`
 *   finish  R  = context + lexical + question projections, one row per option
 *           2 evidence layers: R reads the memory (normed by the layer), then a feed-forward
 *           F  = one row per question: its base, a soft summary of its options' R, global, type
 *           4 decoder layers: F attends to itself, then to the memory as it is, then feed-forward
 *           logit = prior (cosine in hidden space) + gate * (cosine of F and R + residual scorer)
 *
 * Traps: the evidence layers norm the memory, the decoder layers do not; the summary uses R without
 * option_norm; the prior uses unprojected vectors; lexical rows are lm_head rows, raw; LayerNorm's
 * eps is 1e-5 with the biased variance; GELU is the erf form; the clamp of the scales is on the
 * stored logarithm, upper side only. Sums over spans and the scalar products of the scoring are
 * taken in double, in index order. */
#include "model/head.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compute/fmath.h"

static const float layer_norm_eps = 1e-5f;                 /* torch.nn.LayerNorm's default */
static const float largest_log_scale = 4.605170185988092f; /* ln 100 */

static int by_begin(const void *a, const void *b) {
    const head_span *x = a, *y = b;
    return (x->at.begin > y->at.begin) - (x->at.begin < y->at.begin);
}

/* Lists all spans with the places of their means, in the order in which their rows come. */
static void order_spans(head_run *h, uint32_t hidden) {
    const head_input *in = h->in;
    for (uint32_t i = 0; i < in->n_questions; i++)
        h->spans[h->n_spans++] = (head_span){in->instructions[i], h->question + (size_t)i * hidden};
    for (uint32_t i = 0; i < in->n_options; i++)
        h->spans[h->n_spans++] = (head_span){in->options[i], h->context + (size_t)i * hidden};
    qsort(h->spans, h->n_spans, sizeof h->spans[0], by_begin);
}

/* Takes the buffers of a run from out->mem; false when there is not enough. */
static bool reserve_run(head_run *out, const config *cfg, const head_input *in) {
    const size_t width = cfg->head_width, hidden = cfg->hidden;
    head_run h = *out;
    const size_t n_spans = (size_t)in->n_questions + in->n_options;
    h.memory = arena_alloc(&h.mem, in->n_tokens, width * sizeof(float));
    h.question = arena_alloc(&h.mem, in->n_questions, hidden * sizeof(float));
    h.context = arena_alloc(&h.mem, in->n_options, hidden * sizeof(float));
    h.global = arena_alloc(&h.mem, hidden, sizeof(float));
    h.queries = arena_alloc(&h.mem, in->n_options, width * sizeof(float));
    h.fields = arena_alloc(&h.mem, in->n_questions, width * sizeof(float));
    h.sum = arena_alloc(&h.mem, hidden, sizeof(double));
    h.spans = arena_alloc(&h.mem, n_spans, sizeof h.spans[0]);
    *out = h;
    return h.memory != NULL && h.question != NULL && h.context != NULL && h.global != NULL &&
           h.queries != NULL && h.fields != NULL && h.sum != NULL && h.spans != NULL;
}

clef_status head_open(head_run *out, const model *m, const head_input *in, clef_error *err) {
    head_run h = {.in = in};
    if (!reserve_run(&h, m->cfg, in)) {
        arena_free(&h.mem);
        return clef_fail(err, CLEF_ERR_MEMORY,
                         "out of memory for the head of a record of %u tokens", in->n_tokens);
    }
    order_spans(&h, m->cfg->hidden);
    *out = h;
    return CLEF_OK;
}

void head_close(head_run *h) {
    arena_free(&h->mem);
    *h = (head_run){0};
}

/* ---- feeding ---- */

/* Adds row `t` to the span it lies in, and closes the span at its last row. */
static void add_to_span(head_run *h, const float *x, uint32_t t, uint32_t hidden) {
    if (h->next_span == h->n_spans) return;
    const span s = h->spans[h->next_span].at;
    if (t < s.begin) return;
    if (t == s.begin) memset(h->sum, 0, hidden * sizeof h->sum[0]);
    for (uint32_t i = 0; i < hidden; i++) h->sum[i] += (double)x[i];
    if (t + 1 < s.end) return;
    const double n = (double)(s.end - s.begin);
    float *mean = h->spans[h->next_span++].mean;
    for (uint32_t i = 0; i < hidden; i++) mean[i] = (float)(h->sum[i] / n);
}

void head_feed(head_run *h, const model *m, workspace *ws, float *hidden, uint32_t n_rows) {
    const head_weights *w = &m->w->head;
    const uint32_t n = m->cfg->hidden;
    compute_enter(m->c, CLEF_PART_HEAD);
    layer_norm(m->c, hidden, hidden, w->hidden_norm.w, w->hidden_norm.b, n_rows, n, layer_norm_eps);
    workspace_linear(m, ws, h->memory + (size_t)h->n_fed * m->cfg->head_width, hidden, n_rows,
                     &w->memory_projection, NULL, LINEAR_SET);
    for (uint32_t r = 0; r < n_rows; r++) add_to_span(h, hidden + (size_t)r * n, h->n_fed + r, n);
    h->n_fed += n_rows;
    if (h->n_fed == h->in->n_tokens)
        memcpy(h->global, hidden + (size_t)(n_rows - 1) * n, n * sizeof(float));
}

/* ---- attention and feed-forward of the two kinds of layers ---- */

/* Buffers of head_finish. Keys and values are those of one layer at a time. */
typedef struct {
    const model *m;
    workspace *ws;
    uint32_t n_tokens, n_rows; /* rows: the larger of questions and options */
    float *memory_normed;      /* [n_tokens, width] */
    float *keys, *values;      /* [max(n_tokens, n_rows), width] */
    float *normed, *q, *mixed; /* [n_rows, width] */
    float *inner;              /* [n_rows, feedforward] */
    float *lexical;            /* [n_options, hidden] */
    float *pairs;              /* [n_options, 4 width] */
    float *row;                /* [hidden] */
    float *scores;             /* [n_options] */
    float *most, *sum;         /* [n_questions] */
    arena mem;
} finish;

/* Takes the buffers from out->mem; false when there is not enough. */
static bool reserve_finish(finish *out, const config *cfg, const head_input *in) {
    const size_t row = cfg->head_width * sizeof(float);
    finish f = *out;
    f.n_tokens = in->n_tokens;
    f.n_rows = in->n_questions > in->n_options ? in->n_questions : in->n_options;
    const uint32_t n_keys = f.n_tokens > f.n_rows ? f.n_tokens : f.n_rows;
    f.memory_normed = arena_alloc(&f.mem, f.n_tokens, row);
    f.keys = arena_alloc(&f.mem, n_keys, row);
    f.values = arena_alloc(&f.mem, n_keys, row);
    f.normed = arena_alloc(&f.mem, f.n_rows, row);
    f.q = arena_alloc(&f.mem, f.n_rows, row);
    f.mixed = arena_alloc(&f.mem, f.n_rows, row);
    f.inner = arena_alloc(&f.mem, f.n_rows, cfg->head_feedforward * sizeof(float));
    f.lexical = arena_alloc(&f.mem, in->n_options, cfg->hidden * sizeof(float));
    f.pairs = arena_alloc(&f.mem, in->n_options, 4 * row);
    f.row = arena_alloc(&f.mem, cfg->hidden, sizeof(float));
    f.scores = arena_alloc(&f.mem, in->n_options, sizeof(float));
    f.most = arena_alloc(&f.mem, in->n_questions, sizeof(float));
    f.sum = arena_alloc(&f.mem, in->n_questions, sizeof(float));
    *out = f;
    return f.memory_normed != NULL && f.keys != NULL && f.values != NULL && f.normed != NULL &&
           f.q != NULL && f.mixed != NULL && f.inner != NULL && f.lexical != NULL &&
           f.pairs != NULL && f.row != NULL && f.scores != NULL && f.most != NULL && f.sum != NULL;
}

head_sizes head_bytes(const config *cfg, const head_input *in) {
    head_run h = {.mem.count_only = true};
    finish f = {.mem.count_only = true};
    head_sizes sizes = {SIZE_MAX, SIZE_MAX};
    if (reserve_run(&h, cfg, in)) sizes.run = h.mem.total_bytes;
    if (reserve_finish(&f, cfg, in)) sizes.finish = f.mem.total_bytes;
    arena_free(&h.mem);
    arena_free(&f.mem);
    return sizes;
}

static clef_status finish_open(finish *out, const head_run *h, const model *m, workspace *ws,
                               clef_error *err) {
    const head_input *in = h->in;
    finish f = {.m = m, .ws = ws};
    if (!reserve_finish(&f, m->cfg, in)) {
        arena_free(&f.mem);
        return clef_fail(err, CLEF_ERR_MEMORY,
                         "out of memory for the head of a record of %u tokens", in->n_tokens);
    }
    *out = f;
    return CLEF_OK;
}

static void norm(const finish *f, float *out, const float *x, uint32_t n_rows,
                 const norm_weights *w) {
    layer_norm(f->m->c, out, x, w->w, w->b, n_rows, f->m->cfg->head_width, layer_norm_eps);
}

/* x += out_proj(softmax(q k^T / sqrt(d)) v) with q from `queries` and k, v from `source`. */
static void add_attention(finish *f, float *x, const float *queries, uint32_t n_rows,
                          const float *source, uint32_t n_keys, const head_attention *w) {
    const model *m = f->m;
    const uint32_t width = m->cfg->head_width, heads = m->cfg->head_heads;
    const uint32_t head_dim = width / heads; /* the configuration was refused unless it divides */
    workspace_linear(m, f->ws, f->q, queries, n_rows, &w->in_q, w->in_q_bias, LINEAR_SET);
    workspace_linear(m, f->ws, f->keys, source, n_keys, &w->in_k, w->in_k_bias, LINEAR_SET);
    workspace_linear(m, f->ws, f->values, source, n_keys, &w->in_v, w->in_v_bias, LINEAR_SET);
    attend(m->c, &(attend_args){.out = f->mixed,
                                .q = f->q,
                                .k = f->keys,
                                .v = f->values,
                                .q_stride = width,
                                .q_head_stride = head_dim,
                                .kv_stride = width,
                                .n_rows = n_rows,
                                .n_keys = n_keys,
                                .n_heads = heads,
                                .n_kv_heads = heads,
                                .head_dim = head_dim,
                                .causal = false,
                                .scale = 1.0f / sqrtf((float)head_dim)});
    workspace_linear(m, f->ws, x, f->mixed, n_rows, &w->out.w, w->out.b, LINEAR_ADD);
}

/* x += second(GELU(first(norm(x)))) */
static void add_feed_forward(finish *f, float *x, uint32_t n_rows, const norm_weights *pre,
                             const linear_weights *first, const linear_weights *second) {
    const model *m = f->m;
    norm(f, f->normed, x, n_rows, pre);
    workspace_linear(m, f->ws, f->inner, f->normed, n_rows, &first->w, first->b, LINEAR_SET);
    gelu_erf(m->c, f->inner, n_rows, first->w.n_out);
    workspace_linear(m, f->ws, x, f->inner, n_rows, &second->w, second->b, LINEAR_ADD);
}

/* ---- scalar products, in double, in index order ---- */

static double dot(const float *a, const float *b, uint32_t n) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* <a, b> / (max(|a|, least) max(|b|, least)) */
static double cosine(const float *a, const float *b, uint32_t n, double least) {
    return dot(a, b, n) / (fmax(sqrt(dot(a, a, n)), least) * fmax(sqrt(dot(b, b, n)), least));
}

/* Softmax of `scores` within each question, f32, options in order. `most` and `sum` [n_questions].
 */
static void softmax_per_question(float *out, const float *scores, const head_input *in, float *most,
                                 float *sum) {
    for (uint32_t i = 0; i < in->n_questions; i++) {
        most[i] = -INFINITY;
        sum[i] = 0.0f;
    }
    for (uint32_t o = 0; o < in->n_options; o++)
        most[in->owner[o]] = fmaxf(most[in->owner[o]], scores[o]);
    for (uint32_t o = 0; o < in->n_options; o++) {
        out[o] = fmath_exp(scores[o] - most[in->owner[o]]);
        sum[in->owner[o]] += out[o];
    }
    for (uint32_t o = 0; o < in->n_options; o++) out[o] /= sum[in->owner[o]];
}

/* ---- the steps of MODEL.md section 3 ---- */

/* lexical [n_options, hidden]: mean of the raw lm_head rows over each option's tokens. */
static void gather_lexical(const head_run *h, const model *m, float *lexical, float *row) {
    const head_input *in = h->in;
    const matrix *table = &m->w->lexical;
    const uint32_t n = m->cfg->hidden;
    for (uint32_t o = 0; o < in->n_options; o++) {
        const span s = in->options[o];
        memset(h->sum, 0, n * sizeof h->sum[0]);
        for (uint32_t t = s.begin; t < s.end; t++) {
            matrix_row(m->c, row, table, in->ids[t]);
            for (uint32_t i = 0; i < n; i++) h->sum[i] += (double)row[i];
        }
        for (uint32_t i = 0; i < n; i++)
            lexical[(size_t)o * n + i] = (float)(h->sum[i] / (double)(s.end - s.begin));
    }
}

/* Step 2: R from the option's context, its words, and its question. */
static void option_queries(head_run *h, finish *f, const float *lexical) {
    const head_input *in = h->in;
    const head_weights *w = &f->m->w->head;
    const uint32_t width = f->m->cfg->head_width;
    workspace_linear(f->m, f->ws, h->queries, h->context, in->n_options,
                     &w->option_context_projection, NULL, LINEAR_SET);
    workspace_linear(f->m, f->ws, h->queries, lexical, in->n_options, &w->option_lexical_projection,
                     NULL, LINEAR_ADD);
    workspace_linear(f->m, f->ws, f->q, h->question, in->n_questions,
                     &w->option_question_projection, NULL, LINEAR_SET);
    for (uint32_t o = 0; o < in->n_options; o++)
        for (uint32_t i = 0; i < width; i++)
            h->queries[(size_t)o * width + i] += f->q[(size_t)in->owner[o] * width + i];
}

/* Step 4: F from base, the soft summary of the question's options, global and type. */
static void question_fields(head_run *h, finish *f, float *scores, float *weights_of, float *most,
                            float *sum) {
    const head_input *in = h->in;
    const head_weights *w = &f->m->w->head;
    const uint32_t width = f->m->cfg->head_width;
    workspace_linear(f->m, f->ws, h->fields, h->question, in->n_questions, &w->question_projection,
                     NULL, LINEAR_SET);
    const double scale = sqrt((double)width);
    for (uint32_t o = 0; o < in->n_options; o++)
        scores[o] = (float)(dot(h->queries + (size_t)o * width,
                                h->fields + (size_t)in->owner[o] * width, width) /
                            scale);
    softmax_per_question(weights_of, scores, in, most, sum);
    memset(f->mixed, 0, (size_t)in->n_questions * width * sizeof(float));
    for (uint32_t o = 0; o < in->n_options; o++) {
        float *summary = f->mixed + (size_t)in->owner[o] * width;
        const float *r = h->queries + (size_t)o * width;
        for (uint32_t i = 0; i < width; i++) summary[i] = fmaf(weights_of[o], r[i], summary[i]);
    }
    norm(f, f->mixed, f->mixed, in->n_questions, &w->option_summary_norm);
    workspace_linear(f->m, f->ws, f->q, h->global, 1, &w->global_projection, NULL, LINEAR_SET);
    for (uint32_t q = 0; q < in->n_questions; q++) {
        float *field = h->fields + (size_t)q * width;
        const float *summary = f->mixed + (size_t)q * width;
        const float *type = w->type_embedding + (size_t)in->kinds[q] * width;
        for (uint32_t i = 0; i < width; i++)
            field[i] = ((field[i] + summary[i]) + f->q[i]) + type[i];
    }
}

/* A NaN stays one, as torch.clamp leaves it; fminf would hide it behind the limit. */
static float clamp_log_scale(float stored) {
    return stored > largest_log_scale ? largest_log_scale : stored;
}

/* Step 6. `pairs` [n_options, 4 width], `residual` [n_options]. */
static void score_options(head_run *h, finish *f, const float *lexical, float *pairs,
                          float *residual, float *anchor, float *logits) {
    const head_input *in = h->in;
    const model *m = f->m;
    const head_weights *w = &m->w->head;
    const uint32_t width = m->cfg->head_width, hidden = m->cfg->hidden;
    float *fields = f->q, *options = f->normed; /* both [n_rows, width] */
    norm(f, fields, h->fields, in->n_questions, &w->field_norm);
    norm(f, options, h->queries, in->n_options, &w->option_norm);
    for (uint32_t o = 0; o < in->n_options; o++) {
        const float *a = fields + (size_t)in->owner[o] * width, *b = options + (size_t)o * width;
        float *p = pairs + (size_t)o * 4 * width;
        for (uint32_t i = 0; i < width; i++) {
            p[i] = a[i];
            p[width + i] = b[i];
            p[2 * width + i] = a[i] * b[i];
            p[3 * width + i] = fabsf(a[i] - b[i]);
        }
    }
    workspace_linear(m, f->ws, f->mixed, pairs, in->n_options, &w->scorer0.w, w->scorer0.b,
                     LINEAR_SET);
    gelu_erf(m->c, f->mixed, in->n_options, width);
    workspace_linear(m, f->ws, residual, f->mixed, in->n_options, &w->scorer3.w, w->scorer3.b,
                     LINEAR_SET);
    const double prior_scale = (double)fmath_exp(clamp_log_scale(w->prior_scale));
    const double joint_scale = (double)fmath_exp(clamp_log_scale(w->joint_scale));
    const double gate = (double)fmath_sigmoid(w->residual_gate);
    for (uint32_t o = 0; o < in->n_options; o++) {
        const float *question = h->question + (size_t)in->owner[o] * hidden;
        for (uint32_t i = 0; i < hidden; i++) anchor[i] = question[i] + h->global[i];
        const double prior =
            prior_scale * cosine(lexical + (size_t)o * hidden, anchor, hidden, 1e-12);
        const double joint = joint_scale * cosine(fields + (size_t)in->owner[o] * width,
                                                  options + (size_t)o * width, width, 1e-8) +
                             (double)residual[o];
        logits[o] = (float)(prior + gate * joint);
    }
}

static clef_status check_finite(const head_input *in, const float *logits, clef_error *err) {
    for (uint32_t o = 0, first = 0; o < in->n_options; o++) {
        if (in->owner[o] != in->owner[first]) first = o;
        if (!isfinite(logits[o]))
            return clef_fail(err, CLEF_ERR_INTERNAL,
                             "the logit of option %u of question %u is not finite: the weights "
                             "hold NaN or infinity, or overflow",
                             o - first + 1, in->owner[o] + 1);
    }
    return CLEF_OK;
}

clef_status head_finish(head_run *h, const model *m, workspace *ws, float *logits,
                        float *probabilities, clef_error *err) {
    const head_input *in = h->in;
    const head_weights *w = &m->w->head;
    compute_enter(m->c, CLEF_PART_HEAD);
    finish f;
    TRY(finish_open(&f, h, m, ws, err));
    gather_lexical(h, m, f.lexical, f.row);
    option_queries(h, &f, f.lexical);
    for (uint32_t e = 0; e < m->cfg->head_routing_layers; e++) {
        const evidence_layer *layer = &w->evidence[e];
        norm(&f, f.memory_normed, h->memory, in->n_tokens, &layer->memory_norm);
        norm(&f, f.normed, h->queries, in->n_options, &layer->query_norm);
        add_attention(&f, h->queries, f.normed, in->n_options, f.memory_normed, in->n_tokens,
                      &layer->attention);
        add_feed_forward(&f, h->queries, in->n_options, &layer->feedforward_norm, &layer->ff0,
                         &layer->ff3);
    }
    question_fields(h, &f, f.scores, probabilities, f.most, f.sum);
    for (uint32_t d = 0; d < m->cfg->head_layers; d++) {
        const decoder_layer *layer = &w->decoder[d];
        norm(&f, f.normed, h->fields, in->n_questions, &layer->norm1);
        add_attention(&f, h->fields, f.normed, in->n_questions, f.normed, in->n_questions,
                      &layer->self_attention);
        norm(&f, f.normed, h->fields, in->n_questions, &layer->norm2);
        add_attention(&f, h->fields, f.normed, in->n_questions, h->memory, in->n_tokens,
                      &layer->cross_attention);
        add_feed_forward(&f, h->fields, in->n_questions, &layer->norm3, &layer->linear1,
                         &layer->linear2);
    }
    score_options(h, &f, f.lexical, f.pairs, f.scores, f.row, logits);
    softmax_per_question(probabilities, logits, in, f.most, f.sum);
    arena_free(&f.mem);
    compute_enter(m->c, CLEF_PART_OTHER);
    return check_finite(in, logits, err);
}
