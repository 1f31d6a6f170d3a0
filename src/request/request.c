/* request.c - checks a SystemOne request and puts its options into scoring order.
 *
 * In: a JSON body.  Out: the state, and per question its kind, instructions and options.
 *
 * The order of the checks is the reference's, so that a body with several faults is refused for the
 * same one: model and state, questions, then type and criteria of every question in turn; only
 * after all of them come pictures and what stands inside the criteria, which the reference meets
 * while it encodes. Where the reference has a sentence of its own, that sentence follows the path
 * word for word.
 *
 * Three things are easy to get wrong:
 *   - choice options are scored sorted by code point but answered as asked; `asked` keeps that
 * order;
 *   - "falsy" is Python's word: criteria of 0, false, "", [] or {} count as missing;
 *   - a null description is left out of the prompt, an empty one stays.
 *
 * Where the reference crashes or reads something by accident (an object for a score, an array for a
 * choice), the request is refused. The number of questions and options is bounded by tokens only.
 */
#include "request/request.h"

#include <assert.h>
#include <stdio.h>

#include "base/utf8.h"

static const char *const KIND_NAMES[] = {"noul", "choice", "score"};
enum { N_KINDS = 3 };

/* The descriptions of a noul that gives none, in scoring order. */
static const struct {
    str id;
    json description;
} NOUL_OPTIONS[] = {
#define TEXT(s) \
    { (s), sizeof(s) - 1 }
    {TEXT("true"),
     {.kind = JSON_STRING, .text = TEXT("The proposition is true or the answer is yes.")}},
    {TEXT("false"),
     {.kind = JSON_STRING, .text = TEXT("The proposition is false or the answer is no.")}},
#undef TEXT
};
enum { N_NOUL = sizeof NOUL_OPTIONS / sizeof NOUL_OPTIONS[0] };

const char *question_kind_name(question_kind kind) {
    return KIND_NAMES[kind];
}

shown_name request_show(str name) {
    enum { SHOWN = 80, NUL_SHOWN = 4 };
    shown_name shown;
    size_t used = 0, at = 0;
    while (at < name.n) {
        uint32_t point;
        const size_t decoded = utf8_decode(&point, name.p + at, name.n - at);
        const size_t width = decoded == 0 ? 1 : decoded;
        if (used + NUL_SHOWN > SHOWN) {
            memcpy(shown.text + used, "...", 3);
            used += 3;
            break;
        }
        if (name.p[at] == '\0') {
            memcpy(shown.text + used, "\\x00", NUL_SHOWN);
            used += NUL_SHOWN;
        } else {
            memcpy(shown.text + used, name.p + at, width);
            used += width;
        }
        at += width;
    }
    shown.text[used] = '\0';
    return shown;
}

/* What stands in the request, for a sentence; `v` is NULL when the member is missing. */
static const char *found(const json *v) {
    if (v == NULL) return "nothing";
    if (v->kind == JSON_STRING && v->text.n == 0) return "an empty string";
    if (v->kind == JSON_ARRAY && v->n == 0) return "an empty array";
    if (v->kind == JSON_OBJECT && v->n == 0) return "an empty object";
    return json_kind_name(v);
}

static bool is_null(const json *v) {
    return v == NULL || v->kind == JSON_NULL;
}

/* Whether Python takes the value for false in a condition; a missing one counts. */
static bool is_falsy(const json *v) {
    double number = 0;
    if (v == NULL) return true;
    switch (v->kind) {
    case JSON_NULL:
    case JSON_FALSE:
        return true;
    case JSON_TRUE:
        return false;
    case JSON_STRING:
        return v->text.n == 0;
    case JSON_ARRAY:
    case JSON_OBJECT:
        return v->n == 0;
    case JSON_NUMBER:
        return json_double(&number, v) && number == 0;
    }
    return false;
}

/* ---- the checks before anything is encoded --------------------------------------------------- */

