/* Tests of request.c. testdata/contract/checks.json holds the reference's sentences. */
#include "request/request.h"

#include "tests/recorded.h"

#include <stdio.h>

#include "tests/oom.h"

/* Parses `body`; what comes out stays valid until the next call or forget(). */
static arena memory;

static clef_status parse(request *out, str body, clef_error *err) {
    arena_free(&memory);
    return request_parse(out, body, &memory, err);
}

static int forget(void **state) {
    (void)state;
    arena_free(&memory);
    return 0;
}

static void expect_refused(const char *body, clef_status status, const char *sentence) {
    request rq = {0};
    clef_error err = {0};
    const clef_status s = parse(&rq, str_of(body), &err);
    if (s != status || strncmp(err.text, sentence, strlen(sentence)) != 0)
        fail_msg("%s\n found  %d %s\n wanted %d %s", body, s, err.text, status, sentence);
    assert_null(rq.questions);
}

static void expect_accepted(request *rq, const char *body) {
    clef_error err = {0};
    if (parse(rq, str_of(body), &err) != CLEF_OK) fail_msg("%s\n%s", body, err.text);
}

static void expect_text(str found, const char *wanted) {
    recorded_same_text(found, str_of(wanted), "text");
}

#define ONE(question) "{\"model\":\"m\",\"state\":\"s\",\"questions\":{\"q\":" question "}}"

/* ---- against the reference ------------------------------------------------------------------- */

static void the_checks_give_the_reference_s_sentences_in_its_order(void **state) {
    (void)state;
    arena mem = {0};
    const json *rows = recorded_get(recorded_load(&mem, TESTDATA "contract/checks.json"), "rows");
    uint32_t refused = 0;
    for (const json *row = rows->first; row != NULL; row = row->next) {
        const str body = recorded_text(row, "body");
        const json *error = recorded_get(row, "error");
        request rq = {0};
        clef_error err = {0};
        const clef_status s = parse(&rq, body, &err);
        if (error->kind == JSON_NULL) {
            if (s != CLEF_OK) fail_msg("%.*s\n%s", STR_ARG(body), err.text);
            continue;
        }
        refused++;
        const char *at = strstr(err.text, ": ");
        if (s != CLEF_ERR_INPUT || at == NULL ||
            strncmp(at + 2, error->text.p, error->text.n) != 0 || at[2 + error->text.n] != ';')
            fail_msg("%.*s\n found  %s\n wanted PATH: %.*s; ...", STR_ARG(body), err.text,
                     STR_ARG(error->text));
    }
    assert_true(rows->n >= 50 && refused >= 40 && refused < rows->n);
    arena_free(&mem);
}

static void a_sentence_starts_with_the_path_of_the_field(void **state) {
    (void)state;
    expect_refused("{\"state\":1}", CLEF_ERR_INPUT,
                   "model: model and state are required; a model is a string, found nothing");
    expect_refused("{\"model\":\"m\"}", CLEF_ERR_INPUT,
                   "state: model and state are required; found nothing");
    expect_refused("{\"model\":\"m\",\"state\":1}", CLEF_ERR_INPUT,
                   "questions: at least one question is required; found nothing");
    expect_refused(ONE("{\"type\":\"boolean\"}"), CLEF_ERR_INPUT,
                   "questions.q.type: q: type must be noul, choice, or score; found 'boolean'");
    expect_refused(ONE("{\"type\":\"score\",\"criteria\":{}}"), CLEF_ERR_INPUT,
                   "questions.q.criteria: q: criteria must not be empty; found an empty object");
}

