/* plan.h - bytes that a run takes, from the calls that take them. */
#ifndef ENGINE_PLAN_H
#define ENGINE_PLAN_H

#include "base/memory.h"
#include "engine/engine.h"

/* The most that `n` records with these counts hold at once while they run in chunks of `chunk`
 * rows and `live` of them have rows in a chunk, in bytes; SIZE_MAX when no machine has that much.
 */
typedef struct {
    size_t workspace, sequence, head, finish; /* sequence and head: one record */
    uint32_t live;                            /* records that hold their state at once */
    size_t run;                               /* all of it, at the worst moment */
} plan_sizes;
plan_sizes plan_run(const config *cfg, uint32_t chunk, const head_input *in, size_t n,
                    uint32_t live);

/* What the worker threads touch of their scratch in chunks of up to `rows`, in bytes. */
size_t plan_scratch(const config *cfg, unsigned threads, uint32_t rows);

/* What the run of these items, as long as the longest of them, needs beside what is open; SIZE_MAX
 * when no machine has that much. n is at least 1. */
size_t plan_need(const clef_engine *e, const batch_item *items, size_t n);

/* CLEF_ERR_LIMIT with both figures when that is more than this process may still take. */
clef_status plan_check(size_t need, const memory_room *room, const batch_item *items, size_t n,
                       uint32_t chunk, clef_error *err);

#endif
