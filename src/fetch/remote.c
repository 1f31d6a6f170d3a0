/* remote.c - two questions to a hub, as huggingface_hub asks them:
 *
 *   api/models/{repo}/revision/{revision}               {"sha": commit, ...}
 *   api/models/{repo}/tree/{commit}?recursive=true      [{"type": "file", "path", "size", "oid",
 *                                                         "lfs": {"oid", "size"}}, ...]
 *
 * The list may have more pages, named by a Link header. "oid" is git's name of a file. Large files
 * lie outside of git: theirs is the name of a pointer, and lfs.oid is the SHA-256 of the content.
 * The list is of one commit, so a branch that moves meanwhile mixes nothing.
 *
 * The answer is as good as the hub: whoever wants more has a signed manifest, or a release whose
 * sums are built in. */
#include "fetch/remote.h"

#include <stdlib.h>

#include "base/array.h"
#include "text/json.h"

enum { MAX_ANSWER = 16 << 20, MAX_PAGES = 64, MAX_FILES = 1 << 16, COMMIT = 40 };

static bool is_hex(str s, size_t n) {
    if (s.n != n) return false;
    for (size_t i = 0; i < n; i++)
        if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f'))) return false;
    return true;
}

/* The endpoint without the slashes at its end. */
static void add_endpoint(buf *url, const char *endpoint) {
    size_t n = strlen(endpoint);
    while (n > 0 && endpoint[n - 1] == '/') n--;
    buf_add(url, endpoint, n);
}

/* One part of a path: a slash inside ("refs/pr/1") is encoded too. */
static void add_segment(buf *url, str text) {
    while (text.n > 0) {
        const char *slash = memchr(text.p, '/', text.n);
        const size_t n = slash == NULL ? text.n : (size_t)(slash - text.p);
        http_add_path(url, (str){text.p, n});
        if (slash != NULL) buf_add_text(url, "%2F");
        const size_t used = n + (slash != NULL);
        text = (str){text.p + used, text.n - used};
    }
}

void remote_source(buf *url, const char *endpoint, const char *repo, const char *commit) {
    add_endpoint(url, endpoint);
    buf_add_char(url, '/');
    http_add_path(url, str_of(repo));
    buf_printf(url, "/resolve/%s/", commit);
}

static void add_api(buf *url, const char *endpoint, const char *repo, const char *what) {
    add_endpoint(url, endpoint);
    buf_add_text(url, "/api/models/");
    http_add_path(url, str_of(repo));
    buf_printf(url, "/%s/", what);
}

static clef_status parse(const json **out, str text, const char *label, arena *mem,
                         clef_error *err) {
    const json_limits limits = {.max_depth = 32};
    const clef_status s = json_parse(out, text, label, &limits, mem, err);
    if (s != CLEF_ERR_INPUT && s != CLEF_ERR_LIMIT) return s;
    if (err != NULL) err->status = CLEF_ERR_FORMAT;
    return CLEF_ERR_FORMAT;
}

static clef_status find_commit(remote *r, const download *d, const char *endpoint, const char *repo,
                               const char *revision, clef_error *err) {
    buf url = {0}, text = {0};
    arena mem = {0};
    const json *answer = NULL;
    add_api(&url, endpoint, repo, "revision");
    add_segment(&url, str_of(revision));
    clef_status s = buf_status(&url, err);
    if (s == CLEF_OK) s = download_text(d, url.p, MAX_ANSWER, &text, NULL, err);
    if (s == CLEF_OK) s = parse(&answer, (str){text.p, text.n}, url.p, &mem, err);
    if (s == CLEF_OK) {
        const json *sha = json_get(answer, STR("sha"));
        if (sha != NULL && sha->kind == JSON_STRING && is_hex(sha->text, COMMIT))
            memcpy(r->commit, sha->text.p, COMMIT);
        else
            s = clef_fail(err, CLEF_ERR_FORMAT, "%s: no \"sha\" with a commit in the answer",
                          url.p);
        /* A branch may be any commit; a commit is itself. */
        if (s == CLEF_OK && is_hex(str_of(revision), COMMIT) && strcmp(revision, r->commit) != 0)
            s = clef_fail(err, CLEF_ERR_FORMAT, "%s: answered with the commit %s", url.p,
                          r->commit);
    }
    arena_free(&mem);
    buf_free(&text);
    buf_free(&url);
    return s;
}

