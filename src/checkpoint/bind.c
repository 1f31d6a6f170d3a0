/* bind.c - the one table of tensors, and what follows from it: binding, the report of everything
 * that does not fit, parameter counts, and the list that writers of checkpoints use.
 *
 * A row gives a name, what the tensor is used as, its shape in symbols, and where in the structs of
 * bind.h it goes. Names of layers get "prefix{i}." in front.
 *
 * Traps: five norms are stored as offsets from one, linear_attn.norm is not (MODEL.md section 2);
 * base checkpoints store A_log and linear_attn.norm as F32, the releases as BF16; the MLX layout of
 * conv1d is [C, K, 1], and its checkpoints have the one already added to their norms, so they are
 * refused by that shape. */
#include "checkpoint/bind.h"

#include <stdio.h>

#include "checkpoint/codes.h"
#include "compute/fmath.h"

typedef enum {
    ONE,
    THREE,
    HIDDEN,
    INTERMEDIATE,
    VOCAB,
    QUERY_AND_GATE, /* 2 nh hd */
    KEYS,           /* nkv hd */
    ATTENDED,       /* nh hd */
    HEAD_DIM,
    CHANNELS,
    KERNEL,
    VALUES, /* nv vd */
    VALUE_HEADS,
    VALUE_DIM,
    WIDTH,
    WIDTH_3,
    WIDTH_4,
    FEEDFORWARD,
    TEMPORAL,
    PATCH,
    V_HIDDEN,
    V_HIDDEN_3,
    V_MERGED, /* the patches of a merge block side by side */
    V_INTERMEDIATE,
    V_POSITIONS
} dim;

static uint64_t dim_size(const config *c, dim d) {
    const uint64_t sizes[] = {
        [ONE] = 1,
        [THREE] = 3,
        [HIDDEN] = c->hidden,
        [INTERMEDIATE] = c->intermediate,
        [VOCAB] = c->vocab,
        [QUERY_AND_GATE] = 2ull * c->n_heads * c->head_dim,
        [KEYS] = (uint64_t)c->n_kv_heads * c->head_dim,
        [ATTENDED] = (uint64_t)c->n_heads * c->head_dim,
        [HEAD_DIM] = c->head_dim,
        [CHANNELS] = config_channels(c),
        [KERNEL] = c->conv_kernel,
        [VALUES] = (uint64_t)c->n_value_heads * c->value_dim,
        [VALUE_HEADS] = c->n_value_heads,
        [VALUE_DIM] = c->value_dim,
        [WIDTH] = c->head_width,
        [WIDTH_3] = 3ull * c->head_width,
        [WIDTH_4] = 4ull * c->head_width,
        [FEEDFORWARD] = c->head_feedforward,
        [TEMPORAL] = VISION_TEMPORAL,
        [PATCH] = VISION_PATCH,
        [V_HIDDEN] = c->vision.hidden,
        [V_HIDDEN_3] = 3ull * c->vision.hidden,
        [V_MERGED] = (uint64_t)VISION_MERGE * VISION_MERGE * c->vision.hidden,
        [V_INTERMEDIATE] = c->vision.intermediate,
        [V_POSITIONS] = (uint64_t)c->vision.side * c->vision.side,
    };
    return sizes[d];
}

/* Where a row applies. */
typedef enum { ALWAYS, UNTIED, FULL, DELTA } condition;

typedef struct {
    const char *name;
    bind_use use;
    condition when;
    size_t offset; /* of the destination in the struct of its group */
    uint32_t rank;
    dim shape[BIND_MAX_RANK];
} row;

/* clang-format off */
#define MATRIX(name, when, at, out, in) {name, BIND_MATRIX, when, at, 2, {out, in}}
#define VECTOR(name, use, when, at, n) {name, use, when, at, 1, {n}}
/* clang-format on */

