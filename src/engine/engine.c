/* engine.c - opening a model and answering requests: the public calls that compute.
 *
 * A request is parsed, tokenised and printed on the caller's thread; only what comes between is the
 * queue's. */
#include "engine/engine.h"

#include <stdlib.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "checkpoint/bundle.h"
#include "checkpoint/hub.h"
#include "engine/job.h"
#include "engine/plan.h"
#include "model/position.h"
#include "request/answer.h"

struct clef_answer {
    char *json; /* malloc */
    size_t json_len;
    clef_option *options; /* in `mem`, as are the strings they name */
    size_t n_options;
    clef_ask_stats stats;
    arena mem;
};

/* ---- opening ---- */

/* The tower's sizes, and the folder's rules for pictures, which have to fit it. */
static clef_status open_tower(clef_engine *e, clef_error *err) {
    TRY(config_load_vision(&e->cfg, e->dir, &e->mem, err));
    TRY(media_rules_load(&e->rules, e->dir, &e->mem, err));
    const media_rules *r = &e->rules;
    if (r->patch == VISION_PATCH && r->temporal == VISION_TEMPORAL && r->merge == VISION_MERGE)
        return CLEF_OK;
    return clef_fail(err, CLEF_ERR_FORMAT,
                     "%s: its processor makes patches of %u x %u x %u in blocks of %u, wanted %d x "
                     "%d x %d in blocks of %d",
                     e->dir, r->temporal, r->patch, r->patch, r->merge, VISION_TEMPORAL,
                     VISION_PATCH, VISION_PATCH, VISION_MERGE);
}

clef_status engine_open_weights(clef_engine *e, const clef_options *options, clef_error *err) {
    TRY(config_load(&e->cfg, e->dir, &e->mem, err));
    TRY(safetensors_open_model(&e->backbone_file, e->dir, err));
    if (bind_has_tower(e->backbone_file)) TRY(open_tower(e, err));
    char *head_path = NULL;
    TRY(hub_file(&head_path, e->dir, "joint_head.safetensors", err));
    const clef_status s = safetensors_open(&e->head_file, head_path, err);
    free(head_path);
    TRY(s);
    const json *bundle = NULL;
    TRY(bundle_check(&bundle, e->dir, e->backbone_file, &e->mem, err));
    TRY(bind_weights(&e->w, e->backbone_file, e->head_file, &e->cfg, &e->mem, err));
    float *frequencies = arena_alloc(&e->mem, e->cfg.rotary_dim / 2, sizeof(float));
    if (frequencies == NULL) return clef_fail_memory(err);
    position_frequencies(frequencies, &e->cfg);
    const unsigned threads = options->threads == 0 ? cpu_count() : options->threads;
    TRY(compute_open(&e->c, options->kernels, threads, err));
    const bool fast = options->precision == CLEF_PRECISION_FAST;
    if (fast && !backbone_can_round(&e->cfg, &e->w))
        return clef_fail(err, CLEF_ERR_INPUT,
                         "%s: precision fast needs linears that are int8, int6 or int4, and this "
                         "model has none; clef convert makes such a folder",
                         e->dir);
    e->m = (model){&e->cfg, &e->w, e->c, frequencies, fast};
    e->chunk = options->chunk == 0 ? ENGINE_DEFAULT_CHUNK : options->chunk;
    const queue_settings settings = {
        .chunk = e->chunk,
        .length = options->queue == 0 ? ENGINE_DEFAULT_QUEUE : options->queue,
        .batch_tokens = options->batch_tokens == 0 ? ENGINE_DEFAULT_BATCH : options->batch_tokens,
        .cache_bytes = options->cache_bytes};
    TRY(row_store_open(
        &e->store, options->picture_bytes == 0 ? ENGINE_DEFAULT_PICTURES : options->picture_bytes,
        err));
    TRY(queue_open(&e->q, &e->cfg, &settings, err));
    e->has_weights = true;
    return CLEF_OK;
}

clef_status engine_check_tokenizer(const tokenizer *t, const config *cfg, clef_error *err) {
    TRY(prompt_check_tokenizer(t, err));
    const uint32_t max_id = tokenizer_describe(t).max_id;
    if (cfg != NULL && max_id >= cfg->vocab)
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "tokenizer.json: token ids go up to %u, the model has %u embedding rows",
                         max_id, cfg->vocab);
    return CLEF_OK;
}

