/* convert_test.c - clef_convert seen from outside: what it writes, that the result answers with the
 * same bits whatever the table and the company, how it ends early and goes on, and what is refused
 * of a converted folder that is no longer whole. */
#define _GNU_SOURCE /* chroot */
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/file.h"
#include "checkpoint/safetensors.h"
#include "clef.h"
#include "compute/compute.h"
#include "tests/folder.h"
#include "tests/oom.h"
#include "tests/shard.h"

/* Everything stands in one folder: "src" is the model of toy-r2 with widths that are multiples of
 * 32 and random weights, "other" the same with another seed, "done" what "src" becomes. */
static folder home;

#define SHARD "model-00001-of-00001.safetensors"
#define GATE_4 "model.language_model.layers.4.mlp.gate_proj.weight"

static const char body[] =
    "{\"model\":\"m\",\"state\":\"The shop is closed on Sunday and nobody answered at 14:30.\","
    "\"questions\":{\"open\":{\"type\":\"noul\"},\"queue\":{\"type\":\"choice\",\"criteria\":"
    "{\"tech\":\"Faults\",\"billing\":\"Charges\",\"other\":null}},"
    "\"urgency\":{\"type\":\"score\",\"criteria\":[\"This week\",\"Tomorrow\",\"Today\"]}}}";

/* "home/name"; good for eight calls. */
static const char *at(const char *name) {
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", home.path, name);
    return path;
}

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *format, ...) {
    char command[2000];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    /* NOLINTNEXTLINE(cert-env33-c): the commands are the test's own. */
    if (system(command) != 0) fail_msg("failed: %s", command);
}

static clef_status convert(const char *source, const char *out, clef_error *err) {
    const clef_convert_options o = {.model = at(source), .out = at(out), .jobs = 2};
    return clef_convert(&o, NULL, err);
}

static int make_models(void **state) {
    (void)state;
    home = folder_new();
    shell("mkdir %s/geometry && for f in config.json joint_head_config.json; do "
          "sed -e 's/\"hidden_size\": *60/\"hidden_size\": 64/' "
          "-e 's/\"intermediate_size\": *100/\"intermediate_size\": 96/' " TESTDATA
          "toy-r2/$f > %s/geometry/$f; done",
          home.path, home.path);
    for (int seed = 0; seed < 2; seed++)
        shell(BUILD_DIR "tools/synth --geometry %s/geometry --seed %d --tokenizer " TESTDATA
                        "toy-r2/tokenizer.json --out %s/%s > %s/log",
              home.path, seed, home.path, seed == 0 ? "src" : "other", home.path);
    clef_error err = {0};
    if (convert("src", "done", &err) != CLEF_OK || convert("other", "other-done", &err) != CLEF_OK)
        fail_msg("%s", err.text);
    return 0;
}

static int remove_models(void **state) {
    (void)state;
    folder_remove(home.path);
    return 0;
}

static void assert_same_folders(const char *a, const char *b) {
    shell("diff -r '%s' '%s' >&2", at(a), at(b));
}

static void assert_says(const clef_error *err, const char *words) {
    if (strstr(err->text, words) == NULL) fail_msg("'%s' does not say '%s'", err->text, words);
}

/* ---- what is written --------------------------------------------------------------------------
 */

static void the_sums_hold_and_small_files_are_verbatim(void **state) {
    (void)state;
    shell("cd '%s' && sha256sum --quiet -c SHA256SUMS && test \"$(wc -l < SHA256SUMS)\" = "
          "\"$(ls | grep -vc SHA256SUMS)\"",
          at("done"));
    shell("for f in config.json joint_head_config.json joint_head.safetensors tokenizer.json; do "
          "cmp '%s'/$f '%s'/$f || exit 1; done",
          at("src"), at("done"));
}

static void open_model(safetensors **st, const char *name) {
    clef_error err = {0};
    if (safetensors_open_model(st, at(name), &err) != CLEF_OK) fail_msg("%s", err.text);
}

