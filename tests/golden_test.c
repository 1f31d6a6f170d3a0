/* golden_test.c - every recorded case at every border: ids, spans, hidden rows after each layer,
 * memory rows, option queries, fields, logits, probabilities, the answer's text. The first border
 * that differs names the folder to look in. The bars are those of MODEL.md section 6. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "golden.h"
#include "request/answer.h"

static const double most_hidden_error = 1e-4; /* relative L2, per layer */
static const double most_logit_error = 1e-4;
static const double most_p_error = 1e-5;

static const char *const toys[] = {"toy-r1-tied",  "toy-r2",         "toy-r3-sharded",
                                   "toy-explicit", "toy-real-heads", "toy-two-layers"};
enum { N_TOYS = sizeof toys / sizeof toys[0] };

/* The largest errors over all cases, printed at the end. */
static double worst_hidden, worst_logit, worst_p;
static unsigned n_answers, n_same_answers;

/* ---- ids and spans ---- */

static void same_span(const golden *g, const json *pair, span found, const char *what) {
    uint64_t begin = 0, end = 0;
    assert_true(pair != NULL && pair->n == 2 && json_u64(&begin, pair->first, UINT32_MAX) &&
                json_u64(&end, pair->first->next, UINT32_MAX));
    if (begin != found.begin || end != found.end)
        fail_msg("%s: span of %s is [%u, %u), the reference has [%u, %u)", g->name, what,
                 found.begin, found.end, (unsigned)begin, (unsigned)end);
}

static void same_ids(const golden *g, const prompt *p) {
    const json *ids = json_get(g->doc, STR("ids"));
    assert_non_null(ids);
    assert_int_equal(p->n_ids, ids->n);
    uint32_t i = 0;
    for (const json *v = ids->first; v != NULL; v = v->next, i++) {
        uint64_t id = 0;
        assert_true(json_u64(&id, v, UINT32_MAX));
        if ((uint64_t)p->ids[i] != id)
            fail_msg("%s: id %u is %d, the reference has %u", g->name, i, p->ids[i], (unsigned)id);
    }
    const uint32_t found[] = {p->n_prefix, p->n_media, p->n_state, p->n_schema, p->n_suffix};
    const char *const names[] = {"prefix", "media", "state", "schema", "suffix"};
    for (int part = 0; part < 5; part++) {
        uint64_t n = 0;
        assert_true(json_u64(&n, json_get(json_get(g->doc, STR("tokens")), str_of(names[part])),
                             UINT32_MAX));
        assert_int_equal(found[part], n);
    }
}

static void same_spans(const golden *g, const golden_record *r) {
    uint32_t q = 0, o = 0;
    const json *questions = json_get(g->doc, STR("questions"));
    assert_int_equal(questions->n, r->rq.n_questions);
    for (const json *v = questions->first; v != NULL; v = v->next, q++) {
        const question *found = &r->rq.questions[q];
        assert_true(str_equal(json_get(v, STR("id"))->text, found->id));
        assert_true(
            str_equal(json_get(v, STR("type"))->text, str_of(question_kind_name(found->kind))));
        same_span(g, json_get(v, STR("span")), r->p.instructions[q], "the instructions");
        uint32_t i = 0;
        for (const json *w = json_get(v, STR("options"))->first; w != NULL; w = w->next, i++, o++) {
            assert_true(i < found->n_options);
            assert_true(str_equal(json_get(w, STR("id"))->text, found->options[i].id));
            same_span(g, json_get(w, STR("span")), r->p.options[o], "an option");
        }
        assert_int_equal(i, found->n_options);
    }
}

/* ---- hidden rows ---- */

/* ||found - wanted|| / ||wanted|| over rows `rows` of found [.., n] and all of wanted [n_rows, n].
 */
static double relative_error(const float *found, const float *wanted, const int32_t *rows,
                             uint64_t n_rows, uint64_t n) {
    double difference = 0, size = 0;
    for (uint64_t r = 0; r < n_rows; r++)
        for (uint64_t i = 0; i < n; i++) {
            const double f = (double)found[(rows == NULL ? r : (uint64_t)rows[r]) * n + i];
            float w;
            memcpy(&w, wanted + r * n + i, sizeof w);
            difference += (f - (double)w) * (f - (double)w);
            size += (double)w * (double)w;
        }
    return sqrt(difference) / sqrt(size);
}

/* Everything the backbone showed, row by row. */
typedef struct {
    uint32_t n_layers, hidden, row; /* row: rows of the current layer before this chunk */
    uint32_t chunk, n_tokens;
    float **layer; /* [n_layers + 2][n_tokens * hidden] */
} capture;

