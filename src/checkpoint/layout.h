/* layout.h - which tensors stand where in the shards of a converted model. */
#ifndef CHECKPOINT_LAYOUT_H
#define CHECKPOINT_LAYOUT_H

#include "base/buf.h"
#include "checkpoint/config.h"
#include "checkpoint/safetensors.h"

typedef enum { LAYOUT_COPY, LAYOUT_CODES, LAYOUT_SCALES } layout_kind;

typedef struct {
    tensor shape; /* type, shape and bytes in the new file; no data */
    str name;
    layout_kind kind;
    const tensor *source;
    uint32_t module; /* unless LAYOUT_COPY */
    uint64_t begin;  /* in the data area */
} layout_entry;

/* A linear that becomes int8. */
typedef struct {
    str name;
    uint32_t layer;
    const tensor *source; /* [n_out, n_in] */
} layout_module;

typedef struct {
    char name[48];
    layout_entry *entries; /* codes stand before their scales */
    uint32_t n_entries;
    uint64_t data_bytes;
} layout_shard;

typedef struct {
    layout_module *modules;
    layout_shard *shards;
    uint32_t n_modules, n_shards;
} layout;

/* Lays out `model` with the linears of all layers but those with wide[layer] as int8. A linear
 * whose rows are no whole number of blocks stays as it is. Everything lives in `mem`; names and
 * tensors as long as `model`. */
clef_status layout_make(layout *out, const safetensors *model, const config *cfg, const bool *wide,
                        arena *mem, clef_error *err);

/* The first bytes of a shard: length and header, padded so that the data begin at a multiple of 64.
 * `id` becomes its metadata. */
void layout_header(buf *out, const layout_shard *s, const char *id);

/* model.safetensors.index.json. */
clef_status layout_index(buf *out, const layout *l, arena *mem, clef_error *err);

#endif
