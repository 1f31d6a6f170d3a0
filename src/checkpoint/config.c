/* config.c - sizes from config.json and joint_head_config.json, checked so far that no later size
 * computation can overflow and no kernel meets a shape it cannot compute.
 *
 * The releases put the text model's members into "text_config"; a text-only export
 * (model_type qwen3_5_text) has the same members at the top. Members that do not bear on inference
 * are ignored; a member that says the network differs from MODEL.md is refused, because
 * computing something else in silence would be a wrong answer.
 *
 * Traps: the rotary members stand in rope_parameters, in rope_scaling (older writers) or beside
 * them, often twice; the number of rotating dims is cut to an integer as the reference does
 * (18 * 0.34 is 6); layer_types decides, full_attention_interval only fills in for it, and
 * published files let them differ. */
#include "checkpoint/config.h"

#include <stdlib.h>

#include "base/file.h"
#include "checkpoint/model_json.h"
#include "compute/compute.h"

enum { MAX_FILE_BYTES = 1 << 20, MAX_LAYERS = 1024 };
#define HEAD_CONFIG "joint_head_config.json"

/* One JSON object of a file, with what sentences about its members start with. */
typedef struct {
    const json *object;
    const char *path, *prefix; /* "text_config." or "" */
} section;

#define MEMBER_AT "%s: %s%s: "
#define MEMBER_ARG(at, name) (at)->path, (at)->prefix, name

/* The member; NULL when it is absent or null, which writers use for "not set". */
static const json *member(const section *at, const char *name) {
    const json *v = json_get(at->object, str_of(name));
    return v == NULL || v->kind == JSON_NULL ? NULL : v;
}

static clef_status missing(const section *at, const char *name, clef_error *err) {
    return clef_fail(err, CLEF_ERR_FORMAT, MEMBER_AT "missing", MEMBER_ARG(at, name));
}

/* ---- members of one kind ----------------------------------------------------------------------
 */

/* A size of 1 .. max; `fallback` 0: the member is required. */
static clef_status read_size(uint32_t *out, const section *at, const char *name, uint32_t max,
                             uint32_t fallback, clef_error *err) {
    const json *v = member(at, name);
    uint64_t size;
    if (v == NULL && fallback == 0) return missing(at, name, err);
    *out = fallback;
    if (v == NULL) return CLEF_OK;
    if (!json_u64(&size, v, max) || size == 0)
        return clef_fail(err, CLEF_ERR_FORMAT, MEMBER_AT "found %.*s, wanted an integer of 1 to %u",
                         MEMBER_ARG(at, name), STR_ARG(model_json_show(v)), max);
    *out = (uint32_t)size;
    return CLEF_OK;
}

/* A number above 0 and up to `max`. */
static clef_status read_positive(double *out, const section *at, const char *name, double max,
                                 double fallback, clef_error *err) {
    const json *v = member(at, name);
    *out = fallback;
    if (v == NULL) return CLEF_OK;
    if (!json_double(out, v) || !(*out > 0.0 && *out <= max))
        return clef_fail(err, CLEF_ERR_FORMAT,
                         MEMBER_AT "found %.*s, wanted a number above 0 and up to %g",
                         MEMBER_ARG(at, name), STR_ARG(model_json_show(v)), max);
    return CLEF_OK;
}

static clef_status read_bool(bool *out, const section *at, const char *name, bool fallback,
                             clef_error *err) {
    const json *v = member(at, name);
    *out = fallback;
    if (v == NULL) return CLEF_OK;
    if (v->kind != JSON_TRUE && v->kind != JSON_FALSE)
        return clef_fail(err, CLEF_ERR_FORMAT, MEMBER_AT "found %.*s, wanted true or false",
                         MEMBER_ARG(at, name), STR_ARG(model_json_show(v)));
    *out = v->kind == JSON_TRUE;
    return CLEF_OK;
}

/* A member that may be absent, but has to say this when it is there. */
static clef_status require_text(const section *at, const char *name, const char *wanted,
                                clef_error *err) {
    const json *v = member(at, name);
    if (v == NULL || (v->kind == JSON_STRING && str_equal(v->text, str_of(wanted)))) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_FORMAT, MEMBER_AT "found %.*s, wanted '%s'",
                     MEMBER_ARG(at, name), STR_ARG(model_json_show(v)), wanted);
}

