/* gate.c - replays recorded runs against a model: clef_gate.
 *
 * Order of the checks: ids and spans of every run, exactly; then the numbers of those runs whose
 * row is the oracle's; then the first of them again, whose bits must not change. Numbers are
 * compared as the oracle prints them: probabilities per question.
 *
 * The red arms are faults committed on purpose, each to a copy of a run or of the weights' table; a
 * gate that stays green under one is blind. An arm looks at one run after the other until a check
 * turns red, so most cost a single run. Only runs that passed without a fault are used: else the
 * model's own error would be taken for the arm's. */
#include "engine/gate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double default_margin = 0.02, default_max_dp = 0.02, default_mean_dp = 0.002;

/* ---- ids and spans ---- */

static gate_match differs(gate_run *r, const char *what, uint64_t found, uint64_t wanted) {
    clef_fail(&r->why, CLEF_ERR_INTERNAL, "%s: %llu, the oracle has %llu", what,
              (unsigned long long)found, (unsigned long long)wanted);
    return MATCH_DIFFERS;
}

static gate_match compare_ids(gate_run *r) {
    const fixture_run *want = r->want;
    const prompt *p = &r->j.p;
    if (p->n_ids != want->n_tokens) return differs(r, "tokens", p->n_ids, want->n_tokens);
    if (want->ids == NULL) return MATCH_NOT_CHECKED;
    for (uint32_t i = 0; i < p->n_ids; i++) {
        if (p->ids[i] == want->ids[i]) continue;
        char where[32];
        snprintf(where, sizeof where, "ids[%u]", i);
        return differs(r, where, (uint64_t)p->ids[i], (uint64_t)want->ids[i]);
    }
    return MATCH_EXACT;
}

static bool same_span(span a, span b) {
    return a.begin == b.begin && a.end == b.end;
}

/* Questions and options by name and order, and where they stand in the row; `instructions` and
 * `options` as in head_input. */
static gate_match compare_spans(gate_run *r, const span *instructions, const span *options) {
    const fixture_run *want = r->want;
    const request *rq = &r->j.rq;
    if (rq->n_questions != want->n_questions)
        return differs(r, "questions", rq->n_questions, want->n_questions);
    for (uint32_t q = 0, flat = 0; q < want->n_questions; q++) {
        const fixture_question *w = &want->questions[q];
        const question *found = &rq->questions[q];
        bool same = str_equal(found->id, w->id) && found->kind == w->kind &&
                    found->n_options == w->n_options && same_span(instructions[q], w->instructions);
        for (uint32_t o = 0; same && o < w->n_options; o++, flat++)
            same = str_equal(found->options[o].id, w->options[o]) &&
                   same_span(options[flat], w->spans[o]);
        if (same) continue;
        clef_fail(&r->why, CLEF_ERR_INTERNAL,
                  "question '%s': options or spans are not the oracle's", request_show(w->id).text);
        return MATCH_DIFFERS;
    }
    return MATCH_EXACT;
}

/* The paths of a run's pictures, when they are there and, where the file says, the right ones. */
static clef_status find_pictures(const char ***out, gate_run *r, const char *folder,
                                 clef_error *err) {
    const fixture_run *want = r->want;
    const char **paths = arena_alloc(&r->j.mem, want->n_image_files, sizeof *paths);
    if (paths == NULL) return clef_fail_memory(err);
    for (uint32_t i = 0; i < want->n_image_files; i++) {
        buf path = {0};
        buf_printf(&path, "%s/%.*s", folder, STR_ARG(want->image_files[i]));
        const str copy = arena_copy(&r->j.mem, (str){path.p, path.n});
        buf_free(&path);
        if (copy.p == NULL) return clef_fail_memory(err);
        paths[i] = copy.p;
        if (want->image_hashes[i].n == 0) continue;
        char hex[DIGEST_HEX];
        uint64_t size = 0;
        TRY(digest_file(hex, &size, copy.p, NULL, NULL, err));
        if (!str_equal(want->image_hashes[i], str_of(hex)))
            return clef_fail(err, CLEF_ERR_INPUT, "%s: its SHA-256 is %s, wanted %.*s", copy.p, hex,
                             STR_ARG(want->image_hashes[i]));
    }
    *out = paths;
    return CLEF_OK;
}

