/* check.c - see check.h.
 *
 * The library answers whatever the vendor's reference answers. Clients of the HTTP API rely on
 * more: no null where their types have none, no number that is not finite, caps that keep a
 * response readable. All of that is refused here, each fault with the path that the API's error
 * lists use: the type of a question stands behind its id when it is known.
 *
 * Optional members that are null count as absent. Members that are not known are ignored, and left
 * out of what is written for the engine, so that a tracing id does not make two requests differ. */
#include "server/check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/utf8.h"
#include "request/request.h"
#include "text/pyjson.h"

enum { MAX_PROBLEMS = 20, SHOWN_NAME = 256 };

/* ---- problems ------------------------------------------------------------------------------ */

/* A name of any length as a JSON string; a long one ends in "...". */
static void add_name(buf *out, str name) {
    if (name.n <= SHOWN_NAME) {
        pyjson_string(out, name);
        return;
    }
    size_t at = 0;
    uint32_t point;
    while (at + 4 < SHOWN_NAME) at += utf8_decode(&point, name.p + at, name.n - at);
    buf shown = {0};
    buf_add(&shown, name.p, at);
    buf_add_text(&shown, "...");
    pyjson_string(out, (str){shown.p, shown.n});
    if (shown.failed) out->failed = true;
    buf_free(&shown);
}

static void add_place(buf *out, const check_place *where) {
    enum { DEEPEST = 8 };
    const check_place *path[DEEPEST];
    size_t n = 0;
    for (; where != NULL && n < DEEPEST; where = where->outer) path[n++] = where;
    buf_add_text(out, "[\"body\"");
    while (n-- > 0) {
        buf_add_text(out, ", ");
        if (path[n]->name.p != NULL)
            add_name(out, path[n]->name);
        else
            buf_printf(out, "%zu", path[n]->index);
    }
    buf_add_char(out, ']');
}

void problem_add(problems *p, const check_place *where, const char *type, const char *format, ...) {
    if (p->n++ >= MAX_PROBLEMS) return;
    char msg[1100];
    va_list list;
    va_start(list, format);
    vsnprintf(msg, sizeof msg, format, list);
    va_end(list);
    if (p->n > 1) buf_add_text(&p->list, ", ");
    buf_add_text(&p->list, "{\"loc\": ");
    add_place(&p->list, where);
    buf_add_text(&p->list, ", \"msg\": ");
    const size_t n = strlen(msg);
    pyjson_string(&p->list, (str){msg, utf8_check(msg, n)}); /* a cut character is left out */
    buf_add_text(&p->list, ", \"type\": ");
    pyjson_string(&p->list, str_of(type));
    buf_add_char(&p->list, '}');
}

/* ---- JSON ---------------------------------------------------------------------------------- */

/* The offset in a sentence of json_parse: "request: byte 12: ...". */
static bool offset_of(size_t *out, const char *sentence) {
    const char *at = strstr(sentence, ": byte ");
    if (at == NULL) return false;
    *out = strtoul(at + strlen(": byte "), NULL, 10);
    return true;
}

/* A number that no double holds becomes infinite, and infinity is no JSON. */
static const json *find_overflow(const json *root, const json **stack, size_t room) {
    size_t n = 0;
    const json *v = root;
    for (;;) {
        double value;
        /* Fewer than 300 characters and no exponent: it cannot overflow. */
        const bool large = v->kind == JSON_NUMBER &&
                           (v->text.n > 300 || memchr(v->text.p, 'e', v->text.n) != NULL ||
                            memchr(v->text.p, 'E', v->text.n) != NULL);
        const bool integer = large && strcspn(v->text.p, ".eE") >= v->text.n;
        if (large && !integer && json_double(&value, v) && !isfinite(value)) return v;
        if ((v->kind == JSON_ARRAY || v->kind == JSON_OBJECT) && v->n > 0) {
            if (n == room) return v; /* cannot be: the parser holds the depth */
            stack[n++] = v;
            v = v->first;
            continue;
        }
        while (n > 0 && v->next == NULL) v = stack[--n];
        if (n == 0) return NULL;
        v = v->next;
    }
}

