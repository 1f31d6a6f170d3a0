/* verify.c - holds a folder to a list, file by file.
 *
 * Where no list is named, the first of these is taken:
 *   1. the built-in table, when the folder is a snapshot of that model in a hub cache;
 *   2. clef-manifest.json in the folder;
 *   3. SHA256SUMS in the folder, which `clef convert` writes;
 *   4. the built-in table, when the folder is in no hub cache.
 * A manifest has to be signed (NAME.minisig beside it) by the key that the caller gives, or by that
 * of Freeweights; the signature is checked over the bytes that are then parsed. SHA256SUMS need not
 * be: without a signature they show damage only.
 *
 * In an ordinary folder a file is no link, and neither is a folder on the way to it: what a link
 * leads to may change behind the list's back. In a hub cache a snapshot consists of links into the
 * model's blobs; a blob is named after its content, by the sum of large files and by git's name of
 * small ones, and both are held to it. */
#include "fetch/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cpu.h"
#include "base/file.h"
#include "checkpoint/hub.h"
#include "fetch/listing.h"
#include "fetch/sums.h"

#define SIGNATURE_TAIL ".minisig"

/* ---- the list ---- */

/* Where the folder lies in a hub cache; both NULL elsewhere. */
typedef struct {
    char *repo, *commit;
} place;

static clef_status take_builtin(verify_result *r, const char *repo, const char *revision,
                                clef_error *err) {
    TRY(manifest_builtin(&r->m, repo, revision, err)); /* which leaves r->m alone when it fails */
    r->trust = VERIFY_BUILTIN;
    buf_printf(&r->list, "the built-in table of %s", repo);
    return buf_status(&r->list, err);
}

/* Checks the signature in `path`. Without a key of the caller's, sums go without, and a manifest
 * too where that is allowed and there is none. */
static clef_status check_signature(verify_result *r, str text, bool sums, const char *path,
                                   const verify_options *o, clef_error *err) {
    r->trust = VERIFY_NOT_SIGNED;
    const bool there = file_is_named(path);
    if (o->key == NULL && (sums || (o->not_signed && !there))) return CLEF_OK;
    if (!there)
        return clef_fail(
            err, CLEF_ERR_IO,
            "%s: there is no signature; without one a list shows damage, not forgery%s", path,
            sums ? "" : ", and is taken only with --unsigned");
    minisign_key key;
    TRY(minisign_key_read(&key, o->key != NULL ? o->key : MINISIGN_FREEWEIGHTS, err));
    buf signature = {0};
    str comment = {0};
    clef_status s = file_read(&signature, path, MINISIGN_MAX_SIGNATURE, err);
    if (s == CLEF_OK)
        s = minisign_verify(&key, text, (str){signature.p, signature.n},
                            o->legacy ? MINISIGN_LEGACY_TOO : MINISIGN_HASHED_ONLY, path, &comment,
                            err);
    if (s == CLEF_OK) {
        buf_add_str(&r->comment, comment);
        s = buf_status(&r->comment, err);
        r->trust = VERIFY_SIGNED;
        r->own_key = o->key != NULL;
        minisign_key_id(r->key_id, key.number);
    }
    buf_free(&signature);
    return s;
}

static clef_status take_file(verify_result *r, const char *path, const verify_options *o,
                             clef_error *err) {
    buf text = {0}, signature = {0};
    buf_printf(&signature, "%s" SIGNATURE_TAIL, path);
    buf_add_text(&r->list, path);
    clef_status s = buf_status(&signature, err);
    if (s == CLEF_OK) s = buf_status(&r->list, err);
    if (s == CLEF_OK) s = file_read(&text, path, MANIFEST_MAX_BYTES, err);
    if (s == CLEF_OK) {
        const bool sums = text.n == 0 || text.p[0] != '{';
        s = check_signature(r, (str){text.p, text.n}, sums, signature.p, o, err);
    }
    if (s == CLEF_OK) s = manifest_parse(&r->m, (str){text.p, text.n}, path, err);
    buf_free(&text);
    buf_free(&signature);
    return s;
}

/* Takes dir/name when it is there. */
static clef_status take_own(bool *taken, verify_result *r, const char *name,
                            const verify_options *o, clef_error *err) {
    char *path = file_join(r->dir, name);
    if (path == NULL) return clef_fail_memory(err);
    *taken = file_is_named(path);
    const clef_status s = *taken ? take_file(r, path, o, err) : CLEF_OK;
    free(path);
    return s;
}

