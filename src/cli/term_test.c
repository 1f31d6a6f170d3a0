/* term_test.c - what reaches a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "cli/model.h"
#include "cli/term.h"

static void shown_as(str in, const char *want) {
    buf out = {0};
    buf_add_safe(&out, in);
    assert_string_equal(out.p == NULL ? "" : out.p, want);
    buf_free(&out);
}

static void control_characters_cannot_reach_the_terminal(void **state) {
    (void)state;
    shown_as(STR("\x1b[2J\x1b]0;title\x07"), "\\u{1b}[2J\\u{1b}]0;title\\u{7}");
    shown_as(STR("a\nb\rc\td"), "a\\u{a}b\\u{d}c\\u{9}d");
    shown_as(STR("nul\0here"), "nul\\u{0}here");
    shown_as(STR("\x7f"), "\\u{7f}");
    shown_as(STR("\xc2\x9b"
                 "31m"),
             "\\u{9b}31m"); /* CSI as one character */
}

static void characters_that_hide_or_turn_text_are_shown(void **state) {
    (void)state;
    /* NOLINTNEXTLINE(misc-misleading-bidirectional): the trap itself is the input. */
    shown_as(STR("a\xe2\x80\xae"
                 "b"),
             "a\\u{202e}b");
    shown_as(STR("a\xe2\x80\x8b"
                 "b"),
             "a\\u{200b}b");
    shown_as(STR("\xef\xbb\xbf"), "\\u{feff}");
    shown_as(STR("\xf3\xa0\x81\x81"), "\\u{e0041}");
}

static void bytes_that_are_no_text_are_shown(void **state) {
    (void)state;
    shown_as(STR("\xff\xc0\x80"), "\\x{ff}\\x{c0}\\x{80}");
    shown_as(STR("\xf0\x9f\x98"), "\\x{f0}\\x{9f}\\x{98}");
}

static void a_backslash_stays_distinct_from_an_escape(void **state) {
    (void)state;
    shown_as(STR("\\u{1b}"), "\\\\u{1b}");
}

static void ordinary_text_is_left_alone(void **state) {
    (void)state;
    shown_as(STR("plain \xc3\xa9 \xe9\x83\xa8 \xf0\x9f\x98\x80"),
             "plain \xc3\xa9 \xe9\x83\xa8 \xf0\x9f\x98\x80");
    shown_as(STR(""), "");
}

static void columns_count_wide_and_combining_characters(void **state) {
    (void)state;
    assert_int_equal(term_columns(STR("abc")), 3);
    assert_int_equal(term_columns(STR("\xe9\x83\xa8\xe9\x97\xa8")), 4); /* two CJK characters */
    assert_int_equal(term_columns(STR("e\xcc\x81")), 1);                /* e, combining acute */
    assert_int_equal(term_columns(STR("\xf0\x9f\x98\x80")), 2);
    assert_int_equal(term_columns(STR("")), 0);
}

static void bar_is(const term *t, double share, unsigned columns, const char *want) {
    buf out = {0};
    term_add_bar(&out, t, share, columns);
    assert_string_equal(out.p, want);
    buf_free(&out);
}

static void a_bar_is_as_long_as_its_share(void **state) {
    (void)state;
    const term ascii = {.width = 80};
    bar_is(&ascii, 0.0, 4, "    ");
    bar_is(&ascii, 0.5, 4, "##  ");
    bar_is(&ascii, 1.0, 4, "####");
    bar_is(&ascii, 1.5, 4, "####");
    const term blocks = {.width = 80, .blocks = true};
    bar_is(&blocks, 0.5, 2, "\xe2\x96\x88 ");
    bar_is(&blocks, 0.25, 2, "\xe2\x96\x8c ");   /* half a block */
    bar_is(&blocks, 0.0625, 2, "\xe2\x96\x8f "); /* an eighth */
    bar_is(&blocks, 1.0, 2, "\xe2\x96\x88\xe2\x96\x88");
}

static void what_is_no_terminal_has_80_columns_and_no_colour(void **state) {
    (void)state;
    const term t = term_of(-1);
    assert_int_equal(t.width, 80);
    assert_false(t.colour);
}

static void clear_environment(void) {
    static const char *const names[] = {"HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
}

static void cache_is(const char *want) {
    buf out = {0};
    model_hub_cache(&out);
    assert_string_equal(out.p == NULL ? "" : out.p, want);
    buf_free(&out);
}

static void the_hub_cache_is_looked_for_in_the_hub_s_order(void **state) {
    (void)state;
    clear_environment();
    cache_is("");
    setenv("HOME", "/home/u", 1);
    cache_is("/home/u/.cache/huggingface/hub");
    setenv("XDG_CACHE_HOME", "/xdg", 1);
    cache_is("/xdg/huggingface/hub");
    setenv("HF_HOME", "/hf", 1);
    cache_is("/hf/hub");
    setenv("HF_HOME", "~/hf", 1);
    cache_is("/home/u/hf/hub");
    setenv("HF_HUB_CACHE", "/cache", 1);
    cache_is("/cache");
    setenv("HF_HUB_CACHE", "", 1);
    cache_is("/home/u/hf/hub");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_characters_cannot_reach_the_terminal),
        cmocka_unit_test(characters_that_hide_or_turn_text_are_shown),
        cmocka_unit_test(bytes_that_are_no_text_are_shown),
        cmocka_unit_test(a_backslash_stays_distinct_from_an_escape),
        cmocka_unit_test(ordinary_text_is_left_alone),
        cmocka_unit_test(columns_count_wide_and_combining_characters),
        cmocka_unit_test(a_bar_is_as_long_as_its_share),
        cmocka_unit_test(what_is_no_terminal_has_80_columns_and_no_colour),
        cmocka_unit_test(the_hub_cache_is_looked_for_in_the_hub_s_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