static void see(void *context, uint32_t layer, const float *x) {
    capture *c = context;
    const uint32_t left = c->n_tokens - c->row, n = left < c->chunk ? left : c->chunk;
    memcpy(c->layer[layer] + (size_t)c->row * c->hidden, x, (size_t)n * c->hidden * sizeof(float));
    if (layer == c->n_layers + 1) c->row += n;
}

static const tensor *tensor_named(const golden *g, const char *name) {
    const tensor *t = safetensors_find(g->tensors, str_of(name));
    if (t == NULL) fail_msg("%s: no tensor '%s'", g->name, name);
    return t;
}

static void close_rows(const golden *g, const char *name, const float *found, const int32_t *rows) {
    const tensor *t = tensor_named(g, name);
    assert_int_equal(t->rank, 2);
    const double e = relative_error(found, t->data, rows, t->shape[0], t->shape[1]);
    if (!(e <= most_hidden_error)) fail_msg("%s: %s differs by %.3g relative L2", g->name, name, e);
    if (e > worst_hidden) worst_hidden = e;
}

/* ---- logits ---- */

static double largest_difference(const float *a, const float *b, uint32_t n) {
    double most = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double d = fabs((double)a[i] - (double)b[i]);
        if (!(d <= most)) most = d;
    }
    return most;
}

static uint32_t argmax(const float *p, uint32_t n) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (p[i] > p[best]) best = i;
    return best;
}

static void one_case(const char *name, const clef_engine *e) {
    golden g;
    golden_load(&g, name);
    arena mem = {0};
    golden_record r;
    if (g.tensors == NULL) { /* a refused request: the reference's own words are in the sentence */
        clef_error err = {0};
        const str wanted = arena_copy(&mem, json_get(g.doc, STR("error"))->text);
        clef_status s = request_parse(&r.rq, g.request, &mem, &err);
        if (s == CLEF_OK) s = prompt_build(&r.p, &r.rq, e->tok, &g.limits, &mem, &err);
        assert_int_not_equal(s, CLEF_OK);
        if (strstr(err.text, wanted.p) == NULL)
            fail_msg("%s: refused with '%s', the reference says '%s'", name, err.text, wanted.p);
        arena_free(&mem);
        golden_free(&g);
        return;
    }
    golden_prepare(&r, &g, e, &mem);
    same_ids(&g, &r.p);
    same_spans(&g, &r);

    const config *cfg = &e->cfg;
    capture c = {cfg->n_layers, cfg->hidden, 0, e->chunk, r.in.n_tokens, NULL};
    c.layer = arena_alloc(&mem, cfg->n_layers + 2, sizeof *c.layer);
    for (uint32_t i = 0; i < cfg->n_layers + 2; i++)
        c.layer[i] = arena_alloc(&mem, r.in.n_tokens, cfg->hidden * sizeof(float));
    float *logits = arena_alloc(&mem, r.in.n_options, sizeof(float));
    float *probabilities = arena_alloc(&mem, r.in.n_options, sizeof(float));
    head_run h;
    golden_run(&h, &e->m, &r.in, e->chunk, see, &c, logits, probabilities);

    const int32_t *rows = tensor_named(&g, "rows")->data;
    for (uint32_t i = 0; i <= cfg->n_layers; i++) {
        char tensor_name[32];
        snprintf(tensor_name, sizeof tensor_name, "hidden.%u", i);
        close_rows(&g, tensor_name, c.layer[i], rows);
    }
    close_rows(&g, "hidden.final", c.layer[cfg->n_layers + 1], rows);
    close_rows(&g, "memory", h.memory, rows);
    close_rows(&g, "R", h.queries, NULL);
    close_rows(&g, "F", h.fields, NULL);

    uint32_t n = 0;
    const float *want_logits = golden_floats(&g, json_get(g.doc, STR("logits")), &n);
    assert_int_equal(n, r.in.n_options);
    const float *want_p = golden_floats(&g, json_get(g.doc, STR("probs")), &n);
    assert_int_equal(n, r.in.n_options);
    const double logit_error = largest_difference(logits, want_logits, n);
    const double p_error = largest_difference(probabilities, want_p, n);
    if (!(logit_error <= most_logit_error))
        fail_msg("%s: a logit differs by %.3g", name, logit_error);
    if (!(p_error <= most_p_error)) fail_msg("%s: a probability differs by %.3g", name, p_error);
    if (logit_error > worst_logit) worst_logit = logit_error;
    if (p_error > worst_p) worst_p = p_error;
    for (uint32_t q = 0, o = 0; q < r.rq.n_questions; o += r.rq.questions[q++].n_options)
        assert_int_equal(argmax(probabilities + o, r.rq.questions[q].n_options),
                         argmax(want_p + o, r.rq.questions[q].n_options));
    head_close(&h);

    buf answer = {0};
    clef_error err = {0};
    const answer_style style = {CLEF_CONFIDENCE_TOP, 4};
    r.p.n_state_cut = 0; /* the reference does not tell that it cut */
    const str wanted = arena_copy(&mem, json_get(g.doc, STR("answer"))->text);
    assert_int_equal(answer_write(&answer, &r.rq, &r.p, want_p, &style, &err), CLEF_OK);
    if (!str_equal((str){answer.p, answer.n}, wanted))
        fail_msg("%s: answer\n%s\nthe reference has\n%s", name, answer.p, wanted.p);
    answer.n = 0;
    /* Our own probabilities may lie on the other side of a rounding border; that is counted. */
    assert_int_equal(answer_write(&answer, &r.rq, &r.p, probabilities, &style, &err), CLEF_OK);
    n_answers++;
    n_same_answers += str_equal((str){answer.p, answer.n}, wanted);
    buf_free(&answer);
    arena_free(&mem);
    golden_free(&g);
}