clef_status check_parse(const json **out, str body, const check_limits *limits, arena *mem,
                        problems *p, clef_error *err) {
    const json_limits rules = {.max_depth = limits->max_depth, .allow_bom = true};
    const json *root = NULL;
    clef_error why = {0};
    mem->max_bytes = limits->max_tree_bytes;
    const clef_status s = json_parse(&root, body, "JSON", &rules, mem, &why);
    if (s == CLEF_ERR_MEMORY) return clef_fail_memory(err);
    if (s != CLEF_OK) {
        check_place at = {0};
        const bool known = offset_of(&at.index, why.text);
        problem_add(p, known ? &at : NULL, s == CLEF_ERR_LIMIT ? "too_complex" : "json_invalid",
                    "%s", why.text);
        return CLEF_OK;
    }
    const json **stack = arena_alloc(mem, limits->max_depth, sizeof(const json *));
    if (stack == NULL) return clef_fail_memory(err);
    const json *overflow = find_overflow(root, stack, limits->max_depth);
    if (overflow != NULL) {
        const check_place at = {.index = overflow->at};
        problem_add(p, &at, "finite_number", "byte %zu: a number that no double holds",
                    overflow->at);
        return CLEF_OK;
    }
    *out = root;
    return CLEF_OK;
}

/* ---- fields -------------------------------------------------------------------------------- */

/* The member, or NULL when it is absent or null. */
static const json *get(const json *object, const char *name) {
    const json *v = json_get(object, str_of(name));
    return v == NULL || v->kind == JSON_NULL ? NULL : v;
}

static bool is_text(const json *v) {
    return v->kind == JSON_STRING || v->kind == JSON_ARRAY || v->kind == JSON_OBJECT;
}

static void check_model(checked *out, const json *root, const check_place *where,
                        const check_limits *limits, problems *p) {
    const check_place at = {where, STR("model"), 0};
    const json *v = get(root, "model");
    if (v == NULL) {
        if (limits->strict) problem_add(p, &at, "missing", "Field required");
        return;
    }
    if (v->kind != JSON_STRING) {
        problem_add(p, &at, "string_type", "needs a string, found %s", json_kind_name(v));
        return;
    }
    out->model = str_trim(v->text);
    if (out->model.n == 0) problem_add(p, &at, "string_too_short", "a blank name");
}

static void check_state(checked *out, const json *root, const check_place *where, problems *p) {
    const check_place at = {where, STR("state"), 0};
    out->state = json_get(root, STR("state"));
    if (out->state == NULL)
        problem_add(p, &at, "missing", "Field required");
    else if (!is_text(out->state))
        problem_add(p, &at, "state_type", "needs a string, an object or an array, found %s",
                    json_kind_name(out->state));
}

static void check_noul(const json *criteria, const check_place *at, problems *p) {
    static const char *const SIDES[] = {"true", "false"};
    if (criteria == NULL) return;
    if (criteria->kind != JSON_OBJECT) {
        problem_add(p, at, "object_type",
                    "a noul takes an object with descriptions of \"true\" and \"false\", found %s",
                    json_kind_name(criteria));
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        const json *side = get(criteria, SIDES[i]);
        const check_place inner = {at, str_of(SIDES[i]), 0};
        if (side != NULL && !is_text(side))
            problem_add(p, &inner, "description_type",
                        "a description is a string, an object, an array or null, found %s",
                        json_kind_name(side));
    }
}

static void check_choice(const json *criteria, const check_place *at, uint32_t max, problems *p) {
    if (criteria->kind != JSON_OBJECT) {
        problem_add(p, at, "object_type",
                    "a choice needs an object of option to description, found %s",
                    json_kind_name(criteria));
        return;
    }
    if (criteria->n == 0 || criteria->n > max)
        problem_add(p, at, criteria->n == 0 ? "too_short" : "too_long",
                    "needs between 1 and %u options, got %u", max, criteria->n);
    for (const json *m = criteria->first; m != NULL; m = m->next) {
        const check_place inner = {at, m->name, 0};
        if (m->kind != JSON_NULL && !is_text(m))
            problem_add(p, &inner, "description_type",
                        "a description is a string, an object, an array or null, found %s",
                        json_kind_name(m));
    }
}

