/* Tests of json.c. testdata/json/errors.tsv holds where CPython 3.11 refuses a text; what it makes
 * of the texts that it takes is held against json.c in pyjson_test.c. */
#include "text/json.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "tests/oom.h"
#include "tests/rows.h"

static const json_limits STRICT = {0};
static const json_limits PYTHON = {.allow_nonfinite = true};
static const json_limits NO_DUPLICATES = {.duplicates = JSON_REFUSE_DUPLICATES};

/* The tree of `text`, in *mem. */
static const json *parse(str text, const json_limits *limits, arena *mem) {
    clef_error err = {0};
    const json *v = NULL;
    if (json_parse(&v, text, "text", limits, mem, &err) != CLEF_OK)
        fail_msg("%.*s: %s", STR_ARG(text), err.text);
    return v;
}

/* `text` is refused with a sentence that begins "text: byte `at`: " and goes on with `words`. */
static void expect_refusal(str text, const json_limits *limits, clef_status wanted, size_t at,
                           const char *words) {
    arena mem = {0};
    clef_error err = {0};
    const json *v = NULL;
    char begin[40];
    const size_t n = (size_t)snprintf(begin, sizeof begin, "text: byte %zu: ", at);
    const clef_status s = json_parse(&v, text, "text", limits, &mem, &err);
    arena_free(&mem);
    if (s != wanted || strncmp(err.text, begin, n) != 0 ||
        strncmp(err.text + n, words, strlen(words)) != 0)
        fail_msg("%.*s: status %d, '%s', wanted '%s%s'", STR_ARG(text), (int)s, err.text, begin,
                 words);
    assert_int_equal(utf8_check(err.text, strlen(err.text)), strlen(err.text));
    assert_null(v);
}

static void refused(const char *text, size_t at, const char *words) {
    expect_refusal(str_of(text), &STRICT, CLEF_ERR_INPUT, at, words);
}

/* ---- refusals ------------------------------------------------------------------------------ */

static void check_error(const str *field) {
    size_t at = 0;
    for (size_t i = 0; i < field[1].n; i++) at = at * 10 + (size_t)(field[1].p[i] - '0');
    expect_refusal(field[0], &PYTHON, CLEF_ERR_INPUT, at, "");
}

static void errors_are_found_where_cpython_finds_them(void **state) {
    (void)state;
    rows_each("errors.tsv", 3, 320, check_error);
}

static void b10_a_sentence_says_what_was_found_and_what_was_wanted(void **state) {
    (void)state;
    refused("{:", 1, "found ':', wanted a name in double quotes or '}'");
    refused("", 0, "found the end of the text, wanted a value");
    refused("[1 2]", 3, "found '2', wanted ',' or ']'");
    refused("{\"a\"=1}", 4, "found '=', wanted ':'");
    refused("{\"a\":1,}", 7, "found '}', wanted a name in double quotes");
    refused("[\xE2\x80\xA8", 1, "found U+2028, wanted a value");
    refused("\"a\nb\"", 2, "a raw control U+000A in a string, wanted an escape");
    refused("[\"abc", 1, "a string that starts here does not end");
    refused("\"\\x41\"", 1, "an escape that JSON does not have");
    refused("\"\\u12\"", 2, "an escape \\u without four hexadecimal digits");
}

static void b06_a_lone_surrogate_is_refused_naming_its_offset(void **state) {
    (void)state;
    refused("\"\\ud800\"", 1, "a lone surrogate \\ud800");
    refused("\"\\udc00\"", 1, "a lone surrogate \\udc00");
    refused("\"ab\\udfff\"", 3, "a lone surrogate \\udfff");
    refused("\"\\ude00\\ud83d\"", 1, "a lone surrogate \\ude00");
    refused("\"\\ud83d\\ud83d\\ude00\"", 1, "a lone surrogate \\ud83d");
    refused("\"\\ud83d\\u0041\"", 1, "a lone surrogate \\ud83d");
    refused("\"\\ud83dx\"", 1, "a lone surrogate \\ud83d");
    refused("{\"\\ud83d\\n\":1}", 2, "a lone surrogate \\ud83d");
}

