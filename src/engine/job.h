/* job.h - one request from its body to what the head reads of it. */
#ifndef ENGINE_JOB_H
#define ENGINE_JOB_H

#include "engine/batch.h"
#include "request/prompt.h"

/* {0} is a job before its first step; free `mem` whether the steps succeed or not. */
typedef struct {
    request rq;
    prompt p;
    sight *sight;         /* NULL: a record of text */
    batch_item item;      /* set by job_make_item; its status is the job's */
    clef_ask_stats stats; /* as far as the job has come */
    arena mem;
} job;

/* Body to ids, spans and pixels. `seeing` NULL: a request with pictures is refused. Where a request
 * has none, limits->media still stands for some. */
clef_status job_encode(job *j, const tokenizer *t, const prompt_limits *limits,
                       const sight_options *seeing, str body, clef_error *err);

/* Ids and spans to the head's view of them, with room for the results. */
clef_status job_make_item(job *j, clef_error *err);

#endif
