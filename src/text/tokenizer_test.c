/* tokenizer_test.c - loading, added tokens, control policies, on a tokenizer.json that fits on a
 * screen; and the toy checkpoints' tokenizers against the reference (testdata/golden). The released
 * tokenizer is held to the reference in tokenizer_slow_test.c. */
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/oom.h"
#include "tests/recorded.h"
#include "tests/tiny_tokenizer.h"

static tokenizer *tiny(void) {
    buf text = {0};
    tiny_document(&text);
    tokenizer *t = NULL;
    clef_error err = {0};
    const clef_status s = tokenizer_parse(&t, (str){text.p, text.n}, "t.json", NULL, &err);
    buf_free(&text);
    if (s != CLEF_OK) fail_msg("%s", err.text);
    return t;
}

/* Fails unless the text gives exactly these ids, of which the last is followed by -1. */
static void expect(const tokenizer *t, clef_control control, str text, const int32_t *wanted) {
    id_list ids = {0};
    clef_error err = {0};
    if (tokenizer_encode(t, text, control, &ids, &err) != CLEF_OK) fail_msg("%s", err.text);
    size_t n = 0;
    while (wanted[n] >= 0) n++;
    assert_int_equal(ids.n, n);
    if (n > 0) assert_memory_equal(ids.ids, wanted, n * sizeof *wanted);
    id_list_free(&ids);
}

#define IDS(...) ((const int32_t[]){__VA_ARGS__, -1})
#define REFERENCE CLEF_CONTROL_REFERENCE

/* ---- encoding ----------------------------------------------------------------------------- */

static void text_is_split_and_merged(void **state) {
    (void)state;
    tokenizer *t = tiny();
    expect(t, REFERENCE, STR("hello abc"), IDS(259, ' ', 'a', 262));
    expect(t, REFERENCE, STR("he\0he"), IDS(256, 0, 256));
    tokenizer_free(t);
}

static void empty_text_gives_no_ids(void **state) {
    (void)state;
    tokenizer *t = tiny();
    expect(t, REFERENCE, STR(""), (const int32_t[]){-1});
    expect(t, CLEF_CONTROL_PLAIN, (str){NULL, 0}, (const int32_t[]){-1});
    tokenizer_free(t);
}

static void text_is_normalised_before_it_is_split(void **state) {
    (void)state;
    tokenizer *t = tiny();
    expect(t, REFERENCE, STR("e\xCC\x81"), IDS(0xC3, 0xA9));
    tokenizer_free(t);
}

static void added_tokens_match_inside_words_and_twice_in_a_row(void **state) {
    (void)state;
    tokenizer *t = tiny();
    expect(t, REFERENCE, STR("he<|end|>he"), IDS(256, TINY_END, 256));
    expect(t, REFERENCE, STR("<|end|><|end|>"), IDS(TINY_END, TINY_END));
    expect(t, REFERENCE, STR("<<|end|>"), IDS('<', TINY_END));
    tokenizer_free(t);
}

static void the_longest_added_token_matches(void **state) {
    (void)state;
    tokenizer *t = tiny();
    expect(t, REFERENCE, STR("<thinking>"), IDS(TINY_THINKING));
    expect(t, REFERENCE, STR("<thinkin"), IDS(TINY_THINK, 'i', 'n'));
    expect(t, REFERENCE, STR("<think"), IDS(TINY_THINK));
    tokenizer_free(t);
}

static void neighbours_of_added_tokens_keep_their_spaces(void **state) {
    (void)state;
    tokenizer *t = tiny();
    expect(t, REFERENCE, STR(" <|end|> he"), IDS(' ', TINY_END, ' ', 256));
    tokenizer_free(t);
}

/* The space before the h belongs to the stretch before: " h" is an entry, "h" after "<|end|>" not.
 */
static void nothing_merges_across_an_added_token(void **state) {
    (void)state;
    tokenizer *t = tiny();
    expect(t, REFERENCE, STR("h<|end|>e"), IDS('h', TINY_END, 'e'));
    expect(t, REFERENCE, STR("e<|end|>\xCC\x81"), IDS('e', TINY_END, 0xCC, 0x81));
    tokenizer_free(t);
}