/* A run whose pictures are missing has the row that their number of tokens gives. */
static clef_status encode_run(gate_run *r, const clef_engine *e, const char *images,
                              clef_error *err) {
    const fixture_run *want = r->want;
    const bool shown = images != NULL && want->n_image_files > 0 && e->cfg.vision.depth > 0;
    const uint32_t positions = e->cfg.max_positions;
    const prompt_limits limits = {
        .max_length = positions < ENGINE_DEFAULT_LENGTH ? positions : ENGINE_DEFAULT_LENGTH,
        .truncate = CLEF_TRUNCATE_STATE,
        .control = CLEF_CONTROL_REFERENCE,
        .media = &(prompt_media){.n_groups = 1, .n_rows = want->image_tokens},
        .n_media = want->image_tokens > 0,
    };
    const bool blind = want->pictured && !shown;
    if (blind) clef_fail(&r->why, CLEF_ERR_UNSUPPORTED, "its pictures are not in the file");
    if (blind && want->image_tokens == 0) return CLEF_OK;
    clef_error why = {0};
    const char **paths = NULL;
    sight_options seeing;
    clef_status s = shown ? find_pictures(&paths, r, images, &why) : CLEF_OK;
    engine_sight(&seeing, e,
                 &(clef_ask_options){.images = paths, .n_images = shown ? want->n_image_files : 0});
    if (s == CLEF_OK)
        s = job_encode(&r->j, e->tok, &limits, shown ? &seeing : NULL, want->body, &why);
    if (s == CLEF_ERR_UNSUPPORTED && blind) return CLEF_OK;
    if (s == CLEF_ERR_MEMORY) return clef_fail_memory(err);
    r->failed = s != CLEF_OK;
    if (r->failed) {
        r->why = why;
        return CLEF_OK;
    }
    r->ids = compare_ids(r);
    if (r->ids == MATCH_NOT_CHECKED && !blind)
        clef_fail(&r->why, CLEF_ERR_UNSUPPORTED, "its ids are withheld");
    if (r->ids != MATCH_DIFFERS) r->spans = compare_spans(r, r->j.p.instructions, r->j.p.options);
    r->compared = r->ids != MATCH_DIFFERS && r->spans == MATCH_EXACT && !blind;
    return r->compared ? job_make_item(&r->j, err) : CLEF_OK;
}

/* ---- numbers ---- */

static uint32_t largest(const double *p, uint32_t n) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (p[i] > p[best]) best = i;
    return best;
}

static double margin_of(const double *p, uint32_t n, uint32_t best) {
    double second = n > 1 ? -1.0 : p[best] - 1.0;
    for (uint32_t i = 0; i < n; i++)
        if (i != best && p[i] > second) second = p[i];
    return p[best] - second;
}

/* softmax of each question's logits, questions as the request has them, in double. */
static void question_softmax(double *out, const float *logits, uint32_t n) {
    double most = (double)logits[0], sum = 0;
    for (uint32_t i = 1; i < n; i++) most = fmax(most, (double)logits[i]);
    for (uint32_t i = 0; i < n; i++) sum += out[i] = exp((double)logits[i] - most);
    for (uint32_t i = 0; i < n; i++) out[i] /= sum;
}

/* Compares probabilities [n_options] with the oracle's; `questions` may be NULL. */
static gate_numbers compare_numbers(const fixture_run *want, const double *p, double margin,
                                    gate_question *questions) {
    gate_numbers n = {0};
    double sum = 0;
    for (uint32_t q = 0, flat = 0; q < want->n_questions; q++) {
        const fixture_question *w = &want->questions[q];
        gate_question g = {.oracle = largest(w->probabilities, w->n_options),
                           .found = largest(p + flat, w->n_options)};
        g.margin = margin_of(w->probabilities, w->n_options, g.oracle);
        g.near = !(g.margin > margin);
        for (uint32_t o = 0; o < w->n_options; o++, flat++) {
            const double dp = fabs(p[flat] - w->probabilities[o]);
            sum += dp;
            if (dp > g.max_dp) g.max_dp = dp;
            if (dp > n.max_dp) {
                n.max_dp = dp;
                n.worst = flat;
            }
        }
        n.n_near += g.near;
        n.n_wrong += !g.near && g.found != g.oracle;
        if (questions != NULL) questions[q] = g;
    }
    n.mean_dp = sum / want->n_options;
    return n;
}

