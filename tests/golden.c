/* golden.c - loading the recorded cases and driving the network by hand. */
#include "golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/file.h"

enum { MAX_CASES = 400 };

const char (*golden_names(size_t *n, const char *toy))[64] {
    static char names[MAX_CASES][64];
    buf text = {0};
    clef_error err = {0};
    if (file_read(&text, TESTDATA "golden/cases.txt", 1 << 20, &err) != CLEF_OK)
        fail_msg("%s", err.text);
    *n = 0;
    for (char *save = NULL, *line = strtok_r(text.p, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        const size_t toy_n = toy == NULL ? 0 : strlen(toy);
        if (toy != NULL && (strncmp(line, toy, toy_n) != 0 || line[toy_n] != '.')) continue;
        assert_true(*n < MAX_CASES && strlen(line) < sizeof names[0]);
        memcpy(names[(*n)++], line, strlen(line) + 1);
    }
    buf_free(&text);
    assert_true(*n > 0);
    return (const char(*)[64])names;
}

static const json *member(const golden *g, const char *name) {
    const json *v = json_get(g->doc, str_of(name));
    if (v == NULL) fail_msg("%s: no member '%s'", g->name, name);
    return v;
}

void golden_load(golden *g, const char *name) {
    *g = (golden){0};
    snprintf(g->name, sizeof g->name, "%s", name);
    snprintf(g->toy, sizeof g->toy, "%.*s", (int)(strchr(name, '.') - name), name);
    char path[256];
    clef_error err = {0};
    buf text = {0};
    snprintf(path, sizeof path, TESTDATA "golden/%s.json", name);
    if (file_read(&text, path, 1 << 24, &err) != CLEF_OK) fail_msg("%s", err.text);
    if (json_parse(&g->doc, (str){text.p, text.n}, path, &(json_limits){0}, &g->mem, &err) !=
        CLEF_OK)
        fail_msg("%s", err.text);
    buf_free(&text);
    g->request = member(g, "request")->text;
    uint64_t length = 0, state = 0;
    assert_true(json_u64(&length, member(g, "max_length"), 1 << 20));
    const bool cap = json_u64(&state, member(g, "max_state_tokens"), 1 << 20);
    g->limits = (prompt_limits){.max_length = (uint32_t)length,
                                .cap_state = cap,
                                .max_state_tokens = (uint32_t)state,
                                .truncate = CLEF_TRUNCATE_STATE,
                                .control = str_equal(member(g, "policy")->text, STR("plain"))
                                               ? CLEF_CONTROL_PLAIN
                                               : CLEF_CONTROL_REFERENCE};
    if (json_get(g->doc, STR("error")) != NULL) return;
    snprintf(path, sizeof path, TESTDATA "golden/%s.safetensors", name);
    if (safetensors_open(&g->tensors, path, &err) != CLEF_OK) fail_msg("%s", err.text);
}

void golden_free(golden *g) {
    safetensors_close(g->tensors);
    arena_free(&g->mem);
}

const float *golden_floats(golden *g, const json *array, uint32_t *n) {
    assert_non_null(array);
    float *out = arena_alloc(&g->mem, array->n, sizeof *out);
    assert_non_null(out);
    *n = 0;
    for (const json *v = array->first; v != NULL; v = v->next) {
        double value = 0;
        assert_true(json_double(&value, v));
        out[(*n)++] = (float)value;
    }
    return out;
}

clef_engine *golden_open(const char *toy, const char *kernels, unsigned threads, uint32_t chunk) {
    char dir[128];
    snprintf(dir, sizeof dir, TESTDATA "%s", toy);
    clef_engine *e = NULL;
    clef_error err = {0};
    const clef_options options = {
        .model = dir, .kernels = kernels, .threads = threads, .chunk = chunk};
    if (clef_open(&e, &options, &err) != CLEF_OK) fail_msg("%s", err.text);
    return e;
}

void golden_prepare(golden_record *r, const golden *g, const clef_engine *e, arena *mem) {
    clef_error err = {0};
    *r = (golden_record){0};
    if (request_parse(&r->rq, g->request, mem, &err) != CLEF_OK)
        fail_msg("%s: %s", g->name, err.text);
    if (prompt_build(&r->p, &r->rq, e->tok, &g->limits, mem, &err) != CLEF_OK)
        fail_msg("%s: %s", g->name, err.text);
    uint32_t *owner = arena_alloc(mem, r->rq.n_options, sizeof *owner);
    uint8_t *kinds = arena_alloc(mem, r->rq.n_questions, sizeof *kinds);
    if (owner == NULL || kinds == NULL) {
        fail();
        return;
    }
    for (uint32_t q = 0, o = 0; q < r->rq.n_questions; q++) {
        kinds[q] = (uint8_t)r->rq.questions[q].kind;
        for (uint32_t i = 0; i < r->rq.questions[q].n_options; i++) owner[o++] = q;
    }
    r->in = (head_input){.ids = r->p.ids,
                         .n_tokens = r->p.n_ids,
                         .instructions = r->p.instructions,
                         .options = r->p.options,
                         .owner = owner,
                         .kinds = kinds,
                         .n_questions = r->rq.n_questions,
                         .n_options = r->rq.n_options};
}

void golden_run(head_run *h, const model *m, const head_input *in, uint32_t chunk,
                backbone_watch *watch, void *context, float *logits, float *probabilities) {
    workspace ws = {0};
    sequence seq = {0};
    clef_error err = {0};
    assert_int_equal(workspace_open(&ws, m->cfg, chunk, &err), CLEF_OK);
    assert_int_equal(sequence_open(&seq, m->cfg, in->n_tokens, &err), CLEF_OK);
    assert_int_equal(head_open(h, m, in, &err), CLEF_OK);
    for (uint32_t row = 0; row < in->n_tokens; row += chunk) {
        const uint32_t n = in->n_tokens - row < chunk ? in->n_tokens - row : chunk;
        backbone_chunk(m, &ws, &(segment){.seq = &seq, .ids = in->ids + row, .n_rows = n}, 1, watch,
                       context);
        head_feed(h, m, &ws, ws.y, n);
    }
    if (head_finish(h, m, &ws, logits, probabilities, &err) != CLEF_OK) fail_msg("%s", err.text);
    sequence_close(&seq);
    workspace_close(&ws);
}
