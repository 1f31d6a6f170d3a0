/* formats_test.c - the formats below int8mix from outside, on a toy whose widths are multiples of
 * 32: what is written, that answers have the same bits everywhere, what the gate makes of each on a
 * set that nothing was chosen by, sources of several shards, ends at random moments, and converted
 * folders that are no longer what they were. */
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "base/file.h"
#include "checkpoint/codes.h"
#include "checkpoint/safetensors.h"
#include "clef.h"
#include "compute/kernels.h"
#include "tests/folder.h"
#include "tests/shard.h"

#define TOY TESTDATA "gate/toy-blocks"
#define HELD_OUT TESTDATA "gate/toy-blocks-heldout.json"
#define SHARD "model-00001-of-00001.safetensors"
#define LAYER(i) "model.language_model.layers." #i "."

/* Everything stands in one folder; the toy in each format is made once. */
static folder home;

static const struct {
    const char *name;
    clef_format format;
    clef_tables tables;
    int accepted;
} formats[] = {
    {"int8mix", CLEF_FORMAT_INT8MIX, CLEF_TABLES_KEEP, 1},
    {"int8", CLEF_FORMAT_INT8, CLEF_TABLES_KEEP, 1},
    {"int6", CLEF_FORMAT_INT6, CLEF_TABLES_KEEP, 0},
    {"int4mix", CLEF_FORMAT_INT4MIX, CLEF_TABLES_KEEP, 0},
    {"int4", CLEF_FORMAT_INT4, CLEF_TABLES_KEEP, 0},
    {"tables", CLEF_FORMAT_INT8MIX, CLEF_TABLES_INT8, 0},
};
#define EACH_FORMAT(i) for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)

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

static clef_convert_options options_of(size_t format, const char *model, const char *out) {
    return (clef_convert_options){.model = model,
                                  .out = at(out),
                                  .format = formats[format].format,
                                  .tables = formats[format].tables,
                                  .jobs = 2};
}

static clef_convert_result convert(const clef_convert_options *o) {
    clef_convert_result r;
    clef_error err = {0};
    if (clef_convert(o, &r, &err) != CLEF_OK) fail_msg("%s", err.text);
    return r;
}

static int make_models(void **state) {
    (void)state;
    home = folder_new();
    EACH_FORMAT(i) {
        const clef_convert_options o = options_of(i, TOY, formats[i].name);
        convert(&o);
    }
    return 0;
}

static int remove_models(void **state) {
    (void)state;
    folder_remove(home.path);
    return 0;
}

static safetensors *open_weights(const char *path) {
    safetensors *st = NULL;
    clef_error err = {0};
    if (safetensors_open_model(&st, path, &err) != CLEF_OK) fail_msg("%s", err.text);
    return st;
}

static const tensor *scales_of(const safetensors *st, str name) {
    char scale[200];
    snprintf(scale, sizeof scale, "%.*s_scale", STR_ARG(name));
    return safetensors_find(st, str_of(scale));
}

static void assert_says(const clef_error *err, const char *words) {
    if (strstr(err->text, words) == NULL) fail_msg("'%s' does not say '%s'", err->text, words);
}

/* ---- what is written --------------------------------------------------------------------------
 */

/* A weight that is not at the end of the range is within half a step of what it became. */
static void check_codes(str name, const tensor *source, const tensor *codes, const tensor *scales) {
    const dtype type = codes_of(codes, source->shape[1]);
    const int most = (1 << (dtype_bits(type) - 1)) - 1;
    const size_t n = source->bytes / 2;
    for (size_t i = 0; i < n; i++) {
        int8_t block[INT8_BLOCK];
        float w, scale;
        codes_unpack(block, type, codes->data, i / INT8_BLOCK);
        tensor_to_float(&w, source->type, source->data, i, 1);
        tensor_to_float(&scale, DTYPE_F16, scales->data, i / INT8_BLOCK, 1);
        const float code = (float)block[i % INT8_BLOCK], end = (float)most;
        const float off = fabsf(w - code * scale);
        const bool clipped = fabsf(code) == end && fabsf(w) > end * scale;
        if (fabsf(code) > end || (!clipped && !(off <= 0.501f * scale)))
            fail_msg("%.*s: value %zu is %g, code %g of scale %g", STR_ARG(name), i, (double)w,
                     (double)code, (double)scale);
    }
}

