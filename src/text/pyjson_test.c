/* Tests of pyjson.c. testdata/json and testdata/contract/render.json hold what CPython 3.11 gives
 * (tools/parity/record_json.py). */
#include "text/pyjson.h"

#include <math.h>

#include "tests/oom.h"
#include "tests/recorded.h"
#include "tests/rows.h"

static const json_limits PYTHON = {.allow_nonfinite = true};

/* Parses `text` and writes it in `style`; freed with buf_free. */
static buf rewrite(str text, pyjson_style style) {
    arena mem = {0};
    clef_error err = {0};
    const json *v = NULL;
    buf out = {0};
    clef_status s = json_parse(&v, text, "text", &PYTHON, &mem, &err);
    if (s == CLEF_OK) s = pyjson_write(&out, v, style, &err);
    if (s != CLEF_OK) fail_msg("%.*s: %s", STR_ARG(text), err.text);
    arena_free(&mem);
    return out;
}

static void expect(str text, pyjson_style style, str wanted) {
    buf out = rewrite(text, style);
    if (!str_equal((str){out.p, out.n}, wanted))
        fail_msg("%.*s\nbecame %.*s\nwanted %.*s", STR_ARG(text), (int)out.n, out.p,
                 STR_ARG(wanted));
    buf_free(&out);
}

static void expect_prompt(const char *text, const char *wanted) {
    expect(str_of(text), PYJSON_PROMPT, str_of(wanted));
}

static void check_document(const str *field) {
    expect(field[0], PYJSON_PROMPT, field[1]);
    expect(field[0], PYJSON_ANSWER, field[2]);
}

static void documents_are_written_as_cpython_writes_them(void **state) {
    (void)state;
    rows_each("documents.tsv", 3, 140, check_document);
}

static void the_contract_s_render_pairs_hold(void **state) {
    (void)state;
    arena mem = {0};
    const json *vectors =
        recorded_get(recorded_load(&mem, TESTDATA "contract/render.json"), "render_vectors");
    const json *pairs = recorded_get(vectors, "pairs");
    assert_true(pairs->n >= 70);
    for (const json *pair = pairs->first; pair != NULL; pair = pair->next) {
        const str in = pair->first->text, wanted = pair->first->next->text;
        const json *v = NULL;
        assert_int_equal(json_parse(&v, in, "pair", &PYTHON, &mem, NULL), CLEF_OK);
        /* A string at the top is rendered verbatim by prompt.c, not written here. */
        if (v->kind != JSON_STRING) expect(in, PYJSON_PROMPT, wanted);
    }
    const json *refused = recorded_get(vectors, "rejected_by_json_loads");
    assert_true(refused->n >= 20);
    for (const json *text = refused->first; text != NULL; text = text->next) {
        const json *v = NULL;
        assert_int_equal(json_parse(&v, text->text, "text", &PYTHON, &mem, NULL), CLEF_ERR_INPUT);
    }
    arena_free(&mem);
}

static void the_contract_s_rounding_pairs_hold(void **state) {
    (void)state;
    arena mem = {0};
    const json *pairs = recorded_get(
        recorded_get(recorded_load(&mem, TESTDATA "contract/render.json"), "round_vectors"),
        "pairs");
    assert_true(pairs->n >= 20);
    for (const json *pair = pairs->first; pair != NULL; pair = pair->next) {
        const json spelling = {.kind = JSON_NUMBER, .text = pair->first->text};
        double value = 0;
        assert_true(json_double(&value, &spelling));
        buf out = {0};
        pyjson_double(&out, pyjson_round(value, 4));
        recorded_same_text((str){out.p, out.n}, pair->first->next->text, "a rounding");
        buf_free(&out);
    }
    arena_free(&mem);
}

static void b01_numbers_are_spelled_as_python_spells_them(void **state) {
    (void)state;
    expect_prompt("{\"n\":[1250,1250.0,1.10,1E5,1e15,1e16,0.0001,1e-5,5e-324,-0,-0.0]}",
                  "{\"n\":[1250,1250.0,1.1,100000.0,1000000000000000.0,1e+16,0.0001,1e-05,5e-324,"
                  "0,-0.0]}");
}

static void b02_integers_keep_every_digit(void **state) {
    (void)state;
    expect_prompt("{\"id\":123456789012345678901234567890,\"k\":9007199254740993}",
                  "{\"id\":123456789012345678901234567890,\"k\":9007199254740993}");
}

static void b04_names_are_sorted_by_code_point(void **state) {
    (void)state;
    expect_prompt("{\"\xF0\x9F\x98\x80\":1,\"\xEF\xBD\x9E\":2}",
                  "{\"\xEF\xBD\x9E\":2,\"\xF0\x9F\x98\x80\":1}");
}