static void b06_a_surrogate_pair_is_one_character(void **state) {
    (void)state;
    arena mem = {0};
    const json *v = parse(STR("\"\\ud83d\\ude00\\uDBFF\\uDFFF\""), &STRICT, &mem);
    assert_true(str_equal(v->text, STR("\xF0\x9F\x98\x80\xF4\x8F\xBF\xBF")));
    arena_free(&mem);
}

static void b08_any_depth_beyond_the_limit_is_refused(void **state) {
    (void)state;
    enum { DEPTH = 100000 };
    static char text[DEPTH];
    memset(text, '[', DEPTH);
    const str all = {text, DEPTH};
    expect_refusal(all, &STRICT, CLEF_ERR_LIMIT, 512, "nested deeper than 512 levels");
    const json_limits three = {.max_depth = 3};
    expect_refusal(STR("[[{\"a\":[1]}]]"), &three, CLEF_ERR_LIMIT, 7, "nested deeper than 3");
    arena mem = {0};
    parse(STR("[[{\"a\":1}],[[]]]"), &three, &mem);
    arena_free(&mem);
}

static void b08_sixty_levels_are_read(void **state) {
    (void)state;
    arena mem = {0};
    char text[120];
    memset(text, '[', 60);
    memset(text + 60, ']', 60);
    const json *v = parse((str){text, sizeof text}, &STRICT, &mem);
    unsigned depth = 0;
    for (; v != NULL; v = v->first) depth++;
    assert_int_equal(depth, 60);
    arena_free(&mem);
}

static void b11_invalid_utf8_is_refused_naming_its_offset(void **state) {
    (void)state;
    refused("\xFF\xFE{}", 0, "0xff is no valid UTF-8 here");
    refused("\"a\xC0\x80\"", 2, "0xc0 is no valid UTF-8 here");
    refused("\"\xED\xA0\x80\"", 1, "0xed is no valid UTF-8 here");
    refused("[\"\xF0\x9F\x98", 2, "0xf0 is no valid UTF-8 here");
    refused("{\"\xC4\xE3\xBA\xC3\":1}", 2, "0xc4 is no valid UTF-8 here"); /* GBK */
}

static void b12_zero_bytes_and_trailing_text_are_refused(void **state) {
    (void)state;
    expect_refusal((str){"{}\0", 3}, &STRICT, CLEF_ERR_INPUT, 2, "found U+0000, wanted the end");
    expect_refusal((str){"\0", 1}, &STRICT, CLEF_ERR_INPUT, 0, "found U+0000, wanted a value");
    refused("{}x", 2, "found 'x', wanted the end of the text");
}

static void b12_a_byte_order_mark_is_skipped_only_where_allowed(void **state) {
    (void)state;
    const json_limits bom = {.allow_bom = true};
    refused("\xEF\xBB\xBF{}", 0, "found U+FEFF, wanted a value");
    expect_refusal(STR("\xEF\xBB\xBF\xEF\xBB\xBF{}"), &bom, CLEF_ERR_INPUT, 3, "found U+FEFF");
    arena mem = {0};
    const json *v = parse(STR("\xEF\xBB\xBF{}"), &bom, &mem);
    assert_int_equal(v->kind, JSON_OBJECT);
    assert_int_equal(v->at, 3);
    arena_free(&mem);
}

static void nonfinite_numbers_are_read_only_where_allowed(void **state) {
    (void)state;
    refused("[NaN]", 1, "found 'N', wanted a value");
    refused("Infinity", 0, "found 'I', wanted a value");
    refused("-Infinity", 0, "found '-', wanted a value");
    arena mem = {0};
    const json *v = parse(STR("[NaN,Infinity,-Infinity]"), &PYTHON, &mem);
    double value = 0;
    assert_int_equal(v->n, 3);
    assert_true(json_double(&value, v->first) && value != value);
    assert_true(json_double(&value, v->first->next) && value > 1.7976931348623157e308);
    assert_true(json_double(&value, v->first->next->next) && value < -1.7976931348623157e308);
    assert_true(str_equal(v->first->next->next->text, STR("-Infinity")));
    arena_free(&mem);
}

