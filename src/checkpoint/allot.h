/* allot.h - which linear of a model gets which format when it is converted. */
#ifndef CHECKPOINT_ALLOT_H
#define CHECKPOINT_ALLOT_H

#include "base/digest.h"
#include "base/pool.h"
#include "checkpoint/bind.h"
#include "checkpoint/codes.h"
#include "clef.h"

/* Kinds of linears whose errors weigh differently. */
typedef enum {
    ALLOT_DELTA,     /* in_proj_qkv, in_proj_z, out_proj */
    ALLOT_ATTENTION, /* q_proj, k_proj, v_proj, o_proj */
    ALLOT_MLP,       /* gate_proj, up_proj, down_proj */
    ALLOT_GATES,     /* in_proj_a, in_proj_b: a thousandth of the bytes */
    ALLOT_TABLE,     /* embed_tokens, lm_head: no linears, rows that are looked up */
    ALLOT_N_KINDS
} allot_kind;

/* A matrix of the source. */
typedef struct {
    str name;
    allot_kind kind;
    uint32_t layer; /* unless a table */
    const tensor *source;
    dtype type; /* codes, or the source's own type */
} allot_item;

/* The linears of one kind in neighbouring layers, and what each format loses in them. */
typedef struct {
    allot_kind kind;
    uint32_t set, first, last; /* layers */
    dtype type;
    uint64_t n_values;
    double loss[3], size2; /* of a sample, by allot_formats */
    double weight;         /* expected loss at int8, in that of int8 everywhere */
} allot_unit;

/* Of a linear that is measured, 1 / ALLOT_PART of its bytes count as work. */
enum { ALLOT_PART = 4 };

extern const dtype allot_formats[3]; /* DTYPE_INT4, DTYPE_INT6, DTYPE_I8 */

typedef struct {
    allot_item *items;
    allot_unit *units; /* of a mixed allocation; else none */
    uint32_t n_items, n_units;
} allotment;

typedef struct {
    clef_format format;
    const bool *wide;     /* [n_layers]: stays at 16 bit */
    bool tables;          /* the tables become int8 */
    digest_step *advance; /* told of a part of the bytes of each linear that is measured */
    void *context;
} allot_options;

/* Looks at every matrix of the backbone and decides; what `advance` fails with is passed on. A
 * matrix whose rows are no whole number of blocks stays as it is. Everything lives in `mem`; names
 * and tensors as long as `model`. */
clef_status allot_make(allotment *out, const safetensors *model, const config *cfg,
                       const allot_options *o, pool *workers, arena *mem, clef_error *err);

/* Whether a format leaves a layer at 16 bit when it is not told which: the first 12 of 32 layers in
 * int8mix, and the same share, rounded up, of other depths. */
bool allot_wide(clef_format format, uint32_t layer, uint32_t n_layers);

/* Bytes that the files of `model`, which is not converted yet, take at most in a format. The names
 * of scales are counted amply, 256 bytes a matrix, and of a mixed format its whole budget. */
clef_status allot_bytes(uint64_t *out, const safetensors *model, const config *cfg,
                        clef_format format, bool tables, arena *mem, clef_error *err);

const char *allot_kind_name(allot_kind kind);
/* What a unit is expected to lose in a format, in what int8 loses in all linears; squares of
 * differences of probabilities. */
double allot_expected(const allot_unit *u, dtype type);

#endif
