/* batch.h - records packed into chunks of rows and run through backbone and head. */
#ifndef ENGINE_BATCH_H
#define ENGINE_BATCH_H

#include "model/backbone.h"
#include "model/head.h"

/* One record to run, and what came of it. */
typedef struct {
    head_input in;
    float *logits, *probabilities; /* [in.n_options], the caller's memory */
    clef_status status;
    clef_error err; /* when status is not CLEF_OK */
} batch_item;

/* Runs all items, packed back to back in chunks of up to `chunk` rows. A record's bits do not
 * depend on the others. Each item's fault is its own; the call fails (and the items then hold
 * nothing) only when the progress callback stops it or there is no memory for the common buffers.
 */
typedef struct {
    const model *m;
    uint32_t chunk;
    clef_progress *progress; /* may be NULL */
    void *user;
} batch_run;
clef_status batch_items(const batch_run *run, batch_item *items, size_t n, clef_error *err);

/* How many of `n` records of n_tokens each hold their state at once, at most. */
uint32_t batch_live(uint32_t chunk, uint32_t n_tokens, size_t n);

#endif
