/* decide_batch.c - POST /v1/systemone/batch: many requests in one body, admitted all or none.
 *
 * Two forms:
 *   [request, ...]                                   -> [answer, ...] in the same order
 *   {"model", "states": [...], "questions": {...}}   -> {"model", "results": [{"answers", "usage"},
 *                                                        ...], "usage"}: the same questions about
 *                                                        every state
 * Every request is parsed, checked and encoded before the first one is queued; a fault of any
 * refuses the whole body, with the request's index behind "body" (or "states") in its place.
 * Batches do not use the kept answers. */
#include "server/decide.h"

#include <stdlib.h>

#include "base/cpu.h"
#include "engine/engine.h"
#include "request/request.h"
#include "text/pyjson.h"

typedef struct {
    checked q;
    check_place where;
} item;

typedef struct {
    service *s;
    call *c;
    bool shared; /* the second form */
    check_place states;
    item *items;
    job *jobs;
    engine_call asked;
    clef_answer **answers;
    size_t n; /* items, jobs, answers */
} batch_call;

/* ---- reading ------------------------------------------------------------------------------- */

/* The array that tells how many requests there are, or NULL with a problem. */
static const json *find_list(batch_call *b, const json *root, problems *found) {
    const json *list = root;
    const check_place *at = NULL;
    if (root->kind == JSON_OBJECT) {
        b->shared = true;
        b->states = (check_place){NULL, STR("states"), 0};
        at = &b->states;
        list = json_get(root, STR("states"));
        if (list == NULL) {
            problem_add(found, at, "missing", "Field required");
            return NULL;
        }
    }
    if (list->kind != JSON_ARRAY) {
        problem_add(found, at, "array_type",
                    "needs an array of requests, or an object with \"states\" and \"questions\"");
        return NULL;
    }
    if (list->n == 0 || list->n > b->s->rules.limits.max_batch) {
        problem_add(found, at, list->n == 0 ? "too_short" : "too_long",
                    "needs between 1 and %u requests, got %u", b->s->rules.limits.max_batch,
                    list->n);
        return NULL;
    }
    return list;
}

/* The requests of the second form differ in their state alone: the rest is checked once. */
static void read_shared(batch_call *b, const json *root, const json *list, problems *found) {
    json first = {.kind = JSON_STRING}; /* stands in for a state while the rest is checked */
    json copy = *root, member = first;
    member.name = STR("state");
    member.next = root->first;
    copy.first = &member;
    copy.n++;
    checked q;
    if (!check_request(&q, &copy, NULL, &b->s->rules.limits, found)) return;
    size_t i = 0;
    for (const json *state = list->first; state != NULL; state = state->next, i++) {
        item *t = &b->items[i];
        t->q = q;
        t->q.state = state;
        t->where = (check_place){.outer = &b->states, .index = i};
        if (state->kind != JSON_STRING && state->kind != JSON_OBJECT && state->kind != JSON_ARRAY)
            problem_add(found, &t->where, "state_type",
                        "needs a string, an object or an array, found %s", json_kind_name(state));
    }
}

static void read_list(batch_call *b, const json *list, problems *found) {
    size_t i = 0;
    for (const json *v = list->first; v != NULL; v = v->next, i++) {
        b->items[i].where = (check_place){.index = i};
        check_request(&b->items[i].q, v, &b->items[i].where, &b->s->rules.limits, found);
    }
}

/* Encodes every request. */
static bool admit(batch_call *b, reply *r) {
    for (size_t i = 0; i < b->n; i++) {
        const item *t = &b->items[i];
        decision d;
        buf body = {0};
        clef_error why = {0};
        decide_begin(&d, b->s, b->c, &t->q);
        clef_status s = check_write(&body, &t->q, b->s->rules.names.served, &why);
        if (s == CLEF_OK)
            s = engine_encode(&b->jobs[i], b->s->engine, &d.ask, &b->asked, (str){body.p, body.n},
                              &why);
        buf_free(&body);
        if (s != CLEF_OK) {
            decide_failed(b->s, r, &why, &t->where);
            return false;
        }
    }
    return true;
}

