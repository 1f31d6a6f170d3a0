/* synth.c - writes a checkpoint of any geometry with random weights, in the released layout: shards
 * of at most 5 GB and their index, the joint head, the two configurations, a tokenizer. What the
 * engine needs to be run, measured and shown without the published weights.
 *
 * Which tensors there are comes from the table that the engine binds by. The bytes depend on the
 * options alone: value k of a tensor is a function of the seed, the tensor's name and k.
 *
 * Scales keep activations as a trained network has them: matrices give outputs about as large as
 * their inputs, what is added to the residual stream is divided by the square root of the number of
 * additions, and decays of the delta rule spread from under 0.05 to over 0.999 a token.
 *
 * A file gets its name only when it is complete and on the disk, config.json comes last, and a
 * folder that holds one already is refused; so nothing half-written looks like a model. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cpu.h"
#include "base/file.h"
#include "checkpoint/bind.h"

enum { BLOCK_BYTES = 4 << 20, N_STEPS = 4096, MAX_TOKENIZER = 64 << 20 };
static const uint64_t SHARD_BYTES = 5000000000;

static const char help[] =
    "Usage: synth --geometry GEOMETRY --tokenizer FILE --out DIR [options]\n"
    "\n"
    "Writes a checkpoint with random BF16 weights into the new folder DIR.\n"
    "\n"
    "  --geometry GEOMETRY  toy, 0.8b, 2b, 4b, 9b or 27b (read from testdata/, so run this from\n"
    "                       the root of the repository), or a config.json, or the folder of one;\n"
    "                       joint_head_config.json is read from the same folder\n"
    "  --tokenizer FILE     a tokenizer.json, which is copied\n"
    "  --out DIR            the folder to make; DIR may also stand alone\n"
    "  --layers N           that many layers, the geometry's pattern cut or repeated\n"
    "  --vocab N            that many rows of the embedding and lexical tables\n"
    "  --seed N             other weights (0)\n"
    "  --tower              with the vision tower that the geometry's config.json describes\n"
    "\n"
    "Examples:\n"
    "  synth --geometry toy --tokenizer testdata/toy-r2/tokenizer.json --out /tmp/toy\n"
    "  synth --geometry 9b --tokenizer tokenizer.json --out /tmp/flash      (18 GB)\n"
    "  synth --geometry 27b --layers 4 --vocab 1000 --tokenizer tokenizer.json --out /tmp/cut\n";

typedef struct {
    const char *geometry, *tokenizer, *out;
    uint32_t layers, vocab; /* 0: the geometry's */
    uint64_t seed;
    bool tower;
} options;

/* One tensor and where its values come from. */
typedef struct {
    char name[128];
    uint32_t rank;
    uint64_t shape[BIND_MAX_RANK];
    uint64_t bytes;
    float center, spread; /* values are uniform in center +- spread */
    uint32_t shard;
} entry;

typedef struct {
    entry *model, *head;
    uint32_t n_model, n_head;
    const config *cfg;
} entries;

typedef struct {
    const char *dir;
    uint64_t seed, done, total; /* bytes */
    double start;
    unsigned char *block;
} writer;

static void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("synth: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(2);
}

static void *need(void *p) {
    if (p == NULL) die("out of memory");
    return p;
}

static void check(clef_status s, const clef_error *err) {
    if (s != CLEF_OK) die("%s", err->text);
}

/* ---- which values -----------------------------------------------------------------------------
 */

/* Tensors whose scale does not follow from their shape, by the end of their names. */
static const struct {
    const char *suffix;
    float center, spread;
} special[] = {
    {"embed_tokens.weight", 0.0f, 1.7f},
    {"linear_attn.A_log", -2.5f, 3.7f},
    {"pos_embed.weight", 0.0f, 0.5f},
    {"linear_attn.dt_bias", 0.0f, 0.1f},
    {"linear_attn.conv1d.weight", 0.0f, 0.8f},
    {"linear_attn.norm.weight", 1.0f, 0.1f},
    {"type_embedding.weight", 0.0f, 1.0f},
    {"prior_logit_scale", 2.296875f, 0.0f}, /* ln 10 in BF16, as the release is said to have */
    {"joint_logit_scale", 1.5f, 0.0f},
    {"residual_gate", -0.75f, 0.0f},
};