#define AT(field) offsetof(weights, field)
static const row model_rows[] = {
    MATRIX("lm_head.weight", UNTIED, AT(lexical), VOCAB, HIDDEN),
    MATRIX("model.language_model.embed_tokens.weight", ALWAYS, AT(embed), VOCAB, HIDDEN),
    VECTOR("model.language_model.norm.weight", BIND_OFFSET, ALWAYS, AT(final_norm), HIDDEN),
};
#undef AT

#define AT(field) offsetof(layer_weights, field)
static const row layer_rows[] = {
    VECTOR("input_layernorm.weight", BIND_OFFSET, ALWAYS, AT(input_norm), HIDDEN),
    VECTOR("post_attention_layernorm.weight", BIND_OFFSET, ALWAYS, AT(post_norm), HIDDEN),
    MATRIX("mlp.gate_proj.weight", ALWAYS, AT(gate), INTERMEDIATE, HIDDEN),
    MATRIX("mlp.up_proj.weight", ALWAYS, AT(up), INTERMEDIATE, HIDDEN),
    MATRIX("mlp.down_proj.weight", ALWAYS, AT(down), HIDDEN, INTERMEDIATE),
    MATRIX("self_attn.q_proj.weight", FULL, AT(attention.q), QUERY_AND_GATE, HIDDEN),
    MATRIX("self_attn.k_proj.weight", FULL, AT(attention.k), KEYS, HIDDEN),
    MATRIX("self_attn.v_proj.weight", FULL, AT(attention.v), KEYS, HIDDEN),
    MATRIX("self_attn.o_proj.weight", FULL, AT(attention.o), HIDDEN, ATTENDED),
    VECTOR("self_attn.q_norm.weight", BIND_OFFSET, FULL, AT(attention.q_norm), HEAD_DIM),
    VECTOR("self_attn.k_norm.weight", BIND_OFFSET, FULL, AT(attention.k_norm), HEAD_DIM),
    MATRIX("linear_attn.in_proj_qkv.weight", DELTA, AT(delta.qkv), CHANNELS, HIDDEN),
    MATRIX("linear_attn.in_proj_z.weight", DELTA, AT(delta.z), VALUES, HIDDEN),
    MATRIX("linear_attn.in_proj_a.weight", DELTA, AT(delta.a), VALUE_HEADS, HIDDEN),
    MATRIX("linear_attn.in_proj_b.weight", DELTA, AT(delta.b), VALUE_HEADS, HIDDEN),
    {"linear_attn.conv1d.weight", BIND_VECTOR, DELTA, AT(delta.conv), 3, {CHANNELS, ONE, KERNEL}},
    VECTOR("linear_attn.A_log", BIND_DECAY, DELTA, AT(delta.decay), VALUE_HEADS),
    VECTOR("linear_attn.dt_bias", BIND_VECTOR, DELTA, AT(delta.dt_bias), VALUE_HEADS),
    VECTOR("linear_attn.norm.weight", BIND_VECTOR, DELTA, AT(delta.norm), VALUE_DIM),
    MATRIX("linear_attn.out_proj.weight", DELTA, AT(delta.out), HIDDEN, VALUES),
};
#undef AT

/* clang-format off */
#define NORM(name, field, n) \
    VECTOR(name ".weight", BIND_VECTOR, ALWAYS, AT(field.w), n), \
    VECTOR(name ".bias", BIND_VECTOR, ALWAYS, AT(field.b), n)
#define LINEAR(name, field, out, in) \
    MATRIX(name ".weight", ALWAYS, AT(field.w), out, in), \
    VECTOR(name ".bias", BIND_VECTOR, ALWAYS, AT(field.b), out)
#define ATTENTION(name, field) \
    {name ".in_proj_weight", BIND_QKV, ALWAYS, AT(field.in_q), 2, {WIDTH_3, WIDTH}}, \
    VECTOR(name ".in_proj_bias", BIND_QKV_BIAS, ALWAYS, AT(field.in_q_bias), WIDTH_3), \
    LINEAR(name ".out_proj", field.out, WIDTH, WIDTH)
#define SCALAR(name, field) {name, BIND_SCALAR, ALWAYS, AT(field), 0, {0}}
/* clang-format on */