static void every_weight_is_near_its_code_or_untouched(void **state) {
    (void)state;
    safetensors *source = open_weights(TOY);
    EACH_FORMAT(f) {
        safetensors *done = open_weights(at(formats[f].name));
        for (uint32_t i = 0; i < safetensors_count(source); i++) {
            const safetensors_entry e = safetensors_at(source, i);
            const tensor *t = safetensors_find(done, e.name), *scales = scales_of(done, e.name);
            assert_non_null(t);
            if (scales != NULL) {
                check_codes(e.name, e.tensor, t, scales);
            } else {
                assert_int_equal(t->type, e.tensor->type);
                assert_memory_equal(t->data, e.tensor->data, t->bytes);
            }
        }
        safetensors_close(done);
    }
    safetensors_close(source);
}

/* The type of a weight of the folder `name`. */
static dtype type_in(const char *name, const char *weight, uint64_t n_in) {
    safetensors *st = open_weights(at(name));
    const dtype type = codes_of(safetensors_find(st, str_of(weight)), n_in);
    safetensors_close(st);
    return type;
}

static void a_mixed_format_keeps_its_budget_and_gives_more_to_the_first_layers(void **state) {
    (void)state;
    static const struct {
        const char *name;
        clef_format format;
        double budget;
        dtype narrowest;
    } mixed[] = {{"int6", CLEF_FORMAT_INT6, 7.5, DTYPE_INT6},
                 {"int4mix", CLEF_FORMAT_INT4MIX, 5.5, DTYPE_INT4}};
    for (size_t i = 0; i < 2; i++) {
        const clef_convert_options o = {
            .model = TOY, .out = at("again"), .format = mixed[i].format};
        const clef_convert_result r = convert(&o);
        assert_true(r.bits_per_weight <= mixed[i].budget);
        assert_true(r.bits_per_weight > mixed[i].budget - 0.5);
        assert_int_equal(r.n_linears, 62);
        assert_int_equal(r.n_converted, 50); /* the gates of six layers stay */
        const dtype first = type_in("again", LAYER(0) "linear_attn.out_proj.weight", 64);
        const dtype last = type_in("again", LAYER(7) "mlp.down_proj.weight", 96);
        assert_int_equal(last, mixed[i].narrowest);
        assert_true(dtype_bits(first) > dtype_bits(last));
        assert_int_equal(type_in("again", LAYER(4) "linear_attn.in_proj_a.weight", 64), DTYPE_BF16);
        folder_remove(at("again"));
    }
}

static void layers_of_a_mixed_format_can_stay_at_16_bit(void **state) {
    (void)state;
    const clef_convert_options o = {
        .model = TOY, .out = at("kept"), .format = CLEF_FORMAT_INT4MIX, .layers_16bit = "0-2,7"};
    convert(&o);
    assert_int_equal(type_in("kept", LAYER(1) "mlp.up_proj.weight", 64), DTYPE_BF16);
    assert_int_equal(type_in("kept", LAYER(7) "mlp.down_proj.weight", 96), DTYPE_BF16);
    assert_true(codes_type(type_in("kept", LAYER(5) "mlp.up_proj.weight", 64)));
    folder_remove(at("kept"));
}

static void tables_become_int8_only_when_asked(void **state) {
    (void)state;
    static const char *const tables[] = {"lm_head.weight",
                                         "model.language_model.embed_tokens.weight"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(type_in("tables", tables[i], 64), DTYPE_I8);
        assert_int_equal(type_in("int8mix", tables[i], 64), DTYPE_BF16);
        assert_int_equal(type_in("int4mix", tables[i], 64), DTYPE_BF16);
    }
}