static void what_the_reference_crashes_on_or_takes_by_accident_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *body, *sentence;
    } ROWS[] = {
        {"[]", "request: must be an object; found an empty array"},
        {"\"x\"", "request: must be an object; found a string"},
        {"null", "request: must be an object; found null"},
        {ONE("7"), "questions.q: a question must be an object; found a number"},
        {ONE("null"), "questions.q: a question must be an object; found null"},
        {ONE("[\"noul\"]"), "questions.q: a question must be an object; found an array"},
        {ONE("{\"type\":[]}"), "questions.q.type: q: type must be noul, choice, or score; found "},
        {ONE("{\"type\":{\"a\":1}}"),
         "questions.q.type: q: type must be noul, choice, or score; found an object"},
        {ONE("{\"type\":\"choice\",\"criteria\":[\"a\",\"b\"]}"),
         "questions.q.criteria: a choice needs an object of option to description; found an array"},
        {ONE("{\"type\":\"choice\",\"criteria\":\"ab\"}"),
         "questions.q.criteria: a choice needs an object of option to description; found a string"},
        {ONE("{\"type\":\"choice\",\"criteria\":5}"),
         "questions.q.criteria: a choice needs an object of option to description; found a number"},
        {ONE("{\"type\":\"choice\",\"criteria\":true}"),
         "questions.q.criteria: a choice needs an object of option to description; found true"},
        {ONE("{\"type\":\"score\",\"criteria\":{\"low\":\"x\"}}"),
         "questions.q.criteria: a score needs a list of levels, lowest first; found an object"},
        {ONE("{\"type\":\"score\",\"criteria\":\"abc\"}"),
         "questions.q.criteria: a score needs a list of levels, lowest first; found a string"},
        {ONE("{\"type\":\"score\",\"criteria\":NaN}"),
         "questions.q.criteria: a score needs a list of levels, lowest first; found a number"},
        {ONE("{\"type\":\"score\",\"criteria\":true}"),
         "questions.q.criteria: a score needs a list of levels, lowest first; found true"},
        {ONE("{\"type\":\"noul\",\"criteria\":[[\"true\",\"t\"]]}"),
         "questions.q.criteria: a noul takes an object with a description of 'true', of 'false' or "
         "of both; found an array"},
        {ONE("{\"type\":\"noul\",\"criteria\":\"yes\"}"),
         "questions.q.criteria: a noul takes an object"},
        {ONE("{\"type\":\"noul\",\"criteria\":1}"), "questions.q.criteria: a noul takes an object"},
        {ONE("{\"type\":\"noul\",\"criteria\":true}"),
         "questions.q.criteria: a noul takes an object"},
        {"{\"model\":\"m\",\"state\":\"s\",\"questions\":{\"\":{\"type\":\"noul\"}}}",
         "questions: a question with an empty id needs instructions; found nothing"},
        {"{\"model\":\"m\",\"state\":\"s\",\"questions\":{\"\":{\"type\":\"noul\",\"instructions\":"
         "\"\"}}}",
         "questions: a question with an empty id needs instructions; found an empty string"},
        {"{\"model\":\"m\",\"state\":\"s\",\"questions\":{\"\":{\"type\":\"noul\",\"instructions\":"
         "null}}}",
         "questions: a question with an empty id needs instructions; found null"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
        expect_refused(ROWS[i].body, CLEF_ERR_INPUT, ROWS[i].sentence);
}

static void what_is_wrong_inside_criteria_is_told_after_the_types_of_all_questions(void **state) {
    (void)state;
    expect_refused("{\"model\":\"m\",\"state\":\"s\",\"questions\":{"
                   "\"a\":{\"type\":\"choice\",\"criteria\":[1]},\"b\":{\"type\":\"x\"}}}",
                   CLEF_ERR_INPUT, "questions.b.type: b: type must be noul, choice, or score");
    expect_refused("{\"model\":\"m\",\"state\":\"s\",\"images\":[1],\"questions\":{"
                   "\"a\":{\"type\":\"noul\"},\"b\":{\"type\":\"score\"}}}",
                   CLEF_ERR_INPUT, "questions.b.criteria: b: criteria must not be empty");
}

/* ---- what comes out -------------------------------------------------------------------------- */

static void choices_are_scored_in_code_point_order_and_remember_the_asked_one(void **state) {
    (void)state;
    request rq = {0};
    expect_accepted(&rq, ONE("{\"type\":\"choice\",\"criteria\":{\"z\":1,\"\\ud83d\\ude00\":2,"
                             "\"a\":3,\"\\uff5e\":4,\"Z\":5,\"\":6,\"aa\":7}}"));
    static const char *const SCORED[] = {
        "", "Z", "a", "aa", "z", "\xEF\xBD\x9E", "\xF0\x9F\x98\x80"};
    static const uint32_t ASKED[] = {4, 6, 2, 5, 1, 0, 3};
    const question *q = rq.questions;
    assert_int_equal(q->n_options, 7);
    for (uint32_t i = 0; i < 7; i++) {
        expect_text(q->options[i].id, SCORED[i]);
        assert_int_equal(q->asked[i], ASKED[i]);
        /* The description is the asked place, counted from 1. */
        uint64_t place = 0;
        assert_true(json_u64(&place, q->options[ASKED[i]].description, 9));
        assert_int_equal(place, i + 1);
    }
}

static void a_noul_is_scored_true_before_false_with_the_reference_s_sentences(void **state) {
    (void)state;
    static const char *const BLANK[] = {"",
                                        ",\"criteria\":null",
                                        ",\"criteria\":{}",
                                        ",\"criteria\":[]",
                                        ",\"criteria\":\"\"",
                                        ",\"criteria\":0",
                                        ",\"criteria\":false",
                                        ",\"criteria\":{\"maybe\":\"m\"}"};
    for (size_t i = 0; i < sizeof BLANK / sizeof BLANK[0]; i++) {
        char body[200];
        snprintf(body, sizeof body, ONE("{\"type\":\"noul\"%s}"), BLANK[i]);
        request rq = {0};
        expect_accepted(&rq, body);
        const question *q = rq.questions;
        assert_int_equal(q->n_options, 2);
        expect_text(q->options[0].id, "true");
        expect_text(q->options[0].description->text,
                    "The proposition is true or the answer is yes.");
        expect_text(q->options[1].id, "false");
        expect_text(q->options[1].description->text,
                    "The proposition is false or the answer is no.");
    }
}

static void a_noul_side_replaces_its_sentence_and_null_removes_it(void **state) {
    (void)state;
    request rq = {0};
    expect_accepted(&rq, ONE("{\"type\":\"noul\",\"criteria\":{\"false\":null,\"maybe\":\"m\"}}"));
    expect_text(rq.questions->options[0].description->text,
                "The proposition is true or the answer is yes.");
    assert_int_equal(rq.questions->options[1].description->kind, JSON_NULL);
    expect_accepted(&rq, ONE("{\"type\":\"noul\",\"criteria\":{\"false\":\"\",\"true\":0}}"));
    assert_int_equal(rq.questions->options[0].description->kind, JSON_NUMBER);
    assert_int_equal(rq.questions->options[1].description->kind, JSON_STRING);
}

static void a_null_choice_has_no_description_and_an_empty_one_keeps_it(void **state) {
    (void)state;
    request rq = {0};
    expect_accepted(&rq, ONE("{\"type\":\"choice\",\"criteria\":{\"a\":null,\"b\":\"\",\"c\":0,"
                             "\"d\":false,\"e\":{},\"f\":[]}}"));
    assert_int_equal(rq.questions->options[0].description->kind, JSON_NULL);
    for (uint32_t i = 1; i < 6; i++) assert_non_null(rq.questions->options[i].description);
}

static void a_null_level_is_taken_as_the_reference_does(void **state) {
    (void)state;
    request rq = {0};
    expect_accepted(&rq, ONE("{\"type\":\"score\",\"criteria\":[\"a\",null]}"));
    assert_int_equal(rq.questions->n_options, 2);
    assert_int_equal(rq.questions->options[1].description->kind, JSON_NULL);
}

static void score_levels_are_numbered_in_order_and_keep_their_value(void **state) {
    (void)state;
    request rq = {0};
    expect_accepted(&rq, ONE("{\"type\":\"score\",\"criteria\":[\"a\",{\"z\":1,\"a\":2},3,4,5,6,7,"
                             "8,9,10,\"last\"]}"));
    const question *q = rq.questions;
    assert_int_equal(q->n_options, 11);
    expect_text(q->options[10].id, "10");
    expect_text(q->options[10].description->text, "last");
    expect_text(q->options[1].description->first->name, "z");
    for (uint32_t i = 0; i < 11; i++) assert_int_equal(q->asked[i], i);
}

static void missing_null_and_empty_instructions_mean_the_id(void **state) {
    (void)state;
    request rq = {0};
    expect_accepted(&rq, ONE("{\"type\":\"noul\"}"));
    assert_null(rq.questions->instructions);
    expect_accepted(&rq, ONE("{\"type\":\"noul\",\"instructions\":null}"));
    assert_null(rq.questions->instructions);
    expect_accepted(&rq, ONE("{\"type\":\"noul\",\"instructions\":\"\"}"));
    assert_null(rq.questions->instructions);
}

static void other_instructions_are_kept_whatever_their_kind(void **state) {
    (void)state;
    static const char *const KEPT[] = {"\" \"", "0", "false", "[]", "{}", "true", "{\"a\":1}"};
    for (size_t i = 0; i < sizeof KEPT / sizeof KEPT[0]; i++) {
        char body[200];
        snprintf(body, sizeof body, ONE("{\"type\":\"noul\",\"instructions\":%s}"), KEPT[i]);
        request rq = {0};
        expect_accepted(&rq, body);
        assert_non_null(rq.questions->instructions);
    }
}

static void an_empty_id_with_instructions_is_fine(void **state) {
    (void)state;
    request rq = {0};
    expect_accepted(&rq, "{\"model\":\"m\",\"state\":\"s\",\"questions\":{\"\":{\"type\":\"noul\","
                         "\"instructions\":\"i\"},\" \":{\"type\":\"noul\"}}}");
    assert_int_equal(rq.n_questions, 2);
    assert_int_equal(rq.questions[0].id.n, 0);
}

static void a_state_of_any_kind_is_taken_as_the_reference_does(void **state) {
    (void)state;
    static const char *const STATES[] = {"\"\"", "{}",   "[]",  "null",     "true",
                                         "0",    "-0.0", "NaN", "Infinity", "\"\\ud83d\\ude00\""};
    for (size_t i = 0; i < sizeof STATES / sizeof STATES[0]; i++) {
        char body[200];
        snprintf(body, sizeof body,
                 "{\"model\":\"m\",\"state\":%s,\"questions\":{\"q\":{\"type\":\"noul\"}}}",
                 STATES[i]);
        request rq = {0};
        expect_accepted(&rq, body);
        assert_non_null(rq.state);
    }
}

static void the_last_of_repeated_names_counts_at_the_first_one_s_place(void **state) {
    (void)state;
    request rq = {0};
    expect_accepted(
        &rq, "{\"model\":\"old\",\"state\":\"s\",\"model\":\"new\",\"questions\":{"
             "\"a\":{\"type\":\"noul\"},\"b\":{\"type\":\"noul\"},\"a\":{\"type\":\"choice\","
             "\"criteria\":{\"k\":1,\"l\":2,\"k\":3}}}}");
    expect_text(rq.model, "new");
    assert_int_equal(rq.n_questions, 2);
    expect_text(rq.questions[0].id, "a");
    assert_int_equal(rq.questions[0].kind, QUESTION_CHOICE);
    assert_int_equal(rq.questions[0].n_options, 2);
    expect_text(rq.questions[0].options[0].description->text, "3");
    assert_int_equal(rq.n_options, 4);
}

static void members_without_meaning_are_ignored(void **state) {
    (void)state;
    request rq = {0};
    expect_accepted(&rq, "{\"id\":1,\"x_trace_id\":{},\"seed\":7,\"stream\":true,\"model\":\"\","
                         "\"state\":\"s\",\"questions\":{\"q\":{\"type\":\"noul\",\"weight\":3}}}");
    expect_text(rq.model, "");
}

/* ---- pictures -------------------------------------------------------------------------------- */

#define WITH(member) \
    "{\"model\":\"m\",\"state\":\"s\",\"questions\":{\"q\":{\"type\":\"noul\"}}," member "}"

static void empty_picture_members_are_fine(void **state) {
    (void)state;
    request rq = {0};
    expect_accepted(&rq, WITH("\"images\":[],\"videos\":[],\"media_kwargs\":{}"));
    expect_accepted(&rq, WITH("\"images\":null,\"videos\":null,\"media_kwargs\":null"));
}

static void pictures_come_with_the_request(void **state) {
    (void)state;
    request rq = {0};
    expect_accepted(&rq, WITH("\"images\":[\"AAAA\"],\"videos\":[\"AAAA\"]"));
    assert_int_equal(rq.media.n_images, 1);
    assert_int_equal(rq.media.n_videos, 1);
}

static void
a_wrong_picture_is_told_after_the_questions_types_and_before_their_criteria(void **state) {
    (void)state;
    expect_refused("{\"model\":\"m\",\"state\":\"s\",\"images\":[1],\"questions\":{"
                   "\"a\":{\"type\":\"choice\",\"criteria\":[1]}}}",
                   CLEF_ERR_INPUT, "images[0]: found a number, wanted a data URL");
}

/* ---- hostile bodies -------------------------------------------------------------------------- */

static void b06_a_lone_surrogate_is_refused_naming_its_offset(void **state) {
    (void)state;
    request rq = {0};
    clef_error err = {0};
    const str body = STR("{\"model\":\"m\",\"state\":\"\\ud800\",\"questions\":{}}");
    assert_int_equal(parse(&rq, body, &err), CLEF_ERR_INPUT);
    assert_non_null(strstr(err.text, "byte 2"));
}

static buf nested(size_t depth) {
    buf body = {0};
    buf_add_text(&body, "{\"model\":\"m\",\"state\":");
    for (size_t i = 0; i < depth; i++) buf_add_char(&body, '[');
    buf_add_text(&body, "\"x\"");
    for (size_t i = 0; i < depth; i++) buf_add_char(&body, ']');
    buf_add_text(&body, ",\"questions\":{\"q\":{\"type\":\"noul\"}}}");
    return body;
}

static void b08_nesting_is_refused_beyond_the_documented_depth(void **state) {
    (void)state;
    static const struct {
        size_t depth;
        clef_status status;
    } ROWS[] = {{60, CLEF_OK},
                {REQUEST_MAX_DEPTH - 1, CLEF_OK}, /* the request itself is one level */
                {REQUEST_MAX_DEPTH, CLEF_ERR_LIMIT},
                {100000, CLEF_ERR_LIMIT}};
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        buf body = nested(ROWS[i].depth);
        request rq = {0};
        clef_error err = {0};
        const clef_status s = parse(&rq, (str){body.p, body.n}, &err);
        buf_free(&body);
        assert_int_equal(s, ROWS[i].status);
    }
}

