/* allot.c - a format for each linear: the same one everywhere (int8, int4), by layer (int8mix), or
 * mixed by measured loss (int6, int4mix).
 *
 * The mixed ones share out a budget of bits among units: the linears of one kind in an eighth of
 * the layers. They work without sample texts, from two things:
 *
 *   - measured here: what each format loses of a unit's weights, relative to their size (sum of
 *     (w - w')^2 over sum of w^2), in every SAMPLE-th row;
 *   - measured on clef-flash 9B, once (MODEL.md section 7): how far such a loss reaches into the
 *     answers. With int8 in all linears the worst probability is off by 0.0842, with the first 12
 * of 32 layers exact by 0.0069; with int8 in the delta rule's linears alone by 0.0752, in the MLPs
 * by 0.0342, in attention by 0.0230. Squared, a kind's share is spread over its layers so that the
 * first three eighths have all but (0.0069 / 0.0842)^2 of it.
 *
 * A unit's expected loss in a format is its share times its measured loss over its loss at int8.
 * Starting from the narrowest format, the step that saves most for a bit is taken until the budget
 * is spent. Losses are taken as independent; they are not quite (sets of layers partly cancel), so
 * what comes out is for the gate to accept.
 *
 * in_proj_a and in_proj_b steer the decays and are a thousandth of the bytes: 16 bit when mixed. */
#include "checkpoint/allot.h"

#include <math.h>
#include <stdlib.h>

#include "base/file.h"

enum {
    N_SETS = 8,
    SAMPLE = 16,
    WIDE_BITS = 16,
    SCALE_ENTRY = 256 /* bytes, at most, that the name of a matrix's scales takes in a header */
};

const dtype allot_formats[3] = {DTYPE_INT4, DTYPE_INT6, DTYPE_I8};

/* Bits of a weight with its share of a scale, over all linears that are shared out. */
static const double budget_int6 = 7.5, budget_int4mix = 5.5;

static const struct {
    const char *name;
    double worst; /* |dp| when this kind alone is int8 */
} kinds[ALLOT_N_KINDS] = {
    [ALLOT_DELTA] = {"delta", 0.0752}, [ALLOT_ATTENTION] = {"attention", 0.0230},
    [ALLOT_MLP] = {"mlp", 0.0342},     [ALLOT_GATES] = {"gates", 0},
    [ALLOT_TABLE] = {"table", 0},
};
static const double worst_all = 0.0842, worst_late = 0.0069; /* int8 everywhere; but early layers */

const char *allot_kind_name(allot_kind kind) {
    return kinds[kind].name;
}

static double bits_of(dtype type) {
    return codes_type(type) ? dtype_bits(type) + 16.0 / INT8_BLOCK : WIDE_BITS;
}

static int format_index(dtype type) {
    for (int i = 0; i < 3; i++)
        if (allot_formats[i] == type) return i;
    return 3;
}

double allot_expected(const allot_unit *u, dtype type) {
    const int i = format_index(type);
    return i == 3 || u->loss[2] <= 0 ? 0 : u->weight * u->loss[i] / u->loss[2];
}

/* ---- finding ----------------------------------------------------------------------------------
 */

static bool contains(str s, const char *part) {
    const size_t n = strlen(part);
    for (size_t i = 0; i + n <= s.n; i++)
        if (memcmp(s.p + i, part, n) == 0) return true;
    return false;
}

static allot_kind kind_of(const bind_tensor *t) {
    if (t->table) return ALLOT_TABLE;
    if (contains(t->name, ".in_proj_a.") || contains(t->name, ".in_proj_b.")) return ALLOT_GATES;
    if (contains(t->name, ".linear_attn.")) return ALLOT_DELTA;
    return contains(t->name, ".self_attn.") ? ALLOT_ATTENTION : ALLOT_MLP;
}

typedef struct {
    allotment *a;
    const safetensors *model;
} finder;

static void find_item(void *context, const bind_tensor *t) {
    const finder *f = context;
    if (!t->linear && !t->table) return;
    for (uint32_t i = 0; i < safetensors_count(f->model); i++) {
        const safetensors_entry e = safetensors_at(f->model, i);
        if (str_equal(e.name, t->name))
            f->a->items[f->a->n_items++] =
                (allot_item){e.name, kind_of(t), t->layer, e.tensor, e.tensor->type};
    }
}

static bool fits(const allot_item *it) {
    return it->source->shape[1] % INT8_BLOCK == 0;
}

/* ---- measuring --------------------------------------------------------------------------------
 */

typedef struct {
    const allot_item *it;
    float *rows;            /* [threads][n_in], and codes and scales behind them */
    size_t room;            /* floats of a thread */
    code_loss (*losses)[3]; /* of each row of the sample */
    bool *representable;
} sample;

static void measure_row(void *context, size_t item, unsigned worker) {
    const sample *s = context;
    const size_t n_in = (size_t)s->it->source->shape[1];
    float *row = s->rows + worker * s->room;
    uint16_t *scales = (uint16_t *)(row + n_in);
    void *codes = scales + n_in / INT8_BLOCK;
    tensor_to_float(row, s->it->source->type, s->it->source->data, item * SAMPLE * n_in, n_in);
    s->representable[item] = true;
    for (int f = 0; f < 3; f++)
        if (!codes_quantise_row(allot_formats[f], codes, scales, row, n_in, &s->losses[item][f]))
            s->representable[item] = false;
}

