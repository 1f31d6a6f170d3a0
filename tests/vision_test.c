/* vision_test.c - every recorded record with pictures (testdata/vision) at every border of the
 * network: embedded patches, each block of the tower, merged rows, positions, laid-over embedding
 * rows, hidden rows, logits, probabilities; and the four faults that have to turn them red.
 *
 * Ids, spans and uint8 pixels are the recorded ones, so nothing here depends on a decoder. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "golden.h"
#include "model/vision.h"
#include "recorded.h"

static const double most_tower_error = 1e-4; /* relative L2 */
static const double most_hidden_error = 1e-4;
static const double most_logit_error = 1e-4;
static const double most_p_error = 1e-5;

static const char *const toys[] = {"toy-vision", "toy-vision-72"};
enum { N_TOYS = sizeof toys / sizeof toys[0], MAX_ITEMS = 16, MAX_OPTIONS = 16 };

static double worst_tower, worst_hidden, worst_logit, worst_p;

/* ---- a recorded case ---- */

typedef struct {
    char name[64];
    const json *doc;
    safetensors *tensors;
    head_input in;
    uint32_t n_items;
    media_grid grids[MAX_ITEMS];
    const uint8_t *pixels[MAX_ITEMS];
    bool still[MAX_ITEMS];
    position *positions; /* [n_tokens] */
    arena mem;
} seen_case;

/* A tensor by its name, or "NAME.ITEM", or "NAME.ITEM.BLOCK"; NULL when it was not recorded. */
static const tensor *tensor_named(const seen_case *c, const char *name) {
    return safetensors_find(c->tensors, str_of(name));
}

static const tensor *tensor_of_item(const seen_case *c, const char *name, uint32_t item) {
    char full[64];
    snprintf(full, sizeof full, "%s.%u", name, item);
    return tensor_named(c, full);
}

static const tensor *tensor_of_block(const seen_case *c, uint32_t item, uint32_t block) {
    char full[64];
    snprintf(full, sizeof full, "tower.%u.%u", item, block);
    return tensor_named(c, full);
}

static span span_of(const json *pair) {
    uint64_t begin = 0, end = 0;
    assert_true(pair->n == 2 && json_u64(&begin, pair->first, UINT32_MAX) &&
                json_u64(&end, pair->first->next, UINT32_MAX));
    return (span){(uint32_t)begin, (uint32_t)end};
}

/* The head's view of the recorded ids and spans. */
static void read_record(seen_case *c) {
    const json *ids = recorded_get(c->doc, "ids"), *questions = recorded_get(c->doc, "questions");
    int32_t *row = arena_alloc(&c->mem, ids->n, sizeof *row);
    span *instructions = arena_alloc(&c->mem, questions->n, sizeof *instructions);
    span *options = arena_alloc(&c->mem, MAX_OPTIONS, sizeof *options);
    uint32_t *owner = arena_alloc(&c->mem, MAX_OPTIONS, sizeof *owner);
    uint8_t *kinds = arena_alloc(&c->mem, questions->n, sizeof *kinds);
    assert_true(row != NULL && instructions != NULL && options != NULL && owner != NULL &&
                kinds != NULL);
    uint32_t n = 0, q = 0, o = 0;
    for (const json *v = ids->first; v != NULL; v = v->next) {
        uint64_t id = 0;
        assert_true(json_u64(&id, v, INT32_MAX));
        row[n++] = (int32_t)id;
    }
    for (const json *v = questions->first; v != NULL; v = v->next, q++) {
        instructions[q] = span_of(recorded_get(v, "span"));
        for (int k = QUESTION_NOUL; k <= QUESTION_SCORE; k++)
            if (str_equal(recorded_text(v, "type"), str_of(question_kind_name((question_kind)k))))
                kinds[q] = (uint8_t)k;
        for (const json *w = recorded_get(v, "options")->first; w != NULL; w = w->next) {
            assert_true(o < MAX_OPTIONS);
            owner[o] = q;
            options[o++] = span_of(recorded_get(w, "span"));
        }
    }
    c->in = (head_input){.ids = row,
                         .n_tokens = n,
                         .instructions = instructions,
                         .options = options,
                         .owner = owner,
                         .kinds = kinds,
                         .n_questions = q,
                         .n_options = o};
}

