/* bundle.c - checks a converted folder before it is used.
 *
 * Not everything is read: the codes of the weights, by far the most bytes, have no sum that is
 * checked here (`sha256sum -c SHA256SUMS` does that). What tells two conversions apart is in the
 * headers of the shards, and a wrong bit in a scale, which harms 32 weights at once, is found. */
#include "checkpoint/bundle.h"

#include <stdlib.h>

#include "base/digest.h"
#include "base/file.h"
#include "checkpoint/codes.h"
#include "checkpoint/hub.h"
#include "checkpoint/model_json.h"

enum { MAX_BUNDLE = 64 << 20 };

typedef struct {
    const char *dir, *path; /* of bundle.json */
    const safetensors *model;
} folder;

static clef_status wrong_member(const folder *f, const char *member, const char *wanted,
                                clef_error *err) {
    return clef_fail(err, CLEF_ERR_FORMAT, "%s: '%s' is missing or not %s", f->path, member,
                     wanted);
}

static clef_status get_text(str *out, const folder *f, const json *object, const char *name,
                            clef_error *err) {
    const json *v = json_get(object, str_of(name));
    if (v == NULL || v->kind != JSON_STRING) return wrong_member(f, name, "a string", err);
    *out = v->text;
    return CLEF_OK;
}

static bool is_plain_name(str name) {
    if (name.n == 0 || name.n > 255 || name.p[0] == '.') return false;
    return memchr(name.p, '/', name.n) == NULL && memchr(name.p, '\0', name.n) == NULL;
}

static clef_status check_version(const folder *f, const json *root, clef_error *err) {
    str format;
    uint64_t version = 0;
    TRY(get_text(&format, f, root, "format", err));
    if (!str_equal(format, STR(BUNDLE_FORMAT)))
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: format '%.*s', wanted '%s'", f->path,
                         STR_ARG(format), BUNDLE_FORMAT);
    if (!json_u64(&version, json_get(root, STR("version")), UINT32_MAX))
        return wrong_member(f, "version", "a whole number", err);
    if (version != BUNDLE_VERSION)
        return clef_fail(err, CLEF_ERR_UNSUPPORTED,
                         "%s: version %llu, this program reads version %d: convert the model again",
                         f->path, (unsigned long long)version, BUNDLE_VERSION);
    return CLEF_OK;
}

/* ---- files ------------------------------------------------------------------------------------
 */

static clef_status differs(const char *path, const char *what, clef_error *err) {
    return clef_fail(err, CLEF_ERR_FORMAT,
                     "%s: %s is not the one that %s lists: the file was changed, damaged, or comes "
                     "from another conversion",
                     path, what, BUNDLE_NAME);
}

/* Size of a shard and the sum of its header. */
static clef_status sum_header(char hex[DIGEST_HEX], uint64_t *size, const char *path,
                              clef_error *err) {
    file_map map = {0};
    TRY(file_map_open(&map, path, err));
    uint64_t n = 0;
    for (unsigned i = 0; map.n >= 8 && i < 8; i++) n |= (uint64_t)map.data[i] << 8 * i;
    *size = map.n;
    clef_status s = CLEF_OK;
    if (map.n < 8 || n > map.n - 8)
        s = clef_fail(err, CLEF_ERR_FORMAT, "%s: the header does not fit into %zu bytes", path,
                      map.n);
    if (s == CLEF_OK) s = digest_bytes(hex, map.data, 8 + (size_t)n, err);
    file_unmap(&map);
    return s;
}

static clef_status check_file(const folder *f, const json *entry, clef_error *err) {
    str name, sum;
    uint64_t bytes = 0, found = 0;
    TRY(get_text(&name, f, entry, "path", err));
    if (!is_plain_name(name))
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: '%.*s' is no name of a file", f->path,
                         STR_ARG(name));
    if (!json_u64(&bytes, json_get(entry, STR("bytes")), 1ull << 53))
        return wrong_member(f, "bytes", "a whole number", err);
    const bool shard = json_get(entry, STR("header_sha256")) != NULL;
    TRY(get_text(&sum, f, entry, shard ? "header_sha256" : "sha256", err));
    char zero_terminated[256], hex[DIGEST_HEX], *path = NULL;
    memcpy(zero_terminated, name.p, name.n);
    zero_terminated[name.n] = '\0';
    TRY(hub_file(&path, f->dir, zero_terminated, err));
    clef_status s = shard ? sum_header(hex, &found, path, err)
                          : digest_file(hex, &found, path, NULL, NULL, err);
    if (s == CLEF_OK && found != bytes)
        s = clef_fail(err, CLEF_ERR_FORMAT, "%s: %llu bytes, %s lists %llu", path,
                      (unsigned long long)found, BUNDLE_NAME, (unsigned long long)bytes);
    if (s == CLEF_OK && !str_equal(sum, str_of(hex)))
        s = differs(path, shard ? "its header" : "its content", err);
    free(path);
    return s;
}