static bool ends_with(str s, const char *suffix) {
    const size_t n = strlen(suffix);
    return s.n >= n && memcmp(s.p + s.n - n, suffix, n) == 0;
}

static void choose_values(entry *e, const bind_tensor *t, const config *cfg) {
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        if (!ends_with(t->name, special[i].suffix)) continue;
        e->center = special[i].center;
        e->spread = special[i].spread;
        return;
    }
    if (t->use == BIND_OFFSET) {
        e->spread = 0.1f;
    } else if (t->use == BIND_MATRIX || t->use == BIND_QKV) {
        float n_in = 1.0f;
        for (uint32_t d = 1; d < t->rank; d++) n_in *= (float)t->shape[d];
        e->spread = sqrtf(3.0f / n_in); /* a standard deviation of n_in^-1/2 */
        if (ends_with(t->name, ".in_proj_a.weight")) e->spread *= 0.25f;
        if (!t->head &&
            (ends_with(t->name, ".o_proj.weight") || ends_with(t->name, ".out_proj.weight") ||
             ends_with(t->name, ".down_proj.weight")))
            e->spread /= sqrtf(2.0f * (float)cfg->n_layers);
        if (ends_with(t->name, ".attn.proj.weight") || ends_with(t->name, ".mlp.linear_fc2.weight"))
            e->spread /= sqrtf(2.0f * (float)cfg->vision.depth);
    } else if (ends_with(t->name, ".weight")) { /* a LayerNorm */
        e->center = 1.0f;
        e->spread = 0.1f;
    } else {
        e->spread = 0.02f;
    }
}

