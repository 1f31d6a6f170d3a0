/* tokenizer_slow_test.c - the released tokenizer.json and its qwen35 sibling against the reference:
 * testdata/tokenizer/released.json and testdata/golden/tokens-released.json hold texts and ids.
 *
 * The two files (20 MB each) are no part of the tree; tools/tokenizer/build_real.py makes them. */
#include <stdlib.h>
#include <time.h>

#include "base/utf8.h"
#include "tests/recorded.h"
#include "text/bpe.h"

#define QWEN2 "build/data/tokenizer-qwen2.json"
#define QWEN35 "build/data/tokenizer-qwen35.json"
#define REFERENCE CLEF_CONTROL_REFERENCE

enum {
    N_VOCAB = 248044,
    N_MERGES = 247587,
    N_ADDED = 33,
    N_UNREACHABLE = 201,
    SECONDS_ALLOWED = 20 /* for what takes well under a second; quadratic work takes minutes */
};

/* Loaded once; the tests only read. */
typedef struct {
    tokenizer *qwen2, *qwen35;
    arena mem;
    const json *released; /* testdata/tokenizer/released.json */
} fixture;

static tokenizer *load(const char *path) {
    tokenizer *t = NULL;
    clef_error err = {0};
    if (tokenizer_load(&t, path, NULL, &err) != CLEF_OK)
        fail_msg("%s\nif the file is missing: python3 tools/tokenizer/build_real.py makes it",
                 err.text);
    return t;
}

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL) return 1;
    *state = f; /* now, so that what fails below is still torn down */
    f->qwen2 = load(QWEN2);
    f->qwen35 = load(QWEN35);
    f->released = recorded_load(&f->mem, TESTDATA "tokenizer/released.json");
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    tokenizer_free(f->qwen2);
    tokenizer_free(f->qwen35);
    arena_free(&f->mem);
    free(f);
    return 0;
}

static void encode(const tokenizer *t, str text, clef_control control, id_list *ids) {
    ids->n = 0;
    clef_error err = {0};
    if (tokenizer_encode(t, text, control, ids, &err) != CLEF_OK) fail_msg("%s", err.text);
}

