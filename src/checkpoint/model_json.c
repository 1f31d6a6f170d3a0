/* model_json.c - the strict reading that safetensors headers, the index and the configs share.
 *
 * A hostile text of N bytes such as [0,0,0,...] has N / 2 values, and each takes a tree node many
 * times its size. So values are counted before anything is built: a file of the largest legal size
 * (65,536 tensors of rank 8, and as many notes) stays under MAX_VALUES. */
#include "checkpoint/model_json.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/file.h"
#include "checkpoint/hub.h"

/* Depth: config.json nests four deep, and members that are ignored may nest deeper. */
enum { MAX_VALUES = 1 << 20, MAX_DEPTH = 32 };

/* An upper bound on the values of the text when it is JSON: each comma outside a string starts one,
 * and so does each bracket. */
static size_t count_values(str text) {
    size_t n = 1;
    bool quoted = false;
    for (size_t i = 0; i < text.n; i++) {
        const char c = text.p[i];
        if (c == '"') quoted = !quoted;
        if (quoted && c == '\\') i++;
        if (!quoted && (c == ',' || c == '[' || c == '{')) n++;
    }
    return n;
}

/* What the general readers call a wrong or too large input is a wrong file here. */
static clef_status fault_of_the_model(clef_status s, clef_error *err) {
    if (s != CLEF_ERR_INPUT && s != CLEF_ERR_LIMIT) return s;
    if (err != NULL) err->status = CLEF_ERR_FORMAT;
    return CLEF_ERR_FORMAT;
}

clef_status model_json_parse(const json **out, str text, const char *path, uint32_t max_depth,
                             arena *mem, clef_error *err) {
    if (count_values(text) > MAX_VALUES)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: more than %d JSON values", path, MAX_VALUES);
    const json_limits limits = {.max_depth = max_depth, .duplicates = JSON_REFUSE_DUPLICATES};
    const json *root = NULL;
    clef_status s = json_parse(&root, text, path, &limits, mem, err);
    s = fault_of_the_model(s, err);
    if (s == CLEF_OK && root->kind != JSON_OBJECT)
        s = clef_fail(err, CLEF_ERR_FORMAT, "%s: found %s, wanted a JSON object", path,
                      json_kind_name(root));
    if (s == CLEF_OK) *out = root;
    return s;
}

clef_status model_json_read(const json **out, const char **path, const char *dir, const char *name,
                            size_t max_bytes, arena *mem, clef_error *err) {
    char *joined = file_join(dir, name), *real = NULL;
    const str kept = joined == NULL ? (str){0} : arena_copy(mem, str_of(joined));
    free(joined);
    if (kept.p == NULL) return clef_fail_memory(err);
    *path = kept.p;
    TRY(hub_file(&real, dir, name, err));
    buf text = {0};
    clef_status s = file_read(&text, real, max_bytes, err);
    free(real);
    s = fault_of_the_model(s, err);
    if (s == CLEF_OK) s = model_json_parse(out, (str){text.p, text.n}, *path, MAX_DEPTH, mem, err);
    buf_free(&text);
    return s;
}

str model_json_show(const json *v) {
    if (v->kind != JSON_NUMBER && v->kind != JSON_STRING) return str_of(json_kind_name(v));
    return (str){v->text.p, v->text.n < 100 ? v->text.n : 100};
}