static void first_layers_stay_and_the_others_become_int8(void **state) {
    (void)state;
    safetensors *src = NULL, *done = NULL;
    open_model(&src, "src");
    open_model(&done, "done");
    unsigned n_int8 = 0;
    for (uint32_t i = 0; i < safetensors_count(src); i++) {
        const safetensors_entry e = safetensors_at(src, i);
        const tensor *t = safetensors_find(done, e.name);
        assert_non_null(t);
        if (t->type == DTYPE_I8) {
            n_int8++;
            continue;
        }
        assert_int_equal(t->type, e.tensor->type);
        assert_int_equal(t->bytes, e.tensor->bytes);
        assert_memory_equal(t->data, e.tensor->data, t->bytes);
    }
    /* 3 of 8 layers is the share of 12 in 32: of layers 3 to 7, two have full attention. */
    assert_int_equal(n_int8, 2 * 7 + 3 * 8);
    assert_int_equal(safetensors_count(done), safetensors_count(src) + n_int8);
    assert_int_equal(
        safetensors_find(done, STR("model.language_model.layers.2.mlp.up_proj.weight"))->type,
        DTYPE_BF16);
    safetensors_close(src);
    safetensors_close(done);
}

static void every_weight_is_within_half_a_step(void **state) {
    (void)state;
    safetensors *src = NULL, *done = NULL;
    open_model(&src, "src");
    open_model(&done, "done");
    for (uint32_t i = 0; i < safetensors_count(src); i++) {
        const safetensors_entry e = safetensors_at(src, i);
        const tensor *t = safetensors_find(done, e.name);
        if (t->type != DTYPE_I8) continue;
        char name[160];
        snprintf(name, sizeof name, "%.*s_scale", STR_ARG(e.name));
        const tensor *scales = safetensors_find(done, str_of(name));
        assert_non_null(scales);
        for (size_t k = 0; k < t->bytes; k++) {
            float w, scale;
            tensor_to_float(&w, e.tensor->type, e.tensor->data, k, 1);
            tensor_to_float(&scale, DTYPE_F16, scales->data, k / INT8_BLOCK, 1);
            const float restored = (float)((const int8_t *)t->data)[k] * scale;
            if (!(fabsf(w - restored) <= 0.5001f * scale))
                fail_msg("%s: value %zu is %g, restored %g", name, k, (double)w, (double)restored);
        }
    }
    safetensors_close(src);
    safetensors_close(done);
}

static void big_tensors_are_aligned_to_cache_lines(void **state) {
    (void)state;
    safetensors *done = NULL;
    open_model(&done, "done");
    for (uint32_t i = 0; i < safetensors_count(done); i++) {
        const tensor *t = safetensors_at(done, i).tensor;
        if (t->bytes % 64 == 0) assert_int_equal((uintptr_t)t->data % 64, 0);
    }
    safetensors_close(done);
}

static void the_bytes_do_not_depend_on_the_threads(void **state) {
    (void)state;
    for (unsigned jobs = 1; jobs <= 5; jobs += 2) {
        clef_error err = {0};
        const clef_convert_options o = {.model = at("src"), .out = at("again/"), .jobs = jobs};
        if (clef_convert(&o, NULL, &err) != CLEF_OK) fail_msg("%s", err.text);
        assert_same_folders("done", "again");
        folder_remove(at("again"));
    }
}

static void layers_can_be_named(void **state) {
    (void)state;
    clef_error err = {0};
    safetensors *st = NULL;
    const clef_convert_options o = {
        .model = at("src"), .out = at("named"), .layers_16bit = "0,3-4,7"};
    if (clef_convert(&o, NULL, &err) != CLEF_OK) fail_msg("%s", err.text);
    open_model(&st, "named");
    for (unsigned i = 0; i < 8; i++) {
        char name[100];
        snprintf(name, sizeof name, "model.language_model.layers.%u.mlp.up_proj.weight", i);
        assert_int_equal(safetensors_find(st, str_of(name))->type,
                         i == 0 || i == 3 || i == 4 || i == 7 ? DTYPE_BF16 : DTYPE_I8);
    }
    safetensors_close(st);
    folder_remove(at("named"));
}

/* ---- answering --------------------------------------------------------------------------------
 */

static clef_engine *open_done(const char *kernels, unsigned threads, uint32_t chunk) {
    clef_engine *e = NULL;
    clef_error err = {0};
    const clef_options o = {
        .model = at("done"), .kernels = kernels, .threads = threads, .chunk = chunk};
    if (clef_open(&e, &o, &err) != CLEF_OK) fail_msg("%s", err.text);
    return e;
}

static clef_answer *answer(clef_engine *e) {
    clef_answer *a = NULL;
    clef_error err = {0};
    if (clef_ask(e, NULL, body, strlen(body), &a, &err) != CLEF_OK) fail_msg("%s", err.text);
    return a;
}

