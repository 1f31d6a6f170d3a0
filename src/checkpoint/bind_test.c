/* The table of tensors against the published parameter counts, the toys that the reference wrote,
 * and checkpoints with one thing wrong (another model's head, a wrong shape or type). */
#include "checkpoint/bind.h"

#include <math.h>

#include "checkpoint/hub.h"
#include "tests/folder.h"
#include "tests/oom.h"
#include "tests/oom_each.h"

/* ---- counts -----------------------------------------------------------------------------------
 */

static void counts(const char *dir, uint64_t language_model, uint64_t head) {
    arena mem = {0};
    config c = {0};
    assert_int_equal(config_load(&c, dir, &mem, NULL), CLEF_OK);
    const bind_counts found = bind_parameters(&c);
    assert_int_equal(found.language_model, language_model);
    if (head != 0) assert_int_equal(found.head, head);
    arena_free(&mem);
}

static void the_9b_has_its_published_parameters(void **state) {
    (void)state;
    counts(TESTDATA "checkpoint/9b", 8953803264, 121762820);
}

static void the_27b_has_its_published_parameters(void **state) {
    (void)state;
    counts(TESTDATA "checkpoint/27b", 26895998464, 128056324);
}

static void count_one(void *context, const bind_tensor *t) {
    uint32_t *n = context;
    n[t->head]++;
}

static void the_releases_have_their_published_tensors(void **state) {
    (void)state;
    const struct {
        const char *dir;
        uint32_t model;
    } releases[] = {{TESTDATA "checkpoint/9b", 427}, {TESTDATA "checkpoint/27b", 851}};
    for (int i = 0; i < 2; i++) {
        arena mem = {0};
        config c = {0};
        uint32_t n[2] = {0, 0};
        assert_int_equal(config_load(&c, releases[i].dir, &mem, NULL), CLEF_OK);
        bind_each(&c, count_one, n);
        assert_int_equal(n[0], releases[i].model);
        assert_int_equal(n[1], 122);
        arena_free(&mem);
    }
}

static void count_tower(void *context, const bind_tensor *t) {
    uint32_t *n = context;
    *n += t->vision;
}

static void the_towers_have_their_published_tensors_and_parameters(void **state) {
    (void)state;
    const struct {
        const char *dir;
        uint64_t parameters;
    } releases[] = {{TESTDATA "checkpoint/9b", 456010480}, {TESTDATA "checkpoint/27b", 460730096}};
    for (int i = 0; i < 2; i++) {
        arena mem = {0};
        config c = {0};
        uint32_t n = 0;
        assert_int_equal(config_load(&c, releases[i].dir, &mem, NULL), CLEF_OK);
        assert_int_equal(config_load_vision(&c, releases[i].dir, &mem, NULL), CLEF_OK);
        bind_each(&c, count_tower, &n);
        assert_int_equal(n, 333);
        assert_int_equal(bind_parameters(&c).vision, releases[i].parameters);
        arena_free(&mem);
    }
}

/* ---- the toys ---------------------------------------------------------------------------------
 */

typedef struct {
    arena mem;
    config cfg;
    safetensors *model, *head;
    weights w;
} bound;

static clef_status bound_open(bound *b, const char *dir, clef_error *err) {
    *b = (bound){0};
    char *head = NULL;
    TRY(config_load(&b->cfg, dir, &b->mem, err));
    TRY(safetensors_open_model(&b->model, dir, err));
    if (bind_has_tower(b->model)) TRY(config_load_vision(&b->cfg, dir, &b->mem, err));
    TRY(hub_file(&head, dir, "joint_head.safetensors", err));
    const clef_status s = safetensors_open(&b->head, head, err);
    free(head);
    return s == CLEF_OK ? bind_weights(&b->w, b->model, b->head, &b->cfg, &b->mem, err) : s;
}