static void the_bytes_do_not_depend_on_the_threads(void **state) {
    (void)state;
    EACH_FORMAT(i) {
        for (unsigned jobs = 1; jobs <= 5; jobs += 2) {
            clef_convert_options o = options_of(i, TOY, "threads");
            o.jobs = jobs;
            convert(&o);
            shell("diff -r '%s' '%s' >&2", at(formats[i].name), at("threads"));
            folder_remove(at("threads"));
        }
    }
}

static void the_result_tells_sizes_bits_and_the_worst_matrix(void **state) {
    (void)state;
    const clef_convert_options o = options_of(4, TOY, "told");
    const clef_convert_result r = convert(&o);
    char command[700], line[64] = "";
    snprintf(command, sizeof command, "cat '%s'/* | wc -c", at("told"));
    FILE *p = popen(command, "r"); /* NOLINT(cert-env33-c): the test's own command */
    assert_non_null(p);
    assert_non_null(fgets(line, sizeof line, p));
    pclose(p);
    assert_int_equal(r.written_bytes, strtoull(line, NULL, 10));
    assert_true(r.source_bytes > r.written_bytes);
    assert_true(r.bits_per_weight == 4.5 && r.n_converted == 62 && r.n_linears == 62);
    assert_true(r.relative_error > 0.05 && r.relative_error < r.worst_error);
    safetensors *source = open_weights(TOY);
    assert_non_null(safetensors_find(source, str_of(r.worst)));
    safetensors_close(source);
    folder_remove(at("told"));
}

static void info_tells_bits_and_losses(void **state) {
    (void)state;
    static const char *const words[] = {"\nformat             int4mix\n",
                                        "\n  tables           16bit\n",
                                        "\nconverted weights  ",
                                        " int8, ",
                                        " int6, ",
                                        " int4\n",
                                        "\n  lost at most     0.",
                                        "\nbits by layer      0"};
    char *text = NULL;
    int loads = 0;
    const clef_options o = {.model = at("int4mix")};
    assert_int_equal(clef_info(&o, 0, &text, &loads, NULL), CLEF_OK);
    assert_true(loads);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(text, words[i]) == NULL) fail_msg("'%s' is not in: %s", words[i], text);
    clef_text_free(text);
}

/* ---- answering --------------------------------------------------------------------------------
 */

static const char body[] =
    "{\"model\":\"m\",\"state\":\"The shop is closed on Sunday and nobody answered at 14:30.\","
    "\"questions\":{\"open\":{\"type\":\"noul\"},\"queue\":{\"type\":\"choice\",\"criteria\":"
    "{\"tech\":\"Faults\",\"billing\":\"Charges\",\"other\":null}},"
    "\"urgency\":{\"type\":\"score\",\"criteria\":[\"This week\",\"Tomorrow\",\"Today\"]}}}";

static clef_engine *open_engine(const clef_options *o) {
    clef_engine *e = NULL;
    clef_error err = {0};
    if (clef_open(&e, o, &err) != CLEF_OK) fail_msg("%s", err.text);
    return e;
}

static clef_answer *answer(clef_engine *e) {
    clef_answer *a = NULL;
    clef_error err = {0};
    if (clef_ask(e, NULL, body, strlen(body), &a, &err) != CLEF_OK) fail_msg("%s", err.text);
    return a;
}

static bool same_bits(const clef_answer *a, const clef_answer *b) {
    size_t n = 0, m = 0;
    const clef_option *x = clef_answer_options(a, &n), *y = clef_answer_options(b, &m);
    assert_true(n == m && n == 8);
    float logits[2][8];
    for (size_t i = 0; i < n; i++) {
        logits[0][i] = x[i].logit;
        logits[1][i] = y[i].logit;
    }
    return memcmp(logits[0], logits[1], n * sizeof(float)) == 0;
}

