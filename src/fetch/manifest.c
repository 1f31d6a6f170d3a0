/* manifest.c - manifests to lists of files.
 *
 * A clef-manifest/1 is one JSON object of at most 4 MiB:
 *     { "manifest": "clef-manifest/1",
 *       "repo": "Cloudflare/clef-flash",
 *       "commit": "22b75507981345858dd152fbd9a6f8c0c4068b0a",
 *       "sources": [ "https://huggingface.co/Cloudflare/clef-flash/resolve/22b75507.../" ],
 *       "files": [ { "path": "config.json", "size": 2832, "sha256": "66f87f6f..." }, ... ] }
 * "sources" may be left out; a source and a path joined are the address of a file. Members beside
 * these ("created", "license") are ignored; a repeated one is refused, because two readers would
 * see two manifests. Another version has to be named in "manifest" and is refused here.
 *
 * SHA256SUMS is what sha256sum writes: 64 lowercase digits, a blank, a blank or '*', the path. A
 * line that begins with a backslash has an escaped name, which no path here may need.
 *
 * A path becomes the name of a file, so it must not leave the folder, and no two of them may be one
 * file on a system that folds case or cannot have a file and a folder of one name. Only printable
 * ASCII is let through: folding and normalising other scripts differs between file systems, and no
 * released model has needed it. */
#include "fetch/manifest.h"

#include <stdlib.h>

#include "checkpoint/hub.h"
#include "checkpoint/model_json.h"

enum { MAX_PATH = 1024, MAX_PART = 255, MAX_FILES = 65536, MAX_SOURCES = 64, MAX_URL = 2048 };
static const uint64_t max_size = (uint64_t)1 << 43;

/* ---- paths ---- */

bool manifest_is_path(str path, const char **why) {
    *why = NULL;
    if (path.n == 0) *why = "it is empty";
    if (path.n > MAX_PATH) *why = "it is longer than 1,024 bytes";
    size_t begin = 0;
    for (size_t i = 0; i <= path.n && *why == NULL; i++) {
        char c = '/'; /* ends the last part */
        if (i < path.n) c = path.p[i];
        if (c == '\\') *why = "it has a backslash";
        if (c < 0x20 || c > 0x7e) *why = "it has a byte that is no printable ASCII";
        if (c != '/') continue;
        const str part = {path.p + begin, i - begin};
        if (part.n == 0) *why = i == 0 ? "it is absolute" : "it has an empty part";
        if (str_equal(part, STR(".")) || str_equal(part, STR("..")))
            *why = "it has a part '.' or '..'";
        if (part.n > MAX_PART) *why = "it has a part of more than 255 bytes";
        begin = i + 1;
    }
    return *why == NULL;
}

clef_status manifest_check_path(str path, const char *label, clef_error *err) {
    const char *why = NULL;
    if (manifest_is_path(path, &why)) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_FORMAT, "%s: the path '%.*s' is refused: %s", label,
                     path.n > 80 ? 80 : (int)path.n, path.n > 0 ? path.p : "", why);
}

/* The order of folded paths in which a folder stands directly before what is in it. */
static int fold(char c) {
    if (c == '/') return 0;
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static int compare_folded(const void *a, const void *b) {
    const str x = *(const str *)a, y = *(const str *)b;
    const size_t n = x.n < y.n ? x.n : y.n;
    for (size_t i = 0; i < n; i++)
        if (fold(x.p[i]) != fold(y.p[i])) return fold(x.p[i]) - fold(y.p[i]);
    return (x.n > y.n) - (x.n < y.n);
}

clef_status manifest_check_twins(str *paths, size_t n, const char *label, clef_error *err) {
    if (n > 0) qsort(paths, n, sizeof *paths, compare_folded);
    for (size_t i = 1; i < n; i++) {
        const str a = paths[i - 1], b = paths[i];
        size_t same = 0;
        while (same < a.n && same < b.n && fold(a.p[same]) == fold(b.p[same])) same++;
        if (same < a.n) continue;
        if (same == b.n)
            return clef_fail(err, CLEF_ERR_FORMAT,
                             "%s: '%.*s' and '%.*s' are one file where case does not count", label,
                             STR_ARG(a), STR_ARG(b));
        if (b.p[same] == '/')
            return clef_fail(err, CLEF_ERR_FORMAT, "%s: '%.*s' is a file, and a folder for '%.*s'",
                             label, STR_ARG(a), STR_ARG(b));
    }
    return CLEF_OK;
}

static clef_status check_files(const manifest *m, const char *label, clef_error *err) {
    str *paths = calloc(m->n_files, sizeof *paths);
    if (paths == NULL) return clef_fail_memory(err);
    for (size_t i = 0; i < m->n_files; i++) paths[i] = m->files[i].path;
    const clef_status s = manifest_check_twins(paths, m->n_files, label, err);
    free(paths);
    return s;
}

static bool is_hex(str s) {
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f'))) return false;
    return true;
}

/* Completes an entry whose size is set. */
static clef_status set_file(manifest_file *f, str path, str sum, const char *label, arena *mem,
                            clef_error *err) {
    TRY(manifest_check_path(path, label, err));
    if (sum.n != DIGEST_HEX - 1 || !is_hex(sum))
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%s: the sha256 of '%.*s' is '%.*s', wanted 64 lowercase hexadecimal "
                         "digits",
                         label, STR_ARG(path), sum.n > 80 ? 80 : (int)sum.n,
                         sum.n > 0 ? sum.p : "");
    memcpy(f->sha256, sum.p, sum.n);
    f->sha256[sum.n] = '\0';
    f->path = arena_copy(mem, path);
    return f->path.p == NULL ? clef_fail_memory(err) : CLEF_OK;
}

