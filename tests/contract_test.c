/* contract_test.c - the recorded runs of the real model (testdata/contract/records.json): request
 * to ids and spans with the released tokenizer, recorded probabilities to the answer's text. All of
 * it is compared exactly. The tokenizer is rebuilt from a package, not committed: `python3
 * tools/tokenizer/build_real.py`. */
#include "tests/recorded.h"

#include <stdio.h>

#include "base/file.h"
#include "request/answer.h"
#include "request/prompt.h"
#include "text/pyjson.h"

enum { N_RECORDS = 17 };

static arena memory;     /* of the records */
static const json *runs; /* the array of records */
static tokenizer *released, *sibling;

/* A null pointer when the file has not been made; the tests then say how to make it. */
static tokenizer *load(const char *path) {
    tokenizer *t = NULL;
    clef_error err = {0};
    if (!file_exists(path)) return NULL;
    if (tokenizer_load(&t, path, NULL, &err) != CLEF_OK) print_error("%s\n", err.text);
    return t;
}

static int open_all(void **state) {
    (void)state;
    runs = recorded_get(recorded_load(&memory, TESTDATA "contract/records.json"), "records");
    released = load("build/data/tokenizer-qwen2.json");
    sibling = load("build/data/tokenizer-qwen35.json");
    return 0;
}

static int close_all(void **state) {
    (void)state;
    tokenizer_free(released);
    tokenizer_free(sibling);
    arena_free(&memory);
    return 0;
}

static void need(const tokenizer *t, const char *name) {
    if (t == NULL)
        fail_msg("build/data/%s is missing or broken: python3 tools/tokenizer/build_real.py makes "
                 "it",
                 name);
}

/* ---- one record ------------------------------------------------------------------------------ */

/* A record's request as text, with `from` replaced by `to` when `from` is not NULL. */
static str body_of(const json *run, const char *from, const char *to, arena *mem) {
    buf text = {0}, changed = {0};
    assert_int_equal(pyjson_write(&text, recorded_get(run, "request"), PYJSON_ANSWER, NULL),
                     CLEF_OK);
    const char *at = from == NULL ? NULL : strstr(text.p, from);
    if (from != NULL) assert_non_null(at);
    if (at != NULL) {
        buf_add(&changed, text.p, (size_t)(at - text.p));
        buf_add_text(&changed, to);
        buf_add_text(&changed, at + strlen(from));
    }
    const buf *b = at == NULL ? &text : &changed;
    const str body = arena_copy(mem, (str){b->p, b->n});
    assert_non_null(body.p);
    buf_free(&text);
    buf_free(&changed);
    return body;
}

static void encode(prompt *p, request *rq, const json *run, str body, const tokenizer *t,
                   arena *mem) {
    clef_error err = {0};
    const prompt_media picture = {.n_groups = 1,
                                  .n_rows = (uint32_t)recorded_count(run, "n_image_tokens")};
    const prompt_limits limits = {
        .max_length = 16384,
        .control = CLEF_CONTROL_PLAIN,
        .media = &picture,
        .n_media = picture.n_rows > 0,
    };
    clef_status s = request_parse(rq, body, mem, &err);
    if (s == CLEF_OK) s = prompt_build(p, rq, t, &limits, mem, &err);
    if (s != CLEF_OK) fail_msg("%s", err.text);
}

/* Whether ids, lengths and spans are the recorded ones; says what is not. */
static bool same_row(const json *run, const request *rq, const prompt *p) {
    const size_t at = recorded_ids_differ(recorded_get(run, "ids"), p->ids, p->n_ids);
    if (at != SIZE_MAX) {
        print_message("%.*s: ids differ from index %zu\n", STR_ARG(recorded_text(run, "id")), at);
        return false;
    }
    uint32_t i = 0, k = 0;
    bool same = p->instructions != NULL && p->n_ids == recorded_count(run, "tokens") &&
                p->n_state == recorded_count(run, "state_tokens") && p->n_state_cut == 0;
    const json *questions = recorded_get(run, "questions");
    same = same && questions->n == rq->n_questions;
    for (const json *q = questions->first; q != NULL && same; q = q->next, i++) {
        const question *found = &rq->questions[i];
        const json *ids = recorded_get(q, "option_ids"), *spans = recorded_get(q, "option_spans");
        same = str_equal(recorded_text(q, "question_id"), found->id) &&
               recorded_is_span(recorded_get(q, "question_span"), p->instructions[i]) &&
               ids->n == found->n_options && spans->n == found->n_options;
        const json *id = ids->first, *pair = spans->first;
        for (uint32_t o = 0; o < found->n_options && same; o++, k++) {
            same =
                str_equal(id->text, found->options[o].id) && recorded_is_span(pair, p->options[k]);
            id = id->next;
            pair = pair->next;
        }
    }
    if (!same) print_message("%.*s: spans differ\n", STR_ARG(recorded_text(run, "id")));
    return same;
}

