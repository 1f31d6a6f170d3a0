/* convert.c - clef_convert: a checkpoint becomes the same checkpoint with linears of fewer bits.
 *
 * The work is done in "OUT.partial", which becomes OUT by one rename when everything in it is
 * complete and on the disk; so a folder called OUT is whole at any moment. bundle.json is written
 * last, so the partial folder does not open before it is complete either. A run that ends early
 * leaves the finished shards there, each with a record of its sums and of what rounding lost, and
 * the same command takes them over after comparing their sums.
 *
 * The bytes are a function of the source's bytes, the format, the tables and the 16-bit layers:
 * rows are quantised by themselves, what they lost is added in row order, and nothing tells of
 * time, place or threads. Every file of the source is summed first, because the sums' sum (the id)
 * stands in the header of each shard: files of two conversions cannot be mixed unseen.
 *
 * Memory: the source is mapped and forgotten piece by piece, a few megabytes of rows are worked on
 * at a time, and the scales of a linear wait until their place in the file comes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/file.h"
#include "base/pool.h"
#include "checkpoint/bundle.h"
#include "checkpoint/hub.h"
#include "checkpoint/layout.h"
#include "checkpoint/output.h"
#include "text/pyjson.h"

enum { PIECE_BYTES = 4 << 20, MAX_RECORD = 16 << 20 };
#define HEAD_NAME "joint_head.safetensors"
#define INDEX_NAME "model.safetensors.index.json"
#define SUMS_NAME "SHA256SUMS"

/* Files that are copied as they are. */
static const struct {
    const char *name;
    bool required;
} copied[] = {
    {"config.json", true},
    {"joint_head_config.json", true},
    {"tokenizer.json", true},
    {"tokenizer_config.json", false},
    {"processor_config.json", false},
    {"LICENSE", false},
    {HEAD_NAME, true},
};
enum { N_COPIED = sizeof copied / sizeof *copied };

static bool is_copied(const char *name) {
    for (size_t k = 0; k < N_COPIED; k++)
        if (strcmp(name, copied[k].name) == 0) return true;
    return false;
}

static const char *const format_names[] = {[CLEF_FORMAT_INT8MIX] = "int8mix",
                                           [CLEF_FORMAT_INT8] = "int8",
                                           [CLEF_FORMAT_INT6] = "int6",
                                           [CLEF_FORMAT_INT4MIX] = "int4mix",
                                           [CLEF_FORMAT_INT4] = "int4"};
enum { N_FORMATS = sizeof format_names / sizeof *format_names };

/* A file that was read or written. */
typedef struct {
    const char *name;
    uint64_t bytes;
    char sum[DIGEST_HEX], header_sum[DIGEST_HEX]; /* header_sum: of shards, else empty */
} file_sum;

typedef struct {
    code_loss loss;
    char scales_sum[DIGEST_HEX];
    uint16_t *scales; /* between codes and scales */
} item_result;

typedef struct {
    const clef_convert_options *o;
    char *dir, *out, *partial;
    int lock; /* descriptor of `partial`, locked; -1: none */
    arena mem;
    config cfg;
    safetensors *model, *head;
    bool *wide; /* [n_layers]: stays at 16 bit */
    allotment a;
    layout l;
    item_result *results; /* [a.n_items]; of those that become codes */
    file_sum *sources, *files;
    uint32_t n_sources, n_files;
    char id[DIGEST_HEX];
    pool *workers;
    float *rows;          /* [threads][most n_in] */
    unsigned char *codes; /* of a piece of rows */
    size_t most_in;
    uint64_t done, total; /* bytes */
} conversion;

static clef_status advance(void *context, size_t n, clef_error *err) {
    conversion *c = context;
    c->done += n;
    if (c->o->progress == NULL) return CLEF_OK;
    const uint64_t done = c->done < c->total ? c->done : c->total;
    if (c->o->progress(c->o->user, (size_t)done, (size_t)c->total) == 0) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_CANCELLED,
                     "stopped; the same command goes on with what is in %s", c->partial);
}

/* ---- which layers -----------------------------------------------------------------------------
 */

static clef_status wrong_layers(const char *text, uint32_t n_layers, clef_error *err) {
    return clef_fail(err, CLEF_ERR_INPUT,
                     "layers-16bit: '%s' is no list of layers such as 0-11 or 0,3,5-7 below %u",
                     text, n_layers);
}

/* Digits only; false beyond `max`. */
static bool take_number(const char **p, uint32_t max, uint32_t *out) {
    uint64_t value = 0;
    const char *begin = *p;
    for (; **p >= '0' && **p <= '9' && value <= max; (*p)++)
        value = value * 10 + (uint64_t)(**p - '0');
    *out = (uint32_t)value;
    return *p > begin && value <= max;
}

static clef_status read_layers(bool *wide, const char *text, uint32_t n_layers, clef_error *err) {
    for (const char *p = text;; p++) {
        uint32_t first = 0, last = 0;
        if (!take_number(&p, n_layers - 1, &first)) return wrong_layers(text, n_layers, err);
        last = first;
        if (*p == '-') {
            p++;
            if (!take_number(&p, n_layers - 1, &last)) return wrong_layers(text, n_layers, err);
        }
        if (last < first || (*p != ',' && *p != '\0')) return wrong_layers(text, n_layers, err);
        for (uint32_t i = first; i <= last; i++) wide[i] = true;
        if (*p == '\0') return CLEF_OK;
    }
}