static void assert_same_bits(const clef_answer *a, const clef_answer *b) {
    size_t n = 0, m = 0;
    const clef_option *x = clef_answer_options(a, &n), *y = clef_answer_options(b, &m);
    assert_true(n == m && n == 8);
    for (size_t i = 0; i < n; i++) assert_memory_equal(&x[i].logit, &y[i].logit, sizeof x->logit);
}

static void the_answer_has_the_same_bits_everywhere(void **state) {
    (void)state;
    clef_engine *e = open_done("scalar", 1, 512);
    clef_answer *reference = answer(e);
    clef_close(e);
    const struct {
        const char *kernels;
        unsigned threads;
        uint32_t chunk;
    } ways[] = {{NULL, 1, 512}, {NULL, 2, 512}, {NULL, 3, 7}, {"scalar", 2, 33}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        e = open_done(ways[i].kernels, ways[i].threads, ways[i].chunk);
        clef_answer *a = answer(e);
        assert_same_bits(a, reference);
        clef_answer_free(a);
        clef_close(e);
    }
    e = open_done(NULL, 2, 0);
    static const char short_body[] =
        "{\"model\":\"m\",\"state\":1,\"questions\":{\"q\":{\"type\":\"noul\"}}}";
    const clef_request batch[3] = {
        {short_body, strlen(short_body)}, {body, strlen(body)}, {short_body, strlen(short_body)}};
    clef_answer *out[3] = {0};
    assert_int_equal(clef_ask_batch(e, NULL, batch, 3, out, NULL), CLEF_OK);
    assert_same_bits(out[1], reference);
    for (int i = 0; i < 3; i++) clef_answer_free(out[i]);
    clef_answer_free(reference);
    clef_close(e);
}

/* Loose: how good a format is, a gate decides, on a real model. But scales that are read from the
 * wrong place give other answers altogether. */
static void the_answer_is_near_that_of_the_source(void **state) {
    (void)state;
    clef_engine *e = open_done(NULL, 2, 0), *source = NULL;
    const clef_options o = {.model = at("src"), .threads = 2};
    assert_int_equal(clef_open(&source, &o, NULL), CLEF_OK);
    clef_answer *a = answer(e), *b = answer(source);
    size_t n = 0;
    const clef_option *x = clef_answer_options(a, &n), *y = clef_answer_options(b, &n);
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = fabs((double)x[i].probability - (double)y[i].probability);
        if (d > most) most = d;
    }
    if (!(most > 0 && most < 0.01)) fail_msg("probabilities differ by up to %g", most);
    clef_answer_free(a);
    clef_answer_free(b);
    clef_close(e);
    clef_close(source);
}

static void info_tells_format_bits_and_losses(void **state) {
    (void)state;
    char *text = NULL;
    int loads = 0;
    const clef_options o = {.model = at("done")};
    assert_int_equal(clef_info(&o, 0, &text, &loads, NULL), CLEF_OK);
    assert_true(loads);
    assert_non_null(strstr(text, "\nformat             int8mix\n"));
    assert_non_null(strstr(text, "\nbits by layer      0-2: 16, 3-7: 8.5\n"));
    assert_non_null(strstr(text, "\nconverted weights  38 int8\n"));
    assert_non_null(strstr(text, "\n  lost at most     0.00"));
    clef_text_free(text);
}

/* ---- ending early -----------------------------------------------------------------------------
 */

typedef struct {
    unsigned calls, last; /* `last`: the call that ends the run; 0: none */
    bool kill;
} ending;

static int end_at(void *user, size_t done, size_t total) {
    ending *e = user;
    assert_true(done <= total);
    if (++e->calls != e->last) return 0;
    if (e->kill) raise(SIGKILL);
    return 1;
}

static unsigned count_calls(void) {
    ending e = {0};
    const clef_convert_options o = {
        .model = at("src"), .out = at("counted"), .progress = end_at, .user = &e};
    assert_int_equal(clef_convert(&o, NULL, NULL), CLEF_OK);
    folder_remove(at("counted"));
    return e.calls;
}

static void assert_not_there(const char *name) {
    if (file_exists(at(name))) fail_msg("%s exists", name);
}

static void assert_does_not_open(const char *name) {
    clef_engine *e = NULL;
    const clef_options o = {.model = at(name)};
    assert_int_not_equal(clef_open(&e, &o, NULL), CLEF_OK);
}

