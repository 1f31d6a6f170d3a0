/* cachebench.c - what a kept state saves: asks about one state twice, with other questions the
 * second time, and says what both took.
 *
 * Usage: cachebench DIR STATE_TOKENS SCHEMA_TOKENS
 *
 * The state has STATE_TOKENS tokens (one digit each) and the questions, with the texts around
 * them, SCHEMA_TOKENS or up to some more. The model is read once before, so that neither request
 * waits for the disk. The time of the processors is what it took on a machine with other work too.
 * The third line is the second request again without what was kept: its logits have to be equal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "clef.h"

static void write_request(buf *out, size_t state, size_t words, const char *name) {
    out->n = 0;
    buf_add_text(out, "{\"model\":\"m\",\"state\":\"");
    for (size_t i = 0; i < state; i++) buf_add_char(out, (char)('0' + i % 7));
    buf_printf(out, "\",\"questions\":{\"%s\":{\"type\":\"noul\",\"instructions\":\"", name);
    for (size_t i = 0; i < words; i++) buf_add_char(out, '7');
    buf_add_text(out, "\"}}}");
}

/* Tokens of a request's row; 0 on failure. */
static uint64_t count_tokens(clef_engine *e, const buf *body, clef_error *err) {
    clef_answer *a = NULL;
    clef_ask_stats s = {0};
    if (clef_encode(e, NULL, body->p, body->n, &a, err) == CLEF_OK) clef_answer_stats(a, &s);
    clef_answer_free(a);
    return s.tokens;
}

static clef_status ask(clef_answer **out, double *seconds, clef_engine *e, const buf *body,
                       const char *key, const char *name, clef_error *err) {
    const clef_ask_options options = {.cache_key = key, .cache_key_len = strlen(key)};
    const clock_t before = clock();
    const clef_status s = clef_ask(e, &options, body->p, body->n, out, err);
    if (s != CLEF_OK) return s;
    const double cpu = (double)(clock() - before) / CLOCKS_PER_SEC;
    clef_ask_stats stats;
    clef_answer_stats(*out, &stats);
    *seconds = stats.prefill_s;
    printf("%-7s %6llu tokens, %6llu of them kept: %.3f s, %.3f s of processors\n", name,
           (unsigned long long)stats.tokens, (unsigned long long)stats.cached_tokens, *seconds,
           cpu);
    return CLEF_OK;
}

static clef_status measure(clef_engine *e, size_t state, size_t schema, clef_error *err) {
    buf body = {0};
    clef_answer *answers[4] = {0};
    double seconds[4] = {0};
    write_request(&body, 0, 0, "a");
    const uint64_t least = count_tokens(e, &body, err);
    const size_t words = schema > least ? schema - least : 0;
    clef_status s =
        least == 0 ? err->status : ask(&answers[0], &seconds[0], e, &body, "0", "warm", err);
    write_request(&body, state, words, "a");
    if (s == CLEF_OK) s = ask(&answers[1], &seconds[1], e, &body, "1", "first", err);
    write_request(&body, state, words, "b");
    if (s == CLEF_OK) s = ask(&answers[2], &seconds[2], e, &body, "1", "second", err);
    if (s == CLEF_OK) s = ask(&answers[3], &seconds[3], e, &body, "2", "alone", err);
    if (s == CLEF_OK) {
        size_t n = 0;
        const clef_option *x = clef_answer_options(answers[2], &n);
        const clef_option *y = clef_answer_options(answers[3], &n);
        bool same = true;
        for (size_t i = 0; i < n; i++) same = same && x[i].logit == y[i].logit;
        clef_load load;
        clef_engine_stats(e, &load);
        printf("%.1f times as fast, logits %s, %.1f MiB kept\n", seconds[1] / seconds[2],
               same ? "equal" : "DIFFERENT", (double)load.cache_bytes / 1048576);
    }
    for (int i = 0; i < 4; i++) clef_answer_free(answers[i]);
    buf_free(&body);
    return s;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: cachebench DIR STATE_TOKENS SCHEMA_TOKENS\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    clef_error err = {0};
    clef_engine *e = NULL;
    const clef_options options = {.model = argv[1], .cache_bytes = (uint64_t)8 << 30};
    clef_status s = clef_open(&e, &options, &err);
    if (s == CLEF_OK) s = measure(e, strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10), &err);
    clef_close(e);
    if (s != CLEF_OK) fprintf(stderr, "cachebench: %s\n", err.text);
    return s != CLEF_OK;
}
