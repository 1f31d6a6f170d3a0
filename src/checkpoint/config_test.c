/* Configurations: the published geometries, what is left out, and what is refused. The first are
 * read from testdata/checkpoint; the expected values are the published ones. */
#include "checkpoint/config.h"

#include "tests/folder.h"
#include "tests/oom.h"
#include "tests/oom_each.h"

/* The least a config has to say: two layers, tiny. %s takes more members. */
#define SIZES                                                                                     \
    "\"hidden_size\":8,\"intermediate_size\":12,\"num_hidden_layers\":2,\"num_attention_heads\":" \
    "4,"                                                                                          \
    "\"num_key_value_heads\":2,\"linear_num_key_heads\":2,\"linear_num_value_heads\":4"
#define FLAT(more) "{\"model_type\":\"qwen3_5_text\"," SIZES more "}"
#define HEAD_MEMBERS                                                               \
    "\"hidden_size\":8,\"width\":6,\"routing_layers\":2,\"layers\":4,\"heads\":3," \
    "\"feedforward\":10"
#define HEAD "{" HEAD_MEMBERS "}"

static clef_status load(config *c, const char *model, const char *head, arena *mem,
                        clef_error *err) {
    const folder f = folder_new();
    folder_write(&f, "config.json", str_of(model));
    if (head != NULL) folder_write(&f, "joint_head_config.json", str_of(head));
    const clef_status s = config_load(c, f.path, mem, err);
    folder_remove(f.path);
    return s;
}

static void loaded(config *c, const char *model, const char *head, arena *mem) {
    clef_error err = {0};
    if (load(c, model, head, mem, &err) != CLEF_OK) fail_msg("%s: %s", model, err.text);
}

/* Both files are read, and one is refused with this sentence. */
static void refused(const char *model, const char *head, const char *sentence) {
    arena mem = {0};
    config c = {.hidden = 77};
    clef_error err = {0};
    const clef_status s = load(&c, model, head, &mem, &err);
    if (s != CLEF_ERR_FORMAT || strstr(err.text, sentence) == NULL)
        fail_msg("%s: status %d '%s', wanted '%s'", model, (int)s, err.text, sentence);
    assert_int_equal(c.hidden, 77);
    arena_free(&mem);
}

/* ---- what is read -----------------------------------------------------------------------------
 */

static void published(const char *dir, const uint32_t wanted[8], bool tied) {
    arena mem = {0};
    config c = {0};
    clef_error err = {0};
    if (config_load(&c, dir, &mem, &err) != CLEF_OK) fail_msg("%s", err.text);
    const uint32_t found[8] = {c.hidden,     c.intermediate, c.n_layers,      c.n_heads,
                               c.n_kv_heads, c.n_key_heads,  c.n_value_heads, c.head_width};
    for (int i = 0; i < 8; i++) assert_int_equal(found[i], wanted[i]);
    assert_int_equal(c.tied, tied);
    assert_int_equal(c.vocab, 248320);
    assert_int_equal(c.head_dim, 256);
    assert_int_equal(c.rotary_dim, 64);
    assert_true(c.rope_theta == 1e7);
    assert_int_equal(c.rope_sections[0], 11);
    assert_int_equal(c.rope_sections[1], 11);
    assert_int_equal(c.rope_sections[2], 10);
    assert_int_equal(c.key_dim, 128);
    assert_int_equal(c.value_dim, 128);
    assert_int_equal(c.conv_kernel, 4);
    assert_int_equal(c.max_positions, 262144);
    assert_true(c.rms_eps == 1e-6f);
    for (uint32_t i = 0; i < c.n_layers; i++) assert_int_equal(c.full[i], i % 4 == 3);
    assert_int_equal(c.head_routing_layers, 2);
    assert_int_equal(c.head_layers, 4);
    assert_int_equal(c.head_heads, 16);
    assert_int_equal(c.head_feedforward, 4096);
    arena_free(&mem);
}

