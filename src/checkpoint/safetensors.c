/* safetensors.c - reads headers and indexes that may be hostile; never reads tensor data.
 *
 * A file is: 8 bytes N (little-endian) | N bytes of JSON | data to the end of the file. The JSON
 * maps each name to {"dtype", "shape", "data_offsets": [begin, end]}, offsets relative to the data,
 * and may map __metadata__ to an object. The rules of a header, by the numbers used below:
 *    1 a regular file of at least 8 bytes, its size taken once from the open descriptor
 *    2 N is at most 100,000,000, and 8 + N at most the size
 *    3 the header is valid UTF-8 and one complete JSON object
 *    4 it begins with '{', and only spaces follow its '}'
 *    5 no repeated tensor name, no repeated member of an entry
 *    6 __metadata__, if there, is an object of strings
 *    7 an entry has exactly the three members, a known dtype, and numbers that are plain
 *      non-negative integers up to 2^53
 *    8 rank at most 8; neither the product of the shape nor its bits overflow; whole bytes
 *    9 begin <= end, and end - begin is exactly the bytes of shape and dtype
 *   10 sorted by offset, the first begins at 0 and each where the one before ends
 *   11 the last ends where the file ends
 *   12 rank 0 and sizes of 0 are legal here; the binder refuses them
 *   13 names of at most 1,024 bytes, at most 65,536 tensors; a name is never used as a path
 *   14 at most 4 levels of JSON; time linear in N, memory a small multiple of N
 * 4, 5 and the unknown members of 7 are stricter than the reference reader, because two readers
 * could else see two different models; the limit of 8, and 13 and 14, are our own.
 *
 * The index, {"metadata": {"total_size"}, "weight_map": {tensor: file}}, names plain files that end
 * in .safetensors, at most 4,096 of them. Every tensor is in the shard it is mapped to, in no other
 * one, and no shard holds a tensor that is not mapped. total_size is a hint: a wrong one is noted.
 *
 * Lookup is a binary search in name order: a hash table that a hostile file cannot fill with
 * collisions needs a secret, and a thousand lookups per open do not repay one. */
#include "checkpoint/safetensors.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/file.h"
#include "checkpoint/hub.h"
#include "checkpoint/model_json.h"

enum {
    MAX_HEADER = 100000000, /* rule 2 */
    MAX_DEPTH = 4,          /* rule 14 */
    MAX_NAME = 1024,        /* rule 13 */
    MAX_TENSORS = 65536,    /* rule 13, all shards together */
    MAX_SHARDS = 4096,
    MAX_FILE_NAME = 255
};
static const uint64_t MAX_NUMBER = 1ull << 53; /* rule 7 */

#define INDEX_NAME "model.safetensors.index.json"
#define SINGLE_NAME "model.safetensors"

typedef struct shard shard;

typedef struct {
    tensor tensor; /* first, so that a tensor's address is its item's */
    str name;
    const shard *shard;
    uint64_t begin, end; /* in the data area */
} item;

struct shard {
    const char *path; /* as sentences show it */
    const char *real; /* where its links lead; what is opened */
    str name;         /* in the index, if there is one */
    file_map map;
    item *items;
    uint32_t n_items;
};

struct safetensors {
    arena mem; /* everything below */
    shard *shards;
    uint32_t n_shards;
    item *items; /* of all shards, in name order */
    uint32_t n_items;
    const char *path, *note;
};

static int by_name(const void *a, const void *b) {
    const item *x = a, *y = b;
    return str_compare(x->name, y->name);
}

static int by_offset(const void *a, const void *b) {
    const item *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1; /* an empty tensor comes first */
    return str_compare(x->name, y->name);
}

/* ---- one header -------------------------------------------------------------------------------
 */

/* What a sentence about an entry starts with: "path: tensor 'name'". */
#define ITEM_AT "%s: tensor '%.*s': "
#define ITEM_ARG(it) (it)->shard->path, STR_ARG((it)->name)

static clef_status read_dtype(item *it, const json *v, clef_error *err) {
    if (v == NULL || v->kind != JSON_STRING)
        return clef_fail(err, CLEF_ERR_FORMAT, ITEM_AT "dtype is %s, wanted a string", ITEM_ARG(it),
                         v == NULL ? "missing" : json_kind_name(v));
    for (int type = 0; type < DTYPE_COUNT; type++) {
        if (!str_equal(v->text, str_of(dtype_name((dtype)type)))) continue;
        it->tensor.type = (dtype)type;
        return CLEF_OK;
    }
    return clef_fail(err, CLEF_ERR_FORMAT, ITEM_AT "unknown dtype '%.*s'", ITEM_ARG(it),
                     STR_ARG(model_json_show(v)));
}

