/* plan_test.c - clef_plan against what a run of the same size is measured to hold, and
 * the refusal of what cannot fit; and what converting holds. Planning and running happen in
 * processes of their own (tools/peak.c). Not for a sanitizer's build, whose own memory would be
 * measured. */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "clef.h"
#include "engine/plan.h"
#include "tests/folder.h"

#define PEAK BUILD_DIR "tools/peak"

static const char *const toys[] = {"toy-r2", "toy-two-layers", "toy-real-heads", "gate/toy-blocks"};

/* Runs a command line of the test's own; its first lines come back in `out`. */
static int run(char *out, size_t size, const char *command) {
    FILE *p = popen(command, "r"); /* NOLINT(cert-env33-c) */
    assert_non_null(p);
    const size_t n = fread(out, 1, size - 1, p);
    out[n] = '\0';
    const int status = pclose(p);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The bytes that `mode` prints for a record of *tokens tokens, which becomes its true length, and
 * what `more` adds: "", or more words for peak.c behind a blank. */
static double bytes_of(const char *mode, const char *toy, unsigned long *tokens, const char *more) {
    char command[600], out[256], *end = out;
    snprintf(command, sizeof command, PEAK " %s %s %lu%s 2>&1", mode, toy, *tokens, more);
    if (run(out, sizeof out, command) != 0) fail_msg("%s: %s", command, out);
    *tokens = strtoul(out, &end, 10);
    const double bytes = strtod(end, NULL);
    assert_true(*tokens > 0 && bytes > 0);
    return bytes;
}

/* Pages, blocks and the kernel's counters are this coarse: it decides for runs under 3 MiB. */
static const double grain = 384 * 1024;

/* A run may hold less than the plan's worst moment, as when one thread takes all the work, and the
 * kernel counts pages roughly: a run that does not fit the plan is measured twice more. The plan
 * must not be below the middle one, and is held against the largest. */
static void compare(const char *dir, unsigned long tokens, const char *more) {
    double middle = bytes_of("run", dir, &tokens, more), most = middle;
    const double planned = bytes_of("plan", dir, &tokens, more);
    if (planned < middle || planned > 1.15 * middle) {
        const double a = middle, b = bytes_of("run", dir, &tokens, more),
                     c = bytes_of("run", dir, &tokens, more);
        const double least = fmin(a, fmin(b, c));
        most = fmax(a, fmax(b, c));
        middle = a + b + c - most - least;
    }
    print_message("%s, %lu tokens%s: planned %.2f MiB, measured %.2f MiB, ratio %.3f\n", dir,
                  tokens, more, planned / 1048576, most / 1048576, planned / most);
    assert_true(planned >= middle);
    assert_true(planned <= 1.15 * most || planned - most <= grain);
}

static void the_plan_is_never_below_the_peak_and_at_most_15_percent_above(void **state) {
    (void)state;
    static const unsigned long lengths[] = {64, 512, 4096, 16384};
    for (size_t t = 0; t < sizeof toys / sizeof *toys; t++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            char dir[128];
            snprintf(dir, sizeof dir, TESTDATA "%s", toys[t]);
            compare(dir, lengths[i], ""); /* 64 becomes the least possible */
        }
}

/* 700 tokens share chunks with the next record, multiples of 512 do not. */
static void the_plan_holds_for_batches(void **state) {
    (void)state;
    static const unsigned long lengths[] = {64, 512, 700, 4096};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        compare(TESTDATA "toy-real-heads", lengths[i], " batch=4");
    compare(TESTDATA "toy-real-heads", 64, " batch=8");
}

static void the_plan_holds_for_every_format_exact_and_fast(void **state) {
    (void)state;
    const folder home = folder_new();
    for (int f = CLEF_FORMAT_INT8MIX; f <= CLEF_FORMAT_INT4; f++) {
        char out[300];
        clef_error err = {0};
        snprintf(out, sizeof out, "%s/format%d", home.path, f);
        const clef_convert_options o = {
            .model = TESTDATA "gate/toy-blocks", .out = out, .format = (clef_format)f};
        if (clef_convert(&o, NULL, &err) != CLEF_OK) fail_msg("%s", err.text);
        compare(out, 64, "");
        compare(out, 512, " fast");
        compare(out, 4096, "");
        if (f == CLEF_FORMAT_INT8) compare(out, 16384, " fast");
    }
    folder_remove(home.path);
}

/* A toy whose pictures keep their sizes: once the tower takes most, once the record does. */
static void the_plan_counts_pictures_and_the_tower(void **state) {
    (void)state;
    const folder home = folder_new();
    char command[1500], dir[300];
    snprintf(dir, sizeof dir, "%s/sees", home.path);
    snprintf(command, sizeof command,
             BUILD_DIR "tools/synth --geometry " TESTDATA "toy-vision --tower --tokenizer " TESTDATA
                       "toy-vision/tokenizer.json --out %s > %s/log",
             dir, home.path);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the test's own */
    compare(dir, 64, " 8 " TESTDATA "media/smooth_640x480.png 640 480");
    compare(dir, 12000, " 1 " TESTDATA "media/smooth_640x480.png 640 480");
    folder_remove(dir);
    folder_remove(home.path);
}

static void what_cannot_fit_is_refused_with_figures_unless_forced(void **state) {
    (void)state;
    char out[1100];
    const char *tail = TESTDATA "toy-real-heads 16384 2>&1";
    char command[256];
    snprintf(command, sizeof command, "ulimit -v 40000; " PEAK " run %s", tail);
    assert_int_equal(run(out, sizeof out, command), 3);
    assert_non_null(strstr(out, "a record of 16384 tokens needs "));
    assert_non_null(strstr(out, "the limit of address space (ulimit -v) leaves "));
    /* Forced, it finds out by itself that there is not enough. */
    snprintf(command, sizeof command, "ulimit -v 40000; " PEAK " force %s", tail);
    assert_int_equal(run(out, sizeof out, command), 3);
    assert_non_null(strstr(out, "out of memory"));
    /* A shorter record fits. */
    snprintf(command, sizeof command,
             "ulimit -v 40000; " PEAK " run " TESTDATA "toy-real-heads 512 2>&1");
    assert_int_equal(run(out, sizeof out, command), 0);
}

static clef_plan_result plan(const char *toy, uint32_t chunk, const clef_plan_options *wanted) {
    char dir[128];
    clef_plan_result r;
    clef_error err = {0};
    snprintf(dir, sizeof dir, TESTDATA "%s", toy);
    const clef_options options = {.model = dir, .threads = 1, .chunk = chunk};
    if (clef_plan(&options, wanted, &r, &err) != CLEF_OK) fail_msg("%s", err.text);
    return r;
}

static void a_plan_follows_tokens_chunk_and_batch(void **state) {
    (void)state;
    const clef_plan_result one = plan("toy-r2", 512, NULL);
    assert_int_equal(one.tokens, 512);
    assert_int_equal(one.live, 1);
    const clef_plan_result small = plan("toy-r2", 64, NULL);
    assert_true(small.workspace_bytes < one.workspace_bytes);
    assert_int_equal(small.sequence_bytes, one.sequence_bytes);
    /* Records of as many tokens as a chunk follow one another, others share chunks. */
    assert_int_equal(plan("toy-r2", 512, &(clef_plan_options){.batch = 4}).live, 1);
    const clef_plan_result four =
        plan("toy-r2", 512, &(clef_plan_options){.tokens = 511, .batch = 4});
    assert_int_equal(four.live, 2);
    assert_true(four.total_bytes - four.opened_bytes >
                one.total_bytes - one.opened_bytes + four.sequence_bytes);
    /* Short records share a chunk, but no more than eight hold their state at once. */
    assert_int_equal(plan("toy-r2", 512, &(clef_plan_options){.tokens = 16, .batch = 99}).live, 8);
    const clef_plan_result wide = plan("toy-r2", 512, &(clef_plan_options){.options = 2000});
    assert_true(wide.finish_bytes > one.finish_bytes);
    assert_true(one.mapped_bytes > 1000000 && one.prefix_bytes > one.sequence_bytes);
}

/* A long record beside one of many options, whose head takes more than the long one's state. */
static void a_batch_needs_no_less_than_each_of_its_records(void **state) {
    (void)state;
    static const batch_item items[] = {
        {.in = {.n_tokens = 16384, .n_questions = 1, .n_options = 2}},
        {.in = {.n_tokens = 16000, .n_questions = 1, .n_options = 4000}},
        {.in = {.n_tokens = 15000, .n_questions = 4000, .n_options = 4000}}};
    clef_engine *e = NULL;
    clef_error err = {0};
    const clef_options options = {.model = TESTDATA "toy-r1-tied", .threads = 1};
    if (clef_open(&e, &options, &err) != CLEF_OK) fail_msg("%s", err.text);
    for (size_t i = 0; i < 3; i++) {
        assert_true(plan_need(e, items, 2) >= plan_need(e, items + i % 2, 1));
        assert_true(plan_need(e, items, 3) >= plan_need(e, items + i, 1));
    }
    clef_close(e);
}

/* Never too little; too much by what the names of scales and a mixed format do not use. */
static void a_format_is_planned_before_anything_is_converted(void **state) {
    (void)state;
    static const struct {
        clef_format format;
        clef_tables tables;
        bool mixed;
    } kinds[] = {{CLEF_FORMAT_INT8MIX, CLEF_TABLES_KEEP, false},
                 {CLEF_FORMAT_INT8, CLEF_TABLES_INT8, false},
                 {CLEF_FORMAT_INT6, CLEF_TABLES_KEEP, true},
                 {CLEF_FORMAT_INT4MIX, CLEF_TABLES_INT8, true},
                 {CLEF_FORMAT_INT4, CLEF_TABLES_KEEP, false}};
    const folder home = folder_new();
    char out[300];
    snprintf(out, sizeof out, "%s/made", home.path);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        clef_error err = {0};
        const clef_convert_options o = {.model = TESTDATA "gate/toy-blocks",
                                        .out = out,
                                        .format = kinds[i].format,
                                        .tables = kinds[i].tables};
        if (clef_convert(&o, NULL, &err) != CLEF_OK) fail_msg("%s", err.text);
        const clef_options converted = {.model = out, .threads = 1};
        clef_plan_result r;
        assert_int_equal(clef_plan(&converted, NULL, &r, NULL), CLEF_OK);
        const clef_plan_options wanted = {
            .converted = 1, .format = kinds[i].format, .tables = kinds[i].tables};
        const clef_plan_result before = plan("gate/toy-blocks", 0, &wanted);
        assert_true(before.mapped_bytes >= r.mapped_bytes);
        assert_true(before.mapped_bytes - r.mapped_bytes <=
                    64 * 256u + (kinds[i].mixed ? r.mapped_bytes / 50 : 0));
        assert_int_equal(clef_plan(&converted, &wanted, &r, &err), CLEF_ERR_INPUT);
        assert_non_null(strstr(err.text, "the model is converted already"));
        folder_remove(out);
    }
    folder_remove(home.path);
}