static void added_tokens_are_found_before_normalising(void **state) {
    (void)state;
    tokenizer *t = tiny();
    expect(t, REFERENCE, STR("@e\xCC\x81"), IDS(TINY_AT)); /* decomposed, as its content is */
    expect(t, REFERENCE, STR("@\xC3\xA9"), IDS('@', 0xC3, 0xA9));
    tokenizer_free(t);
}

static void case_matters_for_added_tokens(void **state) {
    (void)state;
    tokenizer *t = tiny();
    expect(t, REFERENCE, STR("<|END|>"), IDS('<', '|', 'E', 'N', 'D', '|', '>'));
    tokenizer_free(t);
}

static void plain_never_gives_an_added_token(void **state) {
    (void)state;
    tokenizer *t = tiny();
    expect(t, CLEF_CONTROL_PLAIN, STR("<|end|>"), IDS('<', '|', 'e', 'n', 'd', '|', '>'));
    expect(t, CLEF_CONTROL_PLAIN, STR("@e\xCC\x81"), IDS('@', 0xC3, 0xA9));
    tokenizer_free(t);
}

static void reject_names_the_spelling_and_its_place(void **state) {
    (void)state;
    tokenizer *t = tiny();
    id_list ids = {0};
    clef_error err = {0};
    assert_int_equal(id_list_add(&ids, IDS(7), 1, NULL), CLEF_OK);
    assert_int_equal(tokenizer_encode(t, STR("he <|end|>"), CLEF_CONTROL_REJECT, &ids, &err),
                     CLEF_ERR_INPUT);
    assert_string_equal(err.text, "the control token '<|end|>' stands at byte 3 of the text");
    assert_int_equal(ids.n, 1);
    expect(t, CLEF_CONTROL_REJECT, STR("he <|end"), IDS(256, ' ', '<', '|', 'e', 'n', 'd'));
    id_list_free(&ids);
    tokenizer_free(t);
}

static void cut_characters_are_refused_at_every_byte(void **state) {
    (void)state;
    tokenizer *t = tiny();
    const str text = STR("a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80");
    for (size_t n = 0; n <= text.n; n++) {
        char *copy = malloc(n + 1); /* of exactly this size, so that a sanitizer sees over-reads */
        assert_non_null(copy);
        memcpy(copy, text.p, n);
        id_list ids = {0};
        clef_error err = {0};
        const bool whole = n == 0 || n == 1 || n == 3 || n == 6 || n == 10;
        assert_int_equal(tokenizer_encode(t, (str){copy, n}, REFERENCE, &ids, &err),
                         whole ? CLEF_OK : CLEF_ERR_INPUT);
        if (!whole) {
            char wanted[64];
            snprintf(wanted, sizeof wanted, "invalid UTF-8 at byte %d of the text",
                     n < 3 ? 1 : (n < 6 ? 3 : 6));
            assert_string_equal(err.text, wanted);
            assert_int_equal(ids.n, 0);
        }
        id_list_free(&ids);
        free(copy);
    }
    tokenizer_free(t);
}

static void surrogates_and_overlong_forms_are_refused(void **state) {
    (void)state;
    tokenizer *t = tiny();
    static const str texts[] = {STR("\xED\xA0\x80"), STR("\xC0\x80"), STR("\xFF\xFE"),
                                STR("\xF4\x90\x80\x80"), STR("\x80")};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        id_list ids = {0};
        assert_int_equal(tokenizer_encode(t, texts[i], CLEF_CONTROL_PLAIN, &ids, NULL),
                         CLEF_ERR_INPUT);
        id_list_free(&ids);
    }
    tokenizer_free(t);
}

static void ids_are_appended(void **state) {
    (void)state;
    tokenizer *t = tiny();
    id_list ids = {0};
    for (int i = 0; i < 3; i++)
        assert_int_equal(tokenizer_encode(t, STR("he"), REFERENCE, &ids, NULL), CLEF_OK);
    assert_int_equal(ids.n, 3);
    assert_memory_equal(ids.ids, IDS(256, 256, 256), 3 * sizeof *ids.ids);
    id_list_free(&ids);
    tokenizer_free(t);
}