#define AT(field) offsetof(head_weights, field)
static const row head_rows[] = {
    NORM("hidden_norm", hidden_norm, HIDDEN),
    MATRIX("memory_projection.weight", ALWAYS, AT(memory_projection), WIDTH, HIDDEN),
    MATRIX("question_projection.weight", ALWAYS, AT(question_projection), WIDTH, HIDDEN),
    MATRIX("option_question_projection.weight", ALWAYS, AT(option_question_projection), WIDTH,
           HIDDEN),
    MATRIX("global_projection.weight", ALWAYS, AT(global_projection), WIDTH, HIDDEN),
    MATRIX("option_context_projection.weight", ALWAYS, AT(option_context_projection), WIDTH,
           HIDDEN),
    MATRIX("option_lexical_projection.weight", ALWAYS, AT(option_lexical_projection), WIDTH,
           HIDDEN),
    {"type_embedding.weight", BIND_VECTOR, ALWAYS, AT(type_embedding), 2, {THREE, WIDTH}},
    NORM("option_summary_norm", option_summary_norm, WIDTH),
    NORM("field_norm", field_norm, WIDTH),
    NORM("option_norm", option_norm, WIDTH),
    LINEAR("residual_scorer.0", scorer0, WIDTH, WIDTH_4),
    LINEAR("residual_scorer.3", scorer3, ONE, WIDTH),
    SCALAR("prior_logit_scale", prior_scale),
    SCALAR("joint_logit_scale", joint_scale),
    SCALAR("residual_gate", residual_gate),
};
#undef AT

#define AT(field) offsetof(evidence_layer, field)
static const row evidence_rows[] = {
    NORM("query_norm", query_norm, WIDTH),
    NORM("memory_norm", memory_norm, WIDTH),
    NORM("feedforward_norm", feedforward_norm, WIDTH),
    ATTENTION("attention", attention),
    LINEAR("feedforward.0", ff0, FEEDFORWARD, WIDTH),
    LINEAR("feedforward.3", ff3, WIDTH, FEEDFORWARD),
};
#undef AT

#define AT(field) offsetof(decoder_layer, field)
static const row decoder_rows[] = {
    ATTENTION("self_attn", self_attention),
    ATTENTION("multihead_attn", cross_attention),
    LINEAR("linear1", linear1, FEEDFORWARD, WIDTH),
    LINEAR("linear2", linear2, WIDTH, FEEDFORWARD),
    NORM("norm1", norm1, WIDTH),
    NORM("norm2", norm2, WIDTH),
    NORM("norm3", norm3, WIDTH),
};
#undef AT

#define AT(field) offsetof(vision_weights, field)
static const row vision_rows[] = {
    {"model.visual.patch_embed.proj.weight",
     BIND_MATRIX,
     ALWAYS,
     AT(patch.w),
     5,
     {V_HIDDEN, THREE, TEMPORAL, PATCH, PATCH}},
    VECTOR("model.visual.patch_embed.proj.bias", BIND_VECTOR, ALWAYS, AT(patch.b), V_HIDDEN),
    MATRIX("model.visual.pos_embed.weight", ALWAYS, AT(positions), V_POSITIONS, V_HIDDEN),
    NORM("model.visual.merger.norm", norm, V_HIDDEN),
    LINEAR("model.visual.merger.linear_fc1", fc1, V_MERGED, V_MERGED),
    LINEAR("model.visual.merger.linear_fc2", fc2, HIDDEN, V_MERGED),
};
#undef AT

#define AT(field) offsetof(vision_block, field)
static const row block_rows[] = {
    NORM("norm1", norm1, V_HIDDEN),
    NORM("norm2", norm2, V_HIDDEN),
    {"attn.qkv.weight", BIND_QKV, ALWAYS, AT(q), 2, {V_HIDDEN_3, V_HIDDEN}},
    VECTOR("attn.qkv.bias", BIND_QKV_BIAS, ALWAYS, AT(q_bias), V_HIDDEN_3),
    LINEAR("attn.proj", out, V_HIDDEN, V_HIDDEN),
    LINEAR("mlp.linear_fc1", fc1, V_INTERMEDIATE, V_HIDDEN),
    LINEAR("mlp.linear_fc2", fc2, V_HIDDEN, V_INTERMEDIATE),
};
#undef AT