/* ---- clef-manifest/1 ---- */

/* The text of a member that has to be a string. */
static clef_status get_text(str *out, const json *object, str name, const char *label,
                            clef_error *err) {
    const json *v = json_get(object, name);
    if (v == NULL || v->kind != JSON_STRING)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: \"%.*s\" is %s, wanted a string", label,
                         STR_ARG(name), v == NULL ? "missing" : json_kind_name(v));
    *out = v->text;
    return CLEF_OK;
}

static clef_status get_array(const json **out, const json *object, str name, size_t max,
                             const char *label, clef_error *err) {
    const json *v = json_get(object, name);
    if (v == NULL || v->kind != JSON_ARRAY)
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: \"%.*s\" is %s, wanted an array", label,
                         STR_ARG(name), v == NULL ? "missing" : json_kind_name(v));
    if (v->n > max)
        return clef_fail(err, CLEF_ERR_LIMIT, "%s: \"%.*s\" has %u elements, the limit is %zu",
                         label, STR_ARG(name), v->n, max);
    *out = v;
    return CLEF_OK;
}

/* An address that ends in '/', with nothing in it that a client would read as something else. */
static bool is_source(str url) {
    const str scheme = STR("https://");
    if (url.n <= scheme.n + 1 || url.n > MAX_URL || memcmp(url.p, scheme.p, scheme.n) != 0)
        return false;
    if (url.p[scheme.n] == '/' || url.p[url.n - 1] != '/') return false;
    for (size_t i = scheme.n; i < url.n; i++)
        if (url.p[i] <= 0x20 || url.p[i] > 0x7e || strchr("\\@?#\"<>^`{|}", url.p[i]) != NULL)
            return false;
    return true;
}

static clef_status read_sources(manifest *m, const json *root, const char *label, clef_error *err) {
    const json *list = NULL;
    if (json_get(root, STR("sources")) == NULL) return CLEF_OK;
    TRY(get_array(&list, root, STR("sources"), MAX_SOURCES, label, err));
    str *sources = arena_alloc(&m->mem, list->n, sizeof *sources);
    if (sources == NULL) return clef_fail_memory(err);
    for (const json *v = list->first; v != NULL; v = v->next) {
        if (v->kind != JSON_STRING || !is_source(v->text))
            return clef_fail(err, CLEF_ERR_FORMAT,
                             "%s: the source '%.*s' is refused, wanted https://HOST/.../ without "
                             "blanks, user, query or fragment",
                             label, STR_ARG(v->text));
        sources[m->n_sources] = arena_copy(&m->mem, v->text);
        if (sources[m->n_sources++].p == NULL) return clef_fail_memory(err);
    }
    m->sources = sources;
    return CLEF_OK;
}

static clef_status read_files(manifest *m, const json *root, const char *label, clef_error *err) {
    const json *list = NULL;
    TRY(get_array(&list, root, STR("files"), MAX_FILES, label, err));
    manifest_file *files = arena_alloc(&m->mem, list->n, sizeof *files);
    if (files == NULL) return clef_fail_memory(err);
    for (const json *v = list->first; v != NULL; v = v->next) {
        manifest_file *f = &files[m->n_files++];
        str path, sum;
        TRY(get_text(&path, v, STR("path"), label, err));
        TRY(get_text(&sum, v, STR("sha256"), label, err));
        if (!json_u64(&f->size, json_get(v, STR("size")), max_size))
            return clef_fail(err, CLEF_ERR_FORMAT,
                             "%s: the size of '%.*s' is not a whole number of at most 2^43", label,
                             STR_ARG(path));
        TRY(set_file(f, path, sum, label, &m->mem, err));
    }
    m->files = files;
    return CLEF_OK;
}

