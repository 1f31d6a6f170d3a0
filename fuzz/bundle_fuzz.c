/* bundle_fuzz.c - edits of the bundle.json of a converted folder, and any text in its place.
 *
 * The folder is made once, from testdata/gate/toy-blocks. An input whose first byte is odd is the
 * whole text; of another, two bytes say where the true text is cut, one how much of it goes, and
 * the rest is put there. Checking ends with a sentence or with CLEF_OK, the latter only when the
 * text lists every weight of codes. */
#include <assert.h>
#include <string.h>

#include "base/file.h"
#include "checkpoint/bundle.h"
#include "clef.h"
#include "fuzz/fuzz_file.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char dir[300];
static safetensors *model;
static buf whole; /* the true text */

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    snprintf(dir, sizeof dir, "%s/converted", fuzz_folder());
    const clef_convert_options o = {
        .model = TESTDATA "gate/toy-blocks", .out = dir, .format = CLEF_FORMAT_INT4MIX, .jobs = 1};
    if (clef_convert(&o, NULL, NULL) != CLEF_OK) abort();
    if (safetensors_open_model(&model, dir, NULL) != CLEF_OK) abort();
    char path[400];
    snprintf(path, sizeof path, "%s/" BUNDLE_NAME, dir);
    if (file_read(&whole, path, 1 << 20, NULL) != CLEF_OK) abort();
    return 0;
}

/* The text that an input stands for. */
static void make_text(buf *out, const uint8_t *data, size_t n) {
    if (n < 4 || data[0] % 2 == 1) {
        buf_add(out, data, n);
        return;
    }
    size_t begin = data[1] | (size_t)data[2] << 8;
    if (begin > whole.n) begin = whole.n;
    const size_t end = begin + data[3] > whole.n ? whole.n : begin + data[3];
    buf_add(out, whole.p, begin);
    buf_add(out, data + 4, n - 4);
    buf_add(out, whole.p + end, whole.n - end);
}

static bool is_listed(const json *bundle, str weight) {
    const json *modules = json_get(json_get(bundle, STR("quantisation")), STR("modules"));
    for (const json *m = modules->first; m != NULL; m = m->next)
        if (str_equal(json_get(m, STR("name"))->text, weight)) return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    buf text = {0};
    make_text(&text, data, n);
    fuzz_write("converted/" BUNDLE_NAME, text.p, text.n);
    buf_free(&text);
    arena mem = {0};
    const json *bundle = NULL;
    clef_error err = {0};
    const clef_status s = bundle_check(&bundle, dir, model, &mem, &err);
    assert((s == CLEF_OK) == (bundle != NULL));
    assert((s == CLEF_OK) == (err.text[0] == '\0'));
    for (uint32_t i = 0; bundle != NULL && i < safetensors_count(model); i++) {
        const safetensors_entry e = safetensors_at(model, i);
        if (e.tensor->type == DTYPE_I8 || e.tensor->type == DTYPE_U8)
            assert(is_listed(bundle, e.name));
    }
    arena_free(&mem);
    return 0;
}