static clef_status check_record(request *rq, const json *root, const json **questions,
                                clef_error *err) {
    if (root->kind != JSON_OBJECT)
        return clef_fail(err, CLEF_ERR_INPUT, "request: must be an object; found %s", found(root));
    const json *model = json_get(root, STR("model"));
    if (model == NULL || model->kind != JSON_STRING)
        return clef_fail(err, CLEF_ERR_INPUT,
                         "model: model and state are required; a model is a string, found %s",
                         found(model));
    rq->model = model->text;
    rq->state = json_get(root, STR("state"));
    if (rq->state == NULL)
        return clef_fail(err, CLEF_ERR_INPUT, "state: model and state are required; found nothing");
    *questions = json_get(root, STR("questions"));
    if (*questions == NULL || (*questions)->kind != JSON_OBJECT || (*questions)->n == 0)
        return clef_fail(err, CLEF_ERR_INPUT,
                         "questions: at least one question is required; found %s",
                         found(*questions));
    return CLEF_OK;
}

static clef_status check_type_and_criteria(question *q, const json *node, clef_error *err) {
    const shown_name id = request_show(q->id);
    if (node->kind != JSON_OBJECT)
        return clef_fail(err, CLEF_ERR_INPUT,
                         "questions.%s: a question must be an object; found %s", id.text,
                         found(node));
    const json *type = json_get(node, STR("type"));
    int kind = 0;
    while (kind < N_KINDS && !(type != NULL && type->kind == JSON_STRING &&
                               str_equal(type->text, str_of(KIND_NAMES[kind]))))
        kind++;
    if (kind == N_KINDS) {
        const bool named = type != NULL && type->kind == JSON_STRING;
        return clef_fail(err, CLEF_ERR_INPUT,
                         "questions.%s.type: %s: type must be noul, choice, or score; found %s%s%s",
                         id.text, id.text, named ? "'" : "",
                         named ? request_show(type->text).text : found(type), named ? "'" : "");
    }
    q->kind = (question_kind)kind;
    const json *criteria = json_get(node, STR("criteria"));
    if (q->kind != QUESTION_NOUL && is_falsy(criteria))
        return clef_fail(err, CLEF_ERR_INPUT,
                         "questions.%s.criteria: %s: criteria must not be empty; found %s", id.text,
                         id.text, found(criteria));
    return CLEF_OK;
}

/* ---- options in scoring order ---------------------------------------------------------------- */

static clef_status read_noul(option *options, uint32_t *asked, const str id, const json *criteria,
                             clef_error *err) {
    const bool given = !is_falsy(criteria);
    if (given && criteria->kind != JSON_OBJECT)
        return clef_fail(err, CLEF_ERR_INPUT,
                         "questions.%s.criteria: a noul takes an object with a description of "
                         "'true', of 'false' or of both; found %s",
                         request_show(id).text, found(criteria));
    for (uint32_t i = 0; i < N_NOUL; i++) {
        const json *own = given ? json_get(criteria, NOUL_OPTIONS[i].id) : NULL;
        const json *description = own == NULL ? &NOUL_OPTIONS[i].description : own;
        options[i].id = NOUL_OPTIONS[i].id;
        options[i].description = description;
        asked[i] = i;
    }
    return CLEF_OK;
}

static clef_status read_choice(option *options, uint32_t *asked, const json *criteria, arena *mem,
                               clef_error *err) {
    const uint32_t n = criteria->n;
    json_place *sorted = arena_alloc(mem, n, 2 * sizeof *sorted); /* the upper half is scratch */
    if (sorted == NULL) return clef_fail_memory(err);
    uint32_t i = 0;
    for (const json *m = criteria->first; m != NULL; m = m->next, i++)
        sorted[i] = (json_place){m, i};
    json_sort(sorted, sorted + n, n);
    for (i = 0; i < n; i++) {
        const json *m = sorted[i].member;
        options[i] = (option){.id = m->name, .description = m};
        asked[sorted[i].place] = i;
    }
    return CLEF_OK;
}