static void a_hostile_label_and_text_give_a_printable_sentence(void **state) {
    (void)state;
    arena mem = {0};
    clef_error err = {0};
    const json *v = NULL;
    assert_int_equal(json_parse(&v, STR("\x01"), "a\xFF\n", &STRICT, &mem, &err), CLEF_ERR_INPUT);
    assert_string_equal(err.text, "a\\xff\\x0a: byte 0: found U+0001, wanted a value");
    arena_free(&mem);
}

/* ---- trees --------------------------------------------------------------------------------- */

static void a_tree_keeps_order_spelling_lengths_and_offsets(void **state) {
    (void)state;
    arena mem = {0};
    const str text = STR(" {\"b\\u0000c\" : [1.50, -0], \"a\":\"x\\ty\\/\", \"\":null}");
    const json *v = parse(text, &STRICT, &mem);
    assert_int_equal(v->kind, JSON_OBJECT);
    assert_int_equal(v->n, 3);
    assert_int_equal(v->at, 1);
    const json *b = v->first, *a = b->next, *empty = a->next;
    assert_true(str_equal(b->name, (str){"b\0c", 3}));
    assert_int_equal(b->kind, JSON_ARRAY);
    assert_int_equal(b->n, 2);
    assert_int_equal(b->at, 15);
    assert_true(str_equal(b->first->text, STR("1.50")));
    assert_true(str_equal(b->first->next->text, STR("-0")));
    assert_null(b->first->next->next);
    assert_true(str_equal(a->text, STR("x\ty/")));
    assert_int_equal(empty->name.n, 0);
    assert_int_equal(empty->kind, JSON_NULL);
    assert_null(empty->next);
    arena_free(&mem);
}

static void a_tree_outlives_its_text(void **state) {
    (void)state;
    arena mem = {0};
    char text[] = "{\"name\":[\"value\",12]}";
    const json *v = parse(str_of(text), &STRICT, &mem);
    memset(text, 'x', sizeof text);
    assert_true(str_equal(v->first->name, STR("name")));
    assert_true(str_equal(v->first->first->text, STR("value")));
    assert_true(str_equal(v->first->first->next->text, STR("12")));
    arena_free(&mem);
}

static void b09_a_long_string_of_escapes_is_read(void **state) {
    (void)state;
    enum { N = 1 << 20 };
    buf text = {0};
    buf_add_char(&text, '"');
    for (int i = 0; i < N; i++) buf_add_str(&text, STR("<|a\\n"));
    buf_add_char(&text, '"');
    arena mem = {0};
    const json *v = parse((str){text.p, text.n}, &STRICT, &mem);
    assert_int_equal(v->text.n, 4 * (size_t)N);
    assert_memory_equal(v->text.p + v->text.n - 8, "<|a\n<|a\n", 8);
    arena_free(&mem);
    buf_free(&text);
}

/* ---- repeated names ------------------------------------------------------------------------ */

static void the_last_value_stands_at_the_first_place(void **state) {
    (void)state;
    arena mem = {0};
    const json *v =
        parse(STR("{\"a\":[1],\"b\":2,\"\\u0061\":{\"x\":3},\"c\":4,\"a\":[5,6]}"), &STRICT, &mem);
    assert_int_equal(v->n, 3);
    assert_true(str_equal(v->first->name, STR("a")));
    assert_int_equal(v->first->kind, JSON_ARRAY);
    assert_int_equal(v->first->n, 2);
    assert_true(str_equal(v->first->next->name, STR("b")));
    assert_true(str_equal(v->first->next->next->name, STR("c")));
    assert_null(v->first->next->next->next);
    arena_free(&mem);
}

