/* pool.h - worker threads that share out numbered items. */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include "base/status.h"

typedef struct pool pool;

/* `n_threads` >= 1 counts the calling thread: pool_open(1) starts none. Close with pool_close. */
clef_status pool_open(pool **out, unsigned n_threads, clef_error *err);
void pool_close(pool *p);
unsigned pool_threads(const pool *p);

/* Does work item `item` on worker `worker` (0 .. n_threads - 1; for scratch memory of its own). */
typedef void pool_work(void *context, size_t item, unsigned worker);

/* Runs items 0 .. n - 1, each once, on all threads, and returns when all are done. Items are taken
 * in order but finish in any order: what item i writes must not depend on another item, so that any
 * number of threads gives the same bits. One call at a time; workers sleep between calls. */
void pool_run(pool *p, size_t n, pool_work *work, void *context);

#endif