static void every_record_has_the_recorded_row(const tokenizer *t) {
    uint32_t n = 0;
    for (const json *run = runs->first; run != NULL; run = run->next, n++) {
        arena mem = {0};
        request rq = {0};
        prompt p = {0};
        encode(&p, &rq, run, body_of(run, NULL, NULL, &mem), t, &mem);
        assert_true(same_row(run, &rq, &p));
        arena_free(&mem);
    }
    assert_int_equal(n, N_RECORDS);
}

static void with_the_released_tokenizer_ids_and_spans_are_the_recorded_ones(void **state) {
    (void)state;
    need(released, "tokenizer-qwen2.json");
    every_record_has_the_recorded_row(released);
}

static void with_the_other_pattern_too_because_no_record_holds_a_mark(void **state) {
    (void)state;
    need(sibling, "tokenizer-qwen35.json");
    every_record_has_the_recorded_row(sibling);
}

static void one_changed_word_is_seen_in_every_part(void **state) {
    (void)state;
    need(released, "tokenizer-qwen2.json");
    static const char *const CHANGES[][2] = {
        {"optician", "physician"},                      /* the state */
        {"lenses have been fitted", "lenses had been"}, /* instructions */
        {"decision", "verdict"},                        /* an id */
        {"establishes the claim", "supports the claim"} /* a description */
    };
    for (size_t i = 0; i < sizeof CHANGES / sizeof CHANGES[0]; i++) {
        arena mem = {0};
        request rq = {0};
        prompt p = {0};
        const str body = body_of(runs->first, CHANGES[i][0], CHANGES[i][1], &mem);
        encode(&p, &rq, runs->first, body, released, &mem);
        assert_false(same_row(runs->first, &rq, &p));
        arena_free(&mem);
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

static void the_recorded_probabilities_give_the_recorded_answers(void **state) {
    (void)state;
    for (const json *run = runs->first; run != NULL; run = run->next) {
        arena mem = {0};
        request rq = {0};
        clef_error err = {0};
        if (request_parse(&rq, body_of(run, NULL, NULL, &mem), &mem, &err) != CLEF_OK)
            fail_msg("%s", err.text);
        float *probabilities = arena_alloc(&mem, rq.n_options, sizeof *probabilities);
        assert_non_null(probabilities);
        uint32_t at = 0, n = 0;
        for (const json *q = recorded_get(run, "questions")->first; q != NULL; q = q->next) {
            const float *some = recorded_floats(&mem, recorded_get(q, "probs"), &n);
            assert_true(n <= rq.n_options - at);
            memcpy(probabilities + at, some, n * sizeof *some);
            at += n;
        }
        assert_int_equal(at, rq.n_options);
        buf out = {0}, wanted = {0};
        const prompt p = {.n_ids = (uint32_t)recorded_count(run, "tokens")};
        const answer_style style = {CLEF_CONFIDENCE_TOP, 4};
        assert_int_equal(answer_write(&out, &rq, &p, probabilities, &style, &err), CLEF_OK);
        assert_int_equal(pyjson_write(&wanted, recorded_get(run, "response"), PYJSON_ANSWER, &err),
                         CLEF_OK);
        recorded_same_text((str){out.p, out.n}, (str){wanted.p, wanted.n},
                           arena_copy(&mem, recorded_text(run, "id")).p);
        buf_free(&out);
        buf_free(&wanted);
        arena_free(&mem);
    }
    assert_int_equal(runs->n, N_RECORDS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_the_released_tokenizer_ids_and_spans_are_the_recorded_ones),
        cmocka_unit_test(with_the_other_pattern_too_because_no_record_holds_a_mark),
        cmocka_unit_test(one_changed_word_is_seen_in_every_part),
        cmocka_unit_test(the_recorded_probabilities_give_the_recorded_answers),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
