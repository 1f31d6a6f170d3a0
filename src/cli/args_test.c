/* args_test.c - the reader of the command line, and the texts made of its table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "cli/args.h"
#include "cli/help.h"

/* Parses the words of a command line, which are separated by single blanks. */
static clef_status parse(args *out, const char *line, clef_error *err) {
    static char copy[4096];
    static char *words[64];
    assert_true(strlen(line) < sizeof copy);
    memcpy(copy, line, strlen(line) + 1);
    int n = 0;
    for (char *at = copy; n < 64;) {
        words[n++] = at;
        at = strchr(at, ' ');
        if (at == NULL) break;
        *at++ = '\0';
    }
    return args_parse(out, n, words, err);
}

/* The line is refused with exactly this sentence. */
static void refused(const char *line, const char *sentence) {
    args a;
    clef_error err = {0};
    assert_int_equal(parse(&a, line, &err), CLEF_ERR_INPUT);
    assert_string_equal(err.text, sentence);
}

static void accepted(args *out, const char *line) {
    clef_error err = {0};
    if (parse(out, line, &err) != CLEF_OK) fail_msg("%s: %s", line, err.text);
}

static void an_unknown_option_names_the_nearest_spelling(void **state) {
    (void)state;
    refused("clef ask m --thread=2", "unknown option '--thread', did you mean '--threads'?");
    refused("clef ask m --prety", "unknown option '--prety', did you mean '--pretty'?");
    refused("clef ask m --ouput", "unknown option '--ouput', did you mean '--out'?");
    refused("clef ask m --control", "unknown option '--control', did you mean '--control-tokens'?");
    refused("clef ask m --chnuk 64", "unknown option '--chnuk', did you mean '--chunk'?");
    refused("clef bench m --token 5", "unknown option '--token', did you mean '--tokens'?");
    refused("clef ask m -threads 2", "unknown option '-threads', did you mean '--threads'?");
}

static void an_option_like_no_other_points_to_the_help(void **state) {
    (void)state;
    refused("clef ask m --frobnicate",
            "unknown option '--frobnicate'; 'clef ask --help' lists the options");
    refused("clef ask m --thisisaverylongoptionthatnobodywouldhavetypedbyaccident",
            "unknown option '--thisisaverylongoptionthatnobodywouldhavetypedbyaccident'; "
            "'clef ask --help' lists the options");
}

static void a_list_ends_at_the_next_option(void **state) {
    (void)state;
    args a;
    accepted(&a, "clef gate --fixtures a.json b.json - --model m --red");
    assert_int_equal(a.options[OPTION_FIXTURES].n_list, 3);
    assert_string_equal(a.options[OPTION_FIXTURES].list[0], "a.json");
    assert_string_equal(a.options[OPTION_FIXTURES].list[2], "-");
    assert_string_equal(a.options[OPTION_MODEL].text, "m");
    accepted(&a, "clef gate m --fixtures=a.json --red");
    assert_int_equal(a.options[OPTION_FIXTURES].n_list, 1);
    assert_string_equal(a.options[OPTION_FIXTURES].list[0], "a.json");
    refused("clef gate m --fixtures", "--fixtures needs a value: FILE...");
    refused("clef gate m --fixtures --red", "--fixtures needs a value: FILE...");
    refused("clef gate m --fixtures a --fixtures b", "--fixtures is given twice");
}

static void pictures_may_be_given_again(void **state) {
    (void)state;
    args a;
    accepted(&a, "clef ask m --image a.png --video c.mp4 --image=b.jpg --grid 448");
    assert_int_equal(a.images.n, 2);
    assert_string_equal(a.images.text[0], "a.png");
    assert_string_equal(a.images.text[1], "b.jpg");
    assert_int_equal(a.videos.n, 1);
    assert_string_equal(a.videos.text[0], "c.mp4");
    assert_int_equal(a.options[OPTION_GRID].choice, 2);
    refused("clef ask m --image", "--image needs a value: FILE");
    refused("clef ask m --image=", "--image: an empty value, wanted FILE");
    refused("clef bench m --image a.png",
            "'clef bench' has no option --image; 'clef bench --help'");
    refused("clef ask m --grid 512", "--grid: '512' is not native, 256 or 448");
    refused("clef ask m --max-pixels 0",
            "--max-pixels: '0' is not a whole number from 1 to 4294967295");
}