static clef_status choose_layers(conversion *c, clef_error *err) {
    const uint32_t n = c->cfg.n_layers;
    c->wide = arena_alloc(&c->mem, n, sizeof *c->wide);
    if (c->wide == NULL) return clef_fail_memory(err);
    if (c->o->layers_16bit != NULL) return read_layers(c->wide, c->o->layers_16bit, n, err);
    for (uint32_t i = 0; i < n; i++) c->wide[i] = allot_wide(c->o->format, i, n);
    return CLEF_OK;
}

/* ---- source and target ------------------------------------------------------------------------
 */

static clef_status open_source(conversion *c, clef_error *err) {
    weights w;
    char *head_path = NULL;
    TRY(config_load(&c->cfg, c->dir, &c->mem, err));
    TRY(safetensors_open_model(&c->model, c->dir, err));
    TRY(hub_file(&head_path, c->dir, HEAD_NAME, err));
    const clef_status s = safetensors_open(&c->head, head_path, err);
    free(head_path);
    TRY(s);
    for (uint32_t i = 0; i < safetensors_count(c->model); i++) {
        const safetensors_entry e = safetensors_at(c->model, i);
        if (e.tensor->type == DTYPE_I8 || e.tensor->type == DTYPE_U8)
            return clef_fail(err, CLEF_ERR_INPUT,
                             "%s: tensor '%.*s' is %s: the model is converted already; convert the "
                             "released one",
                             e.file, STR_ARG(e.name), dtype_name(e.tensor->type));
    }
    return bind_weights(&w, c->model, c->head, &c->cfg, &c->mem, err);
}

/* The folder that `out` will stand in, resolved. */
static clef_status resolve_parent(char **parent, const char *out, clef_error *err) {
    const char *slash = strrchr(out, '/');
    buf name = {0};
    if (slash == NULL)
        buf_add_text(&name, ".");
    else
        buf_add(&name, out, slash == out ? 1 : (size_t)(slash - out));
    clef_status s = buf_status(&name, err);
    if (s == CLEF_OK && (*parent = realpath(name.p, NULL)) == NULL)
        s = clef_fail(err, CLEF_ERR_IO, "%s: %s: the folder to write into has to exist", name.p,
                      strerror(errno));
    buf_free(&name);
    return s;
}