static void a_cancelled_conversion_goes_on_to_the_same_bytes(void **state) {
    (void)state;
    const unsigned n = count_calls();
    assert_true(n > 20);
    for (unsigned last = 1; last < n; last += n / 7) {
        ending e = {.last = last};
        clef_error err = {0};
        const clef_convert_options o = {
            .model = at("src"), .out = at("resumed"), .progress = end_at, .user = &e};
        assert_int_equal(clef_convert(&o, NULL, &err), CLEF_ERR_CANCELLED);
        assert_says(&err, "the same command goes on");
        assert_not_there("resumed");
    }
    clef_error err = {0};
    if (convert("src", "resumed", &err) != CLEF_OK) fail_msg("%s", err.text);
    assert_not_there("resumed.partial");
    assert_same_folders("done", "resumed");
    folder_remove(at("resumed"));
}

/* Runs a conversion to "killed" in a child; returns what waitpid tells. */
static int in_child(void (*before)(void), ending *e) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        clef_error err = {0};
        const clef_convert_options o = {.model = at("src"),
                                        .out = at("killed"),
                                        .progress = e == NULL ? NULL : end_at,
                                        .user = e};
        if (before != NULL) before();
        const clef_status s = clef_convert(&o, NULL, &err);
        folder_write(&home, "sentence", str_of(err.text));
        _exit((int)s);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void a_killed_conversion_leaves_nothing_that_opens(void **state) {
    (void)state;
    const unsigned n = count_calls();
    unsigned n_killed = 0;
    for (unsigned last = 2; last < n; last += n / 9, n_killed++) {
        const int status = in_child(NULL, &(ending){.last = last, .kill = true});
        if (!WIFSIGNALED(status)) break; /* a finished shard was taken over, in fewer calls */
        assert_not_there("killed");
        assert_does_not_open("killed.partial");
    }
    assert_true(n_killed >= 5);
    if (!file_exists(at("killed"))) assert_int_equal(convert("src", "killed", NULL), CLEF_OK);
    assert_same_folders("done", "killed");
    folder_remove(at("killed"));
}

static void flip_byte(const char *name, long offset) {
    FILE *f = fopen(at(name), "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, offset, offset < 0 ? SEEK_END : SEEK_SET), 0);
    const int c = fgetc(f);
    assert_int_equal(fseek(f, -1, SEEK_CUR), 0);
    fputc(c ^ 1, f);
    assert_int_equal(fclose(f), 0);
}

/* Stops while joint_head.safetensors is copied, when the shard is finished. */
static void stop_behind_the_shard(const char *source, const char *out) {
    ending e = {.last = count_calls()};
    const clef_convert_options o = {
        .model = at(source), .out = at(out), .progress = end_at, .user = &e};
    assert_int_equal(clef_convert(&o, NULL, NULL), CLEF_ERR_CANCELLED);
}

static void a_finished_shard_is_taken_over_only_if_it_is_whole(void **state) {
    (void)state;
    stop_behind_the_shard("src", "damaged");
    assert_true(file_exists(at("damaged.partial/" SHARD ".record")));
    flip_byte("damaged.partial/" SHARD, -1);
    assert_int_equal(convert("src", "damaged", NULL), CLEF_OK);
    assert_same_folders("done", "damaged");
    folder_remove(at("damaged"));
}

static void what_another_conversion_left_is_not_taken_over(void **state) {
    (void)state;
    stop_behind_the_shard("other", "crossed");
    assert_int_equal(convert("src", "crossed", NULL), CLEF_OK);
    assert_same_folders("done", "crossed");
    folder_remove(at("crossed"));
}

/* ---- targets ----------------------------------------------------------------------------------
 */

static void refuses(const char *source, const char *out, clef_status status, const char *words) {
    clef_error err = {0};
    assert_int_equal(convert(source, out, &err), status);
    assert_says(&err, words);
}

static void a_target_that_exists_is_left_alone(void **state) {
    (void)state;
    folder_make(&home, "empty");
    refuses("src", "empty", CLEF_ERR_INPUT, "exists already: name a new folder, or remove it");
    folder_remove(at("empty"));
    folder_write(&home, "file", STR("x"));
    refuses("src", "file", CLEF_ERR_INPUT, "exists already");
    folder_link(&home, "loose", "nowhere");
    refuses("src", "loose", CLEF_ERR_INPUT, "exists already");
}

static void the_source_is_no_target(void **state) {
    (void)state;
    refuses("src", "src", CLEF_ERR_INPUT, "is the model itself, which is never written to");
    refuses("src", "src/../src/", CLEF_ERR_INPUT, "is the model itself");
    folder_link(&home, "alias", "src");
    refuses("src", "alias", CLEF_ERR_INPUT, "is the model itself");
    refuses("src", "src/inside", CLEF_ERR_INPUT, "is inside the model");
    refuses("src", "alias/inside", CLEF_ERR_INPUT, "is inside the model");
    assert_not_there("src/inside.partial");
}

static void a_missing_parent_is_named(void **state) {
    (void)state;
    refuses("src", "none/out", CLEF_ERR_IO, "/none: No such file or directory: the folder");
    folder_write(&home, "flat", STR("x"));
    refuses("src", "flat/out", CLEF_ERR_IO, "cannot be created");
}

/* The working folder becomes the root, because others may not enter the folders above it, such as
 * /root. */
static void become_nobody(void) {
    if (geteuid() == 0 && (chroot(".") != 0 || chdir("/") != 0 || setuid(65534) != 0)) _exit(99);
}

static void a_target_that_is_read_only_is_named(void **state) {
    (void)state;
    assert_int_equal(chmod(home.path, 0755), 0);
    if (geteuid() != 0) assert_int_equal(chmod(home.path, 0555), 0);
    folder_write(&home, "sentence", STR(""));
    assert_int_equal(chmod(at("sentence"), 0666), 0);
    const int status = in_child(become_nobody, NULL);
    assert_int_equal(chmod(home.path, 0755), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), CLEF_ERR_IO);
    shell("grep -q 'cannot be created: Permission denied; choose a target that you may write to' "
          "'%s'",
          at("sentence"));
    assert_not_there("killed.partial");
}

