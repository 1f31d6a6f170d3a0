/* bpe_test.c - the merge loop on a tiny vocabulary, and what the loader refuses. */
#include "text/bpe.h"

#include <stdlib.h>

#include "base/cpu.h"
#include "tests/oom.h"
#include "tests/recorded.h"
#include "tests/tiny_tokenizer.h"

/* Loads the vocabulary of `entries` above the single bytes with `merges`. */
static clef_status load(bpe **out, const char *entries, const char *merges, clef_error *err) {
    buf text = {0};
    buf_add_text(&text, "{\"vocab\":{");
    tiny_add_bytes(&text);
    buf_printf(&text, "%s},\"merges\":%s}", entries, merges);
    arena mem = {0};
    const json_limits limits = {.duplicates = JSON_REFUSE_DUPLICATES};
    const json *root = NULL;
    clef_status s = buf_status(&text, err);
    if (s == CLEF_OK) s = json_parse(&root, (str){text.p, text.n}, "t.json", &limits, &mem, err);
    if (s == CLEF_OK)
        s = bpe_load(out, json_get(root, STR("vocab")), json_get(root, STR("merges")), "t.json",
                     err);
    arena_free(&mem);
    buf_free(&text);
    return s;
}

static bpe *tiny(void) {
    bpe *b = NULL;
    clef_error err = {0};
    if (load(&b, TINY_VOCAB, "[" TINY_MERGES "]", &err) != CLEF_OK) fail_msg("%s", err.text);
    return b;
}

/* Fails unless the piece gives exactly these ids; the last one is followed by -1. */
static void expect(const bpe *b, str piece, const int32_t *wanted) {
    id_list ids = {0};
    assert_int_equal(bpe_encode(b, piece, &ids, NULL), CLEF_OK);
    size_t n = 0;
    while (wanted[n] >= 0) n++;
    assert_int_equal(ids.n, n);
    assert_memory_equal(ids.ids, wanted, n * sizeof *wanted);
    id_list_free(&ids);
}

#define IDS(...) ((const int32_t[]){__VA_ARGS__, -1})

static void the_lowest_rank_merges_first(void **state) {
    (void)state;
    bpe *b = tiny();
    expect(b, STR("abc"), IDS('a', 262)); /* b c stands before a b */
    expect(b, STR("ab"), IDS(261));
    expect(b, STR("hello"), IDS(259));
    expect(b, STR("hellhe"), IDS(258, 256));
    bpe_free(b);
}

static void of_equal_ranks_the_leftmost_merges_first(void **state) {
    (void)state;
    bpe *b = tiny();
    expect(b, STR("aaa"), IDS(263, 'a'));
    expect(b, STR("aaaaa"), IDS(264, 'a'));
    expect(b, STR("aaaaaaa"), IDS(264, 263, 'a'));
    bpe_free(b);
}

static void an_entry_that_no_merge_produces_is_not_taken_whole(void **state) {
    (void)state;
    bpe *b = tiny();
    expect(b, STR("lo"), IDS('l', 'o'));
    assert_int_equal(bpe_n_unreachable(b), TINY_UNREACHABLE);
    bpe_free(b);
}

static void every_byte_alone_is_an_id(void **state) {
    (void)state;
    bpe *b = tiny();
    for (int i = 0; i < 256; i++) {
        const char byte = (char)i;
        expect(b, (str){&byte, 1}, IDS(i));
    }
    bpe_free(b);
}

static void the_byte_alphabet_is_turned_into_bytes(void **state) {
    (void)state;
    bpe *b = tiny();
    expect(b, STR(" h"), IDS(265));
    expect(b, STR("\xC4\xA0h"), IDS(0xC4, 0xA0, 'h'));
    bpe_free(b);
}

/* The heap does the long pieces, an array the short ones: a long piece of short parts that no merge
 * joins has the ids of the parts. */
static void long_pieces_merge_by_the_same_rule(void **state) {
    (void)state;
    static const char *const parts[] = {"hello", "abc", "aaa", "hellhe", "lo", "z"};
    bpe *b = tiny();
    for (unsigned first = 0; first < 6; first++) {
        buf text = {0};
        id_list wanted = {0}, found = {0};
        for (unsigned i = 0; i < 60; i++) {
            const str part = str_of(parts[(first + i * i) % 6]);
            buf_add_str(&text, part);
            buf_add_char(&text, '-');
            assert_int_equal(bpe_encode(b, part, &wanted, NULL), CLEF_OK);
            assert_int_equal(id_list_add(&wanted, IDS('-'), 1, NULL), CLEF_OK);
        }
        assert_int_equal(bpe_encode(b, (str){text.p, text.n}, &found, NULL), CLEF_OK);
        assert_int_equal(found.n, wanted.n);
        assert_memory_equal(found.ids, wanted.ids, wanted.n * sizeof *wanted.ids);
        id_list_free(&wanted);
        id_list_free(&found);
        buf_free(&text);
    }
    bpe_free(b);
}