/* ---- running ---- */

typedef struct {
    clef_engine *e;
    const clef_gate_options *o;
    size_t done, total; /* tokens */
} runner;

static int pass_progress(void *user, size_t done, size_t total) {
    const runner *r = user;
    (void)total;
    return r->o->progress == NULL ? 0 : r->o->progress(r->o->user, r->done + done, r->total);
}

/* Runs one item by itself; its own fault stays in it. */
static clef_status run_item(runner *r, const model *m, batch_item *item, clef_error *err) {
    TRY(engine_run(r->e, m, pass_progress, r, item, 1, err));
    if (item->status == CLEF_ERR_MEMORY) return clef_fail_memory(err);
    r->done += item->in.n_tokens;
    if (r->done > r->total) r->total = r->done; /* the red arms come on top */
    return CLEF_OK;
}

static clef_status run_run(runner *c, gate_run *r, double margin, clef_error *err) {
    TRY(run_item(c, &c->e->m, &r->j.item, err));
    if (r->j.item.status != CLEF_OK) {
        r->failed = true;
        r->compared = false;
        r->why = r->j.item.err;
        return CLEF_OK;
    }
    const uint32_t n = r->want->n_options;
    double *p = arena_alloc(&r->j.mem, n, sizeof *p);
    r->questions = arena_alloc(&r->j.mem, r->want->n_questions, sizeof *r->questions);
    if (p == NULL || r->questions == NULL) return clef_fail_memory(err);
    for (uint32_t i = 0; i < n; i++) p[i] = (double)r->j.item.probabilities[i];
    r->numbers = compare_numbers(r->want, p, margin, r->questions);
    return CLEF_OK;
}

/* The first run again: a second item with room of its own. */
static clef_status repeat_first(runner *c, gate_result *g, clef_error *err) {
    for (size_t i = 0; i < g->n_runs && g->first == NULL; i++)
        if (g->runs[i].compared) g->first = &g->runs[i];
    if (g->first == NULL) return CLEF_OK;
    batch_item again = g->first->j.item;
    const uint32_t n = again.in.n_options;
    arena mem = {0};
    again.logits = arena_alloc(&mem, n, sizeof *again.logits);
    again.probabilities = arena_alloc(&mem, n, sizeof *again.probabilities);
    clef_status s =
        again.logits == NULL || again.probabilities == NULL ? clef_fail_memory(err) : CLEF_OK;
    if (s == CLEF_OK) s = run_item(c, &c->e->m, &again, err);
    if (s == CLEF_OK)
        g->same_bits = again.status == CLEF_OK &&
                       memcmp(again.logits, g->first->j.item.logits, n * sizeof(float)) == 0;
    arena_free(&mem);
    return s;
}

/* ---- red arms ---- */

typedef enum { ARM_SPANS, ARM_LEXICAL, ARM_MEMBERSHIP, ARM_EMBEDDING, ARM_PICTURES } arm_id;

static const char *const arm_names[GATE_N_ARMS] = {
    [ARM_SPANS] = "spans one token late",
    [ARM_LEXICAL] = "lexical vectors zeroed",
    [ARM_MEMBERSHIP] = "membership rotated by one option",
    [ARM_EMBEDDING] = "embedding rows for lm_head rows",
    [ARM_PICTURES] = "image rows zeroed",
};

/* A run under a fault. */
typedef struct {
    gate_run r;  /* a copy: what it finds stays out of the report */
    span *moved; /* instructions, then options */
    uint32_t *owner;
    double *p;
    arena mem;
} faulty;

