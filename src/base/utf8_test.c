/* Tests of utf8.c, against the definition of UTF-8: a code point has exactly one encoding, so what
 * decodes must encode to the same bytes, and every scalar value must make the round trip. */
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static void every_scalar_value_makes_the_round_trip(void **state) {
    (void)state;
    for (uint32_t point = 0; point <= 0x10FFFF; point++) {
        if (point >= 0xD800 && point <= 0xDFFF) continue;
        char bytes[4];
        uint32_t got = 0;
        const size_t n = utf8_encode(bytes, point);
        const size_t wanted = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
        if (n != wanted || utf8_decode(&got, bytes, n) != n || got != point)
            fail_msg("U+%04X", (unsigned)point);
        for (size_t cut = 0; cut < n; cut++)
            if (utf8_decode(&got, bytes, cut) != 0) fail_msg("U+%04X cut", (unsigned)point);
    }
}

/* All texts of up to 3 bytes, and 4 bytes with the borders of each byte's range. */
static void what_decodes_is_the_one_encoding(void **state) {
    (void)state;
    static const unsigned char last[] = {0x00, 0x7F, 0x80, 0xBF, 0xC0, 0xFF};
    uint32_t decoded = 0;
    for (uint32_t i = 0; i < 1u << 24; i++) {
        const char bytes[4] = {(char)(i >> 16), (char)(i >> 8), (char)i,
                               (char)last[i % sizeof last]};
        uint32_t point = 0xFFFFFFFF;
        const size_t n = utf8_decode(&point, bytes, 4);
        if (n == 0) {
            if (point != 0xFFFFFFFF) fail_msg("%06x sets the point", (unsigned)i);
            continue;
        }
        char again[4];
        if (point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF) ||
            utf8_encode(again, point) != n || memcmp(again, bytes, n) != 0)
            fail_msg("%06x decodes to U+%04X", (unsigned)i, (unsigned)point);
        decoded++;
    }
    assert_true(decoded > 0x800000);
}

static void a_check_names_the_first_wrong_byte(void **state) {
    (void)state;
    char text[60];
    for (size_t at = 0; at < sizeof text; at++) {
        for (size_t n = at; n <= sizeof text; n++) {
            memset(text, 'a', sizeof text);
            if (at < sizeof text) text[at] = '\xFF';
            assert_int_equal(utf8_check(text, n), at < n ? at : n);
        }
    }
    assert_int_equal(utf8_check("abcdefg\xE2\x82", 9), 7);
    assert_int_equal(utf8_check("abcdefg\xE2\x82\xAC", 10), 10);
    assert_int_equal(utf8_check(NULL, 0), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scalar_value_makes_the_round_trip),
        cmocka_unit_test(what_decodes_is_the_one_encoding),
        cmocka_unit_test(a_check_names_the_first_wrong_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