/* Adds what a linear loses to its unit. A value that no code can stand for is told when its row is
 * written. */
static clef_status measure_item(allot_unit *u, const allot_item *it, pool *workers,
                                clef_error *err) {
    const size_t n_in = (size_t)it->source->shape[1];
    const size_t n = ((size_t)it->source->shape[0] + SAMPLE - 1) / SAMPLE;
    sample s = {.it = it, .room = 2 * n_in};
    s.rows = malloc(pool_threads(workers) * s.room * sizeof *s.rows);
    s.losses = malloc(n * sizeof *s.losses);
    s.representable = malloc(n * sizeof *s.representable);
    const bool memory = s.rows != NULL && s.losses != NULL && s.representable != NULL;
    if (memory) pool_run(workers, n, measure_row, &s);
    for (size_t i = 0; memory && i < n; i++) {
        if (!s.representable[i]) continue;
        for (int f = 0; f < 3; f++) u->loss[f] += s.losses[i][f].error2;
        u->size2 += s.losses[i][0].size2;
    }
    file_forget(it->source->data, it->source->bytes);
    free(s.rows);
    free(s.losses);
    free(s.representable);
    return memory ? CLEF_OK : clef_fail_memory(err);
}

/* ---- sharing out ------------------------------------------------------------------------------
 */

/* Layers of a set or kind that are early, the first 12 of 32, and those that are not. */
static bool is_early(uint32_t layer, uint32_t n_layers) {
    return (uint64_t)layer * 8 < (uint64_t)n_layers * 3;
}

static uint32_t set_of(uint32_t layer, const config *cfg) {
    return (uint32_t)((uint64_t)layer * N_SETS / cfg->n_layers);
}

static bool is_shared(const allot_item *it, const bool *wide) {
    return it->kind <= ALLOT_MLP && !wide[it->layer] && fits(it);
}

static allot_unit *unit_of(const allotment *a, allot_kind kind, uint32_t set) {
    for (uint32_t i = 0; i < a->n_units; i++)
        if (a->units[i].kind == kind && a->units[i].set == set) return &a->units[i];
    return NULL;
}

/* Units in order of sets and kinds, as the items come. */
static void make_units(allotment *a, const config *cfg, const allot_options *o) {
    for (uint32_t i = 0; i < a->n_items; i++) {
        const allot_item *it = &a->items[i];
        if (!is_shared(it, o->wide)) continue;
        const uint32_t set = set_of(it->layer, cfg);
        allot_unit *u = unit_of(a, it->kind, set);
        if (u == NULL) {
            u = &a->units[a->n_units++];
            *u = (allot_unit){.kind = it->kind, .set = set, .first = it->layer};
        }
        u->last = it->layer;
        u->n_values += it->source->shape[0] * it->source->shape[1];
    }
}

/* The share of each unit: its kind's, spread over the values of that kind, early and late. */
static void weigh_units(allotment *a, const config *cfg) {
    double sum = 0, values[ALLOT_N_KINDS][2] = {{0}};
    const double late = worst_late * worst_late / (worst_all * worst_all);
    for (int k = 0; k <= ALLOT_MLP; k++) sum += kinds[k].worst * kinds[k].worst;
    for (uint32_t i = 0; i < a->n_units; i++)
        values[a->units[i].kind][is_early(a->units[i].first, cfg->n_layers)] +=
            (double)a->units[i].n_values;
    for (uint32_t i = 0; i < a->n_units; i++) {
        allot_unit *u = &a->units[i];
        const bool early = is_early(u->first, cfg->n_layers);
        const double of_kind = kinds[u->kind].worst * kinds[u->kind].worst / sum;
        u->weight =
            of_kind * (early ? 1 - late : late) * (double)u->n_values / values[u->kind][early];
    }
}

static clef_status measure_units(const allotment *a, const config *cfg, const allot_options *o,
                                 pool *workers, clef_error *err) {
    for (uint32_t i = 0; i < a->n_items; i++) {
        const allot_item *it = &a->items[i];
        if (!is_shared(it, o->wide)) continue;
        const uint32_t set = set_of(it->layer, cfg);
        TRY(measure_item(unit_of(a, it->kind, set), it, workers, err));
        TRY(o->advance(o->context, it->source->bytes / ALLOT_PART, err));
    }
    return CLEF_OK;
}

/* The next wider format; the same when there is none. */
static dtype next_format(dtype type) {
    const int i = format_index(type);
    return i < 2 ? allot_formats[i + 1] : DTYPE_BF16;
}