static void strange_files_in_the_partial_folder_are_not_touched(void **state) {
    (void)state;
    folder_make(&home, "mine.partial");
    folder_write(&home, "mine.partial/diary.txt", STR("dear"));
    folder_write(&home, "mine.partial/config.json", STR("{}"));
    refuses("src", "mine", CLEF_ERR_INPUT, "diary.txt: was not left by a conversion");
    assert_true(file_exists(at("mine.partial/diary.txt")));
    assert_true(file_exists(at("mine.partial/config.json")));
    folder_remove(at("mine.partial"));
}

static int convert_inside(void *user, size_t done, size_t total) {
    (void)done;
    (void)total;
    bool *tried = user;
    if (!*tried) refuses("src", "both", CLEF_ERR_INPUT, "another conversion is writing there");
    *tried = true;
    return 0;
}

static void two_conversions_to_one_target_are_refused(void **state) {
    (void)state;
    bool tried = false;
    const clef_convert_options o = {
        .model = at("src"), .out = at("both"), .progress = convert_inside, .user = &tried};
    assert_int_equal(clef_convert(&o, NULL, NULL), CLEF_OK);
    assert_true(tried);
    assert_same_folders("done", "both");
    folder_remove(at("both"));
}

/* The disk is full after 400,000 bytes of the shard. */
static void limit_files(void) {
    signal(SIGXFSZ, SIG_IGN);
    const struct rlimit limit = {400000, 400000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(99);
}

static void a_full_disk_is_told_and_the_same_command_goes_on(void **state) {
    (void)state;
    const int status = in_child(limit_files, NULL);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), CLEF_ERR_IO);
    shell("grep -q '" SHARD ".part: File too large after 400000 bytes; make room and give the same "
          "command again' '%s'",
          at("sentence"));
    assert_not_there("killed");
    assert_does_not_open("killed.partial");
    assert_int_equal(convert("src", "killed", NULL), CLEF_OK);
    assert_same_folders("done", "killed");
    folder_remove(at("killed"));
}

static void the_source_is_never_touched(void **state) {
    (void)state;
    shell("find '%s' -type f -exec stat -c '%%n %%Y %%Z %%s' {} + | sort > '%s'", at("src"),
          at("before"));
    assert_int_equal(convert("src", "touching", NULL), CLEF_OK);
    shell("find '%s' -exec stat -c '%%n %%Y %%Z %%s' {} + | sort | grep -v 'src [0-9]' | "
          "cmp - '%s'",
          at("src"), at("before"));
    folder_remove(at("touching"));
}

/* ---- sources and options ----------------------------------------------------------------------
 */

static void copy_folder(const char *from, const char *to) {
    shell("rm -rf '%s' && cp -r '%s' '%s'", at(to), at(from), at(to));
}