/* An object whose member i has the name `names[i % n_names]` and the value i. */
static buf object_of(const str *names, size_t n_names, size_t n) {
    buf text = {0};
    buf_add_char(&text, '{');
    for (size_t i = 0; i < n; i++) {
        buf_add_text(&text, i == 0 ? "\"" : ",\"");
        const str name = names[i % n_names];
        for (size_t k = 0; k < name.n; k++) buf_printf(&text, "\\u%04x", (unsigned)name.p[k]);
        buf_printf(&text, "\":%zu", i);
    }
    buf_add_char(&text, '}');
    assert_false(text.failed);
    return text;
}

/* n members with n_names names: the last round of values must stand, in the order of the names. */
static void expect_last_values(const str *names, size_t n_names, size_t n) {
    buf text = object_of(names, n_names, n);
    arena mem = {0};
    const json *v = parse((str){text.p, text.n}, &STRICT, &mem);
    assert_int_equal(v->n, n_names);
    size_t i = 0;
    for (const json *m = v->first; m != NULL; m = m->next, i++) {
        uint64_t value = 0;
        assert_true(str_equal(m->name, names[i]));
        assert_true(json_u64(&value, m, n));
        assert_int_equal(value, n - n_names + (i + n_names - n % n_names) % n_names);
    }
    assert_int_equal(i, n_names);
    arena_free(&mem);
    buf_free(&text);
}

enum { N_NAMES = 3000 };

/* Different names of 16 bytes. With `collide` all have the hash of json.c's hash_name, whose last
 * step maps equal (state ^ second half) to equal values. */
static void make_names(str names[N_NAMES], char bytes[N_NAMES][16], bool collide) {
    uint64_t random = 88172645463325252u;
    for (size_t i = 0; i < N_NAMES;) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        const uint64_t first = random & 0x7F7F7F7F7F7F7F7Fu;
        uint64_t middle = (16 ^ first) * 0x9E3779B97F4A7C15u;
        middle ^= middle >> 32;
        const uint64_t second = collide ? middle ^ 0x4142434445464748u : random >> 32 & 0x7F7F7F7F;
        if ((second & 0x8080808080808080u) != 0) continue;
        memcpy(bytes[i], &first, 8);
        memcpy(bytes[i] + 8, &second, 8);
        names[i] = (str){bytes[i], 16};
        i++;
    }
}

static void many_repeated_names_are_merged(void **state) {
    (void)state;
    static str names[N_NAMES];
    static char bytes[N_NAMES][16];
    make_names(names, bytes, false);
    expect_last_values(names, 1, 100000);
    expect_last_values(names, 9, 9);
    expect_last_values(names, 9, 100);
    expect_last_values(names, 8, 13);
    expect_last_values(names, N_NAMES, N_NAMES);
    expect_last_values(names, N_NAMES, 5 * N_NAMES + 7);
}

static void names_chosen_to_collide_are_merged_too(void **state) {
    (void)state;
    static str names[N_NAMES];
    static char bytes[N_NAMES][16];
    make_names(names, bytes, true);
    expect_last_values(names, N_NAMES, N_NAMES);
    expect_last_values(names, N_NAMES, 3 * N_NAMES + 11);
}

static void a_repeated_name_is_refused_where_asked(void **state) {
    (void)state;
    expect_refusal(STR("{\"a\":1,\"b\":{\"a\":2}, \"a\":3}"), &NO_DUPLICATES, CLEF_ERR_INPUT, 20,
                   "the name 'a' stands twice in an object");
    static str names[N_NAMES];
    static char bytes[N_NAMES][16];
    for (int collide = 0; collide < 2; collide++) {
        make_names(names, bytes, collide != 0);
        buf text = object_of(names, N_NAMES, N_NAMES + 5);
        /* Each member spells 16 escapes; 10, 90, 900 and 2,000 of them have 1 to 4 digits. */
        const size_t at = 1 + N_NAMES * (16 * 6 + 4) + 10 + 2 * 90 + 3 * 900 + 4 * 2000;
        expect_refusal((str){text.p, text.n}, &NO_DUPLICATES, CLEF_ERR_INPUT, at, "the name '");
        buf_free(&text);
    }
}