static void the_9b_is_read(void **state) {
    (void)state;
    published(TESTDATA "checkpoint/9b", (uint32_t[]){4096, 12288, 32, 16, 4, 16, 32, 1024}, false);
}

static void the_27b_is_read(void **state) {
    (void)state;
    published(TESTDATA "checkpoint/27b", (uint32_t[]){5120, 17408, 64, 24, 4, 16, 48, 1024}, false);
}

static void the_4b_is_read(void **state) {
    (void)state;
    published(TESTDATA "checkpoint/4b", (uint32_t[]){2560, 9216, 32, 16, 4, 16, 32, 1024}, true);
}

static void the_2b_is_read(void **state) {
    (void)state;
    published(TESTDATA "checkpoint/2b", (uint32_t[]){2048, 6144, 24, 8, 2, 16, 16, 1024}, true);
}

static void the_0_8b_is_read(void **state) {
    (void)state;
    published(TESTDATA "checkpoint/0.8b", (uint32_t[]){1024, 3584, 24, 8, 2, 16, 16, 1024}, true);
}

static void what_is_left_out_is_as_published(void **state) {
    (void)state;
    arena mem = {0};
    config c = {0};
    loaded(&c, FLAT(""), HEAD, &mem);
    assert_int_equal(c.vocab, 248320);
    assert_int_equal(c.head_dim, 256);
    assert_int_equal(c.rotary_dim, 64);
    assert_int_equal(c.key_dim, 128);
    assert_int_equal(c.rope_sections[2], 10);
    assert_false(c.tied);
    assert_false(c.full[0]);
    arena_free(&mem);
}

static void layer_types_decide_over_the_interval(void **state) {
    (void)state;
    arena mem = {0};
    config c = {0};
    loaded(&c,
           FLAT(",\"full_attention_interval\":1,"
                "\"layer_types\":[\"full_attention\",\"linear_attention\"]"),
           HEAD, &mem);
    assert_true(c.full[0]);
    assert_false(c.full[1]);
    loaded(&c, FLAT(",\"full_attention_interval\":2"), HEAD, &mem);
    assert_false(c.full[0]);
    assert_true(c.full[1]);
    arena_free(&mem);
}

static void rotating_dims_are_cut_to_an_integer(void **state) {
    (void)state;
    arena mem = {0};
    config c = {0};
    loaded(&c,
           FLAT(",\"head_dim\":18,\"partial_rotary_factor\":0.34,"
                "\"rope_parameters\":{\"mrope_section\":[1,1,1]}"),
           HEAD, &mem);
    assert_int_equal(c.rotary_dim, 6);
    arena_free(&mem);
}

static void rotary_members_may_stand_beside(void **state) {
    (void)state;
    arena mem = {0};
    config c = {0};
    loaded(&c,
           FLAT(",\"rope_theta\":500000.0,\"partial_rotary_factor\":0.5,"
                "\"head_dim\":16,\"mrope_section\":[2,1,1],\"rope_scaling\":null"),
           HEAD, &mem);
    assert_true(c.rope_theta == 5e5);
    assert_int_equal(c.rotary_dim, 8);
    assert_int_equal(c.rope_sections[0], 2);
    loaded(&c,
           FLAT(",\"rope_scaling\":{\"type\":\"default\",\"mrope_section\":[2,1,1]},"
                "\"head_dim\":32"),
           HEAD, &mem);
    assert_int_equal(c.rope_sections[0], 2);
    arena_free(&mem);
}

static void tying_may_be_said_at_the_top_only(void **state) {
    (void)state;
    arena mem = {0};
    config c = {0};
    loaded(&c,
           "{\"model_type\":\"qwen3_5\",\"tie_word_embeddings\":true,\"text_config\":{" SIZES "}}",
           HEAD, &mem);
    assert_true(c.tied);
    loaded(&c,
           "{\"model_type\":\"qwen3_5\",\"text_config\":{\"tie_word_embeddings\":true," SIZES "}}",
           HEAD, &mem);
    assert_true(c.tied);
    arena_free(&mem);
}