static clef_status faulty_open(faulty *f, const gate_run *r, arm_id arm, clef_error *err) {
    *f = (faulty){.r = *r};
    head_input *in = &f->r.j.item.in;
    const size_t n_spans = (size_t)in->n_questions + in->n_options;
    f->moved = arena_alloc(&f->mem, n_spans, sizeof *f->moved);
    f->owner = arena_alloc(&f->mem, in->n_options, sizeof *f->owner);
    f->p = arena_alloc(&f->mem, in->n_options, sizeof *f->p);
    f->r.j.item.logits = arena_alloc(&f->mem, in->n_options, sizeof(float));
    f->r.j.item.probabilities = arena_alloc(&f->mem, in->n_options, sizeof(float));
    if (f->moved == NULL || f->owner == NULL || f->p == NULL || f->r.j.item.logits == NULL ||
        f->r.j.item.probabilities == NULL)
        return clef_fail_memory(err);
    const uint32_t late = arm == ARM_SPANS, rotate = arm == ARM_MEMBERSHIP;
    for (uint32_t i = 0; i < n_spans; i++) {
        const span s = i < in->n_questions ? in->instructions[i] : in->options[i - in->n_questions];
        f->moved[i] = (span){s.begin + late, s.end + late}; /* the closing text has room */
    }
    for (uint32_t o = 0; o < in->n_options; o++)
        f->owner[o] = in->owner[(o + in->n_options - rotate) % in->n_options];
    in->instructions = f->moved;
    in->options = f->moved + in->n_questions;
    in->owner = f->owner;
    return CLEF_OK;
}

/* Which check turns red for this run, or NULL. */
static const char *red_check(faulty *f, const clef_gate_options *bars, gate_numbers *numbers) {
    const batch_item *item = &f->r.j.item;
    const fixture_run *want = f->r.want;
    if (item->status != CLEF_OK) return "finite logits";
    for (uint32_t q = 0, flat = 0; q < want->n_questions; flat += want->questions[q++].n_options)
        question_softmax(f->p + flat, item->logits + flat, want->questions[q].n_options);
    *numbers = compare_numbers(want, f->p, bars->margin, NULL);
    if (compare_spans(&f->r, item->in.instructions, item->in.options) != MATCH_EXACT)
        return "spans";
    if (numbers->n_wrong > 0) return "answers";
    return numbers->max_dp > bars->max_dp ? "max |dp|" : NULL;
}

static bool healthy(const gate_run *r, const clef_gate_options *bars) {
    return r->compared && r->numbers.n_wrong == 0 && r->numbers.max_dp <= bars->max_dp;
}

/* Why the fault is none for what was replayed; NULL: it is one. */
static const char *no_fault(const gate_result *g, const config *cfg, arm_id arm) {
    if (arm == ARM_EMBEDDING && cfg->tied) return "the model's tables are tied";
    if (arm != ARM_PICTURES) return NULL;
    for (size_t i = 0; i < g->n_runs; i++)
        if (g->runs[i].compared && g->runs[i].j.sight != NULL) return NULL;
    return "no run with pictures was compared";
}

/* `zeros`: at least a row of them. */
static clef_status try_arm(gate_arm *out, runner *c, const gate_result *g, arm_id arm,
                           const model *m, const float *zeros, clef_error *err) {
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < g->n_runs && !out->caught; i++) {
        const gate_run *r = &g->runs[i];
        /* With a single question every option keeps its owner. */
        if (!healthy(r, &g->bars) || (arm == ARM_MEMBERSHIP && r->want->n_questions == 1)) continue;
        if (arm == ARM_PICTURES && r->j.sight == NULL) continue;
        faulty f;
        gate_numbers numbers = {0};
        clef_status s = faulty_open(&f, r, arm, err);
        if (arm == ARM_PICTURES) sight_blind(r->j.sight, zeros);
        if (s == CLEF_OK) s = run_item(c, m, &f.r.j.item, err);
        if (arm == ARM_PICTURES) sight_blind(r->j.sight, NULL);
        if (s == CLEF_OK) {
            out->by = red_check(&f, &g->bars, &numbers);
            out->caught = out->by != NULL;
            if (out->caught) out->run = r->want;
            out->max_dp = fmax(out->max_dp, numbers.max_dp);
            sum += numbers.mean_dp;
            n++;
        }
        arena_free(&f.mem);
        TRY(s);
    }
    if (!out->caught && n > 0 && sum / (double)n > g->bars.mean_dp) {
        out->caught = true;
        out->by = "mean |dp|";
    }
    return CLEF_OK;
}