static bool is_within(const char *path, const char *root) {
    const size_t n = strlen(root);
    return strncmp(path, root, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* Refuses a target that exists, is the source, or lies inside it. */
static clef_status check_target(const conversion *c, clef_error *err) {
    struct stat st;
    char *source = realpath(c->dir, NULL), *parent = NULL, *target = realpath(c->out, NULL);
    clef_status s = CLEF_OK;
    if (source == NULL) s = clef_fail(err, CLEF_ERR_IO, "%s: %s", c->dir, strerror(errno));
    if (s == CLEF_OK && target != NULL && strcmp(source, target) == 0)
        s = clef_fail(err, CLEF_ERR_INPUT,
                      "%s: is the model itself, which is never written to: name a new folder",
                      c->out);
    if (s == CLEF_OK && lstat(c->out, &st) == 0)
        s = clef_fail(err, CLEF_ERR_INPUT, "%s: exists already: name a new folder, or remove it",
                      c->out);
    if (s == CLEF_OK) s = resolve_parent(&parent, c->out, err);
    if (s == CLEF_OK && is_within(parent, source))
        s = clef_fail(err, CLEF_ERR_INPUT,
                      "%s: is inside the model, which is never written to: name a folder elsewhere",
                      c->out);
    free(source);
    free(parent);
    free(target);
    return s;
}

/* Whether a killed conversion may have left an entry of this name. */
static bool is_ours(const char *name) {
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return true;
    unsigned i = 0, n = 0;
    int used = 0;
    /* Both numbers have at most five digits. NOLINTNEXTLINE(cert-err34-c) */
    if (sscanf(name, "model-%5u-of-%5u.safetensors%n", &i, &n, &used) == 2 && used > 0) {
        const char *rest = name + used;
        return strcmp(rest, "") == 0 || strcmp(rest, ".part") == 0 ||
               strcmp(rest, ".record") == 0 || strcmp(rest, ".record.part") == 0;
    }
    static const char *const written[] = {INDEX_NAME, BUNDLE_NAME, SUMS_NAME};
    char plain[64];
    size_t length = strlen(name);
    if (length > 5 && strcmp(name + length - 5, ".part") == 0) length -= 5;
    if (length >= sizeof plain) return false;
    memcpy(plain, name, length);
    plain[length] = '\0';
    for (size_t k = 0; k < sizeof written / sizeof *written; k++)
        if (strcmp(plain, written[k]) == 0) return true;
    return is_copied(plain);
}

/* Whether this conversion can use the entry: a finished shard of its own, or the record of one. */
static bool is_wanted(const conversion *c, const char *name) {
    for (uint32_t i = 0; i < c->l.n_shards; i++) {
        const size_t n = strlen(c->l.shards[i].name);
        if (strncmp(name, c->l.shards[i].name, n) != 0) continue;
        if (name[n] == '\0' || strcmp(name + n, ".record") == 0) return true;
    }
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Calls `visit` for each entry of the partial folder. */
static clef_status each_entry(conversion *c,
                              clef_status (*visit)(conversion *, const char *, clef_error *),
                              clef_error *err) {
    DIR *d = opendir(c->partial);
    if (d == NULL) return clef_fail(err, CLEF_ERR_IO, "%s: %s", c->partial, strerror(errno));
    clef_status s = CLEF_OK;
    for (const struct dirent *e = readdir(d); s == CLEF_OK && e != NULL; e = readdir(d))
        s = visit(c, e->d_name, err);
    closedir(d);
    return s;
}

static clef_status refuse_strange(conversion *c, const char *name, clef_error *err) {
    if (is_ours(name)) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_INPUT,
                     "%s/%s: was not left by a conversion: remove %s or name another target",
                     c->partial, name, c->partial);
}

static clef_status remove_entry(conversion *c, const char *name, clef_error *err) {
    char *path = file_join(c->partial, name);
    if (path == NULL) return clef_fail_memory(err);
    clef_status s = CLEF_OK;
    if (unlink(path) != 0 && errno != ENOENT)
        s = clef_fail(err, CLEF_ERR_IO, "%s: cannot be removed: %s%s", path, strerror(errno),
                      output_advice(errno));
    free(path);
    return s;
}

static clef_status remove_unwanted(conversion *c, const char *name, clef_error *err) {
    return is_wanted(c, name) ? CLEF_OK : remove_entry(c, name, err);
}

/* Makes the partial folder, or takes over what a conversion left in it. */
static clef_status open_partial(conversion *c, clef_error *err) {
    if (mkdir(c->partial, 0777) != 0 && errno != EEXIST)
        return clef_fail(err, CLEF_ERR_IO, "%s: cannot be created: %s%s", c->partial,
                         strerror(errno), output_advice(errno));
    c->lock = open(c->partial, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (c->lock < 0) return clef_fail(err, CLEF_ERR_IO, "%s: %s", c->partial, strerror(errno));
    if (flock(c->lock, LOCK_EX | LOCK_NB) != 0)
        return clef_fail(err, CLEF_ERR_INPUT, "%s: another conversion is writing there",
                         c->partial);
    TRY(each_entry(c, refuse_strange, err));
    return each_entry(c, remove_unwanted, err);
}

/* Before hours of work: whether it fits. */
static clef_status check_room(const conversion *c, clef_error *err) {
    struct statvfs fs;
    if (statvfs(c->partial, &fs) != 0) return CLEF_OK; /* writing will tell */
    uint64_t needed = 0;
    for (uint32_t i = 0; i < c->l.n_shards; i++) {
        struct stat st;
        char *path = file_join(c->partial, c->l.shards[i].name);
        if (path == NULL) return clef_fail_memory(err);
        if (stat(path, &st) != 0) needed += c->l.shards[i].data_bytes;
        free(path);
    }
    for (uint32_t i = 0; i < c->n_sources; i++)
        if (is_copied(c->sources[i].name)) needed += c->sources[i].bytes;
    const uint64_t there = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (needed <= there) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_IO,
                     "%s: %.1f MB are needed and %.1f MB free: make room, or choose a target on "
                     "another disk",
                     c->out, 1e-6 * (double)needed, 1e-6 * (double)there);
}

/* ---- summing the source -----------------------------------------------------------------------
 */

static int by_file_name(const void *a, const void *b) {
    return strcmp(((const file_sum *)a)->name, ((const file_sum *)b)->name);
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static clef_status add_source(conversion *c, const char *name, bool required, clef_error *err) {
    char *joined = file_join(c->dir, name), *path = NULL;
    if (joined == NULL) return clef_fail_memory(err);
    const bool there = file_exists(joined);
    free(joined);
    if (!there && !required) return CLEF_OK;
    TRY(hub_file(&path, c->dir, name, err));
    struct stat st;
    clef_status s = CLEF_OK;
    if (stat(path, &st) != 0) s = clef_fail(err, CLEF_ERR_IO, "%s: %s", path, strerror(errno));
    free(path);
    if (s == CLEF_OK)
        c->sources[c->n_sources++] = (file_sum){.name = name, .bytes = (uint64_t)st.st_size};
    return s;
}

/* Names and sizes of everything that is read: small files, index, head, then the shards by name. */
static clef_status list_sources(conversion *c, clef_error *err) {
    const uint32_t n_tensors = safetensors_count(c->model);
    c->sources = arena_alloc(&c->mem, (size_t)n_tensors + N_COPIED + 1, sizeof *c->sources);
    if (c->sources == NULL) return clef_fail_memory(err);
    for (uint32_t i = 0; i < N_COPIED; i++)
        TRY(add_source(c, copied[i].name, copied[i].required, err));
    TRY(add_source(c, INDEX_NAME, false, err));
    const uint32_t first = c->n_sources;
    for (uint32_t i = 0; i < n_tensors; i++) {
        const char *name = base_name(safetensors_at(c->model, i).file);
        uint32_t k = first;
        while (k < c->n_sources && strcmp(c->sources[k].name, name) != 0) k++;
        if (k == c->n_sources) TRY(add_source(c, name, true, err));
    }
    qsort(c->sources + first, c->n_sources - first, sizeof *c->sources, by_file_name);
    return CLEF_OK;
}

/* Sums every source, and the sums, the format, the tables and the layers to the id. */
static clef_status sum_sources(conversion *c, clef_error *err) {
    buf text = {0};
    buf_printf(&text, "%s %d %s%s", BUNDLE_FORMAT, BUNDLE_VERSION, format_names[c->o->format],
               c->o->tables == CLEF_TABLES_INT8 ? " tables" : "");
    for (uint32_t i = 0; i < c->cfg.n_layers; i++)
        if (c->wide[i]) buf_printf(&text, " %u", i);
    clef_status s = CLEF_OK;
    for (uint32_t i = 0; s == CLEF_OK && i < c->n_sources; i++) {
        file_sum *f = &c->sources[i];
        char *path = NULL;
        s = hub_file(&path, c->dir, f->name, err);
        if (s == CLEF_OK) s = digest_file(f->sum, &f->bytes, path, advance, c, err);
        free(path);
        buf_printf(&text, "\n%s %s", f->sum, f->name);
    }
    if (s == CLEF_OK) s = buf_status(&text, err);
    if (s == CLEF_OK) s = digest_bytes(c->id, text.p, text.n, err);
    buf_free(&text);
    return s;
}

/* ---- writing a shard --------------------------------------------------------------------------
 */

typedef struct {
    code_loss loss;
    bool representable;
} row_result;

typedef struct {
    const conversion *c;
    const allot_item *it;
    uint16_t *scales;
    row_result *results;
    size_t first_row, n_in;
} piece;

static void quantise_row(void *context, size_t item, unsigned worker) {
    const piece *p = context;
    const tensor *source = p->it->source;
    float *row = p->c->rows + worker * p->c->most_in;
    const size_t at = p->first_row + item;
    tensor_to_float(row, source->type, source->data, at * p->n_in, p->n_in);
    row_result *r = &p->results[item];
    r->representable =
        codes_quantise_row(p->it->type, p->c->codes + codes_bytes(p->it->type, item * p->n_in),
                           p->scales + at * (p->n_in / INT8_BLOCK), row, p->n_in, &r->loss);
}

/* Quantises and writes `n_rows` rows, and adds up what they lost. */
static clef_status write_rows(conversion *c, output *o, const layout_entry *e, piece *p,
                              size_t n_rows, clef_error *err) {
    const char *data = e->source->data;
    const size_t row_bytes = p->n_in * dtype_bits(e->source->type) / 8;
    const size_t n_bytes = codes_bytes(p->it->type, n_rows * p->n_in);
    pool_run(c->workers, n_rows, quantise_row, p);
    for (size_t i = 0; i < n_rows; i++) {
        if (!p->results[i].representable)
            return clef_fail(err, CLEF_ERR_FORMAT,
                             "%s: tensor '%.*s' holds a value in row %zu that is not finite or "
                             "beyond 65504, the largest that F16 scales can stand for",
                             safetensors_file_of(c->model, e->source), STR_ARG(e->name),
                             p->first_row + i);
        code_loss_add(&c->results[e->item].loss, &p->results[i].loss);
    }
    file_forget(data + p->first_row * row_bytes, n_rows * row_bytes);
    TRY(output_write(o, c->codes, n_bytes, err));
    return advance(c, n_bytes, err);
}

static clef_status write_codes(conversion *c, output *o, const layout_entry *e, clef_error *err) {
    const allot_item *it = &c->a.items[e->item];
    const size_t n_out = (size_t)it->source->shape[0], n_in = (size_t)it->source->shape[1];
    const size_t most = PIECE_BYTES / n_in > 0 ? PIECE_BYTES / n_in : 1;
    item_result *r = &c->results[e->item];
    r->loss = (code_loss){0};
    r->scales = malloc(n_out * n_in / INT8_BLOCK * sizeof *r->scales);
    piece p = {.c = c, .it = it, .scales = r->scales, .n_in = n_in};
    p.results = malloc(most * sizeof *p.results);
    clef_status s = r->scales == NULL || p.results == NULL ? clef_fail_memory(err) : CLEF_OK;
    for (; s == CLEF_OK && p.first_row < n_out; p.first_row += most) {
        const size_t left = n_out - p.first_row;
        s = write_rows(c, o, e, &p, left < most ? left : most, err);
    }
    free(p.results);
    return s;
}

static clef_status write_scales(conversion *c, output *o, const layout_entry *e, clef_error *err) {
    item_result *r = &c->results[e->item];
    clef_status s = digest_bytes(r->scales_sum, r->scales, e->shape.bytes, err);
    if (s == CLEF_OK) s = output_write(o, r->scales, e->shape.bytes, err);
    free(r->scales);
    r->scales = NULL;
    return s == CLEF_OK ? advance(c, e->shape.bytes, err) : s;
}

static clef_status write_copy(conversion *c, output *o, const layout_entry *e, clef_error *err) {
    const char *data = e->source->data;
    for (size_t at = 0; at < e->shape.bytes; at += PIECE_BYTES) {
        const size_t left = e->shape.bytes - at, n = left < PIECE_BYTES ? left : PIECE_BYTES;
        TRY(output_write(o, data + at, n, err));
        file_forget(data + at, n);
        TRY(advance(c, n, err));
    }
    return CLEF_OK;
}

static clef_status write_entries(conversion *c, output *o, const layout_shard *shard,
                                 clef_error *err) {
    clef_status s = CLEF_OK;
    for (uint32_t i = 0; s == CLEF_OK && i < shard->n_entries; i++) {
        const layout_entry *e = &shard->entries[i];
        s = e->kind == LAYOUT_COPY    ? write_copy(c, o, e, err)
            : e->kind == LAYOUT_CODES ? write_codes(c, o, e, err)
                                      : write_scales(c, o, e, err);
    }
    return s;
}

/* ---- records of finished shards ---------------------------------------------------------------
 */

/* "id sum bytes", then for each item of the shard "sum error2 size2 largest clipped". */
static clef_status write_record(const conversion *c, const layout_shard *shard, const file_sum *f,
                                const char *name, clef_error *err) {
    buf text = {0};
    char hex[DIGEST_HEX];
    buf_printf(&text, "%s %s %llu\n", c->id, f->sum, (unsigned long long)f->bytes);
    for (uint32_t i = 0; i < shard->n_entries; i++) {
        const layout_entry *e = &shard->entries[i];
        if (e->kind != LAYOUT_SCALES) continue;
        const item_result *m = &c->results[e->item];
        buf_printf(&text, "%s %a %a %a %llu\n", m->scales_sum, m->loss.error2, m->loss.size2,
                   m->loss.largest, (unsigned long long)m->loss.n_clipped);
    }
    clef_status s = buf_status(&text, err);
    if (s == CLEF_OK) s = output_text(c->partial, name, (str){text.p, text.n}, hex, err);
    buf_free(&text);
    return s;
}

/* Fills in what a record says; false when it is not one of this conversion. The text is our own or
 * is refused by the sums. NOLINTBEGIN(cert-err34-c) */
static bool parse_record(conversion *c, const layout_shard *shard, file_sum *f, const char *text) {
    char id[DIGEST_HEX];
    unsigned long long n = 0;
    int used = 0;
    if (sscanf(text, "%64s %64s %llu\n%n", id, f->sum, &n, &used) != 3 || strcmp(id, c->id) != 0)
        return false;
    f->bytes = n;
    for (uint32_t i = 0; i < shard->n_entries; i++) {
        const layout_entry *e = &shard->entries[i];
        if (e->kind != LAYOUT_SCALES) continue;
        item_result m = {0};
        text += used;
        if (sscanf(text, "%64s %la %la %la %llu\n%n", m.scales_sum, &m.loss.error2, &m.loss.size2,
                   &m.loss.largest, &n, &used) != 5)
            return false;
        m.loss.n_clipped = n;
        c->results[e->item] = m;
    }
    return true;
}
/* NOLINTEND(cert-err34-c) */

/* Whether the shard is there, whole and of this conversion. */
static clef_status take_over(bool *taken, conversion *c, const layout_shard *shard, file_sum *f,
                             const char *record, clef_error *err) {
    buf text = {0};
    char *record_path = file_join(c->partial, record), *path = file_join(c->partial, shard->name);
    char wanted[DIGEST_HEX];
    clef_status s = record_path == NULL || path == NULL ? clef_fail_memory(err) : CLEF_OK;
    *taken = s == CLEF_OK && file_exists(path) && file_exists(record_path);
    if (*taken) s = file_read(&text, record_path, MAX_RECORD, err);
    if (*taken && s == CLEF_OK) *taken = parse_record(c, shard, f, text.p == NULL ? "" : text.p);
    if (*taken && s == CLEF_OK) {
        const uint64_t done = c->done;
        memcpy(wanted, f->sum, sizeof wanted);
        s = digest_file(f->sum, &f->bytes, path, advance, c, err);
        *taken = strcmp(wanted, f->sum) == 0;
        if (!*taken) c->done = done;
    }
    buf_free(&text);
    free(record_path);
    free(path);
    return s;
}

/* ---- files of the bundle ----------------------------------------------------------------------
 */

static clef_status make_shard(conversion *c, const layout_shard *shard, clef_error *err) {
    char record[80];
    snprintf(record, sizeof record, "%s.record", shard->name);
    file_sum *f = &c->files[c->n_files++];
    *f = (file_sum){.name = shard->name};
    buf header = {0};
    layout_header(&header, shard, c->id);
    bool taken = false;
    clef_status s = buf_status(&header, err);
    if (s == CLEF_OK) s = digest_bytes(f->header_sum, header.p, header.n, err);
    if (s == CLEF_OK) s = take_over(&taken, c, shard, f, record, err);
    if (s == CLEF_OK && !taken) {
        output o = {0};
        s = output_open(&o, c->partial, shard->name, err);
        if (s == CLEF_OK) s = output_write(&o, header.p, header.n, err);
        if (s == CLEF_OK) s = write_entries(c, &o, shard, err);
        f->bytes = o.bytes;
        if (s == CLEF_OK) s = output_finish(&o, f->sum, err);
        if (s == CLEF_OK) s = write_record(c, shard, f, record, err);
        output_abandon(&o);
    }
    buf_free(&header);
    return s;
}

typedef struct {
    conversion *c;
    output o;
} copying;

static clef_status copy_block(void *context, const void *bytes, size_t n, clef_error *err) {
    copying *k = context;
    TRY(output_write(&k->o, bytes, n, err));
    return advance(k->c, n, err);
}

static clef_status copy_file(conversion *c, const file_sum *source, clef_error *err) {
    file_sum *f = &c->files[c->n_files++];
    *f = (file_sum){.name = source->name, .bytes = source->bytes};
    copying k = {.c = c};
    char *path = NULL;
    clef_status s = hub_file(&path, c->dir, source->name, err);
    if (s == CLEF_OK) s = output_open(&k.o, c->partial, source->name, err);
    if (s == CLEF_OK) s = file_blocks(path, SIZE_MAX, copy_block, &k, err);
    if (s == CLEF_OK) s = output_finish(&k.o, f->sum, err);
    if (s == CLEF_OK && strcmp(f->sum, source->sum) != 0)
        s = clef_fail(err, CLEF_ERR_IO, "%s: changed while it was converted", path);
    output_abandon(&k.o);
    free(path);
    return s;
}

static clef_status make_index(conversion *c, clef_error *err) {
    buf text = {0};
    file_sum *f = &c->files[c->n_files++];
    *f = (file_sum){.name = INDEX_NAME};
    clef_status s = layout_index(&text, &c->l, &c->mem, err);
    f->bytes = text.n;
    if (s == CLEF_OK) s = output_text(c->partial, INDEX_NAME, (str){text.p, text.n}, f->sum, err);
    buf_free(&text);
    return s;
}

static void add_file_list(buf *out, const file_sum *files, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        buf_add_text(out, i == 0 ? "\n    {\"path\": " : ",\n    {\"path\": ");
        pyjson_string(out, str_of(files[i].name));
        buf_printf(out, ", \"bytes\": %llu, \"sha256\": \"%s\"", (unsigned long long)files[i].bytes,
                   files[i].sum);
        if (files[i].header_sum[0] != '\0')
            buf_printf(out, ", \"header_sha256\": \"%s\"", files[i].header_sum);
        buf_add_char(out, '}');
    }
}

static double relative(const code_loss *loss) {
    return loss->size2 > 0 ? sqrt(loss->error2 / loss->size2) : 0;
}

static void add_item(buf *out, const allot_item *it, const item_result *r) {
    buf_add_text(out, "{\"name\": ");
    pyjson_string(out, it->name);
    buf_printf(out, ", \"format\": \"%s\", \"scales_sha256\": \"%s\", \"relative_error\": ",
               codes_name(it->type), r->scales_sum);
    pyjson_double(out, relative(&r->loss));
    buf_add_text(out, ", \"largest_error\": ");
    pyjson_double(out, r->loss.largest);
    buf_printf(out, ", \"clipped\": %llu}", (unsigned long long)r->loss.n_clipped);
}

/* What a mixed allocation measured and chose. */
static void add_unit(buf *out, const allot_unit *u) {
    buf_printf(out, "{\"layers\": \"%u-%u\", \"kind\": \"%s\", \"format\": \"%s\"", u->first,
               u->last, allot_kind_name(u->kind), codes_name(u->type));
    for (int f = 0; f < 3; f++) {
        const code_loss loss = {.error2 = u->loss[f], .size2 = u->size2};
        buf_printf(out, ", \"relative_error_%s\": ", codes_name(allot_formats[f]));
        pyjson_double(out, relative(&loss));
    }
    buf_add_text(out, ", \"expected_loss\": ");
    pyjson_double(out, allot_expected(u, u->type));
    buf_add_char(out, '}');
}

static void add_quantisation(buf *out, const conversion *c) {
    buf_printf(out,
               "\n  ],\n  \"quantisation\": {\n    \"format\": \"%s\",\n    \"tables\": \"%s\",\n"
               "    \"scheme\": {\"int8\": \"symmetric_with_clipping\", "
               "\"int6\": \"symmetric_least_squares\", \"int4\": \"symmetric_least_squares\"},\n"
               "    \"block\": %d,\n    \"axis\": 1,\n    \"codes\": {\"int8\": [-127, 127], "
               "\"int6\": [-31, 31], \"int4\": [-7, 7]},\n    \"rounding\": \"half_even\",\n"
               "    \"scale_dtype\": \"F16\",\n    \"layers_16bit\": [",
               format_names[c->o->format], c->o->tables == CLEF_TABLES_INT8 ? "int8" : "16bit",
               INT8_BLOCK);
    const char *comma = "";
    for (uint32_t i = 0; i < c->cfg.n_layers; i++) {
        if (!c->wide[i]) continue;
        buf_printf(out, "%s%u", comma, i);
        comma = ", ";
    }
    buf_add_text(out, "],\n    \"allocation\": [");
    for (uint32_t i = 0; i < c->a.n_units; i++) {
        buf_add_text(out, i == 0 ? "\n      " : ",\n      ");
        add_unit(out, &c->a.units[i]);
    }
    buf_add_text(out, "],\n    \"modules\": [");
    comma = "\n      ";
    for (uint32_t i = 0; i < c->a.n_items; i++) {
        if (!codes_type(c->a.items[i].type)) continue;
        buf_add_text(out, comma);
        add_item(out, &c->a.items[i], &c->results[i]);
        comma = ",\n      ";
    }
    buf_add_text(out, "\n    ]\n  }");
}

static void add_bundle(buf *out, const conversion *c) {
    buf_printf(out,
               "{\n  \"format\": \"%s\",\n  \"version\": %d,\n  \"converter\": \"clef %s\",\n"
               "  \"id\": \"%s\",\n  \"source\": [",
               BUNDLE_FORMAT, BUNDLE_VERSION, CLEF_VERSION, c->id);
    add_file_list(out, c->sources, c->n_sources);
    add_quantisation(out, c);
    buf_add_text(out, ",\n  \"files\": [");
    add_file_list(out, c->files, c->n_files);
    buf_add_text(out, "\n  ]\n}\n");
}

static void add_sums(buf *out, const conversion *c, const char *bundle_sum) {
    for (uint32_t i = 0; i < c->n_files; i++)
        buf_printf(out, "%s  %s\n", c->files[i].sum, c->files[i].name);
    buf_printf(out, "%s  %s\n", bundle_sum, BUNDLE_NAME);
}

/* Writes SHA256SUMS and bundle.json. A folder of codes without bundle.json does not open, so it
 * comes last, when the names of all other files are on the disk: what opens is complete. */
static clef_status close_bundle(conversion *c, uint64_t *extra, clef_error *err) {
    char hex[DIGEST_HEX];
    buf bundle = {0}, sums = {0};
    add_bundle(&bundle, c);
    clef_status s = buf_status(&bundle, err);
    if (s == CLEF_OK) s = digest_bytes(hex, bundle.p, bundle.n, err);
    if (s == CLEF_OK) add_sums(&sums, c, hex);
    if (s == CLEF_OK) s = buf_status(&sums, err);
    *extra = bundle.n + sums.n;
    if (s == CLEF_OK) s = output_text(c->partial, SUMS_NAME, (str){sums.p, sums.n}, hex, err);
    if (s == CLEF_OK) s = output_sync_folder(c->partial, err);
    if (s == CLEF_OK) s = output_text(c->partial, BUNDLE_NAME, (str){bundle.p, bundle.n}, hex, err);
    buf_free(&bundle);
    buf_free(&sums);
    return s;
}

/* ---- the whole --------------------------------------------------------------------------------
 */

/* Bytes that will be read and written, as far as they are known: before the layout is made the
 * source's shards stand for those that will be written. */
static void count_work(conversion *c) {
    const bool mixed = c->o->format == CLEF_FORMAT_INT6 || c->o->format == CLEF_FORMAT_INT4MIX;
    c->total = mixed ? safetensors_bytes(c->model) / ALLOT_PART : 0;
    for (uint32_t i = 0; i < c->n_sources; i++) {
        c->total += c->sources[i].bytes;
        if (is_copied(c->sources[i].name)) c->total += c->sources[i].bytes;
    }
    if (c->l.n_shards == 0) c->total += safetensors_bytes(c->model);
    for (uint32_t i = 0; i < c->l.n_shards; i++) c->total += c->l.shards[i].data_bytes;
}

/* Decides for each linear, and where everything will stand. */
static clef_status make_plan(conversion *c, clef_error *err) {
    const allot_options o = {.format = c->o->format,
                             .wide = c->wide,
                             .tables = c->o->tables == CLEF_TABLES_INT8,
                             .advance = advance,
                             .context = c};
    TRY(pool_open(&c->workers, c->o->jobs == 0 ? cpu_count() : c->o->jobs, err));
    count_work(c);
    TRY(allot_make(&c->a, c->model, &c->cfg, &o, c->workers, &c->mem, err));
    TRY(layout_make(&c->l, c->model, &c->a, &c->mem, err));
    count_work(c);
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->a.n_items; i++) n += codes_type(c->a.items[i].type);
    if (n > 0) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_INPUT,
                     "%s: nothing is left to convert: every linear is in a 16-bit layer or has "
                     "rows that are no multiple of %d",
                     c->dir, INT8_BLOCK);
}

