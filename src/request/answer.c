/* answer.c - probabilities to the answer object, byte for byte as the reference prints it.
 *
 * In: the probabilities of all options, in scoring order.  Out: JSON in the style of
 * json.dumps(answer, ensure_ascii=False), with the members in this order:
 *   {"model", "answers": {id: ...}, "usage": {"input_tokens", "output_tokens": 0}}
 *   noul    {"type", "noul"}
 *   choice  {"type", "choice", "confidence", "probabilities"}
 *   score   {"type", "score", "confidence", "legend", "probabilities"}
 *
 * Confidence, over n options with the greatest probability at k:
 *   top       p_k, as the reference has it
 *   typesafe  choice (p_k - 1/n) / (1 - 1/n); score 1 - sum p_i |i - k| / D, not below 0, where D
 *             is the mean distance of the levels from their middle
 *   entropy   1 - H / ln n
 *
 * Easy to get wrong:
 *   - with 4 decimals everything is computed from the unrounded probabilities and each printed
 *     number is rounded once; with 7 it is computed from the values that are printed, so that a
 *     client can check the sums;
 *   - options are scored sorted and answered as asked, and of equal options the first asked wins;
 *   - a score's legend repeats the criteria as they were sent, members unsorted. */
#include "request/answer.h"

#include <assert.h>
#include <math.h>

#include "text/pyjson.h"

/* One question on its way out. */
typedef struct {
    const question *q;
    const float *probabilities; /* [q->n_options] in scoring order */
    const answer_style *style;
} asked_question;

/* The value that the sums and comparisons use. */
static double probability(const asked_question *a, uint32_t i) {
    const double p = (double)a->probabilities[i];
    return a->style->digits == 7 ? pyjson_round(p, 7) : p;
}

/* The first option in the request's order that no other exceeds, as an index in scoring order. */
static uint32_t best_option(const asked_question *a) {
    uint32_t best = a->q->asked[0];
    for (uint32_t i = 1; i < a->q->n_options; i++)
        if (probability(a, a->q->asked[i]) > probability(a, best)) best = a->q->asked[i];
    return best;
}

/* 0 when uniform, 1 when certain; for a score, also by how far the levels lie from the best one. */
static double typesafe_confidence(const asked_question *a, uint32_t best) {
    const double n = a->q->n_options;
    if (a->q->kind == QUESTION_CHOICE) return (probability(a, best) - 1 / n) / (1 - 1 / n);
    double distance = 0, uniform = 0;
    for (uint32_t i = 0; i < a->q->n_options; i++) {
        distance += probability(a, i) * fabs((double)i - (double)best);
        uniform += fabs((double)i - (n - 1) / 2);
    }
    return 1 - distance / (uniform / n);
}

static double entropy_confidence(const asked_question *a) {
    double entropy = 0;
    for (uint32_t i = 0; i < a->q->n_options; i++) {
        const double p = probability(a, i);
        if (p > 0) entropy -= p * log(p);
    }
    return 1 - entropy / log((double)a->q->n_options);
}

static double confidence(const asked_question *a, uint32_t best) {
    if (a->style->confidence == CLEF_CONFIDENCE_TOP) return probability(a, best);
    if (a->q->n_options == 1) return 1;
    const double c = a->style->confidence == CLEF_CONFIDENCE_TYPESAFE ? typesafe_confidence(a, best)
                                                                      : entropy_confidence(a);
    /* Probabilities that sum to almost 1 can leave the range by rounding noise; a score whose best
     * level lies at one end leaves it by its formula, which TypeSafe cuts at 0 as well. */
    return fmin(fmax(c, 0), 1);
}

static void write_number(buf *out, const asked_question *a, double value) {
    pyjson_double(out, pyjson_round(value, a->style->digits));
}