/* Most memory without a file behind it that this process ever held, in KiB. */
static unsigned long most_kib(void) {
    char line[256];
    unsigned long peak = 0, file = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) peak = strtoul(line + 6, NULL, 10);
        if (strncmp(line, "RssFile:", 8) == 0) file = strtoul(line + 8, NULL, 10);
    }
    if (f != NULL) fclose(f);
    return peak > file ? peak - file : 0;
}

/* 90 MB of weights are converted within 64 MB: what is held does not grow with the model. */
static void converting_takes_little_memory_whatever_the_model(void **state) {
    (void)state;
    const folder home = folder_new();
    char command[2000], out[300], source[300];
    snprintf(source, sizeof source, "%s/big", home.path);
    snprintf(out, sizeof out, "%s/done", home.path);
    snprintf(command, sizeof command,
             "mkdir %s/wide && for f in config joint_head_config; do "
             "sed -e 's/\"hidden_size\": *64/\"hidden_size\": 1024/' "
             "-e 's/\"intermediate_size\": *96/\"intermediate_size\": 1536/' " TESTDATA
             "gate/toy-blocks/$f.json > %s/wide/$f.json; done && " BUILD_DIR
             "tools/synth --geometry %s/wide --tokenizer " TESTDATA
             "gate/toy-blocks/tokenizer.json --out %s > %s/log",
             home.path, home.path, home.path, source, home.path);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the test's own */
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const clef_convert_options o = {
            .model = source, .out = out, .format = CLEF_FORMAT_INT4MIX, .jobs = 2};
        if (clef_convert(&o, NULL, NULL) != CLEF_OK) _exit(1);
        const unsigned long kib = most_kib();
        _exit(kib > 0 && kib < 64 * 1024 ? 0 : 2);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    folder_remove(home.path);
}