static clef_status take_memory(conversion *c, clef_error *err) {
    for (uint32_t i = 0; i < c->a.n_items; i++)
        if (c->a.items[i].source->shape[1] > c->most_in)
            c->most_in = (size_t)c->a.items[i].source->shape[1];
    c->rows = malloc(pool_threads(c->workers) * c->most_in * sizeof *c->rows);
    c->codes = malloc(c->most_in > PIECE_BYTES ? c->most_in : PIECE_BYTES);
    c->results = arena_alloc(&c->mem, c->a.n_items, sizeof *c->results);
    c->files = arena_alloc(&c->mem, (size_t)c->l.n_shards + N_COPIED + 1, sizeof *c->files);
    const bool all = c->rows != NULL && c->codes != NULL && c->results != NULL && c->files != NULL;
    return all ? CLEF_OK : clef_fail_memory(err);
}

static clef_status write_all(conversion *c, uint64_t *extra, clef_error *err) {
    TRY(sum_sources(c, err));
    for (uint32_t i = 0; i < c->l.n_shards; i++) TRY(make_shard(c, &c->l.shards[i], err));
    for (uint32_t i = 0; i < c->n_sources; i++)
        if (is_copied(c->sources[i].name)) TRY(copy_file(c, &c->sources[i], err));
    TRY(make_index(c, err));
    return close_bundle(c, extra, err);
}