static clef_status require_bool(const section *at, const char *name, bool wanted, clef_error *err) {
    bool found;
    TRY(read_bool(&found, at, name, wanted, err));
    if (found == wanted) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_FORMAT, MEMBER_AT "found %s, wanted %s", MEMBER_ARG(at, name),
                     found ? "true" : "false", wanted ? "true" : "false");
}

static clef_status require_divides(const section *at, const char *part, uint32_t n_part,
                                   const char *whole, uint32_t n_whole, clef_error *err) {
    if (n_whole % n_part == 0) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_FORMAT, MEMBER_AT "found %u, which does not divide %s %u",
                     MEMBER_ARG(at, part), n_part, whole, n_whole);
}

/* ---- rotary positions -------------------------------------------------------------------------
 */

enum { N_ROPE_PLACES = 3 };

/* The object `name` of `text`, or an empty section when it is absent. */
static clef_status open_rope(section *out, const section *text, const char *name,
                             const char *prefix, clef_error *err) {
    *out = (section){member(text, name), text->path, prefix};
    if (out->object == NULL || out->object->kind == JSON_OBJECT) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_FORMAT, MEMBER_AT "found %.*s, wanted an object",
                     MEMBER_ARG(text, name), STR_ARG(model_json_show(out->object)));
}

/* A number that may stand in several places, which then have to agree. */
static clef_status read_agreed(double *out, const section *places, const char *name, double max,
                               double fallback, clef_error *err) {
    const section *first = NULL;
    *out = fallback;
    for (int i = 0; i < N_ROPE_PLACES; i++) {
        double value;
        if (member(&places[i], name) == NULL) continue;
        TRY(read_positive(&value, &places[i], name, max, fallback, err));
        if (first != NULL && value != *out)
            return clef_fail(err, CLEF_ERR_FORMAT, MEMBER_AT "found %g, but %s%s is %g",
                             MEMBER_ARG(&places[i], name), value, first->prefix, name, *out);
        if (first == NULL) first = &places[i];
        *out = value;
    }
    return CLEF_OK;
}

static clef_status read_sections(config *c, const section *places, clef_error *err) {
    const section *at = NULL;
    for (int i = 0; at == NULL && i < N_ROPE_PLACES; i++)
        if (member(&places[i], "mrope_section") != NULL) at = &places[i];
    const uint32_t n_frequencies = c->rotary_dim / 2;
    static const uint32_t published[3] = {11, 11, 10};
    memcpy(c->rope_sections, published, sizeof published);
    if (at != NULL) {
        const json *v = member(at, "mrope_section");
        uint32_t n = 0;
        for (const json *e = v->first; v->kind == JSON_ARRAY && e != NULL && n <= 3; e = e->next) {
            uint64_t size;
            if (n < 3 && json_u64(&size, e, MAX_HEAD_DIM))
                c->rope_sections[n++] = (uint32_t)size;
            else
                n = 4;
        }
        if (n != 3)
            return clef_fail(err, CLEF_ERR_FORMAT, MEMBER_AT "wanted three integers of 0 to %d",
                             MEMBER_ARG(at, "mrope_section"), MAX_HEAD_DIM);
    }
    const uint32_t *s = c->rope_sections;
    /* Plane p takes every third frequency from p on; its last one has to exist. */
    if (s[0] + s[1] + s[2] != n_frequencies || (s[1] > 0 && 3 * s[1] - 2 >= n_frequencies) ||
        (s[2] > 0 && 3 * s[2] - 1 >= n_frequencies))
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%s: mrope_section: found %u, %u, %u, which do not share out the %u "
                         "frequencies of %u rotating dims",
                         places->path, s[0], s[1], s[2], n_frequencies, c->rotary_dim);
    return CLEF_OK;
}

static clef_status read_rope(config *c, const section *text, clef_error *err) {
    section places[N_ROPE_PLACES] = {{0}, {0}, *text};
    TRY(open_rope(&places[0], text, "rope_parameters", "rope_parameters.", err));
    TRY(open_rope(&places[1], text, "rope_scaling", "rope_scaling.", err));
    for (int i = 0; i < N_ROPE_PLACES; i++) {
        TRY(require_text(&places[i], "rope_type", "default", err));
        if (i < 2) TRY(require_text(&places[i], "type", "default", err));
        TRY(require_bool(&places[i], "mrope_interleaved", true, err));
    }
    double factor;
    TRY(read_agreed(&c->rope_theta, places, "rope_theta", 1e15, 1e7, err));
    TRY(read_agreed(&factor, places, "partial_rotary_factor", 1.0, 0.25, err));
    c->rotary_dim = (uint32_t)(c->head_dim * factor);
    if (c->rotary_dim == 0 || c->rotary_dim % 2 != 0)
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%s: partial_rotary_factor: %g of head_dim %u are %u rotating dims, "
                         "wanted an even number above 0",
                         text->path, factor, c->head_dim, c->rotary_dim);
    return read_sections(c, places, err);
}

