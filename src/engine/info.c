/* info.c - what is in a model folder, and what keeps it from loading.
 *
 * Each part is looked at by itself, so that one missing file does not hide the next fault. Facts
 * are gathered once, as a list of names and values, and printed as text or as JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "checkpoint/bundle.h"
#include "checkpoint/codes.h"
#include "checkpoint/hub.h"
#include "engine/engine.h"
#include "text/pyjson.h"

typedef enum { FACT_TEXT, FACT_NUMBER } fact_kind;

typedef struct {
    buf json, text; /* both are written as facts come */
    buf problem_json, problem_text;
    unsigned n_facts, n_problems;
    bool out_of_memory; /* which is no fault of the folder: no report then */
} report;

/* ---- the two forms of a fact ---- */

static void add_fact(report *r, const char *name, const char *label, fact_kind kind, str value) {
    if (r->n_facts++ > 0) buf_add_text(&r->json, ", ");
    pyjson_string(&r->json, str_of(name));
    buf_add_text(&r->json, ": ");
    if (kind == FACT_TEXT)
        pyjson_string(&r->json, value);
    else
        buf_add_str(&r->json, value);
    buf_printf(&r->text, "%-18s %.*s\n", label, STR_ARG(value));
}

static void add_text(report *r, const char *name, const char *label, const char *value) {
    add_fact(r, name, label, FACT_TEXT, str_of(value));
}

static void add_number(report *r, const char *name, const char *label, uint64_t value) {
    char digits[24];
    const int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    add_fact(r, name, label, FACT_NUMBER, (str){digits, (size_t)n});
}

static void add_problem(void *context, const clef_error *problem) {
    report *r = context;
    if (problem->status == CLEF_ERR_MEMORY) r->out_of_memory = true;
    if (r->n_problems++ > 0) buf_add_text(&r->problem_json, ", ");
    pyjson_string(&r->problem_json, str_of(problem->text));
    buf_printf(&r->problem_text, "  - %s\n", problem->text);
}

/* ---- the parts ---- */

static void describe_config(report *r, const config *c) {
    uint32_t full = 0;
    for (uint32_t i = 0; i < c->n_layers; i++) full += c->full[i];
    add_number(r, "layers", "layers", c->n_layers);
    add_number(r, "layers_attention", "  full attention", full);
    add_number(r, "layers_delta", "  Gated DeltaNet", c->n_layers - full);
    add_number(r, "hidden_size", "hidden size", c->hidden);
    add_number(r, "intermediate_size", "intermediate size", c->intermediate);
    add_number(r, "vocab_size", "vocabulary rows", c->vocab);
    add_number(r, "attention_heads", "attention heads", c->n_heads);
    add_number(r, "key_value_heads", "  key-value heads", c->n_kv_heads);
    add_number(r, "head_dim", "  head size", c->head_dim);
    add_number(r, "linear_key_heads", "delta key heads", c->n_key_heads);
    add_number(r, "linear_value_heads", "  value heads", c->n_value_heads);
    add_text(r, "lexical_table", "lexical table", c->tied ? "tied to the embedding" : "lm_head");
    add_number(r, "head_width", "joint head width", c->head_width);
    add_number(r, "head_routing_layers", "  evidence layers", c->head_routing_layers);
    add_number(r, "head_layers", "  decoder layers", c->head_layers);
    const bind_counts counts = bind_parameters(c);
    add_number(r, "parameters_language_model", "parameters", counts.language_model);
    add_number(r, "parameters_head", "  joint head", counts.head);
}

/* Tensors, bytes and stored types of one set of files. */
static void describe_tensors(report *r, const safetensors *st, const char *name,
                             const char *label) {
    uint32_t of_type[DTYPE_COUNT] = {0};
    for (uint32_t i = 0; i < safetensors_count(st); i++)
        of_type[safetensors_at(st, i).tensor->type]++;
    buf line = {0};
    buf_printf(&line, "%u tensors, %zu bytes:", safetensors_count(st), safetensors_bytes(st));
    for (int t = 0; t < DTYPE_COUNT; t++)
        if (of_type[t] > 0) buf_printf(&line, " %u %s", of_type[t], dtype_name((dtype)t));
    if (line.failed) r->out_of_memory = true;
    add_text(r, name, label, line.p == NULL ? "" : line.p);
    buf_free(&line);
}

static void describe_backbone(report *r, const safetensors *st) {
    describe_tensors(r, st, "weights", "weights");
    const char *note = safetensors_note(st);
    if (note != NULL) add_text(r, "weights_note", "  note", note);
}

