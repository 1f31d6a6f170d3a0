/* config_fuzz.c - any text as config.json (first byte even) or joint_head_config.json (odd) beside
 * a good other one.
 *
 * What loads can be computed with: every size is positive, heads divide, the sections share out the
 * rotating dims, and the parameter count is that of a possible model. */
#include <assert.h>

#include "base/file.h"
#include "checkpoint/bind.h"
#include "fuzz/fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void copy_good(const char *name, const char *from) {
    buf text = {0};
    if (file_read(&text, from, 1 << 16, NULL) != CLEF_OK) abort();
    fuzz_write(name, text.p, text.n);
    buf_free(&text);
}

static void check_config(const config *c) {
    assert(c->hidden > 0 && c->intermediate > 0 && c->n_layers > 0 && c->vocab > 0);
    assert(c->n_kv_heads > 0 && c->n_heads % c->n_kv_heads == 0);
    assert(c->n_key_heads > 0 && c->n_value_heads % c->n_key_heads == 0);
    assert(c->head_dim > 0 && c->head_dim <= MAX_HEAD_DIM);
    assert(c->key_dim > 0 && c->key_dim <= MAX_HEAD_DIM);
    assert(c->value_dim > 0 && c->value_dim <= MAX_HEAD_DIM);
    assert(c->conv_kernel > 0 && c->conv_kernel <= MAX_CONV_KERNEL && c->max_positions > 0);
    assert(c->rotary_dim > 0 && c->rotary_dim % 2 == 0 && c->rotary_dim <= c->head_dim);
    assert(c->rope_sections[0] + c->rope_sections[1] + c->rope_sections[2] == c->rotary_dim / 2);
    assert(c->rms_eps > 0.0f && c->rope_theta > 0.0);
    assert(c->head_heads > 0 && c->head_width % c->head_heads == 0);
    assert(c->head_width / c->head_heads <= MAX_HEAD_DIM);
    assert(c->head_layers > 0 && c->head_routing_layers > 0 && c->head_feedforward > 0);
    for (uint32_t i = 0; i < c->n_layers; i++) assert(c->full[i] == 0 || c->full[i] == 1);
    const bind_counts counts = bind_parameters(c);
    assert(counts.language_model > (uint64_t)c->vocab * c->hidden);
    assert(counts.head > 6ull * c->head_width * c->hidden);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static int good = -1; /* which of the two files is the good one */
    if (n == 0) return 0;
    const bool head = data[0] % 2 == 1;
    if (head && good != 0) copy_good("config.json", TESTDATA "toy-two-layers/config.json");
    if (!head && good != 1)
        copy_good("joint_head_config.json", TESTDATA "toy-two-layers/joint_head_config.json");
    good = head ? 0 : 1;
    fuzz_write(head ? "joint_head_config.json" : "config.json", data + 1, n - 1);
    arena mem = {0};
    config c = {0};
    clef_error err = {0};
    const clef_status s = config_load(&c, fuzz_folder(), &mem, &err);
    assert((s == CLEF_OK) == (err.text[0] == '\0'));
    if (s == CLEF_OK)
        check_config(&c);
    else
        assert(c.hidden == 0);
    arena_free(&mem);
    return 0;
}