static void every_border_of_every_case_is_the_references(void **state) {
    (void)state;
    for (int t = 0; t < N_TOYS; t++) {
        clef_engine *e = golden_open(toys[t], NULL, 2, 512);
        size_t n = 0;
        const char(*names)[64] = golden_names(&n, toys[t]);
        for (size_t i = 0; i < n; i++) one_case(names[i], e);
        clef_close(e);
    }
    print_message("largest errors: hidden %.2g relative L2, logit %.2g, probability %.2g; "
                  "%u of %u answers equal to the last byte\n",
                  worst_hidden, worst_logit, worst_p, n_same_answers, n_answers);
    assert_true(n_same_answers * 10 >= n_answers * 9);
}

/* ---- bits ---- */

/* Logits and probabilities of a case in one setting; none for a refused request or a record of more
 * than most_tokens. */
static uint32_t logits_of(float *out, uint32_t room, const char *name, const clef_engine *e,
                          uint32_t most_tokens) {
    golden g;
    golden_load(&g, name);
    arena mem = {0};
    golden_record r = {0};
    if (g.tensors != NULL) golden_prepare(&r, &g, e, &mem);
    if (g.tensors == NULL || r.in.n_tokens > most_tokens) {
        arena_free(&mem);
        golden_free(&g);
        return 0;
    }
    assert_true(2 * r.in.n_options <= room);
    head_run h;
    golden_run(&h, &e->m, &r.in, e->chunk, NULL, NULL, out, out + r.in.n_options);
    head_close(&h);
    arena_free(&mem);
    golden_free(&g);
    return 2 * r.in.n_options;
}

enum { ROOM = 4096, MOST_CASES = 64 };

/* Compares one setting of a toy with the default one, which is computed once. */
typedef struct {
    const char *kernels;
    unsigned threads;
    uint32_t chunk, most_tokens;
} setting;

static void same_bits_as_default(const char *toy, const setting *settings, size_t n_settings) {
    static float wanted[MOST_CASES][ROOM];
    uint32_t n_wanted[MOST_CASES];
    size_t n = 0;
    const char(*names)[64] = golden_names(&n, toy);
    assert_true(n <= MOST_CASES);
    clef_engine *e = golden_open(toy, NULL, 2, 512);
    for (size_t i = 0; i < n; i++)
        n_wanted[i] = logits_of(wanted[i], ROOM, names[i], e, UINT32_MAX);
    clef_close(e);
    for (const setting *s = settings; s < settings + n_settings; s++) {
        unsigned n_compared = 0;
        e = golden_open(toy, s->kernels, s->threads, s->chunk);
        for (size_t i = 0; i < n; i++) {
            float found[ROOM];
            const uint32_t n_found = logits_of(found, ROOM, names[i], e, s->most_tokens);
            if (n_found == 0) continue;
            assert_int_equal(n_found, n_wanted[i]);
            if (memcmp(found, wanted[i], n_found * sizeof found[0]) != 0)
                fail_msg("%s: kernels %s, %u threads, chunk %u give other bits", names[i],
                         compute_kernels(e->c), s->threads, s->chunk);
            n_compared++;
        }
        clef_close(e);
        assert_true(n_compared > 0);
    }
}

static void any_kernels_threads_and_chunk_give_the_same_bits(void **state) {
    (void)state;
    /* Without FMA instructions every step of the scalar table is a call: short records there. */
    const setting settings[] = {
        {"scalar", 1, 512, 450}, {NULL, 1, 64, 1100}, {NULL, 3, 192, UINT32_MAX}};
    for (int t = 0; t < N_TOYS; t++)
        same_bits_as_default(toys[t], settings, sizeof settings / sizeof settings[0]);
}

static void a_chunk_of_4096_gives_the_same_bits(void **state) {
    (void)state;
    same_bits_as_default("toy-explicit", &(setting){NULL, 2, 4096, UINT32_MAX}, 1);
}