static void unknown_members_are_ignored(void **state) {
    (void)state;
    arena mem = {0};
    config c = {0};
    loaded(&c, FLAT(",\"x\":{\"y\":[1,{}]},\"vision_config\":null"), HEAD, &mem);
    arena_free(&mem);
}

static void dropout_of_the_head_is_without_effect(void **state) {
    (void)state;
    arena mem = {0};
    config c = {0};
    loaded(&c, FLAT(""), "{" HEAD_MEMBERS ",\"dropout\":0.1}", &mem);
    assert_int_equal(c.head_width, 6);
    arena_free(&mem);
}

/* ---- what is refused --------------------------------------------------------------------------
 */

static void another_architecture_is_refused(void **state) {
    (void)state;
    refused("{" SIZES "}", HEAD, "config.json: model_type: missing");
    refused("{\"model_type\":\"llama\"," SIZES "}", HEAD, "model_type: found llama, wanted");
    refused("{\"model_type\":\"qwen3_5_moe\",\"text_config\":{" SIZES "}}", HEAD,
            "model_type: found qwen3_5_moe, wanted 'qwen3_5'");
    refused("{\"model_type\":\"qwen3_5\",\"text_config\":{\"model_type\":\"llama\"," SIZES "}}",
            HEAD, "text_config.model_type: found llama");
    refused("{\"model_type\":\"qwen3_5\",\"text_config\":[]}", HEAD,
            "text_config: found an array, wanted an object");
}

static void a_missing_size_is_named(void **state) {
    (void)state;
    refused("{\"model_type\":\"qwen3_5\",\"text_config\":{}}", HEAD,
            "config.json: text_config.hidden_size: missing");
}

static void a_size_is_an_integer_within_bounds(void **state) {
    (void)state;
    const char *wrong[] = {"0", "-1", "4.0", "\"4\"", "null1", "513", "4294967297", "1e1", "true"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char model[400];
        snprintf(model, sizeof model, FLAT(",\"head_dim\":%s"), wrong[i]);
        refused(model, HEAD, strcmp(wrong[i], "null1") == 0 ? "config.json: " : "head_dim: found ");
    }
    refused(FLAT(",\"linear_key_head_dim\":513"), HEAD, "wanted an integer of 1 to 512");
    refused(FLAT(",\"linear_value_head_dim\":513"), HEAD, "wanted an integer of 1 to 512");
    refused(FLAT(",\"vocab_size\":16777217"), HEAD, "vocab_size: found 16777217");
    refused(FLAT(",\"linear_conv_kernel_dim\":65"), HEAD, "linear_conv_kernel_dim: found 65");
}

static void heads_that_do_not_divide_are_refused(void **state) {
    (void)state;
#define HEADS(n, kv, key, value)                                                        \
    "{\"model_type\":\"qwen3_5_text\",\"hidden_size\":8,\"intermediate_size\":12,"      \
    "\"num_hidden_layers\":2,\"num_attention_heads\":" n ",\"num_key_value_heads\":" kv \
    ",\"linear_num_key_heads\":" key ",\"linear_num_value_heads\":" value "}"
    refused(HEADS("4", "3", "2", "4"), HEAD,
            "num_key_value_heads: found 3, which does not divide num_attention_heads 4");
    refused(HEADS("4", "2", "3", "4"), HEAD,
            "linear_num_key_heads: found 3, which does not divide linear_num_value_heads 4");
    refused(HEADS("4", "2", "4", "2"), HEAD,
            "linear_num_key_heads: found 4, which does not divide");
}

static void another_network_is_refused(void **state) {
    (void)state;
    refused(FLAT(",\"hidden_act\":\"gelu\""), HEAD, "hidden_act: found gelu, wanted 'silu'");
    refused(FLAT(",\"attention_bias\":true"), HEAD, "attention_bias: found true, wanted false");
    refused(FLAT(",\"attn_output_gate\":false"), HEAD,
            "attn_output_gate: found false, wanted true");
    refused(FLAT(",\"output_gate_type\":\"sigmoid\""), HEAD, "output_gate_type: found sigmoid");
    refused(FLAT(",\"attn_output_gate\":1"), HEAD,
            "attn_output_gate: found 1, wanted true or false");
}

