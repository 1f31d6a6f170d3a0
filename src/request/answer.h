/* answer.h - probabilities to the answer's JSON. MODEL.md section 4. */
#ifndef REQUEST_ANSWER_H
#define REQUEST_ANSWER_H

#include "base/buf.h"
#include "request/prompt.h"

typedef struct {
    clef_confidence confidence;
    unsigned digits; /* 4: rounded as the reference does; 7: up to 7 decimals */
} answer_style;

/* Appends the answer object. `probabilities` [rq->n_options], flat in scoring order. The number of
 * input tokens is p->n_ids; a state that was cut adds "x_truncated_tokens". Fails with
 * CLEF_ERR_INTERNAL when a probability is not finite: NaN never leaves the engine. */
clef_status answer_write(buf *out, const request *rq, const prompt *p, const float *probabilities,
                         const answer_style *style, clef_error *err);

#endif