static void expect(const tokenizer *t, clef_control control, str text, const json *wanted) {
    id_list ids = {0};
    encode(t, text, control, &ids);
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

/* The ids of a row under another name than `ids`, which stands there only when they differ. */
static const json *variant(const json *row, const char *name, const json *ids) {
    const json *v = json_get(row, str_of(name));
    return v != NULL ? v : ids;
}

static void the_released_file_is_what_is_known_of_it(void **state) {
    const fixture *f = *state;
    const tokenizer_facts facts = tokenizer_describe(f->qwen2);
    assert_int_equal(facts.stated, SPLIT_QWEN2);
    assert_true(facts.normalizes);
    assert_int_equal(facts.n_vocab, N_VOCAB);
    assert_int_equal(facts.n_merges, N_MERGES);
    assert_int_equal(facts.n_added, N_ADDED);
    assert_int_equal(facts.max_id, N_VOCAB + N_ADDED - 1);
    assert_int_equal(tokenizer_describe(f->qwen35).stated, SPLIT_QWEN35);
}

static void texts_give_the_ids_of_the_reference(void **state) {
    const fixture *f = *state;
    const json *rows = recorded_get(f->released, "texts");
    assert_true(rows->n > 700);
    for (const json *row = rows->first; row != NULL; row = row->next) {
        const str text = recorded_text(row, "text");
        const json *ids = recorded_get(row, "ids");
        expect(f->qwen2, REFERENCE, text, ids);
        expect(f->qwen35, REFERENCE, text, variant(row, "qwen35", ids));
        expect(f->qwen2, CLEF_CONTROL_PLAIN, text, variant(row, "plain", ids));
    }
}

static void the_oracle_of_the_toys_agrees(void **state) {
    fixture *f = *state;
    const json *root = recorded_load(&f->mem, TESTDATA "golden/tokens-released.json");
    const json *rows = recorded_get(root, "cases");
    assert_true(rows->n > 200);
    for (const json *row = rows->first; row != NULL; row = row->next) {
        const str text = recorded_text(row, "text");
        const json *ids = recorded_get(row, "qwen2");
        expect(f->qwen2, REFERENCE, text, ids);
        expect(f->qwen35, REFERENCE, text, variant(row, "qwen35", ids));
        expect(f->qwen2, CLEF_CONTROL_PLAIN, text, variant(row, "plain", ids));
    }
}

static void an_override_gives_the_ids_of_the_other_file(void **state) {
    const fixture *f = *state;
    tokenizer *t = NULL;
    assert_int_equal(tokenizer_load(&t, QWEN2, "qwen35", NULL), CLEF_OK);
    const json *rows = recorded_get(f->released, "texts");
    for (const json *row = rows->first; row != NULL; row = row->next)
        expect(t, REFERENCE, recorded_text(row, "text"),
               variant(row, "qwen35", recorded_get(row, "ids")));
    tokenizer_free(t);
}

/* The bytes of an entry, from its spelling in the byte alphabet. */
static size_t entry_bytes(char *out, str spelling) {
    size_t n = 0;
    for (size_t at = 0; at < spelling.n;) {
        uint32_t point = 0;
        at += utf8_decode(&point, spelling.p + at, spelling.n - at);
        /* The 68 bytes that have no printable character are numbered from U+0100 on. */
        if (point == 0x143)
            point = 173;
        else if (point > 0x120)
            point = point - 0x121 + 127;
        else if (point >= 0x100)
            point -= 0x100;
        out[n++] = (char)point;
    }
    return n;
}

/* Encodes every entry's bytes as one piece. */
static void exactly_the_recorded_entries_do_not_come_back(void **state) {
    const fixture *f = *state;
    arena mem = {0};
    const json *model = recorded_get(recorded_load(&mem, QWEN2), "model");
    const json *vocab = recorded_get(model, "vocab");
    bpe *b = NULL;
    assert_int_equal(bpe_load(&b, vocab, recorded_get(model, "merges"), QWEN2, NULL), CLEF_OK);
    const json *lost = recorded_get(f->released, "unreachable");
    assert_int_equal(lost->n, N_UNREACHABLE);
    const json *next = lost->first;
    id_list ids = {0};
    for (const json *entry = vocab->first; entry != NULL; entry = entry->next) {
        char bytes[BPE_MAX_TOKEN_BYTES];
        uint64_t id, lost_id = UINT64_MAX;
        assert_true(json_u64(&id, entry, INT32_MAX));
        if (next != NULL) assert_true(json_u64(&lost_id, next, INT32_MAX));
        ids.n = 0;
        const str piece = {bytes, entry_bytes(bytes, entry->name)};
        assert_int_equal(bpe_encode(b, piece, &ids, NULL), CLEF_OK);
        const bool comes_back = ids.n == 1 && (uint64_t)ids.ids[0] == id;
        if (comes_back == (lost_id == id)) fail_msg("entry %d", (int)id);
        if (next != NULL && lost_id == id) next = next->next;
    }
    assert_null(next);
    assert_int_equal(bpe_n_unreachable(b), N_UNREACHABLE);
    id_list_free(&ids);
    bpe_free(b);
    arena_free(&mem);
}

static void every_control_spelling_gives_its_id_alone_doubled_and_inside_a_word(void **state) {
    const fixture *f = *state;
    const json *added = recorded_get(f->released, "added");
    assert_int_equal(added->n, N_ADDED);
    id_list ids = {0};
    for (const json *row = added->first; row != NULL; row = row->next) {
        uint64_t id;
        assert_true(json_u64(&id, row->first, INT32_MAX));
        const str spelling = row->first->next->text;
        buf text = {0};
        buf_printf(&text, "x%.*sy%.*s%.*s", STR_ARG(spelling), STR_ARG(spelling),
                   STR_ARG(spelling));
        encode(f->qwen2, (str){text.p, text.n}, REFERENCE, &ids);
        assert_int_equal(ids.n, 5);
        assert_int_equal(ids.ids[1], id);
        assert_int_equal(ids.ids[3], id);
        assert_int_equal(ids.ids[4], id);
        assert_int_equal(tokenizer_added_id(f->qwen2, spelling), id);
        encode(f->qwen2, (str){text.p, text.n}, CLEF_CONTROL_PLAIN, &ids);
        for (size_t i = 0; i < ids.n; i++) assert_true(ids.ids[i] < N_VOCAB);
        assert_int_equal(tokenizer_encode(f->qwen2, spelling, CLEF_CONTROL_REJECT, &ids, NULL),
                         CLEF_ERR_INPUT);
        buf_free(&text);
    }
    id_list_free(&ids);
}

static void a_control_spelling_broken_by_one_character_stays_text(void **state) {
    const fixture *f = *state;
    id_list ids = {0};
    for (const json *row = recorded_get(f->released, "added")->first; row != NULL;
         row = row->next) {
        const str spelling = row->first->next->text;
        for (size_t at = 1; at < spelling.n; at++) {
            buf text = {0};
            buf_add(&text, spelling.p, at);
            buf_add_char(&text, ' ');
            buf_add(&text, spelling.p + at, spelling.n - at);
            encode(f->qwen2, (str){text.p, text.n}, REFERENCE, &ids);
            for (size_t i = 0; i < ids.n; i++) assert_true(ids.ids[i] < N_VOCAB);
            buf_free(&text);
        }
    }
    id_list_free(&ids);
}

static void a_megabyte_of_one_thing_takes_n_log_n_time(void **state) {
    const fixture *f = *state;
    static const char *const units[] = {
        "a", " ", "\r\n", "\xCC\x81", "\xCC\x95\xCC\xA7", "\xE4\xB8\xAD", "<|a", "=", "0", "\n \t"};
    id_list ids = {0};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        buf text = {0};
        while (text.n < 1 << 20) buf_add_text(&text, units[i]);
        const clock_t begin = clock(); /* processor time: others may keep the machine busy */
        encode(f->qwen2, (str){text.p, text.n}, REFERENCE, &ids);
        encode(f->qwen35, (str){text.p, text.n}, REFERENCE, &ids);
        const double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
        if (seconds > SECONDS_ALLOWED)
            fail_msg("a megabyte of '%s' took %.1f s", units[i], seconds);
        buf_free(&text);
    }
    id_list_free(&ids);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_released_file_is_what_is_known_of_it),
        cmocka_unit_test(texts_give_the_ids_of_the_reference),
        cmocka_unit_test(the_oracle_of_the_toys_agrees),
        cmocka_unit_test(an_override_gives_the_ids_of_the_other_file),
        cmocka_unit_test(exactly_the_recorded_entries_do_not_come_back),
        cmocka_unit_test(every_control_spelling_gives_its_id_alone_doubled_and_inside_a_word),
        cmocka_unit_test(a_control_spelling_broken_by_one_character_stays_text),
        cmocka_unit_test(a_megabyte_of_one_thing_takes_n_log_n_time),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
