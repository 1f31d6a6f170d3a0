/* plan.c - what a run takes before it starts: clef_plan.
 *
 * The sizes come from the functions that take the memory (workspace_bytes and its like), so they
 * cannot drift from it. The rest follows batch.c: while chunks are computed, the workspace and the
 * state of every live record; while a head finishes, its record's state is gone and its own buffers
 * are there. A record's pictures come before its state: the tower's buffers are gone when that is
 * made, and the records before it are finished. What the process holds once a model is open (the
 * program with its libraries, the tokenizer, small vectors) is measured by opening. */
#include "engine/plan.h"

#include <stdio.h>

#include "checkpoint/allot.h"
#include "engine/engine.h"
#include "media/resize.h"
#include "model/vision.h"

/* A request on its way: its text, its tree, its ids. Per token it is about what English takes. */
enum { REQUEST_TOKEN_BYTES = 40, REQUEST_BYTES = 64 * 1024 };

/* A picture while it is loaded: its pixels as decoded, and either what a progressive JPEG keeps of
 * all its coefficients, or what the resizing has between rows and columns. */
enum { CHANNELS = 3, LOADING_PIXEL_BYTES = CHANNELS + 2 * CHANNELS };

/* What the heap keeps of a file's bytes and a decoder's tables. */
enum { DECODER_BYTES = 256 * 1024 };

/* What the computing thread's stack and heap have beyond what is asked of them, once it ran. */
enum { THREAD_BYTES = 128 * 1024 };

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* a * n + b, at most SIZE_MAX. */
static size_t times_plus(size_t a, size_t n, size_t b) {
    size_t product, sum;
    return size_mul(&product, a, n) && size_add(&sum, product, b) ? sum : SIZE_MAX;
}

plan_sizes plan_run(const config *cfg, uint32_t chunk, const head_input *in, size_t n,
                    uint32_t live) {
    const size_t total = times_plus(in->n_tokens, n, 0);
    const uint32_t rows = (uint32_t)least(chunk, total);
    const head_sizes head = head_bytes(cfg, in);
    plan_sizes p = {.workspace = workspace_bytes(cfg, rows),
                    .sequence = sequence_bytes(cfg, in->n_tokens),
                    .head = head.run,
                    .finish = head.finish,
                    .live = live};
    const size_t heads = times_plus(p.head, p.live, p.workspace);
    const size_t computing = times_plus(p.sequence, p.live, heads);
    const size_t finishing = times_plus(p.sequence, p.live - 1, times_plus(p.finish, 1, heads));
    p.run = computing > finishing ? computing : finishing;
    return p;
}

