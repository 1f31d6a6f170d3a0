/* fixture.c - reads recorded runs and checks that they say what the gate relies on.
 *
 * In: {"schema", "records": [{"id", "request", "tokens", "ids", "questions": [{"question_id",
 * "type", "question_span", "option_ids", "option_spans", "probs"}]}]}. Members that the gate does
 * not read (logits, the answer, notes, licences) may be there. `ids` may be missing or null: some
 * publishers withhold them. A run with pictures names them in `image_files` and says how many
 * rows they became in `n_image_tokens`; the pixels are not in the file. `image_sha256`, where it is
 * there, holds the hashes of the files.
 *
 * Traps: the oracle's choice and margin are taken from `probs`, not from the members that repeat
 * them; a list of probabilities that does not add up to one is a broken recording and is refused,
 * because every bar would be measured against it. */
#include "engine/fixture.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/file.h"
#include "text/pyjson.h"

#define MAX_FILE_BYTES ((size_t)1 << 30)

static const char *const schemas[] = {"coreai-clef-flash-fixtures/1",
                                      "clef-decision-contract-vectors/1"};
static const double most_sum_error = 1e-3;

/* Where a value stands, for error sentences. */
typedef struct {
    const char *file;
    uint32_t record, question;
    bool in_question;
    arena *mem;
    clef_error *err;
} place;

static clef_status wrong(const place *at, const char *member, const json *found,
                         const char *wanted) {
    const char *kind = found == NULL ? "missing" : json_kind_name(found);
    if (at->in_question)
        return clef_fail(at->err, CLEF_ERR_FORMAT,
                         "%s: records[%u].questions[%u].%s: %s, wanted %s", at->file, at->record,
                         at->question, member, kind, wanted);
    return clef_fail(at->err, CLEF_ERR_FORMAT, "%s: records[%u].%s: %s, wanted %s", at->file,
                     at->record, member, kind, wanted);
}

static clef_status get_text(str *out, const place *at, const json *object, const char *name) {
    const json *v = json_get(object, str_of(name));
    if (v == NULL || v->kind != JSON_STRING) return wrong(at, name, v, "a string");
    *out = v->text;
    return CLEF_OK;
}

static clef_status get_array(const json **out, const place *at, const json *object,
                             const char *name) {
    const json *v = json_get(object, str_of(name));
    if (v == NULL || v->kind != JSON_ARRAY) return wrong(at, name, v, "an array");
    if (v->n == 0) return wrong(at, name, v, "one that is not empty");
    *out = v;
    return CLEF_OK;
}

static clef_status get_span(span *out, const place *at, const json *pair, const char *name,
                            uint32_t n_tokens) {
    uint64_t begin = 0, end = 0;
    if (pair == NULL || pair->kind != JSON_ARRAY || pair->n != 2 ||
        !json_u64(&begin, pair->first, UINT32_MAX) ||
        !json_u64(&end, pair->first->next, n_tokens) || begin >= end)
        return wrong(at, name, pair, "[begin, end] with begin < end, inside the row");
    *out = (span){(uint32_t)begin, (uint32_t)end};
    return CLEF_OK;
}

/* ---- questions ---- */

static clef_status get_kind(question_kind *out, const place *at, const json *q) {
    str name;
    TRY(get_text(&name, at, q, "type"));
    for (int k = QUESTION_NOUL; k <= QUESTION_SCORE; k++)
        if (str_equal(name, str_of(question_kind_name((question_kind)k)))) {
            *out = (question_kind)k;
            return CLEF_OK;
        }
    return wrong(at, "type", json_get(q, STR("type")), "noul, choice or score");
}

static clef_status get_probabilities(double *out, const place *at, const json *list) {
    double sum = 0;
    uint32_t i = 0;
    for (const json *v = list->first; v != NULL; v = v->next, i++) {
        if (!json_double(&out[i], v) || !(out[i] >= 0 && out[i] <= 1))
            return wrong(at, "probs", v, "numbers from 0 to 1");
        sum += out[i];
    }
    if (fabs(sum - 1) <= most_sum_error) return CLEF_OK;
    return clef_fail(at->err, CLEF_ERR_FORMAT,
                     "%s: records[%u].questions[%u].probs: they add up to %.6g, wanted 1", at->file,
                     at->record, at->question, sum);
}