/* Rules 7 and 8: the shape, and from it and the type the bytes the tensor must have. */
static clef_status read_shape(item *it, const json *v, clef_error *err) {
    if (v == NULL || v->kind != JSON_ARRAY)
        return clef_fail(err, CLEF_ERR_FORMAT, ITEM_AT "shape is %s, wanted an array", ITEM_ARG(it),
                         v == NULL ? "missing" : json_kind_name(v));
    if (v->n > TENSOR_MAX_RANK)
        return clef_fail(err, CLEF_ERR_FORMAT, ITEM_AT "rank %u, the limit is %d", ITEM_ARG(it),
                         v->n, TENSOR_MAX_RANK);
    uint64_t n_values = 1, bits;
    bool fits = true;
    for (const json *d = v->first; d != NULL; d = d->next) {
        uint64_t size;
        if (!json_u64(&size, d, MAX_NUMBER))
            return clef_fail(err, CLEF_ERR_FORMAT,
                             ITEM_AT "shape holds %.*s, wanted plain integers up to 2^53",
                             ITEM_ARG(it), STR_ARG(model_json_show(d)));
        it->tensor.shape[it->tensor.rank++] = size;
        fits = fits && !__builtin_mul_overflow(n_values, size, &n_values);
    }
    if (!fits || __builtin_mul_overflow(n_values, dtype_bits(it->tensor.type), &bits) ||
        bits / 8 > SIZE_MAX)
        return clef_fail(err, CLEF_ERR_FORMAT, ITEM_AT "the product of the shape overflows",
                         ITEM_ARG(it));
    if (bits % 8 != 0)
        return clef_fail(err, CLEF_ERR_FORMAT, ITEM_AT "%llu bits are no whole number of bytes",
                         ITEM_ARG(it), (unsigned long long)bits);
    it->tensor.bytes = (size_t)(bits / 8);
    return CLEF_OK;
}

/* Rules 7, 9 and the end of 11. */
static clef_status read_offsets(item *it, const json *v, uint64_t data_bytes, clef_error *err) {
    if (v == NULL || v->kind != JSON_ARRAY || v->n != 2)
        return clef_fail(err, CLEF_ERR_FORMAT, ITEM_AT "data_offsets: wanted [begin, end]",
                         ITEM_ARG(it));
    const json *begin = v->first, *end = v->first->next;
    if (!json_u64(&it->begin, begin, MAX_NUMBER) || !json_u64(&it->end, end, MAX_NUMBER))
        return clef_fail(err, CLEF_ERR_FORMAT,
                         ITEM_AT "data_offsets are %.*s and %.*s, wanted plain integers up to 2^53",
                         ITEM_ARG(it), STR_ARG(model_json_show(begin)),
                         STR_ARG(model_json_show(end)));
    const unsigned long long from = it->begin, to = it->end;
    if (from > to)
        return clef_fail(err, CLEF_ERR_FORMAT, ITEM_AT "data_offsets run backwards, %llu to %llu",
                         ITEM_ARG(it), from, to);
    if (to > data_bytes)
        return clef_fail(err, CLEF_ERR_FORMAT, ITEM_AT "ends at byte %llu of %llu", ITEM_ARG(it),
                         to, (unsigned long long)data_bytes);
    if (to - from != it->tensor.bytes)
        return clef_fail(err, CLEF_ERR_FORMAT,
                         ITEM_AT "data_offsets cover %llu bytes, its shape and type need %zu",
                         ITEM_ARG(it), to - from, it->tensor.bytes);
    return CLEF_OK;
}

static clef_status read_item(item *it, const json *v, const shard *s, uint64_t data_bytes,
                             arena *mem, clef_error *err) {
    it->shard = s;
    it->name = v->name;
    if (v->name.n > MAX_NAME)
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%s: a tensor name of %zu bytes, the limit is %d (it begins '%.*s')",
                         s->path, v->name.n, MAX_NAME, 64, v->name.p);
    if (v->kind != JSON_OBJECT)
        return clef_fail(err, CLEF_ERR_FORMAT, ITEM_AT "found %s, wanted an object", ITEM_ARG(it),
                         json_kind_name(v));
    for (const json *m = v->first; m != NULL; m = m->next) {
        if (!str_equal(m->name, STR("dtype")) && !str_equal(m->name, STR("shape")) &&
            !str_equal(m->name, STR("data_offsets")))
            return clef_fail(err, CLEF_ERR_FORMAT, ITEM_AT "unknown member '%.*s'", ITEM_ARG(it),
                             STR_ARG(m->name));
    }
    TRY(read_dtype(it, json_get(v, STR("dtype")), err));
    TRY(read_shape(it, json_get(v, STR("shape")), err));
    TRY(read_offsets(it, json_get(v, STR("data_offsets")), data_bytes, err));
    it->name = arena_copy(mem, v->name);
    return it->name.p == NULL ? clef_fail_memory(err) : CLEF_OK;
}