static uint64_t mix(uint64_t x) { /* the finalizer of splitmix64 */
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* Where the stream of a tensor begins: its name hashed with the seed. */
static uint64_t stream_of(const entry *e, uint64_t seed) {
    uint64_t h = mix(seed + 0x9E3779B97F4A7C15u);
    for (const char *p = e->name; *p != '\0'; p++) h = (h ^ (unsigned char)*p) * 0x100000001B3u;
    return mix(h);
}

/* Fills `n_bytes` at `block` with the values of the stream from number `first` on, which is a
 * multiple of 4: each number of the generator gives four values. */
static void fill(unsigned char *block, size_t n_bytes, uint64_t first, uint64_t stream,
                 const uint16_t steps[N_STEPS]) {
    for (size_t at = 0; at < n_bytes; at += 8) {
        const uint64_t r = mix(stream + (first + at / 2) / 4 * 0x9E3779B97F4A7C15u);
        const uint16_t four[4] = {steps[r & 4095], steps[r >> 16 & 4095], steps[r >> 32 & 4095],
                                  steps[r >> 48 & 4095]};
        memcpy(block + at, four, n_bytes - at < 8 ? n_bytes - at : 8);
    }
}

/* ---- files ------------------------------------------------------------------------------------
 */

static void show_progress(const writer *w) {
    static int shown = -1;
    const int percent = w->total == 0 ? 100 : (int)(100 * w->done / w->total);
    if (percent == shown || !isatty(STDERR_FILENO)) return;
    shown = percent;
    const double seconds = cpu_seconds() - w->start;
    fprintf(stderr, "\rsynth: %3d %% of %.1f GB, %.0f MB/s ", percent, (double)w->total / 1e9,
            seconds > 0 ? (double)w->done / 1e6 / seconds : 0.0);
    if (percent == 100) fputc('\n', stderr);
}

typedef struct {
    int fd;
    char *part, *path;
} output;

static output begin_file(const char *dir, const char *name) {
    output o = {.path = need(file_join(dir, name))};
    buf part = {0};
    buf_printf(&part, "%s.part", o.path);
    o.part = need(buf_take(&part));
    o.fd = open(o.part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (o.fd < 0) die("%s: %s", o.part, strerror(errno));
    return o;
}

static void put(output *o, const void *bytes, size_t n) {
    const char *p = bytes;
    while (n > 0) {
        const ssize_t done = write(o->fd, p, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) {
            const int why = errno;
            unlink(o->part);
            die("%s: %s", o->path, strerror(why));
        }
        p += done;
        n -= (size_t)done;
    }
}

static void finish_file(output *o) {
    const bool safe = fsync(o->fd) == 0;
    if (close(o->fd) != 0 || !safe || rename(o->part, o->path) != 0) {
        const int why = errno;
        unlink(o->part);
        die("%s: %s", o->path, strerror(why));
    }
    free(o->part);
    free(o->path);
}

static void write_text(const char *dir, const char *name, buf *text) {
    if (text->failed) die("out of memory");
    output o = begin_file(dir, name);
    put(&o, text->p, text->n);
    finish_file(&o);
    buf_free(text);
}

static void write_values(writer *w, output *o, const entry *e) {
    uint16_t steps[N_STEPS];
    for (int i = 0; i < N_STEPS; i++) {
        const float u = (2.0f * (float)i + 1.0f) / N_STEPS - 1.0f;
        steps[i] = bf16_from_float(e->center + e->spread * u);
    }
    const uint64_t stream = stream_of(e, w->seed);
    for (uint64_t at = 0; at < e->bytes; at += BLOCK_BYTES) {
        const size_t n = e->bytes - at < BLOCK_BYTES ? (size_t)(e->bytes - at) : BLOCK_BYTES;
        fill(w->block, n, at / 2, stream, steps);
        put(o, w->block, n);
        w->done += n;
        show_progress(w);
    }
}

static void add_header_entry(buf *header, const entry *e, uint64_t at) {
    const uint64_t end = at + e->bytes;
    buf_printf(header, ",\"%s\":{\"dtype\":\"BF16\",\"shape\":[", e->name);
    for (uint32_t d = 0; d < e->rank; d++)
        buf_printf(header, "%s%llu", d == 0 ? "" : ",", (unsigned long long)e->shape[d]);
    buf_printf(header, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at,
               (unsigned long long)end);
}

/* Whether `e` belongs to this pass over a shard: sizes that are multiples of 64 come first, so that
 * all big tensors are aligned to 64 bytes without holes. */
static bool in_pass(const entry *e, uint32_t shard, int pass) {
    return e->shard == shard && (e->bytes % 64 != 0) == pass;
}

static void write_shard(writer *w, const char *name, const entry *list, uint32_t n,
                        uint32_t shard) {
    buf header = {0};
    uint64_t at = 0;
    buf_add_text(&header, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < n; i++) {
            if (!in_pass(&list[i], shard, pass)) continue;
            add_header_entry(&header, &list[i], at);
            at += list[i].bytes;
        }
    }
    buf_add_char(&header, '}');
    while (!header.failed && (8 + header.n) % 64 != 0) buf_add_char(&header, ' ');
    if (header.failed) die("out of memory");

    output o = begin_file(w->dir, name);
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)header.n >> 8 * i);
    put(&o, length, sizeof length);
    put(&o, header.p, header.n);
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < n; i++)
            if (in_pass(&list[i], shard, pass)) write_values(w, &o, &list[i]);
    finish_file(&o);
    buf_free(&header);
}

static void shard_name(char name[64], uint32_t shard, uint32_t n_shards) {
    if (n_shards == 1)
        snprintf(name, 64, "model.safetensors");
    else
        snprintf(name, 64, "model-%05u-of-%05u.safetensors", shard + 1, n_shards);
}

static void write_index(const writer *w, const entries *all, uint32_t n_shards) {
    buf text = {0};
    uint64_t total = 0;
    for (uint32_t i = 0; i < all->n_model; i++) total += all->model[i].bytes;
    buf_printf(&text, "{\n  \"metadata\": {\"total_size\": %llu},\n  \"weight_map\": {",
               (unsigned long long)total);
    for (uint32_t i = 0; i < all->n_model; i++) {
        char name[64];
        shard_name(name, all->model[i].shard, n_shards);
        buf_printf(&text, "%s\n    \"%s\": \"%s\"", i == 0 ? "" : ",", all->model[i].name, name);
    }
    buf_add_text(&text, "\n  }\n}\n");
    write_text(w->dir, "model.safetensors.index.json", &text);
}

