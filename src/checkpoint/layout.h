/* layout.h - which tensors stand where in the shards of a converted model. */
#ifndef CHECKPOINT_LAYOUT_H
#define CHECKPOINT_LAYOUT_H

#include "base/buf.h"
#include "checkpoint/allot.h"

typedef enum { LAYOUT_COPY, LAYOUT_CODES, LAYOUT_SCALES } layout_kind;

typedef struct {
    tensor shape; /* type, shape and bytes in the new file; no data */
    str name;
    layout_kind kind;
    const tensor *source;
    uint32_t item;  /* of the allotment, unless LAYOUT_COPY */
    uint64_t begin; /* in the data area */
} layout_entry;

typedef struct {
    char name[48];
    layout_entry *entries; /* codes stand before their scales */
    uint32_t n_entries;
    uint64_t data_bytes;
} layout_shard;

typedef struct {
    layout_shard *shards;
    uint32_t n_shards;
} layout;

/* Lays out `model` with the items of `a` as the codes they are allotted. Everything lives in `mem`;
 * names and tensors as long as `model`. */
clef_status layout_make(layout *out, const safetensors *model, const allotment *a, arena *mem,
                        clef_error *err);

/* The first bytes of a shard: length and header, padded so that the data begin at a multiple of 64.
 * `id` becomes its metadata. */
void layout_header(buf *out, const layout_shard *s, const char *id);

/* model.safetensors.index.json. */
clef_status layout_index(buf *out, const layout *l, arena *mem, clef_error *err);

#endif