static void rope_other_than_default_is_refused(void **state) {
    (void)state;
    refused(FLAT(",\"rope_parameters\":{\"rope_type\":\"yarn\"}"), HEAD,
            "rope_parameters.rope_type: found yarn, wanted 'default'");
    refused(FLAT(",\"rope_scaling\":{\"type\":\"linear\"}"), HEAD,
            "rope_scaling.type: found linear");
    refused(FLAT(",\"rope_parameters\":{\"mrope_interleaved\":false}"), HEAD, "mrope_interleaved");
    refused(FLAT(",\"rope_parameters\":3"), HEAD, "rope_parameters: found 3, wanted an object");
}

static void rotating_dims_are_even_and_in_the_head(void **state) {
    (void)state;
    refused(FLAT(",\"partial_rotary_factor\":1.5"), HEAD, "partial_rotary_factor: found 1.5");
    refused(FLAT(",\"partial_rotary_factor\":0"), HEAD, "partial_rotary_factor: found 0");
    refused(FLAT(",\"head_dim\":20"), HEAD, "are 5 rotating dims");
    refused(FLAT(",\"partial_rotary_factor\":0.003"), HEAD, "are 0 rotating dims");
    refused(FLAT(",\"rope_theta\":0"), HEAD, "rope_theta: found 0");
    refused(FLAT(",\"rope_theta\":1e400"), HEAD, "rope_theta: found 1e400");
}

static void rotary_members_that_disagree_are_refused(void **state) {
    (void)state;
    refused(FLAT(",\"rope_theta\":10000,\"rope_parameters\":{\"rope_theta\":10000000}"), HEAD,
            "rope_theta: found 10000, but rope_parameters.rope_theta is 1e+07");
}

static void sections_share_out_all_frequencies(void **state) {
    (void)state;
    refused(FLAT(",\"mrope_section\":[11,11,11]"), HEAD, "found 11, 11, 11");
    refused(FLAT(",\"mrope_section\":[20,12,0]"), HEAD, "found 20, 12, 0");
    refused(FLAT(",\"mrope_section\":[20,0,12]"), HEAD, "found 20, 0, 12");
    refused(FLAT(",\"mrope_section\":[11,21]"), HEAD, "wanted three integers");
    refused(FLAT(",\"mrope_section\":[11,11,10,0]"), HEAD, "wanted three integers");
    refused(FLAT(",\"mrope_section\":[11,11,10.0]"), HEAD, "wanted three integers");
    refused(FLAT(",\"mrope_section\":\"11\""), HEAD, "wanted three integers");
}

static void layer_types_name_every_layer(void **state) {
    (void)state;
    refused(FLAT(",\"layer_types\":[\"full_attention\"]"), HEAD,
            "layer_types: wanted an array of num_hidden_layers = 2 names");
    refused(FLAT(",\"layer_types\":[\"full_attention\",\"sliding_attention\"]"), HEAD,
            "layer_types[1]: found sliding_attention");
    refused(FLAT(",\"layer_types\":{}"), HEAD, "wanted an array");
}

static void tying_that_disagrees_is_refused(void **state) {
    (void)state;
    refused("{\"model_type\":\"qwen3_5\",\"tie_word_embeddings\":false,\"text_config\":{"
            "\"tie_word_embeddings\":true," SIZES "}}",
            HEAD, "tie_word_embeddings: differs from text_config.tie_word_embeddings");
}

static void an_eps_of_zero_is_refused(void **state) {
    (void)state;
    refused(FLAT(",\"rms_norm_eps\":0.0"), HEAD, "rms_norm_eps: found 0.0");
    refused(FLAT(",\"rms_norm_eps\":\"1e-6\""), HEAD, "rms_norm_eps: found 1e-6");
}

