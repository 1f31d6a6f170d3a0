/* Tests of decimal.c. testdata/json holds what CPython 3.11 gives (tools/parity/record_json.py). */
#include "text/decimal.h"

#include <math.h>
#include <stdlib.h>

#include "tests/rows.h"

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void check_reading(const str *field) {
    const uint64_t got = bits_of(decimal_read(field[0])), wanted = rows_u64(field[1]);
    if (got != wanted)
        fail_msg("%.*s read as %016llx, wanted %016llx", STR_ARG(field[0]), (unsigned long long)got,
                 (unsigned long long)wanted);
}

static void middles_and_borders_are_read_as_cpython_reads_them(void **state) {
    (void)state;
    rows_each("readings.tsv", 2, 230, check_reading);
}

static void check_repr(const str *field) {
    if (isfinite(rows_double(field[0]))) check_reading((str[]){field[1], field[0]});
}

static void every_repr_reads_back_as_its_double(void **state) {
    (void)state;
    rows_each("doubles.tsv", 2, 4800, check_repr);
}

/* Digits are read in linear time; a quadratic reader would need minutes for these. */
static void a_million_digits_are_read_right(void **state) {
    (void)state;
    enum { N = 1000000 };
    char *text = malloc(N + 3);
    assert_non_null(text);
    memset(text, '0', N + 3);
    text[1] = '.';
    text[N + 2] = '1';
    assert_true(decimal_read((str){text, N + 3}) == 0);
    memset(text, '1', N + 3);
    text[1] = '.';
    assert_true(decimal_read((str){text, N + 3}) == 1.1111111111111112);
    /* 2^53 + 1 lies in the middle; the last digit lifts it over. */
    memset(text, '0', N + 3);
    memcpy(text, "9007199254740993.", 17);
    assert_true(decimal_read((str){text, N + 3}) == 9007199254740992.0);
    text[N + 2] = '1';
    assert_true(decimal_read((str){text, N + 3}) == 9007199254740994.0);
    free(text);
}

static void long_zeros_and_exponents_cancel(void **state) {
    (void)state;
    char text[5100] = "0.";
    memset(text + 2, '0', 5000);
    memcpy(text + 5002, "25e5001", 8);
    assert_true(decimal_read(str_of(text)) == 2.5);
    memset(text, '0', 5000);
    text[0] = '4';
    memcpy(text + 5000, "e-5000", 7);
    assert_true(decimal_read(str_of(text)) == 0.4);
}

static void the_shortest_digits_of_a_smallest_and_a_round_number(void **state) {
    (void)state;
    char digits[DECIMAL_MAX_DIGITS];
    int point;
    assert_int_equal(decimal_shortest(digits, &point, 5e-324), 1);
    assert_memory_equal(digits, "5", 1);
    assert_int_equal(point, -323);
    assert_int_equal(decimal_shortest(digits, &point, 1e22), 1);
    assert_memory_equal(digits, "1", 1);
    assert_int_equal(point, 23);
    /* One of the 46 powers of two below which the neighbour is near. */
    assert_int_equal(decimal_shortest(digits, &point, 0x1p-44), 16);
    assert_memory_equal(digits, "5684341886080802", 16);
    assert_int_equal(point, -13);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(middles_and_borders_are_read_as_cpython_reads_them),
        cmocka_unit_test(every_repr_reads_back_as_its_double),
        cmocka_unit_test(a_million_digits_are_read_right),
        cmocka_unit_test(long_zeros_and_exponents_cancel),
        cmocka_unit_test(the_shortest_digits_of_a_smallest_and_a_round_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