/* Byte `k` of a tensor's data in its file. */
static long offset_of(const char *model, const char *name, size_t k) {
    safetensors *st = NULL;
    open_model(&st, model);
    const long offset = shard_offset(st, name, k);
    safetensors_close(st);
    return offset;
}

static void put(const char *file, long offset, const void *bytes, size_t n) {
    shard_put(at(file), offset, bytes, n);
}

static void a_weight_that_is_no_number_is_named(void **state) {
    (void)state;
    copy_folder("src", "nan");
    const uint16_t bits = 0x7FC0;
    put("nan/model.safetensors", offset_of("nan", GATE_4, 2 * (5 * 64 + 3)), &bits, sizeof bits);
    refuses("nan", "out", CLEF_ERR_FORMAT,
            "'" GATE_4 "' holds a value in row 5 that is not finite");
    assert_not_there("out");
    shell("rm -rf '%s' '%s'", at("out.partial"), at("nan"));
}

static void a_converted_model_is_not_converted_again(void **state) {
    (void)state;
    refuses("done", "out", CLEF_ERR_INPUT, "is I8: the model is converted already");
    assert_not_there("out.partial");
}

static void wrong_options_are_refused(void **state) {
    (void)state;
    const char *lists[] = {"",     "8",  "0-8", "3-1", "0,", ",0",
                           "0--1", "-1", "a",   "0 ",  "0-", "99999999999"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        clef_error err = {0};
        const clef_convert_options o = {
            .model = at("src"), .out = at("out"), .layers_16bit = lists[i]};
        assert_int_equal(clef_convert(&o, NULL, &err), CLEF_ERR_INPUT);
        assert_says(&err, "is no list of layers such as 0-11 or 0,3,5-7 below 8");
    }
    clef_error err = {0};
    clef_convert_options o = {.model = at("src"), .out = at("out"), .layers_16bit = "0-7"};
    assert_int_equal(clef_convert(&o, NULL, &err), CLEF_ERR_INPUT);
    assert_says(&err, "nothing is left to convert");
    o = (clef_convert_options){.model = at("src"), .out = at("out"), .format = (clef_format)7};
    assert_int_equal(clef_convert(&o, NULL, &err), CLEF_ERR_INPUT);
    o.format = CLEF_FORMAT_INT8;
    o.layers_16bit = "0";
    assert_int_equal(clef_convert(&o, NULL, &err), CLEF_ERR_INPUT);
    assert_says(&err, "int8 has no 16-bit layers");
    o = (clef_convert_options){.model = at("src"), .out = at("out"), .jobs = 1025};
    assert_int_equal(clef_convert(&o, NULL, &err), CLEF_ERR_INPUT);
    o = (clef_convert_options){.model = at("src")};
    assert_int_equal(clef_convert(&o, NULL, &err), CLEF_ERR_INPUT);
    o = (clef_convert_options){.out = at("out")};
    assert_int_equal(clef_convert(&o, NULL, &err), CLEF_ERR_INPUT);
    assert_not_there("out.partial");
}

/* ---- converted folders that are not whole -----------------------------------------------------
 */

/* "bad" does not open, and info names the reason. */
static void assert_bad(clef_status status, const char *words) {
    clef_engine *e = NULL;
    clef_error err = {0};
    const clef_options o = {.model = at("bad")};
    assert_int_equal(clef_open(&e, &o, &err), status);
    char *text = NULL;
    int loads = 1;
    assert_int_equal(clef_info(&o, 0, &text, &loads, NULL), CLEF_OK);
    assert_false(loads);
    if (strstr(text, words) == NULL) fail_msg("'%s' is not in: %s", words, text);
    clef_text_free(text);
}

static void a_folder_cut_short_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *command, *words;
    } cuts[] = {
        {"rm bundle.json", "bundle.json is missing, and weights are codes"},
        {"rm " SHARD, SHARD},
        {"truncate -s -1 " SHARD, SHARD},
        {"rm model.safetensors.index.json", "model.safetensors"},
        {"rm tokenizer.json", "tokenizer.json"},
        {"truncate -s 1000 bundle.json", "bundle.json"},
        {"truncate -s 0 bundle.json", "bundle.json"},
    };
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        copy_folder("done", "bad");
        shell("cd '%s' && %s", at("bad"), cuts[i].command);
        clef_engine *e = NULL;
        clef_error err = {0};
        const clef_options o = {.model = at("bad")};
        assert_int_not_equal(clef_open(&e, &o, &err), CLEF_OK);
        assert_says(&err, cuts[i].words);
    }
}