typedef enum { MODEL, LAYERS, HEAD, EVIDENCE, DECODER, VISION, BLOCKS, N_GROUPS } group_id;

static const struct group {
    bool head;
    const char *prefix; /* before "{i}."; NULL: the group stands once, without prefix */
    const row *rows;
    size_t n_rows;
} groups[N_GROUPS] = {
#define ROWS(rows) rows, sizeof(rows) / sizeof *(rows)
    [MODEL] = {false, NULL, ROWS(model_rows)},
    [LAYERS] = {false, "model.language_model.layers.", ROWS(layer_rows)},
    [HEAD] = {true, NULL, ROWS(head_rows)},
    [EVIDENCE] = {true, "evidence_layers.", ROWS(evidence_rows)},
    [DECODER] = {true, "layers.", ROWS(decoder_rows)},
    [VISION] = {false, NULL, ROWS(vision_rows)},
    [BLOCKS] = {false, "model.visual.blocks.", ROWS(block_rows)},
};

static uint32_t group_count(const config *c, group_id g) {
    switch (g) {
    case LAYERS:
        return c->n_layers;
    case EVIDENCE:
        return c->head_routing_layers;
    case DECODER:
        return c->head_layers;
    case VISION:
        return c->vision.depth > 0 ? 1 : 0;
    case BLOCKS:
        return c->vision.depth;
    default:
        return 1;
    }
}

static bool applies(const config *c, condition when, uint32_t layer) {
    switch (when) {
    case UNTIED:
        return !c->tied;
    case FULL:
        return c->full[layer];
    case DELTA:
        return !c->full[layer];
    case ALWAYS:
        break;
    }
    return true;
}

/* A row at one of its places. */
typedef struct {
    bind_tensor tensor;
    group_id group;
    uint32_t index; /* of the layer */
    size_t offset;
} slot;

typedef void slot_visit(void *context, const slot *s);

static void each_slot(const config *cfg, slot_visit *visit, void *context) {
    for (group_id g = 0; g < N_GROUPS; g++) {
        const uint32_t count = group_count(cfg, g);
        for (uint32_t i = 0; i < count; i++) {
            for (size_t k = 0; k < groups[g].n_rows; k++) {
                const row *r = &groups[g].rows[k];
                if (!applies(cfg, r->when, i)) continue;
                char name[128]; /* the longest prefix, number and row name together take 80 */
                const int n = groups[g].prefix == NULL ? snprintf(name, sizeof name, "%s", r->name)
                                                       : snprintf(name, sizeof name, "%s%u.%s",
                                                                  groups[g].prefix, i, r->name);
                slot s = {.tensor = {.name = {name, (size_t)n},
                                     .head = groups[g].head,
                                     .use = r->use,
                                     .linear = g == LAYERS && r->use == BIND_MATRIX,
                                     .table = g == MODEL && r->use == BIND_MATRIX,
                                     .layer = i,
                                     .vision = g == VISION || g == BLOCKS,
                                     .rank = r->rank},
                          .group = g,
                          .index = i,
                          .offset = r->offset};
                for (uint32_t d = 0; d < r->rank; d++)
                    s.tensor.shape[d] = dim_size(cfg, r->shape[d]);
                visit(context, &s);
            }
        }
    }
}

/* Takes "{i}." off the front of `rest`, where i is below `count` and written as the files do. */
static bool take_index(str *rest, uint32_t count, uint32_t *index) {
    uint64_t i = 0;
    size_t n = 0;
    while (n < rest->n && n < 10 && rest->p[n] >= '0' && rest->p[n] <= '9')
        i = i * 10 + (uint64_t)(rest->p[n++] - '0');
    const bool plain = n == 1 || (n > 1 && rest->p[0] != '0');
    if (!plain || n >= rest->n || rest->p[n] != '.' || i >= count) return false;
    *rest = (str){rest->p + n + 1, rest->n - n - 1};
    *index = (uint32_t)i;
    return true;
}