/* Takes the best step that fits until none does. The gates of the same layers count as spent. */
static void spend(allotment *a, dtype narrowest, double budget, const bool *wide) {
    double bits = 0, values = 0;
    for (uint32_t i = 0; i < a->n_items; i++) {
        const allot_item *it = &a->items[i];
        if (it->kind != ALLOT_GATES || wide[it->layer]) continue;
        bits += (double)WIDE_BITS * (double)(it->source->shape[0] * it->source->shape[1]);
        values += (double)(it->source->shape[0] * it->source->shape[1]);
    }
    for (uint32_t i = 0; i < a->n_units; i++) {
        a->units[i].type = narrowest;
        bits += bits_of(narrowest) * (double)a->units[i].n_values;
        values += (double)a->units[i].n_values;
    }
    for (;;) {
        allot_unit *best = NULL;
        double most = 0;
        for (uint32_t i = 0; i < a->n_units; i++) {
            allot_unit *u = &a->units[i];
            if (!codes_type(u->type)) continue;
            const dtype next = next_format(u->type);
            const double cost = (bits_of(next) - bits_of(u->type)) * (double)u->n_values;
            const double gain = (allot_expected(u, u->type) - allot_expected(u, next)) / cost;
            if (bits + cost > budget * values || gain <= most) continue;
            most = gain;
            best = u;
        }
        if (best == NULL) return;
        bits += (bits_of(next_format(best->type)) - bits_of(best->type)) * (double)best->n_values;
        best->type = next_format(best->type);
    }
}

static clef_status share_out(allotment *a, const config *cfg, const allot_options *o, pool *workers,
                             arena *mem, clef_error *err) {
    const bool int6 = o->format == CLEF_FORMAT_INT6;
    a->units = arena_alloc(mem, (size_t)N_SETS * ALLOT_N_KINDS, sizeof *a->units);
    if (a->units == NULL) return clef_fail_memory(err);
    make_units(a, cfg, o);
    weigh_units(a, cfg);
    TRY(measure_units(a, cfg, o, workers, err));
    spend(a, int6 ? DTYPE_INT6 : DTYPE_INT4, int6 ? budget_int6 : budget_int4mix, o->wide);
    for (uint32_t i = 0; i < a->n_items; i++) {
        allot_item *it = &a->items[i];
        if (!is_shared(it, o->wide)) continue;
        const dtype type = unit_of(a, it->kind, set_of(it->layer, cfg))->type;
        if (codes_type(type)) it->type = type;
    }
    return CLEF_OK;
}

bool allot_wide(clef_format format, uint32_t layer, uint32_t n_layers) {
    return format == CLEF_FORMAT_INT8MIX && layer < ((uint64_t)n_layers * 3 + 7) / 8;
}

static bool is_mixed(clef_format format) {
    return format == CLEF_FORMAT_INT6 || format == CLEF_FORMAT_INT4MIX;
}

/* The matrices of the backbone, as they are. */
static clef_status find_items(allotment *a, const safetensors *model, const config *cfg, arena *mem,
                              clef_error *err) {
    a->items = arena_alloc(mem, safetensors_count(model), sizeof *a->items);
    if (a->items == NULL) return clef_fail_memory(err);
    finder f = {a, model};
    bind_each(cfg, find_item, &f);
    return CLEF_OK;
}

clef_status allot_bytes(uint64_t *out, const safetensors *model, const config *cfg,
                        clef_format format, bool tables, arena *mem, clef_error *err) {
    allotment a = {0};
    TRY(find_items(&a, model, cfg, mem, err));
    double change = 0; /* in bits */
    for (uint32_t i = 0; i < a.n_items; i++) {
        const allot_item *it = &a.items[i];
        const bool table = it->kind == ALLOT_TABLE;
        if (codes_type(it->type) || it->type == DTYPE_U8)
            return clef_fail(err, CLEF_ERR_INPUT, "%s: the model is converted already",
                             safetensors_path(model));
        if (!fits(it) || (table ? !tables : allot_wide(format, it->layer, cfg->n_layers))) continue;
        const double bits =
            table || !is_mixed(format)
                ? bits_of(format == CLEF_FORMAT_INT4 && !table ? DTYPE_INT4 : DTYPE_I8)
            : format == CLEF_FORMAT_INT6 ? budget_int6
                                         : budget_int4mix;
        change += 8 * SCALE_ENTRY + (bits - dtype_bits(it->type)) *
                                        (double)(it->source->shape[0] * it->source->shape[1]);
    }
    *out = safetensors_bytes(model) + (uint64_t)(int64_t)ceil(change / 8);
    return CLEF_OK;
}

clef_status allot_make(allotment *out, const safetensors *model, const config *cfg,
                       const allot_options *o, pool *workers, arena *mem, clef_error *err) {
    allotment a = {0};
    TRY(find_items(&a, model, cfg, mem, err));
    const bool mixed = is_mixed(o->format);
    const dtype type = o->format == CLEF_FORMAT_INT4 ? DTYPE_INT4 : DTYPE_I8;
    for (uint32_t i = 0; i < a.n_items; i++) {
        allot_item *it = &a.items[i];
        if (!fits(it)) continue;
        if (it->kind == ALLOT_TABLE) {
            if (o->tables) it->type = DTYPE_I8;
        } else if (!mixed && !o->wide[it->layer]) {
            it->type = type;
        }
    }
    if (mixed) TRY(share_out(&a, cfg, o, workers, mem, err));
    *out = a;
    return CLEF_OK;
}