static void a_share_is_a_plain_decimal_above_0_and_at_most_1(void **state) {
    (void)state;
    args a;
    accepted(&a, "clef gate m --fixtures f --max-dp 0.05 --mean-dp .5 --margin 1");
    assert_true(a.options[OPTION_MAX_DP].share == 0.05);
    assert_true(a.options[OPTION_MEAN_DP].share == 0.5);
    assert_true(a.options[OPTION_MARGIN].share == 1);
    static const char *const wrong[] = {"0",      "0.0", "1.1", "-0.1", "+0.1", "1e-3",
                                        "0x1p-3", "nan", "inf", ".",    "0..1", "0,1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char line[64], want[96];
        snprintf(line, sizeof line, "clef gate m --fixtures f --max-dp=%s", wrong[i]);
        snprintf(want, sizeof want,
                 "--max-dp: '%s' is not a decimal number, more than 0 and at most 1", wrong[i]);
        refused(line, want);
    }
}

static void the_gate_needs_recorded_runs_or_another_checkpoint(void **state) {
    (void)state;
    refused("clef gate --fixtures f", "no model is given; usage: clef gate --model DIR --fixtures "
                                      "FILE... [--red] [--report FILE] [option]");
    refused("clef gate m", "neither --fixtures nor --against is given");
    refused("clef gate m --requests r", "--requests needs --against: a second checkpoint");
    refused("clef gate m --against n", "--against needs --requests: what both answer");
    refused("clef gate m --against n --requests r --red", "--against and --red exclude each other");
    refused("clef gate m --against n --fixtures f", "--against and --fixtures exclude each other");
}

static void an_unknown_command_names_the_nearest_spelling(void **state) {
    (void)state;
    refused("clef aks m", "unknown command 'aks', did you mean 'ask'?");
    refused("clef enc m", "unknown command 'enc', did you mean 'encode'?");
    refused("clef xyzzy", "unknown command 'xyzzy'; 'clef help' lists the commands");
    refused("clef help asky", "unknown command 'asky', did you mean 'ask'?");
    refused("clef ", "unknown command ''; 'clef help' lists the commands");
}

static void an_option_of_another_command_is_refused(void **state) {
    (void)state;
    refused("clef bench m --pretty", "'clef bench' has no option --pretty; 'clef bench --help'");
    refused("clef info m --request x", "'clef info' has no option --request; 'clef info --help'");
}

static void numbers_are_read_strictly(void **state) {
    (void)state;
    static const char *const wrong[] = {"0",
                                        "-1",
                                        "+1",
                                        "1.0",
                                        "0x10",
                                        "1e3",
                                        "one",
                                        "1k",
                                        "1,000",
                                        "",
                                        "4294967296",
                                        "1\t",
                                        "99999999999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char line[128], sentence[160];
        snprintf(line, sizeof line, "clef bench m --tokens=%s", wrong[i]);
        snprintf(sentence, sizeof sentence,
                 "--tokens: '%s' is not a whole number from 1 to "
                 "4294967295",
                 strcmp(wrong[i], "1\t") == 0 ? "1\\x09" : wrong[i]);
        refused(line, sentence);
    }
    args a;
    accepted(&a, "clef bench m --tokens 4294967295 --threads 007");
    assert_int_equal(a.options[OPTION_TOKENS].number, 4294967295u);
    assert_int_equal(a.options[OPTION_THREADS].number, 7);
}

static void ranges_are_the_ones_of_the_option(void **state) {
    (void)state;
    args a;
    accepted(&a, "clef ask m --chunk 4096");
    refused("clef ask m --chunk 4097", "--chunk: '4097' is not a whole number from 1 to 4096");
    accepted(&a, "clef ask m --max-state-tokens 0");
    assert_true(a.options[OPTION_MAX_STATE_TOKENS].given);
    assert_int_equal(a.options[OPTION_MAX_STATE_TOKENS].number, 0);
    refused("clef ask m --max-state-tokens -1",
            "--max-state-tokens: '-1' is not a whole number from 0 to 4294967295");
}