static uint32_t larger(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

size_t plan_scratch(const config *cfg, unsigned threads, uint32_t rows) {
    const uint32_t mixers = larger(2 * cfg->n_heads * cfg->head_dim, config_channels(cfg));
    const uint32_t rest = larger(larger(cfg->hidden, cfg->intermediate), cfg->head_feedforward);
    const uint32_t n_out = larger(mixers, rest);
    const uint32_t head = larger(cfg->head_dim, larger(cfg->key_dim, cfg->value_dim));
    return compute_scratch_bytes(threads, rows, n_out, cfg->intermediate, head);
}

/* The most of each count, which need not be one record's. */
static head_input largest_of(const batch_item *items, size_t n) {
    head_input most = {0};
    for (size_t i = 0; i < n; i++) {
        const head_input *in = &items[i].in;
        most.n_tokens = larger(most.n_tokens, in->n_tokens);
        most.n_questions = larger(most.n_questions, in->n_questions);
        most.n_options = larger(most.n_options, in->n_options);
    }
    return most;
}

/* The worst moment of a run of n records of which one at a time sees: at its pictures, or at its
 * rows. `all_rows` of pictures come by in all; up to `room` bytes of them are kept, beside those of
 * the record that sees. */
static size_t worst(const plan_sizes *p, sight_sizes seen, size_t all_rows, uint64_t room,
                    size_t n) {
    const size_t seeing = times_plus(seen.tower, 1, n > 1 ? p->workspace : 0);
    const size_t kept = room > SIZE_MAX ? SIZE_MAX : (size_t)room;
    return times_plus(least(all_rows, times_plus(seen.rows, 1, kept)), 1,
                      seeing > p->run ? seeing : p->run);
}

size_t plan_need(const clef_engine *e, const batch_item *items, size_t n) {
    const head_input largest = largest_of(items, n);
    const uint32_t live = batch_live(e->chunk, largest.n_tokens, n);
    const plan_sizes p = plan_run(&e->cfg, e->chunk, &largest, n, live);
    sight_sizes most = {0};
    size_t all_rows = 0;
    for (size_t i = 0; i < n; i++) {
        if (items[i].sight == NULL) continue;
        const sight_sizes own = sight_bytes(items[i].sight, &e->cfg, e->chunk);
        if (own.tower > most.tower) most.tower = own.tower;
        if (own.rows > most.rows) most.rows = own.rows;
        all_rows = times_plus(own.rows, 1, all_rows);
    }
    return times_plus(worst(&p, most, all_rows, row_store_room(e->store), n), 1,
                      plan_scratch(&e->cfg, compute_threads(e->c), e->chunk));
}

clef_status plan_check(size_t need, const memory_room *room, const batch_item *items, size_t n,
                       uint32_t chunk, clef_error *err) {
    if (need == SIZE_MAX) return clef_fail_memory(err); /* too much to count, or to count with */
    if (need <= room->bytes) return CLEF_OK;
    const double mib = 1024.0 * 1024.0;
    return clef_fail(err, CLEF_ERR_LIMIT,
                     "a record of %u tokens needs %.1f MiB, %s leaves %.1f MiB; a smaller chunk "
                     "than %u needs less",
                     largest_of(items, n).n_tokens, (double)need / mib, room->name,
                     (double)room->bytes / mib, chunk);
}

/* Bytes of the mapped files, as they are or as if converted. */
static clef_status plan_weights(uint64_t *out, const clef_engine *e, const clef_plan_options *w,
                                clef_error *err) {
    arena mem = {0};
    clef_status s = CLEF_OK;
    *out = safetensors_bytes(e->backbone_file);
    if (w->converted)
        s = allot_bytes(out, e->backbone_file, &e->cfg, w->format, w->tables == CLEF_TABLES_INT8,
                        &mem, err);
    *out += safetensors_bytes(e->head_file);
    arena_free(&mem);
    return s;
}

/* A record's pictures: what computing and what loading them takes. */
typedef struct {
    sight_sizes seen;
    size_t pixels, loading; /* as resized, of all; one picture while it is decoded */
} picture_sizes;

/* Adds a record's pictures to its tokens: their rows, two markers each and a line feed. */
static clef_status plan_pictures(picture_sizes *out, uint32_t *n_tokens, const clef_engine *e,
                                 const clef_plan_options *wanted, clef_error *err) {
    if (wanted->n_images == 0) return CLEF_OK;
    if (e->cfg.vision.depth == 0)
        return clef_fail(err, CLEF_ERR_INPUT, "images: the model has no vision tower");
    picture_sizes sum = {0};
    size_t tokens = (size_t)*n_tokens + 1;
    for (size_t i = 0; i < wanted->n_images; i++) {
        const uint32_t *side = wanted->images[i];
        uint32_t h = 0, w = 0;
        char where[32];
        snprintf(where, sizeof where, "images[%zu]", i);
        if (side[0] == 0 || side[1] == 0)
            return clef_fail(err, CLEF_ERR_INPUT, "%s: a side of 0 pixels", where);
        TRY(resize_image_sides(&h, &w, side[1], side[0], VISION_PATCH * VISION_MERGE,
                               e->rules.image_min_pixels, e->rules.image_max_pixels, where, err));
        const media_grid grid = {1, h / VISION_PATCH, w / VISION_PATCH};
        const size_t tower = vision_bytes(&e->cfg, grid, e->chunk < 4 ? 4 : e->chunk);
        if (tower > sum.seen.tower) sum.seen.tower = tower;
        sum.seen.rows += vision_rows(grid) * (size_t)e->cfg.hidden * sizeof(float);
        sum.pixels += (size_t)h * w * CHANNELS;
        const size_t stored = times_plus(side[0], side[1], 0);
        const size_t loading = times_plus(stored, LOADING_PIXEL_BYTES, 0);
        if (loading > sum.loading) sum.loading = loading;
        tokens += vision_rows(grid) + 2;
    }
    if (tokens > e->cfg.max_positions)
        return clef_fail(err, CLEF_ERR_INPUT,
                         "images: %zu tokens with them, the model has %u positions", tokens,
                         e->cfg.max_positions);
    sum.pixels += DECODER_BYTES;
    *n_tokens = (uint32_t)tokens;
    *out = sum;
    return CLEF_OK;
}

static clef_status plan(clef_plan_result *out, clef_engine *e, const clef_options *options,
                        const clef_plan_options *wanted, clef_error *err) {
    TRY(engine_open_weights(e, options, err));
    TRY(engine_open_tokenizer(e, options, err));
    const uint64_t opened = memory_anonymous();
    picture_sizes shown = {0};
    TRY(plan_pictures(&shown, &out->tokens, e, wanted, err));
    if (out->tokens > e->cfg.max_positions)
        return clef_fail(err, CLEF_ERR_INPUT, "tokens: %u, the model has %u positions", out->tokens,
                         e->cfg.max_positions);
    const head_input in = {
        .n_tokens = out->tokens, .n_questions = out->questions, .n_options = out->options};
    const uint32_t rows = (uint32_t)least(e->chunk, times_plus(out->tokens, out->batch, 0));
    /* A record that sees is finished before the next one is placed. */
    const size_t together = wanted->n_images > 0 ? 1 : out->batch;
    const plan_sizes p = plan_run(&e->cfg, e->chunk, &in, together,
                                  batch_live_equal(e->chunk, in.n_tokens, together));
    out->threads = compute_threads(e->c);
    out->chunk = e->chunk;
    out->live = p.live;
    TRY(plan_weights(&out->mapped_bytes, e, wanted, err));
    out->opened_bytes = opened;
    out->workspace_bytes = p.workspace;
    out->sequence_bytes = p.sequence;
    out->head_bytes = p.head;
    out->finish_bytes = p.finish;
    out->scratch_bytes = times_plus(plan_scratch(&e->cfg, out->threads, rows), 1, THREAD_BYTES);
    const size_t one_request =
        times_plus(out->tokens, REQUEST_TOKEN_BYTES, REQUEST_BYTES + shown.pixels);
    out->request_bytes = times_plus(one_request, out->batch, 0);
    out->prefix_bytes = prefix_bytes(&e->cfg, out->tokens);
    out->cache_bytes = options->cache_bytes;
    const size_t all_rows = times_plus(shown.seen.rows, out->batch, 0);
    out->picture_bytes = times_plus(shown.seen.tower, 1, shown.seen.rows);
    const size_t run = worst(&p, shown.seen, all_rows, row_store_room(e->store), out->batch);
    out->total_bytes = times_plus(run > shown.loading ? run : shown.loading, 1, out->opened_bytes);
    out->total_bytes = times_plus(out->scratch_bytes, 1, out->total_bytes);
    out->total_bytes = times_plus(out->request_bytes, 1, out->total_bytes);
    out->total_bytes = times_plus(out->cache_bytes, 1, out->total_bytes);
    const memory_room room = memory_available();
    out->available_bytes = room.bytes;
    snprintf(out->limit, sizeof out->limit, "%s", room.name);
    return CLEF_OK;
}

clef_status clef_plan(const clef_options *options, const clef_plan_options *wanted,
                      clef_plan_result *out, clef_error *err) {
    const clef_plan_options none = {0};
    const clef_plan_options *w = wanted == NULL ? &none : wanted;
    clef_plan_result result = {.tokens = w->tokens == 0 ? 512 : w->tokens,
                               .batch = w->batch == 0 ? 1 : w->batch,
                               .questions = w->questions == 0 ? 4 : w->questions,
                               .options = w->options == 0 ? 16 : w->options};
    if (result.options < result.questions)
        return clef_fail(err, CLEF_ERR_INPUT,
                         "options: %u, wanted at least one for each of %u "
                         "questions",
                         result.options, result.questions);
    TRY(engine_check_options(options, true, err));
    clef_engine *e = NULL;
    TRY(engine_new(&e, options, err));
    const clef_status s = plan(&result, e, options, w, err);
    clef_close(e);
    if (s == CLEF_OK) *out = result;
    return s;
}
