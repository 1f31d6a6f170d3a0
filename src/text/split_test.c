/* split_test.c - the scanner against splits that were measured with the reference's regular
 * expressions: a table of cases for each rule and the words recorded in testdata/golden. */
#include "text/split.h"

#include "base/cpu.h"
#include "base/utf8.h"
#include "tests/recorded.h"
#include "text/unicode.h"

/* Fails unless `text` comes apart into the pieces that `wanted` joins with "|". */
static void expect(split_pattern pattern, str text, str wanted) {
    buf found = {0};
    for (size_t at = 0, end; at < text.n; at = end) {
        end = split_next(pattern, text, at);
        assert_true(end > at && end <= text.n);
        if (at > 0) buf_add_char(&found, '|');
        buf_add(&found, text.p + at, end - at);
    }
    if (!str_equal((str){found.p, found.n}, wanted))
        fail_msg("%s: found %.*s, wanted %.*s", split_name(pattern), (int)found.n, found.p,
                 STR_ARG(wanted));
    buf_free(&found);
}

#define SAME(text, wanted)                            \
    do {                                              \
        expect(SPLIT_QWEN2, STR(text), STR(wanted));  \
        expect(SPLIT_QWEN35, STR(text), STR(wanted)); \
    } while (0)

static void a_run_of_blanks_leaves_its_last_one_to_the_next_word(void **state) {
    (void)state;
    SAME("a  b", "a| | b");
    SAME("\t\ta", "\t|\ta");
    SAME(" 12", " |1|2");
    SAME("a  !", "a| | !");
    SAME("\t !", "\t| !");
    SAME("\t\t!", "\t|\t|!");
}

static void blanks_at_the_end_of_the_text_stay_together(void **state) {
    (void)state;
    SAME("a  ", "a|  ");
    SAME("  ", "  ");
    SAME(" ", " ");
}

static void blanks_end_after_their_last_line_end(void **state) {
    (void)state;
    SAME("   \n  a", "   \n| | a");
    SAME("\r\n\r\n", "\r\n\r\n");
    SAME(" \n \n  ", " \n \n|  ");
    SAME("\n1", "\n|1");
}

static void symbols_take_a_space_before_and_line_ends_behind(void **state) {
    (void)state;
    SAME("!\n\n x", "!\n\n| x");
    SAME("a ->(x):\n\n  \t ===;;", "a| ->(|x|):\n\n|  \t| ===;;");
    SAME("!\t!", "!|\t|!");
}

static void digits_stand_alone(void **state) {
    (void)state;
    SAME("2026", "2|0|2|6");
    SAME("\xC2\xBDx", "\xC2\xBD|x");
    SAME("3.14e10", "3|.|1|4|e|1|0");
}

static void a_word_takes_one_character_before_it(void **state) {
    (void)state;
    SAME("(a", "(a");
    SAME("((a", "((|a");
    SAME("a\xE2\x80\xA8"
         "b",
         "a|\xE2\x80\xA8"
         "b");
    SAME("a\xC2\x85"
         "b",
         "a|\xC2\x85"
         "b");
    SAME("\xE1\xA0\x8E"
         "a",
         "\xE1\xA0\x8E"
         "a"); /* U+180E is no space */
    SAME("\na", "\n|a");
    SAME("1a", "1|a");
}

static void english_endings_stand_alone(void **state) {
    (void)state;
    SAME("I'm we'Re they'LL D'D", "I|'m| we|'Re| they|'LL| D|'D");
    SAME("''s", "''|s");
    SAME(" 's", " '|s");
    SAME("x'sy", "x|'s|y");
    SAME("'re've", "'re|'ve");
    SAME("'r", "'r");
    SAME("'l", "'l");
    SAME("'", "'");
    SAME("'\xC5\xBFx", "'\xC5\xBF|x");                                 /* long s */
    SAME("\xE2\x80\x98s\xE2\x80\x99s", "\xE2\x80\x98s|\xE2\x80\x99s"); /* curly quotes: none */
}

static void marks_are_symbols_for_qwen2_and_letters_for_qwen35(void **state) {
    (void)state;
    const str text = STR("1\xCC\x81");
    expect(SPLIT_QWEN2, text, STR("1|\xCC\x81"));
    expect(SPLIT_QWEN35, text, STR("1|\xCC\x81"));
    expect(SPLIT_QWEN2,
           STR("a\xCC\x81"
               "b"),
           STR("a|\xCC\x81"
               "b"));
    expect(SPLIT_QWEN35,
           STR("a\xCC\x81"
               "b"),
           STR("a\xCC\x81"
               "b"));
    expect(SPLIT_QWEN2,
           STR("\n\xCC\x81"
               "a"),
           STR("\n|\xCC\x81"
               "a"));
    expect(SPLIT_QWEN35,
           STR("\n\xCC\x81"
               "a"),
           STR("\n|\xCC\x81"
               "a"));
    expect(SPLIT_QWEN2, STR("# \xCC\x81!\n"), STR("#| \xCC\x81!\n"));
    expect(SPLIT_QWEN35, STR("# \xCC\x81!\n"), STR("#| \xCC\x81|!\n"));
}

