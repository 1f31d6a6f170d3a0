/* scan_test.c - a toy checkpoint with numbers that are not finite. */
#include "clef.h"

#include "tests/folder.h"

#include "base/file.h"
#include "checkpoint/safetensors.h"

#define TOY TESTDATA "toy-r2/"

static const char *const names[] = {
    "config.json",       "joint_head.safetensors", "joint_head_config.json",
    "model.safetensors", "tokenizer.json",         "tokenizer_config.json"};

static folder toy_copy(void) {
    folder f = folder_new();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        buf path = {0}, bytes = {0};
        clef_error err = {0};
        buf_printf(&path, TOY "%s", names[i]);
        if (file_read(&bytes, path.p, 1 << 26, &err) != CLEF_OK) fail_msg("%s", err.text);
        folder_write(&f, names[i], (str){bytes.p, bytes.n});
        buf_free(&path);
        buf_free(&bytes);
    }
    return f;
}

/* Where the values of a tensor begin in its file. */
static long offset_of(const char *path, const char *name) {
    safetensors *st = NULL;
    file_map map = {0};
    clef_error err = {0};
    if (safetensors_open(&st, path, &err) != CLEF_OK) fail_msg("%s", err.text);
    const tensor *t = safetensors_find(st, str_of(name));
    assert_non_null(t);
    /* The data area ends the file; the last tensor ends the data area. */
    const char *end = NULL;
    for (uint32_t i = 0; i < safetensors_count(st); i++) {
        const tensor *other = safetensors_at(st, i).tensor;
        const char *its = (const char *)other->data + other->bytes;
        if (end == NULL || its > end) end = its;
    }
    assert_int_equal(file_map_open(&map, path, &err), CLEF_OK);
    const long at = (long)map.n - (long)(end - (const char *)t->data);
    file_unmap(&map);
    safetensors_close(st);
    return at;
}

/* Overwrites value `i` of a BF16 tensor. */
static void put(const folder *f, const char *file, const char *name, long i, uint16_t bits) {
    char path[1024];
    snprintf(path, sizeof path, "%s", folder_path(f, file));
    const long at = offset_of(path, name) + 2 * i;
    FILE *out = fopen(path, "r+b");
    assert_non_null(out);
    assert_int_equal(fseek(out, at, SEEK_SET), 0);
    assert_int_equal(fwrite(&bits, 2, 1, out), 1);
    assert_int_equal(fclose(out), 0);
}

typedef struct {
    unsigned n, steps;
    int stop;
    char text[4096];
} heard;

static void hear(void *user, const char *sentence) {
    heard *h = user;
    h->n++;
    const size_t n = strlen(h->text);
    snprintf(h->text + n, sizeof h->text - n, "%s\n", sentence);
}

static int step(void *user, size_t done, size_t total) {
    heard *h = user;
    h->steps++;
    if (done > total) h->stop = 1; /* no assertion: another thread may be calling */
    return h->stop;
}

static clef_status scan(const char *dir, unsigned jobs, heard *h, int *sound) {
    const clef_options options = {.model = dir, .threads = 1};
    const clef_scan_options o = {.jobs = jobs, .progress = step, .finding = hear, .user = h};
    clef_error err = {0};
    const clef_status s = clef_scan(&options, &o, sound, &err);
    if (s != CLEF_OK && s != CLEF_ERR_CANCELLED) fail_msg("%s", err.text);
    return s;
}

static void a_good_model_is_sound(void **state) {
    (void)state;
    for (unsigned jobs = 0; jobs < 4; jobs++) {
        heard h = {0};
        int sound = 0;
        assert_int_equal(scan(TOY, jobs, &h, &sound), CLEF_OK);
        assert_string_equal(h.text, "");
        assert_int_equal(sound, 1);
        assert_true(h.steps > 0);
    }
}