/* Whether the table has a row for this name. */
static bool is_expected(const config *cfg, bool head, str name) {
    for (group_id g = 0; g < N_GROUPS; g++) {
        str rest = name;
        uint32_t index = 0;
        if (groups[g].head != head) continue;
        if (groups[g].prefix != NULL) {
            const size_t n = strlen(groups[g].prefix);
            if (rest.n < n || memcmp(rest.p, groups[g].prefix, n) != 0) continue;
            rest = (str){rest.p + n, rest.n - n};
            if (!take_index(&rest, group_count(cfg, g), &index)) continue;
        }
        for (size_t k = 0; k < groups[g].n_rows; k++) {
            const row *r = &groups[g].rows[k];
            if (applies(cfg, r->when, index) && str_equal(rest, str_of(r->name))) return true;
        }
    }
    return false;
}

static bool begins_with(str s, str prefix) {
    return s.n >= prefix.n && memcmp(s.p, prefix.p, prefix.n) == 0;
}

static const str tower_prefix = {"model.visual.", sizeof "model.visual." - 1};

bool bind_has_tower(const safetensors *model) {
    for (uint32_t i = 0; i < safetensors_count(model); i++)
        if (begins_with(safetensors_at(model, i).name, tower_prefix)) return true;
    return false;
}

/* ---- checking ---------------------------------------------------------------------------------
 */

/* "[3, 4]" */
static void show_shape(char *out, size_t n, const uint64_t *shape, uint32_t rank) {
    size_t used = (size_t)snprintf(out, n, "[");
    for (uint32_t d = 0; d < rank && used < n; d++)
        used += (size_t)snprintf(out + used, n - used, d == 0 ? "%llu" : ", %llu",
                                 (unsigned long long)shape[d]);
    if (used < n) snprintf(out + used, n - used, "]");
}

static bool same_shape(const tensor *found, const bind_tensor *wanted) {
    /* The head's scalars have rank 0; writers that know no rank 0 give them one value instead,
     * and the reference's loader takes both. */
    if (wanted->use == BIND_SCALAR && found->rank == 1) return found->shape[0] == 1;
    return found->rank == wanted->rank &&
           memcmp(found->shape, wanted->shape, wanted->rank * sizeof *wanted->shape) == 0;
}

/* conv1d as MLX stores it: the last two axes exchanged. */
static bool is_mlx_conv(const tensor *found, const bind_tensor *wanted) {
    return wanted->rank == 3 && found->rank == 3 && found->shape[0] == wanted->shape[0] &&
           found->shape[1] == wanted->shape[2] && found->shape[2] == wanted->shape[1];
}

/* The scales of a weight of codes, or NULL. */
static const tensor *find_scales(const safetensors *st, str weight) {
    char name[160];
    const int n = snprintf(name, sizeof name, "%.*s_scale", STR_ARG(weight));
    return safetensors_find(st, (str){name, (size_t)n});
}

/* Codes and scales that no converter writes: a code outside the symmetric range, and a scale that
 * is not a positive number, unless it is zero and its block too. */
