/* bench.c - ceilings and one prefill, measured in the same run.
 *
 * The measured record is made of arbitrary token ids: the arithmetic does not depend on them. It
 * has one question with three options of sixteen tokens near its end, as a small request would. */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cpu.h"
#include "checkpoint/hub.h"
#include "engine/engine.h"

enum { OPTION_TOKENS = 16, N_OPTIONS = 3, LEAST_TOKENS = 128, MOST_REPEATS = 1000 };

/* One run's numbers. */
typedef struct {
    double seconds;
    compute_times parts;
} sample;

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t n) {
    qsort(values, n, sizeof *values, by_value);
    return n % 2 == 1 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

/* ---- memory ---- */

/* Anonymous memory this process holds now, in bytes: everything but mapped files. 0 if unknown. */
static double anonymous_bytes(void) {
    FILE *f = fopen("/proc/self/status", "re");
    if (f == NULL) return 0;
    char line[256];
    double kib = 0;
    while (fgets(line, sizeof line, f) != NULL)
        /* NOLINTNEXTLINE(cert-err34-c): the kernel prints no number out of range. */
        if (sscanf(line, "RssAnon: %lf kB", &kib) == 1) break;
    fclose(f);
    return kib * 1024;
}

/* Keeps the most memory seen between chunks and passes progress on. */
typedef struct {
    const clef_bench_options *bench;
    size_t total_runs, run;
    double most_bytes;
} watcher;

static int watch_progress(void *user, size_t done, size_t total) {
    watcher *w = user;
    const double now = anonymous_bytes();
    if (now > w->most_bytes) w->most_bytes = now;
    if (w->bench->progress == NULL) return 0;
    return w->bench->progress(w->bench->user, w->run * total + done, w->total_runs * total);
}

/* ---- the record ---- */

typedef struct {
    int32_t *ids;
    span instructions, options[N_OPTIONS];
    uint32_t owner[N_OPTIONS];
    uint8_t kind;
    float logits[N_OPTIONS], probabilities[N_OPTIONS];
} record;

static clef_status make_record(record *r, uint32_t n_tokens, uint32_t vocab, clef_error *err) {
    *r = (record){.kind = 1};
    r->ids = calloc(n_tokens, sizeof *r->ids);
    if (r->ids == NULL) return clef_fail_memory(err);
    uint32_t x = 1;
    for (uint32_t i = 0; i < n_tokens; i++) {
        x = x * 1664525u + 1013904223u; /* any spread of ids will do */
        r->ids[i] = (int32_t)((x >> 8) % vocab);
    }
    uint32_t at = n_tokens - OPTION_TOKENS * (N_OPTIONS + 2);
    r->instructions = (span){at, at + OPTION_TOKENS};
    for (int o = 0; o < N_OPTIONS; o++) {
        at += OPTION_TOKENS;
        r->options[o] = (span){at, at + OPTION_TOKENS};
    }
    return CLEF_OK;
}

static clef_status run_once(sample *out, clef_engine *e, record *r, uint32_t n_tokens, watcher *w,
                            clef_error *err) {
    batch_item item = {.in = {.ids = r->ids,
                              .n_tokens = n_tokens,
                              .instructions = &r->instructions,
                              .options = r->options,
                              .owner = r->owner,
                              .kinds = &r->kind,
                              .n_questions = 1,
                              .n_options = N_OPTIONS},
                       .logits = r->logits,
                       .probabilities = r->probabilities};
    compute_take_times(e->c);
    const double start = cpu_seconds();
    TRY(engine_run(e, &e->m, watch_progress, w, &item, 1, err));
    out->seconds = cpu_seconds() - start;
    out->parts = compute_take_times(e->c);
    if (item.status != CLEF_OK && err != NULL) *err = item.err;
    return item.status;
}

static void summarise(clef_bench_result *out, const sample *samples, double *values, unsigned n) {
    for (unsigned i = 0; i < n; i++) values[i] = samples[i].seconds;
    out->seconds = median(values, n); /* sorted now */
    out->seconds_min = values[0];
    out->seconds_max = values[n - 1];
    out->tokens_per_s = out->tokens / out->seconds;
    for (int part = 0; part < CLEF_N_PARTS; part++) {
        for (unsigned i = 0; i < n; i++) values[i] = samples[i].parts.seconds[part];
        out->parts[part].seconds = median(values, n);
        for (unsigned i = 0; i < n; i++)
            values[i] = samples[i].parts.seconds[part] > 0
                            ? samples[i].parts.flops[part] / samples[i].parts.seconds[part] * 1e-9
                            : 0;
        out->parts[part].gflops = median(values, n);
        for (unsigned i = 0; i < n; i++)
            values[i] = samples[i].parts.seconds[part] / samples[i].seconds;
        out->parts[part].share = median(values, n);
    }
}

static clef_status measure_prefill(clef_bench_result *out, clef_engine *e,
                                   const clef_bench_options *bench, clef_error *err) {
    record r;
    TRY(make_record(&r, out->tokens, e->cfg.vocab, err));
    /* One run more than asked for: the first also brings the weights into memory. */
    watcher w = {.bench = bench, .total_runs = out->repeats + 1u};
    sample *samples = calloc(out->repeats, sizeof *samples);
    double *values = calloc(out->repeats, sizeof *values);
    sample warm_up;
    clef_status s = samples == NULL || values == NULL ? clef_fail_memory(err) : CLEF_OK;
    if (s == CLEF_OK) s = run_once(&warm_up, e, &r, out->tokens, &w, err);
    for (unsigned i = 0; s == CLEF_OK && i < out->repeats; i++) {
        w.run = i + 1;
        s = run_once(&samples[i], e, &r, out->tokens, &w, err);
    }
    if (s == CLEF_OK) summarise(out, samples, values, out->repeats);
    out->resident_bytes = w.most_bytes;
    free(values);
    free(samples);
    free(r.ids);
    return s;
}

/* ---- text ---- */

static const char english[] =
    "The parcel left the depot on Tuesday morning and should have reached the customer two days "
    "later, but the driver found nobody at home and took it back. When she called, the agent could "
    "not tell her where it was; \"somewhere between here and the coast\", he said, which didn't "
    "help. "
    "She has asked for a refund of 149.90 euros, or for a second delivery before the 24th, "
    "whichever "
    "is quicker. Note that this is the third complaint about the same route in 2026: see tickets "
    "#4410, #4432 and #4507 for details, and don't promise a date that we can't keep.\n\n";

/* Encodes about a megabyte of `english` in pieces of a few thousand bytes. */
static clef_status measure_tokenizer(clef_bench_result *out, const tokenizer *t, clef_error *err) {
    enum { PARAGRAPHS = 8, PIECES = 256 };
    buf text = {0};
    for (int i = 0; i < PARAGRAPHS; i++) buf_add_text(&text, english);
    clef_status s = buf_status(&text, err);
    id_list ids = {0};
    const double start = cpu_seconds();
    for (int i = 0; s == CLEF_OK && i < PIECES; i++) {
        ids.n = 0;
        s = tokenizer_encode(t, (str){text.p, text.n}, CLEF_CONTROL_PLAIN, &ids, err);
    }
    out->tokenizer_mbps = PIECES * (double)text.n / (cpu_seconds() - start) * 1e-6;
    id_list_free(&ids);
    buf_free(&text);
    return s;
}

/* ---- the whole ---- */

static clef_status measure(clef_bench_result *out, clef_engine *e, const clef_options *options,
                           const clef_bench_options *bench, clef_error *err) {
    double start = cpu_seconds();
    TRY(engine_open_weights(e, options, err));
    out->open_s = cpu_seconds() - start;
    start = cpu_seconds();
    TRY(engine_open_tokenizer(e, options, err));
    out->tokenizer_load_s = cpu_seconds() - start;
    TRY(measure_tokenizer(out, e->tok, err));
    if (out->tokens > e->cfg.max_positions)
        return clef_fail(err, CLEF_ERR_INPUT, "tokens: %u, the model has %u positions", out->tokens,
                         e->cfg.max_positions);
    out->threads = compute_threads(e->c);
    out->chunk = e->chunk;
    snprintf(out->kernels, sizeof out->kernels, "%s", compute_kernels(e->c));
    TRY(compute_read_gbps(e->c, &out->read_gbps, err));
    /* The ceiling is taken before and after: what the machine gave during the run lies between. */
    const double before = compute_peak_gflops(e->c);
    TRY(measure_prefill(out, e, bench, err));
    const double after = compute_peak_gflops(e->c);
    out->fma_gflops = 0.5 * (before + after);
    return CLEF_OK;
}

clef_status clef_bench(const clef_options *options, const clef_bench_options *bench,
                       clef_bench_result *out, clef_error *err) {
    const clef_bench_options none = {0};
    if (bench == NULL) bench = &none;
    clef_bench_result result = {.tokens = bench->tokens == 0 ? 512 : bench->tokens,
                                .repeats = bench->repeats == 0 ? 5 : bench->repeats};
    if (result.tokens < LEAST_TOKENS)
        return clef_fail(err, CLEF_ERR_INPUT, "tokens: %u, wanted at least %d", result.tokens,
                         LEAST_TOKENS);
    if (result.repeats > MOST_REPEATS)
        return clef_fail(err, CLEF_ERR_INPUT, "repeats: %u, wanted at most %d", result.repeats,
                         MOST_REPEATS);
    TRY(engine_check_options(options, true, err));
    clef_engine *e = NULL;
    TRY(engine_new(&e, options, err));
    const clef_status s = measure(&result, e, options, bench, err);
    clef_close(e);
    if (s == CLEF_OK) *out = result;
    return s;
}
