/* Tests of answer.c. testdata/contract/answers.json holds what the reference prints. */
#include "request/answer.h"

#include "tests/recorded.h"

#include <math.h>

#include "tests/oom.h"

static const answer_style REFERENCE = {CLEF_CONFIDENCE_TOP, 4};

/* The answer to `body` with these probabilities, to be freed with buf_free. */
static buf answer_of(str body, const float *probabilities, const prompt *p,
                     const answer_style *style) {
    arena mem = {0};
    request rq = {0};
    clef_error err = {0};
    buf out = {0};
    clef_status s = request_parse(&rq, body, &mem, &err);
    if (s == CLEF_OK) s = answer_write(&out, &rq, p, probabilities, style, &err);
    if (s != CLEF_OK) fail_msg("%.*s\n%s", STR_ARG(body), err.text);
    arena_free(&mem);
    return out;
}

#define ONE(question) "{\"model\":\"m\",\"state\":\"s\",\"questions\":{\"q\":" question "}}"

/* Compares the answer of the only question, "q". */
static void expect(const char *body, const float *probabilities, const answer_style *style,
                   const char *wanted) {
    const prompt p = {.n_ids = 9};
    buf out = answer_of(str_of(body), probabilities, &p, style);
    buf whole = {0};
    buf_printf(&whole,
               "{\"model\": \"m\", \"answers\": {\"q\": %s}, \"usage\": {\"input_tokens\": 9, "
               "\"output_tokens\": 0}}",
               wanted);
    recorded_same_text((str){out.p, out.n}, (str){whole.p, whole.n}, body);
    buf_free(&whole);
    buf_free(&out);
}

static void answers_equal_the_reference_s_byte_for_byte(void **state) {
    (void)state;
    arena mem = {0};
    const json *rows = recorded_get(recorded_load(&mem, TESTDATA "contract/answers.json"), "rows");
    assert_true(rows->n >= 15);
    for (const json *row = rows->first; row != NULL; row = row->next) {
        uint32_t n = 0;
        const float *probabilities = recorded_floats(&mem, recorded_get(row, "probs"), &n);
        const prompt p = {.n_ids = (uint32_t)recorded_count(row, "n_tokens")};
        buf out = answer_of(recorded_text(row, "request"), probabilities, &p, &REFERENCE);
        recorded_same_text((str){out.p, out.n}, recorded_text(row, "answer"),
                           arena_copy(&mem, recorded_text(row, "name")).p);
        buf_free(&out);
    }
    arena_free(&mem);
}

static void b19_options_come_back_as_asked_and_the_first_asked_wins_a_tie(void **state) {
    (void)state;
    expect(ONE("{\"type\":\"choice\",\"criteria\":{\"z\":1,\"a\":1,\"m\":1}}"),
           (const float[]){0.375f, 0.25f, 0.375f}, &REFERENCE,
           "{\"type\": \"choice\", \"choice\": \"z\", \"confidence\": 0.375, "
           "\"probabilities\": {\"z\": 0.375, \"a\": 0.375, \"m\": 0.25}}");
}

static void a_tie_of_levels_counts_from_the_lowest(void **state) {
    (void)state;
    const answer_style style = {CLEF_CONFIDENCE_TYPESAFE, 4};
    /* From level 0: 1 - (0.375 + 2 * 0.25) / (2/3) is below 0. From level 1 it would be 0.0625. */
    expect(ONE("{\"type\":\"score\",\"criteria\":[\"a\",\"b\",\"c\"]}"),
           (const float[]){0.375f, 0.375f, 0.25f}, &style,
           "{\"type\": \"score\", \"score\": 0.875, \"confidence\": 0.0, "
           "\"legend\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"c\"}, "
           "\"probabilities\": {\"0\": 0.375, \"1\": 0.375, \"2\": 0.25}}");
}

