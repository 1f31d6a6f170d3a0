/* gate_test.c - the gate from outside: what it accepts, what it refuses and why, on fixtures that
 * tools/gate/record_fixture.py made from the reference's numbers.
 *
 * The refused weights are real ones: the toy's own matrices rounded to four bits in a copy of its
 * folder. Fixtures with a fault are the recorded ones with one word of their text exchanged. */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <math.h>

#include "base/file.h"
#include "base/tensor.h"
#include "clef.h"
#include "tests/folder.h"
#include "tests/oom.h"
#include "tests/oom_each.h"
#include "tests/recorded.h"

#define CHOSEN TESTDATA "gate/toy-r2-chosen.json"
#define HELD_OUT TESTDATA "gate/toy-r2-heldout.json"

/* ---- running the gate ---- */

typedef struct {
    clef_status status;
    int holds;
    char *table, *report;
    clef_error err;
    arena mem;
    const json *root; /* the report */
} outcome;

static clef_engine *open_model(const char *dir) {
    clef_engine *e = NULL;
    clef_error err = {0};
    const clef_options options = {.model = dir, .threads = 2};
    if (clef_open(&e, &options, &err) != CLEF_OK) fail_msg("%s", err.text);
    return e;
}

static outcome gate(clef_engine *e, const clef_gate_options *options, const char *fixture) {
    outcome o = {.holds = -1};
    o.status = clef_gate(e, options, &fixture, 1, &o.holds, &o.table, &o.report, &o.err);
    if (o.status != CLEF_OK) return o;
    assert_int_equal(
        json_parse(&o.root, str_of(o.report), "report", &(json_limits){0}, &o.mem, &o.err),
        CLEF_OK);
    assert_int_equal(json_get(o.root, STR("holds"))->kind, o.holds ? JSON_TRUE : JSON_FALSE);
    assert_non_null(strstr(o.table, o.holds ? "gate: passed\n" : "gate: FAILED\n"));
    return o;
}

static void done(outcome *o) {
    clef_text_free(o->table);
    clef_text_free(o->report);
    arena_free(&o->mem);
}

/* made, held and not_checked of a check, and whether it holds. */
static void check_is(const outcome *o, const char *name, unsigned made, unsigned held,
                     unsigned not_checked, bool holds) {
    const json *c = recorded_get(recorded_get(o->root, "checks"), name);
    if (recorded_count(c, "made") != made || recorded_count(c, "held") != held ||
        recorded_count(c, "not_checked") != not_checked ||
        (recorded_get(c, "holds")->kind == JSON_TRUE) != holds)
        fail_msg("check '%s' is not %u made, %u held, %u not checked:\n%s", name, made, held,
                 not_checked, o->table);
}

/* ---- what passes ---- */

static void weights_as_recorded_pass_and_every_red_arm_is_caught(void **state) {
    (void)state;
    static const struct {
        const char *toy;
        unsigned n_arms; /* with tied tables the embedding's rows are lm_head's */
    } toys[] = {{"toy-r2", 4}, {"toy-real-heads", 4}, {"toy-two-layers", 3}};
    static const char *const sets[] = {"chosen", "heldout"};
    for (size_t t = 0; t < sizeof toys / sizeof *toys; t++) {
        char path[128];
        snprintf(path, sizeof path, TESTDATA "%s", toys[t].toy);
        clef_engine *e = open_model(path);
        for (int s = 0; s < 2; s++) {
            snprintf(path, sizeof path, TESTDATA "gate/%s-%s.json", toys[t].toy, sets[s]);
            outcome o = gate(e, &(clef_gate_options){.red = 1}, path);
            if (o.status != CLEF_OK) fail_msg("%s", o.err.text);
            if (!o.holds) fail_msg("%s", o.table);
            check_is(&o, "red", toys[t].n_arms, toys[t].n_arms, 5 - toys[t].n_arms, true);
            check_is(&o, "repeat", 1, 1, 0, true);
            done(&o);
        }
        clef_close(e);
    }
}