static clef_status try_arms(runner *c, gate_result *g, clef_error *err) {
    const weights *w = &c->e->w;
    weights broken = *w;
    model m = c->e->m;
    m.w = &broken;
    /* Rows that are never looked at never take memory. */
    void *zeros =
        calloc((size_t)w->lexical.n_out * w->lexical.n_in, dtype_bits(w->lexical.type) / 8);
    clef_status s = zeros == NULL ? clef_fail_memory(err) : CLEF_OK;
    for (int arm = 0; s == CLEF_OK && arm < GATE_N_ARMS; arm++) {
        broken.lexical = w->lexical;
        if (arm == ARM_LEXICAL) broken.lexical.data = zeros;
        if (arm == ARM_EMBEDDING) broken.lexical = w->embed;
        g->arms[arm].name = arm_names[arm];
        g->arms[arm].no_fault = no_fault(g, &c->e->cfg, (arm_id)arm);
        g->arms[arm].applies = g->arms[arm].no_fault == NULL;
        if (g->arms[arm].applies) s = try_arm(&g->arms[arm], c, g, (arm_id)arm, &m, zeros, err);
    }
    free(zeros);
    return s;
}

/* ---- the whole ---- */

bool gate_checks(gate_check checks[GATE_N_CHECKS], const gate_result *r) {
    static const char *const names[GATE_N_CHECKS] = {
        [GATE_IDS] = "ids",       [GATE_SPANS] = "spans",     [GATE_ANSWERS] = "answers",
        [GATE_MAX_DP] = "max_dp", [GATE_MEAN_DP] = "mean_dp", [GATE_REPEAT] = "repeat",
        [GATE_RED] = "red",
    };
    for (int i = 0; i < GATE_N_CHECKS; i++) checks[i] = (gate_check){.name = names[i]};
    size_t n_failed = 0;
    for (size_t i = 0; i < r->n_runs; i++) {
        const gate_run *run = &r->runs[i];
        const gate_match borders[] = {run->ids, run->spans};
        n_failed += run->failed;
        for (int b = 0; b < 2; b++) {
            checks[GATE_IDS + b].n += borders[b] != MATCH_NOT_CHECKED;
            checks[GATE_IDS + b].n_held += borders[b] == MATCH_EXACT;
            checks[GATE_IDS + b].n_not_checked += borders[b] == MATCH_NOT_CHECKED;
        }
        checks[GATE_MAX_DP].n += run->compared;
        checks[GATE_MAX_DP].n_held += run->compared && run->numbers.max_dp <= r->bars.max_dp;
        checks[GATE_MAX_DP].n_not_checked += !run->compared;
        if (!run->compared) {
            checks[GATE_ANSWERS].n_not_checked += run->want->n_questions;
            continue;
        }
        const size_t n = run->want->n_questions - run->numbers.n_near;
        checks[GATE_ANSWERS].n += n;
        checks[GATE_ANSWERS].n_held += n - run->numbers.n_wrong;
    }
    const bool any = checks[GATE_MAX_DP].n > 0;
    checks[GATE_MEAN_DP].n = any;
    checks[GATE_MEAN_DP].n_held = any && r->mean_dp <= r->bars.mean_dp;
    checks[GATE_REPEAT].n = r->first != NULL;
    checks[GATE_REPEAT].n_held = r->first != NULL && r->same_bits;
    for (int i = 0; r->bars.red && i < GATE_N_ARMS; i++) {
        checks[GATE_RED].n += r->arms[i].applies;
        checks[GATE_RED].n_held += r->arms[i].applies && r->arms[i].caught;
        checks[GATE_RED].n_not_checked += !r->arms[i].applies;
    }
    bool all = n_failed == 0;
    for (int i = 0; i < GATE_N_CHECKS; i++) {
        checks[i].holds = checks[i].n > 0 && checks[i].n_held == checks[i].n;
        all = all && (checks[i].holds || (i == GATE_RED && !r->bars.red));
    }
    return all;
}