static clef_status read_names(manifest *m, const json *root, const char *label, clef_error *err) {
    str repo, revision;
    TRY(get_text(&repo, root, STR("repo"), label, err));
    TRY(get_text(&revision, root, STR("commit"), label, err));
    if (!hub_is_name(repo))
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: \"repo\" is '%.*s', wanted Org/Name", label,
                         STR_ARG(repo));
    if ((revision.n != 40 && revision.n != 64) || !is_hex(revision))
        return clef_fail(err, CLEF_ERR_FORMAT,
                         "%s: \"commit\" is '%.*s', wanted 40 or 64 lowercase hexadecimal digits",
                         label, STR_ARG(revision));
    m->repo = arena_copy(&m->mem, repo);
    m->revision = arena_copy(&m->mem, revision);
    return m->repo.p == NULL || m->revision.p == NULL ? clef_fail_memory(err) : CLEF_OK;
}

/* The one place for other people's manifests. The form of Freeweights' is not public, so every one
 * is refused, rather than guessed at: a list that is misread proves nothing. */
static clef_status read_foreign(const json *root, const char *label, clef_error *err) {
    const json *version = json_get(root, STR("manifest"));
    if (version != NULL && version->kind == JSON_STRING)
        return clef_fail(err, CLEF_ERR_UNSUPPORTED,
                         "%s: a manifest of the form '%.*s', wanted " MANIFEST_FORMAT, label,
                         STR_ARG(version->text));
    return clef_fail(
        err, CLEF_ERR_UNSUPPORTED,
        "%s: no \"manifest\": \"" MANIFEST_FORMAT "\" in it; the form of other "
        "manifests is not public, so none of them is read (the sums of " MANIFEST_RELEASE
        " are built in)",
        label);
}

static clef_status read_manifest(manifest *m, str text, const char *label, clef_error *err) {
    arena scratch = {0};
    const json *root = NULL;
    clef_status s = model_json_parse(&root, text, label, 16, &scratch, err);
    if (s == CLEF_OK) {
        const json *version = json_get(root, STR("manifest"));
        if (version == NULL || version->kind != JSON_STRING ||
            !str_equal(version->text, STR(MANIFEST_FORMAT)))
            s = read_foreign(root, label, err);
    }
    if (s == CLEF_OK) s = read_names(m, root, label, err);
    if (s == CLEF_OK) s = read_sources(m, root, label, err);
    if (s == CLEF_OK) s = read_files(m, root, label, err);
    arena_free(&scratch);
    return s;
}

/* ---- SHA256SUMS ---- */

static clef_status read_sums(manifest *m, str text, const char *label, clef_error *err) {
    size_t n_lines = 0;
    for (size_t i = 0; i < text.n; i++) n_lines += text.p[i] == '\n';
    if (text.n == 0 || text.p[text.n - 1] != '\n')
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: %s, wanted lines of a sum and a path", label,
                         text.n == 0 ? "empty" : "the last line has no end");
    if (n_lines > MAX_FILES)
        return clef_fail(err, CLEF_ERR_LIMIT, "%s: %zu lines, the limit is %d", label, n_lines,
                         MAX_FILES);
    manifest_file *files = arena_alloc(&m->mem, n_lines, sizeof *files);
    if (files == NULL) return clef_fail_memory(err);
    const size_t digits = DIGEST_HEX - 1;
    while (text.n > 0) {
        const char *end = memchr(text.p, '\n', text.n);
        const str line = {text.p, (size_t)(end - text.p)};
        manifest_file *f = &files[m->n_files++];
        f->size = MANIFEST_ANY_SIZE;
        if (line.n > 0 && line.p[0] == '\\')
            return clef_fail(err, CLEF_ERR_FORMAT, "%s: line %zu has an escaped name", label,
                             m->n_files);
        if (line.n < digits + 3 || line.p[digits] != ' ' ||
            (line.p[digits + 1] != ' ' && line.p[digits + 1] != '*'))
            return clef_fail(err, CLEF_ERR_FORMAT,
                             "%s: line %zu is not 64 digits, two blanks and a path", label,
                             m->n_files);
        TRY(set_file(f, (str){line.p + digits + 2, line.n - digits - 2}, (str){line.p, digits},
                     label, &m->mem, err));
        text = (str){end + 1, text.n - line.n - 1};
    }
    m->files = files;
    return CLEF_OK;
}

