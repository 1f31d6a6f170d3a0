/* metrics.c - see metrics.h. The text format is Prometheus exposition 0.0.4. */
#include "server/metrics.h"

static const double BOUNDS[METRICS_BUCKETS] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                               0.25,  0.5,    1,     2.5,  5,     10,   60};

void metrics_count(metrics *m, int status, double seconds) {
    if (status >= 0 && status < METRICS_STATUSES) atomic_fetch_add(&m->by_status[status], 1);
    size_t i = 0;
    while (i < METRICS_BUCKETS && seconds > BOUNDS[i]) i++;
    atomic_fetch_add(&m->buckets[i], 1);
    atomic_fetch_add(&m->micros, (uint_fast64_t)(seconds * 1e6));
}

static void add_head(buf *out, const char *name, const char *kind, const char *help) {
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
}

static void add_value(buf *out, const char *name, const char *kind, const char *help,
                      uint64_t value) {
    add_head(out, name, kind, help);
    buf_printf(out, "%s %llu\n", name, (unsigned long long)value);
}

static void add_latency(buf *out, metrics *m) {
    const char *name = "clef_request_seconds";
    uint64_t sum = 0;
    add_head(out, name, "histogram", "Time from a whole request head to its answer.");
    for (size_t i = 0; i < METRICS_BUCKETS; i++) {
        sum += atomic_load(&m->buckets[i]);
        buf_printf(out, "%s_bucket{le=\"%g\"} %llu\n", name, BOUNDS[i], (unsigned long long)sum);
    }
    sum += atomic_load(&m->buckets[METRICS_BUCKETS]);
    buf_printf(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.6f\n%s_count %llu\n", name,
               (unsigned long long)sum, name, (double)atomic_load(&m->micros) / 1e6, name,
               (unsigned long long)sum);
}

static void add_engine(buf *out, const clef_load *l) {
    add_value(out, "clef_queue_depth", "gauge", "Requests waiting for their first step.",
              l->waiting);
    add_value(out, "clef_queue_limit", "gauge", "Requests that may wait.", l->queue);
    add_value(out, "clef_running", "gauge", "Requests being computed.", l->running);
    add_value(out, "clef_engine_answered_total", "counter", "Requests computed.", l->answered);
    add_value(out, "clef_engine_failed_total", "counter", "Requests that the engine failed.",
              l->failed);
    add_value(out, "clef_engine_refused_total", "counter", "Requests refused by a full queue.",
              l->refused);
    add_value(out, "clef_engine_cancelled_total", "counter", "Requests whose client left.",
              l->cancelled);
    add_value(out, "clef_engine_expired_total", "counter", "Requests past their deadline.",
              l->expired);
    add_value(out, "clef_engine_steps_total", "counter", "Chunks computed.", l->steps);
    add_value(out, "clef_engine_tokens_total", "counter", "Tokens computed.", l->computed_tokens);
    add_value(out, "clef_prefix_cache_bytes", "gauge", "Memory of stored states.", l->cache_bytes);
    add_value(out, "clef_prefix_cache_limit_bytes", "gauge", "The most that it may be.",
              l->cache_max_bytes);
    add_value(out, "clef_prefix_cache_entries", "gauge", "Stored states.", l->cache_entries);
    add_value(out, "clef_prefix_cache_hits_total", "counter", "Requests that found a state.",
              l->cache_hits);
    add_value(out, "clef_prefix_cache_misses_total", "counter", "Requests that found none.",
              l->cache_misses);
}

void metrics_write(buf *out, metrics *m, const metrics_facts *f) {
    add_head(out, "clef_requests_total", "counter",
             "Finished HTTP requests by status; 499 is a "
             "client that left.");
    for (int i = 0; i < METRICS_STATUSES; i++) {
        const uint64_t n = atomic_load(&m->by_status[i]);
        if (n > 0)
            buf_printf(out, "clef_requests_total{status=\"%d\"} %llu\n", i, (unsigned long long)n);
    }
    add_value(out, "clef_questions_total", "counter", "Questions answered.",
              atomic_load(&m->questions));
    add_value(out, "clef_prompt_tokens_total", "counter", "Tokens of answered requests.",
              atomic_load(&m->prompt_tokens));
    add_value(out, "clef_cached_tokens_total", "counter", "Of them found in a stored state.",
              atomic_load(&m->cached_tokens));
    add_value(out, "clef_answer_cache_hits_total", "counter", "Answers given again.",
              atomic_load(&m->cache_hits));
    add_value(out, "clef_answer_cache_misses_total", "counter", "Answers that had to be computed.",
              atomic_load(&m->cache_misses));
    add_value(out, "clef_merged_total", "counter", "Requests that waited for an equal one.",
              atomic_load(&m->merged));
    add_value(out, "clef_answer_cache_bytes", "gauge", "Memory of kept answers.",
              f->answer_cache_bytes);
    add_value(out, "clef_answer_cache_entries", "gauge", "Kept answers.", f->answer_cache_entries);
    add_value(out, "clef_connections", "gauge", "Open connections.",
              (uint64_t)atomic_load(&m->connections));
    add_value(out, "clef_connections_total", "counter", "Connections accepted.",
              atomic_load(&m->connections_opened));
    add_value(out, "clef_connections_refused_total", "counter", "Connections beyond the limit.",
              atomic_load(&m->connections_refused));
    add_value(out, "clef_in_flight", "gauge", "Requests being answered.",
              (uint64_t)atomic_load(&m->in_flight));
    add_value(out, "clef_memory_bytes", "gauge", "Memory that no file stands behind.",
              f->anonymous_bytes);
    add_head(out, "clef_load_seconds", "gauge", "Opening and warming the model took.");
    buf_printf(out, "clef_load_seconds %.3f\n", f->load_s);
    add_latency(out, m);
    if (f->load != NULL) add_engine(out, f->load);
}