/* Bits of all linears, codes and scales or as they were, and their number. */
static void sum_up(clef_convert_result *out, const conversion *c, uint64_t extra) {
    code_loss all = {0};
    double bits = 0, values = 0;
    *out = (clef_convert_result){.written_bytes = extra};
    for (uint32_t i = 0; i < c->n_sources; i++) out->source_bytes += c->sources[i].bytes;
    for (uint32_t i = 0; i < c->n_files; i++) out->written_bytes += c->files[i].bytes;
    for (uint32_t i = 0; i < c->a.n_items; i++) {
        const allot_item *it = &c->a.items[i];
        const bool codes = codes_type(it->type);
        const double n = (double)it->source->shape[0] * (double)it->source->shape[1];
        if (it->kind != ALLOT_TABLE) {
            out->n_linears++;
            values += n;
            bits += n * (dtype_bits(it->type) + (codes ? 16.0 / INT8_BLOCK : 0));
        }
        if (!codes) continue;
        out->n_converted++;
        code_loss_add(&all, &c->results[i].loss);
        if (relative(&c->results[i].loss) < out->worst_error) continue;
        out->worst_error = relative(&c->results[i].loss);
        snprintf(out->worst, sizeof out->worst, "%.*s", STR_ARG(it->name));
    }
    out->bits_per_weight = values > 0 ? bits / values : 0;
    out->relative_error = relative(&all);
}