static void check_score(const json *criteria, const check_place *at, uint32_t max, problems *p) {
    if (criteria->kind != JSON_ARRAY) {
        problem_add(p, at, "array_type", "a score needs a list of levels, lowest first, found %s",
                    json_kind_name(criteria));
        return;
    }
    if (criteria->n == 0 || criteria->n > max)
        problem_add(p, at, criteria->n == 0 ? "too_short" : "too_long",
                    "needs between 1 and %u levels, got %u", max, criteria->n);
    size_t i = 0;
    for (const json *level = criteria->first; level != NULL; level = level->next, i++) {
        const check_place inner = {.outer = at, .index = i};
        if (!is_text(level))
            problem_add(p, &inner, "description_type",
                        "a level is a string, an object or an array, found %s",
                        json_kind_name(level));
    }
}

static void check_question(const json *q, const check_place *questions, const check_limits *limits,
                           problems *p) {
    const check_place at = {questions, q->name, 0};
    if (q->name.n == 0) problem_add(p, &at, "string_too_short", "an empty question id");
    if (q->kind != JSON_OBJECT) {
        problem_add(p, &at, "object_type", "a question is an object, found %s", json_kind_name(q));
        return;
    }
    const json *type = get(q, "type");
    const check_place type_at = {&at, STR("type"), 0};
    if (type == NULL) {
        problem_add(p, &type_at, "missing", "Field required");
        return;
    }
    question_kind kind = QUESTION_NOUL;
    while (kind <= QUESTION_SCORE &&
           !(type->kind == JSON_STRING && str_equal(type->text, str_of(question_kind_name(kind)))))
        kind++;
    if (kind > QUESTION_SCORE) {
        problem_add(p, &type_at, "literal_error", "wanted noul, choice or score");
        return;
    }
    const check_place typed = {&at, str_of(question_kind_name(kind)), 0};
    const check_place instructions_at = {&typed, STR("instructions"), 0};
    const check_place criteria_at = {&typed, STR("criteria"), 0};
    const json *instructions = get(q, "instructions"), *criteria = get(q, "criteria");
    if (instructions != NULL && !is_text(instructions))
        problem_add(p, &instructions_at, "instructions_type",
                    "needs a string, an object, an array or null, found %s",
                    json_kind_name(instructions));
    if (kind == QUESTION_NOUL)
        check_noul(criteria, &criteria_at, p);
    else if (criteria == NULL)
        problem_add(p, &criteria_at, "missing", "Field required");
    else if (kind == QUESTION_CHOICE)
        check_choice(criteria, &criteria_at, limits->max_options, p);
    else
        check_score(criteria, &criteria_at, limits->max_levels, p);
}

static void check_questions(checked *out, const json *root, const check_place *where,
                            const check_limits *limits, problems *p) {
    const check_place at = {where, STR("questions"), 0};
    out->questions = get(root, "questions");
    if (out->questions == NULL) {
        problem_add(p, &at, "missing", "Field required");
        return;
    }
    if (out->questions->kind != JSON_OBJECT) {
        problem_add(p, &at, "object_type", "needs an object of id to question, found %s",
                    json_kind_name(out->questions));
        return;
    }
    if (out->questions->n == 0 || out->questions->n > limits->max_questions) {
        problem_add(p, &at, out->questions->n == 0 ? "too_short" : "too_long",
                    "needs between 1 and %u questions, got %u", limits->max_questions,
                    out->questions->n);
        return;
    }
    for (const json *q = out->questions->first; q != NULL; q = q->next)
        check_question(q, &at, limits, p);
}

/* Pictures and videos: their shape. What they hold is the library's to say. */
static void check_media(checked *out, const json *root, const check_place *where,
                        const check_limits *limits, problems *p) {
    const check_place images_at = {where, STR("images"), 0};
    const check_place videos_at = {where, STR("videos"), 0};
    out->images = get(root, "images");
    out->videos = get(root, "videos");
    out->media_kwargs = get(root, "media_kwargs");
    if (out->images != NULL && out->images->kind != JSON_ARRAY)
        problem_add(p, &images_at, "array_type", "needs an array, found %s",
                    json_kind_name(out->images));
    else if (out->images != NULL && out->images->n > limits->max_images)
        problem_add(p, &images_at, "too_long", "at most %u images, got %u", limits->max_images,
                    out->images->n);
    if (out->videos != NULL && out->videos->kind != JSON_ARRAY)
        problem_add(p, &videos_at, "array_type", "needs an array, found %s",
                    json_kind_name(out->videos));
}