static void a_choice_is_one_of_its_words(void **state) {
    (void)state;
    args a;
    accepted(&a, "clef ask m --truncate state --control-tokens=reject --confidence entropy");
    assert_int_equal(a.options[OPTION_TRUNCATE].choice, 1);
    assert_int_equal(a.options[OPTION_CONTROL_TOKENS].choice, 2);
    assert_int_equal(a.options[OPTION_CONFIDENCE].choice, 2);
    refused("clef ask m --digits 5", "--digits: '5' is not 4 or 7");
    refused("clef ask m --confidence TOP", "--confidence: 'TOP' is not top, typesafe or entropy");
    refused("clef ask m --truncate=", "--truncate: '' is not none or state");
}

static void a_missing_value_says_what_is_wanted(void **state) {
    (void)state;
    refused("clef ask m --threads", "--threads needs a value: a whole number from 1 to 1024");
    refused("clef ask m --out --pretty", "--out needs a value: FILE");
    refused("clef ask m --digits", "--digits needs a value: 4 or 7");
    refused("clef ask m --request=", "--request: an empty value, wanted FILE");
    args a;
    accepted(&a, "clef ask m --out=--pretty");
    assert_string_equal(a.options[OPTION_OUT].text, "--pretty");
    assert_false(a.options[OPTION_PRETTY].given);
}

static void a_flag_takes_no_value(void **state) {
    (void)state;
    refused("clef ask m --pretty=yes", "--pretty takes no value");
}

static void an_option_given_twice_is_refused(void **state) {
    (void)state;
    refused("clef ask m --chunk 64 --chunk 64", "--chunk is given twice");
}

static void the_model_may_stand_alone_but_only_once(void **state) {
    (void)state;
    args a;
    accepted(&a, "clef ask folder --pretty");
    assert_string_equal(a.options[OPTION_MODEL].text, "folder");
    accepted(&a, "clef ask -- --pretty");
    assert_string_equal(a.options[OPTION_MODEL].text, "--pretty");
    refused("clef ask a b", "unexpected argument 'b': the model is already 'a'");
    refused("clef ask --model a b", "unexpected argument 'b': the model is already 'a'");
    refused("clef info", "no model is given; usage: clef info DIR [--json]");
}

static void encode_takes_a_model_or_a_tokenizer(void **state) {
    (void)state;
    args a;
    accepted(&a, "clef encode --tokenizer tokenizer.json");
    clef_error err = {0};
    assert_int_equal(parse(&a, "clef encode", &err), CLEF_ERR_INPUT);
    assert_non_null(strstr(err.text, "neither a model nor a tokenizer is given"));
    assert_int_equal(parse(&a, "clef encode m --tokenizer t", &err), CLEF_ERR_INPUT);
    assert_non_null(strstr(err.text, "--model and --tokenizer exclude each other"));
}

static void help_needs_nothing_else(void **state) {
    (void)state;
    args a;
    accepted(&a, "clef ask --help");
    assert_int_equal(a.command, COMMAND_HELP);
    assert_int_equal(a.topic, COMMAND_ASK);
    accepted(&a, "clef help bench");
    assert_int_equal(a.topic, COMMAND_BENCH);
    accepted(&a, "clef --help");
    assert_int_equal(a.topic, N_COMMANDS);
    accepted(&a, "clef --version");
    assert_int_equal(a.command, COMMAND_VERSION);
    refused("clef --version ask", "unexpected argument 'ask'");
    refused("clef", "no command is given; 'clef help' lists them");
}

