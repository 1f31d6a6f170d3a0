/* check_test.c - which bodies this server takes, where it says the fault is, and what the engine is
 * asked in the end. */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "server/check.h"

static const check_limits LIMITS = {.max_depth = 128,
                                    .max_questions = 3,
                                    .max_options = 255,
                                    .max_levels = 10,
                                    .max_images = 2,
                                    .max_batch = 4,
                                    .max_tree_bytes = 1 << 24};

#define Q "\"questions\":{\"q\":{\"type\":\"noul\"}}"

/* The problems of a body, as a list of members; empty when it is taken. */
static buf problems_of(str body, const check_limits *limits) {
    arena mem = {0};
    const json *root = NULL;
    problems p = {0};
    checked c;
    clef_error err = {0};
    assert_int_equal(check_parse(&root, body, limits, &mem, &p, &err), CLEF_OK);
    if (root != NULL) {
        const bool taken = check_request(&c, root, NULL, limits, &p);
        assert_int_equal(taken, p.n == 0);
    }
    buf_add(&p.list, "", 0);
    assert_false(p.list.failed);
    arena_free(&mem);
    return p.list;
}

static void expect(const char *body, const char *want) {
    buf got = problems_of(str_of(body), &LIMITS);
    if (want == NULL ? got.n > 0 : strstr(got.p, want) == NULL)
        fail_msg("%s\ngave   %s\nwanted %s", body, got.p, want == NULL ? "nothing" : want);
    buf_free(&got);
}

static void requests_of_the_api_are_taken(void **state) {
    (void)state;
    expect("{\"model\":\"jev-latest\",\"state\":\"s\"," Q "}", NULL);
    expect("{\"state\":\"\"," Q "}", NULL);
    expect("{\"state\":{}," Q ",\"x_trace_id\":[1e5],\"seed\":7,\"keep_alive\":\"5m\"}", NULL);
    expect("\xEF\xBB\xBF{\"state\":[]," Q "}", NULL);
    expect("{\"model\":null,\"state\":\"s\",\"images\":null,\"stream\":null,\"truncate\":null," Q
           "}",
           NULL);
    expect("{\"state\":\"s\",\"questions\":{\"q\":{\"type\":\"noul\",\"instructions\":null,"
           "\"criteria\":{\"true\":null,\"maybe\":1}}}}",
           NULL);
    expect("{\"state\":\"s\",\"questions\":{\"q\":{\"type\":\"choice\",\"criteria\":{\"a\":null,"
           "\"b\":{\"x\":[]}}}}}",
           NULL);
    expect("{\"state\":\"s\",\"truncate\":true,\"truncation\":\"state_tail\"," Q "}", NULL);
    expect("{\"state\":{\"n\":123456789012345678901234567890}," Q "}", NULL);
    expect("{\"state\":\"a\",\"state\":\"b\"," Q "}", NULL);
}