static void read_items(seen_case *c) {
    const json *kind = recorded_get(c->doc, "kinds")->first;
    for (const json *v = recorded_get(c->doc, "grids")->first; v != NULL;
         v = v->next, kind = kind->next) {
        uint64_t g[3] = {0};
        uint32_t k = 0;
        for (const json *x = v->first; x != NULL; x = x->next)
            assert_true(k < 3 && json_u64(&g[k++], x, 10000));
        assert_true(c->n_items < MAX_ITEMS);
        const tensor *t = tensor_of_item(c, "rgb", c->n_items);
        assert_non_null(t);
        assert_int_equal(t->shape[1], g[1] * VISION_PATCH);
        assert_int_equal(t->shape[2], g[2] * VISION_PATCH);
        c->still[c->n_items] = str_equal(kind->text, STR("image"));
        assert_int_equal(t->shape[0], c->still[c->n_items] ? 1 : g[0] * VISION_TEMPORAL);
        c->pixels[c->n_items] = t->data;
        c->grids[c->n_items++] = (media_grid){(uint32_t)g[0], (uint32_t)g[1], (uint32_t)g[2]};
    }
}

/* The pads of the row as pictures: in order, each frame group one run of equal pads. */
static uint32_t find_pictures(const seen_case *c, const clef_engine *e, position_picture *out) {
    if (c->in.ids == NULL) fail_msg("%s: no ids", c->name);
    const int32_t pads[2] = {tokenizer_added_id(e->tok, STR("<|image_pad|>")),
                             tokenizer_added_id(e->tok, STR("<|video_pad|>"))};
    uint32_t n = 0, row = 0;
    for (uint32_t i = 0; i < c->n_items; i++)
        for (uint32_t g = 0; g < c->grids[i].t; g++) {
            while (c->in.ids[row] != pads[0] && c->in.ids[row] != pads[1]) row++;
            assert_int_equal(c->in.ids[row], pads[!c->still[i]]);
            out[n] = (position_picture){row, c->grids[i].h / 2, c->grids[i].w / 2};
            row += out[n].rows * out[n].columns;
            n++;
        }
    return n;
}

static void case_load(seen_case *c, const char *name, const clef_engine *e) {
    char path[160];
    clef_error err = {0};
    *c = (seen_case){0};
    snprintf(c->name, sizeof c->name, "%s", name);
    snprintf(path, sizeof path, TESTDATA "vision/%s.json", name);
    c->doc = recorded_load(&c->mem, path);
    snprintf(path, sizeof path, TESTDATA "vision/%s.safetensors", name);
    if (safetensors_open(&c->tensors, path, &err) != CLEF_OK) fail_msg("%s", err.text);
    read_record(c);
    read_items(c);
    position_picture at[64] = {{0}};
    const uint32_t n = find_pictures(c, e, at);
    c->positions = arena_alloc(&c->mem, c->in.n_tokens, sizeof *c->positions);
    assert_non_null(c->positions);
    position_planes(c->positions, c->in.n_tokens, at, n);
}

static void case_free(seen_case *c) {
    safetensors_close(c->tensors);
    arena_free(&c->mem);
}

/* Names of the cases of a toy. */
static uint32_t names_of(const char *toy, char out[32][64]) {
    buf text = {0};
    clef_error err = {0};
    uint32_t n = 0;
    if (file_read(&text, TESTDATA "vision/cases.txt", 1 << 16, &err) != CLEF_OK)
        fail_msg("%s", err.text);
    for (char *save = NULL, *line = strtok_r(text.p, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        const size_t k = strlen(toy);
        if (strncmp(line, toy, k) != 0 || line[k] != '.') continue;
        assert_true(n < 32 && strlen(line) < 64);
        memcpy(out[n++], line, strlen(line) + 1);
    }
    buf_free(&text);
    assert_true(n >= 8);
    return n;
}

/* ---- patches ---- */

typedef struct {
    const seen_case *c;
    uint32_t item;
    bool raster; /* the fault: patches row by row */
} patch_source;

static void give_patches(void *context, float *out, uint32_t first, uint32_t n) {
    const patch_source *s = context;
    const media_grid g = s->c->grids[s->item];
    const uint32_t across = g.w / 2, width = g.w * VISION_PATCH;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t group = (first + i) / (g.h * g.w), p = (first + i) % (g.h * g.w);
        uint32_t row = p / 4 / across * 2 + p / 2 % 2, column = p / 4 % across * 2 + p % 2;
        if (s->raster) {
            row = p / g.w;
            column = p % g.w;
        }
        float *to = out + (size_t)i * VISION_PATCH_VALUES;
        for (uint32_t ch = 0; ch < 3; ch++)
            for (uint32_t t = 0; t < VISION_TEMPORAL; t++)
                for (uint32_t y = 0; y < VISION_PATCH; y++)
                    for (uint32_t x = 0; x < VISION_PATCH; x++) {
                        const size_t frame = s->c->still[s->item] ? 0 : group * VISION_TEMPORAL + t;
                        const size_t line = frame * g.h * VISION_PATCH + row * VISION_PATCH + y;
                        const size_t at = (line * width + column * VISION_PATCH + x) * 3 + ch;
                        *to++ = ((float)s->c->pixels[s->item][at] - 127.5f) / 127.5f;
                    }
    }
}