/* Keys and values of the full-attention layers, per token: toy-r2 has two, of 2 heads of 24. */
static void a_token_more_costs_its_keys_and_values(void **state) {
    (void)state;
    const uint64_t at[] = {
        plan("toy-r2", 512, &(clef_plan_options){.tokens = 4096}).sequence_bytes,
        plan("toy-r2", 512, &(clef_plan_options){.tokens = 8192}).sequence_bytes};
    assert_int_equal(at[1] - at[0], 4096 * 2 * 2 * 2 * 24 * sizeof(float));
}

static void a_plan_that_no_model_has_is_refused(void **state) {
    (void)state;
    const clef_options options = {.model = TESTDATA "toy-r2"};
    const clef_plan_options wrong[] = {{.tokens = UINT32_MAX}, {.questions = 5, .options = 4}};
    static const char *const words[] = {"tokens: 4294967295, the model has ",
                                        "options: 4, wanted at least one for each of 5 questions"};
    for (int i = 0; i < 2; i++) {
        clef_plan_result r;
        clef_error err = {0};
        assert_int_equal(clef_plan(&options, &wrong[i], &r, &err), CLEF_ERR_INPUT);
        assert_non_null(strstr(err.text, words[i]));
    }
}

static void the_system_tells_what_is_left(void **state) {
    (void)state;
    const memory_room room = memory_available();
    assert_true(room.bytes > 1 << 20 && room.bytes < (uint64_t)1 << 50);
    assert_true(memory_anonymous() > 4096);
}