/* ---- modules ----------------------------------------------------------------------------------
 */

/* Whether the codes are what bundle.json calls them. */
static bool is_format(const tensor *codes, const tensor *scales, str format) {
    if (scales->rank != 2 || scales->shape[1] > UINT64_MAX / INT8_BLOCK) return false;
    const dtype type = codes_of(codes, scales->shape[1] * INT8_BLOCK);
    return codes_type(type) && str_equal(format, str_of(codes_name(type)));
}

static clef_status check_module(const folder *f, const json *entry, clef_error *err) {
    str name, sum, format;
    char hex[DIGEST_HEX];
    TRY(get_text(&name, f, entry, "name", err));
    TRY(get_text(&format, f, entry, "format", err));
    TRY(get_text(&sum, f, entry, "scales_sha256", err));
    buf scale_name = {0};
    buf_printf(&scale_name, "%.*s_scale", STR_ARG(name));
    const tensor *codes = safetensors_find(f->model, name);
    const tensor *scales = safetensors_find(f->model, (str){scale_name.p, scale_name.n});
    clef_status s = buf_status(&scale_name, err);
    buf_free(&scale_name);
    TRY(s);
    if (codes == NULL || scales == NULL || !is_format(codes, scales, format))
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%s: tensor '%.*s' is no %.*s weight with scales, %s lists it as one",
                         safetensors_path(f->model), STR_ARG(name), STR_ARG(format), BUNDLE_NAME);
    TRY(digest_bytes(hex, scales->data, scales->bytes, err));
    if (str_equal(sum, str_of(hex))) return CLEF_OK;
    buf what = {0};
    buf_printf(&what, "the content of tensor '%.*s_scale'", STR_ARG(name));
    s = buf_status(&what, err);
    if (s == CLEF_OK) s = differs(safetensors_file_of(f->model, scales), what.p, err);
    buf_free(&what);
    return s;
}

/* A release has no tensor of these types. */
static bool may_be_codes(const tensor *t) {
    return t->type == DTYPE_I8 || t->type == DTYPE_U8;
}

static bool lists(const json *modules, str weight) {
    for (const json *m = modules->first; m != NULL; m = m->next)
        if (str_equal(json_get(m, STR("name"))->text, weight)) return true;
    return false;
}

/* Every weight of codes is one of the modules, whose names check_module has seen. */
static clef_status check_listed(const folder *f, const json *modules, clef_error *err) {
    for (uint32_t i = 0; i < safetensors_count(f->model); i++) {
        const safetensors_entry e = safetensors_at(f->model, i);
        if (!may_be_codes(e.tensor) || lists(modules, e.name)) continue;
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: does not list tensor '%.*s', which is codes",
                         f->path, STR_ARG(e.name));
    }
    return CLEF_OK;
}

static bool has_codes(const safetensors *model) {
    for (uint32_t i = 0; i < safetensors_count(model); i++)
        if (may_be_codes(safetensors_at(model, i).tensor)) return true;
    return false;
}

/* Every element of array `name` of `object`, which becomes *out. */
static clef_status check_all(const json **out, const folder *f, const json *object,
                             const char *name,
                             clef_status (*check)(const folder *, const json *, clef_error *),
                             clef_error *err) {
    *out = json_get(object, str_of(name));
    if (*out == NULL || (*out)->kind != JSON_ARRAY) return wrong_member(f, name, "an array", err);
    for (const json *v = (*out)->first; v != NULL; v = v->next) TRY(check(f, v, err));
    return CLEF_OK;
}

clef_status bundle_check(const json **out, const char *dir, const safetensors *model, arena *mem,
                         clef_error *err) {
    char *path = file_join(dir, BUNDLE_NAME);
    if (path == NULL) return clef_fail_memory(err);
    const bool there = file_exists(path);
    free(path);
    *out = NULL;
    if (!there && !has_codes(model)) return CLEF_OK;
    if (!there)
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%s/%s is missing, and weights are codes: only part of a converted "
                         "model is here",
                         dir, BUNDLE_NAME);
    folder f = {.dir = dir, .model = model};
    const json *root = NULL, *files = NULL, *modules = NULL;
    TRY(model_json_read(&root, &f.path, dir, BUNDLE_NAME, MAX_BUNDLE, mem, err));
    TRY(check_version(&f, root, err));
    TRY(check_all(&files, &f, root, "files", check_file, err));
    TRY(check_all(&modules, &f, json_get(root, STR("quantisation")), "modules", check_module, err));
    TRY(check_listed(&f, modules, err));
    *out = root;
    return CLEF_OK;
}