static void a_cut_state_is_told_at_the_end(void **state) {
    (void)state;
    const prompt p = {.n_ids = 16384, .n_state_cut = 3616};
    buf out =
        answer_of(STR(ONE("{\"type\":\"noul\"}")), (const float[]){0.25f, 0.75f}, &p, &REFERENCE);
    recorded_same_text((str){out.p, out.n},
                       STR("{\"model\": \"m\", \"answers\": {\"q\": {\"type\": \"noul\", \"noul\": "
                           "0.25}}, \"usage\": {\"input_tokens\": 16384, \"output_tokens\": 0}, "
                           "\"x_truncated_tokens\": 3616}"),
                       "cut");
    buf_free(&out);
}

/* ---- confidence ------------------------------------------------------------------------------ */

#define CHOICE3 ONE("{\"type\":\"choice\",\"criteria\":{\"a\":1,\"b\":1,\"c\":1}}")
#define SCORE3 ONE("{\"type\":\"score\",\"criteria\":[\"l\",\"m\",\"h\"]}")

/* The number printed as "confidence". */
static double confidence_of(const char *body, const float *probabilities, clef_confidence mode,
                            unsigned digits) {
    const prompt p = {.n_ids = 1};
    const answer_style style = {mode, digits};
    buf out = answer_of(str_of(body), probabilities, &p, &style);
    arena mem = {0};
    const json *root = NULL;
    assert_int_equal(
        json_parse(&root, (str){out.p, out.n}, "answer", &(json_limits){0}, &mem, NULL), CLEF_OK);
    double value = -1;
    const json *q = recorded_get(recorded_get(root, "answers"), "q");
    assert_true(json_double(&value, recorded_get(q, "confidence")));
    buf_free(&out);
    arena_free(&mem);
    return value;
}

static void top_confidence_is_the_largest_probability(void **state) {
    (void)state;
    const float p[] = {0.0625f, 0.1875f, 0.75f};
    assert_true(confidence_of(CHOICE3, p, CLEF_CONFIDENCE_TOP, 4) == 0.75);
    assert_true(confidence_of(SCORE3, p, CLEF_CONFIDENCE_TOP, 4) == 0.75);
}

static void typesafe_confidence_of_a_choice_runs_from_uniform_to_certain(void **state) {
    (void)state;
    /* (0.75 - 1/3) / (2/3) */
    assert_true(confidence_of(CHOICE3, (const float[]){0.0625f, 0.1875f, 0.75f},
                              CLEF_CONFIDENCE_TYPESAFE, 4) == 0.625);
    assert_true(confidence_of(CHOICE3, (const float[]){1, 0, 0}, CLEF_CONFIDENCE_TYPESAFE, 4) == 1);
    assert_true(confidence_of(CHOICE3, (const float[]){1 / 3.f, 1 / 3.f, 1 / 3.f},
                              CLEF_CONFIDENCE_TYPESAFE, 7) == 0);
}

static void typesafe_confidence_of_a_score_falls_with_the_distance_of_the_levels(void **state) {
    (void)state;
    /* Best level 1: 1 - (0.25 * 1 + 0.125 * 1) / (2/3) */
    assert_true(confidence_of(SCORE3, (const float[]){0.25f, 0.625f, 0.125f},
                              CLEF_CONFIDENCE_TYPESAFE, 4) == 0.4375);
    /* Best level 0: 1 - (0.125 * 1 + 0.125 * 2) / (2/3) */
    assert_true(confidence_of(SCORE3, (const float[]){0.75f, 0.125f, 0.125f},
                              CLEF_CONFIDENCE_TYPESAFE, 4) == 0.4375);
    /* The same mass two levels away: 1 - 0.25 * 2 / (2/3) */
    assert_true(confidence_of(SCORE3, (const float[]){0.75f, 0, 0.25f}, CLEF_CONFIDENCE_TYPESAFE,
                              4) == 0.25);
    assert_true(confidence_of(SCORE3, (const float[]){0, 0, 1}, CLEF_CONFIDENCE_TYPESAFE, 4) == 1);
}