static void b10_bad_json_and_wrong_shapes_are_refused(void **state) {
    (void)state;
    static const char *const BODIES[] = {"{:",
                                         "",
                                         "[]",
                                         "\"x\"",
                                         "{\"questions\":\"a\"}",
                                         "{\"model\":123}",
                                         "{\"state\":1,\"questions\":{\"q\":{\"type\":7}}}"};
    for (size_t i = 0; i < sizeof BODIES / sizeof BODIES[0]; i++) {
        request rq = {0};
        clef_error err = {0};
        assert_int_equal(parse(&rq, str_of(BODIES[i]), &err), CLEF_ERR_INPUT);
        assert_true(err.text[0] != '\0');
    }
}

static void b11_invalid_utf8_is_refused_naming_its_offset(void **state) {
    (void)state;
    static const char *const BAD[] = {"\xff\xfe", "\xc0\x80", "\xc4\xe3\xba\xc3", "\xf0\x9f\x98"};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        char body[200];
        snprintf(body, sizeof body,
                 "{\"model\":\"m\",\"state\":\"%s\",\"questions\":{\"q\":{\"type\":\"noul\"}}}",
                 BAD[i]);
        expect_refused(body, CLEF_ERR_INPUT, "request: ");
        request rq = {0};
        clef_error err = {0};
        assert_int_equal(parse(&rq, str_of(body), &err), CLEF_ERR_INPUT);
        assert_non_null(strstr(err.text, "byte 22"));
    }
}

