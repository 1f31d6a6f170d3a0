/* hub.c - model names to folders, file names to resolved paths.
 *
 * The cache of huggingface_hub holds per model
 *     models--Org--Name/refs/main                  a text file: the commit
 *     models--Org--Name/snapshots/{commit}/{file}  a link to ../../blobs/{etag}, or a copy where
 *                                                  links are impossible
 * A name alone means the commit of refs/main. Reading needs no lock.
 *
 * Everything read here may be hostile: the name comes from a user, the ref from a file. Neither may
 * lead out of the cache, and no link may lead a loader out of the model. */
#include "checkpoint/hub.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file.h"

enum { MAX_REF_BYTES = 4096, MAX_NAME_PART = 96 };

static bool is_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* One half of "Org/Name" as the hub allows it: letters, digits, '-', '_' and '.', no '.' or '-' at
 * an end, no ".." and no "--" (which separates the halves in folder names). */
static bool is_name_part(str s) {
    if (s.n == 0 || s.n > MAX_NAME_PART) return false;
    for (size_t i = 0; i < s.n; i++) {
        const char c = s.p[i];
        const bool word =
            (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
        if (word) continue;
        if ((c != '.' && c != '-') || i == 0 || i + 1 == s.n || s.p[i + 1] == c) return false;
    }
    return true;
}

/* The halves of "Org/Name"; without a slash the first is empty. */
static void split_name(str *org, str *name, str model) {
    const char *slash = model.n == 0 ? NULL : memchr(model.p, '/', model.n);
    *org = (str){model.p, slash == NULL ? 0 : (size_t)(slash - model.p)};
    *name = slash == NULL ? (str){0} : (str){slash + 1, model.n - org->n - 1};
}

bool hub_is_name(str name) {
    str org, rest;
    split_name(&org, &rest, name);
    return is_name_part(org) && is_name_part(rest);
}

/* Commits are hexadecimal; anything else in a ref could name another folder. */
static bool is_commit(const buf *text) {
    if (text->n == 0 || text->n > 64) return false;
    for (size_t i = 0; i < text->n; i++) {
        const char c = text->p[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
    }
    return true;
}

/* Looks for models--org--name in the cache. */
static clef_status find_snapshot(char **dir, const char *model, str org, str name,
                                 const char *hub_cache, clef_error *err) {
    buf root = {0}, ref_path = {0}, ref = {0}, snapshot = {0};
    buf_printf(&root, "%s/models--%.*s--%.*s", hub_cache, STR_ARG(org), STR_ARG(name));
    clef_status s = buf_status(&root, err);
    if (s == CLEF_OK) {
        buf_printf(&ref_path, "%s/refs/main", root.p);
        s = buf_status(&ref_path, err);
    }
    if (s == CLEF_OK && !is_folder(root.p))
        s = clef_fail(err, CLEF_ERR_IO,
                      "model '%s': neither a folder nor in the hub cache (looked for %s)", model,
                      root.p);
    if (s == CLEF_OK && !file_exists(ref_path.p))
        s = clef_fail(err, CLEF_ERR_IO, "model '%s': the hub cache has no %s", model, ref_path.p);
    if (s == CLEF_OK) s = file_read(&ref, ref_path.p, MAX_REF_BYTES, err);
    if (s == CLEF_OK && !is_commit(&ref))
        s = clef_fail(
            err, CLEF_ERR_FORMAT,
            "%s: found '%.*s', wanted a commit (1 to 64 hexadecimal digits, nothing else)",
            ref_path.p, ref.n > 80 ? 80 : (int)ref.n, ref.n > 0 ? ref.p : "");
    if (s == CLEF_OK) {
        buf_printf(&snapshot, "%s/snapshots/%s", root.p, ref.p);
        s = buf_status(&snapshot, err);
    }
    if (s == CLEF_OK && !is_folder(snapshot.p))
        s = clef_fail(err, CLEF_ERR_IO, "model '%s': %s names a snapshot that is missing (%s)",
                      model, ref_path.p, snapshot.p);
    if (s == CLEF_OK) *dir = buf_take(&snapshot);
    buf_free(&root);
    buf_free(&ref_path);
    buf_free(&ref);
    buf_free(&snapshot);
    return s;
}

clef_status hub_resolve(char **dir, const char *model, const char *hub_cache, clef_error *err) {
    if (is_folder(model)) {
        buf copy = {0};
        buf_add_text(&copy, model);
        TRY(buf_status(&copy, err));
        *dir = buf_take(&copy);
        return CLEF_OK;
    }
    if (file_exists(model))
        return clef_fail(err, CLEF_ERR_INPUT, "model '%s': a file, wanted a model folder", model);
    str org, name;
    split_name(&org, &name, str_of(model));
    if (!hub_is_name(str_of(model)))
        return clef_fail(err, CLEF_ERR_INPUT,
                         "model '%s': no such folder, and no name of the form Org/Name", model);
    if (hub_cache == NULL)
        return clef_fail(err, CLEF_ERR_INPUT,
                         "model '%s': no such folder, and no hub cache was given to look it up in",
                         model);
    return find_snapshot(dir, model, org, name, hub_cache, err);
}

/* Cuts ".../models--Org--Name/snapshots/{commit}" after the model; other paths stay whole. */
static void widen_to_hub_model(char *root) {
    char *commit = strrchr(root, '/');
    if (commit == NULL || commit == root) return;
    *commit = '\0';
    char *snapshots = strrchr(root, '/');
    char *model = NULL;
    if (snapshots != NULL && strcmp(snapshots, "/snapshots") == 0) {
        *snapshots = '\0';
        model = strrchr(root, '/');
        if (model != NULL && strncmp(model, "/models--", 9) == 0) return;
        *snapshots = '/';
    }
    *commit = '/';
}

static bool is_inside(const char *path, const char *root) {
    const size_t n = strlen(root);
    if (n > 0 && root[n - 1] == '/') return strncmp(path, root, n) == 0; /* the root folder */
    return strncmp(path, root, n) == 0 && path[n] == '/';
}

static clef_status resolve(char **real, const char *path, clef_error *err) {
    *real = realpath(path, NULL);
    if (*real != NULL) return CLEF_OK;
    if (errno == ENOMEM) return clef_fail_memory(err);
    return clef_fail(err, CLEF_ERR_IO, "%s: %s", path, strerror(errno));
}

clef_status hub_file(char **path, const char *dir, const char *name, clef_error *err) {
    char *joined = file_join(dir, name), *root = NULL, *real = NULL;
    clef_status s = joined == NULL ? clef_fail_memory(err) : CLEF_OK;
    if (s == CLEF_OK) s = resolve(&root, dir, err);
    if (s == CLEF_OK) s = resolve(&real, joined, err);
    if (s == CLEF_OK) {
        widen_to_hub_model(root);
        if (!is_inside(real, root))
            s = clef_fail(err, CLEF_ERR_FORMAT, "%s: a link to %s, wanted a file inside %s", joined,
                          real, root);
    }
    if (s == CLEF_OK) {
        *path = real;
        real = NULL;
    }
    free(joined);
    free(root);
    free(real);
    return s;
}

clef_status hub_snapshot(char **repo, char **commit, const char *dir, clef_error *err) {
    char *root = NULL;
    TRY(resolve(&root, dir, err));
    const size_t whole = strlen(root);
    widen_to_hub_model(root);
    buf name = {0}, snapshot = {0};
    clef_status s = CLEF_OK;
    const char *model = strrchr(root, '/');
    if (strlen(root) < whole && model != NULL) {
        /* "/models--Org--Name": no half of a name has "--" in it. */
        const char *org = model + strlen("/models--"), *dashes = strstr(org, "--");
        if (dashes != NULL) buf_printf(&name, "%.*s/%s", (int)(dashes - org), org, dashes + 2);
        buf_add_text(&snapshot, root + strlen(root) + strlen("/snapshots/"));
        s = buf_status(&name, err);
        if (s == CLEF_OK) s = buf_status(&snapshot, err);
    }
    if (s == CLEF_OK && hub_is_name((str){name.p, name.n}) && is_commit(&snapshot)) {
        *repo = buf_take(&name);
        *commit = buf_take(&snapshot);
    }
    buf_free(&name);
    buf_free(&snapshot);
    free(root);
    return s;
}