/* Rule 6. */
static clef_status check_metadata(const json *v, const char *path, clef_error *err) {
    if (v->kind != JSON_OBJECT)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: __metadata__ is %s, wanted an object", path,
                         json_kind_name(v));
    for (const json *m = v->first; m != NULL; m = m->next) {
        if (m->kind != JSON_STRING)
            return clef_fail(err, CLEF_ERR_FORMAT,
                             "%s: __metadata__ member '%.*s' is %s, wanted a string", path,
                             STR_ARG(m->name), json_kind_name(m));
    }
    return CLEF_OK;
}

/* Rules 10 and 11: the items cover the data exactly. Leaves them in order of their offsets. */
static clef_status check_cover(item *items, uint32_t n, const char *path, uint64_t data_bytes,
                               clef_error *err) {
    qsort(items, n, sizeof *items, by_offset);
    uint64_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        const item *it = &items[i];
        if (it->begin != at)
            return clef_fail(err, CLEF_ERR_FORMAT,
                             ITEM_AT "begins at byte %llu, wanted %llu (%s before it)",
                             ITEM_ARG(it), (unsigned long long)it->begin, (unsigned long long)at,
                             it->begin > at ? "a hole" : "an overlap with the tensor");
        at = it->end;
    }
    if (at != data_bytes)
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%s: the tensors end at byte %llu of %llu of the data area", path,
                         (unsigned long long)at, (unsigned long long)data_bytes);
    return CLEF_OK;
}

/* Rules 1 to 4: where the header lies, and that it is nothing but one object and blanks. */
static clef_status find_header(str *header, const unsigned char *file, size_t n, const char *path,
                               clef_error *err) {
    if (n < 8) return clef_fail(err, CLEF_ERR_FORMAT, "%s: %zu bytes, wanted at least 8", path, n);
    uint64_t header_bytes = 0;
    for (int i = 7; i >= 0; i--) header_bytes = header_bytes << 8 | file[i];
    if (header_bytes > MAX_HEADER)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: a header of %llu bytes, the limit is %d", path,
                         (unsigned long long)header_bytes, MAX_HEADER);
    if (header_bytes > n - 8)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: a header of %llu bytes in a file of %zu bytes",
                         path, (unsigned long long)header_bytes, n);
    const char *text = (const char *)file + 8;
    size_t used = (size_t)header_bytes;
    while (used > 0 && text[used - 1] == ' ') used--;
    if (used == 0 || text[0] != '{' || text[used - 1] != '}')
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%s: the header does not begin with '{' and end with '}' and spaces",
                         path);
    *header = (str){text, (size_t)header_bytes};
    return CLEF_OK;
}

static clef_status read_entries(shard *s, const json *root, uint64_t data_bytes, arena *mem,
                                clef_error *err) {
    const bool metadata = json_get(root, STR("__metadata__")) != NULL;
    const uint32_t n = root->n - metadata;
    if (n > MAX_TENSORS)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: %u tensors, the limit is %d", s->path, n,
                         MAX_TENSORS);
    s->items = arena_alloc(mem, n, sizeof *s->items);
    if (s->items == NULL) return clef_fail_memory(err);
    for (const json *v = root->first; v != NULL; v = v->next) {
        if (str_equal(v->name, STR("__metadata__")))
            TRY(check_metadata(v, s->path, err));
        else
            TRY(read_item(&s->items[s->n_items++], v, s, data_bytes, mem, err));
    }
    return check_cover(s->items, n, s->path, data_bytes, err);
}