clef_status engine_open_tokenizer(clef_engine *e, const clef_options *options, clef_error *err) {
    char *found = NULL;
    const char *path = options->tokenizer_only ? options->tokenizer : NULL;
    if (path == NULL) {
        TRY(hub_file(&found, e->dir, "tokenizer.json", err));
        path = found;
    }
    clef_status s = tokenizer_load(&e->tok, path, options->split, err);
    if (s == CLEF_OK) s = engine_check_tokenizer(e->tok, e->has_weights ? &e->cfg : NULL, err);
    free(found);
    /* The file's text and tree were many times what is kept of them. */
    memory_give_back();
    return s;
}

/* An enumerator that a newer header may have, or that was never one. */
static clef_status check_choice(const char *name, unsigned value, unsigned last, clef_error *err) {
    if (value <= last) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_INPUT, "%s: %u, wanted 0 to %u", name, value, last);
}

clef_status engine_check_options(const clef_options *o, bool needs_model, clef_error *err) {
    if (o->model == NULL && (needs_model || !(o->tokenizer_only && o->tokenizer != NULL)))
        return clef_fail(err, CLEF_ERR_INPUT, "no model is named");
    if (o->threads > 1024)
        return clef_fail(err, CLEF_ERR_INPUT, "threads: %u, wanted at most 1024", o->threads);
    if (o->chunk > ENGINE_MAX_CHUNK)
        return clef_fail(err, CLEF_ERR_INPUT, "chunk: %u rows, wanted 1 to %d", o->chunk,
                         ENGINE_MAX_CHUNK);
    return check_choice("precision", o->precision, CLEF_PRECISION_FAST, err);
}

clef_status engine_new(clef_engine **out, const clef_options *options, clef_error *err) {
    clef_engine *e = calloc(1, sizeof *e);
    if (e == NULL) return clef_fail_memory(err);
    clef_status s = CLEF_OK;
    if (options->model != NULL) s = hub_resolve(&e->dir, options->model, options->hub_cache, err);
    if (s != CLEF_OK) {
        clef_close(e);
        return s;
    }
    *out = e;
    return CLEF_OK;
}

clef_status clef_open(clef_engine **out, const clef_options *options, clef_error *err) {
    TRY(engine_check_options(options, false, err));
    clef_engine *e = NULL;
    TRY(engine_new(&e, options, err));
    clef_status s = CLEF_OK;
    if (options->tokenizer_only)
        s = media_rules_load(&e->rules, e->dir, &e->mem, err);
    else
        s = engine_open_weights(e, options, err);
    if (s == CLEF_OK) s = engine_open_tokenizer(e, options, err);
    if (s != CLEF_OK) {
        clef_close(e);
        return s;
    }
    *out = e;
    return CLEF_OK;
}

void clef_close(clef_engine *e) {
    if (e == NULL) return;
    queue_close(e->q);
    row_store_close(e->store);
    compute_close(e->c);
    tokenizer_free(e->tok);
    safetensors_close(e->backbone_file);
    safetensors_close(e->head_file);
    arena_free(&e->mem);
    free(e->dir);
    free(e);
}

/* ---- a request on its way ---- */

static prompt_limits limits_of(const clef_engine *e, const clef_ask_options *o) {
    uint32_t length = ENGINE_DEFAULT_LENGTH;
    if (e->has_weights && length > e->cfg.max_positions) length = e->cfg.max_positions;
    return (prompt_limits){
        .max_length = o->max_length == 0 ? length : o->max_length,
        .cap_state = o->cap_state != 0,
        .max_state_tokens = o->max_state_tokens,
        .truncate = o->truncate,
        .control = o->control_tokens,
    };
}

clef_status engine_check_ask(const clef_engine *e, const clef_ask_options *o, clef_error *err) {
    TRY(check_choice("truncate", o->truncate, CLEF_TRUNCATE_STATE, err));
    TRY(check_choice("control_tokens", o->control_tokens, CLEF_CONTROL_REJECT, err));
    TRY(check_choice("grid", o->grid, CLEF_GRID_448, err));
    TRY(check_choice("confidence", o->confidence, CLEF_CONFIDENCE_ENTROPY, err));
    if (o->digits != 0 && o->digits != 4 && o->digits != 7)
        return clef_fail(err, CLEF_ERR_INPUT, "digits: %u, wanted 4 or 7", o->digits);
    if (!(o->timeout_s >= 0))
        return clef_fail(err, CLEF_ERR_INPUT, "timeout_s: %g, wanted 0 or more", o->timeout_s);
    if (e->has_weights && o->max_length > e->cfg.max_positions)
        return clef_fail(err, CLEF_ERR_INPUT, "max_length: %u tokens, the model has %u positions",
                         o->max_length, e->cfg.max_positions);
    return CLEF_OK;
}