/* ---- the tower ---- */

/* ||found - wanted|| / ||wanted||, rows of `found` chosen by `rows` where it is not NULL. */
static double relative_error(const float *found, const tensor *wanted, const int32_t *rows) {
    double difference = 0, size = 0;
    const size_t n = (size_t)wanted->shape[1];
    for (size_t r = 0; r < wanted->shape[0]; r++)
        for (size_t i = 0; i < n; i++) {
            float w;
            memcpy(&w, (const char *)wanted->data + (r * n + i) * sizeof w, sizeof w);
            const double f = (double)found[(rows == NULL ? r : (size_t)rows[r]) * n + i];
            difference += (f - (double)w) * (f - (double)w);
            size += (double)w * (double)w;
        }
    return sqrt(difference) / sqrt(size);
}

typedef struct {
    const seen_case *c;
    uint32_t item, n_compared;
} tower_watch;

static void see_block(void *context, uint32_t block, const float *x) {
    tower_watch *w = context;
    const tensor *t = tensor_of_block(w->c, w->item, block);
    if (t == NULL) return;
    const double e = relative_error(x, t, NULL);
    if (!(e <= most_tower_error))
        fail_msg("%s: item %u differs by %.3g relative L2 after block %u", w->c->name, w->item, e,
                 block);
    if (e > worst_tower) worst_tower = e;
    w->n_compared++;
}

/* The tower's rows of an item, in the case's memory. */
static float *tower_rows(seen_case *c, const model *m, uint32_t item, uint32_t max_rows,
                         bool raster, tower_watch *watch) {
    patch_source source = {c, item, raster};
    const vision_input in = {.grid = c->grids[item],
                             .patches = give_patches,
                             .patches_context = &source,
                             .watch = watch == NULL ? NULL : see_block,
                             .watch_context = watch};
    float *out = arena_alloc(&c->mem, vision_rows(in.grid), m->cfg->hidden * sizeof(float));
    clef_error err = {0};
    assert_non_null(out);
    vision *v = NULL;
    if (vision_open(&v, m, out, &in, max_rows, &err) != CLEF_OK) fail_msg("%s", err.text);
    double share = 0;
    for (bool more = true; more;) {
        more = vision_step(v);
        assert_true(vision_share(v) > share);
        share = vision_share(v);
    }
    assert_true(share == 1.0);
    assert_false(vision_step(v));
    vision_close(v);
    return out;
}

static void the_towers_rows_are_the_references_after_every_block(void **state) {
    (void)state;
    uint32_t n_compared = 0;
    for (int t = 0; t < N_TOYS; t++) {
        char names[32][64];
        const uint32_t n = names_of(toys[t], names);
        clef_engine *e = golden_open(toys[t], NULL, 2, 512);
        for (uint32_t i = 0; i < n; i++) {
            seen_case c;
            case_load(&c, names[i], e);
            for (uint32_t k = 0; k < c.n_items; k++) {
                tower_watch w = {&c, k, 0};
                const float *rows = tower_rows(&c, &e->m, k, 512, false, &w);
                const double error = relative_error(rows, tensor_of_item(&c, "merged", k), NULL);
                if (!(error <= most_tower_error))
                    fail_msg("%s: merged rows of item %u differ by %.3g", c.name, k, error);
                if (error > worst_tower) worst_tower = error;
                assert_true(w.n_compared == 0 || w.n_compared == e->cfg.vision.depth + 1);
                n_compared += w.n_compared;
            }
            case_free(&c);
        }
        clef_close(e);
    }
    assert_true(n_compared > 20);
    print_message("tower rows: at most %.3g relative L2\n", worst_tower);
}