static void pictures_add_their_tokens_and_the_tower(void **state) {
    (void)state;
    static const uint32_t one[][2] = {{320, 224}}, two[][2] = {{320, 224}, {64, 64}};
    const clef_plan_result none = plan("toy-vision", 512, NULL);
    const clef_plan_result small =
        plan("toy-vision", 512, &(clef_plan_options){.images = one, .n_images = 1});
    const clef_plan_result more =
        plan("toy-vision", 512, &(clef_plan_options){.images = two, .n_images = 2});
    assert_int_equal(none.picture_bytes, 0);
    assert_int_equal(small.tokens, none.tokens + 10 * 7 + 2 + 1);
    assert_int_equal(more.tokens, small.tokens + 4 + 2);
    assert_true(small.picture_bytes > 280 * 36 * 3 * sizeof(float));
    assert_int_equal(more.picture_bytes - small.picture_bytes, 4 * 52 * sizeof(float));
    clef_plan_result r;
    clef_error err = {0};
    const clef_options options = {.model = TESTDATA "toy-r2"};
    assert_int_equal(
        clef_plan(&options, &(clef_plan_options){.images = one, .n_images = 1}, &r, &err),
        CLEF_ERR_INPUT);
    assert_string_equal(err.text, "images: the model has no vision tower");
}

/* Asks about a state of 15,000 tokens that no other `number` begins like. */
static clef_status ask_long(clef_engine *e, unsigned number, clef_error *err) {
    enum { TOKENS = 15000 };
    char *body = malloc(TOKENS + 200);
    assert_non_null(body);
    int n = sprintf(body, "{\"model\":\"clef-flash\",\"state\":\"%u ", number);
    memset(body + n, '7', TOKENS);
    n += TOKENS;
    n += sprintf(body + n, "\",\"questions\":{\"q\":{\"type\":\"noul\"}}}");
    clef_answer *a = NULL;
    const clef_status s = clef_ask(e, NULL, body, (size_t)n, &a, err);
    clef_answer_free(a);
    free(body);
    return s;
}

/* Bytes of address space in use. */
static rlim_t mapped_now(void) {
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%llu", &pages), 1); /* NOLINT(cert-err34-c): the kernel's own */
    fclose(f);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void what_is_kept_gives_way_to_a_request(void **state) {
    (void)state;
    const uint64_t least = 8 << 20; /* a request needs 16 MiB, four states 60 */
    clef_engine *e = NULL;
    clef_error err = {0};
    const clef_options options = {.model = TESTDATA "toy-r2", .threads = 2, .cache_bytes = 1 << 30};
    assert_int_equal(clef_open(&e, &options, &err), CLEF_OK);
    for (unsigned i = 1; i <= 4; i++) assert_int_equal(ask_long(e, i, &err), CLEF_OK);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    const struct rlimit tight = {mapped_now() + least, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
    const clef_status s = ask_long(e, 5, &err);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    if (s != CLEF_OK) fail_msg("%s", err.text);
    clef_load load;
    clef_engine_stats(e, &load);
    assert_true(load.cache_dropped >= 4);
    clef_close(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plan_is_never_below_the_peak_and_at_most_15_percent_above),
        cmocka_unit_test(the_plan_holds_for_batches),
        cmocka_unit_test(the_plan_holds_for_every_format_exact_and_fast),
        cmocka_unit_test(the_plan_counts_pictures_and_the_tower),
        cmocka_unit_test(what_cannot_fit_is_refused_with_figures_unless_forced),
        cmocka_unit_test(a_plan_follows_tokens_chunk_and_batch),
        cmocka_unit_test(a_batch_needs_no_less_than_each_of_its_records),
        cmocka_unit_test(a_format_is_planned_before_anything_is_converted),
        cmocka_unit_test(converting_takes_little_memory_whatever_the_model),
        cmocka_unit_test(a_token_more_costs_its_keys_and_values),
        cmocka_unit_test(a_plan_that_no_model_has_is_refused),
        cmocka_unit_test(the_system_tells_what_is_left),
        cmocka_unit_test(pictures_add_their_tokens_and_the_tower),
        cmocka_unit_test(what_is_kept_gives_way_to_a_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
