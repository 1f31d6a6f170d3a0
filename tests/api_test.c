/* api_test.c - what clef.h promises, seen from outside: answers, batches, threads, cancelling,
 * faults of the weights. Only the public header is used; api_oom_test.c has memory that runs out.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "clef.h"
#include "tests/rest.h"

static const char toy[] = TESTDATA "toy-r2";

static const char request_a[] =
    "{\"model\":\"m\",\"state\":{\"subject\":\"Card charged twice\",\"body\":\"Second time this "
    "month.\"},"
    "\"questions\":{\"angry\":{\"type\":\"noul\",\"instructions\":\"Is the writer angry?\"},"
    "\"queue\":{\"type\":\"choice\",\"criteria\":{\"tech\":\"Faults\",\"billing\":\"Charges\","
    "\"other\":null}},"
    "\"urgency\":{\"type\":\"score\",\"criteria\":[\"This week\",\"Tomorrow\",\"Today\"]}}}";
static const char request_b[] =
    "{\"model\":\"m\",\"state\":\"The shop is closed on Sunday and nobody "
    "answered the phone at 14:30.\",\"questions\":{\"open\":{\"type\":\"noul\"}}}";

static clef_engine *open_toy(unsigned threads, uint32_t chunk) {
    clef_engine *e = NULL;
    clef_error err = {0};
    const clef_options options = {.model = toy, .threads = threads, .chunk = chunk};
    if (clef_open(&e, &options, &err) != CLEF_OK) fail_msg("%s", err.text);
    return e;
}

static clef_answer *ask(clef_engine *e, const char *body) {
    clef_answer *a = NULL;
    clef_error err = {0};
    if (clef_ask(e, NULL, body, strlen(body), &a, &err) != CLEF_OK) fail_msg("%s", err.text);
    return a;
}

static void same_bits(const clef_answer *a, const clef_answer *b) {
    size_t na = 0, nb = 0;
    const clef_option *x = clef_answer_options(a, &na), *y = clef_answer_options(b, &nb);
    assert_int_equal(na, nb);
    for (size_t i = 0; i < na; i++) {
        assert_memory_equal(&x[i].logit, &y[i].logit, sizeof x[i].logit);
        assert_memory_equal(&x[i].probability, &y[i].probability, sizeof x[i].probability);
    }
    assert_string_equal(clef_answer_json(a, NULL), clef_answer_json(b, NULL));
}

typedef struct {
    size_t calls, last, total, stop_at;
} steps;

static int count_steps(void *user, size_t done, size_t total) {
    steps *s = user;
    s->calls++;
    assert_true(done >= s->last && done <= total);
    s->last = done;
    s->total = total;
    return s->stop_at != 0 && done >= s->stop_at;
}

static void an_answer_lists_its_options_in_scoring_order(void **state) {
    (void)state;
    clef_engine *e = open_toy(1, 0);
    clef_answer *a = ask(e, request_a);
    size_t n = 0;
    const clef_option *o = clef_answer_options(a, &n);
    const char *const names[] = {"true", "false", "billing", "other", "tech", "0", "1", "2"};
    assert_int_equal(n, 8);
    for (size_t i = 0; i < n; i++) assert_string_equal(o[i].option, names[i]);
    assert_string_equal(o[2].question, "queue");
    double sum = 0;
    for (size_t i = 2; i < 5; i++) sum += (double)o[i].probability;
    assert_true(sum > 1 - 1e-6 && sum < 1 + 1e-6);
    clef_answer_free(a);
    clef_close(e);
}

static void one_request_leaves_no_trace_in_the_next(void **state) {
    (void)state;
    clef_engine *e = open_toy(2, 64);
    clef_answer *first = ask(e, request_a), *other = ask(e, request_b), *again = ask(e, request_a);
    same_bits(first, again);
    clef_engine *fresh = open_toy(2, 64);
    clef_answer *alone = ask(fresh, request_b);
    same_bits(other, alone);
    assert_null(strstr(clef_answer_json(other, NULL), "billing"));
    clef_answer_free(alone);
    clef_answer_free(again);
    clef_answer_free(other);
    clef_answer_free(first);
    clef_close(fresh);
    clef_close(e);
}

/* A request with a state of about `words` words. */
static char *long_request(unsigned words) {
    char *text = malloc(256 + (size_t)words * 8);
    assert_non_null(text);
    size_t n = (size_t)sprintf(text, "{\"model\":\"m\",\"state\":\"");
    for (unsigned i = 0; i < words; i++) n += (size_t)sprintf(text + n, "word%u ", i % 97);
    sprintf(text + n, "\",\"questions\":{\"q%u\":{\"type\":\"noul\"}}}", words);
    return text;
}