static void a_flipped_byte_of_a_scale_is_found(void **state) {
    (void)state;
    copy_folder("done", "bad");
    flip_byte("bad/" SHARD, offset_of("bad", GATE_4 "_scale", 6));
    assert_bad(CLEF_ERR_FORMAT, "the content of tensor '" GATE_4 "_scale' is not the one");
}

static void a_flipped_byte_of_another_file_is_found(void **state) {
    (void)state;
    static const char *const files[] = {"bad/joint_head.safetensors", "bad/tokenizer.json"};
    for (size_t i = 0; i < 2; i++) {
        copy_folder("done", "bad");
        flip_byte(files[i], -2);
        assert_bad(CLEF_ERR_FORMAT, "its content is not the one that bundle.json lists");
    }
}

static void files_of_another_conversion_are_found(void **state) {
    (void)state;
    static const char *const files[] = {SHARD, "joint_head.safetensors", "bundle.json"};
    for (size_t i = 0; i < 3; i++) {
        copy_folder("done", "bad");
        shell("cp '%s/%s' '%s'", at("other-done"), files[i], at("bad"));
        assert_bad(CLEF_ERR_FORMAT, "comes from another conversion");
    }
    copy_folder("done", "bad");
    shell("cp " TESTDATA "toy-r1-tied/config.json '%s'", at("bad"));
    assert_bad(CLEF_ERR_FORMAT, "config.json");
}

static void a_bundle_of_another_version_is_refused(void **state) {
    (void)state;
    copy_folder("done", "bad");
    shell("sed -i 's/\"version\": 2/\"version\": 3/' '%s/bundle.json'", at("bad"));
    assert_bad(CLEF_ERR_UNSUPPORTED, "version 3, this program reads version 2");
    copy_folder("done", "bad");
    shell("sed -i 's/\"clef-bundle\"/\"bundle\"/' '%s/bundle.json'", at("bad"));
    assert_bad(CLEF_ERR_FORMAT, "format 'bundle', wanted 'clef-bundle'");
}

static void members_that_are_wrong_or_missing_are_named(void **state) {
    (void)state;
    static const struct {
        const char *edit, *words;
    } edits[] = {
        {"s/\"files\"/\"filles\"/", "'files' is missing or not an array"},
        {"s/\"modules\"/\"m\"/", "'modules' is missing or not an array"},
        {"s/\"quantisation\"/\"q\"/", "'modules' is missing or not an array"},
        {"s/\"version\": 2/\"version\": \"2\"/", "'version' is missing or not a whole number"},
        {"s/\"path\": \"config.json\"/\"path\": \"..\\/config.json\"/", "is no name of a file"},
        {"s/\"path\": \"config.json\"/\"path\": 3/", "'path' is missing or not a string"},
        {"s/\"bytes\": \\([0-9]*\\)/\"bytes\": \\11/", "bytes, bundle.json lists"},
        {"/up_proj/d", "does not list tensor 'model.language_model.layers.3.mlp.up_proj.weight'"},
        {"s/layers.5.mlp.up_proj/layers.0.mlp.up_proj/", "is no int8 weight with scales"},
    };
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        copy_folder("done", "bad");
        shell("sed -i '%s' '%s/bundle.json'", edits[i].edit, at("bad"));
        assert_bad(CLEF_ERR_FORMAT, edits[i].words);
    }
}

static void a_code_of_minus_128_is_refused(void **state) {
    (void)state;
    copy_folder("done", "bad");
    put("bad/" SHARD, offset_of("bad", GATE_4, 77), "\x80", 1);
    assert_bad(CLEF_ERR_FORMAT, "'" GATE_4 "' holds code -128 at value 77");
}

static void scales_that_are_not_positive_numbers_are_refused(void **state) {
    (void)state;
    static const struct {
        uint16_t bits;
        const char *words;
    } scales[] = {{0x0000, "holds 0 at value 3"},
                  {0x8000, "holds -0 at value 3"},
                  {0xBC00, "holds -1 at value 3"},
                  {0x7C00, "holds inf at value 3"},
                  {0x7E00, "holds nan at value 3"}};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        copy_folder("done", "bad");
        put("bad/" SHARD, offset_of("bad", GATE_4 "_scale", 6), &scales[i].bits, 2);
        assert_bad(CLEF_ERR_FORMAT, scales[i].words);
    }
}