/* The finished folder gets its name. */
static clef_status publish(conversion *c, clef_error *err) {
    for (uint32_t i = 0; i < c->l.n_shards; i++) {
        char record[80];
        snprintf(record, sizeof record, "%s.record", c->l.shards[i].name);
        TRY(remove_entry(c, record, err));
    }
    TRY(output_sync_folder(c->partial, err));
    TRY(check_target(c, err)); /* it may have appeared meanwhile */
    if (rename(c->partial, c->out) != 0)
        return clef_fail(err, CLEF_ERR_IO, "%s: cannot become %s: %s%s", c->partial, c->out,
                         strerror(errno), output_advice(errno));
    char *parent = NULL;
    TRY(resolve_parent(&parent, c->out, err));
    const clef_status s = output_sync_folder(parent, err);
    free(parent);
    return s;
}

static clef_status name_target(conversion *c, clef_error *err) {
    buf out = {0}, partial = {0};
    buf_add_text(&out, c->o->out);
    while (out.n > 1 && out.p[out.n - 1] == '/') out.p[--out.n] = '\0';
    buf_printf(&partial, "%s.partial", out.n == 0 ? "" : out.p);
    clef_status s = buf_status(&out, err);
    if (s == CLEF_OK) s = buf_status(&partial, err);
    if (s == CLEF_OK) {
        c->out = buf_take(&out);
        c->partial = buf_take(&partial);
    }
    buf_free(&out);
    buf_free(&partial);
    return s;
}