static clef_status read_score(option *options, uint32_t *asked, const json *criteria, arena *mem,
                              clef_error *err) {
    uint32_t i = 0;
    for (const json *level = criteria->first; level != NULL; level = level->next, i++) {
        char digits[16];
        const int n = snprintf(digits, sizeof digits, "%u", i);
        options[i].id = arena_copy(mem, (str){digits, (size_t)n});
        if (options[i].id.p == NULL) return clef_fail_memory(err);
        options[i].description = level;
        asked[i] = i;
    }
    return CLEF_OK;
}

static clef_status read_question(question *q, const json *node, arena *mem, clef_error *err) {
    const json *instructions = json_get(node, STR("instructions"));
    const bool blank =
        is_null(instructions) || (instructions->kind == JSON_STRING && instructions->text.n == 0);
    q->instructions = blank ? NULL : instructions;
    /* An empty instruction span has no mean, and its NaN would reach every question. */
    if (blank && q->id.n == 0)
        return clef_fail(err, CLEF_ERR_INPUT,
                         "questions: a question with an empty id needs instructions; found %s",
                         found(instructions));
    const json *criteria = json_get(node, STR("criteria"));
    if (q->kind == QUESTION_CHOICE && criteria->kind != JSON_OBJECT)
        return clef_fail(err, CLEF_ERR_INPUT,
                         "questions.%s.criteria: a choice needs an object of option to "
                         "description; found %s",
                         request_show(q->id).text, found(criteria));
    if (q->kind == QUESTION_SCORE && criteria->kind != JSON_ARRAY)
        return clef_fail(err, CLEF_ERR_INPUT,
                         "questions.%s.criteria: a score needs a list of levels, lowest first; "
                         "found %s",
                         request_show(q->id).text, found(criteria));
    q->n_options = q->kind == QUESTION_NOUL ? N_NOUL : criteria->n;
    option *options = arena_alloc(mem, q->n_options, sizeof *options);
    uint32_t *asked = arena_alloc(mem, q->n_options, sizeof *asked);
    if (options == NULL || asked == NULL) return clef_fail_memory(err);
    q->options = options;
    q->asked = asked;
    switch (q->kind) {
    case QUESTION_NOUL:
        return read_noul(options, asked, q->id, criteria, err);
    case QUESTION_CHOICE:
        return read_choice(options, asked, criteria, mem, err);
    case QUESTION_SCORE:
        return read_score(options, asked, criteria, mem, err);
    }
    return CLEF_OK;
}

clef_status request_parse(request *out, str body, arena *mem, clef_error *err) {
    /* Every option takes more than one byte, so all counts below fit 32 bits. */
    if (body.n > UINT32_MAX)
        return clef_fail(err, CLEF_ERR_LIMIT, "request: %zu bytes, the limit is %lu", body.n,
                         (unsigned long)UINT32_MAX);
    const json_limits limits = {
        .max_depth = REQUEST_MAX_DEPTH,
        .allow_nonfinite = true,
        .allow_bom = true,
        .duplicates = JSON_LAST_WINS,
    };
    const json *root = NULL, *members = NULL;
    request rq = {0};
    TRY(json_parse(&root, body, "request", &limits, mem, err));
    TRY(check_record(&rq, root, &members, err));
    assert(members != NULL);
    question *questions = arena_alloc(mem, members->n, sizeof *questions);
    if (questions == NULL) return clef_fail_memory(err);
    for (const json *m = members->first; m != NULL; m = m->next) {
        question *q = &questions[rq.n_questions++];
        q->id = m->name;
        TRY(check_type_and_criteria(q, m, err));
    }
    TRY(pictures_read(&rq.media, root, mem, err));
    question *q = questions;
    for (const json *m = members->first; m != NULL; m = m->next, q++) {
        TRY(read_question(q, m, mem, err));
        rq.n_options += q->n_options;
    }
    rq.questions = questions;
    *out = rq;
    return CLEF_OK;
}