static void a_wrong_number_of_blocks_is_refused(void **state) {
    (void)state;
    copy_folder("done", "bad");
    shell("sed -i 's/\\(\"" GATE_4
          "_scale\":{\"dtype\":\"F16\",\"shape\":\\[\\)96,2/\\12,96/' '%s/" SHARD "'",
          at("bad"));
    assert_bad(CLEF_ERR_FORMAT,
               "_scale' is F16 [2, 96], wanted F16 [96, 2]: a scale for each block");
    assert_bad(CLEF_ERR_FORMAT, "its header is not the one that bundle.json lists");
}

static void an_unknown_member_is_ignored(void **state) {
    (void)state;
    copy_folder("done", "bad");
    shell("sed -i 's/\"version\": 2/\"version\": 2, \"note\": [null]/' '%s/bundle.json'",
          at("bad"));
    clef_engine *e = NULL;
    const clef_options o = {.model = at("bad")};
    assert_int_equal(clef_open(&e, &o, NULL), CLEF_OK);
    clef_close(e);
}

/* ---- memory -----------------------------------------------------------------------------------
 */

/* Every fifth allocation of a conversion fails once; the leaks are the sanitizer's to find. */
static void memory_that_runs_out_is_told(void **state) {
    (void)state;
    clef_status s = CLEF_ERR_MEMORY;
    for (unsigned n = 1; s != CLEF_OK; n += 5) {
        clef_error err = {0};
        const clef_convert_options o = {.model = at("src"), .out = at("short"), .jobs = 1};
        oom_fail_at(n);
        s = clef_convert(&o, NULL, &err);
        oom_stop();
        if (s == CLEF_OK) break;
        assert_int_equal(s, CLEF_ERR_MEMORY);
        assert_not_there("short");
    }
    assert_same_folders("done", "short");
    folder_remove(at("short"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sums_hold_and_small_files_are_verbatim),
        cmocka_unit_test(first_layers_stay_and_the_others_become_int8),
        cmocka_unit_test(every_weight_is_within_half_a_step),
        cmocka_unit_test(big_tensors_are_aligned_to_cache_lines),
        cmocka_unit_test(the_bytes_do_not_depend_on_the_threads),
        cmocka_unit_test(layers_can_be_named),
        cmocka_unit_test(the_answer_has_the_same_bits_everywhere),
        cmocka_unit_test(the_answer_is_near_that_of_the_source),
        cmocka_unit_test(info_tells_format_bits_and_losses),
        cmocka_unit_test(a_cancelled_conversion_goes_on_to_the_same_bytes),
        cmocka_unit_test(a_killed_conversion_leaves_nothing_that_opens),
        cmocka_unit_test(a_finished_shard_is_taken_over_only_if_it_is_whole),
        cmocka_unit_test(what_another_conversion_left_is_not_taken_over),
        cmocka_unit_test(a_target_that_exists_is_left_alone),
        cmocka_unit_test(the_source_is_no_target),
        cmocka_unit_test(a_missing_parent_is_named),
        cmocka_unit_test(a_target_that_is_read_only_is_named),
        cmocka_unit_test(strange_files_in_the_partial_folder_are_not_touched),
        cmocka_unit_test(two_conversions_to_one_target_are_refused),
        cmocka_unit_test(a_full_disk_is_told_and_the_same_command_goes_on),
        cmocka_unit_test(the_source_is_never_touched),
        cmocka_unit_test(a_weight_that_is_no_number_is_named),
        cmocka_unit_test(a_converted_model_is_not_converted_again),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(a_folder_cut_short_is_refused),
        cmocka_unit_test(a_flipped_byte_of_a_scale_is_found),
        cmocka_unit_test(a_flipped_byte_of_another_file_is_found),
        cmocka_unit_test(files_of_another_conversion_are_found),
        cmocka_unit_test(a_bundle_of_another_version_is_refused),
        cmocka_unit_test(members_that_are_wrong_or_missing_are_named),
        cmocka_unit_test(a_code_of_minus_128_is_refused),
        cmocka_unit_test(scales_that_are_not_positive_numbers_are_refused),
        cmocka_unit_test(a_wrong_number_of_blocks_is_refused),
        cmocka_unit_test(an_unknown_member_is_ignored),
        cmocka_unit_test(memory_that_runs_out_is_told),
    };
    return cmocka_run_group_tests(tests, make_models, remove_models);
}