static void of_a_pair_that_stands_twice_the_later_rank_counts(void **state) {
    (void)state;
    bpe *b = NULL;
    clef_error err = {0};
    if (load(&b, "\"ab\":256,\"bc\":257", "[[\"a\",\"b\"],[\"b\",\"c\"],[\"a\",\"b\"]]", &err) !=
        CLEF_OK)
        fail_msg("%s", err.text);
    expect(b, STR("abc"), IDS('a', 257));
    assert_int_equal(bpe_n_merges(b), 2);
    bpe_free(b);
}

static void merges_written_as_lines_are_read_too(void **state) {
    (void)state;
    bpe *b = NULL;
    clef_error err = {0};
    if (load(&b, "\"ab\":256,\"bc\":257", "[\"#version: 0.2\",\"b c\",\"a b\"]", &err) != CLEF_OK)
        fail_msg("%s", err.text);
    expect(b, STR("abc"), IDS('a', 257));
    assert_int_equal(bpe_n_merges(b), 2);
    bpe_free(b);
}

static void a_vocabulary_without_merges_gives_bytes(void **state) {
    (void)state;
    bpe *b = NULL;
    clef_error err = {0};
    if (load(&b, "\"ab\":256", "[]", &err) != CLEF_OK) fail_msg("%s", err.text);
    expect(b, STR("ab"), IDS('a', 'b'));
    assert_int_equal(bpe_n_unreachable(b), 1);
    bpe_free(b);
}

