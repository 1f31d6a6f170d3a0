/* tools/synth as its users run it: what it writes opens, binds, and is the same bytes again. */
#include <sys/wait.h>

#include "base/file.h"
#include "checkpoint/bind.h"
#include "tests/folder.h"

/* Runs synth with `arguments`; what it prints goes to DIR/log. Returns its exit status. */
static int run(const folder *f, const char *arguments) {
    char command[1200];
    snprintf(command, sizeof command,
             BUILD_DIR "tools/synth --tokenizer " TESTDATA
                       "toy-r2/tokenizer.json %s >> %s/log 2>&1",
             arguments, f->path);
    const int status = system(command); /* NOLINT(cert-env33-c): a fixed command of this test */
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void wrote(const folder *f, const char *options, const char *name) {
    char arguments[600];
    snprintf(arguments, sizeof arguments, "%s --out %s/%s", options, f->path, name);
    assert_int_equal(run(f, arguments), 0);
}

static buf contents(const folder *f, const char *name) {
    buf b = {0};
    clef_error err = {0};
    if (file_read(&b, folder_path(f, name), 1 << 24, &err) != CLEF_OK) fail_msg("%s", err.text);
    return b;
}

static bool same(const folder *f, const char *a, const char *b) {
    buf x = contents(f, a), y = contents(f, b);
    const bool equal = str_equal((str){x.p, x.n}, (str){y.p, y.n});
    buf_free(&x);
    buf_free(&y);
    return equal;
}

static void the_toy_opens_and_binds(void **state) {
    (void)state;
    const folder f = folder_new();
    wrote(&f, "--geometry toy", "toy");
    arena mem = {0};
    config cfg = {0}, source = {0};
    weights w = {0};
    safetensors *model = NULL, *head = NULL;
    assert_int_equal(config_load(&source, TESTDATA "toy-r2", &mem, NULL), CLEF_OK);
    assert_int_equal(config_load(&cfg, folder_path(&f, "toy"), &mem, NULL), CLEF_OK);
    assert_memory_equal(cfg.full, source.full, source.n_layers * sizeof *source.full);
    cfg.full = source.full;
    assert_int_equal(cfg.rms_eps == source.rms_eps && cfg.rope_theta == source.rope_theta, 1);
    assert_int_equal(cfg.rotary_dim, source.rotary_dim);
    assert_int_equal(cfg.hidden, source.hidden);
    assert_int_equal(cfg.head_feedforward, source.head_feedforward);
    assert_int_equal(safetensors_open_model(&model, folder_path(&f, "toy"), NULL), CLEF_OK);
    assert_int_equal(safetensors_open(&head, folder_path(&f, "toy/joint_head.safetensors"), NULL),
                     CLEF_OK);
    assert_int_equal(bind_weights(&w, model, head, &cfg, &mem, NULL), CLEF_OK);
    float least = 0, most = -1e9f; /* log of what is left of the state after a token, softplus(0) */
    for (uint32_t i = 0; i < cfg.n_layers; i++) {
        for (uint32_t h = 0; !w.layers[i].full && h < cfg.n_value_heads; h++) {
            const float log_left = w.layers[i].delta.decay[h] * 0.6931f;
            if (log_left < least) least = log_left;
            if (log_left > most) most = log_left;
        }
    }
    assert_true(least < -0.3f && most > -0.05f);
    safetensors_close(model);
    safetensors_close(head);
    arena_free(&mem);
    folder_remove(f.path);
}

static void the_same_options_give_the_same_bytes(void **state) {
    (void)state;
    const folder f = folder_new();
    wrote(&f, "--geometry toy", "a");
    wrote(&f, "--geometry toy", "b");
    wrote(&f, "--geometry toy --seed 1", "c");
    assert_true(same(&f, "a/model.safetensors", "b/model.safetensors"));
    assert_true(same(&f, "a/joint_head.safetensors", "b/joint_head.safetensors"));
    assert_true(same(&f, "a/config.json", "b/config.json"));
    assert_true(same(&f, "a/tokenizer.json", "b/tokenizer.json"));
    assert_false(same(&f, "a/model.safetensors", "c/model.safetensors"));
    assert_false(same(&f, "a/joint_head.safetensors", "c/joint_head.safetensors"));
    folder_remove(f.path);
}

static void layers_and_rows_can_be_cut(void **state) {
    (void)state;
    const folder f = folder_new();
    wrote(&f, "--geometry 0.8b --layers 1 --vocab 300", "cut");
    arena mem = {0};
    config cfg = {0};
    assert_int_equal(config_load(&cfg, folder_path(&f, "cut"), &mem, NULL), CLEF_OK);
    assert_int_equal(cfg.n_layers, 1);
    assert_int_equal(cfg.vocab, 300);
    assert_int_equal(cfg.hidden, 1024);
    arena_free(&mem);
    folder_remove(f.path);
}

static void a_tower_comes_where_it_is_asked_for(void **state) {
    (void)state;
    const folder f = folder_new();
    wrote(&f, "--geometry " TESTDATA "toy-vision --tower", "seeing");
    wrote(&f, "--geometry " TESTDATA "toy-vision", "blind");
    safetensors *seeing = NULL, *blind = NULL;
    assert_int_equal(safetensors_open_model(&seeing, folder_path(&f, "seeing"), NULL), CLEF_OK);
    assert_int_equal(safetensors_open_model(&blind, folder_path(&f, "blind"), NULL), CLEF_OK);
    assert_true(bind_has_tower(seeing));
    assert_false(bind_has_tower(blind));
    arena mem = {0};
    config cfg = {0};
    assert_int_equal(config_load(&cfg, folder_path(&f, "seeing"), &mem, NULL), CLEF_OK);
    assert_int_equal(config_load_vision(&cfg, folder_path(&f, "seeing"), &mem, NULL), CLEF_OK);
    assert_int_equal(cfg.vision.depth, 3);
    assert_int_equal(cfg.vision.side, 7);
    safetensors_close(seeing);
    safetensors_close(blind);
    arena_free(&mem);
    folder_remove(f.path);
}

static void a_folder_with_a_model_is_not_overwritten(void **state) {
    (void)state;
    const folder f = folder_new();
    wrote(&f, "--geometry toy", "a");
    char arguments[600];
    snprintf(arguments, sizeof arguments, "--geometry toy --seed 2 --out %s/a", f.path);
    assert_int_equal(run(&f, arguments), 2);
    buf log = contents(&f, "log");
    assert_non_null(strstr(log.p, "a/config.json: exists already"));
    buf_free(&log);
    folder_remove(f.path);
}

static void wrong_options_are_named(void **state) {
    (void)state;
    const struct {
        const char *arguments, *sentence;
    } wrong[] = {
        {"--geometry toy", "--out is missing"},
        {"--out x", "--geometry is missing"},
        {"--geometry 10b --out x", "testdata/checkpoint/10b"},
        {"--geometry toy --out x --layers 1x", "--layers: found '1x'"},
        {"--geometry toy --out x --vocab -1", "--vocab: found '-1'"},
        {"--geometry toy --out x --speed 3", "unknown option --speed"},
        {"--geometry toy --out", "--out: wanted a value"},
        {"--geometry toy x y", "two folders"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const folder f = folder_new();
        assert_int_equal(run(&f, wrong[i].arguments), 2);
        buf log = contents(&f, "log");
        if (strstr(log.p, wrong[i].sentence) == NULL) fail_msg("%s", log.p);
        buf_free(&log);
        folder_remove(f.path);
    }
    assert_false(file_exists("x"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_toy_opens_and_binds),
        cmocka_unit_test(the_same_options_give_the_same_bytes),
        cmocka_unit_test(layers_and_rows_can_be_cut),
        cmocka_unit_test(a_tower_comes_where_it_is_asked_for),
        cmocka_unit_test(a_folder_with_a_model_is_not_overwritten),
        cmocka_unit_test(wrong_options_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