/* ---- loading ------------------------------------------------------------------------------ */

static void the_facts_of_a_file_are_told(void **state) {
    (void)state;
    tokenizer *t = tiny();
    const tokenizer_facts f = tokenizer_describe(t);
    assert_int_equal(f.stated, SPLIT_QWEN2);
    assert_int_equal(f.used, SPLIT_QWEN2);
    assert_true(f.normalizes);
    assert_int_equal(f.n_vocab, TINY_ENTRIES);
    assert_int_equal(f.n_merges, TINY_N_MERGES);
    assert_int_equal(f.n_added, TINY_ADDED);
    assert_int_equal(f.max_id, TINY_ENTRIES + TINY_ADDED - 1);
    assert_int_equal(f.n_unreachable, TINY_UNREACHABLE);
    assert_int_equal(tokenizer_added_id(t, STR("<think")), TINY_THINK);
    assert_int_equal(tokenizer_added_id(t, STR("<thin")), -1);
    assert_int_equal(tokenizer_added_id(t, STR("hello")), -1);
    tokenizer_free(t);
}

static void an_override_changes_the_pattern(void **state) {
    (void)state;
    buf text = {0};
    tiny_document(&text);
    const str whole = {text.p, text.n};
    tokenizer *t = NULL;
    clef_error err = {0};
    assert_int_equal(tokenizer_parse(&t, whole, "t.json", "qwen35", &err), CLEF_OK);
    assert_int_equal(tokenizer_describe(t).stated, SPLIT_QWEN2);
    assert_int_equal(tokenizer_describe(t).used, SPLIT_QWEN35);
    tokenizer_free(t);
    t = NULL;
    assert_int_equal(tokenizer_parse(&t, whole, "t.json", "qwen3", &err), CLEF_ERR_INPUT);
    assert_string_equal(err.text, "split pattern 'qwen3', wanted qwen2 or qwen35");
    assert_null(t);
    buf_free(&text);
}

/* The document with the first `find` replaced; `find` must stand there. */
static void edited(buf *out, const char *find, const char *replace) {
    buf text = {0};
    tiny_document(&text);
    const char *at = strstr(text.p, find);
    if (at == NULL) fail_msg("'%s' is not in the document", find);
    buf_add(out, text.p, (size_t)(at - text.p));
    buf_add_text(out, replace);
    buf_add_text(out, at + strlen(find));
    buf_free(&text);
}

static void harmless_variants_are_taken(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"\"normalizer\":{\"type\":\"NFC\"}", "\"normalizer\":null"},
        {"\"type\":\"BPE\",", ""},
        {"\"dropout\":null,", ""},
        {"\"ignore_merges\":false,", ""},
        {"\"end_of_word_suffix\":null", "\"end_of_word_suffix\":\"\""},
        {"\"trim_offsets\":true", "\"trim_offsets\":false"},
        {"\"truncation\":null", "\"truncation\":{\"max_length\":5}"},
        {"\"post_processor\":null", "\"post_processor\":{\"type\":\"ByteLevel\"}"},
        {"\"special\":true", "\"special\":false"},
        {TINY_TOKENS, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        buf text = {0};
        edited(&text, rows[i][0], rows[i][1]);
        tokenizer *t = NULL;
        clef_error err = {0};
        if (tokenizer_parse(&t, (str){text.p, text.n}, "t.json", NULL, &err) != CLEF_OK)
            fail_msg("row %zu: %s", i, err.text);
        expect(t, REFERENCE, STR("hello"), IDS(259));
        tokenizer_free(t);
        buf_free(&text);
    }
}

