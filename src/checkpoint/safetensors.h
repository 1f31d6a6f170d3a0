/* safetensors.h - tensors by name, from one file or from the shards of a folder, mapped and never
 * copied. The rules that files and indexes have to keep stand at the top of safetensors.c. */
#ifndef CHECKPOINT_SAFETENSORS_H
#define CHECKPOINT_SAFETENSORS_H

#include "base/status.h"
#include "base/str.h"
#include "base/tensor.h"

typedef struct safetensors safetensors;

/* Maps one file and checks its header by all rules; errors name the file, the tensor and the
 * rule. Close with safetensors_close; tensors live as long as the mapping. */
clef_status safetensors_open(safetensors **out, const char *path, clef_error *err);

/* Opens the model of folder `dir`: the shards that model.safetensors.index.json names (all of
 * them, and no tensor beside the map), or model.safetensors when there is no index. Links may not
 * lead out of the model (hub_file). A missing shard is named together with the first tensor it
 * should hold. */
clef_status safetensors_open_model(safetensors **out, const char *dir, clef_error *err);
void safetensors_close(safetensors *st);

/* The tensor of that name, or NULL. */
const tensor *safetensors_find(const safetensors *st, str name);

/* All tensors in name order, for reports and strict binding: 0 <= i < safetensors_count. */
uint32_t safetensors_count(const safetensors *st);
typedef struct {
    str name;
    const tensor *tensor;
    const char *file; /* the path it was read from */
} safetensors_entry;
safetensors_entry safetensors_at(const safetensors *st, uint32_t i);

/* The path of the file that holds `t` (one of this set's tensors), for error sentences. */
const char *safetensors_file_of(const safetensors *st, const tensor *t);

/* The path of the file, or of the index when there is one, for sentences about what is missing. */
const char *safetensors_path(const safetensors *st);

/* Bytes mapped, all files together. */
size_t safetensors_bytes(const safetensors *st);

/* A sentence about something that is odd but harms nothing, or NULL: an index whose total_size is
 * not the sum of the tensors. */
const char *safetensors_note(const safetensors *st);

/* The header check alone, for fuzzing: does `n` bytes at `data` form a valid file? */
clef_status safetensors_check(const void *data, size_t n, const char *label, clef_error *err);

#endif