static void write_probabilities(buf *out, const asked_question *a) {
    buf_add_text(out, "\"probabilities\": {");
    for (uint32_t i = 0; i < a->q->n_options; i++) {
        const uint32_t at = a->q->asked[i];
        if (i > 0) buf_add_text(out, ", ");
        pyjson_string(out, a->q->options[at].id);
        buf_add_text(out, ": ");
        write_number(out, a, probability(a, at));
    }
    buf_add_char(out, '}');
}

static void write_choice(buf *out, const asked_question *a) {
    const uint32_t best = best_option(a);
    buf_add_text(out, ", \"choice\": ");
    pyjson_string(out, a->q->options[best].id);
    buf_add_text(out, ", \"confidence\": ");
    write_number(out, a, confidence(a, best));
    buf_add_text(out, ", ");
    write_probabilities(out, a);
}

static clef_status write_score(buf *out, const asked_question *a, clef_error *err) {
    double score = 0;
    for (uint32_t i = 0; i < a->q->n_options; i++) score += (double)i * probability(a, i);
    buf_add_text(out, ", \"score\": ");
    write_number(out, a, score);
    buf_add_text(out, ", \"confidence\": ");
    write_number(out, a, confidence(a, best_option(a)));
    buf_add_text(out, ", \"legend\": {");
    for (uint32_t i = 0; i < a->q->n_options; i++) {
        if (i > 0) buf_add_text(out, ", ");
        pyjson_string(out, a->q->options[i].id);
        buf_add_text(out, ": ");
        TRY(pyjson_write(out, a->q->options[i].description, PYJSON_ANSWER, err));
    }
    buf_add_text(out, "}, ");
    write_probabilities(out, a);
    return CLEF_OK;
}

static clef_status write_question(buf *out, const asked_question *a, clef_error *err) {
    pyjson_string(out, a->q->id);
    buf_add_text(out, ": {\"type\": \"");
    buf_add_text(out, question_kind_name(a->q->kind));
    buf_add_char(out, '"');
    switch (a->q->kind) {
    case QUESTION_NOUL:
        buf_add_text(out, ", \"noul\": ");
        write_number(out, a, probability(a, 0)); /* "true" is scored first */
        break;
    case QUESTION_CHOICE:
        write_choice(out, a);
        break;
    case QUESTION_SCORE:
        TRY(write_score(out, a, err));
        break;
    }
    buf_add_char(out, '}');
    return CLEF_OK;
}

static clef_status check_finite(const request *rq, const float *probabilities, clef_error *err) {
    const float *p = probabilities;
    for (uint32_t i = 0; i < rq->n_questions; i++) {
        const question *q = &rq->questions[i];
        for (uint32_t k = 0; k < q->n_options; k++)
            if (!isfinite(*p++))
                return clef_fail(err, CLEF_ERR_INTERNAL,
                                 "questions.%s: the model gave option '%s' no finite probability",
                                 request_show(q->id).text, request_show(q->options[k].id).text);
    }
    return CLEF_OK;
}

clef_status answer_write(buf *out, const request *rq, const prompt *p, const float *probabilities,
                         const answer_style *style, clef_error *err) {
    assert(style->digits == 4 || style->digits == 7);
    TRY(check_finite(rq, probabilities, err));
    buf_add_text(out, "{\"model\": ");
    pyjson_string(out, rq->model);
    buf_add_text(out, ", \"answers\": {");
    for (uint32_t i = 0; i < rq->n_questions; i++) {
        const asked_question a = {&rq->questions[i], probabilities, style};
        if (i > 0) buf_add_text(out, ", ");
        TRY(write_question(out, &a, err));
        probabilities += a.q->n_options;
    }
    buf_printf(out, "}, \"usage\": {\"input_tokens\": %u, \"output_tokens\": 0}", p->n_ids);
    if (p->n_state_cut > 0) buf_printf(out, ", \"x_truncated_tokens\": %zu", p->n_state_cut);
    buf_add_char(out, '}');
    return buf_status(out, err);
}