static clef_status check_values(const safetensors *st, str name, dtype type, const tensor *codes,
                                const tensor *scales, clef_error *problem) {
    const size_t n_blocks = scales->bytes / sizeof(uint16_t);
    const size_t bad = codes_find_bad(type, codes->data, n_blocks * INT8_BLOCK);
    const int most = (1 << (dtype_bits(type) - 1)) - 1;
    if (bad < n_blocks * INT8_BLOCK)
        return clef_fail(problem, CLEF_ERR_FORMAT,
                         "%s: tensor '%.*s' holds code %d at value %zu, wanted %d to %d",
                         safetensors_file_of(st, codes), STR_ARG(name), -most - 1, bad, -most,
                         most);
    for (size_t i = 0; i < n_blocks; i++) {
        uint16_t bits;
        memcpy(&bits, (const char *)scales->data + i * sizeof bits, sizeof bits);
        if (bits > 0 && bits < 0x7C00u) continue;
        if (bits == 0 && codes_zero(type, codes->data, i)) continue;
        return clef_fail(problem, CLEF_ERR_FORMAT,
                         "%s: tensor '%.*s_scale' holds %g at value %zu, wanted a positive number",
                         safetensors_file_of(st, scales), STR_ARG(name), (double)f16_to_float(bits),
                         i);
    }
    return CLEF_OK;
}

/* A weight of codes whose shape is right. */
static clef_status check_codes(const safetensors *st, dtype type, const tensor *codes,
                               const bind_tensor *wanted, clef_error *problem) {
    const char *file = safetensors_file_of(st, codes);
    if (wanted->shape[1] % INT8_BLOCK != 0)
        return clef_fail(
            problem, CLEF_ERR_FORMAT,
            "%s: tensor '%.*s' is I8 with rows of %llu values, wanted a multiple of %d", file,
            STR_ARG(wanted->name), (unsigned long long)wanted->shape[1], INT8_BLOCK);
    const tensor *scales = find_scales(st, wanted->name);
    if (scales == NULL)
        return clef_fail(problem, CLEF_ERR_FORMAT,
                         "%s: tensor '%.*s_scale' is missing, '%.*s' is %s", safetensors_path(st),
                         STR_ARG(wanted->name), STR_ARG(wanted->name), dtype_name(codes->type));
    const uint64_t shape[2] = {wanted->shape[0], wanted->shape[1] / INT8_BLOCK};
    if (scales->type != DTYPE_F16 || scales->rank != 2 ||
        memcmp(scales->shape, shape, sizeof shape) != 0) {
        char found[200], want[100];
        show_shape(found, sizeof found, scales->shape, scales->rank);
        show_shape(want, sizeof want, shape, 2);
        return clef_fail(problem, CLEF_ERR_FORMAT,
                         "%s: tensor '%.*s_scale' is %s %s, wanted F16 %s: a scale for each block "
                         "of %d",
                         safetensors_file_of(st, scales), STR_ARG(wanted->name),
                         dtype_name(scales->type), found, want, INT8_BLOCK);
    }
    return check_values(st, wanted->name, type, codes, scales, problem);
}

static clef_status check_tensor(const safetensors *st, const bind_tensor *wanted,
                                clef_error *problem) {
    const tensor *t = safetensors_find(st, wanted->name);
    if (t == NULL)
        return clef_fail(problem, CLEF_ERR_FORMAT, "%s: tensor '%.*s' is missing",
                         safetensors_path(st), STR_ARG(wanted->name));
    const dtype type =
        wanted->linear && wanted->rank == 2 ? codes_of(t, wanted->shape[1]) : t->type;
    const bool packed = type != t->type && t->shape[0] == wanted->shape[0];
    if (!packed && !same_shape(t, wanted)) {
        char found[200], want[100];
        show_shape(found, sizeof found, t->shape, t->rank);
        show_shape(want, sizeof want, wanted->shape, wanted->rank);
        return clef_fail(
            problem, CLEF_ERR_FORMAT, "%s: tensor '%.*s' has shape %s, wanted %s%s",
            safetensors_file_of(st, t), STR_ARG(wanted->name), found, want,
            is_mlx_conv(t, wanted) ? " (this is the MLX layout, which is not supported)" : "");
    }
    if (packed || (t->type == DTYPE_I8 && (wanted->linear || wanted->table)))
        return check_codes(st, type, t, wanted, problem);
    if (t->type != DTYPE_BF16 && t->type != DTYPE_F16 && t->type != DTYPE_F32)
        return clef_fail(problem, CLEF_ERR_FORMAT,
                         "%s: tensor '%.*s' is %s, wanted BF16, F16 or F32",
                         safetensors_file_of(st, t), STR_ARG(wanted->name), dtype_name(t->type));
    return CLEF_OK;
}