static void a_batch_gives_every_record_the_bits_it_has_alone(void **state) {
    (void)state;
    enum { N = 9 };
    char *bodies[N];
    clef_request requests[N];
    for (unsigned i = 0; i < N; i++) {
        bodies[i] = long_request(i * i * 5);
        requests[i] = (clef_request){bodies[i], strlen(bodies[i])};
    }
    const uint32_t chunks[] = {64, 192, 512};
    for (size_t c = 0; c < sizeof chunks / sizeof chunks[0]; c++) {
        clef_engine *e = open_toy(2, chunks[c]);
        clef_answer *together[N];
        clef_error errs[N];
        assert_int_equal(clef_ask_batch(e, NULL, requests, N, together, errs), CLEF_OK);
        for (unsigned i = 0; i < N; i++) {
            clef_answer *alone = ask(e, bodies[i]);
            same_bits(together[i], alone);
            clef_answer_free(alone);
            clef_answer_free(together[i]);
        }
        clef_close(e);
    }
    for (unsigned i = 0; i < N; i++) free(bodies[i]);
}

/* More of them fit the rows of a chunk than may have a part in it. */
static void many_short_records_share_chunks_without_a_trace(void **state) {
    (void)state;
    enum { N = 21 };
    clef_request requests[N];
    clef_answer *together[N];
    for (unsigned i = 0; i < N; i++) {
        const char *body = i % 3 == 0 ? request_a : request_b;
        requests[i] = (clef_request){body, strlen(body)};
    }
    clef_engine *e = open_toy(2, 4096);
    clef_answer *a = ask(e, request_a), *b = ask(e, request_b);
    steps s = {0};
    const clef_ask_options options = {.progress = count_steps, .user = &s};
    assert_int_equal(clef_ask_batch(e, &options, requests, N, together, NULL), CLEF_OK);
    assert_true(s.calls >= 4); /* at the start, and after 8, 8 and 5 records */
    assert_int_equal(s.last, s.total);
    for (unsigned i = 0; i < N; i++) {
        same_bits(together[i], i % 3 == 0 ? a : b);
        clef_answer_free(together[i]);
    }
    clef_answer_free(b);
    clef_answer_free(a);
    clef_close(e);
}

static void a_wrong_request_does_not_disturb_the_rest_of_its_batch(void **state) {
    (void)state;
    clef_engine *e = open_toy(1, 0);
    const clef_request requests[] = {{request_a, strlen(request_a)},
                                     {"{\"model\":\"m\",\"state\":1,\"questions\":{}}", 38},
                                     {request_b, strlen(request_b)}};
    clef_answer *out[3];
    clef_error errs[3];
    assert_int_equal(clef_ask_batch(e, NULL, requests, 3, out, errs), CLEF_ERR_INPUT);
    assert_null(out[1]);
    assert_non_null(strstr(errs[1].text, "at least one question is required"));
    clef_answer *a = ask(e, request_a), *b = ask(e, request_b);
    same_bits(out[0], a);
    same_bits(out[2], b);
    assert_int_equal(errs[0].status, CLEF_OK);
    assert_int_equal(errs[2].status, CLEF_OK);
    clef_answer_free(b);
    clef_answer_free(a);
    clef_answer_free(out[2]);
    clef_answer_free(out[0]);
    clef_close(e);
}

static void a_batch_of_wrong_requests_tells_what_is_wrong_with_each(void **state) {
    (void)state;
    clef_engine *e = open_toy(1, 0);
    const clef_request requests[] = {{"[]", 2}, {"{", 1}};
    clef_answer *out[2];
    clef_error errs[2];
    assert_int_equal(clef_ask_batch(e, NULL, requests, 2, out, errs), CLEF_ERR_INPUT);
    for (int i = 0; i < 2; i++) {
        assert_null(out[i]);
        assert_int_equal(errs[i].status, CLEF_ERR_INPUT);
    }
    clef_close(e);
}