static void the_towers_bits_do_not_depend_on_table_threads_or_steps(void **state) {
    (void)state;
    const struct {
        const char *kernels;
        unsigned threads;
        uint32_t rows;
    } settings[] = {{"scalar", 1, 512}, {NULL, 1, 4}, {NULL, 3, 23}, {NULL, 2, 48}};
    const char *const cases[] = {"toy-vision.mix", "toy-vision-72.video-5"};
    for (int i = 0; i < 2; i++) {
        clef_engine *e = golden_open(toys[i], NULL, 2, 512);
        seen_case c;
        case_load(&c, cases[i], e);
        for (uint32_t k = 0; k < c.n_items; k++) {
            const float *wanted = tower_rows(&c, &e->m, k, 512, false, NULL);
            for (size_t s = 0; s < sizeof settings / sizeof settings[0]; s++) {
                clef_engine *other =
                    golden_open(toys[i], settings[s].kernels, settings[s].threads, 512);
                const float *found = tower_rows(&c, &other->m, k, settings[s].rows, false, NULL);
                if (memcmp(found, wanted,
                           (size_t)vision_rows(c.grids[k]) * e->cfg.hidden * sizeof *found) != 0)
                    fail_msg("%s: item %u, setting %zu gives other bits", cases[i], k, s);
                clef_close(other);
            }
        }
        case_free(&c);
        clef_close(e);
    }
}

static void an_unfinished_tower_can_be_given_up(void **state) {
    (void)state;
    clef_engine *e = golden_open("toy-vision", NULL, 2, 512);
    seen_case c;
    case_load(&c, "toy-vision.images-1", e);
    patch_source source = {&c, 0, false};
    const vision_input in = {
        .grid = c.grids[0], .patches = give_patches, .patches_context = &source};
    float out[6 * 64];
    vision *v = NULL;
    assert_int_equal(vision_open(&v, &e->m, out, &in, 512, NULL), CLEF_OK);
    assert_true(vision_step(v) && vision_step(v));
    assert_true(vision_share(v) < 1.0);
    vision_close(v);
    vision_close(NULL);
    case_free(&c);
    clef_close(e);
}

/* ---- positions ---- */

static void positions_are_the_references(void **state) {
    (void)state;
    for (int t = 0; t < N_TOYS; t++) {
        char names[32][64];
        const uint32_t n = names_of(toys[t], names);
        clef_engine *e = golden_open(toys[t], NULL, 1, 512);
        for (uint32_t i = 0; i < n; i++) {
            seen_case c;
            case_load(&c, names[i], e);
            const tensor *wanted = tensor_named(&c, "positions");
            assert_int_equal(wanted->shape[1], c.in.n_tokens);
            for (uint32_t axis = 0; axis < 3; axis++)
                for (uint32_t row = 0; row < c.in.n_tokens; row++) {
                    int32_t w;
                    const size_t at = (size_t)axis * c.in.n_tokens + row;
                    memcpy(&w, (const char *)wanted->data + at * sizeof w, sizeof w);
                    if (c.positions[row].axis[axis] != (uint32_t)w)
                        fail_msg("%s: row %u stands at %u on axis %u, the reference has %d", c.name,
                                 row, c.positions[row].axis[axis], axis, w);
                }
            case_free(&c);
        }
        clef_close(e);
    }
}

/* ---- the whole network ---- */

typedef enum { HEALTHY, ROWS_ZEROED, RASTER_ORDER, SWAPPED_POSITIONS, LONG_JUMP } fault;
static const char *const arms[] = {NULL, "rows_zeroed", "raster_order", "swapped_positions",
                                   "long_jump"};