static clef_status read_question(fixture_question *out, const place *at, const json *q,
                                 uint32_t n_tokens) {
    const json *ids = NULL, *spans = NULL, *probs = NULL;
    TRY(get_text(&out->id, at, q, "question_id"));
    TRY(get_kind(&out->kind, at, q));
    TRY(get_span(&out->instructions, at, json_get(q, STR("question_span")), "question_span",
                 n_tokens));
    TRY(get_array(&ids, at, q, "option_ids"));
    TRY(get_array(&spans, at, q, "option_spans"));
    TRY(get_array(&probs, at, q, "probs"));
    if (ids->n != spans->n) return wrong(at, "option_spans", spans, "as many as option_ids");
    if (ids->n != probs->n) return wrong(at, "probs", probs, "as many as option_ids");
    str *names = arena_alloc(at->mem, ids->n, sizeof *names);
    span *places = arena_alloc(at->mem, ids->n, sizeof *places);
    double *probabilities = arena_alloc(at->mem, ids->n, sizeof *probabilities);
    if (names == NULL || places == NULL || probabilities == NULL) return clef_fail_memory(at->err);
    const json *name = ids->first, *pair = spans->first;
    for (uint32_t i = 0; i < ids->n; i++, name = name->next, pair = pair->next) {
        if (name->kind != JSON_STRING) return wrong(at, "option_ids", name, "strings");
        names[i] = name->text;
        TRY(get_span(&places[i], at, pair, "option_spans", n_tokens));
    }
    TRY(get_probabilities(probabilities, at, probs));
    out->n_options = ids->n;
    out->options = names;
    out->spans = places;
    out->probabilities = probabilities;
    return CLEF_OK;
}

/* ---- runs ---- */

static clef_status read_ids(fixture_run *out, const place *at, const json *record) {
    const json *v = json_get(record, STR("ids"));
    if (v == NULL || v->kind == JSON_NULL) return CLEF_OK; /* withheld */
    if (v->kind != JSON_ARRAY || v->n != out->n_tokens)
        return wrong(at, "ids", v, "as many ids as `tokens` says, or null");
    int32_t *ids = arena_alloc(at->mem, v->n, sizeof *ids);
    if (ids == NULL) return clef_fail_memory(at->err);
    uint32_t i = 0;
    for (const json *id = v->first; id != NULL; id = id->next) {
        uint64_t value = 0;
        if (!json_u64(&value, id, INT32_MAX)) return wrong(at, "ids", id, "token ids");
        ids[i++] = (int32_t)value;
    }
    out->ids = ids;
    return CLEF_OK;
}

static clef_status get_count(uint32_t *out, const place *at, const json *record, const char *name) {
    const json *v = json_get(record, str_of(name));
    uint64_t value = 0;
    if (!json_u64(&value, v, INT32_MAX)) return wrong(at, name, v, "a whole number");
    *out = (uint32_t)value;
    return CLEF_OK;
}

static bool names_media(const json *body) {
    static const char *const members[] = {"images", "videos"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const json *v = json_get(body, str_of(members[i]));
        if (v != NULL && v->kind != JSON_NULL && !(v->kind == JSON_ARRAY && v->n == 0)) return true;
    }
    return false;
}

/* Fills out[n] with the texts of an array; one that is missing leaves them empty. */
static clef_status get_texts(str *out, uint32_t n, const place *at, const json *record,
                             const char *name) {
    const json *list = json_get(record, str_of(name));
    if (list == NULL) return CLEF_OK;
    if (list->kind != JSON_ARRAY || list->n != n) return wrong(at, name, list, "one for each file");
    for (const json *v = list->first; v != NULL; v = v->next) {
        if (v->kind != JSON_STRING) return wrong(at, name, v, "strings");
        *out++ = v->text;
    }
    return CLEF_OK;
}

static clef_status read_image_files(fixture_run *out, const place *at, const json *record) {
    const json *files = json_get(record, STR("image_files"));
    if (files == NULL || files->kind == JSON_NULL) return CLEF_OK;
    if (files->kind != JSON_ARRAY) return wrong(at, "image_files", files, "an array");
    if (files->n == 0) return CLEF_OK;
    str *names = arena_alloc(at->mem, files->n, sizeof *names);
    str *hashes = arena_alloc(at->mem, files->n, sizeof *hashes);
    if (names == NULL || hashes == NULL) return clef_fail_memory(at->err);
    TRY(get_texts(names, files->n, at, record, "image_files"));
    TRY(get_texts(hashes, files->n, at, record, "image_sha256"));
    for (uint32_t i = 0; i < files->n; i++)
        if (names[i].n == 0 || memchr(names[i].p, '/', names[i].n) != NULL ||
            memchr(names[i].p, '\0', names[i].n) != NULL)
            return wrong(at, "image_files", files, "names without a folder");
    out->image_files = names;
    out->image_hashes = hashes;
    out->n_image_files = files->n;
    return CLEF_OK;
}