static void sorting_keeps_the_order_of_equal_names(void **state) {
    (void)state;
    enum { N = 1000 };
    static json nodes[N];
    static json_place places[N], scratch[N];
    static char bytes[N];
    for (size_t n = 0; n <= N; n = n < 20 ? n + 1 : n * 2 + 1) {
        for (size_t i = 0; i < n; i++) {
            bytes[i] = (char)('a' + i * 7919 % 23);
            nodes[i].name = (str){bytes + i, i % 2};
            places[i] = (json_place){nodes + i, i};
        }
        json_sort(places, scratch, n);
        for (size_t i = 1; i < n; i++) {
            const int order = str_compare(places[i - 1].member->name, places[i].member->name);
            assert_true(order < 0 || (order == 0 && places[i - 1].place < places[i].place));
        }
    }
}

static void plain_text_ends_before_each_special_byte(void **state) {
    (void)state;
    char text[40];
    for (unsigned c = 0; c < 256; c++) {
        for (size_t at = 0; at < sizeof text; at++) {
            memset(text, at % 2 == 0 ? 'a' : '\xFF', sizeof text);
            text[at] = (char)c;
            const bool special = c < 0x20 || c == '"' || c == '\\';
            assert_int_equal(json_plain(text, sizeof text), special ? at : sizeof text);
        }
    }
}

/* ---- looking ------------------------------------------------------------------------------- */

static void members_are_found_by_name(void **state) {
    (void)state;
    arena mem = {0};
    const json *v = parse(STR("{\"a\":1,\"b\":[2]}"), &STRICT, &mem);
    assert_ptr_equal(json_get(v, STR("b")), v->first->next);
    assert_null(json_get(v, STR("c")));
    assert_null(json_get(v->first->next, STR("b")));
    assert_null(json_get(NULL, STR("b")));
    arena_free(&mem);
}

static bool u64_of(const char *text, uint64_t max, uint64_t *value) {
    arena mem = {0};
    const bool is = json_u64(value, parse(str_of(text), &STRICT, &mem), max);
    arena_free(&mem);
    return is;
}

static void only_plain_integers_within_the_bound_are_counts(void **state) {
    (void)state;
    uint64_t value = 7;
    assert_false(u64_of("-1", UINT64_MAX, &value));
    assert_false(u64_of("-0", UINT64_MAX, &value));
    assert_false(u64_of("1.0", UINT64_MAX, &value));
    assert_false(u64_of("1e2", UINT64_MAX, &value));
    assert_false(u64_of("\"1\"", UINT64_MAX, &value));
    assert_false(u64_of("18446744073709551616", UINT64_MAX, &value));
    assert_false(u64_of("100000000000000000000", UINT64_MAX, &value));
    assert_false(u64_of("11", 10, &value));
    assert_false(json_u64(&value, NULL, 10));
    assert_int_equal(value, 7);
    assert_true(u64_of("10", 10, &value));
    assert_int_equal(value, 10);
    assert_true(u64_of("18446744073709551615", UINT64_MAX, &value));
    assert_true(value == UINT64_MAX);
}

static void only_numbers_are_doubles(void **state) {
    (void)state;
    arena mem = {0};
    double value = 7;
    assert_false(json_double(&value, parse(STR("\"1\""), &STRICT, &mem)));
    assert_false(json_double(&value, NULL));
    assert_true(value == 7);
    assert_true(json_double(&value, parse(STR("-12.5e1"), &STRICT, &mem)));
    assert_true(value == -125);
    arena_free(&mem);
}

