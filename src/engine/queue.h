/* queue.h - the requests that wait for one engine, and its one thread that computes. queue.c states
 * the order in which they run. */
#ifndef ENGINE_QUEUE_H
#define ENGINE_QUEUE_H

#include "engine/batch.h"

typedef struct queue queue;

#define QUEUE_POLL_S 0.05 /* between calls of progress while nothing happens */

typedef struct {
    uint32_t chunk;        /* rows of a step */
    uint32_t length;       /* jobs that may wait */
    uint32_t batch_tokens; /* of the jobs beside the oldest */
    size_t cache_bytes;    /* for the beginnings of records; 0: none are kept */
} queue_settings;

/* Starts the thread, which from then on is the only one to compute with the models of the jobs.
 * Close with queue_close, which accepts NULL, fails what waits or runs with CLEF_ERR_CANCELLED and
 * returns when every queue_run has. */
clef_status queue_open(queue **out, const config *cfg, const queue_settings *settings,
                       clef_error *err);
void queue_close(queue *q);

/* Records that are answered together. */
typedef struct {
    const model *m; /* only records of equal models share a step */
    batch_item *items;
    size_t n;
    bool cached;             /* its records' beginnings may be found and kept */
    size_t need_bytes;       /* memory that has to be free before they start; 0: is not looked at */
    double timeout_s;        /* 0: none */
    double began;            /* cpu_seconds() from which it counts */
    clef_progress *progress; /* NULL: none; as clef.h says */
    void *user;
    double queue_s, prefill_s; /* out: waiting, and from the first step on */
    uint64_t queue_steps;      /* out: steps that ended while it waited */
} queue_entry;

/* Waits until the job is done; any thread. Each item's fault is its own. The call fails, and the
 * items then hold nothing, when the job was refused (CLEF_ERR_BUSY), stopped (CLEF_ERR_CANCELLED,
 * CLEF_ERR_DEADLINE), or has no memory to start in (CLEF_ERR_LIMIT, CLEF_ERR_MEMORY). */
clef_status queue_run(queue *q, queue_entry *entry, clef_error *err);

void queue_stats(queue *q, clef_load *out);

#endif
