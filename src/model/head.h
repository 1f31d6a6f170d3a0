/* head.h - the joint schema head: hidden rows in, one logit per option out. MODEL.md
 * section 3.
 *
 * The head reads hidden rows only through the memory projection, the means over spans and the last
 * row, so it eats each chunk as it comes: [T, hidden] never exists. */
#ifndef MODEL_HEAD_H
#define MODEL_HEAD_H

#include "base/str.h"
#include "model/model.h"

/* What the head needs to know of a record. Spans are half-open in tokens of the row, not empty, do
 * not overlap, and rise in the order instructions[0], its options, instructions[1], ... */
typedef struct {
    const int32_t *ids; /* [n_tokens] */
    uint32_t n_tokens;
    const span *instructions; /* [n_questions] */
    const span *options;      /* [n_options] */
    const uint32_t *owner;    /* [n_options]: the question an option belongs to */
    const uint8_t *kinds;     /* [n_questions]: rows of type_embedding: 0 noul, 1 choice, 2 score */
    uint32_t n_questions, n_options;
} head_input;

/* A span and where the mean of its rows goes. */
typedef struct {
    span at;
    float *mean; /* [hidden] */
} head_span;

/* One record's run through the head. */
typedef struct {
    const head_input *in;
    uint32_t n_fed;   /* rows eaten so far */
    float *memory;    /* [n_tokens, width] */
    float *question;  /* [n_questions, hidden]: mean of the normed rows over its span */
    float *context;   /* [n_options, hidden]: the same for options */
    float *global;    /* [hidden]: the last normed row */
    float *queries;   /* [n_options, width]: R; valid after head_finish, for the tests */
    float *fields;    /* [n_questions, width]: F before field_norm; likewise */
    double *sum;      /* [hidden]: the open span's running sum */
    head_span *spans; /* [n_questions + n_options], by rising begin */
    uint32_t n_spans, next_span;
    arena mem;
} head_run;

/* Room for one record; `in` must outlive the run. Close with head_close. */
clef_status head_open(head_run *out, const model *m, const head_input *in, clef_error *err);
void head_close(head_run *h);

/* What head_open takes, and what head_finish takes on top while it runs; SIZE_MAX when no machine
 * has that much. Only the counts of `in` are read. */
typedef struct {
    size_t run, finish;
} head_sizes;
head_sizes head_bytes(const config *cfg, const head_input *in);

/* Eats the next n_rows hidden rows (after the final norm) [n_rows, hidden], which are overwritten
 * with their normed form; n_rows <= ws->max_rows. */
void head_feed(head_run *h, const model *m, workspace *ws, float *hidden, uint32_t n_rows);

/* After all rows: logits and probabilities [n_options], softmax per question. CLEF_ERR_INTERNAL
 * when a logit is not finite. */
clef_status head_finish(head_run *h, const model *m, workspace *ws, float *logits,
                        float *probabilities, clef_error *err);

#endif
