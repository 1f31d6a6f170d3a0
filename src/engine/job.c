/* job.c - see job.h. Options are flat over all questions for the head; `owner` says which question
 * each belongs to. */
#include "engine/job.h"

static clef_status refuse_media(const pictures *media, clef_error *err) {
    if (media->n_images + media->n_videos == 0) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_UNSUPPORTED,
                     "%s: the model has no vision tower and answers from text alone",
                     media->n_images > 0 ? "images" : "videos");
}

clef_status job_encode(job *j, const tokenizer *t, const prompt_limits *limits,
                       const sight_options *seeing, str body, clef_error *err) {
    TRY(request_parse(&j->rq, body, &j->mem, err));
    if (seeing == NULL)
        TRY(refuse_media(&j->rq.media, err));
    else
        TRY(sight_load(&j->sight, &j->rq, seeing, limits->max_length, &j->mem, err));
    prompt_limits own = *limits;
    if (j->sight != NULL) own.media = sight_media(j->sight, &own.n_media);
    TRY(prompt_build(&j->p, &j->rq, t, &own, &j->mem, err));
    return j->sight == NULL ? CLEF_OK : sight_place(j->sight, &j->p, &j->mem, err);
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
                           .sight = j->sight,
                           .media = j->sight == NULL ? (str){0} : sight_digests(j->sight),
                           .logits = logits,
                           .probabilities = probabilities};
    return CLEF_OK;
}
