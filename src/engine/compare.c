/* compare.c - the same requests to two models, without an oracle: clef_compare.
 *
 * How far a format moves a model from its own unreduced run. Nothing here passes or fails; the bars
 * belong to the gate, which knows what is right. */
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "engine/gate.h"
#include "text/pyjson.h"

enum { N_KINDS = QUESTION_SCORE + 1 };
#define MAX_FILE_BYTES ((size_t)64 << 20)

typedef struct {
    size_t n_questions, n_changed, n_options;
    double sum, max_dp;
} kind_numbers;

typedef struct {
    clef_engine *engines[2];
    const clef_gate_options *o;
    kind_numbers kinds[N_KINDS];
    size_t n_requests, n_other_ids;
    double sum_of_means;
} comparison;

static int pass_progress(void *user, size_t done, size_t total) {
    const comparison *c = user;
    return c->o->progress == NULL ? 0 : c->o->progress(c->o->user, done, total);
}

static clef_status run_one(comparison *c, job *j, int which, str body, clef_error *err) {
    clef_engine *e = c->engines[which];
    const uint32_t positions = e->cfg.max_positions;
    const prompt_limits limits = {
        .max_length = positions < ENGINE_DEFAULT_LENGTH ? positions : ENGINE_DEFAULT_LENGTH};
    sight_options seeing;
    const bool sees = engine_sight(&seeing, e, &(clef_ask_options){0});
    TRY(job_encode(j, e->tok, &limits, sees ? &seeing : NULL, body, err));
    TRY(job_make_item(j, err));
    TRY(engine_run(e, &e->m, pass_progress, c, &j->item, 1, err));
    if (j->item.status != CLEF_OK && err != NULL) *err = j->item.err;
    return j->item.status;
}

static uint32_t largest(const float *p, uint32_t n) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (p[i] > p[best]) best = i;
    return best;
}

static void add_numbers(comparison *c, const job jobs[2]) {
    const request *rq = &jobs[0].rq;
    const float *a = jobs[0].item.probabilities, *b = jobs[1].item.probabilities;
    double sum = 0;
    for (uint32_t q = 0, flat = 0; q < rq->n_questions; q++) {
        kind_numbers *k = &c->kinds[rq->questions[q].kind];
        const uint32_t n = rq->questions[q].n_options;
        k->n_questions++;
        k->n_changed += largest(a + flat, n) != largest(b + flat, n);
        k->n_options += n;
        for (uint32_t o = 0; o < n; o++, flat++) {
            const double dp = fabs((double)a[flat] - (double)b[flat]);
            k->sum += dp;
            sum += dp;
            if (dp > k->max_dp) k->max_dp = dp;
        }
    }
    const prompt *x = &jobs[0].p, *y = &jobs[1].p;
    c->n_other_ids +=
        x->n_ids != y->n_ids || memcmp(x->ids, y->ids, x->n_ids * sizeof x->ids[0]) != 0;
    c->sum_of_means += sum / rq->n_options;
    c->n_requests++;
}

static clef_status compare_request(comparison *c, const json *v, const char *path, uint32_t at,
                                   clef_error *err) {
    buf body = {0};
    job jobs[2] = {{.mem = {0}}};
    clef_error why = {0};
    clef_status s = pyjson_write(&body, v, PYJSON_ANSWER, &why);
    if (s == CLEF_OK) s = buf_status(&body, &why);
    for (int i = 0; s == CLEF_OK && i < 2; i++)
        s = run_one(c, &jobs[i], i, (str){body.p, body.n}, &why);
    if (s == CLEF_OK) add_numbers(c, jobs);
    if (s == CLEF_ERR_CANCELLED || s == CLEF_ERR_MEMORY)
        clef_fail(err, s, "%s", why.text);
    else if (s != CLEF_OK)
        clef_fail(err, s, "%s: request %u: %s", path, at, why.text);
    for (int i = 0; i < 2; i++) arena_free(&jobs[i].mem);
    buf_free(&body);
    return s;
}