static void without_a_normalizer_text_stays_as_it_is(void **state) {
    (void)state;
    buf text = {0};
    edited(&text, "{\"type\":\"NFC\"}", "null");
    tokenizer *t = NULL;
    assert_int_equal(tokenizer_parse(&t, (str){text.p, text.n}, "t.json", NULL, NULL), CLEF_OK);
    assert_false(tokenizer_describe(t).normalizes);
    expect(t, REFERENCE, STR("e\xCC\x81"), IDS('e', 0xCC, 0x81));
    tokenizer_free(t);
    buf_free(&text);
}

static void what_would_change_ids_is_refused_with_its_place(void **state) {
    (void)state;
    static const char *const rows[][3] = {
        {"\"NFC\"", "\"NFKC\"", "normalizer.type: found 'NFKC', wanted NFC"},
        {"\"Sequence\"", "\"Split\"", "pre_tokenizer.type: found 'Split', wanted Sequence"},
        {"\"pre_tokenizer\"", "\"pretokenizer\"", "pre_tokenizer.type: found 'nothing'"},
        {"\"Split\"", "\"Digits\"", "pretokenizers[0].type: found 'Digits', wanted Split"},
        {"\"Isolated\"", "\"Removed\"", "behavior: found 'Removed', wanted Isolated"},
        {"\"invert\":false", "\"invert\":true", "invert: found"},
        {"\\\\p{N}|", "\\\\p{N}{1,3}|", "pattern.Regex: found '(?i:"},
        {"\"ByteLevel\"", "\"Metaspace\"", "pretokenizers[1].type: found 'Metaspace'"},
        {"\"add_prefix_space\":false", "\"add_prefix_space\":true", "add_prefix_space: found"},
        {",\"use_regex\":false", "", "use_regex: found 'nothing', wanted false"},
        {"\"use_regex\":false}", "\"use_regex\":false},{\"type\":\"Digits\"}",
         "pre_tokenizer.pretokenizers: found"},
        {"\"model\"", "\"modell\"", "model: found 'nothing', wanted an object"},
        {"\"BPE\"", "\"Unigram\"", "model.type: found 'Unigram', wanted BPE"},
        {"\"dropout\":null", "\"dropout\":0.1", "model.dropout: found"},
        {"\"unk_token\":null", "\"unk_token\":\"<unk>\"", "model.unk_token: found '<unk>'"},
        {"\"continuing_subword_prefix\":\"\"", "\"continuing_subword_prefix\":\"##\"",
         "model.continuing_subword_prefix: found '##'"},
        {"\"end_of_word_suffix\":null", "\"end_of_word_suffix\":\"</w>\"",
         "model.end_of_word_suffix: found '</w>'"},
        {"\"fuse_unk\":false", "\"fuse_unk\":true", "model.fuse_unk: found"},
        {"\"byte_fallback\":false", "\"byte_fallback\":true", "model.byte_fallback: found"},
        {"\"ignore_merges\":false", "\"ignore_merges\":true", "model.ignore_merges: found"},
        {"\"vocab\"", "\"vocabulary\"", "model.vocab: missing"},
        {"\"merges\"", "\"merge\"", "model.merges: missing"},
        {"\"added_tokens\"", "\"added\"", "added_tokens: found 'nothing', wanted an array"},
        {"\"content\":\"<|end|>\"", "\"content\":\"\"", "added_tokens[0].content: wanted"},
        {"\"content\":\"<|end|>\"", "\"content\":3", "added_tokens[0].content: wanted"},
        {"\"content\":\"<|end|>\"", "\"content\":\"<think\"", "'<think' stands there twice"},
        {"\"content\":\"<|end|>\"", "\"content\":\"hell\"", "'hell' is an entry of model.vocab"},
        {"\"id\":266", "\"id\":300", "added_tokens[0].id of '<|end|>': wanted 266"},
        {"\"id\":266", "\"id\":265", "added_tokens[0].id of '<|end|>': wanted 266"},
        {"\"normalized\":false", "\"normalized\":true", "added_tokens[0].normalized"},
        {"\"lstrip\":false", "\"lstrip\":true", "added_tokens[0].lstrip"},
        {"\"rstrip\":false", "\"rstrip\":true", "added_tokens[0].rstrip"},
        {"\"single_word\":false", "\"single_word\":true", "added_tokens[0].single_word"},
        {"\"single_word\":false,", "", "added_tokens[0].single_word"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        buf text = {0};
        edited(&text, rows[i][0], rows[i][1]);
        tokenizer *t = NULL;
        clef_error err = {0};
        assert_int_equal(tokenizer_parse(&t, (str){text.p, text.n}, "t.json", NULL, &err),
                         CLEF_ERR_FORMAT);
        if (strstr(err.text, rows[i][2]) == NULL || strncmp(err.text, "t.json: ", 8) != 0)
            fail_msg("row %zu: '%s', wanted '%s'", i, err.text, rows[i][2]);
        assert_null(t);
        buf_free(&text);
    }
}

static void what_is_no_tokenizer_is_refused(void **state) {
    (void)state;
    static const str texts[] = {
        STR(""),
        STR("{"),
        STR("[]"),
        STR("{}"),
        STR("{\"a\":1,\"a\":2}"),
        STR("{\"model\":\"\xFF\"}"),
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        tokenizer *t = NULL;
        clef_error err = {0};
        assert_int_equal(tokenizer_parse(&t, texts[i], "t.json", NULL, &err), CLEF_ERR_FORMAT);
        assert_int_equal(err.status, CLEF_ERR_FORMAT);
        assert_null(t);
    }
}

static void deep_and_big_files_are_refused(void **state) {
    (void)state;
    tokenizer *t = NULL;
    char deep[1000];
    memset(deep, '[', sizeof deep);
    assert_int_equal(tokenizer_parse(&t, (str){deep, sizeof deep}, "t.json", NULL, NULL),
                     CLEF_ERR_FORMAT);
    clef_error err = {0};
    const size_t n = ((size_t)64 << 20) + 1;
    char *big = calloc(n, 1);
    assert_non_null(big);
    assert_int_equal(tokenizer_parse(&t, (str){big, n}, "t.json", NULL, &err), CLEF_ERR_LIMIT);
    assert_string_equal(err.text, "t.json: 67108865 bytes, the limit is 67108864");
    assert_null(t);
    free(big);
}

static void a_missing_file_is_named(void **state) {
    (void)state;
    tokenizer *t = NULL;
    clef_error err = {0};
    assert_int_equal(tokenizer_load(&t, TESTDATA "no-such-file.json", NULL, &err), CLEF_ERR_IO);
    assert_non_null(strstr(err.text, "no-such-file.json"));
    assert_null(t);
}

/* ---- the toy checkpoints ------------------------------------------------------------------ */

static void expect_row(const tokenizer *t, clef_control control, str text, const json *wanted) {
    id_list ids = {0};
    assert_int_equal(tokenizer_encode(t, text, control, &ids, NULL), CLEF_OK);
    size_t i = 0;
    for (const json *v = wanted->first; v != NULL && i < ids.n; v = v->next, i++) {
        uint64_t id;
        assert_true(json_u64(&id, v, INT32_MAX));
        if ((uint64_t)ids.ids[i] != id)
            fail_msg("'%.*s': id %zu is %d, wanted %d", STR_ARG(text), i, (int)ids.ids[i], (int)id);
    }
    assert_int_equal(ids.n, wanted->n);
    id_list_free(&ids);
}

static void expect_recorded(const char *recording) {
    arena mem = {0};
    const json *root = recorded_load(&mem, recording);
    buf path = {0};
    buf_printf(&path, TESTDATA "%.*s", STR_ARG(recorded_text(root, "tokenizer")));
    tokenizer *t = NULL;
    clef_error err = {0};
    if (tokenizer_load(&t, path.p, NULL, &err) != CLEF_OK) fail_msg("%s", err.text);
    const json *rows = recorded_get(root, "cases");
    assert_true(rows->n > 100);
    for (const json *row = rows->first; row != NULL; row = row->next) {
        const str text = recorded_text(row, "text");
        const json *ids = recorded_get(row, "ids"), *plain = json_get(row, STR("plain"));
        expect_row(t, REFERENCE, text, ids);
        expect_row(t, CLEF_CONTROL_PLAIN, text, plain != NULL ? plain : ids);
    }
    tokenizer_free(t);
    buf_free(&path);
    arena_free(&mem);
}

static void the_qwen2_toy_gives_the_ids_of_the_reference(void **state) {
    (void)state;
    expect_recorded(TESTDATA "golden/tokens-toy-qwen2.json");
}

static void the_qwen35_toy_gives_the_ids_of_the_reference(void **state) {
    (void)state;
    expect_recorded(TESTDATA "golden/tokens-toy-qwen35.json");
}

/* ---- want of memory ----------------------------------------------------------------------- */

static void running_out_of_memory_while_loading_is_reported(void **state) {
    (void)state;
    buf text = {0};
    tiny_document(&text);
    clef_status s = CLEF_ERR_MEMORY;
    unsigned n = 1;
    for (; s != CLEF_OK; n++) {
        tokenizer *t = NULL;
        oom_fail_at(n);
        s = tokenizer_parse(&t, (str){text.p, text.n}, "t.json", NULL, NULL);
        oom_stop();
        if (s != CLEF_OK) {
            assert_int_equal(s, CLEF_ERR_MEMORY);
            assert_null(t);
        }
        tokenizer_free(t);
    }
    assert_true(n > 10);
    buf_free(&text);
}

static void running_out_of_memory_while_encoding_leaves_the_ids_as_they_were(void **state) {
    (void)state;
    tokenizer *t = tiny();
    const str text = STR("hello<|end|>e\xCC\x81 abc abc abc abc");
    clef_status s = CLEF_ERR_MEMORY;
    unsigned n = 1;
    for (; s != CLEF_OK; n++) {
        id_list ids = {0};
        assert_int_equal(id_list_add(&ids, IDS(7), 1, NULL), CLEF_OK);
        oom_fail_at(n);
        s = tokenizer_encode(t, text, REFERENCE, &ids, NULL);
        oom_stop();
        if (s != CLEF_OK) {
            assert_int_equal(s, CLEF_ERR_MEMORY);
            assert_int_equal(ids.n, 1);
        }
        id_list_free(&ids);
    }
    assert_true(n > 4);
    tokenizer_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_split_and_merged),
        cmocka_unit_test(empty_text_gives_no_ids),
        cmocka_unit_test(text_is_normalised_before_it_is_split),
        cmocka_unit_test(added_tokens_match_inside_words_and_twice_in_a_row),
        cmocka_unit_test(the_longest_added_token_matches),
        cmocka_unit_test(neighbours_of_added_tokens_keep_their_spaces),
        cmocka_unit_test(nothing_merges_across_an_added_token),
        cmocka_unit_test(added_tokens_are_found_before_normalising),
        cmocka_unit_test(case_matters_for_added_tokens),
        cmocka_unit_test(plain_never_gives_an_added_token),
        cmocka_unit_test(reject_names_the_spelling_and_its_place),
        cmocka_unit_test(cut_characters_are_refused_at_every_byte),
        cmocka_unit_test(surrogates_and_overlong_forms_are_refused),
        cmocka_unit_test(ids_are_appended),
        cmocka_unit_test(the_facts_of_a_file_are_told),
        cmocka_unit_test(an_override_changes_the_pattern),
        cmocka_unit_test(harmless_variants_are_taken),
        cmocka_unit_test(without_a_normalizer_text_stays_as_it_is),
        cmocka_unit_test(what_would_change_ids_is_refused_with_its_place),
        cmocka_unit_test(what_is_no_tokenizer_is_refused),
        cmocka_unit_test(deep_and_big_files_are_refused),
        cmocka_unit_test(a_missing_file_is_named),
        cmocka_unit_test(the_qwen2_toy_gives_the_ids_of_the_reference),
        cmocka_unit_test(the_qwen35_toy_gives_the_ids_of_the_reference),
        cmocka_unit_test(running_out_of_memory_while_loading_is_reported),
        cmocka_unit_test(running_out_of_memory_while_encoding_leaves_the_ids_as_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