static void near_ties_are_listed_and_not_counted_as_answers(void **state) {
    (void)state;
    clef_engine *e = open_model(TESTDATA "toy-r2");
    outcome o = gate(e, NULL, CHOSEN);
    check_is(&o, "answers", 16, 16, 0, true); /* of 18 questions */
    assert_non_null(strstr(o.table, "near ties"));
    assert_non_null(strstr(o.table, "\"toy-r2.scores\" \"two\""));
    assert_null(json_get(recorded_get(o.root, "checks"), STR("red"))); /* not asked for */
    done(&o);
    clef_close(e);
}

/* ---- what is refused ---- */

/* The matrices of a BF16 safetensors file rounded to `bits` in blocks of 32, symmetric. */
static void round_weights(buf *file, unsigned bits) {
    enum { BLOCK = 32 };
    uint64_t header = 0;
    memcpy(&header, file->p, sizeof header);
    arena mem = {0};
    clef_error err = {0};
    const json *root = NULL;
    assert_int_equal(
        json_parse(&root, (str){file->p + 8, header}, "header", &(json_limits){0}, &mem, &err),
        CLEF_OK);
    const float most = (float)((1u << (bits - 1)) - 1);
    unsigned n_rounded = 0;
    for (const json *t = root->first; t != NULL; t = t->next) {
        const json *shape = json_get(t, STR("shape"));
        if (shape == NULL || shape->n != 2) continue;
        assert_true(str_equal(recorded_text(t, "dtype"), STR("BF16")));
        const json *offsets = recorded_get(t, "data_offsets");
        uint64_t begin = 0, end = 0;
        assert_true(json_u64(&begin, offsets->first, INT32_MAX));
        assert_true(json_u64(&end, offsets->first->next, INT32_MAX));
        char *data = file->p + 8 + header;
        for (uint64_t at = begin; at < end; at += (uint64_t)BLOCK * 2) {
            float x[BLOCK] = {0}, largest = 0;
            const size_t left = (size_t)(end - at) / 2, n = left < BLOCK ? left : BLOCK;
            for (size_t i = 0; i < n; i++) {
                uint16_t half;
                memcpy(&half, data + at + 2 * i, sizeof half);
                const uint32_t word = (uint32_t)half << 16;
                memcpy(&x[i], &word, sizeof word);
                largest = fmaxf(largest, fabsf(x[i]));
            }
            for (size_t i = 0; i < n && largest > 0; i++) {
                const float rounded = rintf(x[i] / largest * most) / most * largest;
                uint32_t word;
                memcpy(&word, &rounded, sizeof word);
                const uint16_t half = (uint16_t)((word + 0x7FFF + (word >> 16 & 1)) >> 16);
                memcpy(data + at + 2 * i, &half, sizeof half);
            }
        }
        n_rounded++;
    }
    assert_true(n_rounded > 10);
    arena_free(&mem);
}

/* A copy of toy-r2 whose decoder is rounded. */
static folder rounded_toy(unsigned bits) {
    static const char *const files[] = {"config.json", "model.safetensors",
                                        "joint_head.safetensors", "joint_head_config.json",
                                        "tokenizer.json"};
    const folder f = folder_new();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[256];
        buf bytes = {0};
        clef_error err = {0};
        snprintf(path, sizeof path, TESTDATA "toy-r2/%s", files[i]);
        if (file_read(&bytes, path, 1 << 28, &err) != CLEF_OK) fail_msg("%s", err.text);
        if (i == 1) round_weights(&bytes, bits);
        folder_write(&f, files[i], (str){bytes.p, bytes.n});
        buf_free(&bytes);
    }
    return f;
}