/* A file holds a request, or an array of them. */
static clef_status compare_file(comparison *c, const char *path, clef_error *err) {
    arena mem = {0};
    buf text = {0};
    const json *root = NULL;
    clef_status s = file_read(&text, path, MAX_FILE_BYTES, err);
    if (s == CLEF_OK)
        s = json_parse(&root, (str){text.p, text.n}, path, &(json_limits){0}, &mem, err);
    buf_free(&text);
    if (s == CLEF_OK && root->kind == JSON_ARRAY) {
        if (root->n == 0)
            s = clef_fail(err, CLEF_ERR_INPUT, "%s: an empty array, wanted requests", path);
        uint32_t at = 0;
        for (const json *v = root->first; s == CLEF_OK && v != NULL; v = v->next)
            s = compare_request(c, v, path, at++, err);
    } else if (s == CLEF_OK) {
        s = compare_request(c, root, path, 0, err);
    }
    arena_free(&mem);
    return s;
}

/* ---- printing ---- */

static void add_kind(buf *table, buf *object, const char *name, const kind_numbers *k) {
    if (k->n_questions == 0) return;
    const double mean = k->sum / (double)k->n_options;
    buf_printf(table, "%-8s  %9zu  %7zu  %9.7f  %9.7f\n", name, k->n_questions, k->n_changed, mean,
               k->max_dp);
    if (object->n > 0 && object->p[object->n - 1] == '}') buf_add_text(object, ", ");
    buf_printf(object, "\"%s\": {\"questions\": %zu, \"changed\": %zu, \"mean_dp\": ", name,
               k->n_questions, k->n_changed);
    pyjson_double(object, mean);
    buf_add_text(object, ", \"max_dp\": ");
    pyjson_double(object, k->max_dp);
    buf_add_char(object, '}');
}

static void print(buf *table, buf *object, const comparison *c) {
    kind_numbers all = {0};
    buf_add_text(table, "model    ");
    buf_add_safe(table, str_of(c->engines[0]->dir));
    buf_add_text(table, "\nagainst  ");
    buf_add_safe(table, str_of(c->engines[1]->dir));
    buf_printf(table, "\n%zu requests, mean over requests of mean |dp| %.7f\n", c->n_requests,
               c->sum_of_means / (double)c->n_requests);
    if (c->n_other_ids > 0)
        buf_printf(table, "%zu requests have other ids: the tokenizers differ\n", c->n_other_ids);
    buf_printf(table, "\n%-8s  %9s  %7s  %9s  %9s\n", "type", "questions", "changed", "mean |dp|",
               "max |dp|");
    buf_add_text(object, "{\"schema\": \"clef-compare/1\", \"model\": ");
    pyjson_string(object, str_of(c->engines[0]->dir));
    buf_add_text(object, ", \"against\": ");
    pyjson_string(object, str_of(c->engines[1]->dir));
    buf_printf(object, ", \"requests\": %zu, \"other_ids\": %zu, \"mean_dp\": ", c->n_requests,
               c->n_other_ids);
    pyjson_double(object, c->sum_of_means / (double)c->n_requests);
    buf_add_text(object, ", \"types\": {");
    for (int i = 0; i < N_KINDS; i++) {
        const kind_numbers *k = &c->kinds[i];
        add_kind(table, object, question_kind_name((question_kind)i), k);
        all.n_questions += k->n_questions;
        all.n_changed += k->n_changed;
        all.n_options += k->n_options;
        all.sum += k->sum;
        all.max_dp = fmax(all.max_dp, k->max_dp);
    }
    add_kind(table, object, "all", &all);
    buf_add_text(object, "}}");
}

clef_status clef_compare(clef_engine *e, clef_engine *other, const clef_gate_options *options,
                         const char *const *requests, size_t n_requests, char **table,
                         char **report, clef_error *err) {
    const clef_gate_options none = {0};
    comparison c = {.engines = {e, other}, .o = options == NULL ? &none : options};
    if (!e->has_weights || !other->has_weights)
        return clef_fail(err, CLEF_ERR_INPUT, "a model was opened for its tokenizer alone");
    if (n_requests == 0) return clef_fail(err, CLEF_ERR_INPUT, "no requests are named");
    for (size_t i = 0; i < n_requests; i++) TRY(compare_file(&c, requests[i], err));
    buf text = {0}, object = {0};
    print(&text, &object, &c);
    clef_status s = buf_status(&text, err);
    if (s == CLEF_OK) s = buf_status(&object, err);
    if (s == CLEF_OK) {
        *table = buf_take(&text);
        *report = buf_take(&object);
    }
    buf_free(&text);
    buf_free(&object);
    return s;
}