clef_status manifest_parse(manifest *out, str text, const char *label, clef_error *err) {
    if (text.n > MANIFEST_MAX_BYTES)
        return clef_fail(err, CLEF_ERR_LIMIT, "%s: %zu bytes, the limit is %d", label, text.n,
                         MANIFEST_MAX_BYTES);
    manifest m = {0};
    clef_status s = text.n > 0 && text.p[0] == '{' ? read_manifest(&m, text, label, err)
                                                   : read_sums(&m, text, label, err);
    if (s == CLEF_OK && m.n_files == 0)
        s = clef_fail(err, CLEF_ERR_FORMAT, "%s: it lists no file", label);
    if (s == CLEF_OK) s = check_files(&m, label, err);
    if (s != CLEF_OK) {
        manifest_free(&m);
        return s;
    }
    *out = m;
    return CLEF_OK;
}

void manifest_free(manifest *m) {
    arena_free(&m->mem);
    *m = (manifest){0};
}

/* ---- the released model ---- */

#define RELEASE_SIGNED "22b75507981345858dd152fbd9a6f8c0c4068b0a"

/* Revisions with the same files, byte for byte. */
static const char *const release_revisions[] = {RELEASE_SIGNED,
                                                "17f0b0ad64efb65d273590632833508766b2aae6"};

/* As the hub lists them (sums of large files, sizes) and the published signed manifest of
 * 2026-11-15 states them. Of five small files the exact size was not recorded. */
static const struct {
    const char *path;
    uint64_t size;
    const char *sha256;
} release_files[] = {
    {"model-00001-of-00004.safetensors", 4942706120,
     "8b45a8e968141cdcc58fb71c9adfc258e2c77b5f062bc636c1fd5bc5d916b565"},
    {"model-00002-of-00004.safetensors", 4987757928,
     "7590856c713eed844a2dcf48e6c43c4de165b788bc3f80e328311183cdbc7db8"},
    {"model-00003-of-00004.safetensors", 4954810240,
     "e6eac2467952c33361ed7dcb3c7959d1086bbe57201cd3749c3d769fdc17fe63"},
    {"model-00004-of-00004.safetensors", 3934446832,
     "9fcecc6556b39171238373a465f409794b7f821fb4cd1e6459e3a9c0fe317af7"},
    {"model.safetensors.index.json", 69253,
     "941305ff9f77551e145a6cea976ef456cd5cb208cbece99f168376c752fcf96c"},
    {"joint_head.safetensors", 243538016,
     "19cdcec8c81dc9212be320fff47462ab342fbc1278be4368fb3da71241cf5ba0"},
    {"joint_head_config.json", 119,
     "77efe959a38b5b17b241543e129e695f3c77465ece55a25985279bd8176279a0"},
    {"config.json", 2832, "66f87f6fb2616b46604daf2a9c67ddc87938296d07156efa34d59b5be49e3238"},
    {"tokenizer.json", 19989325,
     "06b9509352d2af50381ab2247e083b80d32d5c0aba91c272ca9ff729b6a0e523"},
    {"tokenizer_config.json", 1075,
     "91a08f825d370d085d692e04cf117cdd7faad7bf18e996f1e6031b6dab03db72"},
    {"processor_config.json", 1191,
     "d89ef49ce9cd37fbf510158e13c1ef063d9286411c1ec9049932dbe0487143b1"},
    {"chat_template.jinja", 7756,
     "a4aee8afcf2e0711942cf848899be66016f8d14a889ff9ede07bca099c28f715"},
    {"generation_config.json", 116,
     "45707f8467bf4e54e112c6095a1b2d1f2d63651cf86816344cfff21f02dda0d4"},
    {"joint_schema_model.py", 23263,
     "0e304cf7c6500e8bb59bef7e2afd2c6373f82596dfb3b57d1aa93c175e2dc3a3"},
    {"LICENSE", MANIFEST_ANY_SIZE,
     "bbedc3fda3305820b977265f01b8619d87570a6739de3a5582c3464840f1e57a"},
    {"README.md", MANIFEST_ANY_SIZE,
     "53a3dc4ac96a1b2f17e6c03d9cf19a50b25ddad8d270fbe655902f6ce68bb4b5"},
    {".gitattributes", MANIFEST_ANY_SIZE,
     "34448b82c17d60fec9b65b1f093c115ddbaadc04beb1b0140b6bfed2e012a930"},
    {".eval_results/Cloudflare__clef-flash.yaml", MANIFEST_ANY_SIZE,
     "4ee39a04dc803f6e90520edbc2253377bd7b1646cf5f47c8c2c8812e54825e9e"},
    {".eval_results/safeagents-judge-bench.yaml", MANIFEST_ANY_SIZE,
     "c6f02c4738621231b1b9039928646000ac2234eac2426ba341600cf02eabaa82"},
};