static void describe_tokenizer(report *r, const tokenizer *t, const config *cfg) {
    static const char *const names[] = {[SPLIT_QWEN2] = "qwen2", [SPLIT_QWEN35] = "qwen35"};
    const tokenizer_facts f = tokenizer_describe(t);
    add_text(r, "split_pattern", "split pattern", names[f.stated]);
    if (f.used != f.stated) add_text(r, "split_pattern_used", "  overridden by", names[f.used]);
    add_number(r, "tokens", "tokens", (uint64_t)f.n_vocab + f.n_added);
    add_number(r, "tokens_added", "  added tokens", f.n_added);
    add_number(r, "merges", "  merges", f.n_merges);
    add_number(r, "tokens_unreachable", "  unreachable", f.n_unreachable);
    clef_error err = {0};
    if (engine_check_tokenizer(t, cfg, &err) != CLEF_OK) add_problem(r, &err);
}

typedef struct {
    double bytes, values;
} layer_size;

/* Bytes and values of the linears of each layer. */
typedef struct {
    const safetensors *backbone;
    layer_size *layers; /* [n_layers] */
} layer_sizes;

static void add_size(void *context, const bind_tensor *t) {
    const layer_sizes *sizes = context;
    if (!t->linear) return;
    const tensor *found = safetensors_find(sizes->backbone, t->name);
    if (found == NULL) return;
    const double values = (double)t->shape[0] * (double)t->shape[1];
    sizes->layers[t->layer].bytes += (double)found->bytes;
    sizes->layers[t->layer].values += values;
    if (codes_type(codes_of(found, t->shape[1])))
        sizes->layers[t->layer].bytes += values * sizeof(uint16_t) / INT8_BLOCK;
}

/* "0-11: 16, 12-31: 8.5": bits of a weight of the linears, scales included. */
static void describe_bits(report *r, const safetensors *backbone, const config *cfg, arena *mem) {
    layer_sizes sizes = {.backbone = backbone};
    sizes.layers = arena_alloc(mem, cfg->n_layers, sizeof *sizes.layers);
    if (sizes.layers == NULL) {
        r->out_of_memory = true;
        return;
    }
    bind_each(cfg, add_size, &sizes);
    buf line = {0};
    for (uint32_t first = 0, i = 1; i <= cfg->n_layers; i++) {
        const double bits = 8 * sizes.layers[first].bytes / sizes.layers[first].values;
        if (i < cfg->n_layers &&
            fabs(8 * sizes.layers[i].bytes / sizes.layers[i].values - bits) < 1e-9)
            continue;
        buf_printf(&line, "%s%u", line.n > 0 ? ", " : "", first);
        if (i - 1 > first) buf_printf(&line, "-%u", i - 1);
        buf_printf(&line, ": %.4g", bits);
        first = i;
    }
    if (line.failed)
        r->out_of_memory = true;
    else
        add_fact(r, "layer_bits", "bits by layer", FACT_TEXT, (str){line.p, line.n});
    buf_free(&line);
}

/* "20 int8, 12 int4" */
static void describe_modules(report *r, const json *modules) {
    static const dtype types[] = {DTYPE_I8, DTYPE_INT6, DTYPE_INT4};
    buf line = {0};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        unsigned n = 0;
        for (const json *m = modules->first; m != NULL; m = m->next)
            n += str_equal(json_get(m, STR("format"))->text, str_of(codes_name(types[i])));
        if (n > 0) buf_printf(&line, "%s%u %s", line.n > 0 ? ", " : "", n, codes_name(types[i]));
    }
    if (line.failed)
        r->out_of_memory = true;
    else
        add_fact(r, "converted_weights", "converted weights", FACT_TEXT, (str){line.p, line.n});
    buf_free(&line);
}

/* What bundle.json tells of a conversion: its format, and what rounding cost. */
static void describe_bundle(report *r, const json *bundle) {
    const json *q = json_get(bundle, STR("quantisation")), *format = json_get(q, STR("format"));
    const json *modules = json_get(q, STR("modules")), *tables = json_get(q, STR("tables"));
    if (format != NULL && format->kind == JSON_STRING)
        add_fact(r, "format", "format", FACT_TEXT, format->text);
    if (tables != NULL && tables->kind == JSON_STRING)
        add_fact(r, "tables", "  tables", FACT_TEXT, tables->text);
    double worst = -1;
    str worst_name = {0};
    uint64_t clipped = 0, n = 0;
    for (const json *m = modules->first; m != NULL; m = m->next) {
        double error = 0;
        if (json_double(&error, json_get(m, STR("relative_error"))) && error > worst) {
            worst = error;
            worst_name = json_get(m, STR("name"))->text;
        }
        if (json_u64(&n, json_get(m, STR("clipped")), UINT64_MAX)) clipped += n;
    }
    describe_modules(r, modules);
    if (worst < 0) return;
    buf line = {0};
    buf_printf(&line, "%.3g of their size in %.*s", worst, STR_ARG(worst_name));
    if (line.failed)
        r->out_of_memory = true;
    else
        add_fact(r, "largest_weight_error", "  lost at most", FACT_TEXT, (str){line.p, line.n});
    buf_free(&line);
    add_number(r, "clipped_codes", "  clipped codes", clipped);
}