/* One engine answers the body alone or between two others. */
static void check_answer(const clef_options *o, bool company, const clef_answer *reference) {
    static const char other[] =
        "{\"model\":\"m\",\"state\":1,\"questions\":{\"q\":{\"type\":\"noul\"}}}";
    const clef_request batch[3] = {
        {other, strlen(other)}, {body, strlen(body)}, {other, strlen(other)}};
    clef_answer *out[3] = {0};
    clef_engine *e = open_engine(o);
    assert_int_equal(
        clef_ask_batch(e, NULL, company ? batch : batch + 1, company ? 3 : 1, out, NULL), CLEF_OK);
    if (!same_bits(out[company], reference))
        fail_msg("%s, precision %d, table %s, %u threads, chunk %u%s: other bits", o->model,
                 (int)o->precision, o->kernels, o->threads, o->chunk,
                 company ? ", in a batch" : "");
    for (int i = 0; i < 3; i++) clef_answer_free(out[i]);
    clef_close(e);
}

/* Every table of this processor, with every way to cut the work; the scalar table, which is slow,
 * with the last of them. */
static void check_bits(const char *model, clef_precision precision) {
    static const struct {
        unsigned threads;
        uint32_t chunk;
        bool company;
    } ways[] = {{1, 1, false}, {2, 512, false}, {2, 64, true},
                {3, 7, true},  {1, 512, true},  {2, 33, true}};
    enum { N_WAYS = sizeof ways / sizeof *ways };
    clef_options o = {.model = model, .threads = 1, .chunk = 512, .precision = precision};
    clef_engine *e = open_engine(&o);
    clef_answer *reference = answer(e);
    clef_close(e);
    const kernel_table *table;
    for (size_t t = 0; (table = kernels_at(t)) != NULL; t++)
        for (size_t i = table == &kernels_scalar ? N_WAYS - 1 : 0; i < N_WAYS; i++) {
            o.kernels = table->name;
            o.threads = ways[i].threads;
            o.chunk = ways[i].chunk;
            check_answer(&o, ways[i].company, reference);
        }
    clef_answer_free(reference);
}

static void every_format_answers_with_the_same_bits_everywhere(void **state) {
    (void)state;
    check_bits(TOY, CLEF_PRECISION_EXACT);
    EACH_FORMAT(i) check_bits(at(formats[i].name), CLEF_PRECISION_EXACT);
}

static void fast_answers_of_every_format_have_the_same_bits_everywhere(void **state) {
    (void)state;
    EACH_FORMAT(i) check_bits(at(formats[i].name), CLEF_PRECISION_FAST);
}

static void the_gate_accepts_int8_and_refuses_what_is_narrower(void **state) {
    (void)state;
    static const char *const fixture = HELD_OUT;
    EACH_FORMAT(i) {
        clef_engine *e = open_engine(&(clef_options){.model = at(formats[i].name), .threads = 2});
        int holds = -1;
        char *table = NULL, *report = NULL;
        clef_error err = {0};
        if (clef_gate(e, NULL, &fixture, 1, &holds, &table, &report, &err) != CLEF_OK)
            fail_msg("%s", err.text);
        if (holds != formats[i].accepted)
            fail_msg("%s: holds is %d, wanted %d: %s", formats[i].name, holds, formats[i].accepted,
                     table);
        clef_text_free(table);
        clef_text_free(report);
        clef_close(e);
    }
}

static void the_weights_as_recorded_pass_and_red_arms_are_caught(void **state) {
    (void)state;
    static const char *const fixture = HELD_OUT;
    clef_engine *e = open_engine(&(clef_options){.model = TOY, .threads = 2});
    int holds = 0;
    char *table = NULL, *report = NULL;
    const clef_gate_options o = {.red = 1};
    assert_int_equal(clef_gate(e, &o, &fixture, 1, &holds, &table, &report, NULL), CLEF_OK);
    if (!holds) fail_msg("%s", table);
    clef_text_free(table);
    clef_text_free(report);
    clef_close(e);
}

/* ---- sources of several shards ----------------------------------------------------------------
 */

