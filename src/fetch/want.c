/* want.c - from a hub's list or a signed manifest to the files that are wanted.
 *
 * Whom a sum is believed: of a release that is built into the program, the built-in table, and the
 * hub has to agree with it; of a manifest, whoever signed it; else the hub, whose list of large
 * files has their SHA-256 and of small ones git's name. The bytes are held to it whatever source
 * they come from. */
#include "fetch/want.h"

#include <fnmatch.h>
#include <stdlib.h>

#include "base/file.h"
#include "fetch/manifest.h"
#include "fetch/minisign.h"
#include "fetch/remote.h"

void want_free(want *w) {
    arena_free(&w->mem);
    *w = (want){0};
}

static const char *keep(want *w, str text) {
    return arena_copy(&w->mem, text).p;
}

/* ---- selecting ------------------------------------------------------------------------------- */

static bool is_selected(const get_options *o, const char *path) {
    if (o->all) return true;
    if (o->n_include == 0) return manifest_is_needed(str_of(path));
    for (size_t i = 0; i < o->n_include; i++)
        if (fnmatch(o->include[i], path, 0) == 0) return true;
    return false;
}

static clef_status check_path(const char *path, const char *label, clef_error *err) {
    TRY(manifest_check_path(str_of(path), label, err));
    if (manifest_is_unfinished(str_of(path)))
        return clef_fail(err, CLEF_ERR_UNSUPPORTED,
                         "%s: the path '%s' is one that fetching needs for itself", label, path);
    return CLEF_OK;
}

/* A pattern that selects nothing is a mistake, as is an empty selection. */
static clef_status check_selection(const want *w, const get_options *o, const char *label,
                                   clef_error *err) {
    for (size_t i = 0; i < o->n_include; i++) {
        size_t hits = 0;
        for (size_t j = 0; j < w->n_files; j++)
            hits += fnmatch(o->include[i], w->files[j].path, 0) == 0;
        if (hits == 0)
            return clef_fail(err, CLEF_ERR_INPUT, "--include: no file of %s matches '%s'", label,
                             o->include[i]);
    }
    if (w->n_files > 0) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_INPUT,
                     "%s: nothing there that the engine needs; --all takes every file", label);
}

static int by_blob(const void *a, const void *b) {
    const want_file *x = *(want_file *const *)a, *y = *(want_file *const *)b;
    const int order = strcmp(x->blob, y->blob);
    return order != 0 ? order : (x > y) - (x < y);
}

/* Finds the files of one content, by sorting. */
static clef_status find_originals(want *w, want_file *files, const char *label, clef_error *err) {
    want_file **sorted = arena_alloc(&w->mem, w->n_files, sizeof(want_file *));
    if (sorted == NULL) return clef_fail_memory(err);
    for (size_t i = 0; i < w->n_files; i++) sorted[i] = &files[i];
    if (w->n_files > 0) qsort(sorted, w->n_files, sizeof(want_file *), by_blob);
    for (size_t i = 0; i < w->n_files; i++) {
        want_file *f = sorted[i];
        f->original = (size_t)(f - files);
        if (i == 0 || strcmp(sorted[i - 1]->blob, f->blob) != 0) continue;
        f->original = sorted[i - 1]->original;
        if (f->wanted.size != sorted[i - 1]->wanted.size)
            return clef_fail(err, CLEF_ERR_FORMAT, "%s: '%s' and '%s' have one sum and two sizes",
                             label, sorted[i - 1]->path, f->path);
    }
    return CLEF_OK;
}

/* Makes `files`, of which w->n_files are selected, those of *w. */
static clef_status set_files(want *w, want_file *files, const get_options *o, const char *label,
                             clef_error *err) {
    w->files = files;
    TRY(check_selection(w, o, label, err));
    str *paths = arena_alloc(&w->mem, w->n_files, sizeof *paths);
    if (paths == NULL) return clef_fail_memory(err);
    for (size_t i = 0; i < w->n_files; i++) paths[i] = str_of(files[i].path);
    TRY(manifest_check_twins(paths, w->n_files, label, err));
    return find_originals(w, files, label, err);
}

/* ---- sources --------------------------------------------------------------------------------- */

