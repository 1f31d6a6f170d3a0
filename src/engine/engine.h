/* engine.h - an opened model: everything a request needs, read-only but for the queue. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "checkpoint/safetensors.h"
#include "engine/job.h"
#include "engine/queue.h"
#include "text/tokenizer.h"

enum {
    ENGINE_DEFAULT_CHUNK = 512,
    ENGINE_MAX_CHUNK = 4096,
    ENGINE_DEFAULT_LENGTH = 16384,
    ENGINE_DEFAULT_QUEUE = 64,
    ENGINE_DEFAULT_BATCH = 4096,
    ENGINE_DEFAULT_PICTURES = 64 << 20
};

struct clef_engine {
    char *dir;
    tokenizer *tok;
    bool has_weights; /* false when opened for the tokenizer alone; nothing below is set then */
    config cfg;
    safetensors *backbone_file, *head_file;
    weights w;
    compute *c;
    model m;
    uint32_t chunk;
    arena mem;         /* small vectors of the weights, frequencies */
    media_rules rules; /* where the model has a tower, or is its tokenizer alone */
    row_store *store;
    queue *q; /* the only one to compute with c */
};

/* Refuses options that no model could be opened with; `needs_model`: a tokenizer alone will not do.
 */
clef_status engine_check_options(const clef_options *options, bool needs_model, clef_error *err);

/* An engine that knows its folder and nothing else yet; fill it with the two calls below and close
 * it with clef_close, at any stage. */
clef_status engine_new(clef_engine **out, const clef_options *options, clef_error *err);

/* Everything but the tokenizer. */
clef_status engine_open_weights(clef_engine *e, const clef_options *options, clef_error *err);

/* Runs the items (queue_run), whatever memory there is. `m` is the engine's model, or a copy of it
 * with other weights. */
clef_status engine_run(clef_engine *e, const model *m, clef_progress *progress, void *user,
                       batch_item *items, size_t n, clef_error *err);

/* Whether prompts can be made with `t` and every id it gives has a row in the model of `cfg` (NULL:
 * no model to compare with). */
clef_status engine_check_tokenizer(const tokenizer *t, const config *cfg, clef_error *err);

/* The tokenizer's file and its agreement with the weights. */
clef_status engine_open_tokenizer(clef_engine *e, const clef_options *options, clef_error *err);

/* ---- a request in steps, for callers that tell its faults apart by step ---- */

/* Refuses options that no request could be asked with. */
clef_status engine_check_ask(const clef_engine *e, const clef_ask_options *o, clef_error *err);

/* How the engine sees; false when it cannot. */
bool engine_sight(sight_options *out, const clef_engine *e, const clef_ask_options *o);

/* What the requests of one call share. */
typedef struct {
    double began;      /* cpu_seconds() when it came: o->timeout_s counts from there */
    uint64_t n_pixels; /* of the pictures loaded so far, which o->max_decoded_pixels bounds */
} engine_call;

/* Parses, decodes and tokenises on this thread; {0} is a job before it. The job holds nothing of
 * `body`. While pictures are decoded o->progress and the time are looked at, and the call may end
 * with CLEF_ERR_CANCELLED or CLEF_ERR_DEADLINE. */
clef_status engine_encode(job *j, const clef_engine *e, const clef_ask_options *o,
                          engine_call *call, str body, clef_error *err);

/* Waits in the engine's queue and runs the jobs [n] together: what clef_ask_batch does with encoded
 * ones. A job whose item has a status already is left out. Each failure stands in its job's item;
 * returns the first, or CLEF_OK. Answers go to out[n], NULL where there is none. The jobs remain
 * the caller's and may not be answered twice. */
clef_status engine_answer(clef_engine *e, const clef_ask_options *o, const engine_call *call,
                          job *jobs, size_t n, clef_answer **out);

#endif