static void b12_a_byte_order_mark_is_skipped_and_junk_behind_the_value_refused(void **state) {
    (void)state;
    request rq = {0};
    clef_error err = {0};
    expect_accepted(&rq, "\xEF\xBB\xBF" ONE("{\"type\":\"noul\"}"));
    expect_refused(ONE("{\"type\":\"noul\"}") "x", CLEF_ERR_INPUT, "request: ");
    assert_int_equal(parse(&rq, STR(ONE("{\"type\":\"noul\"}") "\0"), &err), CLEF_ERR_INPUT);
}

static void a_long_id_does_not_push_the_reason_out_of_the_sentence(void **state) {
    (void)state;
    char body[3000], id[2001];
    memset(id, 'x', sizeof id - 1);
    id[sizeof id - 1] = '\0';
    snprintf(body, sizeof body,
             "{\"model\":\"m\",\"state\":\"s\",\"questions\":{\"%s\":{\"type\":\"%s\"}}}", id,
             "boolean");
    request rq = {0};
    clef_error err = {0};
    assert_int_equal(parse(&rq, str_of(body), &err), CLEF_ERR_INPUT);
    assert_non_null(strstr(err.text, "xxx....type: xxx"));
    assert_non_null(strstr(err.text, "type must be noul, choice, or score; found 'boolean'"));
}