/* The sources of the user, then `others`. */
static clef_status set_sources(want *w, const get_options *o, const str *others, size_t n_others,
                               clef_error *err) {
    const char **sources = arena_alloc(&w->mem, o->n_sources + n_others, sizeof *sources);
    if (sources == NULL) return clef_fail_memory(err);
    for (size_t i = 0; i < o->n_sources; i++) {
        TRY(http_check_url(o->sources[i], o->allow_http, err));
        if (strpbrk(o->sources[i], "?#") != NULL)
            return clef_fail(err, CLEF_ERR_INPUT, "--source: '%s' is no folder of a server",
                             o->sources[i]);
        buf url = {0};
        buf_add_text(&url, o->sources[i]);
        if (url.n == 0 || url.p[url.n - 1] != '/') buf_add_char(&url, '/');
        sources[w->n_sources++] = url.failed ? NULL : keep(w, (str){url.p, url.n});
        buf_free(&url);
    }
    for (size_t i = 0; i < n_others; i++) sources[w->n_sources++] = keep(w, others[i]);
    for (size_t i = 0; i < w->n_sources; i++)
        if (sources[i] == NULL) return clef_fail_memory(err);
    w->sources = sources;
    if (w->n_sources == 0)
        return clef_fail(err, CLEF_ERR_INPUT, "the manifest names no source; --source gives one");
    return CLEF_OK;
}

/* ---- by manifest ----------------------------------------------------------------------------- */

static bool is_url(const char *text) {
    return strncmp(text, "https://", 8) == 0 || strncmp(text, "http://", 7) == 0;
}

static clef_status read_any(buf *out, const char *path_or_url, size_t max, const download *d,
                            clef_error *err) {
    if (is_url(path_or_url)) return download_text(d, path_or_url, max, out, NULL, err);
    return file_read(out, path_or_url, max, err);
}

/* The manifest, once its signature is right. */
static clef_status read_manifest(manifest *m, const get_options *o, const download *d,
                                 clef_error *err) {
    minisign_key key;
    if (is_url(o->manifest) && strpbrk(o->manifest, "?#") != NULL)
        return clef_fail(err, CLEF_ERR_INPUT,
                         "%.*s: with something behind the name, which the signature's could not "
                         "follow; fetch both and give the file",
                         HTTP_URL_ARG(o->manifest));
    TRY(minisign_key_read(&key, o->key != NULL ? o->key : MINISIGN_FREEWEIGHTS, err));
    buf text = {0}, name = {0}, signature = {0};
    buf_printf(&name, "%s.minisig", o->manifest);
    clef_status s = buf_status(&name, err);
    if (s == CLEF_OK) s = read_any(&text, o->manifest, MANIFEST_MAX_BYTES, d, err);
    if (s == CLEF_OK) s = read_any(&signature, name.p, MINISIGN_MAX_SIGNATURE, d, err);
    const str bytes = {text.p, text.n};
    if (s == CLEF_OK)
        s = minisign_verify(&key, bytes, (str){signature.p, signature.n}, MINISIGN_HASHED_ONLY,
                            name.p, NULL, err);
    if (s == CLEF_OK) s = manifest_parse(m, bytes, o->manifest, err);
    if (s == CLEF_OK && m->repo.n == 0) {
        manifest_free(m);
        s = clef_fail(err, CLEF_ERR_FORMAT, "%s: sums alone, wanted a " MANIFEST_FORMAT,
                      o->manifest);
    }
    buf_free(&text);
    buf_free(&name);
    buf_free(&signature);
    return s;
}

static clef_status take_manifest(want *w, const manifest *m, const get_options *o,
                                 clef_error *err) {
    TRY(manifest_expect(m, o->repo, o->revision, o->manifest, err));
    TRY(set_sources(w, o, m->sources, m->n_sources, err));
    w->repo = keep(w, m->repo);
    w->commit = keep(w, m->revision);
    want_file *files = arena_alloc(&w->mem, m->n_files, sizeof *files);
    if (w->repo == NULL || w->commit == NULL || files == NULL) return clef_fail_memory(err);
    for (size_t i = 0; i < m->n_files; i++) {
        const manifest_file *f = &m->files[i];
        if (!is_selected(o, f->path.p)) continue;
        TRY(check_path(f->path.p, o->manifest, err));
        want_file *one = &files[w->n_files++];
        one->path = keep(w, f->path);
        one->wanted.size = f->size;
        memcpy(one->wanted.hex, f->sha256, DIGEST_HEX);
        one->blob = keep(w, str_of(f->sha256));
        if (one->path == NULL || one->blob == NULL) return clef_fail_memory(err);
    }
    return set_files(w, files, o, o->manifest, err);
}