static void weights_rounded_to_four_bits_are_refused(void **state) {
    (void)state;
    const folder f = rounded_toy(4);
    clef_engine *e = open_model(f.path);
    static const char *const sets[] = {CHOSEN, HELD_OUT};
    for (int s = 0; s < 2; s++) {
        outcome o = gate(e, NULL, sets[s]);
        assert_int_equal(o.status, CLEF_OK);
        assert_int_equal(o.holds, 0);
        const json *checks = recorded_get(o.root, "checks");
        /* Ids and spans do not depend on the weights, and the bits stay the same. */
        assert_int_equal(recorded_get(recorded_get(checks, "ids"), "holds")->kind, JSON_TRUE);
        assert_int_equal(recorded_get(recorded_get(checks, "repeat"), "holds")->kind, JSON_TRUE);
        assert_int_equal(recorded_get(recorded_get(checks, "max_dp"), "holds")->kind, JSON_FALSE);
        assert_int_equal(recorded_get(recorded_get(checks, "mean_dp"), "holds")->kind, JSON_FALSE);
        done(&o);
    }
    clef_close(e);
    folder_remove(f.path);
}

static void weights_of_another_model_are_refused(void **state) {
    (void)state;
    clef_engine *e = open_model(TESTDATA "toy-explicit");
    outcome o = gate(e, NULL, CHOSEN);
    assert_int_equal(o.status, CLEF_OK);
    assert_int_equal(o.holds, 0);
    done(&o);
    clef_close(e);
}

/* ---- fixtures with a fault ---- */

/* The chosen set with the first `from` replaced by `to`, at fixture.json in `f`. */
static const char *changed(const folder *f, const char *from, const char *to) {
    buf text = {0}, out = {0};
    clef_error err = {0};
    if (file_read(&text, CHOSEN, 1 << 24, &err) != CLEF_OK) fail_msg("%s", err.text);
    const char *at = strstr(text.p, from);
    if (at == NULL) fail_msg("the fixture has no '%s'", from);
    buf_add(&out, text.p, (size_t)(at - text.p));
    buf_add_text(&out, to);
    buf_add_text(&out, at + strlen(from));
    assert_false(out.failed);
    folder_write(f, "fixture.json", (str){out.p, out.n});
    buf_free(&text);
    buf_free(&out);
    return folder_path(f, "fixture.json");
}

static void a_changed_word_turns_the_ids_red(void **state) {
    (void)state;
    const folder f = folder_new();
    clef_engine *e = open_model(TESTDATA "toy-r2");
    outcome o = gate(e, NULL, changed(&f, "\"ids\": [861, ", "\"ids\": [862, "));
    assert_int_equal(o.holds, 0);
    check_is(&o, "ids", 6, 5, 0, false);
    check_is(&o, "max_dp", 5, 5, 1, true); /* a row that is not the oracle's is not compared */
    assert_non_null(strstr(o.table, "\"toy-r2.basic\": ids[0]: 861, the oracle has 862"));
    done(&o);
    clef_close(e);
    folder_remove(f.path);
}

static void a_span_one_token_late_turns_the_spans_red(void **state) {
    (void)state;
    const folder f = folder_new();
    arena mem = {0};
    const json *pair = recorded_get(
        recorded_get(recorded_get(recorded_load(&mem, CHOSEN), "records")->first, "questions")
            ->first,
        "question_span");
    uint64_t begin = 0, end = 0;
    assert_true(json_u64(&begin, pair->first, INT32_MAX));
    assert_true(json_u64(&end, pair->first->next, INT32_MAX));
    char from[64], to[64];
    snprintf(from, sizeof from, "\"question_span\": [%d, %d]", (int)begin, (int)end);
    snprintf(to, sizeof to, "\"question_span\": [%d, %d]", (int)begin + 1, (int)end + 1);
    clef_engine *e = open_model(TESTDATA "toy-r2");
    outcome o = gate(e, NULL, changed(&f, from, to));
    assert_int_equal(o.holds, 0);
    check_is(&o, "ids", 6, 6, 0, true);
    check_is(&o, "spans", 6, 5, 0, false);
    done(&o);
    clef_close(e);
    arena_free(&mem);
    folder_remove(f.path);
}