static void every_option_is_explained_by_every_command_that_takes_it(void **state) {
    (void)state;
    for (int c = 0; c < N_COMMANDS; c++) {
        buf text = {0};
        help_text(&text, (command_id)c);
        assert_non_null(text.p);
        for (int i = 0; i < N_OPTIONS; i++) {
            char spelled[64];
            snprintf(spelled, sizeof spelled, "\n  --%s%s", option_table[i].name,
                     option_table[i].kind == VALUE_NONE ? "\n" : " ");
            const bool takes = (option_table[i].commands >> c & 1u) != 0;
            assert_int_equal(strstr(text.p, spelled) != NULL, takes);
        }
        assert_non_null(strstr(text.p, "\nExamples:\n"));
        buf_free(&text);
    }
}

static void no_line_of_the_help_is_wider_than_80_columns(void **state) {
    (void)state;
    for (int c = 0; c <= N_COMMANDS; c++) {
        buf text = {0};
        help_text(&text, (command_id)c);
        size_t column = 0;
        for (size_t i = 0; i < text.n; i++) {
            column = text.p[i] == '\n' ? 0 : column + 1;
            if (column > 80) fail_msg("help %d: a line of more than 80 columns", c);
        }
        buf_free(&text);
    }
}

static void every_example_of_the_help_is_accepted(void **state) {
    (void)state;
    for (int c = 0; c < N_COMMANDS; c++)
        for (size_t i = 1; i < 4; i += 2) {
            char line[256];
            const char *example = command_table[c].examples[i];
            const size_t n = strcspn(example, "<>"); /* the shell's part is not ours */
            assert_true(n < sizeof line);
            memcpy(line, example, n);
            line[n] = '\0';
            if (n > 0 && line[n - 1] == ' ') line[n - 1] = '\0';
            args a;
            accepted(&a, line);
        }
}

static void the_manual_page_names_every_option_and_escapes_roff(void **state) {
    (void)state;
    buf man = {0};
    help_man(&man);
    assert_non_null(man.p);
    for (int i = 0; i < N_OPTIONS; i++) {
        buf spelled = {0};
        buf_add_text(&spelled, "\n\\fB\\-\\-");
        for (const char *p = option_table[i].name; *p != '\0'; p++) {
            if (*p == '-') buf_add_char(&spelled, '\\');
            buf_add_char(&spelled, *p);
        }
        assert_non_null(spelled.p);
        if (strstr(man.p, spelled.p) == NULL) fail_msg("no %s", spelled.p);
        buf_free(&spelled);
    }
    /* A line that begins with a dot is a macro: only the ones that are meant. */
    for (const char *line = man.p; line != NULL && *line != '\0';) {
        if (*line == '.') assert_true(strchr("TSnfPB", line[1]) != NULL);
        assert_true(*line != '\'');
        line = strchr(line, '\n');
        if (line != NULL) line++;
    }
    buf_free(&man);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_option_names_the_nearest_spelling),
        cmocka_unit_test(an_option_like_no_other_points_to_the_help),
        cmocka_unit_test(a_list_ends_at_the_next_option),
        cmocka_unit_test(pictures_may_be_given_again),
        cmocka_unit_test(a_share_is_a_plain_decimal_above_0_and_at_most_1),
        cmocka_unit_test(the_gate_needs_recorded_runs_or_another_checkpoint),
        cmocka_unit_test(an_unknown_command_names_the_nearest_spelling),
        cmocka_unit_test(an_option_of_another_command_is_refused),
        cmocka_unit_test(numbers_are_read_strictly),
        cmocka_unit_test(ranges_are_the_ones_of_the_option),
        cmocka_unit_test(a_choice_is_one_of_its_words),
        cmocka_unit_test(a_missing_value_says_what_is_wanted),
        cmocka_unit_test(a_flag_takes_no_value),
        cmocka_unit_test(an_option_given_twice_is_refused),
        cmocka_unit_test(the_model_may_stand_alone_but_only_once),
        cmocka_unit_test(encode_takes_a_model_or_a_tokenizer),
        cmocka_unit_test(help_needs_nothing_else),
        cmocka_unit_test(every_option_is_explained_by_every_command_that_takes_it),
        cmocka_unit_test(no_line_of_the_help_is_wider_than_80_columns),
        cmocka_unit_test(every_example_of_the_help_is_accepted),
        cmocka_unit_test(the_manual_page_names_every_option_and_escapes_roff),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