static void a_fault_is_named_by_its_place(void **state) {
    (void)state;
    expect("{" Q "}", "{\"loc\": [\"body\", \"state\"], \"msg\": \"Field required\", \"type\": "
                      "\"missing\"}");
    expect("{\"state\":null," Q "}", "[\"body\", \"state\"]");
    expect("{\"state\":1," Q "}", "[\"body\", \"state\"]");
    expect("{\"state\":true," Q "}", "[\"body\", \"state\"]");
    expect("[]", "[\"body\"]");
    expect("\"x\"", "[\"body\"]");
    expect("{\"state\":\"s\",\"model\":3," Q "}", "[\"body\", \"model\"]");
    expect("{\"state\":\"s\",\"model\":\"  \"," Q "}", "[\"body\", \"model\"]");
    expect("{\"state\":\"s\"}", "[\"body\", \"questions\"]");
    expect("{\"state\":\"s\",\"questions\":\"a\"}", "[\"body\", \"questions\"]");
    expect("{\"state\":\"s\",\"questions\":{}}", "[\"body\", \"questions\"]");
    expect("{\"state\":\"s\",\"questions\":{\"\":{\"type\":\"noul\"}}}",
           "[\"body\", \"questions\", \"\"]");
    expect("{\"state\":\"s\",\"questions\":{\"q\":[]}}", "[\"body\", \"questions\", \"q\"]");
    expect("{\"state\":\"s\",\"questions\":{\"q\":{}}}",
           "[\"body\", \"questions\", \"q\", \"type\"]");
    expect("{\"state\":1,\"questions\":{\"q\":{\"type\":7}}}",
           "[\"body\", \"questions\", \"q\", \"type\"]");
    expect("{\"state\":\"s\",\"questions\":{\"q\":{\"type\":\"boolean\"}}}",
           "[\"body\", \"questions\", \"q\", \"type\"]");
    expect("{\"state\":\"s\",\"questions\":{\"q\":{\"type\":\"noul\",\"instructions\":4}}}",
           "[\"body\", \"questions\", \"q\", \"noul\", \"instructions\"]");
    expect("{\"state\":\"s\",\"questions\":{\"q\":{\"type\":\"noul\",\"criteria\":[]}}}",
           "[\"body\", \"questions\", \"q\", \"noul\", \"criteria\"]");
    expect("{\"state\":\"s\",\"questions\":{\"q\":{\"type\":\"choice\"}}}",
           "[\"body\", \"questions\", \"q\", \"choice\", \"criteria\"]");
    expect("{\"state\":\"s\",\"questions\":{\"q\":{\"type\":\"choice\",\"criteria\":{}}}}",
           "\"needs between 1 and 255 options, got 0\", \"type\": \"too_short\"");
    expect("{\"state\":\"s\",\"questions\":{\"q\":{\"type\":\"choice\",\"criteria\":[\"a\"]}}}",
           "a choice needs an object of option to description");
    expect("{\"state\":\"s\",\"questions\":{\"q\":{\"type\":\"choice\",\"criteria\":{\"a\":1}}}}",
           "[\"body\", \"questions\", \"q\", \"choice\", \"criteria\", \"a\"]");
    expect("{\"state\":\"s\",\"questions\":{\"q\":{\"type\":\"score\",\"criteria\":[\"a\",null]}}}",
           "[\"body\", \"questions\", \"q\", \"score\", \"criteria\", 1]");
    expect(
        "{\"state\":\"s\",\"questions\":{\"q\":{\"type\":\"score\",\"criteria\":{\"0\":\"a\"}}}}",
        "[\"body\", \"questions\", \"q\", \"score\", \"criteria\"]");
    expect("{\"state\":\"s\",\"stream\":true," Q "}", "[\"body\", \"stream\"]");
    expect("{\"state\":\"s\",\"truncation\":\"head\"," Q "}", "[\"body\", \"truncation\"]");
    expect("{\"state\":\"s\",\"truncate\":false,\"truncation\":\"state_tail\"," Q "}",
           "[\"body\", \"truncation\"]");
    expect("{\"state\":\"s\",\"images\":\"x\"," Q "}", "[\"body\", \"images\"]");
    expect("{\"state\":\"s\",\"images\":[1,2,3]," Q "}", "at most 2 images, got 3");
    expect("{\"state\":\"s\",\"questions\":{\"a\":{\"type\":\"noul\"},\"b\":{\"type\":\"noul\"},"
           "\"c\":{\"type\":\"noul\"},\"d\":{\"type\":\"noul\"}}}",
           "needs between 1 and 3 questions, got 4");
}

static void text_that_is_no_json_is_named_by_its_offset(void **state) {
    (void)state;
    expect("", "[\"body\", 0]");
    expect("{:", "[\"body\", 1]");
    expect("{\"state\":\"\xFF\"}", "[\"body\", 10]");
    expect("{\"state\":\"\xC0\x80\"}", "[\"body\", 10]");
    expect("{\"state\":\"\\ud800\"}", "[\"body\", 10]");
    expect("{\"state\":NaN}", "json_invalid");
    expect("{\"state\":[-Infinity]}", "json_invalid");
    expect("{\"state\":[1e999]," Q "}", "[\"body\", 10]");
    expect("{\"state\":[1, {\"a\":-1.5e400}]," Q "}", "finite_number");
    expect("{\"state\":\"s\"," Q "}x", "json_invalid");
    buf zero = problems_of(STR("{\"state\":\"s\"," Q "}\0"), &LIMITS);
    assert_non_null(strstr(zero.p, "json_invalid"));
    buf_free(&zero);
}

static void a_body_of_100000_arrays_is_refused_by_depth(void **state) {
    (void)state;
    enum { DEEP = 100000 };
    buf body = {0};
    buf_add_text(&body, "{\"state\":");
    for (int i = 0; i < DEEP; i++) buf_add_char(&body, '[');
    buf_add_text(&body, "\"x\"");
    for (int i = 0; i < DEEP; i++) buf_add_char(&body, ']');
    buf_add_text(&body, "," Q "}");
    buf got = problems_of((str){body.p, body.n}, &LIMITS);
    assert_non_null(strstr(got.p, "nested deeper than 128 levels"));
    buf_free(&got);
    buf_free(&body);
}

static void a_tree_beyond_the_ceiling_is_the_clients_fault(void **state) {
    (void)state;
    check_limits small = LIMITS;
    small.max_tree_bytes = 1 << 16;
    buf body = {0};
    buf_add_text(&body, "{\"state\":[1");
    for (int i = 0; i < 100000; i++) buf_add_text(&body, ",1");
    buf_add_text(&body, "]," Q "}");
    buf got = problems_of((str){body.p, body.n}, &small);
    assert_non_null(strstr(got.p, "too_complex"));
    buf_free(&got);
    buf_free(&body);
}

