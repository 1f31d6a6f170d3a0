/* batch.h - records that came together, and the steps they share with others. */
#ifndef ENGINE_BATCH_H
#define ENGINE_BATCH_H

#include "engine/prefix.h"
#include "engine/sight.h"

/* One record to run, and what came of it. */
typedef struct {
    head_input in;
    str cache_key, media;          /* as prefix_name has them */
    prefix_points points;          /* {0}: no row of it is kept or found */
    sight *sight;                  /* its pictures; NULL: none */
    float *logits, *probabilities; /* [in.n_options], the caller's memory */
    clef_status status;
    clef_error err;    /* when status is not CLEF_OK */
    uint32_t n_cached; /* out: rows that were found */
} batch_item;

/* Records on their way, one after the other and several in a step where they fit. */
typedef struct batch batch;

/* `items` [n] must outlive it. `store` may be NULL: nothing is kept or found. Close with
 * batch_close, which accepts NULL, at any stage, after batch_release. */
clef_status batch_open(batch **out, batch_item *items, size_t n, prefix_store *store,
                       clef_error *err);
void batch_close(batch *b);

/* Lets go of what it has pinned in the store; nothing of it may run any more. */
void batch_release(batch *b);

/* Whether the record that `b` has next begins like the one that `ahead` is at, at a length that
 * will be kept once `ahead` has computed it: then waiting for that is the shorter way. */
bool batch_follows(const batch *b, const batch *ahead);

/* Rows of all its records: those not yet placed in a step, those done, all. Rows that were found
 * and those of records that failed are done without being computed. A picture's rows count twice:
 * in the tower and in the record. */
size_t batch_left(const batch *b), batch_done(const batch *b), batch_total(const batch *b);

/* One run through the layers: rows of one or more batches, back to back without padding. */
enum { STEP_SEGMENTS = 8 };
typedef struct {
    segment segments[STEP_SEGMENTS];
    batch *from[STEP_SEGMENTS];
    size_t item[STEP_SEGMENTS]; /* of from[i] */
    uint32_t n_segments, n_rows;
} step;

/* Adds the batch's next rows to a step that has none of it yet: up to `rows` of them in up to
 * `segments` segments, and no more than the step's array holds. A record is opened when its first
 * row comes up; one that cannot be opened keeps its error, and the next takes its place. A record
 * that is to be kept at some row has no row behind it in the same step. */
void batch_fill(batch *b, const model *m, step *s, uint32_t rows, uint32_t segments);

/* Whether the record whose rows come next waits for its pictures, which have steps of their own. */
bool batch_sees(const batch *b);
/* One step of the tower for that record, in up to max_rows patches; or none, for all its pictures,
 * when the store has what stands behind them. */
void batch_see(batch *b, const model *m, uint32_t max_rows);

/* Computes the step; ws has room for its rows. What a record gives does not depend on the others in
 * it, nor on where its rows were cut. */
void step_run(const step *s, const model *m, workspace *ws);

/* Whether records of it wait for batch_finish, which gives them logits and frees what they hold. */
bool batch_has_rows_fed(const batch *b);
void batch_finish(batch *b, const model *m, workspace *ws);

/* Whether all its records are done. */
bool batch_complete(const batch *b);

/* How many of `n` records of n_tokens each hold their state at once, at most, in steps of `chunk`
 * rows. */
uint32_t batch_live(uint32_t chunk, uint32_t n_tokens, size_t n);

/* The same for records that all have n_tokens, which is often less. */
uint32_t batch_live_equal(uint32_t chunk, uint32_t n_tokens, size_t n);

#endif