clef_status manifest_builtin(manifest *out, const char *repo, const char *revision,
                             clef_error *err) {
    enum { N_REVISIONS = sizeof release_revisions / sizeof *release_revisions };
    enum { N_FILES = sizeof release_files / sizeof *release_files };
    size_t known = 0;
    while (revision != NULL && known < N_REVISIONS &&
           strcmp(release_revisions[known], revision) != 0)
        known++;
    if (strcmp(repo, MANIFEST_RELEASE) != 0 || known == N_REVISIONS)
        return clef_fail(err, CLEF_ERR_INPUT,
                         "no sums of '%s'%s%s are built in, only those of " MANIFEST_RELEASE
                         " at %s and %s; give a manifest",
                         repo, revision == NULL ? "" : " at ", revision == NULL ? "" : revision,
                         release_revisions[0], release_revisions[1]);
    manifest m = {0};
    buf source = {0};
    buf_printf(&source, "https://huggingface.co/" MANIFEST_RELEASE "/resolve/%s/",
               release_revisions[known]);
    manifest_file *files = arena_alloc(&m.mem, N_FILES, sizeof *files);
    str *sources = arena_alloc(&m.mem, 1, sizeof *sources);
    clef_status s = files == NULL || sources == NULL ? clef_fail_memory(err) : CLEF_OK;
    if (s == CLEF_OK) s = buf_status(&source, err);
    for (size_t i = 0; s == CLEF_OK && i < N_FILES; i++) {
        files[i].size = release_files[i].size;
        s = set_file(&files[i], str_of(release_files[i].path), str_of(release_files[i].sha256),
                     MANIFEST_RELEASE, &m.mem, err);
    }
    if (s == CLEF_OK) {
        sources[0] = arena_copy(&m.mem, (str){source.p, source.n});
        m.repo = arena_copy(&m.mem, STR(MANIFEST_RELEASE));
        m.revision = arena_copy(&m.mem, str_of(release_revisions[known]));
        if (sources[0].p == NULL || m.repo.p == NULL || m.revision.p == NULL)
            s = clef_fail_memory(err);
    }
    buf_free(&source);
    if (s != CLEF_OK) {
        manifest_free(&m);
        return s;
    }
    m.files = files;
    m.n_files = N_FILES;
    m.sources = sources;
    m.n_sources = 1;
    *out = m;
    return CLEF_OK;
}

/* ---- what a manifest is good for ---- */

clef_status manifest_expect(const manifest *m, const char *repo, const char *revision,
                            const char *label, clef_error *err) {
    if (m->repo.n == 0 && (repo != NULL || revision != NULL))
        return clef_fail(err, CLEF_ERR_INPUT,
                         "%s: a list of sums does not say of which model it is", label);
    if (repo != NULL && !str_equal(m->repo, str_of(repo)))
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: a manifest of '%.*s', wanted one of '%s'",
                         label, STR_ARG(m->repo), repo);
    if (revision != NULL && !str_equal(m->revision, str_of(revision)))
        return clef_fail(err, CLEF_ERR_FORMAT, "%s: a manifest of commit '%.*s', wanted '%s'",
                         label, STR_ARG(m->revision), revision);
    return CLEF_OK;
}

static bool ends_in(str path, str tail) {
    return path.n >= tail.n && memcmp(path.p + path.n - tail.n, tail.p, tail.n) == 0;
}

bool manifest_is_needed(str path) {
    static const char *const names[] = {"config.json",
                                        "joint_head_config.json",
                                        "model.safetensors.index.json",
                                        "tokenizer.json",
                                        "tokenizer_config.json",
                                        "processor_config.json",
                                        "preprocessor_config.json",
                                        "bundle.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_equal(path, str_of(names[i]))) return true;
    const str tail = STR(".safetensors");
    return path.n > tail.n && memchr(path.p, '/', path.n) == NULL && ends_in(path, tail);
}

bool manifest_is_unfinished(str path) {
    static const char *const tails[] = {".part", ".part.note", ".part.note~"};
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++)
        if (ends_in(path, str_of(tails[i]))) return true;
    return false;
}

bool manifest_is_aside(str path) {
    const str notes = STR(".cache/huggingface/");
    return str_equal(path, STR(MANIFEST_NAME)) || str_equal(path, STR(MANIFEST_NAME ".minisig")) ||
           (path.n >= notes.n && memcmp(path.p, notes.p, notes.n) == 0);
}