static bool is_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static clef_status find_list(verify_result *r, const place *at, const verify_options *o,
                             clef_error *err) {
    const char *revision = o->revision != NULL ? o->revision : at->commit;
    if (o->list != NULL) {
        const bool is_file = file_is_named(o->list) && !is_folder(o->list);
        if (!is_file && hub_is_name(str_of(o->list)))
            return take_builtin(r, o->list, revision, err);
        return take_file(r, o->list, o, err);
    }
    const bool keyless = o->key == NULL;
    if (keyless && at->repo != NULL) {
        const clef_status s = take_builtin(r, at->repo, at->commit, err);
        if (s != CLEF_ERR_INPUT) return s; /* else there is no table of it */
    }
    bool taken = false;
    TRY(take_own(&taken, r, MANIFEST_NAME, o, err));
    if (!taken) TRY(take_own(&taken, r, MANIFEST_SUMS, o, err));
    if (taken) return CLEF_OK;
    if (!keyless)
        return clef_fail(err, CLEF_ERR_INPUT,
                         "%s: neither " MANIFEST_NAME " nor " MANIFEST_SUMS
                         " in it, which a key could have signed",
                         r->dir);
    return take_builtin(r, at->repo != NULL ? at->repo : MANIFEST_RELEASE, revision, err);
}

/* ---- the files of the list ---- */

static clef_status add_file(verify_result *r, verify_file f, clef_error *err) {
    verify_file *files = array_grow(r->files, &r->cap, r->n_files + 1, sizeof *files);
    if (files == NULL) return clef_fail_memory(err);
    r->files = files;
    files[r->n_files++] = f;
    return CLEF_OK;
}

/* Says what is wrong with `f`, in the words of `why`. */
static clef_status fault(verify_result *r, verify_file *f, verify_state state, const char *why,
                         clef_error *err) {
    f->state = state;
    f->detail = arena_copy(&r->mem, str_of(why));
    return f->detail.p == NULL ? clef_fail_memory(err) : CLEF_OK;
}

/* A folder, resolved, and where its files may lie. */
typedef struct {
    char *root;  /* of the folder */
    char *blobs; /* "models--Org--Name/blobs/" of a snapshot, else NULL */
} roots;

static bool begins_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Whether the resolved path is the file's own place, or its blob. */
static bool is_in_place(const roots *at, const char *real, str path) {
    size_t n = strlen(at->root);
    if (n == 1) n = 0; /* "/" */
    if (strncmp(real, at->root, n) == 0 && real[n] == '/' && strcmp(real + n + 1, path.p) == 0)
        return true;
    return at->blobs != NULL && begins_with(real, at->blobs) &&
           strchr(real + strlen(at->blobs), '/') == NULL;
}

/* Finds the file and looks at all but its content: *real, for free(), is where it lies when its
 * content has to be looked at, else NULL. */
static clef_status look_at(char **real, verify_result *r, verify_file *f, const manifest_file *want,
                           const roots *at, bool all, clef_error *err) {
    char *joined = file_join(r->dir, f->path.p), *found = NULL;
    if (joined == NULL) return clef_fail_memory(err);
    const bool named = file_is_named(joined);
    free(joined);
    if (!named) {
        if (!all && !manifest_is_needed(f->path)) {
            f->state = VERIFY_ABSENT;
            return CLEF_OK;
        }
        return fault(r, f, VERIFY_MISSING, "not there", err);
    }
    clef_error why = {0};
    clef_status s = hub_file(&found, r->dir, f->path.p, &why);
    if (s == CLEF_ERR_MEMORY) return clef_fail_memory(err);
    if (s != CLEF_OK)
        return fault(r, f, s == CLEF_ERR_FORMAT ? VERIFY_LINKED : VERIFY_UNREADABLE, why.text, err);
    struct stat st = {0};
    if (!is_in_place(at, found, f->path)) {
        clef_fail(&why, CLEF_ERR_FORMAT, "a link to %s, wanted a file of its own", found);
        s = fault(r, f, VERIFY_LINKED, why.text, err);
    } else if (stat(found, &st) != 0) {
        clef_fail(&why, CLEF_ERR_IO, "%s", strerror(errno));
        s = fault(r, f, VERIFY_UNREADABLE, why.text, err);
    } else if (!S_ISREG(st.st_mode)) {
        s = fault(r, f, VERIFY_UNREADABLE, "not a regular file", err);
    } else {
        f->size = (uint64_t)st.st_size;
        if (want->size == MANIFEST_ANY_SIZE || want->size == f->size) {
            *real = found;
            return CLEF_OK;
        }
        clef_fail(&why, CLEF_ERR_FORMAT, "%llu bytes, wanted %llu", (unsigned long long)f->size,
                  (unsigned long long)want->size);
        s = fault(r, f, VERIFY_CHANGED, why.text, err);
    }
    free(found);
    return s;
}

