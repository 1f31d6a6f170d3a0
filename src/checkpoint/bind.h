/* bind.h - the tensors of a checkpoint as the network wants them: every name, shape and type
 * checked against one table, matrices left where the file maps them, small vectors widened to f32.
 * The table of bind.c has the names and shapes; MODEL.md sections 2 and 3 say what each computes.
 *
 * Sizes below: H hidden, I intermediate, V vocab, W head width, F head feedforward; nh, nkv, hd
 * attention heads, KV heads and head size; nk, nv, kd, vd delta-net key and value heads and sizes;
 * C = 2 nk kd + nv vd channels, K kernel. A matrix [out, in] computes y = W x. */
#ifndef CHECKPOINT_BIND_H
#define CHECKPOINT_BIND_H

#include "base/arena.h"
#include "checkpoint/config.h"
#include "checkpoint/safetensors.h"
#include "compute/compute.h"

/* Full attention of a backbone layer. The norms are multipliers: one is already added. */
typedef struct {
    matrix q;                     /* [2 nh hd, H], per head hd query rows, then hd gate rows */
    matrix k, v;                  /* [nkv hd, H] */
    matrix o;                     /* [H, nh hd] */
    const float *q_norm, *k_norm; /* [hd] */
} attention_weights;

typedef struct {
    matrix qkv;           /* [C, H]: q of all heads, k of all heads, v of all heads */
    matrix z;             /* [nv vd, H] */
    matrix a, b;          /* [nv, H] */
    matrix out;           /* [H, nv vd] */
    const float *conv;    /* [C, K], the last tap is the current token */
    const float *decay;   /* [nv]: -exp(A_log) */
    const float *dt_bias; /* [nv] */
    const float *norm;    /* [vd], the plain multiplier */
} delta_weights;

typedef struct {
    const float *input_norm, *post_norm; /* [H], multipliers: one is already added */
    matrix gate, up;                     /* [I, H] */
    matrix down;                         /* [H, I] */
    bool full;                           /* which of the two below is set */
    attention_weights attention;
    delta_weights delta;
} layer_weights;

/* LayerNorm, [n] each. */
typedef struct {
    const float *w, *b;
} norm_weights;

typedef struct {
    matrix w;       /* [out, in] */
    const float *b; /* [out] */
} linear_weights;

/* Multi-head attention of the joint head; q, k, v are row ranges of in_proj. */
typedef struct {
    matrix in_q, in_k, in_v;                        /* [W, W] */
    const float *in_q_bias, *in_k_bias, *in_v_bias; /* [W] */
    linear_weights out;                             /* [W, W] */
} head_attention;

typedef struct {
    norm_weights query_norm, memory_norm, feedforward_norm; /* [W] */
    head_attention attention;
    linear_weights ff0, ff3; /* [F, W] and [W, F], GELU between */
} evidence_layer;

typedef struct {
    head_attention self_attention, cross_attention;
    linear_weights linear1, linear2;  /* [F, W] and [W, F] */
    norm_weights norm1, norm2, norm3; /* [W] */
} decoder_layer;

typedef struct {
    norm_weights hidden_norm; /* [H] */
    matrix memory_projection, question_projection, option_question_projection, global_projection,
        option_context_projection, option_lexical_projection;  /* [W, H], no biases */
    const float *type_embedding;                               /* [3, W]: noul, choice, score */
    const evidence_layer *evidence;                            /* [config.head_routing_layers] */
    norm_weights option_summary_norm, field_norm, option_norm; /* [W] */
    const decoder_layer *decoder;                              /* [config.head_layers] */
    linear_weights scorer0, scorer3;                           /* [W, 4 W] and [1, W] */
    float prior_scale, joint_scale, residual_gate; /* as the file has them, before any function */
} head_weights;

/* One block of the vision tower. Sizes: h its hidden size, i its MLP. */
typedef struct {
    norm_weights norm1, norm2;             /* [h] */
    matrix q, k, v;                        /* [h, h]: row ranges of qkv */
    const float *q_bias, *k_bias, *v_bias; /* [h] */
    linear_weights out;                    /* [h, h] */
    linear_weights fc1, fc2;               /* [i, h] and [h, i], tanh GELU between */
} vision_block;

typedef struct {
    linear_weights patch;       /* [h, VISION_PATCH_VALUES] */
    matrix positions;           /* [side * side, h] */
    const vision_block *blocks; /* [config.vision.depth] */
    norm_weights norm;          /* [h] */
    linear_weights fc1, fc2;    /* [4 h, 4 h] and [H, 4 h], erf GELU between */
} vision_weights;

typedef struct {
    matrix embed;                /* [V, H] */
    matrix lexical;              /* [V, H]: lm_head, or embed where the config ties them */
    const float *final_norm;     /* [H], a multiplier: one is already added */
    const layer_weights *layers; /* [config.n_layers] */
    head_weights head;
    vision_weights vision; /* where config.vision.depth is not 0 */
} weights;

/* Whether the backbone's files hold a vision tower, or some of its tensors. */
bool bind_has_tower(const safetensors *model);

/* Fills *out from the backbone's and the head's tensors. Strict: a missing or an extra tensor
 * (other than mtp.*, and model.visual.* where config.vision.depth is 0), a wrong shape or type is
 * CLEF_ERR_FORMAT naming file, tensor, what was found and wanted. Matrices point into the mappings,
 * which must stay open; the rest is in `mem`. */
clef_status bind_weights(weights *out, const safetensors *model, const safetensors *head,
                         const config *cfg, arena *mem, clef_error *err);

/* Called once for each thing that keeps the tensors from binding. */
typedef void bind_report(void *context, const clef_error *problem);

/* Reports everything that bind_weights would refuse, in table order, then the extra tensors. Either
 * set may be NULL when it could not be opened; nothing is reported about it then. */
void bind_check(const safetensors *model, const safetensors *head, const config *cfg,
                bind_report *report, void *context);

/* What a tensor is used as, which decides how it is stored in `weights`. */
typedef enum {
    BIND_MATRIX,   /* left in the mapping */
    BIND_QKV,      /* a matrix cut into three equal row ranges */
    BIND_VECTOR,   /* widened */
    BIND_QKV_BIAS, /* widened and cut into three */
    BIND_OFFSET,   /* a norm stored as an offset from one: 1 + w is kept */
    BIND_DECAY,    /* A_log: -exp(A_log) is kept */
    BIND_SCALAR
} bind_use;

enum { BIND_MAX_RANK = 5 };

/* One tensor that a config calls for. `name` lives for the call only. */
typedef struct {
    str name;
    bool head; /* of joint_head.safetensors, else of the model */
    bind_use use;
    bool linear;    /* a linear of the backbone: may be codes with scales in "NAME_scale" */
    bool table;     /* embed_tokens or lm_head: may be int8 codes with scales */
    uint32_t layer; /* of the backbone, where linear */
    bool vision;    /* of the tower */
    uint32_t rank;
    uint64_t shape[BIND_MAX_RANK];
} bind_tensor;

typedef void bind_visit(void *context, const bind_tensor *t);

/* Calls `visit` for every tensor that `cfg` calls for, in table order. */
void bind_each(const config *cfg, bind_visit *visit, void *context);

typedef struct {
    uint64_t language_model, head, vision;
} bind_counts;

/* Parameters that `cfg` calls for. */
bind_counts bind_parameters(const config *cfg);

#endif