/* ---- configurations ---------------------------------------------------------------------------
 */

/* A factor that the reader turns back into the same number of dims, whatever it rounds. */
static double rotary_factor(const config *c) {
    const double exact = (double)c->rotary_dim / c->head_dim;
    if ((uint32_t)(c->head_dim * exact) == c->rotary_dim) return exact;
    return (c->rotary_dim + 0.5) / c->head_dim;
}

static void write_config(const char *dir, const config *c) {
    buf text = {0};
    const char *tied = c->tied ? "true" : "false";
    buf_printf(&text,
               "{\n  \"architectures\": [\"Qwen3_5ForConditionalGeneration\"],\n"
               "  \"dtype\": \"bfloat16\",\n  \"model_type\": \"qwen3_5\",\n"
               "  \"tie_word_embeddings\": %s,\n  \"text_config\": {\n",
               tied);
    const struct {
        const char *name;
        uint32_t value;
    } sizes[] = {
        {"hidden_size", c->hidden},
        {"intermediate_size", c->intermediate},
        {"num_hidden_layers", c->n_layers},
        {"vocab_size", c->vocab},
        {"max_position_embeddings", c->max_positions},
        {"num_attention_heads", c->n_heads},
        {"num_key_value_heads", c->n_kv_heads},
        {"head_dim", c->head_dim},
        {"linear_num_key_heads", c->n_key_heads},
        {"linear_num_value_heads", c->n_value_heads},
        {"linear_key_head_dim", c->key_dim},
        {"linear_value_head_dim", c->value_dim},
        {"linear_conv_kernel_dim", c->conv_kernel},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        buf_printf(&text, "    \"%s\": %u,\n", sizes[i].name, sizes[i].value);
    buf_add_text(&text, "    \"layer_types\": [");
    for (uint32_t i = 0; i < c->n_layers; i++)
        buf_printf(&text, "%s\"%s_attention\"", i == 0 ? "" : ", ", c->full[i] ? "full" : "linear");
    buf_printf(&text,
               "],\n    \"model_type\": \"qwen3_5_text\",\n    \"dtype\": \"bfloat16\",\n"
               "    \"hidden_act\": \"silu\",\n    \"attention_bias\": false,\n"
               "    \"attn_output_gate\": true,\n    \"mamba_ssm_dtype\": \"float32\",\n"
               "    \"rms_norm_eps\": %.9g,\n    \"tie_word_embeddings\": %s,\n"
               "    \"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": %.17g, "
               "\"partial_rotary_factor\": %.17g, \"mrope_interleaved\": true, "
               "\"mrope_section\": [%u, %u, %u]}\n  }",
               (double)c->rms_eps, tied, c->rope_theta, rotary_factor(c), c->rope_sections[0],
               c->rope_sections[1], c->rope_sections[2]);
    const vision_sizes *v = &c->vision;
    if (v->depth > 0)
        buf_printf(&text,
                   ",\n  \"vision_config\": {\"depth\": %u, \"hidden_size\": %u, "
                   "\"intermediate_size\": %u, \"num_heads\": %u, "
                   "\"num_position_embeddings\": %u, \"out_hidden_size\": %u}",
                   v->depth, v->hidden, v->intermediate, v->n_heads, v->side * v->side, c->hidden);
    buf_add_text(&text, "\n}\n");
    write_text(dir, "config.json", &text);
}

static void write_head_config(const char *dir, const config *c) {
    buf text = {0};
    buf_printf(&text,
               "{\"hidden_size\": %u, \"width\": %u, \"routing_layers\": %u, \"layers\": %u, "
               "\"heads\": %u, \"feedforward\": %u}\n",
               c->hidden, c->head_width, c->head_routing_layers, c->head_layers, c->head_heads,
               c->head_feedforward);
    write_text(dir, "joint_head_config.json", &text);
}

static void copy_tokenizer(const char *dir, const char *path) {
    buf text = {0};
    clef_error err = {0};
    check(file_read(&text, path, MAX_TOKENIZER, &err), &err);
    write_text(dir, "tokenizer.json", &text);
}

/* ---- planning ---------------------------------------------------------------------------------
 */

static void count_tensor(void *context, const bind_tensor *t) {
    entries *all = context;
    if (t->head)
        all->n_head++;
    else
        all->n_model++;
}

static void add_tensor(void *context, const bind_tensor *t) {
    entries *all = context;
    entry *e = t->head ? &all->head[all->n_head++] : &all->model[all->n_model++];
    *e = (entry){.rank = t->rank, .bytes = 2};
    memcpy(e->name, t->name.p, t->name.n);
    for (uint32_t d = 0; d < t->rank; d++) {
        e->shape[d] = t->shape[d];
        e->bytes *= t->shape[d];
    }
    choose_values(e, t, all->cfg);
}

static entries list_tensors(const config *cfg) {
    entries all = {.cfg = cfg};
    bind_each(cfg, count_tensor, &all);
    all.model = need(calloc(all.n_model, sizeof *all.model));
    all.head = need(calloc(all.n_head, sizeof *all.head));
    all.n_model = all.n_head = 0;
    bind_each(cfg, add_tensor, &all);
    return all;
}

/* Deals the model's tensors out to shards in order; returns how many shards there are. */
static uint32_t deal_out(entries *all) {
    uint32_t shard = 0;
    uint64_t filled = 0;
    for (uint32_t i = 0; i < all->n_model; i++) {
        entry *e = &all->model[i];
        if (filled > 0 && filled + e->bytes > SHARD_BYTES) {
            shard++;
            filled = 0;
        }
        e->shard = shard;
        filled += e->bytes;
    }
    return shard + 1;
}

/* Reads the geometry into *cfg, whose layer pattern lives in `mem`. */
static void load_geometry(config *cfg, const options *o, arena *mem) {
    buf dir = {0};
    clef_error err = {0};
    const char *slash = strrchr(o->geometry, '/');
    if (strcmp(o->geometry, "toy") == 0)
        buf_add_text(&dir, "testdata/toy-r2");
    else if (slash == NULL && !file_exists(o->geometry))
        buf_printf(&dir, "testdata/checkpoint/%s", o->geometry);
    else if (ends_with(str_of(o->geometry), ".json"))
        buf_add(&dir, slash == NULL ? "." : o->geometry,
                slash == NULL ? 1 : (size_t)(slash - o->geometry) + 1);
    else
        buf_add_text(&dir, o->geometry);
    if (dir.failed) die("out of memory");
    check(config_load(cfg, dir.p, mem, &err), &err);
    if (o->tower) {
        check(config_load_vision(cfg, dir.p, mem, &err), &err);
        if (cfg->vision.depth == 0) die("%s/config.json: describes no vision tower", dir.p);
    }
    buf_free(&dir);
    if (o->vocab != 0) cfg->vocab = o->vocab;
    if (o->layers == 0) return;
    bool *full = need(arena_alloc(mem, o->layers, sizeof *full));
    for (uint32_t i = 0; i < o->layers; i++) full[i] = cfg->full[i % cfg->n_layers];
    cfg->full = full;
    cfg->n_layers = o->layers;
}

/* Makes the folder and sees that it is free and large enough. */
static void prepare_folder(const options *o, uint64_t bytes) {
    if (mkdir(o->out, 0777) != 0 && errno != EEXIST) die("%s: %s", o->out, strerror(errno));
    char *config_path = need(file_join(o->out, "config.json"));
    if (file_exists(config_path)) die("%s: exists already; nothing is overwritten", config_path);
    free(config_path);
    struct statvfs disk;
    if (statvfs(o->out, &disk) != 0) die("%s: %s", o->out, strerror(errno));
    const uint64_t free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (free_bytes < bytes)
        die("%s: %.1f GB free, wanted %.1f GB", o->out, (double)free_bytes / 1e9,
            (double)bytes / 1e9);
}

/* What was written has to open as the engine opens it. */
static void verify(const char *dir) {
    arena mem = {0};
    config cfg;
    weights w;
    safetensors *model = NULL, *head = NULL;
    clef_error err = {0};
    char *head_path = need(file_join(dir, "joint_head.safetensors"));
    check(config_load(&cfg, dir, &mem, &err), &err);
    check(safetensors_open_model(&model, dir, &err), &err);
    if (bind_has_tower(model)) check(config_load_vision(&cfg, dir, &mem, &err), &err);
    check(safetensors_open(&head, head_path, &err), &err);
    check(bind_weights(&w, model, head, &cfg, &mem, &err), &err);
    safetensors_close(model);
    safetensors_close(head);
    free(head_path);
    arena_free(&mem);
}

static uint64_t parse_number(const char *name, const char *text, uint64_t max) {
    char *end = NULL;
    errno = 0;
    const unsigned long long n = text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    if (end == NULL || *end != '\0' || errno != 0 || n > max)
        die("%s: found '%s', wanted a number up to %llu", name, text, (unsigned long long)max);
    return n;
}

static options parse_options(int argc, char **argv) {
    options o = {0};
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (strcmp(name, "--help") == 0) {
            fputs(help, stdout);
            exit(0);
        }
        if (name[0] != '-') {
            if (o.out != NULL) die("two folders to write: %s and %s", o.out, name);
            o.out = name;
            continue;
        }
        if (strcmp(name, "--tower") == 0) {
            o.tower = true;
            continue;
        }
        if (i + 1 == argc) die("%s: wanted a value; --help lists the options", name);
        const char *value = argv[++i];
        if (strcmp(name, "--geometry") == 0)
            o.geometry = value;
        else if (strcmp(name, "--tokenizer") == 0)
            o.tokenizer = value;
        else if (strcmp(name, "--out") == 0)
            o.out = value;
        else if (strcmp(name, "--layers") == 0)
            o.layers = (uint32_t)parse_number(name, value, 1024);
        else if (strcmp(name, "--vocab") == 0)
            o.vocab = (uint32_t)parse_number(name, value, 1 << 24);
        else if (strcmp(name, "--seed") == 0)
            o.seed = parse_number(name, value, UINT64_MAX);
        else
            die("unknown option %s; --help lists them", name);
    }
    if (o.geometry == NULL) die("--geometry is missing; --help lists the options");
    if (o.tokenizer == NULL) die("--tokenizer is missing; --help lists the options");
    if (o.out == NULL) die("--out is missing; --help lists the options");
    return o;
}