static void chunks_of_any_width_give_the_same_bits(void **state) {
    (void)state;
    const uint32_t chunks[] = {1, 7, 63, 65, 100};
    clef_engine *one = golden_open("toy-r2", NULL, 2, 512);
    float a[ROOM], b[ROOM];
    const uint32_t n = logits_of(a, ROOM, "toy-r2.basic", one, UINT32_MAX);
    clef_close(one);
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
        clef_engine *other = golden_open("toy-r2", NULL, 2, chunks[i]);
        assert_int_equal(logits_of(b, ROOM, "toy-r2.basic", other, UINT32_MAX), n);
        clef_close(other);
        if (memcmp(a, b, n * sizeof a[0]) != 0) fail_msg("chunk %u gives other bits", chunks[i]);
    }
}

/* ---- red arms: a deliberate fault must move the logits as it moves the reference's ---- */

static void red_arm(const char *name, const char *arm, const clef_engine *e) {
    golden g;
    golden_load(&g, name);
    const json *recorded = json_get(json_get(g.doc, STR("arms")), str_of(arm));
    if (recorded == NULL) {
        golden_free(&g);
        return;
    }
    arena mem = {0};
    golden_record r;
    golden_prepare(&r, &g, e, &mem);
    uint32_t n = 0;
    const float *wanted = golden_floats(&g, recorded, &n);
    const float *healthy = golden_floats(&g, json_get(g.doc, STR("logits")), &n);
    weights broken = e->w;
    model m = e->m;
    m.w = &broken;
    if (strcmp(arm, "spans_late") == 0) {
        span *instructions = arena_alloc(&mem, r.in.n_questions, sizeof(span));
        span *options = arena_alloc(&mem, r.in.n_options, sizeof(span));
        for (uint32_t i = 0; i < r.in.n_questions; i++)
            instructions[i] = (span){r.p.instructions[i].begin + 1, r.p.instructions[i].end + 1};
        for (uint32_t i = 0; i < r.in.n_options; i++)
            options[i] = (span){r.p.options[i].begin + 1, r.p.options[i].end + 1};
        r.in.instructions = instructions;
        r.in.options = options;
    } else if (strcmp(arm, "lexical_zero") == 0) {
        broken.lexical.type = DTYPE_F32;
        broken.lexical.data =
            arena_alloc(&mem, (size_t)e->cfg.vocab * e->cfg.hidden, sizeof(float));
        assert_non_null(broken.lexical.data);
    } else if (strcmp(arm, "membership_rotated") == 0) {
        uint32_t *owner = arena_alloc(&mem, r.in.n_options, sizeof *owner);
        for (uint32_t o = 0; o < r.in.n_options; o++)
            owner[o] = r.in.owner[(o + r.in.n_options - 1) % r.in.n_options];
        r.in.owner = owner;
    } else {
        assert_string_equal(arm, "embedding_rows");
        broken.lexical = e->w.embed;
    }
    float *logits = arena_alloc(&mem, r.in.n_options, sizeof(float));
    float *probabilities = arena_alloc(&mem, r.in.n_options, sizeof(float));
    head_run h;
    golden_run(&h, &m, &r.in, 512, NULL, NULL, logits, probabilities);
    head_close(&h);
    const double moved = largest_difference(logits, healthy, n);
    if (!(moved > most_logit_error)) fail_msg("%s: %s stays green: %.3g", name, arm, moved);
    const double error = largest_difference(logits, wanted, n);
    if (!(error <= most_logit_error))
        fail_msg("%s: %s gives logits %.3g off the reference's with the same fault", name, arm,
                 error);
    arena_free(&mem);
    golden_free(&g);
}

static void every_red_arm_turns_the_bars_red(void **state) {
    (void)state;
    const char *const arms[] = {"spans_late", "lexical_zero", "membership_rotated",
                                "embedding_rows"};
    int seen[4] = {0};
    for (int t = 0; t < N_TOYS; t++) {
        clef_engine *e = golden_open(toys[t], NULL, 2, 512);
        size_t n = 0;
        const char(*names)[64] = golden_names(&n, toys[t]);
        for (size_t i = 0; i < n; i++)
            for (int a = 0; a < 4; a++) {
                golden g;
                golden_load(&g, names[i]);
                seen[a] += json_get(json_get(g.doc, STR("arms")), str_of(arms[a])) != NULL;
                golden_free(&g);
                red_arm(names[i], arms[a], e);
            }
        clef_close(e);
    }
    for (int a = 0; a < 4; a++) assert_true(seen[a] > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_border_of_every_case_is_the_references),
        cmocka_unit_test(any_kernels_threads_and_chunk_give_the_same_bits),
        cmocka_unit_test(a_chunk_of_4096_gives_the_same_bits),
        cmocka_unit_test(chunks_of_any_width_give_the_same_bits),
        cmocka_unit_test(every_red_arm_turns_the_bars_red),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
