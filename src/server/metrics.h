/* metrics.h - what the server counts about itself, and its text form for Prometheus. */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include <stdatomic.h>

#include "base/buf.h"
#include "clef.h"

enum { METRICS_BUCKETS = 14, METRICS_STATUSES = 600 };

/* {0} counts from zero. Any thread may add. */
typedef struct {
    atomic_uint_fast64_t by_status[METRICS_STATUSES]; /* 499: the client left */
    atomic_uint_fast64_t questions, prompt_tokens, cached_tokens;
    atomic_uint_fast64_t cache_hits, cache_misses, merged;
    atomic_uint_fast64_t buckets[METRICS_BUCKETS + 1]; /* the last is what no other takes */
    atomic_uint_fast64_t micros;
    atomic_uint_fast64_t connections_opened, connections_refused;
    atomic_int_fast64_t connections, in_flight;
} metrics;

/* One finished request that took `seconds`. */
void metrics_count(metrics *m, int status, double seconds);

/* Facts that stand elsewhere. */
typedef struct {
    const clef_load *load; /* NULL: the model is not open */
    double load_s;         /* opening and warming it took */
    uint64_t anonymous_bytes;
    size_t answer_cache_bytes, answer_cache_entries;
} metrics_facts;

void metrics_write(buf *out, metrics *m, const metrics_facts *facts);

#endif