/* One shard with the tensors i, i + step, ... of the toy; its names are added to the index. */
static void write_part(const safetensors *st, uint32_t first, uint32_t step, const char *file,
                       buf *index) {
    buf header = {0}, data = {0}, out = {0};
    buf_add_text(&header, "{");
    for (uint32_t i = first; i < safetensors_count(st); i += step) {
        const safetensors_entry e = safetensors_at(st, i);
        const size_t begin = data.n;
        buf_add(&data, e.tensor->data, e.tensor->bytes);
        buf_printf(&header, "%s\"%.*s\":{\"dtype\":\"%s\",\"shape\":[", i == first ? "" : ",",
                   STR_ARG(e.name), dtype_name(e.tensor->type));
        for (uint32_t d = 0; d < e.tensor->rank; d++)
            buf_printf(&header, "%s%llu", d == 0 ? "" : ",",
                       (unsigned long long)e.tensor->shape[d]);
        buf_printf(&header, "],\"data_offsets\":[%zu,%zu]}", begin, data.n);
        buf_printf(index, "%s\"%.*s\":\"%s\"", index->p[index->n - 1] == '{' ? "" : ",",
                   STR_ARG(e.name), file);
    }
    buf_add_text(&header, "}");
    for (int i = 0; i < 8; i++) buf_add_char(&out, (char)((uint64_t)header.n >> 8 * i & 255));
    buf_add(&out, header.p, header.n);
    buf_add(&out, data.p, data.n);
    char name[64];
    snprintf(name, sizeof name, "parts/%s", file);
    folder_write(&home, name, (str){out.p, out.n});
    buf_free(&header);
    buf_free(&data);
    buf_free(&out);
}

static void a_source_of_several_shards_gives_the_same_weights(void **state) {
    (void)state;
    shell("mkdir '%s' && cp " TOY "/*.json " TOY "/joint_head.safetensors '%s'", at("parts"),
          at("parts"));
    safetensors *st = open_weights(TOY);
    buf index = {0};
    buf_add_text(&index, "{\"weight_map\":{");
    write_part(st, 0, 3, "model-00001-of-00003.safetensors", &index);
    write_part(st, 1, 3, "model-00002-of-00003.safetensors", &index);
    write_part(st, 2, 3, "model-00003-of-00003.safetensors", &index);
    buf_add_text(&index, "}}");
    folder_write(&home, "parts/model.safetensors.index.json", (str){index.p, index.n});
    buf_free(&index);
    safetensors_close(st);
    const clef_convert_options o = options_of(3, at("parts"), "whole");
    convert(&o);
    safetensors *one = open_weights(at("int4mix")), *other = open_weights(at("whole"));
    assert_int_equal(safetensors_count(one), safetensors_count(other));
    for (uint32_t i = 0; i < safetensors_count(one); i++) {
        const safetensors_entry a = safetensors_at(one, i);
        const tensor *b = safetensors_find(other, a.name);
        assert_non_null(b);
        assert_int_equal(a.tensor->bytes, b->bytes);
        assert_memory_equal(a.tensor->data, b->data, b->bytes);
    }
    safetensors_close(one);
    safetensors_close(other);
}

/* ---- ending at random moments -----------------------------------------------------------------
 */

static void sleep_us(long us) {
    const struct timespec t = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

/* A child is killed after a while that grows past what a whole conversion takes; all over again
 * when it was quicker than this process to be woken. */
static void a_conversion_killed_at_any_moment_goes_on_to_the_same_bytes(void **state) {
    (void)state;
    unsigned n_killed = 0;
    for (long us = 500; !file_exists(at("killed")); us += us / 4) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            const clef_convert_options o = options_of(3, TOY, "killed");
            _exit(clef_convert(&o, NULL, NULL) == CLEF_OK ? 0 : 1);
        }
        sleep_us(us);
        kill(child, SIGKILL);
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
        n_killed += WIFSIGNALED(status);
        assert_true(us < 60000000); /* it never ends */
        if (file_exists(at("killed")) && n_killed < 3) {
            shell("rm -r '%s'", at("killed"));
            us = 400;
            continue;
        }
        if (file_exists(at("killed"))) break;
        clef_engine *e = NULL;
        const clef_options o = {.model = at("killed.partial")};
        if (clef_open(&e, &o, NULL) == CLEF_OK) /* between its last file and its name */
            shell("cd '%s' && for f in *.json *.safetensors; do cmp $f ../killed.partial/$f || "
                  "exit 1; done",
                  at("int4mix"));
        clef_close(e);
    }
    shell("diff -r '%s' '%s' >&2", at("int4mix"), at("killed"));
}