static void kinds_have_names_for_sentences(void **state) {
    (void)state;
    static const char *const wanted[] = {"null",     "false",    "true",     "a number",
                                         "a string", "an array", "an object"};
    arena mem = {0};
    const json *v = parse(STR("[null,false,true,1,\"\",[],{}]"), &STRICT, &mem)->first;
    for (size_t i = 0; v != NULL; v = v->next) assert_string_equal(json_kind_name(v), wanted[i++]);
    assert_string_equal(json_kind_name(NULL), "nothing");
    arena_free(&mem);
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Fails the 1st, 2nd, ... allocation of a parse; returns how many there were. */
static unsigned fail_each_allocation(str text) {
    for (unsigned n = 1;; n++) {
        arena mem = {0};
        clef_error err = {0};
        const json *v = NULL;
        oom_fail_at(n);
        const clef_status s = json_parse(&v, text, "text", &STRICT, &mem, &err);
        oom_stop();
        arena_free(&mem);
        if (s == CLEF_OK) return n - 1;
        assert_int_equal(s, CLEF_ERR_MEMORY);
        assert_string_equal(err.text, "out of memory");
        assert_null(v);
    }
}

static void every_failed_allocation_is_reported(void **state) {
    (void)state;
    static str names[N_NAMES];
    static char bytes[N_NAMES][16];
    for (int collide = 0; collide < 2; collide++) {
        make_names(names, bytes, collide != 0);
        buf text = object_of(names, 400, 500);
        /* Text, nodes, frames, children, the table, and for names that collide the sort. */
        assert_true(fail_each_allocation((str){text.p, text.n}) >= 5u + (unsigned)collide);
        buf_free(&text);
    }
}

static void the_ceiling_of_the_arena_is_a_limit_and_no_want_of_memory(void **state) {
    (void)state;
    arena mem = {.max_bytes = 20000};
    buf text = {0};
    buf_add_char(&text, '[');
    for (int i = 0; i < 4000; i++) buf_add_str(&text, STR("1,"));
    buf_add_str(&text, STR("1]"));
    const json *v = NULL;
    clef_error err = {0};
    assert_int_equal(json_parse(&v, (str){text.p, text.n}, "text", &STRICT, &mem, &err),
                     CLEF_ERR_LIMIT);
    assert_string_equal(err.text, "text: more values than fit into 20000 bytes of memory");
    arena_free(&mem);
    mem = (arena){.max_bytes = 1000}; /* too small for the text itself */
    assert_int_equal(json_parse(&v, (str){text.p, text.n}, "text", &STRICT, &mem, &err),
                     CLEF_ERR_LIMIT);
    assert_null(v);
    arena_free(&mem);
    buf_free(&text);
}

#define T(name) cmocka_unit_test(name)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(errors_are_found_where_cpython_finds_them),
        T(b10_a_sentence_says_what_was_found_and_what_was_wanted),
        T(b06_a_lone_surrogate_is_refused_naming_its_offset),
        T(b06_a_surrogate_pair_is_one_character),
        T(b08_any_depth_beyond_the_limit_is_refused),
        T(b08_sixty_levels_are_read),
        T(b11_invalid_utf8_is_refused_naming_its_offset),
        T(b12_zero_bytes_and_trailing_text_are_refused),
        T(b12_a_byte_order_mark_is_skipped_only_where_allowed),
        T(nonfinite_numbers_are_read_only_where_allowed),
        T(a_hostile_label_and_text_give_a_printable_sentence),
        T(a_tree_keeps_order_spelling_lengths_and_offsets),
        T(a_tree_outlives_its_text),
        T(b09_a_long_string_of_escapes_is_read),
        T(the_last_value_stands_at_the_first_place),
        T(many_repeated_names_are_merged),
        T(names_chosen_to_collide_are_merged_too),
        T(a_repeated_name_is_refused_where_asked),
        T(sorting_keeps_the_order_of_equal_names),
        T(plain_text_ends_before_each_special_byte),
        T(members_are_found_by_name),
        T(only_plain_integers_within_the_bound_are_counts),
        T(only_numbers_are_doubles),
        T(kinds_have_names_for_sentences),
        T(every_failed_allocation_is_reported),
        T(the_ceiling_of_the_arena_is_a_limit_and_no_want_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