static void a_request_that_cannot_be_read_fails_its_run(void **state) {
    (void)state;
    const folder f = folder_new();
    clef_engine *e = open_model(TESTDATA "toy-r2");
    outcome o = gate(e, NULL, changed(&f, "\"type\": \"noul\"", "\"type\": \"maybe\""));
    assert_int_equal(o.status, CLEF_OK);
    assert_int_equal(o.holds, 0);
    check_is(&o, "ids", 5, 5, 1, true);
    assert_non_null(strstr(o.table, "faults\n"));
    done(&o);
    clef_close(e);
    folder_remove(f.path);
}

/* ---- what cannot be checked ---- */

static void withheld_ids_are_counted_and_named_and_spans_still_compared(void **state) {
    (void)state;
    const folder f = folder_new();
    clef_engine *e = open_model(TESTDATA "toy-r2");
    outcome o = gate(e, NULL, changed(&f, "\"ids\": [", "\"ids\": null, \"not_ids\": ["));
    check_is(&o, "ids", 5, 5, 1, true);
    check_is(&o, "spans", 6, 6, 0, true);
    check_is(&o, "max_dp", 6, 6, 0, true);
    assert_int_equal(o.holds, 1);
    assert_non_null(strstr(o.table, "not checked\n  \"toy-r2.basic\": its ids are withheld"));
    done(&o);
    clef_close(e);
    folder_remove(f.path);
}

static void a_picture_is_counted_and_named_and_never_passed(void **state) {
    (void)state;
    const folder f = folder_new();
    clef_engine *e = open_model(TESTDATA "toy-r2");
    outcome o = gate(e, NULL,
                     changed(&f, "\"n_image_tokens\": 0",
                             "\"image_files\": [\"a.png\"], \"n_image_tokens\": 0"));
    check_is(&o, "ids", 5, 5, 1, true);
    check_is(&o, "spans", 5, 5, 1, true);
    check_is(&o, "answers", 13, 13, 3, true);
    check_is(&o, "max_dp", 5, 5, 1, true);
    assert_non_null(strstr(o.table, "\"toy-r2.basic\": its pictures are not in the file"));
    done(&o);
    clef_close(e);
    folder_remove(f.path);
}

#define PICTURES TESTDATA "gate/toy-vision-pictures.json"

static void runs_with_pictures_are_compared_when_the_pictures_are_there(void **state) {
    (void)state;
    clef_engine *e = open_model(TESTDATA "toy-vision");
    const clef_gate_options options = {.images = TESTDATA "gate/pictures", .red = 1};
    outcome o = gate(e, &options, PICTURES);
    check_is(&o, "ids", 4, 4, 0, true);
    check_is(&o, "max_dp", 4, 4, 0, true);
    check_is(&o, "red", 5, 5, 0, true);
    assert_int_equal(o.holds, 1);
    assert_non_null(strstr(o.table, "image rows zeroed"));
    done(&o);
    o = gate(e, NULL, PICTURES);
    check_is(&o, "max_dp", 1, 1, 3, true);
    done(&o);
    clef_close(e);
}

static void a_picture_that_is_another_is_refused_by_its_hash(void **state) {
    (void)state;
    buf text = {0};
    clef_error err = {0};
    const folder f = folder_new();
    assert_int_equal(file_read(&text, PICTURES, 1 << 24, &err), CLEF_OK);
    char *hash = strstr(text.p, "image_sha256\": [\"");
    assert_non_null(hash);
    hash[strlen("image_sha256\": [\"")] ^= 1; /* '0' and '1', 'b' and 'c' change places */
    folder_write(&f, "changed.json", (str){text.p, text.n});
    clef_engine *e = open_model(TESTDATA "toy-vision");
    const clef_gate_options options = {.images = TESTDATA "gate/pictures"};
    outcome o = gate(e, &options, folder_path(&f, "changed.json"));
    assert_int_equal(o.holds, 0);
    assert_non_null(strstr(o.table, ".png: its SHA-256 is "));
    done(&o);
    clef_close(e);
    buf_free(&text);
    folder_remove(f.path);
}

/* A row with a picture's tokens in it is compared as far as the file goes: it is not the row of the
 * run without one. */