/* ---- the backbone -----------------------------------------------------------------------------
 */

static clef_status read_layers(config *c, const section *text, arena *mem, clef_error *err) {
    uint32_t interval;
    TRY(read_size(&interval, text, "full_attention_interval", MAX_LAYERS, 4, err));
    bool *full = arena_alloc(mem, c->n_layers, sizeof *full);
    if (full == NULL) return clef_fail_memory(err);
    c->full = full;
    const json *types = member(text, "layer_types");
    if (types == NULL) {
        for (uint32_t i = 0; i < c->n_layers; i++) full[i] = i % interval == interval - 1;
        return CLEF_OK;
    }
    if (types->kind != JSON_ARRAY || types->n != c->n_layers)
        return clef_fail(err, CLEF_ERR_FORMAT,
                         MEMBER_AT "wanted an array of num_hidden_layers = %u names",
                         MEMBER_ARG(text, "layer_types"), c->n_layers);
    uint32_t i = 0;
    for (const json *t = types->first; t != NULL; t = t->next, i++) {
        full[i] = t->kind == JSON_STRING && str_equal(t->text, STR("full_attention"));
        if (!full[i] && !(t->kind == JSON_STRING && str_equal(t->text, STR("linear_attention"))))
            return clef_fail(err, CLEF_ERR_FORMAT,
                             "%s: %slayer_types[%u]: found %.*s, wanted linear_attention or "
                             "full_attention",
                             text->path, text->prefix, i, STR_ARG(model_json_show(t)));
    }
    return CLEF_OK;
}

/* tie_word_embeddings stands at the top, in text_config, or in both. */
static clef_status read_tied(config *c, const section *top, const section *text, clef_error *err) {
    bool inner;
    TRY(read_bool(&c->tied, top, "tie_word_embeddings", false, err));
    TRY(read_bool(&inner, text, "tie_word_embeddings", c->tied, err));
    if (member(top, "tie_word_embeddings") != NULL && inner != c->tied)
        return clef_fail(err, CLEF_ERR_FORMAT, MEMBER_AT "differs from %stie_word_embeddings",
                         MEMBER_ARG(top, "tie_word_embeddings"), text->prefix);
    c->tied = inner;
    return CLEF_OK;
}

/* What would make this another network. */
static clef_status check_kind(const section *text, clef_error *err) {
    TRY(require_text(text, "hidden_act", "silu", err));
    TRY(require_bool(text, "attention_bias", false, err));
    TRY(require_bool(text, "attn_output_gate", true, err));
    const json *gate = member(text, "output_gate_type"); /* of the delta-net layers: SiLU */
    if (gate != NULL && !(gate->kind == JSON_STRING && str_equal(gate->text, STR("silu"))))
        TRY(require_text(text, "output_gate_type", "swish", err));
    return CLEF_OK;
}

