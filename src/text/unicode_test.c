/* unicode_test.c - classes and NFC against what the reference's own libraries say
 * (testdata/tokenizer/classes.json, nfc.json; recorder tools/tokenizer/record.py). */
#include "text/unicode.h"

#include <stdlib.h>

#include "base/cpu.h"
#include "base/utf8.h"
#include "tests/oom.h"
#include "tests/recorded.h"

enum { N_POINTS = 0x110000, SURROGATES = 0xD800, AFTER_SURROGATES = 0xE000 };

static bool is_surrogate(uint32_t point) {
    return point >= SURROGATES && point < AFTER_SURROGATES;
}

/* Marks the code points of a recorded list of ranges. */
static void mark_ranges(unsigned char *classes, const json *ranges, unsigned char value) {
    assert_true(ranges->n > 0 && ranges->n % 2 == 0);
    for (const json *v = ranges->first; v != NULL; v = v->next->next) {
        uint64_t first, last;
        assert_true(json_u64(&first, v, N_POINTS - 1));
        assert_true(json_u64(&last, v->next, N_POINTS - 1));
        for (uint64_t point = first; point <= last; point++) classes[point] = value;
    }
}

static void every_code_point_has_the_class_of_the_reference(void **state) {
    (void)state;
    arena mem = {0};
    const json *root = recorded_load(&mem, TESTDATA "tokenizer/classes.json");
    unsigned char *classes = arena_alloc(&mem, N_POINTS, 1);
    assert_non_null(classes);
    mark_ranges(classes, recorded_get(root, "letter"), CLASS_LETTER);
    mark_ranges(classes, recorded_get(root, "mark"), CLASS_MARK);
    mark_ranges(classes, recorded_get(root, "number"), CLASS_NUMBER);
    mark_ranges(classes, recorded_get(root, "space"), CLASS_SPACE);
    classes['\r'] = classes['\n'] = CLASS_NEWLINE;
    for (uint32_t point = 0; point < N_POINTS; point++) {
        if (is_surrogate(point)) continue;
        if (unicode_class(point) != classes[point])
            fail_msg("U+%04X has class %d, wanted %d", point, (int)unicode_class(point),
                     (int)classes[point]);
    }
    arena_free(&mem);
}

/* NFC of `text`, in `out`, which is emptied first. */
static str nfc(buf *out, str text) {
    buf_free(out);
    clef_error err = {0};
    if (unicode_nfc(out, text, &err) != CLEF_OK) fail_msg("%s", err.text);
    return (str){out->p, out->n};
}

static void every_code_point_alone_normalises_as_in_the_reference(void **state) {
    (void)state;
    arena mem = {0};
    buf out = {0};
    const json *root = recorded_load(&mem, TESTDATA "tokenizer/nfc.json");
    const json *row = recorded_get(root, "changed")->first;
    for (uint32_t point = 0; point < N_POINTS; point++) {
        if (is_surrogate(point)) continue;
        char utf8[4];
        str wanted = {utf8, utf8_encode(utf8, point)};
        const str found = nfc(&out, wanted);
        uint64_t changed = N_POINTS;
        if (row != NULL) assert_true(json_u64(&changed, row->first, N_POINTS - 1));
        if (changed == point) {
            wanted = row->first->next->text;
            row = row->next;
        }
        if (!str_equal(found, wanted)) fail_msg("U+%04X normalises otherwise", point);
    }
    assert_null(row);
    buf_free(&out);
    arena_free(&mem);
}

static void recorded_texts_normalise_as_in_the_reference(void **state) {
    (void)state;
    arena mem = {0};
    buf out = {0};
    const json *root = recorded_load(&mem, TESTDATA "tokenizer/nfc.json");
    for (const json *row = recorded_get(root, "texts")->first; row != NULL; row = row->next) {
        const str text = row->first->text, wanted = row->first->next->text;
        recorded_same_text(nfc(&out, text), wanted, "NFC");
        recorded_same_text(nfc(&out, wanted), wanted, "NFC of NFC");
        if (unicode_is_nfc(text)) recorded_same_text(text, wanted, "a text said to be in NFC");
    }
    buf_free(&out);
    arena_free(&mem);
}

static void the_quick_look_sees_that_ordinary_text_is_in_nfc(void **state) {
    (void)state;
    assert_true(unicode_is_nfc(STR("")));
    assert_true(unicode_is_nfc(STR("plain ASCII of more than eight bytes")));
    assert_true(unicode_is_nfc(STR("Caffè già, 中文, 한국어, ไทยภาษา, नमस्ते, 😀")));
    assert_false(unicode_is_nfc(STR("cafe\xCC\x81")));
}

static void zero_bytes_are_ordinary_text(void **state) {
    (void)state;
    buf out = {0};
    const str found = nfc(&out, STR("\0e\xCC\x81\0e"));
    assert_true(str_equal(found, STR("\0\xC3\xA9\0e")));
    buf_free(&out);
}

static void marks_added_after_unicode_9_keep_their_place(void **state) {
    (void)state;
    buf out = {0};
    /* U+08CA has class 230 since Unicode 14; here it blocks nothing and moves nowhere. */
    const str text = STR("a\xE0\xA3\x8A\xCC\xA7");
    assert_true(str_equal(nfc(&out, text), text));
    buf_free(&out);
}

/* A megabyte of marks is one segment: anything quadratic would take minutes. */
static void a_megabyte_of_marks_takes_linear_time(void **state) {
    (void)state;
    enum { N_MARKS = 1 << 19 };
    buf text = {0}, out = {0};
    for (unsigned i = 0; i < N_MARKS; i++) {
        char utf8[4];
        buf_add(&text, utf8, utf8_encode(utf8, 0x300 + i * 7 % 0x45));
    }
    const double begin = cpu_seconds();
    const str found = nfc(&out, (str){text.p, text.n});
    assert_true(cpu_seconds() - begin < 20);
    assert_true(found.n > N_MARKS);
    buf_free(&text);
    buf_free(&out);
}

static void running_out_of_memory_is_reported(void **state) {
    (void)state;
    buf text = {0};
    buf_add_text(&text, "e");
    for (int i = 0; i < 200; i++) buf_add_text(&text, "\xCC\xA7\xCC\x81");
    clef_status s = CLEF_ERR_MEMORY;
    unsigned n = 1;
    for (; s != CLEF_OK; n++) {
        buf out = {0};
        oom_fail_at(n);
        s = unicode_nfc(&out, (str){text.p, text.n}, NULL);
        oom_stop();
        if (s != CLEF_OK) assert_int_equal(s, CLEF_ERR_MEMORY);
        buf_free(&out);
    }
    assert_true(n > 3);
    buf_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_has_the_class_of_the_reference),
        cmocka_unit_test(every_code_point_alone_normalises_as_in_the_reference),
        cmocka_unit_test(recorded_texts_normalise_as_in_the_reference),
        cmocka_unit_test(the_quick_look_sees_that_ordinary_text_is_in_nfc),
        cmocka_unit_test(zero_bytes_are_ordinary_text),
        cmocka_unit_test(marks_added_after_unicode_9_keep_their_place),
        cmocka_unit_test(a_megabyte_of_marks_takes_linear_time),
        cmocka_unit_test(running_out_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