static void the_row_of_a_picture_is_compared_with_its_tokens(void **state) {
    (void)state;
    const folder f = folder_new();
    clef_engine *e = open_model(TESTDATA "toy-r2");
    outcome o = gate(e, NULL, changed(&f, "\"n_image_tokens\": 0", "\"n_image_tokens\": 4"));
    assert_int_equal(o.holds, 0);
    check_is(&o, "ids", 6, 5, 0, false);
    /* The prompt has 433 tokens; a picture of four adds its two borders and a line feed. */
    assert_non_null(strstr(o.table, "tokens: 440, the oracle has 433"));
    done(&o);
    clef_close(e);
    folder_remove(f.path);
}

static void a_check_with_nothing_to_look_at_does_not_hold(void **state) {
    (void)state;
    clef_engine *e = open_model(TESTDATA "toy-r2");
    outcome o = gate(e, &(clef_gate_options){.margin = 1}, CHOSEN); /* all of them ties */
    assert_int_equal(o.holds, 0);
    check_is(&o, "answers", 0, 0, 0, false);
    check_is(&o, "max_dp", 6, 6, 0, true);
    done(&o);
    clef_close(e);
}

/* ---- bars ---- */

static void the_bars_decide(void **state) {
    (void)state;
    clef_engine *e = open_model(TESTDATA "toy-r2");
    /* The engine is within 1e-5 of the reference, but not within 1e-9. */
    outcome o = gate(e, &(clef_gate_options){.max_dp = 1e-5, .mean_dp = 1e-5}, CHOSEN);
    assert_int_equal(o.holds, 1);
    done(&o);
    o = gate(e, &(clef_gate_options){.max_dp = 1e-9}, CHOSEN);
    assert_int_equal(o.holds, 0);
    assert_int_equal(
        recorded_get(recorded_get(recorded_get(o.root, "checks"), "max_dp"), "holds")->kind,
        JSON_FALSE);
    done(&o);
    o = gate(e, &(clef_gate_options){.mean_dp = 1e-9}, CHOSEN);
    check_is(&o, "mean_dp", 1, 0, 0, false);
    done(&o);
    clef_close(e);
}

/* A bar so wide that nothing can break it: the arms that move probabilities alone go unseen, and
 * the gate says so. */
static void a_gate_that_cannot_see_a_red_arm_fails(void **state) {
    (void)state;
    clef_engine *e = open_model(TESTDATA "toy-r2");
    const clef_gate_options blind = {.margin = 0.999, .max_dp = 1, .mean_dp = 1, .red = 1};
    outcome o = gate(e, &blind, CHOSEN);
    assert_int_equal(o.status, CLEF_OK);
    assert_int_equal(o.holds, 0);
    check_is(&o, "red", 4, 1, 1, false); /* late spans are seen exactly, by no bar */
    assert_non_null(strstr(o.table, "NOT CAUGHT"));
    done(&o);
    clef_close(e);
}

static void bars_that_mean_nothing_are_refused(void **state) {
    (void)state;
    clef_engine *e = open_model(TESTDATA "toy-r2");
    const clef_gate_options wrong[] = {{.margin = -0.1}, {.max_dp = 1.5}, {.mean_dp = (double)NAN}};
    static const char *const names[] = {"margin", "max_dp", "mean_dp"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        outcome o = gate(e, &wrong[i], CHOSEN);
        assert_int_equal(o.status, CLEF_ERR_INPUT);
        assert_ptr_equal(strstr(o.err.text, names[i]), o.err.text);
        assert_null(o.table);
        done(&o);
    }
    clef_close(e);
}

/* ---- bad files ---- */

