/* golden.h - the recorded cases of testdata/golden for the tests that replay them: loading a case,
 * opening a toy, and driving backbone and head by hand so that every border can be seen.
 * testdata/README.md has the format. */
#ifndef TESTS_GOLDEN_H
#define TESTS_GOLDEN_H

#include "engine/engine.h"
#include "request/prompt.h"

typedef struct {
    char name[64];        /* "toy-r2.basic" */
    char toy[32];         /* "toy-r2" */
    const json *doc;      /* the case's .json */
    safetensors *tensors; /* NULL for a case that records an error */
    str request;
    prompt_limits limits;
    arena mem;
} golden;

/* Names of all cases, `*n` of them, or of those of one toy when `toy` is not NULL. */
const char (*golden_names(size_t *n, const char *toy))[64];

/* Fails the running test when the case cannot be loaded. */
void golden_load(golden *g, const char *name);
void golden_free(golden *g);

/* Member of the case as a float array; *n is its length. In the case's arena. */
const float *golden_floats(golden *g, const json *array, uint32_t *n);

/* Opens a toy folder; fails the running test when it does not open. */
clef_engine *golden_open(const char *toy, const char *kernels, unsigned threads, uint32_t chunk);

/* The record of a request as the head wants it. Lives in `mem`. */
typedef struct {
    request rq;
    prompt p;
    head_input in;
} golden_record;
void golden_prepare(golden_record *r, const golden *g, const clef_engine *e, arena *mem);

/* One record through backbone and head, `chunk` rows at a time; `h` stays open for inspection
 * (close it with head_close). logits and probabilities [in->n_options]. */
void golden_run(head_run *h, const model *m, const head_input *in, uint32_t chunk,
                backbone_watch *watch, void *context, float *logits, float *probabilities);

#endif