typedef struct {
    const safetensors *model, *head;
    bind_report *report;
    void *context;
} checker;

static void check_slot(void *context, const slot *s) {
    const checker *c = context;
    const safetensors *st = s->tensor.head ? c->head : c->model;
    clef_error problem = {0};
    if (st != NULL && check_tensor(st, &s->tensor, &problem) != CLEF_OK)
        c->report(c->context, &problem);
}

/* Whether `name` holds the scales of a weight of codes, which check_slot has looked at. */
static bool is_scale(const safetensors *st, str name) {
    const str suffix = STR("_scale");
    if (name.n < suffix.n) return false;
    const str weight = {name.p, name.n - suffix.n};
    const tensor *t = safetensors_find(st, weight);
    return str_equal((str){name.p + weight.n, suffix.n}, suffix) && t != NULL &&
           (t->type == DTYPE_I8 || t->type == DTYPE_U8);
}

static void check_extra(const checker *c, const config *cfg, bool head) {
    const safetensors *st = head ? c->head : c->model;
    for (uint32_t i = 0; st != NULL && i < safetensors_count(st); i++) {
        const safetensors_entry e = safetensors_at(st, i);
        if (is_expected(cfg, head, e.name) || is_scale(st, e.name)) continue;
        if (!head && begins_with(e.name, STR("mtp."))) continue;
        if (!head && cfg->vision.depth == 0 && begins_with(e.name, tower_prefix)) continue;
        clef_error problem = {0};
        clef_fail(&problem, CLEF_ERR_FORMAT,
                  "%s: tensor '%.*s' is no part of the %s that the configuration describes", e.file,
                  STR_ARG(e.name), head ? "head" : "model");
        c->report(c->context, &problem);
    }
}

void bind_check(const safetensors *model, const safetensors *head, const config *cfg,
                bind_report *report, void *context) {
    checker c = {model, head, report, context};
    each_slot(cfg, check_slot, &c);
    check_extra(&c, cfg, false);
    check_extra(&c, cfg, true);
}

/* ---- binding ----------------------------------------------------------------------------------
 */

typedef struct {
    const safetensors *model, *head;
    weights *out;
    layer_weights *layers;
    evidence_layer *evidence;
    decoder_layer *decoder;
    vision_block *blocks;
    arena *mem;
    bool failed; /* memory ran out */
} binder;

/* The struct that the rows of a group point into. */
static char *destination(const binder *b, const slot *s) {
    switch (s->group) {
    case LAYERS:
        return (char *)&b->layers[s->index];
    case HEAD:
        return (char *)&b->out->head;
    case EVIDENCE:
        return (char *)&b->evidence[s->index];
    case DECODER:
        return (char *)&b->decoder[s->index];
    case VISION:
        return (char *)&b->out->vision;
    case BLOCKS:
        return (char *)&b->blocks[s->index];
    default:
        return (char *)b->out;
    }
}

/* All values of `t`, widened, as its use wants them; NULL when memory ran out. */
static float *widen(const tensor *t, bind_use use, arena *mem) {
    size_t n = 1;
    for (uint32_t d = 0; d < t->rank; d++) n *= (size_t)t->shape[d];
    float *v = arena_alloc(mem, n, sizeof *v);
    if (v == NULL) return NULL;
    tensor_to_float(v, t->type, t->data, 0, n);
    for (size_t i = 0; use == BIND_OFFSET && i < n; i++) v[i] += 1.0f;
    for (size_t i = 0; use == BIND_DECAY && i < n; i++) v[i] = -fmath_exp(v[i]);
    return v;
}