static void a_bad_fixture_is_refused_naming_file_and_place(void **state) {
    (void)state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "fixture.json"},
        {"[1]", "fixture.json: an array, wanted an object"},
        {"{\"records\": [1]", "fixture.json"},
        {"{}", "schema: missing"},
        {"{\"schema\": 1}", "schema: a number"},
        {"{\"schema\": \"other/2\"}", "schema: \"other/2\""},
        {"{\"schema\": \"coreai-clef-flash-fixtures/1\"}", "records: missing"},
        {"{\"schema\": \"coreai-clef-flash-fixtures/1\", \"records\": []}", "records: empty"},
        {"{\"schema\": \"coreai-clef-flash-fixtures/1\", \"records\": {}}", "records: an object"},
        {"{\"schema\": \"coreai-clef-flash-fixtures/1\", \"records\": [7]}",
         "records[0]: a number, wanted an object"},
        {"{\"schema\": \"coreai-clef-flash-fixtures/1\", \"records\": [{}]}",
         "records[0].id: missing"},
    };
    static const struct {
        const char *from, *to, *words;
    } changes[] = {
        {"\"tokens\": 433", "\"tokens\": -1", "records[0].tokens: a number"},
        {"\"tokens\": 433", "\"tokens\": 432", "records[0].ids: an array"},
        {"\"ids\": [", "\"ids\": [1.5, ", "records[0].ids: an array"},
        {"\"ids\": [861, ", "\"ids\": [-1, ", "records[0].ids: a number"},
        {"\"request\": {", "\"request\": 4, \"not\": {", "records[0].request: a number"},
        {"\"questions\": [{", "\"questions\": 4, \"not\": [{", "records[0].questions: a number"},
        {"\"questions\": [{", "\"questions\": [], \"not\": [{", "records[0].questions: an array"},
        {"\"question_id\"", "\"question\"", "records[0].questions[0].question_id: missing"},
        {"\"type\": \"noul\", \"question_span\"", "\"type\": \"x\", \"question_span\"",
         "records[0].questions[0].type: a string"},
        {"\"question_span\": [", "\"question_span\": [900, ",
         "records[0].questions[0].question_span: an array"},
        {"\"option_ids\": [", "\"option_ids\": [\"more\", ",
         "records[0].questions[0].option_spans: an array"},
        {"\"option_spans\": [[", "\"option_spans\": [[9, 9], [",
         "records[0].questions[0].option_spans: an array"},
        {"\"probs\": [", "\"probs\": [\"a\", ", "records[0].questions[0].probs: an array"},
        {"\"probs\": [0.", "\"probs\": [1.", "records[0].questions[0].probs"},
        {"\"n_image_tokens\": 0", "\"n_image_tokens\": 4294967296",
         "records[0].n_image_tokens: a number"},
        {"\"n_image_tokens\": 0", "\"image_files\": \"a.png\"",
         "records[0].image_files: a string, wanted an array"},
        {"\"n_image_tokens\": 0", "\"image_files\": [7]",
         "records[0].image_files: a number, wanted strings"},
        {"\"n_image_tokens\": 0", "\"image_files\": [\"../a.png\"]",
         "records[0].image_files: an array, wanted names without a folder"},
        {"\"n_image_tokens\": 0", "\"image_files\": [\"a.png\"], \"image_sha256\": []",
         "records[0].image_sha256: an array, wanted one for each file"},
        {"\"probs\"", "\"chances\"", "records[0].questions[0].probs: missing"},
    };
    const folder f = folder_new();
    clef_engine *e = open_model(TESTDATA "toy-r2");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        folder_write(&f, "fixture.json", str_of(cases[i].text));
        outcome o = gate(e, NULL, folder_path(&f, "fixture.json"));
        if (o.status != CLEF_ERR_FORMAT || strstr(o.err.text, cases[i].words) == NULL ||
            strstr(o.err.text, "fixture.json") == NULL)
            fail_msg("case %zu: status %d, %s", i, o.status, o.err.text);
        done(&o);
    }
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        outcome o = gate(e, NULL, changed(&f, changes[i].from, changes[i].to));
        if (o.status != CLEF_ERR_FORMAT || strstr(o.err.text, changes[i].words) == NULL ||
            strstr(o.err.text, "fixture.json") == NULL)
            fail_msg("change %zu: status %d, %s", i, o.status, o.err.text);
        done(&o);
    }
    buf deep = {0};
    for (int i = 0; i < 100000; i++) buf_add_char(&deep, '[');
    folder_write(&f, "fixture.json", (str){deep.p, deep.n});
    buf_free(&deep);
    outcome o = gate(e, NULL, folder_path(&f, "fixture.json"));
    assert_int_equal(o.status, CLEF_ERR_FORMAT);
    done(&o);
    o = gate(e, NULL, folder_path(&f, "nothing.json"));
    assert_int_equal(o.status, CLEF_ERR_IO);
    done(&o);
    clef_close(e);
    folder_remove(f.path);
}