static clef_answer *answer_new(buf *text) {
    clef_answer *a = calloc(1, sizeof *a);
    if (a == NULL) return NULL;
    a->json_len = text->n;
    a->json = buf_take(text);
    if (a->json == NULL) {
        free(a);
        return NULL;
    }
    return a;
}

/* The list behind clef_answer_options. */
static clef_status list_options(clef_answer *a, const job *j, clef_error *err) {
    const request *rq = &j->rq;
    a->options = arena_alloc(&a->mem, rq->n_options, sizeof *a->options);
    if (a->options == NULL) return clef_fail_memory(err);
    for (uint32_t q = 0; q < rq->n_questions; q++) {
        const str id = arena_copy(&a->mem, rq->questions[q].id);
        if (id.p == NULL) return clef_fail_memory(err);
        for (uint32_t i = 0; i < rq->questions[q].n_options; i++) {
            const str name = arena_copy(&a->mem, rq->questions[q].options[i].id);
            if (name.p == NULL) return clef_fail_memory(err);
            const size_t o = a->n_options++;
            a->options[o] = (clef_option){
                id.p, name.p, id.n, name.n, j->item.logits[o], j->item.probabilities[o]};
        }
    }
    return CLEF_OK;
}

/* Probabilities to the finished answer. */
static clef_status finish(clef_answer **out, const job *j, const clef_ask_options *o,
                          clef_error *err) {
    const answer_style style = {.confidence = o->confidence,
                                .digits = o->digits == 0 ? 4 : o->digits};
    buf text = {0};
    clef_status s = answer_write(&text, &j->rq, &j->p, j->item.probabilities, &style, err);
    clef_answer *a = s == CLEF_OK ? answer_new(&text) : NULL;
    buf_free(&text);
    if (s == CLEF_OK) s = a == NULL ? clef_fail_memory(err) : list_options(a, j, err);
    if (s != CLEF_OK) {
        clef_answer_free(a);
        return s;
    }
    a->stats = j->stats;
    *out = a;
    return CLEF_OK;
}

/* ---- running ---- */

clef_status engine_run(clef_engine *e, const model *m, clef_progress *progress, void *user,
                       batch_item *items, size_t n, clef_error *err) {
    queue_entry q = {.m = m, .items = items, .n = n, .progress = progress, .user = user};
    return queue_run(e->q, &q, err);
}

/* Runs items [n], which belong to jobs[from[i]]. */
static clef_status run_items(clef_engine *e, const clef_ask_options *o, const engine_call *call,
                             job *jobs, batch_item *items, const size_t *from, size_t n,
                             clef_error *err) {
    queue_entry q = {.m = &e->m,
                     .items = items,
                     .n = n,
                     .cached = true,
                     .need_bytes = o->any_memory ? 0 : plan_need(e, items, n),
                     .timeout_s = o->timeout_s,
                     .began = call->began,
                     .progress = o->progress,
                     .user = o->user};
    TRY(queue_run(e->q, &q, err));
    for (size_t i = 0; i < n; i++) {
        job *j = &jobs[from[i]];
        j->item = items[i];
        j->stats.cached_tokens = items[i].n_cached;
        j->stats.queue_s = q.queue_s;
        j->stats.queue_steps = q.queue_steps;
        j->stats.prefill_s = q.prefill_s;
    }
    return CLEF_OK;
}

/* Runs the jobs whose status is CLEF_OK together. */
static clef_status run_jobs(clef_engine *e, const clef_ask_options *o, const engine_call *call,
                            job *jobs, size_t n, clef_error *err) {
    batch_item *items = calloc(n, sizeof *items);
    size_t *from = calloc(n, sizeof *from);
    clef_status s = items == NULL || from == NULL ? clef_fail_memory(err) : CLEF_OK;
    size_t n_items = 0;
    for (size_t i = 0; s == CLEF_OK && i < n; i++) {
        if (jobs[i].item.status != CLEF_OK) continue;
        from[n_items] = i;
        items[n_items] = jobs[i].item;
        items[n_items++].cache_key = (str){o->cache_key, o->cache_key_len};
    }
    if (n_items > 0) s = run_items(e, o, call, jobs, items, from, n_items, err);
    free(from);
    free(items);
    return s;
}