/* ---- folders that are no longer what they were ------------------------------------------------
 */

/* Byte `k` of a tensor's data in the shard. */
static long offset_of(const char *model, const char *name, size_t k) {
    safetensors *st = open_weights(at(model));
    const long offset = shard_offset(st, name, k);
    safetensors_close(st);
    return offset;
}

static void put(const char *name, long offset, const void *bytes, size_t n) {
    shard_put(at(name), offset, bytes, n);
}

static void copy_to_bad(const char *from) {
    shell("rm -rf '%s' && cp -r '%s' '%s'", at("bad"), at(from), at("bad"));
}

/* "bad" does not open, and info names the reason: more than one thing may be wrong at once. */
static void assert_bad(const char *words) {
    clef_engine *e = NULL;
    const clef_options o = {.model = at("bad")};
    assert_int_equal(clef_open(&e, &o, NULL), CLEF_ERR_FORMAT);
    char *text = NULL;
    int loads = 1;
    assert_int_equal(clef_info(&o, 0, &text, &loads, NULL), CLEF_OK);
    assert_false(loads);
    if (strstr(text, words) == NULL) fail_msg("'%s' is not in: %s", words, text);
    clef_text_free(text);
}

#define DOWN_5 LAYER(5) "mlp.down_proj.weight"

static void codes_beyond_the_range_are_refused(void **state) {
    (void)state;
    copy_to_bad("int4");
    put("bad/" SHARD, offset_of("bad", DOWN_5, 16 + 3), "\x0F", 1); /* code 51 is stored as 0 */
    assert_bad("'" DOWN_5 "' holds code -8 at value 51, wanted -7 to 7");
    copy_to_bad("int6");
    put("bad/" SHARD, offset_of("bad", DOWN_5, 24 + 3), "\x50", 1); /* low bits of code 35 */
    put("bad/" SHARD, offset_of("bad", DOWN_5, 24 + 16 + 3), "\x54", 1);
    assert_bad("'" DOWN_5 "' holds code -32 at value 35, wanted -31 to 31");
}

static void scales_that_are_not_positive_numbers_are_refused(void **state) {
    (void)state;
    static const struct {
        uint16_t bits;
        const char *words;
    } scales[] = {{0x0000, "holds 0 at value 4"},
                  {0x8000, "holds -0 at value 4"},
                  {0xBC00, "holds -1 at value 4"},
                  {0x7C00, "holds inf at value 4"},
                  {0x7E00, "holds nan at value 4"}};
    static const char *const models[] = {"int6", "int4"};
    for (size_t m = 0; m < 2; m++)
        for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
            copy_to_bad(models[m]);
            put("bad/" SHARD, offset_of("bad", DOWN_5 "_scale", 8), &scales[i].bits, 2);
            assert_bad(scales[i].words);
        }
}

/* The first byte of a tensor of "bad". */
static void flip_byte(const char *name) {
    const long offset = offset_of("bad", name, 0);
    FILE *f = fopen(at("bad/" SHARD), "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, offset, SEEK_SET), 0);
    const unsigned char flipped = (unsigned char)(fgetc(f) ^ 1);
    fclose(f);
    put("bad/" SHARD, offset, &flipped, 1);
}

static void a_flipped_byte_of_a_scale_is_found(void **state) {
    (void)state;
    static const char *const models[] = {"int6", "int4", "int4mix"};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        copy_to_bad(models[m]);
        flip_byte(DOWN_5 "_scale");
        assert_bad("the content of tensor '" DOWN_5 "_scale' is not the one");
    }
    copy_to_bad("tables");
    flip_byte("lm_head.weight_scale");
    assert_bad("the content of tensor 'lm_head.weight_scale' is not the one");
}

