/* layout.c - tensors in name order are dealt to shards of about 2 GB; in each, tensors whose size
 * is a multiple of 64 come first, so that every big one is aligned to a cache line without a hole,
 * which the format forbids. Depends on names, shapes and types alone. */
#include "checkpoint/layout.h"

#include <stdio.h>
#include <stdlib.h>

#include "text/pyjson.h"

enum { ALIGN = 64 };
static const uint64_t SHARD_BYTES = 2000000000;

/* One tensor of the source becomes one entry or two. */
static clef_status add_entries(layout_entry *out, uint32_t *n, const allotment *a,
                               safetensors_entry e, arena *mem, clef_error *err) {
    layout_entry copy = {.shape = *e.tensor, .name = e.name, .source = e.tensor};
    copy.shape.data = NULL;
    for (uint32_t i = 0; i < a->n_items; i++) {
        const dtype type = a->items[i].type;
        if (a->items[i].source != e.tensor || !codes_type(type)) continue;
        layout_entry codes = copy, scales = copy;
        codes.kind = LAYOUT_CODES;
        scales.kind = LAYOUT_SCALES;
        codes.item = scales.item = i;
        const size_t n_values = (size_t)(copy.shape.shape[0] * copy.shape.shape[1]);
        codes.shape.type = type == DTYPE_I8 ? DTYPE_I8 : DTYPE_U8;
        codes.shape.bytes = codes_bytes(type, n_values);
        codes.shape.shape[1] = codes_bytes(type, (size_t)copy.shape.shape[1]);
        scales.shape.type = DTYPE_F16;
        scales.shape.shape[1] /= INT8_BLOCK;
        scales.shape.bytes = n_values / INT8_BLOCK * sizeof(uint16_t);
        char *name = arena_alloc_small(mem, e.name.n + sizeof "_scale");
        if (name == NULL) return clef_fail_memory(err);
        memcpy(name, e.name.p, e.name.n);
        memcpy(name + e.name.n, "_scale", sizeof "_scale");
        scales.name = (str){name, e.name.n + strlen("_scale")};
        out[(*n)++] = codes;
        out[(*n)++] = scales;
        return CLEF_OK;
    }
    out[(*n)++] = copy;
    return CLEF_OK;
}

/* Aligned sizes first, then by name. Codes stay before their scales: "X" is before "X_scale", and
 * scales, 2 bytes a block beside 16, 24 or 32, are aligned only where their codes are. */
static int by_place(const void *a, const void *b) {
    const layout_entry *x = a, *y = b;
    const bool odd_x = x->shape.bytes % ALIGN != 0, odd_y = y->shape.bytes % ALIGN != 0;
    return odd_x != odd_y ? odd_x - odd_y : str_compare(x->name, y->name);
}

static void place(layout_shard *s) {
    qsort(s->entries, s->n_entries, sizeof *s->entries, by_place);
    for (uint32_t i = 0; i < s->n_entries; i++) {
        s->entries[i].begin = s->data_bytes;
        s->data_bytes += s->entries[i].shape.bytes;
    }
}

/* Cuts the entries, in name order, into shards; codes and their scales stay together. */
static void cut(layout *l, layout_entry *entries, uint32_t n) {
    for (uint32_t i = 0; i < n;) {
        layout_shard *s = &l->shards[l->n_shards++];
        uint64_t bytes = 0;
        s->entries = entries + i;
        while (i < n && (bytes < SHARD_BYTES || entries[i].kind == LAYOUT_SCALES)) {
            const uint64_t next = entries[i].shape.bytes;
            if (bytes > 0 && bytes + next > SHARD_BYTES && entries[i].kind != LAYOUT_SCALES) break;
            bytes += next;
            i++;
        }
        s->n_entries = (uint32_t)(entries + i - s->entries);
    }
    for (uint32_t i = 0; i < l->n_shards; i++) {
        place(&l->shards[i]);
        snprintf(l->shards[i].name, sizeof l->shards[i].name, "model-%05u-of-%05u.safetensors",
                 i + 1, l->n_shards);
    }
}

clef_status layout_make(layout *out, const safetensors *model, const allotment *a, arena *mem,
                        clef_error *err) {
    const uint32_t n_source = safetensors_count(model);
    layout l = {.shards = arena_alloc(mem, (size_t)n_source * 2, sizeof *l.shards)};
    layout_entry *entries = arena_alloc(mem, (size_t)n_source * 2, sizeof *entries);
    if (l.shards == NULL || entries == NULL) return clef_fail_memory(err);
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_source; i++)
        TRY(add_entries(entries, &n, a, safetensors_at(model, i), mem, err));
    cut(&l, entries, n);
    *out = l;
    return CLEF_OK;
}

void layout_header(buf *out, const layout_shard *s, const char *id) {
    buf text = {0};
    buf_printf(&text, "{\"__metadata__\":{\"clef_bundle\":\"%s\"}", id);
    for (uint32_t i = 0; i < s->n_entries; i++) {
        const layout_entry *e = &s->entries[i];
        buf_add_char(&text, ',');
        pyjson_string(&text, e->name);
        buf_printf(&text, ":{\"dtype\":\"%s\",\"shape\":[", dtype_name(e->shape.type));
        for (uint32_t d = 0; d < e->shape.rank; d++)
            buf_printf(&text, "%s%llu", d == 0 ? "" : ",", (unsigned long long)e->shape.shape[d]);
        buf_printf(&text, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)e->begin,
                   (unsigned long long)e->begin + e->shape.bytes);
    }
    buf_add_char(&text, '}');
    while (!text.failed && (8 + text.n) % ALIGN != 0) buf_add_char(&text, ' ');
    for (unsigned i = 0; i < 8; i++) buf_add_char(out, (char)((uint64_t)text.n >> 8 * i & 255));
    buf_add(out, text.p, text.n);
    if (text.failed) out->failed = true;
    buf_free(&text);
}

typedef struct {
    str name;
    const char *shard;
} indexed;

static int by_name(const void *a, const void *b) {
    const indexed *x = a, *y = b;
    return str_compare(x->name, y->name);
}

clef_status layout_index(buf *out, const layout *l, arena *mem, clef_error *err) {
    uint64_t bytes = 0;
    size_t n = 0;
    for (uint32_t s = 0; s < l->n_shards; s++) {
        bytes += l->shards[s].data_bytes;
        n += l->shards[s].n_entries;
    }
    indexed *all = arena_alloc(mem, n, sizeof *all);
    if (all == NULL) return clef_fail_memory(err);
    n = 0;
    for (uint32_t s = 0; s < l->n_shards; s++)
        for (uint32_t i = 0; i < l->shards[s].n_entries; i++)
            all[n++] = (indexed){l->shards[s].entries[i].name, l->shards[s].name};
    qsort(all, n, sizeof *all, by_name);
    buf_printf(out, "{\"metadata\": {\"total_size\": %llu}, \"weight_map\": {",
               (unsigned long long)bytes);
    for (size_t i = 0; i < n; i++) {
        buf_add_text(out, i == 0 ? "\n" : ",\n");
        pyjson_string(out, all[i].name);
        buf_printf(out, ": \"%s\"", all[i].shard);
    }
    buf_add_text(out, "\n}}\n");
    return buf_status(out, err);
}