static void entropy_confidence_runs_from_uniform_to_certain(void **state) {
    (void)state;
    const float p[] = {0.5f, 0.25f, 0.25f};
    /* H = 1.5 ln 2 */
    const double wanted = 1 - 1.5 * log(2) / log(3);
    assert_true(fabs(confidence_of(CHOICE3, p, CLEF_CONFIDENCE_ENTROPY, 7) - wanted) < 1e-7);
    assert_true(fabs(confidence_of(SCORE3, p, CLEF_CONFIDENCE_ENTROPY, 7) - wanted) < 1e-7);
    assert_true(confidence_of(SCORE3, (const float[]){0, 1, 0}, CLEF_CONFIDENCE_ENTROPY, 4) == 1);
    const float third = 1 / 3.f;
    assert_true(confidence_of(CHOICE3, (const float[]){third, third, third},
                              CLEF_CONFIDENCE_ENTROPY, 4) == 0);
}

static void rounding_noise_never_prints_minus_zero(void **state) {
    (void)state;
    static const clef_confidence MODES[] = {CLEF_CONFIDENCE_TYPESAFE, CLEF_CONFIDENCE_ENTROPY};
    const float low = nextafterf(1 / 3.f, 0);
    for (size_t i = 0; i < 2; i++)
        for (unsigned digits = 4; digits <= 7; digits += 3)
            assert_false(
                signbit(confidence_of(CHOICE3, (const float[]){low, low, low}, MODES[i], digits)));
}

static void one_option_is_certain_in_every_mode(void **state) {
    (void)state;
    for (int mode = CLEF_CONFIDENCE_TOP; mode <= CLEF_CONFIDENCE_ENTROPY; mode++) {
        assert_true(confidence_of(ONE("{\"type\":\"choice\",\"criteria\":{\"a\":1}}"),
                                  (const float[]){1}, (clef_confidence)mode, 4) == 1);
        assert_true(confidence_of(ONE("{\"type\":\"score\",\"criteria\":[1]}"), (const float[]){1},
                                  (clef_confidence)mode, 4) == 1);
    }
}

/* ---- seven decimals -------------------------------------------------------------------------- */

static void seven_decimals_print_sums_a_client_can_check(void **state) {
    (void)state;
    const answer_style style = {CLEF_CONFIDENCE_TOP, 7};
    /* 0.12345678 and 0.23456789 as float32; the score is 0.2345679 + 2 * 0.6419754. */
    expect(SCORE3, (const float[]){0.12345678f, 0.23456789f, 0.64197533f}, &style,
           "{\"type\": \"score\", \"score\": 1.5185185, \"confidence\": 0.6419753, "
           "\"legend\": {\"0\": \"l\", \"1\": \"m\", \"2\": \"h\"}, "
           "\"probabilities\": {\"0\": 0.1234568, \"1\": 0.2345679, \"2\": 0.6419753}}");
}

static void seven_decimals_do_not_pad(void **state) {
    (void)state;
    const answer_style style = {CLEF_CONFIDENCE_TOP, 7};
    expect(ONE("{\"type\":\"noul\"}"), (const float[]){0.5f, 0.5f}, &style,
           "{\"type\": \"noul\", \"noul\": 0.5}");
    expect(ONE("{\"type\":\"noul\"}"), (const float[]){1e-7f, 1}, &style,
           "{\"type\": \"noul\", \"noul\": 1e-07}");
}

static void with_seven_decimals_the_choice_is_made_from_printed_values(void **state) {
    (void)state;
    const answer_style seven = {CLEF_CONFIDENCE_TOP, 7};
    const char *body = ONE("{\"type\":\"choice\",\"criteria\":{\"b\":1,\"a\":1}}");
    /* Both print 0.4; unrounded, "a" is greater by one bit. */
    const float p[] = {nextafterf(0.4f, 1), 0.4f};
    expect(body, p, &seven,
           "{\"type\": \"choice\", \"choice\": \"b\", \"confidence\": 0.4, "
           "\"probabilities\": {\"b\": 0.4, \"a\": 0.4}}");
    expect(body, p, &REFERENCE,
           "{\"type\": \"choice\", \"choice\": \"a\", \"confidence\": 0.4, "
           "\"probabilities\": {\"b\": 0.4, \"a\": 0.4}}");
}