static void a_name_is_shown_whole_with_its_zero_bytes_or_cut_between_characters(void **state) {
    (void)state;
    assert_string_equal(request_show(STR("a\0b")).text, "a\\x00b");
    assert_string_equal(request_show(STR("")).text, "");
    char zeros[200] = {0};
    assert_int_equal(strlen(request_show((str){zeros, sizeof zeros}).text), 83);
    buf wide = {0};
    for (int i = 0; i < 50; i++) buf_add_text(&wide, "\xF0\x9F\x98\x80");
    const shown_name shown = request_show((str){wide.p, wide.n});
    buf_free(&wide);
    assert_int_equal(strlen(shown.text), 83);
    assert_memory_equal(shown.text + 76, "\xF0\x9F\x98\x80...", 7);
}

/* ---- size ------------------------------------------------------------------------------------ */

static void b21_a_hundred_thousand_choices_are_read_and_sorted(void **state) {
    (void)state;
    enum { N = 100000 };
    buf body = {0};
    buf_add_text(&body,
                 "{\"model\":\"m\",\"state\":\"s\",\"questions\":{\"q\":{\"type\":\"choice\","
                 "\"criteria\":{");
    /* 7919 and N have no common factor: every number below N once, out of order. */
    for (uint64_t i = 0; i < N; i++)
        buf_printf(&body, "%s\"%06u\":%u", i > 0 ? "," : "", (unsigned)(i * 7919 % N), (unsigned)i);
    buf_add_text(&body, "}}}}");
    request rq = {0};
    clef_error err = {0};
    const clef_status s = parse(&rq, (str){body.p, body.n}, &err);
    buf_free(&body);
    assert_int_equal(s, CLEF_OK);
    const question *q = rq.questions;
    assert_int_equal(q->n_options, N);
    for (uint64_t i = 0; i < N; i++) assert_int_equal(q->asked[i], i * 7919 % N);
    for (uint32_t i = 1; i < N; i++)
        assert_true(str_compare(q->options[i - 1].id, q->options[i].id) < 0);
}