static void check_options(checked *out, const json *root, const check_place *where, problems *p) {
    const check_place truncate_at = {where, STR("truncate"), 0};
    const check_place truncation_at = {where, STR("truncation"), 0};
    const check_place stream_at = {where, STR("stream"), 0};
    const json *truncate = get(root, "truncate"), *truncation = get(root, "truncation");
    const json *stream = get(root, "stream");
    if (truncate != NULL && truncate->kind != JSON_TRUE && truncate->kind != JSON_FALSE)
        problem_add(p, &truncate_at, "bool_type", "needs true or false, found %s",
                    json_kind_name(truncate));
    else if (truncate != NULL)
        out->truncate = truncate->kind == JSON_TRUE ? CHECK_TRUNCATE : CHECK_NO_TRUNCATE;
    if (truncation != NULL) {
        const bool tail =
            truncation->kind == JSON_STRING && str_equal(truncation->text, STR("state_tail"));
        const bool none =
            truncation->kind == JSON_STRING && str_equal(truncation->text, STR("none"));
        if (!tail && !none)
            problem_add(p, &truncation_at, "literal_error", "wanted \"state_tail\" or \"none\"");
        else if (truncate != NULL && (out->truncate == CHECK_TRUNCATE) != tail)
            problem_add(p, &truncation_at, "value_error", "says otherwise than \"truncate\"");
        else
            out->truncate = tail ? CHECK_TRUNCATE : CHECK_NO_TRUNCATE;
    }
    if (stream != NULL && stream->kind == JSON_TRUE)
        problem_add(p, &stream_at, "value_error", "nothing here streams");
    else if (stream != NULL && stream->kind != JSON_FALSE)
        problem_add(p, &stream_at, "bool_type", "needs false or null, found %s",
                    json_kind_name(stream));
}

bool check_request(checked *out, const json *root, const check_place *where,
                   const check_limits *limits, problems *p) {
    const size_t before = p->n;
    *out = (checked){0};
    if (root->kind != JSON_OBJECT) {
        problem_add(p, where, "object_type", "a request is an object, found %s",
                    json_kind_name(root));
        return false;
    }
    check_model(out, root, where, limits, p);
    check_state(out, root, where, p);
    check_questions(out, root, where, limits, p);
    check_media(out, root, where, limits, p);
    check_options(out, root, where, p);
    return p->n == before;
}

/* ---- writing ------------------------------------------------------------------------------- */

static clef_status write_member(buf *out, const char *name, const json *v, clef_error *err) {
    if (v == NULL) return CLEF_OK;
    buf_printf(out, ", \"%s\": ", name);
    return pyjson_write(out, v, PYJSON_ANSWER, err);
}

clef_status check_write(buf *out, const checked *c, const char *served, clef_error *err) {
    static const char *const MEMBERS[] = {"instructions", "criteria"};
    buf_add_text(out, "{\"model\": ");
    pyjson_string(out, str_of(served));
    TRY(write_member(out, "state", c->state, err));
    buf_add_text(out, ", \"questions\": {");
    for (const json *q = c->questions->first; q != NULL; q = q->next) {
        if (q != c->questions->first) buf_add_text(out, ", ");
        pyjson_string(out, q->name);
        buf_add_text(out, ": {\"type\": ");
        pyjson_string(out, json_get(q, STR("type"))->text);
        for (size_t i = 0; i < 2; i++) TRY(write_member(out, MEMBERS[i], get(q, MEMBERS[i]), err));
        buf_add_char(out, '}');
    }
    buf_add_char(out, '}');
    TRY(write_member(out, "images", c->images, err));
    TRY(write_member(out, "videos", c->videos, err));
    TRY(write_member(out, "media_kwargs", c->media_kwargs, err));
    buf_add_char(out, '}');
    return buf_status(out, err);
}