/* Rows and blocks of a tensor change places in the header. */
static void swap_shape(const char *name, const char *dtype_text, int rows, int blocks) {
    shell("sed -i 's/\\(\"%s\":{\"dtype\":\"%s\",\"shape\":\\[\\)%d,%d/\\1%d,%d/' '%s/" SHARD "'",
          name, dtype_text, rows, blocks, blocks, rows, at("bad"));
}

static void a_wrong_number_of_blocks_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *model;
        int bytes; /* of a row: 3 blocks of 16 or 24 */
    } kinds[] = {{"int4", 48}, {"int6", 72}};
    for (size_t k = 0; k < 2; k++) {
        char words[200];
        copy_to_bad(kinds[k].model);
        swap_shape(DOWN_5, "U8", 64, kinds[k].bytes);
        snprintf(words, sizeof words, "'" DOWN_5 "' has shape [%d, 64], wanted [64, 96]",
                 kinds[k].bytes);
        assert_bad(words);
        copy_to_bad(kinds[k].model);
        swap_shape(DOWN_5 "_scale", "F16", 64, 3);
        assert_bad("_scale' is F16 [3, 64], wanted F16 [64, 3]: a scale for each block");
    }
}

static void a_folder_cut_short_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *command, *words;
    } cuts[] = {
        {"rm bundle.json", "bundle.json is missing, and weights are codes"},
        {"truncate -s 1000 bundle.json", "bundle.json"},
        {"rm " SHARD, SHARD},
        {"truncate -s -1 " SHARD, SHARD},
        {"rm model.safetensors.index.json", "model.safetensors"},
    };
    static const char *const models[] = {"int6", "int4", "int4mix", "tables"};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
            copy_to_bad(models[m]);
            shell("cd '%s' && %s", at("bad"), cuts[i].command);
            clef_engine *e = NULL;
            clef_error err = {0};
            const clef_options o = {.model = at("bad")};
            assert_int_not_equal(clef_open(&e, &o, &err), CLEF_OK);
            assert_says(&err, cuts[i].words);
        }
}

static void a_bundle_of_another_version_is_refused(void **state) {
    (void)state;
    static const char *const models[] = {"int6", "int4"};
    for (size_t m = 0; m < 2; m++) {
        copy_to_bad(models[m]);
        shell("sed -i 's/\"version\": 2/\"version\": 1/' '%s/bundle.json'", at("bad"));
        clef_engine *e = NULL;
        clef_error err = {0};
        const clef_options o = {.model = at("bad")};
        assert_int_equal(clef_open(&e, &o, &err), CLEF_ERR_UNSUPPORTED);
        assert_says(&err, "version 1, this program reads version 2: convert the model again");
    }
}

/* The other model differs in a bit of one weight. */
static void files_of_another_model_in_the_same_format_are_found(void **state) {
    (void)state;
    shell("cp -r " TOY " '%s'", at("neighbour"));
    safetensors *st = open_weights(TOY);
    const long offset = shard_offset(st, DOWN_5, 0);
    const unsigned char *first = safetensors_find(st, str_of(DOWN_5))->data;
    const unsigned char flipped = (unsigned char)(*first ^ 1);
    safetensors_close(st);
    put("neighbour/model.safetensors", offset, &flipped, 1);
    EACH_FORMAT(i) {
        const clef_convert_options o = options_of(i, at("neighbour"), "neighbours");
        convert(&o);
        static const char *const files[] = {SHARD, "bundle.json"};
        for (size_t f = 0; f < 2; f++) {
            copy_to_bad(formats[i].name);
            shell("cp '%s/%s' '%s'", at("neighbours"), files[f], at("bad"));
            assert_bad("its header is not the one that bundle.json lists: the file was changed, "
                       "damaged, or comes from another conversion");
        }
        folder_remove(at("neighbours"));
    }
}