static void a_broken_file_is_named(void **state) {
    (void)state;
    refused("{", HEAD, "config.json: ");
    refused("[]", HEAD, "config.json: found an array, wanted a JSON object");
    refused("{\"model_type\":\"qwen3_5_text\",\"model_type\":\"qwen3_5_text\"," SIZES "}", HEAD,
            "model_type");
    refused(FLAT(""), "{", "joint_head_config.json: ");
}

static void a_backbone_without_head_says_what_is_missing(void **state) {
    (void)state;
    refused(FLAT(""), NULL, "holds a backbone only; joint_head_config.json and");
}

static void a_head_has_exactly_its_members(void **state) {
    (void)state;
    refused(FLAT(""), "{" HEAD_MEMBERS ",\"bias\":true}",
            "joint_head_config.json: unknown member 'bias'");
    refused(FLAT(""), "{\"hidden_size\":8}", "joint_head_config.json: width: missing");
    refused(FLAT(""), "{" HEAD_MEMBERS ",\"heads\":3}", "heads");
}

static void a_head_of_another_backbone_is_refused(void **state) {
    (void)state;
    refused(FLAT(""),
            "{\"hidden_size\":9,\"width\":6,\"routing_layers\":2,\"layers\":4,\"heads\":3,"
            "\"feedforward\":10}",
            "joint_head_config.json: hidden_size: found 9, wanted 8 as in config.json");
}

static void a_head_width_is_divided_by_its_heads(void **state) {
    (void)state;
    refused(FLAT(""),
            "{\"hidden_size\":8,\"width\":7,\"routing_layers\":2,\"layers\":4,\"heads\":3,"
            "\"feedforward\":10}",
            "heads: found 3, which does not divide width 7");
    refused(FLAT(""),
            "{\"hidden_size\":8,\"width\":1026,\"routing_layers\":2,\"layers\":4,\"heads\":2,"
            "\"feedforward\":10}",
            "heads of 513 values, the limit is 512");
}

static clef_status load_the_9b(void *context, clef_error *err) {
    (void)context;
    arena mem = {0};
    config c;
    const clef_status s = config_load(&c, TESTDATA "checkpoint/9b", &mem, err);
    arena_free(&mem);
    return s;
}

/* ---- the vision tower ---- */

#define NESTED(vision) "{\"model_type\":\"qwen3_5_text\"," SIZES ",\"vision_config\":" vision "}"

static clef_status load_vision(config *c, const char *model, arena *mem, clef_error *err) {
    const folder f = folder_new();
    folder_write(&f, "config.json", str_of(model));
    folder_write(&f, "joint_head_config.json", STR(HEAD));
    clef_status s = config_load(c, f.path, mem, err);
    if (s == CLEF_OK) s = config_load_vision(c, f.path, mem, err);
    folder_remove(f.path);
    return s;
}

static void a_tower_takes_the_published_sizes_where_it_says_none(void **state) {
    (void)state;
    arena mem = {0};
    config c = {0};
    clef_error err = {0};
    if (load_vision(&c, NESTED("{\"out_hidden_size\":8}"), &mem, &err) != CLEF_OK)
        fail_msg("%s", err.text);
    assert_int_equal(c.vision.depth, 27);
    assert_int_equal(c.vision.hidden, 1152);
    assert_int_equal(c.vision.intermediate, 4304);
    assert_int_equal(c.vision.n_heads, 16);
    assert_int_equal(c.vision.side, 48);
    arena_free(&mem);
}

static void a_config_without_a_tower_has_none(void **state) {
    (void)state;
    arena mem = {0};
    config c = {0};
    assert_int_equal(load_vision(&c, FLAT(""), &mem, NULL), CLEF_OK);
    assert_int_equal(c.vision.depth, 0);
    arena_free(&mem);
}