/* Positions with rows and columns exchanged, or with one step too many behind each picture. */
static const position *wrong_positions(seen_case *c, const clef_engine *e, fault f) {
    const uint32_t n = c->in.n_tokens;
    position *out = arena_alloc(&c->mem, n, sizeof *out);
    assert_non_null(out);
    memcpy(out, c->positions, n * sizeof *out);
    for (uint32_t i = 0; f == SWAPPED_POSITIONS && i < n; i++) {
        out[i].axis[1] = c->positions[i].axis[2];
        out[i].axis[2] = c->positions[i].axis[1];
    }
    if (f != LONG_JUMP) return out;
    position_picture at[64] = {{0}};
    const uint32_t n_pictures = find_pictures(c, e, at);
    for (uint32_t k = 0; k < n_pictures; k++)
        for (uint32_t i = at[k].begin + at[k].rows * at[k].columns; i < n; i++)
            for (uint32_t axis = 0; axis < 3; axis++) out[i].axis[axis]++;
    return out;
}

/* The rows laid over the pads. */
static const float *const *lay_rows(seen_case *c, const clef_engine *e, fault f) {
    const float **laid = arena_alloc(&c->mem, c->in.n_tokens, sizeof *laid);
    assert_non_null(laid);
    position_picture at[64] = {{0}};
    find_pictures(c, e, at);
    const size_t hidden = e->cfg.hidden;
    for (uint32_t item = 0, k = 0; item < c->n_items; item++) {
        const float *rows = tower_rows(c, &e->m, item, 512, f == RASTER_ORDER, NULL);
        if (f == ROWS_ZEROED) rows = arena_alloc(&c->mem, vision_rows(c->grids[item]), hidden * 4);
        assert_non_null(rows);
        for (uint32_t g = 0; g < c->grids[item].t; g++, k++)
            for (uint32_t r = 0; r < at[k].rows * at[k].columns; r++, rows += hidden)
                laid[at[k].begin + r] = rows;
    }
    return laid;
}

typedef struct {
    uint32_t n_layers, hidden, row, chunk, n_tokens;
    float *first, *last; /* [n_tokens, hidden]: embedding rows, final rows */
} capture;

static void see_layer(void *context, uint32_t layer, const float *x) {
    capture *c = context;
    const uint32_t left = c->n_tokens - c->row, n = left < c->chunk ? left : c->chunk;
    const size_t at = (size_t)c->row * c->hidden, bytes = (size_t)n * c->hidden * sizeof(float);
    if (layer == 0) memcpy(c->first + at, x, bytes);
    if (layer != c->n_layers + 1) return;
    memcpy(c->last + at, x, bytes);
    c->row += n;
}

static void run_case(seen_case *c, const clef_engine *e, fault f, capture *watch, float *logits,
                     float *probabilities) {
    workspace ws = {0};
    sequence seq = {0};
    head_run h;
    clef_error err = {0};
    const position *positions = f == HEALTHY ? c->positions : wrong_positions(c, e, f);
    const float *const *laid = lay_rows(c, e, f);
    assert_int_equal(workspace_open(&ws, &e->cfg, e->chunk, &err), CLEF_OK);
    assert_int_equal(sequence_open(&seq, &e->cfg, c->in.n_tokens, &err), CLEF_OK);
    assert_int_equal(head_open(&h, &e->m, &c->in, &err), CLEF_OK);
    for (uint32_t row = 0; row < c->in.n_tokens; row += e->chunk) {
        const uint32_t left = c->in.n_tokens - row, n = left < e->chunk ? left : e->chunk;
        const segment s = {&seq, c->in.ids + row, n, positions + row, laid + row};
        backbone_chunk(&e->m, &ws, &s, 1, watch == NULL ? NULL : see_layer, watch);
        head_feed(&h, &e->m, &ws, ws.y, n);
    }
    if (head_finish(&h, &e->m, &ws, logits, probabilities, &err) != CLEF_OK)
        fail_msg("%s", err.text);
    head_close(&h);
    sequence_close(&seq);
    workspace_close(&ws);
}

static double largest_difference(const float *a, const float *b, uint32_t n) {
    double most = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double d = fabs((double)a[i] - (double)b[i]);
        if (!(d <= most)) most = d;
    }
    return most;
}

static void close_rows(const seen_case *c, const char *name, const float *found) {
    const double e = relative_error(found, tensor_named(c, name), tensor_named(c, "rows")->data);
    if (!(e <= most_hidden_error)) fail_msg("%s: %s differs by %.3g", c->name, name, e);
    if (e > worst_hidden) worst_hidden = e;
}