static clef_status convert(conversion *c, clef_convert_result *result, clef_error *err) {
    uint64_t extra = 0;
    TRY(hub_resolve(&c->dir, c->o->model, c->o->hub_cache, err));
    TRY(name_target(c, err));
    TRY(check_target(c, err));
    TRY(open_source(c, err));
    TRY(choose_layers(c, err));
    TRY(list_sources(c, err));
    TRY(make_plan(c, err));
    TRY(take_memory(c, err));
    TRY(open_partial(c, err));
    TRY(check_room(c, err));
    TRY(write_all(c, &extra, err));
    TRY(publish(c, err));
    if (result != NULL) sum_up(result, c, extra);
    return CLEF_OK;
}

static clef_status check_options(const clef_convert_options *o, clef_error *err) {
    if (o->model == NULL) return clef_fail(err, CLEF_ERR_INPUT, "no model is named");
    if (o->out == NULL || *o->out == '\0')
        return clef_fail(err, CLEF_ERR_INPUT, "no folder to write is named");
    if ((unsigned)o->format >= N_FORMATS)
        return clef_fail(err, CLEF_ERR_INPUT, "format: %u, wanted 0 to %d", (unsigned)o->format,
                         N_FORMATS - 1);
    if ((unsigned)o->tables > CLEF_TABLES_INT8)
        return clef_fail(err, CLEF_ERR_INPUT, "tables: %u, wanted 0 or 1", (unsigned)o->tables);
    const bool uniform = o->format == CLEF_FORMAT_INT8 || o->format == CLEF_FORMAT_INT4;
    if (uniform && o->layers_16bit != NULL)
        return clef_fail(err, CLEF_ERR_INPUT, "layers-16bit: %s has no 16-bit layers, %smix has",
                         format_names[o->format], format_names[o->format]);
    if (o->jobs > 1024)
        return clef_fail(err, CLEF_ERR_INPUT, "jobs: %u, wanted at most 1024", o->jobs);
    return CLEF_OK;
}

clef_status clef_convert(const clef_convert_options *options, clef_convert_result *result,
                         clef_error *err) {
    TRY(check_options(options, err));
    conversion c = {.o = options, .lock = -1};
    const clef_status s = convert(&c, result, err);
    for (uint32_t i = 0; c.results != NULL && i < c.a.n_items; i++) free(c.results[i].scales);
    if (c.lock >= 0) close(c.lock);
    pool_close(c.workers);
    free(c.rows);
    free(c.codes);
    safetensors_close(c.model);
    safetensors_close(c.head);
    arena_free(&c.mem);
    free(c.dir);
    free(c.out);
    free(c.partial);
    return s;
}