static clef_status add_block(void *context, const void *bytes, size_t n, clef_error *err) {
    (void)err; /* a sum keeps its failure */
    digest_add(context, bytes, n);
    return CLEF_OK;
}

/* A blob is named after its content: the sum, or what git calls a file. Other names are other
 * hubs' marks of a version, and say nothing. */
static clef_status check_blob(verify_result *r, verify_file *f, const char *real, const roots *at,
                              clef_error *err) {
    if (at->blobs == NULL || !begins_with(real, at->blobs)) return CLEF_OK;
    const char *name = real + strlen(at->blobs);
    const size_t n = strspn(name, "0123456789abcdef");
    char found[DIGEST_HEX] = "";
    if (name[n] != '\0' || (n != 40 && n != DIGEST_HEX - 1)) return CLEF_OK;
    if (n == 40) {
        digest *d = NULL;
        TRY(digest_open_git(&d, f->size, err));
        clef_status s = file_blocks(real, SIZE_MAX, add_block, d, err);
        if (s == CLEF_OK) s = digest_finish(d, found, err);
        digest_close(d);
        TRY(s);
    }
    if (strcmp(name, n == 40 ? found : f->sha256) == 0) return CLEF_OK;
    return fault(r, f, VERIFY_CHANGED, "it is what the list says, but its blob has another's name",
                 err);
}

/* Compares what was summed with what is wanted. */
static clef_status judge(verify_result *r, verify_file *f, const sums_file *sum,
                         const manifest_file *want, const roots *at, clef_error *err) {
    clef_error why = {0};
    if (sum->failure.status != CLEF_OK)
        return fault(r, f, VERIFY_UNREADABLE, sum->failure.text, err);
    f->size = sum->size;
    memcpy(f->sha256, sum->sha256, DIGEST_HEX);
    r->bytes += f->size;
    if (strcmp(f->sha256, want->sha256) == 0) return check_blob(r, f, sum->path, at, err);
    clef_fail(&why, CLEF_ERR_FORMAT, "sha256 %s, wanted %s", f->sha256, want->sha256);
    return fault(r, f, VERIFY_CHANGED, why.text, err);
}

static clef_status check_listed(verify_result *r, const roots *at, const verify_options *o,
                                clef_error *err) {
    const bool all = o->all || r->m.repo.n == 0; /* sums are of files that all belong */
    const size_t n = r->m.n_files;
    sums_file *sums = calloc(n, sizeof *sums);
    size_t *of = calloc(n, sizeof *of), n_sums = 0; /* of[i]: the file that sums[i] is of */
    clef_status s = sums == NULL || of == NULL ? clef_fail_memory(err) : CLEF_OK;
    for (size_t i = 0; s == CLEF_OK && i < n; i++) {
        s = add_file(r, (verify_file){.path = r->m.files[i].path}, err);
        char *real = NULL;
        if (s == CLEF_OK) s = look_at(&real, r, &r->files[i], &r->m.files[i], at, all, err);
        if (real == NULL) continue;
        sums[n_sums] = (sums_file){.path = real, .size = r->files[i].size};
        of[n_sums++] = i;
    }
    const double begin = cpu_seconds();
    if (s == CLEF_OK) s = sums_run(sums, n_sums, o->jobs, o->progress, o->user, err);
    r->seconds = cpu_seconds() - begin;
    for (size_t i = 0; s == CLEF_OK && i < n_sums; i++)
        s = judge(r, &r->files[of[i]], &sums[i], &r->m.files[of[i]], at, err);
    for (size_t i = 0; i < n_sums; i++) free(sums[i].path);
    free(sums);
    free(of);
    return s;
}

/* ---- what else is there ---- */

/* What no list of the model has to name. */
static bool is_expected(str path) {
    return manifest_is_aside(path) || str_equal(path, STR(MANIFEST_SUMS)) ||
           str_equal(path, STR(MANIFEST_SUMS SIGNATURE_TAIL));
}

