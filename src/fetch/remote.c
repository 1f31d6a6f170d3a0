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
static const uint64_t max_size = (uint64_t)1 << 43;

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

/* Fetches and parses one answer; the tree lives in `mem`. */
static clef_status ask(const json **out, const download *d, const char *url, buf *next, arena *mem,
                       clef_error *err) {
    buf text = {0}, label = {0};
    buf_printf(&label, "%.*s", HTTP_URL_ARG(url));
    clef_status s = buf_status(&label, err);
    if (s == CLEF_OK) s = download_text(d, url, MAX_ANSWER, &text, next, err);
    const json_limits limits = {.max_depth = 32};
    if (s == CLEF_OK) {
        s = json_parse(out, (str){text.p, text.n}, label.p, &limits, mem, err);
        if (s == CLEF_ERR_INPUT || s == CLEF_ERR_LIMIT) s = CLEF_ERR_FORMAT;
    }
    buf_free(&text);
    buf_free(&label);
    return s;
}

static clef_status find_commit(remote *r, const download *d, const char *endpoint, const char *repo,
                               const char *revision, clef_error *err) {
    buf url = {0};
    arena mem = {0};
    const json *answer = NULL;
    add_api(&url, endpoint, repo, "revision");
    add_segment(&url, str_of(revision));
    clef_status s = buf_status(&url, err);
    if (s == CLEF_OK) s = ask(&answer, d, url.p, NULL, &mem, err);
    if (s == CLEF_OK) {
        const json *sha = json_get(answer, STR("sha"));
        if (sha != NULL && sha->kind == JSON_STRING && is_hex(sha->text, COMMIT))
            memcpy(r->commit, sha->text.p, COMMIT);
        else
            s = clef_fail(err, CLEF_ERR_FORMAT, "%s: no \"sha\" with a commit in the answer",
                          url.p);
    }
    arena_free(&mem);
    buf_free(&url);
    return s;
}

/* One entry of the list. */
static clef_status read_file(remote_file *out, const json *entry, const char *url, arena *mem,
                             clef_error *err) {
    const json *path = json_get(entry, STR("path")), *lfs = json_get(entry, STR("lfs"));
    if (path == NULL || path->kind != JSON_STRING || memchr(path->text.p, '\0', path->text.n))
        return clef_fail(err, CLEF_ERR_FORMAT, "%.*s: a file without a path", HTTP_URL_ARG(url));
    const bool is_git = lfs == NULL || lfs->kind != JSON_OBJECT;
    const json *from = is_git ? entry : lfs;
    const json *oid = json_get(from, STR("oid"));
    const size_t digits = is_git ? 40 : 64;
    if (oid == NULL || oid->kind != JSON_STRING || !is_hex(oid->text, digits) ||
        !json_u64(&out->wanted.size, json_get(from, STR("size")), max_size))
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%.*s: '%.*s' without an oid of %zu digits and a "
                         "size",
                         HTTP_URL_ARG(url), STR_ARG(path->text), digits);
    out->wanted.is_git = is_git;
    memcpy(out->wanted.hex, oid->text.p, digits);
    out->wanted.hex[digits] = '\0';
    out->path = arena_copy(mem, path->text);
    return out->path.p == NULL ? clef_fail_memory(err) : CLEF_OK;
}

static clef_status add_page(remote_file **files, size_t *cap, remote *r, const json *page,
                            const char *url, clef_error *err) {
    if (page->kind != JSON_ARRAY)
        return clef_fail(err, CLEF_ERR_FORMAT, "%.*s: %s, wanted an array of files",
                         HTTP_URL_ARG(url), json_kind_name(page));
    for (const json *e = page->first; e != NULL; e = e->next) {
        const json *type = json_get(e, STR("type"));
        if (type == NULL || !str_equal(type->text, STR("file"))) continue; /* folders */
        if (r->n_files == MAX_FILES)
            return clef_fail(err, CLEF_ERR_LIMIT, "%.*s: more than %d files", HTTP_URL_ARG(url),
                             MAX_FILES);
        remote_file *grown = array_grow(*files, cap, r->n_files + 1, sizeof *grown);
        if (grown == NULL) return clef_fail_memory(err);
        *files = grown;
        TRY(read_file(&grown[r->n_files], e, url, &r->mem, err));
        r->n_files++;
    }
    return CLEF_OK;
}

/* All pages; files is from malloc. */
static clef_status list_files(remote_file **files, remote *r, const download *d,
                              const char *endpoint, const char *repo, clef_error *err) {
    buf url = {0};
    size_t cap = 0;
    add_api(&url, endpoint, repo, "tree");
    buf_printf(&url, "%s?recursive=true", r->commit);
    clef_status s = buf_status(&url, err);
    for (unsigned page = 0; s == CLEF_OK && url.n > 0; page++) {
        if (page == MAX_PAGES) {
            s = clef_fail(err, CLEF_ERR_LIMIT, "%.*s: more than %d pages", HTTP_URL_ARG(url.p),
                          MAX_PAGES);
            break;
        }
        buf next = {0};
        arena mem = {0};
        const json *answer = NULL;
        s = ask(&answer, d, url.p, &next, &mem, err);
        if (s == CLEF_OK) s = add_page(files, &cap, r, answer, url.p, err);
        arena_free(&mem);
        buf_free(&url);
        url = next;
    }
    buf_free(&url);
    return s;
}

clef_status remote_list(remote *out, const download *d, const char *endpoint, const char *repo,
                        const char *revision, clef_error *err) {
    remote r = {0};
    remote_file *files = NULL;
    clef_status s = find_commit(&r, d, endpoint, repo, revision, err);
    if (s == CLEF_OK) s = list_files(&files, &r, d, endpoint, repo, err);
    if (s == CLEF_OK) {
        remote_file *kept = arena_alloc(&r.mem, r.n_files, sizeof *kept);
        if (kept == NULL) s = clef_fail_memory(err);
        if (kept != NULL && files != NULL) memcpy(kept, files, r.n_files * sizeof *kept);
        r.files = kept;
    }
    free(files);
    if (s != CLEF_OK) {
        remote_free(&r);
        return s;
    }
    *out = r;
    return CLEF_OK;
}

void remote_free(remote *r) {
    arena_free(&r->mem);
    *r = (remote){0};
}
