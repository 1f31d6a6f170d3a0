/* peak.c - plans a run and runs it: what was said and what was held, for tests/plan_test.c.
 *
 * Usage: peak plan|run|force DIR TOKENS [fast] [batch=N] [N FILE WIDTH HEIGHT]
 *
 * The record has one noul question over a state that makes it TOKENS long (the least possible when
 * that is more), and on top of that N times the picture FILE; a batch has it N times. Prints its
 * tokens and the bytes that clef_plan reckons with, or that asking took: each in a process of its
 * own, as one would disturb the other. Measured is the most memory without a file behind it: the
 * largest resident size ever minus the mapped files' share at the end, which only grows, or what
 * was seen between two chunks if that is more. Exit status 3 when the run was refused: the sentence
 * is on standard error; force asks for the run all the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "clef.h"

enum { MAX_PICTURES = 16, MAX_BATCH = 64 };

/* One picture, n times. */
typedef struct {
    size_t n;
    const char *paths[MAX_PICTURES];
    uint32_t sizes[MAX_PICTURES][2];
} pictures;

static uint64_t status_kib(const char *name) {
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    uint64_t kib = 0;
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, name, strlen(name)) == 0) kib = strtoull(line + strlen(name), NULL, 10);
    if (f != NULL) fclose(f);
    return kib;
}

static int watch(void *user, size_t done, size_t total) {
    uint64_t *most = user;
    (void)done;
    (void)total;
    const uint64_t now = memory_anonymous();
    if (now > *most) *most = now;
    return 0;
}

/* A request whose state has n words of one token each. */
static void write_request(buf *out, size_t n) {
    out->n = 0;
    buf_add_text(out, "{\"model\":\"m\",\"state\":\"");
    for (size_t i = 0; i < n; i++) buf_add_char(out, '7');
    buf_add_text(out, "\",\"questions\":{\"q\":{\"type\":\"noul\"}}}");
}

/* Tokens of the request's row, from the answer of clef_encode; 0 on failure. */
static size_t count_tokens(clef_engine *e, const buf *body, clef_error *err) {
    clef_answer *a = NULL;
    if (clef_encode(e, NULL, body->p, body->n, &a, err) != CLEF_OK) return 0;
    size_t n = 1;
    for (const char *p = clef_answer_json(a, NULL); *p != '\0' && *p != ']'; p++) n += *p == ',';
    clef_answer_free(a);
    return n;
}

static int plan(const clef_options *options, size_t tokens, size_t batch, const pictures *shown,
                clef_error *err) {
    clef_plan_result r;
    const clef_plan_options wanted = {.tokens = (uint32_t)tokens,
                                      .batch = (uint32_t)batch,
                                      .questions = 1,
                                      .options = 2,
                                      .images = shown->sizes,
                                      .n_images = shown->n};
    if (clef_plan(options, &wanted, &r, err) != CLEF_OK) return 2;
    printf("%zu %llu\n", tokens, (unsigned long long)r.total_bytes);
    return 0;
}

static int run(const clef_options *options, size_t tokens, size_t batch, const pictures *shown,
               int any_memory, clef_error *err) {
    /* Static: what is not touched takes no memory. */
    static clef_request requests[MAX_BATCH];
    static clef_answer *answers[MAX_BATCH];
    static clef_error errs[MAX_BATCH];
    clef_engine *e = NULL;
    buf body = {0};
    write_request(&body, 1);
    if (clef_open(&e, options, err) != CLEF_OK) return 2;
    const size_t least = count_tokens(e, &body, err);
    if (least == 0) return 2;
    if (tokens < least) tokens = least;
    write_request(&body, tokens - least + 1);
    for (size_t i = 0; i < batch; i++) requests[i] = (clef_request){body.p, body.n};
    uint64_t most = 0;
    const clef_ask_options ask = {.any_memory = any_memory,
                                  .progress = watch,
                                  .user = &most,
                                  .images = shown->paths,
                                  .n_images = shown->n};
    if (clef_ask_batch(e, &ask, requests, batch, answers, errs) != CLEF_OK) {
        *err = errs[0];
        return 3;
    }
    const uint64_t peak = 1024 * (status_kib("VmHWM:") - status_kib("RssFile:"));
    printf("%zu %llu\n", tokens, (unsigned long long)(peak > most ? peak : most));
    for (size_t i = 0; i < batch; i++) clef_answer_free(answers[i]);
    clef_close(e);
    buf_free(&body);
    return 0;
}

int main(int argc, char **argv) {
    clef_error err = {0};
    pictures shown = {0};
    size_t batch = 1;
    if (argc < 4) return 2;
    clef_options options = {.model = argv[2], .threads = 2};
    const size_t tokens = strtoul(argv[3], NULL, 10);
    int i = 4;
    if (i < argc && strcmp(argv[i], "fast") == 0) {
        options.precision = CLEF_PRECISION_FAST;
        i++;
    }
    if (i < argc && strncmp(argv[i], "batch=", 6) == 0) batch = strtoul(argv[i++] + 6, NULL, 10);
    if (i + 4 == argc) {
        shown.n = strtoul(argv[i], NULL, 10);
        for (size_t k = 0; k < shown.n && k < MAX_PICTURES; k++) {
            shown.paths[k] = argv[i + 1];
            shown.sizes[k][0] = (uint32_t)strtoul(argv[i + 2], NULL, 10);
            shown.sizes[k][1] = (uint32_t)strtoul(argv[i + 3], NULL, 10);
        }
        i = argc;
    }
    if (i != argc || shown.n > MAX_PICTURES || batch > MAX_BATCH) return 2;
    const int status = strcmp(argv[1], "plan") == 0 ? plan(&options, tokens, batch, &shown, &err)
                                                    : run(&options, tokens, batch, &shown,
                                                          strcmp(argv[1], "force") == 0, &err);
    if (status != 0) fprintf(stderr, "peak: %s\n", err.text);
    return status;
}