static void bound_close(bound *b) {
    safetensors_close(b->model);
    safetensors_close(b->head);
    arena_free(&b->mem);
}

static void every_toy_binds(void **state) {
    (void)state;
    const char *toys[] = {"toy-r1-tied",    "toy-r2",         "toy-r3-sharded", "toy-explicit",
                          "toy-real-heads", "toy-two-layers", "toy-vision",     "toy-vision-72"};
    for (size_t i = 0; i < sizeof toys / sizeof *toys; i++) {
        char dir[100];
        bound b;
        clef_error err = {0};
        snprintf(dir, sizeof dir, TESTDATA "%s", toys[i]);
        if (bound_open(&b, dir, &err) != CLEF_OK) fail_msg("%s: %s", toys[i], err.text);
        bound_close(&b);
    }
}

/* Value i of a stored tensor, read without the code under test. */
static float stored(const safetensors *st, const char *name, size_t i) {
    const tensor *t = safetensors_find(st, str_of(name));
    assert_non_null(t);
    uint32_t bits = 0;
    if (t->type == DTYPE_F32) {
        memcpy(&bits, (const char *)t->data + 4 * i, 4);
    } else {
        assert_int_equal(t->type, DTYPE_BF16);
        memcpy((char *)&bits + 2, (const char *)t->data + 2 * i, 2);
    }
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

#define LAYER(i) "model.language_model.layers." #i "."

static void five_norms_get_their_one_and_the_sixth_does_not(void **state) {
    (void)state;
    bound b;
    assert_int_equal(bound_open(&b, TESTDATA "toy-r2", NULL), CLEF_OK);
    const layer_weights *delta = &b.w.layers[0], *full = &b.w.layers[3];
    for (size_t i = 0; i < 16; i++) {
        assert_true(delta->input_norm[i] ==
                    1.0f + stored(b.model, LAYER(0) "input_layernorm.weight", i));
        assert_true(delta->post_norm[i] ==
                    1.0f + stored(b.model, LAYER(0) "post_attention_layernorm.weight", i));
        assert_true(full->attention.q_norm[i] ==
                    1.0f + stored(b.model, LAYER(3) "self_attn.q_norm.weight", i));
        assert_true(full->attention.k_norm[i] ==
                    1.0f + stored(b.model, LAYER(3) "self_attn.k_norm.weight", i));
        assert_true(b.w.final_norm[i] ==
                    1.0f + stored(b.model, "model.language_model.norm.weight", i));
        assert_true(delta->delta.norm[i] == stored(b.model, LAYER(0) "linear_attn.norm.weight", i));
    }
    bound_close(&b);
}

static void decay_is_minus_exp_of_a_log(void **state) {
    (void)state;
    bound b;
    assert_int_equal(bound_open(&b, TESTDATA "toy-explicit", NULL),
                     CLEF_OK); /* A_log is F32 here */
    for (size_t i = 0; i < 3; i++) {
        const double wanted = -exp((double)stored(b.model, LAYER(1) "linear_attn.A_log", i));
        assert_true(fabs(b.w.layers[1].delta.decay[i] / wanted - 1.0) < 3e-7);
    }
    bound_close(&b);
}

static void the_convolution_keeps_its_taps_together(void **state) {
    (void)state;
    bound b;
    assert_int_equal(bound_open(&b, TESTDATA "toy-r2", NULL), CLEF_OK);
    for (size_t i = 0; i < 4 * (size_t)config_channels(&b.cfg); i++)
        assert_true(b.w.layers[0].delta.conv[i] ==
                    stored(b.model, LAYER(0) "linear_attn.conv1d.weight", i));
    bound_close(&b);
}

static void matrices_stay_in_the_mapping(void **state) {
    (void)state;
    bound b;
    assert_int_equal(bound_open(&b, TESTDATA "toy-r2", NULL), CLEF_OK);
    const matrix *q = &b.w.layers[3].attention.q;
    const tensor *t = safetensors_find(b.model, STR(LAYER(3) "self_attn.q_proj.weight"));
    assert_ptr_equal(q->data, t->data);
    assert_int_equal(q->type, DTYPE_BF16);
    assert_int_equal(q->n_out, 2 * 4 * 24);
    assert_int_equal(q->n_in, 60);
    assert_ptr_equal(b.w.lexical.data, safetensors_find(b.model, STR("lm_head.weight"))->data);
    bound_close(&b);
}

static void in_proj_is_cut_into_query_key_and_value(void **state) {
    (void)state;
    bound b;
    assert_int_equal(bound_open(&b, TESTDATA "toy-r2", NULL), CLEF_OK);
    const head_attention *a = &b.w.head.decoder[1].cross_attention;
    const char *data =
        safetensors_find(b.head, STR("layers.1.multihead_attn.in_proj_weight"))->data;
    const size_t part = (size_t)44 * 44 * 2;
    const matrix *parts[3] = {&a->in_q, &a->in_k, &a->in_v};
    const float *biases[3] = {a->in_q_bias, a->in_k_bias, a->in_v_bias};
    for (size_t p = 0; p < 3; p++) {
        assert_ptr_equal(parts[p]->data, data + p * part);
        assert_int_equal(parts[p]->n_out, 44);
        assert_int_equal(parts[p]->n_in, 44);
        for (size_t i = 0; i < 44; i++)
            assert_true(biases[p][i] ==
                        stored(b.head, "layers.1.multihead_attn.in_proj_bias", p * 44 + i));
    }
    bound_close(&b);
}

static void every_head_tensor_goes_to_its_own_place(void **state) {
    (void)state;
    bound b;
    assert_int_equal(bound_open(&b, TESTDATA "toy-r2", NULL), CLEF_OK);
    const head_weights *h = &b.w.head;
    const struct {
        const void *found;
        const char *name;
    } matrices[] = {
        {h->memory_projection.data, "memory_projection.weight"},
        {h->question_projection.data, "question_projection.weight"},
        {h->option_question_projection.data, "option_question_projection.weight"},
        {h->global_projection.data, "global_projection.weight"},
        {h->option_context_projection.data, "option_context_projection.weight"},
        {h->option_lexical_projection.data, "option_lexical_projection.weight"},
        {h->evidence[1].attention.in_q.data, "evidence_layers.1.attention.in_proj_weight"},
        {h->evidence[1].attention.out.w.data, "evidence_layers.1.attention.out_proj.weight"},
        {h->evidence[1].ff0.w.data, "evidence_layers.1.feedforward.0.weight"},
        {h->evidence[1].ff3.w.data, "evidence_layers.1.feedforward.3.weight"},
        {h->decoder[3].self_attention.in_q.data, "layers.3.self_attn.in_proj_weight"},
        {h->decoder[3].self_attention.out.w.data, "layers.3.self_attn.out_proj.weight"},
        {h->decoder[3].cross_attention.out.w.data, "layers.3.multihead_attn.out_proj.weight"},
        {h->decoder[3].linear1.w.data, "layers.3.linear1.weight"},
        {h->decoder[3].linear2.w.data, "layers.3.linear2.weight"},
        {h->scorer0.w.data, "residual_scorer.0.weight"},
        {h->scorer3.w.data, "residual_scorer.3.weight"},
    };
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        assert_ptr_equal(matrices[i].found,
                         safetensors_find(b.head, str_of(matrices[i].name))->data);
    const struct {
        const float *found;
        const char *name;
    } vectors[] = {
        {h->hidden_norm.w, "hidden_norm.weight"},
        {h->hidden_norm.b, "hidden_norm.bias"},
        {h->type_embedding, "type_embedding.weight"},
        {h->option_summary_norm.w, "option_summary_norm.weight"},
        {h->option_summary_norm.b, "option_summary_norm.bias"},
        {h->field_norm.w, "field_norm.weight"},
        {h->field_norm.b, "field_norm.bias"},
        {h->option_norm.w, "option_norm.weight"},
        {h->option_norm.b, "option_norm.bias"},
        {h->evidence[0].query_norm.w, "evidence_layers.0.query_norm.weight"},
        {h->evidence[0].query_norm.b, "evidence_layers.0.query_norm.bias"},
        {h->evidence[0].memory_norm.w, "evidence_layers.0.memory_norm.weight"},
        {h->evidence[0].memory_norm.b, "evidence_layers.0.memory_norm.bias"},
        {h->evidence[0].feedforward_norm.w, "evidence_layers.0.feedforward_norm.weight"},
        {h->evidence[0].feedforward_norm.b, "evidence_layers.0.feedforward_norm.bias"},
        {h->evidence[0].attention.out.b, "evidence_layers.0.attention.out_proj.bias"},
        {h->evidence[0].ff0.b, "evidence_layers.0.feedforward.0.bias"},
        {h->evidence[0].ff3.b, "evidence_layers.0.feedforward.3.bias"},
        {h->decoder[2].self_attention.in_q_bias, "layers.2.self_attn.in_proj_bias"},
        {h->decoder[2].self_attention.out.b, "layers.2.self_attn.out_proj.bias"},
        {h->decoder[2].cross_attention.out.b, "layers.2.multihead_attn.out_proj.bias"},
        {h->decoder[2].linear1.b, "layers.2.linear1.bias"},
        {h->decoder[2].linear2.b, "layers.2.linear2.bias"},
        {h->decoder[2].norm1.w, "layers.2.norm1.weight"},
        {h->decoder[2].norm1.b, "layers.2.norm1.bias"},
        {h->decoder[2].norm2.w, "layers.2.norm2.weight"},
        {h->decoder[2].norm2.b, "layers.2.norm2.bias"},
        {h->decoder[2].norm3.w, "layers.2.norm3.weight"},
        {h->decoder[2].norm3.b, "layers.2.norm3.bias"},
        {h->scorer0.b, "residual_scorer.0.bias"},
        {&h->prior_scale, "prior_logit_scale"},
        {&h->joint_scale, "joint_logit_scale"},
        {&h->residual_gate, "residual_gate"},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        const tensor *t = safetensors_find(b.head, str_of(vectors[i].name));
        for (size_t k = 0; k < t->bytes / 2; k++)
            if (vectors[i].found[k] != stored(b.head, vectors[i].name, k))
                fail_msg("%s[%zu]", vectors[i].name, k);
    }
    bound_close(&b);
}

static void tied_models_read_lexical_rows_from_the_embedding(void **state) {
    (void)state;
    bound b;
    assert_int_equal(bound_open(&b, TESTDATA "toy-r1-tied", NULL), CLEF_OK);
    assert_ptr_equal(b.w.lexical.data, b.w.embed.data);
    assert_int_equal(b.w.lexical.n_out, b.cfg.vocab);
    bound_close(&b);
}

static void layers_follow_layer_types(void **state) {
    (void)state;
    bound b;
    assert_int_equal(bound_open(&b, TESTDATA "toy-explicit", NULL), CLEF_OK);
    assert_true(b.w.layers[0].full);
    assert_non_null(b.w.layers[0].attention.q.data);
    assert_null(b.w.layers[0].delta.qkv.data);
    assert_false(b.w.layers[1].full);
    assert_null(b.w.layers[1].attention.q.data);
    assert_non_null(b.w.layers[1].delta.qkv.data);
    bound_close(&b);
}

/* ---- one thing wrong --------------------------------------------------------------------------
 */

/* What a made checkpoint has instead of tensor `name`: another name, shape or type (0: none of
 * them), or, when nothing is given, no such tensor. `extra` is added to the model. */
typedef struct {
    const char *name, *new_name;
    uint32_t rank;
    uint64_t shape[3];
    dtype type;
    const char *extra;
    bool tower; /* the model has one */
} fault;

typedef struct {
    const fault *f;
    bool head;
    buf header;
    size_t at;
} maker;

static void make_entry(maker *m, str name, dtype type, uint32_t rank, const uint64_t *shape) {
    size_t bytes = dtype_bits(type) / 8;
    buf_printf(&m->header, "%s\"%.*s\":{\"dtype\":\"%s\",\"shape\":[", m->header.n == 1 ? "" : ",",
               STR_ARG(name), dtype_name(type));
    for (uint32_t d = 0; d < rank; d++) {
        buf_printf(&m->header, "%s%d", d == 0 ? "" : ",", (int)shape[d]);
        bytes *= shape[d];
    }
    buf_printf(&m->header, "],\"data_offsets\":[%zu,%zu]}", m->at, m->at + bytes);
    m->at += bytes;
}

static void make_tensor(void *context, const bind_tensor *t) {
    maker *m = context;
    const fault *f = m->f;
    if (t->head != m->head) return;
    if (f->name == NULL || !str_equal(t->name, str_of(f->name))) {
        make_entry(m, t->name, DTYPE_BF16, t->rank, t->shape);
        return;
    }
    if (f->new_name == NULL && f->rank == 0 && f->type == 0) return;
    make_entry(m, f->new_name != NULL ? str_of(f->new_name) : t->name,
               f->type != 0 ? f->type : DTYPE_BF16, f->rank != 0 ? f->rank : t->rank,
               f->rank != 0 ? f->shape : t->shape);
}

static void make_file(const folder *f, const char *name, const config *cfg, const fault *wrong,
                      bool head) {
    maker m = {.f = wrong, .head = head};
    buf file = {0};
    buf_add_char(&m.header, '{');
    bind_each(cfg, make_tensor, &m);
    if (!head && wrong->extra != NULL) make_entry(&m, str_of(wrong->extra), DTYPE_I8, 0, NULL);
    buf_add_char(&m.header, '}');
    folder_safetensors(&file, (str){m.header.p, m.header.n}, m.at);
    folder_write(f, name, (str){file.p, file.n});
    buf_free(&file);
    buf_free(&m.header);
}

/* A checkpoint of one delta and one full layer with this fault. */
static folder make(const fault *wrong) {
    const folder f = folder_new();
    folder_write(&f, "config.json",
                 STR("{\"model_type\":\"qwen3_5_text\",\"hidden_size\":8,\"intermediate_size\":12,"
                     "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":2,"
                     "\"linear_num_key_heads\":2,\"linear_num_value_heads\":4,\"vocab_size\":9,"
                     "\"head_dim\":16,\"linear_key_head_dim\":3,\"linear_value_head_dim\":5,"
                     "\"mrope_section\":[2,0,0],\"full_attention_interval\":2,"
                     "\"vision_config\":{\"depth\":2,\"hidden_size\":8,\"num_heads\":2,"
                     "\"intermediate_size\":10,\"num_position_embeddings\":9,"
                     "\"out_hidden_size\":8}}"));
    folder_write(&f, "joint_head_config.json",
                 STR("{\"hidden_size\":8,\"width\":6,\"routing_layers\":2,\"layers\":4,\"heads\":3,"
                     "\"feedforward\":10}"));
    arena mem = {0};
    config cfg;
    assert_int_equal(config_load(&cfg, f.path, &mem, NULL), CLEF_OK);
    if (wrong->tower) assert_int_equal(config_load_vision(&cfg, f.path, &mem, NULL), CLEF_OK);
    make_file(&f, "model.safetensors", &cfg, wrong, false);
    make_file(&f, "joint_head.safetensors", &cfg, wrong, true);
    arena_free(&mem);
    return f;
}

static void wrong(fault what, const char *sentence) {
    const folder f = make(&what);
    bound b;
    clef_error err = {0};
    const clef_status s = bound_open(&b, f.path, &err);
    if (s != CLEF_ERR_FORMAT || strstr(err.text, sentence) == NULL)
        fail_msg("status %d '%s', wanted '%s'", (int)s, err.text, sentence);
    assert_int_equal(b.w.embed.n_out, 0);
    bound_close(&b);
    folder_remove(f.path);
}

static void right(fault what) {
    const folder f = make(&what);
    bound b;
    clef_error err = {0};
    if (bound_open(&b, f.path, &err) != CLEF_OK) fail_msg("%s", err.text);
    bound_close(&b);
    folder_remove(f.path);
}

static void a_made_checkpoint_binds(void **state) {
    (void)state;
    right((fault){0});
}

static void a_missing_tensor_is_named(void **state) {
    (void)state;
    wrong((fault){.name = "lm_head.weight"},
          "/model.safetensors: tensor 'lm_head.weight' is missing");
    wrong((fault){.name = "layers.2.norm3.bias"},
          "/joint_head.safetensors: tensor 'layers.2.norm3.bias' is missing");
}

static void a_tower_binds_where_there_is_one(void **state) {
    (void)state;
    right((fault){.tower = true});
    bound b;
    assert_int_equal(bound_open(&b, TESTDATA "toy-vision", NULL), CLEF_OK);
    const vision_weights *v = &b.w.vision;
    assert_int_equal(b.cfg.vision.depth, 3);
    assert_int_equal(v->patch.w.n_in, VISION_PATCH_VALUES);
    assert_int_equal(v->patch.w.n_out, 36);
    assert_int_equal(v->positions.n_out, 49);
    assert_int_equal(v->fc2.w.n_out, b.cfg.hidden);
    assert_true(v->blocks[2].k_bias[3] ==
                stored(b.model, "model.visual.blocks.2.attn.qkv.bias", 36 + 3));
    assert_ptr_equal(v->blocks[1].v.data, (const char *)v->blocks[1].q.data + 2 * 36 * 36 * 2);
    bound_close(&b);
}

static void a_tower_with_one_thing_wrong_is_named(void **state) {
    (void)state;
    wrong((fault){.tower = true, .name = "model.visual.blocks.1.norm2.bias"},
          "/model.safetensors: tensor 'model.visual.blocks.1.norm2.bias' is missing");
    wrong(
        (fault){
            .tower = true, .name = "model.visual.pos_embed.weight", .rank = 2, .shape = {16, 8}},
        "tensor 'model.visual.pos_embed.weight' has shape [16, 8], wanted [9, 8]");
    wrong((fault){.tower = true,
                  .name = "model.visual.patch_embed.proj.weight",
                  .rank = 2,
                  .shape = {8, 1536}},
          "has shape [8, 1536], wanted [8, 3, 2, 16, 16]");
    wrong((fault){.tower = true, .extra = "model.visual.deepstack_merger_list.0.norm.weight"},
          "tensor 'model.visual.deepstack_merger_list.0.norm.weight' is no part of the model");
    /* A single tensor of a tower makes it one that is incomplete. */
    wrong((fault){.extra = "model.visual.pos_embed.weight"}, "tensor 'model.visual.");
}

static void an_extra_tensor_is_named(void **state) {
    (void)state;
    const char *names[] = {"x",
                           "layers.0.norm1.weight",
                           "model.language_model.layers.2.input_layernorm.weight",
                           "model.language_model.layers.00.input_layernorm.weight",
                           "model.language_model.layers..input_layernorm.weight",
                           "model.language_model.layers.99999999999.input_layernorm.weight",
                           "model.language_model.layers.0.self_attn.q_norm.weight",
                           "model.language_model.layers.1.linear_attn.A_log",
                           "model.language_model.layers.0.input_layernorm.weights",
                           "model.language_model.layers.0",
                           "model.visual",
                           "xmtp.fc.weight"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char sentence[200];
        snprintf(sentence, sizeof sentence,
                 "/model.safetensors: tensor '%s' is no part of the model", names[i]);
        wrong((fault){.extra = names[i]}, sentence);
    }
}

static void mtp_tensors_are_ignored(void **state) {
    (void)state;
    right((fault){.extra = "mtp.layers.0.mlp.up_proj.weight"});
}

static void a_tower_without_sizes_is_ignored(void **state) {
    (void)state;
    bound b;
    assert_int_equal(bound_open(&b, TESTDATA "toy-vision", NULL), CLEF_OK);
    b.cfg.vision = (vision_sizes){0};
    weights w = {0};
    assert_int_equal(bind_weights(&w, b.model, b.head, &b.cfg, &b.mem, NULL), CLEF_OK);
    assert_null(w.vision.patch.w.data);
    bound_close(&b);
}

static void a_wrong_shape_is_named_with_both_shapes(void **state) {
    (void)state;
    wrong((fault){.name = "model.language_model.layers.1.mlp.up_proj.weight",
                  .rank = 2,
                  .shape = {8, 12}},
          "/model.safetensors: tensor 'model.language_model.layers.1.mlp.up_proj.weight' has shape "
          "[8, 12], wanted [12, 8]");
    wrong((fault){.name = "model.language_model.norm.weight", .rank = 2, .shape = {8, 1}},
          "has shape [8, 1], wanted [8]");
    wrong((fault){.name = "model.language_model.norm.weight", .rank = 1, .shape = {0}},
          "has shape [0], wanted [8]");
}

static void a_head_of_another_size_is_refused_with_both_sizes(void **state) {
    (void)state;
    wrong((fault){.name = "hidden_norm.weight", .rank = 1, .shape = {10}},
          "/joint_head.safetensors: tensor 'hidden_norm.weight' has shape [10], wanted [8]");
}

static void the_mlx_layout_is_told_apart(void **state) {
    (void)state;
    wrong((fault){.name = "model.language_model.layers.0.linear_attn.conv1d.weight",
                  .rank = 3,
                  .shape = {32, 4, 1}},
          "has shape [32, 4, 1], wanted [32, 1, 4] (this is the MLX layout");
}

static void a_wrong_type_is_named(void **state) {
    (void)state;
    wrong((fault){.name = "lm_head.weight", .type = DTYPE_U8},
          "tensor 'lm_head.weight' is U8, wanted BF16, F16 or F32");
    wrong((fault){.name = "model.language_model.norm.weight", .type = DTYPE_I8},
          "tensor 'model.language_model.norm.weight' is I8, wanted BF16, F16 or F32");
    wrong((fault){.name = "model.language_model.layers.0.linear_attn.A_log", .type = DTYPE_F64},
          "is F64, wanted BF16, F16 or F32");
    wrong((fault){.name = "lm_head.weight", .type = DTYPE_I16}, "is I16, wanted");
}

static void f32_and_f16_weights_are_taken(void **state) {
    (void)state;
    right((fault){.name = "lm_head.weight", .type = DTYPE_F32});
    right((fault){.name = "lm_head.weight", .type = DTYPE_F16});
    right((fault){.name = "model.language_model.layers.0.linear_attn.A_log", .type = DTYPE_F32});
    right((fault){.name = "layers.0.self_attn.in_proj_weight", .type = DTYPE_F32});
}

static void scalars_may_have_one_dimension(void **state) {
    (void)state;
    right((fault){.name = "residual_gate", .rank = 1, .shape = {1}});
    wrong((fault){.name = "residual_gate", .rank = 1, .shape = {2}}, "has shape [2], wanted []");
    wrong((fault){.name = "residual_gate", .rank = 2, .shape = {1, 1}},
          "has shape [1, 1], wanted []");
}

typedef struct {
    int n;
    clef_error first[2];
} problems;

static void note_problem(void *context, const clef_error *problem) {
    problems *p = context;
    if (p->n < 2) p->first[p->n] = *problem;
    p->n++;
}

static void all_problems_are_reported(void **state) {
    (void)state;
    const fault renamed = {.name = "lm_head.weight", .new_name = "lm_haed.weight"};
    const folder f = make(&renamed);
    arena mem = {0};
    config cfg;
    safetensors *model = NULL, *head = NULL;
    assert_int_equal(config_load(&cfg, f.path, &mem, NULL), CLEF_OK);
    assert_int_equal(safetensors_open_model(&model, f.path, NULL), CLEF_OK);
    assert_int_equal(safetensors_open(&head, folder_path(&f, "joint_head.safetensors"), NULL),
                     CLEF_OK);
    problems p = {0};
    bind_check(model, head, &cfg, note_problem, &p);
    assert_int_equal(p.n, 2);
    assert_non_null(strstr(p.first[0].text, "'lm_head.weight' is missing"));
    assert_non_null(strstr(p.first[1].text, "'lm_haed.weight' is no part"));

    p.n = 0;
    bind_check(NULL, head, &cfg, note_problem, &p);
    assert_int_equal(p.n, 0);
    bind_check(NULL, NULL, &cfg, note_problem, &p);
    assert_int_equal(p.n, 0);
    bind_check(head, model, &cfg, note_problem, &p); /* exchanged: all missing, all extra */
    assert_int_equal(p.n, 2 * (3 + 14 + 11) + 2 * 122);
    safetensors_close(model);
    safetensors_close(head);
    arena_free(&mem);
    folder_remove(f.path);
}

static clef_status open_the_toy(void *context, clef_error *err) {
    bound b;
    const clef_status s = bound_open(&b, context, err);
    bound_close(&b);
    return s;
}

static void every_failed_allocation_is_reported(void **state) {
    (void)state;
    char dir[] = TESTDATA "toy-two-layers";
    assert_true(oom_each(open_the_toy, dir) > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_9b_has_its_published_parameters),
        cmocka_unit_test(the_27b_has_its_published_parameters),
        cmocka_unit_test(the_releases_have_their_published_tensors),
        cmocka_unit_test(the_towers_have_their_published_tensors_and_parameters),
        cmocka_unit_test(every_toy_binds),
        cmocka_unit_test(five_norms_get_their_one_and_the_sixth_does_not),
        cmocka_unit_test(decay_is_minus_exp_of_a_log),
        cmocka_unit_test(the_convolution_keeps_its_taps_together),
        cmocka_unit_test(matrices_stay_in_the_mapping),
        cmocka_unit_test(in_proj_is_cut_into_query_key_and_value),
        cmocka_unit_test(every_head_tensor_goes_to_its_own_place),
        cmocka_unit_test(tied_models_read_lexical_rows_from_the_embedding),
        cmocka_unit_test(layers_follow_layer_types),
        cmocka_unit_test(a_made_checkpoint_binds),
        cmocka_unit_test(a_missing_tensor_is_named),
        cmocka_unit_test(a_tower_binds_where_there_is_one),
        cmocka_unit_test(a_tower_with_one_thing_wrong_is_named),
        cmocka_unit_test(an_extra_tensor_is_named),
        cmocka_unit_test(mtp_tensors_are_ignored),
        cmocka_unit_test(a_tower_without_sizes_is_ignored),
        cmocka_unit_test(a_wrong_shape_is_named_with_both_shapes),
        cmocka_unit_test(a_head_of_another_size_is_refused_with_both_sizes),
        cmocka_unit_test(the_mlx_layout_is_told_apart),
        cmocka_unit_test(a_wrong_type_is_named),
        cmocka_unit_test(f32_and_f16_weights_are_taken),
        cmocka_unit_test(scalars_may_have_one_dimension),
        cmocka_unit_test(all_problems_are_reported),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