static void b05_only_quote_backslash_and_controls_are_escaped(void **state) {
    (void)state;
    expect_prompt("{\"t\":\"<b> & \\u2028 \\u007f \\u0001 \\/\"}",
                  "{\"t\":\"<b> & \xE2\x80\xA8 \x7F \\u0001 /\"}");
}

static void a_name_with_a_zero_byte_sorts_behind_its_prefix(void **state) {
    (void)state;
    expect_prompt("{\"a\\u0000\":1,\"a\":2}", "{\"a\":2,\"a\\u0000\":1}");
}

static void check_double(const str *field) {
    buf out = {0};
    pyjson_double(&out, rows_double(field[0]));
    if (!str_equal((str){out.p, out.n}, field[1]))
        fail_msg("%.*s became %s, wanted %.*s", STR_ARG(field[0]), out.p, STR_ARG(field[1]));
    buf_free(&out);
}

static void doubles_are_spelled_as_cpython_spells_them(void **state) {
    (void)state;
    rows_each("doubles.tsv", 2, 4800, check_double);
}

static void check_rounding(const str *field) {
    unsigned digits = 0;
    for (size_t i = 0; i < field[1].n; i++) digits = digits * 10 + (unsigned)(field[1].p[i] - '0');
    const double got = pyjson_round(rows_double(field[0]), digits), wanted = rows_double(field[2]);
    if (got != wanted || !signbit(got) != !signbit(wanted))
        fail_msg("%.*s to %u digits became %a, wanted %a", STR_ARG(field[0]), digits, got, wanted);
}

static void roundings_equal_cpython_s(void **state) {
    (void)state;
    rows_each("roundings.tsv", 3, 2800, check_rounding);
}

static void rounding_leaves_nan_as_it_is(void **state) {
    (void)state;
    assert_true(isnan(pyjson_round((double)NAN, 4)));
}

static void deep_nesting_is_written_without_recursion(void **state) {
    (void)state;
    enum { DEPTH = 100000 };
    static char text[2 * DEPTH];
    memset(text, '[', DEPTH);
    memset(text + DEPTH, ']', DEPTH);
    const json_limits deep = {.max_depth = DEPTH};
    arena mem = {0};
    const json *v = NULL;
    buf out = {0};
    assert_int_equal(json_parse(&v, (str){text, sizeof text}, "text", &deep, &mem, NULL), CLEF_OK);
    assert_int_equal(pyjson_write(&out, v, PYJSON_ANSWER, NULL), CLEF_OK);
    assert_int_equal(out.n, sizeof text);
    assert_memory_equal(out.p, text, sizeof text);
    buf_free(&out);
    arena_free(&mem);
}

static void every_failed_allocation_of_the_writer_is_reported(void **state) {
    (void)state;
    arena mem = {0};
    const json *v = NULL;
    const str text = STR("{\"b\":[1,{\"d\":2,\"c\":[[[\"a string longer than the others\"]]]}],"
                         "\"a\":{\"y\":1,\"x\":2},\"e\":[1.5,true,false,null]}");
    assert_int_equal(json_parse(&v, text, "text", &PYTHON, &mem, NULL), CLEF_OK);
    unsigned failed = 0;
    for (;; failed++) {
        buf out = {0};
        clef_error err = {0};
        oom_fail_at(failed + 1);
        const clef_status s = pyjson_write(&out, v, PYJSON_PROMPT, &err);
        oom_stop();
        buf_free(&out);
        if (s == CLEF_OK) break;
        assert_int_equal(s, CLEF_ERR_MEMORY);
        assert_string_equal(err.text, "out of memory");
    }
    assert_true(failed >= 3);
    arena_free(&mem);
}

#define T(name) cmocka_unit_test(name)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(documents_are_written_as_cpython_writes_them),
        T(the_contract_s_render_pairs_hold),
        T(the_contract_s_rounding_pairs_hold),
        T(b01_numbers_are_spelled_as_python_spells_them),
        T(b02_integers_keep_every_digit),
        T(b04_names_are_sorted_by_code_point),
        T(b05_only_quote_backslash_and_controls_are_escaped),
        T(a_name_with_a_zero_byte_sorts_behind_its_prefix),
        T(doubles_are_spelled_as_cpython_spells_them),
        T(roundings_equal_cpython_s),
        T(rounding_leaves_nan_as_it_is),
        T(deep_nesting_is_written_without_recursion),
        T(every_failed_allocation_of_the_writer_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