static clef_status read_backbone(config *c, const char *path, const json *root, arena *mem,
                                 clef_error *err) {
    const section top = {root, path, ""};
    section text = {member(&top, "text_config"), path, "text_config."};
    if (json_get(root, STR("model_type")) == NULL) return missing(&top, "model_type", err);
    if (text.object == NULL) {
        text = top;
        TRY(require_text(&top, "model_type", "qwen3_5_text", err));
    } else {
        TRY(require_text(&top, "model_type", "qwen3_5", err));
        if (text.object->kind != JSON_OBJECT)
            return clef_fail(err, CLEF_ERR_FORMAT, MEMBER_AT "found %.*s, wanted an object",
                             MEMBER_ARG(&top, "text_config"),
                             STR_ARG(model_json_show(text.object)));
        TRY(require_text(&text, "model_type", "qwen3_5_text", err));
    }
    TRY(check_kind(&text, err));
    const uint32_t max_heads = 4096;
    const struct {
        uint32_t *out;
        const char *name;
        uint32_t max, fallback;
    } sizes[] = {
        {&c->hidden, "hidden_size", 1 << 17, 0},
        {&c->intermediate, "intermediate_size", 1 << 20, 0},
        {&c->n_layers, "num_hidden_layers", MAX_LAYERS, 0},
        {&c->vocab, "vocab_size", 1 << 24, 248320},
        {&c->max_positions, "max_position_embeddings", 1 << 24, 262144},
        {&c->n_heads, "num_attention_heads", max_heads, 0},
        {&c->n_kv_heads, "num_key_value_heads", max_heads, 0},
        {&c->head_dim, "head_dim", MAX_HEAD_DIM, 256},
        {&c->n_key_heads, "linear_num_key_heads", max_heads, 0},
        {&c->n_value_heads, "linear_num_value_heads", max_heads, 0},
        {&c->key_dim, "linear_key_head_dim", MAX_HEAD_DIM, 128},
        {&c->value_dim, "linear_value_head_dim", MAX_HEAD_DIM, 128},
        {&c->conv_kernel, "linear_conv_kernel_dim", MAX_CONV_KERNEL, 4},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        TRY(read_size(sizes[i].out, &text, sizes[i].name, sizes[i].max, sizes[i].fallback, err));
    TRY(require_divides(&text, "num_key_value_heads", c->n_kv_heads, "num_attention_heads",
                        c->n_heads, err));
    TRY(require_divides(&text, "linear_num_key_heads", c->n_key_heads, "linear_num_value_heads",
                        c->n_value_heads, err));
    double eps;
    TRY(read_positive(&eps, &text, "rms_norm_eps", 1.0, 1e-6, err));
    c->rms_eps = (float)eps;
    TRY(read_tied(c, &top, &text, err));
    TRY(read_layers(c, &text, mem, err));
    return read_rope(c, &text, err);
}

/* ---- the head ---------------------------------------------------------------------------------
 */

/* The reference hands all members to a constructor, so an unknown or a missing one fails there. */
static clef_status read_head(config *c, const char *path, const json *root, clef_error *err) {
    const section at = {root, path, ""};
    uint32_t hidden;
    const struct {
        uint32_t *out;
        const char *name;
        uint32_t max;
    } sizes[] = {
        {&hidden, "hidden_size", 1 << 17},
        {&c->head_width, "width", 1 << 16},
        {&c->head_routing_layers, "routing_layers", MAX_LAYERS},
        {&c->head_layers, "layers", MAX_LAYERS},
        {&c->head_heads, "heads", 4096},
        {&c->head_feedforward, "feedforward", 1 << 20},
    };
    const size_t n_sizes = sizeof sizes / sizeof *sizes;
    for (const json *m = root->first; m != NULL; m = m->next) {
        bool known = str_equal(m->name, STR("dropout")); /* without effect at inference */
        for (size_t i = 0; i < n_sizes; i++)
            known = known || str_equal(m->name, str_of(sizes[i].name));
        if (!known)
            return clef_fail(err, CLEF_ERR_FORMAT, "%s: unknown member '%.*s'", path,
                             STR_ARG(m->name));
    }
    for (size_t i = 0; i < n_sizes; i++)
        TRY(read_size(sizes[i].out, &at, sizes[i].name, sizes[i].max, 0, err));
    if (hidden != c->hidden)
        return clef_fail(
            err, CLEF_ERR_FORMAT,
            "%s: hidden_size: found %u, wanted %u as in config.json; this head belongs "
            "to another backbone",
            path, hidden, c->hidden);
    TRY(require_divides(&at, "heads", c->head_heads, "width", c->head_width, err));
    if (c->head_width / c->head_heads > MAX_HEAD_DIM)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: heads of %u values, the limit is %d", path,
                         c->head_width / c->head_heads, MAX_HEAD_DIM);
    return CLEF_OK;
}

/* A folder without a head is most likely a plain backbone, so the sentence says what is missing. */
static clef_status open_head_config(const json **root, const char **path, const char *dir,
                                    arena *mem, clef_error *err) {
    char *plain = file_join(dir, HEAD_CONFIG);
    if (plain == NULL) return clef_fail_memory(err);
    const bool found = file_is_named(plain);
    free(plain);
    if (!found)
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%s: holds a backbone only; " HEAD_CONFIG
                         " and joint_head.safetensors are missing (the head is published with the "
                         "model, as in Cloudflare/clef-flash)",
                         dir);
    return model_json_read(root, path, dir, HEAD_CONFIG, MAX_FILE_BYTES, mem, err);
}