/* Fills items from s->map, keeping them and their names in `mem`. */
static clef_status read_header(shard *s, arena *mem, clef_error *err) {
    str header;
    TRY(find_header(&header, s->map.data, s->map.n, s->path, err));
    const uint64_t data_bytes = s->map.n - 8 - header.n;
    arena tree = {0};
    const json *root = NULL;
    clef_status status = model_json_parse(&root, header, s->path, MAX_DEPTH, &tree, err);
    if (status == CLEF_OK) status = read_entries(s, root, data_bytes, mem, err);
    arena_free(&tree);
    const char *data = header.p + header.n;
    for (uint32_t i = 0; status == CLEF_OK && i < s->n_items; i++)
        s->items[i].tensor.data = data + s->items[i].begin;
    return status;
}

clef_status safetensors_check(const void *data, size_t n, const char *label, clef_error *err) {
    arena mem = {0};
    shard s = {.path = label, .map = {data, n}};
    const clef_status status = read_header(&s, &mem, err);
    arena_free(&mem);
    return status;
}

/* ---- a set of files ---------------------------------------------------------------------------
 */

static const char *keep(arena *mem, const char *text, clef_error *err) {
    const str copy = arena_copy(mem, str_of(text));
    if (copy.p == NULL) clef_fail_memory(err);
    return copy.p;
}

static clef_status open_shard(shard *s, arena *mem, clef_error *err) {
    TRY(file_map_open(&s->map, s->real, err));
    return read_header(s, mem, err);
}

/* Joins the items of all shards in name order. */
static clef_status gather(safetensors *st, clef_error *err) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < st->n_shards; i++) n += st->shards[i].n_items;
    if (n > MAX_TENSORS)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: %llu tensors, the limit is %d", st->path,
                         (unsigned long long)n, MAX_TENSORS);
    st->items = arena_alloc(&st->mem, (size_t)n, sizeof *st->items);
    if (st->items == NULL) return clef_fail_memory(err);
    for (uint32_t i = 0; i < st->n_shards; i++) {
        const shard *s = &st->shards[i];
        if (s->n_items > 0)
            memcpy(st->items + st->n_items, s->items, s->n_items * sizeof *s->items);
        st->n_items += s->n_items;
    }
    qsort(st->items, st->n_items, sizeof *st->items, by_name);
    for (uint32_t i = 1; i < st->n_items; i++) {
        const item *a = &st->items[i - 1], *b = &st->items[i];
        if (str_equal(a->name, b->name))
            return clef_fail(err, CLEF_ERR_FORMAT, ITEM_AT "is in %s too", ITEM_ARG(a),
                             b->shard->path);
    }
    return CLEF_OK;
}

static clef_status new_set(safetensors **out, const char *path, uint32_t n_shards,
                           clef_error *err) {
    safetensors *st = calloc(1, sizeof *st);
    if (st == NULL) return clef_fail_memory(err);
    st->path = keep(&st->mem, path, err);
    st->shards = arena_alloc(&st->mem, n_shards, sizeof *st->shards);
    st->n_shards = n_shards;
    if (st->path == NULL || st->shards == NULL) {
        st->n_shards = 0;
        safetensors_close(st);
        return clef_fail_memory(err);
    }
    *out = st;
    return CLEF_OK;
}

static clef_status open_single(safetensors **out, const char *path, const char *real,
                               clef_error *err) {
    safetensors *st = NULL;
    TRY(new_set(&st, path, 1, err));
    st->shards->path = st->path;
    st->shards->real = keep(&st->mem, real, err);
    clef_status s = st->shards->real == NULL ? CLEF_ERR_MEMORY : CLEF_OK;
    if (s == CLEF_OK) s = open_shard(st->shards, &st->mem, err);
    if (s == CLEF_OK) s = gather(st, err);
    if (s != CLEF_OK) {
        safetensors_close(st);
        return s;
    }
    *out = st;
    return CLEF_OK;
}

clef_status safetensors_open(safetensors **out, const char *path, clef_error *err) {
    return open_single(out, path, path, err);
}

void safetensors_close(safetensors *st) {
    if (st == NULL) return;
    for (uint32_t i = 0; i < st->n_shards; i++) file_unmap(&st->shards[i].map);
    arena_free(&st->mem);
    free(st);
}

/* ---- the index --------------------------------------------------------------------------------
 */

/* One line of weight_map. */
typedef struct {
    str name, file;
    size_t at; /* in the index, for "the first tensor" of a shard */
} mapping;

typedef struct {
    const char *dir, *path;
    const json *root;
    mapping *map; /* one per tensor */
    uint32_t n;
    arena mem;
} shard_index;

static int by_file(const void *a, const void *b) {
    const mapping *x = a, *y = b;
    const int order = str_compare(x->file, y->file);
    return order != 0 ? order : (x->at > y->at) - (x->at < y->at);
}