static void bind_slot(void *context, const slot *s) {
    binder *b = context;
    const tensor *t = safetensors_find(s->tensor.head ? b->head : b->model, s->tensor.name);
    void *at = destination(b, s) + s->offset;
    const bind_use use = s->tensor.use;
    if (use == BIND_MATRIX || use == BIND_QKV) {
        const dtype type = codes_of(t, s->tensor.shape[1]);
        const tensor *scales = codes_type(type) ? find_scales(b->model, s->tensor.name) : NULL;
        const uint32_t n_parts = use == BIND_QKV ? 3 : 1;
        const uint32_t n_out = (uint32_t)t->shape[0] / n_parts;
        uint32_t n_in = 1; /* a convolution without overlap is a matrix over what a patch holds */
        for (uint32_t d = 1; d < t->rank; d++) n_in *= (uint32_t)s->tensor.shape[d];
        const char *data = t->data;
        for (uint32_t i = 0; i < n_parts; i++)
            ((matrix *)at)[i] = (matrix){.data = data + t->bytes / n_parts * i,
                                         .scales = scales == NULL ? NULL : scales->data,
                                         .type = type,
                                         .n_out = n_out,
                                         .n_in = n_in};
        return;
    }
    const float *v = widen(t, use, b->mem);
    if (v == NULL) {
        b->failed = true;
    } else if (use == BIND_SCALAR) {
        *(float *)at = *v;
    } else if (use == BIND_QKV_BIAS) {
        for (uint32_t i = 0; i < 3; i++) ((const float **)at)[i] = v + t->shape[0] / 3 * i;
    } else {
        *(const float **)at = v;
    }
}

/* A bind_report that keeps the first problem. */
static void keep_first(void *context, const clef_error *problem) {
    clef_error *first = context;
    if (first->status == CLEF_OK) *first = *problem;
}

clef_status bind_weights(weights *out, const safetensors *model, const safetensors *head,
                         const config *cfg, arena *mem, clef_error *err) {
    clef_error first = {0};
    bind_check(model, head, cfg, keep_first, &first);
    if (first.status != CLEF_OK) {
        if (err != NULL) *err = first;
        return first.status;
    }
    weights w = {0};
    binder b = {
        .model = model,
        .head = head,
        .out = &w,
        .layers = arena_alloc(mem, cfg->n_layers, sizeof *b.layers),
        .evidence = arena_alloc(mem, cfg->head_routing_layers, sizeof *b.evidence),
        .decoder = arena_alloc(mem, cfg->head_layers, sizeof *b.decoder),
        .blocks = arena_alloc(mem, cfg->vision.depth, sizeof *b.blocks),
        .mem = mem,
    };
    if (b.layers == NULL || b.evidence == NULL || b.decoder == NULL || b.blocks == NULL)
        return clef_fail_memory(err);
    for (uint32_t i = 0; i < cfg->n_layers; i++) b.layers[i].full = cfg->full[i];
    each_slot(cfg, bind_slot, &b);
    if (b.failed) return clef_fail_memory(err);
    if (cfg->tied) w.lexical = w.embed;
    w.layers = b.layers;
    w.head.evidence = b.evidence;
    w.head.decoder = b.decoder;
    w.vision.blocks = b.blocks;
    *out = w;
    return CLEF_OK;
}

/* ---- listing ----------------------------------------------------------------------------------
 */

typedef struct {
    bind_visit *visit;
    void *context;
} lister;

static void list_slot(void *context, const slot *s) {
    const lister *l = context;
    l->visit(l->context, &s->tensor);
}

void bind_each(const config *cfg, bind_visit *visit, void *context) {
    lister l = {visit, context};
    each_slot(cfg, list_slot, &l);
}

static void count_tensor(void *context, const bind_tensor *t) {
    bind_counts *counts = context;
    uint64_t n = 1;
    for (uint32_t d = 0; d < t->rank; d++) n *= t->shape[d];
    if (t->head)
        counts->head += n;
    else if (t->vision)
        counts->vision += n;
    else
        counts->language_model += n;
}

bind_counts bind_parameters(const config *cfg) {
    bind_counts counts = {0};
    bind_each(cfg, count_tensor, &counts);
    return counts;
}