static void tensors_with_nan_and_infinity_are_named(void **state) {
    (void)state;
    folder f = toy_copy();
    /* up_proj is [100, 60], the head's norm [44] */
    put(&f, "model.safetensors", "model.language_model.layers.3.mlp.up_proj.weight", 2 * 60 + 7,
        0x7fc1);
    put(&f, "model.safetensors", "model.language_model.layers.3.mlp.up_proj.weight", 3 * 60 + 9,
        0x7f80);
    put(&f, "joint_head.safetensors", "option_norm.weight", 43, 0xff80);
    for (unsigned jobs = 1; jobs < 3; jobs++) {
        heard h = {0};
        int sound = 1;
        assert_int_equal(scan(f.path, jobs, &h, &sound), CLEF_OK);
        assert_int_equal(sound, 0);
        assert_int_equal(h.n, 2);
        static const char *const wanted[] = {
            "model.safetensors: tensor 'model.language_model.layers.3.mlp.up_proj.weight' has 2 "
            "numbers that are not finite, the first at [2, 7]: NaN",
            "joint_head.safetensors: tensor 'option_norm.weight' has 1 number that is not finite, "
            "the first at [43]: infinity"};
        for (size_t i = 0; i < 2; i++)
            if (strstr(h.text, wanted[i]) == NULL) fail_msg("%s\nwanted: %s", h.text, wanted[i]);
    }
    folder_remove(f.path);
}

static void the_largest_finite_numbers_are_sound(void **state) {
    (void)state;
    folder f = toy_copy();
    put(&f, "joint_head.safetensors", "option_norm.weight", 0, 0x7f7f);
    put(&f, "joint_head.safetensors", "option_norm.weight", 1, 0xff7f);
    heard h = {0};
    int sound = 0;
    assert_int_equal(scan(f.path, 1, &h, &sound), CLEF_OK);
    if (!sound) fail_msg("%s", h.text);
    folder_remove(f.path);
}

static void a_model_that_does_not_open_is_told_and_still_scanned(void **state) {
    (void)state;
    folder f = toy_copy();
    put(&f, "joint_head.safetensors", "option_norm.weight", 5, 0x7fc0);
    remove(folder_path(&f, "tokenizer.json"));
    heard h = {0};
    int sound = 1;
    assert_int_equal(scan(f.path, 1, &h, &sound), CLEF_OK);
    assert_int_equal(sound, 0);
    assert_int_equal(h.n, 2);
    assert_non_null(strstr(h.text, "tokenizer.json"));
    assert_non_null(strstr(h.text, "first at [5]: NaN"));
    folder_remove(f.path);
}

/* Of more than one piece (scan.c), in a folder with nothing else in it. */
static void the_first_place_of_a_large_tensor_is_told(void **state) {
    (void)state;
    folder f = folder_new();
    const uint32_t nan = 0xffffffff;
    const str header = STR("{\"w\":{\"dtype\":\"F32\",\"shape\":[3000,1000],"
                           "\"data_offsets\":[0,12000000]}}");
    buf bytes = {0};
    folder_safetensors(&bytes, header, 12000000);
    char *data = bytes.p + 8 + header.n;
    memcpy(data + 4L * 2999999, &nan, 4);
    memcpy(data + 4L * 1001, &nan, 4);
    memcpy(data + 4L * 1048576, &nan, 4); /* the first of the second piece */
    folder_write(&f, "model.safetensors", (str){bytes.p, bytes.n});
    for (unsigned jobs = 1; jobs < 4; jobs++) {
        heard h = {0};
        int sound = 1;
        assert_int_equal(scan(f.path, jobs, &h, &sound), CLEF_OK);
        if (strstr(h.text,
                   "tensor 'w' has 3 numbers that are not finite, the first at [1, 1]: NaN") ==
            NULL)
            fail_msg("%s", h.text);
    }
    buf_free(&bytes);
    folder_remove(f.path);
}

static void a_request_to_stop_is_obeyed(void **state) {
    (void)state;
    heard h = {.stop = 1};
    int sound = 0;
    assert_int_equal(scan(TOY, 1, &h, &sound), CLEF_ERR_CANCELLED);
    assert_int_equal(h.steps, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_model_is_sound),
        cmocka_unit_test(tensors_with_nan_and_infinity_are_named),
        cmocka_unit_test(the_largest_finite_numbers_are_sound),
        cmocka_unit_test(a_model_that_does_not_open_is_told_and_still_scanned),
        cmocka_unit_test(the_first_place_of_a_large_tensor_is_told),
        cmocka_unit_test(a_request_to_stop_is_obeyed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
