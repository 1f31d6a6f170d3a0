/* fixture_fuzz.c - any bytes as a file of recorded runs.
 *
 * What loads must hold what the gate relies on: spans inside their row, as many ids as the row has
 * tokens, options, spans and probabilities in equal number, probabilities that add up, and counts
 * over all questions that are right. A second file appended to the list leaves the first as it is.
 */
#include <assert.h>
#include <math.h>

#include "engine/fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void inside(span s, uint32_t n_tokens) {
    assert(s.begin < s.end && s.end <= n_tokens);
}

static void check_run(const fixture_run *r) {
    uint32_t n_options = 0;
    assert(r->n_questions > 0 && r->body.n > 0);
    for (uint32_t i = 0; r->ids != NULL && i < r->n_tokens; i++) assert(r->ids[i] >= 0);
    for (uint32_t q = 0; q < r->n_questions; q++) {
        const fixture_question *k = &r->questions[q];
        double sum = 0;
        inside(k->instructions, r->n_tokens);
        for (uint32_t o = 0; o < k->n_options; o++) {
            inside(k->spans[o], r->n_tokens);
            assert(k->options[o].n == 0 || k->options[o].p != NULL);
            sum += k->probabilities[o];
        }
        assert(k->n_options > 0 && fabs(sum - 1) < 0.01);
        n_options += k->n_options;
    }
    assert(n_options == r->n_options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    arena mem = {0};
    fixture_list list = {0};
    clef_error err = {0};
    const str text = {(const char *)data, n};
    if (fixture_parse(&list, text, "fixture", &mem, &err) == CLEF_OK) {
        const size_t n_runs = list.n;
        assert(n_runs > 0 && fixture_parse(&list, text, "again", &mem, &err) == CLEF_OK);
        assert(list.n == 2 * n_runs);
        for (size_t i = 0; i < list.n; i++) check_run(&list.runs[i]);
    } else {
        assert(err.text[0] != '\0' && list.n == 0);
    }
    fixture_list_free(&list);
    arena_free(&mem);
    return 0;
}