static void an_empty_batch_is_answered(void **state) {
    (void)state;
    clef_engine *e = open_toy(1, 0);
    assert_int_equal(clef_ask_batch(e, NULL, NULL, 0, NULL, NULL), CLEF_OK);
    clef_close(e);
}

/* ---- threads ---- */

typedef struct {
    clef_engine *e;
    const clef_answer *a, *b;
    unsigned seed, wrong;
} asker;

static void *ask_many(void *context) {
    asker *me = context;
    for (unsigned i = 0; i < 12; i++) {
        const int first = (me->seed + i) % 2 == 0;
        const char *body = first ? request_a : request_b;
        clef_answer *found = NULL;
        if (clef_ask(me->e, NULL, body, strlen(body), &found, NULL) != CLEF_OK ||
            strcmp(clef_answer_json(found, NULL), clef_answer_json(first ? me->a : me->b, NULL)) !=
                0)
            me->wrong++;
        clef_answer_free(found);
    }
    return NULL;
}

static void eight_threads_get_the_serial_answers(void **state) {
    (void)state;
    clef_engine *e = open_toy(2, 128);
    clef_answer *a = ask(e, request_a), *b = ask(e, request_b);
    pthread_t threads[8];
    asker askers[8];
    for (unsigned i = 0; i < 8; i++) {
        askers[i] = (asker){e, a, b, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, ask_many, &askers[i]), 0);
    }
    for (unsigned i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(askers[i].wrong, 0);
    }
    clef_answer_free(b);
    clef_answer_free(a);
    clef_close(e);
}

static void an_idle_engine_takes_no_processor_time(void **state) {
    (void)state;
    clef_engine *e = open_toy(3, 0);
    clef_answer_free(ask(e, request_a));
    assert_true(rest_comes(CLOCK_PROCESS_CPUTIME_ID));
    clef_close(e);
}

/* ---- progress ---- */

static void progress_rises_to_the_total(void **state) {
    (void)state;
    clef_engine *e = open_toy(1, 64);
    steps s = {0};
    const clef_ask_options options = {.progress = count_steps, .user = &s};
    clef_answer *a = NULL;
    assert_int_equal(clef_ask(e, &options, request_a, strlen(request_a), &a, NULL), CLEF_OK);
    assert_true(s.calls > 3);
    assert_int_equal(s.last, s.total);
    clef_answer_free(a);
    clef_close(e);
}

static void progress_can_stop_a_run(void **state) {
    (void)state;
    clef_engine *e = open_toy(1, 64);
    steps s = {.stop_at = 100};
    const clef_ask_options options = {.progress = count_steps, .user = &s};
    clef_answer *a = NULL;
    clef_error err = {0};
    assert_int_equal(clef_ask(e, &options, request_a, strlen(request_a), &a, &err),
                     CLEF_ERR_CANCELLED);
    assert_null(a);
    assert_int_equal(s.last, 128);
    clef_answer_free(ask(e, request_a)); /* and the next one is answered */
    clef_close(e);
}

/* ---- options ---- */