static int by_mapped_name(const void *a, const void *b) {
    const mapping *x = a, *y = b;
    return str_compare(x->name, y->name);
}

/* File names of an index are names in its folder, never paths. */
static bool is_plain_name(str s) {
    const str suffix = STR(".safetensors");
    if (s.n <= suffix.n || s.n > MAX_FILE_NAME ||
        memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n) != 0)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '/' || s.p[i] == '\\' || s.p[i] == '\0') return false;
        if (s.p[i] == '.' && i + 1 < s.n && s.p[i + 1] == '.') return false;
    }
    return true;
}

static clef_status read_index(shard_index *ix, clef_error *err) {
    TRY(model_json_read(&ix->root, &ix->path, ix->dir, INDEX_NAME, MAX_HEADER, &ix->mem, err));
    const json *map = json_get(ix->root, STR("weight_map"));
    if (map == NULL || map->kind != JSON_OBJECT || map->n == 0)
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%s: weight_map is %s, wanted an object of tensor names and files",
                         ix->path,
                         map == NULL   ? "missing"
                         : map->n == 0 ? "empty"
                                       : json_kind_name(map));
    if (map->n > MAX_TENSORS)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: %u tensors, the limit is %d", ix->path, map->n,
                         MAX_TENSORS);
    ix->map = arena_alloc(&ix->mem, map->n, sizeof *ix->map);
    if (ix->map == NULL) return clef_fail_memory(err);
    for (const json *m = map->first; m != NULL; m = m->next) {
        if (m->kind != JSON_STRING || !is_plain_name(m->text))
            return clef_fail(err, CLEF_ERR_FORMAT,
                             "%s: tensor '%.*s' is mapped to '%.*s', wanted a plain file name that "
                             "ends in .safetensors",
                             ix->path, STR_ARG(m->name), STR_ARG(model_json_show(m)));
        ix->map[ix->n++] = (mapping){m->name, m->text, m->at};
    }
    return CLEF_OK;
}

/* Names the shard and finds its file; a missing one is named with the first tensor it should hold.
 */
static clef_status find_shard(shard *s, const shard_index *ix, const mapping *first, arena *mem,
                              clef_error *err) {
    s->name = arena_copy(mem, first->file);
    if (s->name.p == NULL) return clef_fail_memory(err);
    char *plain = file_join(ix->dir, s->name.p), *real = NULL;
    clef_status status = CLEF_OK;
    if (plain == NULL)
        status = clef_fail_memory(err);
    else if (!file_exists(plain))
        status = clef_fail(err, CLEF_ERR_IO, "%s: the shard is missing; it should hold '%.*s'",
                           plain, STR_ARG(first->name));
    if (status == CLEF_OK) status = hub_file(&real, ix->dir, s->name.p, err);
    if (status == CLEF_OK) {
        s->path = keep(mem, plain, err);
        s->real = keep(mem, real, err);
        if (s->path == NULL || s->real == NULL) status = CLEF_ERR_MEMORY;
    }
    free(plain);
    free(real);
    return status;
}

static bool begins_shard(const shard_index *ix, uint32_t i) {
    return i == 0 || !str_equal(ix->map[i].file, ix->map[i - 1].file);
}

/* Opens all shards, after all of them were found. */
static clef_status open_shards(safetensors **out, shard_index *ix, clef_error *err) {
    qsort(ix->map, ix->n, sizeof *ix->map, by_file);
    uint32_t n_shards = 0;
    for (uint32_t i = 0; i < ix->n; i++) n_shards += begins_shard(ix, i);
    if (n_shards > MAX_SHARDS)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: %u shards, the limit is %d", ix->path, n_shards,
                         MAX_SHARDS);
    safetensors *st = NULL;
    TRY(new_set(&st, ix->path, n_shards, err));
    clef_status s = CLEF_OK;
    uint32_t k = 0;
    for (uint32_t i = 0; s == CLEF_OK && i < ix->n; i++)
        if (begins_shard(ix, i)) s = find_shard(&st->shards[k++], ix, &ix->map[i], &st->mem, err);
    for (uint32_t i = 0; s == CLEF_OK && i < n_shards; i++)
        s = open_shard(&st->shards[i], &st->mem, err);
    if (s == CLEF_OK) s = gather(st, err);
    if (s != CLEF_OK) {
        safetensors_close(st);
        return s;
    }
    *out = st;
    return CLEF_OK;
}

