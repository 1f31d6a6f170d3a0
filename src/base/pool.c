/* pool.c - worker threads that share out numbered items.
 *
 * A call publishes {work, context, n} under the lock, wakes the workers, works too, and waits until
 * the last worker has left. Items are claimed from one atomic counter, so a thread that the system
 * delays costs at most one item. Workers sleep on a condition variable: an idle engine uses no
 * processor time. */
#include "base/pool.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/thread.h"

struct pool {
    unsigned n_threads;
    pthread_t *threads; /* [n_threads - 1] */
    unsigned n_started;
    pthread_mutex_t lock; /* guards round, running, stop, and the job below while no round runs */
    pthread_cond_t begin, end;
    uint64_t round;   /* rises with each pool_run */
    unsigned running; /* workers that have not finished this round */
    bool stop;
    pool_work *work;
    void *context;
    size_t n;
    atomic_size_t next; /* the next unclaimed item */
};

typedef struct {
    pool *p;
    unsigned worker;
} worker_start;

static void claim_items(pool *p, unsigned worker) {
    for (;;) {
        const size_t item = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
        if (item >= p->n) return;
        p->work(p->context, item, worker);
    }
}

static void *worker_main(void *start) {
    const worker_start me = *(worker_start *)start;
    free(start);
    pool *p = me.p;
    uint64_t seen = 0;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->round == seen && !p->stop) pthread_cond_wait(&p->begin, &p->lock);
        if (p->stop) break;
        seen = p->round;
        pthread_mutex_unlock(&p->lock);
        claim_items(p, me.worker);
        pthread_mutex_lock(&p->lock);
        if (--p->running == 0) pthread_cond_signal(&p->end);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static clef_status start_worker(pool *p, unsigned worker, clef_error *err) {
    worker_start *start = malloc(sizeof *start);
    if (start == NULL) return clef_fail_memory(err);
    *start = (worker_start){p, worker};
    const clef_status s = thread_start(&p->threads[worker - 1], worker_main, start, "worker", err);
    if (s != CLEF_OK) {
        free(start);
        return s;
    }
    p->n_started++;
    return CLEF_OK;
}

clef_status pool_open(pool **out, unsigned n_threads, clef_error *err) {
    pool *p = calloc(1, sizeof *p);
    if (p == NULL) return clef_fail_memory(err);
    p->n_threads = n_threads < 1 ? 1 : n_threads;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->begin, NULL);
    pthread_cond_init(&p->end, NULL);
    clef_status s = CLEF_OK;
    p->threads = calloc(p->n_threads, sizeof *p->threads);
    if (p->threads == NULL) s = clef_fail_memory(err);
    for (unsigned w = 1; s == CLEF_OK && w < p->n_threads; w++) s = start_worker(p, w, err);
    if (s != CLEF_OK) {
        pool_close(p);
        return s;
    }
    *out = p;
    return CLEF_OK;
}

void pool_close(pool *p) {
    if (p == NULL) return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->begin);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->n_started; i++) pthread_join(p->threads[i], NULL);
    pthread_cond_destroy(&p->end);
    pthread_cond_destroy(&p->begin);
    pthread_mutex_destroy(&p->lock);
    free(p->threads);
    free(p);
}

unsigned pool_threads(const pool *p) {
    return p->n_threads;
}

void pool_run(pool *p, size_t n, pool_work *work, void *context) {
    if (n == 0) return;
    if (p->n_threads == 1 || n == 1) {
        for (size_t item = 0; item < n; item++) work(context, item, 0);
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->work = work;
    p->context = context;
    p->n = n;
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    p->running = p->n_threads - 1;
    p->round++;
    pthread_cond_broadcast(&p->begin);
    pthread_mutex_unlock(&p->lock);
    claim_items(p, 0);
    pthread_mutex_lock(&p->lock);
    while (p->running > 0) pthread_cond_wait(&p->end, &p->lock);
    pthread_mutex_unlock(&p->lock);
}