static void one_case(const char *name, const clef_engine *e) {
    seen_case c;
    case_load(&c, name, e);
    const size_t row = e->cfg.hidden * sizeof(float);
    capture watch = {e->cfg.n_layers,
                     e->cfg.hidden,
                     0,
                     e->chunk,
                     c.in.n_tokens,
                     arena_alloc(&c.mem, c.in.n_tokens, row),
                     arena_alloc(&c.mem, c.in.n_tokens, row)};
    assert_true(watch.first != NULL && watch.last != NULL);
    float logits[MAX_OPTIONS], probabilities[MAX_OPTIONS];
    run_case(&c, e, HEALTHY, &watch, logits, probabilities);
    close_rows(&c, "hidden.0", watch.first);
    close_rows(&c, "hidden.final", watch.last);
    uint32_t n = 0;
    const float *wanted = recorded_floats(&c.mem, recorded_get(c.doc, "logits"), &n);
    assert_int_equal(n, c.in.n_options);
    const double l = largest_difference(logits, wanted, n);
    if (!(l <= most_logit_error)) fail_msg("%s: a logit is off by %.3g", name, l);
    wanted = recorded_floats(&c.mem, recorded_get(c.doc, "probs"), &n);
    const double p = largest_difference(probabilities, wanted, n);
    if (!(p <= most_p_error)) fail_msg("%s: a probability is off by %.3g", name, p);
    if (l > worst_logit) worst_logit = l;
    if (p > worst_p) worst_p = p;
    case_free(&c);
}

static void every_record_has_the_references_rows_logits_and_probabilities(void **state) {
    (void)state;
    for (int t = 0; t < N_TOYS; t++) {
        char names[32][64];
        const uint32_t n = names_of(toys[t], names);
        clef_engine *e = golden_open(toys[t], NULL, 2, 512);
        for (uint32_t i = 0; i < n; i++) one_case(names[i], e);
        clef_close(e);
    }
    print_message("hidden rows: at most %.3g relative L2; logits %.3g; probabilities %.3g\n",
                  worst_hidden, worst_logit, worst_p);
}

static void every_fault_turns_the_bars_red_as_it_does_the_references(void **state) {
    (void)state;
    uint32_t n_seen[LONG_JUMP + 1] = {0};
    for (int t = 0; t < N_TOYS; t++) {
        char names[32][64];
        const uint32_t n_names = names_of(toys[t], names);
        clef_engine *e = golden_open(toys[t], NULL, 2, 512);
        for (uint32_t i = 0; i < n_names; i++)
            for (fault f = ROWS_ZEROED; f <= LONG_JUMP; f++) {
                seen_case c;
                case_load(&c, names[i], e);
                const json *recorded = json_get(json_get(c.doc, STR("arms")), str_of(arms[f]));
                if (recorded != NULL) {
                    uint32_t n = 0;
                    float logits[MAX_OPTIONS], probabilities[MAX_OPTIONS];
                    const float *wanted = recorded_floats(&c.mem, recorded, &n);
                    const float *healthy =
                        recorded_floats(&c.mem, recorded_get(c.doc, "logits"), &n);
                    run_case(&c, e, f, NULL, logits, probabilities);
                    const double moved = largest_difference(logits, healthy, n);
                    const double error = largest_difference(logits, wanted, n);
                    if (!(moved > most_logit_error))
                        fail_msg("%s: %s stays green: %.3g", c.name, arms[f], moved);
                    if (!(error <= most_logit_error))
                        fail_msg("%s: %s is %.3g off the reference's with the same fault", c.name,
                                 arms[f], error);
                    n_seen[f]++;
                }
                case_free(&c);
            }
        clef_close(e);
    }
    for (fault f = ROWS_ZEROED; f <= LONG_JUMP; f++) assert_true(n_seen[f] >= 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_towers_rows_are_the_references_after_every_block),
        cmocka_unit_test(the_towers_bits_do_not_depend_on_table_threads_or_steps),
        cmocka_unit_test(an_unfinished_tower_can_be_given_up),
        cmocka_unit_test(positions_are_the_references),
        cmocka_unit_test(every_record_has_the_references_rows_logits_and_probabilities),
        cmocka_unit_test(every_fault_turns_the_bars_red_as_it_does_the_references),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
