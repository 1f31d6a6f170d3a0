/* config.h - every size of the network, read from config.json and joint_head_config.json.
 * The published sizes stand in testdata/checkpoint; what they mean in MODEL.md sections 2 and 3. */
#ifndef CHECKPOINT_CONFIG_H
#define CHECKPOINT_CONFIG_H

#include "base/arena.h"
#include "base/status.h"

/* What a patch is made of; a tower of other sizes is refused. */
enum { VISION_PATCH = 16, VISION_TEMPORAL = 2, VISION_MERGE = 2 };
enum { VISION_PATCH_VALUES = 3 * VISION_TEMPORAL * VISION_PATCH * VISION_PATCH };

typedef struct {
    uint32_t depth; /* blocks; 0: there is no tower, or it is not used */
    uint32_t hidden, intermediate, n_heads;
    uint32_t side; /* the position table is side x side */
} vision_sizes;

typedef struct {
    uint32_t hidden, intermediate, n_layers, vocab;
    bool tied;        /* lexical rows come from the embedding table */
    const bool *full; /* [n_layers]: full attention, else Gated DeltaNet */
    float rms_eps;
    uint32_t max_positions;
    /* full attention */
    uint32_t n_heads, n_kv_heads, head_dim;
    uint32_t rotary_dim; /* dims of a head that rotate, even */
    double rope_theta;
    uint32_t rope_sections[3]; /* frequencies of the t, h, w planes; their sum is rotary_dim / 2 */
    /* Gated DeltaNet */
    uint32_t n_key_heads, n_value_heads, key_dim, value_dim, conv_kernel;
    /* joint head */
    uint32_t head_width, head_routing_layers, head_layers, head_heads, head_feedforward;
    vision_sizes vision; /* config_load_vision */
} config;

/* Channels of the convolution: q, k and v of all heads. */
static inline uint32_t config_channels(const config *c) {
    return 2 * c->n_key_heads * c->key_dim + c->n_value_heads * c->value_dim;
}

/* Reads both files of folder `dir`. What the files leave out takes the published default where
 * all five published sizes share one (vocab_size 248320, head_dim 256, linear head sizes 128, ...:
 * config.c); a size that cannot be computed with (zero, heads that do not divide, rope_scaling
 * other than default, ...) is CLEF_ERR_FORMAT naming file and member. */
clef_status config_load(config *out, const char *dir, arena *mem, clef_error *err);

/* Fills c->vision, whose depth config_load leaves 0, from vision_config of the same folder; without
 * that member it stays 0. For checkpoints whose weights hold a tower (bind_has_tower): text-only
 * ones may say anything there. Members that are left out take the published values;
 * CLEF_ERR_FORMAT names the one that describes another network. */
clef_status config_load_vision(config *c, const char *dir, arena *mem, clef_error *err);

#endif