static void wrong_options_are_refused(void **state) {
    (void)state;
    clef_engine *e = NULL;
    clef_error err = {0};
    const clef_options wrong[] = {{.model = NULL},
                                  {.model = toy, .chunk = 5000},
                                  {.model = toy, .kernels = "avx9"},
                                  {.model = toy, .split = "qwen9"},
                                  {.model = toy, .threads = 5000},
                                  {.model = TESTDATA "no-such-folder"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        err = (clef_error){0};
        assert_int_not_equal(clef_open(&e, &wrong[i], &err), CLEF_OK);
        assert_null(e);
        assert_true(strlen(err.text) > 10);
    }
}

static void ask_options_out_of_range_are_refused(void **state) {
    (void)state;
    clef_engine *e = open_toy(1, 0);
    const struct {
        clef_ask_options options;
        const char *name;
    } wrong[] = {{{.truncate = (clef_truncate)2}, "truncate"},
                 {{.control_tokens = (clef_control)3}, "control_tokens"},
                 {{.confidence = (clef_confidence)3}, "confidence"},
                 {{.digits = 5}, "digits"},
                 {{.max_length = 300000}, "max_length"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        clef_answer *a = NULL;
        clef_error err = {0};
        assert_int_equal(clef_ask(e, &wrong[i].options, request_a, strlen(request_a), &a, &err),
                         CLEF_ERR_INPUT);
        assert_non_null(strstr(err.text, wrong[i].name));
        assert_int_equal(clef_encode(e, &wrong[i].options, request_a, strlen(request_a), &a, &err),
                         CLEF_ERR_INPUT);
        assert_null(a);
    }
    clef_close(e);
}

/* clef_open takes a tokenizer without a model; these two cannot. */
static void what_needs_a_model_refuses_a_tokenizer_alone(void **state) {
    (void)state;
    const clef_options options = {.tokenizer_only = 1,
                                  .tokenizer = TESTDATA "toy-r2/tokenizer.json"};
    char *text = NULL;
    int loads = 0;
    clef_error err = {0};
    assert_int_equal(clef_info(&options, 0, &text, &loads, &err), CLEF_ERR_INPUT);
    assert_null(text);
    assert_non_null(strstr(err.text, "no model"));
    clef_bench_result result;
    assert_int_equal(clef_bench(&options, NULL, &result, &err), CLEF_ERR_INPUT);
    assert_non_null(strstr(err.text, "no model"));
}

static void a_record_over_the_limit_names_both_numbers(void **state) {
    (void)state;
    clef_engine *e = open_toy(1, 0);
    clef_answer *a = NULL;
    clef_error err = {0};
    char *body = long_request(400);
    const clef_ask_options options = {.max_length = 300};
    assert_int_equal(clef_ask(e, &options, body, strlen(body), &a, &err), CLEF_ERR_LIMIT);
    assert_non_null(strstr(err.text, "300"));
    const clef_ask_options cut = {.max_length = 300, .truncate = CLEF_TRUNCATE_STATE};
    assert_int_equal(clef_ask(e, &cut, body, strlen(body), &a, &err), CLEF_OK);
    assert_non_null(strstr(clef_answer_json(a, NULL), "\"input_tokens\": 300"));
    assert_non_null(strstr(clef_answer_json(a, NULL), "x_truncated_tokens"));
    clef_answer_free(a);
    free(body);
    clef_close(e);
}

static void a_tokenizer_alone_encodes_and_does_not_answer(void **state) {
    (void)state;
    clef_engine *e = NULL;
    clef_error err = {0};
    const clef_options options = {.tokenizer_only = 1,
                                  .tokenizer = TESTDATA "toy-r2/tokenizer.json"};
    assert_int_equal(clef_open(&e, &options, &err), CLEF_OK);
    clef_answer *a = NULL;
    assert_int_equal(clef_encode(e, NULL, request_a, strlen(request_a), &a, &err), CLEF_OK);
    assert_int_equal(strncmp(clef_answer_json(a, NULL), "{\"ids\": [", 9), 0);
    clef_answer_free(a);
    a = NULL;
    assert_int_equal(clef_ask(e, NULL, request_a, strlen(request_a), &a, &err), CLEF_ERR_INPUT);
    assert_null(a);
    clef_close(e);
}

/* ---- faults in the weights ---- */

static void copy_file(const char *from_dir, const char *dir, const char *name) {
    char from[256], to[256];
    snprintf(from, sizeof from, "%s/%s", from_dir, name);
    snprintf(to, sizeof to, "%s/%s", dir, name);
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_true(in != NULL && out != NULL);
    char block[4096];
    for (size_t n; (n = fread(block, 1, sizeof block, in)) > 0;)
        assert_int_equal(fwrite(block, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

static const char *const files[] = {"config.json", "model.safetensors", "joint_head.safetensors",
                                    "joint_head_config.json", "tokenizer.json"};
enum { N_FILES = sizeof files / sizeof files[0] };

/* Copies the toy to a new folder whose files may be changed. */
static void make_copy(char *dir) {
    assert_non_null(mkdtemp(dir));
    for (int i = 0; i < N_FILES; i++) copy_file(toy, dir, files[i]);
}

/* Overwrites the first `was` of a text file with `now`, which is as long. */
static void replace_in(const char *dir, const char *name, const char *was, const char *now) {
    char path[256], text[16384];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    const char *at = strstr(text, was);
    assert_non_null(at);
    assert_int_equal(fseek(f, at - text, SEEK_SET), 0);
    assert_int_equal(fwrite(now, 1, strlen(now), f), strlen(was));
    assert_int_equal(fclose(f), 0);
}

static void remove_copy(const char *dir) {
    char path[256];
    for (int i = 0; i < N_FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        unlink(path);
    }
    rmdir(dir);
}

static void weights_that_hold_nan_never_leave_as_json(void **state) {
    (void)state;
    char dir[] = "/tmp/clef-api-XXXXXX", path[256];
    make_copy(dir);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    /* The last tensor bytes of the file belong to some weight: a whole row of bf16 NaN. */
    assert_int_equal(fseek(f, -400, SEEK_END), 0);
    for (int i = 0; i < 200; i++) assert_int_equal(fwrite("\xc0\x7f", 1, 2, f), 2);
    fclose(f);
    clef_engine *e = NULL;
    clef_error err = {0};
    const clef_options options = {.model = dir};
    assert_int_equal(clef_open(&e, &options, &err), CLEF_OK);
    clef_answer *a = NULL;
    assert_int_equal(clef_ask(e, NULL, request_a, strlen(request_a), &a, &err), CLEF_ERR_INTERNAL);
    assert_null(a);
    assert_non_null(strstr(err.text, "option 1 of question 1 is not finite"));
    clef_close(e);
    remove_copy(dir);
}

/* Where the data of a tensor begins in a safetensors file. */
static long tensor_at(const char *path, const char *name) {
    static char header[1 << 16];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    unsigned char n[8];
    assert_int_equal(fread(n, 1, 8, f), 8);
    const size_t bytes = n[0] | (size_t)n[1] << 8 | (size_t)n[2] << 16;
    assert_true(bytes < sizeof header);
    assert_int_equal(fread(header, 1, bytes, f), bytes);
    fclose(f);
    header[bytes] = '\0';
    const char *at = strstr(header, name);
    assert_non_null(at);
    at = strstr(at, "\"data_offsets\":");
    assert_non_null(at);
    at = strchr(at, '[');
    assert_non_null(at);
    return 8 + (long)bytes + strtol(at + 1, NULL, 10);
}

/* The scales of the logits go through a clamp, which must not take a NaN for a large number. */
static void a_scale_that_is_nan_never_leaves_as_json(void **state) {
    (void)state;
    static const char *const names[] = {"\"prior_logit_scale\"", "\"joint_logit_scale\"",
                                        "\"residual_gate\""};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char dir[] = "/tmp/clef-api-XXXXXX", path[256];
        make_copy(dir);
        snprintf(path, sizeof path, "%s/joint_head.safetensors", dir);
        const long at = tensor_at(path, names[i]);
        FILE *f = fopen(path, "r+b");
        assert_non_null(f);
        assert_int_equal(fseek(f, at, SEEK_SET), 0);
        assert_int_equal(fwrite("\xc0\x7f", 1, 2, f), 2);
        assert_int_equal(fclose(f), 0);
        clef_engine *e = NULL;
        clef_error err = {0};
        const clef_options options = {.model = dir, .threads = 1};
        assert_int_equal(clef_open(&e, &options, &err), CLEF_OK);
        clef_answer *a = NULL;
        assert_int_equal(clef_ask(e, NULL, request_b, strlen(request_b), &a, &err),
                         CLEF_ERR_INTERNAL);
        assert_null(a);
        clef_close(e);
        remove_copy(dir);
    }
}

/* Without max_length a record may have 16,384 tokens, but not more than the model has positions. */
static void the_models_positions_bound_the_default_length(void **state) {
    (void)state;
    char dir[] = "/tmp/clef-api-XXXXXX";
    make_copy(dir);
    replace_in(dir, "config.json", "\"max_position_embeddings\": 262144",
               "\"max_position_embeddings\":    300");
    clef_engine *e = NULL;
    clef_error err = {0};
    const clef_options options = {.model = dir};
    assert_int_equal(clef_open(&e, &options, &err), CLEF_OK);
    char *body = long_request(400);
    clef_answer *a = NULL;
    assert_int_equal(clef_ask(e, NULL, body, strlen(body), &a, &err), CLEF_ERR_LIMIT);
    assert_null(a);
    assert_non_null(strstr(err.text, "the limit is 300"));
    free(body);
    clef_close(e);
    remove_copy(dir);
}

static void info_tells_every_fault_of_a_folder(void **state) {
    (void)state;
    char dir[] = "/tmp/clef-api-XXXXXX", path[256];
    make_copy(dir);
    char *text = NULL;
    int loads = 0;
    clef_error err = {0};
    const clef_options options = {.model = dir};
    assert_int_equal(clef_info(&options, 0, &text, &loads, &err), CLEF_OK);
    assert_int_equal(loads, 1);
    assert_non_null(strstr(text, "qwen35"));
    clef_text_free(text);
    snprintf(path, sizeof path, "%s/joint_head.safetensors", dir);
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    assert_int_equal(truncate(path, 1000), 0);
    assert_int_equal(clef_info(&options, 1, &text, &loads, &err), CLEF_OK);
    assert_int_equal(loads, 0);
    assert_non_null(strstr(text, "joint_head.safetensors"));
    assert_non_null(strstr(text, "tokenizer.json"));
    assert_non_null(strstr(text, "\"loads\": false"));
    clef_text_free(text);
    remove_copy(dir);
}

/* The index's total_size is a hint that some writers get wrong. */
static void info_tells_what_is_odd_but_harmless(void **state) {
    (void)state;
    static const char *const sharded[] = {
        "model.safetensors.index.json", "model-00001-of-00003.safetensors",
        "model-00002-of-00003.safetensors", "model-00003-of-00003.safetensors"};
    static const char from[] = TESTDATA "toy-r3-sharded";
    char dir[] = "/tmp/clef-api-XXXXXX", path[256];
    assert_non_null(mkdtemp(dir));
    for (int i = 0; i < N_FILES; i++)
        if (strcmp(files[i], "model.safetensors") != 0) copy_file(from, dir, files[i]);
    for (int i = 0; i < 4; i++) copy_file(from, dir, sharded[i]);
    replace_in(dir, sharded[0], "\"total_size\": 692952", "\"total_size\": 692953");
    char *text = NULL;
    int loads = 0;
    const clef_options options = {.model = dir};
    assert_int_equal(clef_info(&options, 0, &text, &loads, NULL), CLEF_OK);
    assert_int_equal(loads, 1);
    assert_non_null(strstr(text, "metadata.total_size is 692953"));
    clef_text_free(text);
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, sharded[i]);
        unlink(path);
    }
    remove_copy(dir);
}

static void info_prints_no_byte_of_a_path_that_is_no_text(void **state) {
    (void)state;
    char dir[] = "/tmp/clef-api-\xff\x1b-XXXXXX";
    make_copy(dir);
    for (int json = 0; json < 2; json++) {
        char *text = NULL;
        const clef_options options = {.model = dir};
        assert_int_equal(clef_info(&options, json, &text, NULL, NULL), CLEF_OK);
        assert_null(strchr(text, '\xff'));
        assert_null(strchr(text, '\x1b'));
        assert_non_null(strstr(text, "xff"));
        clef_text_free(text);
    }
    remove_copy(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_lists_its_options_in_scoring_order),
        cmocka_unit_test(one_request_leaves_no_trace_in_the_next),
        cmocka_unit_test(a_batch_gives_every_record_the_bits_it_has_alone),
        cmocka_unit_test(many_short_records_share_chunks_without_a_trace),
        cmocka_unit_test(a_wrong_request_does_not_disturb_the_rest_of_its_batch),
        cmocka_unit_test(a_batch_of_wrong_requests_tells_what_is_wrong_with_each),
        cmocka_unit_test(an_empty_batch_is_answered),
        cmocka_unit_test(eight_threads_get_the_serial_answers),
        cmocka_unit_test(an_idle_engine_takes_no_processor_time),
        cmocka_unit_test(progress_rises_to_the_total),
        cmocka_unit_test(progress_can_stop_a_run),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(ask_options_out_of_range_are_refused),
        cmocka_unit_test(what_needs_a_model_refuses_a_tokenizer_alone),
        cmocka_unit_test(a_record_over_the_limit_names_both_numbers),
        cmocka_unit_test(a_tokenizer_alone_encodes_and_does_not_answer),
        cmocka_unit_test(weights_that_hold_nan_never_leave_as_json),
        cmocka_unit_test(a_scale_that_is_nan_never_leaves_as_json),
        cmocka_unit_test(the_models_positions_bound_the_default_length),
        cmocka_unit_test(info_tells_every_fault_of_a_folder),
        cmocka_unit_test(info_tells_what_is_odd_but_harmless),
        cmocka_unit_test(info_prints_no_byte_of_a_path_that_is_no_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