static void a_format_that_the_weight_does_not_have_is_refused(void **state) {
    (void)state;
    copy_to_bad("int4");
    shell("sed -i '/" DOWN_5 "/s/\"format\": \"int4\"/\"format\": \"int6\"/' '%s/bundle.json'",
          at("bad"));
    assert_bad("'" DOWN_5 "' is no int6 weight with scales, bundle.json lists it as one");
}

static void a_shard_of_another_format_is_found(void **state) {
    (void)state;
    copy_to_bad("int4mix");
    shell("cp '%s/" SHARD "' '%s/model.safetensors.index.json' '%s'", at("int4"), at("int4"),
          at("bad"));
    assert_bad(SHARD ": 420448 bytes, bundle.json lists ");
    copy_to_bad("int4mix");
    shell("cp '%s/bundle.json' '%s'", at("int6"), at("bad"));
    assert_bad(SHARD ": ");
}

static void what_is_converted_is_not_converted_again(void **state) {
    (void)state;
    const clef_convert_options o = options_of(0, at("int4"), "twice");
    clef_error err = {0};
    assert_int_equal(clef_convert(&o, NULL, &err), CLEF_ERR_INPUT);
    assert_says(&err, "is U8: the model is converted already");
    assert_false(file_exists(at("twice.partial")));
}

static void uniform_formats_have_no_16_bit_layers(void **state) {
    (void)state;
    clef_convert_options o = options_of(4, TOY, "none");
    clef_error err = {0};
    o.layers_16bit = "0";
    assert_int_equal(clef_convert(&o, NULL, &err), CLEF_ERR_INPUT);
    assert_says(&err, "int4 has no 16-bit layers, int4mix has");
    o = options_of(0, TOY, "none");
    o.tables = (clef_tables)2;
    assert_int_equal(clef_convert(&o, NULL, &err), CLEF_ERR_INPUT);
    assert_says(&err, "tables: 2, wanted 0 or 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_weight_is_near_its_code_or_untouched),
        cmocka_unit_test(a_mixed_format_keeps_its_budget_and_gives_more_to_the_first_layers),
        cmocka_unit_test(layers_of_a_mixed_format_can_stay_at_16_bit),
        cmocka_unit_test(tables_become_int8_only_when_asked),
        cmocka_unit_test(the_bytes_do_not_depend_on_the_threads),
        cmocka_unit_test(the_result_tells_sizes_bits_and_the_worst_matrix),
        cmocka_unit_test(info_tells_bits_and_losses),
        cmocka_unit_test(every_format_answers_with_the_same_bits_everywhere),
        cmocka_unit_test(fast_answers_of_every_format_have_the_same_bits_everywhere),
        cmocka_unit_test(the_gate_accepts_int8_and_refuses_what_is_narrower),
        cmocka_unit_test(the_weights_as_recorded_pass_and_red_arms_are_caught),
        cmocka_unit_test(a_source_of_several_shards_gives_the_same_weights),
        cmocka_unit_test(a_conversion_killed_at_any_moment_goes_on_to_the_same_bytes),
        cmocka_unit_test(codes_beyond_the_range_are_refused),
        cmocka_unit_test(scales_that_are_not_positive_numbers_are_refused),
        cmocka_unit_test(a_flipped_byte_of_a_scale_is_found),
        cmocka_unit_test(a_wrong_number_of_blocks_is_refused),
        cmocka_unit_test(a_folder_cut_short_is_refused),
        cmocka_unit_test(a_bundle_of_another_version_is_refused),
        cmocka_unit_test(files_of_another_model_in_the_same_format_are_found),
        cmocka_unit_test(a_format_that_the_weight_does_not_have_is_refused),
        cmocka_unit_test(a_shard_of_another_format_is_found),
        cmocka_unit_test(what_is_converted_is_not_converted_again),
        cmocka_unit_test(uniform_formats_have_no_16_bit_layers),
    };
    return cmocka_run_group_tests(tests, make_models, remove_models);
}