/* ---- the vision tower -------------------------------------------------------------------------
 */

static clef_status require_size(const section *at, const char *name, uint32_t wanted,
                                clef_error *err) {
    uint32_t found;
    TRY(read_size(&found, at, name, UINT32_MAX, wanted, err));
    if (found == wanted) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_FORMAT, MEMBER_AT "found %u, wanted %u", MEMBER_ARG(at, name),
                     found, wanted);
}

static clef_status read_side(uint32_t *out, const section *at, clef_error *err) {
    static const char name[] = "num_position_embeddings";
    uint32_t n, side = 1;
    TRY(read_size(&n, at, name, 1 << 20, 48 * 48, err));
    while (side * side < n) side++;
    if (side * side != n)
        return clef_fail(err, CLEF_ERR_FORMAT, MEMBER_AT "found %u, wanted a square number",
                         MEMBER_ARG(at, name), n);
    *out = side;
    return CLEF_OK;
}

static clef_status read_vision(vision_sizes *out, const config *c, const section *at,
                               clef_error *err) {
    vision_sizes v = {0};
    TRY(require_text(at, "hidden_act", "gelu_pytorch_tanh", err));
    const json *deepstack = member(at, "deepstack_visual_indexes");
    if (deepstack != NULL && !(deepstack->kind == JSON_ARRAY && deepstack->n == 0))
        return clef_fail(err, CLEF_ERR_FORMAT, MEMBER_AT "found %.*s, wanted an empty array",
                         MEMBER_ARG(at, "deepstack_visual_indexes"),
                         STR_ARG(model_json_show(deepstack)));
    TRY(require_size(at, "in_channels", 3, err));
    TRY(require_size(at, "patch_size", VISION_PATCH, err));
    TRY(require_size(at, "temporal_patch_size", VISION_TEMPORAL, err));
    TRY(require_size(at, "spatial_merge_size", VISION_MERGE, err));
    TRY(require_size(at, "out_hidden_size", c->hidden, err));
    TRY(read_size(&v.depth, at, "depth", MAX_LAYERS, 27, err));
    TRY(read_size(&v.hidden, at, "hidden_size", 1 << 16, 1152, err));
    TRY(read_size(&v.intermediate, at, "intermediate_size", 1 << 18, 4304, err));
    TRY(read_size(&v.n_heads, at, "num_heads", 4096, 16, err));
    TRY(require_divides(at, "num_heads", v.n_heads, "hidden_size", v.hidden, err));
    const uint32_t head = v.hidden / v.n_heads;
    if (head % 4 != 0 || head > MAX_HEAD_DIM)
        return clef_fail(err, CLEF_ERR_FORMAT,
                         MEMBER_AT "heads of %u values, wanted a multiple of 4 up to %d",
                         MEMBER_ARG(at, "num_heads"), head, MAX_HEAD_DIM);
    TRY(read_side(&v.side, at, err));
    *out = v;
    return CLEF_OK;
}

clef_status config_load_vision(config *c, const char *dir, arena *mem, clef_error *err) {
    const json *root = NULL;
    const char *path = NULL;
    TRY(model_json_read(&root, &path, dir, "config.json", MAX_FILE_BYTES, mem, err));
    const section top = {root, path, ""};
    const section at = {member(&top, "vision_config"), path, "vision_config."};
    if (at.object == NULL) return CLEF_OK;
    if (at.object->kind != JSON_OBJECT)
        return clef_fail(err, CLEF_ERR_FORMAT, MEMBER_AT "found %.*s, wanted an object",
                         MEMBER_ARG(&top, "vision_config"), STR_ARG(model_json_show(at.object)));
    return read_vision(&c->vision, c, &at, err);
}

clef_status config_load(config *out, const char *dir, arena *mem, clef_error *err) {
    config c = {0};
    const json *root = NULL;
    const char *path = NULL;
    TRY(model_json_read(&root, &path, dir, "config.json", MAX_FILE_BYTES, mem, err));
    TRY(read_backbone(&c, path, root, mem, err));
    TRY(open_head_config(&root, &path, dir, mem, err));
    TRY(read_head(&c, path, root, err));
    *out = c;
    return CLEF_OK;
}