/* The tower's sizes, where the files hold one; they stand in `cfg` afterwards. */
static void describe_tower(report *r, const safetensors *backbone, config *cfg, const char *dir,
                           arena *mem) {
    clef_error err = {0};
    if (!bind_has_tower(backbone)) return;
    if (config_load_vision(cfg, dir, mem, &err) != CLEF_OK) {
        add_problem(r, &err);
        return;
    }
    if (cfg->vision.depth == 0) return;
    add_number(r, "vision_blocks", "vision blocks", cfg->vision.depth);
    add_number(r, "vision_hidden_size", "  hidden size", cfg->vision.hidden);
    add_number(r, "parameters_vision", "  parameters", bind_parameters(cfg).vision);
}

static void describe_weights(report *r, const char *dir, const config *cfg, arena *mem) {
    clef_error err = {0};
    safetensors *backbone = NULL, *head = NULL;
    char *head_path = NULL;
    const json *bundle = NULL;
    if (safetensors_open_model(&backbone, dir, &err) == CLEF_OK) {
        describe_backbone(r, backbone);
        if (cfg != NULL) describe_bits(r, backbone, cfg, mem);
        if (bundle_check(&bundle, dir, backbone, mem, &err) != CLEF_OK)
            add_problem(r, &err);
        else if (bundle != NULL)
            describe_bundle(r, bundle);
    } else {
        add_problem(r, &err);
    }
    if (hub_file(&head_path, dir, "joint_head.safetensors", &err) == CLEF_OK &&
        safetensors_open(&head, head_path, &err) == CLEF_OK)
        describe_tensors(r, head, "head", "joint head");
    else
        add_problem(r, &err);
    if (cfg != NULL) {
        config whole = *cfg;
        if (backbone != NULL) describe_tower(r, backbone, &whole, dir, mem);
        bind_check(backbone, head, &whole, add_problem, r);
    }
    free(head_path);
    safetensors_close(head);
    safetensors_close(backbone);
}

static void describe(report *r, const char *dir, const clef_options *options) {
    clef_error err = {0};
    arena mem = {0};
    config cfg;
    clef_error shown; /* a path may hold any byte: this makes it safe to print */
    clef_fail(&shown, CLEF_OK, "%s", dir);
    add_text(r, "folder", "folder", shown.text);
    const bool have_config = config_load(&cfg, dir, &mem, &err) == CLEF_OK;
    if (have_config)
        describe_config(r, &cfg);
    else
        add_problem(r, &err);
    describe_weights(r, dir, have_config ? &cfg : NULL, &mem);
    char *path = NULL;
    tokenizer *t = NULL;
    if (hub_file(&path, dir, "tokenizer.json", &err) == CLEF_OK &&
        tokenizer_load(&t, path, options->split, &err) == CLEF_OK)
        describe_tokenizer(r, t, have_config ? &cfg : NULL);
    else
        add_problem(r, &err);
    tokenizer_free(t);
    free(path);
    arena_free(&mem);
}

/* ---- the whole ---- */

static void print(buf *out, const report *r, bool as_json) {
    if (as_json) {
        buf_printf(out, "{%s, \"problems\": [%s], \"loads\": %s}", r->json.p,
                   r->n_problems > 0 ? r->problem_json.p : "",
                   r->n_problems == 0 ? "true" : "false");
        return;
    }
    buf_add(out, r->text.p, r->text.n);
    if (r->n_problems == 0) {
        buf_add_text(out, "loads              yes\n");
        return;
    }
    buf_printf(out, "loads              no, %u %s:\n", r->n_problems,
               r->n_problems == 1 ? "problem" : "problems");
    buf_add(out, r->problem_text.p, r->problem_text.n);
}

clef_status clef_info(const clef_options *options, int as_json, char **text, int *loads,
                      clef_error *err) {
    TRY(engine_check_options(options, true, err));
    clef_engine *e = NULL;
    TRY(engine_new(&e, options, err));
    report r = {0};
    describe(&r, e->dir, options);
    clef_close(e);
    buf out = {0};
    const bool complete = !r.out_of_memory && !r.json.failed && !r.text.failed &&
                          !r.problem_json.failed && !r.problem_text.failed;
    if (complete) print(&out, &r, as_json != 0);
    const bool whole = complete && !out.failed;
    if (whole) {
        *text = buf_take(&out);
        if (loads != NULL) *loads = r.n_problems == 0;
    }
    buf_free(&out);
    buf_free(&r.json);
    buf_free(&r.text);
    buf_free(&r.problem_json);
    buf_free(&r.problem_text);
    return whole ? CLEF_OK : clef_fail_memory(err);
}

void clef_text_free(char *text) {
    free(text);
}
