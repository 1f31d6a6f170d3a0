/* sums.c - one thread a file: SHA-256 has to take a file's bytes in order. The largest files go
 * first, so that the threads end together. */
#include "fetch/sums.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "base/pool.h"

static const double tell_s = 0.05; /* how often progress is told */

typedef struct {
    sums_file *const *order; /* [n], the largest first */
    clef_progress *progress;
    void *user;
    uint64_t total;
    pthread_mutex_t lock; /* guards the rest, and calls of progress */
    uint64_t done;
    double told;
    bool stop;
} run;

/* Counts what was read; on the thread that read it. */
static clef_status step(void *user, size_t n, clef_error *err) {
    run *r = user;
    pthread_mutex_lock(&r->lock);
    r->done += n;
    const double now = cpu_seconds();
    if (!r->stop && r->progress != NULL && now - r->told >= tell_s) {
        r->told = now;
        /* A file that grew while it was read may make it more than all. */
        const uint64_t done = r->done < r->total ? r->done : r->total;
        r->stop = r->progress(r->user, (size_t)done, (size_t)r->total) != 0;
    }
    const bool stop = r->stop;
    pthread_mutex_unlock(&r->lock);
    return stop ? clef_fail(err, CLEF_ERR_CANCELLED, "stopped before all files were read")
                : CLEF_OK;
}

static void sum_one(void *context, size_t item, unsigned worker) {
    (void)worker;
    run *r = context;
    sums_file *f = r->order[item];
    /* Between small files too, a request to stop is obeyed. */
    f->failure.status = step(r, 0, &f->failure);
    if (f->failure.status == CLEF_OK)
        f->failure.status = digest_file(f->sha256, &f->size, f->path, step, r, &f->failure);
}

static int by_size(const void *a, const void *b) {
    const uint64_t x = (*(sums_file *const *)a)->size, y = (*(sums_file *const *)b)->size;
    return (x < y) - (x > y);
}

clef_status sums_run(sums_file *files, size_t n, unsigned jobs, clef_progress *progress, void *user,
                     clef_error *err) {
    if (n == 0) return CLEF_OK;
    run r = {.progress = progress, .user = user};
    sums_file **order = calloc(n, sizeof(sums_file *));
    if (order == NULL) return clef_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        order[i] = &files[i];
        r.total += files[i].size;
    }
    qsort(order, n, sizeof(sums_file *), by_size);
    r.order = order;
    if (jobs == 0) jobs = cpu_count();
    pool *workers = NULL;
    clef_status s = pool_open(&workers, jobs < n ? jobs : (unsigned)n, err);
    if (s == CLEF_OK && pthread_mutex_init(&r.lock, NULL) != 0) {
        pool_close(workers);
        workers = NULL;
        s = clef_fail_memory(err);
    }
    if (s == CLEF_OK) {
        pool_run(workers, n, sum_one, &r);
        pthread_mutex_destroy(&r.lock);
        pool_close(workers);
    }
    free(order);
    for (size_t i = 0; s == CLEF_OK && i < n; i++) {
        const clef_status f = files[i].failure.status;
        if (f != CLEF_ERR_CANCELLED && f != CLEF_ERR_MEMORY && f != CLEF_ERR_INTERNAL) continue;
        s = clef_fail(err, f, "%s", files[i].failure.text);
    }
    return s;
}
