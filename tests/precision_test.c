/* precision_test.c - `precision fast` from outside, on a toy whose widths are multiples of 32: its
 * answers have bits of their own that depend on nothing else, are near the exact ones, and are
 * accepted by the gate on a set that nothing was chosen by; a model it cannot help is refused. */
#include <math.h>

#include "clef.h"
#include "tests/folder.h"

#define TOY TESTDATA "gate/toy-blocks"
#define HELD_OUT TESTDATA "gate/toy-blocks-heldout.json"

/* Holds the toy in int8. */
static folder home;
static char int8_model[1024];

static int make_model(void **state) {
    (void)state;
    home = folder_new();
    snprintf(int8_model, sizeof int8_model, "%s", folder_path(&home, "int8"));
    const clef_convert_options o = {
        .model = TOY, .out = int8_model, .format = CLEF_FORMAT_INT8, .jobs = 1};
    clef_convert_result r;
    clef_error err = {0};
    if (clef_convert(&o, &r, &err) != CLEF_OK) fail_msg("%s", err.text);
    return 0;
}

static int remove_model(void **state) {
    (void)state;
    folder_remove(home.path);
    return 0;
}

static clef_engine *open_model(const clef_options *o) {
    clef_engine *e = NULL;
    clef_error err = {0};
    if (clef_open(&e, o, &err) != CLEF_OK) fail_msg("%s", err.text);
    return e;
}

static const char *const requests[] = {
    "{\"model\":\"m\",\"state\":\"the parcel came two days late and the box was open\","
    "\"questions\":{\"late\":{\"type\":\"noul\",\"instructions\":\"did it come late?\"},"
    "\"who\":{\"type\":\"choice\",\"instructions\":\"who has to act?\","
    "\"criteria\":{\"carrier\":\"damage\",\"shop\":\"wrong goods\",\"nobody\":null}}}}",
    "{\"model\":\"m\",\"state\":\"all is well\","
    "\"questions\":{\"bad\":{\"type\":\"noul\",\"instructions\":\"is it bad?\"}}}"};
enum { MOST_OPTIONS = 16 };

/* Logits of the first request, which is asked with the second one; `alone`: without it. Returns how
 * many. */
static size_t ask(float *logits, const clef_options *o, int alone) {
    clef_engine *e = open_model(o);
    const clef_request rq[2] = {{requests[0], strlen(requests[0])},
                                {requests[1], strlen(requests[1])}};
    clef_answer *answers[2] = {NULL, NULL};
    clef_error errs[2] = {{0}, {0}};
    if (clef_ask_batch(e, NULL, rq, alone ? 1 : 2, answers, errs) != CLEF_OK)
        fail_msg("%s%s", errs[0].text, errs[1].text);
    size_t n = 0;
    const clef_option *options = clef_answer_options(answers[0], &n);
    assert_in_range(n, 5, MOST_OPTIONS);
    for (size_t i = 0; i < n; i++) logits[i] = options[i].logit;
    clef_answer_free(answers[0]);
    clef_answer_free(answers[1]);
    clef_close(e);
    return n;
}

static void fast_is_near_exact_but_not_the_same(void **state) {
    (void)state;
    float exact[MOST_OPTIONS] = {0}, fast[MOST_OPTIONS] = {0};
    clef_options o = {.model = int8_model, .threads = 1};
    const size_t n = ask(exact, &o, 1);
    o.precision = CLEF_PRECISION_FAST;
    assert_int_equal(ask(fast, &o, 1), n);
    assert_memory_not_equal(fast, exact, n * sizeof *fast);
    for (size_t i = 0; i < n; i++) assert_true(fabsf(fast[i] - exact[i]) < 0.05f);
}

static void the_gate_accepts_fast_on_the_held_out_set(void **state) {
    (void)state;
    const clef_options o = {.model = int8_model, .precision = CLEF_PRECISION_FAST};
    clef_engine *e = open_model(&o);
    const char *const fixtures[] = {HELD_OUT};
    char *table = NULL, *report = NULL;
    int holds = 0;
    clef_error err = {0};
    if (clef_gate(e, NULL, fixtures, 1, &holds, &table, &report, &err) != CLEF_OK)
        fail_msg("%s", err.text);
    if (!holds) fail_msg("%s", table);
    clef_text_free(table);
    clef_text_free(report);
    clef_close(e);
}

static void assert_refused(const clef_options *o, const char *words) {
    clef_engine *e = NULL;
    clef_error err = {0};
    assert_int_equal(clef_open(&e, o, &err), CLEF_ERR_INPUT);
    if (strstr(err.text, words) == NULL) fail_msg("'%s' lacks '%s'", err.text, words);
    assert_null(e);
}

static void a_model_without_codes_is_refused(void **state) {
    (void)state;
    assert_refused(&(clef_options){.model = TOY, .precision = CLEF_PRECISION_FAST},
                   "this model has none; clef convert makes such a folder");
}

static void an_unknown_precision_is_refused(void **state) {
    (void)state;
    assert_refused(&(clef_options){.model = int8_model, .precision = (clef_precision)2},
                   "precision: 2, wanted 0 to 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_is_near_exact_but_not_the_same),
        cmocka_unit_test(the_gate_accepts_fast_on_the_held_out_set),
        cmocka_unit_test(a_model_without_codes_is_refused),
        cmocka_unit_test(an_unknown_precision_is_refused),
    };
    return cmocka_run_group_tests(tests, make_model, remove_model);
}