bool engine_sight(sight_options *out, const clef_engine *e, const clef_ask_options *o) {
    *out = (sight_options){.media = {.rules = &e->rules,
                                     .grid = (media_grid_choice)o->grid,
                                     .max_pixels = o->max_pixels,
                                     .exif_rotate = o->exif_rotate != 0,
                                     .max_bytes = o->max_picture_bytes,
                                     .max_source_pixels = o->max_picture_pixels,
                                     .max_total_pixels = o->max_decoded_pixels,
                                     .allow_paths = o->read_files != 0},
                           .store = e->store,
                           .images = o->images,
                           .videos = o->videos,
                           .n_images = o->n_images,
                           .n_videos = o->n_videos};
    return !e->has_weights || e->cfg.vision.depth > 0;
}

/* Who waits for pictures to be decoded. */
typedef struct {
    const clef_ask_options *o;
    double began, next_poll;
} patience;

static clef_status ask_patience(void *user, clef_error *err) {
    patience *p = user;
    const clef_ask_options *o = p->o;
    const double now = cpu_seconds();
    if (o->timeout_s > 0 && now >= p->began + o->timeout_s)
        return clef_fail(err, CLEF_ERR_DEADLINE,
                         "no answer within %g seconds: pictures were still being read",
                         o->timeout_s);
    if (o->progress == NULL || now < p->next_poll) return CLEF_OK;
    if (o->progress(o->user, 0, 0) != 0)
        return clef_fail(err, CLEF_ERR_CANCELLED, "stopped while pictures were being read");
    p->next_poll = cpu_seconds() + QUEUE_POLL_S;
    return CLEF_OK;
}

clef_status engine_encode(job *j, const clef_engine *e, const clef_ask_options *o,
                          engine_call *call, str body, clef_error *err) {
    const double start = cpu_seconds();
    patience p = {.o = o, .began = call->began};
    const prompt_limits limits = limits_of(e, o);
    sight_options seeing;
    const bool sees = engine_sight(&seeing, e, o);
    seeing.n_pixels = &call->n_pixels;
    seeing.media.stop = (interrupt){ask_patience, &p};
    if (!sees && o->n_images + o->n_videos > 0)
        return clef_fail(err, CLEF_ERR_UNSUPPORTED,
                         "the model has no vision tower and answers from text alone");
    TRY(job_encode(j, e->tok, &limits, sees ? &seeing : NULL, body, err));
    j->stats.tokens = j->p.n_ids;
    j->stats.truncated_tokens = j->p.n_state_cut;
    j->stats.encode_s = cpu_seconds() - start;
    return CLEF_OK;
}

/* Sets the status of a job that has none yet. */
static void fail_job(job *j, clef_status s, const clef_error *why) {
    if (s == CLEF_OK || j->item.status != CLEF_OK) return;
    j->item.status = s;
    j->item.err = *why;
}

clef_status engine_answer(clef_engine *e, const clef_ask_options *o, const engine_call *call,
                          job *jobs, size_t n, clef_answer **out) {
    clef_status first = CLEF_OK;
    clef_error why = {0};
    for (size_t i = 0; i < n; i++) {
        out[i] = NULL;
        if (jobs[i].item.status == CLEF_OK) fail_job(&jobs[i], job_make_item(&jobs[i], &why), &why);
    }
    const clef_status ran = run_jobs(e, o, call, jobs, n, &why);
    for (size_t i = 0; i < n; i++) {
        batch_item *item = &jobs[i].item;
        fail_job(&jobs[i], ran, &why);
        if (item->status == CLEF_OK) item->status = finish(&out[i], &jobs[i], o, &item->err);
        if (first == CLEF_OK) first = item->status;
    }
    return first;
}

/* ---- the public calls ---- */