static void b21_b23_a_thousand_equal_options_sum_to_one_with_seven_decimals(void **state) {
    (void)state;
    enum { N = 1000 };
    buf body = {0};
    buf_add_text(&body,
                 "{\"model\":\"m\",\"state\":\"s\",\"questions\":{\"q\":{\"type\":\"choice\","
                 "\"criteria\":{");
    for (unsigned i = 0; i < N; i++) buf_printf(&body, "%s\"o%u\":null", i > 0 ? "," : "", i);
    buf_add_text(&body, "}}}}");
    float p[N];
    for (unsigned i = 0; i < N; i++) p[i] = 1.0f / N;
    const prompt one = {.n_ids = 1};
    const answer_style style = {CLEF_CONFIDENCE_TOP, 7};
    buf out = answer_of((str){body.p, body.n}, p, &one, &style);
    arena mem = {0};
    const json *root = NULL;
    assert_int_equal(
        json_parse(&root, (str){out.p, out.n}, "answer", &(json_limits){0}, &mem, NULL), CLEF_OK);
    const json *printed =
        recorded_get(recorded_get(recorded_get(root, "answers"), "q"), "probabilities");
    double sum = 0;
    assert_int_equal(printed->n, N);
    for (const json *v = printed->first; v != NULL; v = v->next) {
        double value = 0;
        assert_true(json_double(&value, v));
        sum += value;
    }
    assert_true(fabs(sum - 1) < 1e-6);
    arena_free(&mem);
    buf_free(&out);
    buf_free(&body);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void b47_a_probability_that_is_not_finite_is_an_internal_error(void **state) {
    (void)state;
    static const float BAD[] = {NAN, INFINITY, -INFINITY};
    arena mem = {0};
    request rq = {0};
    const prompt p = {.n_ids = 1};
    assert_int_equal(request_parse(&rq, STR(CHOICE3), &mem, NULL), CLEF_OK);
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        clef_error err = {0};
        buf out = {0};
        const float probabilities[] = {0.5f, BAD[i], 0.5f};
        assert_int_equal(answer_write(&out, &rq, &p, probabilities, &REFERENCE, &err),
                         CLEF_ERR_INTERNAL);
        assert_string_equal(err.text,
                            "questions.q: the model gave option 'b' no finite probability");
        assert_int_equal(out.n, 0);
        buf_free(&out);
    }
    arena_free(&mem);
}

static void every_failed_allocation_is_reported(void **state) {
    (void)state;
    arena mem = {0};
    request rq = {0};
    const prompt p = {.n_ids = 1};
    assert_int_equal(request_parse(&rq, STR(SCORE3), &mem, NULL), CLEF_OK);
    unsigned n = 0;
    for (clef_status s = CLEF_ERR_MEMORY; s != CLEF_OK;) {
        buf out = {0};
        oom_fail_at(++n);
        s = answer_write(&out, &rq, &p, (const float[]){0.5f, 0.25f, 0.25f}, &REFERENCE, NULL);
        oom_stop();
        if (s != CLEF_OK) assert_int_equal(s, CLEF_ERR_MEMORY);
        buf_free(&out);
    }
    assert_true(n > 2);
    arena_free(&mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_equal_the_reference_s_byte_for_byte),
        cmocka_unit_test(b19_options_come_back_as_asked_and_the_first_asked_wins_a_tie),
        cmocka_unit_test(a_tie_of_levels_counts_from_the_lowest),
        cmocka_unit_test(a_cut_state_is_told_at_the_end),
        cmocka_unit_test(top_confidence_is_the_largest_probability),
        cmocka_unit_test(typesafe_confidence_of_a_choice_runs_from_uniform_to_certain),
        cmocka_unit_test(typesafe_confidence_of_a_score_falls_with_the_distance_of_the_levels),
        cmocka_unit_test(entropy_confidence_runs_from_uniform_to_certain),
        cmocka_unit_test(rounding_noise_never_prints_minus_zero),
        cmocka_unit_test(one_option_is_certain_in_every_mode),
        cmocka_unit_test(seven_decimals_print_sums_a_client_can_check),
        cmocka_unit_test(seven_decimals_do_not_pad),
        cmocka_unit_test(with_seven_decimals_the_choice_is_made_from_printed_values),
        cmocka_unit_test(b21_b23_a_thousand_equal_options_sum_to_one_with_seven_decimals),
        cmocka_unit_test(b47_a_probability_that_is_not_finite_is_an_internal_error),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