static void another_tower_is_refused(void **state) {
    (void)state;
    const struct {
        const char *model, *sentence;
    } wrong[] = {
        {NESTED("7"), "vision_config: found 7, wanted an object"},
        {NESTED("{\"patch_size\":14}"), "vision_config.patch_size: found 14, wanted 16"},
        {NESTED("{\"temporal_patch_size\":1}"),
         "vision_config.temporal_patch_size: found 1, wanted 2"},
        {NESTED("{\"spatial_merge_size\":4}"),
         "vision_config.spatial_merge_size: found 4, wanted 2"},
        {NESTED("{\"in_channels\":1}"), "vision_config.in_channels: found 1, wanted 3"},
        {NESTED("{\"out_hidden_size\":9}"), "vision_config.out_hidden_size: found 9, wanted 8"},
        {NESTED("{\"deepstack_visual_indexes\":[8]}"),
         "vision_config.deepstack_visual_indexes: found an array, wanted an empty array"},
        {NESTED("{\"hidden_act\":\"gelu\"}"),
         "vision_config.hidden_act: found gelu, wanted 'gelu_pytorch_tanh'"},
        {NESTED("{\"depth\":0}"), "vision_config.depth: found 0"},
        {NESTED("{\"num_heads\":7}"), "vision_config.num_heads: found 7, which does not divide"},
        {NESTED("{\"num_heads\":192}"), "heads of 6 values, wanted a multiple of 4 up to 512"},
        {NESTED("{\"num_position_embeddings\":2305}"),
         "vision_config.num_position_embeddings: found 2305, wanted a square number"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        arena mem = {0};
        config c = {0};
        clef_error err = {0};
        const clef_status s = load_vision(&c, wrong[i].model, &mem, &err);
        if (s != CLEF_ERR_FORMAT || strstr(err.text, wrong[i].sentence) == NULL)
            fail_msg("'%s', wanted '%s'", err.text, wrong[i].sentence);
        assert_int_equal(c.vision.depth, 0);
        arena_free(&mem);
    }
}

static void every_failed_allocation_is_reported(void **state) {
    (void)state;
    assert_true(oom_each(load_the_9b, NULL) > 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_9b_is_read),
        cmocka_unit_test(the_27b_is_read),
        cmocka_unit_test(the_4b_is_read),
        cmocka_unit_test(the_2b_is_read),
        cmocka_unit_test(the_0_8b_is_read),
        cmocka_unit_test(what_is_left_out_is_as_published),
        cmocka_unit_test(layer_types_decide_over_the_interval),
        cmocka_unit_test(rotating_dims_are_cut_to_an_integer),
        cmocka_unit_test(rotary_members_may_stand_beside),
        cmocka_unit_test(tying_may_be_said_at_the_top_only),
        cmocka_unit_test(unknown_members_are_ignored),
        cmocka_unit_test(dropout_of_the_head_is_without_effect),
        cmocka_unit_test(another_architecture_is_refused),
        cmocka_unit_test(a_missing_size_is_named),
        cmocka_unit_test(a_size_is_an_integer_within_bounds),
        cmocka_unit_test(heads_that_do_not_divide_are_refused),
        cmocka_unit_test(another_network_is_refused),
        cmocka_unit_test(rope_other_than_default_is_refused),
        cmocka_unit_test(rotating_dims_are_even_and_in_the_head),
        cmocka_unit_test(rotary_members_that_disagree_are_refused),
        cmocka_unit_test(sections_share_out_all_frequencies),
        cmocka_unit_test(layer_types_name_every_layer),
        cmocka_unit_test(tying_that_disagrees_is_refused),
        cmocka_unit_test(an_eps_of_zero_is_refused),
        cmocka_unit_test(a_broken_file_is_named),
        cmocka_unit_test(a_backbone_without_head_says_what_is_missing),
        cmocka_unit_test(a_head_has_exactly_its_members),
        cmocka_unit_test(a_head_of_another_backbone_is_refused),
        cmocka_unit_test(a_head_width_is_divided_by_its_heads),
        cmocka_unit_test(a_tower_takes_the_published_sizes_where_it_says_none),
        cmocka_unit_test(a_config_without_a_tower_has_none),
        cmocka_unit_test(another_tower_is_refused),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