/* ---- two models ---- */

static void a_model_does_not_differ_from_itself(void **state) {
    (void)state;
    const folder f = folder_new();
    folder_write(&f, "a.json",
                 STR("[{\"model\":\"m\",\"state\":\"The box was open.\",\"questions\":{\"open\":"
                     "{\"type\":\"noul\"}}},{\"model\":\"m\",\"state\":1,\"questions\":{\"who\":{"
                     "\"type\":\"choice\",\"criteria\":{\"b\":\"Billing\",\"a\":null}}}}]"));
    clef_engine *a = open_model(TESTDATA "toy-r2"), *b = open_model(TESTDATA "toy-r2");
    const char *const path = folder_path(&f, "a.json");
    char *table = NULL, *report = NULL;
    clef_error err = {0};
    if (clef_compare(a, b, NULL, &path, 1, &table, &report, &err) != CLEF_OK)
        fail_msg("%s", err.text);
    assert_non_null(strstr(report, "\"types\": {\"noul\": {\"questions\": 1, \"changed\": 0, "
                                   "\"mean_dp\": 0.0, \"max_dp\": 0.0}, \"choice\": {"));
    assert_non_null(strstr(table, "2 requests"));
    clef_text_free(table);
    clef_text_free(report);
    clef_close(a);
    clef_close(b);
    folder_remove(f.path);
}

static void a_rounded_model_differs_by_question_type(void **state) {
    (void)state;
    const folder f = rounded_toy(4);
    folder_write(&f, "a.json",
                 STR("{\"model\":\"m\",\"state\":\"The box was open.\",\"questions\":"
                     "{\"urgent\":{\"type\":\"score\",\"criteria\":[\"no\",\"so\"]},"
                     "\"open\":{\"type\":\"noul\"}}}"));
    clef_engine *a = open_model(TESTDATA "toy-r2"), *b = open_model(f.path);
    const char *const path = folder_path(&f, "a.json");
    char *table = NULL, *report = NULL;
    clef_error err = {0};
    if (clef_compare(a, b, NULL, &path, 1, &table, &report, &err) != CLEF_OK)
        fail_msg("%s", err.text);
    arena mem = {0};
    const json *root = NULL;
    assert_int_equal(json_parse(&root, str_of(report), "report", &(json_limits){0}, &mem, &err),
                     CLEF_OK);
    const json *types = recorded_get(root, "types");
    assert_int_equal(types->n, 3); /* noul, score, all */
    double most = 0;
    assert_true(json_double(&most, recorded_get(recorded_get(types, "all"), "max_dp")));
    assert_true(most > 1e-3);
    arena_free(&mem);
    clef_text_free(table);
    clef_text_free(report);
    clef_close(a);
    clef_close(b);
    folder_remove(f.path);
}

static void a_wrong_request_is_refused_naming_its_file(void **state) {
    (void)state;
    static const char *const texts[] = {"[]", "7", "{", "[{\"model\":\"m\"}]"};
    const folder f = folder_new();
    clef_engine *a = open_model(TESTDATA "toy-two-layers");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        folder_write(&f, "bad.json", str_of(texts[i]));
        const char *const path = folder_path(&f, "bad.json");
        char *table = NULL, *report = NULL;
        clef_error err = {0};
        assert_int_equal(clef_compare(a, a, NULL, &path, 1, &table, &report, &err), CLEF_ERR_INPUT);
        assert_non_null(strstr(err.text, "bad.json"));
        assert_null(table);
    }
    clef_close(a);
    folder_remove(f.path);
}