/* Fills out[] and errs[]; `errs` may be NULL. */
static clef_status ask_all(clef_engine *e, const clef_ask_options *o, const clef_request *requests,
                           job *jobs, size_t n, clef_answer **out, clef_error *errs) {
    engine_call call = {.began = cpu_seconds()};
    bool stopped = false;
    for (size_t i = 0; i < n && !stopped; i++) {
        clef_error why = {0};
        const str body = {requests[i].body, requests[i].body_len};
        const clef_status s = engine_encode(&jobs[i], e, o, &call, body, &why);
        fail_job(&jobs[i], s, &why);
        if (s != CLEF_OK) arena_free(&jobs[i].mem); /* a video may be held there in part */
        stopped = s == CLEF_ERR_CANCELLED || s == CLEF_ERR_DEADLINE;
        for (size_t k = 0; stopped && k < n; k++) fail_job(&jobs[k], s, &why);
    }
    const clef_status s = engine_answer(e, o, &call, jobs, n, out);
    for (size_t i = 0; errs != NULL && i < n; i++)
        if (jobs[i].item.status != CLEF_OK) errs[i] = jobs[i].item.err;
    return s;
}

static const clef_ask_options default_ask;

clef_status clef_ask_batch(clef_engine *e, const clef_ask_options *options,
                           const clef_request *requests, size_t n, clef_answer **out,
                           clef_error *errs) {
    const clef_ask_options *o = options == NULL ? &default_ask : options;
    clef_error why = {0};
    clef_status s = CLEF_OK;
    if (!e->has_weights)
        s = clef_fail(&why, CLEF_ERR_INPUT, "the model was opened for its tokenizer alone");
    if (s == CLEF_OK) s = engine_check_ask(e, o, &why);
    job *jobs = s == CLEF_OK && n > 0 ? calloc(n, sizeof *jobs) : NULL;
    if (s == CLEF_OK && n > 0 && jobs == NULL) s = clef_fail_memory(&why);
    for (size_t i = 0; i < n; i++) {
        out[i] = NULL;
        if (errs != NULL) errs[i] = why;
    }
    if (s == CLEF_OK) s = ask_all(e, o, requests, jobs, n, out, errs);
    for (size_t i = 0; jobs != NULL && i < n; i++) arena_free(&jobs[i].mem);
    free(jobs);
    return s;
}

clef_status clef_ask(clef_engine *e, const clef_ask_options *options, const char *body,
                     size_t body_len, clef_answer **out, clef_error *err) {
    clef_answer *answer = NULL;
    const clef_status s =
        clef_ask_batch(e, options, &(clef_request){body, body_len}, 1, &answer, err);
    if (s == CLEF_OK) *out = answer;
    return s;
}

clef_status clef_encode(clef_engine *e, const clef_ask_options *options, const char *body,
                        size_t body_len, clef_answer **out, clef_error *err) {
    const clef_ask_options *o = options == NULL ? &default_ask : options;
    TRY(engine_check_ask(e, o, err));
    job j = {0};
    buf text = {0};
    engine_call call = {.began = cpu_seconds()};
    clef_status s = engine_encode(&j, e, o, &call, (str){body, body_len}, err);
    buf_add_char(&text, '{');
    if (s == CLEF_OK) prompt_write(&text, &j.p, &j.rq);
    if (s == CLEF_OK && j.sight != NULL) sight_write(&text, j.sight);
    buf_add_char(&text, '}');
    if (s == CLEF_OK) s = buf_status(&text, err);
    clef_answer *a = s == CLEF_OK ? answer_new(&text) : NULL;
    if (s == CLEF_OK && a == NULL) s = clef_fail_memory(err);
    buf_free(&text);
    arena_free(&j.mem);
    if (s == CLEF_OK) {
        a->stats = j.stats;
        *out = a;
    }
    return s;
}

const char *clef_answer_json(const clef_answer *a, size_t *len) {
    if (len != NULL) *len = a->json_len;
    return a->json;
}

const clef_option *clef_answer_options(const clef_answer *a, size_t *n) {
    *n = a->n_options;
    return a->options;
}

void clef_answer_stats(const clef_answer *a, clef_ask_stats *out) {
    *out = a->stats;
}

void clef_engine_stats(clef_engine *e, clef_load *out) {
    *out = (clef_load){0};
    if (e->q != NULL) queue_stats(e->q, out);
}

void clef_answer_free(clef_answer *a) {
    if (a == NULL) return;
    free(a->json);
    arena_free(&a->mem);
    free(a);
}

const char *clef_version(void) {
    return CLEF_VERSION;
}