static void b22_five_thousand_questions_are_read(void **state) {
    (void)state;
    buf body = {0};
    buf_add_text(&body, "{\"model\":\"m\",\"state\":\"s\",\"questions\":{");
    for (unsigned i = 0; i < 5000; i++)
        buf_printf(&body, "%s\"q%u\":{\"type\":\"noul\"}", i > 0 ? "," : "", i);
    buf_add_text(&body, "}}");
    request rq = {0};
    clef_error err = {0};
    const clef_status s = parse(&rq, (str){body.p, body.n}, &err);
    buf_free(&body);
    assert_int_equal(s, CLEF_OK);
    assert_int_equal(rq.n_questions, 5000);
    assert_int_equal(rq.n_options, 10000);
}

static void every_failed_allocation_is_reported_and_leaks_nothing(void **state) {
    (void)state;
    buf body = {0};
    buf_add_text(&body, "{\"model\":\"m\",\"state\":\"s\",\"questions\":{\"s\":{\"type\":\"score\","
                        "\"criteria\":[\"a\",\"b\"]},\"q\":{\"type\":\"choice\",\"criteria\":{");
    for (unsigned i = 0; i < 3000; i++) buf_printf(&body, "%s\"o%u\":0", i > 0 ? "," : "", i);
    buf_add_text(&body, "}}}}");
    unsigned failures = 0;
    for (clef_status s = CLEF_ERR_MEMORY; s != CLEF_OK; failures++) {
        request rq = {0};
        clef_error err = {0};
        arena_free(&memory);
        oom_fail_at(failures + 1);
        s = request_parse(&rq, (str){body.p, body.n}, &memory, &err);
        oom_stop();
        if (s != CLEF_OK) assert_int_equal(s, CLEF_ERR_MEMORY);
    }
    assert_true(failures > 3);
    buf_free(&body);
}