static void expect_recorded(split_pattern pattern, const char *path) {
    arena mem = {0};
    const json *rows = recorded_get(recorded_load(&mem, path), "cases");
    assert_true(rows->n > 100);
    for (const json *row = rows->first; row != NULL; row = row->next) {
        buf nfc = {0}, wanted = {0};
        assert_int_equal(unicode_nfc(&nfc, recorded_text(row, "text"), NULL), CLEF_OK);
        const json *words = recorded_get(row, "words");
        for (const json *word = words->first; word != NULL; word = word->next) {
            if (word != words->first) buf_add_char(&wanted, '|');
            buf_add_str(&wanted, word->text);
        }
        expect(pattern, (str){nfc.p, nfc.n}, (str){wanted.p, wanted.n});
        buf_free(&nfc);
        buf_free(&wanted);
    }
    arena_free(&mem);
}

static void recorded_texts_give_the_words_of_the_reference(void **state) {
    (void)state;
    expect_recorded(SPLIT_QWEN2, TESTDATA "golden/tokens-toy-qwen2.json");
    expect_recorded(SPLIT_QWEN35, TESTDATA "golden/tokens-toy-qwen35.json");
}

static void zero_bytes_are_symbols(void **state) {
    (void)state;
    SAME("a\0\0b", "a|\0\0|b");
}

static void pieces_cover_any_text(void **state) {
    (void)state;
    static const uint32_t points[] = {' ',  '\t',  '\n', '\r',   '\'',  's',    'L',      '1',
                                      '!',  0,     0x85, 0x17F,  0x301, 0x2028, 0x4E2D,   0x1F600,
                                      0xBD, 0x93F, 0xA0, 0x3000, 0x378, 0xFFFF, 0x10FFFF, 0x200B};
    uint64_t random = 1;
    for (int round = 0; round < 2000; round++) {
        char bytes[4 * 16];
        size_t n = 0;
        for (int i = 0; i < 16; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            n +=
                utf8_encode(bytes + n, points[(random >> 33) % (sizeof points / sizeof points[0])]);
        }
        const str text = {bytes, n};
        for (split_pattern p = SPLIT_QWEN2; p <= SPLIT_QWEN35; p++) {
            for (size_t at = 0, end; at < n; at = end) {
                end = split_next(p, text, at);
                assert_true(end > at && end <= n);
                assert_int_equal(utf8_check(bytes + at, end - at), end - at);
            }
        }
    }
}

/* Rules 5 to 7 look ahead over a whole run of blanks. */
static void a_megabyte_of_anything_takes_linear_time(void **state) {
    (void)state;
    static const char *const units[] = {" ", "\r\n", "a", "!", "\xCC\x81", " \n ", "'s", "\t\n!"};
    const double begin = cpu_seconds();
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        buf text = {0};
        while (text.n < 1 << 20) buf_add_text(&text, units[i]);
        for (size_t at = 0; at < text.n;) at = split_next(SPLIT_QWEN35, (str){text.p, text.n}, at);
        buf_free(&text);
    }
    assert_true(cpu_seconds() - begin < 20);
}

static void only_the_two_patterns_are_known(void **state) {
    (void)state;
    split_pattern p = SPLIT_QWEN35;
    const str qwen2 = STR("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
                          "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+");
    assert_true(split_recognise(&p, qwen2));
    assert_int_equal(p, SPLIT_QWEN2);
    assert_false(split_recognise(&p, (str){qwen2.p, qwen2.n - 1}));
    assert_false(split_recognise(&p, STR("\\p{N}{1,3}")));
    assert_string_equal(split_name(SPLIT_QWEN2), "qwen2");
    assert_string_equal(split_name(SPLIT_QWEN35), "qwen35");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_of_blanks_leaves_its_last_one_to_the_next_word),
        cmocka_unit_test(blanks_at_the_end_of_the_text_stay_together),
        cmocka_unit_test(blanks_end_after_their_last_line_end),
        cmocka_unit_test(symbols_take_a_space_before_and_line_ends_behind),
        cmocka_unit_test(digits_stand_alone),
        cmocka_unit_test(a_word_takes_one_character_before_it),
        cmocka_unit_test(english_endings_stand_alone),
        cmocka_unit_test(marks_are_symbols_for_qwen2_and_letters_for_qwen35),
        cmocka_unit_test(recorded_texts_give_the_words_of_the_reference),
        cmocka_unit_test(zero_bytes_are_symbols),
        cmocka_unit_test(pieces_cover_any_text),
        cmocka_unit_test(a_megabyte_of_anything_takes_linear_time),
        cmocka_unit_test(only_the_two_patterns_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