static void a_megabyte_of_id_is_shortened_in_a_problem(void **state) {
    (void)state;
    buf body = {0};
    buf_add_text(&body, "{\"state\":\"s\",\"questions\":{\"");
    for (int i = 0; i < 1 << 18; i++) buf_add_text(&body, "\xF0\x9F\x98\x80");
    buf_add_text(&body, "\":{}}}");
    buf got = problems_of((str){body.p, body.n}, &LIMITS);
    assert_true(got.n < 1000);
    assert_non_null(strstr(got.p, "\xF0\x9F\x98\x80...\""));
    buf_free(&got);
    buf_free(&body);
}

static void only_so_many_problems_are_listed(void **state) {
    (void)state;
    buf body = {0};
    buf_add_text(
        &body, "{\"state\":\"s\",\"questions\":{\"q\":{\"type\":\"choice\",\"criteria\":{\"a\":1");
    for (int i = 0; i < 200; i++) buf_printf(&body, ",\"%d\":1", i);
    buf_add_text(&body, "}}}}");
    buf got = problems_of((str){body.p, body.n}, &LIMITS);
    size_t n = 0;
    for (const char *at = got.p; (at = strstr(at, "\"loc\"")) != NULL; at++) n++;
    assert_int_equal(n, 20);
    buf_free(&got);
    buf_free(&body);
}

static void strict_asks_for_a_model(void **state) {
    (void)state;
    check_limits strict = LIMITS;
    strict.strict = true;
    buf got = problems_of(STR("{\"state\":\"s\"," Q "}"), &strict);
    assert_non_null(strstr(got.p, "[\"body\", \"model\"]"));
    buf_free(&got);
}

static void expect_written(const char *body, const char *want) {
    arena mem = {0};
    const json *root = NULL;
    problems p = {0};
    checked c;
    buf out = {0};
    assert_int_equal(check_parse(&root, str_of(body), &LIMITS, &mem, &p, NULL), CLEF_OK);
    assert_non_null(root);
    assert_true(check_request(&c, root, NULL, &LIMITS, &p));
    assert_int_equal(check_write(&out, &c, "clef-flash", NULL), CLEF_OK);
    assert_string_equal(out.p, want);
    buf_free(&out);
    arena_free(&mem);
}

static void what_nobody_reads_makes_no_difference(void **state) {
    (void)state;
    const char *want = "{\"model\": \"clef-flash\", \"state\": {\"b\": 1.1, \"a\": \"\xC3\xA9\"}, "
                       "\"questions\": {\"q\": {\"type\": \"noul\", \"instructions\": \"?\"}}}";
    expect_written(
        "{\"model\":\"jev\",\"state\":{\"b\":1.10,\"a\":\"\\u00e9\"},\"questions\":{\"q\":{"
        "\"type\":\"noul\",\"instructions\":\"?\"}}}",
        want);
    expect_written(
        "{ \"x_nonce\":7, \"questions\":{\"q\":{\"instructions\":\"?\",\"criteria\":null,"
        "\"weight\":2,\"type\":\"noul\"}}, \"state\":{\"b\":11e-1,\"a\":\"\xC3\xA9\"}}",
        want);
}

static void the_order_of_members_is_kept(void **state) {
    (void)state;
    expect_written(
        "{\"state\":\"s\",\"questions\":{\"z\":{\"type\":\"choice\",\"criteria\":{\"b\":null,"
        "\"a\":null}},\"a\":{\"type\":\"noul\"}},\"images\":[\"x\"]}",
        "{\"model\": \"clef-flash\", \"state\": \"s\", \"questions\": {\"z\": {\"type\": "
        "\"choice\", \"criteria\": {\"b\": null, \"a\": null}}, \"a\": {\"type\": "
        "\"noul\"}}, \"images\": [\"x\"]}");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_of_the_api_are_taken),
        cmocka_unit_test(a_fault_is_named_by_its_place),
        cmocka_unit_test(text_that_is_no_json_is_named_by_its_offset),
        cmocka_unit_test(a_body_of_100000_arrays_is_refused_by_depth),
        cmocka_unit_test(a_tree_beyond_the_ceiling_is_the_clients_fault),
        cmocka_unit_test(a_megabyte_of_id_is_shortened_in_a_problem),
        cmocka_unit_test(only_so_many_problems_are_listed),
        cmocka_unit_test(strict_asks_for_a_model),
        cmocka_unit_test(what_nobody_reads_makes_no_difference),
        cmocka_unit_test(the_order_of_members_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