/* One entry of the list. */
static clef_status read_file(remote_file *out, const json *entry, const char *label, arena *mem,
                             clef_error *err) {
    const json *path = json_get(entry, STR("path")), *lfs = json_get(entry, STR("lfs"));
    if (path == NULL || path->kind != JSON_STRING || memchr(path->text.p, '\0', path->text.n))
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: a file without a path", label);
    const bool is_git = lfs == NULL || lfs->kind != JSON_OBJECT;
    const json *from = is_git ? entry : lfs;
    const json *oid = json_get(from, STR("oid"));
    const size_t digits = is_git ? 40 : 64;
    if (oid == NULL || oid->kind != JSON_STRING || !is_hex(oid->text, digits) ||
        !json_u64(&out->wanted.size, json_get(from, STR("size")), REMOTE_MAX_SIZE))
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: '%.*s' without an oid of %zu digits and a size",
                         label, STR_ARG(path->text), digits);
    out->wanted.is_git = is_git;
    memcpy(out->wanted.hex, oid->text.p, digits);
    out->wanted.hex[digits] = '\0';
    out->path = arena_copy(mem, path->text);
    return out->path.p == NULL ? clef_fail_memory(err) : CLEF_OK;
}

static clef_status add_files(remote *r, const json *page, const char *label, clef_error *err) {
    if (page->kind != JSON_ARRAY)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: %s, wanted an array of files", label,
                         json_kind_name(page));
    for (const json *e = page->first; e != NULL; e = e->next) {
        const json *type = json_get(e, STR("type"));
        if (type == NULL || !str_equal(type->text, STR("file"))) continue; /* folders */
        if (r->n_files == MAX_FILES)
            return clef_fail(err, CLEF_ERR_LIMIT, "%s: more than %d files", label, MAX_FILES);
        remote_file *grown = array_grow(r->files, &r->cap, r->n_files + 1, sizeof *grown);
        if (grown == NULL) return clef_fail_memory(err);
        r->files = grown;
        grown[r->n_files] = (remote_file){0};
        TRY(read_file(&grown[r->n_files], e, label, &r->mem, err));
        r->n_files++;
    }
    return CLEF_OK;
}

clef_status remote_add_page(remote *r, str text, const char *label, clef_error *err) {
    arena mem = {0};
    const json *page = NULL;
    clef_status s = parse(&page, text, label, &mem, err);
    if (s == CLEF_OK) s = add_files(r, page, label, err);
    arena_free(&mem);
    return s;
}

static clef_status list_files(remote *r, const download *d, const char *endpoint, const char *repo,
                              clef_error *err) {
    buf url = {0};
    add_api(&url, endpoint, repo, "tree");
    buf_printf(&url, "%s?recursive=true", r->commit);
    clef_status s = buf_status(&url, err);
    for (unsigned page = 0; s == CLEF_OK && url.n > 0; page++) {
        buf next = {0}, text = {0}, label = {0};
        buf_printf(&label, "%.*s", HTTP_URL_ARG(url.p));
        s = buf_status(&label, err);
        if (s == CLEF_OK && page == MAX_PAGES)
            s = clef_fail(err, CLEF_ERR_LIMIT, "%s: more than %d pages", label.p, MAX_PAGES);
        if (s == CLEF_OK) s = download_text(d, url.p, MAX_ANSWER, &text, &next, err);
        if (s == CLEF_OK) s = remote_add_page(r, (str){text.p, text.n}, label.p, err);
        buf_free(&text);
        buf_free(&label);
        buf_free(&url);
        url = next;
    }
    buf_free(&url);
    return s;
}

clef_status remote_list(remote *out, const download *d, const char *endpoint, const char *repo,
                        const char *revision, clef_error *err) {
    remote r = {0};
    clef_status s = find_commit(&r, d, endpoint, repo, revision, err);
    if (s == CLEF_OK) s = list_files(&r, d, endpoint, repo, err);
    if (s != CLEF_OK) {
        remote_free(&r);
        return s;
    }
    *out = r;
    return CLEF_OK;
}

void remote_free(remote *r) {
    free(r->files);
    arena_free(&r->mem);
    *r = (remote){0};
}