/* ---- by hub ---------------------------------------------------------------------------------- */

/* Holds a file of a built-in release to the table, whose SHA-256 is then the one to check. */
static clef_status hold_to_table(want_file *f, const manifest *table, const char *repo,
                                 clef_error *err) {
    const manifest_file *t = NULL;
    for (size_t i = 0; t == NULL && i < table->n_files; i++)
        if (str_equal(table->files[i].path, str_of(f->path))) t = &table->files[i];
    const bool same = t != NULL && (t->size == MANIFEST_ANY_SIZE || t->size == f->wanted.size) &&
                      (f->wanted.is_git || strcmp(t->sha256, f->wanted.hex) == 0);
    if (!same)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: the hub's '%s' is not that of the release",
                         repo, f->path);
    f->wanted.is_git = false;
    memcpy(f->wanted.hex, t->sha256, DIGEST_HEX);
    return CLEF_OK;
}

static clef_status take_list(want *w, const remote *r, const manifest *table, const get_options *o,
                             clef_error *err) {
    buf source = {0};
    remote_source(&source, o->endpoint, o->repo, r->commit);
    clef_status s = buf_status(&source, err);
    const str hub = {source.p, source.n};
    if (s == CLEF_OK) s = set_sources(w, o, &hub, 1, err);
    buf_free(&source);
    if (s != CLEF_OK) return s;
    w->repo = keep(w, str_of(o->repo));
    w->commit = keep(w, str_of(r->commit));
    want_file *files = arena_alloc(&w->mem, r->n_files, sizeof *files);
    if (w->repo == NULL || w->commit == NULL || files == NULL) return clef_fail_memory(err);
    for (size_t i = 0; i < r->n_files; i++) {
        const remote_file *f = &r->files[i];
        if (!is_selected(o, f->path.p)) continue;
        TRY(check_path(f->path.p, o->repo, err));
        want_file *one = &files[w->n_files++];
        *one = (want_file){
            .path = keep(w, f->path), .blob = keep(w, str_of(f->wanted.hex)), .wanted = f->wanted};
        if (one->path == NULL || one->blob == NULL) return clef_fail_memory(err);
        if (table->n_files > 0) TRY(hold_to_table(one, table, o->repo, err));
    }
    return set_files(w, files, o, o->repo, err);
}

/* The built-in table; an empty one where there is none. */
static clef_status take_table(manifest *table, const char *repo, const char *revision,
                              clef_error *err) {
    const clef_status s = manifest_builtin(table, repo, revision, NULL);
    return s == CLEF_ERR_MEMORY ? clef_fail_memory(err) : CLEF_OK;
}

static clef_status ask_hub(want *w, const get_options *o, const download *d, clef_error *err) {
    remote r = {0};
    manifest table = {0};
    const char *revision = o->revision;
    clef_status s = CLEF_OK;
    /* Who names no revision of a built-in release gets what is built in. Its branch could be any
     * commit that the hub likes, and then the sums would be the hub's too. */
    if (revision == NULL) {
        s = take_table(&table, o->repo, NULL, err);
        revision = table.n_files > 0 ? table.revision.p : "main";
    }
    if (s == CLEF_OK) s = remote_list(&r, d, o->endpoint, o->repo, revision, err);
    if (s == CLEF_OK && table.n_files == 0) s = take_table(&table, o->repo, r.commit, err);
    if (s == CLEF_OK) s = take_list(w, &r, &table, o, err);
    manifest_free(&table);
    remote_free(&r);
    return s;
}

clef_status want_find(want *out, const get_options *o, const download *d, clef_error *err) {
    want w = {0};
    clef_status s;
    if (o->manifest != NULL) {
        manifest m = {0};
        s = read_manifest(&m, o, d, err);
        if (s == CLEF_OK) s = take_manifest(&w, &m, o, err);
        manifest_free(&m);
    } else {
        s = ask_hub(&w, o, d, err);
    }
    if (s != CLEF_OK) {
        want_free(&w);
        return s;
    }
    *out = w;
    return CLEF_OK;
}