static void faulty_files_are_refused_with_the_place(void **state) {
    (void)state;
    static const struct {
        const char *entries, *merges, *wanted;
    } rows[] = {
        {"\"ab\":257", "[]", "the id of 'ab'"},
        {"\"ab\":-1", "[]", "the id of 'ab'"},
        {"\"ab\":256.0", "[]", "the id of 'ab'"},
        {"\"ab\":\"256\"", "[]", "the id of 'ab'"},
        {"\"ab\":255", "[]", "id 255 of 'ab' is another entry's too"},
        {"\"\":256", "[]", "id 256 has 0 bytes"},
        {"\"a b\":256", "[]", "'a b' is not written in the byte alphabet"},
        {"\"\xE4\xB8\xAD\":256", "[]", "is not written in the byte alphabet"},
        {"\"ab\":256", "{}", "model.merges"},
        {"\"ab\":256", "[[\"a\",\"c\"]]", "merges[0]: 'ac' is not in the vocabulary"},
        {"\"ab\":256", "[[\"a\",\"b\"],[\"ac\",\"b\"]]", "merges[1]: 'ac' is not in"},
        {"\"ab\":256", "[[\"a\",\"\"]]", "merges[0]: '' is not in the vocabulary"},
        {"\"ab\":256", "[[\"a\"]]", "merges[0]: wanted two entries"},
        {"\"ab\":256", "[[\"a\",\"b\",\"c\"]]", "merges[0]: wanted two entries"},
        {"\"ab\":256", "[[\"a\",1]]", "merges[0]: wanted two entries"},
        {"\"ab\":256", "[\"ab\"]", "merges[0]: wanted two entries"},
        {"\"ab\":256", "[\"a b \"]", "merges[0]: wanted two entries"},
        {"\"ab\":256", "[\"a b\",[\"a\",\"b\"]]", "merges[1]: an array"},
        {"\"ab\":256", "[7]", "merges[0]: a number"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bpe *b = NULL;
        clef_error err = {0};
        assert_int_equal(load(&b, rows[i].entries, rows[i].merges, &err), CLEF_ERR_FORMAT);
        assert_null(b);
        if (strstr(err.text, rows[i].wanted) == NULL || strncmp(err.text, "t.json: ", 8) != 0)
            fail_msg("row %zu: '%s', wanted '%s'", i, err.text, rows[i].wanted);
    }
}

static void a_missing_byte_is_refused(void **state) {
    (void)state;
    arena mem = {0};
    buf bytes = {0}, text = {0};
    tiny_add_bytes(&bytes);
    const char *z = strstr(bytes.p, "\"z\"");
    assert_non_null(z);
    buf_printf(&text, "{%.*s\"zz\"%s\"ab\":256}", (int)(z - bytes.p), bytes.p, z + 3);
    const json *vocab = NULL, *merges = NULL;
    const json_limits limits = {0};
    assert_int_equal(json_parse(&vocab, (str){text.p, text.n}, "t.json", &limits, &mem, NULL),
                     CLEF_OK);
    assert_int_equal(json_parse(&merges, STR("[]"), "t.json", &limits, &mem, NULL), CLEF_OK);
    bpe *b = NULL;
    clef_error err = {0};
    assert_int_equal(bpe_load(&b, vocab, merges, "t.json", &err), CLEF_ERR_FORMAT);
    assert_non_null(strstr(err.text, "no entry for the byte 0x7a"));
    assert_null(b);
    buf_free(&bytes);
    buf_free(&text);
    arena_free(&mem);
}

static void the_longest_entry_has_2047_bytes(void **state) {
    (void)state;
    for (int extra = 0; extra < 2; extra++) {
        buf entry = {0};
        buf_add_char(&entry, '"');
        for (int i = 0; i < BPE_MAX_TOKEN_BYTES + extra; i++) buf_add_text(&entry, "\xC4\xA0");
        buf_add_text(&entry, "\":256");
        bpe *b = NULL;
        clef_error err = {0};
        const clef_status s = load(&b, entry.p, "[]", &err);
        assert_int_equal(s, extra == 0 ? CLEF_OK : CLEF_ERR_FORMAT);
        if (extra == 1) assert_non_null(strstr(err.text, "2048 bytes, wanted 1 to 2047"));
        bpe_free(b);
        buf_free(&entry);
    }
}

/* Quadratic work would take minutes. */
static void a_megabyte_in_one_piece_takes_n_log_n_time(void **state) {
    (void)state;
    enum { N = 1 << 20 };
    bpe *b = tiny();
    char *text = malloc(N);
    assert_non_null(text);
    memset(text, 'a', N);
    id_list ids = {0};
    const double begin = cpu_seconds();
    assert_int_equal(bpe_encode(b, (str){text, N}, &ids, NULL), CLEF_OK);
    assert_true(cpu_seconds() - begin < 20);
    assert_int_equal(ids.n, N / 4);
    id_list_free(&ids);
    free(text);
    bpe_free(b);
}

static void running_out_of_memory_while_loading_is_reported(void **state) {
    (void)state;
    buf text = {0};
    buf_add_text(&text, "{\"vocab\":{");
    tiny_add_bytes(&text);
    buf_add_text(&text, TINY_VOCAB "},\"merges\":[" TINY_MERGES "]}");
    arena mem = {0};
    const json_limits limits = {0};
    const json *root = NULL;
    assert_int_equal(json_parse(&root, (str){text.p, text.n}, "t.json", &limits, &mem, NULL),
                     CLEF_OK);
    clef_status s = CLEF_ERR_MEMORY;
    unsigned n = 1;
    for (; s != CLEF_OK; n++) {
        bpe *b = NULL;
        oom_fail_at(n);
        s = bpe_load(&b, json_get(root, STR("vocab")), json_get(root, STR("merges")), "t.json",
                     NULL);
        oom_stop();
        if (s != CLEF_OK) {
            assert_int_equal(s, CLEF_ERR_MEMORY);
            assert_null(b);
        }
        bpe_free(b);
    }
    assert_true(n > 7);
    buf_free(&text);
    arena_free(&mem);
}

static void running_out_of_memory_while_encoding_is_reported(void **state) {
    (void)state;
    bpe *b = tiny();
    buf text = {0};
    for (int i = 0; i < 100; i++) buf_add_text(&text, "hello");
    clef_status s = CLEF_ERR_MEMORY;
    unsigned n = 1;
    for (; s != CLEF_OK; n++) {
        id_list ids = {0};
        oom_fail_at(n);
        s = bpe_encode(b, (str){text.p, text.n}, &ids, NULL);
        oom_stop();
        if (s != CLEF_OK) assert_int_equal(s, CLEF_ERR_MEMORY);
        id_list_free(&ids);
    }
    assert_true(n > 3);
    buf_free(&text);
    bpe_free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lowest_rank_merges_first),
        cmocka_unit_test(of_equal_ranks_the_leftmost_merges_first),
        cmocka_unit_test(an_entry_that_no_merge_produces_is_not_taken_whole),
        cmocka_unit_test(every_byte_alone_is_an_id),
        cmocka_unit_test(the_byte_alphabet_is_turned_into_bytes),
        cmocka_unit_test(long_pieces_merge_by_the_same_rule),
        cmocka_unit_test(of_a_pair_that_stands_twice_the_later_rank_counts),
        cmocka_unit_test(merges_written_as_lines_are_read_too),
        cmocka_unit_test(a_vocabulary_without_merges_gives_bytes),
        cmocka_unit_test(faulty_files_are_refused_with_the_place),
        cmocka_unit_test(a_missing_byte_is_refused),
        cmocka_unit_test(the_longest_entry_has_2047_bytes),
        cmocka_unit_test(a_megabyte_in_one_piece_takes_n_log_n_time),
        cmocka_unit_test(running_out_of_memory_while_loading_is_reported),
        cmocka_unit_test(running_out_of_memory_while_encoding_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