int main(void) {
#define T(name) cmocka_unit_test_teardown(name, forget)
    const struct CMUnitTest tests[] = {
        T(the_checks_give_the_reference_s_sentences_in_its_order),
        T(a_sentence_starts_with_the_path_of_the_field),
        T(what_the_reference_crashes_on_or_takes_by_accident_is_refused),
        T(what_is_wrong_inside_criteria_is_told_after_the_types_of_all_questions),
        T(choices_are_scored_in_code_point_order_and_remember_the_asked_one),
        T(a_noul_is_scored_true_before_false_with_the_reference_s_sentences),
        T(a_noul_side_replaces_its_sentence_and_null_removes_it),
        T(a_null_choice_has_no_description_and_an_empty_one_keeps_it),
        T(a_null_level_is_taken_as_the_reference_does),
        T(score_levels_are_numbered_in_order_and_keep_their_value),
        T(missing_null_and_empty_instructions_mean_the_id),
        T(other_instructions_are_kept_whatever_their_kind),
        T(an_empty_id_with_instructions_is_fine),
        T(a_state_of_any_kind_is_taken_as_the_reference_does),
        T(the_last_of_repeated_names_counts_at_the_first_one_s_place),
        T(members_without_meaning_are_ignored),
        T(empty_picture_members_are_fine),
        T(pictures_come_with_the_request),
        T(a_wrong_picture_is_told_after_the_questions_types_and_before_their_criteria),
        T(b06_a_lone_surrogate_is_refused_naming_its_offset),
        T(b08_nesting_is_refused_beyond_the_documented_depth),
        T(b10_bad_json_and_wrong_shapes_are_refused),
        T(b11_invalid_utf8_is_refused_naming_its_offset),
        T(b12_a_byte_order_mark_is_skipped_and_junk_behind_the_value_refused),
        T(a_long_id_does_not_push_the_reason_out_of_the_sentence),
        T(a_name_is_shown_whole_with_its_zero_bytes_or_cut_between_characters),
        T(b21_a_hundred_thousand_choices_are_read_and_sorted),
        T(b22_five_thousand_questions_are_read),
        T(every_failed_allocation_is_reported_and_leaks_nothing),
    };
#undef T
    return cmocka_run_group_tests(tests, NULL, NULL);
}