static clef_status check_others(verify_result *r, clef_error *err) {
    listing_entry *entries = NULL;
    size_t n = 0;
    str *listed = calloc(r->m.n_files, sizeof *listed);
    clef_status s = listed == NULL ? clef_fail_memory(err) : CLEF_OK;
    if (s == CLEF_OK) s = listing_read(&entries, &n, r->dir, &r->mem, err);
    for (size_t i = 0; s == CLEF_OK && i < r->m.n_files; i++) listed[i] = r->m.files[i].path;
    if (s == CLEF_OK) qsort(listed, r->m.n_files, sizeof *listed, listing_order);
    for (size_t i = 0; s == CLEF_OK && i < n; i++) {
        const listing_entry *e = &entries[i];
        if (e->kind == LISTING_FOLDER || is_expected(e->path) ||
            bsearch(&e->path, listed, r->m.n_files, sizeof *listed, listing_order) != NULL)
            continue;
        verify_file f = {.path = e->path, .state = VERIFY_OTHER};
        if (manifest_is_needed(e->path))
            s = fault(r, &f, VERIFY_EXTRA, "not listed, and the engine might open it", err);
        if (s == CLEF_OK) s = add_file(r, f, err);
    }
    free(entries);
    free(listed);
    return s;
}

/* ---- all of it ---- */

static void count(verify_result *r) {
    memset(r->n_of, 0, sizeof r->n_of);
    r->n_faults = 0;
    for (size_t i = 0; i < r->n_files; i++) {
        r->n_of[r->files[i].state]++;
        r->n_faults += r->files[i].state >= VERIFY_FAULTS;
    }
}

clef_status verify_add(verify_result *r, str path, verify_state state, const char *detail,
                       clef_error *err) {
    verify_file f = {.path = arena_copy(&r->mem, path)};
    if (f.path.p == NULL) return clef_fail_memory(err);
    TRY(fault(r, &f, state, detail, err));
    TRY(add_file(r, f, err));
    count(r);
    return CLEF_OK;
}

static clef_status find_roots(roots *out, const char *dir, const place *at, clef_error *err) {
    out->root = realpath(dir, NULL);
    if (out->root == NULL) return clef_fail(err, CLEF_ERR_IO, "%s: %s", dir, strerror(errno));
    if (at->repo == NULL) return CLEF_OK;
    /* The root ends in "/snapshots/COMMIT". */
    buf blobs = {0};
    buf_add(&blobs, out->root, strlen(out->root) - strlen(at->commit) - strlen("snapshots/"));
    buf_add_text(&blobs, "blobs/");
    TRY(buf_status(&blobs, err));
    out->blobs = buf_take(&blobs);
    return CLEF_OK;
}

clef_status verify_run(verify_result *r, const verify_options *o, clef_error *err) {
    place at = {0};
    roots where = {0};
    clef_status s = hub_resolve(&r->dir, o->dir, o->hub_cache, err);
    if (s == CLEF_OK) s = hub_snapshot(&at.repo, &at.commit, r->dir, err);
    if (s == CLEF_OK) s = find_roots(&where, r->dir, &at, err);
    if (s == CLEF_OK) s = find_list(r, &at, o, err);
    if (s == CLEF_OK) s = manifest_expect(&r->m, o->repo, o->revision, r->list.p, err);
    /* A list in a hub cache is of the model and the commit of that place. */
    if (s == CLEF_OK && r->m.repo.n > 0)
        s = manifest_expect(&r->m, at.repo, at.commit, r->list.p, err);
    if (s == CLEF_OK) s = check_listed(r, &where, o, err);
    if (s == CLEF_OK) {
        clef_error why = {0};
        s = check_others(r, &why);
        /* What was found out about the listed files is told all the same. */
        if (s == CLEF_ERR_IO || s == CLEF_ERR_LIMIT)
            s = verify_add(r, STR("."), VERIFY_UNREADABLE, why.text, err);
        else if (s != CLEF_OK)
            s = clef_fail(err, s, "%s", why.text);
    }
    count(r);
    if (s == CLEF_OK && r->n_of[VERIFY_RIGHT] == 0 && r->n_faults == 0)
        s = clef_fail(err, CLEF_ERR_FORMAT, "%s: nothing that is listed is there", r->dir);
    free(at.repo);
    free(at.commit);
    free(where.root);
    free(where.blobs);
    return s;
}

void verify_free(verify_result *r) {
    free(r->dir);
    buf_free(&r->list);
    buf_free(&r->comment);
    manifest_free(&r->m);
    free(r->files);
    arena_free(&r->mem);
    *r = (verify_result){0};
}