static clef_status replay(gate_result *g, clef_engine *e, clef_error *err) {
    runner c = {.e = e, .o = &g->bars};
    for (size_t i = 0; i < g->n_runs; i++) TRY(encode_run(&g->runs[i], e, g->bars.images, err));
    for (size_t i = 0; i < g->n_runs; i++)
        if (g->runs[i].compared) c.total += g->runs[i].want->n_tokens;
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < g->n_runs; i++) {
        gate_run *r = &g->runs[i];
        if (!r->compared) continue;
        TRY(run_run(&c, r, g->bars.margin, err));
        sum += r->numbers.mean_dp;
        n += r->compared;
    }
    if (g->bars.red) TRY(try_arms(&c, g, err));
    TRY(repeat_first(&c, g, err));
    g->mean_dp = n > 0 ? sum / (double)n : 0;
    return CLEF_OK;
}

static clef_status check_bar(const char *name, double *value, double standard, clef_error *err) {
    if (*value == 0) *value = standard;
    if (*value > 0 && *value <= 1) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_INPUT, "%s: %g, wanted more than 0 and at most 1", name, *value);
}

static clef_status write_reports(const gate_result *g, int *holds, char **table, char **report,
                                 clef_error *err) {
    gate_check checks[GATE_N_CHECKS];
    buf text = {0}, object = {0};
    gate_table(&text, g);
    gate_json(&object, g);
    clef_status s = buf_status(&text, err);
    if (s == CLEF_OK) s = buf_status(&object, err);
    if (s == CLEF_OK) {
        *holds = gate_checks(checks, g);
        *table = buf_take(&text);
        *report = buf_take(&object);
    }
    buf_free(&text);
    buf_free(&object);
    return s;
}

clef_status clef_gate(clef_engine *e, const clef_gate_options *options, const char *const *fixtures,
                      size_t n_fixtures, int *holds, char **table, char **report, clef_error *err) {
    gate_result g = {.model = e->dir, .files = fixtures, .n_files = n_fixtures};
    if (options != NULL) g.bars = *options;
    if (!e->has_weights)
        return clef_fail(err, CLEF_ERR_INPUT, "the model was opened for its tokenizer alone");
    if (n_fixtures == 0) return clef_fail(err, CLEF_ERR_INPUT, "no fixtures are named");
    TRY(check_bar("margin", &g.bars.margin, default_margin, err));
    TRY(check_bar("max_dp", &g.bars.max_dp, default_max_dp, err));
    TRY(check_bar("mean_dp", &g.bars.mean_dp, default_mean_dp, err));
    arena mem = {0};
    fixture_list list = {0};
    clef_status s = CLEF_OK;
    for (size_t i = 0; s == CLEF_OK && i < n_fixtures; i++)
        s = fixture_load(&list, fixtures[i], &mem, err);
    if (s == CLEF_OK) {
        g.n_runs = list.n;
        g.runs = calloc(list.n, sizeof *g.runs);
        if (g.runs == NULL) s = clef_fail_memory(err);
    }
    for (size_t i = 0; s == CLEF_OK && i < g.n_runs; i++) g.runs[i].want = &list.runs[i];
    if (s == CLEF_OK) s = replay(&g, e, err);
    if (s == CLEF_OK) s = write_reports(&g, holds, table, report, err);
    for (size_t i = 0; g.runs != NULL && i < g.n_runs; i++) arena_free(&g.runs[i].j.mem);
    free(g.runs);
    fixture_list_free(&list);
    arena_free(&mem);
    return s;
}