int main(int argc, char **argv) {
    const options o = parse_options(argc, argv);
    arena mem = {0};
    config cfg = {0};
    load_geometry(&cfg, &o, &mem);
    entries all = list_tensors(&cfg);
    const uint32_t n_shards = deal_out(&all);
    writer w = {.dir = o.out, .seed = o.seed, .start = cpu_seconds()};
    for (uint32_t i = 0; i < all.n_model; i++) w.total += all.model[i].bytes;
    for (uint32_t i = 0; i < all.n_head; i++) w.total += all.head[i].bytes;
    prepare_folder(&o, w.total + MAX_TOKENIZER);
    w.block = need(malloc(BLOCK_BYTES));

    copy_tokenizer(o.out, o.tokenizer);
    for (uint32_t i = 0; i < n_shards; i++) {
        char name[64];
        shard_name(name, i, n_shards);
        write_shard(&w, name, all.model, all.n_model, i);
    }
    if (n_shards > 1) write_index(&w, &all, n_shards);
    write_shard(&w, "joint_head.safetensors", all.head, all.n_head, 0);
    write_head_config(o.out, &cfg);
    write_config(o.out, &cfg);
    verify(o.out);

    const double seconds = cpu_seconds() - w.start;
    const bind_counts counts = bind_parameters(&cfg);
    printf("%s: %u layers, %llu + %llu parameters, %llu bytes of weights in %u + 1 files, %.1f s\n",
           o.out, cfg.n_layers, (unsigned long long)counts.language_model + counts.vision,
           (unsigned long long)counts.head, (unsigned long long)w.total, n_shards, seconds);
    free(w.block);
    free(all.model);
    free(all.head);
    arena_free(&mem);
    return 0;
}