static clef_status read_request(fixture_run *out, const place *at, const json *record) {
    const json *v = json_get(record, STR("request"));
    if (v == NULL || v->kind != JSON_OBJECT) return wrong(at, "request", v, "an object");
    out->pictured = out->image_tokens > 0 || names_media(v);
    TRY(read_image_files(out, at, record));
    if (out->n_image_files > 0) out->pictured = true;
    if (out->n_image_files > 1) out->image_tokens = 0; /* the sum of all of them */
    buf text = {0};
    clef_status s = pyjson_write(&text, v, PYJSON_ANSWER, at->err);
    if (s == CLEF_OK) s = buf_status(&text, at->err);
    if (s == CLEF_OK) {
        out->body = arena_copy(at->mem, (str){text.p, text.n});
        if (out->body.p == NULL) s = clef_fail_memory(at->err);
    }
    buf_free(&text);
    return s;
}

static clef_status read_run(fixture_run *out, place *at, const json *record) {
    *out = (fixture_run){.file = at->file};
    if (record->kind != JSON_OBJECT)
        return clef_fail(at->err, CLEF_ERR_FORMAT, "%s: records[%u]: %s, wanted an object",
                         at->file, at->record, json_kind_name(record));
    TRY(get_text(&out->id, at, record, "id"));
    TRY(get_count(&out->n_tokens, at, record, "tokens"));
    if (json_get(record, STR("n_image_tokens")) != NULL)
        TRY(get_count(&out->image_tokens, at, record, "n_image_tokens"));
    TRY(read_request(out, at, record));
    TRY(read_ids(out, at, record));
    const json *list = NULL;
    TRY(get_array(&list, at, record, "questions"));
    fixture_question *questions = arena_alloc(at->mem, list->n, sizeof *questions);
    if (questions == NULL) return clef_fail_memory(at->err);
    at->in_question = true;
    at->question = 0;
    for (const json *q = list->first; q != NULL; q = q->next, at->question++) {
        TRY(read_question(&questions[at->question], at, q, out->n_tokens));
        out->n_options += questions[at->question].n_options;
    }
    at->in_question = false;
    out->questions = questions;
    out->n_questions = list->n;
    return CLEF_OK;
}

/* ---- the file ---- */

static clef_status check_schema(const json *root, const char *path, clef_error *err) {
    if (root->kind != JSON_OBJECT)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: %s, wanted an object", path,
                         json_kind_name(root));
    const json *v = json_get(root, STR("schema"));
    if (v == NULL || v->kind != JSON_STRING)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: schema: %s, wanted \"%s\"", path,
                         v == NULL ? "missing" : json_kind_name(v), schemas[0]);
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++)
        if (str_equal(v->text, str_of(schemas[i]))) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_FORMAT, "%s: schema: \"%s\", wanted \"%s\"", path,
                     request_show(v->text).text, schemas[0]);
}

static clef_status read_runs(fixture_list *list, const json *root, const char *path, arena *mem,
                             clef_error *err) {
    TRY(check_schema(root, path, err));
    const json *records = json_get(root, STR("records"));
    if (records == NULL || records->kind != JSON_ARRAY || records->n == 0)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: records: %s, wanted an array of runs", path,
                         records == NULL               ? "missing"
                         : records->kind == JSON_ARRAY ? "empty"
                                                       : json_kind_name(records));
    fixture_run *runs = array_grow(list->runs, &list->cap, list->n + records->n, sizeof *runs);
    if (runs == NULL) return clef_fail_memory(err);
    list->runs = runs;
    place at = {.file = path, .mem = mem, .err = err};
    for (const json *r = records->first; r != NULL; r = r->next, at.record++)
        TRY(read_run(&list->runs[list->n + at.record], &at, r));
    list->n += records->n;
    return CLEF_OK;
}

clef_status fixture_parse(fixture_list *list, str text, const char *label, arena *mem,
                          clef_error *err) {
    const json *root = NULL;
    const json_limits limits = {0};
    const clef_status s = json_parse(&root, text, label, &limits, mem, err);
    if (s == CLEF_ERR_INPUT || s == CLEF_ERR_LIMIT) {
        /* A file that is no JSON is a fault of the file, not of a request. */
        if (err != NULL) err->status = CLEF_ERR_FORMAT;
        return CLEF_ERR_FORMAT;
    }
    TRY(s);
    return read_runs(list, root, label, mem, err);
}

clef_status fixture_load(fixture_list *list, const char *path, arena *mem, clef_error *err) {
    buf text = {0};
    clef_status s = file_read(&text, path, MAX_FILE_BYTES, err);
    if (s == CLEF_OK) s = fixture_parse(list, (str){text.p, text.n}, path, mem, err);
    buf_free(&text);
    return s;
}

void fixture_list_free(fixture_list *list) {
    free(list->runs);
    *list = (fixture_list){0};
}