/* What the index lists and what the shards hold is the same, tensor by tensor. */
static clef_status compare_to_index(const safetensors *st, shard_index *ix, clef_error *err) {
    qsort(ix->map, ix->n, sizeof *ix->map, by_mapped_name);
    uint32_t i = 0, m = 0;
    while (i < st->n_items || m < ix->n) {
        const item *it = st->items + i;
        const mapping *to = ix->map + m;
        const int order = i == st->n_items ? 1 : m == ix->n ? -1 : str_compare(it->name, to->name);
        if (order < 0)
            return clef_fail(err, CLEF_ERR_FORMAT, ITEM_AT "is not listed in %s", ITEM_ARG(it),
                             ix->path);
        if (order > 0)
            return clef_fail(err, CLEF_ERR_FORMAT,
                             "%s: tensor '%.*s' is listed in %.*s, which has none", ix->path,
                             STR_ARG(to->name), STR_ARG(to->file));
        if (!str_equal(it->shard->name, to->file))
            return clef_fail(err, CLEF_ERR_FORMAT, ITEM_AT "%s lists it in %.*s", ITEM_ARG(it),
                             ix->path, STR_ARG(to->file));
        i++;
        m++;
    }
    return CLEF_OK;
}

/* total_size is a hint: some writers count otherwise. */
static clef_status compare_total(safetensors *st, const shard_index *ix, clef_error *err) {
    const json *total = json_get(json_get(ix->root, STR("metadata")), STR("total_size"));
    uint64_t sum = 0, stated;
    for (uint32_t i = 0; i < st->n_items; i++) sum += st->items[i].tensor.bytes;
    if (total == NULL || (json_u64(&stated, total, UINT64_MAX) && stated == sum)) return CLEF_OK;
    clef_error note; /* makes a sentence that is safe to print */
    clef_fail(&note, CLEF_OK, "%s: metadata.total_size is %.*s, the tensors have %llu bytes",
              ix->path, STR_ARG(model_json_show(total)), (unsigned long long)sum);
    st->note = keep(&st->mem, note.text, err);
    return st->note == NULL ? CLEF_ERR_MEMORY : CLEF_OK;
}

static clef_status open_indexed(safetensors **out, shard_index *ix, clef_error *err) {
    TRY(read_index(ix, err));
    safetensors *st = NULL;
    TRY(open_shards(&st, ix, err));
    clef_status s = compare_to_index(st, ix, err);
    if (s == CLEF_OK) s = compare_total(st, ix, err);
    if (s != CLEF_OK) {
        safetensors_close(st);
        return s;
    }
    *out = st;
    return CLEF_OK;
}

clef_status safetensors_open_model(safetensors **out, const char *dir, clef_error *err) {
    char *path = file_join(dir, INDEX_NAME), *real = NULL;
    if (path == NULL) return clef_fail_memory(err);
    const bool indexed = file_is_named(path);
    free(path);
    if (indexed) {
        shard_index ix = {.dir = dir};
        const clef_status s = open_indexed(out, &ix, err);
        arena_free(&ix.mem);
        return s;
    }
    path = file_join(dir, SINGLE_NAME);
    clef_status s = path == NULL ? clef_fail_memory(err) : hub_file(&real, dir, SINGLE_NAME, err);
    if (s == CLEF_OK) s = open_single(out, path, real, err);
    free(path);
    free(real);
    return s;
}

/* ---- looking ----------------------------------------------------------------------------------
 */

const tensor *safetensors_find(const safetensors *st, str name) {
    uint32_t from = 0, to = st->n_items;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        const int order = str_compare(name, st->items[middle].name);
        if (order == 0) return &st->items[middle].tensor;
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return NULL;
}

uint32_t safetensors_count(const safetensors *st) {
    return st->n_items;
}

safetensors_entry safetensors_at(const safetensors *st, uint32_t i) {
    const item *it = &st->items[i];
    return (safetensors_entry){it->name, &it->tensor, it->shard->path};
}

const char *safetensors_file_of(const safetensors *st, const tensor *t) {
    (void)st;
    return ((const item *)t)->shard->path;
}

const char *safetensors_path(const safetensors *st) {
    return st->path;
}

size_t safetensors_bytes(const safetensors *st) {
    size_t n = 0;
    for (uint32_t i = 0; i < st->n_shards; i++) n += st->shards[i].map.n;
    return n;
}

const char *safetensors_note(const safetensors *st) {
    return st->note;
}