/* Computes them together. What to do with a long state is done, so they differ in nothing. */
static clef_status ask(batch_call *b, clef_error *why) {
    decision d;
    decide_begin(&d, b->s, b->c, &b->items[0].q);
    const clef_status s = engine_answer(b->s->engine, &d.ask, &b->asked, b->jobs, b->n, b->answers);
    for (size_t i = 0; s != CLEF_OK && i < b->n; i++)
        if (b->jobs[i].item.status == s) {
            *why = b->jobs[i].item.err;
            break;
        }
    if (s == CLEF_ERR_LIMIT) why->status = CLEF_ERR_MEMORY; /* as in decide.c */
    return s;
}

/* ---- writing ------------------------------------------------------------------------------- */

static void write_answers(batch_call *b, buf *out) {
    const char *served = b->s->rules.names.served;
    uint64_t tokens = 0;
    buf head = {0}; /* what every answer begins with */
    buf_add_text(&head, "{\"model\": ");
    pyjson_string(&head, str_of(served));
    if (head.failed) out->failed = true;
    if (b->shared) {
        buf_add(out, head.p, head.n);
        buf_add_text(out, ", \"results\": ");
    }
    buf_add_char(out, '[');
    for (size_t i = 0; i < b->n; i++) {
        size_t n = 0;
        const char *text = clef_answer_json(b->answers[i], &n);
        clef_ask_stats stats;
        clef_answer_stats(b->answers[i], &stats);
        tokens += stats.tokens;
        b->c->n_questions += b->items[i].q.questions->n;
        b->c->n_cached += (uint32_t)stats.cached_tokens;
        b->c->encode_s += stats.encode_s;
        b->c->queue_s = stats.queue_s; /* they ran as one */
        b->c->model_s = stats.prefill_s;
        if (i > 0) buf_add_text(out, ", ");
        if (b->shared) {
            buf_add_char(out, '{');
            buf_add(out, text + head.n + 2, n - head.n - 2); /* without the name and ", " */
        } else {
            buf_add(out, text, n);
        }
    }
    buf_add_char(out, ']');
    if (b->shared)
        buf_printf(out, ", \"usage\": {\"input_tokens\": %llu, \"output_tokens\": 0}}",
                   (unsigned long long)tokens);
    b->c->n_tokens = (uint32_t)tokens;
    atomic_fetch_add(&b->s->counts.questions, b->c->n_questions);
    atomic_fetch_add(&b->s->counts.prompt_tokens, tokens);
    atomic_fetch_add(&b->s->counts.cached_tokens, b->c->n_cached);
    buf_free(&head);
}

/* ---- the route ----------------------------------------------------------------------------- */

static void answer_items(batch_call *b, reply *r) {
    clef_error why = {0};
    for (size_t i = 0; i < b->n; i++)
        if (!decide_model(b->s, &b->items[i].q, (str){NULL, 0}, r)) return;
    if (!decide_ready(b->s, r) || !admit(b, r)) return;
    if (ask(b, &why) != CLEF_OK) {
        decide_failed(b->s, r, &why, NULL);
        return;
    }
    reply_reset(r, 200);
    write_answers(b, &r->body);
    reply_header(r, "x-clef-cached-tokens", "%u", b->c->n_cached);
}

static void answer_root(batch_call *b, const json *root, reply *r) {
    problems found = {0};
    const json *list = find_list(b, root, &found);
    if (list != NULL) {
        b->n = list->n;
        b->items = calloc(b->n, sizeof *b->items);
        b->jobs = calloc(b->n, sizeof *b->jobs);
        b->answers = calloc(b->n, sizeof(clef_answer *));
        if (b->items == NULL || b->jobs == NULL || b->answers == NULL) {
            reply_error(r, 503, reply_error_type(503), "The server is short of memory");
        } else {
            if (b->shared)
                read_shared(b, root, list, &found);
            else
                read_list(b, list, &found);
            if (found.n == 0) answer_items(b, r);
        }
    }
    if (found.n > 0) reply_invalid(r, &found.list);
    for (size_t i = 0; b->answers != NULL && i < b->n; i++) clef_answer_free(b->answers[i]);
    for (size_t i = 0; b->jobs != NULL && i < b->n; i++) arena_free(&b->jobs[i].mem);
    free(b->answers);
    free(b->jobs);
    free(b->items);
    buf_free(&found.list);
}

void decide_batch(service *s, call *c, reply *r) {
    batch_call b = {.s = s, .c = c, .asked.began = cpu_seconds()};
    arena mem = {0};
    const json *root = decide_parse(s, c, &mem, r);
    if (root != NULL) answer_root(&b, root, r);
    arena_free(&mem);
}
