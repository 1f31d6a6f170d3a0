/* sight_test.c - records with pictures through the public calls: from the request's bytes, PNG data
 * URLs, to logits and the answer's text, alone and among others. The reference's values are those
 * of testdata/vision. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "clef.h"
#include "recorded.h"
#include "tests/folder.h"
#include "text/pyjson.h"

static const double most_logit_error = 1e-4;
static const double most_p_error = 1e-5;

static const char *const toys[] = {"toy-vision", "toy-vision-72"};
enum { N_TOYS = sizeof toys / sizeof toys[0], MAX_CASES = 32, MAX_OPTIONS = 16 };

static clef_engine *open_toy(const char *toy, const clef_options *more) {
    char dir[100];
    clef_options options = *more;
    clef_engine *e = NULL;
    clef_error err = {0};
    snprintf(dir, sizeof dir, TESTDATA "%s", toy);
    options.model = dir;
    if (clef_open(&e, &options, &err) != CLEF_OK) fail_msg("%s", err.text);
    return e;
}

/* Names of the cases of a toy. */
static uint32_t names_of(const char *toy, char out[MAX_CASES][64]) {
    buf text = {0};
    clef_error err = {0};
    uint32_t n = 0;
    if (file_read(&text, TESTDATA "vision/cases.txt", 1 << 16, &err) != CLEF_OK)
        fail_msg("%s", err.text);
    for (char *save = NULL, *line = strtok_r(text.p, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        const size_t k = strlen(toy);
        if (strncmp(line, toy, k) != 0 || line[k] != '.') continue;
        assert_true(n < MAX_CASES && strlen(line) < 64);
        memcpy(out[n++], line, strlen(line) + 1);
    }
    buf_free(&text);
    assert_true(n >= 8);
    return n;
}

static const json *load_case(arena *mem, const char *name) {
    char path[160];
    snprintf(path, sizeof path, TESTDATA "vision/%s.json", name);
    return recorded_load(mem, path);
}

static double largest_difference(const float *wanted, uint32_t n, const clef_option *found,
                                 bool probabilities) {
    double most = 0;
    for (uint32_t i = 0; i < n; i++) {
        const float f = probabilities ? found[i].probability : found[i].logit;
        const double d = fabs((double)f - (double)wanted[i]);
        if (!(d <= most)) most = d;
    }
    return most;
}

static void answers_from_bytes_are_the_references(void **state) {
    (void)state;
    double worst_logit = 0, worst_p = 0;
    unsigned n_answers = 0, n_same = 0;
    for (int t = 0; t < N_TOYS; t++) {
        char names[MAX_CASES][64];
        const uint32_t n_names = names_of(toys[t], names);
        clef_engine *e = open_toy(toys[t], &(clef_options){.threads = 2});
        for (uint32_t i = 0; i < n_names; i++) {
            arena mem = {0};
            const json *doc = load_case(&mem, names[i]);
            const str body = recorded_text(doc, "request"), text = recorded_text(doc, "answer");
            clef_answer *a = NULL;
            clef_error err = {0};
            if (clef_ask(e, NULL, body.p, body.n, &a, &err) != CLEF_OK)
                fail_msg("%s: %s", names[i], err.text);
            uint32_t n = 0;
            size_t n_found = 0, n_text = 0;
            const clef_option *found = clef_answer_options(a, &n_found);
            const float *logits = recorded_floats(&mem, recorded_get(doc, "logits"), &n);
            assert_int_equal(n_found, n);
            const double l = largest_difference(logits, n, found, false);
            const float *probs = recorded_floats(&mem, recorded_get(doc, "probs"), &n);
            const double p = largest_difference(probs, n, found, true);
            if (!(l <= most_logit_error && p <= most_p_error))
                fail_msg("%s: a logit is off by %.3g, a probability by %.3g", names[i], l, p);
            if (l > worst_logit) worst_logit = l;
            if (p > worst_p) worst_p = p;
            const char *json_text = clef_answer_json(a, &n_text);
            n_answers++;
            n_same += str_equal(text, (str){json_text, n_text});
            clef_answer_free(a);
            arena_free(&mem);
        }
        clef_close(e);
    }
    print_message("logits: at most %.3g off; probabilities %.3g; %u of %u answers equal in text\n",
                  worst_logit, worst_p, n_same, n_answers);
    assert_true(n_same * 10 >= n_answers * 9); /* a fourth decimal may round the other way */
}

/* ---- clef encode ---- */

static void encoding_gives_the_references_ids_grids_and_positions(void **state) {
    (void)state;
    for (int t = 0; t < N_TOYS; t++) {
        char names[MAX_CASES][64];
        const uint32_t n_names = names_of(toys[t], names);
        clef_engine *e = open_toy(toys[t], &(clef_options){.tokenizer_only = 1});
        for (uint32_t i = 0; i < n_names; i++) {
            arena mem = {0};
            const json *doc = load_case(&mem, names[i]), *found = NULL;
            const str body = recorded_text(doc, "request");
            clef_answer *a = NULL;
            clef_error err = {0};
            if (clef_encode(e, NULL, body.p, body.n, &a, &err) != CLEF_OK)
                fail_msg("%s: %s", names[i], err.text);
            size_t n_text = 0;
            const char *text = clef_answer_json(a, &n_text);
            assert_int_equal(
                json_parse(&found, (str){text, n_text}, "encode", &(json_limits){0}, &mem, NULL),
                CLEF_OK);
            buf ids[2] = {{0}, {0}};
            pyjson_write(&ids[0], recorded_get(doc, "ids"), PYJSON_ANSWER, NULL);
            pyjson_write(&ids[1], recorded_get(found, "ids"), PYJSON_ANSWER, NULL);
            recorded_same_text((str){ids[1].p, ids[1].n}, (str){ids[0].p, ids[0].n}, names[i]);
            const json *media = json_get(found, STR("media"));
            const json *grid = recorded_get(doc, "grids")->first;
            const json *kind = recorded_get(doc, "kinds")->first;
            assert_int_equal(media == NULL ? 0 : media->n, recorded_get(doc, "grids")->n);
            for (const json *m = media == NULL ? NULL : media->first; m != NULL;
                 m = m->next, grid = grid->next, kind = kind->next) {
                uint64_t wanted = 0, got = 0;
                const json *w = grid->first;
                assert_true(str_equal(recorded_text(m, "kind"), kind->text));
                for (const json *g = recorded_get(m, "grid")->first; g != NULL;
                     g = g->next, w = w->next) {
                    assert_true(json_u64(&wanted, w, UINT32_MAX) && json_u64(&got, g, UINT32_MAX));
                    assert_int_equal(got, wanted);
                }
            }
            assert_int_equal(json_get(found, STR("positions")) != NULL, media != NULL);
            buf_free(&ids[0]);
            buf_free(&ids[1]);
            clef_answer_free(a);
            arena_free(&mem);
        }
        clef_close(e);
    }
}

/* ---- bits ---- */

/* The logits of an answer, which is freed. */
static size_t take_logits(float *out, clef_answer *a) {
    size_t n = 0;
    const clef_option *found = clef_answer_options(a, &n);
    assert_true(n <= MAX_OPTIONS);
    for (size_t i = 0; i < n; i++) out[i] = found[i].logit;
    clef_answer_free(a);
    return n;
}

static size_t ask(float *out, clef_engine *e, const clef_ask_options *o, str body) {
    clef_answer *a = NULL;
    clef_error err = {0};
    if (clef_ask(e, o, body.p, body.n, &a, &err) != CLEF_OK) fail_msg("%s", err.text);
    return take_logits(out, a);
}

static const char *const mixed[] = {"toy-vision.images-1", "toy-vision.images-0",
                                    "toy-vision.video-5",  "toy-vision.images-9",
                                    "toy-vision.mix",      "toy-vision.images-1"};
enum { N_MIXED = sizeof mixed / sizeof mixed[0] };

static void a_record_has_the_same_bits_alone_and_in_a_batch_with_others(void **state) {
    (void)state;
    arena mem = {0};
    clef_request requests[N_MIXED];
    float alone[N_MIXED][MAX_OPTIONS];
    size_t n[N_MIXED];
    for (int i = 0; i < N_MIXED; i++) {
        const str body = recorded_text(load_case(&mem, mixed[i]), "request");
        requests[i] = (clef_request){body.p, body.n};
        clef_engine *e = open_toy("toy-vision", &(clef_options){.threads = 2});
        n[i] = ask(alone[i], e, NULL, body);
        clef_close(e);
    }
    const clef_options settings[] = {{.threads = 2},
                                     {.threads = 1, .chunk = 64, .picture_bytes = 1},
                                     {.threads = 3, .chunk = 3},
                                     {.threads = 2, .chunk = 4096}};
    for (size_t s = 0; s < sizeof settings / sizeof settings[0]; s++) {
        clef_engine *e = open_toy("toy-vision", &settings[s]);
        for (int again = 0; again < 2; again++) { /* the second time from the store */
            clef_answer *answers[N_MIXED];
            clef_error errs[N_MIXED];
            if (clef_ask_batch(e, NULL, requests, N_MIXED, answers, errs) != CLEF_OK)
                fail_msg("setting %zu: a record of the batch failed", s);
            for (int i = 0; i < N_MIXED; i++) {
                float found[MAX_OPTIONS];
                assert_int_equal(take_logits(found, answers[i]), n[i]);
                if (memcmp(found, alone[i], n[i] * sizeof found[0]) != 0)
                    fail_msg("%s: setting %zu gives other bits", mixed[i], s);
            }
        }
        clef_close(e);
    }
    arena_free(&mem);
}

/* Two records whose ids are the same to the last one and whose pictures differ. */
static void kept_states_are_not_taken_for_another_picture(void **state) {
    (void)state;
    arena mem = {0};
    const str first = recorded_text(load_case(&mem, "toy-vision.images-1"), "request");
    const str other = recorded_text(load_case(&mem, "toy-vision.images-2"), "request");
    const char *images = strstr(first.p, "\"images\": [");
    const char *rest = strstr(first.p, "], \"videos\"");
    const char *url = strstr(other.p, ", \"data:"); /* the second picture's */
    if (images == NULL || rest == NULL || url == NULL) {
        fail();
        return;
    }
    buf second = {0};
    buf_add(&second, first.p, (size_t)(images - first.p) + strlen("\"images\": ["));
    buf_add(&second, url + 2, (size_t)(strchr(url + 4, '"') - url) - 1);
    buf_add(&second, rest, (size_t)(first.p + first.n - rest));
    const clef_ask_options same_grid = {.grid = CLEF_GRID_256};
    float alone[2][MAX_OPTIONS], found[MAX_OPTIONS];
    const str bodies[2] = {first, {second.p, second.n}};
    size_t n = 0;
    for (int i = 0; i < 2; i++) {
        clef_engine *e = open_toy("toy-vision", &(clef_options){.threads = 2});
        n = ask(alone[i], e, &same_grid, bodies[i]);
        clef_close(e);
    }
    assert_memory_not_equal(alone[0], alone[1], n * sizeof found[0]);
    clef_engine *e = open_toy("toy-vision", &(clef_options){.threads = 2, .cache_bytes = 1 << 28});
    for (int i = 0; i < 6; i++) {
        assert_int_equal(ask(found, e, &same_grid, bodies[i % 2]), n);
        if (memcmp(found, alone[i % 2], n * sizeof found[0]) != 0)
            fail_msg("picture %d gives other bits in round %d", i % 2, i);
    }
    clef_load load;
    clef_engine_stats(e, &load);
    assert_true(load.cache_hits > 0);
    buf_free(&second);
    clef_close(e);
    arena_free(&mem);
}

/* Steps that the engine has taken. */
static uint64_t steps_of(clef_engine *e) {
    clef_load load;
    clef_engine_stats(e, &load);
    return load.steps;
}

static void a_kept_state_behind_the_pictures_saves_the_tower(void **state) {
    (void)state;
    arena mem = {0};
    const str body = recorded_text(load_case(&mem, "toy-vision.images-9"), "request");
    enum { CHUNK = 16 };
    const clef_options options = {
        .threads = 1, .chunk = CHUNK, .cache_bytes = 1 << 28, .picture_bytes = 1};
    clef_engine *e = open_toy("toy-vision", &options);
    float first[MAX_OPTIONS], second[MAX_OPTIONS];
    const size_t n = ask(first, e, NULL, body);
    const uint64_t steps = steps_of(e);
    clef_answer *a = NULL;
    clef_ask_stats stats;
    assert_int_equal(clef_ask(e, NULL, body.p, body.n, &a, NULL), CLEF_OK);
    clef_answer_stats(a, &stats);
    assert_int_equal(take_logits(second, a), n);
    assert_memory_equal(second, first, n * sizeof first[0]);
    assert_true(stats.cached_tokens > 0);
    /* One step to see that no picture is needed, and those of the rows that are not kept. */
    const uint64_t rows = stats.tokens - stats.cached_tokens;
    assert_true(steps_of(e) - steps <= 1 + (rows + CHUNK - 1) / CHUNK);
    clef_close(e);
    arena_free(&mem);
}

static void the_scalar_table_gives_the_same_bits(void **state) {
    (void)state;
    arena mem = {0};
    const str body = recorded_text(load_case(&mem, "toy-vision.mix"), "request");
    float a[MAX_OPTIONS], b[MAX_OPTIONS];
    clef_engine *e = open_toy("toy-vision", &(clef_options){.threads = 1});
    const size_t n = ask(a, e, NULL, body);
    clef_close(e);
    e = open_toy("toy-vision", &(clef_options){.threads = 2, .kernels = "scalar"});
    assert_int_equal(ask(b, e, NULL, body), n);
    clef_close(e);
    assert_memory_equal(a, b, n * sizeof a[0]);
    arena_free(&mem);
}

/* ---- files and options ---- */

#define QUESTIONS "\"questions\":{\"q\":{\"type\":\"noul\"}}"
#define PLAIN "{\"model\":\"m\",\"state\":\"s\"," QUESTIONS "}"
/* A PNG of 2 x 2 pixels. */
#define TINY                                                                           \
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVR4nGP4z8DAwMDAxMDAwMDAAAAS" \
    "FwEDXXeCEgAAAABJRU5ErkJggg=="

/* The bytes of the picture in a golden's request, as a file. */
static void write_picture(const folder *f, const char *name, arena *mem) {
    const str body = recorded_text(load_case(mem, "toy-vision.images-1"), "request");
    const json *root = NULL;
    assert_int_equal(json_parse(&root, body, "request", &(json_limits){0}, mem, NULL), CLEF_OK);
    const str url = json_get(root, STR("images"))->first->text;
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    buf bytes = {0};
    uint32_t bits = 0;
    int n_bits = 0;
    for (const char *p = memchr(url.p, ',', url.n); ++p < url.p + url.n && *p != '=';) {
        bits = bits << 6 | (uint32_t)(strchr(digits, *p) - digits);
        n_bits += 6;
        if (n_bits < 8) continue;
        n_bits -= 8;
        buf_add_char(&bytes, (char)(bits >> n_bits));
    }
    folder_write(f, name, (str){bytes.p, bytes.n});
    buf_free(&bytes);
}

static void a_file_gives_what_the_same_bytes_in_the_request_give(void **state) {
    (void)state;
    arena mem = {0};
    const folder f = folder_new();
    write_picture(&f, "a.png", &mem);
    char path[1024];
    snprintf(path, sizeof path, "%s", folder_path(&f, "a.png"));
    const char *const paths[] = {path};
    const str whole = recorded_text(load_case(&mem, "toy-vision.images-1"), "request");
    buf without = {0};
    const char *images = strstr(whole.p, "\"images\":");
    const char *rest = strstr(images, "\"videos\":");
    buf_add(&without, whole.p, (size_t)(images - whole.p));
    buf_add(&without, rest, (size_t)(whole.p + whole.n - rest));
    float a[MAX_OPTIONS], b[MAX_OPTIONS];
    clef_engine *e = open_toy("toy-vision", &(clef_options){.threads = 2});
    const size_t n = ask(a, e, NULL, whole);
    const clef_ask_options o = {.images = paths, .n_images = 1};
    assert_int_equal(ask(b, e, &o, (str){without.p, without.n}), n);
    assert_memory_equal(a, b, n * sizeof a[0]);
    buf_free(&without);
    clef_close(e);
    folder_remove(f.path);
    arena_free(&mem);
}

static void refused(clef_engine *e, const clef_ask_options *o, str body, clef_status status,
                    const char *sentence) {
    clef_answer *a = NULL;
    clef_error err = {0};
    const clef_status s = clef_ask(e, o, body.p, body.n, &a, &err);
    if (s != status || strstr(err.text, sentence) == NULL)
        fail_msg("status %d '%s', wanted %d '%s'", (int)s, err.text, (int)status, sentence);
    assert_null(a);
}

static void a_model_without_a_tower_refuses_pictures(void **state) {
    (void)state;
    clef_engine *e = open_toy("toy-r2", &(clef_options){.threads = 1});
    refused(e, NULL,
            STR("{\"model\":\"m\",\"state\":\"s\",\"images\":[\"" TINY "\"]," QUESTIONS "}"),
            CLEF_ERR_UNSUPPORTED, "images: the model has no vision tower");
    const char *const paths[] = {"a.png"};
    refused(e, &(clef_ask_options){.images = paths, .n_images = 1}, STR(PLAIN),
            CLEF_ERR_UNSUPPORTED, "the model has no vision tower");
    clef_close(e);
}

static void a_wrong_picture_is_named_and_disturbs_nobody(void **state) {
    (void)state;
    arena mem = {0};
    clef_engine *e = open_toy("toy-vision", &(clef_options){.threads = 1});
    refused(e, NULL, STR("{\"model\":\"m\",\"state\":\"s\",\"images\":[\"AAAA\"]," QUESTIONS "}"),
            CLEF_ERR_INPUT, "images[0]: ");
    const char *const paths[] = {"no such file"};
    refused(e, &(clef_ask_options){.images = paths, .n_images = 1}, STR(PLAIN), CLEF_ERR_IO,
            "no such file");
    refused(e, NULL,
            STR("{\"model\":\"m\",\"state\":\"s\",\"images\":[\"file:a.png\"]," QUESTIONS "}"),
            CLEF_ERR_UNSUPPORTED, "images[0]: ");
    const str good = recorded_text(load_case(&mem, "toy-vision.images-1"), "request");
    const char bad[] = "{\"model\":\"m\",\"state\":\"s\",\"images\":[7]," QUESTIONS "}";
    const clef_request both[] = {{bad, strlen(bad)}, {good.p, good.n}};
    clef_answer *answers[2];
    clef_error errs[2];
    assert_int_equal(clef_ask_batch(e, NULL, both, 2, answers, errs), CLEF_ERR_INPUT);
    assert_null(answers[0]);
    assert_non_null(strstr(errs[0].text, "images[0]"));
    assert_non_null(answers[1]);
    clef_answer_free(answers[1]);
    clef_close(e);
    arena_free(&mem);
}

static void too_many_tokens_of_pictures_are_refused_before_the_tower_runs(void **state) {
    (void)state;
    arena mem = {0};
    clef_engine *e = open_toy("toy-vision", &(clef_options){.threads = 1});
    const str body = recorded_text(load_case(&mem, "toy-vision.images-9"), "request");
    refused(e, &(clef_ask_options){.max_length = 50}, body, CLEF_ERR_LIMIT,
            "images[8]: it takes 6 tokens behind 45 of those before it, the limit of a record "
            "is 50");
    clef_load load;
    clef_engine_stats(e, &load);
    assert_int_equal(load.steps, 0);
    clef_close(e);
    arena_free(&mem);
}

static uint64_t tokens_with(clef_engine *e, const clef_ask_options *o, str body) {
    clef_answer *a = NULL;
    clef_error err = {0};
    clef_ask_stats stats;
    if (clef_encode(e, o, body.p, body.n, &a, &err) != CLEF_OK) fail_msg("%s", err.text);
    clef_answer_stats(a, &stats);
    clef_answer_free(a);
    return stats.tokens;
}

static void a_grid_and_a_bound_change_the_number_of_tokens(void **state) {
    (void)state;
    arena mem = {0};
    const str body = recorded_text(load_case(&mem, "toy-vision.images-1"), "request");
    clef_engine *e = open_toy("toy-vision", &(clef_options){.tokenizer_only = 1});
    const uint64_t native = tokens_with(e, NULL, body); /* 6 of them */
    assert_int_equal(tokens_with(e, &(clef_ask_options){.grid = CLEF_GRID_256}, body),
                     native - 6 + 64);
    assert_int_equal(tokens_with(e, &(clef_ask_options){.grid = CLEF_GRID_448}, body),
                     native - 6 + 196);
    assert_int_equal(tokens_with(e, &(clef_ask_options){.max_pixels = 4096}, body), native - 6 + 2);
    clef_close(e);
    arena_free(&mem);
}

static int stop_after(void *user, size_t done, size_t total) {
    size_t *most = user;
    assert_true(done <= total);
    if (done > *most) *most = done;
    return done >= 4;
}

static void a_request_can_be_stopped_in_the_tower(void **state) {
    (void)state;
    arena mem = {0};
    clef_engine *e = open_toy("toy-vision", &(clef_options){.threads = 1, .chunk = 4});
    const str body = recorded_text(load_case(&mem, "toy-vision.images-9"), "request");
    size_t most = 0;
    refused(e, &(clef_ask_options){.progress = stop_after, .user = &most}, body, CLEF_ERR_CANCELLED,
            "stopped after ");
    assert_true(most >= 4 && most < 51);
    float logits[MAX_OPTIONS];
    ask(logits, e, NULL, body); /* nothing of it is left behind */
    clef_close(e);
    arena_free(&mem);
}

static int stop_while_reading(void *user, size_t done, size_t total) {
    size_t *calls = user;
    (void)done;
    ++*calls;
    return total == 0;
}

static void a_request_can_be_stopped_while_its_pictures_are_read(void **state) {
    (void)state;
    arena mem = {0};
    clef_engine *e = open_toy("toy-vision", &(clef_options){.threads = 1});
    const str body = recorded_text(load_case(&mem, "toy-vision.images-9"), "request");
    const clef_request both[] = {{PLAIN, strlen(PLAIN)}, {body.p, body.n}, {body.p, body.n}};
    size_t calls = 0;
    clef_ask_options o = {.progress = stop_while_reading, .user = &calls};
    clef_answer *answers[3];
    clef_error errs[3];
    /* The whole call ends, and at the first question. */
    assert_int_equal(clef_ask_batch(e, &o, both, 3, answers, errs), CLEF_ERR_CANCELLED);
    for (int i = 0; i < 3; i++) {
        assert_null(answers[i]);
        assert_string_equal(errs[i].text, "stopped while pictures were being read");
    }
    assert_int_equal(calls, 1);
    o = (clef_ask_options){.timeout_s = 1e-9};
    refused(e, &o, body, CLEF_ERR_DEADLINE,
            "no answer within 1e-09 seconds: pictures were still being read");
    clef_load load;
    clef_engine_stats(e, &load);
    assert_int_equal(load.steps, 0);
    clef_close(e);
    arena_free(&mem);
}

static void pictures_of_all_records_of_a_call_are_bounded_together(void **state) {
    (void)state;
    arena mem = {0};
    clef_engine *e = open_toy("toy-vision", &(clef_options){.threads = 2});
    const str body = recorded_text(load_case(&mem, "toy-vision.images-1"), "request");
    const clef_request both[] = {{body.p, body.n}, {body.p, body.n}};
    clef_answer *answers[2];
    clef_error errs[2];
    clef_ask_options o = {.max_decoded_pixels = 2 * 6 * 1024}; /* its picture has six tokens */
    assert_int_equal(clef_ask_batch(e, &o, both, 2, answers, errs), CLEF_OK);
    clef_answer_free(answers[0]);
    clef_answer_free(answers[1]);
    o.max_decoded_pixels--;
    assert_int_equal(clef_ask_batch(e, &o, both, 2, answers, errs), CLEF_ERR_LIMIT);
    assert_non_null(answers[0]);
    assert_null(answers[1]);
    assert_string_equal(errs[1].text, "images[0]: the pictures up to this one have 12288 pixels "
                                      "together, the limit is 12287");
    clef_answer_free(answers[0]);
    clef_close(e);
    arena_free(&mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_from_bytes_are_the_references),
        cmocka_unit_test(encoding_gives_the_references_ids_grids_and_positions),
        cmocka_unit_test(a_record_has_the_same_bits_alone_and_in_a_batch_with_others),
        cmocka_unit_test(kept_states_are_not_taken_for_another_picture),
        cmocka_unit_test(a_kept_state_behind_the_pictures_saves_the_tower),
        cmocka_unit_test(the_scalar_table_gives_the_same_bits),
        cmocka_unit_test(a_file_gives_what_the_same_bytes_in_the_request_give),
        cmocka_unit_test(a_model_without_a_tower_refuses_pictures),
        cmocka_unit_test(a_wrong_picture_is_named_and_disturbs_nobody),
        cmocka_unit_test(too_many_tokens_of_pictures_are_refused_before_the_tower_runs),
        cmocka_unit_test(a_grid_and_a_bound_change_the_number_of_tokens),
        cmocka_unit_test(a_request_can_be_stopped_in_the_tower),
        cmocka_unit_test(a_request_can_be_stopped_while_its_pictures_are_read),
        cmocka_unit_test(pictures_of_all_records_of_a_call_are_bounded_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
