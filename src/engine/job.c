/* job.c - see job.h. Options are flat over all questions for the head; `owner` says which question
 * each belongs to. */
#include "engine/job.h"

clef_status job_encode(job *j, const tokenizer *t, const prompt_limits *limits, str body,
                       clef_error *err) {
    TRY(request_parse(&j->rq, body, &j->mem, err));
    const pictures *media = &j->rq.media;
    if (media->n_images + media->n_videos > 0)
        return clef_fail(err, CLEF_ERR_UNSUPPORTED,
                         "%s: this version answers from text alone, wanted none",
                         media->n_images > 0 ? "images" : "videos");
    return prompt_build(&j->p, &j->rq, t, limits, &j->mem, err);
}

clef_status job_make_item(job *j, clef_error *err) {
    const request *rq = &j->rq;
    uint32_t *owner = arena_alloc(&j->mem, rq->n_options, sizeof *owner);
    uint8_t *kinds = arena_alloc(&j->mem, rq->n_questions, sizeof *kinds);
    float *logits = arena_alloc(&j->mem, rq->n_options, sizeof *logits);
    float *probabilities = arena_alloc(&j->mem, rq->n_options, sizeof *probabilities);
    if (owner == NULL || kinds == NULL || logits == NULL || probabilities == NULL)
        return clef_fail_memory(err);
    for (uint32_t q = 0, o = 0; q < rq->n_questions; q++) {
        kinds[q] = (uint8_t)rq->questions[q].kind;
        for (uint32_t i = 0; i < rq->questions[q].n_options; i++) owner[o++] = q;
    }
    const uint32_t fixed = j->p.n_prefix, media = fixed + j->p.n_media;
    const prefix_points points = {fixed, media, media + j->p.n_state};
    j->item = (batch_item){.in = {.ids = j->p.ids,
                                  .n_tokens = j->p.n_ids,
                                  .instructions = j->p.instructions,
                                  .options = j->p.options,
                                  .owner = owner,
                                  .kinds = kinds,
                                  .n_questions = rq->n_questions,
                                  .n_options = rq->n_options},
                           .points = points,
                           .logits = logits,
                           .probabilities = probabilities};
    return CLEF_OK;
}