/* ---- stopping, memory ---- */

static int stop_at_once(void *user, size_t n_done, size_t total) {
    (void)user;
    (void)n_done;
    (void)total;
    return 1;
}

static void the_callback_stops_the_gate(void **state) {
    (void)state;
    clef_engine *e = open_model(TESTDATA "toy-two-layers");
    outcome o = gate(e, &(clef_gate_options){.progress = stop_at_once},
                     TESTDATA "gate/toy-two-layers-chosen.json");
    assert_int_equal(o.status, CLEF_ERR_CANCELLED);
    done(&o);
    clef_close(e);
}

typedef struct {
    clef_engine *e;
    const char *path;
} memory_call;

static clef_status gate_once(void *context, clef_error *err) {
    const memory_call *c = context;
    char *table = NULL, *report = NULL;
    int holds = 0;
    const clef_status s =
        clef_gate(c->e, &(clef_gate_options){.red = 1}, &c->path, 1, &holds, &table, &report, err);
    clef_text_free(table);
    clef_text_free(report);
    return s;
}

static void out_of_memory_is_said_whatever_fails(void **state) {
    (void)state;
    static const char start[] = "{\"schema\": \"coreai-clef-flash-fixtures/1\", \"records\": [";
    /* The shortest run alone, which keeps the number of allocations small. */
    buf text = {0}, one = {0};
    clef_error err = {0};
    if (file_read(&text, TESTDATA "gate/toy-two-layers-heldout.json", 1 << 24, &err) != CLEF_OK)
        fail_msg("%s", err.text);
    const char *begin = strstr(text.p, "{\"id\": \"toy-two-layers.short\"");
    assert_non_null(begin);
    buf_add_text(&one, start);
    buf_add(&one, begin, strcspn(begin, "\n") - 1);
    buf_add_text(&one, "]}");
    const folder f = folder_new();
    folder_write(&f, "one.json", (str){one.p, one.n});
    memory_call c = {open_model(TESTDATA "toy-two-layers"), folder_path(&f, "one.json")};
    assert_true(oom_each(gate_once, &c) > 50);
    clef_close(c.e);
    buf_free(&text);
    buf_free(&one);
    folder_remove(f.path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_as_recorded_pass_and_every_red_arm_is_caught),
        cmocka_unit_test(near_ties_are_listed_and_not_counted_as_answers),
        cmocka_unit_test(weights_rounded_to_four_bits_are_refused),
        cmocka_unit_test(weights_of_another_model_are_refused),
        cmocka_unit_test(a_changed_word_turns_the_ids_red),
        cmocka_unit_test(a_span_one_token_late_turns_the_spans_red),
        cmocka_unit_test(a_request_that_cannot_be_read_fails_its_run),
        cmocka_unit_test(withheld_ids_are_counted_and_named_and_spans_still_compared),
        cmocka_unit_test(a_picture_is_counted_and_named_and_never_passed),
        cmocka_unit_test(runs_with_pictures_are_compared_when_the_pictures_are_there),
        cmocka_unit_test(a_picture_that_is_another_is_refused_by_its_hash),
        cmocka_unit_test(the_row_of_a_picture_is_compared_with_its_tokens),
        cmocka_unit_test(a_check_with_nothing_to_look_at_does_not_hold),
        cmocka_unit_test(the_bars_decide),
        cmocka_unit_test(a_gate_that_cannot_see_a_red_arm_fails),
        cmocka_unit_test(bars_that_mean_nothing_are_refused),
        cmocka_unit_test(a_bad_fixture_is_refused_naming_file_and_place),
        cmocka_unit_test(a_model_does_not_differ_from_itself),
        cmocka_unit_test(a_rounded_model_differs_by_question_type),
        cmocka_unit_test(a_wrong_request_is_refused_naming_its_file),
        cmocka_unit_test(the_callback_stops_the_gate),
        cmocka_unit_test(out_of_memory_is_said_whatever_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
